"""Spaces whose chains can be listed, as tables from which compiled code draws whole mappings."""

from collections.abc import Sequence
from itertools import permutations
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.mapping.footprint import axis_sides
from tilewright.mapping.spaces.arrays import (
    KIND,
    ORDER_COUNT,
    ORDER_START,
    SPATIAL,
    SpaceArrays,
    active_axes,
)
from tilewright.mapping.spaces.chains import ChainCounter, Splits
from tilewright.mapping.spaces.fields import (
    COUNT_BITS,
    ENTRY_BITS,
    EXTENTS,
    LOOP_BITS,
    ONES,
    ORDER_BITS,
    ROW_BITS,
    aliases,
    choice_words,
    packed_rows,
)
from tilewright.mapping.spaces.lanes import DEAD, Codes
from tilewright.mapping.spaces.size import SpaceTables

# Largest tables: chains of all dimensions (and how many may be looked at on the way), choices of dimensions together,
# entries to draw from, orders, orders of a memory repeated until there are as many of every set of loops.
MOST_CHAINS = 1 << 17
MOST_PARTIAL = 1 << 21
MOST_JOINT = 1 << 14
MOST_ENTRIES = 1 << ENTRY_BITS
MOST_ORDERS = 1 << 17
MOST_REPEATED = 1 << 15
# Memories and dimensions whose loops are bits of a word of 64, and bits of the rank of one dimension in a word of 32.
MOST_LOOPING, NIBBLE = 8, 4


class Chains(NamedTuple):
    """All chains of a dimension: ``steps`` ``(n, s)``, and the split and mask ``(n)``, by which they are sorted."""

    steps: NDArray[np.int32]
    split: NDArray[np.intp]
    mask: NDArray[np.int64]


class Bundle(NamedTuple):
    """All that some dimensions can do together: for each of ``n`` choices a chain of each dimension.

    ``places`` are those of the dimensions among the tables'; ``codes`` ``(n)`` states of the lanes; ``loops`` ``(n)``
    for each memory the bits of all dimensions, set where they loop there; ``chains`` ``(n, i)`` numbers of chains.
    """

    places: tuple[int, ...]
    codes: Codes
    loops: NDArray[np.int64]
    chains: NDArray[np.int32]


class DrawTables(NamedTuple):
    """What `draws` reads (``e`` entries, ``p`` pairs, ``c`` chains, ``n`` bundles, ``i`` dimensions).

    Numbers looked up together are fields of one word (`fields`), the lowest last.

    Parameters
    ----------
    entries
        ``(e)``: the chance that an entry is taken itself, and the entry of its run that is taken else (Walker's
        method of aliases). The first run is of all nodes with the pairs of the first bundle.
    runs
        ``(n, 8)``: first entry of a bundle, entries of one node, first pair, first dimension, dimensions, where its
        choices begin in ``joint``, words of each choice there, and bits of a chain.
    pairs
        ``(p * 3)``: the loops of the choices that a pair stands for, how many these are, and where they begin; where
        the pairs of the next bundle begin that can follow, and how many there are; the loops again, in a word of
        their own. Choices of a bundle of one dimension are chains.
    joint
        Numbers of the chains of every choice of the other bundles (`packed_rows`).
    words, bits, least
        ``(w, c)``: extents outside each slot, but the first where ``least`` is 0, of every chain (`packed_rows`).
    orders
        ``(t, 2^d)``: for each memory and set of loops where its orders begin and how many there are.
    alike
        ``(t, 2)``: where those of each memory begin that are repeated until there are as many of every set of loops,
        one set after another, and how many; 0 where that is too many.
    ranks
        Orders, `NIBBLE` bits for each dimension.
    slots
        ``(t)``: the memories' slots.
    dims
        ``(i)``: the dimensions in the order in which they are drawn.
    stores, tiles, axes
        What is to be checked of capacities (`capacity_checks`); slots as rows of ``words``.
    ones
        Rows of steps that are 1 in all mappings.
    still
        ``(n, 2)``: rows of ranks that are the same in all mappings, and what they are.
    width
        How many rows a slot has.
    """

    entries: NDArray[np.int64]
    nodes: int
    runs: NDArray[np.int64]
    pairs: NDArray[np.int64]
    joint: NDArray[np.int64]
    words: NDArray[np.int64]
    bits: int
    least: int
    orders: NDArray[np.int64]
    alike: NDArray[np.int64]
    ranks: NDArray[np.int32]
    slots: NDArray[np.int64]
    dims: NDArray[np.int64]
    stores: NDArray[np.int64]
    tiles: NDArray[np.int64]
    axes: NDArray[np.int64]
    ones: NDArray[np.int64]
    still: NDArray[np.int64]
    width: int


def draw_tables(tables: SpaceTables, legal: bool) -> DrawTables | None:
    """Return the tables to draw from, or None where they would be too large.

    With ``legal``, what alone does not fit the memories is left out.

    Raises
    ------
    InputError
        If nothing is left.
    """
    space = tables.space
    if chain_total(tables) > MOST_CHAINS or len(tables.memories) > MOST_LOOPING or len(space.sizes) > MOST_LOOPING:
        return None
    listed = [list_chains(tables.counters[d], split) for d, split in zip(tables.dims, tables.splits, strict=True)]
    orders = _orders(tables)
    if orders is None or any(chains is None for chains in listed):
        return None
    found = [chains for chains in listed if chains is not None]
    extents = np.hstack([np.hstack([np.full((len(chains.steps), 1), space.sizes[d]), chains.steps]).T
                         for d, chains in zip(tables.dims, found, strict=True)])
    pruning = _Pruning(space, tables.dims, extents)
    bundles = _bundles(tables, found, pruning if legal else None)
    entries = _Entries(tables, bundles)
    if entries.count > MOST_ENTRIES:
        return None
    entries.write()
    if not entries.total:
        raise InputError("space", "must hold mappings that fit the memories, to draw them", "none",
                         "Loosen the constraints")
    dims = [tables.dims[place] for bundle in entries.bundles for place in bundle.places]
    stores, tiles, axes = capacity_checks(space, dims)
    stores = stores[[pruning.open(store, bundles) for store in range(len(stores))]] if legal else stores[:0]
    # The outermost extents are the sizes, those inside the last slot 1.
    least = int((stores[:, 0] == 0).any())
    words, bits = packed_rows(extents[1 - least:-1, np.concatenate(entries.chains)])
    stores[:, 0] -= 1 - least
    return DrawTables(
        np.concatenate(entries.entries), len(entries.nodes.weights), np.array(entries.runs),
        np.concatenate(entries.pairs).reshape(-1), np.concatenate(entries.joint), words, bits, least,
        *orders, np.array(tables.memories), np.array(dims), stores, tiles, axes,
        *_constants(space, tables.dims), len(space.sizes))


def _constants(space: SpaceArrays, dims: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of steps ``(s * d, b)`` that are always 1; and those of ranks that never change, and these."""
    slots, width = len(space.slots), len(space.sizes)
    rests = ~np.isin(np.arange(width), dims)
    ones = np.broadcast_to(rests, (slots, width)).copy()
    ones[-1] = True
    still = np.broadcast_to(ranked(still_keys(space)[:, None])[:, 0], (slots, width)).reshape(-1)
    rows = np.flatnonzero(rests | (space.slots[:, KIND] == SPATIAL)[:, None])
    return np.flatnonzero(ones), np.stack([rows, still[rows]], axis=1).astype(np.int64)


def chain_total(tables: SpaceTables) -> float:
    """Return how many chains all dimensions have."""
    return sum(float(split.ways.sum(dtype=np.float64)) for split in tables.splits)


class _Pruning:
    """Leaves out choices that do not fit the memories even if all other dimensions are 1."""

    def __init__(self, space: SpaceArrays, dims: list[int], extents: NDArray[np.int32]) -> None:
        self.stores, self.tiles, self.axes = (part.tolist() for part in capacity_checks(space, dims))
        self.extents = extents

    def keep(self, bundle: Bundle) -> Bundle:
        """Return the bundle without them."""
        good = np.ones(len(bundle.codes), dtype=np.bool_)
        for slot, *store in self.stores:
            good &= self._fits(store, {EXTENTS + place: self.extents[slot, bundle.chains[:, i]].astype(np.float64)
                                       for i, place in enumerate(bundle.places)})
        return Bundle(bundle.places, bundle.codes[good], bundle.loops[good], bundle.chains[good])

    def _fits(self, store: list[int], rows: dict[int, NDArray[np.float64]]) -> NDArray[np.bool_]:
        """Return whether tiles of the extents in ``rows`` fit."""
        capacity, first, last = store
        total = np.zeros(1)
        for word, begin, end in self.tiles[first:last]:
            tile = np.full(1, float(word))
            for p, stride, r, dilation, box in self.axes[begin:end]:
                tile = tile * axis_sides((stride, dilation), (rows.get(p, np.ones(1)), rows.get(r, np.ones(1))), box)
            total = total + tile
        return np.asarray(total <= capacity)

    def open(self, number: int, bundles: list[Bundle]) -> bool:
        """Whether choices of ``bundles``, each of which fits by itself, together may not fit a store."""
        slot, *store = self.stores[number]
        used = {row for _, begin, end in self.tiles[store[1]:store[2]] for p, _, r, *_ in self.axes[begin:end]
                for row in (p, r) if row != ONES}
        if any(used <= {EXTENTS + place for place in bundle.places} for bundle in bundles):
            return False
        largest = {EXTENTS + place: self.extents[slot, bundle.chains[:, i]].max(initial=1, keepdims=True) * 1.0
                   for bundle in bundles for i, place in enumerate(bundle.places)}
        return not self._fits(store, largest).all()


def _bundles(tables: SpaceTables, listed: list[Chains], pruning: _Pruning | None) -> list[Bundle]:
    """Return the dimensions, the smaller ones put together as long as what they can do is not too much."""
    bundles, start, width = [], 0, len(tables.space.sizes)
    for place, chains in enumerate(listed):
        loops = sum((chains.mask >> t & 1) << (width * t + tables.dims[place]) for t in range(len(tables.memories)))
        numbers = np.arange(start, start + len(chains.steps), dtype=np.int32)[:, None]
        bundle = Bundle((place,), tables.splits[place].codes[chains.split], np.asarray(loops), numbers)
        bundles.append(pruning.keep(bundle) if pruning else bundle)
        start += len(chains.steps)
    while True:
        bundles.sort(key=lambda bundle: len(bundle.codes))
        if len(bundles) < 2 or len(bundles[0].codes) * len(bundles[1].codes) > MOST_JOINT:
            return bundles
        both = _together(tables, bundles[0], bundles[1])
        bundles[:2] = [pruning.keep(both) if pruning else both]


def _together(tables: SpaceTables, first: Bundle, second: Bundle) -> Bundle:
    (one, at), (two, along) = (np.unique(bundle.codes, return_inverse=True) for bundle in (first, second))
    codes = tables.lanes.times(one, two)[at[:, None], along[None, :]]
    a, b = np.nonzero(codes != DEAD)
    return Bundle(first.places + second.places, codes[a, b], first.loops[a] | second.loops[b],
                  np.hstack([first.chains[a], second.chains[b]]))


class _Entries:
    """The entries to draw from, bundle after bundle, in the order that needs fewest."""

    def __init__(self, tables: SpaceTables, bundles: list[Bundle]) -> None:
        self.tables, self.nodes = tables, tables.nodes()
        tries = [(self._linked(order), order) for order in permutations(bundles)] if len(bundles) < 4 else [
            (self._linked(bundles), bundles)]
        self.links, chosen = min(tries, key=lambda found: sum(len(link) for _, link, _ in found[0]))
        self.bundles = [self._sorted(bundle) for bundle in chosen]
        self.count = sum(len(link) for _, link, _ in self.links) * len(self.nodes.weights)
        self.total = 0.0
        self.entries: list[NDArray[np.int64]] = []
        self.runs: list[tuple[int, ...]] = []
        self.pairs: list[NDArray[np.int64]] = []
        self.chains: list[NDArray[np.int32]] = []
        self.joint: list[NDArray[np.int64]] = []

    @staticmethod
    def _sorted(bundle: Bundle) -> Bundle:
        order = np.lexsort((bundle.loops, bundle.codes))
        return Bundle(bundle.places, bundle.codes[order], bundle.loops[order], bundle.chains[order])

    def _linked(self, bundles: Sequence[Bundle]) -> list[tuple[int, NDArray[Any], NDArray[Any]]]:
        """Return for each bundle the number of rows, and its pairs ``(p, 3)``: row, group, row after; and its groups.

        Groups ``(g, 4)`` are choices of the same code and loops: these, where they begin and how many there are.
        """
        rows, found = self.tables.lanes.first, []
        for place, bundle in enumerate(bundles):
            kinds, begin, many = np.unique(np.sort(_key(bundle), order=("code", "loops")), return_index=True,
                                           return_counts=True)
            groups = np.stack([kinds["code"], kinds["loops"], begin, many], axis=1)
            codes, group_code = np.unique(groups[:, 0], return_inverse=True)
            reached = self.tables.lanes.times(rows, codes)
            if place + 1 == len(bundles):
                reached = np.where((reached != DEAD) & self.tables.lanes.legal(np.maximum(reached, 0).reshape(-1))
                                   .reshape(reached.shape), 0, DEAD)
            reached = reached[:, group_code]
            row, group = np.nonzero(reached != DEAD)
            after, target = np.unique(reached[row, group], return_inverse=True)
            found.append((len(rows), np.stack([row, group, target], axis=1), groups))
            rows = after
        return found

    def write(self) -> None:
        """Write entries, from the last bundle to the first; then what they lead to."""
        ahead = np.ones((len(self.nodes.weights), 1))
        for (rows, link, groups), bundle in zip(reversed(self.links), reversed(self.bundles), strict=True):
            odds = (self._weights(bundle, groups[:, 1]) * groups[:, 3])[:, link[:, 1]] * ahead[:, link[:, 2]]
            starts = np.searchsorted(link[:, 0], np.arange(rows))
            ahead = np.stack([np.bincount(link[:, 0], weights=row, minlength=rows) for row in odds])
            if bundle is self.bundles[0]:
                self.total = float((ahead[:, 0] * self.nodes.weights).sum()) if len(link) else 0.0
                odds, starts = (odds * self.nodes.weights[:, None]).reshape(1, -1), starts[:1]
            self.entries.insert(0, np.concatenate([aliases(row, starts) for row in odds]))
        entry, pair, place, wide, columns = 0, 0, 0, 0, 0
        for number, ((_, link, groups), bundle) in enumerate(zip(self.links, self.bundles, strict=True)):
            known, joint, width, bits = choice_words(bundle.chains, columns)
            self.runs.append((entry, len(link), pair, place, len(bundle.places), wide, width, bits))
            _, loops, begin, many = groups[link[:, 1]].T
            begin = begin + (0 if width else columns)
            after = self._rows(number + 1)[link[:, 2]]
            inside = 0 if len(self.tables.memories) * len(self.tables.space.sizes) > LOOP_BITS else loops
            self.pairs.append(np.stack([(inside << COUNT_BITS | many) << COUNT_BITS | begin, after, loops], axis=1))
            self.chains.append(known)
            self.joint.append(joint)
            entry, pair, place = entry + len(self.entries[number]), pair + len(link), place + len(bundle.places)
            wide, columns = wide + len(joint), columns + len(known)

    def _rows(self, number: int) -> NDArray[np.int64]:
        """Return where the pairs of each row of a bundle begin, and how many there are; one row after the last."""
        if number == len(self.links):
            return np.zeros(1, dtype=np.int64)
        rows, link, _ = self.links[number]
        starts = np.searchsorted(link[:, 0], np.arange(rows))
        return np.asarray(starts << ROW_BITS | np.diff(np.append(starts, len(link))))

    def _weights(self, bundle: Bundle, loops: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ``(x, g)``: what each node gives for loops."""
        found, width = np.ones((len(self.nodes.weights), len(loops))), len(self.tables.space.sizes)
        for place in bundle.places:
            d = self.tables.dims[place]
            masks = sum((loops >> (width * t + d) & 1) << t for t in range(len(self.tables.memories)))
            found *= self.nodes.factors[place][:, masks]
        return found


def _key(bundle: Bundle) -> NDArray[Any]:
    keys = np.empty(len(bundle.codes), dtype=[("code", np.int64), ("loops", np.int64)])
    keys["code"], keys["loops"] = bundle.codes, bundle.loops
    return keys


def list_chains(counter: ChainCounter, splits: Splits) -> Chains | None:
    """Return all chains of a dimension, or None where too many are looked at."""
    lanes, extents = counter.lanes, counter.extents
    steps = np.empty((1, 0), dtype=np.int32)
    place, codes, masks = np.array([len(extents) - 1]), lanes.first, np.zeros(1, dtype=np.int64)
    for s in range(counter.slots):
        good = counter.within(s)[place]
        steps, place, codes, masks = steps[good], place[good], codes[good], masks[good]
        least, most = counter.bounds(s)
        onward = _onward(counter, s, place)
        if onward is None:
            return None
        chosen, inside = onward
        counts = -(-extents[place[chosen]] // extents[inside])
        kept = np.flatnonzero((counts >= least) & (counts <= most))
        chosen, inside, counts = chosen[kept], inside[kept], counts[kept]
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


def _onward(counter: ChainCounter, s: int, place: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Return which of the chains go on to which extents inside slot ``s``, also to their own; None if too many."""
    if counter.bounds(s)[1] == 1:
        return np.arange(len(place)), place
    grid, wide = counter.grids[s], np.full(len(place), counter.size)
    _, known = grid.places(np.zeros((1, len(counter.extents)), dtype=np.int64), inside=True)
    start, stop = grid.span(place, (np.full(len(place), 2), wide), inside=True)
    if (stop - start).sum() > MOST_PARTIAL:
        return None
    chosen = np.repeat(np.arange(len(place)), stop - start)
    at = np.arange(len(chosen)) - np.repeat(np.cumsum(stop - start) - stop, stop - start)
    return np.concatenate([np.arange(len(place)), chosen]), np.concatenate([place, known[at]])


def _times(counter: ChainCounter, s: int, codes: Codes, counts: NDArray[np.int64]) -> Codes:
    """Return the codes with counts along side ``s`` besides, one by one."""
    known, code = np.unique(codes, return_inverse=True)
    some, count = np.unique(counts, return_inverse=True)
    along = counter.lanes.alone(s, some)
    table = np.where(along == DEAD, DEAD, counter.lanes.times(known, np.maximum(along, 0)))
    return np.asarray(table[code, count])


def _orders(tables: SpaceTables) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]] | None:
    """Return where the orders of every memory and set of loops stand, in equal numbers where it can be, and these."""
    space, width = tables.space, len(tables.space.sizes)
    spans = np.zeros((len(tables.memories), 1 << width), dtype=np.int64)
    alike = np.zeros((len(tables.memories), 2), dtype=np.int64)
    found: list[NDArray[np.int32]] = []
    count, known = 0, dict[tuple[int, int], tuple[int, NDArray[np.int32]]]()
    for t, s in enumerate(tables.memories):
        looping = sum(1 << d for d, split in zip(tables.dims, tables.splits, strict=True)
                      if split.ways[:, np.arange(split.ways.shape[1]) >> t & 1 == 1].any())
        free = space.slots[s, ORDER_COUNT] == 0
        keys = {mask: (-1 if free else s, mask) for mask in range(1 << width) if not mask & ~looping}
        for mask, key in keys.items():
            if key not in known:
                known[key] = count, _packed(every_order(space, mask) if free else listed_orders(space, s, mask))
                found.append(known[key][1])
                count += len(found[-1])
                if count > MOST_ORDERS:
                    return None
            spans[t, mask] = known[key][0] << ORDER_BITS | len(known[key][1])
        each = lcm(*(len(known[key][1]) for key in keys.values()))
        if each << width <= MOST_REPEATED:
            alike[t] = count, each
            found.append(np.zeros(each << width, dtype=np.int32))
            count += len(found[-1])
            for mask, key in keys.items():
                found[-1][mask * each:(mask + 1) * each] = np.tile(known[key][1], each // len(known[key][1]))
    return spans, alike, np.concatenate(found)


def _packed(ranks: NDArray[Any]) -> NDArray[np.int32]:
    shifts = NIBBLE * np.arange(ranks.shape[1])
    return np.asarray((ranks.astype(np.int64) << shifts).sum(axis=1).astype(np.int32))


def every_order(space: SpaceArrays, mask: int) -> NDArray[Any]:
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
    """Return what `draws` checks: stores, tiles and axes.

    A store is a slot, its bits, and where its tiles begin and end; a tile is the bits of a word, and where its axes
    begin and end; an axis is a row of extents, its coefficient, the same of a second one, or of ones, and whether tiles
    take the smallest box around their words.
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
            axes += [[EXTENTS + p, stride, ONES if r < 0 else EXTENTS + r, dilation, box]
                     for tensor, p, stride, r, dilation, box in known if tensor == t]
            tiles.append([word, first, len(axes)])
        stores.append([s, capacity, start, len(tiles)])
    return tuple(np.array(rows, dtype=np.int64).reshape(-1, width)
                 for rows, width in ((stores, 4), (tiles, 3), (axes, 5)))
