"""The order of operations: one in which less has to leave, sought among all in which each comes after what it reads."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import islice

import numpy as np

from tilewright.allocation.heuristics import LARGE, belady, greedy
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import LARGEST, Prices, transfers_of

MOST_FAILURES, WINDOW = 400, 8
"""Changes in a row that gain nothing before it ends; and operations that one change may put in another order."""


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
