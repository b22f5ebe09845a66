"""The least product of two figures, by the corners of the convex hull of all that can be had."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

T = TypeVar("T")
Pair = tuple[float, float]
BETTER = 1 - 1e-12
"""Times what is known: what is less only in the last digits counts as equal."""


def hull_corners(least: Callable[[Pair], tuple[Pair, T]]) -> list[tuple[Pair, T]]:
    """Return corners of the hull, the one with the least product among them, by what ``least`` finds at weights.

    ``least`` returns the two figures whose weighted sum is the least, and anything else. A product is least at a
    corner, and each corner has the least of some weighted sum. Between two corners lies none with a lower product than
    that of the point where the lines of their weights meet.
    """
    def corner(weights: Pair) -> tuple[Pair, T, Pair]:
        return (*least(weights), weights)

    known = [corner((1.0, 0.0)), corner((0.0, 1.0))]
    pending = [(known[0], known[1])]
    while pending:
        one, other = pending.pop()
        weights = one[0][1] - other[0][1], other[0][0] - one[0][0]
        lines = np.array([one[2], other[2]])
        if min(weights) <= 0 or abs(np.linalg.det(lines)) < 1e-300:
            continue
        meet = np.linalg.solve(lines, [np.dot(one[2], one[0]), np.dot(other[2], other[0])])
        if meet.prod() >= min(point[0] * point[1] for point, *_ in known) * BETTER:
            continue
        scale = max(weights)
        found = corner((weights[0] / scale, weights[1] / scale))
        if np.dot(weights, found[0]) < np.dot(weights, one[0]) * BETTER:
            known.append(found)
            pending += [(one, found), (found, other)]
    return [(point, told) for point, told, _ in known]
