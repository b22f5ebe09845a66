"""Parts of a space: what is left of each, and what is known of it."""

from typing import TYPE_CHECKING, NamedTuple

from tilewright.search.dual.problem import Case
from tilewright.search.dual.ranges import Floats, Integers
from tilewright.search.dual.records import Marks

if TYPE_CHECKING:
    from tilewright.search.dual.listing import ChainPool

OPEN = -2
"""What stands in `SpacePart.case` for a memory of which nothing is told yet."""


FEW, EVERY, MERGED = 0, 1, 2
"""Which chains are listed: those that no other makes needless; all, with what `pieces` tells; or all, but one for all
ways to part its lanes between sides, made of the least by each."""


class SpacePart(NamedTuple):
    """A part of the space."""

    bound: float
    """The logarithm of what no mapping of it scores below."""
    whole: bool
    """Whether it cannot be divided."""
    point: Floats
    """``(q)``: where the bound was found."""
    case: Integers
    """``(m - 1, 3)``: what rests at each memory (see `problem.Rest`); -2 where it is open."""
    cells: Marks
    ways: Marks
    sides: Marks
    """``(l, c)`` pairs of ranges by layer, ``(e)`` ways through arrays and ``(w)`` ways to part lanes that are left
    (see `ascent.fix`): one bit each."""
    most: Integers
    full: Marks
    """``(s)``: by limit of an array the most lanes, and whether there are exactly as many."""
    slots: Integers
    shares: Floats
    chains: Integers
    """``(k)``, ``(k)`` and ``(k, 5 m)``: the chains that the bound is made of, or that cost less where it was found:
    where each goes in the work, group by group, its weight, and what it is."""


VARIED = "slots", "shares", "chains"
"""What parts have more or fewer of."""


class RaisedPart(NamedTuple):
    """The highest bound found of a part, the turns that it took, and where it was found."""

    bound: float
    turns: int
    point: Floats
    above: float
    pool: "ChainPool"
    """The chains that are left, and what none of them scores below by the slope there (negative infinity: too many)."""


def case_of(part: SpacePart) -> Case:
    """Return what rests at memories in a part."""
    return tuple(None if c == OPEN else (c, bool(mixed), slide) for c, mixed, slide in part.case.tolist())
