"""Curves read at many places at a time: loaded where there are many, as it needs NumPy and Numba."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tilewright.base import kept

Floats = NDArray[np.float64]
FEW = 24
"""Figures that are read one by one sooner than what reads many is loaded."""


def read_curve(curve: Any, xs: Floats) -> Floats:
    """Return the value of a `Curve` at each of ``xs``, to the last digit what it is at one: NumPy's powers are not."""
    if len(xs) < FEW:
        return np.array([curve.at(x) for x in xs.tolist()], dtype=np.float64)
    least, most = xs.min(), xs.max()
    if not curve.low <= least <= most <= curve.high:
        curve.at(float(least if least < curve.low else most))  # which tells what is wrong
    rows, figures, exponents = (np.array(column) for column in curve.segments)
    if len(rows) == 1:
        alone: Floats = np.where(xs == rows[0], figures[0], figures[0] * xs / rows[0])
        return alone
    found = np.empty(len(xs))
    _read(np.ascontiguousarray(xs, dtype=np.float64), rows, figures, exponents, found)
    return found


@kept
@njit(error_model="numpy")
def _read(xs: Any, rows: Any, figures: Any, exponents: Any, found: Any) -> None:
    for i in range(len(xs)):
        at = 0
        while at + 1 < len(exponents) and rows[at + 1] <= xs[i]:
            at += 1
        last = len(rows) - 1
        found[i] = figures[last] if xs[i] == rows[last] else figures[at] * (xs[i] / rows[at]) ** exponents[at]
