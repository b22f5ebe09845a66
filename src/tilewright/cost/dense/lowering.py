"""Write the dense model of one operator on one machine as a program for the compiled engine.

Follows `closed_form` and `single` step by step; what is a loop over pieces there is a table of rows here.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property

from tilewright.cost.dense import operations as op
from tilewright.cost.dense.closed_form import View
from tilewright.cost.dense.nest import Boundary, merges, standing
from tilewright.cost.dense.pieces import Action, Kind, Link, PieceTables
from tilewright.cost.dense.program import Program, Sizes, remembered
from tilewright.cost.dense.sliding import Side, Sliding
from tilewright.hardware import Accelerator
from tilewright.mapping import Layout
from tilewright.workload import Axis, Operator, Tensor


class Words:
    """Words moved at each edge, as rows of a program."""

    def __init__(self, operator: Operator, accelerator: Accelerator, layout: Layout, program: Program,
                 *, even: bool = False) -> None:
        self.operator = operator
        self.accelerator = accelerator
        self.layout = layout
        self.program = program
        self.even = even
        self.tables = PieceTables(program)
        self.sliding = Sliding(program, self.tables)
        self.sizes = {name: size for name, size in operator.dimensions if size > 1}
        self.compute = len(layout.levels)

    @cached_property
    def links(self) -> dict[tuple[int, str], Link]:
        """The loop of each slot over each dimension of more than one index."""
        found: dict[tuple[int, str], Link] = {}
        before = {name: self.size(name) for name in self.sizes}
        for slot, where in enumerate(self.layout.slots):
            for name in self.sizes:
                index = self.layout.dimensions.index(name)
                step, whole, rest, inverse = self._step(slot, index, before[name])
                place = None
                if where.axis == "T":
                    base = self.program.literal(slot * len(self.layout.dimensions))
                    place = self.program.one(op.position, step, before[name], slot, index, base)
                even = self.even or slot == len(self.layout.slots) - 1
                found[slot, name] = Link(step, whole, rest, inverse, even, place)
                before[name] = step
        return found

    def _step(self, slot: int, index: int, before: int) -> tuple[int, int, int, int]:
        """Rows S, Q, R, I of a loop; the innermost loops all have steps of 1."""
        one, zero = self.program.number(1.0), self.program.number(0.0)
        if slot == len(self.layout.slots) - 1:
            return one, before, zero, one
        if self.even:
            step, whole = self.program.emit(op.step_even, before, slot, index)
            return step, whole, zero, one
        step, whole, rest, inverse = self.program.emit(op.step, before, slot, index)
        return step, whole, rest, inverse

    def extent(self, slots: int, name: str) -> int:
        """Row with the nominal extent of a dimension inside the first ``slots`` slots."""
        return self.links[slots - 1, name].S if slots and name in self.sizes else self.size(name)

    def innermost(self, edge: Boundary) -> int | None:
        """Row with the place of the innermost advancing loop at an edge to a memory; None if there can be none."""
        places = [self.links[slot, name].place for slot in range(self.layout.starts[edge.child])
                  for name in self.sizes if name in edge.tensor.dimensions]
        return self.program.fold(op.larger, places, None)

    def merges(self, edge: Boundary, slot: int) -> bool:
        """Whether the lanes of a slot share words on the way between parent and child."""
        where = self.layout.slots[slot]
        return merges(self.accelerator, edge, where.level, where.axis if self._lane(slot) else None)

    def _place(self, edge: Boundary, slot: int) -> int | None:
        """Level at which the lanes of a slot count at an edge (`nest.standing`)."""
        where = self.layout.slots[slot]
        return standing(self.accelerator, edge, where.level, where.axis if self._lane(slot) else None)

    def _only_first(self, edge: Boundary, slot: int, look: View) -> bool:
        """Whether of the lanes of a slot only the first are looked at."""
        place = self._place(edge, slot)
        return self._lane(slot) and (place is None or place < look.first_outside)

    def actions(self, edge: Boundary, look: View, name: str) -> tuple[Action, ...]:
        """Say what the loops over ``name`` outside the child do; merged lanes collapse where the tensor lacks it."""
        chain = [self.links[slot, name] for slot in range(self.layout.starts[edge.child])]
        kinds: list[Kind] = []
        for slot, link in enumerate(chain):
            merged = look.merged and self.merges(edge, slot) and name not in edge.tensor.dimensions
            first = merged or self._only_first(edge, slot, look)
            kinds.append("cut" if link.place is not None or not first else "pick")
        return self._in_time(edge, look, name, list(zip(chain, kinds, strict=True)))

    def _in_time(self, edge: Boundary, look: View, name: str, loops: list[tuple[Link, Kind]]) -> tuple[Action, ...]:
        """Say of the temporal loops (``cut`` so far) which advance and which visits are looked at."""
        advances = name in edge.tensor.dimensions or edge.child == self.compute
        innermost = self.innermost(edge)
        extent = self.size(name)
        found = []
        for link, kind in loops:
            if link.place is None:
                found.append(Action(link, kind))
                extent = self.program.one(op.smaller, extent, link.S) if look.visit == "last" else extent
            elif look.visit == "first" or (innermost is None and not advances):
                found.append(Action(link, "pick"))
            elif look.visit == "all":
                found.append(Action(link, "cut") if advances or innermost is None else Action(link, "if", innermost))
            else:
                left = self.tables.last_extent(extent, link)
                skip = self.program.one(op.subtract, extent, left)
                if not advances and innermost is not None:
                    skip = self.program.one(op.rest_if, skip, link.place, innermost)
                if advances or innermost is None:
                    extent = left
                else:
                    extent = self.program.one(op.smaller, self.program.one(op.subtract, extent, skip), link.S)
                found.append(Action(link, "last", skip, extent))
        return tuple(found)

    def words(self, edge: Boundary, look: View) -> int:
        """Wide row: words moved at ``edge``, seen as ``look`` says."""
        lanes = [slot for slot in range(self.layout.starts[edge.child]) if self._lane(slot)]
        outside = any(self._only_first(edge, slot, look) for slot in lanes)
        merged = look.merged and any(
            self.merges(edge, slot) and not self._only_first(edge, slot, look) for slot in lanes)
        return self._words(edge, View(merged, look.first_outside if outside else 0, look.visit))

    @remembered
    def _words(self, edge: Boundary, look: View) -> int:
        if edge.child == self.compute and look.visit == "all":
            inner = [slot for slot in range(self.layout.starts[edge.child])
                     if self._lane(slot) and not self._only_first(edge, slot, look)]
            if not inner:
                return self.steps()
            if look.first_outside == 0 and not (look.merged and any(self.merges(edge, slot) for slot in inner)):
                return self.program.product([], self.all_of(self.sizes))
        return self._product(self.visits(edge, look), [(axis, edge, look) for axis in edge.tensor.axes])

    def _product(self, rows: list[int], along: list[tuple[Axis, Boundary, View]], kept: tuple[Axis, ...] = ()) -> int:
        """Wide row: product of rows and the words along axes as they are looked at, or of whole axes that are kept."""
        whole: list[str] = []
        sliding = []
        for axis, edge, look in along:
            names = [name for name in axis.dimensions if name in self.sizes]
            if len(names) == 2:
                sliding.append(self._sides(axis, edge, look))
                continue
            for name in names:
                row = self.tables.extent(self.size(name), self.actions(edge, look, name))
                whole += [name] if row is None else []
                rows += [] if row is None else [row]
        return self.program.product(rows + self.sliding.words(sliding), self.all_of(whole, kept))

    def visits(self, edge: Boundary, look: View) -> list[int]:
        """Rows with the pieces of each dimension that the tensor does not use."""
        lacking = [name for name in self.sizes if name not in edge.tensor.dimensions]
        counted = [self.tables.count(self.size(name), self.actions(edge, look, name)) for name in lacking]
        return [row for row in counted if row is not None]

    def _lane(self, slot: int) -> bool:
        return self.layout.slots[slot].axis != "T"

    def size(self, name: str) -> int:
        """Row with the size of a dimension, 1 where there is none of this name."""
        return self.program.number(Sizes((name,)) if name in self.sizes else 1.0)

    @staticmethod
    def all_of(names: Iterable[str], axes: tuple[Axis, ...] = ()) -> float | Sizes:
        """Return the product of sizes and of the words along whole axes, which each layer has for itself."""
        names = tuple(names)
        return Sizes(names, axes) if names or axes else 1.0

    def _sides(self, axis: Axis, edge: Boundary, look: View) -> tuple[Side, Side]:
        first, second = (self._side(edge, look, name, times)
                         for name, times in zip(axis.dimensions, axis.coprime, strict=True))
        return first, second

    def _side(self, edge: Boundary, look: View, name: str, coefficient: int) -> Side:
        loops, lanes = self._merged_run(edge, look, name)
        actions = self._in_time(edge, look, name, loops)
        steps = []
        innermost = self.innermost(edge)
        carries = not edge.tensor.is_output and edge.child < self.compute and look.visit == "all"
        if carries and innermost is not None:
            for at, action in enumerate(actions):
                if action.link.place is not None:
                    steps.append((at, self.program.one(op.at, action.link.place, innermost)))
        apart = View(False, look.first_outside, look.visit)
        lane_actions = self.actions(edge, apart, name) if lanes else ()
        return Side(self.size(name), coefficient, actions, tuple(steps), lanes, lane_actions)

    def _merged_run(self, edge: Boundary, look: View, name: str) -> tuple[list[tuple[Link, Kind]], tuple[int, ...]]:
        """Loops over a dimension of a sliding axis, and the steps of the merged lanes next to the child (rule 4).

        A merging lane with a real loop over the same dimension inside it counts as a lane of its own; which lanes those
        are differs from mapping to mapping, so the loops outside and inside it are linked anew.
        """
        emit = self.program
        merging = [
            look.merged and self._lane(slot) and not self._only_first(edge, slot, look)
            and self.merges(edge, slot) for slot in range(self.layout.starts[edge.child])
        ]
        loops: list[tuple[Link, Kind]] = []
        lanes: list[int] = []
        before = self.size(name)
        relinked = False
        for slot in range(self.layout.starts[edge.child]):
            link = self.links[slot, name]
            breakers = [i for i in range(slot + 1, len(merging)) if merging[slot] and not merging[i]]
            if merging[slot] and not breakers:
                loops.append((link, "drop"))
                lanes.append(link.S)
                continue
            relinked = relinked or bool(breakers)
            if relinked:
                real = self._real(name, breakers or [slot])
                link = self._relink(link, real, before)
                if breakers:
                    lanes.append(emit.one(op.choose, real, emit.number(emit.far), self.links[slot, name].S))
            loops.append((link, "pick" if self._only_first(edge, slot, look) else "cut"))
            before = link.S
        return loops, tuple(lanes)

    def _real(self, name: str, slots: list[int]) -> int:
        """Row that is 1 where any loop over ``name`` in ``slots`` runs more than once."""
        rows = [self.program.one(op.real, self.extent(slot, name), self.extent(slot + 1, name)) for slot in slots]
        return self.program.fold(op.larger, rows, self.program.number(0.0))

    @remembered
    def _relink(self, link: Link, real: int, before: int) -> Link:
        step = self.program.one(op.choose, real, link.S, before)
        whole, rest, inverse = self.program.emit(op.derive, step, before)
        return Link(step, whole, rest, inverse, link.even, link.place)

    @remembered
    def tile(self, tensor: Tensor, level: int, box: bool = False) -> int:
        """Wide row: words of the nominal tile of a level, or, for ``box``, of the smallest box around it."""
        found, rows = None, []
        for axis in tensor.axes:
            extents = [self.extent(self.layout.starts[level], name) for name in axis.dimensions]
            if box:
                words = self.program.product([], 1.0 - sum(times for _, times in axis.terms))
                for extent, (_, times) in zip(extents, axis.terms, strict=True):
                    words = self.program.one(op.wide_add, words, self.program.product([extent], float(times)))
                found = words if found is None else self.program.one(op.wide_multiply, found, words)
            else:
                rows.append(extents[0] if len(extents) == 1 else self._box(axis, extents))
        return self.program.product(rows) if found is None else found

    def first_received(self, edge: Boundary, inward: Boundary | None) -> int:
        """Wide row: words of an operand that the child waits for at the cold start; it forwards them to ``inward``."""
        tile = self.tile(edge.tensor, edge.child)
        return tile if inward is None else self.program.one(op.wide_smaller, tile, self.first_read(inward, None))

    def first_read(self, edge: Boundary, inward: Boundary | None) -> int:
        """Wide row: words that the parent's first instance reads for that."""
        whole = self.words(edge, View(True, edge.parent, "first"))
        return whole if inward is None else self.program.one(
            op.wide_smaller, whole, self.first_read(replace(inward, parent=edge.parent), None))

    def _box(self, axis: Axis, extents: list[int]) -> int:
        return self.program.one(op.slide, *extents, *map(self.program.literal, axis.coprime))

    def last_tile(self, edge: Boundary) -> int:
        """Wide row: words of the last tile of the child's first instance."""
        extents = {name: self.size(name) for name in self.operator.sizes}
        for slot in range(self.layout.starts[edge.child]):
            for name in self.sizes:
                link = self.links[slot, name]
                if link.place is None:
                    extents[name] = self.program.one(op.smaller, extents[name], link.S)
                else:
                    extents[name] = self.tables.last_extent(extents[name], link)
        rows = []
        for axis in edge.tensor.axes:
            own = [extents[name] for name in axis.dimensions]
            rows.append(own[0] if len(own) == 1 else self._box(axis, own))
        return self.program.product(rows)

    def apart(self, edge: Boundary) -> int | None:
        """Row that is 1 where partial sums are combined at the parent (rule 5); None if they never are."""
        plain = {axis.terms[0][0] for axis in edge.tensor.axes if len(axis.terms) == 1}
        apart = [self._set_apart(edge, slot, name) for slot in range(self.layout.starts[edge.child])
                 if self._lane(slot) and self.layout.slots[slot].level > edge.parent
                 for name in self.sizes if name not in plain]
        return self.program.fold(op.larger, apart, None)

    def _set_apart(self, edge: Boundary, slot: int, name: str) -> int | None:
        real = self._real(name, [slot])
        if not self.merges(edge, slot):
            return real
        breakers = [
            i for i in range(slot + 1, self.layout.starts[edge.child])
            if not self._lane(i) or not self.merges(edge, i)
        ]
        if name not in edge.tensor.dimensions or not breakers:
            return None
        return self.program.one(op.multiply, real, self._real(name, breakers))

    def followed(self, edge: Boundary, keeper: Boundary | None) -> int:
        """Wide row: words that a keeper's first instance evicts, of those that the first child at ``edge`` touches.

        ``keeper`` is the edge to the keeper, None for the outermost memory.
        """
        rows = [] if keeper is None else self.visits(keeper, View(False, keeper.child))
        kept = tuple(axis for axis in edge.tensor.axes if keeper is None and len(axis.terms) > 1)
        along = [(axis, edge if keeper is None or len(axis.terms) == 1 else keeper) for axis in edge.tensor.axes
                 if axis not in kept]
        return self._product(rows, [(axis, at, View(False, at.child)) for axis, at in along], kept)

    @remembered
    def steps(self) -> int:
        """Wide row: steps of compute."""
        rows = []
        for name in self.sizes:
            links = [self.links[slot, name] for slot in range(len(self.layout.slots))]
            actions = tuple(Action(link, "pick" if link.place is None else "cut") for link in links)
            counted = self.tables.count(self.size(name), actions)
            rows += [] if counted is None else [counted]
        return self.program.product(rows)

    def sides(self, level: int, axis: str, used: Collection[str] | None = None) -> int:
        """Wide row: instances that the loops along one side of a fan-out need, of ``used`` dimensions if given."""
        links = [
            self.links[slot, name] for slot, where in enumerate(self.layout.slots) for name in self.sizes
            if where.level == level and where.axis == axis and (used is None or name in used)
        ]
        product = self.program.product([link.Q for link in links if link.even])
        ragged = [(link.Q, link.R) for link in links if not link.even]
        none = self.program.number(1.0), self.program.number(0.0)
        for at in range(0, len(ragged), 3):
            three = [*ragged[at : at + 3], none, none][:3]
            counts = self.program.one(op.ceils, *(row for pair in three for row in pair))
            first = at == 0 and len(ragged) == len(links)
            product = counts if first else self.program.one(op.wide_multiply, product, counts)
        return product
