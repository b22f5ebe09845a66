"""A map space as plain arrays: what the compiled operators on whole populations read."""

from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.batch import Layout
from tilewright.mapping.fit import partition_of, tensor_bits
from tilewright.workload import Operator

# Columns of `SpaceArrays.slots`.
KIND, PARTNER, MODE, LIMIT, BLOCK, PARTNER_BLOCK, ORDER_START, ORDER_COUNT = range(8)
# Values of the columns KIND and MODE.
TEMPORAL, SPATIAL = 0, 1
FIXED, FLEXIBLE, BLOCKS = 0, 1, 2


class SpaceArrays(NamedTuple):
    """One map space, lowered (``s`` slots, ``d`` dimensions, ``t`` tensors).

    Parameters
    ----------
    sizes
        ``(d)`` int32.
    slots
        ``(s, 8)`` int32: kind; the slot of the array's other side or -1; how the array is limited; the limit (side,
        instances or blocks); own and partner's side of a block; first row and number of rows of ``orders`` (0 rows:
        any order).
    free
        ``(s, d)`` uint8: whether the dimension may loop at the slot.
    anchor
        ``(d)`` int32: outermost temporal slot where the dimension may loop; it takes what the others leave.
    divisors
        ``(d, m)`` int32: number of divisors of the size, then the divisors, ascending.
    orders
        ``(n, d)`` int8: ranks of the loop orders allowed at slots that restrict them.
    axes
        ``(a, 5)`` int32: tensor, dimension, coefficient, second dimension or -1, its coefficient; coefficients of one
        axis divided by their greatest common divisor.
    groups
        ``(g, 2 + t)`` float64: a temporal slot, bits that fit there, bits that a word of each tensor takes of them.
    relevant
        ``(t, d)`` uint8: whether the tensor uses the dimension.
    perfect
        ``(1)`` int32: whether steps must divide.
    """

    sizes: NDArray[np.int32]
    slots: NDArray[np.int32]
    free: NDArray[np.uint8]
    anchor: NDArray[np.int32]
    divisors: NDArray[np.int32]
    orders: NDArray[np.int8]
    axes: NDArray[np.int32]
    groups: NDArray[np.float64]
    relevant: NDArray[np.uint8]
    perfect: NDArray[np.int32]


def divisors_of(number: int) -> list[int]:
    """Return the divisors of ``number``, ascending."""
    small = [f for f in range(1, int(number**0.5) + 1) if number % f == 0]
    return small + [number // f for f in reversed(small) if f * f != number]


def divisor_table(sizes: list[int]) -> NDArray[np.int32]:
    """Return ``(d, m)``: for each size its number of divisors, then the divisors."""
    found = [divisors_of(size) for size in sizes]
    table = np.zeros((len(sizes), 1 + max(map(len, found))), dtype=np.int32)
    for row, divisors in zip(table, found, strict=True):
        row[0] = len(divisors)
        row[1:1 + len(divisors)] = divisors
    return table


def slot_table(layout: Layout, accelerator: Accelerator) -> NDArray[np.int32]:
    """Return ``(s, 8)``, the columns named above, with any loop order allowed."""
    table = np.zeros((len(layout.slots), 8), dtype=np.int32)
    table[:, PARTNER] = -1
    table[:, LIMIT:PARTNER_BLOCK + 1] = 1
    for s, slot in enumerate(layout.slots):
        level = accelerator.levels[slot.level]
        if not isinstance(level, Fanout):
            continue
        side = 0 if slot.axis == "X" else 1
        table[s, KIND] = SPATIAL
        table[s, LIMIT] = level.shape[side]
        others = [o for o, other in enumerate(layout.slots) if other.level == slot.level and o != s]
        if others:
            table[s, PARTNER] = others[0]
        if level.flexible:
            table[s, MODE], table[s, LIMIT] = FLEXIBLE, level.instances
        elif level.blocks is not None:
            table[s, MODE] = BLOCKS
            table[s, BLOCK], table[s, PARTNER_BLOCK] = level.blocks[side], level.blocks[1 - side]
            table[s, LIMIT] = level.instances // (level.blocks[0] * level.blocks[1])
    return table


def axis_table(operator: Operator) -> NDArray[np.int32]:
    """Return ``(a, 5)``: every axis of every tensor."""
    at = {name: d for d, name in enumerate(operator.sizes)}
    rows = []
    for t, tensor in enumerate(operator.tensors):
        for axis in tensor.axes:
            shared = gcd(*(coefficient for _, coefficient in axis.terms))
            first, *rest = [(at[name], coefficient // shared) for name, coefficient in axis.terms]
            rows.append((t, *first, *(rest[0] if rest else (-1, 1))))
    return np.array(rows, dtype=np.int32).reshape(-1, 5)


def relevance(operator: Operator) -> NDArray[np.uint8]:
    """Return ``(t, d)``: which dimensions each tensor uses."""
    return np.array([[name in tensor.dimensions for name in operator.sizes] for tensor in operator.tensors],
                    dtype=np.uint8)


def capacity_groups(operator: Operator, accelerator: Accelerator, layout: Layout) -> NDArray[np.float64]:
    """Return ``(g, 2 + t)``: every store of limited capacity and what a word of each tensor takes of it (rule 10)."""
    rows: list[list[float]] = []
    for s, slot in enumerate(layout.slots):
        memory = accelerator.levels[slot.level]
        if not isinstance(memory, Memory):
            continue
        copies = 2.0 if memory.buffering == "double" else 1.0
        kept = [tensor for tensor in operator.tensors if tensor.name in layout.keeps[slot.level]]
        own = {tensor.name: partition_of(memory, tensor) for tensor in kept}
        stores: list[tuple[str | None, float | None]] = [*memory.partitions_bytes, (None, memory.capacity_bytes)]
        for key, capacity_bytes in stores:
            bits = [copies * tensor_bits(tensor, accelerator) if own.get(tensor.name, "") == key else 0.0
                    for tensor in operator.tensors]
            if capacity_bytes is not None and any(bits):
                rows.append([float(s), 8.0 * capacity_bytes, *bits])
    return np.array(rows, dtype=np.float64).reshape(-1, 2 + len(operator.tensors))

