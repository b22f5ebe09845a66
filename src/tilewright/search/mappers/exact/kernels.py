"""Compiled descent through partial mappings: chains of steps for one dimension after another, held to a bound.

``feats`` ``(c, f)`` describes the chains of all dimensions, one row each, as `exact_tables.Tables` lays them out:
pieces, counts in time, extents (of the tile, and outside the arrays around it) by memory, lanes by fan-out, counts by
slot, steps, and counts in time once more. A bundle's row has the least of all its rows, but the most lanes and (at the
first place) counts in time. Row by row the bound follows the counting rules exactly but for what sliding windows save;
dimensions that are not decided yet are cut only where there is no room for them whole.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from pathlib import Path

import numpy as np

from tilewright.base import stamped
from tilewright.mapping.spaces.kernels import NONE, ONE, Compiled, axis_words, compiled, entry, inlined
from tilewright.search.mappers.exact.room import SLACK, again, fits, pieces, words_of
from tilewright.search.mappers.exact.tables import CHILD, CYCLES, KEY, MEMORY, OUTSIDE, PARENT, TENSOR
from tilewright.search.objective import BREAKS_CONSTRAINT

KINDS = 63
"""Kinds of order that have bits of their own; where a later one may reach, all are taken to."""
# Their functions and constants end up inside ours.
_named = stamped([*(Path(__file__).with_name(f"{name}.py") for name in ("room", "tables")),
                  Path(__file__).parents[2] / "objective.py"])


@compiled
def spread(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write the lanes that each tensor does not use and how many more there may be, by fan-out; return those in all.

    And by port how many more words its busiest instance moves, at least, than all physical ones in the mean.
    """
    feats, unused, shape = tables.features, tables.unused, tables.shape
    memories, fans, tensors, scratch = shape.memories, shape.fanouts, shape.tensors, shape.scratch
    left = 1.0
    for i in range(len(tables.ports)):
        work[shape.busy, i] = tables.ports[i, 0]
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
        # Dimensions to come may take all lanes that are left: a bound must not count on less.
        work[scratch, f] = max(1.0, tables.instances[f] / used) if depth < shape.dims else 1.0
        left *= work[scratch, f]
        for i in range(len(tables.ports)):
            work[shape.busy, i] /= used * work[scratch, f] if f < tables.ports[i, 1] else 1.0
    return left


@compiled
def gather(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write to ``work`` what the first ``depth`` dimensions make of each tensor; return the least steps of compute.

    Rows of ``work`` ``(., t)``: by memory the pieces of dimensions that the tensor does not use, how often their loops
    there run, (by fan-out) the lanes along them, then in one row how many more lanes there may be by fan-out, and by
    memory whether a loop there moves the tensor.
    """
    feats, unused, shape = tables.features, tables.unused, tables.shape
    memories, tensors = shape.memories, shape.tensors
    again_at = 4 * memories + shape.fanouts + shape.slots + 1
    for m in range(memories):
        for t in range(tensors):
            pieces, counts, moves = 1.0, 1.0, 0.0
            for k in range(depth):
                row = feats[chosen[k]]
                if unused[k, t] != 0:
                    pieces *= row[m]
                    counts *= row[memories + m]
                elif row[again_at + m] > 1:
                    moves = 1.0
            work[m, t], work[memories + m, t], work[shape.moving + m, t] = pieces, counts, moves
    left = spread(tables, chosen, depth, work)
    steps, done = 1.0, 1.0
    for k in range(depth):
        steps *= feats[chosen[k], 4 * memories + shape.fanouts + shape.slots]
        done *= tables.sizes[k]
    return steps * max(1.0, tables.macs / done / left)


@inlined
def alike(tables: Compiled, row: Compiled, b: Compiled, size: Compiled) -> Compiled:
    """Return the lanes of a row of chains that share at boundary ``b``; ragged tiles leave more than ``size`` idle."""
    lanes = 1.0
    for f in range(tables.shape.fanouts):
        if tables.share[b, f] != 0:
            lanes *= tables.features[row, 4 * tables.shape.memories + f]
    return min(lanes, size)


@compiled
def sharing(tables: Compiled, chosen: Compiled, depth: Compiled, b: Compiled, left: Compiled) -> Compiled:
    """Return by how much lanes share at boundary ``b`` at most: those decided, and of others across and along windows.

    Of others, for dimensions not decided, there are ``left``. Lanes share what does not use their dimensions, as
    many as these have values at most, and what windows overlap: ``n`` lanes along both dimensions of axes share
    ``n / (2 sqrt(n) - 1)`` at most, where all are along one axis.
    """
    axes, spans, sizes, t = tables.axes, tables.spans, tables.sizes, tables.edges[b, TENSOR]
    shared, free, along, windows = 1.0, 1.0, 1.0, 1.0
    for k in range(tables.shape.dims):
        if tables.unused[k, t] != 0 and k < depth:
            shared *= alike(tables, chosen[k], b, sizes[k])
        elif tables.unused[k, t] != 0:
            free *= sizes[k]
    for a in range(spans[t], spans[t + 1]):
        if axes[a, 1] >= 0:
            first, second = axes[a, 0], axes[a, 1]
            p = alike(tables, chosen[first], b, sizes[first]) if first < depth else min(left, sizes[first])
            r = alike(tables, chosen[second], b, sizes[second]) if second < depth else min(left, sizes[second])
            overlap = p * r / axis_words(p, r, axes[a, 2], axes[a, 3], 0)
            if max(first, second) < depth:
                shared *= overlap
            elif min(first, second) < depth:
                along *= overlap
            else:
                windows *= overlap
    return shared, min(left, free), along * min(windows, left / (2 * np.sqrt(left) - 1))


@compiled
def accesses(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled, b: Compiled) -> Compiled:
    """Return the least accesses by the compute units at boundary ``b``, all steps together.

    Note down for `jointly` what they cost but for lanes left that share across the tensor, and the most such lanes.
    """
    shape, t, left = tables.shape, tables.edges[b, TENSOR], 1.0
    for f in range(shape.fanouts):
        if tables.share[b, f] != 0:
            left *= work[shape.scratch, f]
    shared, free, along = sharing(tables, chosen, depth, b, left)
    work[shape.feeding, t] = tables.weights[b, 0] * tables.macs / (shared * along)
    work[shape.feeding + 1, t] = free
    return max(tables.words[t], tables.macs / (shared * min(left, free * along)))


@compiled
def jointly(tables: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Return the least energy of what compute accesses, all tensors together, as `accesses` noted it down.

    A lane left shares across one tensor only, where no undecided dimension is unused by two. So of costs ``x`` the
    least sum of ``x / g`` is sought where all ``g`` together multiply to the lanes left at most: for any price of a
    lane (of its logarithm), no sum is below the least of ``x / g + price log g`` less the price of all lanes.
    """
    shape, costs, most, best, left = tables.shape, work[tables.shape.feeding], work[tables.shape.feeding + 1], 0.0, 1.0
    for k in range(depth, shape.dims):
        across = 0
        for t in range(shape.tensors):
            across += tables.unused[k, t]
        if across > 1:
            return 0.0
    for f in range(shape.fanouts):
        left *= work[shape.scratch, f]
    for least in range(shape.tensors if left > 1.0 else 0):
        product, many = 1 / left, 0
        for t in range(shape.tensors):
            if costs[t] >= costs[least]:
                product *= costs[t]
                many += 1
        price = product ** (1 / many)
        if price > 0.0:
            total = -price * np.log(left)
            for t in range(shape.tensors):
                lanes = min(most[t], max(1.0, costs[t] / price))
                total += costs[t] / lanes + price * np.log(lanes)
            best = max(best, total)
    return best


@inlined
def hinge(size: Compiled, extent: Compiled, other: Compiled) -> Compiled:
    """Return the most that pieces of a dimension, none above ``extent``, are longer than ``other``, all together."""
    whole = np.floor(size / extent)
    return whole * max(0.0, extent - other) + max(0.0, size - whole * extent - other)


@inlined
def reaching(tables: Compiled, row: Compiled, m: Compiled, size: Compiled, b: Compiled) -> Compiled:
    """Return the extent of a tile at memory ``m`` by a row of chains, those of lanes that share at ``b`` together."""
    extent = tables.features[row, 2 * tables.shape.memories + m]
    return min(extent * alike(tables, row, b, size) if b >= 0 else extent, size)


@compiled
def windows(tables: Compiled, chosen: Compiled, depth: Compiled, b: Compiled, at: Compiled,
            shared: Compiled) -> Compiled:
    """Return how often words cross boundary ``b`` because windows overlap, at least; of lanes that share once.

    Pieces ``p`` and ``r`` along an axis touch ``p r - max(0, p - d) max(0, r - s)`` words. Summed over all pairs that
    is the product of the sizes less that of both `hinge`, which are largest where pieces are as large as may be. Where
    the innermost loop that advances the tile is along the axis, at memory ``at``, what one instance (or all lanes
    that share) brings in during that loop is no less than the words of one piece as long as the tile at ``at``. There
    is one such loop. Along axes not decided no word counts twice.
    """
    t, child, found, saved = tables.edges[b, TENSOR], tables.edges[b, CHILD], 1.0, 1.0
    end, lanes = tables.bundles[-1], b if shared else -1
    for a in range(tables.spans[t], tables.spans[t + 1]):
        p, r = tables.axes[a, 0], tables.axes[a, 1]
        if r < 0 or p >= depth or r >= depth or chosen[p] >= end or chosen[r] >= end:
            continue
        across, down = tables.axes[a, 3], tables.axes[a, 2]
        first, second = tables.sizes[p], tables.sizes[r]
        one = hinge(first, reaching(tables, chosen[p], child, first, lanes), across)
        other = hinge(second, reaching(tables, chosen[r], child, second, lanes), down)
        words = first * second - one * other
        held = max(hinge(first, reaching(tables, chosen[p], at, first, NONE), across) * other,
                   one * hinge(second, reaching(tables, chosen[r], at, second, NONE), down))
        found *= words / axis_words(first, second, down, across, 0)
        saved = min(saved, (first * second - held) / words)
    return max(1.0, found * saved)


@compiled
def slide(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write how often words of operands cross boundaries along `windows`, by child and tensor, out and then in."""
    shape, edges = tables.shape, tables.edges
    first = shape.sliding
    for b in range(len(edges)):
        t, child = edges[b, TENSOR], edges[b, CHILD]
        if child == shape.memories:
            continue
        at = child - 1
        while at > 0 and work[shape.moving + at, t] == 0:
            at -= 1
        sliding = tables.slides[t] != 0
        work[first + child, t] = windows(tables, chosen, depth, b, at, True) if sliding else 1.0
        work[first + shape.memories + child, t] = windows(tables, chosen, depth, b, at, False) if sliding else 1.0


@compiled
def crossing(tables: Compiled, depth: Compiled, b: Compiled, last: Compiled, still: Compiled,
             work: Compiled) -> Compiled:
    """Return the least words that cross boundary ``b`` out of the parent, and into its children.

    Loops that run ``still`` times leave the tensor in place, the outermost of them at memory ``last``. Of dimensions
    not decided, the pieces count that lie outside all of them.
    """
    shape, edges, share = tables.shape, tables.edges, tables.share
    t, child, sliding = edges[b, TENSOR], edges[b, CHILD], shape.sliding
    often, more = max(1.0, work[child, t] / still), again(tables, depth, work, t, last)
    into = tables.words[t] * often * more * work[sliding + shape.memories + child, t]
    for f in range(shape.fanouts):
        if share[b, f] != 0:
            often /= work[2 * shape.memories + f, t]
            if last > edges[b, PARENT]:
                more /= work[shape.scratch, f]
    return tables.words[t] * max(1.0, often) * max(1.0, more) * work[sliding + child, t], into


@inlined
def charge(tables: Compiled, sums: Compiled, place: Compiled, b: Compiled, out: Compiled, into: Compiled) -> Compiled:
    """Add to row ``place`` of ``sums`` what ``out`` words at the parent and ``into`` at the children of ``b`` take."""
    weights, n = tables.weights, len(tables.edges)
    for i in range(weights.shape[1]):
        sums[place, i] += weights[b, i] * out + weights[n + b, i] * into


@compiled
def tally(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Sum up energy and each port's cycles: where all tensors rest, then what more it takes, by memory and class.

    Only one memory matters to a boundary: the first, from the inside, with a loop that moves the tensor. Return as bits
    which of them matter.
    """
    shape, edges, weights, classes = tables.shape, tables.edges, tables.weights, tables.classes
    moving, first, matters, fed = shape.moving, shape.sums, 0, 0.0
    work[first:first + 1 + (shape.memories - 1) * len(classes), :weights.shape[1]] = 0.0
    for i in range(weights.shape[1]):
        work[first, i] = weights[-1, i]
    for b in range(len(edges)):
        t, child = edges[b, TENSOR], edges[b, CHILD]
        if child == shape.memories:
            out = accesses(tables, chosen, depth, work, b)
            charge(tables, work, first, b, out, tables.macs)
            fed += weights[b, 0] * out
            continue
        still, at = 1.0, child - 1
        while at >= 0 and work[moving + at, t] == 0:
            still *= work[shape.memories + at, t]
            at -= 1
        less, fewer = crossing(tables, depth, b, max(at, 0), still * (
            work[shape.memories + at, t] if at >= 0 else 1.0), work)
        charge(tables, work, first, b, less, fewer)
        if at >= 0:
            out, into = crossing(tables, depth, b, at + 1, still, work)
            if out > less or into > fewer:
                matters |= 1 << at
                for k in range(len(classes)):
                    if classes[k, t] == 0:
                        charge(tables, work, first + 1 + at * len(classes) + k, b, out - less, into - fewer)
    if depth < shape.dims:
        work[first, 0] += max(0.0, jointly(tables, depth, work) - fed)
    return matters


@inlined
def factor(rows: Compiled, i: Compiled, cycles: Compiled, energy: Compiled) -> Compiled:
    """Return a weight times cycles, energy, or both."""
    return rows[i, 0] * (cycles if rows[i, 1] > 0 else 1.0) * (energy if rows[i, 2] > 0 else 1.0)


@inlined
def worth(tables: Compiled, cycles: Compiled, energy: Compiled) -> Compiled:
    """Return what scores at least that takes so many cycles and so much energy: as `Scorer.least`."""
    over = 0.0
    for i in range(len(tables.limits)):
        over += max(0.0, factor(tables.limits, i, cycles, energy) * SLACK - 1.0)
    if over > 0.0:
        return BREAKS_CONSTRAINT * (1.0 + min(over, 1e40))
    found = 0.0
    for i in range(len(tables.terms)):
        found += factor(tables.terms, i, cycles, energy)
    return found * SLACK


@inlined
def total(tables: Compiled, steps: Compiled, ahead: Compiled, sums: Compiled, first: Compiled, factors: Compiled,
          kind: Compiled) -> Compiled:
    """Return the score where the loops at the memories rest as row ``kind`` of the kinds says; below 0 all do.

    ``sums`` hold energy and cycles of ports, from row ``first`` on; ``factors`` are those of the busiest instances.
    """
    picks, cycles, energy = tables.picks, steps, 0.0
    for i in range(tables.weights.shape[1]):
        value = sums[first, i]
        if kind >= 0:
            for m in range(picks.shape[1]):
                value += sums[first + picks[kind, m], i]
        if i == 0:
            energy = value
        else:
            cycles = max(cycles, value * factors[i])
    cycles = np.ceil(cycles * SLACK) + ahead
    return worth(tables, cycles, energy + tables.leakage_pj_per_cycle * cycles)


@compiled
def lower(tables: Compiled, chosen: Compiled, depth: Compiled, cut: Compiled, work: Compiled) -> Compiled:
    """Return a lower bound on the score of all mappings that begin with ``chosen``, and which kinds of order may reach.

    Kinds of order, one for each memory but the innermost, say which tensors its innermost loops leave in place. If that
    where all of them rest at once is not below ``cut``, no more is told.
    """
    if depth < tables.shape.dims:
        pieces(tables, chosen, depth, work)
    ahead = ramping(tables, chosen, depth, work) if len(tables.ramp) else 0.0
    steps = gather(tables, chosen, depth, work) * tables.pace
    slide(tables, chosen, depth, work)
    matters, best, reach, picks = tally(tables, chosen, depth, work), np.inf, 0, tables.picks
    first, factors = tables.shape.sums, work[tables.shape.busy]
    if total(tables, steps, ahead, work, first, factors, NONE) >= cut:
        return cut, reach
    # Kinds that differ only where it does not matter cost the same, so one is enough; but of complete choices all
    # that may reach are told, for their orders to be tried.
    for kind in range(len(picks)):
        same = False
        for m in range(picks.shape[1] if depth < tables.shape.dims else 0):
            same = same or (picks[kind, m] > 1 + m * len(tables.classes) and matters >> m & 1 == 0)
        if same:
            continue
        found = total(tables, steps, ahead, work, first, factors, kind)
        if found < cut:
            reach |= 1 << kind if kind < KINDS else -1
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
@_named
def heads_into(tables: Compiled, starts: Compiled, top: Compiled, cut: Compiled, work: Compiled, at: Compiled,
               heads: Compiled, bounds: Compiled) -> Compiled:
    """Write the first ``top`` (1 or 2) dimensions' choices that fit and may beat ``cut``; return how many.

    Of the first dimension those from ``at[0]`` up to ``at[1]``; the rest of ``at`` ``(d + 3)`` is room to work in.
    """
    count, chosen = 0, at[2:]
    for i in range(at[0], at[1]):
        chosen[0] = i
        if top == 2 and (not fits(tables, chosen, ONE, work) or lower(tables, chosen, ONE, cut, work)[0] >= cut):
            continue
        for j in range(starts[1], starts[2] if top == 2 else starts[1] + 1):
            chosen[1] = j
            if fits(tables, chosen, top, work):
                bound = lower(tables, chosen, top, cut, work)[0]
                if bound < cut:
                    heads[count, 0], heads[count, 1], bounds[count] = i, j, bound
                    count += 1
    return count


@compiled
def passed(tables: Compiled, starts: Compiled, chosen: Compiled, level: Compiled, cut: Compiled,
           work: Compiled) -> Compiled:
    """Return the next choice at a level; for the last dimension that of the next bundle which may beat ``cut``."""
    place, bundles = chosen[level] + 1, tables.bundles
    for i in range(len(bundles) - 1 if level == tables.shape.dims - 1 else 0):
        if bundles[i] == place:
            chosen[level] = starts[level + 1] + i
            if fits(tables, chosen, level + 1, work) and lower(tables, chosen, level + 1, cut, work)[0] < cut:
                break
            # No chain of the bundle can: the bundle's row has the least of each, so all are passed at once.
            place = bundles[i + 1]
    return place


@entry
@_named
def descend(tables: Compiled, starts: Compiled, top: Compiled, heads: Compiled, bounds: Compiled, cut: Compiled,
            at: Compiled, nodes: Compiled, work: Compiled, found: Compiled, reach: Compiled) -> Compiled:
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
            # Heads are sorted by their bounds: none further on can beat the cut.
            if at[0] >= len(heads) or bounds[at[0]] >= cut:
                at[1] = -1
                break
            for k in range(top):
                chosen[k] = heads[at[0], k]
            level = top - 1
        else:
            chosen[level] = passed(tables, starts, chosen, level, cut, work)
            if chosen[level] == starts[level + 1]:
                at[1] -= 1
                continue
        at[-1] += 1
        if level >= top and not fits(tables, chosen, level + 1, work):
            continue
        bound, kinds = lower(tables, chosen, level + 1, cut, work)
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
