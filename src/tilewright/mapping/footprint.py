"""What compressed tiles take: words and bits of metadata for every word of a tile, by format (docs/sparsity.md).

All functions take numbers or arrays of ``b`` tiles. How likely words are to be all zero is told by one of three models;
the first and the last are what Sparseloop (Wu et al., MICRO 2022, section IV-C) calls uniform (hypergeometric) and
fixed-structured:

* *uniform*: so many words of the tensor, every set of them as likely as any other. Where density times words is no
  whole number, it is the next lower or the next higher one, by chance, so that the mean is exact;
* *structured* n:m: n of every m neighbouring words, independently from block to block. Words that are looked at
  together are taken to lie in different blocks (blocks run along the axis that is summed over, as in 2:4 weights);
* *even*: whatever words are looked at together, so many of them are not zero as their share is, the next lower or
  higher whole number by chance. So no n words are all zero where density times n is 1 or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import floor, gcd, log1p
from operator import mul as multiply

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import RUN_BITS, Accelerator, Compression
from tilewright.workload import Operator, Tensor

Floats = NDArray[np.float64]
_NEVER = -46.0
"""Natural logarithm below which a chance (1e-20) counts as none."""
_LONGEST = 1 << 22
_TINY = 1e-12
"""What is left of a chance that is none but for rounding."""
Sides = Sequence[Floats]
"""Words of a tile along each axis of a tensor; a tensor without axes has one word."""


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


@dataclass(frozen=True)
class Stored:
    """What is stored for each word of a tile, zeros included: words, and bits of metadata."""

    words: Floats
    metadata_bits: Floats


def compression(accelerator: Accelerator, memory: str, tensor: Tensor) -> Compression | None:
    """Return how a memory compresses a tensor; None where all words are kept."""
    if accelerator.sparsity is None:
        return None
    return accelerator.sparsity.compression(memory, tensor.name, tensor.role)


def stored(given: Compression | None, zeros: Zeros, sides: Sides) -> Stored:
    """Return what is stored for each word of a tile of ``sides``, words along each axis, in the mean."""
    tile, row = words_of(sides), np.asarray(sides[-1]) if sides else np.ones(())
    density, none = zeros.density, np.zeros(np.shape(tile))
    if given is None:
        return Stored(none + 1.0, none)
    if given.format == "bitmask":
        return Stored(none + density, none + 1.0)
    if given.format == "run-length":
        bits = given.bits or RUN_BITS
        words = density + padding_words(zeros, tile, bits) / tile
        return Stored(words, words * bits)
    if given.format == "coordinates":
        return Stored(none + density, density * (none + (given.bits or bits_for(tile))))
    return Stored(none + density, density * (none + (given.bits or bits_for(row))) + offset_bits(given, sides) / tile)


def axis_sides(coefficients: tuple[int, ...], extents: Sides, box: bool) -> Floats:
    """Return the words along an axis of boxes of ``extents`` (rule 1), or of the smallest boxes around them."""
    if box:
        return np.asarray(1.0 + sum(times * (side - 1.0) for times, side in zip(coefficients, extents, strict=True)))
    if len(coefficients) == 1:
        return extents[0]
    divisor = gcd(*coefficients)
    stride, dilation = (times // divisor for times in coefficients)
    p, r = extents
    return np.asarray(p * r - np.maximum(0.0, p - dilation) * np.maximum(0.0, r - stride))


def words_of(sides: Sides) -> Floats:
    """Return the words of a tile."""
    return np.asarray(reduce(multiply, sides, np.ones(())))


def offset_bits(given: Compression, sides: Sides) -> Floats:
    """Return the bits of a tile's offsets, which are there whatever is zero."""
    tile = words_of(sides)
    if given.format == "csr":
        return np.asarray((tile / (sides[-1] if sides else 1.0) + 1) * bits_for(tile + 1))
    if given.format != "uop-cp":
        return np.zeros(np.shape(tile))
    offsets, fibers = np.zeros(np.shape(tile)), np.ones(())
    for side in sides[:-1]:
        offsets, fibers = offsets + fibers * (side + 1), fibers * side
    return np.asarray(offsets * (given.bits or bits_for(tile + 1)))


def bits_for(values: Floats) -> Floats:
    """Return the bits that tell apart so many values, at least 1."""
    return np.maximum(1.0, np.ceil(np.log2(np.maximum(values, 1.0))))


def padding_words(zeros: Zeros, tile: Floats, bits: int) -> Floats:
    """Return how many zeros a run-length code of a tile stores in the mean, as runs outgrow their field of ``bits``.

    The k-th zero of a run is stored where 2^bits x k zeros come to an end, at each place with the chance that as many
    words are zero and the one before them, if there is one, is not.
    """
    span = 2**bits
    chances = zeros.table
    if zeros.density >= 1:
        return np.zeros(np.shape(tile))
    most = min(int(np.max(tile)) // span, len(chances) // span + 1)
    runs = np.arange(1, most + 1, dtype=np.float64) * span
    whole = zeros.empty(runs)
    ended = whole - zeros.empty(runs + 1)
    sums = [np.concatenate([[0.0], np.cumsum(part)]) for part in (whole, ended, runs * ended)]
    fitting = np.minimum(np.floor(np.asarray(tile) / span), most).astype(np.int64)
    return np.asarray(sums[0][fitting] + tile * sums[1][fitting] - sums[2][fitting])


def footprint_bits(accelerator: Accelerator, memory: str, tensor: Tensor, bits: float, sides: Sides) -> Floats:
    """Return the bits that a tile of ``sides`` takes in a memory, by its rule of capacity (expected, worst or dense).

    The expected tile is that of a tensor too large for its size to matter; of the worst all words are stored, or as
    many as structure allows in blocks along the last axis. Dense tiles are those of no format.
    """
    tile, row = words_of(sides), np.asarray(sides[-1]) if sides else np.ones(())
    given = compression(accelerator, memory, tensor)
    if given is None:
        return np.asarray(tile * float(bits))
    assert accelerator.sparsity is not None
    if accelerator.sparsity.capacity == "dense":
        return np.asarray(tile * float(bits))
    if accelerator.sparsity.capacity == "expected":
        found = stored(given, Zeros.endless(tensor.density), sides)
        return np.asarray(tile * (found.words * bits + found.metadata_bits))
    most = np.asarray(tile, dtype=np.float64)
    if tensor.structure is not None:
        some, every = tensor.structure
        most = tile / row * np.minimum(row, some * (np.ceil((row - 1) / every) + 1))
    if tensor.even:
        most = np.minimum(most, np.ceil(tile * tensor.density - 1e-9))
    if given.format == "run-length":
        runs = given.bits or RUN_BITS
        return np.asarray(np.minimum(tile, most + np.floor(tile / 2**runs)) * (bits + runs))
    found = stored(given, Zeros(1, 1.0), sides)
    fixed = tile if given.format == "bitmask" else offset_bits(given, sides)
    moving = found.metadata_bits * tile - fixed
    return np.asarray(most * bits + fixed + moving * most / tile)


def least_word_bits(accelerator: Accelerator, memory: str, tensor: Tensor, bits: float) -> float:
    """Return bits that each word of any tile takes at least, for spaces of mappings: some that do not fit are kept."""
    given = compression(accelerator, memory, tensor)
    if given is None:
        return float(bits)
    assert accelerator.sparsity is not None
    if accelerator.sparsity.capacity == "dense":
        return float(bits)
    worst = accelerator.sparsity.capacity == "worst"
    share = tensor.density if tensor.structure is not None or tensor.even or not worst else 1.0
    fixed = {"bitmask": 1.0, "run-length": share * (given.bits or RUN_BITS), "csr": share * (given.bits or 0),
             "coordinates": share * (given.bits or 0), "uop-cp": share * (given.bits or 0)}
    return share * bits + fixed[given.format]
