"""Plans whose stays get their addresses as they come: what leaves is what lies where room is needed, not only by size.

Compiled, so that thousands of tiles take milliseconds. At each step every tensor that it touches and that is not there
takes the place, of all scratchpads, where what lies there and waits is worth least: what it costs to bring it back, for
the steps until its next use. What a later step touches stays until then or until its place is taken.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from collections.abc import Iterator
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tilewright.allocation.problem import ResidencyProblem, packed
from tilewright.allocation.stays import AWAY, Prices, Shares, Stay
from tilewright.base import kept, part_options

FAR = (0.0, 0.02, 0.1, 0.5)
"""Shares of the steps; what is used again later than that is laid at the upper end of a scratchpad."""
POWERS = (1.0, 0.5, 2.0)
"""Of the steps to the next use, which what brings a tensor back is held against."""
LEAST_SHARE = 0.001
"""What a guide adds to all shares, so that what leaves in it has an order, too."""
MOST_FORCED = 40
"""Steps for which places are sought by size before it is given up."""
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions that only compiled functions call.
_part = njit(**_OPTIONS, **part_options())


@_part
def _remove(lows, owners, counts, pad, tensor):
    count = counts[pad]
    at = 0
    while owners[pad, at] != tensor:
        at += 1
    for later in range(at, count - 1):
        lows[pad, later], owners[pad, later] = lows[pad, later + 1], owners[pad, later + 1]
    counts[pad] = count - 1


@_part
def _insert(lows, owners, counts, pad, tensor, low):
    at = counts[pad]
    while at and lows[pad, at - 1] > low:
        lows[pad, at], owners[pad, at] = lows[pad, at - 1], owners[pad, at - 1]
        at -= 1
    lows[pad, at], owners[pad, at] = low, tensor
    counts[pad] += 1


@_part
def _last_before(lows, count, low):
    """Return the last that begins before an address, of ``count``; the first one where none does."""
    first, end = 0, count
    while end - first > 1:
        middle = (first + end) // 2
        if lows[middle] < low:
            first = middle
        else:
            end = middle
    return first


@_part
def _cheapest(lows, owners, counts, pad, size, top, rooms, worth, high, grain):
    """Return the least worth of what lies in a place of ``size``, and that place, in steps of ``grain``; or -1."""
    count, best, place = counts[pad], np.inf, -1
    # A cheapest place begins at an end of the scratchpad, or right below or above what lies there: shifted
    # until it touches one, it covers no more.
    for index in range(2 * count + 2):
        step = index // 2
        if index == 0:
            low = 0
        elif index == 2 * count + 1:
            low = top - size
        elif index % 2:
            low = lows[pad, step] - size
        else:
            low = lows[pad, step - 1] + rooms[owners[pad, step - 1], pad]
        low = low // grain * grain if index % 2 else -(-low // grain) * grain
        if low < 0 or low + size > top:
            continue
        at, total = _last_before(lows[pad], count, low), 0.0
        while at < count and lows[pad, at] < low + size and total <= best:
            if lows[pad, at] + rooms[owners[pad, at], pad] > low:
                total += worth[owners[pad, at]]
            at += 1
        if total < best or (total == best and place >= 0 and (low > place) == high):
            best, place = total, low
    return best, place


@_part
def _clear(lows, owners, counts, here, pad, low, end, rooms):
    """Let go what lies between two addresses."""
    at = 0
    while at < counts[pad]:
        other = owners[pad, at]
        if lows[pad, at] < end and lows[pad, at] + rooms[other, pad] > low:
            _remove(lows, owners, counts, pad, other)
            here[other] = -1
        else:
            at += 1


@_part
def _placed(lows, owners, counts, here, where, tensors, places, rooms, tops, worth, highs, grain):
    """Place what is not there of the tensors of a step, on scratchpads whose bits ``places`` has; say if all did."""
    for touch in range(len(tensors)):
        one = tensors[touch]
        if here[one] >= 0:
            continue
        best, chosen, place = np.inf, -1, -1
        for pad in range(len(tops)):
            if (places[touch] >> pad) & 1:
                cost, low = _cheapest(lows, owners, counts, pad, rooms[one, pad], tops[pad], rooms, worth, highs[touch],
                                      1 if rooms[one, pad] % grain else grain)
                if low >= 0 and cost < best:
                    best, chosen, place = cost, pad, low
        if chosen < 0:
            return False
        _clear(lows, owners, counts, here, chosen, place, place + rooms[one, chosen], rooms)
        _insert(lows, owners, counts, chosen, one, place)
        here[one], where[one] = chosen, place
    return True


@njit(**_OPTIONS)
def run(starts, tensors, following, allowed, rooms, tops, value, far, power, grain):
    """Return for each touch its scratchpad, its address, and whether it was there since the touch before.

    Touches of step ``s`` are ``starts[s]:starts[s + 1]``, in the order in which they are placed; ``following`` is the
    step of the next touch of the tensor, or -1; ``allowed`` are bits of scratchpads; ``value`` is what it costs to
    bring the tensor back after the touch. What takes whole multiples of ``grain`` begins at one if it can, so that it
    takes the place of another such tensor, not parts of two. The last result is the step that found no place, or -1.
    """
    count, pads = len(rooms), len(tops)
    pad_of, low_of = np.full(len(tensors), -1), np.zeros(len(tensors), np.int64)
    joined = np.zeros(len(tensors), np.bool_)
    here, where = np.full(count, -1), np.zeros(count, np.int64)
    lows, owners = np.zeros((pads, count), np.int64), np.zeros((pads, count), np.int64)
    counts = np.zeros(pads, np.int64)
    worth, weight, due = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
    for step in range(len(starts) - 1):
        first, last = starts[step], starts[step + 1]
        for pad in range(pads):
            for one in owners[pad, :counts[pad]]:
                worth[one] = weight[one] / float(due[one] - step + 1) ** power
        for touch in range(first, last):
            one = tensors[touch]
            if here[one] >= 0 and not (allowed[touch] >> here[one]) & 1:
                _remove(lows, owners, counts, here[one], one)
                here[one] = -1
            joined[touch] = here[one] >= 0
            worth[one] = np.inf
        mine, places, highs = tensors[first:last], allowed[first:last], following[first:last] - step > far
        if not _placed(lows, owners, counts, here, where, mine, places, rooms, tops, worth, highs, grain):
            counts[:] = 0
            here[:] = -1
            joined[first:last] = False
            if not _placed(lows, owners, counts, here, where, mine, places, rooms, tops, worth, highs, 1):
                return pad_of, low_of, joined, step
        for touch in range(first, last):
            one = tensors[touch]
            pad_of[touch], low_of[touch] = here[one], where[one]
            if following[touch] < 0:
                _remove(lows, owners, counts, here[one], one)
                here[one] = -1
            else:
                weight[one], due[one] = value[touch], following[touch]
    return pad_of, low_of, joined, -1


kept(run)


class OnlineRun:
    """A problem as the compiled run takes it; what a guide lets stay in part is worth more."""

    def __init__(self, problem: ResidencyProblem, prices: Prices, guide: Shares | None = None) -> None:
        self.problem = problem
        self.touches = [[*sorted(step.touches, key=lambda one: -problem.tensors[one].size_bytes)]
                        for step in problem.steps]
        pairs = [(at, one) for at, step in enumerate(self.touches) for one in step]
        after = {(one, at): later for one, steps in enumerate(problem.touches) for at, later in pairwise(steps)}
        self.tensors = np.array([one for _, one in pairs])
        self.starts = np.cumsum([0, *map(len, self.touches)])
        self.following = np.array([after.get((one, at), AWAY) for at, one in pairs])
        self.allowed = np.array([sum(1 << pad for pad in problem.pads_of(one, at)) for at, one in pairs])
        self.rooms = np.array(problem.rooms, dtype=np.int64)
        self.tops = np.array([pad.capacity_bytes // pad.word_bytes * pad.word_bytes for pad in problem.pads])
        self.value = np.array([float(prices.again(one, after[one, at]) + prices.saving(one, at))
                               if (one, at) in after else 0.0 for at, one in pairs])
        sizes, counts = np.unique(self.rooms, return_counts=True)
        most, word = int(sizes[counts.argmax()]), lcm(*(pad.word_bytes for pad in problem.pads))
        self.grain = most if 2 * counts.max() > self.rooms.size and most % word == 0 else 1
        if guide is not None:
            self.value *= [LEAST_SHARE + guide.get((one, at), 0.0) for at, one in pairs]

    def plans(self) -> Iterator[tuple[Stay, ...]]:
        """Give plans with their addresses, for each way to weigh what waits."""
        for power in POWERS:
            for far in FAR:
                found = self._plan(far * len(self.problem.steps), power)
                if found is not None:
                    yield found

    def _plan(self, far: float, power: float) -> tuple[Stay, ...] | None:
        """Return a plan; where a step finds no place, its tensors are bound to scratchpads that fit by size."""
        for _ in range(MOST_FORCED):
            *found, failed = run(self.starts, self.tensors, self.following, self.allowed, self.rooms, self.tops,
                                 self.value, far, power, self.grain)
            if failed < 0:
                return self._stays(*found)
            places = packed(self.problem, failed, self.touches[failed], sure=True)
            assert places is not None
            bound = [1 << places[one] for one in self.touches[failed]]
            self.allowed[self.starts[failed]:self.starts[failed + 1]] = bound
        return None

    def _stays(self, pads: NDArray[np.int64], lows: NDArray[np.int64], joined: NDArray[np.bool_]) -> tuple[Stay, ...]:
        stays = list[Stay]()
        last: dict[int, int] = {}
        steps = np.repeat(np.arange(len(self.problem.steps)), np.diff(self.starts)).tolist()
        for tensor, pad, low, same, at in zip(self.tensors.tolist(), pads.tolist(), lows.tolist(), joined.tolist(),
                                              steps, strict=True):
            if same:
                before = stays[last[tensor]]
                stays[last[tensor]] = Stay(tensor, pad, before.first, at, before.begins, before.address)
                continue
            made = tensor not in last and not self.problem.tensors[tensor].outside
            last[tensor] = len(stays)
            stays.append(Stay(tensor, pad, at, at, "made" if made else "load", low))
        return tuple(stays)
