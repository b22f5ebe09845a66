"""Compiled maximiser of dual bounds: weight is shifted between chains of extents until no slope leads on."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import Compiled, compiled, entry
from tilewright.search.dual.kernels import (
    STEEPEST,
    add_up,
    against,
    atom_into,
    blend,
    climb,
    copy,
    fits,
    lanes_into,
    priced,
    remove,
    shortest,
    slope_into,
    view,
    ways_into,
)
from tilewright.search.dual.listing import chains_of
from tilewright.search.dual.packing import pack
from tilewright.search.dual.records import BOUND, CYCLES, ENERGY, NEVER

_named = stamped([Path(__file__).with_name(f"{name}.py") for name in (
    "records", "parts", "kernels", "pieces", "listing", "packing")])
FIRST_SHARPNESS = 32.0
"""How sharply the largest of several is told from the others at first."""
SHIFTS, ENOUGH, RIDGE = 12, 0.1, 1e-6
"""How often weight is shifted before chains are looked for anew, at most; what part of all there is to gain may be left
then; and what keeps steps short where nothing bends."""
LOOKS, LEVEL = 12, 0.05
"""Points of a line that are looked at at most, and what part of its first slope counts as none."""


@compiled
def line(p: Compiled, y: Compiled, way: Compiled, most: Compiled, falls: Compiled, sharpness: Compiled, parts: Compiled,
         pull: Compiled, at: Compiled) -> Compiled:
    """Return how far along ``way`` the smooth score falls, ``most`` at most; ``falls`` is how steeply it does at first.

    Between two points where it falls and rises the next is where a straight slope would be 0 (Illinois's rule).
    """
    low, high, before, after, step, side = 0.0, most, -falls, 0.0, most, 0
    for _ in range(LOOKS):
        for k in range(len(y)):
            at[k] = y[k] + step * way[k]
        climb(p, at, sharpness, parts, pull)
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
              parts: Compiled, mean: Compiled, bends: Compiled) -> Compiled:
    """Add the second derivatives of a factor of the score (see `factor_into`) to the lower half of ``bends``."""
    (tops, shares, sums, grown), terms = parts, len(p.weights)
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
def bend(p: Compiled, y: Compiled, sharpness: Compiled, parts: Compiled, mean: Compiled, bends: Compiled) -> Compiled:
    """Write the second derivatives of the smooth score at ``y`` to ``bends``."""
    top, at, tensors = add_up(p, y, parts.sums, parts.grown), len(p.weights), p.rooms.shape[1]
    bends[:] = 0.0
    if p.factors[CYCLES] > 0:
        bend_into(p, 1, p.weights.shape[1], p.floors[CYCLES], top, sharpness, parts, mean, bends)
    if p.factors[ENERGY] > 0:
        bend_into(p, 0, 1, p.floors[ENERGY], top, sharpness, parts, mean, bends)
    tops, shares = parts.tops, parts.shares
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
    pull, count, fall = w.pull, 0, 0.0
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
            w.way[k] = against(w.bends[k], w.ways[i])
        for j in range(i + 1):
            w.products[i, j] = w.products[j, i] = against(w.ways[j], w.way)


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
    y, way = w.point, w.way
    climb(p, y, sharpness, w.smooth, w.pull)
    count, fall = choose(w)
    bend(p, y, sharpness, w.smooth, way, w.bends)
    multiply(w, count)
    count = newton(w, count)
    most, slope = move_into(w, count, way)
    if not slope < 0.0:
        return 0.0
    step = line(p, y, way, most, -slope, sharpness, w.smooth, w.tried_pull, w.tried)
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
    view(p, index, x, w.point)
    _, value = climb(p, w.point, sharpness, w.smooth, w.pull)
    slope_into(p, index, w.pull, w.slope)
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
        view(p, index, x, w.point)
        if n == SHIFTS or shift(p, w, sharpness) <= ENOUGH * fall:
            return


@compiled
def fix(p: Compiled, w: Compiled, index: Compiled, moves: Compiled, cut: Compiled, near: Compiled, sharpness: Compiled,
        x: Compiled, pool: Compiled) -> Compiled:
    """Remove what no mapping uses that scores below ``cut``, by the bound that holds from the slope at ``x``.

    By that slope a mapping scores no less than the bound, and than how much its chains cost more than the least of
    their groups on top of it, wherever ``x`` is. So what only chains use that cost too much may go, here and in all
    that this part of the space is divided into. Where the bound is not below ``near``, the chains that are left are
    listed, if there is room for all: their places in the pool, and what the least costs, by group. Return the bound,
    negative infinity where they are not, and by how much it is higher as lanes have to fit together.
    """
    bound, _ = look(p, w, index, moves, sharpness, x)
    if bound >= cut:
        return -np.inf, 0.0
    w.lane_over[:] = np.inf
    first, last = 0, 0 if bound >= near else -1
    for g in range(len(p.dims)):
        low = shortest(p, w, g, moves)
        most = low + (cut - bound)
        remove(p, w, g, moves, most)
        if last >= 0:
            first, last = chains_of(p, w, index, moves, g, most, pool, last)
            pool.spans[g, 0], pool.spans[g, 1], pool.lows[g] = first, last, low
    for i in range(len(w.lane_over)):
        for j in range(p.lane_spans[i], p.lane_spans[i + 1]):
            # Where a row has no way left, nothing is taken off but infinity.
            if w.sides_left[j] != 0 and w.lane_over[i] + (w.side_cost[j] - w.lane_cost[i]) >= 0.0:
                w.sides_left[j] = 0
    rise = pack(p, w, cut - bound)
    return bound if last >= 0 else -np.inf, rise


@entry
@_named
def ascend(p: Compiled, w: Compiled, index: Compiled, moves: Compiled, cut: Compiled, turns: Compiled,
           sharpest: Compiled, x: Compiled, best: Compiled, near: Compiled, pool: Compiled) -> Compiled:
    """Return the highest bound found (its logarithm, from ``cut`` on any), how many turns that took, and `fix`'s.

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
    bound = -np.inf
    if found < cut:
        bound, rise = fix(p, w, index, moves, cut, near, sharp, best, pool)
        found += rise
    return found, taken, bound
