"""A mapping as a plain list of loops, for walks under any `Conventions`, and the steps of lanes in lockstep."""

from dataclasses import dataclass
from math import prod

from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import Mapping
from tilewright.workload import Operator


@dataclass(frozen=True)
class PlainLoop:
    """A loop: position of its level, dimension, extent of the tile just inside, nominal count, side of the array."""

    level: int
    dimension: str
    step: int
    count: int
    side: str | None
    ragged: bool


@dataclass(frozen=True)
class PlainNest:
    """A mapping as a list of loops, outermost first; the compute unit comes after the last level."""

    operator: Operator
    accelerator: Accelerator
    loops: tuple[PlainLoop, ...]

    @classmethod
    def of(cls, operator: Operator, accelerator: Accelerator, mapping: Mapping) -> "PlainNest":
        """Return the loops of a mapping that covers every dimension."""
        loops, extents = [], dict(operator.sizes)
        for at, (level, entry) in enumerate(zip(accelerator.levels, mapping.levels, strict=True)):
            for loop in entry.loops:
                extent, step = extents[loop.dimension], min(loop.step, extents[loop.dimension])
                if step < extent:
                    side = loop.axis or "X" if isinstance(level, Fanout) else None
                    loops.append(PlainLoop(at, loop.dimension, step, -(-extent // step), side, extent % step > 0))
                extents[loop.dimension] = step
        return cls(operator, accelerator, tuple(loops))

    @property
    def ragged(self) -> bool:
        """Whether some steps do not divide."""
        return any(loop.ragged for loop in self.loops)

    def left(self, loop: PlainLoop, index: dict[PlainLoop, int]) -> int:
        """Return how often a loop really runs, given the ``index`` of loops outside it (the first where not given)."""
        extent = self.operator.sizes[loop.dimension]
        for other in self.loops[:self.loops.index(loop)]:
            if other.dimension == loop.dimension:
                extent = min(other.step, extent - index.get(other, 0) * other.step)
        return -(-extent // loop.step)

    def remainder(self, loop: PlainLoop) -> int:
        """Return how often a loop runs in its very last round."""
        return (self.operator.sizes[loop.dimension] - 1) // loop.step % loop.count + 1

    def remains(self, loop: PlainLoop) -> bool:
        """Whether a loop inside this one, over the same dimension, has a last round smaller than the others."""
        return any(self.remainder(other) < other.count for other in self.loops[self.loops.index(loop) + 1:]
                   if other.dimension == loop.dimension)

    def is_last(self, loop: PlainLoop, index: dict[PlainLoop, int]) -> bool:
        """Whether the loops outside this one, over the same dimension, are all at their last iterations."""
        return all(index.get(other, 0) + 1 >= self.remainder(other) for other in self.loops[:self.loops.index(loop)]
                   if other.dimension == loop.dimension)

    def outside(self, level: int) -> list[PlainLoop]:
        """Return the loops outside a level."""
        return [loop for loop in self.loops if loop.level < level]

    def lanes(self, level: int) -> int:
        """Return the nominal number of instances of a level in use."""
        return prod(loop.count for loop in self.outside(level) if loop.side)

    @property
    def shared(self) -> int:
        """Position of the memory that all arrays share: the last one outside them."""
        levels = self.accelerator.levels
        arrays = [at for at, level in enumerate(levels) if isinstance(level, Fanout) and level.instances > 1]
        outside = [at for at, level in enumerate(levels) if not isinstance(level, Fanout)]
        return max(at for at in outside if at < arrays[0]) if arrays else outside[:-1][-1] if outside[1:] else 0


def lockstep(nest: PlainNest, visit: tuple[int, ...] | None = None) -> int:
    """Return the steps of compute where all lanes wait for the busiest of them, iteration by iteration.

    Parameters
    ----------
    visit
        Indices of the outermost temporal loops, where only the steps inside that iteration count.
    """
    names = [name for name, _ in nest.operator.dimensions]
    known: dict[tuple[int, tuple[int, ...]], int] = {}

    def inside(at: int, extents: tuple[int, ...], chosen: tuple[int, ...]) -> int:
        if at == len(nest.loops):
            return prod(extents)
        if not chosen and (at, extents) in known:
            return known[at, extents]
        loop = nest.loops[at]
        place = names.index(loop.dimension)

        def of(extent: int, rest: tuple[int, ...]) -> int:
            return inside(at + 1, (*extents[:place], extent, *extents[place + 1:]), rest) if extent > 0 else 0

        whole, last = divmod(extents[place], loop.step)
        if chosen and loop.side is None:
            return of(min(loop.step, extents[place] - chosen[0] * loop.step), chosen[1:])
        full, part = of(loop.step, chosen) if whole else 0, of(last, chosen)
        found = max(full, part) if loop.side else whole * full + part
        if not chosen:
            known[at, extents] = found
        return found

    return inside(0, tuple(size for _, size in nest.operator.dimensions), visit or ())
