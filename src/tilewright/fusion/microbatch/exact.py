"""The best strategy, proven: dynamic programming over groups, with sets of partial plans that none beats in all."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.fusion.microbatch.costs import bound_of, forced_bytes, scores
from tilewright.fusion.microbatch.problem import Floats, Ints, MicroBatchProblem

SLACK, SAME = 1e-12, 1e-9
"""Relative differences below which partial plans, and whole ones, are as good."""
MOST_PLAIN = 3_000
"""Partial plans of an entry beyond which plain micro-batches are given up."""


@dataclass(frozen=True)
class _Labels:
    """Plans of the entries up to one, whose group is still open (``l`` labels).

    Parameters
    ----------
    open
        ``(l, o)``: of each result that somebody later reads, 0 where an earlier group made it; else how many of its
        readers the group reaches, plus one, and which micro-batch holds it (see `_Search.code`).
    stay
        ``(l)``: whether all weights of the group are to stay; they then come once.
    memory, weights
        ``(l)``: bytes of the group so far.
    costs
        ``(l, 3)``: the objective of all groups before, and of this one so far by each term: the plan's objective is the
        largest of them where the group ends.
    parent, size
        ``(l)``: the label before (-1 where the group begins) and the micro-batch of the entry.
    """

    open: Ints
    stay: NDArray[np.bool_]
    memory: Floats
    weights: Floats
    costs: Floats
    parent: Ints
    size: Ints

    def take(self, rows: Any) -> "_Labels":
        return _Labels(*(each[rows] for each in vars(self).values()))

    @classmethod
    def joined(cls, labels: "list[_Labels]") -> "_Labels":
        return cls(*(np.concatenate(each) for each in zip(*(vars(one).values() for one in labels), strict=True)))


def best_strategy(problem: MicroBatchProblem, known: float, going: Callable[[], bool] = lambda: True,
                  ) -> tuple[Ints | None, bool]:
    """Return the best strategy, None where none is better than an objective that is ``known``; and if it is proven.

    One of plain micro-batches (powers of two runs) is looked for first, and taken where it is no worse.

    It is not where ``going`` told to end. All strategies of micro-batches are covered, as those that are left out take
    more memory for as many runs.
    """
    rough = problem.choices[(problem.runs & (problem.runs - 1)) == 0]
    best, _ = _Search(problem, known * (1 + SAME), going, rough, MOST_PLAIN).run()
    if best is not None:
        known = float(scores(problem, best)[0])
    if known <= bound_of(problem) * (1 + SAME):
        return best, True
    better, proven = _Search(problem, known, going, problem.choices).run()
    return best if better is None else better, proven


class _Search:
    """Goes through the entries; ``ends[q]`` is the best objective of all up to ``q`` where a group ends there."""

    def __init__(self, problem: MicroBatchProblem, known: float, going: Callable[[], bool], sizes: Ints,
                 most: float = np.inf) -> None:
        self.problem, self.known, self.going, self.sizes, self.most = problem, known, going, sizes, most
        self.base = len(self.sizes) + 1
        self.scales = _scales(problem)
        self.togo = _togo(problem, self.scales)
        self.ends = np.full(problem.length + 1, np.inf)
        self.ends[-1] = 0.0
        self.closing = np.full(problem.length, -1)
        self.kept: list[_Labels] = []
        self.columns: list[list[int]] = []

    def run(self) -> tuple[Ints | None, bool]:
        labels, columns = None, list[int]()
        for q in range(self.problem.length):
            if not self.going():
                return None, False
            labels, columns = self.step(q, labels, columns)
            if len(labels.memory) > self.most:
                return None, False
            self.kept.append(labels)
            self.columns.append(columns)
        last = self.problem.length - 1
        return (self.plan(last) if self.ends[last] < self.known else None), True

    def code(self, place: Any, reached: Any) -> Any:
        """Return how a result is told that a micro-batch holds, and so many of whose readers the group reaches."""
        return (reached + 1) * self.base + place

    def told(self, codes: Ints) -> tuple[Ints, Ints]:
        """Return how many readers the group reaches, -1 where it did not make the result; and which micro-batch holds.

        That is 0 once the last of them has read it.
        """
        reached, place = np.divmod(codes, self.base)
        return reached - 1, place

    def begun(self, q: int, columns: list[int]) -> _Labels:
        """Return the plans that end a group before ``q``."""
        stays = [False, True] if self.problem.weight_bytes > 0 else [False]
        count = len(stays)
        return _Labels(np.zeros((count, len(columns)), dtype=np.int64), np.array(stays), np.zeros(count),
                       np.zeros(count), np.full((count, self.scales.shape[1]), self.ends[q - 1]), np.full(count, -1),
                       np.zeros(count, dtype=np.int64))

    def step(self, q: int, before: _Labels | None, columns: list[int]) -> tuple[_Labels, list[int]]:
        """Return the plans whose group goes on after ``q``, having ended those that end there."""
        parts = [self.begun(q, columns).take(slice(None) if self.ends[q - 1] < self.known else slice(0))]
        if before is not None:
            parts.append(replace(before, parent=np.arange(len(before.memory))))
        labels = self.read(q, _Labels.joined(parts), columns)
        self.end(q, labels, columns)
        later = [p for p in columns if self.problem.readers[p][-1] > q]
        labels = replace(labels, open=labels.open[:, [columns.index(p) for p in later]])
        labels = self.pruned(self.staged(q, labels), q)
        return labels, [*later, *([q] if self.problem.readers[q] else [])]

    def read(self, q: int, labels: _Labels, columns: list[int]) -> _Labels:
        """Return the plans in which ``q`` may belong to the open group, having read its operands.

        Their ``size`` is then the least micro-batch that the group holds while ``q`` runs.
        """
        problem, legal = self.problem, np.ones(len(labels.memory), dtype=bool)
        least = np.full(len(labels.memory), problem.batch)
        read, passing = np.zeros(len(labels.memory)), np.zeros(len(labels.memory))
        opened = labels.open.copy()
        for at, p in enumerate(columns):
            reached, place = self.told(opened[:, at])
            held = place > 0
            least = np.where(held, np.minimum(least, self.sizes[place - 1]), least)
            if q in problem.readers[p]:
                turn = problem.readers[p].index(q)
                away = reached < 0
                read += away * problem.sizes[p]
                legal &= away | (turn < reached)
                # The last reader that the group reaches lets it go.
                opened[:, at] = np.where(~away & (turn == reached - 1), self.code(0, reached), opened[:, at])
        for p in problem.entries[q].reads:
            passing += problem.sizes[p]
        costs = labels.costs + self.moved(read, 0.0, passing + (problem.sizes[q] if q else 0.0))
        costs = costs + problem.cycles[q] * self.scales[3]
        weights = labels.weights + labels.stay * problem.weights[q]
        legal &= weights <= problem.weight_bytes * labels.stay
        return _Labels(opened, labels.stay, labels.memory, weights, costs, labels.parent, least).take(legal)

    def moved(self, read: Any, written: Any, passing: Any) -> Floats:
        """Return what bytes cost by each term ``(l, 3)``."""
        rows = np.broadcast_arrays(*(np.atleast_1d(each) for each in (read, written, passing)))
        return np.stack(rows, axis=1).astype(np.float64) @ self.scales[:3]

    def fetched(self, q: int, labels: _Labels, least: Ints) -> Floats:
        """Return what the weights of ``q`` cost ``(l, 3)`` where it runs ``least`` samples at a time."""
        runs = np.where(labels.stay, 1, -(-self.problem.batch // least))
        return self.moved(runs * self.problem.weights[q], 0.0, runs * self.problem.weights[q])

    def end(self, q: int, labels: _Labels, columns: list[int]) -> None:
        """End the group at ``q``, in the best plan of those that promised no reader after it."""
        written = self.problem.sizes[q] if q else 0.0
        costs = labels.costs + self.fetched(q, labels, labels.size) + self.moved(0.0, written, 0.0)
        whole = costs.max(axis=1)
        for at, p in enumerate(columns):
            reached, _ = self.told(labels.open[:, at])
            passed = sum(reader <= q for reader in self.problem.readers[p])
            whole = np.where(reached > passed, np.inf, whole)
        if len(whole) and whole.min() < self.ends[q]:
            best = int(whole.argmin())
            self.ends[q] = whole[best]
            self.closing[q] = labels.parent[best]

    def staged(self, q: int, labels: _Labels) -> _Labels:
        """Return the plans with every micro-batch of ``q``, and every number of its readers that the group reaches."""
        problem, readers, found = self.problem, self.problem.readers[q], []
        if q == problem.length - 1:
            return labels.take(slice(0))
        least = 1 if q + 1 in readers else 0
        for place, reached in product(range(1, self.base), range(least, len(readers) + 1)):
            size = int(self.sizes[place - 1])
            memory = labels.memory + size * problem.tiles[q]
            held = np.minimum(labels.size, size)
            leaves = reached < len(readers) or problem.entries[q].leaves
            costs = labels.costs + (self.fetched(q, labels, held) if q else 0.0) + self.moved(
                0.0 if q else problem.sizes[0], problem.sizes[q] * bool(leaves and q), 0.0 if q else problem.sizes[0])
            code = np.full((len(memory), 1 if readers else 0), self.code(place if reached else 0, reached))
            found.append(_Labels(np.concatenate([labels.open, code], axis=1), labels.stay, memory, labels.weights,
                                 costs, labels.parent, np.full(len(memory), size)).take(
                                     memory <= problem.memory_bytes))
        return _Labels.joined(found)

    def pruned(self, labels: _Labels, q: int) -> _Labels:
        """Return the plans that may still become best: below what is known, and no other is as good in all."""
        from tilewright.fusion.microbatch.kernels import undominated  # noqa: PLC0415  (Numba loads late)

        filter_: Any = undominated
        known = min(self.known, float(self.ends[-2]))
        labels = labels.take((labels.costs + self.togo[q + 1]).max(axis=1) < known * (1 - SLACK))
        if not len(labels.memory):
            return labels
        reached, places = self.told(labels.open)
        # A smaller place is a larger micro-batch: nothing that follows runs more often.
        _, keys = np.unique(np.column_stack([reached, places > 0, labels.stay]), axis=0, return_inverse=True)
        values = np.column_stack([labels.memory, labels.costs, labels.weights, places]).astype(np.float64)
        order = np.lexsort((*values.T[::-1], keys.ravel()))
        found = np.zeros(len(order), dtype=bool)
        filter_(np.ascontiguousarray(keys.ravel()[order]), np.ascontiguousarray(values[order]), found)
        return labels.take(order[found])

    def plan(self, last: int) -> Ints:
        """Return the best strategy ``(1, N + 1)``, from its end."""
        found, q = self.problem.unfused, last
        while q >= 0:
            at, q = int(self.closing[q]), q - 1
            while at >= 0:
                found[0, q] = self.kept[q].size[at]
                at, q = int(self.kept[q].parent[at]), q - 1
        return found


def _scales(problem: MicroBatchProblem) -> Floats:
    """Return what a byte read, a byte written, a byte on chip and a cycle of compute cost by each term ``(4, 3)``."""
    off, on, read, write, pass_, compute, leakage = problem.rates.tolist()
    times: Floats = np.array([[0, off, 0], [0, off, 0], [0, 0, on], [1, 0, 0]])
    if problem.objective == "energy":
        found: Floats = leakage * times + np.array([read, write, pass_, compute])[:, None]
        return found if leakage > 0 else found[:, :1]
    reads = np.array([problem.sizes[list(entry.reads)].sum() for entry in problem.entries])
    passing = (reads + problem.sizes + problem.batch * problem.weights) * on
    passing[1] += passing[0]
    return times[:, :2] if np.all(passing[1:] <= problem.cycles[1:]) else times


def _togo(problem: MicroBatchProblem, scales: Floats) -> Floats:
    """Return by each term what all entries from each on cost at least ``(N + 2, 3)``, whatever came before."""
    leaving = np.array([entry.leaves for entry in problem.entries]) * problem.sizes
    forced = forced_bytes(problem)[:, None] * np.minimum(scales[0], scales[1])
    passing = problem.sizes + problem.weights + [problem.sizes[list(entry.reads)].sum() for entry in problem.entries]
    passing[0] = 0.0
    each = (problem.weights[:, None] * scales[0] + leaving[:, None] * scales[1] + passing[:, None] * scales[2]
            + problem.cycles[:, None] * scales[3] + forced)
    return np.concatenate([np.cumsum(each[::-1], axis=0)[::-1], np.zeros((1, scales.shape[1]))])
