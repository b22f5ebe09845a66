"""An address for each stay, or the stays that cannot have one together."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from tilewright.allocation.packing import Buffers, pack
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import AWAY, Stay

SECONDS, MANY = 1.0, 300
"""For the stays of a scratchpad; and stays beyond which only the first place that is free is tried."""


def addressed(problem: ResidencyProblem, stays: Sequence[Stay]) -> tuple[tuple[int, ...] | None, tuple[Stay, ...]]:
    """Return an address for each stay, none of which overlap in time and place; or None, and stays that have none.

    These are few, and on one scratchpad.
    """
    found = [0] * len(stays)
    for pad in range(len(problem.pads)):
        mine = [at for at, stay in enumerate(stays) if stay.pad == pad]
        offsets, _ = _packed(problem, [stays[at] for at in mine])
        if offsets is None:
            return None, _conflict(problem, [stays[at] for at in mine])
        for at, offset in zip(mine, offsets, strict=True):
            found[at] = offset
    return tuple(found), ()


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


def _conflict(problem: ResidencyProblem, stays: Sequence[Stay]) -> tuple[Stay, ...]:
    """Return those of some stays that have no addresses together: of the fewest steps in which that is so."""
    if len(stays) > MANY:
        pad = problem.pads[stays[0].pad]
        rooms = [pad.room(problem.tensors[stay.tensor].size_bytes) for stay in stays]
        top = pad.capacity_bytes // pad.word_bytes * pad.word_bytes
        over = min((stay for stay, low, room in zip(stays, _first_fit(stays, rooms), rooms, strict=True)
                    if low + room > top), key=lambda stay: stay.first)
        beside = tuple(stay for stay in stays if stay.last >= over.first and stay.first <= over.last)
        return beside if any(stay.first < stay.last for stay in beside) else tuple(stays)

    def fails(first: int, last: int) -> bool:
        return _packed(problem, [stay for stay in stays if stay.last >= first and stay.first <= last])[0] is None

    low, high = 0, len(problem.steps) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(0, middle) else (middle + 1, high)
    end, low = high, 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fails(middle, end) else (low, middle - 1)
    found = tuple(stay for stay in stays if stay.last >= low and stay.first <= end)
    return found if any(stay.first < stay.last for stay in found) else tuple(stays)


def proven_conflict(problem: ResidencyProblem, stays: Sequence[Stay]) -> tuple[Stay, ...]:
    """Return few of some stays of which it is proven that they have no addresses together; none where it is not."""
    left = list(stays)
    if _packed(problem, left) != (None, True):
        return ()
    for stay in stays:
        fewer = [one for one in left if one is not stay]
        if _packed(problem, fewer) == (None, True):
            left = fewer
    return tuple(left)
