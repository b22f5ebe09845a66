"""Compiled maximiser of dual bounds: shortest paths over extents, one group of dimensions at a time (see `problem`)."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import Compiled, compiled, entry
from tilewright.search.dual.problem import NEVER

_named = stamped([Path(__file__).with_name("problem.py")])
STEEPEST, BOUND = 32.0, 1e-9
"""The most that a capacity or an array may be priced, and what rounding may have added to a bound's logarithm."""
FIRST_SHARPNESS = 32.0
"""How sharply the largest of several is told from the others at first."""
SHIFTS, ENOUGH, RIDGE = 12, 0.1, 1e-6
"""How often weight is shifted before chains are looked for anew, at most; what part of all there is to gain may be left
then; and what keeps steps short where nothing bends."""
LOOKS, LEVEL = 12, 0.05
"""Points of a line that are looked at at most, and what part of its first slope counts as none."""


@compiled
def copy(source: Compiled, target: Compiled) -> Compiled:
    """Copy one vector to another."""
    for k in range(len(source)):
        target[k] = source[k]


@compiled
def blend(values: Compiled, count: Compiled, sharpness: Compiled, shares: Compiled) -> Compiled:
    """Write the shares of values in their smooth largest; return that."""
    top, total = values[0], 0.0
    for i in range(1, count):
        top = max(top, values[i])
    for i in range(count):
        shares[i] = np.exp(sharpness * (values[i] - top))
        total += shares[i]
    for i in range(count):
        shares[i] /= total
    return top + np.log(total) / sharpness


@compiled
def view(p: Compiled, index: Compiled, x: Compiled, y: Compiled) -> Compiled:
    """Write what terms, rooms and limits are made of at ``x`` to ``y`` (their logarithms, but for what is constant)."""
    terms, rooms = len(index), p.rooms.size
    for i in range(terms):
        y[i] = 0.0
        for k in range(index.shape[1]):
            if index[i, k] >= 0:
                y[i] += x[index[i, k]]
    for q in range(p.rooms.shape[0]):
        for t in range(p.rooms.shape[1]):
            y[terms + q * p.rooms.shape[1] + t] = x[p.held[q, t, 0]]
    for s in range(len(p.sides)):
        y[terms + rooms + s] = x[p.sides[s]]


@compiled
def slope_into(p: Compiled, index: Compiled, pull: Compiled, slope: Compiled) -> Compiled:
    """Write the slope by ``x`` that the slope ``pull`` by what `view` writes comes to."""
    terms, rooms = len(index), p.rooms.size
    slope[:] = 0.0
    for i in range(terms):
        for k in range(index.shape[1]):
            if index[i, k] >= 0:
                slope[index[i, k]] += pull[i]
    for q in range(p.rooms.shape[0]):
        for t in range(p.rooms.shape[1]):
            slope[p.held[q, t, 0]] += pull[terms + q * p.rooms.shape[1] + t]
    for s in range(len(p.sides)):
        slope[p.sides[s]] += pull[terms + rooms + s]


@compiled
def add_up(p: Compiled, y: Compiled, sums: Compiled, grown: Compiled) -> Compiled:
    """Write the terms to ``grown``, and energy and the cycles of each port to ``sums``, in units of the largest term.

    Return the logarithm of that.
    """
    terms, top = len(p.weights), y[0]
    for i in range(1, terms):
        top = max(top, y[i])
    sums[:] = 0.0
    for i in range(terms):
        grown[i] = np.exp(y[i] - top)
        for r in range(p.weights.shape[1]):
            sums[r] += p.weights[i, r] * grown[i]
    return top


@compiled
def factor_into(p: Compiled, first: Compiled, last: Compiled, floor: Compiled, top: Compiled, sharpness: Compiled,
                room: Compiled, pull: Compiled) -> Compiled:
    """Add the slope of a factor of the score to ``pull``, the largest of its floor and some sums.

    Return its logarithm, smooth, and by its parts.
    """
    tops, shares, sums, grown = room[0], room[1], room[2], room[3]
    tops[0] = floor
    for r in range(first, last):
        tops[1 + r - first] = np.log(sums[r]) + top if sums[r] > 0.0 else NEVER
    smooth = blend(tops, 1 + last - first, sharpness, shares)
    parts = shares[0] * floor
    for r in range(first, last):
        share = shares[1 + r - first]
        parts += share * tops[1 + r - first]
        if sums[r] > 0.0:
            for i in range(len(p.weights)):
                pull[i] += share / sums[r] * p.weights[i, r] * grown[i]
    return smooth, parts


@compiled
def climb(p: Compiled, y: Compiled, sharpness: Compiled, room: Compiled, pull: Compiled) -> Compiled:
    """Write the slope of the score's logarithm, prices included, at ``y``; return it, smooth, and by its parts.

    ``y`` is what `view` writes. The second is convex in it and its slope is ``pull``: what lies below it anywhere
    bounds the score.
    """
    smooth, parts, at = p.scale, p.scale, len(p.weights)
    top = add_up(p, y, room[2], room[3])
    pull[:] = 0.0
    for k in range(2):
        if p.factors[k] > 0:
            first, last = (0, 1) if k == 1 else (1, p.weights.shape[1])
            whole, some = factor_into(p, first, last, p.floors[k], top, sharpness, room, pull)
            smooth += whole
            parts += some
    tops, shares = room[0], room[1]
    for q in range(p.rooms.shape[0]):
        tensors = p.rooms.shape[1]
        for t in range(tensors):
            tops[t] = p.rooms[q, t] + y[at + t]
        over = blend(tops, tensors, 1.0, shares)
        price, cost = priced(over, sharpness)
        for t in range(tensors):
            pull[at + t] = price * shares[t]
        at += tensors
        smooth += cost
        parts += price * over
    for s in range(len(p.sides)):
        over = y[at + s] - p.limits[s]
        price, cost = priced(over, sharpness)
        pull[at + s] = price
        smooth += cost
        parts += price * over
    return smooth, parts


@compiled
def priced(over: Compiled, sharpness: Compiled) -> Compiled:
    """Return the price of what is over a limit by so much (in logarithms), and its smooth cost."""
    steep = sharpness * over
    if steep > 40.0:
        return STEEPEST, STEEPEST * over
    grown = np.exp(steep)
    return STEEPEST * grown / (1.0 + grown), STEEPEST * np.log(1.0 + grown) / sharpness


@compiled
def lanes_into(p: Compiled, w: Compiled) -> Compiled:
    """Write what each way to part lanes between sides costs, and each row of lanes at least, with the way that does."""
    for i in range(len(p.lane_spans) - 1):
        w.lane_cost[i], w.chosen[i] = np.inf, p.lane_spans[i]
        for j in range(p.lane_spans[i], p.lane_spans[i + 1]):
            value = 0.0 if w.sides_left[j] != 0 else np.inf
            for k in range(2):
                if p.lane_sides[j, k] >= 0:
                    value += w.slope[p.lane_sides[j, k]] * p.lane_logs[j, k]
            w.side_cost[j] = value
            if value < w.lane_cost[i]:
                w.lane_cost[i], w.chosen[i] = value, j


@compiled
def costs_into(p: Compiled, w: Compiled, g: Compiled, layer: Compiled) -> Compiled:
    """Write what the cells of a group cost at a layer by the slope; those that are removed are never taken."""
    first, cells, width = p.cell_starts[g], p.cell_starts[g + 1] - p.cell_starts[g], p.cells.shape[1]
    for c in range(cells):
        w.costs[c] = 0.0 if w.cells[layer, first + c] != 0 else np.inf
    for k in range(width):
        price = w.slope[layer * width + k]
        if price != 0.0:
            for c in range(cells):
                w.costs[c] += price * p.cells[first + c, k]


@compiled
def add_costs(costs: Compiled, cells: Compiled, states: Compiled, f: Compiled) -> Compiled:
    """Add to the costs of nodes what their cells cost."""
    for s in range(states):
        for c in range(cells):
            f[s * cells + c] += costs[c]


@compiled
def loops_into(p: Compiled, g: Compiled, m: Compiled, moves: Compiled, f: Compiled, came: Compiled) -> Compiled:
    """Let loops at memory ``m`` cut extents: each node takes the least of those no smaller in both dimensions."""
    rows, columns = p.shapes[g, 0], p.shapes[g, 1]
    cells = rows * columns
    for s in range(p.states[g, 2 * m]):
        for i in range(rows - 1, -1, -1):
            for j in range(columns - 1, -1, -1):
                at = s * cells + i * columns + j
                came[at] = at
                if i + 1 < rows and moves[m, p.dims[g, 0]] != 0 and f[at + columns] < f[at]:
                    f[at], came[at] = f[at + columns], came[at + columns]
                if j + 1 < columns and moves[m, p.dims[g, 1]] != 0 and f[at + 1] < f[at]:
                    f[at], came[at] = f[at + 1], came[at + 1]


@compiled
def loops_back(p: Compiled, g: Compiled, m: Compiled, moves: Compiled, f: Compiled) -> Compiled:
    """Let each node take the least of what loops at memory ``m`` lead to: `loops_into` from compute outward."""
    rows, columns = p.shapes[g, 0], p.shapes[g, 1]
    for at in range(p.states[g, 2 * m] * rows * columns):
        if at // columns % rows > 0 and moves[m, p.dims[g, 0]] != 0:
            f[at] = min(f[at], f[at - columns])
        if at % columns > 0 and moves[m, p.dims[g, 1]] != 0:
            f[at] = min(f[at], f[at - 1])


@compiled
def ways_into(p: Compiled, w: Compiled) -> Compiled:
    """Write which ways through arrays are left between cells that are to ``kept``, and where those of each begin."""
    memories, count = p.edge_starts.shape[1], 0
    for g in range(len(p.dims)):
        first, cells = p.cell_starts[g], p.cell_starts[g + 1] - p.cell_starts[g]
        for m in range(memories):
            w.spans[g, m, 0] = count
            for e in range(p.edge_starts[g, m, 0], p.edge_starts[g, m, 1]):
                if w.ways_left[e] != 0 and w.cells[2 * m + 1, first + p.ends[e, 0] % cells] != 0 and (
                        m == memories - 1 or w.cells[2 * m + 2, first + p.ends[e, 1] % cells] != 0):
                    w.kept[count] = e
                    count += 1
            w.spans[g, m, 1] = count


@compiled
def shortest(p: Compiled, w: Compiled, g: Compiled, moves: Compiled) -> Compiled:
    """Return the least cost of a chain of extents of group ``g`` by the slope, infinite if there is none.

    Write that of chains up to each node to ``f``, by layer, and the least chain to ``path``: its cells by layer, its
    way through the array inside each memory, and the ways to part lanes.
    """
    memories, cells = p.edge_starts.shape[1], p.cell_starts[g + 1] - p.cell_starts[g]
    w.f[0, :cells] = np.inf
    w.f[0, cells - 1] = 0.0
    for m in range(memories):
        count = p.states[g, 2 * m] * cells
        for layer in range(2 * m, 2 * m + 2):
            costs_into(p, w, g, layer)
            add_costs(w.costs, cells, p.states[g, layer], w.f[layer])
            copy(w.f[layer, :count], w.f[layer + 1, :count])
            if layer == 2 * m:
                loops_into(p, g, m, moves, w.f[layer + 1], w.came[layer])
        if p.edge_starts[g, m, 0] == p.edge_starts[g, m, 1]:
            continue
        here, there = w.f[2 * m + 1], w.f[2 * m + 2]
        there[:p.states[g, 2 * m + 2] * cells] = np.inf
        for at in range(w.spans[g, m, 0], w.spans[g, m, 1]):
            e = w.kept[at]
            length = w.lane_cost[p.ends[e, 2]] + w.lane_cost[p.ends[e, 3]]
            for k in range(p.edges.shape[1]):
                length += w.slope[p.steps + k] * p.edges[e, k]
            w.lengths[at] = length
            if here[p.ends[e, 0]] + length < there[p.ends[e, 1]]:
                there[p.ends[e, 1]] = here[p.ends[e, 0]] + length
                w.came[2 * m + 1, p.ends[e, 1]] = e
    found = w.f[2 * memories, 0]
    if found < np.inf:
        trace(p, g, w.chosen, w.came, w.path)
    return found


@compiled
def remove_cells(p: Compiled, w: Compiled, g: Compiled, layer: Compiled, rest: Compiled, most: Compiled) -> Compiled:
    """Remove the cells of a group at a layer through which no chain costs less than ``most``.

    ``rest`` is what nodes cost from there to compute, at least.
    """
    first, cells = p.cell_starts[g], p.cell_starts[g + 1] - p.cell_starts[g]
    for c in range(cells):
        left = False
        for s in range(p.states[g, layer]):
            left = left or w.f[layer, s * cells + c] + rest[s * cells + c] < most
        if not left:
            w.cells[layer, first + c] = 0


@compiled
def remove(p: Compiled, w: Compiled, g: Compiled, moves: Compiled, most: Compiled) -> Compiled:
    """Remove the cells and ways of a group through which no chain costs less than ``most``, after `shortest` of it."""
    memories, cells = p.edge_starts.shape[1], p.cell_starts[g + 1] - p.cell_starts[g]
    here, there = w.rest[0], w.rest[1]
    here[:] = np.inf
    here[0] = 0.0
    for m in range(memories - 1, -1, -1):
        if p.edge_starts[g, m, 0] < p.edge_starts[g, m, 1]:
            there[:] = np.inf
            for at in range(w.spans[g, m, 0], w.spans[g, m, 1]):
                e = w.kept[at]
                rest = w.lengths[at] + here[p.ends[e, 1]]
                there[p.ends[e, 0]] = min(there[p.ends[e, 0]], rest)
                over = w.f[2 * m + 1, p.ends[e, 0]] + rest - most
                if over >= 0.0:
                    w.ways_left[e] = 0
                for k in range(2, 4):
                    w.lane_over[p.ends[e, k]] = min(w.lane_over[p.ends[e, k]], over)
            here, there = there, here
        for layer in range(2 * m + 1, 2 * m - 1, -1):
            if layer == 2 * m:
                loops_back(p, g, m, moves, here)
            remove_cells(p, w, g, layer, here, most)
            costs_into(p, w, g, layer)
            add_costs(w.costs, cells, p.states[g, layer], here)


@compiled
def fix(p: Compiled, w: Compiled, index: Compiled, moves: Compiled, cut: Compiled, sharpness: Compiled,
        x: Compiled) -> Compiled:
    """Remove what no mapping uses that scores below ``cut``, by the bound that holds from the slope at ``x``.

    By that slope a mapping scores no less than the bound, and than how much its chains cost more than the least of
    their groups on top of it, wherever ``x`` is. So what only chains use that cost too much may go, here and in all
    that this part of the space is divided into.
    """
    bound, _ = look(p, w, index, moves, sharpness, x)
    if bound >= cut:
        return
    w.lane_over[:] = np.inf
    for g in range(len(p.dims)):
        remove(p, w, g, moves, shortest(p, w, g, moves) + (cut - bound))
    for i in range(len(w.lane_over)):
        for j in range(p.lane_spans[i], p.lane_spans[i + 1]):
            # Where a row has no way left, nothing is taken off but infinity.
            if w.sides_left[j] != 0 and w.lane_over[i] + (w.side_cost[j] - w.lane_cost[i]) >= 0.0:
                w.sides_left[j] = 0


@compiled
def trace(p: Compiled, g: Compiled, chosen: Compiled, came: Compiled, path: Compiled) -> Compiled:
    """Write the least chain to ``path``, from compute outward."""
    memories, cells = p.edge_starts.shape[1], p.cell_starts[g + 1] - p.cell_starts[g]
    node = np.int64(0)
    for m in range(memories - 1, -1, -1):
        path[2 * memories + m] = path[3 * memories + m] = path[4 * memories + m] = -1
        if p.edge_starts[g, m, 0] < p.edge_starts[g, m, 1]:
            e = np.int64(came[2 * m + 1, node])
            node, path[2 * memories + m] = np.int64(p.ends[e, 0]), e
            path[3 * memories + m], path[4 * memories + m] = chosen[p.ends[e, 2]], chosen[p.ends[e, 3]]
        path[2 * m + 1] = node % cells
        node = np.int64(came[2 * m, node])
        path[2 * m] = node % cells


@compiled
def atom_into(p: Compiled, g: Compiled, path: Compiled, atom: Compiled) -> Compiled:
    """Write what a chain is made of to ``atom``."""
    memories, first, width = p.edge_starts.shape[1], p.cell_starts[g], p.cells.shape[1]
    atom[:] = 0.0
    for m in range(memories):
        for layer in (2 * m, 2 * m + 1):
            for k in range(width):
                atom[layer * width + k] = p.cells[first + path[layer], k]
        e = path[2 * memories + m]
        if e < 0:
            continue
        for k in range(p.edges.shape[1]):
            atom[p.steps + k] += p.edges[e, k]
        for k in range(3, 5):
            row = path[k * memories + m]
            for side in range(2):
                if p.lane_sides[row, side] >= 0:
                    atom[p.lane_sides[row, side]] += p.lane_logs[row, side]


@compiled
def fits(p: Compiled, w: Compiled, g: Compiled, moves: Compiled, path: Compiled) -> Compiled:
    """Whether all that a chain is made of is left, and it loops only where dimensions may."""
    memories, columns, first = p.edge_starts.shape[1], p.shapes[g, 1], p.cell_starts[g]
    for m in range(memories):
        outer, inner, e = path[2 * m], path[2 * m + 1], path[2 * memories + m]
        if w.cells[2 * m, first + outer] == 0 or w.cells[2 * m + 1, first + inner] == 0:
            return False
        if (outer // columns != inner // columns and moves[m, p.dims[g, 0]] == 0) or (
                outer % columns != inner % columns and moves[m, p.dims[g, 1]] == 0):
            return False
        if e >= 0 and (w.ways_left[e] == 0 or w.sides_left[path[3 * memories + m]] == 0
                       or w.sides_left[path[4 * memories + m]] == 0):
            return False
    return True


@compiled
def against(slope: Compiled, atom: Compiled) -> Compiled:
    """Return the product of two vectors."""
    total = 0.0
    for k in range(len(slope)):
        total += slope[k] * atom[k]
    return total


@compiled
def line(p: Compiled, y: Compiled, way: Compiled, most: Compiled, falls: Compiled, sharpness: Compiled, room: Compiled,
         pull: Compiled, at: Compiled) -> Compiled:
    """Return how far along ``way`` the smooth score falls, ``most`` at most; ``falls`` is how steeply it does at first.

    Between two points where it falls and rises the next is where a straight slope would be 0 (Illinois's rule).
    """
    low, high, before, after, step, side = 0.0, most, -falls, 0.0, most, 0
    for _ in range(LOOKS):
        for k in range(len(y)):
            at[k] = y[k] + step * way[k]
        climb(p, at, sharpness, room, pull)
        rise = against(pull, way)
        if rise <= 0.0:
            if step == most or -rise < LEVEL * falls:
                return step
            low, before = step, rise
            if side < 0:
                after *= 0.5
            side = -1
        else:
            if rise < LEVEL * falls:
                return step
            high, after = step, rise
            if side > 0:
                before *= 0.5
            side = 1
        step = (low * after - high * before) / (after - before)
    return low


@compiled
def bend_into(p: Compiled, first: Compiled, last: Compiled, floor: Compiled, top: Compiled, sharpness: Compiled,
              room: Compiled, mean: Compiled, bends: Compiled) -> Compiled:
    """Add the second derivatives of a factor of the score (see `factor_into`) to the lower half of ``bends``."""
    tops, shares, sums, grown, terms = room[0], room[1], room[2], room[3], len(p.weights)
    tops[0] = floor
    for r in range(first, last):
        tops[1 + r - first] = np.log(sums[r]) + top if sums[r] > 0.0 else NEVER
    blend(tops, 1 + last - first, sharpness, shares)
    for i in range(terms):
        mean[i] = 0.0
    for r in range(first, last):
        share = shares[1 + r - first]
        if sums[r] <= 0.0 or share < 1e-12:
            continue
        for i in range(terms):
            part = p.weights[i, r] * grown[i] / sums[r]
            if part > 0.0:
                mean[i] += share * part
                bends[i, i] += share * part
                for j in range(i + 1):
                    bends[i, j] += share * (sharpness - 1.0) * part * p.weights[j, r] * grown[j] / sums[r]
    for i in range(terms):
        for j in range(i + 1):
            bends[i, j] -= sharpness * mean[i] * mean[j]


@compiled
def bend(p: Compiled, y: Compiled, sharpness: Compiled, room: Compiled, mean: Compiled, bends: Compiled) -> Compiled:
    """Write the second derivatives of the smooth score at ``y`` to ``bends``."""
    top, at, tensors = add_up(p, y, room[2], room[3]), len(p.weights), p.rooms.shape[1]
    bends[:] = 0.0
    if p.factors[0] > 0:
        bend_into(p, 1, p.weights.shape[1], p.floors[0], top, sharpness, room, mean, bends)
    if p.factors[1] > 0:
        bend_into(p, 0, 1, p.floors[1], top, sharpness, room, mean, bends)
    tops, shares = room[0], room[1]
    for q in range(p.rooms.shape[0]):
        for t in range(tensors):
            tops[t] = p.rooms[q, t] + y[at + t]
        price, _ = priced(blend(tops, tensors, 1.0, shares), sharpness)
        rise = sharpness * price * (1.0 - price / STEEPEST)
        for t in range(tensors):
            bends[at + t, at + t] += price * shares[t]
            for u in range(t + 1):
                bends[at + t, at + u] += (rise - price) * shares[t] * shares[u]
        at += tensors
    for s in range(len(p.sides)):
        price, _ = priced(y[at + s] - p.limits[s], sharpness)
        bends[at + s, at + s] += sharpness * price * (1.0 - price / STEEPEST)
    for i in range(len(y)):
        for j in range(i):
            bends[j, i] = bends[i, j]


@compiled
def choose(w: Compiled) -> Compiled:
    """Write between which chains weight may move to ``who``: of each group, from or to its heaviest.

    ``ways`` takes the ways that ``y`` then goes, ``solved[0]`` the slopes along them. Return how many there are, and
    what the score falls to the least chains by its slope.
    """
    pull, count, fall = w.lines[1], 0, 0.0
    for g in range(len(w.parts)):
        base, mean, least = 0, 0.0, np.inf
        for a in range(w.parts.shape[1]):
            if w.parts[g, a] >= 0.0:
                w.slopes[a] = against(pull, w.views[g, a])
                mean += w.parts[g, a] * w.slopes[a]
                least = min(least, w.slopes[a])
            if w.parts[g, a] > w.parts[g, base]:
                base = a
        fall += mean - least
        for a in range(w.parts.shape[1]):
            if a != base and (w.parts[g, a] > 0.0 or (w.parts[g, a] == 0.0 and w.slopes[a] < w.slopes[base])):
                w.who[count, 0], w.who[count, 1], w.who[count, 2] = g, a, base
                w.solved[0, count] = w.slopes[a] - w.slopes[base]
                for k in range(len(pull)):
                    w.ways[count, k] = w.views[g, a, k] - w.views[g, base, k]
                count += 1
    return count, fall


@compiled
def solve(matrix: Compiled, count: Compiled, wanted: Compiled, found: Compiled) -> Compiled:
    """Solve a positive definite system for the negative of ``wanted``, by Cholesky's factors in the lower half."""
    for i in range(count):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = np.sqrt(max(value, 1e-12)) if i == j else value / matrix[j, j]
    for i in range(count):
        value = -wanted[i]
        for k in range(i):
            value -= matrix[i, k] * found[k]
        found[i] = value / matrix[i, i]
    for i in range(count - 1, -1, -1):
        value = found[i]
        for k in range(i + 1, count):
            value -= matrix[k, i] * found[k]
        found[i] = value / matrix[i, i]


@compiled
def multiply(w: Compiled, count: Compiled) -> Compiled:
    """Write the second derivatives along all ways to ``products``."""
    for i in range(count):
        for k in range(w.ways.shape[1]):
            w.lines[2, k] = against(w.bends[k], w.ways[i])
        for j in range(i + 1):
            w.products[i, j] = w.products[j, i] = against(w.ways[j], w.lines[2])


@compiled
def newton(w: Compiled, count: Compiled) -> Compiled:
    """Write how weight moves in one step of Newton's to ``solved[1]``; none leaves chains that have none.

    Return how many ways are left of ``count``; their numbers are in ``kept_ways``.
    """
    for i in range(count):
        w.kept_ways[i] = i
    while count > 0:
        for i in range(count):
            for j in range(i + 1):
                w.matrix[i, j] = w.products[w.kept_ways[i], w.kept_ways[j]]
            w.matrix[i, i] = w.matrix[i, i] * (1.0 + RIDGE) + RIDGE
            w.solved[2, i] = w.solved[0, w.kept_ways[i]]
        solve(w.matrix, count, w.solved[2], w.solved[1])
        left = 0
        for i in range(count):
            g, a, _ = w.who[w.kept_ways[i]]
            if w.parts[g, a] > 0.0 or w.solved[1, i] > 0.0:
                w.kept_ways[left] = w.kept_ways[i]
                left += 1
        if left == count:
            break
        count = left
    return count


@compiled
def move_into(w: Compiled, count: Compiled, way: Compiled) -> Compiled:
    """Write the way of a step, by weights to ``moved`` and by ``y``; return how far it may go, and its slope."""
    most, slope = 1.0, 0.0
    way[:] = 0.0
    w.moved[:] = 0.0
    for i in range(count):
        k, step = w.kept_ways[i], w.solved[1, i]
        g, a, base = w.who[k]
        w.moved[g, a] += step
        w.moved[g, base] -= step
        slope += step * w.solved[0, k]
        for n in range(len(way)):
            way[n] += step * w.ways[k, n]
    for g in range(len(w.parts)):
        for a in range(w.parts.shape[1]):
            if w.moved[g, a] < 0.0:
                most = min(most, -w.parts[g, a] / w.moved[g, a])
    return most, slope


@compiled
def shift(p: Compiled, w: Compiled, sharpness: Compiled) -> Compiled:
    """Move weight between chains of all groups by one step of Newton's; return what there was to gain by the slope."""
    y, way = w.lines[0], w.lines[2]
    climb(p, y, sharpness, w.room, w.lines[1])
    count, fall = choose(w)
    bend(p, y, sharpness, w.room, way, w.bends)
    multiply(w, count)
    count = newton(w, count)
    most, slope = move_into(w, count, way)
    if not slope < 0.0:
        return 0.0
    step = line(p, y, way, most, -slope, sharpness, w.room, w.lines[3], w.lines[4])
    for g in range(len(w.parts)):
        for a in range(w.parts.shape[1]):
            if w.moved[g, a] != 0.0:
                w.parts[g, a] += step * w.moved[g, a]
                if w.parts[g, a] < 1e-12:
                    w.parts[g, a] = 0.0
    return fall


@compiled
def place(p: Compiled, w: Compiled, g: Compiled, index: Compiled) -> Compiled:
    """Take the chain ``path`` among those of group ``g``, in the place of one without weight."""
    parts, paths, path, free = w.parts[g], w.paths[g], w.path, -1
    for a in range(len(parts)):
        if parts[a] >= 0.0:
            same = True
            for k in range(len(path)):
                if paths[a, k] != path[k]:
                    same = False
                    break
            if same:
                return
        if parts[a] < 0.0 or (parts[a] == 0.0 and (free < 0 or parts[free] >= 0.0)):
            free = a
    if free >= 0:
        parts[free] = 0.0
        copy(path, paths[free])
        atom_into(p, g, path, w.atoms[g, free])
        view(p, index, w.atoms[g, free], w.views[g, free])


@compiled
def look(p: Compiled, w: Compiled, index: Compiled, moves: Compiled, sharpness: Compiled, x: Compiled) -> Compiled:
    """Return the bound that holds from the slope at ``x``, infinite without any chain, and how far ``x`` is above it.

    The least chain of each group is taken among those of its group.
    """
    view(p, index, x, w.lines[0])
    _, value = climb(p, w.lines[0], sharpness, w.room, w.lines[1])
    slope_into(p, index, w.lines[1], w.slope)
    lanes_into(p, w)
    fall = against(w.slope, x)
    value -= fall
    for g in range(len(p.dims)):
        low = shortest(p, w, g, moves)
        if low == np.inf:
            return np.inf, 0.0
        value += low
        fall -= low
        place(p, w, g, index)
    return value - BOUND, fall


@compiled
def begin(p: Compiled, w: Compiled, index: Compiled, moves: Compiled) -> Compiled:
    """Leave of chains those that fit; return whether each group has one."""
    whole = True
    for g in range(len(w.parts)):
        some = False
        for a in range(w.parts.shape[1]):
            if w.parts[g, a] > 0.0 and fits(p, w, g, moves, w.paths[g, a]):
                atom_into(p, g, w.paths[g, a], w.atoms[g, a])
                view(p, index, w.atoms[g, a], w.views[g, a])
                some = True
            else:
                w.parts[g, a] = -1.0
        whole = whole and some
    return whole


@compiled
def settle(w: Compiled) -> Compiled:
    """Give the chains of each group weights that sum up to 1, all of them to one where none has any."""
    for g in range(len(w.parts)):
        total = 0.0
        for a in range(w.parts.shape[1]):
            total += max(0.0, w.parts[g, a])
        for a in range(w.parts.shape[1]):
            if w.parts[g, a] > 0.0:
                w.parts[g, a] /= total
            elif w.parts[g, a] == 0.0 and total == 0.0:
                w.parts[g, a] = total = 1.0


@compiled
def mix(p: Compiled, w: Compiled, index: Compiled, sharpness: Compiled, fall: Compiled, x: Compiled) -> Compiled:
    """Shift weight until little is left to gain of ``fall``, and put ``x`` to what the chains of all groups come to."""
    for n in range(SHIFTS + 1):
        settle(w)
        x[:] = 0.0
        for g in range(len(w.parts)):
            for a in range(w.parts.shape[1]):
                if w.parts[g, a] > 0.0:
                    for k in range(len(x)):
                        x[k] += w.parts[g, a] * w.atoms[g, a, k]
        view(p, index, x, w.lines[0])
        if n == SHIFTS or shift(p, w, sharpness) <= ENOUGH * fall:
            return


@entry
@_named
def ascend(p: Compiled, w: Compiled, index: Compiled, moves: Compiled, cut: Compiled, turns: Compiled,
           sharpest: Compiled, x: Compiled, best: Compiled) -> Compiled:
    """Return the highest bound found (its logarithm, from ``cut`` on any), and how many turns that took.

    ``x`` is where to begin, ``best`` where the bound was found; of the chains in the work those go on that fit. By
    conditional gradients: at a point, made of chains in parts, the score is bounded by its slope there, for which each
    group has a least chain; between such chains weight is shifted while that helps. The largest of several are told
    from the others more sharply in time, up to ``sharpest``. What the bound shows to be of no use below ``cut`` is
    removed.
    """
    found, sharpness, sharp = -np.inf, FIRST_SHARPNESS, FIRST_SHARPNESS
    ways_into(p, w)
    known, taken = begin(p, w, index, moves), 0
    if known:
        mix(p, w, index, sharpness, 0.0, x)
    while taken < turns:
        value, fall = look(p, w, index, moves, sharpness, x)
        taken += 1
        if value > found:
            found, sharp = value, sharpness
            copy(x, best)
        if found >= cut or (fall < 2.0 / sharpness and sharpness >= sharpest and known):
            break
        if fall < 2.0 / sharpness and known:
            sharpness *= 4.0
        mix(p, w, index, sharpness, fall if known else 0.0, x)
        known = True
    if found < cut:
        fix(p, w, index, moves, cut, sharp, best)
    return found, taken
