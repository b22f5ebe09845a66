"""Mappings as cluster levels: what MAESTRO's directives and GAMMA's genomes both say.

A level has one tile for each dimension, an order, and one dimension that spreads. Where a mapping says more (loops of
one dimension at two memories, loops over several sides of an array), it becomes more levels, some of one cluster only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.interop.maestro.layers import MaestroView
from tilewright.interop.notes import Notes
from tilewright.mapping import Loop, extents_at, lanes
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator


@dataclass(frozen=True)
class Level:
    """One level of clusters."""

    lanes: int
    """How many clusters there are inside the level outside it."""
    tiles: tuple[tuple[str, int], ...]
    """Dimension of the operator and its tile, outermost first; dimensions without a loop come first."""
    spread: str
    """The dimension that spreads over the clusters."""


def rows_of(mappings: Mapping[str, Nest], operators: Mapping[str, Operator],
            accelerator: Accelerator) -> dict[str, int]:
    """Return how many rows an array of any shape gets for layers that get not just those in use.

    Where all layers use as many, one gets more, so that the files still say that the shape may differ.
    """
    arrays = [level for level in accelerator.fanouts if level.instances > 1]
    if len(arrays) != 1 or not arrays[0].flexible or len(mappings) == 1:
        return {}
    used = {}
    for name, mapping in mappings.items():
        outside = zip(mapping.levels, extents_at(mapping, operators[name].sizes), strict=False)
        used[name] = next(lanes(entry, extents) for entry, extents in outside if entry.level == arrays[0].name)
    if len({rows for _, rows in used.values()}) != 1:
        return {}
    for name, (columns, rows) in used.items():
        for more in range(rows + 1, arrays[0].instances // 2 + 1):
            if arrays[0].instances // more >= columns:
                return {name: more}
    return {}


def levels_of(mapping: Nest, accelerator: Accelerator, view: MaestroView, notes: Notes,
              rows: int | None = None) -> tuple[Level, ...]:
    """Return the cluster levels of a mapping, outermost first; what is said differently is added to ``notes``.

    Parameters
    ----------
    rows
        Rows of an array that takes any shape, for those in use where None.

    Raises
    ------
    InputError
        If the mapping's levels are not those of the accelerator, or more spreads than an array has room for.
    """
    if [entry.level for entry in mapping.levels] != [level.name for level in accelerator.levels]:
        raise InputError("mapping.levels", f"must be those of {accelerator.name}")
    return _Writer(mapping, accelerator, view, notes, rows).levels()


@dataclass
class _Writer:
    """Makes levels of a mapping, outermost first."""

    mapping: Nest
    accelerator: Accelerator
    view: MaestroView
    notes: Notes
    rows: int | None = None
    made: list[Level] = field(default_factory=list)
    waiting: list[Loop] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.extents = dict(self.view.operator.sizes)

    def levels(self) -> tuple[Level, ...]:
        """Return all levels."""
        arrays = [index for index, level in enumerate(self.accelerator.levels)
                  if isinstance(level, Fanout) and level.instances > 1]
        last = arrays[-1] if arrays else -1
        inside: list[Loop] = []
        for index, (level, entry) in enumerate(zip(self.accelerator.levels, self.mapping.levels, strict=True)):
            loops = self._running(entry.loops)
            if isinstance(level, Fanout):
                self._array(level, loops)
            elif index > last >= 0 or (not arrays and index > 1):
                inside += loops
            else:
                self._memory(index, loops)
                self._note_bypass(level, entry.keeps)
        if self.waiting or not self.made:
            self._close(1)
        if inside != [Loop(name, 1) for name, extent in self.extents.items() if extent > 1]:
            self._inside(inside)
        return tuple(self.made)

    def _inside_waiting(self) -> dict[str, int]:
        """Return the extents inside the loops that wait."""
        return self.extents | {loop.dimension: min(self.extents[loop.dimension], loop.step) for loop in self.waiting}

    def _running(self, loops: Sequence[Loop]) -> list[Loop]:
        """Return the loops that run more than once, given what stands outside them."""
        found, extents = [], self._inside_waiting()
        for loop in loops:
            if loop.step < extents[loop.dimension]:
                found.append(loop)
                extents[loop.dimension] = loop.step
        return found

    def _note_bypass(self, level: Memory, keeps: tuple[str, ...] | None) -> None:
        able = [t.name for t in self.view.operator.tensors if level.can_keep(t.name, t.role)]
        passed = [name for name in able if keeps is not None and name not in keeps]
        if passed:
            self.notes.dropped(f"{self.view.operator.name}.{level.name}",
                               f"{', '.join(passed)} pass it by: MAESTRO's memories keep every tensor")

    def _memory(self, index: int, loops: Sequence[Loop]) -> None:
        """Take the loops of a memory; those of L2 stand at a level of their own."""
        if loops and (index == 1 or (self.waiting and not self.made)) and index > 0 and not self.made:
            self._close(1)
        for loop in loops:
            if any(loop.dimension == other.dimension for other in self.waiting):
                if index == 0:
                    self.notes.approximated(f"{self.view.operator.name}.{self.accelerator.levels[0].name}",
                                            f"the loops from the second over {loop.dimension} on at L2")
                self._close(1)
            self.waiting.append(loop)

    def _array(self, level: Fanout, loops: Sequence[Loop]) -> None:
        """Make a level for every loop in space, and for every side that has none."""
        if level.instances == 1:
            return
        x, y = level.shape
        by_side = {side: [loop for loop in loops if (loop.axis or "X") == side] for side in ("X", "Y")}
        counts = self._counts(loops)
        if level.one_piece:
            y = self.rows or max(1, prod(counts[id(loop)] for loop in by_side["Y"]))
            x = level.instances // y
        for side, length in (("X", x), ("Y", y)):
            along = by_side[side]
            inner = prod(counts[id(loop)] for loop in along[1:])
            if length // inner < (counts[id(along[0])] if along else 1):
                raise InputError(f"mapping.{level.name}", f"must fit {length} along {side} to be written",
                                 inner * counts[id(along[0])] if along else inner)
            for number, loop in enumerate(along):
                self._close(length // inner if number == 0 else counts[id(loop)], loop)
            if not along and length > 1:
                self._close(length)

    def _counts(self, loops: Sequence[Loop]) -> dict[int, int]:
        """Return how often each loop in space runs, by its identity."""
        extents, counts = self._inside_waiting(), {}
        for loop in loops:
            counts[id(loop)] = -(-extents[loop.dimension] // loop.step)
            extents[loop.dimension] = loop.step
        return counts

    def _inside(self, loops: Sequence[Loop]) -> None:
        """Write the order of loops inside an element, as levels of one cluster."""
        self.notes.approximated(f"{self.view.operator.name}.{self.accelerator.levels[-1].name}", "the order of loops "
                                "inside an element as levels of one cluster, by whose tiles MAESTRO sizes L1")
        for loop in loops:
            if any(loop.dimension == other.dimension for other in self.waiting):
                self._close(1)
            self.waiting.append(loop)
        if self.waiting:
            self._close(1)

    def _close(self, lanes: int, loop: Loop | None = None) -> None:
        """End a level: the loops that wait run in time, ``loop`` over ``lanes`` clusters."""
        folds = any(loop is not None and loop.dimension == other.dimension and other.step == lanes * loop.step
                    for other in self.waiting)
        same = any(loop is not None and loop.dimension == other.dimension for other in self.waiting)
        free = [name for name in self.view.dimensions if not any(name == other.dimension for other in self.waiting)]
        if self.waiting and ((same and not folds) or (loop is None and lanes > 1 and not free)):
            self._close(1)
            return self._close(lanes, loop)
        tiles = {other.dimension: other.step for other in self.waiting}
        spread = loop.dimension if loop is not None else free[0] if free else self.waiting[-1].dimension
        still = [(name, self.extents[name]) for name in self.view.dimensions if name not in tiles]
        if loop is not None:
            tiles[loop.dimension] = loop.step
            still = [(name, loop.step if name == loop.dimension else extent) for name, extent in still]
        order = [(other.dimension, tiles[other.dimension]) for other in self.waiting]
        self.made.append(Level(lanes, (*still, *order), spread))
        for name, tile in tiles.items():
            self.extents[name] = min(self.extents[name], tile)
        self.waiting = []
        return None
