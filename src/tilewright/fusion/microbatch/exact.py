"""The best strategy, proven: of all cuts of a network into groups by bounds, and of the groups that count by labels.

What a group takes but for its micro-batches is known: they only say how often its weights come. So the words that come
again are the least there are within the memory, of each group by itself, and groups are chosen by what they then cost.
A group's least is bounded first, by a Lagrangian: each byte of memory has a price, and no group may do better than the
best of its micro-batches at that price, less the price of the memory there is. Only groups of the best cut by these
bounds are looked at closely, until a best cut has none left.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewright.base import Rows
from tilewright.fusion.microbatch.costs import kernels
from tilewright.fusion.microbatch.problem import Floats, Ints, MicroBatchProblem
from tilewright.fusion.microbatch.records import (
    COMPUTE,
    ENERGY,
    FETCHED,
    GROUP_FIGURES,
    LATENCY,
    OFFCHIP_CYCLES,
    ONCHIP_CYCLES,
)
from tilewright.search import Resumable

SLACK, SAME = 1e-12, 1e-9
"""Relative differences below which groups, and whole plans, are as good."""
PRICES, REFINED = 20, 12
"""Prices of memory that bound all groups, and further ones for a group that is looked at closely."""
MOST_PAIRS = 40
"""Micro-batches that there are at most where bounds know two of them at a time."""


@dataclass(frozen=True)
class _Labels(Rows):
    """Micro-batches of a group up to an entry (``l`` labels)."""

    places: Ints
    """``(l, k)``: which micro-batch holds each of the results that the group is still to read, the one read for the
    longest first. Those after it count as the least before them: they let go no later."""
    memory: Floats
    extra: Floats
    """``memory`` and ``extra``: ``(l)``: bytes staged, and bytes of weights that come again."""
    parent: Ints
    size: Ints
    """``parent`` and ``size``: ``(l)``: the label before, and the place of the entry's own micro-batch."""


class GroupSearch(Resumable):
    """Chooses among groups ``(n, n)`` from one entry to another: ``extra`` are the least bytes that come again.

    They are bounds where not ``solved``; of those that are, ``found`` ``(g, n + 2)`` has the first and the last entry,
    and the micro-batches. All strategies of some micro-batches are covered, as those that are left out take more memory
    for as many runs. A step looks for the best cut by what is known of groups, or solves one group of it.

    Parameters
    ----------
    known
        An objective that is to be bettered.
    going
        Whether to go on; asked while groups are solved.
    sizes
        The micro-batches.
    """

    changing = ("best", "ended", "solved", "extra", "found", "path", "place", "plan")

    def __init__(self, problem: MicroBatchProblem, known: float, going: Callable[[], bool], sizes: Ints) -> None:
        count = problem.length
        self.problem, self.best, self.going, self.sizes = problem, known, going, sizes
        self.runs = -(-problem.batch // sizes)
        told = np.zeros((count, count, len(GROUP_FIGURES)))
        kernels.group_table(problem.tables, told)
        self.levels, self.slopes = _costs(problem, told)
        staged = np.concatenate([[0.0], np.cumsum(problem.tiles)])[:-1]
        self.fits = (staged - staged[:, None]) * sizes[-1] <= problem.memory_bytes
        self.solved = (told[:, :, FETCHED] <= problem.weight_bytes) | np.eye(count, dtype=bool)
        self.ended, self.plan = False, problem.unfused[:0]
        self.found, self.path, self.place = np.empty((0, count + 2), dtype=np.int64), np.empty((0, 4)), 0
        self.extra = np.where(np.tri(count, count, -1, dtype=bool) | ~self.fits, np.inf, 0.0)
        open_ = np.isfinite(self.extra) & ~self.solved
        for last in np.flatnonzero(open_.any(axis=0)).tolist():
            if not going():
                break
            rest = [self.rest(0, last, price)[:, 0, 0] - price * problem.memory_bytes for price in self.prices]
            firsts = np.flatnonzero(open_[:, last])
            self.extra[firsts, last] = np.maximum(0.0, np.max(rest, axis=0)[firsts])

    @property
    def prices(self) -> Floats:
        """Bytes that come again for a byte of memory: from where none is worth it to where all are."""
        problem = self.problem
        weights = problem.weights[problem.weights > 0]
        if not len(weights):
            return np.zeros(1)
        found: Floats = np.geomspace(weights.min() / problem.tiles.max() / problem.batch,
                                     problem.batch * weights.max() / problem.tiles[1:].min(), PRICES)
        return found

    @property
    def least(self) -> float:
        """What no plan is below by what is known of groups."""
        return min(self.best, float(self.cut()[0][-1]))

    def step(self) -> None:
        """Solve the next group of the cut, or find the next cut; ``plan`` is the best so far."""
        if self.place < len(self.path):
            first, last, before, after = self.path[self.place].tolist()
            if not self.solved[int(first), int(last)]:
                self.solve(int(first), int(last), self.best - before - after)
            self.place += self.going()
            return
        groups = [(int(first), int(last)) for first, last in self.path[:, :2]]
        value = sum(float(self.cost[group]) for group in groups)
        if groups and value < self.best * (1 - SLACK):
            self.best, self.plan = value, self.planned(groups)
        before, after, path = self.cut()
        self.path = np.array([(first, last, before[first], after[last + 1]) for first, last in path])
        self.place = 0
        self.ended = bool(before[-1] >= self.best * (1 - SLACK))

    @property
    def cost(self) -> Floats:
        """``(n, n)``: the objective of each group at the least, infinite where it is none."""
        possible = np.isfinite(self.extra)
        again = np.where(possible, self.extra, 0.0)
        return np.where(possible, np.max(self.levels + self.slopes[:, None, None] * again, axis=0), np.inf)

    def cut(self) -> tuple[Floats, Floats, list[tuple[int, int]]]:
        """Return the least objective before each entry and from it on ``(n + 1)``, and the groups of the best cut."""
        costs, count = self.cost, self.problem.length
        before, after = np.zeros(count + 1), np.zeros(count + 1)
        begin = np.zeros(count, dtype=np.int64)
        for last in range(count):
            begin[last] = (before[:-1] + costs[:, last]).argmin()
            before[last + 1] = before[begin[last]] + costs[begin[last], last]
        for first in reversed(range(count)):
            after[first] = (costs[first] + after[1:]).min()
        path, last = list[tuple[int, int]](), count - 1
        while last >= 0:
            path.append((int(begin[last]), last))
            last = int(begin[last]) - 1
        return before, after, path[::-1]

    def reach(self, first: int, last: int) -> Ints:
        """Return the last entry ``(n)`` of a group that reads each one; itself where none does."""
        return np.array([max((q for q in readers if q <= last), default=p) if p >= first else p
                         for p, readers in enumerate(self.problem.readers)])

    def rest(self, first: int, last: int, price: float) -> Floats:
        """Return what the entries of a group from each on cost at least; see `kernels.group_rest`."""
        problem, count = self.problem, len(self.sizes)
        found = np.zeros((last + 1, count, count))
        kernels.group_rest(first, last, price, problem.tiles, problem.weights, self.reach(first, last), self.sizes,
                           self.runs, count <= MOST_PAIRS, found)
        return found

    def bounded(self, first: int, last: int) -> list[tuple[float, float, Floats]]:
        """Return prices that bound a group best, the best first: the bound, the price, and `rest`."""
        powers = np.log(np.maximum(self.prices, 1e-300))
        found = dict[float, tuple[float, float, Floats]]()

        def tried(power: float) -> float:
            if power not in found:
                price = float(np.exp(power))
                rest = self.rest(first, last, price)
                found[power] = (float(rest[first, 0, 0]) - price * self.problem.memory_bytes, price, rest)
            return found[power][0]

        low, high = float(powers[0]), float(powers[-1])
        for _ in range(REFINED):
            one, other = low + 0.382 * (high - low), high - 0.382 * (high - low)
            low, high = (low, other) if tried(one) >= tried(other) else (one, high)
        return sorted(found.values(), key=lambda each: -each[0])[:3]

    def solve(self, first: int, last: int, budget: float) -> None:
        """Find the least bytes that come again in a group, or that they are too many for its objective's budget."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(self.slopes > 0, (budget - self.levels[:, first, last]) / self.slopes, np.inf)
        most = float(room.min(initial=np.inf))
        told = self.bounded(first, last)
        least = max(0.0, told[0][0], float(self.extra[first, last]))
        share, unit = 0.002, float(self.problem.weights[first:last + 1].max())
        limit = least
        while limit < most and not self.solved[first, last]:
            limit = min(most, least + share * (least + unit))
            share *= 4
            plan = self.labelled((first, last), limit, told)
            if plan is None:
                return
            if np.isfinite(plan[0]):
                self.solved[first, last] = True
                self.extra[first, last] = plan[0]
                row = np.full((1, self.found.shape[1]), self.sizes[-1])
                row[0, :2], row[0, 2:2 + last - first] = (first, last), plan[1]
                self.found = np.concatenate([self.found, row])
        if not self.solved[first, last]:
            self.solved[first, last], self.extra[first, last] = True, np.inf

    def labelled(self, group: tuple[int, int], limit: float,
                 told: list[tuple[float, float, Floats]]) -> tuple[float, Ints] | None:
        """Return the fewest bytes that come again in a group, up to a limit, and the micro-batches.

        Infinite where there are none, None where told to end.
        """
        (first, last), reach, steps = group, self.reach(*group), list[_Labels]()
        nothing = np.zeros(1, dtype=np.int64)
        labels = _Labels(np.zeros((1, 0), dtype=np.int64), np.zeros(1), np.zeros(1), nothing, nothing)
        columns = list[int]()
        for q in range(first, last):
            if not self.going():
                return None
            later = sorted((p for p in [*columns, q] if reach[p] > q), key=lambda p: (-reach[p], p))
            labels = self.staged(q, labels, [[*columns, q].index(p) for p in later])
            columns = later
            seen = [next((labels.places[:, at] for at, p in enumerate(columns) if chosen(p)), 0)
                    for chosen in (q.__eq__, q.__ne__)]
            seen[1] = seen[1] if len(self.sizes) <= MOST_PAIRS else 0
            rest = np.max([table[q + 1][tuple(seen)] + price * (labels.memory - self.problem.memory_bytes)
                           for _, price, table in told], axis=0)
            labels = _undominated(labels.take((labels.memory <= self.problem.memory_bytes)
                                              & (labels.extra + np.maximum(rest, 0.0) <= limit)))
            steps.append(labels)
        again = self.runs[labels.places.max(axis=1, initial=0)] - 1
        found = labels.extra + again * self.problem.weights[last]
        if not len(found) or found.min() > limit:
            return np.inf, nothing
        at, sizes = int(found.argmin()), list[int]()
        for step in reversed(steps):
            sizes.append(int(self.sizes[step.size[at]]))
            at = int(step.parent[at])
        return float(found.min()), np.array(sizes[::-1], dtype=np.int64)

    def staged(self, q: int, labels: _Labels, order: list[int]) -> _Labels:
        """Return labels with every micro-batch of an entry; ``order`` are the results still to be read."""
        rows, size = (each.ravel() for each in np.indices((len(labels.memory), len(self.sizes))))
        before = labels.take(rows)
        places = np.column_stack([before.places, size])
        again = self.runs[places.max(axis=1)] - 1
        return _Labels(np.maximum.accumulate(places[:, order], axis=1) if order else places[:, :0],
                       before.memory + self.sizes[size] * self.problem.tiles[q],
                       before.extra + again * self.problem.weights[q], rows, size)

    def planned(self, path: list[tuple[int, int]]) -> Ints:
        """Return the strategy ``(1, N + 1)`` of groups that are known."""
        found, known = self.problem.unfused, {(row[0], row[1]): np.array(row[2:]) for row in self.found.tolist()}
        for first, last in path:
            found[0, first:last] = known[first, last][:last - first] if (first, last) in known else self.sizes[-1]
        return found


def _undominated(labels: _Labels) -> _Labels:
    """Return the labels that no other one is as good as in memory, bytes and all micro-batches that are held."""
    values = np.column_stack([labels.memory, labels.extra, labels.places]).astype(np.float64)
    order = np.lexsort(values.T[::-1])
    kept = np.zeros(len(order), dtype=bool)
    kernels.undominated(np.ascontiguousarray(values[order]), kept)
    return labels.take(order[kept])


def _costs(problem: MicroBatchProblem, told: Floats) -> tuple[Floats, Floats]:
    """Return the objective of groups by what limits them ``(3, n, n)``, and what a byte that comes again adds ``(3)``.

    The objective of a group is the largest of the three.
    """
    rates = problem.rates
    terms = np.moveaxis(told[:, :, [COMPUTE, OFFCHIP_CYCLES, ONCHIP_CYCLES]], 2, 0)
    slopes = np.array([0.0, rates.offchip_cycles, rates.onchip_cycles])
    if problem.objective == "latency":
        return terms, slopes
    alone = told[:, :, ENERGY] - rates.leakage_pj * told[:, :, LATENCY]
    return alone + rates.leakage_pj * terms, rates.read_pj + rates.onchip_pj + rates.leakage_pj * slopes
