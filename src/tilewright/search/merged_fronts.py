"""The front of latency and energy of a whole network, out of the fronts of its layers.

Both figures of a network are sums over its layers, and each run of a layer may have a mapping of its own. So the
network's front is that of all sums of one point for every run (the Minkowski sum of the layers' fronts), and whatever
is no part of the front of some layers' sums is none of the front of the whole: fronts are merged two by two, and
pruned each time. A layer that runs ``n`` times is the sum of ``n`` like fronts, made by doubling. All that is exact.

Where more than ``most`` points are left of a merge, it keeps a cover of them: from the fastest on, of all points up to
``1 + d`` times as slow the last one, which takes no more energy than any of these. Let each combination of one part be
matched by a kept point that takes no more energy and at most ``1 + s`` times its cycles, each of the other part by one
of at most ``1 + t`` times. The sum of both kept points takes no more energy than the sum of both combinations, and at
most ``1 + max(s, t)`` times its cycles; a cover then makes that ``(1 + max(s, t)) (1 + d)``. With ``d`` as chosen no
path through the tree of merges gets beyond the tolerance asked for, and what it came to is told
(`MergedFront.tolerance`). To thin out the states of such a dynamic program by ratios is Warburton's scheme (Operations
Research 35, 1987, approximation of Pareto optima in multiple-objective shortest-path problems).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from tilewright.search.front import first_of_front

EXACT_POINTS = 1_000
"""Points of sums that are all kept."""
TOLERANCE = 1e-3
"""By which share of cycles the front of a network may be off, where it is too large to be exact."""
MOST_COVERED = 4_000
"""Points of a cover: where it would have more, it is made wider, and the tolerance is larger than asked for."""
BLOCK = 1 << 22
"""Sums that are made at once."""
DENSE = 1 << 18
"""Of how many sums that may be of the front a cover is made at once, before they are sorted."""
BINS = 1 << 12
"""In which sums are sorted out that are not of the front."""


@dataclass(frozen=True)
class _Sums:
    """Sums of points of fronts: ``values`` ``(p, 2)`` by rising first figure, and how often each has which point.

    ``times`` ``(p, c)`` counts points of layers, those of one layer side by side. ``tolerance``: every combination is
    matched by a point that is no larger in the second figure, and in the first by at most that share.
    """

    values: NDArray[np.float64]
    times: NDArray[np.int32]
    tolerance: float = 0.0

    def take(self, rows: NDArray[np.intp], tolerance: float) -> "_Sums":
        """Return some of the points."""
        return _Sums(self.values[rows], self.times[rows], tolerance)


@dataclass(frozen=True)
class MergedFront:
    """Combinations of mappings none of which another beats in latency and energy, by rising latency."""

    values: NDArray[np.float64]
    """``(p, 2)``: cycles and picojoules of the network."""
    chosen: tuple[tuple[tuple[tuple[int, int], ...], ...], ...]
    """By point and layer: points of the layer's front, and how many of its runs each has."""
    tolerance: float
    """Every combination is matched by a point that takes no more energy, and at most this share more cycles. 0 where
    the front is exact."""


def network_front(layers: Sequence[tuple[int, NDArray[np.float64]]], beside: tuple[float, float] = (0.0, 0.0),
                  tolerance: float = TOLERANCE, most: int = EXACT_POINTS) -> MergedFront:
    """Return the front of latency and energy of a network.

    Parameters
    ----------
    layers
        How often each runs, and cycles and picojoules of one run of its mappings ``(p, 2)``, at least one.
    beside
        Cycles and picojoules that all combinations take besides.
    tolerance
        See `MergedFront`; what is told is this at most, but for fronts of very many points (`MOST_COVERED`).
    most
        Points of sums that are all kept: where no merge leaves more, the front is exact.

    Examples
    --------
    >>> import numpy as np
    >>> found = network_front([(2, np.array([[1.0, 9.0], [4.0, 5.0]])), (1, np.array([[3.0, 3.0]]))])
    >>> found.values.tolist(), found.chosen[1], found.tolerance
    ([[5.0, 21.0], [8.0, 17.0], [11.0, 13.0]], (((0, 1), (1, 1)), ((0, 1),)), 0.0)
    """
    deep = 2 + 2 * max(2 * count.bit_length() for count, _ in layers) + 2 * ceil(log2(len(layers)))
    step, sizes = (1.0 + tolerance) ** (1.0 / deep) - 1.0, [len(points) for _, points in layers]
    parts = [_repeated(_covered(_leaf(points), step, most), count, step, most) for count, points in layers]
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2:]
        parts = [_summed(a, b, step, most) for a, b in zip(parts[::2], parts[1::2], strict=False)] + odd
    fewer = _covered(parts[0], step, most, most)
    whole = fewer if fewer.tolerance <= tolerance else parts[0]
    edges = np.cumsum(sizes)[:-1]
    chosen = tuple(tuple(tuple((int(point), int(times[point])) for point in np.flatnonzero(times))
                         for times in np.split(row, edges)) for row in whole.times)
    return MergedFront(whole.values + np.array(beside), chosen, whole.tolerance)


def _leaf(points: NDArray[np.float64]) -> _Sums:
    rows = first_of_front(points)
    return _Sums(points[rows], np.eye(len(points), dtype=np.int32)[rows])


def _repeated(one: _Sums, count: int, step: float, most: int) -> _Sums:
    """Return the sums of ``count`` points of one front."""
    doubles = [one]
    for _ in range(count.bit_length() - 1):
        doubles.append(_summed(doubles[-1], doubles[-1], step, most, same=True))
    return reduce(lambda a, b: _summed(a, b, step, most, same=True),
                  [double for bit, double in enumerate(doubles) if count >> bit & 1])


def _summed(a: _Sums, b: _Sums, step: float, most: int, same: bool = False) -> _Sums:
    """Return the front of all sums of a point of each; ``same`` says that both are of one layer."""
    values, rows, tolerance = np.empty((0, 2)), np.empty((2, 0), dtype=np.intp), max(a.tolerance, b.tolerance)
    exact = tolerance
    for first in range(0, len(a.values), max(1, BLOCK // len(b.values))):
        block = a.values[first:first + max(1, BLOCK // len(b.values))]
        x, y = ((block[:, axis, None] + b.values[:, axis]).ravel() for axis in (0, 1))
        some = _perhaps(x, y)
        if len(some) > DENSE:
            some, tolerance = some[_least_of_bins(x[some], y[some], step)], (1.0 + exact) * (1.0 + step) - 1.0
        values = np.concatenate([values, np.stack([x[some], y[some]], axis=1)])
        left, right = np.divmod(some, len(b.values))
        rows = np.concatenate([rows, np.stack([first + left, right])], axis=1)
    kept = first_of_front(values)
    times = [part.times[row] for part, row in zip((a, b), rows[:, kept], strict=True)]
    found = _Sums(values[kept], times[0] + times[1] if same else np.concatenate(times, axis=1),
                 tolerance)
    return _covered(found, step, most)


def _perhaps(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return points that may be of the front: none that is as large in ``y`` as one of a bin with less ``x``."""
    low, room = x.min(), float(np.ptp(x)) or 1.0
    place = ((x - low) * ((BINS - 1) / room)).astype(np.int32)
    least = np.full(BINS, np.inf)
    np.minimum.at(least, place, y)
    before = np.concatenate([[np.inf], np.minimum.accumulate(least)[:-1]])
    return np.flatnonzero(y < before[place])


def _least_of_bins(x: NDArray[np.float64], y: NDArray[np.float64], step: float) -> NDArray[np.intp]:
    """Return a point for each bin from some ``x`` to ``1 + step`` times as much: one with the least ``y`` there."""
    place = (np.log(x / x.min()) / np.log1p(step)).astype(np.intp)
    least = np.full(place.max() + 1, np.inf)
    np.minimum.at(least, place, y)
    rows = np.flatnonzero(y == least[place])
    return np.asarray(rows[np.unique(place[rows], return_index=True)[1]], dtype=np.intp)


def _covered(sums: _Sums, step: float, most: int, limit: int = MOST_COVERED) -> _Sums:
    """Return the sums, or where they are more than ``most`` a cover of at most ``limit``, as fine as ``step`` or so."""
    cycles = sums.values[:, 0]
    if len(cycles) <= most:
        return sums
    kept, first, worst = list[int](), 0, 1.0
    while first < len(cycles):
        last = int(np.searchsorted(cycles, cycles[first] * (1.0 + step), side="right")) - 1
        worst = max(worst, float(cycles[last] / cycles[first]))
        kept.append(last)
        first = last + 1
        if len(kept) > limit:
            return _covered(sums, 2.0 * step, most, limit)
    return sums.take(np.array(kept), (1.0 + sums.tolerance) * worst - 1.0)
