"""The exercises of the tutorial of Timeloop and Accelergy, and its example designs, mapping by mapping.

``data/timeloop-tutorial/reference.json`` holds what ``timeloop-model`` printed (words per instance, instances, cycles,
femtojoules per multiply-accumulate in all and by component); the machines and mappings beside it are files of ours,
built after the exercises.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tilewright.cost import Cost, DenseModel
from tilewright.cost.reference import TIMELOOP, replay
from tilewright.hardware import Accelerator, Memory, load_accelerator
from tilewright.mapping import Mapping, load_mapping
from tilewright.validation.records import DATA, Figure, Quantity, SetFigures, ValidationWatch, add_own
from tilewright.workload import Operator, convolution

FOLDER = DATA / "timeloop-tutorial"
COUNTS, CYCLES, UNDRAINED, ENERGY = "counts", "cycles", "energy without drains", "energy"


DESIGN = "design-"
"""Begins the names of example designs; all others are exercises."""


class Exercise(NamedTuple):
    """A mapped convolution, and what Timeloop says of it."""

    name: str
    operator: Operator
    accelerator: Accelerator
    mapping: Mapping
    theirs: dict[str, Any]


def exercises() -> Iterator[Exercise]:
    """Yield the exercises in their order, and then the example designs."""
    for name, theirs in json.loads((FOLDER / "reference.json").read_text(encoding="utf-8")).items():
        sizes = theirs["sizes"]
        kernel = tuple(sizes[name] for name in "RS" if name in sizes)
        positions = tuple(sizes[name] for name in "PQ" if name in sizes)
        operator = convolution(name, in_channels=sizes["C"], out_channels=sizes["K"], kernel=kernel,
                               out_size=positions, stride=sizes.get("stride", 1))
        machine = load_accelerator(FOLDER / f"{theirs['machine']}.yaml")
        yield Exercise(name, operator, machine, load_mapping(FOLDER / f"{name}.yaml", operator, machine), theirs)


def run(watch: ValidationWatch) -> SetFigures:
    """Count every exercise by our rules; and once more by Timeloop's conventions, to see that they change nothing."""
    found, figures = _counted(watch, designs=False)
    alike = sum(_alike(exercise, cost) for exercise, cost in found)
    return SetFigures(figures, (
        f"Counted under Timeloop's conventions instead, reads, fills and updates stay the same in {alike} of the "
        f"{len(found)} mappings.",))


def run_designs(watch: ValidationWatch) -> SetFigures:
    """Count the example designs by our rules, and tell which counts differ."""
    _, figures = _counted(watch, designs=True)
    other = [f"{figure.case.removeprefix(DESIGN)} ({figure.ours:,.0f}, not {figure.reference:,.0f})"
             for figure in figures if figure.quantity == COUNTS and figure.error]
    return SetFigures(figures, (f"Counts that differ: {'; '.join(other)}.",))


def _counted(watch: ValidationWatch, designs: bool) -> tuple[list[tuple[Exercise, Cost]], tuple[Figure, ...]]:
    """Count the exercises, or the example designs, by our rules."""
    found = [(exercise, DenseModel(exercise.operator, exercise.accelerator).cost(exercise.mapping))
             for exercise in exercises() if exercise.name.startswith(DESIGN) == designs]
    watch.tell(len(found), len(found))
    return found, tuple(figure for each in found for figure in _compared(*each))


def _compared(exercise: Exercise, cost: Cost) -> Iterator[Figure]:
    name, theirs = exercise.name, exercise.theirs
    for place, (*words, instances) in theirs["counts"].items():
        memory, _, tensor = place.partition(".")
        ours = cost.counts[memory, tensor]
        for kind, other in zip(("reads", "fills", "updates"), words, strict=True):
            yield Figure(f"{name} {place}.{kind}", COUNTS, getattr(ours, kind), other * instances)
    yield Figure(name, CYCLES, cost.latency_cycles, theirs["cycles"])
    yield Figure(name, UNDRAINED, _undrained(exercise), theirs["fj_per_mac"]["Total"] * theirs["macs"] / 1000)
    yield Figure(name, ENERGY, cost.energy_pj, theirs["fj_per_mac"]["Total"] * theirs["macs"] / 1000)


def _undrained(exercise: Exercise) -> float:
    """Return the energy on a machine where drains are free."""
    levels = tuple(replace(level, energy=replace(level.energy, drain_pj=0.0)) if isinstance(level, Memory) else level
                   for level in exercise.accelerator.levels)
    machine = replace(exercise.accelerator, levels=levels)
    return DenseModel(exercise.operator, machine).cost(exercise.mapping).energy_pj


def _alike(exercise: Exercise, cost: Cost) -> bool:
    theirs = replay(exercise.operator, exercise.accelerator, exercise.mapping, TIMELOOP)
    return all(getattr(cost.counts[place], kind) == count.total(kind)
               for place, count in theirs.counts.items() for kind in ("reads", "fills", "updates"))


QUANTITIES = (
    Quantity(COUNTS, "words", "the fast model, our rules: reads, fills and updates of every memory and tensor"),
    Quantity(CYCLES, "cycles", "the same, ramps and all"),
    Quantity(UNDRAINED, "pJ", "the same, where a drain costs nothing; Timeloop prints five digits"),
    Quantity(ENERGY, "pJ", "the same, where a drain costs as much as a read"))

add_own("timeloop-tutorial", QUANTITIES, run)

add_own("timeloop-designs", QUANTITIES, run_designs)
