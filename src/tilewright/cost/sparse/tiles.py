"""What tiles take of memories, and what zeros leave of the words that the static schedule moves."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.hardware import Columns
from tilewright.cost.sparse.rates import Share, Shares
from tilewright.cost.sums import KeptTensor, Left, MovedShares, Plan, Tallies
from tilewright.cost.tables import TallyKey
from tilewright.hardware import room_name
from tilewright.mapping import axis_sides, by_room, compression, footprint_bits, stored
from tilewright.workload import Tensor

Floats = NDArray[np.float64]
Extents = dict[str, Floats]


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
        return kept.memory.copies * footprint_bits(machine, kept.memory.name, kept.tensor, float(kept.bits), sides) / 8

    @cached_property
    def rooms(self) -> dict[int, dict[str, Floats]]:
        """Bytes taken of each room in which something stays, by level and the name of its number."""
        found: dict[int, dict[str, Floats]] = {}
        for level, memory in self.plan.memories:
            own = {kept.tensor.name: kept for kept in self.plan.of(level)}
            found[level] = {
                room_name(owner): sum((self.taken(own[tensor.name]) for tensor in tensors), start=np.zeros(()))
                for owner, tensors in by_room(memory, [kept.tensor for kept in own.values()]).items()}
        return found

    def excess(self, tallies: Tallies, columns: Columns) -> Floats:
        """Return how far over arrays and capacities mappings are, as of `DenseModel`."""
        total: Floats = tallies["total", -1, "", "arrays"].copy()
        for level, memory in self.plan.memories:
            for what, needed in self.rooms[level].items():
                capacity = columns.numbers.get((memory.name, what))
                if capacity is not None:
                    total += np.maximum(0.0, needed / capacity - 1.0)
        return total

    def told(self, key: TallyKey) -> Floats:
        """Return what a tensor or room takes."""
        view, level, name, _ = key
        if view == "room":
            return self.rooms[level].get(name, np.zeros(len(next(iter(self.extents[0].values())))))
        return self.taken(next(kept for kept in self.plan.of(level) if kept.tensor.name == name))


def left_by(shares: Shares, tallies: Tallies, tiles: TilesKept) -> Left:
    """Return what zeros leave of the static schedule, by what is gated, skipped or compressed."""
    plan = tiles.plan
    made = {(at.tensor.name, at.parent, time): shares.made(at, plan.crossings, tallies, time=time)
            for at in plan.crossings for time in (False, True)}

    def moved(kept: KeptTensor) -> MovedShares:
        given, name = compression(plan.accelerator, kept.memory.name, kept.tensor), kept.tensor.name
        found = None if given is None else stored(given, shares.zeros[name], tiles.sides(kept.level, kept.tensor))
        words: Share = 1.0 if found is None else found.words
        edges = {"reads": kept.inward, "updates": kept.inward, "fills": kept.outward, "drains": kept.outward}
        data, timed = ({kind: words * made[name, edge.parent, time] for kind, edge in edges.items() if edge is not None}
                       for time in (False, True))
        return MovedShares(data, timed, None if found is None else found.metadata_bits)

    inner = len(plan.accelerator.levels)
    return Left({(kept.level, kept.tensor.name): moved(kept) for kept in plan.kept},
                {at.tensor.name: made[at.tensor.name, at.parent, False] for at in plan.crossings if at.child == inner},
                shares.performed(time=True), shares.performed(time=False))
