"""Compiled parts of the mapper `auto`: children chosen by what no order of their loops can beat."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

import numpy as np

from tilewright.mapping.spaces.kernels import (
    COUNTS,
    EXTENTS,
    LANES,
    RANKS,
    ROWS,
    Compiled,
    below,
    chance,
    compiled,
    dims_of,
    entry,
    remember,
    signature,
    slots_of,
    steps_signature,
    store,
)
from tilewright.mapping.spaces.repair.mappings import fit, repair
from tilewright.mapping.spaces.rules import arrays as table
from tilewright.search.mappers.auto.bounds import bound_of, named
from tilewright.search.mappers.auto.tables import INSIDE
from tilewright.search.mappers.gamma.kernels import RETRIES, make_child, vary

FOLLOWING = 0.8
"""Chance that a candidate's loops are put into the order that its bound asks for."""


@compiled
def set_orders(sp: Compiled, tables: Compiled, r: Compiled, kind: Compiled, keys: Compiled) -> Compiled:
    """Let the class of dimensions that ``kind`` names run innermost at every memory, else in the order as it is."""
    slots, used, classes, kinds = tables.memory_slots, tables.used, tables.rules.classes, tables.rules.picks
    dims = dims_of(sp)
    for m in range(tables.memories - 1):
        s, k = slots[INSIDE, m], kinds[kind, m] - 1 - m * len(classes)
        if sp[table.SLOT + s, table.ORDER_COUNT] > 0:
            continue
        for d in range(dims):
            rests = 1
            for t in range(tables.tensors):
                if (classes[k, t] != 0) == (used[t, d] != 0):
                    rests = 0
            keys[d] = r[s, d] + dims * rests
        for d in range(dims):
            place = 0
            for other in range(dims):
                place += keys[other] < keys[d]
            r[s, d] = place


@compiled
def copy(source: Compiled, target: Compiled, rows: Compiled, columns: Compiled) -> Compiled:
    """Copy the first rows and columns of one array to another."""
    for s in range(rows):
        for d in range(columns):
            target[s, d] = source[s, d]


@compiled
def change(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled, kept: Compiled) -> Compiled:
    """Make a changed copy of the mapping ``kept`` ``(2, s + 1, d)`` into ``work``."""
    copy(kept[0], work[EXTENTS], slots_of(sp) + 1, dims_of(sp))
    copy(kept[1], work[RANKS], slots_of(sp), dims_of(sp))
    vary(sp, rng, rates, work)
    repair(sp, work[EXTENTS], work[ROWS, LANES], below(rng, dims_of(sp)))


@compiled
def make(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled, kept: Compiled, seen: Compiled, steps: Compiled,
         ranks: Compiled, places: Compiled, parents: Compiled, found: Compiled, bounded: Compiled) -> Compiled:
    """Make a candidate into ``work``: a child, or where mappings are drawn and one was ``found`` a changed copy of it.

    Of a child whose steps were looked at before another is made, a few times at most, unless its loops need not follow
    its bound. Return whether the last one fits and is new so, and whether its loops follow its bound.
    """
    e, follows = work[EXTENTS], False
    for _ in range(1 + RETRIES if parents > 0 else 1):
        if found and parents == 0:
            change(sp, rng, rates, work, kept)
        else:
            make_child(sp, rng, rates, work, steps, ranks, places, parents)
        follows = bounded and chance(rng) < FOLLOWING
        if fit(sp, e, rng) and (remember(seen, steps_signature(sp, e)) or not follows):
            return True, follows
    return False, follows


@compiled
def weigh(sp: Compiled, work: Compiled, tables: Compiled, room: Compiled, cut: Compiled, follows: Compiled) -> Compiled:
    """Return the bound of the mapping in ``work``, infinite if that is not below ``cut``; put loops in its order."""
    if len(tables.rules.terms) == 0:
        return 0.0
    bound, kind = bound_of(sp, tables, work[EXTENTS], work[COUNTS], room, cut)
    if bound < cut and follows:
        set_orders(sp, tables, work[RANKS], kind, work[ROWS, LANES])
    return bound


@entry
@named
def propose(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled, kept: Compiled, seen: Compiled,
            steps: Compiled, ranks: Compiled, places: Compiled, parents: Compiled, children: Compiled,
            child_ranks: Compiled, span: Compiled, limit: Compiled, tries: Compiled, tables: Compiled,
            room: Compiled) -> Compiled:
    """Write the children of a population to places ``span[0]`` to ``span[1]`` of two arrays ``(s, d, b)``.

    Each is the first of up to ``tries[0]`` candidates that fits, was no child before and whose bound is below
    ``limit``; if none is, that of the least bound, or none at all where ``tries[2]`` is not 0. Return the place after
    the last one. The population and its ``parents`` are as in `gamma_kernels.breed`; without any, mappings are drawn,
    and each is changed ``tries[1] - 1`` times, where its bound does not rise. Most have their loops in the order that
    the bound asks for. ``kept`` ``(2, s + 1, d)`` is room for the best candidate.
    """
    e, r = work[EXTENTS], work[RANKS]
    bounded = len(tables.rules.terms) > 0
    descends = parents == 0 and bounded
    above, b = limit if tries[2] != 0 and parents > 0 else np.inf, span[0]
    for _ in range(span[0], span[1]):
        least, found = above, False
        for _ in range(tries[0 if parents > 0 else 1]):
            fits, follows = make(sp, rng, rates, work, kept, seen, steps, ranks, places, parents, found, bounded)
            if not fits:
                continue
            bound = weigh(sp, work, tables, room, least, follows)
            if bound >= least or not remember(seen, signature(sp, e, r)):
                continue
            least, found = bound, True
            copy(e, kept[0], slots_of(sp) + 1, dims_of(sp))
            copy(r, kept[1], slots_of(sp), dims_of(sp))
            if bound < limit and not descends:
                break
        if found:
            store(sp, kept[0], kept[1], children, child_ranks, b)
        elif above == np.inf:
            store(sp, e, r, children, child_ranks, b)
        b += found or above == np.inf
    return b
