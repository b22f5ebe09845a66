"""Compiled repair of mappings in spaces without rules: steps, tiles, and orders of loops.

Steps become monotone, inside the arrays, and divisible where asked; tiles shrink, by moving factors outward, until they
fit their memories.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

from tilewright.mapping.spaces.kernels import (
    EXTENTS,
    LANES,
    NONE,
    ORDER,
    RANKS,
    ROWS,
    TRIES,
    TWO,
    ZERO,
    Compiled,
    arrays_fit,
    below,
    capacities_fit,
    ceil_div,
    compiled,
    dims_of,
    entry,
    is_spatial,
    lanes,
    load,
    may_loop,
    perfect,
    room,
    slots_of,
    store,
    tile_bits,
)
from tilewright.mapping.spaces.rules import arrays as table


@compiled
def near_divisor(sp: Compiled, d: Compiled, number: Compiled, target: Compiled, top: Compiled) -> Compiled:
    """Return the divisor of ``number`` (one of dimension ``d``) that is nearest ``target``, and at most ``top``."""
    best = 1
    for i in range(1, sp[table.DIVISORS + d, 0] + 1):
        f = sp[table.DIVISORS + d, i]
        if f > top or f > number:
            break
        if number % f == 0:
            if f > target:
                return f if f * best <= target * target else best
            best = f
    return best


@compiled
def nearest_count(sp: Compiled, d: Compiled, whole: Compiled, want: Compiled, top: Compiled) -> Compiled:
    """Return the count nearest ``want``, from 1 to ``top``, that splits the extent ``whole`` of dimension ``d``."""
    top = max(min(top, whole), 1)
    want = min(max(want, 1), top)
    if not perfect(sp) or whole % want == 0:
        return want
    return near_divisor(sp, d, whole, want, top)


@compiled
def repair_inside(sp: Compiled, e: Compiled, d: Compiled, used: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` inside its anchor legal, innermost first; return the anchor's own step."""
    size = sp[table.SIZES, d]
    slots = slots_of(sp)
    current = 1
    e[slots, d] = 1
    for s in range(slots - 1, sp[table.ANCHOR, d], -1):
        want = e[s, d]
        if not may_loop(sp, s, d) or want <= current:
            want = current
        else:
            spatial = is_spatial(sp, s)
            top = min(size, current * room(sp, used, s)) if spatial else size
            want = min(want, top)
            if perfect(sp) and (want % current != 0 or size % want != 0):
                want = current * near_divisor(sp, d, size // current, max(want // current, 1), top // current)
            if spatial:
                used[s] *= ceil_div(want, current)
        e[s, d] = want
        current = want
    return current


@compiled
def repair_outside(sp: Compiled, e: Compiled, d: Compiled, used: Compiled, inside: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` outside its anchor legal, outermost first."""
    extent = sp[table.SIZES, d]
    e[0, d] = extent
    for s in range(sp[table.ANCHOR, d]):
        want = extent
        if may_loop(sp, s, d) and e[s + 1, d] < extent:
            count = ceil_div(extent, max(e[s + 1, d], inside))
            whole = extent // inside if perfect(sp) else extent
            count = nearest_count(sp, d, whole, count, room(sp, used, s))
            want = max(ceil_div(extent, count), inside)
            used[s] *= ceil_div(extent, want)
        e[s + 1, d] = want
        extent = want


@compiled
def repair(sp: Compiled, e: Compiled, used: Compiled, first: Compiled) -> Compiled:
    """Make steps monotone, inside the arrays, and divisible where asked; dimension ``first`` is served first.

    Steps that are legal stay as they are. ``used`` ``(s)`` receives the lanes at every spatial slot.
    """
    dims = dims_of(sp)
    for s in range(slots_of(sp)):
        used[s] = 1
    for i in range(dims):
        d = first + i if first + i < dims else first + i - dims
        repair_outside(sp, e, d, used, repair_inside(sp, e, d, used))


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
    # The nearest memory outside that may loop over it: the farther out, the more often all inside comes again.
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
