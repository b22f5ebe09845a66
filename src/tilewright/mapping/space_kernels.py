"""Compiled operators on single mappings of a space, for loops over whole populations.

One mapping is ``x`` ``(s, d)`` int32, the steps, and ``r`` ``(s, d)`` int8, the ranks of `MappingBatch`. Randomness is
a splitmix64 counter (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) whose state is
drawn from a `numpy.random.Generator`.
"""

from typing import Any

import numpy as np
from numba import njit

from tilewright.mapping.space_arrays import (
    BLOCK,
    BLOCKS,
    FIXED,
    KIND,
    LIMIT,
    MODE,
    ORDER_COUNT,
    ORDER_START,
    PARTNER,
    PARTNER_BLOCK,
    SPATIAL,
    TEMPORAL,
)

# Arrays and `SpaceArrays` inside compiled code; Numba infers the types.
Compiled = Any

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S30, S27, S31, S32, S11 = (np.uint64(n) for n in (30, 27, 31, 32, 11))
TRIES = 64


# Compiles at the first call, caches the result on disk, and releases the GIL while the function runs.
compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def draw(rng: Compiled) -> Compiled:
    """Return the next 64 random bits of the state ``(1)`` uint64."""
    rng[0] += GOLDEN
    z = rng[0]
    z = (z ^ (z >> S30)) * MIX1
    z = (z ^ (z >> S27)) * MIX2
    return z ^ (z >> S31)


@compiled
def below(rng: Compiled, bound: Compiled) -> Compiled:
    """Return a random integer in ``[0, bound)``."""
    return np.int64(((draw(rng) >> S32) * np.uint64(bound)) >> S32)


@compiled
def chance(rng: Compiled) -> Compiled:
    """Return a random float in ``[0, 1)``."""
    return np.float64(draw(rng) >> S11) * 1.1102230246251565e-16


@compiled
def log_between(rng: Compiled, low: Compiled, high: Compiled) -> Compiled:
    """Return a random integer in ``[low, high]``, uniform in its logarithm."""
    if high <= low:
        return low
    value = np.int64(low * np.exp(chance(rng) * np.log((high + 1.0) / low)))
    return min(max(value, low), high)


@compiled
def ceil_div(a: Compiled, b: Compiled) -> Compiled:
    """Return ``a / b`` rounded up."""
    return (a + b - 1) // b


@compiled
def outer(sp: Compiled, x: Compiled, s: Compiled, d: Compiled) -> Compiled:
    """Return the extent of dimension ``d`` outside slot ``s``."""
    if s == 0:
        return np.int64(sp.sizes[d])
    return np.int64(x[s - 1, d])


@compiled
def room(sp: Compiled, used: Compiled, s: Compiled) -> Compiled:
    """Return the largest count that may still be multiplied into side ``s``; ``used`` ``(s)`` are the lanes so far."""
    mode = sp.slots[s, MODE]
    limit = np.int64(sp.slots[s, LIMIT])
    if mode == FIXED:
        return limit // used[s]
    partner = sp.slots[s, PARTNER]
    other = used[partner] if partner >= 0 else np.int64(1)
    if mode == BLOCKS:
        return (limit // ceil_div(other, np.int64(sp.slots[s, PARTNER_BLOCK]))) * sp.slots[s, BLOCK] // used[s]
    return limit // (used[s] * other)


@compiled
def lanes(sp: Compiled, x: Compiled, used: Compiled) -> Compiled:
    """Write the product of the counts at every spatial slot to ``used`` ``(s)``; 1 at temporal ones."""
    for s in range(x.shape[0]):
        used[s] = 1
        if sp.slots[s, KIND] == SPATIAL:
            for d in range(x.shape[1]):
                used[s] *= ceil_div(outer(sp, x, s, d), np.int64(x[s, d]))


@compiled
def arrays_fit(sp: Compiled, used: Compiled) -> Compiled:
    """Whether the lanes ``used`` ``(s)`` fit every array."""
    for s in range(used.shape[0]):
        if sp.slots[s, KIND] == SPATIAL and room(sp, used, s) < 1:
            return False
    return True


@compiled
def near_divisor(row: Compiled, number: Compiled, target: Compiled, top: Compiled) -> Compiled:
    """Return the divisor of ``number`` in ``row`` that is nearest ``target`` in ratio and at most ``top``."""
    best = np.int64(1)
    for i in range(1, row[0] + 1):
        f = np.int64(row[i])
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
    top = max(min(top, whole), np.int64(1))
    want = min(max(want, np.int64(1)), top)
    if sp.perfect[0] == 0 or whole % want == 0:
        return want
    return near_divisor(sp.divisors[d], whole, want, top)


@compiled
def repair_inside(sp: Compiled, x: Compiled, d: Compiled, used: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` inside its anchor legal, innermost first; return the anchor's own step."""
    size = np.int64(sp.sizes[d])
    perfect = sp.perfect[0] != 0
    current = np.int64(1)
    last = x.shape[0] - 1
    x[last, d] = 1
    for s in range(last, sp.anchor[d], -1):
        want = np.int64(x[s - 1, d])
        if sp.free[s, d] == 0 or want <= current:
            want = current
        else:
            top = size
            if sp.slots[s, KIND] == SPATIAL:
                top = min(top, current * room(sp, used, s))
            want = min(want, top)
            if perfect and (want % current != 0 or size % want != 0):
                want = current * near_divisor(sp.divisors[d], size // current, max(want // current, 1), top // current)
            if sp.slots[s, KIND] == SPATIAL:
                used[s] *= ceil_div(want, current)
        x[s - 1, d] = want
        current = want
    return current


@compiled
def repair(sp: Compiled, x: Compiled, used: Compiled, first: Compiled) -> Compiled:
    """Make steps monotone, inside the arrays, and divisible where asked; dimension ``first`` is served first.

    Steps that are legal stay as they are. ``used`` ``(s)`` receives the lanes at every spatial slot.
    """
    dims = x.shape[1]
    for s in range(x.shape[0]):
        used[s] = 1
    for i in range(dims):
        d = (first + i) % dims
        if sp.sizes[d] == 1:
            for s in range(x.shape[0]):
                x[s, d] = 1
            continue
        inside = repair_inside(sp, x, d, used)
        extent = np.int64(sp.sizes[d])
        for s in range(sp.anchor[d]):
            want = extent
            if sp.free[s, d] != 0 and x[s, d] < extent:
                count = ceil_div(extent, max(np.int64(x[s, d]), inside))
                whole = extent // inside if sp.perfect[0] != 0 else extent
                count = nearest_count(sp, d, whole, count, room(sp, used, s))
                want = max(ceil_div(extent, count), inside)
                used[s] *= ceil_div(extent, want)
            x[s, d] = want
            extent = want


@compiled
def tile_bits(sp: Compiled, x: Compiled, g: Compiled) -> Compiled:
    """Return the bits that capacity group ``g`` must hold (DESIGN rules 1 and 10)."""
    s = np.int64(sp.groups[g, 0])
    total, words, current = 0.0, 1.0, -1
    for a in range(sp.axes.shape[0]):
        t = sp.axes[a, 0]
        weight = sp.groups[g, 2 + t]
        if weight == 0.0:
            continue
        if t != current:
            if current >= 0:
                total += words * sp.groups[g, 2 + current]
            words, current = 1.0, t
        p = outer(sp, x, s, sp.axes[a, 1])
        stride = np.int64(sp.axes[a, 2])
        if sp.axes[a, 3] >= 0:
            q = outer(sp, x, s, sp.axes[a, 3])
            dilation = np.int64(sp.axes[a, 4])
            words *= p * q - max(0, p - dilation) * max(0, q - stride)
        else:
            words *= p
    if current >= 0:
        total += words * sp.groups[g, 2 + current]
    return total


@compiled
def capacities_fit(sp: Compiled, x: Compiled) -> Compiled:
    """Whether every tile fits its memory."""
    for g in range(sp.groups.shape[0]):
        if tile_bits(sp, x, g) > sp.groups[g, 1]:
            return False
    return True


@compiled
def small_factor(count: Compiled) -> Compiled:
    """Return the smallest factor above 1 of ``count``."""
    for f in range(2, 8):
        if count % f == 0:
            return np.int64(f)
    f = 11
    while f * f <= count:
        if count % f == 0:
            return np.int64(f)
        f += 2
    return np.int64(count)


@compiled
def move_out(sp: Compiled, x: Compiled, d: Compiled, span: Compiled, factor: Compiled) -> Compiled:
    """Move ``factor`` of dimension ``d`` from slot ``span[1]`` to the slot ``span[0]`` outside it.

    All counts between stay as they are or fall; steps that do not divide are rounded up.
    """
    u, j = span
    floor = x[j, d]
    for i in range(u, j):
        x[i, d] = max(ceil_div(x[i, d], np.int32(factor)), floor)


@compiled
def holder(sp: Compiled, x: Compiled, rng: Compiled, span: Compiled, d: Compiled) -> Compiled:
    """Return a random slot in ``[span[0], span[1])`` where dimension ``d`` loops, temporal if possible; or -1."""
    first, end = span
    for wanted in (TEMPORAL, SPATIAL):
        seen, found = 0, -1
        for s in range(first, end):
            if sp.slots[s, KIND] == wanted and x[s, d] < outer(sp, x, s, d):
                seen += 1
                if seen == 1 or below(rng, seen) == 0:
                    found = s
        if found >= 0:
            return found
    return -1


@compiled
def shrink(sp: Compiled, x: Compiled, rng: Compiled, g: Compiled) -> Compiled:
    """Make the tile of group ``g`` smaller in one random dimension; return whether that was possible."""
    slots, dims = x.shape
    s = np.int64(sp.groups[g, 0])
    seen, chosen = 0, -1
    for d in range(dims):
        if sp.anchor[d] >= s or outer(sp, x, s, d) == 1:
            continue
        for t in range(sp.relevant.shape[0]):
            if sp.groups[g, 2 + t] > 0.0 and sp.relevant[t, d] != 0:
                seen += 1
                if seen == 1 or below(rng, seen) == 0:
                    chosen = d
                break
    if chosen < 0:
        return False
    inner = holder(sp, x, rng, (s, slots), chosen)
    target = s - 1
    while sp.slots[target, KIND] != TEMPORAL or sp.free[target, chosen] == 0:
        target -= 1
    count = ceil_div(outer(sp, x, inner, chosen), np.int64(x[inner, chosen]))
    factor = small_factor(count) if sp.perfect[0] != 0 else min(count, 2 + below(rng, 2))
    move_out(sp, x, chosen, (target, inner), factor)
    return True


@compiled
def fit(sp: Compiled, x: Compiled, rng: Compiled) -> Compiled:
    """Shrink tiles until all fit, moving factors outward; return whether they do."""
    for g in range(sp.groups.shape[0]):
        tries = 0
        while tile_bits(sp, x, g) > sp.groups[g, 1]:
            tries += 1
            if tries > TRIES or not shrink(sp, x, rng, g):
                return False
    return True


@compiled
def shuffle_order(sp: Compiled, r: Compiled, rng: Compiled, s: Compiled) -> Compiled:
    """Give slot ``s`` a random loop order among those allowed."""
    dims = r.shape[1]
    if sp.slots[s, ORDER_COUNT] > 0:
        row = sp.slots[s, ORDER_START] + below(rng, sp.slots[s, ORDER_COUNT])
        for d in range(dims):
            r[s, d] = sp.orders[row, d]
        return
    for d in range(dims):
        other = below(rng, d + 1)
        r[s, d] = r[s, other]
        r[s, other] = d


@compiled
def shuffle_orders(sp: Compiled, r: Compiled, rng: Compiled) -> Compiled:
    """Give every temporal slot a random loop order among those allowed."""
    for s in range(r.shape[0]):
        if sp.slots[s, KIND] == TEMPORAL:
            shuffle_order(sp, r, rng, s)
        else:
            for d in range(r.shape[1]):
                r[s, d] = d


@compiled
def random_count(sp: Compiled, rng: Compiled, d: Compiled, left: Compiled, top: Compiled) -> Compiled:
    """Return a random count of at most ``top`` for dimension ``d``, of which ``left`` remains to be split."""
    top = min(top, left)
    if top <= 1:
        return np.int64(1)
    if sp.perfect[0] == 0:
        return log_between(rng, np.int64(1), top)
    seen, found = 0, np.int64(1)
    for i in range(1, sp.divisors[d, 0] + 1):
        f = np.int64(sp.divisors[d, i])
        if f > top:
            break
        if left % f == 0:
            seen += 1
            if below(rng, seen) == 0:
                found = f
    return found


@compiled
def fill_side(sp: Compiled, rng: Compiled, counts: Compiled, left: Compiled, s: Compiled) -> Compiled:
    """Spread random dimensions along side ``s`` until it is nearly full; ``used`` is row 0 of ``counts``."""
    dims = left.shape[0]
    used = counts[0]
    start = below(rng, dims)
    for i in range(dims):
        d = (start + i) % dims
        space = room(sp, used, s)
        if space < 2:
            break
        if sp.free[s, d] == 0 or left[d] == 1 or counts[1 + s, d] > 1:
            continue
        count = nearest_count(sp, d, left[d], min(space, left[d]), space)
        if chance(rng) < 0.25:
            count = random_count(sp, rng, d, left[d], space)
        counts[1 + s, d] = count
        used[s] *= count
        left[d] = ceil_div(left[d], count)


@compiled
def split_rest(sp: Compiled, rng: Compiled, counts: Compiled, left: Compiled, place: Compiled) -> Compiled:
    """Let slot ``place[0]`` take a random part of what is ``left`` of dimension ``place[1]``."""
    s, d = place
    if sp.free[s, d] == 0 or s == sp.anchor[d] or counts[1 + s, d] > 1 or left[d] == 1:
        return
    top = left[d]
    spatial = sp.slots[s, KIND] == SPATIAL
    if spatial:
        top = room(sp, counts[0], s)
    count = random_count(sp, rng, d, left[d], top)
    counts[1 + s, d] = count
    if spatial:
        counts[0, s] *= count
    left[d] = ceil_div(left[d], count)


@compiled
def start_counts(sp: Compiled, counts: Compiled, left: Compiled) -> Compiled:
    """Set all counts and lanes to 1, the order of the slots to theirs, and leave all of every dimension."""
    slots = counts.shape[0] - 2
    for d in range(left.shape[0]):
        left[d] = sp.sizes[d]
    for s in range(slots):
        counts[0, s] = 1
        counts[1 + slots, s] = s
        for d in range(left.shape[0]):
            counts[1 + s, d] = 1


@compiled
def sample_counts(sp: Compiled, rng: Compiled, counts: Compiled, left: Compiled, filling: Compiled) -> Compiled:
    """Draw the counts of one mapping; the anchors take ``left`` ``(d)``.

    ``counts`` has a row of lanes, a row of counts for each slot, and a row to shuffle the slots. Dimensions, and the
    slots of each, are visited in random order; each slot takes a random part of what is left.
    """
    slots, dims = counts.shape[0] - 2, left.shape[0]
    start_counts(sp, counts, left)
    offset = below(rng, slots)
    for i in range(slots):
        s = (offset + i) % slots
        if filling and sp.slots[s, KIND] == SPATIAL:
            fill_side(sp, rng, counts, left, s)
    start = below(rng, dims)
    order = counts[1 + slots]
    for i in range(dims):
        d = (start + i) % dims
        if left[d] == 1:
            continue
        for k in range(slots):
            other = k + below(rng, slots - k)
            s = order[other]
            order[other] = order[k]
            order[k] = s
            if not filling or sp.slots[s, KIND] == TEMPORAL:
                split_rest(sp, rng, counts, left, (s, d))


@compiled
def build_steps(sp: Compiled, x: Compiled, rng: Compiled, counts: Compiled, left: Compiled) -> Compiled:
    """Turn counts into steps ``x``: balanced from outside, or multiples from inside, or loosely between the two."""
    slots, dims = x.shape
    for d in range(dims):
        counts[1 + sp.anchor[d], d] = left[d]
        style = below(rng, 4) if sp.perfect[0] == 0 else 0
        if style < 2:
            extent = np.int64(sp.sizes[d])
            for s in range(slots):
                extent = ceil_div(extent, counts[1 + s, d])
                x[s, d] = extent
        else:
            extent = np.int64(1)
            for s in range(slots - 1, -1, -1):
                x[s, d] = extent
                extent = min(extent * counts[1 + s, d], np.int64(sp.sizes[d]))
        if style == 3:
            s = below(rng, slots)
            x[s, d] = log_between(rng, np.int64(1), outer(sp, x, s, d))


@compiled
def store(x: Compiled, r: Compiled, steps: Compiled, ranks: Compiled, b: Compiled) -> Compiled:
    """Copy one mapping into place ``b`` of ``steps`` and ``ranks`` ``(s, d, b)``."""
    for s in range(x.shape[0]):
        for d in range(x.shape[1]):
            steps[s, d, b] = x[s, d]
            ranks[s, d, b] = r[s, d]


@compiled
def load(steps: Compiled, ranks: Compiled, b: Compiled, x: Compiled, r: Compiled) -> Compiled:
    """Copy the mapping at place ``b`` of ``steps`` and ``ranks`` ``(s, d, b)`` out."""
    for s in range(x.shape[0]):
        for d in range(x.shape[1]):
            x[s, d] = steps[s, d, b]
            r[s, d] = ranks[s, d, b]


@compiled
def sample(sp: Compiled, rng: Compiled, filling: Compiled, steps: Compiled, ranks: Compiled) -> Compiled:
    """Fill ``steps`` and ``ranks`` ``(s, d, b)`` with random mappings that fit the arrays.

    ``filling`` is the share of mappings that spread as many lanes as fit; the others leave lanes to chance.
    """
    slots, dims, count = steps.shape
    x, r = np.empty((slots, dims), np.int32), np.empty((slots, dims), np.int8)
    counts, left = np.empty((2 + slots, max(dims, slots)), np.int64), np.empty(dims, np.int64)
    used = np.empty(slots, np.int64)
    for b in range(count):
        sample_counts(sp, rng, counts, left, chance(rng) < filling)
        build_steps(sp, x, rng, counts, left)
        repair(sp, x, used, below(rng, dims))
        shuffle_orders(sp, r, rng)
        store(x, r, steps, ranks, b)


@compiled
def repair_batch(sp: Compiled, steps: Compiled, ranks: Compiled) -> Compiled:
    """Repair ``steps`` ``(s, d, b)`` in place, and replace ``ranks`` that are no allowed order."""
    slots, dims, count = steps.shape
    x, r = np.empty((slots, dims), np.int32), np.empty((slots, dims), np.int8)
    used, before = np.empty(slots, np.int64), np.empty(dims, np.int64)
    for b in range(count):
        load(steps, ranks, b, x, r)
        repair(sp, x, used, 0)
        for s in range(slots):
            repair_order(sp, r, s, before)
        store(x, r, steps, ranks, b)


@compiled
def repair_order(sp: Compiled, r: Compiled, s: Compiled, before: Compiled) -> Compiled:
    """Make the ranks of slot ``s`` a permutation that it allows; a legal one stays."""
    dims = r.shape[1]
    start, count = sp.slots[s, ORDER_START], sp.slots[s, ORDER_COUNT]
    for row in range(start, start + count):
        same = True
        for d in range(dims):
            same = same and sp.orders[row, d] == r[s, d]
        if same:
            return
    for d in range(dims):
        before[d] = sp.orders[start, d] if count > 0 else r[s, d]
    for d in range(dims):
        place = 0
        for other in range(dims):
            place += before[other] < before[d] or (before[other] == before[d] and other < d)
        r[s, d] = place


@compiled
def fit_mask(sp: Compiled, steps: Compiled, ranks: Compiled, out: Compiled) -> Compiled:
    """Write to ``out`` ``(b)`` whether all tiles of each mapping fit their memories, and its loops the arrays."""
    slots, dims, count = steps.shape
    x, r = np.empty((slots, dims), np.int32), np.empty((slots, dims), np.int8)
    used = np.empty(slots, np.int64)
    for b in range(count):
        load(steps, ranks, b, x, r)
        lanes(sp, x, used)
        out[b] = arrays_fit(sp, used) and capacities_fit(sp, x)
