"""The loop nest, written out: for every loop, its index at every value of its dimension."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import Mapping
from tilewright.workload import Operator

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NestLoop:
    """One loop that runs more than once, in nominal terms.

    Parameters
    ----------
    level
        Position of its level in the accelerator, 0 outermost.
    count
        Nominal iterations: ceil(nominal extent outside / step).
    spatial
        Whether its iterations are lanes of a fan-out rather than steps of time.
    index
        ``(size,)`` which iteration works on each value of the dimension. Ragged edges need no more than this: an
        iteration that holds no value does not happen.
    """

    level: int
    dimension: str
    count: int
    spatial: bool
    index: Indices


@dataclass(frozen=True, eq=False)
class Nest:
    """The whole nest: its loops, outermost first, and what each memory keeps.

    ``keeps[level]`` are the names of the tensors kept at a level, none at fan-outs. The level after the last one is the
    compute unit.
    """

    operator: Operator
    accelerator: Accelerator
    loops: tuple[NestLoop, ...]
    keeps: tuple[tuple[str, ...], ...]

    def outside(self, level: int) -> tuple[NestLoop, ...]:
        """Return the loops outside ``level``; its own temporal loops run while its tile is resident."""
        return tuple(loop for loop in self.loops if loop.level < level)

    def keepers(self, tensor: str) -> list[int]:
        """Return the memories that keep ``tensor``, outermost first."""
        return [level for level, kept in enumerate(self.keeps) if tensor in kept]

    def lanes(self, level: int) -> int:
        """Return the nominal number of instances of ``level`` in use."""
        return prod(loop.count for loop in self.outside(level) if loop.spatial)

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


def write_out(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Nest:
    """Return the nest that ``mapping`` describes.

    Raises
    ------
    InputError
        If levels do not correspond, a dimension is unknown or not covered, a step is not positive, a tensor is kept
        nowhere, or the output's home is an array of memories.
    """
    names = [level.name for level in accelerator.levels]
    given = [entry.level for entry in mapping.levels]
    if names != given:
        raise InputError("mapping.levels", f"must be the accelerator's levels {', '.join(names)}", ", ".join(given))
    loops: list[NestLoop] = []
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
            count = -(-extents[loop.dimension] // step)
            index, rest[loop.dimension] = np.divmod(rest[loop.dimension], step)
            extents[loop.dimension] = step
            if count > 1:
                loops.append(NestLoop(at, loop.dimension, count, isinstance(level, Fanout), index))
    left = {name: extent for name, extent in extents.items() if extent > 1}
    if left:
        raise InputError("mapping.levels", "must cover every dimension down to steps of 1",
                         ", ".join(f"{name}: {extent} left" for name, extent in left.items()),
                         "Add a loop of step 1 over it at some level")
    return Nest(operator, accelerator, tuple(loops), _keeps(operator, accelerator, mapping))


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
