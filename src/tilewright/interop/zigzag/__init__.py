"""ZigZag's accelerators, workloads and mappings (YAML, versions of 2024 to 2026); ZigZag itself is not needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.base import InputError, read_text
from tilewright.interop.formats import Foreign, refuse_sizes
from tilewright.interop.notes import Notes
from tilewright.interop.sections import Section, whole_section
from tilewright.interop.zigzag.machine import read_machine
from tilewright.interop.zigzag.mapping import Entries
from tilewright.interop.zigzag.workload import read_workload

__all__ = ["read"]

_MARKS = {"accelerator": ("memories", "operational_array"), "workload": ("equation", "loop_dims", "operator_type"),
          "mapping": ("spatial_mapping", "spatial_mapping_hint", "temporal_ordering", "memory_operand_links")}


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read files that belong together: at most one accelerator, one workload and one mapping.

    Raises an `InputError` with file and line, if something is missing, wrong, or of in-memory computing.
    """
    refuse_sizes(bind, "files of ZigZag")
    notes = Notes()
    parts = _parts(paths, notes)
    entries = Entries.read(parts["mapping"]) if "mapping" in parts else None
    graph = read_workload(parts["workload"]) if "workload" in parts else None
    if "accelerator" not in parts:
        if entries is not None:
            raise entries.root.fail("must come with the accelerator, whose array dimensions it names")
        return Foreign(graph, notes=tuple(notes))
    machine, places = read_machine(parts["accelerator"], {} if entries is None else entries.links)
    if entries is None:
        return Foreign(graph, replace(machine, assumptions=tuple(map(str, notes))), notes=tuple(notes))
    if graph is None:
        entries.root.dropped("it needs the workload, in a file of ZigZag, whose dimensions it names")
        return Foreign(None, replace(machine, assumptions=tuple(map(str, notes))), notes=tuple(notes))
    mappings, constraints = entries.applied(graph, machine, places)
    machine = replace(machine, assumptions=tuple(map(str, notes)))
    return Foreign(graph, machine, mappings, constraints, tuple(notes))


def _parts(paths: Sequence[Path], notes: Notes) -> dict[str, Section]:
    found: dict[str, Section] = {}
    for path in paths:
        section = whole_section(read_text(path), path.name, notes)
        tree = section.tree
        rows = tree if isinstance(tree, list) else [tree]
        names = {name for row in rows if isinstance(row, dict) for name in row}
        part = next((part for part, marks in _MARKS.items() if names & set(marks)), None)
        if part is None or (part == "accelerator") == isinstance(tree, list):
            raise InputError(f"{path.name}:1", "must be an accelerator of ZigZag (memories, operational_array), or a "
                             "list of layers (equation, loop_dims) or of mappings (spatial_mapping)",
                             ", ".join(sorted(map(str, names))[:5]) or "nothing of them",
                             "Versions in Python, before 2024, are not read")
        if part in found:
            raise section.root.fail(f"must be the only {part}; the first stands in {found[part].label}")
        found[part] = section
    return found
