"""Which steps the tilings and the bounds of a map space allow, and which extents lead to a whole chain of them.

The chain of one dimension begins with its size D and ends with 1; the loop at slot ``s`` leads from the extent outside
it to the extent inside, ``count = ceil(outside / inside)`` times. Remainders follow equation 5 of Ruby (Horeni et al.,
ISPASS 2022): full tiles are factored exactly, so that an extent inside divides the one outside unless that is D; and a
slot that may have no remainder has a count that divides ``ceil(D / inside)``, what is left to it and all slots outside.
"""

from math import isqrt
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import Accelerator
from tilewright.mapping.batch import Layout
from tilewright.mapping.spaces.rules.constraints import Constraints

Tiling = Literal["perfect", "imperfect", "ruby", "ruby-s", "ruby-t"]
TILINGS: tuple[Tiling, ...] = get_args(Tiling)
"""How steps may split what is outside: exactly, anyhow, or with remainders everywhere, in space alone or time alone."""

_REMAINDERS = {"perfect": (), "imperfect": ("T", "S"), "ruby": ("T", "S"), "ruby-s": ("S",), "ruby-t": ("T",)}
MOST_EXTENT = np.int64(2**31 - 1)

Marks = NDArray[np.bool_]


class Bands(NamedTuple):
    """Bounds at every slot ``s`` for every dimension ``d``, all ``(s, d)`` int64.

    ``least`` and ``most`` are of the count (1 where the dimension may not loop, no more than an array has room for),
    ``tile_least`` and ``tile_most`` of the extent outside the slot.
    """

    least: NDArray[np.int64]
    most: NDArray[np.int64]
    tile_least: NDArray[np.int64]
    tile_most: NDArray[np.int64]


def common_tiling(first: Tiling, second: Tiling) -> Tiling:
    """Return the tiling of what two tilings share (perfect < ruby-s, ruby-t < ruby < imperfect).

    A chain of Ruby-S and Ruby-T has no remainder in time nor in space: it is perfect.
    """
    if {first, second} == {"ruby-s", "ruby-t"}:
        return "perfect"
    order: tuple[Tiling, ...] = ("perfect", "ruby-s", "ruby-t", "ruby", "imperfect")
    return min(first, second, key=order.index)


def exact_slots(tiling: str, layout: Layout) -> NDArray[np.int64]:
    """Return ``(s)``: 1 where a slot may have no remainder."""
    ragged = _REMAINDERS[tiling]
    return np.array([("T" if slot.axis == "T" else "S") not in ragged for slot in layout.slots], dtype=np.int64)


def lane_floors(constraints: Constraints, layout: Layout, accelerator: Accelerator) -> NDArray[np.int64]:
    """Return ``(s)``: at the first side of every array the lanes that it must have in use, 0 elsewhere."""
    floors = np.zeros(len(layout.slots), dtype=np.int64)
    for s, slot in enumerate(layout.slots):
        if slot.axis == "X":
            level = accelerator.levels[slot.level]
            floors[s] = constraints.lanes_needed(level.name, getattr(level, "instances", 1))
    return floors


def bands(constraints: Constraints, places: list[str], sizes: dict[str, int], free: NDArray[np.uint8],
          sides: NDArray[np.int64]) -> Bands:
    """Return all bounds as arrays; ``sides`` ``(s)`` is the most that fits along a side, 0 at memories."""
    size = np.array(list(sizes.values()), dtype=np.int64)
    least = np.ones(free.shape, dtype=np.int64)
    most = np.where(free != 0, size, 1)
    tile_least, tile_most = np.ones_like(least), np.broadcast_to(size, free.shape).copy()
    at = {name: d for d, name in enumerate(sizes)}
    for s, place in enumerate(places):
        factors = constraints.factors.get(place, {})
        for name, bounds in factors.items():
            least[s, at[name]] = bounds.least
            most[s, at[name]] = min(most[s, at[name]], bounds.most or MOST_EXTENT)
        for name, bounds in constraints.tiles.get(place, {}).items():
            tile_least[s, at[name]], tile_most[s, at[name]] = bounds.clamped(sizes[name])
        if sides[s]:
            others = np.maximum(np.prod(least[s]) // least[s], 1) if factors else 1
            most[s] = np.minimum(most[s], sides[s] // others)
    return Bands(least, most, tile_least, tile_most)


class Chains:
    """The extents from which a chain of one dimension reaches its ends.

    Parameters
    ----------
    size
        Of the dimension.
    band
        ``(s)`` bounds of the dimension.
    whole
        Whether the extent inside must divide the one outside (unless that is the size).
    exact
        ``(s)``: whether the slot may have no remainder.
    """

    def __init__(self, size: int, band: Bands, whole: bool, exact: NDArray[np.int64]) -> None:
        self.size, self.band, self.whole, self.exact = size, band, whole, exact
        self.slots = len(exact)
        extents = np.arange(size + 1)
        # What is left for a slot and those outside it, by the extent inside: ceil(D / inside).
        self.left = -(-size // np.maximum(extents, 1))
        self.extents = extents

    def outward(self) -> Marks:
        """Return ``(s + 1, size + 1)``: whether an extent outside a slot (last: inside all) can come from the size."""
        found = np.zeros((self.slots + 1, self.size + 1), dtype=np.bool_)
        found[0, self.size] = True
        for s in range(self.slots):
            found[s + 1] = self._inside_of(found[s] & self._tiles(s), s)
        return found

    def inward(self) -> Marks:
        """Return ``(s + 1, size + 1)``: whether an extent outside a slot (last: inside all) can come down to 1."""
        found = np.zeros((self.slots + 1, self.size + 1), dtype=np.bool_)
        found[-1, 1] = True
        for s in range(self.slots - 1, -1, -1):
            found[s] = self.outside_of(found[s + 1], s) & self._tiles(s)
        return found

    def _tiles(self, s: int) -> Marks:
        return np.asarray((self.extents >= self.band.tile_least[s]) & (self.extents <= self.band.tile_most[s]))

    def _divides(self, s: int, count: int, reach: int) -> Marks:
        """Return for extents inside from 1 to ``reach`` whether slot ``s`` may have the count."""
        return np.asarray(self.left[1:reach + 1] % count == 0) if self.exact[s] else np.ones(reach, dtype=np.bool_)

    def _inside_of(self, outside: Marks, s: int) -> Marks:
        """Return the extents inside slot ``s`` that go with any of those outside."""
        least, most = int(self.band.least[s]), int(self.band.most[s])
        found = outside.copy() if least <= 1 <= most else np.zeros_like(outside)
        least = max(least, 2)
        if most < least:
            return found
        if not self.whole:
            total = np.concatenate([[0], np.cumsum(outside)])
            top, bottom = (np.minimum(self.extents * count, self.size) + 1 for count in (most, least - 1))
            found[1:] |= (total[top] > total[bottom])[1:]
            return found
        if outside[self.size]:
            found[1:] |= ((self.left >= least) & (self.left <= most))[1:]
        for count, reach in self._small_counts(least, most):
            found[1:reach + 1] |= outside[count:count * reach + 1:count] & self._divides(s, count, reach)
        for inside, counts in self._large_counts(least, most, s):
            found[inside] |= outside[inside * counts].any()
        return found

    def outside_of(self, inside: Marks, s: int) -> Marks:
        """Return the extents outside slot ``s`` that go with any of those inside."""
        least, most = int(self.band.least[s]), int(self.band.most[s])
        found = inside.copy() if least <= 1 <= most else np.zeros_like(inside)
        least = max(least, 2)
        if most < least:
            return found
        if not self.whole:
            total = np.concatenate([[0], np.cumsum(inside)])
            bottom, top = -(-self.extents // most), -(-self.extents // (least - 1))
            found[1:] |= (total[np.maximum(top, bottom)] > total[bottom])[1:]
            return found
        found[self.size] |= (inside & (self.left >= least) & (self.left <= most))[1:].any()
        for count, reach in self._small_counts(least, most):
            found[count:count * reach + 1:count] |= inside[1:reach + 1] & self._divides(s, count, reach)
        for extent, counts in self._large_counts(least, most, s):
            if inside[extent]:
                found[extent * counts] = True
        return found

    def _small_counts(self, least: int, most: int) -> list[tuple[int, int]]:
        """Return counts up to the root of the size, each with the largest extent inside that it may multiply."""
        return [(count, self.size // count) for count in range(least, min(most, isqrt(self.size)) + 1)]

    def _large_counts(self, least: int, most: int, s: int) -> list[tuple[int, NDArray[np.int64]]]:
        """Return extents inside, each with the counts above the root of the size that may multiply it."""
        least = max(least, isqrt(self.size) + 1)
        found = []
        for inside in range(1, self.size // least + 1):
            counts = np.arange(least, min(most, self.size // inside) + 1)
            found.append((inside, counts[self.left[inside] % counts == 0] if self.exact[s] else counts))
        return found


def as_bits(marks: Marks, width: int) -> NDArray[np.int64]:
    """Return ``(..., width)``: the marks as bits of 64-bit words, the lowest first."""
    padded = np.zeros((*marks.shape[:-1], width * 64), dtype=np.bool_)
    padded[..., :marks.shape[-1]] = marks
    return np.packbits(padded, axis=-1, bitorder="little").view(np.int64)
