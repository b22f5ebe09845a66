"""Compiled sampling and repair of whole batches of a map space."""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

from tilewright.mapping.spaces.kernels import (
    FOUR,
    ONE,
    ZERO,
    Compiled,
    arrays_fit,
    below,
    capacities_fit,
    ceil_div,
    chance,
    compiled,
    entry,
    fit,
    lanes,
    load,
    log_between,
    nearest_count,
    repair,
    room,
    store,
)
from tilewright.mapping.spaces.rules.arrays import (
    ANCHOR,
    DIMS,
    DIVISORS,
    FREE,
    KIND,
    META,
    ORDER_COUNT,
    ORDER_START,
    PERFECT,
    SIZES,
    SLOT,
    SLOTS,
    SPATIAL,
    TEMPORAL,
)

# Planes of the scratch array `MapSpace.scratch`, and rows of its last plane.
EXTENTS, RANKS, COUNTS, ROWS = range(4)
LANES, LEFT, ORDER = range(3)


@compiled
def shuffle_order(sp: Compiled, r: Compiled, rng: Compiled, s: Compiled) -> Compiled:
    """Give slot ``s`` a random loop order among those allowed."""
    dims = sp[META, DIMS]
    if sp[SLOT + s, ORDER_COUNT] > 0:
        row = sp[SLOT + s, ORDER_START] + below(rng, sp[SLOT + s, ORDER_COUNT])
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
    for s in range(sp[META, SLOTS]):
        if sp[SLOT + s, KIND] == TEMPORAL:
            shuffle_order(sp, r, rng, s)
        else:
            for d in range(sp[META, DIMS]):
                r[s, d] = d


@compiled
def random_count(sp: Compiled, rng: Compiled, d: Compiled, left: Compiled, top: Compiled) -> Compiled:
    """Return a random count of at most ``top`` for dimension ``d``, of which ``left`` remains to be split."""
    top = min(top, left)
    if top <= 1:
        return 1
    if sp[META, PERFECT] == 0:
        return log_between(rng, ONE, top)
    seen, found = 0, 1
    for i in range(1, sp[DIVISORS + d, 0] + 1):
        f = sp[DIVISORS + d, i]
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
    dims = sp[META, DIMS]
    start = below(rng, dims)
    for i in range(dims):
        d = start + i if start + i < dims else start + i - dims
        space = room(sp, rows[LANES], s)
        left = rows[LEFT, d]
        if space < 2:
            break
        if sp[FREE + s, d] == 0 or left == 1 or counts[s, d] > 1:
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
    if sp[FREE + s, d] == 0 or s == sp[ANCHOR, d] or counts[s, d] > 1 or left == 1:
        return
    top = left
    spatial = sp[SLOT + s, KIND] == SPATIAL
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
    for d in range(sp[META, DIMS]):
        rows[LEFT, d] = sp[SIZES, d]
    for s in range(sp[META, SLOTS]):
        rows[LANES, s] = 1
        rows[ORDER, s] = s
        for d in range(sp[META, DIMS]):
            counts[s, d] = 1


@compiled
def sample_counts(sp: Compiled, rng: Compiled, counts: Compiled, rows: Compiled, filling: Compiled) -> Compiled:
    """Draw the counts ``(s, d)`` of one mapping; the anchors take what is left.

    Dimensions, and the slots of each, are visited in random order; each slot takes a random part of what is left.
    """
    slots, dims = sp[META, SLOTS], sp[META, DIMS]
    start_counts(sp, counts, rows)
    offset = below(rng, slots)
    for i in range(slots):
        s = (offset + i) % slots
        if filling and sp[SLOT + s, KIND] == SPATIAL:
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
            if not filling or sp[SLOT + s, KIND] == TEMPORAL:
                split_rest(sp, rng, counts, rows, s, d)
        counts[sp[ANCHOR, d], d] = rows[LEFT, d]


@compiled
def build_chain(sp: Compiled, e: Compiled, rng: Compiled, counts: Compiled, d: Compiled) -> Compiled:
    """Turn the counts of one dimension into steps: balanced from outside, or multiples from inside, or loosely."""
    slots = sp[META, SLOTS]
    style = 0 if sp[META, PERFECT] != 0 else below(rng, FOUR)
    extent = sp[SIZES, d]
    e[0, d] = extent
    if style < 2:
        for s in range(slots):
            extent = ceil_div(extent, counts[s, d])
            e[s + 1, d] = extent
        return
    extent = 1
    for s in range(slots - 1, -1, -1):
        e[s + 1, d] = extent
        extent = min(extent * counts[s, d], sp[SIZES, d])
    if style == 3:
        s = below(rng, slots)
        e[s + 1, d] = log_between(rng, ONE, e[s, d])


@compiled
def draw_mapping(sp: Compiled, rng: Compiled, work: Compiled, filling: Compiled) -> Compiled:
    """Draw one random mapping into the scratch array ``work``."""
    e, counts, rows = work[EXTENTS], work[COUNTS], work[ROWS]
    sample_counts(sp, rng, counts, rows, filling)
    for d in range(sp[META, DIMS]):
        build_chain(sp, e, rng, counts, d)
    repair(sp, e, rows[LANES], below(rng, sp[META, DIMS]))
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


@compiled
def misplaced(sp: Compiled, e: Compiled, r: Compiled, s: Compiled, nearest: Compiled) -> Compiled:
    """Return how many pairs of loops of slot ``s`` stand the other way round than in the nearest order allowed.

    ``nearest[0]`` receives the row of that order, where orders are restricted. Loops that run once count for nothing.
    """
    dims, start = sp[META, DIMS], sp[SLOT + s, ORDER_START]
    fewest = 0 if sp[SLOT + s, ORDER_COUNT] == 0 else dims * dims
    for row in range(start, start + sp[SLOT + s, ORDER_COUNT]):
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
    dims, row = sp[META, DIMS], -1
    if sp[SLOT + s, KIND] == TEMPORAL and misplaced(sp, e, r, s, before) > 0:
        row = before[0]
    for d in range(dims):
        before[d] = sp[row, d] if row >= 0 else r[s, d]
    for d in range(dims):
        place = 0
        for other in range(dims):
            place += before[other] < before[d] or (before[other] == before[d] and other < d)
        r[s, d] = place


@entry
def repair_batch(sp: Compiled, work: Compiled, steps: Compiled, ranks: Compiled) -> Compiled:
    """Repair ``steps`` ``(s, d, b)`` in place, and replace ``ranks`` that are no allowed order."""
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, work[EXTENTS], work[RANKS])
        repair(sp, work[EXTENTS], work[ROWS, LANES], ZERO)
        for s in range(sp[META, SLOTS]):
            repair_order(sp, work[EXTENTS], work[RANKS], s, work[ROWS, ORDER])
        store(sp, work[EXTENTS], work[RANKS], steps, ranks, b)


@entry
def fit_batch(sp: Compiled, rng: Compiled, work: Compiled, steps: Compiled, ranks: Compiled) -> Compiled:
    """Make the tiles of all mappings smaller, in place, until they fit their memories, where that can be done."""
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, work[EXTENTS], work[RANKS])
        fit(sp, work[EXTENTS], rng)
        repair(sp, work[EXTENTS], work[ROWS, LANES], ZERO)
        for s in range(sp[META, SLOTS]):
            repair_order(sp, work[EXTENTS], work[RANKS], s, work[ROWS, ORDER])
        store(sp, work[EXTENTS], work[RANKS], steps, ranks, b)


@entry
def fit_mask(sp: Compiled, work: Compiled, steps: Compiled, ranks: Compiled, out: Compiled) -> Compiled:
    """Write to ``out`` ``(b)`` whether all tiles of each mapping fit their memories, and its loops the arrays."""
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, work[EXTENTS], work[RANKS])
        lanes(sp, work[EXTENTS], work[ROWS, LANES], sp[META, DIMS] - 1)
        out[b] = arrays_fit(sp, work[ROWS, LANES]) and capacities_fit(sp, work[EXTENTS])
