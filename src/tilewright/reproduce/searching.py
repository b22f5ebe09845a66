"""What most studies are made of: cases searched with every seed, each with its median run and the oracle's word."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from statistics import median
from typing import Any, Generic, Protocol, TypeVar

from tilewright.cost import Cost, layer_bounds, network_sum
from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import MappingBatch, MapSpace, dump_mapping, load_mapping
from tilewright.reproduce.oracle import check
from tilewright.reproduce.study import Cell
from tilewright.search import Watch, search
from tilewright.workload import Operator, unique_operators, zoo

T_co = TypeVar("T_co", covariant=True)
Found = TypeVar("Found")
Value = Mapping[str, Any]


@dataclass(frozen=True)
class Layer:
    """A distinct layer of a network, and how often it occurs."""

    network: str
    name: str
    count: int
    operator: Operator


def network_layers(*networks: str, every: int = 1) -> list[Layer]:
    """Return the distinct layers of zoo networks, or every n-th of them where ``every`` is n."""
    found = [Layer(network, unique.operator.name, unique.count, unique.operator)
             for network in networks for unique in unique_operators(zoo.load(network))]
    return found[::every]


class _OnLayer(Protocol):
    """What is searched on a layer."""

    @property
    def layer(self) -> Layer:
        """The layer."""


@dataclass(frozen=True)
class SeededSearch:
    """A search to be made with several seeds, a cell for each; ``checks`` returns what the oracle is asked of a run."""

    cells: Sequence[Cell]
    checks: Callable[[Value], Sequence[Cell]]


@dataclass(frozen=True)
class Tried(Generic[T_co]):
    """What came of a search: its runs by seed, that of median ``figure`` (None where most found nothing), the oracle.

    ``of`` is what was searched, ``oracles`` what the oracle said of the median run. Figures are those of that run,
    infinite where there is none.
    """

    of: T_co
    runs: Sequence[Value]
    median: Value | None
    oracles: Sequence[Value] = ()
    figure: str = "edp"

    @property
    def oracle(self) -> Value | None:
        """What the oracle said of the one mapping."""
        return self.oracles[0] if self.oracles else None

    def __getitem__(self, name: str) -> float:
        return math.inf if self.median is None else float(self.median[name])

    @property
    def scores(self) -> list[float]:
        """The figure by seed; infinite where nothing was found."""
        found = [figure_of(run, self.figure) for run in self.runs]
        return [math.inf if figure is None else figure for figure in found]

    def at(self, seed: int) -> "Tried[T_co]":
        """Return what came of one seed (of the one there is, for what is not searched)."""
        run = self.runs[seed % len(self.runs)]
        return replace(self, runs=(run,), median=None if figure_of(run, self.figure) is None else run)


def searched(key: Mapping[str, object], space: MapSpace, seeds: int, **how: Any) -> SeededSearch:
    """Return the search of a space with every seed; ``how`` is as in `search_cell`."""
    return SeededSearch([search_cell(key, space, seed=seed, **how) for seed in range(seeds)],
                        mapping_counted(key, space.operator, space.accelerator))


def mapping_counted(key: Mapping[str, object], operator: Operator,
                    machine: Accelerator) -> Callable[[Value], Sequence[Cell]]:
    """Return what has the oracle count the one mapping of a run; ``key`` identifies the cell."""
    return lambda value: [oracle_cell(key, operator, machine, value["mapping"])]


def play(runner: Runner, asked: Sequence[T_co], case_of: Callable[[T_co], SeededSearch],
         figure: str = "edp") -> list[Tried[T_co]]:
    """Search all that is asked with every seed, and have the oracle count the runs of median ``figure``."""
    cases = [case_of(one) for one in asked]
    values = iter(runner.run([cell for case in cases for cell in case.cells]))
    runs = [[next(values) for _ in case.cells] for case in cases]
    medians = [median_run(some, figure) for some in runs]
    checks = [() if middle is None else case.checks(middle) for case, middle in zip(cases, medians, strict=True)]
    told = iter(runner.run([cell for cells in checks for cell in cells]))
    return [Tried(one, some, middle, [next(told) for _ in cells], figure)
            for one, some, middle, cells in zip(asked, runs, medians, checks, strict=True)]


def by_seed(found: Found) -> list[Found]:
    """Return what was `Tried` (or has as well ``runs`` and ``at``), in lists, tuples, dictionaries, for each seed."""
    seeds = max((len(tried.runs) for tried in _every(found)), default=0)
    return [_at(found, seed) for seed in range(seeds)]


def _every(found: Any) -> Iterator[Tried[Any]]:
    if hasattr(found, "runs"):
        yield found
    else:
        for part in found.values() if isinstance(found, dict) else found:
            yield from _every(part)


def _at(found: Any, seed: int) -> Any:
    if hasattr(found, "runs"):
        return found.at(seed)
    if isinstance(found, dict):
        return {key: _at(part, seed) for key, part in found.items()}
    return type(found)(_at(part, seed) for part in found)


def total(found: Iterable[Tried[_OnLayer]], figure: str = "") -> float:
    """Return a figure summed over the layers of a network, each as often as it occurs; by default that of medians."""
    whole: float = network_sum((tried.of.layer.count, tried[figure or tried.figure]) for tried in found)
    return whole


def confirmed(found: Iterable[Tried[Any]]) -> tuple[int, int, int]:
    """Return how many mappings the oracle confirms, how many it was asked about, and how many it walked whole."""
    told = [check for tried in found for check in tried.oracles]
    return sum(bool(check["agrees"]) for check in told), len(told), sum(check["scale"] == 1 for check in told)


def said(*oracles: Value | None) -> str:
    """Return the oracle's word on one mapping, or on some together."""
    if not all(oracles):
        return "nothing found"
    if not all(check["agrees"] for check in oracles if check):
        return "disagrees"
    return "agrees" if all(check["scale"] == 1 for check in oracles if check) else "agrees (twin)"


def search_cell(  # noqa: PLR0913  (a search is decided by this much)
    key: Mapping[str, object],
    space: MapSpace,
    *,
    mapper: str,
    samples: int,
    seed: int,
    objective: str = "edp",
    options: Mapping[str, Any] | None = None,
    start: MappingBatch | None = None,
) -> Cell:
    """Return the cell of one search: its value has the best mapping (YAML), what it costs, and how it came about.

    ``key`` tells apart what mapper, samples, seed and objective don't: the layer, the machine, the space, and what the
    search begins from.
    """
    def compute() -> dict[str, Any]:
        found = search(
            space.operator, space.accelerator, objective=objective, mapper=mapper, budget=samples, seed=seed,
            space=space, options=dict(options or {}), start=start, watch=Watch(threads=1))
        if found.mapping is None or found.cost is None or not found.feasible:
            return {"edp": None, "latency_cycles": None, "samples": found.samples, "legal_samples": found.legal_samples}
        return {
            **costs(found.cost), "samples": found.samples, "legal_samples": found.legal_samples,
            "complete": found.complete, "history": [[step.samples, step.score] for step in found.history],
            "mapping": dump_mapping(found.mapping, space.operator, space.accelerator),
        }

    whole = {**key, "mapper": mapper, "samples": samples, "seed": seed, "objective": objective,
             **({"options": dict(options)} if options else {})}
    return Cell(whole, compute, samples)


def oracle_cell(key: Mapping[str, object], operator: Operator, accelerator: Accelerator, mapping: str | Nest) -> Cell:
    """Return the cell in which the oracle counts one mapping (YAML as in the value of a search)."""
    text = mapping if isinstance(mapping, str) else dump_mapping(mapping, operator, accelerator)

    def compute() -> dict[str, Any]:
        return asdict(check(operator, accelerator, load_mapping(text, operator, accelerator)))

    return Cell({**key, "oracle": text}, compute)


def costs(cost: Cost) -> dict[str, Any]:
    """Return what studies compare: EDP, energy, cycles, steps of compute and utilisation, as plain data."""
    return {"edp": cost.edp, "energy_pj": cost.energy_pj, "latency_cycles": cost.latency_cycles,
            "steps": cost.steps, "utilisation": cost.utilisation, "bottleneck": cost.bottleneck}


def bound_figures(operator: Operator, accelerator: Accelerator,
                  keeps: Mapping[str, tuple[str, ...]] | None = None) -> Mapping[str, float]:
    """Return what nothing can beat: cycles of compute and of data movement, energy, EDP.

    ``keeps`` says what memories keep where that is less than they can, as in `Constraints`.
    """
    return _bounds(operator, accelerator, tuple((keeps or {}).items()))


@cache
def _bounds(operator: Operator, accelerator: Accelerator,
            keeps: tuple[tuple[str, tuple[str, ...]], ...]) -> Mapping[str, float]:
    bounds = layer_bounds(operator, accelerator, dict(keeps))
    return {"compute_cycles": bounds.compute_cycles, "data_cycles": bounds.data_movement_cycles,
            "energy_pj": bounds.energy_pj, "edp": bounds.edp}


def figure_of(value: Value, name: str) -> Any:
    """Return a figure of a run, None where it found nothing; ``then.edp`` is ``edp`` in the part ``then``."""
    found: Any = value
    for part in name.split("."):
        found = None if found is None else found.get(part)
    return found


def median_run(values: Sequence[Value], name: str = "edp") -> Value | None:
    """Return the run whose figure is the median (the lower one of two), None if half or more found nothing."""
    found = sorted((value for value in values if figure_of(value, name) is not None),
                   key=lambda value: figure_of(value, name))
    if not found or 2 * len(found) <= len(values):
        return None
    return found[(len(values) - 1) // 2]


def best_so_far(history: Sequence[Sequence[float]], at: Sequence[float]) -> list[float | None]:
    """Return the best score after each number of samples (or seconds) in ``at`` (ascending); None before the first."""
    found: list[float | None] = []
    score, place = None, 0
    for samples in at:
        while place < len(history) and history[place][0] <= samples:
            score, place = history[place][1], place + 1
        found.append(score)
    return found


def median_curve(histories: Sequence[Sequence[Sequence[float]]], at: Sequence[float]) -> list[float | None]:
    """Return the median of the best scores after each number of samples; None while half have found nothing."""
    curves = [best_so_far(history, at) for history in histories]
    middle = [median(math.inf if value is None else value for value in column) for column in zip(*curves, strict=True)]
    return [None if value == math.inf else value for value in middle]
