"""The mappings that are left of a part of a space of which bounds tell no more: to be scored one by one."""

from collections.abc import Sequence
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
TOGETHER, MOST_CHAINS, MOST = 1 << 17, 1 << 20, 1 << 21
"""Choices of chains that are looked at together, chains of a dimension, and mappings by estimate, at most."""
SAMPLED, MOST_SEEN = 64, 20_000
"""Combinations of cells by which that is estimated, and how many are remembered of one list."""


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
    keys: list[tuple[int, ...]]
    """The combinations that are asked for, those among them that were scored before; none where they are many."""
    together: int
    """How many combinations are looked at together."""
    reach: int
    begun: int = 0
    part: OrderedSteps | None = None
    given: int = 0

    def take(self, most: int) -> MappingBatch:
        """Return the next mappings, up to so many; none where all were given."""
        while self.part is None or self.given == len(self.part):
            every = len(self.tables[0].counts)
            if self.begun >= every:
                return self.leaves.space.empty(0)
            steps = self.leaves.steps(self.tables, np.arange(self.begun, min(self.begun + self.together, every)))
            self.part = self.leaves.orders.ordered(steps, np.full(len(steps), self.reach))
            self.begun, self.given = self.begun + self.together, 0
        found = self.part.take(self.given, self.given + most)
        self.given += len(found)
        return found


class Leaves:
    """Makes the mappings that have extents in given cells, with every order of loops that can be best.

    Those of combinations of cells that were scored before are not made again.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder, self.space, self.orders = builder, builder.space, Orders(builder.tables)
        self.seen: set[tuple[int, ...]] = set()
        """The orders and cells of combinations of which all mappings are scored."""

    def of(self, cells: Sequence[Integers], listed: Integers, case: Case) -> Listed | None:
        """Return the mappings of combinations in a case, None where these may be too many.

        By group there are cells ``(c, l)`` at the layers of memories, of which combinations ``(n, g)`` have one each.
        """
        if self.orders.every and len(self._columns) > MOST_PERMUTED:
            return None
        reach, keys = self._reach(case), list[tuple[int, ...]]()
        if len(listed) <= MOST_SEEN:
            keys = [(reach, *row) for row in np.hstack([own[at] for own, at in zip(
                cells, listed.T, strict=True)]).tolist()]
            listed = listed[list({key: at for at, key in enumerate(keys) if key not in self.seen}.values())]
        tables = [table for d in range(len(self._columns)) if (table := self._table(cells, listed, d)) is not None]
        if len(tables) < len(self._columns):
            return None
        some = np.unique(np.linspace(0, max(0, len(listed) - 1), SAMPLED).astype(np.int64))[:len(listed)]
        each = len(self.steps(tables, some)) / max(1, len(some))
        if each * len(listed) > MOST:
            return None
        return Listed(self, tables, keys, max(1, int(TOGETHER / max(1.0, each))), reach)

    def steps(self, tables: Sequence[ChainTable], combined: Integers) -> NDArray[np.int32]:
        """Return (n, s, d) the steps of some combinations whose lanes fit the sides of arrays."""
        order = np.argsort([table.counts[combined].mean() for table in tables]).tolist() if len(combined) else []
        lanes = np.ones((len(combined), len(self.space.layout.slots)), dtype=np.int64)
        rows = self._fitting(tables, order, combined, lanes, np.zeros((len(tables), len(combined)), dtype=np.int64))
        steps = np.ones((rows.shape[1], *self.space.layout.shape), dtype=np.int32)
        for column, table, own in zip(self._columns, tables, rows, strict=True):
            steps[:, :, column] = table.chains[own]
        return steps

    def _fitting(self, tables: Sequence[ChainTable], order: Sequence[int], combined: Integers, lanes: Integers,
                 rows: Integers) -> Integers:
        """Return (d, n) rows of tables of dimensions: with those that are chosen all of the others whose lanes fit."""
        if not order:
            return rows
        table = tables[order[0]]
        many = table.counts[combined]
        if many.sum() > TOGETHER and len(combined) > 1:
            middle = len(combined) // 2
            return np.hstack([self._fitting(tables, order, combined[half], lanes[half], rows[:, half])
                              for half in (slice(middle), slice(middle, None))])
        before = np.repeat(np.arange(len(combined)), many)
        row = np.arange(len(before)) + np.repeat(table.starts[combined] - np.cumsum(many) + many, many)
        wider = lanes[before] * table.runs[row]
        fits = self.orders.fits(wider)
        rows = rows[:, before[fits]]
        rows[order[0]] = row[fits]
        return self._fitting(tables, order[1:], combined[before[fits]], wider[fits], rows)

    def _table(self, cells: Sequence[Integers], listed: Integers, d: int) -> ChainTable | None:
        """Return the chains of a dimension in combinations of cells; None where they are too many."""
        g = next(g for g, group in enumerate(self.builder.groups) if d in group)
        used, place = np.unique(listed[:, g], return_inverse=True)
        ranges, own = np.unique(self._ranges(cells[g][used], g, d), axis=0, return_inverse=True)
        space, slots = self.space, list(slots_of(self.space, self._columns[d]))
        spans = self._spans(ranges, d, [most for most, _, _ in slots])
        size, of = self.builder.sizes[d], np.arange(len(ranges))
        chains = np.full((len(ranges), 1), size, dtype=np.int64)
        for (most, free, later), (low, high) in zip(slots, spans, strict=True):
            outside = chains[:, -1]
            least = np.maximum(low[of], -(-outside // most) if free else outside)
            count = np.maximum(0, np.minimum(np.minimum(outside, high[of]), size if later else 1) - least + 1)
            if count.sum() > MOST_CHAINS:
                return None
            before = np.repeat(np.arange(len(chains)), count)
            steps = np.arange(len(before)) + np.repeat(least - np.cumsum(count) + count, count)
            left = (outside[before] % steps == 0) | ~divides(space, outside[before], size)
            of = of[before[left]]
            chains = np.column_stack([chains[before[left]], steps[left]])
        counts = np.bincount(of, minlength=len(ranges))
        starts, at = np.cumsum(counts) - counts, own.ravel()[place.ravel()]
        return ChainTable(chains[:, 1:], counts_of(size, chains[:, 1:]), counts[at], starts[at])

    def _spans(self, ranges: Integers, d: int, most: Sequence[int]) -> Integers:
        """Return (s, 2, n) from which to which extent steps of a dimension go at every slot, in ranges (n, l).

        Loops run at ``most`` so often there.
        """
        own, tables = self.builder.ranges[d], self.builder.tables
        spans = np.ones((len(self.space.layout.slots), 2, len(ranges)), dtype=np.int64)
        spans[:, 1] = self.builder.sizes[d]
        for m, memory in enumerate(tables.memories):
            array = self.builder.spread.inside[m]
            inside = ranges[:, 2 * m + 1]
            spans[tables.slots[memory.name][0]] = own.low[inside], own.high[inside]
            if array is not None and m + 1 < len(tables.memories):
                further, last = ranges[:, 2 * m + 2], array.slots[-1]
                spans[list(array.slots), 0] = own.low[further]
                spans[last, 1] = own.high[further]
                spans[list(array.slots[:-1]), 1] = own.high[further] * most[last]
        return spans

    @cached_property
    def _columns(self) -> list[int]:
        """The places of dimensions among all of the operator."""
        return [chains.dims[0] for chains in self.builder.tables.chains]

    def _ranges(self, cells: Integers, g: int, d: int) -> Integers:
        """Return (c, l) the ranges of a dimension in cells of its group."""
        group = self.builder.groups[g]
        if len(group) == 1:
            return cells
        wide = len(self.builder.ranges[group[1]].low)
        return cells // wide if d == group[0] else cells % wide

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
