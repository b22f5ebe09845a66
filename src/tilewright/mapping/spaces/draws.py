"""Compiled uniform drawing of mappings from the tables of `lists`, a block at a time."""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.spaces.arrays import WORD
from tilewright.mapping.spaces.kernels import GOLDEN, MIX1, MIX2, S27, S30, S31, Compiled, compiled, entry

BLOCK = 128
"""Mappings drawn together: independent of one another, so that their look-ups overlap."""
# Rows of the scratch array ``(n, BLOCK)`` int32: node and row of each mapping, which are legal, one line of what is
# written; then its chain in every dimension. Of that of float64: bits of a tile, of a store, whether all fit, nothing
# (in the place of a second dimension where there is none); then extents.
NODE, ROW, LEGAL, LINE, CHAINS = range(5)
TILE, STORE, FITS, ONES, EXTENTS = range(5)
# Unsigned indices need no look whether they count from the end.
At = np.uintp
S12 = np.uint64(12)


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
def draw_block(entries: Compiled, nodes: Compiled, runs: Compiled, rows: Compiled, pairs: Compiled,
               joint: Compiled, rng: Compiled, whole: Compiled, loops: Compiled, noise: Compiled) -> Compiled:
    """Draw the chains of a block of mappings, and the bits of their ``loops``."""
    fill_noise(rng, noise)
    for b in range(BLOCK):
        value = noise[b] * nodes
        k = np.int64(value)
        # Both entries are read at once: a branch on chance would be foreseen half of the time.
        instead = np.int64(entries[At(k), 1])
        whole[NODE, b] = k if value - k < entries[At(k), 0] else instead
        whole[ROW, b] = 0
        loops[b] = 0
    for i in range(len(runs)):
        first, length, row = runs[i, 0], runs[i, 1], runs[i, 2]
        place, many, begin = runs[i, 3], runs[i, 4], runs[i, 5]
        before = rows[row, 0]
        fill_noise(rng, noise)
        for b in range(BLOCK):
            here = At(row + whole[ROW, b])
            start = rows[here, 0]
            base = first + whole[NODE, b] * length + start - before
            value = noise[b] * rows[here, 1]
            k = np.int64(value)
            instead = np.int64(entries[At(base + k), 1])
            k = k if value - k < entries[At(base + k), 0] else instead
            whole[LINE, b] = start + k
        fill_noise(rng, noise)
        for b in range(BLOCK):
            pair = At(whole[LINE, b])
            whole[LINE, b] = pairs[pair, 0] + np.int64(noise[b] * pairs[pair, 1])
            whole[ROW, b] = pairs[pair, 2]
            loops[b] |= pairs[pair, 3]
        for q in range(many):
            for b in range(BLOCK):
                whole[CHAINS + place + q, b] = joint[At(begin + whole[LINE, b] * many + q)]


@compiled
def add_tile(axes: Compiled, first: Compiled, last: Compiled, word_bits: Compiled, real: Compiled) -> Compiled:
    """Add the bits of one tensor's tiles to row STORE (rule 1)."""
    for b in range(BLOCK):
        real[TILE, b] = word_bits
    for a in range(first, last):
        if axes[a, 2] == ONES:
            for b in range(BLOCK):
                real[TILE, b] *= real[axes[a, 0], b]
            continue
        for b in range(BLOCK):
            p, r = real[axes[a, 0], b], real[axes[a, 2], b]
            real[TILE, b] *= p * r - max(0.0, p - axes[a, 3]) * max(0.0, r - axes[a, 1])
    for b in range(BLOCK):
        real[STORE, b] += real[TILE, b]


@compiled
def check_block(stores: Compiled, tiles: Compiled, axes: Compiled, chains: Compiled, real: Compiled,
                whole: Compiled) -> Compiled:
    """Return how many mappings of a block have tiles that fit (rule 10), their places first in row LEGAL."""
    for b in range(BLOCK):
        real[FITS, b] = 1.0
    for n in range(len(stores)):
        for b in range(BLOCK):
            real[STORE, b] = 0.0
        for i in range(whole.shape[0] - CHAINS if n == 0 or stores[n, 0] != stores[n - 1, 0] else 0):
            for b in range(BLOCK):
                real[EXTENTS + i, b] = chains[stores[n, 0], At(whole[CHAINS + i, b])]
        for t in range(stores[n, 2], stores[n, 3]):
            add_tile(axes, tiles[t, 1], tiles[t, 2], tiles[t, 0], real)
        for b in range(BLOCK):
            real[FITS, b] *= real[STORE, b] <= stores[n, 1]
    count = 0
    for b in range(BLOCK):
        whole[LEGAL, count] = b
        count += real[FITS, b] > 0.0
    return count


@compiled
def write_steps(words: Compiled, bits: Compiled, dims: Compiled, whole: Compiled, line: Compiled, at: Compiled,
                count: Compiled, steps: Compiled) -> Compiled:
    """Write the steps of the first ``count`` legal mappings of a block from place ``at`` on."""
    many, mask = WORD // bits, (np.int64(1) << bits) - 1
    for i in range(len(dims)):
        for w in range(words.shape[0]):
            for j in range(count):
                line[j] = words[w, At(whole[CHAINS + i, At(whole[LEGAL, j])])]
            for s in range(w * many, min(steps.shape[0], (w + 1) * many)):
                shift = (s - w * many) * bits
                target = steps[s, dims[i]]
                for j in range(count):
                    target[At(at + j)] = np.int32((line[j] >> shift) & mask)


@compiled
def write_ranks(orders: Compiled, packed: Compiled, slots: Compiled, dims: Compiled, rng: Compiled, whole: Compiled,
                loops: Compiled, noise: Compiled, at: Compiled, count: Compiled, ranks: Compiled) -> Compiled:
    """Draw the orders of the first ``count`` legal mappings of a block and write them from place ``at`` on."""
    for t in range(len(slots)):
        fill_noise(rng, noise)
        for j in range(count):
            mask = At((loops[At(whole[LEGAL, j])] >> (8 * t)) & 255)
            k = np.int64(noise[j] * orders[t, mask, 1])
            whole[LINE, j] = packed[At(orders[t, mask, 0] + k)]
        for d in dims:
            for j in range(count):
                ranks[slots[t], d, At(at + j)] = (whole[LINE, j] >> (4 * d)) & 7


@entry
def draw_listed(entries: Compiled, nodes: Compiled, runs: Compiled, rows: Compiled, pairs: Compiled,
                joint: Compiled, chains: Compiled, words: Compiled, bits: Compiled, orders: Compiled, packed: Compiled,
                slots: Compiled, dims: Compiled, stores: Compiled, tiles: Compiled, axes: Compiled, rng: Compiled,
                tries: Compiled, real: Compiled, whole: Compiled, loops: Compiled, line: Compiled, span: Compiled,
                steps: Compiled, ranks: Compiled) -> Compiled:
    """Fill the mappings from ``span[0]`` to ``span[1]`` of ``steps`` and ``ranks`` ``(s, d, b)``.

    Written are the steps and, at ``slots``, the ranks of ``dims``. Returned is where that ended: short of ``span[1]``
    after ``tries`` blocks.
    """
    at = span[0]
    while at < span[1] and tries > 0:
        tries -= 1
        draw_block(entries, nodes, runs, rows, pairs, joint, rng, whole, loops, real[FITS])
        count = min(check_block(stores, tiles, axes, chains, real, whole), span[1] - at)
        write_steps(words, bits, dims, whole, line, at, count, steps)
        write_ranks(orders, packed, slots, dims, rng, whole, loops, real[FITS], at, count, ranks)
        at += count
    return at
