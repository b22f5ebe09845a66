"""Compiled: the chains of extents that are left of a part of a space, and the least that they score together."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import NONE, Compiled, compiled, entry
from tilewright.search.dual.kernels import add_way, copy, costs_into
from tilewright.search.dual.problem import BOUND, DualProblem, Work
from tilewright.search.dual.ranges import Floats, Integers

_named = stamped([Path(__file__).with_name(f"{name}.py") for name in ("problem", "kernels")])
ALIKE = 1e-12
"""By how much (in logarithms) what one chain is made of may be above that of another that makes it needless."""


class ChainPool(NamedTuple):
    """Beginnings of chains of a group."""

    heads: Integers
    outside: Integers
    """The first of a node at the layer that is worked on (-1: none), and at the layer outside an array."""
    next: Integers
    """The next of the same node."""
    node: Integers
    """Where each ends."""
    cost: Floats
    """What each costs so far; infinite where another makes it needless."""
    made: Floats
    """``(a, y)``: what each is made of."""
    spans: Integers
    lows: Floats
    """``(g, 2)`` and ``(g)``: where the whole chains of a group begin and end, and what the least costs."""

    @classmethod
    def of(cls, work: Work, most: int) -> "ChainPool":
        """Return one of so many beginnings at most."""
        (groups, _), nodes = work.parts.shape, work.f.shape[1]
        heads, outside, following, node = (np.empty(n, dtype=np.int64) for n in (nodes, nodes, most, most))
        return cls(heads, outside, following, node, np.empty(most), np.empty((most, work.lines.shape[1])),
                   np.zeros((groups, 2), dtype=np.int64), np.zeros(groups))

    def tried(self, p: DualProblem, bound: float, cut: float, tries: int) -> tuple[float, int]:
        """Return `least` of all chains that are listed, where by the slope nothing scores below ``bound``.

        A billionth below ``cut`` counts as that.
        """
        costs = [self.cost[first:last] for first, last in self.spans.tolist()]
        orders = [np.argsort(cost)[:np.isfinite(cost).sum()] for cost in costs]
        groups = sorted(range(len(costs)), key=lambda g: len(orders[g]))
        if not len(orders[groups[0]]):
            return cut, 0
        made = [np.exp(self.made[self.spans[g, 0]:self.spans[g, 1]][orders[g]]) for g in groups]
        rest = np.cumprod([each.min(axis=0) for each in made[::-1]], axis=0)[::-1]
        found, tried = least(
            p, np.concatenate([costs[g][orders[g]] - self.lows[g] for g in groups]), np.vstack(made),
            np.ascontiguousarray(rest), np.cumsum([0, *map(len, made)]), bound, cut - BOUND, tries,
            np.zeros(len(groups), dtype=np.int64), np.zeros(len(groups)),
            np.ones((len(groups) + 2, self.made.shape[1])))
        return float(found if found < cut - BOUND else cut), int(tried)


@compiled
def cell_into(p: Compiled, index: Compiled, layer: Compiled, cell: Compiled, made: Compiled) -> Compiled:
    """Add to what a chain is made of what a cell is at a layer."""
    terms, width = len(index), p.cells.shape[1]
    first = layer * width
    for i in range(terms):
        for k in range(index.shape[1]):
            if first <= index[i, k] < first + width:
                made[i] += p.cells[cell, index[i, k] - first]
    for q in range(p.rooms.shape[0]):
        for t in range(p.rooms.shape[1]):
            if first <= p.held[q, t, 0] < first + width:
                made[terms + q * p.rooms.shape[1] + t] += p.cells[cell, p.held[q, t, 0] - first]


@compiled
def way_into(p: Compiled, index: Compiled, e: Compiled, one: Compiled, other: Compiled, made: Compiled) -> Compiled:
    """Add to what a chain is made of what a way through an array is, its lanes parted in two ways."""
    terms, rooms = len(index), p.rooms.size
    for i in range(terms):
        for k in range(index.shape[1]):
            if p.steps <= index[i, k] < p.steps + p.edges.shape[1]:
                made[i] += p.edges[e, index[i, k] - p.steps]
    for s in range(len(p.sides)):
        for k in range(2):
            if p.lane_sides[one, k] == p.sides[s]:
                made[terms + rooms + s] += p.lane_logs[one, k]
            if p.lane_sides[other, k] == p.sides[s]:
                made[terms + rooms + s] += p.lane_logs[other, k]


@compiled
def put(pool: Compiled, count: Compiled, node: Compiled, cost: Compiled) -> Compiled:
    """Keep the beginning ``count`` unless another of its node makes it needless; return how many there are then."""
    made, last = pool.made[count], -1
    at = pool.heads[node]
    while at >= 0:
        better, worse = True, True
        for k in range(len(made)):
            if pool.made[at, k] > made[k] + ALIKE:
                better = False
            if made[k] > pool.made[at, k] + ALIKE:
                worse = False
            if not (better or worse):
                break
        if better:
            return count
        after = pool.next[at]
        if worse:
            pool.cost[at] = np.inf
            if last < 0:
                pool.heads[node] = after
            else:
                pool.next[last] = after
        else:
            last = at
        at = after
    pool.node[count], pool.cost[count] = node, cost
    pool.next[count], pool.heads[node] = pool.heads[node], count
    return count + 1


@compiled
def loop_on(p: Compiled, w: Compiled, index: Compiled, moves: Compiled, g: Compiled, m: Compiled, pool: Compiled,
            first: Compiled, last: Compiled, most: Compiled) -> Compiled:
    """Let loops at memory ``m`` cut the extents of beginnings ``first`` to ``last``; return how many there are."""
    columns, base = p.shapes[g, 1], p.cell_starts[g]
    cells, count, room = p.cell_starts[g + 1] - base, last, len(pool.cost)
    costs_into(p, w, g, 2 * m + 1)
    pool.heads[:] = -1
    for at in range(first, last):
        if pool.cost[at] == np.inf:
            continue
        state, cell = pool.node[at] // cells, pool.node[at] % cells
        row, column = cell // columns, cell % columns
        for i in range(row if moves[m, p.dims[g, 0]] == 0 else 0, row + 1):
            for j in range(column if moves[m, p.dims[g, 1]] == 0 else 0, column + 1):
                c = i * columns + j
                node = state * cells + c
                cost = pool.cost[at] + w.costs[c]
                if cost + w.after[2 * m + 1, node] < most:
                    if count >= room:
                        return -1
                    copy(pool.made[at], pool.made[count])
                    cell_into(p, index, 2 * m + 1, base + c, pool.made[count])
                    count = put(pool, count, node, cost)
    return count


@compiled
def spread_on(p: Compiled, w: Compiled, index: Compiled, at: Compiled, e: Compiled, cell: Compiled, cost: Compiled,
              inner: Compiled, pool: Compiled, count: Compiled, most: Compiled) -> Compiled:
    """Let a beginning pass an array by one way, its lanes parted in all ways; return how many there are.

    ``cell`` is that at layer ``inner`` where it ends (-1: at compute), ``cost`` what it costs there without lanes.
    """
    node = p.ends[e, 1]
    for one in range(p.lane_spans[p.ends[e, 2]], p.lane_spans[p.ends[e, 2] + 1]):
        for other in range(p.lane_spans[p.ends[e, 3]], p.lane_spans[p.ends[e, 3] + 1]):
            whole = cost + w.side_cost[one] + w.side_cost[other]
            if whole + w.after[inner, node] < most:
                if count >= len(pool.cost):
                    return -1
                copy(pool.made[at], pool.made[count])
                way_into(p, index, e, one, other, pool.made[count])
                if cell >= 0:
                    cell_into(p, index, inner, cell, pool.made[count])
                count = put(pool, count, node, whole)
    return count


@compiled
def pass_on(p: Compiled, w: Compiled, index: Compiled, g: Compiled, m: Compiled, pool: Compiled, first: Compiled,
            last: Compiled, most: Compiled) -> Compiled:
    """Let beginnings pass what lies inside memory ``m``; return where they begin, and how many there are."""
    base, inner = p.cell_starts[g], 2 * m + 2
    cells, count, more = p.cell_starts[g + 1] - base, last, m < p.edge_starts.shape[1] - 1
    if more:
        costs_into(p, w, g, inner)
    else:
        w.costs[:] = 0.0
    if p.edge_starts[g, m, 0] == p.edge_starts[g, m, 1]:
        if not more:
            return first, last
        for at in range(first, last):
            cell = pool.node[at] % cells
            pool.cost[at] += w.costs[cell]
            cell_into(p, index, inner, base + cell, pool.made[at])
        return first, last
    copy(pool.heads, pool.outside)
    pool.heads[:] = -1
    for place in range(w.spans[g, m, 0], w.spans[g, m, 1]):
        e = w.kept[place]
        cell = p.ends[e, 1] % cells
        length = add_way(p, w, e, w.costs[cell])
        at = pool.outside[p.ends[e, 0]]
        while at >= 0:
            count = spread_on(p, w, index, at, e, base + cell if more else NONE, pool.cost[at] + length, inner, pool,
                              count, most)
            if count < 0:
                return first, count
            at = pool.next[at]
    return last, count


@compiled
def chains_of(p: Compiled, w: Compiled, index: Compiled, moves: Compiled, g: Compiled, most: Compiled, pool: Compiled,
              begin: Compiled) -> Compiled:
    """List the chains of a group that cost less than ``most`` in the pool, from ``begin`` on, after `remove` of it.

    Return where the whole ones begin and end (-1: there is no room for all).
    """
    memories, cells = p.edge_starts.shape[1], p.cell_starts[g + 1] - p.cell_starts[g]
    if begin >= len(pool.cost):
        return 0, -1
    pool.heads[:] = -1
    costs_into(p, w, g, 0)
    pool.made[begin, :] = 0.0
    cell_into(p, index, 0, p.cell_starts[g] + cells - 1, pool.made[begin])
    first, last = begin, put(pool, begin, cells - 1, w.costs[cells - 1])
    for m in range(memories):
        count = loop_on(p, w, index, moves, g, m, pool, first, last, most)
        if count < 0:
            return 0, -1
        first, last = pass_on(p, w, index, g, m, pool, last, count, most)
        if last < 0:
            return 0, -1
    return first, last


@compiled
def has_room(p: Compiled, factors: Compiled) -> Compiled:
    """Whether what chains make together (no logarithms) fits all memories and arrays."""
    terms, tensors = len(p.weights), p.rooms.shape[1]
    for q in range(p.rooms.shape[0]):
        held = 0.0
        for t in range(tensors):
            held += np.exp(p.rooms[q, t]) * factors[terms + q * tensors + t]
        if held > 1.0 + BOUND:
            return False
    for s in range(len(p.sides)):
        if np.log(factors[terms + p.rooms.size + s]) > p.limits[s] + BOUND:
            return False
    return True


@compiled
def taken(p: Compiled, factors: Compiled, i: Compiled, column: Compiled) -> Compiled:
    """Return what a term takes of one kind."""
    other = p.others[i]
    return p.weights[i, column] * (factors[i] if other < 0 else max(factors[i], factors[other]))


@compiled
def cycles_of(p: Compiled, factors: Compiled) -> Compiled:
    """Return the cycles of what chains make together: whole ones of all that goes on at once, and of each stage."""
    most, cycles, stage = 0.0, 0.0, 0.0
    for r in range(1, p.weights.shape[1]):
        total = 0.0
        for i in range(len(p.weights)):
            if p.stages[i] == 0:
                total += taken(p, factors, i, r)
        most = max(most, total)
    for i in range(len(p.weights)):
        if p.stages[i] > 0:
            stage += taken(p, factors, i, 1)
            if i + 1 == len(p.weights) or p.stages[i + 1] != p.stages[i]:
                cycles += np.ceil(stage * (1.0 - BOUND))
                stage = 0.0
    return cycles + np.ceil(most * (1.0 - BOUND))


@compiled
def scored(p: Compiled, factors: Compiled) -> Compiled:
    """Return the logarithm of the score of what chains make together (no logarithms)."""
    found = p.scale
    if p.factors[0] > 0:
        found += max(np.log(cycles_of(p, factors)), p.floors[0])
    if p.factors[1] > 0:
        energy = 0.0
        for i in range(len(p.weights)):
            energy += taken(p, factors, i, 0)
        found += max(np.log(energy), p.floors[1])
    return found


@entry
@_named
def least(p: Compiled, over: Compiled, made: Compiled, rest: Compiled, starts: Compiled, bound: Compiled,
          cut: Compiled, tries: Compiled, at: Compiled, sums: Compiled, factors: Compiled) -> Compiled:
    """Return the least score (its logarithm, ``cut`` at most) of chains of all groups together, and how many it tried.

    ``over`` and ``made`` have by how much chains cost too much, ascending, and what they are made of (no logarithms);
    ``rest (g, y)`` the least of that of all groups from one on together.
    After so many ``tries`` it gives up, at negative infinity.
    """
    groups, g, tried, found = len(starts) - 1, 0, 0, cut
    at[0], sums[0] = starts[0], bound
    factors[0, :] = 1.0
    while g >= 0:
        if at[g] >= starts[g + 1] or sums[g] + over[at[g]] >= found:
            g -= 1
            if g >= 0:
                at[g] += 1
            continue
        tried += 1
        if tried > tries:
            return -np.inf, tried
        for k in range(factors.shape[1]):
            factors[g + 1, k] = factors[g, k] * made[at[g], k]
        whole = factors[groups]
        if g + 1 < groups:
            whole = factors[groups + 1]
            for k in range(factors.shape[1]):
                whole[k] = factors[g + 1, k] * rest[g + 1, k]
        value = scored(p, whole) if has_room(p, whole) else np.inf
        if g + 1 < groups and value < found:
            sums[g + 1] = sums[g] + over[at[g]]
            g += 1
            at[g] = starts[g]
        else:
            found = min(found, value)
            at[g] += 1
    return found, tried
