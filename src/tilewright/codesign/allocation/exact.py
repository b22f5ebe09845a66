"""The best allocation, proven: one cell for each layer and budgets for all are a knapsack of multiple choice.

Costs are real numbers, so nothing is rounded. Layers are added one by one; of the sums that can be reached those stay
that no other beats in value and every cost (dynamic programming on fronts), and whose bound is below the best that is
known. The bound prices costs at multipliers: whatever they are, no completion has a lower priced sum than the sum of
each layer's least (Lagrangian duality). The same recursion with few sums kept makes the best that is known.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tilewright.base import InputError, kept
from tilewright.codesign.allocation.problem import ROOM, AllocationProblem
from tilewright.search import hull_corners

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BEAMS = (30, 1_000)
"""Sums kept at each layer to find a good allocation, and a better one, before the proof."""
BETTER = 1 - 1e-12
"""Times the best known: values of other allocations that are less only in their last digits count as equal."""
BISECTIONS = 50


@dataclass(frozen=True)
class ExactAllocation:
    """The proven optimum: the cells ``(l)`` chosen, what they come to, and the sums that the proof looked at."""

    cells: Ints
    value: float
    states: int


def solve(problem: AllocationProblem) -> ExactAllocation:
    """Return an allocation that none is better than.

    Raises an `InputError` if limits leave no room together, there are more than two, or layers in turn have several
    styles for ``edp``.
    """
    if problem.deployment == "sequential":
        return _sequential(problem)
    if len(problem.limits) > 2:
        raise InputError("within", "must be two limits at most for a proof", str(problem.budget),
                         "Another method searches without one")
    if problem.objective == "edp":
        return _product(problem)
    return _pace(problem) if problem.objective == "pace" else _least(problem, problem.figures[0])


def _least(problem: AllocationProblem, values: Floats) -> ExactAllocation:
    """Return what has the least sum of ``values`` ``(l, c)``."""
    return _told(problem, *Knapsack(values, problem.costs, problem.limits).solve())


def _told(problem: AllocationProblem, cells: Ints | None, states: int) -> ExactAllocation:
    if cells is None:
        raise InputError("within", "must leave room for some choice of all layers", str(problem.budget),
                         "Raise one of the limits: each alone can be met")
    return ExactAllocation(cells, float(problem.score(cells[None])[0][0]), states)


def _product(problem: AllocationProblem) -> ExactAllocation:
    """Look for the least product of two sums among the corners of the convex hull of all pairs of sums."""
    def least(weights: tuple[float, float]) -> tuple[tuple[float, float], ExactAllocation]:
        found = _least(problem, weights[0] * problem.figures[0] + weights[1] * problem.figures[1])
        sums = problem.of_layers(found.cells[None])[0].sum(axis=(1, 2))
        return (float(sums[0]), float(sums[1])), found

    known = hull_corners(least)
    best = min(known, key=lambda each: each[0][0] * each[0][1])[1]
    return ExactAllocation(best.cells, best.value, sum(found.states for _, found in known))


def _sequential(problem: AllocationProblem) -> ExactAllocation:
    """Try every pair of elements and buffer, each layer in its best style that fits."""
    fits: NDArray[np.bool_] = np.all(problem.costs <= problem.limits[:, None, None], axis=0)
    pairs = int(np.prod(problem.table.stages.shape[2:]))
    figure = problem.figures.prod(axis=0)
    if problem.objective == "edp" and problem.table.stages.shape[1] > 1:
        raise InputError("objective", "must be another to be proven for layers in turn that have a choice of styles",
                         "edp")
    styles = np.where(fits, figure, np.inf).reshape(len(fits), -1, pairs).argmin(axis=1)  # (l, pairs)
    cells = (styles * pairs + np.arange(pairs)).T
    value, over = problem.score(cells)
    best = int(np.where(over > 0, np.inf, value).argmin())
    return _told(problem, cells[best] if over[best] == 0 else None, pairs)


def _pace(problem: AllocationProblem) -> ExactAllocation:
    """Look for the least pace at which the layers that keep it fit the budget, by bisection over all latencies."""
    figure, costs = problem.figures[0], problem.costs
    paces: list[float] = np.unique(figure[figure >= figure.min(axis=1).max()]).tolist()
    found: Ints | None = None
    states, low, high = 0, 0, len(paces)
    while low < high:
        middle = (low + high) // 2
        slow = figure > paces[middle]
        within = np.where(slow, np.inf, costs)
        free = np.where(slow, np.inf, 0.0)
        cells, more = Knapsack(within[-1] if len(costs) else free, within[:-1], problem.limits[:-1],
                               float(problem.limits[-1]) if len(costs) else np.inf).solve()
        states += more
        if cells is None:
            low = middle + 1
        else:
            found, high = cells, middle
    return _told(problem, found, states)


class Knapsack:
    """Choose one cell of each layer so that values sum up to the least, and costs to no more than the limits.

    Parameters
    ----------
    values
        ``(l, c)``; infinite where there is no cell.
    costs, limits
        ``(m, l, c)`` and ``(m)``.
    ceiling
        Values above are of no interest.
    """

    def __init__(self, values: Floats, costs: Floats, limits: Floats, ceiling: float = np.inf) -> None:
        self.ceiling, self.limits = ceiling, np.ones(len(limits))
        scaled = costs / np.where(limits > 0, limits, 1.0)[:, None, None]
        self.cells = [front(value, scaled[:, layer]) for layer, value in enumerate(values)]
        self.values = [value[cells] for value, cells in zip(values, self.cells, strict=True)]
        self.costs = [scaled[:, layer][:, cells] for layer, cells in enumerate(self.cells)]

    def solve(self) -> tuple[Ints | None, int]:
        """Return the best cells ``(l)``, None if there are none; and how many sums were looked at."""
        if not all(len(value) for value in self.values):
            return None, 0
        prices = self._prices()
        bound = max(self._bound(price)[0] for price in prices)
        best, ceiling, looked = None, self.ceiling, 0
        for width in (*BEAMS, None):
            cells, value, more = self._near(prices, ceiling)._recur(prices, ceiling, width)
            looked += more
            if cells is not None:
                best, ceiling = cells, value * BETTER
                if value * BETTER <= bound:
                    break
        return best, looked

    def _near(self, prices: list[Floats], ceiling: float) -> "Knapsack":
        """Return the knapsack without the cells that no choice below ``ceiling`` has."""
        if not np.isfinite(ceiling):
            return self
        found = copy(self)
        keep = [np.ones(len(value), dtype=np.bool_) for value in self.values]
        for price in prices:
            spare = ceiling - self._bound(price)[0]
            for layer, (value, cost) in enumerate(zip(self.values, self.costs, strict=True)):
                priced = value + price @ cost
                keep[layer] &= priced - priced.min() <= spare
        found.values = [value[kept] for value, kept in zip(self.values, keep, strict=True)]
        found.costs = [cost[:, kept] for cost, kept in zip(self.costs, keep, strict=True)]
        found.cells = [cells[kept] for cells, kept in zip(self.cells, keep, strict=True)]
        return found

    def _bound(self, price: Floats) -> tuple[float, Floats]:
        """Return the least that a choice is worth where costs are priced, and what the priced choice takes ``(m)``."""
        total, taken = -float(price @ self.limits), np.zeros(len(self.limits))
        for value, cost in zip(self.values, self.costs, strict=True):
            priced = value + price @ cost
            best = int(priced.argmin())
            total += float(priced[best])
            taken += cost[:, best]
        return total, taken

    def _prices(self) -> list[Floats]:
        """Return prices ``(m)`` whose bounds prune: the best ones, those around them, and none."""
        count = len(self.limits)
        most = sum(float(np.ptp(value)) for value in self.values) + 1.0
        best = self._best_price(np.zeros(count), 0, most)
        if not best.any():
            return [best]
        return [best * share for share in (1.0, 0.7, 1.4, 0.3, 3.0, 0.0)]

    def _best_price(self, price: Floats, first: int, most: float) -> Floats:
        """Return the prices from ``first`` on that bound best: where what is taken meets the limit."""
        if first == len(price):
            return price
        low, high = 0.0, most

        def at(share: float) -> Floats:
            tried = price.copy()
            tried[first] = share
            return self._best_price(tried, first + 1, most)

        if self._bound(at(0.0))[1][first] <= self.limits[first]:
            return at(0.0)
        for _ in range(BISECTIONS if first == len(price) - 1 else BISECTIONS // 2):
            middle = (low + high) / 2 if low > most * 1e-6 else max(np.sqrt(max(low, most * 1e-12) * high), 1e-300)
            if self._bound(at(middle))[1][first] > self.limits[first]:
                low = middle
            else:
                high = middle
        return at(high)

    def _recur(self, prices: list[Floats], ceiling: float, width: int | None) -> tuple[Ints | None, float, int]:
        """Add layer by layer; keep at most ``width`` sums, of the lowest bound. Return cells, their value, and sums."""
        count, layers = len(self.limits), len(self.values)
        if not all(len(value) for value in self.values):
            return None, np.inf, 0
        ahead = [self._ahead(price) for price in prices]  # priced completions from each layer on
        least = np.cumsum([np.zeros(count), *(cost.min(axis=1) for cost in self.costs[::-1])], axis=0)[::-1]
        taken, value = np.zeros((count, 1)), np.zeros(1)
        trail: list[tuple[Ints, Ints]] = []
        looked = 0
        for layer in range(layers):
            more = len(self.values[layer])
            sums = (value[:, None] + self.values[layer]).reshape(-1)
            used = (taken[:, :, None] + self.costs[layer][:, None]).reshape(count, len(sums))
            bound = np.max([sums + price @ used + then[layer + 1] - price.sum()
                            for price, then in zip(prices, ahead, strict=True)], axis=0)
            fits = bound <= ceiling
            for m in range(count):
                fits &= used[m] + least[layer + 1, m] <= ROOM
            alive = np.flatnonzero(fits)
            looked += len(alive)
            alive = alive[front(sums[alive], used[:, alive])]
            if width is not None and len(alive) > width:
                alive = np.sort(alive[np.argpartition(bound[alive], width)[:width]])
            if not len(alive):
                return None, np.inf, looked
            trail.append((alive // more, self.cells[layer][alive % more]))
            taken, value = used[:, alive], sums[alive]
        return _trace(trail, int(value.argmin())), float(value.min()), looked

    def _ahead(self, price: Floats) -> Floats:
        """Return ``(l + 1)``: the least priced sum of the layers from each on."""
        least = [float((value + price @ cost).min()) for value, cost in zip(self.values, self.costs, strict=True)]
        return np.append(np.cumsum(least[::-1])[::-1], 0.0)


def _trace(trail: Sequence[tuple[Ints, Ints]], at: int) -> Ints:
    """Return the cells that led to the last sum ``at``."""
    cells = []
    for parents, chosen in reversed(trail):
        cells.append(int(chosen[at]))
        at = int(parents[at])
    return np.array(cells[::-1])


def front(values: Floats, costs: Floats) -> Ints:
    """Return the places of finite values ``(n)`` that no other equals or beats in value and all costs ``(m, n)``."""
    if len(costs) > 2:
        return np.flatnonzero(np.isfinite(values))
    first, second = (costs[m] if m < len(costs) else np.zeros(len(values)) for m in range(2))
    order = np.lexsort((values, second, first))
    order = order[np.isfinite(values[order])]
    ranks = np.unique(second[order], return_inverse=True)[1] + 1
    return np.sort(order[_unbeaten(values[order], ranks.astype(np.int64))])


@kept
@njit(error_model="numpy")
def _unbeaten(values, ranks):  # type: ignore[no-untyped-def]
    """Say which values no earlier one of no higher rank equals or beats, by a tree of least values (Fenwick)."""
    least = np.full(ranks.max() + 1 if len(ranks) else 1, np.inf)
    free = np.empty(len(values), dtype=np.bool_)
    for i in range(len(values)):
        at, best = ranks[i], np.inf
        while at > 0:
            best = min(best, least[at])
            at -= at & -at
        free[i] = values[i] < best
        at = ranks[i]
        while at < len(least):
            least[at] = min(least[at], values[i])
            at += at & -at
    return free
