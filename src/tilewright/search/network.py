"""Networks: one search for each distinct operator, on all cores."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Dictionary
from pathlib import Path

from tilewright.hardware import Accelerator
from tilewright.jobs import Clock, Stop
from tilewright.search.front import read_front
from tilewright.search.layers import Abreast, LayerSearch, Spaces, largest_first, search_layers, spaces_of
from tilewright.search.mapper import Options
from tilewright.search.objective import Objective
from tilewright.search.records import Budget, LayerResult, NetworkResult, ProgressObserver, SearchResult
from tilewright.search.run import Request, Watch
from tilewright.search.start import Source
from tilewright.search.sweep import Densities
from tilewright.search.warm import WarmStart, beginnings, rounds
from tilewright.workload import Graph, Operator, UniqueOperator, unique_operators


def search_network(  # noqa: PLR0913  (keywords of the one entry point)
    network: Graph | Sequence[Operator | UniqueOperator],
    accelerator: Accelerator,
    *,
    objective: str | Objective = "edp",
    mapper: str = "auto",
    budget: Budget | str | int = 10_000,
    seed: int = 0,
    space: Spaces | None = None,
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
    stop: Stop | None = None,
    failed: Callable[[Exception], None] | None = None,
    on: str = "auto",
) -> NetworkResult:
    """Search the best mapping of every distinct operator of a network.

    Operators are searched side by side and in turns, a batch of each first, the largest before: so all soon have a
    mapping; without a limit on time a hundred of them, and the next one as one ends, as each takes some megabytes.
    Each has its own seed, derived from ``seed`` and its place in the network, so that results do not depend on
    ``workers`` or turns. Ctrl-C ends all searches with what was found.

    Parameters
    ----------
    network
        A graph, or operators (those of equal signature are not merged then).
    budget
        Of each operator. Where none waits for another, seconds are counted for all together, so often as there are
        rounds of ``workers``, and the set-up of all takes up to half of them; else they are those of each search alone.
        They stand still, for all, while anything compiles.
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
    workers, on
        Searches side by side, by default one for each core this process may use; and where (see `Runner`; ``auto`` is
        as `Abreast` says). Elsewhere than on threads they take no turns, and each has its own seconds.
    checkpoint
        Directory with a file for each operator; an interrupted run takes them up, perhaps with a larger budget.
    stop
        Ends all searches as Ctrl-C does when set; by default with the job that they are part of.
    failed
        Told of an error in one search, which then ends the others as Ctrl-C does; without it, the error is raised.
    """
    layers = _layers(network)
    operators = [layer.operator for layer in layers]
    whole, folder = Budget.parse(budget), Path(checkpoint) if checkpoint else None
    goal, metrics = Objective.parse(objective).over(densities), read_front(front)
    begin = beginnings(operators, warm_start, known)
    abreast = Abreast(workers, len(layers) - len(answers or ()), on, whole)
    span = None if not abreast.near or whole.seconds is None or any(each.lenders for each in begin) else (
        whole.seconds * rounds(begin, largest_first(operators), abreast.searches))
    clock = Clock(folder, span)
    watch = Watch(progress=progress, recorder=recorder, clock=clock.now, threads=abreast.threads,
                  left=None if span is None else clock.left)

    def made(place: int) -> LayerSearch | SearchResult:
        operator = operators[place]
        if answers and operator.name in answers:
            return answers[operator.name]
        spaces = spaces_of(operator, accelerator, space)
        request = Request(goal.widest(spaces[0]), goal, mapper, whole, (seed, place), options or {}, None, metrics)
        return LayerSearch(spaces, request, begin[place], warm_start, span)

    found, error = search_layers(operators, made, abreast.runner(clock, stop), watch, begin, folder)
    if error is not None:
        if failed is None:
            raise error
        failed(error)
    return _network_result(layers, found, clock)


def _network_result(layers: Sequence[UniqueOperator], found: Dictionary[int, SearchResult],
                    clock: Clock) -> NetworkResult:
    # Of a search that was stopped before its first batch there is nothing to tell.
    results = [(layer, found.get(index)) for index, layer in enumerate(layers)]
    begun = [(layer, result) for layer, result in results
             if result is not None and (result.samples or result.stopped != "interrupted")]
    return NetworkResult(
        layers=tuple(LayerResult(layer.names, layer.count, result) for layer, result in begun),
        unfinished=tuple(layer.operator.name for layer, result in results
                         if result is None or result.stopped == "interrupted"),
        seconds=clock.seconds, setup_seconds=clock.setup_seconds,
    )


def _layers(network: Graph | Sequence[Operator | UniqueOperator]) -> list[UniqueOperator]:
    if isinstance(network, Graph):
        return list(unique_operators(network))
    return [item if isinstance(item, UniqueOperator) else UniqueOperator(item, 1, (item.name,)) for item in network]
