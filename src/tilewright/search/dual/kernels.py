"""Compiled maximiser of dual bounds: shortest paths over extents, one group of dimensions at a time (see `problem`)."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import Compiled, compiled, entry

_named = stamped([Path(__file__).with_name("problem.py")])
STEEPEST, BOUND = 4.0, 1e-9
"""The most that a capacity or an array may be priced, and what rounding may have added to a bound's logarithm."""
FIRST_SHARPNESS, SHARPEST = 32.0, 512.0
"""How sharply the largest of several is told from the others: at first, and where the search ends."""
SHIFTS = 4
"""How often weight is shifted before chains are looked for anew, at most."""
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
def add_sum(weights: Compiled, index: Compiled, x: Compiled, room: Compiled) -> Compiled:
    """Return the logarithm of a weighted sum of the terms at ``x``, and write the shares of the terms to ``room[1]``.

    ``room[0]`` takes the logarithms of the terms.
    """
    count = len(weights)
    for i in range(count):
        value = weights[i]
        for k in range(index.shape[1]):
            if index[i, k] >= 0:
                value += x[index[i, k]]
        room[0, i] = value
    return blend(room[0], count, 1.0, room[1])


@compiled
def spread_shares(scale: Compiled, index: Compiled, shares: Compiled, slope: Compiled) -> Compiled:
    """Add ``scale`` times the shares of terms to the slopes of what they are made of."""
    for i in range(index.shape[0]):
        for k in range(index.shape[1]):
            if index[i, k] >= 0:
                slope[index[i, k]] += scale * shares[i]


@compiled
def climb(p: Compiled, index: Compiled, x: Compiled, sharpness: Compiled, room: Compiled,
          slope: Compiled) -> Compiled:
    """Write the slope of the score's logarithm, prices included, at ``x``; return it, smooth, and by its parts.

    The second is convex in ``x`` and its slope is ``slope``: what lies below it anywhere bounds the score.
    """
    slope[:] = 0.0
    smooth, parts = p.scale, p.scale
    tops, shares, ports = room[2], room[3], p.weights.shape[1]
    if p.factors[1] > 0:
        tops[0] = add_sum(p.weights[:, 0], index, x, room)
        tops[1] = p.floors[1]
        smooth += blend(tops, 2, sharpness, shares)
        spread_shares(shares[0], index, room[1], slope)
        parts += shares[0] * tops[0] + shares[1] * tops[1]
    if p.factors[0] > 0:
        tops[0] = p.floors[0]
        for r in range(1, ports):
            tops[r] = add_sum(p.weights[:, r], index, x, room)
        smooth += blend(tops, ports, sharpness, shares)
        for r in range(1, ports):
            if shares[r] > 1e-12:
                add_sum(p.weights[:, r], index, x, room)
                spread_shares(shares[r], index, room[1], slope)
        for r in range(ports):
            if r == 0 or shares[r] > 1e-12:
                parts += shares[r] * tops[r]
            else:
                parts += shares[r] * tops[0]
    for q in range(len(p.rooms)):
        over = add_sum(p.rooms[q], p.held[q], x, room)
        price, cost = priced(over, sharpness)
        spread_shares(price, p.held[q], room[1], slope)
        smooth += cost
        parts += price * over
    for s in range(len(p.sides)):
        over = x[p.sides[s]] - p.limits[s]
        price, cost = priced(over, sharpness)
        slope[p.sides[s]] += price
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
def lanes_into(p: Compiled, slope: Compiled, cost: Compiled, chosen: Compiled) -> Compiled:
    """Write what each row of lanes costs at least, and the pair of sides that does."""
    for i in range(len(p.lane_spans) - 1):
        best = np.inf
        for j in range(p.lane_spans[i], p.lane_spans[i + 1]):
            value = 0.0
            for k in range(2):
                if p.lane_sides[j, k] >= 0:
                    value += slope[p.lane_sides[j, k]] * p.lane_logs[j, k]
            if value < best:
                best, chosen[i] = value, j
        cost[i] = best


@compiled
def nodes_into(p: Compiled, g: Compiled, layer: Compiled, box: Compiled, slope: Compiled, f: Compiled) -> Compiled:
    """Add to the costs of nodes what their cells cost at a layer; none outside ``box`` is taken."""
    first, cells = p.cell_starts[g], p.cell_starts[g + 1] - p.cell_starts[g]
    width, states, rows, columns = p.cells.shape[1], p.states[g, layer], p.shapes[g, 0], p.shapes[g, 1]
    for k in range(width):
        price = slope[layer * width + k]
        if price != 0.0:
            for c in range(cells):
                value = price * p.cells[first + c, k]
                for s in range(states):
                    f[s * cells + c] += value
    low, high, left, right = box[g, layer, 0], box[g, layer, 1], box[g, layer, 2], box[g, layer, 3]
    if low > 0 or left > 0 or high < rows - 1 or right < columns - 1:
        for c in range(cells):
            i, j = c // columns, c % columns
            if i < low or i > high or j < left or j > right:
                for s in range(states):
                    f[s * cells + c] = np.inf


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
def shortest(p: Compiled, g: Compiled, moves: Compiled, box: Compiled, slope: Compiled, lane_cost: Compiled,
             chosen: Compiled, f: Compiled, came: Compiled, atom: Compiled, path: Compiled) -> Compiled:
    """Return the least cost of a chain of extents of group ``g``, infinite if there is none.

    Write what it is made of to ``atom``, and its cells by layer to ``path``.
    """
    memories, cells = p.edge_starts.shape[1], p.cell_starts[g + 1] - p.cell_starts[g]
    here, there = f[0], f[1]
    here[:cells] = np.inf
    here[cells - 1] = 0.0
    for m in range(memories):
        nodes_into(p, g, 2 * m, box, slope, here)
        loops_into(p, g, m, moves, here, came[2 * m])
        nodes_into(p, g, 2 * m + 1, box, slope, here)
        first, last = p.edge_starts[g, m, 0], p.edge_starts[g, m, 1]
        if first == last:
            continue
        for n in range(p.states[g, 2 * m + 2] * cells):
            there[n] = np.inf
        fewest, most, few, many = box[g, 2 * memories + m]
        for e in range(first, last):
            if p.ends[e, 4] < fewest or p.ends[e, 4] > most or p.ends[e, 5] < few or p.ends[e, 5] > many:
                continue
            value = here[p.ends[e, 0]] + lane_cost[p.ends[e, 2]] + lane_cost[p.ends[e, 3]]
            for k in range(p.edges.shape[1]):
                value += slope[p.steps + k] * p.edges[e, k]
            if value < there[p.ends[e, 1]]:
                there[p.ends[e, 1]] = value
                came[2 * m + 1, p.ends[e, 1]] = e
        here, there = there, here
    if here[0] < np.inf:
        trace(p, g, chosen, came, atom, path)
    return here[0]


@compiled
def trace(p: Compiled, g: Compiled, chosen: Compiled, came: Compiled, atom: Compiled, path: Compiled) -> Compiled:
    """Write what the least chain is made of, from compute outward."""
    memories, first = p.edge_starts.shape[1], p.cell_starts[g]
    cells, width = p.cell_starts[g + 1] - p.cell_starts[g], p.cells.shape[1]
    atom[:] = 0.0
    node = np.int64(0)
    for m in range(memories - 1, -1, -1):
        if p.edge_starts[g, m, 0] < p.edge_starts[g, m, 1]:
            e = came[2 * m + 1, node]
            for k in range(p.edges.shape[1]):
                atom[p.steps + k] += p.edges[e, k]
            for k in range(2):
                row = chosen[p.ends[e, 2 + k]]
                for side in range(2):
                    if p.lane_sides[row, side] >= 0:
                        atom[p.lane_sides[row, side]] += p.lane_logs[row, side]
            node, path[2 * memories + m] = np.int64(p.ends[e, 0]), e
        for layer in (2 * m + 1, 2 * m):
            if layer == 2 * m:
                node = np.int64(came[layer, node])
            path[layer] = node % cells
            for k in range(width):
                atom[layer * width + k] = p.cells[first + path[layer], k]


@compiled
def against(slope: Compiled, atom: Compiled) -> Compiled:
    """Return the product of two vectors."""
    total = 0.0
    for k in range(len(slope)):
        total += slope[k] * atom[k]
    return total


@compiled
def line(p: Compiled, index: Compiled, x: Compiled, way: Compiled, most: Compiled, falls: Compiled,
         sharpness: Compiled, room: Compiled, slope: Compiled, at: Compiled) -> Compiled:
    """Return how far along ``way`` the smooth score falls, ``most`` at most; ``falls`` is how steeply it does at first.

    Between two points where it falls and rises the next is where a straight slope would be 0 (Illinois's rule).
    """
    low, high, before, after, step, side = 0.0, most, -falls, 0.0, most, 0
    for _ in range(LOOKS):
        for k in range(len(x)):
            at[k] = x[k] + step * way[k]
        climb(p, index, at, sharpness, room, slope)
        rise = against(slope, way)
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
def shift(p: Compiled, index: Compiled, atoms: Compiled, parts: Compiled, x: Compiled,
          sharpness: Compiled, room: Compiled, vectors: Compiled) -> Compiled:
    """Move weight of group ``g`` from its worst chain to its best, as far as that helps; return the slope between."""
    slope, way, trial, at = vectors[0], vectors[1], vectors[2], vectors[3]
    best, worst, least, most = -1, -1, np.inf, -np.inf
    for a in range(len(parts)):
        if parts[a] >= 0.0:
            value = against(slope, atoms[a])
            if value < least:
                least, best = value, a
            if parts[a] > 0.0 and value > most:
                most, worst = value, a
    if best == worst or most - least < 1e-9:
        return 0.0
    for k in range(len(x)):
        way[k] = atoms[best, k] - atoms[worst, k]
    step = line(p, index, x, way, parts[worst], most - least, sharpness, room, trial, at)
    parts[best] += step
    parts[worst] -= step
    if parts[worst] < 1e-12:
        parts[worst] = 0.0
    for k in range(len(x)):
        x[k] += step * way[k]
    return most - least


@compiled
def place(atoms: Compiled, parts: Compiled, paths: Compiled, atom: Compiled, path: Compiled) -> Compiled:
    """Take a chain among those of its group, in the place of one without weight."""
    free = -1
    for a in range(len(parts)):
        if parts[a] >= 0.0:
            same = True
            for k in range(len(atom)):
                if atoms[a, k] != atom[k]:
                    same = False
                    break
            if same:
                return
        if parts[a] < 0.0 or (parts[a] == 0.0 and (free < 0 or parts[free] >= 0.0)):
            free = a
    if free >= 0:
        parts[free] = 0.0
        copy(atom, atoms[free])
        copy(path, paths[free])


@compiled
def look(p: Compiled, index: Compiled, moves: Compiled, box: Compiled, sharpness: Compiled, x: Compiled,
         vectors: Compiled, room: Compiled, lane_cost: Compiled, chosen: Compiled, f: Compiled, came: Compiled,
         atoms: Compiled, parts: Compiled, paths: Compiled, path: Compiled) -> Compiled:
    """Return the bound that holds from the slope at ``x``, infinite without any chain, and how far ``x`` is above it.

    The least chain of each group is taken among those of its group.
    """
    slope, atom = vectors[0], vectors[4]
    _, value = climb(p, index, x, sharpness, room, slope)
    lanes_into(p, slope, lane_cost, chosen)
    fall = against(slope, x)
    value -= fall
    for g in range(len(p.dims)):
        low = shortest(p, g, moves, box, slope, lane_cost, chosen, f, came, atom, path)
        if low == np.inf:
            return np.inf, 0.0
        value += low
        fall -= low
        place(atoms[g], parts[g], paths[g], atom, path)
    return value - BOUND, fall


@compiled
def begin(x: Compiled, atoms: Compiled, parts: Compiled) -> Compiled:
    """Put ``x`` to where the first chains of all groups lead."""
    for k in range(len(x)):
        x[k] = 0.0
    for g in range(len(parts)):
        for a in range(parts.shape[1]):
            if parts[g, a] >= 0.0:
                parts[g, a] = 1.0
                for k in range(len(x)):
                    x[k] += atoms[g, a, k]


@entry
@_named
def ascend(p: Compiled, index: Compiled, moves: Compiled, box: Compiled, cut: Compiled, turns: Compiled, x: Compiled,
           best: Compiled, vectors: Compiled, room: Compiled, lane_cost: Compiled, chosen: Compiled, f: Compiled,
           came: Compiled, atoms: Compiled, parts: Compiled, paths: Compiled, path: Compiled) -> Compiled:
    """Return the highest bound found (its logarithm, from ``cut`` on any), and how many turns that took.

    ``x`` is where to begin, ``best`` where the bound was found. By conditional gradients: at a point, made of chains
    in parts, the score is bounded by its slope there, for which each group has a least chain; between such chains
    weight is shifted while that helps.
    """
    groups, found, sharpness = len(p.dims), -np.inf, FIRST_SHARPNESS
    parts[:] = -1.0
    for turn in range(turns):
        value, fall = look(p, index, moves, box, sharpness, x, vectors, room, lane_cost, chosen, f, came, atoms, parts,
                           paths, path)
        if value > found:
            found = value
            copy(x, best)
        if found >= cut or (fall < 2.0 / sharpness and sharpness >= SHARPEST and turn > 0):
            return found, turn + 1
        if turn == 0:
            begin(x, atoms, parts)
            continue
        if fall < 2.0 / sharpness:
            sharpness *= 2.0
        for _ in range(SHIFTS):
            widest = 0.0
            for g in range(groups):
                climb(p, index, x, sharpness, room, vectors[0])
                widest = max(widest, shift(p, index, atoms[g], parts[g], x, sharpness, room, vectors))
            if widest < 0.25 * fall / groups:
                break
    return found, turns
