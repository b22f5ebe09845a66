"""Networks: one search for each distinct operator, on all cores."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Dictionary
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware import Accelerator
from tilewright.mapping import MapSpace, flexible_spaces
from tilewright.search.flexible import search_spaces
from tilewright.search.mapper import Options
from tilewright.search.objective import Constraint, Objective
from tilewright.search.records import Budget, LayerResult, NetworkResult, ProgressObserver, SearchResult
from tilewright.search.run import Watch, interruptible, search
from tilewright.search.start import Source
from tilewright.search.sweep import Densities
from tilewright.search.warm import Beginning, WarmStart, beginnings
from tilewright.workload import Graph, Operator, UniqueOperator, unique_operators


def search_network(  # noqa: PLR0913  (keywords of the one entry point)
    network: Graph | Sequence[Operator | UniqueOperator],
    accelerator: Accelerator,
    *,
    objective: str | Objective = "edp",
    mapper: str = "auto",
    budget: Budget | str | int = 10_000,
    seed: int = 0,
    constraints: Iterable[str | Constraint] = (),
    space: Callable[[Operator], MapSpace | Sequence[MapSpace]] | None = None,
    options: Options | None = None,
    warm_start: WarmStart = "off",
    known: Dictionary[str, Sequence[Source]] | None = None,
    answers: Dictionary[str, SearchResult] | None = None,
    densities: Densities | None = None,
    front: str | Iterable[str] = (),
    workers: int | None = None,
    progress: ProgressObserver | None = None,
    checkpoint: str | Path | None = None,
    recorder: Callable[[SearchResult], None] | None = None,
    stop: threading.Event | None = None,
) -> NetworkResult:
    """Search the best mapping of every distinct operator of a network.

    Operators are searched side by side, the largest first; each has its own seed, derived from ``seed`` and its place
    in the network, so that results do not depend on ``workers``. Ctrl-C ends all searches with what was found.

    Parameters
    ----------
    network
        A graph, or operators (those of equal signature are not merged then).
    budget
        Of each operator.
    space
        Makes the space of each operator, or spaces whose union it is; by default all that the accelerator's stated
        flexibility allows, all mappings where it states none.
    warm_start, known
        What layers begin from: nothing; the best mapping of the layer before; those of the most similar layers before;
        or of those and of ``known`` mappings, by the operator's name, the most similar (see `beginnings`). A layer then
        waits for those that it begins from.
    answers
        Results that are there already, by the operator's name: those are not searched.
    densities
        As of `search`.
    front
        Metrics of which each search keeps the Pareto front, such as ``latency,energy``.
    workers
        Searches side by side; by default one for each core this process may use.
    checkpoint
        Directory with a file for each operator; an interrupted run takes them up.
    stop
        Ends all searches as Ctrl-C does when set.
    """
    layers = _layers(network)
    stop = stop or threading.Event()
    started = time.perf_counter()
    directory = Path(checkpoint) if checkpoint else None

    def run(index: int, found: Dictionary[int, SearchResult]) -> SearchResult | None:
        operator = layers[index].operator
        if answers and operator.name in answers:
            return answers[operator.name]
        if stop.is_set():
            return None
        file = directory / f"{index:04d}.npz" if directory else None
        watch = Watch(progress=progress, checkpoint=file, stop=stop, recorder=recorder,
                      threads=max(1, cores // side_by_side))
        start = begin[index].start(warm_start, found)
        made = space(operator) if space else flexible_spaces(operator, accelerator)
        spaces = [made] if isinstance(made, MapSpace) else made
        if accelerator.flexibility is None and len(spaces) == 1:
            return search(operator, accelerator, objective=objective, mapper=mapper, budget=budget, seed=(seed, index),
                          constraints=constraints, space=spaces[0], options=options, start=start, densities=densities,
                          front=front, watch=watch)
        return search_spaces(spaces, objective=objective, mapper=mapper, budget=budget, seed=(seed, index),
                             constraints=constraints, options=options, start=start, densities=densities, front=front,
                             watch=watch)

    cores = len(os.sched_getaffinity(0))
    side_by_side = max(1, min(workers or cores, len(layers)))
    begin = beginnings([layer.operator for layer in layers], warm_start, known)
    found = _run_in_order(run, _Order(largest_first([layer.operator for layer in layers]), begin), side_by_side, stop)
    results = [(layer, found.get(index)) for index, layer in enumerate(layers)]
    return NetworkResult(
        layers=tuple(LayerResult(layer.names, layer.count, result) for layer, result in results if result),
        unfinished=tuple(layer.operator.name for layer, result in results
                         if result is None or result.stopped == "interrupted"),
        seconds=time.perf_counter() - started,
    )


def _layers(network: Graph | Sequence[Operator | UniqueOperator]) -> list[UniqueOperator]:
    if isinstance(network, Graph):
        return list(unique_operators(network))
    return [item if isinstance(item, UniqueOperator) else UniqueOperator(item, 1, (item.name,)) for item in network]


def largest_first(operators: Sequence[Operator]) -> list[int]:
    """Return the places of the operators in the order in which they are searched where none waits for another."""
    return sorted(range(len(operators)), key=lambda index: -operators[index].macs)


@dataclass(frozen=True)
class _Order:
    """In which order searches begin: as named, but after those that they begin from."""

    places: list[int]
    begin: list[Beginning]

    def ready(self, left: set[int], found: Dictionary[int, SearchResult | None]) -> list[int]:
        """Return which of those ``left`` may begin, once the others named in ``found`` have ended."""
        return [place for place in self.places
                if place in left and all(lender.place in found for lender in self.begin[place].lenders)]


def run_all(run: Callable[[int], SearchResult | None], order: list[int], workers: int,
            stop: threading.Event) -> dict[int, SearchResult]:
    """Run all searches on threads; whatever ends one in error ends the others."""
    alone = _Order(order, [Beginning()] * (1 + max(order, default=-1)))
    return _run_in_order(lambda place, _: run(place), alone, workers, stop)


def _run_in_order(run: Callable[[int, Dictionary[int, SearchResult]], SearchResult | None], order: _Order,
                  workers: int, stop: threading.Event) -> dict[int, SearchResult]:
    """Run all searches on threads, each with the results of those that ended before it began."""
    ended: dict[int, SearchResult | None] = {}
    left = set(order.places)
    with interruptible(stop), ThreadPoolExecutor(workers) as pool:
        running: dict[Future[SearchResult | None], int] = {}
        try:
            while left or running:
                known = {place: result for place, result in ended.items() if result is not None}
                for place in order.ready(left, ended):
                    running[pool.submit(run, place, known)] = place
                    left.remove(place)
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    ended[running.pop(future)] = future.result()
        except BaseException:
            stop.set()
            raise
    return {place: result for place, result in ended.items() if result is not None}
