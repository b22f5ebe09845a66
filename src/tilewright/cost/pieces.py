"""Tables of pieces as instructions: `cost.closed_form` for all lanes of a block at once.

A table {extent: multiplicity} becomes the whole pieces (extent known, one row of multiplicities) and the rests that the
loops left over, one (extent, multiplicity) pair of rows each. Rests that no lane of a block has are skipped there.
"""

from dataclasses import dataclass
from typing import Literal

from tilewright.cost.program import Op, Program

Kind = Literal["cut", "pick", "if", "last", "drop"]


@dataclass(frozen=True)
class Link:
    """A loop over one dimension: rows of its step S, whole tiles Q, rest R and reciprocal of S, and the flag of R.

    The flag is 0 where the loop never leaves a rest, because its step is 1. ``place`` is the row of its place in the
    nest, None for a spatial loop.
    """

    S: int
    Q: int
    R: int
    I: int  # noqa: E741
    flag: int
    place: int | None


@dataclass(frozen=True)
class Action:
    """What a loop does to the pieces: ``cut`` them all, ``pick`` the first, cut ``if`` it advances, pick the ``last``.

    ``drop`` leaves them (merged lanes of a sliding axis). ``cut`` is the row of the innermost advancing place, or, for
    ``last``, of the extent that lies before the last iteration of the first lane.
    """

    link: Link
    kind: Kind
    cut: int = -1


@dataclass(frozen=True)
class Pieces:
    """Whole pieces (``extent`` and ``many`` rows) and rests as (extent, multiplicity, flag)."""

    extent: int
    many: int
    rests: tuple[tuple[int, int, int], ...] = ()


class Tables:
    """Emits tables into a program; equal tables are emitted once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made: dict[tuple[object, ...], Pieces] = {}
        self.counted: dict[tuple[object, ...], int | None] = {}

    def pieces(self, size: int, actions: tuple[Action, ...]) -> Pieces:
        """Table of a dimension after ``actions``, outermost first; ``size`` is the row of its size."""
        key = (size, actions)
        if key not in self.made:
            with self.program.guarded():
                if not actions:
                    self.made[key] = Pieces(size, self.program.number(1.0))
                else:
                    self.made[key] = self._advance(self.pieces(size, actions[:-1]), actions[-1])
        return self.made[key]

    def _advance(self, before: Pieces, action: Action) -> Pieces:
        link, emit = action.link, self.program
        if action.kind == "drop":
            return before
        if action.kind == "last":
            return self._last(before, action)
        fresh = bool(before.rests)
        own: tuple[tuple[int, int, int], ...] = ()
        if action.kind == "cut":
            whole = before.many == emit.number(1.0) and not fresh
            many = link.Q if whole else emit.one(Op.MUL, before.many, link.Q, fresh=fresh)
            own = ((link.R, before.many, link.flag),) if link.flag else ()
        elif action.kind == "if":
            assert link.place is not None
            many = emit.one(Op.SPLIT_IF, before.many, link.Q, link.place, action.cut, fresh=fresh)
            with emit.guarded(0, link.flag):
                own = ((emit.one(Op.REST_IF, link.R, link.place, action.cut), before.many, link.flag),)
        else:
            many = emit.one(Op.COPY, before.many, fresh=True) if fresh else before.many
        rests = []
        for rest, times, flag in before.rests:
            with emit.guarded(0, flag):
                rests.append((self._cut_rest(action, (many, rest, times)), times, flag))
        return Pieces(link.S, many, (*rests, *own))

    def _cut_rest(self, action: Action, rows: tuple[int, int, int]) -> int:
        link = action.link
        if action.kind == "cut":
            return self.program.one(Op.CUT, *rows, link.S, link.I)
        if action.kind == "pick":
            return self.program.one(Op.PICK, *rows, link.S)
        assert link.place is not None
        return self.program.one(Op.CUT_IF, *rows, link.S, link.I, link.place, action.cut)

    def _last(self, before: Pieces, action: Action) -> Pieces:
        """Only the last iteration: whole pieces may be ragged too, so they become a rest of their own."""
        emit, rests = self.program, []
        for rest, times, flag in ((before.extent, before.many, 0), *before.rests):
            with emit.guarded(0, flag):
                left = emit.one(Op.MAX, emit.one(Op.SUB, rest, action.cut), emit.number(0.0))
                rests.append((emit.one(Op.MIN, left, action.link.S), times, flag))
        return Pieces(action.link.S, emit.number(0.0), tuple(rests))

    def count(self, size: int, actions: tuple[Action, ...]) -> int | None:
        """Row with the number of pieces, None for exactly one."""
        while actions and actions[-1].kind == "drop":
            actions = actions[:-1]
        key = (size, actions)
        if key not in self.counted:
            with self.program.guarded():
                self.counted[key] = self._count(size, actions)
        return self.counted[key]

    def _count(self, size: int, actions: tuple[Action, ...]) -> int | None:
        if not any(action.kind in ("cut", "if") for action in actions):
            return None
        before, action = self.pieces(size, actions[:-1]), actions[-1]
        if action.kind == "last":
            before = self._last(before, action)
        link, emit, fresh = action.link, self.program, bool(before.rests)
        if action.kind == "cut":
            times = emit.one(Op.CEIL, link.Q, link.R) if link.flag else link.Q
            total = times if before.many == emit.number(1.0) and not fresh else None
            total = emit.one(Op.MUL, before.many, times, fresh=fresh) if total is None else total
        elif action.kind == "if":
            assert link.place is not None
            total = emit.one(Op.CEIL_IF, before.many, link.Q, link.R, link.place, action.cut, fresh=fresh)
        else:
            total = emit.one(Op.COPY, before.many, fresh=True) if fresh else before.many
        for rest, times, flag in before.rests:
            with emit.guarded(0, flag):
                if action.kind == "cut" and not link.flag:
                    emit.emit(Op.MULADD, total, rest, times)
                elif action.kind == "cut":
                    emit.emit(Op.LAST_CUT, total, rest, times, link.S, link.I)
                elif action.kind == "if":
                    assert link.place is not None
                    emit.emit(Op.LAST_CUT_IF, total, rest, times, link.S, link.I, link.place, action.cut)
                else:
                    emit.emit(Op.LAST_PICK, total, rest, times)
        return total

    def extent(self, size: int, actions: tuple[Action, ...]) -> int | None:
        """Row with the extents of all pieces together, None for the whole ``size``.

        Cutting keeps the total, so only what comes before the last pick matters.
        """
        actions = tuple(action for action in actions if action.kind != "drop")
        while actions and actions[-1].kind in ("cut", "if"):
            actions = actions[:-1]
        if not actions:
            return None
        key = ("extent", size, actions)
        if key not in self.counted:
            with self.program.guarded():
                found = self.pieces(size, actions)
                total = self.program.one(Op.MUL, found.many, found.extent, fresh=bool(found.rests))
                for rest, times, flag in found.rests:
                    with self.program.guarded(0, flag):
                        self.program.emit(Op.MULADD, total, rest, times)
                self.counted[key] = total
        return self.counted[key]

    def hinge(self, pieces: Pieces, offset: int) -> int:
        """Row with the sum over pieces of multiplicity x max(0, extent - offset)."""
        emit = self.program
        with emit.guarded():
            total = emit.one(Op.HINGE, pieces.many, pieces.extent, offset, fresh=bool(pieces.rests))
        for rest, times, flag in pieces.rests:
            with emit.guarded(0, flag):
                emit.emit(Op.HINGE_ADD, total, times, rest, offset)
        return total
