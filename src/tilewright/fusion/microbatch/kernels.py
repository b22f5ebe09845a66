"""The compiled parts: scores of whole batches of strategies, their repair, and which partial plans are worth keeping.

Strategies are ``(b, n)`` for ``n`` entries, of which the first is the input; ``tables`` are `records.GroupTables`.
"""
# ruff: noqa: PLR0913, PLR0917, C901  (arrays as arguments compile fastest)

from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from tilewright.base import kept, part_options, stamped
from tilewright.fusion.microbatch import records
from tilewright.fusion.microbatch.records import (
    COMPUTE,
    ENERGY,
    FETCHED,
    GROUP_FIGURES,
    LATENCY,
    MEMORY,
    OFFCHIP,
    OFFCHIP_CYCLES,
    ONCHIP,
    ONCHIP_CYCLES,
)

FIGURES = len(GROUP_FIGURES)
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions that only compiled functions call.
_part = njit(**_OPTIONS, **part_options())
_named = stamped([Path(records.__file__)])


def _entry(function):
    """Compile a function for Python to call, and keep it on disk."""
    return kept(njit(**_OPTIONS)(_named(function)))


@_part
def measure_group(plan, first, last, tables, told):
    """Fill ``told`` ``(FIGURES)`` of the group of entries ``first`` to ``last``."""
    sizes, reads, held, rates = tables.sizes, tables.reads, tables.held, tables.rates
    memory, compute, read, written, passing = 0.0, 0.0, 0.0, 0.0, 0.0
    once, again = 0.0, 0.0
    for q in range(first, last + 1):
        staged = plan[q] > 0
        if staged:
            memory += plan[q] * tables.tiles[q]
        if q == 0:
            if staged:
                read += sizes[0]
                passing += sizes[0]
            continue
        least = plan[q] if staged else tables.batch
        for c in range(tables.held_starts[q], tables.held_starts[q + 1]):
            if held[c, 0] >= first and held[c, 1] <= last:
                least = min(least, plan[held[c, 0]])
        for c in range(tables.read_starts[q], tables.read_starts[q + 1]):
            passing += sizes[reads[c, 1]]
            if reads[c, 1] < first:
                read += sizes[reads[c, 1]]
        if q == last or tables.read_last[q] > last:
            written += sizes[q]
        passing += sizes[q]
        compute += tables.cycles[q]
        once += tables.weights[q]
        again += tables.weights[q] * ((tables.batch + least - 1) // least)
    # Weights of a whole group stay where they fit together; else each run of a micro-batch fetches them anew.
    fetched = once if once <= tables.weight_bytes else again
    read += fetched
    passing += fetched
    off, on = (read + written) * rates.offchip_cycles, passing * rates.onchip_cycles
    latency = max(compute, off, on)
    told[LATENCY] = latency
    told[ENERGY] = (read * rates.read_pj + written * rates.write_pj + passing * rates.onchip_pj
                    + compute * rates.compute_pj + latency * rates.leakage_pj)
    told[MEMORY], told[COMPUTE], told[OFFCHIP_CYCLES], told[ONCHIP_CYCLES] = memory, compute, off, on
    told[OFFCHIP], told[FETCHED], told[ONCHIP] = read + written, fetched, passing


@_entry
def score_plans(plans, tables, figures):
    """Fill ``figures`` ``(b, FIGURES)``: sums over groups, but of the memory the largest."""
    told = np.empty(FIGURES)
    for b in range(len(plans)):
        figures[b] = 0.0
        first = 0
        for q in range(plans.shape[1]):
            if plans[b, q] > 0 and q < plans.shape[1] - 1:
                continue
            measure_group(plans[b], first, q, tables, told)
            first = q + 1
            for f in range(FIGURES):
                figures[b, f] = max(figures[b, f], told[f]) if f == MEMORY else figures[b, f] + told[f]


@_entry
def group_figures(plan, tables, ends, figures):
    """Fill the last entries ``ends`` ``(n)`` of the groups of one strategy, and their figures; return how many."""
    first, count = 0, 0
    for q in range(len(plan)):
        if plan[q] > 0 and q < len(plan) - 1:
            continue
        measure_group(plan, first, q, tables, figures[count])
        ends[count] = q
        first, count = q + 1, count + 1
    return count


@_entry
def repair_plans(plans, batch, tiles, memory):
    """Make strategies fit, in place: micro-batches of a group shrink alike; where that is not enough, it is split.

    Each becomes the least with as many runs, before and after. What is still too much at one sample each ends the group
    at the largest result.
    """
    for b in range(len(plans)):
        plan = plans[b]
        first, q = 0, 0
        while q < len(plan):
            if plan[q] > 0 and q < len(plan) - 1:
                q += 1
                continue
            used = 0.0
            for i in range(first, q + 1):
                if plan[i] > 0:
                    runs = (batch + plan[i] - 1) // plan[i]
                    plan[i] = (batch + runs - 1) // runs
                    used += plan[i] * tiles[i]
            while used > memory:
                share, used, largest = memory / used, 0.0, -1
                smaller = False
                for i in range(first, q + 1):
                    if plan[i] > 0:
                        wanted = max(1, int(plan[i] * share))
                        runs = (batch + wanted - 1) // wanted
                        wanted = (batch + runs - 1) // runs
                        smaller |= wanted < plan[i]
                        plan[i] = wanted
                        used += wanted * tiles[i]
                        if largest < 0 or tiles[i] > tiles[largest]:
                            largest = i
                # All stand at their least: only a cut helps, and the largest result frees most.
                if used > memory and not smaller:
                    plan[largest] = -1
                    q, used = largest, 0.0
                    for i in range(first, q):
                        used += plan[i] * tiles[i]
            first, q = q + 1, q + 1


@_part
def choose_sizes(ranges, size, used, turns, choices, memory, at):
    """Fill ``at``: the choices below sizes of ranges; what is left lets them grow, in turn, by half and two at most."""
    left = memory
    for i in range(ranges):
        at[i] = max(0, np.searchsorted(choices, size[i], side="right") - 1)
        left -= choices[at[i]] * used[i]
    for i in turns:
        while i < ranges and at[i] + 1 < len(choices) and choices[at[i] + 1] <= 1.5 * size[i] + 2:
            more = (choices[at[i] + 1] - choices[at[i]]) * used[i]
            if more > left:
                break
            left -= more
            at[i] += 1


@_entry
def fill_plans(plans, places, steps, shared, turns, tiles, weights, choices, memory):
    """Let the micro-batches of the group at a place (none where it is negative) of each strategy fill the memory.

    Where ``shared`` ``(b)``, entries from one of ``steps`` ``(b, n)`` to the next take one micro-batch, as the root of
    the bytes of weights that come again over those of its samples: so neither more runs of one range nor of another
    would be better, if runs were no whole numbers. Else all grow alike. They become the ``choices`` ``(c)``, which
    rise, below that; what is left is spent in ``turns`` ``(b, n)``, a permutation each.
    """
    count = plans.shape[1]
    begin, used = np.empty(count + 1, np.int64), np.empty(count)
    size, at = np.empty(count), np.empty(count, np.int64)
    for b in range(len(plans)):
        plan, first = plans[b], places[b]
        while first > 0 and plan[first - 1] > 0:
            first -= 1
        last = max(0, first)
        while first >= 0 and last < count and plan[last] > 0:
            last += 1
        ranges, again = 0, 0.0
        for q in range(first, last):
            if q == first or not shared[b] or steps[b, q]:
                begin[ranges], used[ranges], again = q, 0.0, weights[q] if q == first else 0.0
                ranges += 1
            used[ranges - 1] += tiles[q]
            again += weights[q + 1] if q + 1 < count else 0.0
            size[ranges - 1] = np.sqrt((again + 1) / max(used[ranges - 1], 1.0)) if shared[b] else plan[q]
        begin[ranges] = last
        # Those at the largest choice leave room to the others: a few rounds of scaling come near enough.
        for _ in range(3):
            taken = 0.0
            for i in range(ranges):
                taken += size[i] * used[i]
            for i in range(ranges):
                size[i] = min(size[i] * memory / taken, choices[-1])
        choose_sizes(ranges, size, used, turns[b], choices, memory, at)
        for i in range(ranges):
            for q in range(begin[i], begin[i + 1]):
                plan[q] = choices[at[i]]


@_entry
def know_groups(plans, begin, which, costs, rows, tables):
    """Let the groups of ``plans`` ``(b, n)`` from row ``begin`` on be known, where none is better.

    ``costs`` ``(n, n)`` are the figures (``which`` of them) of the best known group from an entry to another, ``rows``
    ``(n, n)`` the plan that it is of.
    """
    ends, figures = np.empty(plans.shape[1], np.int64), np.empty((plans.shape[1], FIGURES))
    for b in range(begin, len(plans)):
        first = 0
        for g in range(group_figures(plans[b], tables, ends, figures)):
            last = ends[g]
            if figures[g, which] < costs[first, last]:
                costs[first, last], rows[first, last] = figures[g, which], b
            first = last + 1


@_part
def copy_group(plans, rows, first, last, plan):
    """Take the entries of a group, up to ``last``, from the strategy that is best there."""
    for q in range(first, last):
        plan[q] = plans[rows[first, last - 1], q]


@_part
def least_above(values, known):
    """Return where the least of the finite values above one is, -1 where none is."""
    found, least = -1, np.inf
    for at in range(len(values)):
        if known < values[at] < least:
            found, least = at, values[at]
    return found


@_entry
def join_groups(plans, costs, rows, found):
    """Fill ``found`` ``(m, n)`` with the best strategies of known groups, the best first; return how many there are.

    Of those with one group only the best counts, and of those that cost the same one.
    """
    count = plans.shape[1]
    before, after = np.full(count + 1, np.inf), np.full(count + 1, np.inf)
    begin, end = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    before[0], after[count] = 0.0, 0.0
    for last in range(count):
        for first in range(last + 1):
            cost = before[first] + costs[first, last]
            if cost < before[last + 1]:
                before[last + 1], begin[last + 1] = cost, first
    for first in range(count - 1, -1, -1):
        for last in range(first, count):
            cost = costs[first, last] + after[last + 1]
            if cost < after[first]:
                after[first], end[first] = cost, last + 1
    values = np.full(count * count, np.inf)
    for first in range(count):
        for last in range(first, count):
            values[first * count + last] = before[first] + costs[first, last] + after[last + 1]
    known = 0.0
    for made in range(len(found)):
        # One strategy is found from each of its groups, its cost summed up in another order: rounding apart, the same.
        at = least_above(values, known * (1 + 1e-12))
        if at < 0:
            return made
        known, first, last = values[at], at // count, at % count + 1
        copy_group(plans, rows, first, last, found[made])
        while first > 0:
            copy_group(plans, rows, begin[first], first, found[made])
            first = begin[first]
        while last < count:
            copy_group(plans, rows, last, end[last], found[made])
            last = end[last]
    return len(found)


@_entry
def group_table(tables, figures):
    """Fill ``figures`` ``(n, n, FIGURES)`` of the groups from an entry to another whose weights come once."""
    count = len(tables.tiles)
    plan = np.full(count, tables.batch)
    for first in range(count):
        for last in range(first, count):
            plan[last] = -1
            measure_group(plan, first, last, tables, figures[first, last])
            plan[last] = tables.batch


@_entry
def group_rest(first, last, price, tiles, weights, reach, sizes, runs, pairs, found):
    """Fill ``found`` ``(last + 1, s, s)``: what entries from each on cost at least, in bytes that come again.

    A byte of memory costs its price. ``found[q, a, c]`` is where micro-batch ``a`` of ``sizes`` ``(s)``, which fall,
    holds the result before ``q``, and ``c`` the one that is held for longest besides, if ``pairs`` are told apart; 0
    where none does. Other results hold nothing, so that it is a bound. ``reach`` ``(n)`` are the last readers.
    """
    count = len(sizes)
    besides = np.full(last + 1, -1)
    for q in range(first, last + 1):
        for p in range(first, q - 1):
            if pairs and reach[p] >= q and (besides[q] < 0 or reach[p] > reach[besides[q]]):
                besides[q] = p
    for q in range(last, first - 1, -1):
        held = count if q > first and reach[q - 1] >= q else 1
        for a in range(held):
            for c in range(count if besides[q] >= 0 else 1):
                least = max(a, c)
                if q == last:
                    found[q, a, c] = weights[q] * (runs[least] - 1)
                    continue
                best = np.inf
                for own in range(count):
                    after = a if besides[q + 1] == q - 1 else c if besides[q + 1] >= 0 else 0
                    cost = weights[q] * (runs[max(least, own)] - 1) + price * tiles[q] * sizes[own]
                    best = min(best, cost + found[q + 1, own if reach[q] > q else 0, after])
                found[q, a, c] = best


@_entry
def undominated(values, found):
    """Set in ``found`` ``(l)`` which rows ``(l, v)`` no other one is at least as good as, in all of its values.

    They are sorted by their values; of equal ones the first is kept.
    """
    front = np.empty(len(values), np.int64)
    count = 0
    for i in range(len(values)):
        worse = False
        for j in range(count):
            worse = True
            for v in range(values.shape[1]):
                if values[front[j], v] > values[i, v]:
                    worse = False
                    break
            if worse:
                break
        found[i] = not worse
        if not worse:
            front[count] = i
            count += 1
