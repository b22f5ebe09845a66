"""Who keeps what in which format, what decides whether it is moved, and what tiles take of memories."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.dense.nest import Boundary, boundaries
from tilewright.cost.sparse.rates import Leader, Shares
from tilewright.cost.tables import TallyKey
from tilewright.hardware import Accelerator, Compression, Memory, room_name
from tilewright.mapping import axis_sides, by_room, compression, footprint_bits, tensor_bits
from tilewright.workload import Operator, Tensor

Floats = NDArray[np.float64]
Extents = dict[str, Floats]


@dataclass(frozen=True)
class KeptTensor:
    """A tensor in a memory: how it is compressed, and its boundaries outward (None: outermost) and inward."""

    level: int
    tensor: Tensor
    memory: Memory
    compressed: Compression | None
    bits: float
    outward: Boundary | None
    inward: Boundary

    @property
    def scale(self) -> float:
        """Words of the memory's own width in a word of the tensor."""
        return self.bits / self.memory.word_bits


class Plan:
    """Who keeps what, in which format, and what decides whether it is moved."""

    def __init__(self, operator: Operator, accelerator: Accelerator, shares: Shares,
                 keeps: tuple[tuple[str, ...], ...]) -> None:
        self.operator, self.accelerator, self.shares = operator, accelerator, shares
        self.crossings = [at for tensor in operator.tensors for at in boundaries(tensor, keeps)]
        self.leaders = {(at.tensor.name, at.parent, time): shares.leaders(at, self.crossings, time=time)
                        for at in self.crossings for time in (False, True)}
        self.kept = [self._kept(at) for at in self.crossings]

    def _kept(self, inward: Boundary) -> KeptTensor:
        memory = self.accelerator.levels[inward.parent]
        assert isinstance(memory, Memory)
        tensor = inward.tensor
        outward = next((at for at in self.crossings if at.tensor is tensor and at.child == inward.parent), None)
        return KeptTensor(inward.parent, tensor, memory, compression(self.accelerator, memory.name, tensor),
                    float(tensor_bits(tensor, self.accelerator)), outward, inward)

    def of(self, level: int) -> list[KeptTensor]:
        """Return what a memory keeps."""
        return [kept for kept in self.kept if kept.level == level]

    def memories(self) -> list[tuple[int, Memory]]:
        """Return the memories with their levels."""
        return [(at, level) for at, level in enumerate(self.accelerator.levels) if isinstance(level, Memory)]

    def leading(self, at: Boundary, *, time: bool) -> list[Leader]:
        """Return what decides over a crossing."""
        return self.leaders[at.tensor.name, at.parent, time]


class TilesKept:
    """What tiles of some extents, by level, hold and take."""

    def __init__(self, plan: Plan, extents: list[Extents]) -> None:
        self.plan, self.extents = plan, extents
        self._sides: dict[tuple[int, str, bool], list[Floats]] = {}

    def sides(self, level: int, tensor: Tensor, box: bool = False) -> list[Floats]:
        """Return the words of a tile along each axis, or of the smallest box around it."""
        key = level, tensor.name, box
        if key not in self._sides:
            own = self.extents[level]
            self._sides[key] = [
                axis_sides(tuple(times for _, times in axis.terms), [own[d] for d in axis.dimensions], box)
                for axis in tensor.axes] or [np.ones(len(next(iter(own.values()))))]
        return self._sides[key]

    def taken(self, kept: KeptTensor) -> Floats:
        """Return the bytes that a tensor takes of one instance of a memory; its home holds all of it."""
        machine, level = self.plan.accelerator, kept.level if kept.outward is not None else 0
        sides = self.sides(level, kept.tensor, machine.footprint == "box")
        return kept.memory.copies * footprint_bits(machine, kept.memory.name, kept.tensor, kept.bits, sides) / 8

    @cached_property
    def rooms(self) -> dict[int, dict[str, Floats]]:
        """Bytes taken of each room in which something stays, by level and the name of its number."""
        found: dict[int, dict[str, Floats]] = {}
        for level, memory in self.plan.memories():
            own = {kept.tensor.name: kept for kept in self.plan.of(level)}
            found[level] = {
                room_name(owner): sum((self.taken(own[tensor.name]) for tensor in tensors), start=np.zeros(()))
                for owner, tensors in by_room(memory, [kept.tensor for kept in own.values()]).items()}
        return found

    def told(self, key: TallyKey) -> Floats:
        """Return what a tensor or room takes."""
        view, level, name, _ = key
        if view == "room":
            return self.rooms[level].get(name, np.zeros(len(next(iter(self.extents[0].values())))))
        return self.taken(next(kept for kept in self.plan.of(level) if kept.tensor.name == name))
