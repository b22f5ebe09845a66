"""What the study of map-space exploration has in common (Kao 2022, chapter 5): workloads, machines, Gamma's operators.

Table 5.1 gives the workloads; the text names none for figures 5.5 and 5.6, so those three convolutions are taken on
Accel-B, with perfect factors as in Timeloop. Batches are 16 images.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilewright.hardware import Accelerator, preset
from tilewright.jobs import Runner
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.report import finite
from tilewright.reproduce.searching import (
    SeededSearch,
    Tried,
    bound_figures,
    confirmed,
    mapping_counted,
    play,
    said,
    search_cell,
)
from tilewright.reproduce.study import Setting, Table, Value
from tilewright.search import Improvement
from tilewright.search.studies import Attempt, Contender, Contest, median_interval
from tilewright.workload import Operator, convolution

SIZES = {"Resnet Conv_3": (128, 128, 28, 3), "Resnet Conv_4": (256, 256, 14, 3), "Inception Conv_2": (192, 192, 27, 5)}
"""Filters, channels, output rows and columns, kernel (table 5.1)."""

OPERATORS = {"tile": ("tile",), "order": ("reorder",), "parallelism": ("parallel", "growth", "aging")}
"""Gamma's mutations by the axis that they explore."""

_RATE = 0.5
_OFF: dict[str, Any] = {
    **dict.fromkeys(("crossover", "tile", "parallel", "reorder", "growth", "aging", "move", "fill", "nudge", "expand",
                     "rebuild", "newcomer", "single", "chain"), 0.0), "distinct": False, "repair": False, "patience": 0}


@cache
def workload(name: str) -> Operator:
    """Return a convolution of table 5.1."""
    filters, channels, side, kernel = SIZES[name]
    return convolution(name, batch=16, in_channels=channels, out_channels=filters, out_size=(side, side), kernel=kernel)


@cache
def space_of(name: str, machine: str) -> MapSpace:
    """Return the perfect factorisations of a workload on Accel-A or Accel-B."""
    return MapSpace(workload(name), preset(machine), "perfect")


def published(axes: Sequence[str] = tuple(OPERATORS), *, crossover: bool = True) -> dict[str, Any]:
    """Return Gamma with its published operators at their rate of 0.5, those of some axes, without our extensions."""
    chosen = [name for axis in axes for name in OPERATORS[axis]] + (["crossover"] if crossover else [])
    return {**_OFF, **dict.fromkeys(chosen, _RATE)}


@dataclass(frozen=True)
class SearchSetup:
    """One way to search one workload; ``begun`` gives the space and the start of each seed, where they differ."""

    workload: str
    label: str
    mapper: str
    options: Mapping[str, Any]
    machine: str
    begun: Callable[[int], tuple[MapSpace, MappingBatch]] | None = None

    def begin(self, seed: int) -> tuple[MapSpace, MappingBatch | None]:
        """Return the space that a seed searches, and what it begins from."""
        return self.begun(seed) if self.begun is not None else (space_of(self.workload, self.machine), None)


Found = dict[tuple[str, str], Tried[SearchSetup]]
"""By workload and label."""


def searches(runner: Runner, setups: Sequence[SearchSetup], setting: Setting) -> Found:
    """Make every search with every seed, and let the oracle count the median mappings."""
    def case(setup: SearchSetup) -> SeededSearch:
        key: dict[str, object] = {"workload": setup.workload, "machine": preset(setup.machine).name}
        cells = [search_cell({**key, "method": setup.label}, space, mapper=setup.mapper, options=setup.options,
                             samples=setting["samples"], seed=seed, start=start)
                 for seed, (space, start) in enumerate(map(setup.begin, range(setting.seeds)))]
        return SeededSearch(cells, mapping_counted(key, workload(setup.workload), preset(setup.machine)))

    return {(tried.of.workload, tried.of.label): tried for tried in play(runner, setups, case)}


def contest_of(found: Found, name: str, labels: Sequence[str]) -> Contest:
    """Return the searches of one workload as a contest, for its curves."""
    machine = preset(found[name, labels[0]].of.machine)
    attempts = tuple(
        Attempt(label, seed, tuple(Improvement(int(at), 0.0, score) for at, score in value.get("history", ())),
                value["samples"], value["legal_samples"], 0.0)
        for label in labels for seed, value in enumerate(found[name, label].runs))
    seeds = tuple(range(len(found[name, labels[0]].runs)))
    return Contest(name, machine.name, "edp", "pJ x cycles",
                   tuple(Contender(label, found[name, label].of.mapper) for label in labels), seeds, attempts,
                   bound(name, machine)["edp"])


def bound(name: str, machine: Accelerator) -> Mapping[str, float]:
    """Return what nothing can beat for a workload."""
    return bound_figures(workload(name), machine)


def scores_table(found: Found, reference: str, title: str) -> Table:
    """Return the median EDP of every search with its interval, and its ratio to that of the reference."""
    rows: list[tuple[Value, ...]] = []
    for (name, label), tried in found.items():
        limits, interval, middle = bound(name, preset(tried.of.machine)), median_interval(tried.scores), tried.median
        least = found[name, reference]["edp"]
        rows.append((name, label, limits["edp"], finite(tried["edp"]), finite(interval.low), finite(interval.high),
                     finite(tried["edp"] / least), None if middle is None else int(middle["latency_cycles"]),
                     int(limits["compute_cycles"]), said(tried.oracle)))
    cover = median_interval(next(iter(found.values())).scores).coverage
    return Table("scores", title, (
        "Workload", "Method", "EDP bound", "EDP", "Low", "High", f"over {reference}", "Cycles",
        "Compute bound (cycles)", "Oracle"), tuple(rows), (
        f"EDP in pJ x cycles, median of seeds; low to high encloses the true median with a chance of {cover:.1%}.",
        oracle_words(found)))


def oracle_words(found: Found) -> str:
    """Return how many of the mappings the oracle confirms."""
    agree, count, whole = confirmed(found.values())
    return f"The oracle confirms {agree} of {count} mappings behind the medians, {whole} of them walked whole."
