"""Compiled signatures: mappings that the counting rules cannot tell apart have the same."""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.spaces.kernels import (
    EXTENTS,
    MIX1,
    MIX2,
    NONE,
    RANKS,
    S30,
    S31,
    Compiled,
    capacities_fit,
    compiled,
    dims_of,
    entry,
    is_spatial,
    load,
    slots_of,
)
from tilewright.mapping.spaces.rules import arrays as table


@compiled
def order_key(sp: Compiled, r: Compiled, s: Compiled, t: Compiled, loops: Compiled) -> Compiled:
    """Return the loops of slot ``s`` that tensor ``t`` stays during, as bits, and which loop first moves it.

    ``loops`` are those that run more than once, as bits. Which loop it is matters for sliding axes only (halo), but is
    always told apart.
    """
    inside, first, place, d = 0, NONE, NONE, 0
    left = loops
    while left != 0:
        if left & 1 != 0 and sp[table.RELEVANT + t, d] != 0 and r[s, d] > place:
            first, place = d, r[s, d]
        left >>= 1
        d += 1
    d = 0
    left = loops
    while left != 0:
        if left & 1 != 0 and r[s, d] > place:
            inside |= 1 << d
        left >>= 1
        d += 1
    return np.uint64((inside << 8) + first + 1)


@compiled
def signature(sp: Compiled, e: Compiled, r: Compiled) -> Compiled:
    """Return a hash of the steps and of all in the loop orders that can show in a cost."""
    value = np.uint64(0)
    for s in range(slots_of(sp)):
        loops = 0
        for d in range(dims_of(sp)):
            if e[s + 1, d] < e[s, d]:
                loops |= 1 << d
                value = (value + np.uint64(e[s + 1, d])) * MIX1
        value = (value + np.uint64(loops)) * MIX1
        if not is_spatial(sp, s) and loops & (loops - 1) != 0:
            for t in range(sp[table.META, table.TENSORS]):
                value = (value + order_key(sp, r, s, t, loops)) * MIX1
    value = (value ^ (value >> S30)) * MIX2
    return value ^ (value >> S31)


@compiled
def steps_signature(sp: Compiled, e: Compiled) -> Compiled:
    """Return a hash of the steps alone."""
    value = np.uint64(1)
    for s in range(slots_of(sp)):
        for d in range(dims_of(sp)):
            value = (value ^ np.uint64(e[s + 1, d])) * MIX1
    value = (value ^ (value >> S30)) * MIX2
    return value ^ (value >> S31)


@compiled
def remember(seen: Compiled, value: Compiled) -> Compiled:
    """Put a signature into the table ``seen`` ``(n)`` uint64; return whether it was not there."""
    place = np.int64(value % np.uint64(seen.shape[0]))
    fresh = seen[place] != value
    seen[place] = value
    return fresh


@entry
def fresh_mask(sp: Compiled, seen: Compiled, work: Compiled, steps: Compiled, ranks: Compiled,
               out: Compiled) -> Compiled:
    """Write to ``out`` ``(b)`` which mappings fit the memories and are not in ``seen`` yet; put those there."""
    e, r = work[EXTENTS], work[RANKS]
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, e, r)
        out[b] = capacities_fit(sp, e) and remember(seen, signature(sp, e, r))
