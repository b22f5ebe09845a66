"""Words along a sliding axis as instructions: `cost.closed_form.sliding_words` for all lanes of a block at once."""

from dataclasses import dataclass

from tilewright.cost.pieces import Action, Pieces, Tables
from tilewright.cost.program import FAR, Op, Program


@dataclass(frozen=True)
class Side:
    """One dimension of a sliding axis at a boundary.

    Parameters
    ----------
    coefficient
        Reduced by the common divisor of the axis.
    actions
        Of its loops outside the child, outermost first, merged lanes as ``drop``.
    steps
        Indices into ``actions`` of the advancing temporal loops, each with the row that is 1 where the loop is the
        innermost advancing one, and the flag of that row; empty where no words carry over.
    lanes
        Rows with the steps of the merged lane loops, outermost first; far where the loop does not merge after all.
    lane_actions
        The same loops as in ``actions`` with the merged lanes cut.
    """

    size: int
    coefficient: int
    actions: tuple[Action, ...]
    steps: tuple[tuple[int, int, int], ...] = ()
    lanes: tuple[int, ...] = ()
    lane_actions: tuple[Action, ...] = ()


@dataclass(frozen=True)
class _Pair:
    """Pieces with the extents of the previous and the present visit, their multiplicity, and their flag."""

    previous: int
    present: int
    many: int
    flag: int


class Sliding:
    """Emits the words of sliding axes."""

    def __init__(self, program: Program, tables: Tables) -> None:
        self.program = program
        self.tables = tables

    def words(self, sides: tuple[Side, Side]) -> int:
        """Row with the words of the axis, summed over visits and instances."""
        emit = self.program
        first, second = sides
        totals, hinges = [], []
        for side, other in ((first, second), (second, first)):
            total = self.tables.extent(side.size, side.actions)
            totals.append(emit.number(side.size) if total is None else total)
            pieces = self.tables.pieces(side.size, side.actions)
            hinges.append(self.tables.hinge(pieces, emit.number(other.coefficient)))
        all_words = emit.one(Op.SUB, emit.one(Op.MUL, *totals), emit.one(Op.MUL, *hinges))
        if not first.steps and not second.steps:
            return all_words
        held = emit.one(Op.COPY, emit.number(0.0), fresh=True)
        for moving, still in ((first, second), (second, first)):
            for step in moving.steps:
                self._carried(held, moving, still, step)
        return emit.one(Op.SUB, all_words, held)

    def _carried(self, held: int, moving: Side, still: Side, step: tuple[int, int, int]) -> None:
        """Add to ``held`` the words carried over in the lanes where ``step`` is the innermost advancing loop."""
        at, here, flag = step
        size = moving.actions[at].link.S
        pairs, uncut = self._pairs(moving, at, here, flag)
        dilation = still.coefficient
        if uncut and not still.lanes and dilation == 1:
            pairs = [self._merge(pairs, flag)]
        for pair in pairs:
            if dilation > 1 and moving.lanes:
                self._lane_by_lane(held, (moving, still), (size, here, flag), pair)
                continue
            for residue in range(dilation):
                words = self._class(moving, still, (size, residue, flag), pair)
                with self.program.guarded(flag, pair.flag):
                    self.program.emit(Op.MULADD, held, pair.many, words)

    def _pairs(self, moving: Side, at: int, here: int, guard: int) -> tuple[list[_Pair], bool]:
        """Pairs of extents after all loops, and whether no loop inside the advancing one cuts them."""
        emit = self.program
        link = moving.actions[at].link
        before = self.tables.pieces(moving.size, moving.actions[:at])
        with emit.guarded(guard):
            many = emit.one(Op.PAIR_WHOLE, before.many, link.Q, here, fresh=bool(before.rests))
            pairs = [_Pair(link.S, emit.one(Op.MASK, link.R, here), before.many, link.flag)]
        for rest, times, flag in before.rests:
            with emit.guarded(guard, flag):
                present = emit.one(Op.PAIR_REST, many, rest, times, link.S, link.I, here)
            pairs.append(_Pair(link.S, present, times, flag))
        whole, uncut = _Pair(link.S, link.S, many, 0), True
        for action in moving.actions[at + 1 :]:
            if action.link.place is not None or action.kind == "drop":
                continue  # A temporal loop here is trivial in the lanes looked at.
            uncut = False
            whole, pairs = self._cut(action, whole, pairs, guard)
        return [whole, *pairs], uncut

    def _cut(self, action: Action, whole: _Pair, pairs: list[_Pair], guard: int) -> tuple[_Pair, list[_Pair]]:
        emit, link = self.program, action.link
        found = []
        many = whole.many
        if action.kind == "cut":
            with emit.guarded(guard):
                many = emit.one(Op.MUL, whole.many, link.Q, fresh=True)
            found.append(_Pair(link.R, link.R, whole.many, link.flag))
        for pair in pairs:
            with emit.guarded(guard, pair.flag):
                if action.kind == "cut":
                    rows = emit.emit(Op.PAIR_CUT, many, pair.previous, pair.present, pair.many, link.S, link.I)
                else:
                    rows = emit.emit(Op.PAIR_PICK, pair.previous, pair.present, link.S)
            found.append(_Pair(rows[0], rows[1], pair.many, pair.flag))
        return _Pair(link.S, link.S, many, 0), found

    def _merge(self, pairs: list[_Pair], guard: int) -> _Pair:
        """One pair for all that have the same previous extent, where the present one does not matter."""
        emit, whole = self.program, pairs[0]
        with emit.guarded(guard):
            many = emit.one(Op.COPY, whole.many, fresh=True)
        for pair in pairs[1:]:
            with emit.guarded(guard, pair.flag):
                emit.emit(Op.LAST_PICK, many, pair.present, pair.many)
        return _Pair(whole.previous, whole.present, many, 0)

    def _class(self, moving: Side, still: Side, where: tuple[int, int, int], pair: _Pair) -> int:
        """Row with the words of one residue class that a visit held already, summed over the other side's pieces."""
        emit = self.program
        size, residue, guard = where
        dilation = still.coefficient
        stride = emit.literal(moving.coefficient)
        with emit.guarded(guard, pair.flag):
            if dilation == 1:
                lane = self._finest(moving) if moving.lanes else emit.number(FAR)
                near = emit.one(Op.LAG, size, pair.previous, pair.present, lane, stride)
            else:
                constants = stride, emit.literal(residue), emit.literal(dilation)
                near = emit.one(Op.LAG_CLASS, size, pair.previous, pair.present, *constants)
        windows = self.tables.pieces(still.size, still.actions)
        if not still.lanes:
            return self.tables.hinge(windows, near, guard)
        constants = stride, emit.literal(residue), emit.literal(dilation)
        with emit.guarded(guard, pair.flag):
            far = emit.one(Op.LAG_LAST, near, pair.present, *constants)
        firsts = self._first_lanes(windows, self._finest(still))
        every = self.tables.hinge(self.tables.pieces(still.size, still.lane_actions), far, guard)
        first_near, first_far = self.tables.hinge(firsts, near, guard), self.tables.hinge(firsts, far, guard)
        with emit.guarded(guard):
            return emit.one(Op.SUB, first_near, emit.one(Op.SUB, first_far, every))

    def _finest(self, side: Side) -> int:
        """Row with the finest step of the merged lanes."""
        finest = side.lanes[0]
        for lane in side.lanes[1:]:
            finest = self.program.one(Op.MIN, finest, lane)
        return finest

    def _first_lanes(self, windows: Pieces, lane: int) -> Pieces:
        emit, rests = self.program, []
        for rest, times, flag in windows.rests:
            with emit.guarded(0, flag):
                rests.append((emit.one(Op.MIN, rest, lane), times, flag))
        return Pieces(emit.one(Op.MIN, windows.extent, lane), windows.many, tuple(rests))

    def _lane_by_lane(self, held: int, sides: tuple[Side, Side], where: tuple[int, int, int], pair: _Pair) -> None:
        """Add the words carried over where dilation meets merged lanes: one lane of the block after another."""
        emit = self.program
        moving, still = sides
        size, here, guard = where
        windows = self.tables.pieces(still.size, still.actions)
        with emit.guarded(guard):
            words = emit.one(Op.COPY, emit.number(0.0), fresh=True)
        for window, times, flag in ((windows.extent, windows.many, 0), *windows.rests):
            rows = [size, here, pair.previous, pair.present, window, times, *moving.lanes, *still.lanes]
            constants = len(rows), len(moving.lanes), moving.coefficient, still.coefficient
            with emit.guarded(guard, flag):
                emit.emit(Op.CARRIED, words, emit.rows(rows), *constants)
        with emit.guarded(guard, pair.flag):
            emit.emit(Op.MULADD, held, pair.many, words)
