"""Compiled operators on single mappings of a space, for loops over whole populations: randomness, arrays, memories.

``sp`` is the table of the space (`arrays.pack`), which knows only the dimensions of size above 1. One mapping is
``e`` ``(s + 1, d)`` int64, the extents outside each slot and, last, inside all (row 0 is the operator's sizes, row
s + 1 the steps of slot s), and ``r`` ``(s, d)`` int64, the ranks of `MappingBatch`. Rows may be longer than that.
Randomness is a splitmix64 counter (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014)
whose state is drawn from a `numpy.random.Generator`.

Compiled functions take plain arrays and allocate none: so they need no reference counts, which at this size would cost
more than the work itself.
"""
# ruff: noqa: PLR0913, PLR0917  (tuples of arrays would cost reference counts)

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

from tilewright.base import kept, part_options, stamped
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

F = TypeVar("F", bound=Callable[..., Any])
# Without the interpreter lock, and without reference counts (so that nothing can be allocated).
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
_PART = part_options()

# All sources whose functions and constants end up inside others.
_named = stamped(Path(__file__).parent / f"{name}.py" for name in (
    "kernels", "rules/arrays", "counting/enumeration", "drawing/sampling", "drawing/signature", "repair/projection"))


def compiled(function: F) -> F:
    """Compile ``function`` for others to call, at their first call."""
    return cast(F, njit(**OPTIONS, **_PART)(function))


def inlined(function: F) -> F:
    """Compile ``function`` into those that call it: for small ones that are given tuples of many arrays."""
    return cast(F, njit(**OPTIONS, **_PART, forceinline=True)(function))


def entry(function: F) -> F:
    """Compile ``function`` for Python to call, with all that it calls, and keep it on disk."""
    return cast(F, kept(njit(**OPTIONS)(_named(function))))


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
    """Return ``a / b`` rounded up; quick where that is 1, as at most slots."""
    if a <= b:
        return 1
    return (a + b - 1) // b


@compiled
def room(sp: Compiled, used: Compiled, s: Compiled) -> Compiled:
    """Return the largest count that may still be multiplied into side ``s``; ``used`` ``(s)`` are the lanes so far."""
    mode = sp[SLOT + s, MODE]
    limit = sp[SLOT + s, LIMIT]
    if mode == FIXED:
        return limit // used[s]
    partner = sp[SLOT + s, PARTNER]
    other = used[partner] if partner >= 0 else 1
    if mode == BLOCKS:
        return (limit // ceil_div(other, sp[SLOT + s, PARTNER_BLOCK])) * sp[SLOT + s, BLOCK] // used[s]
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
    for s in range(sp[META, SLOTS]):
        used[s] = lanes_at(sp, e, s, last) if sp[SLOT + s, KIND] == SPATIAL else 1


@compiled
def arrays_fit(sp: Compiled, used: Compiled) -> Compiled:
    """Whether the lanes ``used`` ``(s)`` fit every array."""
    for s in range(sp[META, SLOTS]):
        if sp[SLOT + s, KIND] == SPATIAL and room(sp, used, s) < 1:
            return False
    return True


@compiled
def near_divisor(sp: Compiled, d: Compiled, number: Compiled, target: Compiled, top: Compiled) -> Compiled:
    """Return the divisor of ``number`` (one of dimension ``d``) that is nearest ``target``, and at most ``top``."""
    best = 1
    for i in range(1, sp[DIVISORS + d, 0] + 1):
        f = sp[DIVISORS + d, i]
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
    top = max(min(top, whole), 1)
    want = min(max(want, 1), top)
    if sp[META, PERFECT] == 0 or whole % want == 0:
        return want
    return near_divisor(sp, d, whole, want, top)


@compiled
def repair_inside(sp: Compiled, e: Compiled, d: Compiled, used: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` inside its anchor legal, innermost first; return the anchor's own step."""
    size = sp[SIZES, d]
    slots = sp[META, SLOTS]
    current = 1
    e[slots, d] = 1
    for s in range(slots - 1, sp[ANCHOR, d], -1):
        want = e[s, d]
        if sp[FREE + s, d] == 0 or want <= current:
            want = current
        else:
            spatial = sp[SLOT + s, KIND] == SPATIAL
            top = min(size, current * room(sp, used, s)) if spatial else size
            want = min(want, top)
            if sp[META, PERFECT] != 0 and (want % current != 0 or size % want != 0):
                want = current * near_divisor(sp, d, size // current, max(want // current, 1), top // current)
            if spatial:
                used[s] *= ceil_div(want, current)
        e[s, d] = want
        current = want
    return current


@compiled
def repair_outside(sp: Compiled, e: Compiled, d: Compiled, used: Compiled, inside: Compiled) -> Compiled:
    """Make the steps of dimension ``d`` outside its anchor legal, outermost first."""
    extent = sp[SIZES, d]
    e[0, d] = extent
    for s in range(sp[ANCHOR, d]):
        want = extent
        if sp[FREE + s, d] != 0 and e[s + 1, d] < extent:
            count = ceil_div(extent, max(e[s + 1, d], inside))
            whole = extent // inside if sp[META, PERFECT] != 0 else extent
            count = nearest_count(sp, d, whole, count, room(sp, used, s))
            want = max(ceil_div(extent, count), inside)
            used[s] *= ceil_div(extent, want)
        e[s + 1, d] = want
        extent = want


@compiled
def repair(sp: Compiled, e: Compiled, used: Compiled, first: Compiled) -> Compiled:
    """Make steps monotone, inside the arrays, and divisible where asked; dimension ``first`` is served first.

    Steps that are legal stay as they are. ``used`` ``(s)`` receives the lanes at every spatial slot.
    """
    dims = sp[META, DIMS]
    for s in range(sp[META, SLOTS]):
        used[s] = 1
    for i in range(dims):
        d = first + i if first + i < dims else first + i - dims
        repair_outside(sp, e, d, used, repair_inside(sp, e, d, used))


@compiled
def axis_words(p: Compiled, q: Compiled, stride: Compiled, dilation: Compiled, box: Compiled) -> Compiled:
    """Return the words along an axis of a box of ``p`` by ``q`` values (rule 1), or of the smallest box around them."""
    if box:
        return stride * (p - 1) + dilation * (q - 1) + 1
    return p * q - max(0, p - dilation) * max(0, q - stride)


@compiled
def tile_bits(sp: Compiled, e: Compiled, g: Compiled) -> Compiled:
    """Return the bits that capacity group ``g`` must hold (DESIGN rules 1 and 10)."""
    s = sp[GROUPS + g, 0]
    total = 0
    for t in range(sp[META, TENSORS]):
        bits = sp[GROUPS + g, 2 + t]
        if bits > 0:
            for a in range(sp[SPANS, t], sp[SPANS, t + 1]):
                q = e[s, sp[a, 3]] if sp[a, 3] >= 0 else 1
                bits *= axis_words(e[s, sp[a, 1]], q, sp[a, 2], sp[a, 4], sp[a, 5])
            total += bits
    return total


@compiled
def capacities_fit(sp: Compiled, e: Compiled) -> Compiled:
    """Whether every tile fits its memory."""
    for g in range(sp[META, GROUP_COUNT]):
        if tile_bits(sp, e, g) > sp[GROUPS + g, 1]:
            return False
    return True


@compiled
def capacities_fit_between(sp: Compiled, e: Compiled, first: Compiled, last: Compiled) -> Compiled:
    """Whether the tiles of the memories from slot ``first`` to slot ``last`` fit them."""
    for g in range(sp[META, GROUP_COUNT]):
        s = sp[GROUPS + g, 0]
        if first <= s <= last and tile_bits(sp, e, g) > sp[GROUPS + g, 1]:
            return False
    return True


@compiled
def small_factor(count: Compiled) -> Compiled:
    """Return the smallest factor above 1 of ``count``."""
    f = 2
    while f * f <= count:
        if count % f == 0:
            return f
        f += 1
    return count


@compiled
def move_out(e: Compiled, d: Compiled, target: Compiled, source: Compiled, factor: Compiled) -> Compiled:
    """Move ``factor`` of dimension ``d`` from slot ``source`` to the slot ``target`` outside it.

    All counts between stay as they are or fall; steps that do not divide are rounded up.
    """
    floor = e[source + 1, d]
    for s in range(target, source):
        e[s + 1, d] = max(ceil_div(e[s + 1, d], factor), floor)


@compiled
def holder(sp: Compiled, e: Compiled, rng: Compiled, first: Compiled, d: Compiled) -> Compiled:
    """Return a random slot from ``first`` inward where dimension ``d`` loops, temporal if possible; or -1."""
    temporal, spatial, seen, others = NONE, NONE, 0, 0
    for s in range(first, sp[META, SLOTS]):
        if e[s + 1, d] < e[s, d]:
            if sp[SLOT + s, KIND] == TEMPORAL:
                seen += 1
                if seen == 1 or below(rng, seen) == 0:
                    temporal = s
            else:
                others += 1
                if others == 1 or below(rng, others) == 0:
                    spatial = s
    return temporal if temporal >= 0 else spatial


@compiled
def held_dimension(sp: Compiled, e: Compiled, rng: Compiled, g: Compiled) -> Compiled:
    """Return a random dimension in which the tile of group ``g`` can be made smaller, or -1."""
    s = sp[GROUPS + g, 0]
    seen, chosen = 0, NONE
    for d in range(sp[META, DIMS]):
        if sp[ANCHOR, d] < s and e[s, d] > 1:
            for t in range(sp[META, TENSORS]):
                if sp[GROUPS + g, 2 + t] > 0 and sp[RELEVANT + t, d] != 0:
                    seen += 1
                    if seen == 1 or below(rng, seen) == 0:
                        chosen = d
                    break
    return chosen


@compiled
def shrink(sp: Compiled, e: Compiled, rng: Compiled, g: Compiled) -> Compiled:
    """Make the tile of group ``g`` smaller in one random dimension; return whether that was possible."""
    d = held_dimension(sp, e, rng, g)
    if d < 0:
        return False
    s = sp[GROUPS + g, 0]
    source, target = holder(sp, e, rng, s, d), s - 1
    while sp[SLOT + target, KIND] != TEMPORAL or sp[FREE + target, d] == 0:
        target -= 1
    count = ceil_div(e[source, d], e[source + 1, d])
    factor = small_factor(count) if sp[META, PERFECT] != 0 else min(count, 2 + below(rng, TWO))
    move_out(e, d, target, source, factor)
    return True


@compiled
def fit(sp: Compiled, e: Compiled, rng: Compiled) -> Compiled:
    """Shrink tiles until all fit, moving factors outward; return whether they do."""
    for g in range(sp[META, GROUP_COUNT]):
        tries = 0
        while tile_bits(sp, e, g) > sp[GROUPS + g, 1]:
            tries += 1
            if tries > TRIES or not shrink(sp, e, rng, g):
                return False
    return True


@compiled
def store(sp: Compiled, e: Compiled, r: Compiled, steps: Compiled, ranks: Compiled, b: Compiled) -> Compiled:
    """Copy one mapping into place ``b`` of ``steps`` and ``ranks`` ``(s, d, b)``, dimensions of size 1 included."""
    for s in range(sp[META, SLOTS]):
        for d in range(sp[META, ALL_DIMS]):
            steps[s, d, b] = 1
            ranks[s, d, b] = sp[PLACES, d]
        for d in range(sp[META, DIMS]):
            steps[s, sp[ACTIVE, d], b] = e[s + 1, d]
            ranks[s, sp[ACTIVE, d], b] = r[s, d]


@compiled
def load(sp: Compiled, steps: Compiled, ranks: Compiled, b: Compiled, e: Compiled, r: Compiled) -> Compiled:
    """Copy the mapping at place ``b`` of ``steps`` and ``ranks`` ``(s, d, b)`` out."""
    for d in range(sp[META, DIMS]):
        at = sp[ACTIVE, d]
        e[0, d] = sp[SIZES, d]
        for s in range(sp[META, SLOTS]):
            e[s + 1, d] = steps[s, at, b]
            r[s, d] = ranks[s, at, b]
