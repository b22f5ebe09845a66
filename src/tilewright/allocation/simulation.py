"""A plan over time: DMA channels that run ahead of the compute as far as the addresses allow."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import DmaTransfer, Stay, transfers_of

EventKind = Literal["compute", "load", "store", "move"]


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
    """What a plan takes over time.

    Parameters
    ----------
    cycles
        Until the last operation and the last transfer have ended.
    stalls
        By step: cycles that compute waited before it.
    busy_cycles
        Of all channels.
    """

    events: tuple[PlanEvent, ...]
    cycles: int
    stalls: tuple[int, ...]
    busy_cycles: int


@dataclass
class _Channel:
    """What a DMA channel does when."""

    number: int
    taken: list[tuple[int, int]] = field(default_factory=list)

    def earliest(self, ready: int, cycles: int) -> int:
        """Return when it has so many cycles free, from ``ready`` on."""
        at = ready
        for start, end in self.taken:
            if start - at >= cycles:
                break
            at = max(at, end)
        return at

    def take(self, start: int, cycles: int) -> None:
        self.taken.append((start, start + cycles))
        self.taken.sort()


def simulate(problem: ResidencyProblem, stays: Sequence[Stay], addresses: Sequence[int], channels: int = 1,
             overlap: bool = True) -> SimulatedPlan:
    """Return what a plan takes where transfers overlap compute: double buffering, as far as there is room.

    A load begins as soon as a channel is free, the last operation that used its place has ended, and what lay there is
    stored; the main memory must have what it loads. An operation begins when the one before it has ended, its loads
    have, and the place of its results is free. Stores begin when the operation that writes has ended. Without
    ``overlap`` one thing is done after the other.
    """
    return _Run(problem, stays, addresses, channels, overlap).done()


class _Run:
    """One simulation."""

    def __init__(self, problem: ResidencyProblem, stays: Sequence[Stay], addresses: Sequence[int], channels: int,
                 overlap: bool) -> None:
        self.problem, self.stays, self.addresses, self.overlap = problem, stays, addresses, overlap
        self.channels = [_Channel(number) for number in range(min(channels, 2 * len(stays) + 1))]
        self.events: list[PlanEvent] = []
        self.columns = np.array([(stay.pad, stay.last, low, low + problem.rooms[stay.tensor][stay.pad])
                                 for stay, low in zip(stays, addresses, strict=True)], dtype=np.int64).reshape(-1, 4).T
        self.of: dict[int, list[int]] = {}
        for place, stay in enumerate(stays):
            self.of.setdefault(stay.tensor, []).append(place)
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
        for one in transfers_of(self.problem, self.stays):
            (after if one.kind == "store" else before).setdefault(one.step, []).append(one)
        stalls = []
        for at, step in enumerate(self.problem.steps):
            ready = max([self.ends[at], *(self._bring(one) for one in before.get(at, ()))])
            for place in (self._at(one, at) for one in step.writes):
                if self.stays[place].first == at and self.stays[place].begins == "made":
                    ready = max(ready, self._room(place))
            if not self.overlap:
                ready = max(ready, self.last)
            stalls.append(ready - self.ends[at])
            self._event(PlanEvent("compute", at, at, 0, ready, ready + step.cycles))
            self.ends[at + 1] = ready + step.cycles
            for one in after.get(at, ()):
                self._store(one)
        busy = sum(one.end - one.start for one in self.events if one.kind != "compute")
        return SimulatedPlan(tuple(self.events), self.last, tuple(stalls), busy)

    def _event(self, event: PlanEvent) -> None:
        self.events.append(event)
        self.last = max(self.last, event.end)

    def _room(self, place: int) -> int:
        """Return when the place of a stay is free."""
        first, (pads, lasts, lows, highs) = self.stays[place].first, self.columns
        before = np.flatnonzero((pads == pads[place]) & (lasts < first) & (lows < highs[place])
                                & (lows[place] < highs))
        return max((max(self.ends[self.stays[one].last + 1], self.free[one]) for one in before.tolist()), default=0)

    def _at(self, tensor: int, step: int) -> int:
        return next(place for place in self.of[tensor] if self.stays[place].first <= step <= self.stays[place].last)

    def _transfer(self, one: DmaTransfer, ready: int) -> int:
        link = self.problem.across(one.origin, one.pad) if one.kind == "move" else self.problem.pads[one.pad].dram
        assert link is not None
        cycles = link.cycles(one.bytes)
        ready = ready if self.overlap else max(ready, self.last)
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
