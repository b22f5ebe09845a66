"""Timeloop's YAML (versions 0.3 and 0.4), both ways; Timeloop itself is not needed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.interop.formats import Foreign, ForeignText, refuse_sizes
from tilewright.interop.notes import Note, Notes, refuse_notes
from tilewright.interop.sections import Files, Section
from tilewright.interop.signs import CONSTRAINTS, ESTIMATORS, UNUSED
from tilewright.interop.timeloop.architecture import read_design
from tilewright.interop.timeloop.directives import Directive, node_directives, read_directives, together
from tilewright.interop.timeloop.machine import Energies, Said, build_accelerator, read_energies, with_energies
from tilewright.interop.timeloop.mapping import (
    apart_in,
    build_constraints,
    build_mapping,
    keeping_as,
    kept_by,
    kept_by_names,
)
from tilewright.interop.timeloop.problem import read_problem
from tilewright.interop.timeloop.program import dump_program
from tilewright.interop.timeloop.sparsity import read_sparsity
from tilewright.interop.timeloop.writing import dump_timeloop
from tilewright.mapping import Constraints
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Graph, MacNode, Operator

SECTIONS = ("architecture", "problem", "mapping", "architecture_constraints", "mapspace_constraints", "constraints",
            "extra_mapping_constraints", "mapspace", "sparse_optimizations", "variables", "ERT", "ART", *ESTIMATORS)
HARMLESS = ("version", "dumped_by_timeloop_front_end")
"""Sections that change nothing."""
__all__ = ["dump_program", "dump_timeloop", "energise", "load_timeloop", "read", "write", "write_program"]
Dump = Callable[[Operator, Accelerator, Nest | None, Constraints | None], ForeignText]


def _files(paths: Sequence[str | Path]) -> Files:
    return Files.read(paths, SECTIONS, UNUSED | dict.fromkeys(HARMLESS, ""), "Timeloop")


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
    files = _files(paths)
    problem, architecture, mapping = (files.one(name) for name in ("problem", "architecture", "mapping"))
    if mapping is not None and not mapping.tree:
        mapping = None
    if problem is not None:
        operator = read_problem(problem)
    energies = read_energies(files)
    made: tuple[Accelerator | None, Nest | None, Constraints | None] = (None, None, None)
    if architecture is not None:
        made = _build(files, architecture, operator, energies, mapping)
    elif mapping is not None:
        raise mapping.root.fail("must come with its architecture and problem")
    else:
        for section in files.named(*CONSTRAINTS, "sparse_optimizations", "variables"):
            section.root.dropped("it says nothing without an architecture")
    accelerator, nest, constraints = made
    if not energies.places:
        for section in files.named(*ESTIMATORS):
            section.root.dropped("how energies are estimated; an ERT would give them")
    if strict:
        refuse_notes(files.notes)
    if accelerator is not None:
        accelerator = replace(accelerator, assumptions=tuple(str(note) for note in files.notes))
    graph = Graph(operator.name, (MacNode(operator),), "timeloop") if operator else None
    mappings = {operator.name: nest} if operator and nest else {}
    return Foreign(graph, accelerator, mappings, constraints, tuple(files.notes))


def energise(accelerator: Accelerator, paths: Sequence[str | Path]) -> tuple[Accelerator, tuple[Note, ...]]:
    """Return a machine of any origin with the figures of Accelergy's tables (ERT, ART), and what was left of those.

    Raises an `InputError` if the files hold no such tables, or none of the machine's components.
    """
    files = _files(paths)
    energies = read_energies(files)
    if not energies.places:
        raise InputError(str(paths[0]), "must hold an ERT or ART with tables")
    for section in files.sections:
        if section.name not in ("ERT", "ART"):
            section.root.dropped("only an ERT or ART is read behind a machine of ours")
    found = with_energies(accelerator, energies)
    return replace(found, assumptions=(*found.assumptions, *map(str, files.notes))), tuple(files.notes)


def _build(files: Files, architecture: Section, operator: Operator | None, energies: Energies,
           mapping: Section | None) -> tuple[Accelerator, Nest | None, Constraints | None]:
    """Return the accelerator, and the mapping and the constraints where there is a problem whose loops they name."""
    variables = {name: value for section in files.named("variables")
                 for name, value in section.root.fields(empty=True).items() if name != "version"}
    design = read_design(architecture, variables)
    if operator is None:
        for section in files.named(*CONSTRAINTS, "sparse_optimizations"):
            section.root.dropped("it needs the problem whose tensors and dimensions it names")
        if mapping is not None:
            raise mapping.root.fail("must come with its architecture and problem")
        constraining: list[Directive] = []
        mapped: list[Directive] = []
        kept = kept_by_names(design)
    else:
        at_nodes = node_directives(design, operator)
        listed = [directive for section in files.named(*CONSTRAINTS)
                  for directive in read_directives(section, design, operator)]
        constraining = together([*at_nodes, *listed], design, operator)
        mapped = together(read_directives(mapping, design, operator), design, operator) if mapping is not None else []
        kept = kept_by(at_nodes, operator)
    said = Said(kept, apart_in([*constraining, *mapped]))
    sparsity = read_sparsity(files, design, operator, kept)
    accelerator = build_accelerator(design, energies, operator, said, sparsity)
    if operator is None:
        return accelerator, None, None
    nest = build_mapping(mapping, mapped, design, operator, accelerator) if mapping is not None else None
    constraints = build_constraints(constraining, operator, accelerator)
    if mapping is not None and nest is not None:
        constraints = keeping_as(nest, constraints, mapping)
    return accelerator, nest, constraints


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read files that belong together, as a format does."""
    refuse_sizes(bind, "a Timeloop problem")
    return load_timeloop(paths)


def _written(dump: Dump, made: Foreign) -> ForeignText:
    operator, accelerator = made.operator, made.accelerator
    if operator is None or accelerator is None:
        raise InputError("timeloop", "must be written of a layer with an accelerator",
                         "no layer" if operator is None else "no accelerator")
    found, notes = dump(operator, accelerator, made.mappings.get(operator.name), made.constraints), Notes()
    if made.graph is not None:
        notes.others(made.graph)
    return replace(found, notes=(*found.notes, *notes))


write = partial(_written, dump_timeloop)
"""Writes what Timeloop's front end reads, as a format does."""
write_program = partial(_written, dump_program)
"""Writes what timeloop-model reads without a front end, as a format does."""
