"""Chains of one dimension drawn uniformly: backward through the tables that counted them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.mapping.spaces.counting.chains import ChainCounter, Grid, SlotTable, Splits, Ways
from tilewright.mapping.spaces.counting.lanes import DEAD

Index = NDArray[np.intp]


def totals(ways: Ways) -> Ways:
    """Return running totals along the last axis, 0 first."""
    return np.concatenate([np.zeros((*ways.shape[:-1], 1), dtype=ways.dtype), np.cumsum(ways, axis=-1)], axis=-1)


def choose(rng: Generator, running: Ways, rows: Index, starts: Index, stops: Index) -> Index:
    """Return for every draw a column from ``starts`` to ``stops``, as likely as ``running`` totals ``(r, c)`` say."""
    low, high = running[rows, starts], running[rows, stops]
    # The largest number below a total may round up to it.
    target = np.minimum(low + (rng.random(len(rows)) * (high - low)).astype(running.dtype), _below(high))
    starts, stops = starts.copy(), stops.copy()
    while (active := stops - starts > 1).any():
        middle = np.where(active, (starts + stops) // 2, starts)
        right = running[rows, middle] <= target
        starts, stops = np.where(right, middle, starts), np.where(right, stops, middle)
    return starts


def _below(values: Ways) -> Ways:
    return values - 1 if values.dtype == np.int64 else np.nextafter(values, -1.0)


class Sources(NamedTuple):
    """From where the rows of a table outside a side of an array come.

    Sorted by ``target`` ``(n)``: the row inside, and least and most counts.
    """

    target: Index
    row: Index
    low: Index
    high: Index


class ChainDrawer:
    """Draws chains of the dimension that ``counter`` counts, each split's alike.

    ``splits`` are its splits.
    """

    def __init__(self, counter: ChainCounter, splits: Splits) -> None:
        self.counter = counter
        self.inner, self.outer = counter.inner(), counter.outer()
        self.sources = {s: self._sources(s) for s in range(counter.cut + 1, counter.slots) if s in counter.lanes.sides}
        parts = list(counter.parts(self.inner[-1], self.outer[counter.cut]))
        codes = np.concatenate([part.codes for part in parts])
        places = np.searchsorted(splits.codes, codes)
        known = (places < len(splits.codes)) & (splits.codes[np.minimum(places, len(splits.codes) - 1)] == codes)
        order = np.argsort(np.where(known, places, len(splits.codes)), kind="stable")[:int(known.sum())]
        self.row = np.concatenate([part.rows for part in parts])[order]
        self.low = np.concatenate([np.full(len(part.rows), part.low) for part in parts])[order]
        self.high = np.concatenate([np.full(len(part.rows), part.high) for part in parts])[order]
        self.starts = np.searchsorted(places[order], np.arange(len(splits.codes) + 1))
        self.running = totals(np.concatenate([part.ways for part in parts])[order].T)

    def _layer(self, s: int) -> SlotTable:
        """Return the table outside slot ``s``, from ``cut`` inward."""
        return self.inner[self.counter.slots - s]

    def _sources(self, s: int) -> Sources:
        counter, inside, outside = self.counter, self._layer(s + 1), self._layer(s)
        many = 1 << len(counter.memories)
        keys = outside.codes * many + outside.masks
        found: list[tuple[Index, Index, Index, Index]] = []
        for low, high, code in counter.spans(s):
            reached = counter.lanes.times(np.array([code]), inside.codes)[0]
            rows = np.flatnonzero(reached != DEAD)
            target = np.searchsorted(keys, reached[rows] * many + inside.masks[rows])
            found.append((target, rows, np.full(len(rows), low), np.full(len(rows), high)))
        target, row, low_, high_ = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(target, kind="stable")
        return Sources(target[order], row[order], low_[order], high_[order])

    def draw(self, rng: Generator, splits: Index, masks: Index) -> NDArray[np.int32]:
        """Return the steps ``(s, b)`` of a random chain for each given split and mask."""
        counter = self.counter
        steps = np.empty((counter.slots, len(splits)), dtype=np.int32)
        chosen = choose(rng, self.running, masks, self.starts[splits], self.starts[splits + 1])
        rows, low, high = self.row[chosen], self.low[chosen], self.high[chosen]
        inside = self._at_cut(rng, rows, low, high, masks)
        outside = self._outside(rng, inside, low, high, masks) if counter.cut < counter.slots else inside
        self._outward(rng, outside, masks, steps)
        self._inward(rng, inside, rows, steps)
        return steps

    def _outer_rows(self, s: int, masks: Index) -> Index:
        """Return the rows of the table outside slot ``s`` for the loops at the memories outside it."""
        layer = self.outer[s]
        order = np.argsort(layer.masks)
        outer = sum(1 << t for t, slot in enumerate(self.counter.memories) if slot < s)
        return np.asarray(order[np.searchsorted(layer.masks[order], masks & outer)])

    def _at_cut(self, rng: Generator, rows: Index, low: Index, high: Index, masks: Index) -> Index:
        """Return the extents inside slot ``cut``."""
        counter, found = self.counter, np.zeros(len(rows), dtype=np.intp)
        if counter.cut == counter.slots:
            return found
        table, outer = self.inner[-1].ways, self.outer[counter.cut]
        ahead_rows = self._outer_rows(counter.cut, masks)
        for first in np.unique(low):
            draws = np.flatnonzero(low == first)
            ahead, width = counter.ahead(outer, int(first), int(high[draws[0]]))
            pairs, index = np.unique(rows[draws] * len(ahead) + ahead_rows[draws], return_inverse=True)
            height = max(1, (1 << 20) // width)
            for start in range(0, len(pairs), height):
                part = pairs[start:start + height]
                running = totals(table[part // len(ahead), :width] * ahead[part % len(ahead)])
                here = np.flatnonzero((index >= start) & (index < start + height))
                zeros = np.zeros(len(here), dtype=np.intp)
                found[draws[here]] = choose(rng, running, index[here] - start, zeros, zeros + width)
        return found

    def _outside(self, rng: Generator, inside: Index, low: Index, high: Index, masks: Index) -> Index:
        """Return the extents outside slot ``cut``."""
        cut = self.counter.cut
        return self._jump(rng, self.counter.grids[cut], self.outer[cut].ways,
                          (self._outer_rows(cut, masks), inside, low, high), inside=False)

    def _outward(self, rng: Generator, outside: Index, masks: Index, steps: NDArray[np.int32]) -> None:
        """Write the steps of the slots outside ``cut``."""
        counter = self.counter
        for s in range(counter.cut - 1, -1, -1):
            steps[s] = counter.extents[outside]
            if s not in counter.memories:
                continue
            loops = np.flatnonzero(masks >> counter.memories.index(s) & 1)
            least, most = counter.bounds(s)
            low, high = np.full(len(loops), max(least, 2)), np.full(len(loops), most)
            outside = outside.copy()
            outside[loops] = self._jump(rng, counter.grids[s], self.outer[s].ways * counter.within(s),
                                        (self._outer_rows(s, masks[loops]), outside[loops], low, high), inside=False)

    def _inward(self, rng: Generator, inside: Index, rows: Index, steps: NDArray[np.int32]) -> None:
        """Write the steps of slot ``cut`` and those inside it; ``rows`` are of the table inside ``cut``."""
        counter = self.counter
        for s in range(counter.cut, counter.slots):
            if s > counter.cut:
                step = self._across if s in counter.lanes.sides else self._through
                rows, inside = step(rng, s, rows, inside)
            steps[s] = counter.extents[inside]

    def _through(self, rng: Generator, s: int, rows: Index, outside: Index) -> tuple[Index, Index]:
        """Return rows and extents inside a memory's loops."""
        table = self._layer(s + 1).ways
        loops = np.flatnonzero(rows >= len(table))
        rows, inside = rows % len(table), outside.copy()
        least, most = self.counter.bounds(s)
        low, high = np.full(len(loops), max(least, 2)), np.full(len(loops), most)
        inside[loops] = self._jump(rng, self.counter.grids[s], table, (rows[loops], outside[loops], low, high),
                                   inside=True)
        return rows, inside

    def _across(self, rng: Generator, s: int, rows: Index, outside: Index) -> tuple[Index, Index]:
        """Return rows and extents inside one side of an array."""
        table, sources, grid = self._layer(s + 1).ways, self.sources[s], self.counter.grids[s]
        placed, _ = grid.places(table, inside=True)
        running = totals(placed)
        first, last = (np.searchsorted(sources.target, rows, side=side) for side in ("left", "right"))
        draw = np.repeat(np.arange(len(rows)), last - first)
        source = np.arange(len(draw)) - np.repeat(np.cumsum(last - first) - (last - first), last - first) + first[draw]
        row, low = sources.row[source], sources.low[source]
        start, stop = grid.span(outside[draw], (np.maximum(low, 2), sources.high[source]), inside=True)
        ways = np.where(low == 1, table[row, outside[draw]], running[row, stop] - running[row, start])
        ends = np.cumsum(last - first)
        every = np.zeros(len(rows), dtype=np.intp)
        chosen = source[choose(rng, totals(ways)[None], every, ends - (last - first), ends)]
        rows, inside = sources.row[chosen], outside.copy()
        loops = np.flatnonzero(sources.low[chosen] > 1)
        bounds = sources.low[chosen[loops]], sources.high[chosen[loops]]
        inside[loops] = self._jump(rng, grid, table, (rows[loops], outside[loops], *bounds), inside=True)
        return rows, inside

    @staticmethod
    def _jump(rng: Generator, grid: Grid, table: Ways, draws: tuple[Index, Index, Any, Any], inside: bool) -> Index:
        """Return extents inside (or outside) the given ones: ``draws`` are rows, extents, least and most counts."""
        rows, extents, low, high = draws
        moves = np.flatnonzero(low > 1)
        if not len(rows) or not len(moves):
            return extents
        placed, known = grid.places(table, inside)
        start, stop = grid.span(extents[moves], (low[moves], high[moves]), inside)
        found = extents.copy()
        found[moves] = known[choose(rng, totals(placed), rows[moves], start, stop)]
        return found
