"""What the compiled bound of whole mappings reads: the cost rules of `exact_tables`, without chains of steps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import Fanout
from tilewright.mapping import MapSpace
from tilewright.search.mappers.exact_tables import Tables
from tilewright.search.objective import Objective

Tariff = tuple[Any, ...]
Integers = NDArray[np.int64]
IGNORED, CUT, FIRST = range(3)
"""What loops do to the pieces of their dimension: nothing, cut them, or leave only the first part of each."""
KNOWN = 64
"""Chains of steps of each dimension of which the counts are kept."""


def tariff_of(space: MapSpace, objective: Objective | None) -> tuple[Tariff, tuple[int, int]]:
    """Return the arrays of `auto_bounds`, and the shape of the room that its functions work in.

    They are: slots of memories, outside the arrays around them, and the first and last of fan-outs ``(4, .)``; which
    dimensions tensors use ``(t, d)``; numbers of memories, fan-outs, tensors and ways to count pieces; axes and where
    those of each tensor begin; boundaries ``(b, 3)``; the ways to count ``(k, s)``, and which to use by boundary, side
    and memories that advance ``(b, 2, m + 1)``; weights ``(2 b + 1, r)``; limits (operations, leakage, the least
    energy, and accesses by dimensions of each tensor); terms of the objective (none where it cannot be bound); what
    nothing overlaps; words of tensors, and of their axes that do not slide; classes ``(c, t)`` of dimensions by the
    tensors that do not use them; which slots are lanes; instances and fan-outs outside for every port ``(r, 2)``; how
    boundaries are counted ``(b)``; what loops do to sliding axes there ``(b 2 (m + 1), s)``; and the kinds of order
    ``(k, m)``, as rows of sums: classes of dimensions that run innermost at each memory but the innermost.
    """
    sizes = space.arrays.sizes
    active = np.flatnonzero(sizes > 1) if (sizes > 1).any() else np.array([0])
    slots = space.layout.shape[0]
    resting = tuple(np.ones((1, slots), dtype=np.int64) for _ in active)
    tables = Tables(space, objective or Objective.parse("power"), tuple(active.tolist()), resting)
    _, unused, axes, spans, shape, _, _, _, weights, edges, share, limits, _, terms, _, words = tables.arrays
    memories, fans, _, tensors, *_ = shape
    operator = space.operator
    where = np.zeros((4, max(memories, fans)), dtype=np.int64)
    where[0, :memories] = [tables.slots[memory.name][0] for memory in tables.memories]
    where[1, :memories] = [tables.around(memory) for memory in tables.memories]
    for f, fanout in enumerate(tables.accelerator.fanouts):
        where[2:, f] = tables.slots[fanout.name][0], tables.slots[fanout.name][-1] + 1
    classes = np.unique(unused[unused.any(axis=1)], axis=0) if unused.any() else np.zeros((1, tensors), dtype=np.int64)
    lanes = np.array([slot.axis != "T" for slot in space.layout.slots], dtype=np.int64)
    modes, used, windows = _ways(where, lanes, edges, share, memories)
    used_by = np.array([np.prod([operator.sizes[name] for name in tensor.dimensions], dtype=np.float64)
                        for tensor in operator.tensors])
    plain = np.array([np.prod([sizes[active[p]] for p, r in axes[spans[t]:spans[t + 1], :2] if r < 0], dtype=np.float64)
                      for t in range(tensors)])
    counts = memories, fans, tensors, len(modes)
    outer = edges[:, 2] < memories
    energy = weights[0, -1] + (weights[0, :len(edges)] + weights[0, len(edges):-1])[outer] @ words[edges[outer, 0]]
    kinds = np.indices((len(classes),) * (memories - 1)).reshape(memories - 1, len(classes) ** (memories - 1)).T
    kinds = np.ascontiguousarray(kinds + 1 + len(classes) * np.arange(memories - 1))
    tariff = (where, np.ascontiguousarray(1 - unused.T), counts, axes, spans, edges, modes, used,
              np.ascontiguousarray(weights.T), np.array([*limits[:2], energy, *used_by]), terms,
              tables.ramp(tails=True), words, plain, classes, lanes, tables.ports, _counting(tables, edges, share),
              windows, kinds)
    return tariff, (tensors + 8 + (memories - 1) * len(classes) + KNOWN * len(active),
                    max(len(modes) + slots, len(weights), slots + 2))


def _ways(where: Integers, lanes: Integers, edges: Integers, share: Integers,
          memories: int) -> tuple[Integers, Integers, Integers]:
    """Return the ways to count pieces, which to use where (-1: there is one), and what happens to sliding axes."""
    slots = len(lanes)
    found = {(*np.where(lanes != 0, FIRST, CUT).tolist(),): 0}
    used = np.full((len(edges), 2, memories + 1), -1, dtype=np.int64)
    windows = np.zeros((len(edges) * 2 * (memories + 1), slots), dtype=np.int64)
    for b, (_, _, child) in enumerate(edges.tolist()):
        end = where[0, child] if child < memories else slots
        merged = np.zeros(slots, dtype=np.bool_)
        for f in np.flatnonzero(share[b]):
            merged[where[2, f]:where[3, f]] = True
        outside = np.arange(slots) < end
        for side in range(2):
            gathered = merged & (side == 0)
            row = (b * 2 + side) * (memories + 1)
            windows[row] = np.where(outside & ~gathered, CUT, IGNORED)
            for m in range(memories):
                windows[row + 1 + m] = windows[row] * (np.arange(slots) < where[0, m])
            at_compute = [memories] if side == 0 and merged.any() else []
            for advancing in range(child + 1) if child < memories else at_compute:
                first = where[0, advancing] if advancing < memories else slots
                still = (lanes == 0) & (np.arange(slots) >= first)
                mode = np.where(outside, np.where(still | gathered, FIRST, CUT), IGNORED)
                if (mode == CUT).any():
                    used[b, side, advancing] = found.setdefault((*mode.tolist(),), len(found))
        if child == memories:
            windows[b * 2 * (memories + 1)] = np.where(merged, IGNORED, CUT)
    return np.array(list(found), dtype=np.int64), used, windows


def _counting(tables: Tables, edges: Integers, share: Integers) -> Integers:
    """Return how each boundary is counted: whether a window may slide there.

    At compute, 0 where lanes share accesses, 1 where every instance of the memory feeds one unit, and else 2.
    """
    levels = tables.accelerator.levels
    found = np.zeros(len(edges), dtype=np.int64)
    for b, (t, parent, child) in enumerate(edges.tolist()):
        if child < len(tables.memories):
            found[b] = not tables.space.operator.tensors[t].is_output
        elif not share[b].any():
            inside = levels[levels.index(tables.memories[parent]):]
            found[b] = 2 if any(isinstance(level, Fanout) for level in inside) else 1
    return found
