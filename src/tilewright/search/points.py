"""Mappings as points of a continuous space, and back: what gradient descent moves and what can be run.

A point is ``logs`` ``(b, s, d)``, the logarithm of every loop's count, and ``orders`` ``(b, m, d)``, a score for every
loop of each of the ``m`` memories: the higher, the further in. Points of a dimension sum to the logarithm of its size.
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.mapping import MappingBatch, MapSpace

Floats = NDArray[np.float64]
Points = tuple[Floats, Floats]


def to_points(batch: MappingBatch, space: MapSpace) -> Points:
    """Return the points ``logs`` ``(b, s, d)`` and ``orders`` ``(b, m, d)`` of mappings; scores are from 0 to 1.

    A ragged loop counts as the ratio of the extents outside and inside it, not as its rounded count.
    """
    logs = -(np.log(batch.steps) - np.log(batch.outside(space.arrays.sizes)))
    orders = batch.ranks[space.layout.temporal].astype(np.float64) / max(1, batch.ranks.shape[1] - 1)
    return np.ascontiguousarray(logs.transpose(2, 0, 1)), orders.transpose(2, 0, 1).copy()


def to_mappings(points: Points, space: MapSpace, rounding: MapSpace | None = None) -> MappingBatch:
    """Return the mappings of the space near points: extents rounded, mended, and tiles made smaller until they fit.

    ``rounding`` is a narrower space whose steps to round to first, such as that of perfect tiling.
    """
    logs, orders = points
    whole = space.unwritten(len(logs))
    inside = np.cumsum(logs[:, ::-1], axis=1)[:, ::-1]
    inside = np.concatenate([inside[:, 1:], np.zeros_like(inside[:, :1])], axis=1)
    whole.steps[:] = np.clip(np.rint(np.exp(inside)), 1, space.arrays.sizes).transpose(1, 2, 0)
    whole.ranks[:] = np.arange(whole.ranks.shape[1], dtype=np.int8)[None, :, None]
    for place, s in enumerate(space.layout.temporal):
        whole.ranks[s] = np.argsort(np.argsort(orders[:, place], axis=1, kind="stable"), axis=1).T
    if rounding is not None:
        whole = fitted(whole, rounding)
    return fitted(whole, space)


def fitted(batch: MappingBatch, space: MapSpace) -> MappingBatch:
    """Return the batch repaired, with tiles made smaller until they fit the memories where that can be done."""
    found = space.refit(space.repair(batch))
    return space.repair(found) if space.arrays.ruled else found


def onto_simplex(logs: NDArray[np.float64], free: NDArray[np.bool_],
                 totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest ``(b, s, d)`` without negative logs that sum to ``totals`` ``(d)`` over the ``free`` slots.

    The Euclidean projection onto a simplex, by sorting (Duchi et al., ICML 2008).
    """
    held = np.where(free[None], logs, -np.inf)
    down = -np.sort(-held, axis=1)
    sums = np.cumsum(np.where(np.isfinite(down), down, 0.0), axis=1) - totals
    count = np.arange(1, logs.shape[1] + 1)[None, :, None]
    kept = np.where(np.isfinite(down), down * count > sums, False).sum(axis=1, keepdims=True)
    shift = np.take_along_axis(sums, np.maximum(kept - 1, 0), axis=1) / np.maximum(kept, 1)
    return np.where(free[None], np.maximum(logs - shift, 0.0), 0.0)


def whole_chains(logs: Floats, size: int, free: NDArray[np.bool_], rng: Generator,
                 perfect: NDArray[np.bool_]) -> Floats:
    """Return ``(k, b, s)``: logarithms of whole counts of one dimension of ``size``, near ``logs`` ``(b, s)``.

    Each of the ``k`` proposals visits the ``free`` ``(s)`` slots in an order of its own; each slot takes, of what is
    left, the count nearest to its share (with some noise but for the first two), the last one what remains. Where
    ``perfect`` ``(k)``, counts divide what is left; else they are rounded, up or down, and what is left is rounded up,
    so that the counts may multiply to more than the size.
    """
    slots = np.flatnonzero(free)
    found = np.zeros((len(perfect), *logs.shape))
    divisors = np.array([f for f in range(1, size + 1) if size % f == 0])
    for k, divides in enumerate(perfect):
        left = np.full(len(logs), size, dtype=np.int64)
        order = rng.permutation(slots)
        # A slot with a large share takes what remains: there a rest changes least.
        order = order[np.argsort(logs[:, order].mean(0), kind="stable")] if k < 2 else order
        for s in order[:-1]:
            wanted = logs[:, s] + (rng.normal(0, 0.35, len(logs)) if k > 1 else 0.0)
            count = _dividing(wanted, left, divisors) if divides else _near(wanted, left, rng)
            left = left // count if divides else -(-left // count)
            found[k, :, s] = np.log(count)
        found[k, :, order[-1]] = np.log(left)
    return found


def _dividing(wanted: Floats, left: NDArray[np.int64], divisors: NDArray[np.int64]) -> NDArray[np.int64]:
    far = np.abs(np.log(divisors)[None] - wanted[:, None])
    far = np.where(left[:, None] % divisors[None] == 0, far, np.inf)
    return np.asarray(divisors[far.argmin(1)])


def _near(wanted: Floats, left: NDArray[np.int64], rng: Generator) -> NDArray[np.int64]:
    count = np.exp(np.clip(wanted, 0.0, np.log(left)))
    rounded = np.floor(count + rng.random(len(left)))
    # Of counts that leave the same, the least.
    rest = np.ceil(left / np.clip(rounded, 1, left))
    return np.asarray(np.ceil(left / rest), dtype=np.int64)
