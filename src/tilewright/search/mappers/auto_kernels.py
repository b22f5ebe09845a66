"""Compiled parts of the mapper `auto`: children chosen by what no order of their loops can beat."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.arrays import DIMS, META, ORDER_COUNT, SLOT, SLOTS
from tilewright.mapping.spaces.kernels import ZERO, Compiled, chance, compiled, entry, fit, store
from tilewright.mapping.spaces.sampling import COUNTS, EXTENTS, LANES, RANKS, ROWS
from tilewright.mapping.spaces.signature import remember, signature
from tilewright.search.mappers.auto_bounds import bound_of
from tilewright.search.mappers.gamma_kernels import conceive

FOLLOWING = 0.8
"""Chance that a candidate's loops are put into the order that its bound asks for."""
# Its functions end up inside ours.
_named = stamped(Path(__file__).parent / f"{name}.py" for name in ("auto_bounds", "auto_tables", "gamma_kernels"))


@compiled
def set_orders(sp: Compiled, tariff: Compiled, r: Compiled, kind: Compiled, keys: Compiled) -> Compiled:
    """Let the class of dimensions that ``kind`` names run innermost at every memory, else in the order as it is."""
    where, relevant, classes, dims = tariff[0], tariff[1], tariff[14], sp[META, DIMS]
    for m in range(tariff[2][0] - 1):
        s, k = where[0, m], tariff[19][kind, m] - 1 - m * len(classes)
        if sp[SLOT + s, ORDER_COUNT] > 0:
            continue
        for d in range(dims):
            rests = 1
            for t in range(tariff[2][2]):
                if (classes[k, t] != 0) == (relevant[t, d] != 0):
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


@entry
@_named
def propose(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled, kept: Compiled, seen: Compiled,
            steps: Compiled, ranks: Compiled, places: Compiled, parents: Compiled, children: Compiled,
            child_ranks: Compiled, span: Compiled, limit: Compiled, most: Compiled, tariff: Compiled,
            room: Compiled) -> Compiled:
    """Write the children of a population to places ``span[0]`` to ``span[1]`` of two arrays ``(s, d, b)``.

    Each is the first of up to ``most`` candidates that fits, was no child before and whose bound is below ``limit``;
    if none is, that of the least bound. The population and its ``parents`` are as in `gamma_kernels.breed`; without
    any, candidates are drawn. Most have their loops in the order that the bound asks for. ``kept`` ``(2, s + 1, d)`` is
    room for the best candidate.
    """
    e, r, rows, dims = work[EXTENTS], work[RANKS], sp[META, SLOTS], sp[META, DIMS]
    bounded = len(tariff[10]) > 0
    for b in range(span[0], span[1]):
        least, found = np.inf, False
        for _ in range(most):
            conceive(sp, rng, rates, work, steps, ranks, places, parents, ZERO)
            if not fit(sp, e, rng):
                continue
            bound = 0.0
            if bounded:
                bound, kind = bound_of(sp, tariff, e, work[COUNTS], room)
                if found and bound >= least:
                    continue
                if chance(rng) < FOLLOWING:
                    set_orders(sp, tariff, r, kind, work[ROWS, LANES])
            if not remember(seen, signature(sp, e, r)):
                continue
            least, found = bound, True
            copy(e, kept[0], rows + 1, dims)
            copy(r, kept[1], rows, dims)
            if bound < limit:
                break
        if found:
            store(sp, kept[0], kept[1], children, child_ranks, b)
        else:
            store(sp, e, r, children, child_ranks, b)
