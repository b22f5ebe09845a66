"""Whole loop counts near real ones: what a descent's points are settled to, one dimension after the other."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
