"""The chains of steps of one dimension, counted by the lanes that they use and the memories where they loop.

A chain is built from inside: its extent is 1 inside all slots and the dimension's size outside all. Tables hold, for
every set of lanes used and memories looped at so far (a row) and every extent (a column), how many chains lead there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.spaces.counting.lanes import DEAD, Codes, LaneStates
from tilewright.mapping.spaces.rules.arrays import EXACT, SpaceArrays

# Whole numbers, or real ones where they grow too large.
Ways = NDArray[Any]
Span = tuple[NDArray[Any], NDArray[Any]]

MOST_CELLS = 6_000_000
"""Most numbers in one table: about 50 MB, of which a few are alive at a time."""

MOST_LINKS = 3_000_000
"""Most steps from one extent to another that the tables of one dimension may look at, at one slot."""

MOST_EXTENTS = 300_000
"""Most extents that whole counts may reach."""

MOST_TRIALS = 50_000_000
"""Most trial divisions to find the divisors of what is left at the extents."""


class TooLarge(Exception):
    """A table would need more memory than a count may take."""


class Splits(NamedTuple):
    """How often a dimension splits in a given way.

    ``codes`` ``(n)`` are states of the lanes, ascending; ``ways`` ``(n, m)`` counts the chains for each of them and
    each mask, whose bit t says whether the dimension loops at the t-th memory.
    """

    codes: Codes
    ways: Ways


class Loose:
    """The counts between extents of one dimension: any extent inside may stand below any larger one outside.

    Extents are known by their places among ``extents``. Ways that end at (or set out from) an extent stand in a row of
    *places*, so that those through counts from ``low`` to ``high`` stand side by side.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.extents = np.arange(1, size + 1)

    def spread(self, ways: Ways, low: int, high: int) -> Ways:
        """Return by extent outside the ways that lead there through counts from ``low`` (above 1) to ``high``."""
        jumps = np.zeros((len(ways), self.size + 1), dtype=ways.dtype)
        starts = jumps[:, low - 1::low - 1]
        starts += ways[:, :starts.shape[1]]
        ends = jumps[:, high::high]
        ends -= ways[:, :ends.shape[1]]
        return np.cumsum(jumps[:, :-1], axis=1)

    def gather(self, ways: Ways, low: int, high: int, width: int) -> Ways:
        """Return by extent inside, up to ``width`` of them, the ways that lead on through such counts."""
        total = np.concatenate([np.zeros((len(ways), 1), dtype=ways.dtype), np.cumsum(ways, axis=1)], axis=1)
        top, bottom = (np.minimum(self.extents[:width] * count, self.size) for count in (high, low - 1))
        return np.asarray(total[:, top] - total[:, bottom])

    def places(self, ways: Ways, inside: bool) -> tuple[Ways, NDArray[Any]]:
        """Return the ways by place, and the extent (inside, or else outside) that each place stands for."""
        return ways, np.arange(self.size)

    def span(self, extents: NDArray[Any], counts: tuple[NDArray[Any], NDArray[Any]], inside: bool) -> Span:
        """Return where the places of the extents inside (or else outside) the given ones begin and end."""
        low, high = counts
        extents = extents + 1
        if inside:
            return -(-extents // high) - 1, -(-extents // (low - 1)) - 1
        return np.minimum(extents * (low - 1), self.size), np.minimum(extents * high, self.size)


class Whole:
    """As `Loose`, where an extent inside divides the one outside, unless that is the size.

    With ``exact`` nothing may be left over.
    """

    def __init__(self, size: int, extents: NDArray[np.int64], exact: bool, most: int) -> None:
        self.extents = extents
        inside, counts = _counts_of(size, extents, exact, most)
        left = -(-size // inside)
        outside = np.where(counts == left, size, inside * counts)
        # What no chain reaches is no extent, but may lie outside one that only other slots reach.
        places = np.searchsorted(extents, outside)
        good = extents[places] == outside
        inside, counts, self.outside = inside[good], counts[good], places[good]
        self.inside, self.counts = np.searchsorted(extents, inside), counts
        self.by_inside = np.lexsort((self.counts, self.inside))
        self.by_outside = np.lexsort((self.counts, self.outside))
        self.size = size

    def spread(self, ways: Ways, low: int, high: int) -> Ways:
        """See `Loose`."""
        return self._moved(ways, self._chosen(self.by_outside, low, high), self.inside, self.outside)

    def gather(self, ways: Ways, low: int, high: int, width: int) -> Ways:
        """See `Loose`."""
        return self._moved(ways, self._chosen(self.by_inside, low, high), self.outside, self.inside)[:, :width]

    def places(self, ways: Ways, inside: bool) -> tuple[Ways, NDArray[Any]]:
        """See `Loose`."""
        extents = self.inside[self.by_outside] if inside else self.outside[self.by_inside]
        return ways[:, extents], extents

    def span(self, extents: NDArray[Any], counts: tuple[NDArray[Any], NDArray[Any]], inside: bool) -> Span:
        """See `Loose`."""
        order, known = (self.by_outside, self.outside) if inside else (self.by_inside, self.inside)
        keys = known[order] * (self.size + 1) + self.counts[order]
        low, high = (extents * (self.size + 1) + count for count in counts)
        return np.searchsorted(keys, low), np.searchsorted(keys, high, side="right")

    def _chosen(self, order: NDArray[np.intp], low: int, high: int) -> NDArray[np.intp]:
        counts = self.counts[order]
        return np.asarray(order[(counts >= low) & (counts <= high)])

    def _moved(self, ways: Ways, chosen: NDArray[np.intp], source: NDArray[np.intp], target: NDArray[np.intp]) -> Ways:
        moved = np.zeros((len(ways), len(self.extents)), dtype=ways.dtype)
        if len(chosen):
            ends, starts = np.unique(target[chosen], return_index=True)
            moved[:, ends] = np.add.reduceat(ways[:, source[chosen]], starts, axis=1)
        return moved


Grid = Loose | Whole


def _counts_of(size: int, extents: NDArray[np.int64], exact: bool,
               most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every extent inside with every count from 2 to ``most`` that a slot may have there."""
    extents = extents[:-1]
    left = -(-size // extents)
    if not exact:
        found = np.maximum(np.minimum(left, most) - 1, 0)
        # Nearly every count leads to another extent.
        if found.sum() > MOST_LINKS or found.max(initial=0) > MOST_EXTENTS:
            raise TooLarge
        inside = np.repeat(extents, found)
        return inside, np.arange(len(inside)) - np.repeat(np.cumsum(found) - found, found) + 2
    known = {number: divisors[(divisors > 1) & (divisors <= most)] for number, divisors in all_divisors(left).items()}
    chosen = [known[number] for number in left.tolist()]
    lengths = [len(divisors) for divisors in chosen]
    if sum(lengths) > MOST_LINKS:
        raise TooLarge
    return np.repeat(extents, lengths), np.concatenate([np.zeros(0, dtype=np.int64), *chosen])


def all_divisors(numbers: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Return the divisors of each number, ascending.

    Raises `TooLarge` if there are too many large ones.
    """
    different = np.unique(numbers)
    if np.sqrt(different).sum() > MOST_TRIALS:
        raise TooLarge
    found = {}
    trials = np.arange(1, isqrt(int(different.max(initial=1))) + 1)
    for number in different.tolist():
        tried = trials[:isqrt(number)]
        small = tried[number % tried == 0]
        large = number // small[::-1]
        found[number] = np.concatenate([small, large[1:] if small[-1] == large[0] else large])
    return found


def whole_extents(size: int, exact: list[bool], most: list[int]) -> NDArray[np.int64]:
    """Return the extents that whole counts reach from 1.

    ``exact`` tells of every slot whether it leaves no rest, ``most`` is its largest count.
    """
    if all(exact):
        return all_divisors(np.array([size]))[size]
    seen: NDArray[np.int64] = np.array([1, size])
    for rule, limit in zip(reversed(exact), reversed(most), strict=True):
        inside, counts = _counts_of(size, seen, rule, limit)
        seen = np.unique(np.append(seen, np.minimum(inside * counts, size)))
        if len(seen) > MOST_EXTENTS:
            raise TooLarge
    return seen


@dataclass(frozen=True)
class SlotTable:
    """The states after a slot, one a row: their ``codes`` and ``masks``, and ``ways`` ``(rows, extents)``."""

    codes: Codes
    masks: Codes
    ways: Ways


class Part(NamedTuple):
    """Splits whose count at the outermost side of an array is from ``low`` to ``high``.

    ``rows`` ``(n)`` are those of the table inside that slot, ``codes`` ``(n)`` and ``ways`` ``(n, m)`` as in `Splits`.
    """

    low: int
    high: int
    rows: NDArray[np.intp]
    codes: Codes
    ways: Ways


def count_bounds(space: SpaceArrays, s: int, d: int) -> tuple[int, int]:
    """Return the least and most counts of dimension ``d`` at slot ``s``."""
    most = min(int(space.bands.most[s, d]), int(space.sizes[d])) if space.free[s, d] else 1
    return int(space.bands.least[s, d]), most


class ChainCounter:
    """Counts the chains of dimension ``d`` of a space."""

    def __init__(self, space: SpaceArrays, lanes: LaneStates, d: int) -> None:
        self.space, self.lanes, self.d = space, lanes, d
        self.size, self.slots = int(space.sizes[d]), len(space.slots)
        self.memories = [s for s in range(self.slots) if s not in lanes.sides]
        self.grids = self._grids()
        self.extents = self.grids[0].extents
        # Whole numbers as long as no count can pass them; sums on the way may, as they wrap round and back.
        free = max(1, int(space.free[:, d].sum()))
        self.kind: Any = np.int64 if comb(self.size + free - 2, free - 1) < 2**62 else np.float64
        spread = [s for s in lanes.sides if self.bounds(s)[1] > 1]
        self.cut = min(spread, default=self.slots)

    def _grids(self) -> list[Grid]:
        if not self.space.whole:
            if self.size > MOST_CELLS:
                raise TooLarge
            return [Loose(self.size)] * self.slots
        rules = [bool(rule) for rule in self.space.slots[:, EXACT]]
        most = [self.bounds(s)[1] for s in range(self.slots)]
        extents = whole_extents(self.size, rules, most)
        pairs = list(zip(rules, most, strict=True))
        known: dict[tuple[bool, int], Grid] = {pair: Whole(self.size, extents, *pair) for pair in set(pairs)}
        return [known[pair] for pair in pairs]

    def bounds(self, s: int) -> tuple[int, int]:
        """Return the least and most counts of slot ``s``."""
        return count_bounds(self.space, s, self.d)

    def within(self, s: int) -> NDArray[np.bool_]:
        """Return which extents a memory may hold outside slot ``s``."""
        bands = self.space.bands
        return np.asarray((self.extents >= bands.tile_least[s, self.d]) & (self.extents <= bands.tile_most[s, self.d]))

    def splits(self) -> Splits:
        """Return how often the dimension splits in which way."""
        inner, outer = self.inner()[-1], self.outer()[self.cut]
        parts = [part for part in self.parts(inner, outer) if len(part.rows)]
        if not parts:
            return Splits(self.lanes.first[:0], np.zeros((0, 1 << len(self.memories)), dtype=self.kind))
        known, ways = _merged(np.concatenate([part.codes for part in parts]),
                              np.concatenate([part.ways for part in parts]))
        useful = ways.any(axis=1)
        return Splits(known[useful], ways[useful])

    def parts(self, inner: SlotTable, outer: SlotTable) -> Iterator[Part]:
        """Yield for the counts of slot ``cut`` the splits with these alone."""
        spans = self.spans(self.cut) if self.cut < self.slots else [(1, 1, 0)]
        for low, high, code in spans:
            ahead, width = self.ahead(outer, low, high)
            reached = self.lanes.times(np.array([code]), inner.codes)[0]
            rows = np.flatnonzero((reached != DEAD) & inner.ways[:, :width].any(axis=1))
            found = np.zeros((len(rows), 1 << len(self.memories)), dtype=self.kind)
            masks = inner.masks[rows, None] | outer.masks[None, :]
            found[np.arange(len(rows))[:, None], masks] = inner.ways[rows, :width] @ ahead.T
            yield Part(low, high, rows, reached[rows], found)

    def ahead(self, outer: SlotTable, low: int, high: int) -> tuple[Ways, int]:
        """Return the ways on from inside slot ``cut``, by extent up to the largest with such counts, and how many."""
        if low == 1:
            return outer.ways, len(self.extents)
        width = self._width(low)
        return self.grids[self.cut].gather(outer.ways, low, high, width), width

    def _width(self, low: int) -> int:
        """Return how many extents may have counts from ``low`` up outside them: those to (size - 1) / (low - 1)."""
        return int(np.searchsorted(self.extents, (self.size - 1) // max(low - 1, 1), side="right"))

    def inner(self) -> list[SlotTable]:
        """Return the tables from inside all slots to inside the outermost side of an array that may be used."""
        start = np.zeros((1, len(self.extents)), dtype=self.kind)
        start[0, 0] = 1
        layers = [SlotTable(self.lanes.first, np.zeros(1, dtype=np.int64), start)]
        for s in range(self.slots - 1, self.cut, -1):
            step = self._across if s in self.lanes.sides else self._through
            layers.append(step(layers[-1], s))
        return layers

    def outer(self) -> dict[int, SlotTable]:
        """Return by slot the tables of ways to go on from the extents outside it, through memories alone."""
        self._room_for(1 << sum(self.bounds(s)[1] > 1 for s in range(self.cut)))
        start = np.zeros((1, len(self.extents)), dtype=self.kind)
        start[0, -1] = 1
        layers = {0: SlotTable(self.lanes.first, np.zeros(1, dtype=np.int64), start)}
        for s in range(self.cut):
            layer = layers[s]
            least, most = self.bounds(s)
            ways = layer.ways * self.within(s)
            parts = [(layer.masks, ways if least <= 1 else np.zeros_like(ways))]
            if most > 1:
                bit = 1 << self.memories.index(s)
                parts.append((layer.masks | bit, self.grids[s].gather(ways, max(least, 2), most, len(self.extents))))
            layers[s + 1] = SlotTable(self.lanes.first, np.concatenate([masks for masks, _ in parts]),
                                      np.concatenate([found for _, found in parts]))
        return layers

    def _through(self, layer: SlotTable, s: int) -> SlotTable:
        """Return the table outside a memory's loops."""
        least, most = self.bounds(s)
        parts = [(layer.codes, layer.masks, layer.ways if least <= 1 else np.zeros_like(layer.ways))]
        if most > 1:
            self._room_for(2 * len(layer.ways))
            looped = self.grids[s].spread(layer.ways, max(least, 2), most)
            parts.append((layer.codes, layer.masks | 1 << self.memories.index(s), looped))
        codes, masks, ways = (np.concatenate(column) for column in zip(*parts, strict=True))
        return SlotTable(codes, masks, ways * self.within(s))

    def _across(self, layer: SlotTable, s: int) -> SlotTable:
        """Return the table outside one side of an array."""
        spans = self.spans(s)
        if not spans:
            return SlotTable(layer.codes[:0], layer.masks[:0], layer.ways[:0])
        steps = self.lanes.times(np.array([code for _, _, code in spans]), layer.codes)
        many = 1 << len(self.memories)
        keys = np.where(steps == DEAD, DEAD, steps * many + layer.masks)
        known = np.unique(keys)
        known = known[known != DEAD]
        self._room_for(len(known))
        places = np.searchsorted(known, keys)
        ways = np.zeros((len(known), len(self.extents)), dtype=self.kind)
        jumps = np.zeros((len(known), self.size + 1), dtype=self.kind) if not self.space.whole else ways
        for (low, high, _), key, place in zip(spans, keys, places, strict=True):
            rows = np.flatnonzero(key != DEAD)
            targets, merged = _merged(place[rows], layer.ways[rows, :self._width(low) if low > 1 else None])
            if low == 1:
                ways[targets] += merged
            elif self.space.whole:
                ways[targets] += self.grids[s].spread(merged, low, high)
            else:
                _jump(jumps, targets, merged, low, high)
        if not self.space.whole:
            ways += np.cumsum(jumps[:, :-1], axis=1)
        return SlotTable(known // many, known % many, ways)

    def spans(self, s: int) -> list[tuple[int, int, int]]:
        """Return the counts of side ``s``, those together that come to the same state; 1 alone: low, high, code."""
        least, most = self.bounds(s)
        if most < least:
            return []
        counts = np.arange(least, most + 1)
        codes = self.lanes.alone(s, counts)
        counts, codes = counts[codes != DEAD], codes[codes != DEAD]
        breaks = np.flatnonzero((codes[1:] != codes[:-1]) | (counts[:-1] == 1)) + 1
        return [(int(part[0]), int(part[-1]), int(code[0]))
                for part, code in zip(np.split(counts, breaks), np.split(codes, breaks), strict=True) if len(part)]

    def _room_for(self, rows: int) -> None:
        if rows * len(self.extents) > MOST_CELLS:
            raise TooLarge


def _merged(targets: NDArray[Any], ways: Ways) -> tuple[NDArray[Any], Ways]:
    """Return the different targets and the sums of the rows that go to each."""
    order = np.argsort(targets, kind="stable")
    ends, starts = np.unique(targets[order], return_index=True)
    return ends, ways[order] if len(ends) == len(ways) else np.add.reduceat(ways[order], starts, axis=0)


def _jump(jumps: Ways, targets: NDArray[np.intp], ways: Ways, low: int, high: int) -> None:
    """Add ``ways`` by extent inside to all extents outside that counts from ``low`` to ``high`` lead to.

    They lead from e to (low - 1) e + 1 ... high e. Written is where that begins and ends.
    """
    size = jumps.shape[1] - 1
    first = min(size // (low - 1), ways.shape[1])
    last = min(size // high, ways.shape[1])
    jumps[targets, low - 1:(low - 1) * first + 1:low - 1] += ways[:, :first]
    jumps[targets, high:high * last + 1:high] -= ways[:, :last]
