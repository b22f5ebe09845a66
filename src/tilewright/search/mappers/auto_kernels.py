"""Compiled parts of the mapper `auto`: bounds of whole mappings, and children chosen by them."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.arrays import DIMS, META, ORDER_COUNT, SIZES, SLOT, SLOTS
from tilewright.mapping.spaces.kernels import ZERO, Compiled, chance, compiled, entry, fit, load, store
from tilewright.mapping.spaces.sampling import EXTENTS, LANES, RANKS, ROWS
from tilewright.mapping.spaces.signature import remember, signature
from tilewright.search.mappers.gamma_kernels import conceive

FOLLOWING = 0.8
"""Chance that a candidate's loops are put into the order that its bound asks for."""
SLACK = 1 - 1e-9
# Its functions end up inside ours.
_named = stamped([Path(__file__).parent / "gamma_kernels.py"])


@compiled
def describe(sp: Compiled, tariff: Compiled, e: Compiled, d: Compiled, row: Compiled) -> Compiled:
    """Write to ``row`` what dimension ``d`` multiplies.

    Pieces and counts by memory and tensor, lanes by fan-out and tensor (1 for tensors that use it), and steps.
    """
    where, relevant, shape = tariff[0], tariff[1], tariff[2]
    memories, fans, tensors = shape[0], shape[1], shape[2]
    size = np.float64(sp[SIZES, d])
    at = 0
    for m in range(memories):
        s = where[0, m]
        outside = np.float64(e[s, d])
        pieces = np.ceil(size / outside)
        for t in range(tensors):
            row[at + t] = pieces if relevant[t, d] == 0 else 1.0
        at += tensors
    for m in range(memories):
        s = where[0, m]
        count = np.ceil(np.float64(e[s, d]) / e[s + 1, d]) if e[s + 1, d] < e[s, d] else 1.0
        for t in range(tensors):
            row[at + t] = count if relevant[t, d] == 0 else 1.0
        at += tensors
    spread = 1.0
    for f in range(fans):
        lanes = 1.0
        for s in range(where[2, f], where[3, f]):
            if e[s + 1, d] < e[s, d]:
                lanes *= np.ceil(np.float64(e[s, d]) / e[s + 1, d])
        spread *= lanes
        for t in range(tensors):
            row[at + t] = lanes if relevant[t, d] == 0 else 1.0
        row[at + tensors] = lanes
        at += tensors + 1
    row[at] = np.ceil(size / spread)


@compiled
def words_in(tariff: Compiled, e: Compiled, s: Compiled, t: Compiled) -> Compiled:
    """Return the words of tensor ``t`` in the tile outside slot ``s``."""
    axes, spans = tariff[3], tariff[4]
    total = 1.0
    for a in range(spans[t], spans[t + 1]):
        p = np.float64(e[s, axes[a, 0]])
        if axes[a, 1] >= 0:
            r = np.float64(e[s, axes[a, 1]])
            p = p * r - max(0.0, p - axes[a, 3]) * max(0.0, r - axes[a, 2])
        total *= p
    return total


@compiled
def ramping(tariff: Compiled, e: Compiled) -> Compiled:
    """Return the least cycles in which first tiles come in, and (where tiles all divide) last ones go out."""
    where, tensors, ramp = tariff[0], tariff[2][2], tariff[10]
    total, worst, before = 0.0, 0.0, -1.0
    for i in range(len(ramp)):
        if ramp[i, 0] != before:
            total, worst, before = total + worst, 0.0, ramp[i, 0]
        s = where[np.int64(ramp[i, 2]), np.int64(ramp[i, 1])]
        cycles = 0.0
        for t in range(tensors):
            if ramp[i, 3 + t] > 0:
                cycles += ramp[i, 3 + t] * words_in(tariff, e, s, t)
        worst = max(worst, cycles)
    return total + worst


@compiled
def sharing(tariff: Compiled, e: Compiled, b: Compiled, t: Compiled, product: Compiled) -> Compiled:
    """Return how many lanes share an access by compute at boundary ``b``."""
    where, axes, spans, share, shape = tariff[0], tariff[3], tariff[4], tariff[6], tariff[2]
    memories, fans, tensors = shape[0], shape[1], shape[2]
    shared, first = 1.0, 2 * memories * tensors
    for f in range(fans):
        if share[b, f] != 0:
            shared *= product[first + f * (tensors + 1) + t]
    for a in range(spans[t], spans[t + 1]):
        if axes[a, 1] >= 0:
            p, r = 1.0, 1.0
            for f in range(fans):
                if share[b, f] != 0:
                    for s in range(where[2, f], where[3, f]):
                        p *= np.ceil(np.float64(e[s, axes[a, 0]]) / e[s + 1, axes[a, 0]])
                        r *= np.ceil(np.float64(e[s, axes[a, 1]]) / e[s + 1, axes[a, 1]])
            if p * r > 1:
                shared *= p * r / (p * r - max(0.0, p - axes[a, 3]) * max(0.0, r - axes[a, 2]))
    return shared


@compiled
def charge(tariff: Compiled, sums: Compiled, place: Compiled, b: Compiled, out: Compiled, into: Compiled) -> Compiled:
    """Add to row ``place`` of ``sums`` what ``out`` words at the parent and ``into`` at the children of ``b`` take."""
    weights, n = tariff[7], len(tariff[5])
    for i in range(len(weights)):
        sums[place, i] += weights[i, b] * out + weights[i, n + b] * into


@compiled
def merging(tariff: Compiled, b: Compiled, t: Compiled, product: Compiled) -> Compiled:
    """Return how many lanes share a word of tensor ``t`` at boundary ``b`` between memories."""
    share, (memories, fans, tensors) = tariff[6], tariff[2][:3]
    merged, first = 1.0, 2 * memories * tensors
    for f in range(fans):
        if share[b, f] != 0:
            merged *= product[first + f * (tensors + 1) + t]
    return merged


@compiled
def tally(sp: Compiled, tariff: Compiled, e: Compiled, product: Compiled, sums: Compiled) -> Compiled:
    """Sum up the least that crosses all boundaries; row 0 of ``sums`` in any order, then by memory and class resting.

    Columns are energy and the cycles of every port (``weights``).
    """
    edges, weights, limits, words, classes = tariff[5], tariff[7], tariff[8], tariff[11], tariff[12]
    memories, tensors, n, ways = tariff[2][0], tariff[2][2], len(edges), len(classes)
    for i in range(len(weights)):
        sums[0, i] = weights[i, 2 * n]
        for k in range((memories - 1) * ways):
            sums[1 + k, i] = 0.0
    for b in range(n):
        t, child = edges[b, 0], edges[b, 2]
        if child == memories:
            charge(tariff, sums, 0, b, max(words[t], limits[0] / sharing(tariff, e, b, t, product)), limits[0])
            continue
        still, at = 1.0, -1
        for s in range(child - 1, -1, -1):
            if moved(sp, tariff, e, s, t):
                at = s
                break
            still *= product[(memories + s) * tensors + t]
        merged = merging(tariff, b, t, product)
        pieces = product[child * tensors + t]
        often = max(1.0, pieces / still)
        if at < 0 or product[(memories + at) * tensors + t] == 1.0:
            charge(tariff, sums, 0, b, words[t] * max(1.0, often / merged), words[t] * often)
            continue
        rest = max(1.0, pieces / (still * product[(memories + at) * tensors + t]))
        for k in range(ways):
            each = rest if classes[k, t] != 0 else often
            charge(tariff, sums, 1 + at * ways + k, b, words[t] * max(1.0, each / merged), words[t] * each)


@compiled
def moved(sp: Compiled, tariff: Compiled, e: Compiled, m: Compiled, t: Compiled) -> Compiled:
    """Whether a loop at memory ``m`` moves tensor ``t``."""
    s, relevant = tariff[0][0, m], tariff[1]
    for d in range(sp[META, DIMS]):
        if e[s + 1, d] < e[s, d] and relevant[t, d] != 0:
            return True
    return False


@compiled
def total(tariff: Compiled, steps: Compiled, ahead: Compiled, sums: Compiled, kind: Compiled) -> Compiled:
    """Return the score where the loops at the memories rest as number ``kind`` says."""
    limits, terms, weights = tariff[8], tariff[9], tariff[7]
    places, ways = tariff[2][0] - 1, len(tariff[12])
    cycles, energy = steps, 0.0
    for i in range(len(weights)):
        value, left = sums[0, i], kind
        for m in range(places):
            value += sums[1 + m * ways + left % ways, i]
            left //= ways
        if i == 0:
            energy = value
        else:
            cycles = max(cycles, value)
    cycles += ahead
    energy += limits[1] * cycles
    found = 0.0
    for i in range(len(terms)):
        value = terms[i, 0]
        if terms[i, 1] > 0:
            value *= cycles
        if terms[i, 2] > 0:
            value *= energy
        found += value
    return found * SLACK


@compiled
def bound_of(sp: Compiled, tariff: Compiled, e: Compiled, room: Compiled) -> Compiled:
    """Return what no order of the loops of a mapping can beat, and the kind of order that may come to it.

    Kinds tell, for each memory but the innermost, which class of dimensions runs innermost.
    """
    width = tariff[2][3]
    product, row = room[0], room[1]
    for j in range(width):
        product[j] = 1.0
    for d in range(sp[META, DIMS]):
        describe(sp, tariff, e, d, row)
        for j in range(width):
            product[j] *= row[j]
    ahead = ramping(tariff, e) if len(tariff[10]) else 0.0
    sums = room[2:]
    tally(sp, tariff, e, product, sums)
    best, which = np.inf, 0
    for kind in range(tariff[2][4]):
        found = total(tariff, product[width - 1], ahead, sums, kind)
        if found < best:
            best, which = found, kind
    return best, which


@compiled
def set_orders(sp: Compiled, tariff: Compiled, r: Compiled, kind: Compiled, keys: Compiled) -> Compiled:
    """Let the class of dimensions that ``kind`` names run innermost at every memory, else in the order as it is."""
    where, relevant, classes, dims = tariff[0], tariff[1], tariff[12], sp[META, DIMS]
    ways, left = len(classes), kind
    for m in range(tariff[2][0] - 1):
        s, k = where[0, m], left % ways
        left //= ways
        if sp[SLOT + s, ORDER_COUNT] > 0:
            continue
        for d in range(dims):
            rests = 1
            for t in range(tariff[2][2]):
                if (classes[k, t] != 0) == (relevant[t, d] != 0):
                    rests = 0
            keys[d] = r[s, d] + dims * rests
        for d in range(dims):
            place = 0
            for other in range(dims):
                place += keys[other] < keys[d]
            r[s, d] = place


@entry
@_named
def bounds_into(sp: Compiled, tariff: Compiled, work: Compiled, room: Compiled, steps: Compiled, ranks: Compiled,
                out: Compiled) -> Compiled:
    """Write to ``out`` ``(b)`` what no order of the loops of each mapping can beat."""
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, work[EXTENTS], work[RANKS])
        out[b] = bound_of(sp, tariff, work[EXTENTS], room)[0]


@compiled
def copy(source: Compiled, target: Compiled, rows: Compiled, columns: Compiled) -> Compiled:
    """Copy the first rows and columns of one array to another."""
    for s in range(rows):
        for d in range(columns):
            target[s, d] = source[s, d]


@entry
@_named
def propose(sp: Compiled, rng: Compiled, rates: Compiled, work: Compiled, kept: Compiled, seen: Compiled,
            steps: Compiled, ranks: Compiled, places: Compiled, parents: Compiled, children: Compiled,
            child_ranks: Compiled, span: Compiled, limit: Compiled, most: Compiled, tariff: Compiled,
            room: Compiled) -> Compiled:
    """Write the children of a population to places ``span[0]`` to ``span[1]`` of two arrays ``(s, d, b)``.

    Each is the first of up to ``most`` candidates that fits, was no child before and whose bound is below ``limit``;
    if none is, that of the least bound. The population and its ``parents`` are as in `gamma_kernels.breed`; without
    any, candidates are drawn. Most have their loops in the order that the bound asks for. ``kept`` ``(2, s + 1, d)`` is
    room for the best candidate.
    """
    e, r, rows, dims = work[EXTENTS], work[RANKS], sp[META, SLOTS], sp[META, DIMS]
    bounded = len(tariff[9]) > 0
    for b in range(span[0], span[1]):
        least, found = np.inf, False
        for _ in range(most):
            conceive(sp, rng, rates, work, steps, ranks, places, parents, ZERO)
            if not fit(sp, e, rng):
                continue
            bound = 0.0
            if bounded:
                bound, kind = bound_of(sp, tariff, e, room)
                if found and bound >= least:
                    continue
                if chance(rng) < FOLLOWING:
                    set_orders(sp, tariff, r, kind, work[ROWS, LANES])
            if not remember(seen, signature(sp, e, r)):
                continue
            least, found = bound, True
            copy(e, kept[0], rows + 1, dims)
            copy(r, kept[1], rows, dims)
            if bound < limit:
                break
        if found:
            store(sp, kept[0], kept[1], children, child_ranks, b)
        else:
            store(sp, e, r, children, child_ranks, b)
