"""What constraints of a space leave for bounds: where lanes spread, how far loops cut tiles, what runs innermost.

Where they keep a dimension off an array, no lanes are had from it, and none that share the words of a tensor which does
not use it. So fewer lanes may be in use than there are, and steps, words and ports are bounded the higher. Where an
order has dimensions further in than one that runs innermost, these do not loop at that memory: what rests there does so
at the cost of tiles that are whole along them.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isqrt, prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import Fanout
from tilewright.workload import Tensor

if TYPE_CHECKING:
    from tilewright.mapping import MapSpace

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
MOST_STATES = 1 << 11
"""States of all sides, by how many lanes are left, that are looked at."""
LARGEST_WHOLE = 2.0**53
"""Floats up to it hold whole numbers exactly."""


@dataclass(frozen=True)
class LaneSide:
    """One side of an array, both sides of one of no fixed shape: its lanes, and by dimension the fewest and most."""

    array: str
    axes: str
    lanes: int
    dims: tuple[tuple[str, int, int], ...]

    def most(self, dims: Collection[str]) -> int:
        """Return how many lanes some dimensions may have together."""
        return min(self.lanes, prod(most for name, _, most in self.dims if name in dims))

    @property
    def left(self) -> Whole:
        """What loops may leave of the lanes for others, in order."""
        few = np.arange(1, isqrt(self.lanes) + 1)
        return np.unique(np.append(few, self.lanes // few))


Extents = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LoopsOutside:
    """What may lie outside a memory: each kind of innermost loop in time, with the least extents that it leaves inside.

    Its name is empty where nothing may loop there. ``widest`` are the largest extents that loops further in allow.
    """

    starts: tuple[tuple[str, Extents], ...]
    widest: Extents


@dataclass(frozen=True)
class Leeway:
    """What the constraints of a space leave, whatever memories keep."""

    sides: tuple[LaneSide, ...]
    """Those of all arrays."""
    sizes: tuple[tuple[str, int], ...]
    stages: tuple[tuple[str, "LoopsOutside"], ...]
    """By memory what may lie outside it."""

    @classmethod
    def of(cls, space: "MapSpace") -> "Leeway | None":
        """Return the rules of ``space``; None where its constraints leave all open.

        They are left open on machines where one memory serves many lanes, too, as what it keeps bars dimensions there.
        """
        given = space.constraints
        if not (given.loops or given.factors or given.tiles or given.orders) or any(
                memory.shared for memory in space.accelerator.memories):
            return None
        bands, levels = space.arrays.bands, space.accelerator.levels
        inner = np.maximum.accumulate(bands.tile_least[::-1], axis=0)[::-1]
        inner = np.vstack([inner[1:], np.ones_like(inner[:1])])
        most = np.minimum(bands.most, -(-np.minimum.accumulate(bands.tile_most, axis=0) // inner))
        slots = space.layout.slots
        own = {level: [s for s, slot in enumerate(slots) if slot.level == level] for level in range(len(levels))}
        sides = [side for level, array in enumerate(levels) if isinstance(array, Fanout)
                 for side in _sides(array, own[level], (space, bands.least, most))]
        memories = space.layout.temporal
        return cls(tuple(sides), space.operator.dimensions, tuple(
            (levels[slots[s].level].name, _stage(space, memories, s, most)) for s in memories[1:]))

    def stage(self, memory: str) -> "LoopsOutside":
        """Return what may lie outside a memory, not the outermost."""
        return dict(self.stages)[memory]

    def used(self, arrays: Collection[Fanout]) -> int:
        """Return how many lanes of some arrays together may be in use."""
        names = [array.name for array in arrays]
        return self._lanes([side for side in self.sides if side.array in names], dict(self.sizes))

    def sharing(self, tensor: Tensor, arrays: Collection[Fanout], *, sliding: bool) -> int:
        """Return how many lanes of some arrays may share a word of a tensor, those along ``sliding`` axes or not."""
        slides = {d for axis in tensor.axes if len(axis.terms) > 1 for d in axis.dimensions if sliding}
        merging = {array.name: [axis for axis, can in zip("XY", array.merges(tensor.name, tensor.role), strict=True)
                                if can] for array in arrays}
        return self._lanes([side for side in self.sides if set(side.axes) & set(merging.get(side.array, ()))],
                           [name for name, _ in self.sizes if name in slides or name not in tensor.dimensions])

    def _lanes(self, sides: list[LaneSide], dims: Collection[str]) -> int:
        """Return how many lanes some dimensions may have along some sides; no dimension more than its size."""
        each = [min(size, prod(most for side in sides for own, _, most in side.dims if own == name))
                for name, size in self.sizes if name in dims]
        return min(prod(each), prod(side.most(dims) for side in sides))

    def steps(self, perfect: bool) -> int | None:
        """Return the fewest steps of compute: the least product of ``ceil(size / lanes)`` that the sides allow.

        Dimension by dimension, by how many lanes are left of each side; None where that is too much to tell. Where
        ``perfect``, the lanes of a dimension divide its size.
        """
        many = prod(2 * isqrt(side.lanes) for side in self.sides) > MOST_STATES
        return None if many else _fewest(self, perfect)


@lru_cache(maxsize=256)
def _fewest(rules: Leeway, perfect: bool) -> int:
    left = [side.left for side in rules.sides]
    least: Floats = np.ones([len(own) for own in left])
    for name, size in rules.sizes:
        lanes: Floats = np.ones((1, 1))
        axes: list[int] = []
        for at, side in enumerate(rules.sides):
            for few, most in ((few, most) for other, few, most in side.dims if other == name):
                counts = np.minimum(left[at][:, None] // left[at], most)
                lanes, axes = np.kron(lanes, np.where(counts < few, 0.0, counts)).astype(np.float64), [*axes, at]
        last = range(-len(axes), 0)
        moved = np.moveaxis(least, axes, last)
        flat = moved.reshape(*moved.shape[:moved.ndim - len(axes)], -1)
        flat = (flat[..., None, :] * _steps(size, lanes, perfect)).min(axis=-1)
        least = np.moveaxis(flat.reshape(moved.shape), last, axes)
    found = float(least.flat[-1])
    return int(found if found <= LARGEST_WHOLE else found * (1 - 1e-12)) if found < inf else 1


def _steps(size: int, lanes: Floats, perfect: bool) -> Floats:
    """Return the steps that a dimension takes on so many lanes, infinite on none."""
    if perfect:
        divisors = np.array([each for each in range(1, min(size, int(lanes.max())) + 1) if size % each == 0])
        lanes = np.where(lanes > 0, divisors[np.maximum(0, np.searchsorted(divisors, lanes, side="right") - 1)], 0)
    with np.errstate(divide="ignore"):
        steps: Floats = np.ceil(size / lanes)
    return steps


def _sides(array: Fanout, own: list[int], counts: tuple["MapSpace", Whole, Whole]) -> Iterator[LaneSide]:
    """Yield the sides of an array with its slots, where counts (s, d) are from some up to others."""
    space, least, most = counts
    for part in [own] if array.one_piece else [[s] for s in own]:
        axes = "".join(space.layout.slots[s].axis for s in part)
        lanes = array.side(axes)
        ranges = zip(space.layout.dimensions, least[part].prod(axis=0).tolist(),
                     np.minimum(most[part].prod(axis=0), lanes).tolist(), strict=True)
        yield LaneSide(array.name, axes, lanes, tuple(each for each in ranges if each[2] > 1))


def _stage(space: "MapSpace", memories: list[int], at: int, most: Whole) -> LoopsOutside:
    """Return what may lie outside the memory at a slot, where counts are up to ``most`` (s, d).

    The innermost loop in time is at some memory further out: there, no dimension loops that all orders with such a
    loop have further in, and at memories further in none does.
    """
    sizes = space.arrays.sizes.astype(np.int64)
    names, bands = space.layout.dimensions, space.arrays.bands
    starts: dict[tuple[str, tuple[int, ...]], None] = {}
    counts = most.copy()
    for s in reversed([s for s in memories if s < at]):
        place = space.layout.places[s]
        for d in np.flatnonzero((most[s] > 1) & (sizes > 1)).tolist():
            own = counts.copy()
            own[s, [names.index(name) for name in space.constraints.further_in(place, names[d], names)]] = 1
            starts[names[d], tuple(_left(sizes, own[:at]).tolist())] = None
        counts[s] = 1
    starts = starts or {("", tuple(_left(sizes, counts[:at]).tolist())): None}
    widest = np.minimum(bands.tile_most[:at + 1].min(axis=0), np.minimum(sizes, most[at:].astype(float).prod(axis=0)))
    return LoopsOutside(tuple((name, tuple(zip(names, lows, strict=True))) for name, lows in starts),
                 tuple(zip(names, widest.astype(np.int64).tolist(), strict=True)))


def _left(sizes: Whole, counts: Whole) -> Whole:
    """Return the least extents inside loops that run so often at most (s, d)."""
    left: Whole = np.ceil(sizes / np.minimum(counts.astype(float).prod(axis=0), sizes) * (1 - 1e-12)).astype(np.int64)
    return left
