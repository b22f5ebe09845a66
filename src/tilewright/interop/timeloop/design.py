"""Timeloop files, read as a whole: the operator, the accelerator, the mapping and the constraints that they hold."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.interop.formats import Foreign, Part
from tilewright.interop.notes import refuse_notes
from tilewright.interop.timeloop.architecture import build_accelerator, read_design, read_energies
from tilewright.interop.timeloop.mapping import (
    build_constraints,
    build_mapping,
    kept_by,
    node_directives,
    read_directives,
)
from tilewright.interop.timeloop.problem import read_problem
from tilewright.interop.timeloop.source import read_files
from tilewright.workload import Graph, MacNode, Operator

CONSTRAINTS = ("architecture_constraints", "mapspace_constraints", "mapspace")


_SECTIONS: Mapping[str, Part] = {
    "problem": "network", "architecture": "accelerator", "mapping": "mapping", "ERT": "energies", "ART": "energies",
    **dict.fromkeys(CONSTRAINTS, "constraints")}
_SUFFIXES = (".yaml", ".yml")


def holds_timeloop(path: Path) -> frozenset[Part]:
    """Return what a YAML file holds whose sections, at its margin, are Timeloop's."""
    if path.suffix.lower() not in _SUFFIXES:
        return frozenset()
    try:
        with path.open(encoding="utf-8") as file:
            return frozenset(_SECTIONS[name] for name in (line.split(":")[0] for line in file if line[0].isalpha())
                             if name in _SECTIONS)
    except (OSError, UnicodeDecodeError):
        return frozenset()


def load_timeloop(paths: Sequence[str | Path], operator: Operator | None = None, *,
                  strict: bool = False) -> Foreign:
    """Read Timeloop's YAML files (versions 0.3 and 0.4): architecture, problem, mapping, constraints, ERT and ART.

    Parameters
    ----------
    operator
        What is mapped, where no file holds a problem.
    strict
        Refuse files of which anything would be dropped or approximated.

    Raises
    ------
    InputError
        With file and line, if something is missing, wrong or (strictly) not honoured in full.
    """
    files = read_files(paths)
    problem, architecture, mapping = (files.one(name) for name in ("problem", "architecture", "mapping"))
    if mapping is not None and not mapping.tree:
        mapping = None
    if problem is not None:
        operator = read_problem(problem)
    accelerator = nest = constraints = None
    if architecture is not None:
        design = read_design(architecture)
        at_nodes = node_directives(design, operator) if operator else []
        energies = read_energies(files)
        accelerator = build_accelerator(design, energies, operator, kept_by(at_nodes, operator) if operator else None)
        if operator is not None:
            listed = [directive for section in files.named(*CONSTRAINTS)
                      for directive in read_directives(section, design, operator)]
            constraints = build_constraints([*at_nodes, *listed], operator, accelerator)
            if mapping is not None:
                nest = build_mapping(mapping, read_directives(mapping, design, operator), design, operator, accelerator)
    if mapping is not None and nest is None:
        raise mapping.fail((), "must come with its architecture and problem")
    if strict:
        refuse_notes(files.notes)
    graph = Graph(operator.name, (MacNode(operator),), "timeloop") if operator else None
    mappings = {operator.name: nest} if operator and nest else {}
    return Foreign(graph, accelerator, mappings, constraints, tuple(files.notes))
