"""Compiled bounds of whole mappings: what no order of their loops can beat.

They follow the closed forms of the counting rules, ragged edges included: exact but for what sliding windows save
between visits, of which all is taken off that an order could save, and for rounding. A dimension counts by its table of
pieces, the extents that its loops cut it into and how often each occurs.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import (
    COUNTS,
    EXTENTS,
    NONE,
    RANKS,
    Compiled,
    axis_words,
    compiled,
    dims_of,
    entry,
    inlined,
    load,
)
from tilewright.mapping.spaces.rules import arrays as table
from tilewright.search.mappers.auto.tables import CUT, FED, FIRST, IGNORED, INSIDE, KNOWN, MERGED
from tilewright.search.mappers.exact.kernels import charge, total, worth
from tilewright.search.mappers.exact.room import SLACK, words_of
from tilewright.search.mappers.exact.tables import CHILD, CYCLES, KEY, MEMORY, OUTSIDE, TENSOR

# All sources whose functions and constants end up inside others.
named = stamped(Path(__file__).parents[1] / f"{name}.py" for name in (
    "auto/bounds", "auto/tables", "exact/kernels", "exact/room", "exact/tables", "gamma/kernels", "../objective"))


@compiled
def cut(modes: Compiled, k: Compiled, e: Compiled, d: Compiled, size: Compiled, parts: Compiled) -> Compiled:
    """Write the pieces of dimension ``d`` by loops as row ``k`` of ``modes`` says to ``parts`` ``(2, .)``.

    Row 0 has extents, row 1 how often they occur; the first is that of full pieces. Return how many there are.
    """
    parts[0, 0], parts[1, 0] = size, 1.0
    count = 1
    for s in range(modes.shape[1]):
        if modes[k, s] == IGNORED or e[s + 1, d] >= e[s, d]:
            continue
        step, before = np.float64(e[s + 1, d]), count
        full = 0.0
        for i in range(before):
            extent, often = parts[0, i], parts[1, i]
            if extent < step:
                continue
            if modes[k, s] == FIRST:
                full += often
                rest = 0.0
            else:
                times = np.floor(extent / step)
                full += often * times
                rest = extent - times * step
            if i > 0:
                parts[0, i] = rest
                if rest == 0.0:
                    parts[1, i] = 0.0
            elif rest > 0.0:
                parts[0, count], parts[1, count] = rest, often
                count += 1
        parts[0, 0], parts[1, 0] = step, full
    return count


@inlined
def known_row(e: Compiled, d: Compiled, room: Compiled, first: Compiled, slots: Compiled) -> Compiled:
    """Return the row of ``room`` for the steps of dimension ``d``, and whether its counts stand there already.

    The rows begin with the steps that they are of.
    """
    mixed = 0
    for s in range(slots):
        mixed = mixed * 31 + e[s + 1, d]
    at, known = first + d * KNOWN + (mixed ^ (mixed >> 7)) % KNOWN, True
    for s in range(slots):
        if room[at, s] != e[s + 1, d]:
            known = False
            room[at, s] = e[s + 1, d]
    return at, known


@inlined
def count_into(tables: Compiled, e: Compiled, d: Compiled, size: Compiled, row: Compiled, parts: Compiled) -> Compiled:
    """Write to ``row`` ``(k)`` into how many pieces dimension ``d`` falls by each row of the modes."""
    modes, ways = tables.modes, len(tables.modes)
    for k in range(ways):
        row[k] = 1.0
    ragged = False
    for s in range(modes.shape[1]):
        if e[s + 1, d] < e[s, d]:
            step = np.float64(e[s + 1, d])
            times = np.float64(e[s, d]) / step
            whole = np.floor(times)
            if whole != times:
                ragged = True
                break
            for k in range(ways):
                if modes[k, s] == CUT:
                    row[k] *= whole
    if ragged:
        for k in range(ways):
            total = 0.0
            for i in range(cut(modes, k, e, d, size, parts)):
                total += parts[1, i]
            row[k] = total


@inlined
def ramping(tables: Compiled, e: Compiled, last: Compiled) -> Compiled:
    """Return the least cycles in which first tiles come in and last ones go out; ``last`` are the extents then."""
    slots, ramp = tables.memory_slots, tables.ramp
    total, worst, before = 0.0, 0.0, -1.0
    for i in range(len(ramp)):
        if ramp[i, KEY] != before:
            total, worst, before = total + worst, 0.0, ramp[i, KEY]
        s, comes = slots[np.int64(ramp[i, OUTSIDE]), np.int64(ramp[i, MEMORY])], np.int64(ramp[i, KEY]) & 1 == 0
        cycles = 0.0
        for t in range(tables.tensors):
            if ramp[i, CYCLES + t] > 0:
                tile = e[s] if comes else last[s]
                cycles += ramp[i, CYCLES + t] * words_of(tables.rules.axes, tables.rules.spans, t, tile)
        worst = max(worst, np.ceil(cycles * SLACK))
    return total + worst


@inlined
def last_into(sp: Compiled, tables: Compiled, e: Compiled, last: Compiled) -> Compiled:
    """Write the extents outside each slot at the end, of the first lane in the last iteration, to ``last``."""
    lanes = tables.lanes
    for d in range(dims_of(sp)):
        extent = sp[table.SIZES, d]
        last[0, d] = extent
        for s in range(len(lanes)):
            step = e[s + 1, d]
            if step < e[s, d]:
                extent = min(extent, step) if lanes[s] != 0 else (extent - 1) % step + 1
            last[s + 1, d] = extent


@compiled
def sliding(axes: Compiled, e: Compiled, a: Compiled, modes: Compiled, k: Compiled, sp: Compiled,
            parts: Compiled) -> Compiled:
    """Return the words of all pieces along sliding axis ``a`` together."""
    p, r = axes[a, 0], axes[a, 1]
    firsts = cut(modes, k, e, p, np.float64(sp[table.SIZES, p]), parts)
    seconds = cut(modes, k, e, r, np.float64(sp[table.SIZES, r]), parts[2:])
    total = 0.0
    for i in range(firsts):
        for j in range(seconds):
            total += parts[1, i] * parts[3, j] * axis_words(parts[0, i], parts[2, j], axes[a, 2], axes[a, 3], 0)
    return total


@inlined
def charged(weights: Compiled, row: Compiled) -> Compiled:
    """Whether any weight of a row is not 0."""
    for i in range(weights.shape[1]):
        if weights[row, i] != 0.0:
            return True
    return False


@inlined
def moving(tables: Compiled, sp: Compiled, e: Compiled, b: Compiled, side: Compiled, at: Compiled,
           parts: Compiled) -> Compiled:
    """Return the words of one visit to all tiles at boundary ``b``, of its parent (0) or children (1).

    Along at most one sliding axis, loops at memory ``at`` bring in only what is new. 0 where none are charged for it.
    """
    axes, spans, windows = tables.rules.axes, tables.rules.spans, tables.windows
    t, places = tables.rules.edges[b, TENSOR], tables.memories + 1
    if side == 1 and not charged(tables.rules.weights, len(tables.rules.edges) + b):
        return 0.0
    total, saved = tables.plain_words[t], 1.0
    for a in range(spans[t], spans[t + 1]):
        if axes[a, 1] >= 0:
            k = (b * 2 + side) * places
            words = sliding(axes, e, a, windows, k, sp, parts)
            total *= words
            if at >= 0 and tables.counting[b] != 0:
                saved = min(saved, sliding(axes, e, a, windows, k + 1 + at, sp, parts) / words)
    return max(total * saved, tables.rules.words[t])


@compiled
def sharing(tables: Compiled, e: Compiled, b: Compiled, t: Compiled) -> Compiled:
    """Return how many lanes share an access by compute at boundary ``b`` along sliding axes."""
    axes, spans, windows = tables.rules.axes, tables.rules.spans, tables.windows
    shared, k = 1.0, b * 2 * (tables.memories + 1)
    for a in range(spans[t], spans[t + 1]):
        if axes[a, 1] >= 0:
            p, r = 1.0, 1.0
            for s in range(windows.shape[1]):
                if windows[k, s] == IGNORED:
                    p *= np.ceil(np.float64(e[s, axes[a, 0]]) / e[s + 1, axes[a, 0]])
                    r *= np.ceil(np.float64(e[s, axes[a, 1]]) / e[s + 1, axes[a, 1]])
            if p * r > 1:
                shared *= p * r / axis_words(p, r, axes[a, 2], axes[a, 3], 0)
    return shared


@inlined
def moved(sp: Compiled, tables: Compiled, e: Compiled, m: Compiled, t: Compiled) -> Compiled:
    """Whether a loop at memory ``m`` moves tensor ``t``."""
    s, used = tables.memory_slots[INSIDE, m], tables.used
    for d in range(dims_of(sp)):
        if e[s + 1, d] < e[s, d] and used[t, d] != 0:
            return True
    return False


@inlined
def visits(tables: Compiled, product: Compiled, b: Compiled, side: Compiled, advancing: Compiled) -> Compiled:
    """Return how often all of the tensor crosses boundary ``b`` where so many memories have loops that advance it."""
    k = tables.mode_of[b, side, advancing]
    return product[tables.rules.edges[b, TENSOR], k] if k >= 0 else 1.0


@inlined
def feed(tables: Compiled, sums: Compiled, e: Compiled, b: Compiled, product: Compiled, lanes: Compiled) -> Compiled:
    """Charge what compute reads or writes at boundary ``b``; every instance that feeds it takes part in each step."""
    weights, t, macs = tables.rules.weights, tables.rules.edges[b, TENSOR], tables.rules.macs
    if tables.counting[b] == MERGED:
        fed = tables.accesses[t] * visits(tables, product, b, 0, tables.memories) / sharing(tables, e, b, t)
        charge(tables.rules, sums, 0, b, max(tables.rules.words[t], fed), macs)
        return
    charge(tables.rules, sums, 0, b, macs, macs)
    if tables.counting[b] == FED:
        more = product[tables.tensors, 0] * lanes - macs
        for i in range(1, weights.shape[1]):
            sums[0, i] += weights[b, i] * more


@inlined
def tally(sp: Compiled, tables: Compiled, e: Compiled, product: Compiled, lanes: Compiled, sums: Compiled,
          parts: Compiled) -> Compiled:
    """Sum up the least that crosses all boundaries; row 0 of ``sums`` in any order, then by memory and class resting.

    Columns are energy and the cycles of every port (``weights``). Return the memories where it matters, as bits.
    """
    edges, weights, classes = tables.rules.edges, tables.rules.weights, tables.rules.classes
    memories, n, ways, matters = tables.memories, len(edges), len(classes), 0
    for i in range(weights.shape[1]):
        sums[0, i] = weights[2 * n, i]
        for k in range((memories - 1) * ways):
            sums[1 + k, i] = 0.0
    for b in range(n):
        t, child = edges[b, TENSOR], edges[b, CHILD]
        if child == memories:
            feed(tables, sums, e, b, product, lanes)
            continue
        at = child - 1
        while at >= 0 and not moved(sp, tables, e, at, t):
            at -= 1
        out, into = moving(tables, sp, e, b, 0, at, parts), moving(tables, sp, e, b, 1, at, parts)
        read, filled = visits(tables, product, b, 0, at + 1), visits(tables, product, b, 1, at + 1)
        if at < 0:
            charge(tables.rules, sums, 0, b, out * read, into * filled)
            continue
        less, fewer = visits(tables, product, b, 0, at), visits(tables, product, b, 1, at)
        charge(tables.rules, sums, 0, b, out * less, into * fewer)
        if less < read or fewer < filled:
            matters |= 1 << at
            for k in range(ways):
                if classes[k, t] == 0:
                    charge(tables.rules, sums, 1 + at * ways + k, b, out * (read - less), into * (filled - fewer))
    return matters


@inlined
def least(tables: Compiled, steps: Compiled, ahead: Compiled, sums: Compiled, factors: Compiled, matters: Compiled,
          cut: Compiled) -> Compiled:
    """Return the least score over all kinds of order, and that kind; none where it cannot be below ``cut``.

    ``matters`` are memories, as bits. The kinds stand in the order of numbers whose last digit is that of the last
    memory: those that only differ where it does not matter are skipped together.
    """
    kinds, ways = tables.rules.picks, len(tables.rules.classes)
    best, which = np.inf, 0
    if total(tables.rules, steps, ahead, sums, 0, factors, NONE) >= cut:
        return best, which
    kind = 0
    while kind < len(kinds):
        others, skipped = len(kinds), 0
        for m in range(kinds.shape[1]):
            others //= ways
            rests = kinds[kind, m] - 1 - m * ways
            if rests > 0 and matters >> m & 1 == 0:
                skipped = (ways - rests) * others
                break
        if skipped > 0:
            kind += skipped
            continue
        found = total(tables.rules, steps, ahead, sums, 0, factors, kind)
        if found < best:
            best, which = found, kind
        kind += 1
    return best, which


@inlined
def steps_of(sp: Compiled, tables: Compiled, e: Compiled, room: Compiled, parts: Compiled) -> Compiled:
    """Return the steps of compute; after that, into how many pieces all dimensions fall stands in ``room``."""
    slots, steps = tables.modes.shape[1], 1.0
    first = tables.tensors + 8 + (tables.memories - 1) * len(tables.rules.classes)
    for d in range(dims_of(sp)):
        at, known = known_row(e, d, room, first, slots)
        if not known:
            count_into(tables, e, d, np.float64(sp[table.SIZES, d]), room[at, slots:], parts)
        steps *= room[at, slots]
    return steps


@inlined
def pieces_into(sp: Compiled, tables: Compiled, e: Compiled, room: Compiled) -> Compiled:
    """Write to ``room`` ``(t, k)`` into how many pieces the dimensions fall that each tensor does not use."""
    used, tensors, ways, slots = tables.used, tables.tensors, len(tables.modes), tables.modes.shape[1]
    first = tensors + 8 + (tables.memories - 1) * len(tables.rules.classes)
    for t in range(tensors):
        for k in range(ways):
            room[t, k] = 1.0
    for d in range(dims_of(sp)):
        row = room[known_row(e, d, room, first, slots)[0], slots:]
        for t in range(tensors):
            if used[t, d] == 0:
                for k in range(ways):
                    room[t, k] *= row[k]


@inlined
def spread(sp: Compiled, tables: Compiled, e: Compiled, factors: Compiled) -> Compiled:
    """Write to ``factors`` how many more words the busiest instance moves at each port than all in the mean.

    Return how many lanes are in use.
    """
    slots, ports, lanes = tables.fanout_slots, tables.rules.ports, 1.0
    for i in range(len(ports)):
        factors[i] = ports[i, 0]
    for f in range(tables.fanouts):
        used = 1.0
        for s in range(slots[0, f], slots[1, f]):
            for d in range(dims_of(sp)):
                if e[s + 1, d] < e[s, d]:
                    used *= np.ceil(np.float64(e[s, d]) / e[s + 1, d])
        lanes *= used
        for i in range(len(ports)):
            factors[i] /= used if f < ports[i, 1] else 1.0
    return lanes


@compiled
def bound_of(sp: Compiled, tables: Compiled, e: Compiled, last: Compiled, room: Compiled, cut: Compiled) -> Compiled:
    """Return what no order of the loops of a mapping can beat, and the kind of order that may come to it.

    Kinds tell, for each memory but the innermost, which class of dimensions runs innermost. ``last`` ``(s + 1, d)`` and
    ``room`` are rooms to work in. Where the bound is not below ``cut``, it may be told as infinite.
    """
    tensors = tables.tensors
    parts, factors, sums = room[tensors + 2:], room[tensors + 6], room[tensors + 7:]
    room[tensors, 0], ahead = steps_of(sp, tables, e, room, parts), 0.0
    steps = room[tensors, 0] * tables.rules.pace
    if worth(tables.rules, steps, tables.least_energy_pj) >= cut:
        return np.inf, 0
    if len(tables.ramp):
        last_into(sp, tables, e, last)
        ahead = ramping(tables, e, last)
        if worth(tables.rules, steps + ahead, tables.least_energy_pj) >= cut:
            return np.inf, 0
    pieces_into(sp, tables, e, room)
    lanes = spread(sp, tables, e, factors)
    matters = tally(sp, tables, e, room, lanes, sums, parts)
    return least(tables, steps, ahead, sums, factors, matters, cut)


@entry
@named
def bounds_into(sp: Compiled, tables: Compiled, work: Compiled, room: Compiled, steps: Compiled, ranks: Compiled,
                out: Compiled) -> Compiled:
    """Write to ``out`` ``(b)`` what no order of the loops of each mapping can beat."""
    for b in range(steps.shape[2]):
        load(sp, steps, ranks, b, work[EXTENTS], work[RANKS])
        out[b] = bound_of(sp, tables, work[EXTENTS], work[COUNTS], room, np.inf)[0]
