"""Compiled operators on single mappings of a space, for loops over whole populations.

``sp`` is the table of the space (`arrays.pack`), which knows only the dimensions of size above 1. One mapping is
``e`` ``(s + 1, d)`` int64, the extents outside each slot and, last, inside all (row 0 is the operator's sizes, row
s + 1 the steps of slot s), and ``r`` ``(s, d)`` int64, the ranks of `MappingBatch`. Rows may be longer than that.
Randomness is a splitmix64 counter (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014)
whose state is drawn from a `numpy.random.Generator`.

Compiled functions take plain arrays and allocate none: so they need no reference counts, which at this size would cost
more than the work itself. Mappings that the counting rules cannot tell apart have the same signature.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from tilewright.base import kept, part_options, stamped
from tilewright.mapping.spaces.rules import arrays as table

# Arrays and numbers inside compiled code; Numba infers the types.
Compiled = Any

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S30, S27, S31, S32, S11 = (np.uint64(n) for n in (30, 27, 31, 32, 11))
TRIES = 64
# Numbers as arguments: a function is compiled anew for every literal.
_NUMBERS: Compiled = tuple(np.int64(n) for n in range(-1, 5))
NONE, ZERO, ONE, TWO, THREE, FOUR = _NUMBERS

# Planes of the scratch array `MapSpace.scratch`, and rows of its last plane.
EXTENTS, RANKS, COUNTS, ROWS = range(4)
LANES, LEFT, ORDER = range(3)

F = TypeVar("F", bound=Callable[..., Any])
# Without the interpreter lock, and without reference counts (so that nothing can be allocated).
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_PART = part_options()

# All sources whose functions and constants end up inside others.
_named = stamped(Path(__file__).parent / f"{name}.py" for name in (
    "kernels", "rules/arrays", "repair/mappings", "repair/projection", "drawing/sampling", "counting/enumeration"))


def compiled(function: F) -> F:
    """Compile ``function`` for others to call, at their first call."""
    return cast(F, njit(**OPTIONS, **_PART)(function))


def inlined(function: F) -> F:
    """Compile ``function`` into those that call it: for small ones that are given tuples of many arrays."""
    return cast(F, njit(**OPTIONS, **_PART, forceinline=True)(function))


def entry(function: F) -> F:
    """Compile ``function`` for Python alone to call, with all that it calls, and keep it on disk."""
    return cast(F, kept(njit(**OPTIONS)(_named(function)), alone=True))


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
    # A product of 32 bits in place of a remainder, which takes many times as long; the bias is below bound / 2**32.
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
def slots_of(sp: Compiled) -> Compiled:
    """Return how many slots there are."""
    return sp[table.META, table.SLOTS]


@compiled
def dims_of(sp: Compiled) -> Compiled:
    """Return how many dimensions there are of size above 1."""
    return sp[table.META, table.DIMS]


@compiled
def perfect(sp: Compiled) -> Compiled:
    """Whether every step must divide the extent outside it."""
    return sp[table.META, table.PERFECT] != 0


@compiled
def is_spatial(sp: Compiled, s: Compiled) -> Compiled:
    """Whether slot ``s`` is a side of an array, and not a memory."""
    return sp[table.SLOT + s, table.KIND] == table.SPATIAL


@compiled
def may_loop(sp: Compiled, s: Compiled, d: Compiled) -> Compiled:
    """Whether dimension ``d`` may loop at slot ``s``."""
    return sp[table.FREE + s, d] != 0


@compiled
def ceil_div(a: Compiled, b: Compiled) -> Compiled:
    """Return ``a / b`` rounded up; quick where that is 1, as at most slots."""
    if a <= b:
        return 1
    return (a + b - 1) // b


@compiled
def room(sp: Compiled, used: Compiled, s: Compiled) -> Compiled:
    """Return the largest count that may still be multiplied into side ``s``; ``used`` ``(s)`` are the lanes so far."""
    mode = sp[table.SLOT + s, table.MODE]
    limit = sp[table.SLOT + s, table.LIMIT]
    if mode == table.FIXED:
        return limit // used[s]
    partner = sp[table.SLOT + s, table.PARTNER]
    other = used[partner] if partner >= 0 else 1
    if mode == table.BLOCKS:
        blocks = limit // ceil_div(other, sp[table.SLOT + s, table.PARTNER_BLOCK])
        return blocks * sp[table.SLOT + s, table.BLOCK] // used[s]
    return limit // (used[s] * other)


@compiled
def lanes_at(sp: Compiled, e: Compiled, s: Compiled, last: Compiled) -> Compiled:
    """Return the product of the counts at slot ``s`` of all dimensions up to ``last``."""
    product = 1
    for d in range(last + 1):
        if e[s + 1, d] < e[s, d]:
            product *= (e[s, d] + e[s + 1, d] - 1) // e[s + 1, d]
    return product


@compiled
def lanes(sp: Compiled, e: Compiled, used: Compiled, last: Compiled) -> Compiled:
    """Write the lanes of dimensions up to ``last`` at every spatial slot to ``used`` ``(s)``; 1 at temporal ones."""
    for s in range(slots_of(sp)):
        used[s] = lanes_at(sp, e, s, last) if is_spatial(sp, s) else 1


@compiled
def arrays_fit(sp: Compiled, used: Compiled) -> Compiled:
    """Whether the lanes ``used`` ``(s)`` fit every array."""
    for s in range(slots_of(sp)):
        if is_spatial(sp, s) and room(sp, used, s) < 1:
            return False
    return True


@compiled
def axis_words(p: Compiled, q: Compiled, stride: Compiled, dilation: Compiled, box: Compiled) -> Compiled:
    """Return the words along an axis of a box of ``p`` by ``q`` values (rule 1), or of the smallest box around them."""
    if box:
        return stride * (p - 1) + dilation * (q - 1) + 1
    return p * q - max(0, p - dilation) * max(0, q - stride)


@compiled
def tile_bits(sp: Compiled, e: Compiled, g: Compiled) -> Compiled:
    """Return the bits that capacity group ``g`` must hold (counting rule 1)."""
    s = sp[table.GROUPS + g, 0]
    total = 0
    for t in range(sp[table.META, table.TENSORS]):
        bits = sp[table.GROUPS + g, 2 + t]
        if bits > 0:
            for a in range(sp[table.SPANS, t], sp[table.SPANS, t + 1]):
                q = e[s, sp[a, 3]] if sp[a, 3] >= 0 else 1
                bits *= axis_words(e[s, sp[a, 1]], q, sp[a, 2], sp[a, 4], sp[a, 5])
            total += bits
    return total


@compiled
def capacities_fit(sp: Compiled, e: Compiled) -> Compiled:
    """Whether every tile fits its memory."""
    for g in range(sp[table.META, table.GROUP_COUNT]):
        if tile_bits(sp, e, g) > sp[table.GROUPS + g, 1]:
            return False
    return True


@compiled
def capacities_fit_between(sp: Compiled, e: Compiled, first: Compiled, last: Compiled) -> Compiled:
    """Whether the tiles of the memories from slot ``first`` to slot ``last`` fit them."""
    for g in range(sp[table.META, table.GROUP_COUNT]):
        s = sp[table.GROUPS + g, 0]
        if first <= s <= last and tile_bits(sp, e, g) > sp[table.GROUPS + g, 1]:
            return False
    return True


@compiled
def store(sp: Compiled, e: Compiled, r: Compiled, steps: Compiled, ranks: Compiled, b: Compiled) -> Compiled:
    """Copy one mapping into place ``b`` of ``steps`` and ``ranks`` ``(s, d, b)``, dimensions of size 1 included."""
    for s in range(slots_of(sp)):
        for d in range(sp[table.META, table.ALL_DIMS]):
            steps[s, d, b] = 1
            ranks[s, d, b] = sp[table.PLACES, d]
        for d in range(dims_of(sp)):
            steps[s, sp[table.ACTIVE, d], b] = e[s + 1, d]
            ranks[s, sp[table.ACTIVE, d], b] = r[s, d]


@compiled
def load(sp: Compiled, steps: Compiled, ranks: Compiled, b: Compiled, e: Compiled, r: Compiled) -> Compiled:
    """Copy the mapping at place ``b`` of ``steps`` and ``ranks`` ``(s, d, b)`` out."""
    for d in range(dims_of(sp)):
        at = sp[table.ACTIVE, d]
        e[0, d] = sp[table.SIZES, d]
        for s in range(slots_of(sp)):
            e[s + 1, d] = steps[s, at, b]
            r[s, d] = ranks[s, at, b]


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
