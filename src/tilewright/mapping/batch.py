"""Many mappings as arrays: the encoding that the compiled model and the mappers work on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Operator

SlotAxis = Literal["T", "X", "Y"]


@dataclass(frozen=True)
class Slot:
    """Room for one loop over every dimension at one level: temporal (``T``) or along one side of an array."""

    level: int
    axis: SlotAxis


@dataclass(frozen=True)
class Layout:
    """What all mappings of a batch have in common.

    Parameters
    ----------
    dimensions
        The operator's dimensions; axis ``d`` of the arrays.
    levels
        Names of the accelerator's levels.
    slots
        Outermost first; axis ``s`` of the arrays. A memory has one ``T`` slot, a fan-out an ``X`` and, where it has a
        second side, a ``Y`` slot. Mappings that loop twice over one dimension at a level need a level's slots repeated.
    keeps
        For each level, the tensors kept there (empty at fan-outs).
    """

    dimensions: tuple[str, ...]
    levels: tuple[str, ...]
    slots: tuple[Slot, ...]
    keeps: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, operator: Operator, accelerator: Accelerator, repeats: dict[str, int] | None = None,
           keeps: dict[str, tuple[str, ...]] | None = None) -> "Layout":
        """Return the layout of mappings of ``operator`` on ``accelerator``.

        ``repeats`` says how often a level's slots stand in a row (default once); ``keeps`` what memories keep where that
        is less than they can.
        """
        slots: list[Slot] = []
        kept: list[tuple[str, ...]] = []
        for index, level in enumerate(accelerator.levels):
            axes: tuple[SlotAxis, ...] = ("T",)
            if isinstance(level, Fanout):
                axes = ("X", "Y") if level.shape[1] > 1 or level.flexible or level.blocks else ("X",)
                kept.append(())
            else:
                able = tuple(t.name for t in operator.tensors if level.can_keep(t.name, t.role))
                kept.append((keeps or {}).get(level.name, able))
            slots += [Slot(index, axis) for axis in axes] * (repeats or {}).get(level.name, 1)
        names = tuple(level.name for level in accelerator.levels)
        return cls(tuple(operator.sizes), names, tuple(slots), tuple(kept))

    @cached_property
    def shape(self) -> tuple[int, int]:
        """``(s, d)``: number of slots and of dimensions."""
        return len(self.slots), len(self.dimensions)


@dataclass(frozen=True)
class MappingBatch:
    """``b`` mappings of one layout, the batch as the innermost axis.

    Parameters
    ----------
    steps
        ``(s, d, b)`` int32: extent of the tile of dimension ``d`` just inside slot ``s``. A loop whose step equals the
        extent outside is no loop. Non-increasing along ``s``; 1 at the last slot.
    ranks
        ``(s, d, b)`` int8: position of the dimension in the loop order of a temporal slot, 0 outermost, distinct over
        ``d``. Ignored at spatial slots.
    """

    layout: Layout
    steps: NDArray[np.int32]
    ranks: NDArray[np.int8]

    def __len__(self) -> int:
        return int(self.steps.shape[2])

    @classmethod
    def from_mappings(cls, mappings: list[Mapping], operator: Operator, accelerator: Accelerator) -> "MappingBatch":
        """Encode mappings, all with the same kept tensors; levels that loop twice over a dimension get more slots."""
        keeps = _common_keeps(mappings)
        repeats = {entry.level: 1 for entry in mappings[0].levels}
        for mapping in mappings:
            for entry in mapping.levels:
                repeats[entry.level] = max(repeats[entry.level], _repeats(entry))
        layout = Layout.of(operator, accelerator, repeats, keeps)
        count = len(mappings)
        steps = np.empty((*layout.shape, count), dtype=np.int32)
        ranks = np.empty((*layout.shape, count), dtype=np.int8)
        for b, mapping in enumerate(mappings):
            _encode(mapping, operator, layout, steps[:, :, b], ranks[:, :, b])
        return cls(layout, steps, ranks)

    def mapping(self, index: int, sizes: dict[str, int]) -> Mapping:
        """Decode one mapping; ``sizes`` are the operator's dimension sizes. Loops that run once are left out."""
        layout = self.layout
        extents = dict(sizes)
        loops: list[list[Loop]] = [[] for _ in layout.levels]
        for s, slot in enumerate(layout.slots):
            order = range(len(layout.dimensions))
            if slot.axis == "T":
                order = sorted(order, key=lambda d: self.ranks[s, d, index])  # type: ignore[assignment]
            for d in order:
                name, step = layout.dimensions[d], int(self.steps[s, d, index])
                if step < extents[name]:
                    loops[slot.level].append(Loop(name, step, None if slot.axis == "T" else slot.axis))
                    extents[name] = step
        fanouts = {slot.level for slot in layout.slots if slot.axis != "T"}
        return Mapping(tuple(
            LevelLoops(name, tuple(found), None if index in fanouts else layout.keeps[index])
            for index, (name, found) in enumerate(zip(layout.levels, loops, strict=True))
        ))

    def take(self, index: NDArray[np.intp] | slice) -> "MappingBatch":
        """Return the mappings at ``index`` as a batch of their own."""
        return MappingBatch(self.layout, np.ascontiguousarray(self.steps[:, :, index]),
                            np.ascontiguousarray(self.ranks[:, :, index]))


def _common_keeps(mappings: list[Mapping]) -> dict[str, tuple[str, ...]]:
    keeps = {entry.level: entry.keeps for entry in mappings[0].levels if entry.keeps is not None}
    for mapping in mappings[1:]:
        if {entry.level: entry.keeps for entry in mapping.levels if entry.keeps is not None} != keeps:
            raise InputError("mappings", "must all keep the same tensors at each memory to form one batch",
                             mend="Score mappings of different bypass one batch each")
    return keeps


def _repeats(entry: LevelLoops) -> int:
    """How often a level's slots must stand in a row for its loops to fit, in order."""
    used: dict[str, tuple[int, str]] = {}
    most = 1
    for loop in entry.loops:
        axis = loop.axis or "T"
        if loop.dimension in used:
            row, last = used[loop.dimension]
            row += axis <= last
            used[loop.dimension] = (row, axis)
        else:
            used[loop.dimension] = (0, axis)
        most = max(most, used[loop.dimension][0] + 1)
    # Temporal loops of other dimensions keep their place relative to a repeated one, so every loop after it moves on.
    if any(loop.axis is None for loop in entry.loops):
        most = _temporal_rows(entry)
    return most


def _temporal_rows(entry: LevelLoops) -> int:
    rows, seen = 1, set[str]()
    for loop in entry.loops:
        if loop.dimension in seen:
            rows, seen = rows + 1, set()
        seen.add(loop.dimension)
    return rows


def _encode(mapping: Mapping, operator: Operator, layout: Layout, steps: NDArray[np.int32],
            ranks: NDArray[np.int8]) -> None:
    """Write one mapping into ``(s, d)`` views."""
    extents = dict(operator.sizes)
    rows: list[dict[str, int]] = [{} for _ in layout.slots]
    order: list[list[str]] = [[] for _ in layout.slots]
    for index, entry in enumerate(mapping.levels):
        at = [s for s, slot in enumerate(layout.slots) if slot.level == index]
        reached: dict[str, int] = {}
        current = 0
        for loop in entry.loops:
            axis = loop.axis or "T"
            if axis == "T":
                current += loop.dimension in rows[at[current]]
                place = current
            else:
                start = reached.get(loop.dimension, -1) + 1
                place = next(i for i in range(start, len(at)) if layout.slots[at[i]].axis == axis)
            reached[loop.dimension] = place
            rows[at[place]][loop.dimension] = loop.step
            order[at[place]].append(loop.dimension)
    for s, row in enumerate(rows):
        rest = [name for name in layout.dimensions if name not in row]
        for position, name in enumerate(order[s] + rest):
            ranks[s, layout.dimensions.index(name)] = position
        for d, name in enumerate(layout.dimensions):
            extents[name] = row.get(name, extents[name])
            steps[s, d] = extents[name]
