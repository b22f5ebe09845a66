"""An address for each stay, or the stays that cannot have one together."""

from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache

import numpy as np

from tilewright.allocation.heuristics import stretches
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


def jointly(problem: ResidencyProblem, sets: Sequence[AbstractSet[int]], seconds: float,
            ) -> tuple[tuple[Stay, ...], tuple[int, ...]] | None:
    """Return stays that hold these tensors in each step, none moved, with addresses, both chosen at once; or None.

    Scratchpads lie behind one another in one range of addresses, and each stay has its place in it: none overlap in
    time and place (CP-SAT of OR-Tools).
    """
    from ortools.sat.python import cp_model  # noqa: PLC0415  (an extra)

    model, begins = cp_model.CpModel(), np.cumsum([0, *(pad.capacity_bytes for pad in problem.pads)]).tolist()
    runs = sorted((tensor, first, last) for first, last, tensor in stretches(sets))
    places, across, along = [], [], []
    for tensor, first, last in runs:
        pads = [pad for pad, one in enumerate(problem.pads) if problem.rooms[tensor][pad] <= one.capacity_bytes and all(
            pad in problem.pads_of(tensor, at) for at in range(first, last + 1))]
        rooms = {problem.rooms[tensor][pad] for pad in pads}
        if len(rooms) != 1:
            return None
        room = rooms.pop()
        ranges = [[begins[pad], begins[pad + 1] - room] for pad in pads]
        places.append(model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), ""))
        across.append(model.new_fixed_size_interval_var(first, last + 1 - first, ""))
        along.append(model.new_fixed_size_interval_var(places[-1], room, ""))
    model.add_no_overlap_2d(across, along)
    for at in range(len(problem.steps)):
        live = [place for place, (_, first, last) in enumerate(runs) if first <= at <= last]
        model.add_cumulative([along[place] for place in live], [1] * len(live), 1)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.random_seed = 0
    solver.parameters.max_time_in_seconds = max(0.01, seconds)
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    found, offsets = [], []
    for (tensor, first, last), place in zip(runs, places, strict=True):
        pad = bisect_right(begins, solver.value(place)) - 1
        made = not problem.tensors[tensor].outside and first == problem.touches[tensor][0]
        found.append(Stay(tensor, pad, first, last, "made" if made else "load"))
        offsets.append(solver.value(place) - begins[pad])
    return tuple(found), tuple(offsets)


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
