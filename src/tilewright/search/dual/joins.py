"""Compiled: which chains of several dimensions fit the sides of arrays together."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import Compiled, compiled, entry
from tilewright.search.mappers.exact.room import within

_named = stamped([Path(__file__).parents[1] / "mappers" / "exact" / "room.py"])


@compiled
def fits(sides: Compiled, lanes: Compiled, runs: Compiled) -> Compiled:
    """Whether lanes ``(s)`` at every slot, times what one more chain runs there, fit (see `Arrays.sides`)."""
    for i in range(len(sides)):
        slot, partner, other = sides[i, 0], sides[i, 1], 1.0
        if partner >= 0:
            other *= lanes[partner] * runs[partner]
        if not within(sides, i, 1.0 * lanes[slot] * runs[slot], other):
            return False
    return True


@entry
@_named
def join(sides: Compiled, lanes: Compiled, starts: Compiled, counts: Compiled, runs: Compiled, begun: Compiled,
         pairs: Compiled) -> Compiled:
    """Write to ``pairs (n, 2)`` which of ``lanes (c, s)`` and which chains ``runs (r, s)`` fit together.

    Those at place ``c`` go with ``counts[c]`` chains from ``starts[c]`` on. Return how many fit: all that is left from
    ``begun (2)`` on, a place and a chain there, or as many as there is room for; then it goes on from there.
    """
    found = 0
    while begun[0] < len(lanes):
        c = begun[0]
        while begun[1] < counts[c]:
            row = starts[c] + begun[1]
            if fits(sides, lanes[c], runs[row]):
                if found == len(pairs):
                    return found
                pairs[found, 0], pairs[found, 1] = c, row
                found += 1
            begun[1] += 1
        begun[0] += 1
        begun[1] = 0
    return found
