"""Words that a memory of two halves must fetch while a systolic array draws on one half: the streams, walked by Numba.

A half holds the words that were asked for since it was last emptied. A word that it does not hold is fetched; where the
half is full, it is emptied for it (``eager``: as soon as it is full), as the other half takes over.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tilewright.base import kept

Words = NDArray[np.int64]
NEVER = np.iinfo(np.int64).max


@njit(nogil=True, inline="always")
def looked_up(address: int, fetched: int, held: int, epoch: int, half: int, eager: bool,
              held_since: Words) -> tuple[int, int, int]:
    """Return ``fetched``, ``held`` and ``epoch`` after a word was asked for: fetched if its half does not hold it."""
    if held_since[address] < epoch:
        if held == half and not eager:
            epoch, held = epoch + 1, 0
        held_since[address] = epoch
        fetched, held = fetched + 1, held + 1
        if held == half and eager:
            epoch, held = epoch + 1, 0
    return fetched, held, epoch


@kept
@njit(nogil=True)
def skewed_fetches(lanes: Words, times: Words, width: int, outer: int, inner: int, half: int, eager: bool,
                   held_since: Words) -> int:
    """Return the words fetched for operands that enter an edge of the array, each lane one cycle behind the last.

    Parameters
    ----------
    lanes, times
        (lane), (time): the word at a lane and time has the address ``lanes[lane] + times[time]``.
    width
        Lanes that enter side by side.
    outer, inner
        How often all lanes, and each block of lanes, come again.
    half
        Words that a half holds; negative where all fit.
    held_since
        (address): 0, or `NEVER` for addresses that need no fetch; written over.
    """
    fetched = held = 0
    epoch = 1
    lane_count, time_count = lanes.shape[0], times.shape[0]
    for _ in range(outer):
        for first in range(0, lane_count, width):
            here = min(width, lane_count - first)
            for _ in range(inner):
                for cycle in range(time_count + here - 1):
                    for lane in range(max(0, cycle - time_count + 1), min(here, cycle + 1)):
                        address = lanes[first + lane] + times[cycle - lane]
                        fetched, held, epoch = looked_up(address, fetched, held, epoch, half, eager, held_since)
    return fetched


@kept
@njit(nogil=True)
def resting_fetches(down: Words, across: Words, rows: int, columns: int, half: int, eager: bool,
                    held_since: Words) -> int:
    """Return the words fetched for an operand that rests in the array, a tile a fold, its last row entering first.

    Parameters
    ----------
    down, across
        (row), (column): the word at a row and column of the operand has the address ``down[row] + across[column]``.
    rows, columns
        Sides of a tile; tiles follow one another down first.
    half, eager, held_since
        As for `skewed_fetches`.
    """
    fetched = held = 0
    epoch = 1
    for left in range(0, across.shape[0], columns):
        for top in range(0, down.shape[0], rows):
            for row in range(min(top + rows, down.shape[0]) - 1, top - 1, -1):
                for column in range(left, min(left + columns, across.shape[0])):
                    address = down[row] + across[column]
                    fetched, held, epoch = looked_up(address, fetched, held, epoch, half, eager, held_since)
    return fetched
