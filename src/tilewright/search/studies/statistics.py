"""What a few repetitions can tell: intervals of the median, and which of two samples is the lower."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf
from statistics import median

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median and the order statistics that enclose the true one with the chance ``coverage``.

    Values may be infinite (nothing found).
    """

    low: float
    median: float
    high: float
    coverage: float


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median and its interval of order statistics, free of assumptions on the distribution.

    The interval from the k-th smallest to the k-th largest of n values misses the true median with twice the chance
    that fewer than k of n fair coins show heads. The largest k is taken that covers it with `CONFIDENCE`; where even
    the range does not (fewer than six values), the range is given with the coverage that it has.

    Source: David and Nagaraja, Order Statistics, 3rd ed. 2003, section 7.1.

    Raises a `ValueError` if there are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    rank = interval_rank(len(ordered))
    return Interval(ordered[rank - 1], median(ordered), ordered[-rank], coverage(len(ordered), rank))


def interval_rank(count: int) -> int:
    """Return k: the interval of the median goes from the k-th smallest of ``count`` values to the k-th largest."""
    rank = 1
    while 2 * (rank + 1) <= count and coverage(count, rank + 1) >= CONFIDENCE:
        rank += 1
    return rank


def coverage(count: int, rank: int) -> float:
    """Return the chance that the median lies from the ``rank``-th smallest to the ``rank``-th largest value."""
    return max(0.0, 1.0 - 2.0 * sum(comb(count, heads) for heads in range(rank)) / 2.0**count)


@dataclass(frozen=True)
class Comparison:
    """Two samples of scores, the lower the better."""

    ratio: float
    """The first one's median over the second one's; NaN where both are infinite."""
    wins: float
    """Chance that a value of the first is below one of the second; ties count half."""
    p: float
    """Chance of ranks as far apart or further if there were no difference (two-sided Mann-Whitney test, exact with
    ties)."""


def compare(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Compare two independent samples by ranks (Mann and Whitney, Annals of Mathematical Statistics 18(1), 1947)."""
    ranks = _double_midranks([*first, *second])
    n, m = len(first), len(second)
    observed, centre = int(sum(ranks[:n])), n * (n + m + 1)
    # ways[j, s]: shares of the choices of j values whose doubled ranks sum to s.
    total = int(sum(ranks))
    ways = np.zeros((n + 1, total + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :total + 1 - rank].copy()
    sums = np.arange(total + 1)
    far = np.abs(sums - centre) >= abs(observed - centre)
    p = float(ways[n][far].sum() / comb(n + m, n))
    # Rank sums count, for each value of the first, those of the second below it (doubled, ties as one).
    wins = 1.0 - (observed - n * (n + 1)) / (2 * n * m)
    one, other = median(first), median(second)
    return Comparison(one / other if one != inf or other != inf else float("nan"), wins, min(1.0, p))


def holm(chances: Sequence[float]) -> list[float]:
    """Return p-values corrected for how many there are (Holm, Scandinavian Journal of Statistics 6(2), 1979)."""
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    found, most = [0.0] * len(chances), 0.0
    for place, index in enumerate(order):
        most = max(most, min(1.0, chances[index] * (len(chances) - place)))
        found[index] = most
    return found


def _double_midranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value, from 1; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + 1 + bisect_right(ordered, value) for value in values]
