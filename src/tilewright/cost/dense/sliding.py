"""Words along a sliding axis as instructions: `closed_form.sliding_words` for all lanes of a block at once."""

from dataclasses import dataclass
from itertools import chain

from tilewright.cost.dense import operations as op
from tilewright.cost.dense.pieces import Action, Link, Pieces, PieceTables
from tilewright.cost.dense.program import Program, remembered


@dataclass(frozen=True)
class Side:
    """One dimension of a sliding axis at a boundary."""

    size: int
    """Row with its size."""
    coefficient: int
    """Reduced by the common divisor of the axis."""
    actions: tuple[Action, ...]
    """Of its loops outside the child, outermost first, merged lanes as ``drop``."""
    steps: tuple[tuple[int, int], ...] = ()
    """Indices into ``actions`` of the advancing temporal loops, each with the row that is 1 where the loop is the
    innermost advancing one; empty where no words carry over."""
    lanes: tuple[int, ...] = ()
    """Rows with the steps of the merged lane loops, outermost first; far where the loop does not merge after all."""
    lane_actions: tuple[Action, ...] = ()
    """The same loops as in ``actions`` with the merged lanes cut."""


@dataclass(frozen=True)
class _Pair:
    """Pieces with the extents of the previous and the present visit, and their multiplicity."""

    previous: int
    present: int
    many: int


@dataclass(frozen=True)
class _Variant:
    """One dimension that may move the tile of an axis, the other of the axis, and the row that is 1 where it does."""

    axis: int
    moving: Side
    still: Side
    here: int


class Sliding:
    """Emits the words of sliding axes."""

    def __init__(self, program: Program, tables: PieceTables) -> None:
        self.program = program
        self.tables = tables

    def words(self, axes: list[tuple[Side, Side]]) -> list[int]:
        """Rows with the words of each axis of a tensor, summed over visits and instances."""
        emit = self.program
        whole = [self._all_words(*sides) for sides in axes]
        variants = []
        for axis, (first, second) in enumerate(axes):
            for moving, still in ((first, second), (second, first)):
                if moving.steps:
                    here = self._sum([row for _, row in moving.steps])
                    variants.append(_Variant(axis, moving, still, here))
        if not variants:
            return whole
        held: list[list[int]] = [[] for _ in axes]
        for group in _groups(variants):
            self._carried(group, held)
        return [emit.one(op.subtract, words, self._sum(rows)) for words, rows in zip(whole, held, strict=True)]

    def _sum(self, rows: list[int]) -> int:
        total = rows[0]
        for row in rows[1:]:
            total = self.program.one(op.add, total, row)
        return total

    def _all_words(self, first: Side, second: Side) -> int:
        """Words of all visits, as if every one brought its whole tile."""
        emit = self.program
        totals, hinges = [], []
        for side, other in ((first, second), (second, first)):
            total = self.tables.extent(side.size, side.actions)
            totals.append(side.size if total is None else total)
            hinges.append(self._hinge(side, other))
        return emit.one(op.subtract, emit.one(op.multiply, *totals), emit.one(op.multiply, *hinges))

    def _hinge(self, side: Side, other: Side) -> int:
        """Row with the sum over pieces of what they extend beyond the other side's coefficient."""
        pieces = self.tables.pieces(side.size, side.actions)
        return self.tables.hinge(pieces, self.program.number(other.coefficient))

    def _carried(self, group: list[_Variant], held: list[list[int]]) -> None:
        """Append to ``held`` of each axis the words that its visits held already."""
        moving, still = group[0].moving, group[0].still
        cut = any(a.link.place is None and a.kind != "drop" for a in moving.actions[moving.steps[0][0] :])
        if not cut and not moving.lanes and not still.lanes and still.coefficient == 1:
            for variant in group:
                visits = self._visits_after_first(variant.moving)
                words = self.program.one(op.multiply, visits, self._hinge(variant.still, variant.moving))
                held[variant.axis].append(words)
            return
        words = self._held(self._merge_sides(group, "moving"), self._merge_sides(group, "still"))
        for axis in {variant.axis: None for variant in group}:
            here = self._sum([variant.here for variant in group if variant.axis == axis])
            held[axis].append(self.program.one(op.multiply, words, here))

    def _visits_after_first(self, moving: Side) -> int:
        """Row with the visits that follow another one, where no lanes split the tile."""
        whole, *rests = self._pairs(moving)
        return self.tables.present(whole.many, tuple((pair.present, pair.many) for pair in rests))

    def _merge_sides(self, group: list[_Variant], which: str) -> Side:
        """One side that stands, in each lane, for the variant that moves there."""
        sides: list[Side] = [getattr(variant, which) for variant in group]
        heres = tuple(variant.here for variant in group)
        if len(sides) == 1:
            return sides[0]
        size = self._merge_rows(tuple(side.size for side in sides), heres)
        actions = self._merge_actions([side.actions for side in sides], heres, size)
        lane_actions = self._merge_actions([side.lane_actions for side in sides], heres, size)
        lanes = tuple(self._merge_rows(rows, heres) for rows in zip(*(side.lanes for side in sides), strict=True))
        steps = []
        if which == "moving":
            for each in zip(*(side.steps for side in sides), strict=True):
                steps.append((each[0][0], self._sum([row for _, row in each])))
        return Side(size, sides[0].coefficient, actions, tuple(steps), lanes, lane_actions)

    @remembered
    def _merge_rows(self, rows: tuple[int, ...], heres: tuple[int, ...]) -> int:
        if len(set(rows)) == 1:
            return rows[0]
        merged = self.program.one(op.copy, rows[0], fresh=True)
        for row, here in zip(rows[1:], heres[1:], strict=True):
            self.program.emit(op.merge, merged, row, here)
        return merged

    @remembered
    def _link(self, step: int, before: int, even: bool, place: int | None) -> Link:
        whole, rest, inverse = self.program.emit(op.derive, step, before)
        return Link(step, whole, rest, inverse, even, place)

    def _merge_actions(self, lists: list[tuple[Action, ...]], heres: tuple[int, ...], size: int) -> tuple[Action, ...]:
        found = []
        before = size
        for actions in zip(*lists, strict=True):
            first = actions[0]
            step = self._merge_rows(tuple(action.link.S for action in actions), heres)
            even = all(action.link.even for action in actions)
            found.append(Action(self._link(step, before, even, first.link.place), first.kind))
            before = step
        return tuple(found)

    def _held(self, moving: Side, still: Side) -> int:
        """Row with the words carried over, where any of the advancing loops moves the tile."""
        emit = self.program
        total = emit.one(op.copy, emit.number(0.0), fresh=True)
        size = self._stride_of_visits(moving)
        for pair in self._pairs(moving):
            classes = [self._class((moving, still), (size, residue), pair) for residue in range(still.coefficient)]
            words = self._sum(classes)
            if still.coefficient > 1 and moving.lanes:
                words = self._corrected(words, (moving, still), size, pair)
            emit.emit(op.dot.further, total, pair.many, words)
        return total

    def _stride_of_visits(self, moving: Side) -> int:
        """Row with the step of the loop that moves the tile; a temporal loop inside it has the same step.

        Lanes between two temporal loops change the step, so that the loop has to be looked up.
        """
        first, last = moving.steps[0][0], moving.steps[-1][0]
        size = moving.actions[last].link.S
        if all(a.link.place is not None or a.kind == "drop" for a in moving.actions[first:last]):
            return size
        for at, here in moving.steps[:-1]:
            size = self.program.one(op.choose, here, moving.actions[at].link.S, size)
        return size

    def _pairs(self, moving: Side) -> list[_Pair]:
        """Pairs of extents after all loops: whole pieces first, then rests (nothing present where there are none).

        Where an outer loop moves the tile, the temporal loops inside it do not run, so that one list of pairs serves
        all lanes, whichever loop it is there.
        """
        emit = self.program
        zero = emit.number(0.0)
        steps = dict(moving.steps)
        whole = _Pair(zero, zero, zero)
        rests: list[_Pair] = []
        picks = [action.kind == "pick" for action in moving.actions]
        for at, action in enumerate(moving.actions):
            link = action.link
            if picks[at : at + 2] == [True, True]:
                continue  # The first of the first is the first.
            if at in steps:
                before = self.tables.pieces(moving.size, moving.actions[:at])
                many = emit.one(op.pair_whole, before.many, link.Q, steps[at], fresh=True)
                later = self._rests(before, link, steps[at], many)
                if rests or whole.many != zero:
                    emit.emit(op.dot.further, many, whole.many, emit.number(1.0))
                    later = self._join(rests, later, steps[at])
                whole, rests = _Pair(link.S, link.S, many), later
            elif whole.many != zero and link.place is None and action.kind != "drop":
                whole, rests = self._cut(action, whole, rests)
        return [whole, *rests]

    def _rests(self, before: Pieces, link: Link, here: int, many: int) -> list[_Pair]:
        """Last, smaller pieces of a moving loop; what comes before them is added to ``many``."""
        emit = self.program
        found = [] if link.even else [_Pair(link.S, emit.one(op.multiply, link.R, here), before.many)]
        for rest, times in before.rests:
            present = emit.one(op.pair_rest, many, rest, times, link.S, link.I, here)
            found.append(_Pair(link.S, present, times))
        return found

    def _join(self, outer: list[_Pair], inner: list[_Pair], here: int) -> list[_Pair]:
        """Let rests of an outer moving loop share rows with those of an inner one, which moves in other lanes."""
        found = list(inner)
        for back, pair in enumerate(reversed(outer), start=1):
            if back > len(found):
                found.insert(0, pair)
                continue
            mine = found[-back]
            found[-back] = _Pair(
                self._pick(mine.previous, pair.previous, here),
                self._pick(mine.present, pair.present, here),
                self._pick(mine.many, pair.many, here),
            )
        return found

    def _pick(self, mine: int, other: int, here: int) -> int:
        return mine if mine == other else self.program.one(op.choose, here, mine, other)

    def _cut(self, action: Action, whole: _Pair, rests: list[_Pair]) -> tuple[_Pair, list[_Pair]]:
        emit, link = self.program, action.link
        if action.kind != "cut":
            found = []
            for pair in rests:
                previous, present = emit.emit(op.pair_pick, pair.previous, pair.present, link.S)
                found.append(_Pair(previous, present, pair.many))
            return _Pair(link.S, link.S, whole.many), found
        many = emit.one(op.multiply, whole.many, link.Q, fresh=bool(rests))
        found = [] if link.even else [_Pair(link.R, link.R, whole.many)]
        for pair in rests:
            rows = emit.emit(op.pair_cut, many, pair.previous, pair.present, pair.many, link.S, link.I)
            found.append(_Pair(rows[0], rows[1], pair.many))
        return _Pair(link.S, link.S, many), found

    def _class(self, sides: tuple[Side, Side], where: tuple[int, int], pair: _Pair) -> int:
        """Row with the words of one residue class that a visit held already, summed over the other side's pieces."""
        emit = self.program
        moving, still = sides
        size, residue = where
        dilation = still.coefficient
        stride = emit.literal(moving.coefficient)
        constants = stride, emit.literal(residue), emit.literal(dilation)
        if dilation == 1:
            lane = self._finest(moving) if moving.lanes else emit.number(emit.far)
            near = emit.one(op.lag, size, pair.previous, pair.present, lane, stride)
        else:
            start, width = emit.number(0.0), pair.previous
            for lane in moving.lanes:
                start, width = emit.emit(op.lane_of, start, width, lane, emit.literal(residue))
            near = emit.one(op.lag_class, size, start, width, pair.present, *constants)
        windows = self.tables.pieces(still.size, still.actions)
        if not still.lanes:
            return self.tables.hinge(windows, near)
        far = emit.one(op.lag_last, near, pair.present, *constants)
        firsts = self.tables.between(windows, self._finest(still), near, far)
        every = self.tables.hinge(self.tables.pieces(still.size, still.lane_actions), far)
        return emit.one(op.add, firsts, every)

    def _finest(self, side: Side) -> int:
        """Row with the finest step of the merged lanes."""
        finest = side.lanes[0]
        for lane in side.lanes[1:]:
            finest = self.program.one(op.smaller, finest, lane)
        return finest

    def _corrected(self, words: int, sides: tuple[Side, Side], size: int, pair: _Pair) -> int:
        """Row with ``words``, put right one lane of the block after another where dilation meets merged lanes."""
        emit = self.program
        moving, still = sides
        here = self._sum([row for _, row in moving.steps])
        windows = self.tables.pieces(still.size, still.actions)
        entries = windows.all
        rows = [size, here, pair.previous, pair.present, *moving.lanes, *still.lanes, *chain(*entries)]
        counts = len(moving.lanes), len(still.lanes), len(entries), moving.coefficient, still.coefficient
        corrected = emit.one(op.copy, words, fresh=True)
        emit.emit(op.carried, corrected, emit.rows(rows), len(rows), *counts)
        return corrected


def _groups(variants: list[_Variant]) -> list[list[_Variant]]:
    """Variants of equal coefficients together: their words come from one set of instructions."""
    found: dict[tuple[int, int], list[_Variant]] = {}
    for variant in variants:
        found.setdefault((variant.moving.coefficient, variant.still.coefficient), []).append(variant)
    return list(found.values())
