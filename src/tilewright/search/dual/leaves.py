"""The mappings that are left of a part of a space of which bounds tell no more: to be scored one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping import MappingBatch
from tilewright.search.dual.problem import Builder, Case
from tilewright.search.dual.ranges import Integers
from tilewright.search.mappers.exact.chains import counts_of, divides, slots_of
from tilewright.search.mappers.exact.orders import OrderedSteps, Orders

MOST_KINDS, MOST_PERMUTED = 62, 4
"""Kinds of order that are told apart, at most; and dimensions where all orders of their loops have to be tried."""
LONGEST, MOST, AT_ONCE = 1 << 18, 1 << 27, 1 << 16
"""Chains of a dimension, at most; choices of them in all combinations of cells, at most, before it is asked whether
their lanes fit; and those that fit which are made at once."""


class ChainTable(NamedTuple):
    """The chains of a dimension in some combinations of cells."""

    chains: Integers
    runs: Integers
    """``(c, s)``: steps, and how often they run."""
    counts: Integers
    starts: Integers
    """``(n)``: how many of them each combination has, and where these begin."""


@dataclass
class Listed:
    """The mappings of some combinations of cells, made as they are asked for."""

    leaves: "Leaves"
    tables: list[ChainTable]
    many: int
    """By dimension; and how many combinations of cells there are."""
    keys: list[tuple[int, ...]]
    """All combinations that are asked for, those among them that were scored before."""
    reach: int
    part: OrderedSteps | None = None
    given: int = 0

    def take(self, most: int) -> MappingBatch:
        """Return the next mappings, up to so many; none where all were given."""
        while self.part is None or self.given == len(self.part):
            steps = next(self._steps, None)
            if steps is None:
                return self.leaves.space.empty(0)
            self.part, self.given = self.leaves.orders.ordered(steps, np.full(len(steps), self.reach)), 0
        found = self.part.take(self.given, self.given + most)
        self.given += len(found)
        return found

    @cached_property
    def _steps(self) -> Iterator[NDArray[np.int32]]:
        """The steps (n, s, d) of mappings whose lanes fit the sides of arrays, some after others."""
        order = sorted(range(len(self.tables)), key=lambda d: int(self.tables[d].counts.sum()))
        lanes = np.ones((self.many, len(self.leaves.space.layout.slots)), dtype=np.int64)
        for rows in self._chosen(order, np.arange(self.many), lanes,
                                 np.zeros((self.many, len(order)), dtype=np.int64)):
            yield self.leaves.steps(self.tables, rows)

    def _chosen(self, order: list[int], combined: Integers, lanes: Integers, rows: Integers) -> Iterator[Integers]:
        """Return (n, t) rows of tables that fit, some after others: given ones, and those of tables that come next."""
        from tilewright.search.dual.joins import join  # noqa: PLC0415  (Numba loads late)

        if not order:
            yield rows
            return
        table, begun, sides = self.tables[order[0]], np.zeros(2, dtype=np.int64), self.leaves.orders.tables.sides
        starts, counts = table.starts[combined], table.counts[combined]
        while begun[0] < len(combined):
            pairs = np.empty((AT_ONCE, 2), dtype=np.int64)
            before, row = pairs[:join(sides, lanes, starts, counts, table.runs, begun, pairs)].T
            wider = rows[before]
            wider[:, order[0]] = row
            yield from self._chosen(order[1:], combined[before], lanes[before] * table.runs[row], wider)


class Leaves:
    """Makes the mappings that have extents in given cells, with every order of loops that can be best.

    Those of combinations of cells that were scored before are not made again.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder, self.space, self.orders = builder, builder.space, Orders(builder.tables)
        self.seen: set[tuple[int, ...]] = set()
        """The orders and cells of combinations of which all mappings are scored."""

    def of(self, cells: Integers, case: Case) -> Listed | None:
        """Return the mappings of combinations of cells ``(n, g, l)`` in a case; None where these may be too many."""
        if self.orders.every and len(self._columns) > MOST_PERMUTED:
            return None
        reach = self._reach(case)
        keys = [(reach, *one.ravel().tolist()) for one in cells]
        fresh = cells[list({key: at for at, key in enumerate(keys) if key not in self.seen}.values())]
        tables = [table for d in range(len(self._columns)) if (table := self._table(fresh, d)) is not None]
        if len(tables) < len(self._columns):
            return None
        if np.prod([table.counts for table in tables], axis=0, dtype=np.float64).sum() > MOST:
            return None
        return Listed(self, tables, len(fresh), keys, reach)

    def steps(self, tables: list[ChainTable], rows: Integers) -> NDArray[np.int32]:
        """Return (n, s, d) the steps of rows (n, t) of tables."""
        steps = np.ones((len(rows), *self.space.layout.shape), dtype=np.int32)
        for column, table, own in zip(self._columns, tables, rows.T, strict=True):
            steps[:, :, column] = table.chains[own]
        return steps

    def _table(self, cells: Integers, d: int) -> ChainTable | None:
        """Return the chains of a dimension in combinations of cells; None where they are too many."""
        ranges = self.builder.ranges_in(cells[:, self.builder.group_of(d)], d)
        different, own = np.unique(ranges, axis=0, return_inverse=True)
        spans, space = self._spans(different, d), self.space
        size, of = self.builder.sizes[d], np.arange(len(different))
        chains = np.full((len(different), 1), size, dtype=np.int64)
        for (most, free, later), (low, high) in zip(slots_of(space, self._columns[d]), spans, strict=True):
            count = np.maximum(0, np.minimum(chains[:, -1], high[of]) - low[of] + 1)
            if count.sum() > LONGEST:
                return None
            before = np.repeat(np.arange(len(chains)), count)
            steps = np.arange(len(before)) + np.repeat(low[of] - np.cumsum(count) + count, count)
            outside = chains[before, -1]
            left = (-(-outside // steps) <= most) & (free | (steps == outside)) & (later | (steps == 1))
            left &= (outside % steps == 0) | ~divides(space, outside, size)
            of = of[before[left]]
            chains = np.column_stack([chains[before[left]], steps[left]])
        counts = np.bincount(of, minlength=len(different))
        starts = np.cumsum(counts) - counts
        return ChainTable(chains[:, 1:], counts_of(size, chains[:, 1:]), counts[own.ravel()], starts[own.ravel()])

    def _spans(self, ranges: Integers, d: int) -> Integers:
        """Return (s, 2, n) from which to which extent steps of a dimension go at every slot, in ranges (n, l)."""
        own, tables = self.builder.ranges[d], self.builder.tables
        spans = np.ones((len(self.space.layout.slots), 2, len(ranges)), dtype=np.int64)
        spans[:, 1] = self.builder.sizes[d]
        for m, memory in enumerate(tables.memories):
            array = self.builder.spread.inside[m]
            places = [(tables.slots[memory.name][0], 2 * m + 1)]
            if array is not None and m + 1 < len(tables.memories):
                places.append((array.slots[-1], 2 * m + 2))
            for slot, layer in places:
                spans[slot] = own.low[ranges[:, layer]], own.high[ranges[:, layer]]
        return spans

    @cached_property
    def _columns(self) -> list[int]:
        """The places of dimensions among all of the operator."""
        return [chains.dims[0] for chains in self.builder.tables.chains]

    def _reach(self, case: Case) -> int:
        """Return the kinds of order that a case leaves, as bits; all where some dimension is of no class."""
        kinds, classes = self.builder.tables.kinds, self.builder.tables.classes
        if len(kinds) > MOST_KINDS or not self.builder.a.unused.any(axis=1).all():
            return -1
        left = np.ones(len(kinds), dtype=np.bool_)
        for m, rest in enumerate(case):
            if rest is not None:
                left &= (kinds[:, m] == classes[max(0, rest[0])]).all(axis=1)
        return int(left @ (1 << np.arange(len(kinds))))
