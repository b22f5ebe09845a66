"""What the compiled bound of whole mappings reads: the cost rules of `exact_tables`, without chains of steps."""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import Fanout
from tilewright.mapping import MapSpace
from tilewright.search.mappers.exact.chains import slot_around
from tilewright.search.mappers.exact.tables import CHILD, TENSOR, Arrays, Tables
from tilewright.search.objective import Objective

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
IGNORED, CUT, FIRST = range(3)
"""What loops do to the pieces of their dimension: nothing, cut them, or leave only the first part of each."""
INSIDE, AROUND = range(2)
"""Rows of `BoundArrays.memory_slots`: a memory's own slot, and the first outside it that no array around it fills."""
MERGED, FED, SPREAD = range(3)
"""How words of compute are counted at a boundary: lanes share accesses; every instance of the memory feeds one unit; or
lanes lie between."""
KNOWN = 64
"""Chains of steps of each dimension of which the counts are kept."""


class BoundArrays(NamedTuple):
    """What `auto_bounds` reads."""

    memory_slots: Integers
    """``(2, m)`` see `AROUND`."""
    fanout_slots: Integers
    """``(2, f)`` the first slot of a fan-out, and the one behind its last."""
    used: Integers
    """``(t, d)``: whether a tensor uses a dimension."""
    memories: int
    fanouts: int
    tensors: int
    """How many there are."""
    rules: Arrays
    """What the exact mapper reads."""
    modes: Integers
    """Ways to count pieces: ``(k, s)`` what loops do."""
    mode_of: Integers
    """``(b, 2, m + 1)`` which way to use, by boundary, side and the memories that advance (-1: there is one piece)."""
    least_energy_pj: float
    """What any mapping takes."""
    accesses: Floats
    """``(t)``: operations of the dimensions that a tensor uses."""
    ramp: Floats
    """All of `Tables.ramp`, of which the rules have what goes out only where tiling is perfect."""
    plain_words: Floats
    """``(t)``: words of the axes that do not slide."""
    lanes: Integers
    """``(s)``: which slots are lanes."""
    counting: Integers
    """``(b)``: at compute `MERGED`, `FED` or `SPREAD`; elsewhere, whether a window may slide."""
    windows: Integers
    """``(b 2 (m + 1), s)``: what loops do to sliding axes there."""


def bound_arrays(space: MapSpace, objective: Objective | None) -> tuple[BoundArrays, tuple[int, int]]:
    """Return the arrays of `auto_bounds`, and the shape of the room that its functions work in."""
    sizes, slots = space.arrays.sizes, space.layout.shape[0]
    tables = Tables.unlisted(space, objective or Objective.parse("power"))
    active = [chains.dims[0] for chains in tables.chains]
    given, operator = tables.arrays, space.operator
    memories, fanouts, _, tensors, *_ = given.shape
    own = np.array([[tables.slots[memory.name][0] for memory in tables.memories],
                    [slot_around(space, memory) for memory in tables.memories]])
    lanes_of = np.array([(tables.slots[fanout.name][0], tables.slots[fanout.name][-1] + 1)
                         for fanout in tables.accelerator.fanouts], dtype=np.int64).reshape(-1, 2).T
    unused = given.unused
    lanes = np.array([slot.axis != "T" for slot in space.layout.slots], dtype=np.int64)
    modes, mode_of, windows = _ways(*map(_plain, (own[INSIDE], lanes_of, lanes, given.edges, given.share)))
    accesses = np.array([float(prod(operator.sizes[name] for name in tensor.dimensions))
                         for tensor in operator.tensors])
    spans = given.spans
    plain = np.array([float(prod(int(sizes[active[p]]) for p, r in given.axes[spans[t]:spans[t + 1], :2] if r < 0))
                      for t in range(tensors)])
    found = BoundArrays(
        own, np.ascontiguousarray(lanes_of), np.ascontiguousarray(1 - unused.T), memories, fanouts, tensors, given,
        modes, mode_of, _least_energy(given), accesses, tables.ramp, plain, lanes,
        _counting(tables, given.edges, given.share), windows)
    return found, (tensors + 8 + (memories - 1) * len(given.classes) + KNOWN * len(active),
                   max(len(modes) + slots, given.weights.shape[1], slots + 2))


def _least_energy(given: Arrays) -> float:
    """Return what any mapping takes: every word crosses each boundary between memories once."""
    weights, n = given.weights[:, 0], len(given.edges)
    outer = given.edges[:, CHILD] < given.shape.memories
    return float(weights[-1] + (weights[:n] + weights[n:-1])[outer] @ given.words[given.edges[outer, TENSOR]])


def _plain(array: Integers) -> tuple[Any, ...]:
    """Return an array as tuples, which can be a key."""
    return tuple(tuple(row) if isinstance(row, list) else row for row in array.tolist())


@lru_cache(maxsize=1024)
def _ways(*given: tuple[Any, ...]) -> tuple[Integers, Integers, Integers]:
    """Return the ways to count pieces, which to use where (-1: there is one), and what happens to sliding axes.

    Kept, as layers and machines of one structure have the same.
    """
    memory_slots, fanout_slots, lanes, edges, share = map(np.array, given)
    fanout_slots, edges, share = fanout_slots.reshape(2, -1), edges.reshape(-1, 3), share.reshape(len(given[3]), -1)
    slots, memories = len(lanes), len(memory_slots)
    found = {(*np.where(lanes != 0, FIRST, CUT).tolist(),): 0}
    mode_of = np.full((len(edges), 2, memories + 1), -1, dtype=np.int64)
    windows = np.zeros((len(edges) * 2 * (memories + 1), slots), dtype=np.int64)
    for b, (_, _, child) in enumerate(edges.tolist()):
        end = memory_slots[child] if child < memories else slots
        merged = np.zeros(slots, dtype=np.bool_)
        for f in np.flatnonzero(share[b]):
            merged[fanout_slots[0, f]:fanout_slots[1, f]] = True
        outside = np.arange(slots) < end
        for side in range(2):
            gathered = merged & (side == 0)
            row = (b * 2 + side) * (memories + 1)
            windows[row] = np.where(outside & ~gathered, CUT, IGNORED)
            for m in range(memories):
                windows[row + 1 + m] = windows[row] * (np.arange(slots) < memory_slots[m])
            at_compute = [memories] if side == 0 and merged.any() else []
            for advancing in range(child + 1) if child < memories else at_compute:
                first = memory_slots[advancing] if advancing < memories else slots
                still = (lanes == 0) & (np.arange(slots) >= first)
                mode = np.where(outside, np.where(still | gathered, FIRST, CUT), IGNORED)
                if (mode == CUT).any():
                    mode_of[b, side, advancing] = found.setdefault((*mode.tolist(),), len(found))
        if child == memories:
            windows[b * 2 * (memories + 1)] = np.where(merged, IGNORED, CUT)
    return np.array(list(found), dtype=np.int64), mode_of, windows


def _counting(tables: Tables, edges: Integers, share: Integers) -> Integers:
    """Return how each boundary is counted (see `BoundArrays`)."""
    levels = tables.accelerator.levels
    found = np.zeros(len(edges), dtype=np.int64)
    for b, (t, parent, child) in enumerate(edges.tolist()):
        if child < len(tables.memories):
            found[b] = not tables.space.operator.tensors[t].is_output
        elif not share[b].any():
            inside = levels[levels.index(tables.memories[parent]):]
            found[b] = SPREAD if any(isinstance(level, Fanout) for level in inside) else FED
    return found
