"""Compiled: whether partial mappings fit, and into how many pieces undecided dimensions fall for want of room.

Arrays are those of `tables.Tables`, rows of chains those of `kernels`.
"""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

import numpy as np

from tilewright.mapping.spaces.kernels import Compiled, axis_words, compiled, inlined

SLACK = 1 - 1e-9


@inlined
def words_of(axes: Compiled, spans: Compiled, t: Compiled, extents: Compiled) -> Compiled:
    """Return the words of tensor ``t`` in a box of ``extents`` ``(d)``."""
    total = 1.0
    for a in range(spans[t], spans[t + 1]):
        p = extents[axes[a, 0]]
        if axes[a, 1] >= 0:
            p = axis_words(p, extents[axes[a, 1]], axes[a, 2], axes[a, 3], 0)
        total *= p
    return total


@inlined
def within(sides: Compiled, i: Compiled, lanes: Compiled, other: Compiled) -> Compiled:
    """Whether lanes at both slots of a limit of an array fit it (see `Arrays.sides`)."""
    if sides[i, 2] > 0:
        lanes, other = np.ceil(lanes / sides[i, 2]), np.ceil(other / sides[i, 3])
    return lanes * other <= sides[i, 4]


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
        if not within(sides, i, lanes, other):
            return False
    return True


@inlined
def boxed(tables: Compiled, chosen: Compiled, depth: Compiled, m: Compiled, work: Compiled) -> Compiled:
    """Write the extents at memory ``m`` to the first spare row: those decided, else 1."""
    for k in range(tables.shape.dims):
        work[tables.shape.scratch, k] = tables.features[chosen[k], 2 * tables.shape.memories + m] if k < depth else 1.0


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
def together(tables: Compiled, g: Compiled, s: Compiled, t: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Return the bits of tensor ``s`` in room ``g``, and values of dimensions not decided that it and not ``t`` uses.

    For each tile of such dimensions, the tensor takes so many bits at least. Of the two dimensions of a window one at
    most is among them, and the other counts as 1: words are no fewer than those of a window of one.
    """
    own, whole, extents = tables.bits[g, s], 1.0, work[tables.shape.scratch]
    for a in range(tables.spans[s], tables.spans[s + 1]):
        p, r = tables.axes[a, 0], tables.axes[a, 1]
        first = p >= depth and tables.unused[p, t] != 0
        second = r >= depth and tables.unused[r, t] != 0
        if first and not second:
            whole *= tables.sizes[p]
        elif second and not first:
            whole *= tables.sizes[r]
        elif not first:
            words = extents[p]
            if r >= 0:
                words = axis_words(words, extents[r], tables.axes[a, 2], tables.axes[a, 3], 0)
            own *= words
    return own, whole


@compiled
def roomy(tables: Compiled, g: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write into how many pieces dimensions not decided fall together at least, for want of room ``g``.

    By tensor: those that it does not use, but another does which has that room, beside all others at their least.
    """
    shape, bits, m = tables.shape, tables.bits, np.int64(tables.groups[g, 0])
    for s in range(shape.tensors):
        left = tables.groups[g, 1] if bits[g, s] > 0 else np.inf
        for t in range(shape.tensors):
            if t != s and bits[g, t] > 0:
                left -= bits[g, t] * words_of(tables.axes, tables.spans, t, work[shape.scratch])
        for t in range(shape.tensors if left < np.inf else 0):
            own, whole = together(tables, g, s, t, depth, work)
            work[shape.joint + m, t] = max(work[shape.joint + m, t], np.ceil(whole / max(1.0, left / own) * SLACK))


@compiled
def pieces(tables: Compiled, chosen: Compiled, depth: Compiled, work: Compiled) -> Compiled:
    """Write by memory into how many pieces dimensions not decided fall at least, for want of room beside others.

    Each alone, but along windows, and some together. What is cut at a memory is cut further in.
    """
    shape, groups = tables.shape, tables.groups
    work[shape.parts:shape.parts + shape.memories, depth:shape.dims] = 1.0
    work[shape.joint:shape.joint + shape.memories, :shape.tensors] = 1.0
    for g in range(len(groups)):
        m = np.int64(groups[g, 0])
        boxed(tables, chosen, depth, m, work)
        for k in range(depth, shape.dims):
            own, others = taken(tables, g, k, work)
            if tables.plain[k] != 0 and own > 0.0:
                extent = max(1.0, (groups[g, 1] - others) / own)
                work[shape.parts + m, k] = max(work[shape.parts + m, k], np.ceil(tables.sizes[k] / extent * SLACK))
        roomy(tables, g, depth, work)
    # Tiles nest: what is in pieces at a memory is in no fewer further in.
    for inner in range(1, shape.memories):
        for k in range(depth, shape.dims):
            work[shape.parts + inner, k] = max(work[shape.parts + inner, k], work[shape.parts + inner - 1, k])
        for t in range(shape.tensors):
            work[shape.joint + inner, t] = max(work[shape.joint + inner, t], work[shape.joint + inner - 1, t])


@compiled
def again(tables: Compiled, depth: Compiled, work: Compiled, t: Compiled, m: Compiled) -> Compiled:
    """Return into how many pieces the dimensions not decided that a tensor does not use fall at a memory, at least."""
    found, shape = 1.0, tables.shape
    for k in range(depth, shape.dims):
        if tables.unused[k, t] != 0:
            found *= work[shape.parts + m, k]
    return max(found, work[shape.joint + m, t]) if depth < shape.dims else 1.0
