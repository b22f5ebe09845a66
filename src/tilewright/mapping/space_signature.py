"""Compiled signatures: mappings that the counting rules cannot tell apart have the same."""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

import numpy as np

from tilewright.mapping.space_arrays import DIMS, KIND, META, RELEVANT, SLOT, SLOTS, TEMPORAL, TENSORS
from tilewright.mapping.space_kernels import MIX1, MIX2, NONE, S30, S31, Compiled, capacities_fit, compiled, entry, load
from tilewright.mapping.space_sampling import EXTENTS, RANKS


@compiled
def order_key(sp: Compiled, e: Compiled, r: Compiled, s: Compiled, t: Compiled) -> Compiled:
    """Return the loops of slot ``s`` that tensor ``t`` stays during, as bits, and which loop first moves it.

    Loops that run once count for nothing. Which loop it is matters for sliding axes only (halo), but is always told
    apart.
    """
    inside, first, place = 0, NONE, NONE
    for d in range(sp[META, DIMS]):
        if e[s + 1, d] < e[s, d] and sp[RELEVANT + t, d] != 0 and r[s, d] > place:
            first, place = d, r[s, d]
    for d in range(sp[META, DIMS]):
        if e[s + 1, d] < e[s, d] and r[s, d] > place:
            inside |= 1 << d
    return np.uint64((inside << 8) + first + 1)


@compiled
def signature(sp: Compiled, e: Compiled, r: Compiled) -> Compiled:
    """Return a hash of the steps and of all in the loop orders that can show in a cost."""
    value = np.uint64(0)
    for s in range(sp[META, SLOTS]):
        loops = 0
        for d in range(sp[META, DIMS]):
            value = (value + np.uint64(e[s + 1, d])) * MIX1
            loops += e[s + 1, d] < e[s, d]
        if sp[SLOT + s, KIND] == TEMPORAL and loops > 1:
            for t in range(sp[META, TENSORS]):
                value = (value + order_key(sp, e, r, s, t)) * MIX1
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
