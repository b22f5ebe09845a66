"""Tables of pieces as instructions: `closed_form` for all lanes of a block at once.

A table {extent: multiplicity} becomes the whole pieces (extent known, one row of multiplicities) and the rests that the
loops left over, one (extent, multiplicity) pair of rows each; a rest of extent 0 is none.
"""

from dataclasses import dataclass
from typing import Literal

from tilewright.cost.dense import operations as op
from tilewright.cost.dense.program import Program, remembered

Kind = Literal["cut", "pick", "if", "last", "drop"]
Rests = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Link:
    """A loop over one dimension: rows of its step S, whole tiles Q, rest R and reciprocal of S.

    ``even`` says that the loop leaves no rest in any mapping, so that R and I are not needed. ``place`` is the row of
    its place in the nest, None for a spatial loop.
    """

    S: int
    Q: int
    R: int
    I: int  # noqa: E741
    even: bool
    place: int | None


@dataclass(frozen=True)
class Action:
    """What a loop does to the pieces: ``cut`` them all, ``pick`` the first, cut ``if`` it advances, pick the ``last``.

    ``drop`` leaves them (merged lanes of a sliding axis). ``cut`` is the row of the innermost advancing place, or, for
    ``last``, of the extent that lies before the last iteration of the first lane, which leaves that lane ``left``.
    """

    link: Link
    kind: Kind
    cut: int = -1
    left: int = -1


@dataclass(frozen=True)
class Pieces:
    """Whole pieces (``extent`` and ``many`` rows) and rests as (extent, multiplicity).

    ``loose``: a single piece whose extent is not the step of the last loop, but what one iteration of it left.
    """

    extent: int
    many: int
    rests: Rests = ()
    loose: bool = False

    @property
    def all(self) -> Rests:
        """Whole pieces and rests alike."""
        return ((self.extent, self.many), *self.rests)


class PieceTables:
    """Emits tables into a program; equal tables are emitted once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.one = program.number(1.0)
        self.zero = program.number(0.0)

    @remembered
    def pieces(self, size: int, actions: tuple[Action, ...]) -> Pieces:
        """Table of a dimension after ``actions``, outermost first; ``size`` is the row of its size."""
        while len(actions) > 1 and actions[-1].kind == actions[-2].kind == "pick":
            actions = (*actions[:-2], actions[-1])  # The first of the first is the first.
        return self._advance(self.pieces(size, actions[:-1]), actions[-1]) if actions else Pieces(size, self.one)

    def _advance(self, before: Pieces, action: Action) -> Pieces:
        if action.kind == "drop":
            return before
        if action.kind == "last":
            return self._last(before, action)
        if before.loose and action.kind == "pick":
            return Pieces(self.program.one(op.smaller, before.extent, action.link.S), self.one, loose=True)
        before = self._settled(before)
        if action.kind == "cut":
            return self._cut(before, action.link)
        return self._cut_if(before, action) if action.kind == "if" else self._pick(before, action.link)

    def _settled(self, before: Pieces) -> Pieces:
        """Let a single loose piece count as a rest, for a loop to cut it."""
        return Pieces(before.extent, self.zero, ((before.extent, self.one),)) if before.loose else before

    def times(self, many: int, factor: int) -> int:
        """Row with a product, where one of the two may be 1 in every lane."""
        if many == self.one:
            return factor
        return many if factor == self.one else self.program.one(op.multiply, many, factor)

    def _cut(self, before: Pieces, link: Link) -> Pieces:
        own: Rests = () if link.even else ((link.R, before.many),)
        if not before.rests:
            return Pieces(link.S, self.times(before.many, link.Q), own)
        many, left = self.program.sum(op.cut, (before.many, link.Q, link.S, link.I), before.rests)
        return Pieces(link.S, many, (*_with(left, before.rests), *own))

    def _cut_if(self, before: Pieces, action: Action) -> Pieces:
        emit, link = self.program, action.link
        assert link.place is not None
        own: Rests = ()
        fresh, where = bool(before.rests), (link.place, action.cut)
        if link.even:
            many = emit.one(op.split_if, before.many, link.Q, *where, fresh=fresh)
        else:
            many, rest = emit.emit(op.divide_if, before.many, link.Q, link.R, *where, fresh=fresh)
            own = ((rest, before.many),)
        left = [emit.one(op.cut_if, many, *rest, link.S, link.I, link.place, action.cut) for rest in before.rests]
        return Pieces(link.S, many, (*_with(left, before.rests), *own))

    def _pick(self, before: Pieces, link: Link) -> Pieces:
        if not before.rests:
            return Pieces(link.S, before.many)
        many, left = self.program.sum(op.pick, (before.many, link.S), before.rests)
        return Pieces(link.S, many, _with(left, before.rests))

    def _last(self, before: Pieces, action: Action) -> Pieces:
        """Only the last iteration: whole pieces may be ragged too, so they become a rest of their own."""
        if action.link.even and not before.rests:
            return Pieces(action.link.S, before.many)
        if before.many == self.one and not before.rests:
            return Pieces(action.left, self.one, loose=True)
        emit, rests = self.program, []
        for rest, times in before.all:
            left = emit.one(op.larger, emit.one(op.subtract, rest, action.cut), self.zero)
            rests.append((emit.one(op.smaller, left, action.link.S), times))
        return Pieces(action.link.S, self.zero, tuple(rests))

    def last_extent(self, extent: int, link: Link) -> int:
        """Row with the extent that the last iteration of a loop has."""
        if link.even:
            return self.program.one(op.smaller, extent, link.S)
        return self.program.one(op.last_tile, extent, link.S, link.I)

    def count(self, size: int, actions: tuple[Action, ...]) -> int | None:
        """Row with the number of pieces, None for exactly one."""
        while actions and actions[-1].kind in ("drop", "pick"):
            actions = actions[:-1]  # Pieces stay as many as they are.
        return self._count(size, actions) if any(action.kind in ("cut", "if") for action in actions) else None

    @remembered
    def _count(self, size: int, actions: tuple[Action, ...]) -> int:
        before, action = self.pieces(size, actions[:-1]), actions[-1]
        before = self._last(before, action) if action.kind == "last" else self._settled(before)
        emit, link = self.program, action.link
        if action.kind == "cut" and link.even:
            return self._sum_products(((before.many, link.Q), *before.rests))
        if action.kind == "cut":
            return self.program.sum(op.count, (before.many, link.Q, link.R, link.S, link.I), before.rests)[0]
        if action.kind == "if":
            assert link.place is not None
            where = link.place, action.cut
            fresh = bool(before.rests)
            if link.even:
                total = emit.one(op.split_if, before.many, link.Q, *where, fresh=fresh)
            else:
                total = emit.one(op.ceil_if, before.many, link.Q, link.R, *where, fresh=fresh)
            for rest in before.rests:
                emit.emit(op.count_if, total, *rest, link.S, link.I, *where)
            return total
        return self.present(before.many, before.rests)

    def present(self, many: int, rests: Rests) -> int:
        """Row with the number of pieces as they are; rests of extent 0 are none."""
        return self.program.sum(op.present, (many,), rests)[0] if rests else many

    def _sum_products(self, pairs: Rests) -> int:
        """Row with the sum of products of rows."""
        return self.times(*pairs[0]) if len(pairs) == 1 else self.program.sum(op.dot, (), pairs)[0]

    def extent(self, size: int, actions: tuple[Action, ...]) -> int | None:
        """Row with the extents of all pieces together, None for the whole ``size``.

        Cutting keeps the total, so only what comes before the last pick matters.
        """
        actions = tuple(action for action in actions if action.kind != "drop")
        while actions and actions[-1].kind in ("cut", "if"):
            actions = actions[:-1]
        return self._extent(size, actions) if actions else None

    @remembered
    def _extent(self, size: int, actions: tuple[Action, ...]) -> int:
        return self._sum_products(self.pieces(size, actions).all)

    def hinge(self, pieces: Pieces, offset: int) -> int:
        """Row with the sum over pieces of multiplicity x max(0, extent - offset)."""
        return self.program.sum(op.hinge, (offset,), pieces.all)[0]

    def between(self, pieces: Pieces, lane: int, near: int, far: int) -> int:
        """Row with multiplicity x (max(0, e - near) - max(0, e - far)) summed, e being the extent up to ``lane``."""
        return self.program.sum(op.between, (lane, near, far), pieces.all)[0]


def _with(left: list[int], rests: Rests) -> Rests:
    """Give new extents the multiplicities they had."""
    return tuple((row, times) for row, (_, times) in zip(left, rests, strict=True))
