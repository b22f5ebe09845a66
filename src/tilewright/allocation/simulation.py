"""A plan over time: DMA channels that run ahead of the compute as far as the addresses allow."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import DmaTransfer, Stay, transfers_of

EventKind = Literal["compute", "load", "store", "move"]
NONE = -1


@dataclass(frozen=True)
class PlanEvent:
    """What happens from ``start`` to ``end``, in cycles: an operation, or a transfer on a channel.

    ``subject`` is the place of the operation, or of the tensor; ``step`` that for which it is done.
    """

    kind: EventKind
    subject: int
    step: int
    channel: int
    start: int
    end: int


@dataclass(frozen=True)
class SimulatedPlan:
    """What a plan takes over time."""

    events: tuple[PlanEvent, ...]
    cycles: int
    """Until the last operation and the last transfer have ended."""
    stalls: tuple[int, ...]
    """By step: cycles that compute waited before it."""


class _Channel:
    """When a DMA channel is busy: stretches in order, with nothing between them that the least transfer fits into."""

    def __init__(self, number: int, least: int) -> None:
        self.number, self.least = number, least
        self.starts: list[int] = []
        self.ends: list[int] = []

    def earliest(self, ready: int, cycles: int) -> int:
        """Return when it has so many cycles free, from ``ready`` on."""
        at = bisect_right(self.ends, ready)
        while at < len(self.starts) and self.starts[at] - ready < cycles:
            ready = max(ready, self.ends[at])
            at += 1
        return ready

    def take(self, start: int, cycles: int) -> None:
        """Be busy for so many cycles that are free."""
        low, end = bisect_left(self.starts, start), start + cycles
        high = low
        if low and start - self.ends[low - 1] < self.least:
            low, start = low - 1, self.starts[low - 1]
        if high < len(self.starts) and self.starts[high] - end < self.least:
            high, end = high + 1, self.ends[high]
        self.starts[low:high], self.ends[low:high] = [start], [end]


class _Places:
    """Which stay was the last on each address of a scratchpad; those before it have left before it came."""

    def __init__(self) -> None:
        self.lows: list[int] = [0]
        self.stays: list[int] = [NONE]

    def replace(self, low: int, high: int, stay: int) -> list[int]:
        """Put a stay on a range of addresses; return those that were there."""
        first = bisect_right(self.lows, low) - 1
        end = bisect_left(self.lows, high)
        before = self.stays[first:end]
        kept = [(low, stay), (high, before[-1])]
        if self.lows[first] < low:
            kept.insert(0, (self.lows[first], before[0]))
        if end < len(self.lows) and self.lows[end] == high:
            kept.pop()
        self.lows[first:end], self.stays[first:end] = ([one[part] for one in kept] for part in (0, 1))
        return [one for one in before if one != NONE]


def simulate(problem: ResidencyProblem, stays: Sequence[Stay], channels: int = 1) -> SimulatedPlan:
    """Return what a plan takes where transfers overlap compute: double buffering, as far as there is room.

    A load begins as soon as a channel is free, the last operation that used its place has ended, and what lay there is
    stored; the main memory must have what it loads. An operation begins when the one before it has ended, its loads
    have, and the place of its results is free. Stores begin when the operation that writes has ended.
    """
    return _Run(problem, stays, channels).done()


class _Run:
    """One simulation."""

    def __init__(self, problem: ResidencyProblem, stays: Sequence[Stay], channels: int) -> None:
        self.problem, self.stays = problem, stays
        self.moved = transfers_of(problem, stays)
        least = min((self._cycles(one) for one in self.moved), default=1)
        self.channels = [_Channel(number, least) for number in range(min(channels, 2 * len(stays) + 1))]
        self.events: list[PlanEvent] = []
        self.places = [_Places() for _ in problem.pads]
        self.of: dict[int, list[int]] = {}
        for place in sorted(range(len(stays)), key=lambda place: stays[place].first):
            self.of.setdefault(stays[place].tensor, []).append(place)
        self.firsts = {tensor: [stays[place].first for place in places] for tensor, places in self.of.items()}
        self.ends = [0] * (len(problem.steps) + 1)
        """By step: when the operation before it ended."""
        self.free = [0] * len(stays)
        """By stay: when nothing reads it any more, beside operations."""
        self.stored: dict[int, int] = {}
        self.last = 0

    def done(self) -> SimulatedPlan:
        """Run all of it."""
        before: dict[int, list[DmaTransfer]] = {}
        after: dict[int, list[DmaTransfer]] = {}
        for one in self.moved:
            (after if one.kind == "store" else before).setdefault(one.step, []).append(one)
        stalls = []
        for at, step in enumerate(self.problem.steps):
            ready = max([self.ends[at], *(self._bring(one) for one in before.get(at, ()))])
            for place in (self._at(one, at) for one in step.writes):
                if self.stays[place].first == at and self.stays[place].begins == "made":
                    ready = max(ready, self._room(place))
            stalls.append(ready - self.ends[at])
            self._event(PlanEvent("compute", at, at, 0, ready, ready + step.cycles))
            self.ends[at + 1] = ready + step.cycles
            for one in after.get(at, ()):
                self._store(one)
        return SimulatedPlan(tuple(self.events), self.last, tuple(stalls))

    def _event(self, event: PlanEvent) -> None:
        self.events.append(event)
        self.last = max(self.last, event.end)

    def _room(self, place: int) -> int:
        """Return when the place of a stay is free, which is its own from then on."""
        stay = self.stays[place]
        before = self.places[stay.pad].replace(
            stay.address, stay.address + self.problem.rooms[stay.tensor][stay.pad], place)
        return max((max(self.ends[self.stays[one].last + 1], self.free[one]) for one in before), default=0)

    def _at(self, tensor: int, step: int) -> int:
        return self.of[tensor][bisect_right(self.firsts[tensor], step) - 1]

    def _cycles(self, one: DmaTransfer) -> int:
        link = self.problem.across(one.origin, one.pad) if one.kind == "move" else self.problem.pads[one.pad].dram
        assert link is not None
        return link.cycles(one.bytes)

    def _transfer(self, one: DmaTransfer, ready: int) -> int:
        cycles = self._cycles(one)
        channel = min(self.channels, key=lambda each: (each.earliest(ready, cycles), each.number))
        start = channel.earliest(ready, cycles)
        channel.take(start, cycles)
        self._event(PlanEvent(one.kind, one.tensor, one.step, channel.number, start, start + cycles))
        return start + cycles

    def _bring(self, one: DmaTransfer) -> int:
        """Load or move what a step needs; return when it is there."""
        ready = self._room(self._at(one.tensor, one.step))
        if one.kind == "load":
            return self._transfer(one, max(ready, self.stored.get(one.tensor, 0)))
        end = self._transfer(one, max(ready, self.ends[one.step]))
        origin = self._at(one.tensor, one.step - 1)
        self.free[origin] = max(self.free[origin], end)
        return end

    def _store(self, one: DmaTransfer) -> None:
        end = self._transfer(one, self.ends[one.step + 1])
        place = self._at(one.tensor, one.step)
        self.free[place] = max(self.free[place], end)
        self.stored[one.tensor] = end
