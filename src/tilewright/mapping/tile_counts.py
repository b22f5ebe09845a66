"""How many tiles there are: within buffers (whatever the workload), and among those that a workload has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.spaces.rules.arrays import divisors_of

Words = tuple[int, int, int]
Ints = NDArray[np.int64]

MOST_BITS = 4_000_000
"""Largest buffer (in units of the narrowest word) whose tiles are counted exactly; beyond, they are estimated."""
MOST_TILES = 4_000_000
"""Most tiles of a workload that are looked at one by one."""
DRAWN = 1_000_000
"""Tiles drawn for an estimate."""


@dataclass(frozen=True)
class EstimatedCount:
    """A count, or an estimate of one: ``error`` is its standard error, 0 where the count is exact."""

    value: float
    error: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether it was counted."""
        return self.error == 0.0

    def __mul__(self, other: "EstimatedCount") -> "EstimatedCount":
        if self.exact and other.exact:
            return EstimatedCount(self.value * other.value)
        error = np.hypot(self.error * other.value, other.error * self.value)
        return EstimatedCount(self.value * other.value, float(error))

    def __str__(self) -> str:
        value = f"{self.value:,.0f}" if self.value < 10**9 else f"{self.value:.4g}"
        return value if self.exact else f"{value} ± {self.error:.2g}"


def shared_buffer(capacity: int, words: Words) -> int:
    """Count the tiles (k, c, y, x, r, s) of a convolution that fit one buffer together, as boxes.

    Weights k*c*r*s, inputs c*y*x and outputs k*y*x of ``words`` units each must add up to ``capacity`` at most. Exact:
    with d(n) divisors of n and D their running sum, it is the sum over k, c and the area a = y*x of d(a) * D(room).
    """
    weight, given, made = words
    divisors, running = _divisor_sums(capacity // min(words))
    total = 0
    for k in range(1, capacity + 1):
        widest = (capacity - made * k) // (weight * k + given)
        if widest < 1:
            break
        c = np.arange(1, widest + 1)
        most = (capacity - weight * k * c) // (given * c + made * k)
        each = np.repeat(c, most)
        area = np.arange(1, len(each) + 1) - np.repeat(np.cumsum(most) - most, most)
        room = (capacity - (given * each + made * k) * area) // (weight * k * each)
        total += int((divisors[area] * running[room]).sum())
    return total


def parted_buffer(capacities: tuple[int, int, int], words: Words) -> int:
    """Count the tiles of a convolution whose weights, inputs and outputs each fit their own partition, as boxes."""
    weights, inputs, outputs = (capacity // word for capacity, word in zip(capacities, words, strict=True))
    _, running = _divisor_sums(max(weights, inputs, outputs))
    total = 0
    for k in range(1, min(weights, outputs) + 1):
        c = np.arange(1, min(weights // k, inputs) + 1)
        total += int((running[weights // (k * c)] * running[np.minimum(inputs // c, outputs // k)]).sum())
    return total


def _divisor_sums(most: int) -> tuple[Ints, Ints]:
    """Return for 0 to ``most`` the number of divisors, and its running sum."""
    divisors = np.zeros(most + 1, dtype=np.int64)
    for number in range(1, most + 1):
        divisors[number::number] += 1
    return divisors, np.cumsum(divisors)


def triples(capacity: int) -> int:
    """Count triples of positive sizes (weights, inputs, outputs) in words that fit a buffer together."""
    return comb(capacity, 3)


def parted_triples(capacities: Sequence[int]) -> int:
    """Count triples of positive sizes that each fit a partition of their own; 2/9 of `triples` for equal thirds."""
    return prod(capacities)


def workload_tiles(sizes: Sequence[int], divisors: bool) -> list[Ints]:
    """Return for each dimension the extents that a workload's tiles may have: its divisors, or all up to its size."""
    return [np.array(divisors_of(size)) if divisors else np.arange(1, size + 1) for size in sizes]


def fitting_tiles(extents: Mapping[str, Ints], fits: Callable[[Mapping[str, Ints]], NDArray[np.bool_]],
                  rng: np.random.Generator) -> EstimatedCount:
    """Count the combinations of ``extents`` that ``fits``; drawn uniformly where there are too many to look at."""
    names, lists = list(extents), list(extents.values())
    number = prod(len(values) for values in lists)
    if number <= MOST_TILES:
        grids = np.meshgrid(*lists, indexing="ij", sparse=True)
        fit = np.broadcast_to(fits(dict(zip(names, grids, strict=True))), [len(values) for values in lists])
        return EstimatedCount(int(fit.sum()))
    drawn = {name: values[rng.integers(len(values), size=DRAWN)] for name, values in zip(names, lists, strict=True)}
    share = float(fits(drawn).mean())
    return EstimatedCount(number * share, number * max(np.sqrt(share * (1 - share) / DRAWN), 1 / DRAWN))


def estimated_tiles(limits: Mapping[str, int], fits: Callable[[Mapping[str, Ints]], NDArray[np.bool_]],
                    rng: np.random.Generator) -> EstimatedCount:
    """Estimate how many tiles of extents up to ``limits`` fit, without bias.

    Extents are drawn with probability proportional to 1 / extent, as products that fit mostly have some small ones, and
    weighted by the inverse.
    """
    weights = np.ones(DRAWN)
    drawn = {}
    for name, limit in limits.items():
        harmonic = np.cumsum(1.0 / np.arange(1, limit + 1))
        extents = np.searchsorted(harmonic, rng.random(DRAWN) * harmonic[-1], side="right") + 1
        drawn[name] = np.minimum(extents, limit).astype(np.int64)
        weights *= drawn[name] * harmonic[-1]
    values = np.where(fits(drawn), weights, 0.0)
    return EstimatedCount(float(values.mean()), max(float(values.std() / np.sqrt(DRAWN)), 1e-9))
