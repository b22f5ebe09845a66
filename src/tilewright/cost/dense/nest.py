"""The loop nest as the closed forms see it: non-trivial loops in order, and who is whose child."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import ceil

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import Mapping, tensor_bits
from tilewright.workload import Operator, Tensor

COMPUTE = "compute"


@dataclass(frozen=True)
class NestLoop:
    """A loop that runs more than once: its level in the accelerator, and the extents outside and inside it."""

    level: int
    dimension: str
    outer: int
    step: int
    spatial: bool

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
                    found.append(NestLoop(level, loop.dimension, extents[loop.dimension], loop.step, spatial))
                    extents[loop.dimension] = loop.step
        return tuple(found)

    def keepers(self, tensor: Tensor) -> tuple[int, ...]:
        """Levels of the memories that keep ``tensor``, outermost first."""
        found = []
        for index, (level, entry) in enumerate(zip(self.accelerator.levels, self.mapping.levels, strict=True)):
            if isinstance(level, Memory) and level.can_keep(tensor.name, tensor.role):
                if entry.keeps is None or tensor.name in entry.keeps:
                    found.append(index)
        return tuple(found)

    def boundaries(self, tensor: Tensor) -> tuple[Boundary, ...]:
        """List the transfers of ``tensor``, outermost first; the last one feeds the compute unit."""
        chain = (*self.keepers(tensor), len(self.mapping.levels))
        return tuple(Boundary(tensor, parent, child) for parent, child in pairwise(chain))

    def extents(self, level: int) -> dict[str, int]:
        """Nominal extents of the tile of ``level``: after all loops of the levels outside it."""
        extents = dict(self.operator.sizes)
        for loop in self.loops:
            if loop.level < level:
                extents[loop.dimension] = loop.step
        return extents

    def word_bits(self, tensor: Tensor) -> int:
        """Width of a word of ``tensor`` on this machine."""
        return tensor_bits(tensor, self.accelerator)


def memory_at(accelerator: Accelerator, level: int) -> Memory:
    """Return the memory at ``level``."""
    memory = accelerator.levels[level]
    assert isinstance(memory, Memory)
    return memory
