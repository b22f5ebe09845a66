"""The loop nest, written out: for every loop, its index at every value of its dimension."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, Memory, Merging
from tilewright.mapping import Mapping
from tilewright.workload import Operator, Tensor

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WalkedLoop:
    """One loop that runs more than once, in nominal terms."""

    level: int
    """Position of its level in the accelerator, 0 outermost."""
    dimension: str
    step: int
    count: int
    """Extent of the tile just inside, and nominal iterations: ceil(nominal extent outside / step)."""
    side: str | None
    """Of the array, where its iterations are lanes of a fan-out rather than steps of time."""
    ragged: bool
    """Whether the last tile is smaller."""
    index: Indices
    """``(size,)`` which iteration works on each value of the dimension. Ragged edges need no more than this: an
    iteration that holds no value does not happen."""

    @property
    def spatial(self) -> bool:
        """Whether its iterations are lanes."""
        return self.side is not None


@dataclass(frozen=True, eq=False)
class WalkedNest:
    """The whole nest: its loops, outermost first, and what each memory keeps.

    ``keeps[level]`` are the names of the tensors kept at a level, none at fan-outs. The level after the last one is the
    compute unit.
    """

    operator: Operator
    accelerator: Accelerator
    loops: tuple[WalkedLoop, ...]
    keeps: tuple[tuple[str, ...], ...]

    def outside(self, level: int) -> tuple[WalkedLoop, ...]:
        """Return the loops outside ``level``; its own temporal loops run while its tile is resident."""
        return tuple(loop for loop in self.loops if loop.level < level)

    def keepers(self, tensor: str) -> list[int]:
        """Return the memories that keep ``tensor``, outermost first."""
        return [level for level, kept in enumerate(self.keeps) if tensor in kept]

    def apart(self, tensor: Tensor, parent: int, child: int, *, overlapping: bool = True) -> list[WalkedLoop]:
        """Return the lane loops between parent and child whose instances do not merge (rules 4 and 5).

        ``overlapping``: instances merge along a sliding axis only where their tiles abut.
        """
        sliding = {d for axis in tensor.axes if len(axis.terms) > 1 and overlapping for d in axis.dimensions}
        apart: list[WalkedLoop] = []
        broken: set[str] = set()
        for loop in reversed(self.outside(child)):
            if loop.spatial and not self.serves(child, loop) and (loop.level >= parent or self.serves(parent, loop)):
                fanout = self.accelerator.levels[loop.level]
                assert isinstance(fanout, Fanout)
                merges = _merges(fanout.reduce if tensor.is_output else fanout.multicast, tensor, loop)
                if merges and not (loop.dimension in sliding and loop.dimension in broken):
                    continue
                apart.append(loop)
            broken.add(loop.dimension)
        return apart[::-1]

    def advancing(self, tensor: Tensor, child: int) -> list[WalkedLoop]:
        """Rule 2: skip the innermost loops that do not concern the tensor; the others advance. At compute, all do."""
        temporal = [loop for loop in self.outside(child) if not loop.spatial]
        count = len(temporal)
        while child < len(self.keeps) and count and temporal[count - 1].dimension not in tensor.dimensions:
            count -= 1
        return temporal[:count]

    def serves(self, level: int, loop: WalkedLoop) -> bool:
        """Whether one instance of a memory serves all lanes of a loop further out, as it is shared along its side."""
        memory = self.accelerator.levels[level] if level < len(self.accelerator.levels) else None
        place = f"{self.accelerator.levels[loop.level].name}.{(loop.side or '').lower()}"
        return isinstance(memory, Memory) and place in memory.shared

    def lanes(self, level: int) -> int:
        """Return the nominal number of instances of ``level`` in use."""
        return prod(loop.count for loop in self.outside(level) if loop.spatial and not self.serves(level, loop))

    def steps(self) -> int:
        """Return the multiply-accumulates of the compute unit that does most of them, one a step (rule 7)."""
        lanes = [loop for loop in self.loops if loop.spatial]
        macs = np.ones(1, dtype=np.int64)
        for name, size in self.operator.dimensions:
            lane = np.zeros(size, dtype=np.int64)
            own = [loop for loop in lanes if loop.dimension == name]
            for loop in own:
                lane = lane * loop.count + loop.index
            macs = np.multiply.outer(macs, np.bincount(lane, minlength=prod(loop.count for loop in own))).ravel()
        return int(macs.max())

    def inside(self, loop: WalkedLoop) -> list[WalkedLoop]:
        """Return the loops inside this one, over the same dimension."""
        return [other for other in self.loops[self.loops.index(loop) + 1:] if other.dimension == loop.dimension]

    def around(self, loop: WalkedLoop) -> list[WalkedLoop]:
        """Return the loops outside this one, over the same dimension."""
        return [other for other in self.loops[:self.loops.index(loop)] if other.dimension == loop.dimension]

    def left(self, loop: WalkedLoop, index: dict[WalkedLoop, int]) -> int:
        """Return how often a loop really runs, given the ``index`` of loops outside it (the first where not given)."""
        extent = self.operator.sizes[loop.dimension]
        for other in self.around(loop):
            extent = min(other.step, extent - index.get(other, 0) * other.step)
        return -(-extent // loop.step)

    def remainder(self, loop: WalkedLoop) -> int:
        """Return how often a loop runs in its very last round."""
        return (self.operator.sizes[loop.dimension] - 1) // loop.step % loop.count + 1

    def remains(self, loop: WalkedLoop) -> bool:
        """Whether a loop inside this one, over the same dimension, has a last round smaller than the others."""
        return any(self.remainder(other) < other.count for other in self.inside(loop))

    def is_last(self, loop: WalkedLoop, index: dict[WalkedLoop, int]) -> bool:
        """Whether the loops outside this one, over the same dimension, are all at their last iterations."""
        return all(index.get(other, 0) + 1 >= self.remainder(other) for other in self.around(loop))

    @property
    def shared(self) -> int:
        """Position of the memory that all arrays share: the last one outside them."""
        levels = self.accelerator.levels
        arrays = [at for at, level in enumerate(levels) if isinstance(level, Fanout) and level.instances > 1]
        outside = [at for at, level in enumerate(levels) if not isinstance(level, Fanout)]
        return max(at for at in outside if at < arrays[0]) if arrays else outside[:-1][-1] if outside[1:] else 0


def _merges(given: Merging, tensor: Tensor, loop: WalkedLoop) -> bool:
    """Whether the lanes of a loop merge words of a tensor, by what its array says for all, or by name, else by role."""
    if isinstance(given, tuple):
        given = next((along for named in (tensor.name, tensor.role) for name, along in given if name == named), True)
    assert loop.side is not None
    return given if isinstance(given, bool) else given == loop.side.lower()


def write_out(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> WalkedNest:
    """Return the nest that ``mapping`` describes.

    Raises an `InputError` if levels do not correspond, a dimension is unknown or not covered, a step is not positive, a
    tensor is kept nowhere, or the output's home is an array of memories.
    """
    names = [level.name for level in accelerator.levels]
    given = [entry.level for entry in mapping.levels]
    if names != given:
        raise InputError("mapping.levels", f"must be the accelerator's levels {', '.join(names)}", ", ".join(given))
    loops: list[WalkedLoop] = []
    extents = dict(operator.sizes)
    rest = {name: np.arange(size, dtype=np.int64) for name, size in operator.dimensions}
    for at, (level, entry) in enumerate(zip(accelerator.levels, mapping.levels, strict=True)):
        for position, loop in enumerate(entry.loops):
            path = f"mapping.{level.name}.loops[{position}]"
            if loop.dimension not in extents:
                raise InputError(path, f"must loop over one of {', '.join(extents)}", loop.dimension)
            if loop.step < 1:
                raise InputError(path, "must have a positive step", loop.step)
            step = min(loop.step, extents[loop.dimension])
            count, ragged = -(-extents[loop.dimension] // step), extents[loop.dimension] % step > 0
            index, rest[loop.dimension] = np.divmod(rest[loop.dimension], step)
            extents[loop.dimension] = step
            side = loop.axis or "X" if isinstance(level, Fanout) else None
            if count > 1:
                loops.append(WalkedLoop(at, loop.dimension, step, count, side, ragged, index))
    left = {name: extent for name, extent in extents.items() if extent > 1}
    if left:
        raise InputError("mapping.levels", "must cover every dimension down to steps of 1",
                         ", ".join(f"{name}: {extent} left" for name, extent in left.items()),
                         "Add a loop of step 1 over it at some level")
    return WalkedNest(operator, accelerator, tuple(loops), _keeps(operator, accelerator, mapping))


def _keeps(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> tuple[tuple[str, ...], ...]:
    kept: list[tuple[str, ...]] = []
    known = [tensor.name for tensor in operator.tensors]
    for level, entry in zip(accelerator.levels, mapping.levels, strict=True):
        if isinstance(level, Memory):
            able = tuple(t.name for t in operator.tensors if level.can_keep(t.name, t.role))
            kept.append(able if entry.keeps is None else entry.keeps)
            unknown = sorted(set(kept[-1]) - set(known))
            if unknown:
                raise InputError(f"mapping.{level.name}.keeps", f"must be among {', '.join(known)}",
                                 ", ".join(unknown))
        else:
            kept.append(())
    missing = [name for name in known if not any(name in names for names in kept)]
    if missing:
        raise InputError("mapping.levels", "must keep every tensor at some memory", f"none keeps {', '.join(missing)}")
    home = next(at for at, names in enumerate(kept) if operator.output.name in names)
    if accelerator.instances(accelerator.levels[home].name) > 1:
        raise InputError(f"mapping.{accelerator.levels[home].name}.keeps",
                         f"must not be where {operator.output.name} begins and ends: sums of instances never meet",
                         operator.output.name, "Let a memory outside all arrays keep it")
    return tuple(kept)


def lockstep(nest: WalkedNest, visit: tuple[int, ...] | None = None) -> int:
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
