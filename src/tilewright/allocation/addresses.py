"""An address for each stay, or stays that cannot have one together."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import AWAY, Stay
from tilewright.packing import Buffers, pack

SECONDS, MANY = 1.0, 300
"""For the stays of a scratchpad; and stays beyond which only the first place that is free is tried."""


def addressed(problem: ResidencyProblem, stays: Sequence[Stay]) -> tuple[Stay, ...] | None:
    """Return the stays with addresses, none of which overlap in time and place; None where none are found."""
    found = list(stays)
    for pad in range(len(problem.pads)):
        mine = [at for at, stay in enumerate(stays) if stay.pad == pad]
        offsets, _ = _packed(problem, [stays[at] for at in mine])
        if offsets is None:
            return None
        for at, offset in zip(mine, offsets, strict=True):
            found[at] = replace(stays[at], address=offset)
    return tuple(found)


def _packed(problem: ResidencyProblem, stays: Sequence[Stay]) -> tuple[list[int] | None, bool]:
    """Return the addresses of stays on one scratchpad, or None; and whether that there are none is proven."""
    if not stays:
        return [], True
    pad = problem.pads[stays[0].pad]
    capacity = pad.capacity_bytes // pad.word_bytes * pad.word_bytes
    rooms = [problem.rooms[stay.tensor][stay.pad] for stay in stays]
    found = _first_fit(stays, rooms)
    if max(place + room for place, room in zip(found, rooms, strict=True)) <= capacity:
        return found, True
    if len(stays) > MANY:
        return None, False
    _compiled()
    buffers = Buffers(tuple(map(str, range(len(stays)))), np.array([stay.first for stay in stays]),
                      np.array([stay.last + 1 for stay in stays]), np.array(rooms))
    better = pack(buffers, capacity, seconds=SECONDS)
    return (None if better.offsets is None else better.offsets.tolist()), better.proven


def _first_fit(stays: Sequence[Stay], rooms: Sequence[int]) -> list[int]:
    """Return addresses where each stay has the lowest place that is free, the largest first.

    It mostly does, and loads nothing that is compiled, as `pack` has to.
    """
    found = np.full(len(stays), AWAY, dtype=np.int64)
    first, last = (np.array([getattr(stay, end) for stay in stays]) for end in ("first", "last"))
    sizes = np.array(rooms)
    for at in sorted(range(len(stays)), key=lambda at: (-rooms[at], stays[at].first)):
        low = 0
        others = np.flatnonzero((found != AWAY) & (first <= last[at]) & (first[at] <= last))
        for begin, end in sorted(zip(found[others].tolist(), (found + sizes)[others].tolist(), strict=True)):
            if begin - low >= rooms[at]:
                break
            low = max(low, end)
        found[at] = low
    places: list[int] = found.tolist()
    return places


@cache
def _compiled() -> None:
    """Have all that packs compiled before time counts."""
    pack(Buffers(("a", "b", "c"), np.array([0, 1, 0]), np.array([2, 3, 1]), np.array([3, 2, 2])), 5, seconds=None)


def proven_conflict(problem: ResidencyProblem, stays: Sequence[Stay]) -> tuple[Stay, ...]:
    """Return few stays on one scratchpad of which it is proven that they have no addresses together; or none.

    Of the fewest steps in which that is so those are left that none can be taken from.
    """
    pads = [[stay for stay in stays if stay.pad == pad] for pad in range(len(problem.pads))]
    mine = next((each for each in pads if _packed(problem, each)[0] is None), [])

    def within(first: int, last: int) -> list[Stay]:
        return [stay for stay in mine if stay.last >= first and stay.first <= last]

    def conflict(first: int, last: int) -> bool:
        return _packed(problem, within(first, last))[0] is None

    steps = range(len(problem.steps))
    end = bisect_left(steps[:-1], True, key=lambda last: conflict(0, last))
    left = within(bisect_left(steps[1:end + 1], True, key=lambda first: not conflict(first, end)), end)
    if _packed(problem, left) != (None, True):
        return ()
    for stay in tuple(left):
        fewer = [one for one in left if one is not stay]
        if _packed(problem, fewer) == (None, True):
            left = fewer
    return tuple(left)
