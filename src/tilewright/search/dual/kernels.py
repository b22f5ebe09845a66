"""Compiled: what chains of extents score, and the least chains by a slope, one group at a time (see `problem`)."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

import numpy as np

from tilewright.mapping.spaces.kernels import Compiled, compiled
from tilewright.search.dual.records import BEGIN, CYCLES, END, ENERGY, FIRST_LANES, NEVER, SECOND_LANES

STEEPEST = 32.0
"""The most that a capacity or an array may be priced."""


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
                parts: Compiled, pull: Compiled) -> Compiled:
    """Add the slope of a factor of the score to ``pull``, the largest of its floor and some sums.

    Return its logarithm, smooth, and by its parts.
    """
    tops, shares, sums, grown = parts
    tops[0] = floor
    for r in range(first, last):
        tops[1 + r - first] = np.log(sums[r]) + top if sums[r] > 0.0 else NEVER
    smooth = blend(tops, 1 + last - first, sharpness, shares)
    some = shares[0] * floor
    for r in range(first, last):
        share = shares[1 + r - first]
        some += share * tops[1 + r - first]
        if sums[r] > 0.0:
            for i in range(len(p.weights)):
                pull[i] += share / sums[r] * p.weights[i, r] * grown[i]
    return smooth, some


@compiled
def climb(p: Compiled, y: Compiled, sharpness: Compiled, parts: Compiled, pull: Compiled) -> Compiled:
    """Write the slope of the score's logarithm, prices included, at ``y``; return it, smooth, and by its parts.

    ``y`` is what `view` writes. The second is convex in it and its slope is ``pull``: what lies below it anywhere
    bounds the score.
    """
    smooth, partly, at = p.scale, p.scale, len(p.weights)
    top = add_up(p, y, parts.sums, parts.grown)
    pull[:] = 0.0
    for k in (CYCLES, ENERGY):
        if p.factors[k] > 0:
            first, last = (0, 1) if k == ENERGY else (1, p.weights.shape[1])
            whole, some = factor_into(p, first, last, p.floors[k], top, sharpness, parts, pull)
            smooth += whole
            partly += some
    tops, shares = parts.tops, parts.shares
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
        partly += price * over
    for s in range(len(p.sides)):
        over = y[at + s] - p.limits[s]
        price, cost = priced(over, sharpness)
        pull[at + s] = price
        smooth += cost
        partly += price * over
    return smooth, partly


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
                if w.ways_left[e] != 0 and w.cells[2 * m + 1, first + p.ends[e, BEGIN] % cells] != 0 and (
                        m == memories - 1 or w.cells[2 * m + 2, first + p.ends[e, END] % cells] != 0):
                    w.kept[count] = e
                    count += 1
            w.spans[g, m, 1] = count


@compiled
def add_way(p: Compiled, w: Compiled, e: Compiled, cost: Compiled) -> Compiled:
    """Return a cost with that of a way through an array, but for its lanes, on top."""
    for k in range(p.edges.shape[1]):
        cost += w.slope[p.steps + k] * p.edges[e, k]
    return cost


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
            length = add_way(p, w, e, w.lane_cost[p.ends[e, FIRST_LANES]] + w.lane_cost[p.ends[e, SECOND_LANES]])
            w.lengths[at] = length
            if here[p.ends[e, BEGIN]] + length < there[p.ends[e, END]]:
                there[p.ends[e, END]] = here[p.ends[e, BEGIN]] + length
                w.came[2 * m + 1, p.ends[e, END]] = e
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
    """Remove the cells and ways of a group through which no chain costs less than ``most``, after `shortest` of it.

    Write what nodes cost from there to compute, at least, without their own cells, to ``after``.
    """
    memories, cells = p.edge_starts.shape[1], p.cell_starts[g + 1] - p.cell_starts[g]
    here, there = w.rest[0], w.rest[1]
    here[:] = np.inf
    here[0] = 0.0
    copy(here, w.after[2 * memories])
    for m in range(memories - 1, -1, -1):
        if p.edge_starts[g, m, 0] < p.edge_starts[g, m, 1]:
            there[:] = np.inf
            for at in range(w.spans[g, m, 0], w.spans[g, m, 1]):
                e = w.kept[at]
                rest = w.lengths[at] + here[p.ends[e, END]]
                there[p.ends[e, BEGIN]] = min(there[p.ends[e, BEGIN]], rest)
                w.through[at] = w.f[2 * m + 1, p.ends[e, BEGIN]] + rest
                over = w.through[at] - most
                if over >= 0.0:
                    w.ways_left[e] = 0
                for k in (FIRST_LANES, SECOND_LANES):
                    w.lane_over[p.ends[e, k]] = min(w.lane_over[p.ends[e, k]], over)
            here, there = there, here
        for layer in range(2 * m + 1, 2 * m - 1, -1):
            if layer == 2 * m:
                loops_back(p, g, m, moves, here)
            copy(here, w.after[layer])
            remove_cells(p, w, g, layer, here, most)
            costs_into(p, w, g, layer)
            add_costs(w.costs, cells, p.states[g, layer], here)


@compiled
def trace(p: Compiled, g: Compiled, chosen: Compiled, came: Compiled, path: Compiled) -> Compiled:
    """Write the least chain to ``path``, from compute outward."""
    memories, cells = p.edge_starts.shape[1], p.cell_starts[g + 1] - p.cell_starts[g]
    node = np.int64(0)
    for m in range(memories - 1, -1, -1):
        path[2 * memories + m] = path[3 * memories + m] = path[4 * memories + m] = -1
        if p.edge_starts[g, m, 0] < p.edge_starts[g, m, 1]:
            e = np.int64(came[2 * m + 1, node])
            node, path[2 * memories + m] = np.int64(p.ends[e, BEGIN]), e
            path[3 * memories + m] = chosen[p.ends[e, FIRST_LANES]]
            path[4 * memories + m] = chosen[p.ends[e, SECOND_LANES]]
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
