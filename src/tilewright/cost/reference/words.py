"""Sets of a tensor's words: whole boxes where holes count as words, plain sets elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import TypeAlias

Range = tuple[int, int]
Box = tuple[Range, ...]
"""First word and the one after the last, along each axis."""
Shift = tuple[int, ...]


@dataclass(frozen=True)
class Boxes:
    """Words of boxes that do not overlap, in their order."""

    boxes: tuple[Box, ...] = ()

    @cached_property
    def _size(self) -> int:
        return sum(prod(last - first for first, last in box) for box in self.boxes)

    def __len__(self) -> int:
        return self._size

    def __sub__(self, other: "Boxes") -> "Boxes":
        left = self.boxes
        for taken in other.boxes:
            left = tuple(part for box in left for part in _cut(box, taken))
        return Boxes(tuple(sorted(left)))

    def __or__(self, other: "Boxes") -> "Boxes":
        return Boxes((*self.boxes, *(other - self).boxes))

    def moved(self, shift: Shift) -> "Boxes":
        """Return the boxes moved by so much along each axis."""
        return Boxes(tuple(tuple((first + by, last + by) for (first, last), by in zip(box, shift, strict=True))
                           for box in self.boxes))


Words: TypeAlias = Boxes | frozenset[tuple[int, ...]]


def moved(words: Words, shift: Shift) -> Words:
    """Return words moved by so much along each axis."""
    if not any(shift):
        return words
    if isinstance(words, Boxes):
        return words.moved(shift)
    return frozenset(tuple(at + by for at, by in zip(word, shift, strict=True)) for word in words)


def without(words: Words, others: Words | None) -> Words:
    """Return the words that ``others`` lack."""
    return words if others is None else words - others  # type: ignore[operator]


def joined(words: Words, others: Words | None) -> Words:
    """Return the words that are in either."""
    return words if others is None else others | words  # type: ignore[operator]


@lru_cache(maxsize=1 << 14)
def strided(axes: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]) -> frozenset[tuple[int, ...]]:
    """Return all words of a tile: along each axis, from its first, the sums of strided ranges ``(stride, extent)``."""
    coordinates = []
    for first, ranges in axes:
        values = {first}
        for stride, extent in ranges:
            values = {value + stride * index for value in values for index in range(extent)}
        coordinates.append(sorted(values))
    return frozenset(product(*coordinates))


def _cut(box: Box, taken: Box) -> Iterator[Box]:
    """Yield what is left of a box, cut along one axis after the other."""
    if any(last <= low or high <= first for (first, last), (low, high) in zip(box, taken, strict=True)):
        yield box
        return
    rest = list(box)
    for axis, (low, high) in enumerate(taken):
        first, last = rest[axis]
        if first < low:
            yield (*rest[:axis], (first, low), *rest[axis + 1:])
        if high < last:
            yield (*rest[:axis], (high, last), *rest[axis + 1:])
        rest[axis] = (max(first, low), min(last, high))
