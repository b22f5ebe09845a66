"""Spaces whose chains can be listed, as tables from which compiled code draws whole mappings."""

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.space_arrays import ORDER_COUNT, ORDER_START, SpaceArrays, active_axes
from tilewright.mapping.space_chains import ChainCounter, Splits
from tilewright.mapping.space_lanes import DEAD, Codes
from tilewright.mapping.space_size import Nodes, SpaceTables

# Largest tables: chains of all dimensions (and how many may be looked at on the way), entries to draw from, orders.
MOST_CHAINS = 1 << 17
MOST_PARTIAL = 1 << 21
MOST_ENTRIES = 1 << 23
MOST_ORDERS = 1 << 17
# Bits of the loops at one memory in a word of 64, and of the rank of one dimension in a word of 32.
BYTE, NIBBLE = 8, 4
# Rows of `space_draws` before those of extents, and the one that holds ones.
ONES, EXTENTS = 3, 4


class Chains(NamedTuple):
    """All chains of a dimension: ``steps`` ``(n, s)``, and the split and mask ``(n)``, by which they are sorted."""

    steps: NDArray[np.int32]
    split: NDArray[np.intp]
    mask: NDArray[np.int64]


class DrawTables(NamedTuple):
    """What `space_draws` reads (``e`` entries, ``r`` rows, ``p`` pairs, ``c`` chains, ``i`` dimensions that loop).

    Parameters
    ----------
    keep, other
        ``(e)``: an entry is taken itself with chance ``keep``, or else the entry ``other`` of its run of entries
        (Walker's method of aliases). The first run is of the nodes.
    runs
        ``(i, 3)``: first entry of a dimension, entries of one node, first row.
    rows
        ``(r, 2)``: where the pairs of a row begin and how many there are.
    pairs
        ``(p, 4)``: where the chains that a pair stands for begin and how many there are, the row of the next
        dimension, and a byte for each memory, with the dimension's bit where the chains loop.
    chains
        ``(s + 1, c)``: extents outside each slot and inside all.
    orders
        ``(t, 256, 2)``: for each memory and set of loops where its orders begin and how many there are.
    ranks
        Orders, `NIBBLE` bits for each dimension.
    slots
        ``(t)``: the memories' slots.
    dims
        ``(i)``: the dimensions in the order in which they are drawn.
    """

    keep: NDArray[np.float64]
    other: NDArray[np.int32]
    nodes: int
    runs: NDArray[np.int64]
    rows: NDArray[np.int32]
    pairs: NDArray[np.int64]
    chains: NDArray[np.int32]
    orders: NDArray[np.int32]
    ranks: NDArray[np.int32]
    slots: NDArray[np.int64]
    dims: NDArray[np.int64]


def draw_tables(tables: SpaceTables, nodes: Nodes, futures: list[NDArray[Any]]) -> DrawTables | None:
    """Return the tables to draw from, or None where they would be too large."""
    space = tables.space
    many = sum(int(min(split.ways.sum(dtype=np.float64), MOST_CHAINS + 1)) for split in tables.splits)
    if many > MOST_CHAINS or len(tables.memories) > BYTE or len(space.sizes) > BYTE:
        return None
    listed = [list_chains(tables.counters[d], split) for d, split in zip(tables.dims, tables.splits, strict=True)]
    orders = _orders(tables)
    if orders is None or any(chains is None for chains in listed):
        return None
    chains = [found for found in listed if found is not None]
    entries = _Entries(nodes, futures)
    for place, found in enumerate(chains):
        if not entries.add(tables, place, found):
            return None
    sizes = [np.full((len(found.steps), 1), space.sizes[d]) for d, found in zip(tables.dims, chains, strict=True)]
    extents = [np.hstack([size, found.steps]).T for size, found in zip(sizes, chains, strict=True)]
    return DrawTables(
        np.concatenate(entries.keep), np.concatenate(entries.other), len(nodes.weights), np.array(entries.runs),
        np.concatenate(entries.rows).astype(np.int32), np.concatenate(entries.pairs),
        np.ascontiguousarray(np.hstack(extents), dtype=np.int32), *orders, np.array(tables.memories),
        np.array(tables.dims))


class _Entries:
    """The entries to draw from, dimension after dimension."""

    def __init__(self, nodes: Nodes, futures: list[NDArray[Any]]) -> None:
        self.nodes, self.futures = nodes, futures
        keep, other = aliases(np.asarray(futures[0][0] * nodes.weights), np.zeros(1, dtype=np.intp))
        self.keep, self.other, self.count = [keep], [other], len(keep)
        self.runs: list[tuple[int, int, int]] = []
        self.rows: list[NDArray[Any]] = []
        self.pairs: list[NDArray[Any]] = []
        self.chains = self.row_count = self.pair_count = 0

    def add(self, tables: SpaceTables, place: int, chains: Chains) -> bool:
        """Add those of the dimension at ``place``; return whether there is room."""
        links, count = tables.links[place], len(self.nodes.weights)
        kinds, begin, chains_of = np.unique(chains.split << 8 | chains.mask, return_index=True, return_counts=True)
        first, last = (np.searchsorted(kinds >> 8, links.split, side=side) for side in ("left", "right"))
        link = np.repeat(np.arange(len(links.row)), last - first)
        kind = np.arange(len(link)) - np.repeat(np.cumsum(last - first) - last, last - first)
        mask = kinds[kind] & 255
        if self.count + len(link) * count > MOST_ENTRIES:
            return False
        odds = self.nodes.factors[place][:, mask] * chains_of[kind]
        if place + 1 < len(tables.dims):
            odds = odds * self.futures[place + 1][links.target[link]].T
        starts = np.searchsorted(links.row[link], np.arange(len(links.rows)))
        for row in odds:
            keep, other = aliases(row, starts)
            self.keep.append(keep)
            self.other.append(other)
        self.runs.append((self.count, len(link), self.row_count))
        self.rows.append(np.stack([starts + self.pair_count, np.diff(np.append(starts, len(link)))], axis=1))
        loops = sum((mask >> t & 1) << (BYTE * t + tables.dims[place]) for t in range(len(tables.memories)))
        self.pairs.append(np.stack([begin[kind] + self.chains, chains_of[kind], links.target[link], loops], axis=1))
        self.count += len(link) * count
        self.chains += len(chains.steps)
        self.row_count += len(starts)
        self.pair_count += len(link)
        return True


def aliases(odds: NDArray[np.float64], starts: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return chances to keep an entry and the entry to take else, in each run of ``odds`` from ``starts`` on.

    Vose, A linear algorithm for generating random numbers with a given distribution (IEEE TSE 1991).
    """
    keep, other = np.ones(len(odds)), np.zeros(len(odds), dtype=np.int32)
    for start, end in zip(starts, np.append(starts[1:], len(odds)), strict=True):
        total = odds[start:end].sum()
        if total == 0:
            continue
        share = (odds[start:end] * ((end - start) / total)).tolist()
        small = [i for i, value in enumerate(share) if value < 1]
        large = [i for i, value in enumerate(share) if value >= 1]
        while small and large:
            low, high = small.pop(), large[-1]
            keep[start + low], other[start + low] = share[low], high
            share[high] -= 1 - share[low]
            if share[high] < 1:
                small.append(large.pop())
    return keep, other


def list_chains(counter: ChainCounter, splits: Splits) -> Chains | None:
    """Return all chains of a dimension, or None where too many are looked at."""
    lanes, extents = counter.lanes, counter.extents
    steps = np.empty((1, 0), dtype=np.int32)
    place, codes, masks = np.array([len(extents) - 1]), lanes.first, np.zeros(1, dtype=np.int64)
    for s in range(counter.slots):
        good = counter.within(s)[place]
        steps, place, codes, masks = steps[good], place[good], codes[good], masks[good]
        least, most = counter.bounds(s)
        chosen, inside = _onward(counter, s, place)
        counts = -(-extents[place[chosen]] // extents[inside])
        kept = np.flatnonzero((counts >= least) & (counts <= most))
        chosen, inside, counts = chosen[kept], inside[kept], counts[kept]
        if len(chosen) > MOST_PARTIAL:
            return None
        reached = codes[chosen]
        if s in lanes.sides:
            reached = _times(counter, s, reached, counts)
            alive = reached != DEAD
            chosen, inside, counts, reached = chosen[alive], inside[alive], counts[alive], reached[alive]
            bit = 0
        else:
            bit = 1 << counter.memories.index(s)
        steps = np.concatenate([steps[chosen], extents[inside, None].astype(np.int32)], axis=1)
        place, codes, masks = inside, reached, masks[chosen] | np.where(counts > 1, bit, 0)
    ends = place == 0
    split = np.searchsorted(splits.codes, codes[ends])
    order = np.lexsort((masks[ends], split))
    return Chains(steps[ends][order], split[order], masks[ends][order])


def _onward(counter: ChainCounter, s: int, place: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return which of the chains go on to which extents inside slot ``s``; also to their own."""
    if counter.bounds(s)[1] == 1:
        return np.arange(len(place)), place
    grid, wide = counter.grids[s], np.full(len(place), counter.size)
    _, known = grid.places(np.zeros((1, len(counter.extents)), dtype=np.int64), inside=True)
    start, stop = grid.span(place, (np.full(len(place), 2), wide), inside=True)
    chosen = np.repeat(np.arange(len(place)), stop - start)
    if len(chosen) > 4 * MOST_PARTIAL:
        return chosen, chosen
    at = np.arange(len(chosen)) - np.repeat(np.cumsum(stop - start) - stop, stop - start)
    return np.concatenate([np.arange(len(place)), chosen]), np.concatenate([place, known[at]])


def _times(counter: ChainCounter, s: int, codes: Codes, counts: NDArray[np.int64]) -> Codes:
    """Return the codes with counts along side ``s`` besides, one by one."""
    known, code = np.unique(codes, return_inverse=True)
    some, count = np.unique(counts, return_inverse=True)
    along = counter.lanes.alone(s, some)
    table = np.where(along == DEAD, DEAD, counter.lanes.times(known, np.maximum(along, 0)))
    return np.asarray(table[code, count])


def _orders(tables: SpaceTables) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
    """Return where the orders of every memory and set of loops stand, and these."""
    space = tables.space
    spans = np.zeros((len(tables.memories), 1 << BYTE, 2), dtype=np.int32)
    found: list[NDArray[np.int32]] = []
    count, known = 0, dict[int, tuple[int, int]]()
    for t, s in enumerate(tables.memories):
        looping = sum(1 << d for d, split in zip(tables.dims, tables.splits, strict=True)
                      if split.ways[:, np.arange(split.ways.shape[1]) >> t & 1 == 1].any())
        free = space.slots[s, ORDER_COUNT] == 0
        for mask in range(1 << BYTE):
            if mask & ~looping:
                continue
            if not free or mask not in known:
                ranks = _every(space, mask) if free else listed_orders(space, s, mask)
                place = count, len(ranks)
                found.append(_packed(ranks))
                count += len(ranks)
                if count > MOST_ORDERS:
                    return None
                if free:
                    known[mask] = place
            spans[t, mask] = known[mask] if free else place
    return spans, np.concatenate(found)


def _packed(ranks: NDArray[Any]) -> NDArray[np.int32]:
    shifts = NIBBLE * np.arange(ranks.shape[1])
    return np.asarray((ranks.astype(np.int64) << shifts).sum(axis=1).astype(np.int32))


def _every(space: SpaceArrays, mask: int) -> NDArray[Any]:
    """Return ``(n, d)`` ranks of every order of the loops in ``mask``."""
    dims = [d for d in range(len(space.sizes)) if mask >> d & 1]
    orders = np.array(list(permutations(range(len(dims)))))
    keys = np.broadcast_to(still_keys(space), (len(orders), len(space.sizes))).copy()
    keys[:, dims] = orders - len(dims)
    return ranked(keys.T).T


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


def capacity_checks(space: SpaceArrays, dims: list[int]) -> tuple[NDArray[np.int64], ...]:
    """Return what `space_draws` checks: stores, tiles and axes.

    A store is a slot, its bits, and where its tiles begin and end; a tile is the bits of a word, and where its axes
    begin and end; an axis is a row of extents, its coefficient, and the same of a second one, or of ones.
    """
    known = active_axes(space.axes, np.array(dims, dtype=np.intp)).tolist()
    stores: list[list[int]] = []
    tiles: list[list[int]] = []
    axes: list[list[int]] = []
    for s, capacity, *bits in space.groups.tolist():
        start = len(tiles)
        for t, word in enumerate(bits):
            if not word:
                continue
            first = len(axes)
            axes += [[EXTENTS + p, stride, ONES if r < 0 else EXTENTS + r, dilation]
                     for tensor, p, stride, r, dilation in known if tensor == t]
            tiles.append([word, first, len(axes)])
        stores.append([s, capacity, start, len(tiles)])
    return tuple(np.array(rows, dtype=np.int64).reshape(-1, width)
                 for rows, width in ((stores, 4), (tiles, 3), (axes, 4)))
