"""Compiled uniform drawing of mappings from the tables of `lists`, a block at a time.

What is looked up stands alone in its loop, and what is computed in others: so these vectorise, though look-ups do not.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.spaces.arrays import WORD
from tilewright.mapping.spaces.fields import (
    CHANCE_BITS,
    COUNT_BITS,
    ENTRY_BITS,
    EXTENTS,
    LOOP_BITS,
    ONES,
    ORDER_BITS,
    ROW_BITS,
)
from tilewright.mapping.spaces.kernels import GOLDEN, MIX1, MIX2, S27, S30, S31, Compiled, axis_words, compiled, entry

BLOCK = 128
"""Mappings drawn together: independent of one another, so that their look-ups overlap."""
STAGE = 8
"""Blocks written together, so that what is written to a row at a time is long."""
# Rows of the scratch array ``(n, BLOCK)`` int64: node and row of each mapping, its pair or choice, where it looks, its
# chance, and what it found; then which do not fit, and which spare ones do. Of that of float64: bits of a tile, of a
# store, whether all fit, ones; then extents, and random numbers last. Of the mappings ``(STAGE + 1, n, BLOCK)`` int64:
# loops, then words of steps; the last block is spare.
NODE, ROW, LINE, PLACE, CHANCE, FOUND, SHORT, MORE, WORK = range(9)
TILE, STORE, FITS = range(3)
LOOPS, STEPS = range(2)
# Columns of ``runs``.
FIRST, LENGTH, BEFORE, PLACES, DIMS, BEGIN, WIDTH, FIELD = range(8)
# Unsigned indices need no look whether they count from the end.
At = np.uintp
S12 = np.uint64(12)
CHANCES = np.float64(1 << CHANCE_BITS)


@compiled
def fill_noise(rng: Compiled, noise: Compiled) -> Compiled:
    """Fill ``noise`` with random floats in ``[0, 1)``.

    They stay so far below 1 that products with whole numbers do not round up to these. All states are known from the
    first, so that the loop vectorises.
    """
    state = rng[0]
    for b in range(BLOCK):
        z = state + np.uint64(b + 1) * GOLDEN
        z = (z ^ (z >> S30)) * MIX1
        z = (z ^ (z >> S27)) * MIX2
        noise[b] = np.float64((z ^ (z >> S31)) >> S12) * 2.220446049250313e-16
    rng[0] = state + np.uint64(BLOCK) * GOLDEN


@compiled
def look(table: Compiled, at: Compiled, found: Compiled) -> Compiled:
    """Look up a block of numbers."""
    for b in range(BLOCK):
        found[b] = table[At(at[b])]


@compiled
def draw_pairs(entries: Compiled, nodes: Compiled, runs: Compiled, i: Compiled, noise: Compiled,
               work: Compiled) -> Compiled:
    """Draw the pairs of bundle ``i``; with those of the first the nodes."""
    node, row, line, place, chance, found = (
        work[NODE], work[ROW], work[LINE], work[PLACE], work[CHANCE], work[FOUND])
    first, length, before = runs[i, FIRST], runs[i, LENGTH], runs[i, BEFORE]
    mask = (np.int64(1) << ENTRY_BITS) - 1
    if i == 0:
        for b in range(BLOCK):
            value = noise[b] * (nodes * length)
            place[b] = np.int64(value)
            chance[b] = np.int64((value - np.int64(value)) * CHANCES)
        look(entries, place, found)
        part = 1.0 / length
        for b in range(BLOCK):
            own, other = place[b], found[b] & mask
            k = own if chance[b] <= found[b] >> ENTRY_BITS else other
            x = np.int64((k + 0.5) * part)
            node[b] = x
            line[b] = k - x * length
        return
    for b in range(BLOCK):
        start = row[b] >> ROW_BITS
        value = noise[b] * (row[b] & ((np.int64(1) << ROW_BITS) - 1))
        k = np.int64(value)
        chance[b] = np.int64((value - k) * CHANCES)
        line[b] = k
        row[b] = start
        place[b] = first + node[b] * length + start + k
    look(entries, place, found)
    for b in range(BLOCK):
        own, other = line[b], found[b] & mask
        k = own if chance[b] <= found[b] >> ENTRY_BITS else other
        line[b] = before + row[b] + k


@compiled
def take_pairs(pairs: Compiled, line: Compiled, apart: Compiled, last: Compiled, found: Compiled, row: Compiled,
               loops: Compiled) -> Compiled:
    """Take from pairs which choices they stand for, which pairs can follow, and loops."""
    for b in range(BLOCK):
        found[b] = pairs[At(3 * line[b])]
    if not last:
        for b in range(BLOCK):
            row[b] = pairs[At(3 * line[b] + 1)]
    if apart:
        for b in range(BLOCK):
            loops[b] |= pairs[At(3 * line[b] + 2)]
        return
    for b in range(BLOCK):
        loops[b] |= found[b] >> (2 * COUNT_BITS)


@compiled
def take_words(runs: Compiled, i: Compiled, joint: Compiled, words: Compiled, work: Compiled,
               drawn: Compiled) -> Compiled:
    """Take the words of steps of the choices of bundle ``i``."""
    line, place, found, many = work[LINE], work[PLACE], work[FOUND], words.shape[0]
    begin, width, bits = runs[i, BEGIN], runs[i, WIDTH], runs[i, FIELD]
    to, each = STEPS + runs[i, PLACES] * many, WORD // bits
    for q in range(runs[i, DIMS]):
        if width > 0 and q % each == 0:
            for b in range(BLOCK):
                place[b] = begin + line[b] * width + q // each
            look(joint, place, found)
        if width > 0:
            for b in range(BLOCK):
                place[b] = found[b] & ((np.int64(1) << bits) - 1)
                found[b] >>= bits
        for w in range(many):
            look(words[w], place if width > 0 else line, drawn[to + q * many + w])


@compiled
def draw_block(entries: Compiled, nodes: Compiled, runs: Compiled, pairs: Compiled, joint: Compiled, words: Compiled,
               apart: Compiled, rng: Compiled, noise: Compiled, work: Compiled, drawn: Compiled) -> Compiled:
    """Draw a block of mappings: their loops, and the words of their steps."""
    row, line, found, loops = work[ROW], work[LINE], work[FOUND], drawn[LOOPS]
    many = (np.int64(1) << COUNT_BITS) - 1
    for b in range(BLOCK):
        loops[b] = 0
    for i in range(len(runs)):
        fill_noise(rng, noise)
        draw_pairs(entries, nodes, runs, i, noise, work)
        take_pairs(pairs, line, apart, i + 1 == len(runs), found, row, loops)
        fill_noise(rng, noise)
        for b in range(BLOCK):
            line[b] = (found[b] & many) + np.int64(noise[b] * (found[b] >> COUNT_BITS & many))
        take_words(runs, i, joint, words, work, drawn)


@compiled
def times_axis(axes: Compiled, a: Compiled, before: Compiled, real: Compiled) -> Compiled:
    """Write row ``before`` times the words along axis ``a`` to row TILE (rule 1)."""
    factor, tile, first, second = real[before], real[TILE], real[axes[a, 0]], real[axes[a, 2]]
    stride, dilation, box = np.float64(axes[a, 1]), np.float64(axes[a, 3]), axes[a, 4]
    if axes[a, 2] == ONES and not box:
        for b in range(BLOCK):
            tile[b] = factor[b] * first[b]
        return
    for b in range(BLOCK):
        tile[b] = factor[b] * axis_words(first[b], second[b], stride, dilation, box)


@compiled
def unpack(word: Compiled, shift: Compiled, bits: Compiled, numbers: Compiled) -> Compiled:
    """Write the numbers that stand in fields of words."""
    for b in range(BLOCK):
        numbers[b] = word[b] >> shift & ((np.int64(1) << bits) - 1)


@compiled
def check_block(stores: Compiled, tiles: Compiled, axes: Compiled, bits: Compiled, many: Compiled, count: Compiled,
                drawn: Compiled, real: Compiled) -> Compiled:
    """Say in row FITS which mappings of a block have tiles that fit (rule 10)."""
    each, store, fits = WORD // bits, real[STORE], real[FITS]
    for n in range(len(stores)):
        s, most = stores[n, 0], np.float64(stores[n, 1])
        for i in range(count if n == 0 or s != stores[n - 1, 0] else 0):
            unpack(drawn[STEPS + i * many + s // each], s % each * bits, bits, real[EXTENTS + i])
        for b in range(BLOCK):
            store[b] = 0.0
        for t in range(stores[n, 2], stores[n, 3]):
            size = np.float64(tiles[t, 0])
            last = ONES
            for a in range(tiles[t, 1], tiles[t, 2]):
                times_axis(axes, a, last, real)
                last = TILE
            tile = real[last]
            for b in range(BLOCK):
                store[b] += tile[b] * size
        if n == 0:
            for b in range(BLOCK):
                fits[b] = store[b] <= most
        else:
            for b in range(BLOCK):
                fits[b] *= store[b] <= most


@compiled
def places_of(fit: Compiled, fits: Compiled, most: Compiled, line: Compiled) -> Compiled:
    """Write to ``line`` which of the first ``most`` mappings fit or, with 0, do not; return how many."""
    count = 0
    for b in range(most):
        line[At(count)] = b
        count += fits[b] == fit
    return count


@compiled
def replace(chosen: Compiled, spare: Compiled, short: Compiled, more: Compiled, count: Compiled) -> Compiled:
    """Put spare mappings in the places of ``count`` that do not fit."""
    for r in range(chosen.shape[0]):
        into, source = chosen[r], spare[r]
        for i in range(count):
            into[At(short[i])] = source[At(more[i])]


@compiled
def write_steps(bits: Compiled, many: Compiled, dims: Compiled, least: Compiled, drawn: Compiled, at: Compiled,
                count: Compiled, width: Compiled, steps: Compiled) -> Compiled:
    """Write the steps of ``count`` mappings from place ``at`` on."""
    each, mask = WORD // bits, (np.int64(1) << bits) - 1
    for i in range(len(dims)):
        for s in range(steps.shape[0] // width - 1):
            row, shift = STEPS + i * many + (s + least) // each, (s + least) % each * bits
            target = steps[s * width + dims[i], at:at + count]
            for start in range(0, count, BLOCK):
                word, to = drawn[start // BLOCK, row], target[start:]
                for b in range(min(BLOCK, count - start)):
                    to[b] = np.int32(word[b] >> shift & mask)


@compiled
def write_ranks(orders: Compiled, alike: Compiled, packed: Compiled, slots: Compiled, dims: Compiled, rng: Compiled,
                noise: Compiled, work: Compiled, drawn: Compiled, at: Compiled, count: Compiled, width: Compiled,
                ranks: Compiled) -> Compiled:
    """Draw the orders of ``count`` mappings and write them from place ``at`` on."""
    place, found = work[PLACE], work[FOUND]
    most = (np.int64(1) << ORDER_BITS) - 1
    for t in range(len(slots)):
        for start in range(0, count, BLOCK):
            loops, line = drawn[start // BLOCK, LOOPS], drawn[start // BLOCK, STEPS]
            fill_noise(rng, noise)
            first, each = alike[t, 0], alike[t, 1]
            for b in range(BLOCK):
                place[b] = loops[b] >> (width * t) & ((np.int64(1) << width) - 1)
            if each:
                for b in range(BLOCK):
                    place[b] = first + place[b] * each + np.int64(noise[b] * each)
            else:
                look(orders[t], place, found)
                for b in range(BLOCK):
                    place[b] = (found[b] >> ORDER_BITS) + np.int64(noise[b] * (found[b] & most))
            look(packed, place, line)
        for d in dims:
            target = ranks[slots[t] * width + d, at:at + count]
            for start in range(0, count, BLOCK):
                line, to = drawn[start // BLOCK, STEPS], target[start:]
                for b in range(min(BLOCK, count - start)):
                    to[b] = np.int8(line[b] >> (4 * d) & 7)


@compiled
def write_still(ones: Compiled, still: Compiled, start: Compiled, end: Compiled, steps: Compiled,
                ranks: Compiled) -> Compiled:
    """Write what is the same in all mappings."""
    for n in range(len(ones)):
        target = steps[ones[n]]
        for b in range(start, end):
            target[At(b)] = 1
    for n in range(len(still)):
        order, rank = ranks[still[n, 0]], np.int8(still[n, 1])
        for b in range(start, end):
            order[At(b)] = rank


@entry
def draw_listed(entries: Compiled, nodes: Compiled, runs: Compiled, pairs: Compiled, joint: Compiled,
                words: Compiled, bits: Compiled, least: Compiled, orders: Compiled, alike: Compiled, packed: Compiled,
                slots: Compiled, dims: Compiled, stores: Compiled, tiles: Compiled, axes: Compiled, ones: Compiled,
                still: Compiled, width: Compiled, states: Compiled, spans: Compiled, tries: Compiled, real: Compiled,
                work: Compiled, drawn: Compiled, steps: Compiled, ranks: Compiled) -> Compiled:
    """Fill the mappings of each of ``spans`` ``(p, 2)`` of ``steps`` and ``ranks`` ``(s * d, b)``, a row its own.

    Returned is the first span that ended short of its mappings after ``tries`` blocks, or how many there are; where
    that ended is written to its begin.
    """
    apart = len(slots) * width > LOOP_BITS
    noise, many, spare = real[len(real) - 1], words.shape[0], drawn[len(drawn) - 1]
    for p in range(len(spans)):
        rng, left, more = states[p], tries[p], 0
        write_still(ones, still, spans[p, 0], spans[p, 1], steps, ranks)
        for at in range(spans[p, 0], spans[p, 1], (len(drawn) - 1) * BLOCK):
            total = min((len(drawn) - 1) * BLOCK, spans[p, 1] - at)
            for start in range(0, total, BLOCK):
                chosen = drawn[start // BLOCK]
                count = min(BLOCK, total - start)
                short, first = count, True
                while short > 0:
                    if left == 0:
                        spans[p, 0] = at + start + count - short
                        return p
                    left -= 1
                    block = chosen if first else spare
                    draw_block(entries, nodes, runs, pairs, joint, words, apart, rng, noise, work, block)
                    check_block(stores, tiles, axes, bits, many, len(dims), block, real)
                    if first:
                        short = places_of(0.0, real[FITS], count, work[SHORT])
                    else:
                        more = places_of(1.0, real[FITS], BLOCK, work[MORE])
                    first, moved = False, min(short, more)
                    short, more = short - moved, more - moved
                    replace(chosen, spare, work[SHORT, short:], work[MORE, more:], moved)
            write_steps(bits, many, dims, least, drawn, at, total, width, steps)
            write_ranks(orders, alike, packed, slots, dims, rng, noise, work, drawn, at, total, width, ranks)
    return len(spans)
