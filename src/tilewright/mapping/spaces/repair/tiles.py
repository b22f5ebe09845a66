"""Compiled shrinking of tiles, by moving factors outward, until they fit their memories."""


from tilewright.mapping.spaces.kernels import (
    NONE,
    TRIES,
    TWO,
    Compiled,
    below,
    ceil_div,
    compiled,
    dims_of,
    is_spatial,
    may_loop,
    perfect,
    slots_of,
    tile_bits,
)
from tilewright.mapping.spaces.rules import arrays as table


@compiled
def small_factor(count: Compiled) -> Compiled:
    """Return the smallest factor above 1 of ``count``."""
    f = 2
    while f * f <= count:
        if count % f == 0:
            return f
        f += 1
    return count


@compiled
def move_out(e: Compiled, d: Compiled, target: Compiled, source: Compiled, factor: Compiled) -> Compiled:
    """Move ``factor`` of dimension ``d`` from slot ``source`` to the slot ``target`` outside it.

    All counts between stay as they are or fall; steps that do not divide are rounded up.
    """
    floor = e[source + 1, d]
    for s in range(target, source):
        e[s + 1, d] = max(ceil_div(e[s + 1, d], factor), floor)


@compiled
def holder(sp: Compiled, e: Compiled, rng: Compiled, first: Compiled, d: Compiled) -> Compiled:
    """Return a random slot from ``first`` inward where dimension ``d`` loops, temporal if possible; or -1."""
    temporal, spatial, seen, others = NONE, NONE, 0, 0
    for s in range(first, slots_of(sp)):
        if e[s + 1, d] < e[s, d]:
            if not is_spatial(sp, s):
                seen += 1
                if seen == 1 or below(rng, seen) == 0:
                    temporal = s
            else:
                others += 1
                if others == 1 or below(rng, others) == 0:
                    spatial = s
    return temporal if temporal >= 0 else spatial


@compiled
def held_dimension(sp: Compiled, e: Compiled, rng: Compiled, g: Compiled) -> Compiled:
    """Return a random dimension in which the tile of group ``g`` can be made smaller, or -1."""
    s = sp[table.GROUPS + g, 0]
    seen, chosen = 0, NONE
    for d in range(dims_of(sp)):
        if sp[table.ANCHOR, d] < s and e[s, d] > 1:
            for t in range(sp[table.META, table.TENSORS]):
                if sp[table.GROUPS + g, 2 + t] > 0 and sp[table.RELEVANT + t, d] != 0:
                    seen += 1
                    if seen == 1 or below(rng, seen) == 0:
                        chosen = d
                    break
    return chosen


@compiled
def shrink(sp: Compiled, e: Compiled, rng: Compiled, g: Compiled) -> Compiled:
    """Make the tile of group ``g`` smaller in one random dimension; return whether that was possible."""
    d = held_dimension(sp, e, rng, g)
    if d < 0:
        return False
    s = sp[table.GROUPS + g, 0]
    source, target = holder(sp, e, rng, s, d), s - 1
    while is_spatial(sp, target) or not may_loop(sp, target, d):
        target -= 1
    count = ceil_div(e[source, d], e[source + 1, d])
    factor = small_factor(count) if perfect(sp) else min(count, 2 + below(rng, TWO))
    move_out(e, d, target, source, factor)
    return True


@compiled
def fit(sp: Compiled, e: Compiled, rng: Compiled) -> Compiled:
    """Shrink tiles until all fit, moving factors outward; return whether they do."""
    for g in range(sp[table.META, table.GROUP_COUNT]):
        tries = 0
        while tile_bits(sp, e, g) > sp[table.GROUPS + g, 1]:
            tries += 1
            if tries > TRIES or not shrink(sp, e, rng, g):
                return False
    return True
