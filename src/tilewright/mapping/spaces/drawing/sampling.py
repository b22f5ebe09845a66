"""Compiled drawing of mappings, spread over all scales."""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

from tilewright.mapping.spaces.kernels import (
    COUNTS,
    EXTENTS,
    FOUR,
    LANES,
    LEFT,
    ONE,
    ORDER,
    RANKS,
    ROWS,
    Compiled,
    below,
    ceil_div,
    chance,
    compiled,
    dims_of,
    entry,
    is_spatial,
    log_between,
    may_loop,
    perfect,
    room,
    slots_of,
    store,
)
from tilewright.mapping.spaces.repair.mappings import nearest_count, repair
from tilewright.mapping.spaces.rules import arrays as table


@compiled
def shuffle_order(sp: Compiled, r: Compiled, rng: Compiled, s: Compiled) -> Compiled:
    """Give slot ``s`` a random loop order among those allowed."""
    dims = dims_of(sp)
    if sp[table.SLOT + s, table.ORDER_COUNT] > 0:
        row = sp[table.SLOT + s, table.ORDER_START] + below(rng, sp[table.SLOT + s, table.ORDER_COUNT])
        for d in range(dims):
            r[s, d] = sp[row, d]
        return
    for d in range(dims):
        other = below(rng, d + 1)
        r[s, d] = r[s, other]
        r[s, other] = d


@compiled
def shuffle_orders(sp: Compiled, r: Compiled, rng: Compiled) -> Compiled:
    """Give every temporal slot a random loop order among those allowed."""
    for s in range(slots_of(sp)):
        if not is_spatial(sp, s):
            shuffle_order(sp, r, rng, s)
        else:
            for d in range(dims_of(sp)):
                r[s, d] = d


@compiled
def random_count(sp: Compiled, rng: Compiled, d: Compiled, left: Compiled, top: Compiled) -> Compiled:
    """Return a random count of at most ``top`` for dimension ``d``, of which ``left`` remains to be split."""
    top = min(top, left)
    if top <= 1:
        return 1
    if not perfect(sp):
        return log_between(rng, ONE, top)
    seen, found = 0, 1
    for i in range(1, sp[table.DIVISORS + d, 0] + 1):
        f = sp[table.DIVISORS + d, i]
        if f > top:
            break
        if left % f == 0:
            seen += 1
            if below(rng, seen) == 0:
                found = f
    return found


@compiled
def fill_side(sp: Compiled, rng: Compiled, counts: Compiled, rows: Compiled, s: Compiled) -> Compiled:
    """Spread random dimensions along side ``s`` until it is nearly full."""
    dims = dims_of(sp)
    start = below(rng, dims)
    for i in range(dims):
        d = start + i if start + i < dims else start + i - dims
        space = room(sp, rows[LANES], s)
        left = rows[LEFT, d]
        if space < 2:
            break
        if not may_loop(sp, s, d) or left == 1 or counts[s, d] > 1:
            continue
        count = nearest_count(sp, d, left, min(space, left), space)
        if chance(rng) < 0.25:
            count = random_count(sp, rng, d, left, space)
        counts[s, d] = count
        rows[LANES, s] *= count
        rows[LEFT, d] = ceil_div(left, count)


@compiled
def split_rest(sp: Compiled, rng: Compiled, counts: Compiled, rows: Compiled, s: Compiled, d: Compiled) -> Compiled:
    """Let slot ``s`` take a random part of what is left of dimension ``d``."""
    left = rows[LEFT, d]
    if not may_loop(sp, s, d) or s == sp[table.ANCHOR, d] or counts[s, d] > 1 or left == 1:
        return
    top = left
    spatial = is_spatial(sp, s)
    if spatial:
        top = room(sp, rows[LANES], s)
    count = random_count(sp, rng, d, left, top)
    counts[s, d] = count
    if spatial:
        rows[LANES, s] *= count
    rows[LEFT, d] = ceil_div(left, count)


@compiled
def start_counts(sp: Compiled, counts: Compiled, rows: Compiled) -> Compiled:
    """Set all counts and lanes to 1, the order of the slots to theirs, and leave all of every dimension."""
    for d in range(dims_of(sp)):
        rows[LEFT, d] = sp[table.SIZES, d]
    for s in range(slots_of(sp)):
        rows[LANES, s] = 1
        rows[ORDER, s] = s
        for d in range(dims_of(sp)):
            counts[s, d] = 1


@compiled
def sample_counts(sp: Compiled, rng: Compiled, counts: Compiled, rows: Compiled, filling: Compiled) -> Compiled:
    """Draw the counts ``(s, d)`` of one mapping; the anchors take what is left.

    Dimensions, and the slots of each, are visited in random order; each slot takes a random part of what is left.
    """
    slots, dims = slots_of(sp), dims_of(sp)
    start_counts(sp, counts, rows)
    offset = below(rng, slots)
    for i in range(slots):
        s = (offset + i) % slots
        if filling and is_spatial(sp, s):
            fill_side(sp, rng, counts, rows, s)
    start = below(rng, dims)
    for i in range(dims):
        d = start + i if start + i < dims else start + i - dims
        if rows[LEFT, d] == 1:
            continue
        for k in range(slots):
            other = k + below(rng, slots - k)
            s = rows[ORDER, other]
            rows[ORDER, other] = rows[ORDER, k]
            rows[ORDER, k] = s
            if not filling or not is_spatial(sp, s):
                split_rest(sp, rng, counts, rows, s, d)
        counts[sp[table.ANCHOR, d], d] = rows[LEFT, d]


@compiled
def build_chain(sp: Compiled, e: Compiled, rng: Compiled, counts: Compiled, d: Compiled) -> Compiled:
    """Turn the counts of one dimension into steps: balanced from outside, or multiples from inside, or loosely."""
    slots = slots_of(sp)
    style = 0 if perfect(sp) else below(rng, FOUR)
    extent = sp[table.SIZES, d]
    e[0, d] = extent
    if style < 2:
        for s in range(slots):
            extent = ceil_div(extent, counts[s, d])
            e[s + 1, d] = extent
        return
    extent = 1
    for s in range(slots - 1, -1, -1):
        e[s + 1, d] = extent
        extent = min(extent * counts[s, d], sp[table.SIZES, d])
    if style == 3:
        s = below(rng, slots)
        e[s + 1, d] = log_between(rng, ONE, e[s, d])


@compiled
def draw_mapping(sp: Compiled, rng: Compiled, work: Compiled, filling: Compiled) -> Compiled:
    """Draw one random mapping into the scratch array ``work``."""
    e, counts, rows = work[EXTENTS], work[COUNTS], work[ROWS]
    sample_counts(sp, rng, counts, rows, filling)
    for d in range(dims_of(sp)):
        build_chain(sp, e, rng, counts, d)
    repair(sp, e, rows[LANES], below(rng, dims_of(sp)))
    shuffle_orders(sp, work[RANKS], rng)


@entry
def sample(sp: Compiled, rng: Compiled, filling: Compiled, work: Compiled, steps: Compiled,
           ranks: Compiled) -> Compiled:
    """Fill ``steps`` and ``ranks`` ``(s, d, b)`` with random mappings that fit the arrays.

    ``filling`` is the share of mappings that spread as many lanes as fit; the others leave lanes to chance.
    """
    for b in range(steps.shape[2]):
        draw_mapping(sp, rng, work, chance(rng) < filling)
        store(sp, work[EXTENTS], work[RANKS], steps, ranks, b)
