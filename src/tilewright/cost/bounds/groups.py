"""Tiles seen from afar: how often a dimension is cut, and how many words a tile needs at least, group by group.

A dimension that exactly one tensor does not use is what that tensor is fetched again for. Dimensions of one such tensor
form its *group*; of a tile only the product of its extents in each group is looked at. All other dimensions (used by
all, or unused by several) are left out: a tile extends by 1 along them, and nothing is fetched again for them. That
can only lower a bound.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.rows import Once
from tilewright.mapping import axis_sides
from tilewright.workload import Axis, Operator, Tensor

Floats = NDArray[np.float64]

CELLS, SIDES = 24, 8
"""Most cells of a group, and most ranges of one dimension of a sliding axis."""
MOST_BOXES = 1 << 12
"""Pairs of products of extents that are looked up in one table."""


@dataclass(frozen=True)
class Group:
    """The dimensions that ``tensor`` alone does not use.

    Products of extents are sorted into cells. Those of cell i lie from ``least[i]`` up to, not including,
    ``least[i + 1]``, and cut the group's dimensions into at least ``pieces[i]`` pieces.
    """

    tensor: str
    dimensions: tuple[str, ...]
    least: Floats
    pieces: Floats


def groups_of(operator: Operator, perfect: bool) -> tuple[Group, ...]:
    """Return the group of each tensor that has one, in the operator's order."""
    found = []
    for tensor in operator.tensors:
        names = tuple(name for name, size in operator.dimensions
                      if size > 1 and [t.name for t in operator.tensors if name not in t.dimensions] == [tensor.name])
        if names:
            found.append(Group(tensor.name, names, *_cells([operator.sizes[name] for name in names], perfect)))
    return tuple(found)


def _cells(sizes: list[int], perfect: bool) -> tuple[Floats, Floats]:
    """Return the least product of extents for each number of pieces that no smaller product reaches."""
    least, pieces = np.ones(1), np.ones(1)
    for size in sizes:
        extents = _first_extents(size)
        if perfect:
            extents = extents[size % extents == 0]
        counts = -(-size // extents)
        first = np.flatnonzero(np.diff(counts, prepend=size + 1))
        least = np.multiply.outer(least, extents[first].astype(float)).ravel()
        pieces = np.multiply.outer(pieces, counts[first].astype(float)).ravel()
        order = np.lexsort((pieces, least))
        least, pieces = least[order], pieces[order]
        kept = pieces < np.minimum.accumulate(np.concatenate(([np.inf], pieces[:-1])))
        least, pieces = least[kept], pieces[kept]
        if len(least) > 40 * CELLS:
            least, pieces = _thinned(least, pieces, 40 * CELLS)
    return _thinned(least, pieces, CELLS)


def _first_extents(size: int) -> NDArray[np.int64]:
    """Return the extents from which on fewer pieces do, and others among them, in order: some 2 sqrt(size) in all."""
    few = np.arange(1, isqrt(size) + 3)
    return np.unique(np.minimum(size, np.concatenate((few, -(-size // few)))))


def _thinned(least: Floats, pieces: Floats, most: int) -> tuple[Floats, Floats]:
    """Merge neighbouring cells, about evenly by ratio, until there are at most ``most``."""
    if len(least) <= most:
        return least, pieces
    place = np.floor(np.log(least) / np.log(least[-1]) * (most - 1) + 1e-9)
    first = np.flatnonzero(np.diff(place, prepend=-1.0))
    last = np.append(first[1:], len(least)) - 1
    return least[first], pieces[last]


@dataclass(frozen=True)
class Tiles(Once):
    """The groups of an operator, and lower bounds on the words of its tensors' tiles."""

    operator: Operator
    perfect: bool = False

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups; cells of a tile are indexed in this order."""
        return groups_of(self.operator, self.perfect)

    @cached_property
    def group_of(self) -> dict[str, int]:
        """The place of each dimension's group."""
        return {name: place for place, group in enumerate(self.groups) for name in group.dimensions}

    @cached_property
    def by_tensor(self) -> dict[str, Floats]:
        """Words of each tensor's tile in every cell."""
        return {tensor.name: self.words(tensor) for tensor in self.operator.tensors}

    def words(self, tensor: Tensor) -> Floats:
        """Return the least words of a tile of ``tensor`` in each cell, of shape (cells of the first group, ...).

        A tile holds the product of its extents in all groups but the tensor's own, where nothing slides (an axis of
        which one extent is 1 does not). Sliding axes between the same two groups are looked up in `sliding_words`;
        groups that slide otherwise count as 1.
        """
        sliding = self._slides(tensor)
        pairs = {(self.group_of[first], self.group_of[second]) for first, second in (x.dimensions for x in sliding)}
        left_out = {place for pair in pairs for place in pair}
        total = np.ones([1] * len(self.groups))
        if len(pairs) == 1 and len(left_out) == 2:
            total = self._spread(self._sliding(sliding, next(iter(pairs))), next(iter(pairs)))
        for place, group in enumerate(self.groups):
            if group.tensor != tensor.name and place not in left_out:
                total = total * self._spread(group.least, (place,))
        return total

    def _spread(self, table: Floats, places: tuple[int, ...]) -> Floats:
        """Return a table over the groups ``places``, in their order, as one over all groups."""
        shape = [1] * len(self.groups)
        for place in places:
            shape[place] = len(self.groups[place].least)
        return table.reshape(shape)

    def _slides(self, tensor: Tensor) -> list[Axis]:
        """Return the axes that slide between groups, each with the dimension of the earlier group first."""
        return [Axis(tuple(sorted(axis.terms, key=lambda term: self.group_of[term[0]]))) for axis in tensor.axes
                if len(axis.terms) > 1 and all(name in self.group_of for name in axis.dimensions)]

    def boxes(self, tensor: Tensor, least: dict[int, Floats]) -> Floats:
        """Return (n) the least words of n boxes of ``tensor`` with at least these products in the two groups named."""
        first, second = sorted(least)
        (firsts, row), (seconds, column) = (np.unique(least[at], return_inverse=True) for at in (first, second))
        if len(firsts) * len(seconds) > MOST_BOXES and len(row) > 1:  # a table of all pairs, few of which are asked for
            half = len(row) // 2
            return np.concatenate([self.boxes(tensor, {at: ends[part] for at, ends in least.items()})
                                   for part in (slice(half), slice(half, None))])
        return self._sliding(self._slides(tensor), (first, second), (firsts, seconds))[row, column]

    def _sliding(self, axes: list[Axis], pair: tuple[int, int],
                 least: tuple[Floats, Floats] | None = None) -> Floats:
        first, second = least or (self.groups[pair[0]].least, self.groups[pair[1]].least)
        moving = {name for axis in axes for name in axis.dimensions}
        spare = [any(name not in moving for name in self.groups[place].dimensions) for place in pair]
        return sliding_words(axes, self.operator.sizes, (first, second), (spare[0], spare[1]))


@lru_cache(maxsize=64)
def tiles_of(operator: Operator, perfect: bool) -> Tiles:
    """Return the tiles of an operator; kept, as they are the same on every machine."""
    return Tiles(operator, perfect)


def sliding_words(axes: list[Axis], sizes: dict[str, int], least: tuple[Floats, Floats],
                  spare: tuple[bool, bool]) -> Floats:
    """Return (i, j) the least words of a box along sliding ``axes`` and the plain dimensions of the same two groups.

    The box has products of extents of at least ``least[0][i]`` in the group of the first dimension of every axis, and
    ``least[1][j]`` in that of the second; ``spare`` says whether plain dimensions may provide part of those. Each
    extent lies in one of few ranges; its product counts at the range's end, its words at the beginning. Words only grow
    with extents, so that the least over all ranges is a lower bound.
    """
    tops, words = _ranged(tuple(axes), tuple(sizes[name] for axis in axes for name in axis.dimensions))
    ratios = []
    for top, wanted, free in zip(tops, least, spare, strict=True):
        missing = np.maximum(1.0, wanted[None, :] / top[:, None])
        ratios.append(missing if free else np.where(missing > 1.0, np.inf, 1.0))
    table: Floats = np.min(words[:, None, None] * ratios[0][:, :, None] * ratios[1][:, None, :], axis=0)
    return table


@lru_cache(maxsize=256)
def _ranged(axes: tuple[Axis, ...], sizes: tuple[int, ...]) -> tuple[list[Floats], Floats]:
    """Return the products of two extents along each axis at the ends of their ranges, by term, and words there.

    ``sizes`` are those of the axes' dimensions.
    """
    tops, words = [np.ones(1), np.ones(1)], np.ones(1)
    for place, axis in enumerate(axes):
        low, high = zip(*(ranges(size, SIDES, SIDES) for size in sizes[2 * place:2 * place + 2]), strict=True)
        p, r = (grid.ravel() for grid in np.meshgrid(*low, indexing="ij"))
        ends = [grid.ravel() for grid in np.meshgrid(*high, indexing="ij")]
        coefficients = tuple(coefficient for _, coefficient in axis.terms)
        words = np.multiply.outer(words, axis_sides(coefficients, (p, r), box=False)).ravel()
        tops = [np.multiply.outer(top, end).ravel() for top, end in zip(tops, ends, strict=True)]
    return tops, words


def ranges(most: int, exact: int, parts: int) -> tuple[Floats, Floats]:
    """Return the first and the last numbers of ranges that make up 1 to ``most``.

    Single numbers up to ``exact`` of them, else at most ``parts`` ranges, each as long in the logarithm.
    """
    if most <= exact:
        every = np.arange(1.0, most + 1)
        return every, every
    first = np.unique(np.round(most ** (np.arange(parts) / parts)))
    return first, np.append(first[1:] - 1, most)

