"""What needs NumPy and Numba of the numbers of many candidates: loaded where there are many."""

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


def roots(values: Floats) -> Floats:
    """Return square roots."""
    return np.sqrt(values)


def largest(columns: list[Floats | float]) -> Floats:
    """Return the largest of some figures of each candidate."""
    found = np.asarray(columns[0], dtype=np.float64)
    for column in columns[1:]:
        found = np.maximum(found, column)
    return found


def listed(values: tuple[float, ...], places: Any) -> Any:
    """Return the values at these places."""
    return np.array(values)[places]


def first_places(among: Any, values: Any) -> Any:
    """Return the place in a `NumberRange` of the first value no less than each of ``values``, or of the highest."""
    last = len(among) - 1
    if among.values:
        return np.minimum(np.searchsorted(np.array(among.values), values), last)
    found = np.clip(np.ceil((values - among.low) / among.step), 0, last).astype(np.int64)
    # By rounding it is one off, at most.
    found -= (found > 0) & (among.value(found - 1) >= values)
    found += (found < last) & (among.value(found) < values)
    return found


def last_places(among: Any, values: Any) -> Any:
    """Return the place in a `NumberRange` of the largest value up to each of ``values``, or of the lowest of all."""
    if among.values:
        return np.maximum(np.searchsorted(np.array(among.values), values, side="right") - 1, 0)
    return np.clip(((values - among.low) / among.step + 1e-9).astype(np.int64), 0, len(among) - 1)
