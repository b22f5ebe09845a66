"""Compiled membership and projection for spaces with rules: the tilings of Ruby, bounds on counts and tiles, floors.

A mapping is projected dimension by dimension and, in each, from the innermost slot outward: every extent becomes the
one nearest to it, by ratio, that the extents inside it, the rules and the arrays allow, and from which the whole size
can still be reached. So of all legal chains the one is taken whose extents differ least where they differ first, from
inside. What cannot be mended so, for the sake of the arrays, takes its lanes from some mapping of the space that the
table knows, or if need be all of it.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.spaces.kernels import (
    EXTENTS,
    LANES,
    ONE,
    ORDER,
    RANKS,
    ROWS,
    TWO,
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
    room,
    slots_of,
    store,
)
from tilewright.mapping.spaces.repair.mappings import fit, misplaced, repair_order
from tilewright.mapping.spaces.rules import arrays as table

ATTEMPTS = 5
PAIRED = 100
# What `legalise_batch` looks after beside the steps.
STEPS, ORDERS, FITTING = (np.int64(mode) for mode in range(3))


@compiled
def allowed(sp: Compiled, d: Compiled, s: Compiled, outside: Compiled, inside: Compiled) -> Compiled:
    """Whether slot ``s`` may lead dimension ``d`` from the extent ``outside`` to ``inside``."""
    rules, slots = sp[table.META, table.RULES], slots_of(sp)
    count = ceil_div(outside, inside)
    if count < sp[rules + table.LEAST * slots + s, d] or count > sp[rules + table.MOST * slots + s, d]:
        return False
    if outside < sp[rules + table.TILE_LEAST * slots + s, d] or outside > sp[rules + table.TILE_MOST * slots + s, d]:
        return False
    if sp[table.META, table.WHOLE] == 0 or outside == inside or outside == sp[table.SIZES, d]:
        return True
    if outside % inside != 0:
        return False
    return sp[table.SLOT + s, table.EXACT] == 0 or ceil_div(sp[table.SIZES, d], inside) % count == 0


@compiled
def floor_missed(sp: Compiled, used: Compiled) -> Compiled:
    """Return the first slot of an array of which the lanes ``used`` ``(s)`` are too few, or -1."""
    for s in range(slots_of(sp)):
        floor = sp[table.SLOT + s, table.FLOOR]
        if floor > 1:
            partner = sp[table.SLOT + s, table.PARTNER]
            if used[s] * (used[partner] if partner >= 0 else 1) < floor:
                return s
    return -ONE


@compiled
def inside(sp: Compiled, e: Compiled, used: Compiled) -> Compiled:
    """Whether the steps belong to the space; ``used`` ``(s)`` receives the lanes."""
    for d in range(dims_of(sp)):
        if e[slots_of(sp), d] != 1:
            return False
        for s in range(slots_of(sp)):
            if e[s + 1, d] < 1 or e[s + 1, d] > e[s, d] or not allowed(sp, d, s, e[s, d], e[s + 1, d]):
                return False
    lanes(sp, e, used, dims_of(sp) - 1)
    return arrays_fit(sp, used) and floor_missed(sp, used) < 0


@compiled
def stands(sp: Compiled, d: Compiled, s: Compiled, extent: Compiled, within: Compiled) -> Compiled:
    """Whether dimension ``d`` may have ``extent`` outside slot ``s`` and ``within`` inside it, and go on outward."""
    # A bit for each extent from which the slots outside can still come to the whole size.
    row = sp[table.META, table.RULES] + table.BITS * slots_of(sp) + s * dims_of(sp) + d
    return (sp[row, extent >> 6] >> (extent & 63)) & 1 != 0 and allowed(sp, d, s, extent, within)


@compiled
def paired_extent(sp: Compiled, d: Compiled, s: Compiled, within: Compiled, want: Compiled, first: Compiled,
                  last: Compiled, down: Compiled) -> Compiled:
    """Return what `nearest_extent` does: counts from ``first`` to ``last`` that divide what is left, pair by pair."""
    size, p, low, high = sp[table.SIZES, d], 1, 0, 0
    left = ceil_div(size, within)
    while p * p <= left:
        if left % p == 0:
            for count in (p, left // p):
                extent = min(within * count, size)
                if first <= count <= last and stands(sp, d, s, extent, within):
                    if extent <= want:
                        low = max(low, extent)
                    elif high == 0 or extent < high:
                        high = extent
        p += 1
    if low == 0 or (high > 0 and not down and high * low <= want * want):
        return high
    return low


@compiled
def nearest_extent(sp: Compiled, d: Compiled, s: Compiled, within: Compiled, want: Compiled, top: Compiled,
                   down: Compiled) -> Compiled:
    """Return the extent nearest ``want`` that dimension ``d`` may have outside slot ``s``, ``within`` inside it; or 0.

    ``top`` is the largest count; with ``down`` smaller extents go before larger ones, however near. Counts that must
    divide a large number are found in pairs, others one by one from ``want`` down and then up.
    """
    size, rules, slots = sp[table.SIZES, d], sp[table.META, table.RULES], slots_of(sp)
    top = min(top, sp[rules + table.MOST * slots + s, d])
    unit = within if sp[table.META, table.WHOLE] != 0 else 1
    first = ceil_div(max(within, sp[rules + table.TILE_LEAST * slots + s, d]), unit)
    last = ceil_div(min(sp[rules + table.TILE_MOST * slots + s, d], within * top), unit)
    start = min(max(want // unit if want < size else last, first), last)
    if top < 1 or first > last:
        return 0
    exact = sp[table.SLOT + s, table.EXACT] != 0
    # Divisors of a large number are few and far between: walking all counts would take long.
    if exact and size > PAIRED * within and not stands(sp, d, s, min(unit * start, size), within):
        return paired_extent(sp, d, s, within, want, first, last, down)
    low, p, step = 0, start, -1
    while p <= last:
        extent = min(unit * p, size)
        if step > 0 and low > 0 and extent * low > want * want:
            return low
        # First downward to the nearest that stands, then upward until farther off (by ratio) than that one.
        found = stands(sp, d, s, extent, within)
        if found and (step > 0 or down or extent == want):
            return extent
        if found:
            low = extent
        if step < 0 and (found or p == first):
            p, step = start, 1
        p += step
    return low


@compiled
def project_chain(sp: Compiled, e: Compiled, d: Compiled, used: Compiled, down: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` legal, innermost first; return whether that was possible."""
    slots = slots_of(sp)
    within = 1
    e[slots, d] = 1
    for s in range(slots - 1, -1, -1):
        spatial = is_spatial(sp, s)
        top = room(sp, used, s) if spatial else sp[table.SIZES, d]
        extent = nearest_extent(sp, d, s, within, max(e[s, d], 1), top, down)
        if extent == 0:
            return False
        if spatial:
            used[s] *= ceil_div(extent, within)
        e[s, d] = extent
        within = extent
    return True


@compiled
def widen(sp: Compiled, e: Compiled, used: Compiled, s: Compiled, first: Compiled) -> Compiled:
    """Spread dimensions along side ``s`` as far as there is room until floors are met; return whether all is legal."""
    dims = dims_of(sp)
    for i in range(dims):
        d = first + i if first + i < dims else first + i - dims
        if not may_loop(sp, s, d) or floor_missed(sp, used) < 0:
            continue
        for other in range(slots_of(sp)):
            if is_spatial(sp, other):
                used[other] //= ceil_div(e[other, d], e[other + 1, d])
        want = min(e[s + 1, d] * max(room(sp, used, s), 1), sp[table.SIZES, d])
        for outer in range(1, s + 1):
            e[outer, d] = max(e[outer, d], want)
        if not project_chain(sp, e, d, used, False):
            return False
    return True


@compiled
def project(sp: Compiled, e: Compiled, used: Compiled, first: Compiled, down: Compiled) -> Compiled:
    """Make the steps of all dimensions legal, those of ``first`` first; return whether that was possible.

    ``used`` ``(s)`` receives the lanes; what dimensions not yet served must have is set aside for them.
    """
    dims, slots = dims_of(sp), slots_of(sp)
    least = sp[table.META, table.RULES] + table.LEAST * slots
    for s in range(slots):
        used[s] = 1
        for d in range(dims):
            used[s] *= sp[least + s, d]
    for i in range(dims):
        d = first + i if first + i < dims else first + i - dims
        for s in range(slots):
            used[s] //= sp[least + s, d]
        if not project_chain(sp, e, d, used, down):
            return False
    for turn in range(2 * slots):
        s = floor_missed(sp, used)
        if s < 0:
            return True
        if turn % 2 == 1 and sp[table.SLOT + s, table.PARTNER] >= 0:
            s = sp[table.SLOT + s, table.PARTNER]
        if not widen(sp, e, used, s, first):
            return False
    return False


@compiled
def borrow(sp: Compiled, e: Compiled, known: Compiled, all_of_it: Compiled) -> Compiled:
    """Take the lanes of the mapping at row ``known`` of the table, or all of it; loops in time stay if they can."""
    slots = slots_of(sp)
    for d in range(dims_of(sp)):
        size, outer = sp[table.SIZES, d], 1
        for s in range(slots):
            if is_spatial(sp, s):
                outer *= ceil_div(sp[known + s, d], sp[known + s + 1, d])
        extent, within = 1, max(e[slots, d], 1)
        for s in range(slots - 1, -1, -1):
            before = max(e[s, d], within)
            if is_spatial(sp, s):
                count = ceil_div(sp[known + s, d], sp[known + s + 1, d])
                extent *= count
                outer //= count
            else:
                extent = min(extent * ceil_div(before, within), max(extent, size // outer))
            within = before
            e[s, d] = sp[known + s, d] if all_of_it else min(extent, size)
        e[0, d], e[slots, d] = size, 1


@compiled
def legalise(sp: Compiled, e: Compiled, rng: Compiled, used: Compiled, fitting: Compiled) -> Compiled:
    """Make the steps legal, and with ``fitting`` tiles fit the memories; return 1 for legal, 2 where tiles fit too.

    Legal steps (that fit, with ``fitting``) stay as they are. It is 0 where that failed and no legal mapping is known.
    """
    legal, known = True, 0
    for attempt in range(ATTEMPTS):
        last = attempt == ATTEMPTS - 1
        if not legal and sp[table.META, table.MAPPINGS] > 0:
            known = sp[table.META, table.KNOWN] + below(rng, sp[table.META, table.MAPPINGS]) * (slots_of(sp) + 1)
            borrow(sp, e, known, last)
        # Tiles were too large for a memory before: go for smaller ones, but from a known mapping take what it has.
        down = fitting and attempt > 0 and not last
        legal = inside(sp, e, used) or project(sp, e, used, below(rng, dims_of(sp)), down)
        if legal and not fitting:
            return ONE
        if legal and capacities_fit(sp, e):
            return TWO
        if legal and not last:
            fit(sp, e, rng)
    return np.int64(legal)


@entry
def legalise_batch(sp: Compiled, rng: Compiled, work: Compiled, steps: Compiled, ranks: Compiled, span: Compiled,
                   mode: Compiled, out: Compiled) -> Compiled:
    """Make the mappings from ``span[0]`` to ``span[1]`` legal in place; ``out`` ``(b)`` receives what `legalise` says.

    In mode `FITTING` tiles are made to fit the memories too where that is possible, in mode `ORDERS` loop orders legal,
    and each mapping becomes what it would alone.
    """
    e, r, state = work[EXTENTS], work[RANKS], rng[0]
    for b in range(span[0], span[1]):
        if mode == ORDERS:
            rng[0] = state
        load(sp, steps, ranks, b, e, r)
        out[b - span[0]] = legalise(sp, e, rng, work[ROWS, LANES], mode == FITTING)
        if mode == ORDERS:
            for s in range(slots_of(sp)):
                repair_order(sp, e, r, s, work[ROWS, ORDER])
        store(sp, e, r, steps, ranks, b)


@entry
def inside_mask(sp: Compiled, work: Compiled, steps: Compiled, ranks: Compiled, out: Compiled) -> Compiled:
    """Write to ``out`` ``(b)`` which mappings belong to the space: steps, lanes and loop orders."""
    e, r = work[EXTENTS], work[RANKS]
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, e, r)
        out[b] = inside(sp, e, work[ROWS, LANES])
        for s in range(slots_of(sp)):
            if out[b] and not is_spatial(sp, s):
                out[b] = misplaced(sp, e, r, s, work[ROWS, ORDER]) == 0
