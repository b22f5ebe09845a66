"""Compiled descent through partial mappings: chains of steps for one dimension after another, held to a bound.

``feats`` ``(c, f)`` describes the chains of all dimensions, one row each, as `exact_tables.Tables` lays them out:
pieces, counts in time, extents (of the tile, and outside the arrays around it) by memory, lanes by fan-out, counts by
slot, steps, and counts in time once more. A bundle's row has the least of all its rows, but the most lanes and (at the
first place) counts in time. Row by row the bound follows the counting rules exactly but for what sliding windows save;
dimensions that are not decided yet are cut only where there is no room for them whole.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

import numpy as np

from tilewright.mapping.spaces.kernels import Compiled, compiled, entry, inlined
from tilewright.search.mappers.exact.tables import CHILD, CYCLES, KEY, MEMORY, OUTSIDE, PARENT, TENSOR

SLACK = 1 - 1e-9


@inlined
def words_of(axes: Compiled, spans: Compiled, t: Compiled, extents: Compiled) -> Compiled:
    """Return the words of tensor ``t`` in a box of ``extents`` ``(d)``."""
    total = 1.0
    for a in range(spans[t], spans[t + 1]):
        p = extents[axes[a, 0]]
        if axes[a, 1] >= 0:
            r = extents[axes[a, 1]]
            p = p * r - max(0.0, p - axes[a, 3]) * max(0.0, r - axes[a, 2])
        total *= p
    return total


@compiled
def arrays_fit(tables: Compiled, chosen: Compiled, depth: Compiled) -> Compiled:
    """Whether the lanes of the first ``depth`` dimensions fit the arrays."""
    feats, shape, sides = tables.features, tables.shape, tables.sides
    first = 4 * shape.memories + shape.fanouts
    for i in range(len(sides)):
        lanes, other = 1.0, 1.0
        for k in range(depth):
            lanes *= feats[chosen[k], first + sides[i, 0]]
            if sides[i, 1] >= 0:
                other *= feats[chosen[k], first + sides[i, 1]]
        if sides[i, 2] > 0:
            lanes, other = np.ceil(lanes / sides[i, 2]), np.ceil(other / sides[i, 3])
        if lanes * other > sides[i, 4]:
            return False
    return True


@compiled
def memories_fit(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Whether tiles of the first ``depth`` dimensions' extents, everything else being 1, fit the memories."""
    shape, groups, bits, scratch = tables.shape, tables.groups, tables.bits, tables.shape.scratch
    for g in range(len(groups)):
        m = np.int64(groups[g, 0])
        boxed(tables, chosen, depth, m, work)
        total = 0.0
        for t in range(shape.tensors):
            if bits[g, t] > 0:
                total += bits[g, t] * words_of(tables.axes, tables.spans, t, work[scratch])
        if total > groups[g, 1]:
            return False
    return True


@compiled
def fits(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Whether the first ``depth`` dimensions fit the machine."""
    return arrays_fit(tables, chosen, depth) and memories_fit(tables, chosen, depth, work)


@compiled
def spread(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write the lanes that each tensor does not use and how many more there may be, by fan-out; return those in all."""
    feats, unused, shape = tables.features, tables.unused, tables.shape
    memories, fans, tensors, scratch = shape.memories, shape.fanouts, shape.tensors, shape.scratch
    left = 1.0
    for f in range(fans):
        used = 1.0
        for t in range(tensors):
            work[2 * memories + f, t] = 1.0
        for k in range(depth):
            lanes = feats[chosen[k], 4 * memories + f]
            used *= lanes
            for t in range(tensors):
                if unused[k, t] != 0:
                    work[2 * memories + f, t] *= lanes
        work[scratch, f] = max(1.0, tables.instances[f] / used) if depth < shape.dims else 1.0
        left *= work[scratch, f]
    return left


@compiled
def gather(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write to ``work`` what the first ``depth`` dimensions make of each tensor; return the least steps of compute.

    Rows of ``work`` ``(., t)``: by memory the pieces of dimensions that the tensor does not use, how often their loops
    there run, (by fan-out) the lanes along them, then in one row how many more lanes there may be by fan-out, and by
    memory whether a loop there moves the tensor.
    """
    feats, unused, shape = tables.features, tables.unused, tables.shape
    memories, tensors, scratch = shape.memories, shape.tensors, shape.scratch
    moving = 4 * memories + shape.fanouts + shape.slots + 1
    for m in range(memories):
        for t in range(tensors):
            pieces, counts, moves = 1.0, 1.0, 0.0
            for k in range(depth):
                row = feats[chosen[k]]
                if unused[k, t] != 0:
                    pieces *= row[m]
                    counts *= row[memories + m]
                elif row[moving + m] > 1:
                    moves = 1.0
            work[m, t], work[memories + m, t], work[scratch + 1 + m, t] = pieces, counts, moves
    left = spread(tables, chosen, depth, work)
    steps, done = 1.0, 1.0
    for k in range(depth):
        steps *= feats[chosen[k], 4 * memories + shape.fanouts + shape.slots]
        done *= tables.sizes[k]
    return steps * max(1.0, tables.macs / done / left)


@compiled
def accesses(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled, b: Compiled) -> Compiled:
    """Return the least accesses by the compute units at boundary ``b``, all steps together."""
    feats, axes, spans, share = tables.features, tables.axes, tables.spans, tables.share
    memories, fans, scratch = tables.shape.memories, tables.shape.fanouts, tables.shape.scratch
    t = tables.edges[b, TENSOR]
    shared = 1.0
    for f in range(fans):
        if share[b, f] != 0:
            shared *= work[2 * memories + f, t] * work[scratch, f]
    for a in range(spans[t], spans[t + 1]):
        if axes[a, 1] >= 0:
            p, r = 1.0, 1.0
            for f in range(fans):
                if share[b, f] != 0:
                    if axes[a, 0] < depth:
                        p *= feats[chosen[axes[a, 0]], 4 * memories + f]
                    if axes[a, 1] < depth:
                        r *= feats[chosen[axes[a, 1]], 4 * memories + f]
            shared *= p * r / (p * r - max(0.0, p - axes[a, 3]) * max(0.0, r - axes[a, 2]))
    return max(tables.words[t], tables.macs / shared)


@inlined
def boxed(tables: Compiled, chosen: Compiled, depth: Compiled, m: Compiled, work: Compiled) -> Compiled:
    """Write the extents at memory ``m`` to the first spare row: those decided, else 1."""
    for k in range(tables.shape.dims):
        work[tables.shape.scratch, k] = tables.features[chosen[k], 2 * tables.shape.memories + m] if k < depth else 1.0


@inlined
def taken(tables: Compiled, g: Compiled, k: Compiled, work: Compiled) -> Compiled:
    """Return the bits in room ``g`` of the tensors that use dimension ``k`` and of the others, of `boxed` extents."""
    own, others = 0.0, 0.0
    for t in range(tables.shape.tensors):
        if tables.bits[g, t] > 0:
            words = tables.bits[g, t] * words_of(tables.axes, tables.spans, t, work[tables.shape.scratch])
            if tables.unused[k, t] == 0:
                own += words
            else:
                others += words
    return own, others


@compiled
def pieces(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write by memory into how many pieces each dimension not decided falls at least, for want of room beside others.

    Along windows that slide no room is told. What is cut at a memory is cut further in.
    """
    shape, groups = tables.shape, tables.groups
    first = shape.scratch + 1 + shape.memories
    work[first:first + shape.memories, depth:shape.dims] = 1.0
    for g in range(len(groups)):
        m = np.int64(groups[g, 0])
        boxed(tables, chosen, depth, m, work)
        for k in range(depth, shape.dims):
            own, others = taken(tables, g, k, work)
            if tables.plain[k] != 0 and own > 0.0:
                extent = max(1.0, (groups[g, 1] - others) / own)
                work[first + m, k] = max(work[first + m, k], np.ceil(tables.sizes[k] / extent * SLACK))
    for inner in range(first + 1, first + shape.memories):
        for k in range(depth, shape.dims):
            work[inner, k] = max(work[inner, k], work[inner - 1, k])


@compiled
def again(tables: Compiled, depth: Compiled, work: Compiled, t: Compiled, m: Compiled) -> Compiled:
    """Return into how many pieces the dimensions not decided that a tensor does not use fall at a memory, at least."""
    found, first = 1.0, tables.shape.scratch + 1 + tables.shape.memories
    for k in range(depth, tables.shape.dims):
        if tables.unused[k, t] != 0:
            found *= work[first + m, k]
    return found


@compiled
def cross(tables: Compiled, depth: Compiled, kind: Compiled, work: Compiled, x: Compiled) -> Compiled:
    """Write to ``x`` the least words that cross each boundary between memories under one kind of order.

    Of dimensions not decided, the pieces count that lie outside all loops that may leave the tensor in place.
    """
    shape, edges, share, kinds, words = tables.shape, tables.edges, tables.share, tables.kinds, tables.words
    memories, scratch, n = shape.memories, shape.scratch, len(edges)
    for b in range(n):
        t, child = edges[b, TENSOR], edges[b, CHILD]
        if child == memories:
            continue
        still, last = 1.0, child
        for s in range(child - 1, -1, -1):
            moves = work[scratch + 1 + s, t] != 0
            if not moves or kinds[kind, s, t] != 0:
                still *= work[memories + s, t]
                last = s
            if moves:
                break
        often, more = max(1.0, work[child, t] / still), again(tables, depth, work, t, last)
        x[n + b] = words[t] * often * more
        for f in range(shape.fanouts):
            if share[b, f] != 0:
                often /= work[2 * memories + f, t]
                if last > edges[b, PARENT]:
                    more /= work[scratch, f]
        x[b] = words[t] * max(1.0, often) * max(1.0, more)


@inlined
def worth(tables: Compiled, cycles: Compiled, energy: Compiled) -> Compiled:
    """Return the score of cycles and energy."""
    terms, found = tables.terms, 0.0
    for i in range(len(terms)):
        value = terms[i, 0]
        if terms[i, 1] > 0:
            value *= cycles
        if terms[i, 2] > 0:
            value *= energy
        found += value
    return found * SLACK


@compiled
def score(tables: Compiled, steps: Compiled, ahead: Compiled, x: Compiled) -> Compiled:
    """Return the score for words ``x`` across boundaries, steps of compute, and cycles that nothing overlaps."""
    weights = tables.weights
    last = len(x)
    cycles = steps
    for i in range(1, len(weights)):
        total = weights[i, last]
        for b in range(last):
            total += weights[i, b] * x[b]
        cycles = max(cycles, total)
    cycles += ahead
    energy = weights[0, last] + tables.leakage_pj_per_cycle * cycles
    for b in range(last):
        energy += weights[0, b] * x[b]
    return worth(tables, cycles, energy)


@compiled
def lower(tables: Compiled, chosen: Compiled, depth: Compiled, cut: Compiled, work: Compiled, x: Compiled) -> Compiled:
    """Return a lower bound on the score of all mappings that begin with ``chosen``, and which kinds of order may reach.

    Kinds of order, one for each memory but the innermost, say which tensors its innermost loops leave in place. Of the
    last of them all rest at once: if that is not below ``cut``, no more is told.
    """
    edges, n = tables.edges, len(tables.edges)
    if depth < tables.shape.dims:
        pieces(tables, chosen, depth, work)
    ahead = ramping(tables, chosen, depth, work) if len(tables.ramp) else 0.0
    steps = gather(tables, chosen, depth, work) * tables.pace
    for b in range(n):
        if edges[b, CHILD] == tables.shape.memories:
            x[b], x[n + b] = accesses(tables, chosen, depth, work, b), tables.macs
    best, reach, kinds = np.inf, 0, len(tables.kinds) - 1
    cross(tables, depth, kinds, work, x)
    if score(tables, steps, ahead, x) >= cut:
        return cut, reach
    for kind in range(kinds):
        cross(tables, depth, kind, work, x)
        found = score(tables, steps, ahead, x)
        if found < cut:
            reach |= 1 << kind
        best = min(best, found)
    return best, reach


@compiled
def ramping(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Return the least cycles in which first tiles come in, and (where tiles all divide) last ones go out."""
    feats, ramp, shape = tables.features, tables.ramp, tables.shape
    memories, scratch = shape.memories, shape.scratch
    total, worst, before = 0.0, 0.0, -1.0
    for i in range(len(ramp)):
        if ramp[i, KEY] != before:
            total, worst, before = total + worst, 0.0, ramp[i, KEY]
        m, outside = np.int64(ramp[i, MEMORY]), np.int64(ramp[i, OUTSIDE])
        for k in range(shape.dims):
            work[scratch, k] = feats[chosen[k], (2 + outside) * memories + m] if k < depth else 1.0
        cycles = 0.0
        for t in range(shape.tensors):
            if ramp[i, CYCLES + t] > 0:
                cycles += ramp[i, CYCLES + t] * words_of(tables.axes, tables.spans, t, work[scratch])
        worst = max(worst, cycles)
    return total + worst


@entry
def heads_into(tables: Compiled, starts: Compiled, top: Compiled, cut: Compiled, work: Compiled, x: Compiled,
               at: Compiled, heads: Compiled, bounds: Compiled) -> Compiled:
    """Write the first ``top`` (1 or 2) dimensions' choices that fit and may beat ``cut``; return how many.

    Of the first dimension those from ``at[0]`` up to ``at[1]``; the rest of ``at`` ``(d + 3)`` is room to work in.
    """
    count, chosen = 0, at[2:]
    for i in range(at[0], at[1]):
        chosen[0] = i
        if top == 2 and (not fits(tables, chosen, 1, work) or lower(tables, chosen, 1, cut, work, x)[0] >= cut):
            continue
        for j in range(starts[1], starts[2] if top == 2 else starts[1] + 1):
            chosen[1] = j
            if fits(tables, chosen, top, work):
                bound = lower(tables, chosen, top, cut, work, x)[0]
                if bound < cut:
                    heads[count, 0], heads[count, 1], bounds[count] = i, j, bound
                    count += 1
    return count


@compiled
def passed(tables: Compiled, starts: Compiled, chosen: Compiled, level: Compiled, cut: Compiled, work: Compiled,
           x: Compiled) -> Compiled:
    """Return the next choice at a level; for the last dimension that of the next bundle which may beat ``cut``."""
    place, bundles = chosen[level] + 1, tables.bundles
    for i in range(len(bundles) - 1 if level == tables.shape.dims - 1 else 0):
        if bundles[i] == place:
            chosen[level] = starts[level + 1] + i
            if fits(tables, chosen, level + 1, work) and lower(tables, chosen, level + 1, cut, work, x)[0] < cut:
                break
            place = bundles[i + 1]
    return place


@entry
def descend(tables: Compiled, starts: Compiled, top: Compiled, heads: Compiled, bounds: Compiled, cut: Compiled,
            at: Compiled, nodes: Compiled, work: Compiled, x: Compiled, found: Compiled, reach: Compiled) -> Compiled:
    """Write the next complete choices that may beat ``cut`` to ``found`` and ``reach``; return how many.

    ``at`` says where the descent stands: the head, the level (-1 at the end), the choices by level, and last the nodes
    looked at. At most ``nodes`` more are.
    """
    dims, count = tables.shape.dims, 0
    chosen, last = at[2:], at[-1] + nodes
    while at[1] >= 0 and count < len(found) and at[-1] < last:
        level = at[1]
        if level < top:
            at[0] += 1
            if at[0] >= len(heads) or bounds[at[0]] >= cut:
                at[1] = -1
                break
            for k in range(top):
                chosen[k] = heads[at[0], k]
            level = top - 1
        else:
            chosen[level] = passed(tables, starts, chosen, level, cut, work, x)
            if chosen[level] == starts[level + 1]:
                at[1] -= 1
                continue
        at[-1] += 1
        if level >= top and not fits(tables, chosen, level + 1, work):
            continue
        bound, kinds = lower(tables, chosen, level + 1, cut, work, x)
        if bound >= cut:
            continue
        if level == dims - 1:
            for k in range(dims):
                found[count, k] = chosen[k]
            reach[count] = kinds
            count += 1
        else:
            at[1] = level + 1
            chosen[level + 1] = starts[level + 1] - 1
    return count
