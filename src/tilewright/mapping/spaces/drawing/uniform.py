"""Mappings drawn uniformly from all that a space counts: backward through the tables that counted them."""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import hypot, inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.mapping.spaces.counting.chains import ChainCounter, Grid, SlotTable, Splits, TooLarge, Ways
from tilewright.mapping.spaces.counting.estimates import estimated_size
from tilewright.mapping.spaces.counting.lanes import DEAD
from tilewright.mapping.spaces.counting.orders import Patterns
from tilewright.mapping.spaces.counting.size import Nodes, SpaceSize, SpaceTables, space_size, tables_size
from tilewright.mapping.spaces.rules.arrays import (
    BLOCK,
    BLOCKS,
    FIXED,
    FLEXIBLE,
    FLOOR,
    KIND,
    LIMIT,
    MODE,
    ORDER_COUNT,
    ORDER_START,
    PARTNER,
    PARTNER_BLOCK,
    SPATIAL,
    SpaceArrays,
)

Index = NDArray[np.intp]
# Draws at a time; most for a share that makes up a size, and the error that is enough; draws for each mapping, and
# in all at least, before uniform drawing of legal ones is given up.
BATCH = 1 << 15
SHARE_DRAWS, SHARE_ERROR = 1_000_000, 0.004
HOPELESS, PATIENCE = 10_000, 2_000_000
# Which mappings, given as steps and ranks, fit the memories.
Fits = Callable[[NDArray[np.int32], NDArray[np.int8]], NDArray[np.bool_]]


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


class TableDraws:
    """Draws mappings of a space, all alike.

    The number of orders is a sum of products over dimensions (`orders`): a draw chooses one of these products
    first, then dimension after dimension how it splits, given the lanes that those before it use, and the memories
    where it loops; then a chain among those that split so, and orders among all for the loops that there are.
    """

    def __init__(self, tables: SpaceTables) -> None:
        self.tables = tables

    @cached_property
    def size(self) -> SpaceSize:
        """How many mappings there are to draw."""
        return tables_size(self.tables)

    @cached_property
    def nodes(self) -> Nodes:
        """The products of which the number of orders is the sum."""
        return self.tables.nodes()

    @cached_property
    def futures(self) -> list[NDArray[np.float64]]:
        """How many ways lead on, before every dimension."""
        return self.tables.futures(self.nodes)

    @cached_property
    def chains(self) -> list[ChainDrawer]:
        """What draws the chains of every dimension."""
        return [ChainDrawer(self.tables.counters[d], split)
                for d, split in zip(self.tables.dims, self.tables.splits, strict=True)]

    def draw(self, rng: Generator, steps: NDArray[np.int32], ranks: NDArray[np.int8]) -> None:
        """Fill ``steps`` and ``ranks`` ``(s, d, b)``."""
        tables, count = self.tables, steps.shape[2]
        steps[:], masks = 1, []
        if tables.dims:
            odds = self.futures[0][0] * self.nodes.weights
            zeros = np.zeros(count, dtype=np.intp)
            node = np.sort(choose(rng, totals(odds)[None], zeros, zeros, zeros + len(odds)))
            row = np.zeros(count, dtype=np.intp)
            for place, d in enumerate(tables.dims):
                split, row = self._splits(rng, place, node, row)
                masks.append(self._masks(rng, place, node, split))
                steps[:, d] = self.chains[place].draw(rng, split, masks[-1])
        self._orders(rng, masks, ranks)
        # Draws of one product stand side by side.
        order = rng.permutation(count)
        steps[:], ranks[:] = steps[:, :, order], ranks[:, :, order]

    def _splits(self, rng: Generator, place: int, node: Index, row: Index) -> tuple[Index, Index]:
        """Return how the dimension at ``place`` splits in every draw, and the row of the next dimension."""
        links, last = self.tables.links[place], place == len(self.tables.dims) - 1
        weighed = self.tables.weigh(place, self.tables.splits[place].ways, self.nodes)
        pair = np.empty(len(node), dtype=np.intp)
        ends = np.append(links.starts[1:], len(links.row))
        for x, first, after in _runs(node):
            odds = weighed[links.split, x]
            if not last:
                odds = odds * self.futures[place + 1][links.target, x]
            # Each row's odds sum to 1, so that totals over all rows are as precise as those of one.
            whole = self.futures[place][links.row, x]
            odds = np.divide(odds, whole, out=np.zeros(len(odds)), where=whole > 0)
            rows = row[first:after]
            pair[first:after] = choose(rng, totals(odds)[None], np.zeros_like(rows), links.starts[rows], ends[rows])
        return links.split[pair].astype(np.intp), links.target[pair].astype(np.intp)

    def _masks(self, rng: Generator, place: int, node: Index, split: Index) -> Index:
        """Return at which memories the dimension at ``place`` loops in every draw."""
        odds = self.tables.splits[place].ways[split] * self.nodes.of(place, node)
        zeros = np.zeros(len(node), dtype=np.intp)
        return choose(rng, totals(odds), np.arange(len(node)), zeros, zeros + odds.shape[1])

    def _orders(self, rng: Generator, masks: list[Index], ranks: NDArray[np.int8]) -> None:
        """Write ranks: loops in a random order of those allowed, then what does not loop, sizes of 1 last.

        Where orders are listed, what does not loop has its place in one of them.
        """
        tables, count = self.tables, ranks.shape[2]
        still = np.broadcast_to(still_keys(tables.space)[:, None], (len(tables.space.sizes), count))
        ranks[:] = ranked(still[:, :1])
        for t, s in enumerate(tables.memories):
            loops = np.zeros(still.shape, dtype=np.bool_)
            for d, mask in zip(tables.dims, masks, strict=True):
                loops[d] = mask >> t & 1
            if tables.space.slots[s, ORDER_COUNT] == 0:
                ranks[s] = ranked(np.where(loops, rng.random(loops.shape), still))
                continue
            bits = (1 << np.arange(len(loops))) @ loops
            for mask in np.unique(bits).tolist():
                draws, orders = np.flatnonzero(bits == mask), listed_orders(tables.space, s, mask)
                ranks[s][:, draws] = orders[rng.integers(len(orders), size=len(draws))].T


def _runs(values: Index) -> list[tuple[int, int, int]]:
    """Return the runs of equal numbers: which, from where, to where."""
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=np.intp)
    ends = np.append(starts[1:], len(values))
    return [(int(values[start]), int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def still_keys(space: SpaceArrays) -> NDArray[np.int64]:
    """Return ``(d)`` keys that order what does not loop: as the operator has it, sizes of 1 last."""
    return np.arange(len(space.sizes)) + np.where(space.sizes == 1, 1000, 1)


def listed_orders(space: SpaceArrays, s: int, mask: int) -> NDArray[Any]:
    """Return ``(n, d)`` ranks of the orders listed for slot ``s`` that put the loops in ``mask`` in different orders.

    Of several that put them in the same order, the first stands for it.
    """
    start, count = int(space.slots[s, ORDER_START]), int(space.slots[s, ORDER_COUNT])
    rows = ranked(np.where(space.sizes == 1, still_keys(space), space.orders[start:start + count]).T).T
    dims = [d for d in range(len(space.sizes)) if mask >> d & 1]
    _, first = np.unique(np.argsort(rows[:, dims], axis=1), axis=0, return_index=True)
    return rows[first]


def ranked(keys: NDArray[Any]) -> NDArray[np.int8]:
    """Return ``(d, b)``: the place of each key among those of its column."""
    return np.argsort(np.argsort(keys, axis=0, kind="stable"), axis=0).astype(np.int8)


class UniformDraws:
    """Draws mappings of a space uniformly, and measures what cannot be counted.

    Where the tables of the space would grow too large, those of a simpler one that holds it serve, and draws outside
    are left out: blocks are forgotten, then how many lanes must be in use, then how large arrays are. ``fits`` tells
    which mappings fit the memories.
    """

    def __init__(self, space: SpaceArrays, patterns: list[Patterns], fits: Fits) -> None:
        self.space, self.patterns, self.fits = space, patterns, fits

    @cached_property
    def every(self) -> TableDraws:
        """Draws from all that is counted."""
        return TableDraws(_tables(self.space, self.patterns))

    @cached_property
    def small(self) -> TableDraws:
        """Draws from those whose every dimension alone leaves room for one word of the others in all memories."""
        return TableDraws(_tables(within_capacities(self.space), self.patterns))

    @cached_property
    def size(self) -> SpaceSize:
        """How many mappings there are."""
        try:
            return space_size(self.space, self.patterns)
        except TooLarge:
            pass
        try:
            every = self.every
        except InputError as error:
            try:
                return estimated_size(self.space, self.patterns)
            except TooLarge:
                raise error from None
        return self._share(every, np.random.default_rng(0), SHARE_DRAWS, legal=False)

    def legal_size(self, rng: Generator, draws: int) -> SpaceSize:
        """Return an estimate, from ``draws`` draws, of how many mappings fit the memories too."""
        return self._share(self.small, rng, draws, legal=True)

    def _share(self, source: TableDraws, rng: Generator, draws: int, legal: bool) -> SpaceSize:
        """Return how many mappings of ``source`` are of the space: its size times the share found."""
        whole = source.size
        if not whole.mappings:
            return whole
        found, tried, error = 0, 0, inf
        while tried < draws and (legal or error > SHARE_ERROR):
            some = min(BATCH, draws - tried)
            found += int(self._good(source, rng, some, legal)[2].sum())
            tried += some
            # One more miss than there was: no share is known to be 1.
            error = sqrt((tried - found + 1) / tried / found) if found else inf
        mappings = round(Fraction(found, tried) * whole.mappings)
        return SpaceSize(mappings, exact=False, error=hypot(error, whole.error))

    def _good(self, source: TableDraws, rng: Generator, count: int,
              legal: bool) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.bool_]]:
        """Return draws and which are of the space (with ``legal``: and fit the memories)."""
        shape = (len(self.space.slots), len(self.space.sizes), count)
        steps, ranks = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int8)
        source.draw(rng, steps, ranks)
        good = arrays_hold(self.space, steps)
        return steps, ranks, good & self.fits(steps, ranks) if legal else good

    def draw(self, rng: Generator, steps: NDArray[np.int32], ranks: NDArray[np.int8], legal: bool) -> None:
        """Fill ``steps`` and ``ranks`` ``(s, d, b)``.

        Raises an `InputError` if there are none, or fewer than 1 in `HOPELESS` draws is legal.
        """
        source = self.small if legal else self.every
        if not source.size.mappings:
            raise InputError("space", "must hold mappings to draw", "none", "Loosen the constraints")
        written, tried, count = 0, 0, steps.shape[2]
        while written < count:
            share = max(written, 1) / max(tried, 1) if tried else 0.5
            some = int(min(max(1.1 * (count - written) / share, 256), BATCH))
            found, orders, good = self._good(source, rng, some, legal)
            chosen = np.flatnonzero(good)[:count - written]
            steps[:, :, written:written + len(chosen)] = found[:, :, chosen]
            ranks[:, :, written:written + len(chosen)] = orders[:, :, chosen]
            written, tried = written + len(chosen), tried + some
            if tried > max(PATIENCE, HOPELESS * (written + 1)):
                raise InputError("space", "must hold mappings that fit the memories, to draw them uniformly",
                                 f"{written} in {tried:,} draws", "Draw with MapSpace.sample and mend with repair")


def _tables(space: SpaceArrays, patterns: list[Patterns]) -> SpaceTables:
    """Return the tables of the space, or of the first simpler one whose tables are not too large."""
    slots = space.slots.copy()
    blocks = slots[:, MODE] == BLOCKS
    slots[blocks, LIMIT] *= slots[blocks, BLOCK] * slots[blocks, PARTNER_BLOCK]
    slots[blocks, MODE] = FLEXIBLE
    flexible = space._replace(slots=slots)
    bare = slots.copy()
    bare[:, FLOOR] = 0
    endless = bare.copy()
    endless[endless[:, KIND] == SPATIAL, LIMIT] = -1
    for simpler in (space, flexible, space._replace(slots=bare), space._replace(slots=endless)):
        try:
            tables = SpaceTables(simpler, patterns)
            tables.nodes()
        except TooLarge:
            continue
        return tables
    raise InputError("space", "must be small enough to be counted",
                     f"{len(space.slots)} levels, sizes up to {space.sizes.max()}", "Restrict loops, orders or arrays")


def arrays_hold(space: SpaceArrays, steps: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return ``(b)``: whether the loops of ``steps`` ``(s, d, b)`` fit the arrays and use the lanes that they must."""
    good = np.ones(steps.shape[2], dtype=np.bool_)
    for s, row in enumerate(space.slots):
        partner = int(row[PARTNER])
        if row[KIND] != SPATIAL or 0 <= partner < s:
            continue
        own, other = (_lanes(space, steps, side) for side in (s, partner))
        if row[MODE] == FIXED:
            good &= own <= row[LIMIT]
            good &= other <= (space.slots[partner, LIMIT] if partner >= 0 else 1)
        elif row[MODE] == BLOCKS:
            good &= -(-own // row[BLOCK]) * -(-other // row[PARTNER_BLOCK]) <= row[LIMIT]
        else:
            good &= own * other <= row[LIMIT]
        good &= own * other >= row[FLOOR]
    return good


def _lanes(space: SpaceArrays, steps: NDArray[np.int32], s: int) -> NDArray[np.int64]:
    if s < 0:
        return np.ones(steps.shape[2], dtype=np.int64)
    outside = steps[s - 1] if s else np.broadcast_to(space.sizes[:, None], steps.shape[1:])
    return np.asarray(np.prod(-(-outside // steps[s]), axis=0, dtype=np.int64))


def within_capacities(space: SpaceArrays) -> SpaceArrays:
    """Return the space with tiles no larger than what fits when all other dimensions are 1: all legal mappings stay."""
    most = space.bands.tile_most.copy()
    for s, capacity, *bits in space.groups.tolist():
        for d in range(len(space.sizes)):
            moved = sum(b for b, uses in zip(bits, space.relevant[:, d], strict=True) if uses)
            if moved:
                most[s, d] = min(most[s, d], (capacity - sum(bits) + moved) // moved)
    return space._replace(bands=space.bands._replace(tile_most=most))
