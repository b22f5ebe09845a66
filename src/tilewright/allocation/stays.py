"""Where tensors are and when, what moves for it, and what that costs under each objective.

The true objective differs from the one of the thesis (5.2.1) in this: a product is not loaded when it is made; what is
dead, and what the main memory has already, leaves for nothing; a tensor is stored at most once for each time that it is
written, before it is first loaded again or because it leaves the network; first loads and last stores count; moves
between scratchpads take a way of their own; and bytes are counted, not transitions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from tilewright.allocation.problem import ResidencyProblem
from tilewright.base import InputError, unknown_name

Held: TypeAlias = NDArray[np.int8]
Beginning = Literal["made", "load", "move"]
TransferKind = Literal["load", "store", "move"]
ResidencyMetric = Literal["bytes", "latency", "energy", "thesis"]
RESIDENCY_METRICS = get_args(ResidencyMetric)
Shares = dict[tuple[int, int], float]
"""By tensor and step, how much of it stays until its next use."""
AWAY = -1
LARGEST = 2**61
"""What scores stay below, so that every solver can hold them."""


@dataclass(frozen=True)
class Stay:
    """A tensor on one scratchpad from step ``first`` to step ``last``, both included, and how it came there."""

    tensor: int
    pad: int
    first: int
    last: int
    begins: Beginning
    address: int = AWAY
    """`AWAY` as long as it has none."""


@dataclass(frozen=True)
class DmaTransfer:
    """What the DMA moves: loads and moves before step ``step`` runs, stores after it; -1 is the main memory."""

    kind: TransferKind
    tensor: int
    origin: int
    target: int
    step: int
    bytes: int

    @property
    def pad(self) -> int:
        """Where a load or a move ends and a store begins."""
        return self.origin if self.kind == "store" else self.target


@dataclass(frozen=True)
class PlanTally:
    """What a plan takes; cycles as if nothing overlapped: each operation waits for its loads and for its stores."""

    loaded_bytes: int
    stored_bytes: int
    moved_bytes: int
    compute_cycles: int
    dma_cycles: int
    energy_pj: float
    moves: int

    @property
    def dram_bytes(self) -> int:
        """From and to the main memory."""
        return self.loaded_bytes + self.stored_bytes

    @property
    def latency_cycles(self) -> int:
        """Of compute and transfers, one after the other."""
        return self.compute_cycles + self.dma_cycles


def empty(problem: ResidencyProblem) -> Held:
    """Return ``(tensors, steps)`` of nothing held: the place of a scratchpad, or `AWAY`."""
    return np.full((len(problem.tensors), len(problem.steps)), AWAY, dtype=np.int8)


def stays_of(problem: ResidencyProblem, held: Held, anew: NDArray[np.bool_] | None = None) -> tuple[Stay, ...]:
    """Return the stays that ``held`` tells; where ``anew``, a tensor is loaded though it was there before."""
    found, there = [], held != AWAY
    begin, end = there.argmax(axis=1).tolist(), (held.shape[1] - there[:, ::-1].argmax(axis=1)).tolist()
    for tensor in np.flatnonzero(there.any(axis=1)).tolist():
        row, first = held[tensor].tolist(), None
        made = None if problem.tensors[tensor].outside else problem.touches[tensor][0]
        begins: Beginning = "load"
        for step in range(begin[tensor], end[tensor] + 1):
            pad = row[step] if step < len(row) else AWAY
            before = row[step - 1] if step else AWAY
            again = anew is not None and step < len(row) and bool(anew[tensor, step])
            if first is not None and (pad != before or again):
                found.append(Stay(tensor, before, first, step - 1, begins))
                first = None
            if pad != AWAY and first is None:
                moves = before not in (AWAY, pad) and not again and problem.across(before, pad) is not None
                begins = "made" if step == made else "move" if moves else "load"
                first = step
    return tuple(found)


def held_of(problem: ResidencyProblem, stays: Iterable[Stay]) -> Held:
    """Return ``(tensors, steps)``: the scratchpad of each tensor, or `AWAY`."""
    held = empty(problem)
    for stay in stays:
        held[stay.tensor, stay.first:stay.last + 1] = stay.pad
    return held


def transfers_of(problem: ResidencyProblem, stays: Sequence[Stay]) -> tuple[DmaTransfer, ...]:
    """Return all that moves, by step, stores last."""
    return tuple(sorted(_transfers(problem, stays), key=lambda one: (one.step, one.kind == "store", one.tensor)))


def _transfers(problem: ResidencyProblem, stays: Sequence[Stay]) -> Iterator[DmaTransfer]:
    of: dict[int, list[Stay]] = {}
    for stay in sorted(stays, key=lambda one: (one.tensor, one.first)):
        of.setdefault(stay.tensor, []).append(stay)
    for tensor, mine in of.items():
        size = problem.tensors[tensor].size_bytes
        for at, stay in enumerate(mine):
            if stay.begins != "made":
                origin = mine[at - 1].pad if stay.begins == "move" else AWAY
                yield DmaTransfer(stay.begins, tensor, origin, stay.pad, stay.first, size)
        loads = [stay.first for stay in mine if stay.begins == "load"]
        for written, following in versions(problem, tensor):
            last = following == len(problem.steps)
            # A load at the step that writes next brings in what was before.
            if any(written < at <= following for at in loads) or (last and problem.tensors[tensor].leaves):
                pad = next(stay.pad for stay in mine if stay.first <= written <= stay.last)
                yield DmaTransfer("store", tensor, pad, AWAY, written, size)


def versions(problem: ResidencyProblem, tensor: int) -> Iterator[tuple[int, int]]:
    """Return for each step that writes a tensor the next one that does, or the number of steps."""
    writes = problem.written[tensor]
    yield from zip(writes, (*writes[1:], len(problem.steps)), strict=False)


def tally(problem: ResidencyProblem, transfers: Iterable[DmaTransfer]) -> PlanTally:
    """Return what a plan with these transfers takes."""
    moved = dict.fromkeys(get_args(TransferKind), 0)
    cycles, energy, moves = 0, sum(step.energy_pj for step in problem.steps), 0
    for one in transfers:
        link = problem.across(one.origin, one.pad) if one.kind == "move" else problem.pads[one.pad].dram
        assert link is not None
        moved[one.kind] += one.bytes
        cycles += link.cycles(one.bytes)
        energy += link.energy_pj(one.bytes)
        moves += one.kind == "move"
    return PlanTally(moved["load"], moved["store"], moved["move"], sum(step.cycles for step in problem.steps), cycles,
                 energy, moves)


@dataclass(frozen=True)
class Prices:
    """What an objective takes for all that can move, as whole numbers.

    Several metrics one after the other make one number: what comes first weighs more than all that follows can. Moves
    between scratchpads break ties, where the number has room for them.

    Raises an `InputError` if a metric is unknown or given twice, or they are too many for one number.
    """

    problem: ResidencyProblem
    metrics: tuple[str, ...]
    """Of `RESIDENCY_METRICS`, the most important first."""

    def __post_init__(self) -> None:
        for name in self.metrics:
            if name not in RESIDENCY_METRICS:
                raise unknown_name("objective", name, [*RESIDENCY_METRICS, "edp", "peak"], "--objective")
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise InputError("--objective", "must name objectives once each", ",".join(self.metrics))
        if self._weights[len(self.metrics) - 1] == 0:
            raise InputError("--objective", "must be fewer one after the other: their numbers grow too large",
                             ",".join(self.metrics), "Leave out the last one")

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        """Return what one unit of each metric weighs, moves last; 0 where there is no room left."""
        names = (*self.metrics, "moves")
        spans = []
        for name in names:
            dearest = {size: max(self._metric(name, kind, size, pad, origin) for kind, pad, origin in self._ways)
                       for size in {one.size_bytes for one in self.problem.tensors}}
            most = sum(dearest[one.size_bytes] * 2 * (steps[-1] - steps[0] + 1)
                       for one, steps in zip(self.problem.tensors, self.problem.touches, strict=True) if steps)
            spans.append(most + self._fixed(name) + 1)
        for kept in range(len(names), 0, -1):
            weights = [1]
            for span in reversed(spans[1:kept]):
                weights.insert(0, weights[0] * span)
            if weights[0] * spans[0] < LARGEST:
                return (*weights, *[0] * (len(names) - kept))
        return (1, *[0] * len(self.metrics))

    @cached_property
    def _ways(self) -> tuple[tuple[TransferKind, int, int], ...]:
        """Return all that can move, and from where: kind, scratchpad, and that where a move begins."""
        pads = range(len(self.problem.pads))
        return tuple((kind, pad, origin) for kind in get_args(TransferKind) for pad in pads
                     for origin in (pads if kind == "move" else (AWAY,))
                     if kind != "move" or (pad != origin and self.problem.across(origin, pad) is not None))

    def _metric(self, name: str, kind: TransferKind, size: int, pad: int, origin: int) -> int:
        if name == "moves":
            return int(kind == "move")
        if name == "bytes":
            return 0 if kind == "move" else size
        if name == "thesis":
            return 0 if kind == "store" else 2 * size
        link = self.problem.across(origin, pad) if kind == "move" else self.problem.pads[pad].dram
        assert link is not None
        return link.cycles(size) if name == "latency" else round(1000 * link.energy_pj(size))

    def _fixed(self, name: str) -> int:
        """Return what no plan changes of a metric."""
        steps = self.problem.steps
        if name == "latency":
            return sum(step.cycles for step in steps)
        if name == "energy":
            return round(1000 * sum(step.energy_pj for step in steps))
        if name == "thesis":
            # What comes after the first step and goes before the last one changes twice; first loads are priced so.
            return sum((0 if one.outside else one.size_bytes * (at[0] > 0)) + one.size_bytes * (at[-1] < len(steps) - 1)
                       - (one.size_bytes * (1 + (at[0] == 0)) if one.outside else 0)
                       for one, at in zip(self.problem.tensors, self.problem.touches, strict=True) if at)
        return 0

    def price(self, kind: TransferKind, tensor: int, pad: int, origin: int = AWAY) -> int:
        """Return what one transfer costs."""
        key = kind, self.problem.tensors[tensor].size_bytes, pad, origin
        if key not in self._known:
            self._known[key] = sum(weight * self._metric(name, *key) for weight, name in zip(
                self._weights, (*self.metrics, "moves"), strict=True) if weight)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[TransferKind, int, int, int], int]:
        return {}

    @cached_property
    def fixed(self) -> int:
        """What no plan changes: operations themselves."""
        return sum(weight * self._fixed(name) for weight, name in zip(self._weights, self.metrics, strict=False))

    def score(self, transfers: Iterable[DmaTransfer]) -> int:
        """Return what a plan costs."""
        return self.fixed + sum(self.price(one.kind, one.tensor, one.pad, one.origin) for one in transfers)

    @property
    def unit(self) -> int:
        """One unit of the last metric that was named; all moves together weigh less than half of it, or nothing."""
        return self._weights[len(self.metrics) - 1]

    def named(self, score: int) -> int:
        """Return a score without what only breaks ties."""
        return score // self.unit

    @cached_property
    def grain(self) -> int:
        """What all prices share, but for what only breaks ties: scores go in such steps; 0 where all are free."""
        first = {one.size_bytes: at for at, one in enumerate(self.problem.tensors)}
        return gcd(*(self.named(self.price(kind, at, pad, origin)) for at in first.values()
                     for kind, pad, origin in self._ways))

    def lift(self, bound: int) -> int:
        """Return a bound raised to the next score that there can be."""
        fixed = self.named(self.fixed)
        named = -((self.unit // 2 - bound) // self.unit)
        return self.unit * (fixed - (fixed - named) // self.grain * self.grain) if self.grain else bound

    def first(self, score: int) -> float:
        """Return the first metric of a score: bytes, cycles or picojoules."""
        return score // self._weights[0] / (1000 if self.metrics[0] == "energy" else 1)

    @cached_property
    def compulsory(self) -> int:
        """What no plan is below: each tensor from outside loaded once, each that leaves stored once."""
        total, pads = self.fixed, self.problem.pads_of
        for tensor, (one, at) in enumerate(zip(self.problem.tensors, self.problem.touches, strict=True)):
            if at and one.outside:
                total += min(self.price("load", tensor, pad) for pad in pads(tensor, at[0]))
            if at and one.leaves and self.problem.written[tensor]:
                total += min(self.price("store", tensor, pad) for pad in pads(tensor, self.problem.written[tensor][-1]))
        return total

    def again(self, tensor: int, step: int) -> int:
        """Return the least that it costs to bring a tensor in for a step once it has left."""
        return min(self.price("load", tensor, pad) for pad in self.problem.pads_of(tensor, step))

    def saving(self, tensor: int, step: int) -> int:
        """Return the least that it costs the main memory to get what the last step up to ``step`` wrote of a tensor.

        0 where it has it.
        """
        if not self.problem.dirty(tensor, step):
            return 0
        written = max(at for at in self.problem.written[tensor] if at <= step)
        return min(self.price("store", tensor, pad) for pad in self.problem.pads_of(tensor, written))
