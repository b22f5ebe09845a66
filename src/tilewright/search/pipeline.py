"""Layer pipelines in two stages: the fastest mapping of every layer, then the best that keeps the pipeline's pace."""

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from tilewright.base import InputError
from tilewright.cost import Cost, Totals, VectorShare, outermost_bytes
from tilewright.hardware import Accelerator
from tilewright.jobs import Stop, present_stop
from tilewright.search.layers import Abreast, LayerSearch, Spaces, search_layers, spaces_of
from tilewright.search.mapper import Options
from tilewright.search.network import search_network
from tilewright.search.objective import METRICS, Constraint, Objective, Scorer
from tilewright.search.records import Budget, ProgressObserver, SearchResult
from tilewright.search.run import Request, Watch
from tilewright.search.start import Start
from tilewright.workload import Graph, MacNode, Operator, unique_operators


@dataclass(frozen=True)
class PipelineLayer:
    """One layer of a pipeline."""

    name: str
    operator: Operator
    count: int
    """Times it runs for each input, one after the other."""
    stage: int
    """Its accelerator, counted from 0 in the order of the network."""
    limit_cycles: int | None
    """The cycles that one run of it may take in the second search; None where there was none."""
    first: SearchResult
    then: SearchResult | None = None
    """``first`` and ``then``: what was found for latency, and for the second objective within the limit. ``then`` is
    None where there was no second search; it never is worse than ``first`` by the second objective."""
    vector: VectorShare = field(default_factory=VectorShare)
    """What the vector work takes that belongs to it, which runs on its accelerator for each input."""

    @property
    def final(self) -> SearchResult:
        """What the pipeline is to run."""
        return self.then or self.first


@dataclass(frozen=True)
class PipelineFigures:
    """What a pipeline does, with the mappings of one of its two searches."""

    stage_cycles: tuple[float, ...]
    """Of each accelerator: the cycles it is busy with one input."""
    energy_pj: float
    """Of one input, all layers."""
    layer_power_mw: float
    """Mean over layers of what each draws while it runs: what the paper reports as power."""
    peak_power_mw: float
    """What the layer draws that draws most."""
    frequency_mhz: float
    """Clock of the accelerators."""

    @property
    def interval_cycles(self) -> float:
        """The pipeline's latency: cycles from one input to the next, those of the slowest accelerator."""
        return max(self.stage_cycles, default=math.inf)

    @property
    def inputs_per_second(self) -> float:
        """Throughput at that pace."""
        return 1e6 * self.frequency_mhz / self.interval_cycles

    @property
    def fill_cycles(self) -> float:
        """Cycles that one input takes through the whole pipeline: every accelerator keeps the pace of the slowest."""
        return len(self.stage_cycles) * self.interval_cycles

    @property
    def power_mw(self) -> float:
        """All accelerators together, at the pipeline's pace: energy of an input over the time between inputs."""
        return self.energy_pj * 1e-9 * self.inputs_per_second


@dataclass(frozen=True)
class PipelineResult:
    """A pipeline, layer by layer in the order of the network."""

    layers: tuple[PipelineLayer, ...]
    accelerator: Accelerator
    then: str
    """What the second search minimised."""
    limit_cycles: int | None
    """The latency that the pipeline was allowed: that of the first search, or one given; None where the first search
    left a layer without a mapping."""
    bound_cycles: float
    """What the pipeline's latency can't be below, with so many accelerators as there are."""
    unfinished: tuple[str, ...]
    """Layers whose searches were interrupted."""
    seconds: float

    @property
    def feasible(self) -> bool:
        """Whether every layer has a mapping, and the pipeline keeps its limit."""
        if self.limit_cycles is None or any(layer.final.cost is None for layer in self.layers):
            return False
        return self.figures().interval_cycles <= self.limit_cycles

    @property
    def samples(self) -> int:
        """Mappings scored in both searches; each distinct search counts once."""
        searched = {id(result): result for layer in self.layers for result in (layer.first, layer.then) if result}
        return sum(result.samples for result in searched.values())

    def figures(self, search: str = "then") -> PipelineFigures:
        """Return what the pipeline does with the mappings of the ``first`` search or, where it was made, the second."""
        stages = 1 + max((layer.stage for layer in self.layers), default=-1)
        clock = self.accelerator.frequency_mhz
        costs = [(layer, (layer.first if search == "first" else layer.final).cost) for layer in self.layers]
        parts = [(layer.stage, part) for layer, cost in costs for part in ((layer.count, cost), (1, layer.vector))]
        busy = [float(Totals.of(part for place, part in parts if place == stage).latency_cycles)
                for stage in range(stages)]
        energy = float(Totals.of(part for _, part in parts).energy_pj)
        power = [float(METRICS["power"].of(float(cost.latency_cycles), cost.energy_pj, 0.0, clock))
                 for _, cost in costs if cost is not None]
        return PipelineFigures(tuple(busy), energy, sum(power) / max(1, len(power)), max(power, default=0.0), clock)


@dataclass(frozen=True)
class Pace:
    """How fast a pipeline must be, at most one of these.

    Raises an `InputError` if several are given, or one is not positive.
    """

    latency_limit: float | None = None
    """Cycles between inputs."""
    throughput: float | None = None
    """Inputs a second."""
    slack: float | None = None
    """By which share it may be slower than the fastest: a little leaves the slowest layers a choice of mappings."""

    def __post_init__(self) -> None:
        given = {name: value for name, value in (("latency_limit", self.latency_limit), (
            "throughput", self.throughput), ("slack", self.slack)) if value is not None}
        for name, value in given.items():
            if not 0 < value < math.inf:
                raise InputError(name, "must be positive", value)
        if len(given) > 1:
            raise InputError(next(iter(given)), f"must be left out where a {list(given)[-1]} is given",
                             next(iter(given.values())))

    def limit(self, fastest: int, frequency_mhz: float) -> int:
        """Return the cycles allowed between inputs, by default those of the ``fastest`` pipeline."""
        if self.throughput is not None:
            return math.floor(1e6 * frequency_mhz / self.throughput)
        if self.latency_limit is not None:
            return math.floor(self.latency_limit)
        return math.floor(fastest * (1 + (self.slack or 0.0)))


def search_pipeline(  # noqa: PLR0913  (keywords of the one entry point)
    network: Graph,
    accelerator: Accelerator,
    *,
    then: str | Objective = "energy",
    accelerators: int | None = None,
    pace: Pace | None = None,
    mapper: str = "auto",
    budget: Budget | str | int = 10_000,
    seed: int = 0,
    space: Spaces | None = None,
    options: Options | None = None,
    workers: int | None = None,
    progress: ProgressObserver | None = None,
    begin: Callable[[str, int], None] | None = None,
    stop: Stop | None = None,
    on: str = "auto",
    vector: Mapping[str, VectorShare] | None = None,
) -> PipelineResult:
    """Optimise a network that runs as a pipeline of layers, each on an accelerator of its own.

    First every layer is searched for latency; the slowest sets the pipeline's. Then every layer is searched for
    ``then`` among the mappings that are no slower than the pipeline, beginning from the first mapping, which stays
    where nothing better is found (Kao 2022, section 4.4.5).

    With fewer accelerators than layers, each takes consecutive layers, shared out so that the slowest is as fast as can
    be; a layer may then become slower in proportion to what its accelerator has to spare. Vector work takes what it
    takes: searches leave it out, the accelerator's time and energy have it in them.

    Parameters
    ----------
    accelerator
        One of those in the pipeline; all are alike, and share nothing.
    then
        See `Objective.parse`: ``energy``, ``power``, a weighted sum; with limits of its own, if any.
    accelerators
        How many there are; by default one for each layer.
    pace
        What the pipeline may take, instead of what the first search reaches.
    budget
        Of each search of a distinct layer.
    space
        Makes the space (or spaces) of each operator, as for `search_network`.
    workers, on
        As for `search_network`.
    vector
        By layer: what the vector work takes that belongs to it (`vector_shares`), on the same accelerator; else it is
        free.
    begin
        Told which search begins (``first`` or ``then``), and of how many distinct layers.

    Raises
    ------
    InputError
        If a name is unknown or a value out of range, or the network has no layer.
    """
    goal = Objective.parse(then)
    if [term.metric for term in goal.terms] == ["latency"]:
        raise InputError("then", "must be another objective than latency, which comes first", str(goal),
                         "For example energy or power")
    nodes = network.mac_nodes
    if not nodes:
        raise InputError("network", "must have a layer that can be mapped", network.name)
    if accelerators is not None and accelerators < 1:
        raise InputError("accelerators", "must be a positive integer", accelerators)
    started, stop, pace = time.perf_counter(), stop or present_stop(), pace or Pace()
    begin = begin or (lambda search, layers: None)
    begin("first", len(unique_operators(network)))
    found = search_network(network, accelerator, objective="latency", mapper=mapper, budget=budget, seed=seed,
                           space=space, options=options, workers=workers, progress=progress, stop=stop, on=on)
    first = {name: layer.result for layer in found.layers for name in layer.names}
    layers, limit, bound = _planned(nodes, first, accelerators or len(nodes), pace, accelerator, vector or {})

    def made(layer: PipelineLayer, place: int) -> LayerSearch:
        spaces, limited = spaces_of(layer.operator, accelerator, space), _limited(goal, layer)
        start = None if layer.first.mapping is None else Start.of(layer.first.mapping, layer.first.operator)
        return LayerSearch(spaces, Request(limited.widest(spaces[0]), limited, mapper, Budget.parse(budget),
                                           (seed, place), options or {}, start))

    if limit is not None and not stop.is_set() and not found.unfinished:
        distinct = _distinct(layers)
        again, abreast = list(distinct.values()), Abreast(workers, len(distinct), on, Budget.parse(budget))
        begin("then", len(again))
        watch = Watch(progress=progress, stop=stop, threads=abreast.threads)
        results, error = search_layers([layer.operator for layer in again], lambda place: made(again[place], place),
                                       abreast.runner(stop=stop), watch)
        if error is not None:
            raise error
        better = {key: kept_if_better(layer.first, results[place], _limited(goal, layer), accelerator)
                  for place, (key, layer) in enumerate(distinct.items()) if place in results}
        layers = tuple(replace(layer, then=better.get((layer.operator.signature, layer.limit_cycles)))
                       for layer in layers)
    late = tuple(layer.name for layer in layers if layer.then is None or layer.then.stopped == "interrupted")
    return PipelineResult(layers, accelerator, str(goal), limit, bound,
                          (found.unfinished or late) if stop.is_set() else (), time.perf_counter() - started)


def _planned(nodes: Sequence[MacNode], first: dict[str, SearchResult], accelerators: int,  # noqa: PLR0913, PLR0917
             pace: Pace, accelerator: Accelerator, vector: Mapping[str, VectorShare],
             ) -> tuple[tuple[PipelineLayer, ...], int | None, float]:
    """Share layers out among accelerators; return them with their limits, the pipeline's, and the least it can be."""
    found = [(node, first[node.name], vector.get(node.name, VectorShare())) for node in nodes if node.name in first]
    cycles = [node.count * int(result.cost.latency_cycles) for node, result, _ in found if result.cost is not None]
    if len(cycles) < len(nodes):
        layers = tuple(PipelineLayer(node.name, node.operator, node.count, min(index, accelerators - 1), None, result,
                                     vector=beside) for index, (node, result, beside) in enumerate(found))
        return layers, None, 0.0
    places = share_out([cost + beside.latency_cycles for cost, (*_, beside) in zip(cycles, found, strict=True)],
                       accelerators)
    mapped, fixed = [0] * (places[-1] + 1), [0] * (places[-1] + 1)
    for cost, place, (*_, beside) in zip(cycles, places, found, strict=True):
        mapped[place] += cost
        fixed[place] += beside.latency_cycles
    limit = pace.limit(max(map(sum, zip(mapped, fixed, strict=True))), accelerator.frequency_mhz)
    layers = tuple(
        PipelineLayer(node.name, node.operator, node.count, place,
                      max(cost, cost * (limit - fixed[place]) // mapped[place]) // node.count, result, vector=beside)
        for (node, result, beside), cost, place in zip(found, cycles, places, strict=True))
    bounds = [node.count * math.ceil(result.bound or 0) + beside.latency_cycles for node, result, beside in found]
    return layers, limit, float(least_longest(bounds, accelerators))


def share_out(cycles: Sequence[int], parts: int) -> list[int]:
    """Return the part of each entry: one for each, or where there are fewer, runs of consecutive entries.

    The longest part is as short as can be.
    """
    return list(range(len(cycles))) if len(cycles) <= parts else _runs(cycles, least_longest(cycles, parts))


def least_longest(cycles: Sequence[int], parts: int) -> int:
    """Return the length of the longest of at most ``parts`` runs of consecutive entries, the least that can be."""
    low, high = max(cycles), sum(cycles)
    return low + bisect_left(range(low, high), True, key=lambda most: _runs(cycles, most)[-1] < parts)


def _runs(cycles: Sequence[int], most: int) -> list[int]:
    """Return the run of each entry where all are filled up to ``most`` in turn."""
    runs, filled = [0], cycles[0]
    for length in cycles[1:]:
        full = filled + length > most
        filled = length if full else filled + length
        runs.append(runs[-1] + full)
    return runs


def _limited(goal: Objective, layer: PipelineLayer) -> Objective:
    """Return the second objective of a layer: within the cycles that it may take."""
    assert layer.limit_cycles is not None
    return replace(goal, constraints=(*goal.constraints, Constraint("latency", layer.limit_cycles)))


def _distinct(layers: Sequence[PipelineLayer]) -> dict[tuple[object, int | None], PipelineLayer]:
    found: dict[tuple[object, int | None], PipelineLayer] = {}
    for layer in layers:
        found.setdefault((layer.operator.signature, layer.limit_cycles), layer)
    return found


def kept_if_better(first: SearchResult, found: SearchResult, goal: Objective, accelerator: Accelerator) -> SearchResult:
    """Return what was found, with the mapping of ``first`` where that breaks limits less or is better by ``goal``."""
    scorer = Scorer(goal, first.operator, accelerator)

    def rank(cost: Cost | None) -> tuple[float, float]:
        if cost is None:
            return math.inf, math.inf
        figures = (float(cost.latency_cycles), cost.energy_pj, accelerator.area_um2,
                   outermost_bytes(cost, first.operator, accelerator) if goal.traffic else None)
        return float(scorer.over(*figures)), cast(float, scorer.values(*figures))

    before, after = rank(first.cost), rank(found.cost)
    if after <= before:
        return found
    return replace(found, mapping=first.mapping, cost=first.cost, score=before[1], feasible=before[0] == 0, history=())
