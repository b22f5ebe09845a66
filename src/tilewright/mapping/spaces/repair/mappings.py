"""Compiled repair of whole mappings: steps, tiles, and orders of loops."""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

from tilewright.mapping.spaces.kernels import (
    EXTENTS,
    LANES,
    ORDER,
    RANKS,
    ROWS,
    ZERO,
    Compiled,
    arrays_fit,
    capacities_fit,
    compiled,
    dims_of,
    entry,
    is_spatial,
    lanes,
    load,
    slots_of,
    store,
)
from tilewright.mapping.spaces.repair.steps import repair
from tilewright.mapping.spaces.repair.tiles import fit
from tilewright.mapping.spaces.rules import arrays as table


@compiled
def misplaced(sp: Compiled, e: Compiled, r: Compiled, s: Compiled, nearest: Compiled) -> Compiled:
    """Return how many pairs of loops of slot ``s`` stand the other way round than in the nearest order allowed.

    ``nearest[0]`` receives the row of that order, where orders are restricted. Loops that run once count for nothing.
    """
    dims, start = dims_of(sp), sp[table.SLOT + s, table.ORDER_START]
    fewest = 0 if sp[table.SLOT + s, table.ORDER_COUNT] == 0 else dims * dims
    for row in range(start, start + sp[table.SLOT + s, table.ORDER_COUNT]):
        pairs = 0
        for a in range(dims):
            for b in range(dims):
                if r[s, a] <= r[s, b] and sp[row, a] > sp[row, b] and e[s + 1, a] < e[s, a] and e[s + 1, b] < e[s, b]:
                    pairs += 1
        if pairs < fewest:
            fewest = pairs
            nearest[0] = row
    return fewest


@compiled
def repair_order(sp: Compiled, e: Compiled, r: Compiled, s: Compiled, before: Compiled) -> Compiled:
    """Make the ranks of slot ``s`` a permutation, and its loops stand in the nearest order that it allows."""
    dims, row = dims_of(sp), -1
    if not is_spatial(sp, s) and misplaced(sp, e, r, s, before) > 0:
        row = before[0]
    for d in range(dims):
        before[d] = sp[row, d] if row >= 0 else r[s, d]
    for d in range(dims):
        place = 0
        for other in range(dims):
            place += before[other] < before[d] or (before[other] == before[d] and other < d)
        r[s, d] = place


@entry
def repair_batch(sp: Compiled, rng: Compiled, fitting: Compiled, work: Compiled, steps: Compiled,
                 ranks: Compiled) -> Compiled:
    """Repair ``steps`` ``(s, d, b)`` in place, and replace ``ranks`` that are no allowed order.

    With ``fitting`` tiles are made smaller first until they fit their memories, where that can be done.
    """
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, work[EXTENTS], work[RANKS])
        if fitting:
            fit(sp, work[EXTENTS], rng)
        repair(sp, work[EXTENTS], work[ROWS, LANES], ZERO)
        for s in range(slots_of(sp)):
            repair_order(sp, work[EXTENTS], work[RANKS], s, work[ROWS, ORDER])
        store(sp, work[EXTENTS], work[RANKS], steps, ranks, b)


@entry
def fit_mask(sp: Compiled, work: Compiled, steps: Compiled, ranks: Compiled, out: Compiled) -> Compiled:
    """Write to ``out`` ``(b)`` whether all tiles of each mapping fit their memories, and its loops the arrays."""
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, work[EXTENTS], work[RANKS])
        lanes(sp, work[EXTENTS], work[ROWS, LANES], dims_of(sp) - 1)
        out[b] = arrays_fit(sp, work[ROWS, LANES]) and capacities_fit(sp, work[EXTENTS])
