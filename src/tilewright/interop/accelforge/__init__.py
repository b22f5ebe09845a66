"""AccelForge's architectures, workloads and mappings (YAML); AccelForge itself is not needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.base import InputError
from tilewright.interop.accelforge.machine import read_machine
from tilewright.interop.accelforge.mapping import read_mappings
from tilewright.interop.accelforge.workload import Einsums
from tilewright.interop.formats import Foreign, refuse_sizes
from tilewright.interop.notes import Notes
from tilewright.interop.sections import Section, plain_tree, whole_document
from tilewright.interop.signs import Given
from tilewright.interop.templates import rendered

__all__ = ["read"]

_SECTIONS = ("arch", "workload", "mapping", "renames", "variables")
_UNUSED = {"mapper": "how AccelForge searches", "config": "what AccelForge is run with",
           "model": "what AccelForge reports"}


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read files that belong together; variables of templates stand behind a file's name, ``arch.yaml:SIZE=1024``.

    Raises an `InputError` with file and line, if something is missing, wrong, or fuses einsums.
    """
    refuse_sizes(bind, "files of AccelForge")
    notes = Notes()
    parts = _parts(paths, notes)
    variables = parts["variables"].root.fields(empty=True) if "variables" in parts else {}
    einsums = Einsums.read(parts["workload"], parts.get("renames")) if "workload" in parts else None
    graph = einsums.graph if einsums else None
    mapping = parts.get("mapping")
    if "arch" not in parts:
        if mapping is not None and mapping.tree:
            raise mapping.root.fail("must come with the architecture whose components it names")
        if graph is None:
            raise InputError(paths[0].name, "must hold an arch or a workload", ", ".join(parts) or "nothing of them")
        return Foreign(graph, notes=tuple(notes))
    machine = read_machine(parts["arch"], variables, einsums)
    mappings = {}
    if mapping is not None and mapping.tree:
        if einsums is None:
            raise mapping.root.fail("must come with the workload whose tensors it names")
        mappings = read_mappings(mapping, einsums, machine)
    machine = replace(machine, assumptions=tuple(map(str, notes)))
    return Foreign(graph, machine, mappings, notes=tuple(notes))


def _parts(paths: Sequence[Path], notes: Notes) -> dict[str, Section]:
    found: dict[str, Section] = {}
    given = [Given.of(path) for path in paths]
    folders = [folder for one in given for folder in one.folders]
    for one in given:
        label = one.path.name
        variables = {name: int(text) if text.isdecimal() else text for name, text in one.variables.items()}
        document, origins = whole_document(label, rendered(one.path, variables, folders), _SECTIONS)
        if not set(map(str, document)) & {*_SECTIONS, *_UNUSED}:
            raise InputError(f"{label}:1", f"must hold one of {', '.join(_SECTIONS)}", ", ".join(map(str, document)))
        for name, tree in document.items():
            section = Section(label, str(name), plain_tree(tree), document, notes, origins)
            if name not in _SECTIONS:
                section.root.dropped(_UNUSED.get(str(name), "not a section of AccelForge that is known here"))
            elif name in found:
                raise section.root.fail(f"must be given once; the first stands in {found[name].label}")
            else:
                found[str(name)] = section
    return found
