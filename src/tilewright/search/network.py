"""Networks: one search for each distinct operator, on all cores."""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from collections.abc import Mapping as Dictionary
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter as clock

from tilewright.hardware import Accelerator
from tilewright.mapping import MapSpace, flexible_spaces
from tilewright.search.checkpoint import load_seconds, save_seconds
from tilewright.search.flexible import searching_spaces
from tilewright.search.front import read_front
from tilewright.search.mapper import Options
from tilewright.search.objective import Constraint, Objective
from tilewright.search.records import Budget, LayerResult, NetworkResult, ProgressObserver, SearchResult
from tilewright.search.run import Request, Searching, Watch, interruptible, searching
from tilewright.search.start import Source
from tilewright.search.sweep import Densities
from tilewright.search.warm import Beginning, WarmStart, beginnings, rounds
from tilewright.workload import Graph, Operator, UniqueOperator, unique_operators

TURN_SECONDS = 0.1
SET_UP = -1.0
KEEP_SECONDS = 10.0


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
    failed: Callable[[Exception], None] | None = None,
) -> NetworkResult:
    """Search the best mapping of every distinct operator of a network.

    Operators are searched side by side and in turns, a batch of each first, the largest before: so all soon have a
    mapping. Each has its own seed, derived from ``seed`` and its place in the network, so that results do not depend on
    ``workers`` or turns. Ctrl-C ends all searches with what was found.

    Parameters
    ----------
    network
        A graph, or operators (those of equal signature are not merged then).
    budget
        Of each operator. Seconds are those of the search alone: where none waits for another, they are counted for all
        together from when all are set up, and so often as there are rounds of ``workers``.
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
        Directory with a file for each operator; an interrupted run takes them up, perhaps with a larger budget.
    stop
        Ends all searches as Ctrl-C does when set.
    failed
        Told of an error in one search, which then ends the others as Ctrl-C does; without it, the error is raised.
    """
    layers = _layers(network)
    stop = stop or threading.Event()
    whole, directory = Budget.parse(budget), Path(checkpoint) if checkpoint else None
    goal, metrics = Objective.parse(objective, constraints).over(densities), read_front(front)
    cores = len(os.sched_getaffinity(0))
    side_by_side = max(1, min(workers or cores, len(layers)))
    begin = beginnings([layer.operator for layer in layers], warm_start, known)
    order = _Order(largest_first([layer.operator for layer in layers]), begin)
    span = None if whole.seconds is None or any(each.lenders for each in begin) else (
        whole.seconds * rounds(begin, order.places, side_by_side))
    timer, told = _Timer(directory, span), set[Path]()

    def searched(index: int, found: Dictionary[int, SearchResult]) -> Searching:
        operator = layers[index].operator
        if answers and operator.name in answers:
            yield
            return answers[operator.name]
        file = directory / f"{index:04d}.npz" if directory else None
        watch = Watch(progress=progress, checkpoint=file, stop=stop, recorder=recorder, clock=timer.clock,
                      threads=max(1, cores // side_by_side), left=None if span is None else timer.left, told=told)
        made = space(operator) if space else flexible_spaces(operator, accelerator)
        spaces = [made] if isinstance(made, MapSpace) else list(made)
        request = Request(goal.widest(spaces[0]), goal, mapper, whole, (seed, index), options or {},
                          begin[index].start(warm_start, found), metrics)
        if len(spaces) > 1 or (accelerator.flexibility is not None and file is None):
            return (yield from searching_spaces(spaces, request, watch))
        if span is not None:
            request = replace(request, budget=Budget(whole.samples, span), plan=whole)
        return (yield from searching(request, watch))

    found, error = take_turns(searched, order, side_by_side, stop, timer)
    if error is not None:
        if failed is None:
            raise error
        failed(error)
    return _network_result(layers, found, timer)


def _network_result(layers: Sequence[UniqueOperator], found: Dictionary[int, SearchResult],
                    timer: "_Timer") -> NetworkResult:
    # Of a search that was stopped before its first batch there is nothing to tell.
    results = [(layer, found.get(index)) for index, layer in enumerate(layers)]
    begun = [(layer, result) for layer, result in results
             if result is not None and (result.samples or result.stopped != "interrupted")]
    return NetworkResult(
        layers=tuple(LayerResult(layer.names, layer.count, result) for layer, result in begun),
        unfinished=tuple(layer.operator.name for layer, result in results
                         if result is None or result.stopped == "interrupted"),
        seconds=timer.seconds, setup_seconds=timer.setup_seconds,
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
    def whole(place: int, _: Dictionary[int, SearchResult]) -> Generator[None, None, SearchResult | None]:
        yield
        return run(place)

    alone = _Order(order, [Beginning()] * (1 + max(order, default=-1)))
    found, error = take_turns(whole, alone, workers, stop, _Timer(None, None))
    if error is not None:
        raise error
    return found


class _Timer:
    """The time that searches take together: from when all that wait for no other are set up, in all legs of a run."""

    def __init__(self, directory: Path | None, span: float | None) -> None:
        self.clock = clock
        self.directory, self.span = directory, span
        self.earlier = 0.0 if directory is None else load_seconds(directory)
        self.begun = self.searching = self.latest = self.saved = clock()
        self.started = False

    def start(self) -> None:
        """Count from now on, where that was not begun."""
        if not self.started:
            self.started, self.searching = True, clock()

    def look(self) -> None:
        """Take note that a batch has ended; what comes after the last one is no search."""
        self.latest = clock()
        if self.latest - self.saved >= KEEP_SECONDS:
            self.keep()

    @property
    def setup_seconds(self) -> float:
        """Seconds before the first batch."""
        return self.searching - self.begun

    @property
    def seconds(self) -> float:
        """Seconds from then to the last batch, and those of earlier legs."""
        return self.earlier + max(0.0, self.latest - self.searching)

    def left(self) -> float:
        """Return the seconds left."""
        if self.span is None:
            return math.inf
        return self.span - self.earlier - (clock() - self.searching if self.started else 0.0)

    def keep(self) -> None:
        """Write down the seconds of all legs."""
        self.saved = clock()
        if self.directory is not None:
            save_seconds(self.directory, self.seconds)


def take_turns(begin: Callable[[int, Dictionary[int, SearchResult]], Generator[None, None, SearchResult | None]],
               order: _Order, workers: int, stop: threading.Event,
               timer: _Timer) -> tuple[dict[int, SearchResult], Exception | None]:
    """Run searches on threads, in turns; return their results and the first error, which stops the others.

    First all are set up that wait for none, then each has a batch, then they go round in turns of `TURN_SECONDS`. A
    search that waits for others is given their results.
    """
    turns = _Turns(begin, order, stop, timer)
    with interruptible(stop), ThreadPoolExecutor(workers) as pool:
        try:
            for worker in [pool.submit(turns.work) for _ in range(workers)]:
                worker.result()
        except BaseException:
            stop.set()
            raise
    timer.keep()
    return {place: result for place, result in turns.ended.items() if result is not None}, turns.error


class _Turns:
    """Searches under way: those that wait to be set up, those that wait for their turn, and those that ended."""

    def __init__(self, begin: Callable[[int, Dictionary[int, SearchResult]], Generator[
            None, None, SearchResult | None]], order: _Order, stop: threading.Event, timer: _Timer) -> None:
        self.begin, self.order, self.stop, self.timer = begin, order, stop, timer
        self.waiting = set(order.places)
        self.queue: deque[tuple[int, Generator[None, None, SearchResult | None], float]] = deque()
        self.running = 0
        self.ended: dict[int, SearchResult | None] = {}
        self.error: Exception | None = None
        self.changed = threading.Condition()

    def work(self) -> None:
        """Take turns until no search is left."""
        while (turn := self._next()) is not None:
            place, search, seconds = turn
            ended, result = False, None
            try:
                ended, result = self._taken(search, seconds)
            except Exception as error:
                ended, self.error = True, self.error or error
                self.stop.set()
            finally:
                with self.changed:
                    self.running -= 1
                    if ended:
                        self.ended[place] = result
                    else:
                        self.queue.append((place, search, TURN_SECONDS if seconds >= 0 else 0.0))
                    self.changed.notify_all()

    def _taken(self, search: Generator[None, None, SearchResult | None],
               seconds: float) -> tuple[bool, SearchResult | None]:
        """Let a search go on for so long (negative: set it up); return whether it has ended, and its result."""
        if seconds >= 0:
            self.timer.start()
        until = clock() + seconds
        while True:
            try:
                next(search)
            except StopIteration as end:
                return True, end.value
            if seconds >= 0:
                self.timer.look()
            if clock() >= until:
                return False, None

    def _next(self) -> tuple[int, Generator[None, None, SearchResult | None], float] | None:
        """Return a search to go on with and for how long; wait for one; None where no search is left."""
        with self.changed:
            while True:
                if self.stop.is_set():
                    self.ended |= dict.fromkeys(self.waiting)
                    self.waiting = set()
                ready = self.order.ready(self.waiting, self.ended)
                if ready:
                    self.waiting.remove(ready[0])
                    known = {place: result for place, result in self.ended.items() if result is not None}
                    turn = ready[0], self.begin(ready[0], known), SET_UP
                elif self.queue:
                    turn = self.queue.popleft()
                elif self.running:
                    self.changed.wait()
                    continue
                else:
                    return None
                self.running += 1
                return turn
