"""What the compiled bound of whole mappings reads: the cost rules of `exact_tables`, without chains of steps."""

from typing import Any

import numpy as np

from tilewright.mapping import MapSpace
from tilewright.search.mappers.exact_tables import Tables
from tilewright.search.objective import Objective

Tariff = tuple[Any, ...]


def tariff_of(space: MapSpace, objective: Objective | None) -> tuple[Tariff, tuple[int, int]]:
    """Return the arrays of `auto_kernels`, and the shape of the room that its functions work in.

    They are: slots of memories, outside the arrays around them, and the first and last of fan-outs ``(4, .)``; which
    dimensions tensors use ``(t, d)``; numbers of memories, fan-outs, tensors, factors and kinds of order; axes and
    where those of each tensor begin; boundaries ``(b, 3)``; fan-outs that merge there ``(b, f)``; weights
    ``(r, 2 b + 1)``; limits; terms of the objective (none where it cannot be bound); what nothing overlaps; words of
    tensors; and classes ``(c, t)`` of dimensions by the tensors that do not use them.
    """
    sizes = space.arrays.sizes
    active = np.flatnonzero(sizes > 1) if (sizes > 1).any() else np.array([0])
    slots = space.layout.shape[0]
    resting = tuple(np.ones((1, slots), dtype=np.int64) for _ in active)
    tables = Tables(space, objective or Objective.parse("power"), tuple(active.tolist()), resting)
    _, unused, axes, spans, shape, _, _, _, weights, edges, share, limits, _, terms, ramp, words = tables.arrays
    memories, fans, _, tensors, *_ = shape
    where = np.zeros((4, max(memories, fans)), dtype=np.int64)
    where[0, :memories] = [tables.slots[memory.name][0] for memory in tables.memories]
    where[1, :memories] = [tables.around(memory) for memory in tables.memories]
    for f, fanout in enumerate(tables.accelerator.fanouts):
        where[2:, f] = tables.slots[fanout.name][0], tables.slots[fanout.name][-1] + 1
    classes = np.unique(unused[unused.any(axis=1)], axis=0) if unused.any() else np.zeros((1, tensors), dtype=np.int64)
    width = 2 * memories * tensors + fans * (tensors + 1) + 1
    counts = memories, fans, tensors, width, len(classes) ** (memories - 1)
    tariff = (where, np.ascontiguousarray(1 - unused.T), counts, axes, spans, edges, share, weights, limits, terms,
              ramp, words, classes)
    return tariff, (3 + (memories - 1) * len(classes), max(width, len(weights)))
