"""The loop nest as the closed forms see it: non-trivial loops in order, and who is whose child."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import Mapping, SpatialAxis, full_keeps
from tilewright.workload import Operator, Tensor

Keeps = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class NestLoop:
    """A loop that runs more than once: its level in the accelerator, and the extents outside and inside it."""

    level: int
    dimension: str
    outer: int
    step: int
    side: SpatialAxis | None
    """Of the array, where it is one over lanes."""

    @property
    def spatial(self) -> bool:
        """Whether its iterations are lanes."""
        return self.side is not None

    @property
    def count(self) -> int:
        """Nominal number of iterations."""
        return ceil(self.outer / self.step)


@dataclass(frozen=True)
class Boundary:
    """The transfer of one tensor between a memory and its child.

    ``parent`` and ``child`` are level indices; ``child`` is the number of levels where the compute unit is the child.
    """

    tensor: Tensor
    parent: int
    child: int


def standing(accelerator: Accelerator, boundary: Boundary, level: int, side: str | None) -> int | None:
    """Return at which level lanes along a side of an array count at a boundary.

    That of the parent where one instance of it serves all of them, none where one of the child does, else their own.
    """
    if not accelerator.shares_lanes:
        return level
    parent, child = (side is not None and _serves(accelerator, at, level, side)
                     for at in (boundary.parent, boundary.child))
    return None if child else boundary.parent if parent else level


def merges(accelerator: Accelerator, boundary: Boundary, level: int, side: str | None) -> bool:
    """Whether lanes along a side of an array share words on the way between parent and child."""
    array, place = accelerator.levels[level], standing(accelerator, boundary, level, side)
    if place is None or place < boundary.parent or not isinstance(array, Fanout):
        return False
    return array.merges(boundary.tensor.name, boundary.tensor.role)[side == "Y"]


def _serves(accelerator: Accelerator, memory: int, level: int, side: str) -> bool:
    """Whether one instance of the memory at a level (none at compute) serves all lanes along a side of an array."""
    found = accelerator.levels[memory] if memory < len(accelerator.levels) else None
    return isinstance(found, Memory) and bool(found.shared) and found.shares(accelerator.levels[level].name, side)


def carries(accelerator: Accelerator, boundary: Boundary, level: int) -> bool:
    """Whether what crosses a boundary goes through an array: between both, but for one of which a side is shared."""
    parent, child = (accelerator.shares_lanes and any(_serves(accelerator, at, level, side) for side in "xy")
                     for at in (boundary.parent, boundary.child))
    return not child and (parent or boundary.parent < level < boundary.child)


def keepers(tensor: Tensor, keeps: Keeps) -> list[int]:
    """Levels that keep ``tensor``, outermost first, where each keeps ``keeps``."""
    return [level for level, kept in enumerate(keeps) if tensor.name in kept]


def boundaries(tensor: Tensor, keeps: Keeps) -> list[Boundary]:
    """List the transfers of ``tensor``, outermost first, by what levels keep; the last one feeds the compute unit."""
    return [Boundary(tensor, parent, child) for parent, child in pairwise([*keepers(tensor, keeps), len(keeps)])]


@dataclass(frozen=True)
class Nest:
    """One mapping of one operator on one accelerator, flattened to its non-trivial loops, outermost first."""

    operator: Operator
    accelerator: Accelerator
    mapping: Mapping

    @cached_property
    def loops(self) -> tuple[NestLoop, ...]:
        """All loops of nominal count above 1."""
        extents = dict(self.operator.sizes)
        found = []
        for level, entry in enumerate(self.mapping.levels):
            spatial = isinstance(self.accelerator.levels[level], Fanout)
            for loop in entry.loops:
                if loop.step < extents[loop.dimension]:
                    found.append(NestLoop(level, loop.dimension, extents[loop.dimension], loop.step,
                                          loop.axis or "X" if spatial else None))
                    extents[loop.dimension] = loop.step
        return tuple(found)

    @cached_property
    def known_words(self) -> dict[tuple[str, int, int, bool, int, str], int]:
        """Words moved that were worked out before, see `closed_form.words`."""
        return {}

    @cached_property
    def keeps(self) -> Keeps:
        """Tensors kept at each level."""
        kept = full_keeps(self.mapping, self.operator, self.accelerator)
        return tuple(kept.get(level.name, ()) for level in self.accelerator.levels)

    def keepers(self, tensor: Tensor) -> list[int]:
        """Levels of the memories that keep ``tensor``, outermost first."""
        return keepers(tensor, self.keeps)

    def boundaries(self, tensor: Tensor) -> list[Boundary]:
        """List the transfers of ``tensor``, outermost first; the last one feeds the compute unit."""
        return boundaries(tensor, self.keeps)

    def extents(self, level: int) -> dict[str, int]:
        """Nominal extents of the tile of ``level``: after all loops of the levels outside it."""
        extents = dict(self.operator.sizes)
        for loop in self.loops:
            if loop.level < level:
                extents[loop.dimension] = loop.step
        return extents
