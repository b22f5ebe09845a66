"""Dataflows as constraints: all the mappings that follow a dataflow, where `dataflow` gives one of them.

A preset says which dimensions may be spread along which side of the arrays (the classes of `dataflows`), which loops
run innermost so that the stationary tensor stays, and which memories let a tensor pass because a word of it has no
room. Sizes of tiles stay free, but for row-stationary, whose name says what a processing element holds:

* a filter row is whole in the scratchpad, and the window slides over it from outside: no loop over output positions
  runs inside the array;
* the filter's rows lie along the side of the array that sums them up, whole where they fit

(Chen et al., ISCA 2016, section V; as in the Eyeriss-like constraints of the Timeloop and Accelergy exercises, on
which section IV.A of Ruby relies. Those leave the orders of loops free; here the memory that feeds the array keeps
the filters where they are while output positions pass.)
"""

from itertools import permutations

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.batch import slot_axes
from tilewright.mapping.dataflows import DATAFLOWS, Classes, Dataflow, classes_of, holdable, spills, stationary
from tilewright.mapping.fit import tile_fits
from tilewright.mapping.spaces.rules.constraints import ANY, Bounds, Constraints
from tilewright.workload import Operator

_IN_AN_ELEMENT: Classes = ("window", "channels", "filters", "groups", "other")
"""Classes that loop inside the array where rows are stationary: positions slide past from outside."""


def dataflow_constraints(name: str, operator: Operator, accelerator: Accelerator) -> Constraints:
    """Return the constraints of the dataflow called ``name`` for one operator on one machine.

    The mapping of `dataflow` keeps to them, with these exceptions: where tiles as wide as the arrays do not fit it
    halves lanes, also those of filter rows; its row-stationary tiles grow evenly, so that an element may hold several
    output positions, and only part of a filter row; and it may fill a flexible array along the other side.

    Raises an `InputError` if the name is unknown, or the outermost memory cannot hold the tensors.
    """
    flow = DATAFLOWS.get(name)
    return _Preset(flow, operator, accelerator).constraints()


class _Preset:
    """Builds the constraints of one dataflow."""

    def __init__(self, flow: Dataflow, operator: Operator, accelerator: Accelerator) -> None:
        self.flow, self.operator, self.accelerator = flow, operator, accelerator
        self.classes = classes_of(operator)
        self.keeps = holdable(operator, accelerator)
        self.rows = flow is DATAFLOWS.get("row-stationary")
        self.sides = self._sides()

    def constraints(self) -> Constraints:
        able = {memory.name: tuple(t.name for t in self.operator.tensors if memory.can_keep(t.name, t.role))
                for memory in self.accelerator.memories}
        kept = {name: tuple(t.name for t in tensors) for name, tensors in self.keeps.items()}
        loops = {place: self._named(classes) for place, classes, _ in self.sides}
        inside = self._inside()
        if self.rows:
            loops |= {memory.name: self._named(_IN_AN_ELEMENT) for memory in inside}
        return Constraints(
            keeps={name: tensors for name, tensors in kept.items() if tensors != able[name]},
            loops=loops,
            orders=self._orders(),
            factors=self._rows_across() if self.rows else {},
            tiles=self._row_within(inside[0]) if self.rows and inside else {},
        )

    def _named(self, classes: Classes) -> tuple[str, ...]:
        found = {d for name in classes for d in self.classes[name]}
        return tuple(d for d in self.operator.sizes if d in found)

    def _sides(self) -> list[tuple[str, Classes, int]]:
        """Return the sides that have more than one place, outermost first, with their classes and places."""
        found: list[tuple[str, Classes, int]] = []
        for level in self.accelerator.levels:
            if isinstance(level, Fanout):
                for axis in slot_axes(level):
                    if level.side(axis) > 1:
                        found.append((f"{level.name}.{axis}", self.flow.sides[len(found) % 2], level.side(axis)))
        return found

    def _inside(self) -> list[Memory]:
        """Return the memories inside all arrays, outermost first; none where there is no array."""
        levels = self.accelerator.levels
        arrays = [i for i, level in enumerate(levels) if isinstance(level, Fanout) and level.instances > 1]
        return [level for level in levels[arrays[-1] + 1:] if isinstance(level, Memory)] if arrays else []

    def _feeder(self) -> str:
        """Return the memory that feeds the innermost array."""
        inside = [memory.name for memory in self._inside()]
        return [memory.name for memory in self.accelerator.memories if memory.name not in inside][-1]

    def _orders(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Return orders that run what the stationary tensor does not use innermost, and sums where they would spill."""
        found: dict[str, tuple[tuple[str, ...], ...]] = {}
        output, stays = self.operator.output, stationary(self.flow, self.operator)
        for memory in self.accelerator.memories:
            name = memory.name
            if spills(name, self.operator, self.accelerator, self.keeps):
                still = output
            elif self.rows and name != self._feeder():
                continue
            else:
                still = stays
            looping = [d for d, size in self.operator.dimensions if size > 1]
            if self.flow.reductions_first:
                sums = [d for d in looping if d not in output.dimensions]
                if 0 < len(sums) < len(looping):
                    found[name] = tuple((*order, ANY) for order in permutations(sums))
                continue
            inner = [d for d in looping if d not in still.dimensions]
            if 0 < len(inner) < len(looping):
                found[name] = tuple((ANY, *order) for order in permutations(inner))
        return found

    def _rows_across(self) -> dict[str, dict[str, Bounds]]:
        """Return the factor that spreads all rows of the filter along the first side meant for them, if they fit."""
        for place, classes, places in self.sides:
            if "window rows" in classes:
                return {place: {d: Bounds(self.operator.sizes[d], self.operator.sizes[d])
                                for d in self.classes["window rows"] if 1 < self.operator.sizes[d] <= places}}
        return {}

    def _row_within(self, memory: Memory) -> dict[str, dict[str, Bounds]]:
        """Return the tile that keeps a row of the filter whole in ``memory``, if it has room for one."""
        row = {d: self.operator.sizes[d] for d in self.classes["window"]
               if d not in self.classes["window rows"] and self.operator.sizes[d] > 1}
        extents = dict.fromkeys(self.operator.sizes, 1) | row
        if not row or not tile_fits(memory, self.keeps[memory.name], extents, self.accelerator):
            return {}
        return {memory.name: {d: Bounds(least=size) for d, size in row.items()}}
