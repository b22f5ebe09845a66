"""Where the words that are not zero lie: how likely words are to be all zero.

Three models; the first and the last are what Sparseloop (Wu et al., MICRO 2022, section IV-C) calls uniform
(hypergeometric) and fixed-structured:

* *uniform*: so many words of the tensor, every set of them as likely as any other. Where density times words is no
  whole number, it is the next lower or the next higher one, by chance, so that the mean is exact;
* *structured* n:m: n of every m neighbouring words, independently from block to block. Words that are looked at
  together are taken to lie in different blocks (blocks run along the axis that is summed over, as in 2:4 weights);
* *even*: whatever words are looked at together, so many of them are not zero as their share is, the next lower or
  higher whole number by chance. So no n words are all zero where density times n is 1 or more.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import floor, log1p

import numpy as np
from numpy.typing import NDArray

from tilewright.workload import Operator, Tensor

Floats = NDArray[np.float64]
_NEVER = -46.0
"""Natural logarithm below which a chance (1e-20) counts as none."""
_LONGEST = 1 << 22
_TINY = 1e-12
"""What is left of a chance that is none but for rounding."""


@dataclass(frozen=True)
class Zeros:
    """The zeros of one tensor: ``words`` in all, of which the share ``density`` is not zero (see the module)."""

    words: int
    density: float
    structure: tuple[int, int] | None = None
    even: bool = False

    @classmethod
    def of(cls, tensor: Tensor, operator: Operator) -> "Zeros":
        """Return the zeros of a tensor of an operator."""
        return cls(tensor.words(operator.sizes), tensor.density, tensor.structure, tensor.even)

    @classmethod
    def endless(cls, density: float) -> "Zeros":
        """Return the zeros of a tensor so large that words are zero independently of one another."""
        return cls(2**62, density, (1, 1))

    @cached_property
    def table(self) -> Floats:
        """Chance that 0, 1, 2 ... given words are all zero, as far as it is above 1e-20."""
        if self.density >= 1:
            return np.ones(1)
        if self.even:
            chances = 1.0 - self.density * np.arange(min(floor(1 / self.density) + 1, _LONGEST))
            return np.asarray(chances[chances > _TINY])
        if self.structure is not None:
            length = int(_NEVER / log1p(-self.density)) + 1
            return np.asarray((1.0 - self.density) ** np.arange(min(length, _LONGEST)))
        mean = self.density * self.words
        few = floor(mean + 1e-9)
        more = mean - few if mean - few > 1e-9 else 0.0
        low = _hypergeometric(self.words, few)
        if not more:
            return low
        high = _hypergeometric(self.words, few + 1)
        found = np.asarray((1 - more) * low)
        found[:len(high)] += more * high[:len(found)]
        return found

    def empty(self, count: Floats) -> Floats:
        """Return the chance that ``count`` given words are all zero, elementwise; linear between whole numbers."""
        table = self.table
        below = np.floor(count)
        low = np.minimum(below, len(table)).astype(np.int64)
        padded = np.concatenate([table, np.zeros(2)])
        first, second = padded[low], padded[np.minimum(low + 1, len(table))]
        return np.asarray(first + (count - below) * (second - first))


@lru_cache(maxsize=256)
def _hypergeometric(words: int, few: int) -> Floats:
    """Chance that 0, 1, 2 ... of ``words``, of which ``few`` are not zero, are all zero."""
    zeros = words - few
    if few == 0:
        return np.ones(min(words, _LONGEST) + 1)
    length = min(zeros, int(-_NEVER * words / few) + 2, _LONGEST)
    drawn = np.arange(length, dtype=np.float64)
    found = np.concatenate([[0.0], np.cumsum(np.log((zeros - drawn) / (words - drawn)))])
    return np.asarray(np.exp(found[found > _NEVER]))
