"""Networks: one search for each distinct operator, on all cores."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tilewright.hardware import Accelerator
from tilewright.mapping import MapSpace, flexible_spaces
from tilewright.search.flexible import search_spaces
from tilewright.search.mapper import Options
from tilewright.search.objective import Constraint, Objective
from tilewright.search.records import Budget, LayerResult, NetworkResult, ProgressObserver, SearchResult
from tilewright.search.run import Watch, interruptible, search
from tilewright.workload import Graph, Operator, UniqueOperator, unique_operators


def search_network(  # noqa: PLR0913  (keywords of the one entry point)
    network: Graph | Sequence[Operator | UniqueOperator],
    accelerator: Accelerator,
    *,
    objective: str | Objective = "edp",
    mapper: str = "gamma",
    budget: Budget | str | int = 10_000,
    seed: int = 0,
    constraints: Iterable[str | Constraint] = (),
    space: Callable[[Operator], MapSpace | Sequence[MapSpace]] | None = None,
    options: Options | None = None,
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

    def run(index: int) -> SearchResult | None:
        if stop.is_set():
            return None
        operator = layers[index].operator
        file = directory / f"{index:04d}.npz" if directory else None
        watch = Watch(progress=progress, checkpoint=file, stop=stop, recorder=recorder,
                      threads=max(1, cores // side_by_side))
        made = space(operator) if space else flexible_spaces(operator, accelerator)
        spaces = [made] if isinstance(made, MapSpace) else made
        if accelerator.flexibility is None and len(spaces) == 1:
            return search(operator, accelerator, objective=objective, mapper=mapper, budget=budget, seed=(seed, index),
                          constraints=constraints, space=spaces[0], options=options, watch=watch)
        return search_spaces(spaces, objective=objective, mapper=mapper, budget=budget, seed=(seed, index),
                             constraints=constraints, options=options, watch=watch)

    cores = len(os.sched_getaffinity(0))
    side_by_side = max(1, min(workers or cores, len(layers)))
    order = sorted(range(len(layers)), key=lambda index: -layers[index].operator.macs)
    found = run_all(run, order, side_by_side, stop)
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


def run_all(run: Callable[[int], SearchResult | None], order: list[int], workers: int,
             stop: threading.Event) -> dict[int, SearchResult]:
    """Run all searches on threads; whatever ends one in error ends the others."""
    found: dict[int, SearchResult] = {}
    with interruptible(stop), ThreadPoolExecutor(workers) as pool:
        indices = {pool.submit(run, index): index for index in order}
        try:
            for future in as_completed(indices):
                result = future.result()
                if result is not None:
                    found[indices[future]] = result
        except BaseException:
            stop.set()
            raise
    return found
