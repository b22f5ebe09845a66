"""A map space as plain arrays: what the compiled operators on whole populations read."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.batch import Layout
from tilewright.mapping.fit import barred_dimensions, held_bits, home_of, partition_of
from tilewright.mapping.footprint import least_word_bits
from tilewright.mapping.spaces.rules.constraints import Constraints, written_out
from tilewright.mapping.spaces.rules.tilings import Bands, Chains, as_bits, bands, exact_slots, lane_floors
from tilewright.workload import Operator, Tensor

# Most that the packed table has room for.
MOST_SLOTS, MOST_TENSORS, MOST_AXES, MOST_GROUPS = 32, 8, 48, 64
# Rows of the packed table (`pack`): where each part begins. Loop orders follow the divisors.
META, ACTIVE, PLACES, SIZES, ANCHOR, SPANS, SLOT = range(7)
FREE = SLOT + MOST_SLOTS
RELEVANT = FREE + MOST_SLOTS
AXES = RELEVANT + MOST_TENSORS
GROUPS = AXES + MOST_AXES
DIVISORS = GROUPS + MOST_GROUPS
# Columns of its row META. DIMS counts the dimensions of size above 1, which are all that the table knows; ACTIVE holds
# their places in the layout, PLACES the rank that each dimension of the layout has as long as it never loops. RULES is
# the row where the rules begin (`pack_rules`; 0: none, steps are free or perfect), WHOLE whether steps must divide the
# extent outside (unless that is the size), KNOWN the row where the extents of mappings of the space begin, MAPPINGS how
# many these are.
SLOTS, DIMS, TENSORS, GROUP_COUNT, PERFECT, ALL_DIMS, RULES, WHOLE, KNOWN, MAPPINGS = range(10)
# Its row SPANS: for each tensor, and one more, the row where its axes begin.
# Columns of `SpaceArrays.slots`; in the packed table ORDER_START is a row of the table.
KIND, PARTNER, MODE, LIMIT, BLOCK, PARTNER_BLOCK, ORDER_START, ORDER_COUNT, FLOOR, EXACT = range(10)
# Parts of the rules, each a row for every slot: bounds of counts, then of the extents outside. Two parts of bits
# follow, a row for every slot (and one more) and dimension: the extents outside it that can come from the size, and
# those that can come down to 1.
LEAST, MOST, TILE_LEAST, TILE_MOST, BITS = range(5)
# Largest size of which every extent is marked: above, bits and the marks they are made of take gigabytes.
MOST_MARKED = 1 << 22
# Parts of a bit in which bits of compressed words are told.
PARTS_OF_BITS = 1 << 10
# Values of the columns KIND and MODE.
TEMPORAL, SPATIAL = np.int64(0), np.int64(1)
FIXED, FLEXIBLE, BLOCKS = 0, 1, 2
Store = tuple[int, Callable[[Accelerator], int], list[int]]
"""A slot, what fits there on a machine, and what a word of each tensor takes of that."""


class SpaceArrays(NamedTuple):
    """One map space, lowered (``s`` slots, ``d`` dimensions, ``t`` tensors)."""

    sizes: NDArray[np.int32]
    """``(d)`` int32."""
    slots: NDArray[np.int32]
    """``(s, 10)`` int32: kind; the slot of the array's other side or -1; how the array is limited; the limit (side,
    instances or blocks); own and partner's side of a block; first row and number of rows of ``orders`` (0 rows: any
    order); at the first side of an array the lanes that it must have in use; whether counts may have no remainder."""
    free: NDArray[np.uint8]
    """``(s, d)`` uint8: whether the dimension may loop at the slot."""
    anchor: NDArray[np.int32]
    """``(d)`` int32: outermost temporal slot where the dimension may loop; it takes what the others leave."""
    divisors: NDArray[np.int32]
    """``(d, m)`` int32: number of divisors of the size, then the divisors, ascending."""
    orders: NDArray[np.int8]
    """``(n, d)`` int8: ranks of the loop orders allowed at slots that restrict them."""
    axes: NDArray[np.int32]
    """``(a, 6)`` int32: tensor, dimension, coefficient, second dimension or -1, its coefficient, whether tiles take the
    smallest box around their words. Where they do not, coefficients of one axis are divided by their greatest common
    divisor."""
    groups: NDArray[np.int64]
    """``(g, 2 + t)`` int64: a temporal slot, bits that fit there, bits that a word of each tensor takes of them."""
    relevant: NDArray[np.uint8]
    """``(t, d)`` uint8: whether the tensor uses the dimension."""
    perfect: bool
    """Whether steps must divide."""
    whole: bool
    """Whether a step must divide the extent outside it unless that is the size (perfect, and the tilings of Ruby)."""
    ruled: bool
    """Whether anything but ``free``, the arrays and ``perfect`` restricts the steps."""
    bands: Bands
    """Bounds on counts and tiles."""
    stores: list[Store]
    """What ``groups`` are made of, for any machine of this structure."""

    def limits_on(self, layout: Layout, machine: Accelerator) -> tuple[NDArray[np.int32], list[int]]:
        """Return the limits of ``slots`` and the bits of ``groups`` on another machine of this structure."""
        return slot_table(layout, machine)[:, LIMIT], [left(machine) for _, left, _ in self.stores]

    def on(self, layout: Layout, machine: Accelerator) -> "SpaceArrays":
        """Return the arrays of a space without rules on another machine of this structure."""
        slots, groups = self.slots.copy(), self.groups.copy()
        slots[:, LIMIT], groups[:, 1] = self.limits_on(layout, machine)
        return self._replace(slots=slots, groups=groups, bands=bands(
            Constraints(), layout.places, dict(zip(layout.dimensions, self.sizes.tolist(), strict=True)), self.free,
            side_limits(slots)))


def space_arrays(operator: Operator, accelerator: Accelerator, tiling: str, constraints: Constraints,
                 layout: Layout) -> SpaceArrays:
    """Return a space as arrays, whether or not its rules leave it mappings.

    Raises an `InputError` if a dimension may loop at no memory.
    """
    names, sizes = layout.dimensions, operator.sizes
    slots = slot_table(layout, accelerator)
    slots[:, FLOOR] = lane_floors(constraints, layout, accelerator)
    slots[:, EXACT] = exact_slots(tiling, layout)
    barred = barred_dimensions(operator, accelerator, dict(zip(layout.levels, layout.keeps, strict=True)))
    free = np.array([[name in constraints.loops.get(place, names) and sizes[name] > 1
                      and name not in barred.get(place, ()) for name in names]
                     for place in layout.places], dtype=np.uint8)
    temporal = free * (slots[:, KIND] != SPATIAL)[:, None]
    for d, name in enumerate(names):
        if sizes[name] > 1 and not temporal[:, d].any():
            raise InputError("space.loops", f"must let {name} loop at some memory", dict(constraints.loops))
    stores = stores_of(operator, accelerator, layout)
    return SpaceArrays(
        sizes=np.array(list(sizes.values()), dtype=np.int32),
        slots=slots,
        free=free,
        anchor=temporal.argmax(axis=0).astype(np.int32),
        divisors=divisor_table(*sizes.values()),
        orders=_order_rows(constraints, layout, slots),
        axes=axis_table(operator, accelerator.footprint == "box"),
        groups=np.array([[slot, left(accelerator), *words] for slot, left, words in stores],
                        dtype=np.int64).reshape(-1, 2 + len(operator.tensors)),
        relevant=relevance(operator),
        perfect=tiling == "perfect",
        whole=tiling != "imperfect",
        ruled=tiling not in ("perfect", "imperfect") or bool(
            constraints.factors or constraints.tiles or constraints.utilization),
        bands=bands(constraints, layout.places, sizes, free, side_limits(slots)),
        stores=stores,
    )


def _order_rows(constraints: Constraints, layout: Layout, slots: NDArray[np.int32]) -> NDArray[np.int8]:
    """Return ``(n, d)`` ranks of all allowed orders, and note in ``slots`` where each slot's begin."""
    rows: list[list[int]] = []
    for s, place in enumerate(layout.places):
        choices = written_out(constraints.orders.get(place, ()), layout.dimensions)
        slots[s, ORDER_START], slots[s, ORDER_COUNT] = len(rows), len(choices)
        rows += [[choice.index(name) for name in layout.dimensions] for choice in choices]
    return np.array(rows, dtype=np.int8).reshape(-1, len(layout.dimensions))


def divisors_of(number: int) -> list[int]:
    """Return the divisors of ``number``, ascending."""
    small = [f for f in range(1, int(number**0.5) + 1) if number % f == 0]
    return small + [number // f for f in reversed(small) if f * f != number]


@lru_cache(maxsize=256)
def divisor_table(*sizes: int) -> NDArray[np.int32]:
    """Return ``(d, m)``: for each size its number of divisors, then the divisors; kept, as kept sets share them."""
    found = [divisors_of(size) for size in sizes]
    table = np.zeros((len(sizes), 1 + max(map(len, found))), dtype=np.int32)
    for row, divisors in zip(table, found, strict=True):
        row[0] = len(divisors)
        row[1:1 + len(divisors)] = divisors
    return table


def slot_table(layout: Layout, accelerator: Accelerator) -> NDArray[np.int32]:
    """Return ``(s, 10)``, the columns named above, with any loop order and remainders allowed and no floors."""
    table = np.zeros((len(layout.slots), 10), dtype=np.int32)
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


@lru_cache(maxsize=256)
def axis_table(operator: Operator, box: bool) -> NDArray[np.int32]:
    """Return ``(a, 6)``: every axis of every tensor; kept, as kept sets share them."""
    at = {name: d for d, name in enumerate(operator.sizes)}
    rows = []
    for t, tensor in enumerate(operator.tensors):
        for axis in tensor.axes:
            steps = (coefficient for _, coefficient in axis.terms) if box else axis.coprime
            first, *rest = [(at[name], step) for name, step in zip(axis.dimensions, steps, strict=True)]
            rows.append((t, *first, *(rest[0] if rest else (-1, 1)), box))
    return np.array(rows, dtype=np.int32).reshape(-1, 6)


@lru_cache(maxsize=256)
def relevance(operator: Operator) -> NDArray[np.uint8]:
    """Return ``(t, d)``: which dimensions each tensor uses; kept, as kept sets share them."""
    return np.array([[name in tensor.dimensions for name in operator.sizes] for tensor in operator.tensors],
                    dtype=np.uint8)


def stores_of(operator: Operator, accelerator: Accelerator, layout: Layout) -> list[Store]:
    """Return every store of limited capacity and what a word of each tensor takes of it (rule 10).

    Both are bits; where a machine compresses tensors or blocks have scales, parts of bits, in the first case rounded in
    favour of tiles (`least_word_bits`).
    """
    found: list[Store] = []
    held = {tensor.name: held_bits(tensor, accelerator) for tensor in operator.tensors}
    whole = all(isinstance(bits, int) for bits in held.values())
    parts = 1 if whole and accelerator.sparsity is None else PARTS_OF_BITS

    def word_bits(memory: Memory, tensor: Tensor) -> int:
        if accelerator.sparsity is None:
            return int(parts * held[tensor.name])
        return max(1, int(parts * least_word_bits(accelerator, memory.name, tensor, float(held[tensor.name]))))

    for s, slot in enumerate(layout.slots):
        memory = accelerator.levels[slot.level]
        if not isinstance(memory, Memory):
            continue
        kept = [tensor for tensor in operator.tensors if tensor.name in layout.keeps[slot.level]]
        own = {tensor.name: partition_of(memory, tensor) for tensor in kept}
        homed = {tensor.name for tensor in kept if slot.level and home_of(tensor.name, layout.keeps) == slot.level}
        stores: list[tuple[str | None, float | None]] = [*memory.partitions_bytes, (None, memory.capacity_bytes)]
        for key, capacity_bytes in stores:
            bits = [memory.copies * word_bits(memory, tensor) if own.get(tensor.name, "") == key else 0
                    for tensor in operator.tensors]
            if capacity_bytes is None or not any(bits):
                continue
            # The home of a tensor holds all of it, whatever the loops.
            taken = sum(each * tensor.words(operator.sizes, accelerator.footprint == "box")
                        for each, tensor in zip(bits, operator.tensors, strict=True) if tensor.name in homed)
            found.append((s, partial(_left, slot.level, key, parts, taken), [
                0 if tensor.name in homed else each for each, tensor in zip(bits, operator.tensors, strict=True)]))
    return found


def _left(level: int, owner: str | None, parts: int, taken: int, machine: Accelerator) -> int:
    memory = machine.levels[level]
    room = memory.rooms[owner] if isinstance(memory, Memory) else None
    return int(parts * 8 * (room or 0.0)) - taken


def pack(space: SpaceArrays) -> NDArray[np.int64]:
    """Return all arrays as one table, which compiled functions can pass on at no cost.

    Dimensions of size 1 are left out (one is kept where there is no other).

    Raises an `InputError` if there are more slots, tensors, axes or capacities than the table has room for.
    """
    moving = space.sizes > 1 if (space.sizes > 1).any() else np.arange(len(space.sizes)) == 0
    active = np.flatnonzero(moving)
    axes = active_axes(space.axes, active)
    parts = ((SLOT, MOST_SLOTS, space.slots, "levels"), (FREE, MOST_SLOTS, space.free[:, active], "levels"),
             (RELEVANT, MOST_TENSORS, space.relevant[:, active], "tensors"), (AXES, MOST_AXES, axes, "axes of tensors"),
             (GROUPS, MOST_GROUPS, space.groups, "capacities"))
    for _, most, array, name in parts:
        if len(array) > most:
            raise InputError("space", f"must have at most {most} {name}", len(array))
    spans = AXES + np.searchsorted(axes[:, 0], np.arange(len(space.relevant) + 1))
    places = np.argsort(np.concatenate([active, np.flatnonzero(~moving)]))
    counts = np.array([len(space.slots), len(active), len(space.relevant), len(space.groups), space.perfect,
                       len(space.sizes), 0, space.whole, 0, 0])
    orders = DIVISORS + len(active)
    order_ranks = np.argsort(np.argsort(space.orders[:, active], axis=1), axis=1)
    placed: list[tuple[int, NDArray[Any]]] = [(start, array) for start, _, array, _ in parts]
    placed += [(META, counts[None]), (ACTIVE, active[None]), (PLACES, places[None]), (SIZES, space.sizes[None, active]),
               (ANCHOR, space.anchor[None, active]), (SPANS, spans[None]), (DIVISORS, space.divisors[active]),
               (orders, order_ranks)]
    table = np.zeros((orders + len(order_ranks), max(array.shape[1] for _, array in placed)), dtype=np.int64)
    for start, array in placed:
        table[start:start + len(array), :array.shape[1]] = array
    table[SLOT:SLOT + len(space.slots), ORDER_START] += orders
    return table


def add_bounds(table: NDArray[np.int64], space: SpaceArrays) -> NDArray[np.int64]:
    """Return the table of `pack` with the bounds of the space behind it: what is asked of a mapping that is whole."""
    rules, slots, active = len(table), len(space.slots), table[ACTIVE, :table[META, DIMS]]
    table = np.concatenate([table, np.zeros((BITS * slots, table.shape[1]), dtype=np.int64)])
    table[rules:, :len(active)] = np.concatenate(space.bands)[:, active]
    table[META, RULES] = rules
    return table


def pack_rules(space: SpaceArrays) -> NDArray[np.int64]:
    """Return the table of `add_bounds` with the extents behind it that lead to whole mappings, and bounds of these."""
    _check_marked(space.sizes.max())
    table = add_bounds(pack(space), space)
    slots, active = len(space.slots), table[ACTIVE, :table[META, DIMS]]
    width = max(table.shape[1], 1 + int(space.sizes.max()) // 64)
    start, bits = len(table), (slots + 1) * len(active)
    whole = np.zeros((start + 2 * bits, width), dtype=np.int64)
    whole[:start, :table.shape[1]] = table
    for i, d in enumerate(active):
        chains = chains_of(space, int(d))
        inward = chains.inward()
        both = chains.outward() & inward
        for part, marks in enumerate((both, inward)):
            whole[start + part * bits + i:start + (part + 1) * bits:len(active)] = as_bits(marks, width)
        # Where there is no chain, no extent is allowed.
        least = np.where(both[:-1].any(axis=1), both[:-1].argmax(axis=1), chains.size + 1)
        for part, ends in ((TILE_LEAST, least), (TILE_MOST, chains.size - both[:-1, ::-1].argmax(axis=1))):
            first = table[META, RULES] + part * slots
            whole[first:first + slots, i] = ends
    return whole


def add_known(rules: NDArray[np.int64], steps: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the table of `pack_rules` with the mappings ``steps`` ``(s, d, b)`` of the space behind it."""
    table = np.concatenate([rules, np.zeros((steps.shape[2] * (len(steps) + 1), rules.shape[1]), dtype=np.int64)])
    active = table[ACTIVE, :table[META, DIMS]]
    known = table[len(rules):].reshape(steps.shape[2], len(steps) + 1, -1)
    known[:, 0, :len(active)] = table[SIZES, :len(active)]
    known[:, 1:, :len(active)] = steps[:, active].transpose(2, 0, 1)
    table[META, [KNOWN, MAPPINGS]] = len(rules), steps.shape[2]
    return table


def _check_marked(size: int) -> None:
    if size > MOST_MARKED:
        raise InputError("space", f"must have sizes up to {MOST_MARKED}, for mappings to be held against its rules",
                         int(size), "Split the operator, or only ask for the size (--samples 0)")


def chains_of(space: SpaceArrays, d: int) -> Chains:
    """Return which chains of steps dimension ``d`` may have."""
    _check_marked(space.sizes[d])
    band = Bands(*(part[:, d] for part in space.bands))
    return Chains(int(space.sizes[d]), band, space.whole, space.slots[:, EXACT].astype(np.int64))


def side_limits(slots: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return ``(s)``: the most lanes that each side of an array may have, 0 at memories and where there is no limit."""
    limits = np.where(slots[:, MODE] == BLOCKS, slots[:, LIMIT] * slots[:, BLOCK], slots[:, LIMIT])
    return np.where(slots[:, KIND] == SPATIAL, np.maximum(limits, 0), 0).astype(np.int64)


def active_axes(axes: NDArray[np.int32], active: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the axes without dimensions of size 1, the others numbered anew; what no dimension moves is left out."""
    number = {int(d): i for i, d in enumerate(active)}
    rows = []
    for tensor, first, stride, second, dilation, box in axes.tolist():
        terms = [(number[d], c) for d, c in ((first, stride), (second, dilation)) if d in number]
        if terms:
            rows.append((tensor, *terms[0], *(terms[1] if len(terms) > 1 else (-1, 1)), box))
    return np.array(rows, dtype=np.int64).reshape(-1, 6)
