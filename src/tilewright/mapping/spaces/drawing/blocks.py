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
    entry,
    fit,
)
from tilewright.mapping.spaces.rules.arrays import (
    ACTIVE,
    ALL_DIMS,
    ANCHOR,
    BLOCK,
    BLOCKS,
    DIMS,
    DIVISORS,
    FIXED,
    FREE,
    GROUP_COUNT,
    GROUPS,
    KIND,
    LIMIT,
    META,
    MODE,
    ORDER_COUNT,
    ORDER_START,
    PARTNER,
    PARTNER_BLOCK,
    PERFECT,
    PLACES,
    RELEVANT,
    SIZES,
    SLOT,
    SLOTS,
    SPANS,
    SPATIAL,
    TEMPORAL,
    TENSORS,
)

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
    mode, limit, partner = sp[SLOT + s, MODE], np.float64(sp[SLOT + s, LIMIT]), sp[SLOT + s, PARTNER]
    own, other = used[s], used[partner if partner >= 0 else s]
    if mode == FIXED or partner < 0:
        block = np.float64(sp[SLOT + s, BLOCK]) if mode == BLOCKS else 1.0
        for b in range(MANY):
            top[b] = np.floor(limit * block / own[b])
    elif mode == BLOCKS:
        block, beside = np.float64(sp[SLOT + s, BLOCK]), np.float64(sp[SLOT + s, PARTNER_BLOCK])
        for b in range(MANY):
            top[b] = np.floor(np.floor(limit / np.ceil(other[b] / beside)) * block / own[b])
    else:
        for b in range(MANY):
            top[b] = np.floor(limit / (own[b] * other[b]))


@compiled
def to_divisors(sp: Compiled, d: Compiled, real: Compiled, nearest: Compiled) -> Compiled:
    """Replace row COUNT by divisors of what is left of dimension ``d``, at most row TOP: the ``nearest``, or any."""
    noise, top, count, left, many = real[NOISE], real[TOP], real[COUNT], real[LEFT + d], sp[DIVISORS + d, 0]
    for b in range(MANY):
        rest, most = np.int64(left[b]), np.int64(top[b])
        chosen, seen = ONE, ZERO
        if nearest:
            for i in range(1, many + 1):
                f = sp[DIVISORS + d, i]
                if f > most:
                    break
                chosen = f if rest % f == 0 else chosen
        elif most > 1:
            for i in range(1, many + 1):
                seen += sp[DIVISORS + d, i] <= most and rest % sp[DIVISORS + d, i] == 0
            seen = np.int64(noise[b] * seen)
            for i in range(1, many + 1):
                if rest % sp[DIVISORS + d, i] == 0:
                    if seen == 0:
                        chosen = sp[DIVISORS + d, i]
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
    dims, used = sp[META, DIMS], real[LEFT + sp[META, DIMS]:]
    top, count, tile, noise = real[TOP], real[COUNT], real[TILE], real[NOISE]
    start = below(rng, dims)
    for i in range(dims):
        d = start + i if start + i < dims else start + i - dims
        if sp[FREE + s, d] == 0:
            continue
        left = real[LEFT + d]
        find_room(sp, used, s, top)
        for b in range(MANY):
            top[b] = min(top[b], left[b])
        fill_noise(rng, noise)
        if sp[META, PERFECT] != 0:
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
    used, top, left = real[LEFT + sp[META, DIMS]:], real[TOP], real[LEFT + d]
    spatial = sp[SLOT + s, KIND] == SPATIAL
    if spatial:
        find_room(sp, used, s, top)
        for b in range(MANY):
            top[b] = min(top[b], left[b])
    else:
        for b in range(MANY):
            top[b] = left[b]
    fill_noise(rng, real[NOISE])
    if sp[META, PERFECT] != 0:
        to_divisors(sp, d, real, False)
    else:
        log_uniform(real, near, bits, whole)
    take(real, d, used[s], spatial, counts[s, d])


@compiled
def split(sp: Compiled, rng: Compiled, filling: Compiled, order: Compiled, counts: Compiled, real: Compiled,
          near: Compiled, bits: Compiled, whole: Compiled) -> Compiled:
    """Draw the counts of a block; the anchors take what is left. See `sampling.sample_counts`."""
    slots, dims = sp[META, SLOTS], sp[META, DIMS]
    used = real[LEFT + dims:]
    for s in range(slots):
        order[s] = s
        used[s, :] = 1.0
        counts[s, :, :] = 1.0
    for d in range(dims):
        real[LEFT + d, :] = np.float64(sp[SIZES, d])
    offset = below(rng, slots)
    for i in range(slots if filling else 0):
        s = offset + i if offset + i < slots else offset + i - slots
        if sp[SLOT + s, KIND] == SPATIAL:
            fill_side(sp, rng, counts, real, near, bits, whole, s)
    start = below(rng, dims)
    for i in range(dims):
        d = start + i if start + i < dims else start + i - dims
        for k in range(slots):
            other = k + below(rng, slots - k)
            s = order[other]
            order[other] = order[k]
            order[k] = s
            if sp[FREE + s, d] != 0 and s != sp[ANCHOR, d] and (not filling or sp[SLOT + s, KIND] == TEMPORAL):
                split_rest(sp, rng, counts, real, near, bits, whole, s, d)
        anchor, left = counts[sp[ANCHOR, d], d], real[LEFT + d]
        for b in range(MANY):
            anchor[b] = left[b]


@compiled
def build_chains(sp: Compiled, rng: Compiled, counts: Compiled, e: Compiled, real: Compiled) -> Compiled:
    """Turn counts into extents: balanced from outside, or multiples from inside, or loosely. See `sampling`."""
    slots = sp[META, SLOTS]
    for d in range(sp[META, DIMS]):
        style = 0 if sp[META, PERFECT] != 0 else below(rng, FOUR)
        size = np.float64(sp[SIZES, d])
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
    if sp[FREE + s, d] == 0 or sp[FREE + s + 1, d] == 0:
        return
    fill_noise(rng, noise)
    step = e[s + 1, d]
    low = step if sp[SLOT + s, KIND] == SPATIAL else e[s + 2, d]
    high = step if sp[SLOT + s + 1, KIND] == SPATIAL else e[s, d]
    for b in range(MANY):
        step[b] = low[b] + np.floor(noise[b] * (high[b] - low[b] + 1.0))


@compiled
def weigh(sp: Compiled, e: Compiled, g: Compiled, tile: Compiled, total: Compiled) -> Compiled:
    """Write to ``total`` the bits that capacity group ``g`` must hold; see `kernels.tile_bits`."""
    inside = e[sp[GROUPS + g, 0]]
    total[:] = 0.0
    for t in range(sp[META, TENSORS]):
        if sp[GROUPS + g, 2 + t] == 0:
            continue
        tile[:] = np.float64(sp[GROUPS + g, 2 + t])
        for a in range(sp[SPANS, t], sp[SPANS, t + 1]):
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
    if sp[ANCHOR, d] >= sp[GROUPS + g, 0]:
        return False
    for t in range(sp[META, TENSORS]):
        if sp[GROUPS + g, 2 + t] > 0 and sp[RELEVANT + t, d] != 0:
            return True
    return False


@compiled
def shrink(sp: Compiled, rng: Compiled, e: Compiled, g: Compiled, source: Compiled, real: Compiled, near: Compiled,
           bits: Compiled, whole: Compiled, d: Compiled) -> Compiled:
    """Move a factor of dimension ``d`` from slot ``source`` out of group ``g``, of mappings that hold too much.

    The factor is 2 or more, uniform in its logarithm up to the times that the tiles are too large.
    """
    limit, target = np.float64(sp[GROUPS + g, 1]), sp[GROUPS + g, 0] - 1
    while sp[SLOT + target, KIND] != TEMPORAL or sp[FREE + target, d] == 0:
        target -= 1
    top, count, total, outer, floor = real[TOP], real[COUNT], real[BITS], e[source, d], e[source + 1, d]
    fill_noise(rng, real[NOISE])
    for b in range(MANY):
        top[b] = max(1.0, np.floor(total[b] / limit))
    log_uniform(real, near, bits, whole)
    for b in range(MANY):
        most = np.ceil(outer[b] / floor[b])
        count[b] = min(most, max(count[b], 2.0)) if total[b] > limit else 1.0
    if sp[META, PERFECT] != 0:
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
    slots, dims = sp[META, SLOTS], sp[META, DIMS]
    first, limit, left = sp[GROUPS + g, 0], np.float64(sp[GROUPS + g, 1]), MANY
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
    slots = sp[META, SLOTS]
    for i in range(slots - first):
        s = start + i if start + i < slots else start + i - slots + first
        if sp[FREE + s, d] != 0 and (spatial or sp[SLOT + s, KIND] == TEMPORAL):
            return s
    return NONE


@compiled
def mend(sp: Compiled, rng: Compiled, e: Compiled, work: Compiled, b: Compiled) -> Compiled:
    """Make the tiles of one mapping of a block fit, if they do not; see `kernels.fit`."""
    slots, dims = sp[META, SLOTS], sp[META, DIMS]
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
    for s in range(sp[META, SLOTS]):
        for d in range(sp[META, ALL_DIMS]):
            steps[s, d, at:at + count] = 1
        for d in range(sp[META, DIMS]):
            extents, target = e[s + 1, d], steps[s, sp[ACTIVE, d], at:at + count]
            for b in range(count):
                target[b] = np.int32(extents[b])


@compiled
def pick_orders(sp: Compiled, s: Compiled, noise: Compiled, ranks: Compiled, at: Compiled, count: Compiled) -> Compiled:
    """Write one of the orders that slot ``s`` allows to each of ``count`` mappings from place ``at`` on."""
    many, first = sp[SLOT + s, ORDER_COUNT], sp[SLOT + s, ORDER_START]
    for d in range(sp[META, DIMS]):
        target = ranks[s, sp[ACTIVE, d], at:at + count]
        for b in range(count):
            target[b] = np.int8(sp[first + np.int64(noise[b] * many), d])


@compiled
def shuffle_orders(sp: Compiled, s: Compiled, rng: Compiled, noise: Compiled, keys: Compiled, ranks: Compiled,
                   at: Compiled, count: Compiled) -> Compiled:
    """Write a random order at slot ``s`` to each of ``count`` mappings from place ``at`` on: that of random keys."""
    dims = sp[META, DIMS]
    for d in range(dims):
        fill_noise(rng, noise)
        key = keys[d]
        for b in range(MANY):
            key[b] = np.int32(noise[b] * SPREAD)
    place = keys[dims]
    for d in range(dims):
        key, target = keys[d], ranks[s, sp[ACTIVE, d], at:at + count]
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
    for s in range(sp[META, SLOTS]):
        for d in range(sp[META, ALL_DIMS]):
            ranks[s, d, at:at + count] = np.int8(sp[PLACES, d])
        if sp[SLOT + s, KIND] != TEMPORAL:
            continue
        if sp[SLOT + s, ORDER_COUNT] > 0:
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
        for g in range(sp[META, GROUP_COUNT]):
            if shrink_block(sp, rng, e, g, real, near, bits, keys[0]) > 0:
                total, limit = real[BITS], np.float64(sp[GROUPS + g, 1])
                for b in range(count):
                    if total[b] > limit:
                        mend(sp, rng, e, work[1], b)
        write_steps(sp, e, steps, at, count)
        write_ranks(sp, rng, real[NOISE], keys, ranks, at, count)
