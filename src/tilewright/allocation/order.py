"""What to keep in each step, and in which order to run, so that less has to leave; each after what it reads.

Exactly, where moves between scratchpads are free, by dynamic programming over sets of operations that have run: in the
given order there is one such set after each step. A state is such a set, what is on scratchpads after it, and what of
that the main memory has not yet got. Keeping more never costs more, so that something leaves only where an operation
needs its room. What this finds is a bound on every plan, and where one scratchpad can be given to each stretch, or
moves cost nothing, the best plan. Orders of more operations are sought by changes of one at a time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import islice

import numpy as np

from tilewright.allocation.heuristics import LARGE, belady, greedy
from tilewright.allocation.problem import MOST_SURE, ResidencyProblem, packed
from tilewright.allocation.stays import LARGEST, Prices, transfers_of

MOST_FAILURES, WINDOW = 400, 8
"""Changes in a row that gain nothing before it ends; and operations that one change may put in another order."""
MOST_OPERATIONS, MOST_STATES, MOST_IDLE = 24, 6_000, 16
"""Operations whose order is open, states after as many of them, and tensors that wait in one, beyond which it is given
up."""
Waiting = tuple[frozenset[int], frozenset[int]]
"""Tensors on scratchpads, and those of them that would have to be stored."""
State = tuple[int, frozenset[int], frozenset[int]]
"""Operations that have run, as bits, and what waits."""
Reached = tuple[int, State, int, frozenset[int]]
"""What a state costs, the state before, the operation between, and what is held in that."""


def predecessors(problem: ResidencyProblem) -> tuple[frozenset[int], ...]:
    """Return for each step those that must come before it.

    What writes a tensor comes before what reads that, and what reads it before what writes it next.
    """
    found: list[set[int]] = [set() for _ in problem.steps]
    for tensor, steps in enumerate(problem.touches):
        written, readers = None, list[int]()
        for at in steps:
            if written is not None:
                found[at].add(written)
            if tensor in problem.steps[at].writes:
                found[at].update(readers)
                written, readers = at, []
            else:
                readers.append(at)
    return tuple(map(frozenset, found))


def reordered(problem: ResidencyProblem, metrics: Sequence[str], seconds: float, seed: int = 0,
              stopped: Callable[[], bool] = lambda: False) -> ResidencyProblem:
    """Return the problem in the best order found, or as it is where none is better.

    Begins from the given order and from one that makes room soonest, and puts windows of operations into other orders;
    each is judged by the better of two heuristics, or by `OnlineRun` where steps are many. Same seed, same
    order, unless time runs out.
    """
    from tilewright.allocation.online import OnlineRun  # noqa: PLC0415  (Numba loads late)

    end, rng, before = time.perf_counter() + seconds, np.random.default_rng(seed), predecessors(problem)

    def score(order: Sequence[int]) -> int:
        made = in_order(problem, order)
        prices = Prices(made, tuple(metrics))
        if len(order) > LARGE:
            return min((prices.score(transfers_of(made, stays)) for stays in islice(
                OnlineRun(made, prices).plans(), 1)), default=LARGEST)
        return min(prices.score(transfers_of(made, rule(made, prices))) for rule in (belady, greedy))

    given = list(range(len(problem.steps)))
    known = [(score(order), order) for order in (given, _soonest_room(problem, before))]
    best, order = min(known, key=lambda one: one[0])
    least = Prices(problem, tuple(metrics)).compulsory
    failures = 0
    while failures < MOST_FAILURES and best > least and time.perf_counter() < end and not stopped():
        changed = _changed(order, before, rng)
        value = score(changed) if changed != order else best
        failures = 0 if value < best else failures + 1
        if value <= best:
            best, order = value, changed
    return problem if order == given else in_order(problem, order)


def in_order(problem: ResidencyProblem, order: Sequence[int]) -> ResidencyProblem:
    """Return the problem with its steps in another order."""
    whole = None if problem.whole is None else in_order(problem.whole, order)
    return replace(problem, steps=tuple(problem.steps[at] for at in order), whole=whole)


def _after(before: Sequence[frozenset[int]]) -> list[list[int]]:
    """Return for each step those that wait for it."""
    found = [list[int]() for _ in before]
    for at, steps in enumerate(before):
        for one in steps:
            found[one].append(at)
    return found


def _soonest_room(problem: ResidencyProblem, before: Sequence[frozenset[int]]) -> list[int]:
    """Return an order that takes of the steps that can come next the one that adds least to what lives."""
    left = [len(steps) for steps in problem.touches]
    waits, after = [len(steps) for steps in before], _after(before)

    def adds(at: int) -> tuple[int, int]:
        step = problem.steps[at]
        freed = sum(problem.tensors[one].size_bytes for one in step.touches if left[one] == 1)
        made = sum(problem.tensors[one].size_bytes for one in step.touches
                   if left[one] == len(problem.touches[one]))
        return made - freed, at

    ready = [adds(at) for at, count in enumerate(waits) if not count]
    heapify(ready)
    done: dict[int, None] = {}
    while ready:
        known = heappop(ready)
        if known[1] in done or known != adds(known[1]):
            continue
        done[known[1]] = None
        changed = set(after[known[1]])
        for following in after[known[1]]:
            waits[following] -= 1
        for one in problem.steps[known[1]].touches:
            if left[one] == len(problem.touches[one]) or left[one] == 2:
                changed.update(problem.touches[one])
            left[one] -= 1
        for at in changed:
            if not waits[at] and at not in done:
                heappush(ready, adds(at))
    return list(done)


def _changed(order: list[int], before: Sequence[frozenset[int]], rng: np.random.Generator) -> list[int]:
    """Return an order with a window of it drawn anew among those that are allowed."""
    first = int(rng.integers(0, max(1, len(order) - 2)))
    window = order[first:first + int(rng.integers(2, WINDOW + 1))]
    drawn: list[int] = []
    while len(drawn) < len(window):
        ready = [at for at in window if at not in drawn and not before[at] & (set(window) - set(drawn))]
        drawn.append(ready[int(rng.integers(len(ready)))])
    return [*order[:first], *drawn, *order[first + len(window):]]


@dataclass(frozen=True)
class BestSets:
    """What to hold in each step, in which order, and the score of that: no plan in an order that is open is below."""

    sets: tuple[frozenset[int], ...]
    order: tuple[int, ...]
    score: int


def best_sets(problem: ResidencyProblem, prices: Prices, upper: int | None = None,
              stopped: Callable[[], bool] = lambda: False) -> BestSets | None:
    """Return the best sets to hold in each step of the given order; None where there are too many states.

    What scores above ``upper`` is left out.
    """
    return _SetSearch(problem, prices, None).best(upper, stopped)


def best_order(problem: ResidencyProblem, prices: Prices, before: Sequence[frozenset[int]],
               stopped: Callable[[], bool] = lambda: False) -> BestSets | None:
    """Return the best of all orders, and what to hold in each step; None where operations or states are too many.

    What scores above the better of two heuristics in the given order is left out.

    Parameters
    ----------
    before
        For each operation those that must come before it.
    """
    if len(problem.steps) > MOST_OPERATIONS:
        return None
    upper = min(prices.score(transfers_of(problem, rule(problem, prices))) for rule in (belady, greedy))
    return _SetSearch(problem, prices, before).best(upper, stopped)


class _SetSearch:
    """What transitions from operation to operation need."""

    def __init__(self, problem: ResidencyProblem, prices: Prices, before: Sequence[frozenset[int]] | None) -> None:
        self.problem, self.prices = problem, prices
        self.before = None if before is None else [sum(1 << one for one in steps) for steps in before]
        self.touching = [sum(1 << at for at in steps) for steps in problem.touches]
        self.writing = [sum(1 << at for at in steps) for steps in problem.written]
        self.loads = [min((prices.again(one, at) for at in steps), default=0)
                      for one, steps in enumerate(problem.touches)]
        self.stores = [min((prices.saving(one, at) for at in steps if problem.dirty(one, at)), default=0)
                       for one, steps in enumerate(problem.written)]
        self.known: dict[tuple[int, frozenset[int]], bool] = {}

    def best(self, upper: int | None, stopped: Callable[[], bool]) -> BestSets | None:
        """Go through the operations, and return what is best after the last one."""
        room = None if upper is None else upper - self.prices.compulsory
        start: State = 0, frozenset(), frozenset()
        layers: list[dict[State, Reached]] = [{start: (0, start, -1, frozenset())}]
        for _ in self.problem.steps:
            layers.append(self.next(layers[-1], room, stopped))
            if not layers[-1]:
                return None
        state = min(layers[-1], key=lambda one: layers[-1][one][0])
        score, run = layers[-1][state][0], list[tuple[int, frozenset[int]]]()
        for layer in reversed(layers[1:]):
            _, state, at, here = layer[state]
            run.append((at, here))
        order, sets = zip(*reversed(run), strict=True)
        return BestSets(sets, order, self.prices.compulsory + score)

    def next(self, layer: dict[State, Reached], room: int | None, stopped: Callable[[], bool]) -> dict[State, Reached]:
        """Return the states after one more operation that cost no more than ``room``; none where they are too many."""
        found: dict[State, Reached] = {}
        for state, (spent, *_) in layer.items():
            for at in self.ready(state[0]):
                if len(state[1]) > MOST_IDLE or len(state[1].union(self.problem.steps[at].touches)) > MOST_SURE:
                    return {}
                for following, here, cost in self.after(at, state):
                    total = spent + cost
                    if (room is None or total <= room) and (following not in found or total < found[following][0]):
                        found[following] = total, state, at, here
            if len(found) > 4 * MOST_STATES or stopped():
                return {}
        groups: dict[int, dict[Waiting, Reached]] = {}
        for (done, *waiting), value in found.items():
            groups.setdefault(done, {})[waiting[0], waiting[1]] = value
        left: dict[State, Reached] = {(done, *waiting): value for done, states in groups.items()
                                      for waiting, value in self.undominated(states)}
        return left if len(left) <= MOST_STATES else {}

    def ready(self, done: int) -> Iterator[int]:
        """Give the operations that may run next."""
        if self.before is None:
            yield done.bit_length()
            return
        for at, needed in enumerate(self.before):
            if not done >> at & 1 and not needed & ~done:
                yield at

    def after(self, at: int, state: State) -> Iterator[tuple[State, frozenset[int], int]]:
        """Give states after an operation, what is held in it, and what comes again or leaves for it costs."""
        done, held, dirty = state
        touched, writes = self.problem.steps[at].touches, self.problem.steps[at].writes
        ran, idle = done | 1 << at, held.difference(touched)
        again = sum(self.prices.again(one, at) - self.loads[one] for one in touched
                    if one not in held and self.touching[one] & done)
        fresh = {one for one in writes if not self.problem.tensors[one].leaves or self.writing[one] & ~ran}
        for kept in self.kept(at, idle):
            gone = sum(self.loads[one] + (self.stores[one] if one in dirty else 0) for one in idle - kept)
            here = kept.union(touched)
            later = frozenset(one for one in here if self.touching[one] & ~ran)
            yield (ran, later, later & (dirty.difference(writes) | fresh)), here, again + gone

    def kept(self, at: int, idle: frozenset[int]) -> Iterator[frozenset[int]]:
        """Give the sets of what waits that fit beside an operation and cannot be larger."""
        touched = frozenset(self.problem.steps[at].touches)
        if self.fits(at, touched | idle):
            yield idle
            return
        order = sorted(idle, key=lambda one: (-self.problem.tensors[one].size_bytes, one))

        def choose(place: int, kept: frozenset[int]) -> Iterator[frozenset[int]]:
            if place == len(order):
                if not any(self.fits(at, touched | kept | {one}) for one in idle - kept):
                    yield kept
                return
            more = kept | {order[place]}
            if self.fits(at, touched | more):
                yield from choose(place + 1, more)
            yield from choose(place + 1, kept)

        yield from choose(0, frozenset())

    def fits(self, at: int, tensors: frozenset[int]) -> bool:
        """Whether tensors fit on scratchpads together in a step."""
        key = at, tensors
        if key not in self.known:
            self.known[key] = packed(self.problem, at, tensors, sure=True) is not None
        return self.known[key]

    def undominated(self, found: dict[Waiting, Reached]) -> list[tuple[Waiting, Reached]]:
        """Leave out what others, after the same operations, can become at no more cost."""
        kept: list[tuple[Waiting, Reached]] = []
        for state, value in sorted(found.items(), key=lambda one: (one[1][0], -len(one[0][0]))):
            if not any(other[0] >= state[0]
                       and more[0] + sum(self.stores[one] for one in other[1] - state[1]) <= value[0]
                       for other, more in kept):
                kept.append((state, value))
        return kept
