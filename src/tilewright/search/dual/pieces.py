"""Compiled: how many pieces chains of extents cut dimensions into where remainders are cut as well, and their steps.

A cell tells of its extents alone how many pieces there are: 24 of up to 32 among 768. Where extents further out leave
remainders there may be more: 768 are 3 tiles of up to 300, which 26 of up to 32 make up. All loops and lanes outside a
layer of which a quantity counts pieces do cut the dimension, so that their number by all extents is a bound as well.
Between the two sides of an array extents may be any, so that nothing is told of cuts further in.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

import numpy as np

from tilewright.mapping.spaces.kernels import NONE, Compiled, compiled
from tilewright.search.dual.parts import FEW
from tilewright.search.dual.records import CELL, LAYER, WHENCE


@compiled
def cut(found: Compiled, count: Compiled, extent: Compiled) -> Compiled:
    """Cut pieces ``(p, 2)``, extents and how many there are of each; return how many kinds there are then."""
    whole, left = 0, 0
    for k in range(count):
        rest = found[k, 0] % extent
        whole += found[k, 0] // extent * found[k, 1]
        if rest > 0:
            found[left, 0], found[left, 1] = rest, found[k, 1]
            left += 1
    if whole > 0:
        found[left, 0], found[left, 1] = extent, whole
        left += 1
    return left


@compiled
def path_into(pool: Compiled, at: Compiled) -> Compiled:
    """Write the cells that a beginning goes through by layer, -1 where that is the one before."""
    pool.path[:] = NONE
    while at >= 0:
        pool.path[pool.came[at, LAYER]] = pool.came[at, CELL]
        at = pool.came[at, WHENCE]


@compiled
def range_of(p: Compiled, g: Compiled, side: Compiled, cell: Compiled) -> Compiled:
    """Return the place of the range of extents that a dimension of a group has in a cell."""
    return p.extent_starts[g, side] + (cell % p.shapes[g, 1] if side else cell // p.shapes[g, 1])


@compiled
def pieces_of(p: Compiled, g: Compiled, side: Compiled, pool: Compiled, layer: Compiled, cell: Compiled) -> Compiled:
    """Return how many pieces there are at a layer at least, behind what `path_into` wrote; 1 where nothing is told."""
    now, count, parted, total = p.sizes[g, side], 1, False, 0
    pool.pieces[0, 0], pool.pieces[0, 1] = now, 1
    for at in range(1, layer + 1):
        own = cell if at == layer else pool.path[at]
        if own < 0:
            continue
        row = range_of(p, g, side, own)
        low, high = p.extents[row, 0], p.extents[row, 1]
        if low == now:
            continue
        if parted or (low < high and at < layer):
            return 1
        count, now = cut(pool.pieces, count, high), high
        parted = at % 2 == 0 and p.array_sides[g, side, at // 2 - 1] > 1
    for k in range(count):
        total += pool.pieces[k, 1]
    return total


@compiled
def steps_of(p: Compiled, g: Compiled, side: Compiled, pool: Compiled) -> Compiled:
    """Return how many steps of compute chains leave of a dimension, of what `path_into` wrote; 1 where nothing is told.

    Those are of the first lanes, which have as much to do as any.
    """
    layers, count, total = 2 * p.edge_starts.shape[1], 1, 0
    pool.pieces[0, 0], pool.pieces[0, 1] = p.sizes[g, side], 1
    for at in range(1, layers):
        own = pool.path[at]
        if own < 0:
            continue
        row = range_of(p, g, side, own)
        low = p.extents[row, 0]
        if low < p.extents[row, 1]:
            return 1
        if at % 2 == 1:
            count = cut(pool.pieces, count, low)
        else:
            for k in range(count):
                pool.pieces[k, 0] = min(pool.pieces[k, 0], low)
    for k in range(count):
        total += pool.pieces[k, 1] * (1 if p.array_sides[g, side, layers // 2 - 1] > 0 else pool.pieces[k, 0])
    return total


@compiled
def sides_of(p: Compiled, g: Compiled) -> Compiled:
    """Return how many dimensions a group has."""
    return 1 if p.shapes[g, 1] == 1 else 2


@compiled
def rise_into(p: Compiled, w: Compiled, g: Compiled, pool: Compiled, layer: Compiled, cell: Compiled) -> Compiled:
    """Write by how much (in logarithms) there are more pieces at a layer than a cell tells of that tensors do not use.

    They are those behind what `path_into` wrote. Return what that costs by the slope.
    """
    pool.rise[:] = 0.0
    cost, first = 0.0, layer * p.cells.shape[1]
    for side in range(sides_of(p, g)):
        fewest = -(-p.sizes[g, side] // p.extents[range_of(p, g, side, cell), 1])
        many = pieces_of(p, g, side, pool, layer, cell)
        if many > fewest:
            for t in range(len(pool.rise)):
                if p.unused[g, side, t] != 0:
                    pool.rise[t] += np.log(many / fewest)
    for t in range(len(pool.rise)):
        cost += w.slope[first + t] * pool.rise[t]
    return cost


@compiled
def raise_pieces(p: Compiled, index: Compiled, layer: Compiled, pool: Compiled, made: Compiled) -> Compiled:
    """Add to what a chain is made of what `rise_into` wrote, if it did."""
    if pool.every == FEW:
        return
    first, rise = layer * p.cells.shape[1], pool.rise
    for i in range(len(index)):
        for k in range(index.shape[1]):
            if first <= index[i, k] < first + len(rise):
                made[i] += rise[index[i, k] - first]


@compiled
def least_steps(p: Compiled, g: Compiled, pool: Compiled) -> Compiled:
    """Return the logarithm of the steps that chains leave of a group, of what `path_into` wrote."""
    found = 0.0
    if len(p.ends) > 0:  # else all steps are always there
        for side in range(sides_of(p, g)):
            found += np.log(steps_of(p, g, side, pool))
    return found


@compiled
def raise_steps(p: Compiled, w: Compiled, index: Compiled, steps: Compiled, made: Compiled) -> Compiled:
    """Let a chain be made of so many steps (in logarithms) at least; return what that costs by the slope."""
    cost = 0.0
    for i in range(len(index)):
        if index[i, 0] == p.steps and made[i] < steps:
            cost += w.slope[p.steps] * (steps - made[i])
            made[i] = steps
    return cost
