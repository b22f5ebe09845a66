"""Many mappings as arrays: the encoding that the compiled model and the mappers work on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.fit import full_keeps
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Operator

SlotAxis = Literal["T", "X", "Y"]


@dataclass(frozen=True)
class Slot:
    """Room for one loop over every dimension at one level: temporal (``T``) or along one side of an array."""

    level: int
    axis: SlotAxis


def slot_axes(level: Memory | Fanout) -> tuple[SlotAxis, ...]:
    """Return the axes of one row of a level's slots: X alone where an array of fixed shape has but one row."""
    if isinstance(level, Memory):
        return ("T",)
    return ("X", "Y") if level.shape[1] > 1 or level.one_piece else ("X",)


def loop_places(accelerator: Accelerator) -> list[str]:
    """Return where loops may run, outermost first: memories (``GLB``) and the sides of arrays (``PE.X``)."""
    return [level.name if axis == "T" else f"{level.name}.{axis}"
            for level in accelerator.levels for axis in slot_axes(level)]


MOST_STEP = 2**31 - 1
"""Batches hold steps in 32 bits."""


@dataclass(frozen=True)
class Layout:
    """What all mappings of a batch have in common."""

    dimensions: tuple[str, ...]
    """The operator's dimensions; axis ``d`` of the arrays."""
    levels: tuple[str, ...]
    """Names of the accelerator's levels."""
    slots: tuple[Slot, ...]
    """Outermost first; axis ``s`` of the arrays. A memory has one ``T`` slot, a fan-out an ``X`` and, where it has a
    second side, a ``Y`` slot. Mappings that loop twice over one dimension at a level need a level's slots repeated."""
    keeps: tuple[tuple[str, ...], ...]
    """For each level, the tensors kept there (empty at fan-outs)."""

    @classmethod
    def of(cls, operator: Operator, accelerator: Accelerator, repeats: dict[str, int] | None = None,
           keeps: dict[str, tuple[str, ...]] | None = None) -> "Layout":
        """Return the layout of mappings of ``operator`` on ``accelerator``.

        ``repeats`` says how often a level's slots stand in a row (default once); ``keeps`` what memories keep where
        that is less than they can.
        """
        slots: list[Slot] = []
        kept: list[tuple[str, ...]] = []
        for index, level in enumerate(accelerator.levels):
            if isinstance(level, Fanout):
                kept.append(())
            else:
                able = tuple(t.name for t in operator.tensors if level.can_keep(t.name, t.role))
                kept.append((keeps or {}).get(level.name, able))
            slots += [Slot(index, axis) for axis in slot_axes(level)] * (repeats or {}).get(level.name, 1)
        names = tuple(level.name for level in accelerator.levels)
        return cls(tuple(operator.sizes), names, tuple(slots), tuple(kept))

    @cached_property
    def shape(self) -> tuple[int, int]:
        """``(s, d)``: number of slots and of dimensions."""
        return len(self.slots), len(self.dimensions)

    @cached_property
    def temporal(self) -> list[int]:
        """The slots of memories, outermost first."""
        return [s for s, slot in enumerate(self.slots) if slot.axis == "T"]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """For each level, and for what lies inside all: its first slot, or that of the levels inside it."""
        return tuple(sum(slot.level < level for slot in self.slots) for level in range(len(self.levels) + 1))

    @cached_property
    def places(self) -> list[str]:
        """The name of every slot: a memory (``GLB``) or one side of an array (``PE.X``)."""
        names = self.levels
        return [names[slot.level] if slot.axis == "T" else f"{names[slot.level]}.{slot.axis}" for slot in self.slots]


@dataclass(frozen=True)
class MappingBatch:
    """``b`` mappings of one layout, the batch as the innermost axis."""

    layout: Layout
    steps: NDArray[np.int32]
    """``(s, d, b)`` int32: extent of the tile of dimension ``d`` just inside slot ``s``. A loop whose step equals the
    extent outside is no loop. Non-increasing along ``s``; 1 at the last slot."""
    ranks: NDArray[np.int8]
    """``(s, d, b)`` int8: position of the dimension in the loop order of a temporal slot, 0 outermost, distinct over
    ``d``. Ignored at spatial slots."""

    def __len__(self) -> int:
        return int(self.steps.shape[2])

    def outside(self, sizes: NDArray[Any]) -> NDArray[Any]:
        """Return ``(s, d, b)``: the extents just outside every slot, of dimensions of ``sizes`` ``(d)``."""
        whole = np.broadcast_to(sizes[None, :, None], (1, *self.steps.shape[1:]))
        return np.concatenate([whole, self.steps[:-1]])

    @classmethod
    def from_mappings(cls, mappings: list[Mapping], operator: Operator, accelerator: Accelerator) -> "MappingBatch":
        """Encode mappings, all with the same kept tensors; levels that loop twice over a dimension get more slots.

        Loops that run once take no slot. Spatial loops over different dimensions commute, so their order is not kept.

        Raises an `InputError` if there are no mappings, they keep different tensors, or one has no encoding: levels or
        dimensions that are not the accelerator's and the operator's, steps that grow or do not end at 1, loops without
        a place.
        """
        keeps = _common_keeps(mappings, operator, accelerator)
        places = [_places(f"mappings[{b}]", mapping, operator, accelerator) for b, mapping in enumerate(mappings)]
        repeats = {level.name: 1 for level in accelerator.levels}
        for found in places:
            for place in found:
                name = accelerator.levels[place.level].name
                repeats[name] = max(repeats[name], place.row + 1)
        layout = Layout.of(operator, accelerator, repeats, keeps)
        steps = np.empty((*layout.shape, len(mappings)), dtype=np.int32)
        ranks = np.empty((*layout.shape, len(mappings)), dtype=np.int8)
        for b, found in enumerate(places):
            _encode(found, operator.sizes, layout, steps[:, :, b], ranks[:, :, b])
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

    @classmethod
    def joined(cls, parts: Sequence["MappingBatch"]) -> "MappingBatch":
        """Return the mappings of one or more batches of one layout, one batch after the other."""
        return cls(parts[0].layout, np.concatenate([part.steps for part in parts], axis=2),
                   np.concatenate([part.ranks for part in parts], axis=2))

    def relaid(self, layout: Layout) -> "MappingBatch":
        """Return the mappings in the layout of a machine of other sides.

        A side that is not there has one lane: loops along a side that ``layout`` lacks run at the next slot inside.
        """
        if layout == self.layout:
            return self
        rows: list[int] = []
        for slot in layout.slots:
            rows.append(self.layout.slots.index(slot) if slot in self.layout.slots else rows[-1])
        steps = self.steps[rows]
        steps[-1] = 1
        return MappingBatch(layout, steps, self.ranks[rows])

    def extents(self, sizes: dict[str, int], span: slice = slice(None)) -> list[dict[str, NDArray[np.float64]]]:
        """Return the extents ``(b)`` of every level's tile by dimension; ``sizes`` are those of the operator."""
        found, slots = [], self.layout.slots
        for level in range(len(self.layout.levels)):
            first = next((s for s, slot in enumerate(slots) if slot.level >= level), len(slots))
            found.append({
                name: self.steps[first - 1, d, span].astype(np.float64) if first
                else np.full(len(self.steps[0, d, span]), float(sizes[name]))
                for d, name in enumerate(self.layout.dimensions)})
        return found

    def take(self, index: NDArray[np.intp] | slice) -> "MappingBatch":
        """Return the mappings at ``index`` as a batch of their own."""
        return MappingBatch(self.layout, np.ascontiguousarray(self.steps[:, :, index]),
                            np.ascontiguousarray(self.ranks[:, :, index]))


@dataclass(frozen=True)
class _Place:
    """Where one loop goes: the ``row``-th repeat of a level's slots, and the slot's axis there."""

    level: int
    row: int
    axis: SlotAxis
    loop: Loop


def _common_keeps(mappings: list[Mapping], operator: Operator, accelerator: Accelerator) -> dict[str, tuple[str, ...]]:
    if not mappings:
        raise InputError("mappings", "must be at least one to form a batch")
    keeps = full_keeps(mappings[0], operator, accelerator)
    for index, mapping in enumerate(mappings):
        if full_keeps(mapping, operator, accelerator) != keeps:
            raise InputError(f"mappings[{index}]", "must keep the same tensors at each memory as mappings[0]",
                             mend="Score mappings of different bypass one batch each")
    return keeps


def _places(path: str, mapping: Mapping, operator: Operator, accelerator: Accelerator) -> list[_Place]:
    """Return the place of every loop that runs more than once, outer to inner."""
    names = [level.name for level in accelerator.levels]
    if [entry.level for entry in mapping.levels] != names:
        raise InputError(f"{path}.levels", f"must be {', '.join(names)}", [entry.level for entry in mapping.levels])
    extents = dict(operator.sizes)
    places: list[_Place] = []
    for index, (entry, level) in enumerate(zip(mapping.levels, accelerator.levels, strict=True)):
        loops = _true_loops(f"{path}.{entry.level}", entry, extents)
        axes = slot_axes(level)
        wrong = next((loop for loop in loops if (loop.axis or "T") not in axes), None)
        if wrong:
            raise InputError(f"{path}.{entry.level}", f"must loop along {' or '.join(axes)}", str(wrong), _ILLEGAL)
        places += _spatial_rows(index, loops) if isinstance(level, Fanout) else _temporal_rows(index, loops)
    rest = [name for name, extent in extents.items() if extent > 1]
    if rest:
        raise InputError(path, "must cover every dimension down to 1", rest, _ILLEGAL)
    return places


def _true_loops(path: str, entry: LevelLoops, extents: dict[str, int]) -> list[Loop]:
    """Return the loops of ``entry`` that run more than once; bring ``extents`` down to what they leave."""
    found = []
    for loop in entry.loops:
        field = f"{path}.{loop.dimension}"
        if loop.dimension not in extents:
            raise InputError(field, f"must be one of {', '.join(extents)}", str(loop), _ILLEGAL)
        outside = extents[loop.dimension]
        if not 1 <= loop.step <= outside:
            raise InputError(field, f"must have a step of 1 to {outside}", loop.step, _ILLEGAL)
        extents[loop.dimension] = loop.step
        if loop.step < outside:
            found.append(loop)
    return found


_ILLEGAL = "tilewright.mapping.violations says how to mend it"


def _temporal_rows(level: int, loops: list[Loop]) -> list[_Place]:
    """Place temporal loops in order: one that repeats a dimension moves on to the next row, with all after it."""
    places, row, seen = [], 0, set[str]()
    for loop in loops:
        if loop.dimension in seen:
            row, seen = row + 1, set()
        seen.add(loop.dimension)
        places.append(_Place(level, row, "T", loop))
    return places


def _spatial_rows(level: int, loops: list[Loop]) -> list[_Place]:
    """Place spatial loops: those over one dimension keep their order, X standing before Y in each row."""
    places: list[_Place] = []
    last: dict[str, tuple[int, SlotAxis]] = {}
    for loop in loops:
        axis: SlotAxis = loop.axis or "X"
        row, before = last.get(loop.dimension, (-1, "Y"))
        row += axis <= before
        last[loop.dimension] = (row, axis)
        places.append(_Place(level, row, axis, loop))
    return places


def _encode(places: list[_Place], sizes: dict[str, int], layout: Layout, steps: NDArray[np.int32],
            ranks: NDArray[np.int8]) -> None:
    """Write one mapping into ``(s, d)`` views."""
    index = {name: d for d, name in enumerate(layout.dimensions)}
    found: dict[int, dict[str, int]] = {}
    for place in places:
        slots = [s for s, slot in enumerate(layout.slots) if slot == Slot(place.level, place.axis)]
        found.setdefault(slots[place.row], {})[place.loop.dimension] = place.loop.step
    extents = dict(sizes)
    for s in range(len(layout.slots)):
        row = found.get(s, {})
        extents |= row
        steps[s] = [extents[name] for name in layout.dimensions]
        order = [*row, *(name for name in layout.dimensions if name not in row)]
        for position, name in enumerate(order):
            ranks[s, index[name]] = position
