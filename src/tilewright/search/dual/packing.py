"""Compiled: by how much bounds rise where lanes of all dimensions have to fit an array together (see `pack`)."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

import numpy as np

from tilewright.mapping.spaces.kernels import Compiled, compiled

MOST_NODES = 2_000
"""Loads of the first groups that are looked at for one array, at most."""


@compiled
def add_load(p: Compiled, load: Compiled, first: Compiled, source: Compiled, count: Compiled, target: Compiled,
             bins: Compiled) -> Compiled:
    """Write to ``target`` lanes along sides that fit where a load comes on top of ``source``; return how many.

    Only those that none are below in both, in order of the first. Where so many lanes fit the first side that they
    share a bin, the least along either side stand for them, which fit wherever one of them does.
    """
    wide, high, most = p.many[first], p.many[first + 1], len(bins) - 1
    bins[:, 1] = np.inf
    for i in range(count):
        for j in range(p.fit_starts[load], p.fit_starts[load + 1]):
            x, y = source[i, 0] * p.fits[j, 0], source[i, 1] * p.fits[j, 1]
            if x <= wide and y <= high:
                at = np.int64(x if wide <= most else x / wide * most)
                bins[at, 0] = x if bins[at, 1] == np.inf else min(x, bins[at, 0])
                bins[at, 1] = min(y, bins[at, 1])
    found, least = 0, np.inf
    for k in range(most + 1):
        if bins[k, 1] < least:
            least = bins[k, 1]
            target[found, 0], target[found, 1] = bins[k, 0], least
            found += 1
    return found


@compiled
def fits_on(p: Compiled, load: Compiled, first: Compiled, source: Compiled, count: Compiled) -> Compiled:
    """Whether a load fits on top of any lanes of ``source``; both are in order of lanes along the first side."""
    wide, high, start = p.many[first], p.many[first + 1], p.fit_starts[load]
    j = p.fit_starts[load + 1] - 1
    for i in range(count):
        while j >= start and source[i, 0] * p.fits[j, 0] > wide:
            j -= 1
        if j < start:
            return False
        if source[i, 1] * p.fits[j, 1] <= high:
            return True
    return False


@compiled
def loads_into(p: Compiled, w: Compiled, m: Compiled) -> Compiled:
    """Write by how much the least chains exceed those of their groups, by their load of the array inside a memory.

    ``through`` is what chains cost at least that go a way. Loads of a group are put in order of that.
    """
    w.loads[0] = np.inf
    for g in range(len(p.dims)):
        first, end, least = p.load_starts[g, m], p.load_starts[g, m + 1], np.inf
        for at in range(w.spans[g, m, 0], w.spans[g, m, 1]):
            load = p.loads[w.kept[at]]
            if w.ways_left[w.kept[at]] != 0:
                w.loads[0, load] = min(w.loads[0, load], w.through[at])
                least = min(least, w.through[at])
        for load in range(first, end):
            w.loads[0, load] -= least
            w.loads[1, load] = w.lane_cost[p.load_rows[load, 0]] + w.lane_cost[p.load_rows[load, 1]]
            k = load
            while k > first and w.loads[0, w.order[k - 1]] > w.loads[0, load]:
                w.order[k] = w.order[k - 1]
                k -= 1
            w.order[k] = load
        for at in range(w.spans[g, m, 0], w.spans[g, m, 1]):
            w.through[at] -= least


@compiled
def search(p: Compiled, w: Compiled, m: Compiled, first: Compiled, base: Compiled, gap: Compiled,
           every: Compiled) -> Compiled:
    """Return by how much the least chains that fit an array together exceed the bound, ``gap`` at most; -1: not known.

    With ``every``, what others add at least to each load is written to ``loads[2]``, where that is below ``gap``.
    """
    last, best, nodes, depth = len(p.dims) - 1, gap, 0, 0
    w.fronts[0, 0] = 1.0
    w.counts[0], w.turn[0] = 1, p.load_starts[0, m]
    w.spent[0, 0] = w.spent[1, 0] = 0.0
    while depth >= 0:
        k = w.turn[depth]
        most = gap if every else best
        if k == p.load_starts[depth, m + 1] or not w.spent[0, depth] + w.loads[0, w.order[k]] < most:
            depth -= 1
            continue
        w.turn[depth] = k + 1
        nodes += 1
        if nodes > MOST_NODES:
            return -1.0
        load = w.order[k]
        spent, lanes = w.spent[0, depth] + w.loads[0, load], w.spent[1, depth] + w.loads[1, load]
        if depth == last:
            total = spent + max(0.0, base - lanes)
            if total < most and fits_on(p, load, first, w.fronts[depth], w.counts[depth]):
                best = min(best, total)
                for g in range(last + 1 if every else 0):
                    load = w.order[w.turn[g] - 1]
                    w.loads[2, load] = min(w.loads[2, load], total - w.loads[0, load])
            continue
        count = add_load(p, load, first, w.fronts[depth], w.counts[depth], w.fronts[depth + 1], w.bins)
        if count > 0:
            depth += 1
            w.counts[depth], w.turn[depth] = count, p.load_starts[depth, m]
            w.spent[0, depth], w.spent[1, depth] = spent, lanes
    return best


@compiled
def pack(p: Compiled, w: Compiled, gap: Compiled) -> Compiled:
    """Return by how much a bound rises where lanes of all dimensions have to fit the sides of an array together.

    At a slope chains cost what a limit's price is of their lanes; ``through`` is that of chains by way. Any mapping's
    lanes fit both sides at once, each dimension's parted between them in one way. So no mapping costs less than the
    least chains that do, and for those that do no price need be paid for lanes: what limits take off for it is paid
    back. Ways of which no chains that fit exceed the bound by less than ``gap`` are removed.
    """
    rise = 0.0
    for m in range(p.edge_starts.shape[1]):
        first, end = p.limit_starts[m], p.limit_starts[m + 1]
        if first == end:
            continue
        loads_into(p, w, m)
        base = 0.0
        for s in range(first, end):
            base += w.slope[p.sides[s]] * p.limits[s]
        w.loads[2] = np.inf
        found = search(p, w, m, first, base, gap, True)
        if found < 0.0:
            found = search(p, w, m, first, base, gap, False)
        else:
            for g in range(len(p.dims)):
                for at in range(w.spans[g, m, 0], w.spans[g, m, 1]):
                    if w.loads[2, p.loads[w.kept[at]]] + w.through[at] >= gap:
                        w.ways_left[w.kept[at]] = 0
        rise = max(rise, found)
    return rise
