"""Compiled: the chains of extents that are left of a part of a space, and the least that they score together."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import NONE, Compiled, compiled, entry
from tilewright.search.dual.kernels import add_way, copy, costs_into
from tilewright.search.dual.parts import FEW, MERGED
from tilewright.search.dual.pieces import (
    least_steps,
    path_into,
    raise_pieces,
    raise_steps,
    rise_into,
)
from tilewright.search.dual.ranges import Floats, Integers
from tilewright.search.dual.records import (
    BEGIN,
    BOUND,
    CELL,
    CYCLES,
    END,
    ENERGY,
    FIRST_LANES,
    LAYER,
    SECOND_LANES,
    WHENCE,
    DualProblem,
    Work,
)
from tilewright.search.mappers.exact.chains import DistinctRows

_named = stamped([Path(__file__).with_name(f"{name}.py") for name in ("records", "parts", "kernels", "pieces")])
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
    came: Integers
    """``(a, 3)``: `WHENCE` it goes on from (-1: none), at which `LAYER` it ends, and in which `CELL`."""
    every: int
    """Which are listed."""
    path: Integers
    pieces: Integers
    rise: Floats
    """What `pieces` works with: cells by layer, kinds of pieces, and how many more there are by tensor."""
    spans: Integers
    lows: Floats
    """``(g, 2)`` and ``(g)``: where the whole chains of a group begin and end, and what the least costs."""

    @classmethod
    def of(cls, work: Work, tensors: int, most: int, every: int) -> "ChainPool":
        """Return one of so many beginnings at most."""
        (groups, _), nodes = work.parts.shape, work.f.shape[1]
        heads, outside, following, node = (np.empty(n, dtype=np.int64) for n in (nodes, nodes, most, most))
        return cls(heads, outside, following, node, np.empty(most), np.empty((most, len(work.point))),
                   np.empty((most, 3), dtype=np.int64), every, np.zeros(len(work.f), dtype=np.int64),
                   np.zeros((1 + len(work.f), 2), dtype=np.int64), np.zeros(tensors),
                   np.zeros((groups, 2), dtype=np.int64), np.zeros(groups))

    @property
    def listed(self) -> int:
        """How many beginnings there are."""
        return len(self.cost) if self.spans.min() < 0 else int(self.spans.max())

    def tried(self, p: DualProblem, bound: float, cut: float, tries: int) -> tuple[float, int]:
        """Return `least` of all chains that are listed, where by the slope nothing scores below ``bound``.

        A billionth below ``cut`` counts as that.
        """
        spans = [slice(*span) for span in self.spans.tolist()]
        found, tried, _ = self._combined(p, [self.cost[span] for span in spans], [self.made[span] for span in spans],
                                         bound, cut, tries, 0)
        return found if found < cut - BOUND else cut, tried

    def combined(self, p: DualProblem, bound: float, cut: float, tries: int, most: int) -> tuple[Integers | None, int]:
        """Return combinations of cells ``(n, g, l)`` that may score below ``cut`` by `tried`, and how many it tried.

        None where they are more than ``most``, or the tries not enough.
        """
        cells, costs, made = [], [], []
        for first, last in self.spans.tolist():
            own = DistinctRows.of(self.cells(np.arange(first, last), p))
            cells.append(own.rows)
            costs.append(np.minimum.reduceat(self.cost[first:last][own.order], own.starts[:-1]))
            made.append(np.minimum.reduceat(self.made[first:last][own.order], own.starts[:-1]))
        _, tried, listed = self._combined(p, costs, made, bound, cut, tries, most)
        if listed is None:
            return None, tried
        return np.stack([own[at] for own, at in zip(cells, listed.T, strict=True)], axis=1), tried

    def _combined(self, p: DualProblem, costs: Sequence[Floats], made: Sequence[Floats], bound: float, cut: float,
                  tries: int, most: int) -> tuple[float, int, Integers | None]:
        """Return what `least` does of chains of all groups: a score, how many it tried, and up to ``most`` below."""
        orders = [np.argsort(cost)[:np.isfinite(cost).sum()] for cost in costs]
        groups = sorted(range(len(costs)), key=lambda g: len(orders[g]))
        listed = np.zeros((most, len(groups)), dtype=np.int64)
        if not len(orders[groups[0]]):
            return cut, 0, listed[:0]
        factors = [np.exp(made[g][orders[g]]) for g in groups]
        rest = np.cumprod([each.min(axis=0) for each in factors[::-1]], axis=0)[::-1]
        starts = np.cumsum([0, *map(len, factors)])
        found, tried, count = least(
            p, np.concatenate([costs[g][orders[g]] - self.lows[g] for g in groups]), np.vstack(factors),
            np.ascontiguousarray(rest), starts, bound, cut - BOUND, tries,
            np.zeros(len(groups), dtype=np.int64), np.zeros(len(groups)),
            np.ones((len(groups) + 2, self.made.shape[1])), listed)
        if found == -np.inf:
            return found, int(tried), None
        chosen = np.empty((count, len(groups)), dtype=np.int64)
        for k, g in enumerate(groups):
            chosen[:, g] = orders[g][listed[:count, k] - starts[k]]
        return float(found), int(tried), chosen

    def cells(self, ends: Integers, p: DualProblem) -> Integers:
        """Return ``(n, l)`` the cells of whole chains at each layer."""
        layers, at = 2 * p.edge_starts.shape[1], ends
        found, rows = np.full((len(ends), layers + 1), -1, dtype=np.int64), np.arange(len(ends))
        while len(at):
            before, layer, cell = self.came[at].T
            found[rows, layer] = cell
            at, rows = before[before >= 0], rows[before >= 0]
        for layer in range(1, layers):
            found[:, layer] = np.where(found[:, layer] < 0, found[:, layer - 1], found[:, layer])
        return found[:, :layers]


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
def way_into(p: Compiled, index: Compiled, e: Compiled, made: Compiled) -> Compiled:
    """Add to what a chain is made of what a way through an array is, but for its lanes."""
    for i in range(len(index)):
        for k in range(index.shape[1]):
            if p.steps <= index[i, k] < p.steps + p.edges.shape[1]:
                made[i] += p.edges[e, index[i, k] - p.steps]


@compiled
def lanes_onto(p: Compiled, w: Compiled, first: Compiled, last: Compiled, made: Compiled) -> Compiled:
    """Add to what a chain is made of the lanes of some ways to part them: the least of all that are left, by side."""
    at = len(made) - len(p.sides)
    for s in range(len(p.sides)):
        least = np.inf
        for j in range(first, last):
            own = 0.0
            for k in range(2):
                if p.lane_sides[j, k] == p.sides[s]:
                    own += p.lane_logs[j, k]
            if w.sides_left[j] != 0:
                least = min(least, own)
        made[at + s] += least


@compiled
def put(pool: Compiled, count: Compiled, node: Compiled, cost: Compiled) -> Compiled:
    """Keep the beginning ``count`` unless another of its node makes it needless; return how many there are then."""
    made, last = pool.made[count], -1
    at = NONE if pool.every != FEW else pool.heads[node]
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
        path_into(pool, at)
        for i in range(row if moves[m, p.dims[g, 0]] == 0 else 0, row + 1):
            for j in range(column if moves[m, p.dims[g, 1]] == 0 else 0, column + 1):
                c = i * columns + j
                node = state * cells + c
                cost = pool.cost[at] + w.costs[c]
                if cost + w.after[2 * m + 1, node] < most:
                    if pool.every != FEW:
                        cost += rise_into(p, w, g, pool, 2 * m + 1, c)
                        if cost + w.after[2 * m + 1, node] >= most:
                            continue
                    if count >= room:
                        return -1
                    copy(pool.made[at], pool.made[count])
                    cell_into(p, index, 2 * m + 1, base + c, pool.made[count])
                    raise_pieces(p, index, 2 * m + 1, pool, pool.made[count])
                    pool.came[count, WHENCE], pool.came[count, LAYER], pool.came[count, CELL] = at, 2 * m + 1, c
                    count = put(pool, count, node, cost)
    return count


@compiled
def spread_on(p: Compiled, w: Compiled, index: Compiled, g: Compiled, at: Compiled, e: Compiled, cost: Compiled,
              inner: Compiled, pool: Compiled, count: Compiled, most: Compiled) -> Compiled:
    """Let a beginning pass an array by one way, lanes parted in all ways, or as one; return how many there are.

    It ends at layer ``inner``, where it costs ``cost`` without lanes.
    """
    base, node, more = p.cell_starts[g], p.ends[e, END], inner < 2 * p.edge_starts.shape[1]
    cell, steps = node % (p.cell_starts[g + 1] - base), 0.0
    if pool.every != FEW:
        path_into(pool, at)
        if more:
            cost += rise_into(p, w, g, pool, inner, cell)
        else:
            steps = least_steps(p, g, pool)
    one, other, merged = p.ends[e, FIRST_LANES], p.ends[e, SECOND_LANES], pool.every == MERGED
    begin, end = p.lane_spans[one], p.lane_spans[one + 1]
    start, stop = p.lane_spans[other], p.lane_spans[other + 1]
    for i in range(begin, begin + 1 if merged else end):
        for j in range(start, start + 1 if merged else stop):
            whole = cost + (w.lane_cost[one] + w.lane_cost[other] if merged else w.side_cost[i] + w.side_cost[j])
            if whole + w.after[inner, node] >= most:
                continue
            if count >= len(pool.cost):
                return -1
            made = pool.made[count]
            copy(pool.made[at], made)
            way_into(p, index, e, made)
            lanes_onto(p, w, i, end if merged else i + 1, made)
            lanes_onto(p, w, j, stop if merged else j + 1, made)
            if more:
                cell_into(p, index, inner, base + cell, made)
                raise_pieces(p, index, inner, pool, made)
            else:
                whole += raise_steps(p, w, index, steps, made)
                if whole >= most:
                    continue
            pool.came[count, WHENCE], pool.came[count, LAYER], pool.came[count, CELL] = at, inner, cell
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
        for at in range(first, last if pool.every != FEW and not more else first):
            path_into(pool, at)
            pool.cost[at] += raise_steps(p, w, index, least_steps(p, g, pool), pool.made[at])
        if not more:
            return first, last
        for at in range(first, last):
            cell = pool.node[at] % cells
            pool.cost[at] += w.costs[cell]
            cell_into(p, index, inner, base + cell, pool.made[at])
            if pool.every != FEW:
                path_into(pool, at)
                pool.cost[at] += rise_into(p, w, g, pool, inner, cell)
                raise_pieces(p, index, inner, pool, pool.made[at])
        return first, last
    copy(pool.heads, pool.outside)
    pool.heads[:] = -1
    for place in range(w.spans[g, m, 0], w.spans[g, m, 1]):
        e = w.kept[place]
        cell = p.ends[e, END] % cells
        length = add_way(p, w, e, w.costs[cell])
        at = pool.outside[p.ends[e, BEGIN]]
        while at >= 0:
            count = spread_on(p, w, index, g, at, e, pool.cost[at] + length, inner, pool, count, most)
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
    pool.came[begin, WHENCE], pool.came[begin, LAYER], pool.came[begin, CELL] = NONE, 0, cells - 1
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
    if p.factors[CYCLES] > 0:
        found += max(np.log(cycles_of(p, factors)), p.floors[CYCLES])
    if p.factors[ENERGY] > 0:
        energy = 0.0
        for i in range(len(p.weights)):
            energy += taken(p, factors, i, 0)
        found += max(np.log(energy), p.floors[ENERGY])
    return found


@compiled
def together(p: Compiled, made: Compiled, rest: Compiled, g: Compiled, factors: Compiled) -> Compiled:
    """Return the least score (its logarithm) of chains chosen up to group ``g``, which adds ``made`` to ``factors``."""
    groups = len(rest)
    for k in range(len(made)):
        factors[g + 1, k] = factors[g, k] * made[k]
    whole = factors[groups]
    if g + 1 < groups:
        whole = factors[groups + 1]
        for k in range(len(made)):
            whole[k] = factors[g + 1, k] * rest[g + 1, k]
    return scored(p, whole) if has_room(p, whole) else np.inf


@entry
@_named
def least(p: Compiled, over: Compiled, made: Compiled, rest: Compiled, starts: Compiled, bound: Compiled,
          cut: Compiled, tries: Compiled, at: Compiled, sums: Compiled, factors: Compiled,
          listed: Compiled) -> Compiled:
    """Return the least score (its logarithm, ``cut`` at most) of chains of all groups together, and how many it tried.

    With room in ``listed (n, g)`` it returns no least, but lists all below ``cut``, and returns how many there are.

    ``over`` and ``made`` have by how much chains cost too much, ascending, and what they are made of (no logarithms);
    ``rest (g, y)`` the least of that of all groups from one on together.
    After so many ``tries``, or without room, it gives up, at negative infinity.
    """
    groups, g, tried, count, found = len(starts) - 1, 0, 0, 0, cut
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
            return -np.inf, tried, 0
        value = together(p, made[at[g]], rest, g, factors)
        if g + 1 < groups and value < found:
            sums[g + 1] = sums[g] + over[at[g]]
            g += 1
            at[g] = starts[g]
            continue
        if len(listed) == 0:
            found = min(found, value)
        elif value < found:
            if count == len(listed):
                return -np.inf, tried, 0
            copy(at, listed[count])
            count += 1
        at[g] += 1
    return found, tried, count
