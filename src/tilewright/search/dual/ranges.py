"""Ranges of extents that fall into as many pieces, and by how much pieces exceed a length."""

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_RANGES, FEW_EXTENTS = 128, 32
"""Ranges of extents of a dimension at most, to begin with; and extents of a range that does not fall in two, but into
these."""


class Unbound(Exception):
    """A space has something that dual bounds do not know."""


@dataclass(frozen=True)
class Ranges:
    """Ranges of extents of a dimension which fall into as many pieces, ascending."""

    low: Integers
    high: Integers
    pieces: Integers

    @classmethod
    def of(cls, size: int, *, divide: bool = False) -> "Ranges":
        """Return those of a dimension of ``size`` values; of a large one some are merged, and fall into the fewest.

        Where tiles ``divide``, each is one divisor.
        """
        if divide:
            few = np.arange(1, isqrt(size) + 1)
            few = few[size % few == 0]
            found = np.unique(np.concatenate([few, size // few]))
            return cls(found, found, size // found)
        if size > MOST_RANGES ** 2 // 4:
            edges = np.unique(np.geomspace(1, size + 1, MOST_RANGES).astype(np.int64))
            low = edges[:-1]
        else:
            low = np.unique(-(-size // np.arange(1, size + 1)))
        high = np.append(low[1:] - 1, size)
        return cls(low, high, -(-size // high))

    def halved(self, used: NDArray[np.bool_]) -> tuple["Ranges", Integers]:
        """Return ranges of which the wide ones that are ``used`` fall in two, and the number of that each is of.

        Those of a few extents fall into these.
        """
        few = used & (self.high - self.low < FEW_EXTENTS)
        middle = (self.low + self.high) // 2
        low = [np.arange(one, last + 1) if own else np.array([one, half + 1][:1 + (wide and one < last)])
               for one, half, last, own, wide in zip(self.low, middle, self.high, few, used, strict=True)]
        of = np.repeat(np.arange(len(low)), [len(own) for own in low])
        first = np.concatenate(low)
        high = np.append(first[1:] - 1, self.high[-1])
        return Ranges(first, high, -(-int(self.high[-1]) // high)), of


def hinge(size: float, extent: Floats, other: float) -> Floats:
    """Return the most that pieces of a dimension, none above ``extent``, are longer than ``other``, all together."""
    whole = np.floor(size / extent)
    found: Floats = whole * np.maximum(0.0, extent - other) + np.maximum(0.0, size - whole * extent - other)
    return found
