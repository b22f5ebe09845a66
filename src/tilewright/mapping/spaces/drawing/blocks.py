"""Compiled drawing of mappings that fit, a block at a time: the draws of `sampling`, without its branches.

Which slots and dimensions come first, and how steps are built, is drawn once for each block; what they take, for each
of its mappings. So all loops over the block vectorise. Spaces are without rules, steps free or perfect.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.spaces.kernels import (
    FOUR,
    GOLDEN,
    MIX1,
    MIX2,
    NONE,
    ONE,
    S27,
    S30,
    S31,
    ZERO,
    Compiled,
    axis_words,
    below,
    chance,
    compiled,
    dims_of,
    entry,
    is_spatial,
    may_loop,
    perfect,
    slots_of,
)
from tilewright.mapping.spaces.repair.tiles import fit
from tilewright.mapping.spaces.rules import arrays as table

MANY = 128
"""Mappings drawn together: independent of one another, so that their look-ups overlap."""
S12 = np.uint64(12)
# Rows of the scratch array ``(n, MANY)`` float64: random numbers, the most that a count may be, the count, words of a
# tile, bits in a store; then what is left of each dimension, then the lanes of each slot.
NOISE, TOP, COUNT, TILE, BITS, LEFT = range(6)
# log2(1 + t) and 2^t for t from 0 to 1, by powers of t from 1 and from 0, to three digits: enough to draw by.
LOG = tuple(np.float32(c) for c in (1.43872575, -0.67778598, 0.32118525, -0.08326485))
POWER = tuple(np.float32(c) for c in (0.99992522, 0.69583354, 0.22606716, 0.07802360))
ONE32 = np.float32(1)
MANTISSA, UNIT, BIAS, SHIFT = (np.int32(n) for n in (0x7FFFFF, 0x3F800000, 127, 23))
SPREAD = np.float64(1 << 30)
PASSES = 24
"""Steps in which the tiles of a block are made to fit together; what does not fit then is mended by itself."""


def scratch(shape: tuple[int, int]) -> Compiled:
    """Return room for `draw_fitting` to work in, for spaces of ``(s, d)`` slots and dimensions."""
    slots, dims = shape
    near = np.empty((2, MANY), dtype=np.float32)
    return (np.empty((slots, dims, MANY)), np.empty((slots + 1, dims, MANY)), np.empty((LEFT + dims + slots, MANY)),
            near, near.view(np.int32), np.empty((dims + 1, MANY), dtype=np.int32))


@compiled
def fill_noise(rng: Compiled, noise: Compiled) -> Compiled:
    """Fill ``noise`` with random floats in ``[0, 1)``.

    They stay so far below 1 that products with whole numbers do not round up to these. All states are known from the
    first, so that the loop vectorises.
    """
    state = rng[0]
    for b in range(MANY):
        z = state + np.uint64(b + 1) * GOLDEN
        z = (z ^ (z >> S30)) * MIX1
        z = (z ^ (z >> S27)) * MIX2
        noise[b] = np.float64((z ^ (z >> S31)) >> S12) * 2.220446049250313e-16
    rng[0] = state + np.uint64(MANY) * GOLDEN


@compiled
def log_uniform(real: Compiled, near: Compiled, bits: Compiled, whole: Compiled) -> Compiled:
    """Write whole numbers from 1 to row TOP to row COUNT, uniform in their logarithm.

    ``near`` ``(2, MANY)`` float32 and ``bits`` are one memory: exponents are taken from its bits and put there.
    """
    noise, top, count = real[NOISE], real[TOP], real[COUNT]
    first, second, word, power = near[0], near[1], bits[0], bits[1]
    for b in range(MANY):
        first[b] = np.float32(top[b]) + ONE32
    for b in range(MANY):
        whole[b] = (word[b] >> SHIFT) - BIAS
        word[b] = (word[b] & MANTISSA) | UNIT
    for b in range(MANY):
        t = first[b] - ONE32
        log = t * (LOG[0] + t * (LOG[1] + t * (LOG[2] + t * LOG[3])))
        first[b] = (np.float32(whole[b]) + log) * np.float32(noise[b])
    for b in range(MANY):
        whole[b] = np.int32(first[b])
        power[b] = (whole[b] + BIAS) << SHIFT
    for b in range(MANY):
        t = first[b] - np.float32(whole[b])
        first[b] = second[b] * (POWER[0] + t * (POWER[1] + t * (POWER[2] + t * POWER[3])))
    for b in range(MANY):
        count[b] = min(max(np.floor(np.float64(first[b])), 1.0), top[b])


@compiled
def find_room(sp: Compiled, used: Compiled, s: Compiled, top: Compiled) -> Compiled:
    """Write to ``top`` the largest counts that may still be multiplied into side ``s``; see `kernels.room`."""
    mode, partner = sp[table.SLOT + s, table.MODE], sp[table.SLOT + s, table.PARTNER]
    limit = np.float64(sp[table.SLOT + s, table.LIMIT])
    own, other = used[s], used[partner if partner >= 0 else s]
    if mode == table.FIXED or partner < 0:
        block = np.float64(sp[table.SLOT + s, table.BLOCK]) if mode == table.BLOCKS else 1.0
        for b in range(MANY):
            top[b] = np.floor(limit * block / own[b])
    elif mode == table.BLOCKS:
        block, beside = np.float64(sp[table.SLOT + s, table.BLOCK]), np.float64(sp[table.SLOT + s, table.PARTNER_BLOCK])
        for b in range(MANY):
            top[b] = np.floor(np.floor(limit / np.ceil(other[b] / beside)) * block / own[b])
    else:
        for b in range(MANY):
            top[b] = np.floor(limit / (own[b] * other[b]))


@compiled
def to_divisors(sp: Compiled, d: Compiled, real: Compiled, nearest: Compiled) -> Compiled:
    """Replace row COUNT by divisors of what is left of dimension ``d``, at most row TOP: the ``nearest``, or any."""
    noise, top, count, left, many = real[NOISE], real[TOP], real[COUNT], real[LEFT + d], sp[table.DIVISORS + d, 0]
    for b in range(MANY):
        rest, most = np.int64(left[b]), np.int64(top[b])
        chosen, seen = ONE, ZERO
        if nearest:
            for i in range(1, many + 1):
                f = sp[table.DIVISORS + d, i]
                if f > most:
                    break
                chosen = f if rest % f == 0 else chosen
        elif most > 1:
            for i in range(1, many + 1):
                seen += sp[table.DIVISORS + d, i] <= most and rest % sp[table.DIVISORS + d, i] == 0
            seen = np.int64(noise[b] * seen)
            for i in range(1, many + 1):
                if rest % sp[table.DIVISORS + d, i] == 0:
                    if seen == 0:
                        chosen = sp[table.DIVISORS + d, i]
                        break
                    seen -= 1
        count[b] = chosen


@compiled
def take(real: Compiled, d: Compiled, lanes: Compiled, spatial: Compiled, own: Compiled) -> Compiled:
    """Let a slot take row COUNT of what is left of dimension ``d``; ``own`` are its counts."""
    count, left = real[COUNT], real[LEFT + d]
    for b in range(MANY):
        own[b] = count[b]
        left[b] = np.ceil(left[b] / count[b])
    if spatial:
        for b in range(MANY):
            lanes[b] *= count[b]


@compiled
def fill_side(sp: Compiled, rng: Compiled, counts: Compiled, real: Compiled, near: Compiled, bits: Compiled,
              whole: Compiled, s: Compiled) -> Compiled:
    """Spread dimensions along side ``s``, from a random one on, until it is nearly full; see `sampling.fill_side`."""
    dims, used = dims_of(sp), real[LEFT + dims_of(sp):]
    top, count, tile, noise = real[TOP], real[COUNT], real[TILE], real[NOISE]
    start = below(rng, dims)
    for i in range(dims):
        d = start + i if start + i < dims else start + i - dims
        if not may_loop(sp, s, d):
            continue
        left = real[LEFT + d]
        find_room(sp, used, s, top)
        for b in range(MANY):
            top[b] = min(top[b], left[b])
        fill_noise(rng, noise)
        if perfect(sp):
            to_divisors(sp, d, real, chance(rng) < 0.75)
        else:
            log_uniform(real, near, bits, whole)
            fill_noise(rng, tile)
            for b in range(MANY):
                count[b] = count[b] if tile[b] < 0.25 else max(top[b], 1.0)
        take(real, d, used[s], True, counts[s, d])


@compiled
def split_rest(sp: Compiled, rng: Compiled, counts: Compiled, real: Compiled, near: Compiled, bits: Compiled,
               whole: Compiled, s: Compiled, d: Compiled) -> Compiled:
    """Let slot ``s`` take random parts of what is left of dimension ``d``."""
    used, top, left = real[LEFT + dims_of(sp):], real[TOP], real[LEFT + d]
    spatial = is_spatial(sp, s)
    if spatial:
        find_room(sp, used, s, top)
        for b in range(MANY):
            top[b] = min(top[b], left[b])
    else:
        for b in range(MANY):
            top[b] = left[b]
    fill_noise(rng, real[NOISE])
    if perfect(sp):
        to_divisors(sp, d, real, False)
    else:
        log_uniform(real, near, bits, whole)
    take(real, d, used[s], spatial, counts[s, d])


@compiled
def split(sp: Compiled, rng: Compiled, filling: Compiled, order: Compiled, counts: Compiled, real: Compiled,
          near: Compiled, bits: Compiled, whole: Compiled) -> Compiled:
    """Draw the counts of a block; the anchors take what is left. See `sampling.sample_counts`."""
    slots, dims = slots_of(sp), dims_of(sp)
    used = real[LEFT + dims:]
    for s in range(slots):
        order[s] = s
        used[s, :] = 1.0
        counts[s, :, :] = 1.0
    for d in range(dims):
        real[LEFT + d, :] = np.float64(sp[table.SIZES, d])
    offset = below(rng, slots)
    for i in range(slots if filling else 0):
        s = offset + i if offset + i < slots else offset + i - slots
        if is_spatial(sp, s):
            fill_side(sp, rng, counts, real, near, bits, whole, s)
    start = below(rng, dims)
    for i in range(dims):
        d = start + i if start + i < dims else start + i - dims
        for k in range(slots):
            other = k + below(rng, slots - k)
            s = order[other]
            order[other] = order[k]
            order[k] = s
            if may_loop(sp, s, d) and s != sp[table.ANCHOR, d] and (not filling or not is_spatial(sp, s)):
                split_rest(sp, rng, counts, real, near, bits, whole, s, d)
        anchor, left = counts[sp[table.ANCHOR, d], d], real[LEFT + d]
        for b in range(MANY):
            anchor[b] = left[b]


@compiled
def build_chains(sp: Compiled, rng: Compiled, counts: Compiled, e: Compiled, real: Compiled) -> Compiled:
    """Turn counts into extents: balanced from outside, or multiples from inside, or loosely. See `sampling`."""
    slots = slots_of(sp)
    for d in range(dims_of(sp)):
        style = 0 if perfect(sp) else below(rng, FOUR)
        size = np.float64(sp[table.SIZES, d])
        e[0, d, :] = size
        if style < 2:
            for s in range(slots):
                outer, inner, count = e[s, d], e[s + 1, d], counts[s, d]
                for b in range(MANY):
                    inner[b] = np.ceil(outer[b] / count[b])
            continue
        e[slots, d, :] = 1.0
        for s in range(slots - 1, 0, -1):
            outer, inner, count = e[s, d], e[s + 1, d], counts[s, d]
            for b in range(MANY):
                outer[b] = min(inner[b] * count[b], size)
        if style == 3:
            loosen(sp, rng, e, real[NOISE], d, below(rng, slots - 1))


@compiled
def loosen(sp: Compiled, rng: Compiled, e: Compiled, noise: Compiled, d: Compiled, s: Compiled) -> Compiled:
    """Set the steps of slot ``s`` anywhere between their neighbours, as far as that adds no lanes."""
    if not may_loop(sp, s, d) or not may_loop(sp, s + 1, d):
        return
    fill_noise(rng, noise)
    step = e[s + 1, d]
    low = step if is_spatial(sp, s) else e[s + 2, d]
    high = step if is_spatial(sp, s + 1) else e[s, d]
    for b in range(MANY):
        step[b] = low[b] + np.floor(noise[b] * (high[b] - low[b] + 1.0))


@compiled
def weigh(sp: Compiled, e: Compiled, g: Compiled, tile: Compiled, total: Compiled) -> Compiled:
    """Write to ``total`` the bits that capacity group ``g`` must hold; see `kernels.tile_bits`."""
    inside = e[sp[table.GROUPS + g, 0]]
    total[:] = 0.0
    for t in range(sp[table.META, table.TENSORS]):
        if sp[table.GROUPS + g, 2 + t] == 0:
            continue
        tile[:] = np.float64(sp[table.GROUPS + g, 2 + t])
        for a in range(sp[table.SPANS, t], sp[table.SPANS, t + 1]):
            first, stride, dilation, box = inside[sp[a, 1]], np.float64(sp[a, 2]), np.float64(sp[a, 4]), sp[a, 5]
            if sp[a, 3] < 0:
                for b in range(MANY):
                    tile[b] *= axis_words(first[b], 1.0, stride, dilation, box)
                continue
            second = inside[sp[a, 3]]
            for b in range(MANY):
                tile[b] *= axis_words(first[b], second[b], stride, dilation, box)
        for b in range(MANY):
            total[b] += tile[b]


@compiled
def over(total: Compiled, limit: Compiled) -> Compiled:
    """Return how many of a block hold more than ``limit``."""
    count = 0
    for b in range(MANY):
        count += total[b] > limit
    return count


@compiled
def held(sp: Compiled, g: Compiled, d: Compiled) -> Compiled:
    """Whether the tile of group ``g`` is smaller where dimension ``d`` is."""
    if sp[table.ANCHOR, d] >= sp[table.GROUPS + g, 0]:
        return False
    for t in range(sp[table.META, table.TENSORS]):
        if sp[table.GROUPS + g, 2 + t] > 0 and sp[table.RELEVANT + t, d] != 0:
            return True
    return False


@compiled
def shrink(sp: Compiled, rng: Compiled, e: Compiled, g: Compiled, source: Compiled, real: Compiled, near: Compiled,
           bits: Compiled, whole: Compiled, d: Compiled) -> Compiled:
    """Move a factor of dimension ``d`` from slot ``source`` out of group ``g``, of mappings that hold too much.

    The factor is 2 or more, uniform in its logarithm up to the times that the tiles are too large.
    """
    limit, target = np.float64(sp[table.GROUPS + g, 1]), sp[table.GROUPS + g, 0] - 1
    while is_spatial(sp, target) or not may_loop(sp, target, d):
        target -= 1
    top, count, total, outer, floor = real[TOP], real[COUNT], real[BITS], e[source, d], e[source + 1, d]
    fill_noise(rng, real[NOISE])
    for b in range(MANY):
        top[b] = max(1.0, np.floor(total[b] / limit))
    log_uniform(real, near, bits, whole)
    for b in range(MANY):
        most = np.ceil(outer[b] / floor[b])
        count[b] = min(most, max(count[b], 2.0)) if total[b] > limit else 1.0
    if perfect(sp):
        for b in range(MANY):
            most = np.int64(outer[b]) // np.int64(floor[b])
            factor = np.int64(count[b])
            while most % factor != 0:
                factor += 1
            count[b] = factor
    for s in range(target, source):
        step = e[s + 1, d]
        for b in range(MANY):
            step[b] = max(np.ceil(step[b] / count[b]), floor[b])


@compiled
def shrink_block(sp: Compiled, rng: Compiled, e: Compiled, g: Compiled, real: Compiled, near: Compiled, bits: Compiled,
                 whole: Compiled) -> Compiled:
    """Shrink tiles of group ``g`` until nearly all fit; return how many do not."""
    slots, dims = slots_of(sp), dims_of(sp)
    first, limit, left = sp[table.GROUPS + g, 0], np.float64(sp[table.GROUPS + g, 1]), MANY
    d = below(rng, dims)
    for turn in range(PASSES):
        weigh(sp, e, g, real[TILE], real[BITS])
        left = over(real[BITS], limit)
        if left == 0:
            break
        d = d + 1 if d + 1 < dims else 0
        source = source_of(sp, d, first + below(rng, slots - first), first, 2 * turn > PASSES)
        if source >= 0 and held(sp, g, d):
            shrink(sp, rng, e, g, source, real, near, bits, whole, d)
    return left


@compiled
def source_of(sp: Compiled, d: Compiled, start: Compiled, first: Compiled, spatial: Compiled) -> Compiled:
    """Return the first slot, from ``start`` round to ``first``, where dimension ``d`` may loop in time, or at all."""
    slots = slots_of(sp)
    for i in range(slots - first):
        s = start + i if start + i < slots else start + i - slots + first
        if may_loop(sp, s, d) and (spatial or not is_spatial(sp, s)):
            return s
    return NONE


@compiled
def mend(sp: Compiled, rng: Compiled, e: Compiled, work: Compiled, b: Compiled) -> Compiled:
    """Make the tiles of one mapping of a block fit, if they do not; see `kernels.fit`."""
    slots, dims = slots_of(sp), dims_of(sp)
    for s in range(slots + 1):
        for d in range(dims):
            work[s, d] = np.int64(e[s, d, b])
    fit(sp, work, rng)
    for s in range(slots):
        for d in range(dims):
            e[s + 1, d, b] = np.float64(work[s + 1, d])


@compiled
def write_steps(sp: Compiled, e: Compiled, steps: Compiled, at: Compiled, count: Compiled) -> Compiled:
    """Write the first ``count`` mappings of a block from place ``at`` on."""
    for s in range(slots_of(sp)):
        for d in range(sp[table.META, table.ALL_DIMS]):
            steps[s, d, at:at + count] = 1
        for d in range(dims_of(sp)):
            extents, target = e[s + 1, d], steps[s, sp[table.ACTIVE, d], at:at + count]
            for b in range(count):
                target[b] = np.int32(extents[b])


@compiled
def pick_orders(sp: Compiled, s: Compiled, noise: Compiled, ranks: Compiled, at: Compiled, count: Compiled) -> Compiled:
    """Write one of the orders that slot ``s`` allows to each of ``count`` mappings from place ``at`` on."""
    many, first = sp[table.SLOT + s, table.ORDER_COUNT], sp[table.SLOT + s, table.ORDER_START]
    for d in range(dims_of(sp)):
        target = ranks[s, sp[table.ACTIVE, d], at:at + count]
        for b in range(count):
            target[b] = np.int8(sp[first + np.int64(noise[b] * many), d])


@compiled
def shuffle_orders(sp: Compiled, s: Compiled, rng: Compiled, noise: Compiled, keys: Compiled, ranks: Compiled,
                   at: Compiled, count: Compiled) -> Compiled:
    """Write a random order at slot ``s`` to each of ``count`` mappings from place ``at`` on: that of random keys."""
    dims = dims_of(sp)
    for d in range(dims):
        fill_noise(rng, noise)
        key = keys[d]
        for b in range(MANY):
            key[b] = np.int32(noise[b] * SPREAD)
    place = keys[dims]
    for d in range(dims):
        key, target = keys[d], ranks[s, sp[table.ACTIVE, d], at:at + count]
        place[:] = 0
        for other in range(dims):
            beside = keys[other]
            for b in range(MANY):
                place[b] += beside[b] < key[b] or (beside[b] == key[b] and other < d)
        for b in range(count):
            target[b] = np.int8(place[b])


@compiled
def write_ranks(sp: Compiled, rng: Compiled, noise: Compiled, keys: Compiled, ranks: Compiled, at: Compiled,
                count: Compiled) -> Compiled:
    """Write random loop orders of ``count`` mappings from place ``at`` on, of those allowed."""
    for s in range(slots_of(sp)):
        for d in range(sp[table.META, table.ALL_DIMS]):
            ranks[s, d, at:at + count] = np.int8(sp[table.PLACES, d])
        if is_spatial(sp, s):
            continue
        if sp[table.SLOT + s, table.ORDER_COUNT] > 0:
            fill_noise(rng, noise)
            pick_orders(sp, s, noise, ranks, at, count)
        else:
            shuffle_orders(sp, s, rng, noise, keys, ranks, at, count)


@entry
def draw_fitting(sp: Compiled, rng: Compiled, filling: Compiled, steps: Compiled, ranks: Compiled, work: Compiled,
                 counts: Compiled, e: Compiled, real: Compiled, near: Compiled, bits: Compiled,
                 keys: Compiled) -> Compiled:
    """Fill ``steps`` and ``ranks`` ``(s, d, b)`` with random mappings whose tiles fit, as far as they can be made to.

    ``filling`` is the share of blocks that spread as many lanes as fit; the others leave lanes to chance. The rest is
    scratch: ``counts`` ``(s, d, MANY)`` and ``e`` ``(s + 1, d, MANY)`` float64, rows as named above.
    """
    for at in range(0, steps.shape[2], MANY):
        count = min(MANY, steps.shape[2] - at)
        split(sp, rng, chance(rng) < filling, work[0, 0], counts, real, near, bits, keys[0])
        build_chains(sp, rng, counts, e, real)
        for g in range(sp[table.META, table.GROUP_COUNT]):
            if shrink_block(sp, rng, e, g, real, near, bits, keys[0]) > 0:
                total, limit = real[BITS], np.float64(sp[table.GROUPS + g, 1])
                for b in range(count):
                    if total[b] > limit:
                        mend(sp, rng, e, work[1], b)
        write_steps(sp, e, steps, at, count)
        write_ranks(sp, rng, real[NOISE], keys, ranks, at, count)
