"""Chains of steps for the exact mapper: of those that cost the same, with every order of loops, only one is looked at.

With perfect tiling costs follow from products: of the extents of tiles, of counts in time, and of the lanes of an array
together. So chains that only part the lanes otherwise between an array's sides cost the same; and dimensions that the
same tensors use, none along an axis that slides, count as one, whose chains are products of theirs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.hardware import Fanout, Memory
from tilewright.mapping import MapSpace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_CHAINS = 60_000


def chains_of(space: MapSpace, dimension: int) -> Integers | None:
    """Return (c, s) the steps that a dimension may have at every slot, and perhaps more; None if they are too many.

    Of the tilings of Ruby it is known here that full tiles divide; constraints, but for who may loop where, are not.
    """
    size, rows = int(space.arrays.sizes[dimension]), np.full((1, 1), space.arrays.sizes[dimension], dtype=np.int64)
    for most, free, later in slots_of(space, dimension):
        parts = []
        for extent in np.unique(rows[:, -1]):
            steps = np.arange(1, extent + 1)
            if not free:
                steps = np.array([extent])
            elif divides(space, extent, size):
                steps = steps[extent % steps == 0]
            steps = steps[-(-extent // steps) <= most]
            if not later:
                steps = steps[steps == 1]
            same = rows[rows[:, -1] == extent]
            parts.append(np.hstack([np.repeat(same, len(steps), axis=0), np.tile(steps, len(same))[:, None]]))
        rows = np.vstack(parts)
        if len(rows) > MOST_CHAINS:
            return None
    return rows[:, 1:]


def slots_of(space: MapSpace, dimension: int) -> Iterator[tuple[int, bool, bool]]:
    """Yield by slot how often a dimension's loop may run, and whether it may loop there, and anywhere further in."""
    size, levels = int(space.arrays.sizes[dimension]), space.accelerator.levels
    for s, slot in enumerate(space.layout.slots):
        level = levels[slot.level]
        most = level.side(slot.axis) if isinstance(level, Fanout) else size
        yield most, bool(space.arrays.free[s, dimension]), bool(space.arrays.free[s + 1:, dimension].any())


def divides(space: MapSpace, extents: Any, size: int) -> Any:
    """Whether the tiles of tiles of such extents divide, as far as that is known here."""
    return (space.tiling == "perfect") | ((space.tiling != "imperfect") & (extents != size))


def merges(space: MapSpace) -> bool:
    """Whether chains that cost the same may stand for one another: tiles divide, and nothing tells them apart.

    That is neither dimensions nor the sides of an array.
    """
    alike = all(across == down for tensor in space.operator.tensors for array in space.accelerator.fanouts
                for across, down in [array.merges(tensor.name, tensor.role)]) and not space.accelerator.shares_lanes
    return space.tiling == "perfect" and not space.arrays.ruled and not space.constraints.orders and alike


def groups_of(space: MapSpace) -> list[list[int]]:
    """Return the places of dimensions above 1, those together that count as one."""
    operator = space.operator
    above = [place for place, size in enumerate(operator.sizes.values()) if size > 1]
    if not merges(space):
        return [[place] for place in above]
    names, found = list(operator.sizes), dict[tuple[object, ...], list[int]]()
    for place in above:
        used = tuple(names[place] in tensor.dimensions for tensor in operator.tensors)
        slides = any(names[place] in axis.dimensions and (
            tensor.is_output or sum(operator.sizes[d] > 1 for d in axis.dimensions) > 1)
                     for tensor in operator.tensors for axis in tensor.axes if len(axis.dimensions) > 1)
        found.setdefault((used, place if slides else -1), []).append(place)
    return list(found.values())


def slots_by_level(space: MapSpace) -> dict[str, list[int]]:
    """Return the slots of every level."""
    names = space.layout.levels
    return {name: [s for s, slot in enumerate(space.layout.slots) if names[slot.level] == name] for name in names}


def slot_around(space: MapSpace, memory: Memory) -> int:
    """Return the slot outside the arrays around a memory."""
    slot = space.layout.starts[space.layout.levels.index(memory.name)]
    while slot > 0 and space.layout.slots[slot - 1].axis != "T":
        slot -= 1
    return slot


def counts_of(size: int, steps: Integers) -> Integers:
    """Return how often the loops of chains (c, s) of a dimension run, (c, s)."""
    outside = np.hstack([np.full((len(steps), 1), size), steps[:, :-1]])
    counts: Integers = -(-outside // steps)
    return counts


def described(space: MapSpace, dimension: int, steps: Integers) -> Floats:
    """Return a row for each chain (c, s) of a dimension, as `kernels` reads it."""
    size, slots, machine = int(space.arrays.sizes[dimension]), slots_by_level(space), space.accelerator
    outside, counts = np.hstack([np.full((len(steps), 1), size), steps[:, :-1]]), counts_of(size, steps)
    tiles = [outside[:, slots[memory.name][0]] for memory in machine.memories]
    wide = [outside[:, slot_around(space, memory)] for memory in machine.memories]
    lanes = [counts[:, slots[fanout.name]].prod(axis=1) for fanout in machine.fanouts]
    spread = np.prod(lanes, axis=0) if lanes else np.ones(len(steps), dtype=np.int64)
    times = [counts[:, slots[memory.name][0]] for memory in machine.memories]
    return np.column_stack([*(-(-size // tile) for tile in tiles), *times, *tiles, *wide, *lanes, counts,
                            -(-size // spread), *times]).astype(np.float64)


@dataclass(frozen=True)
class DistinctRows:
    """Rows of a table, those that are the same once."""

    rows: NDArray[Any]
    order: Integers
    starts: Integers
    """``(c, f)`` different rows, ``(n)`` numbers of the rows given, those that are the same together, and ``(c + 1)``
    where those of each begin there."""

    @classmethod
    def of(cls, given: NDArray[Any], first: int = -1, *, apart: bool = False) -> "DistinctRows":
        """Return different ones of some rows, or all where these stand ``apart``, sorted by column ``first``."""
        order = np.lexsort([*given.T, given[:, first]])
        first_of_all = np.ones(min(1, len(given)), dtype=np.bool_)
        new = np.flatnonzero(np.append(first_of_all, (np.diff(given[order], axis=0) != 0).any(axis=1) | apart))
        return cls(given[order[new]], order, np.append(new, len(order)))

    def same(self, row: int) -> Integers:
        """Return the numbers of rows given that are this one."""
        return self.order[self.starts[row]:self.starts[row + 1]]


@dataclass(frozen=True)
class StepChains:
    """Chains of steps of dimensions that count as one."""

    space: MapSpace
    dims: tuple[int, ...]
    steps: tuple[Integers, ...]
    """Places of the dimensions, and all chains (c, s) of each."""

    @classmethod
    def of(cls, space: MapSpace, dims: list[int]) -> "StepChains | None":
        """Return the chains of some dimensions; None where they are too many to list."""
        found = [chains for chains in (chains_of(space, place) for place in dims) if chains is not None]
        made = cls(space, tuple(dims), tuple(found))
        return made if len(found) == len(dims) and np.prod([len(one.rows) for one in made.each]) <= MOST_CHAINS else (
            None)

    @cached_property
    def each(self) -> tuple[DistinctRows, ...]:
        """The chains of each dimension that differ in cost; all of them where tiles need not divide.

        There rows do not tell what chains cost: 6 cut into tiles of 4 or of 3 are two in both.
        """
        return tuple(DistinctRows.of(self._seen(described(self.space, place, steps)), apart=not merges(self.space))
                     for place, steps in zip(self.dims, self.steps, strict=True))

    @cached_property
    def together(self) -> DistinctRows:
        """Those of all dimensions together."""
        rows = self.each[0].rows
        for other in self.each[1:]:
            rows = (rows[:, None] * other.rows).reshape(-1, rows.shape[1])
        return DistinctRows.of(rows, self._outer, apart=not merges(self.space))

    @property
    def _outer(self) -> int:
        """The column of the extent at the second memory, or of that at the only one."""
        memories = len(self.space.accelerator.memories)
        return 2 * memories + min(1, memories - 1)

    @cached_property
    def bundles(self) -> tuple[Floats, Integers]:
        """Return a row (b, f) no worse than any of those of one extent at the second memory, and starts (b + 1)."""
        rows, memories, fans = self.together.rows, len(self.space.accelerator.memories), len(
            self.space.accelerator.fanouts)
        first = np.flatnonzero(np.diff(rows[:, self._outer], prepend=-1.0))
        least = np.minimum.reduceat(rows, first)
        most = [*range(memories, 2 * memories), *range(4 * memories, 4 * memories + fans)]
        least[:, most] = np.maximum.reduceat(rows, first)[:, most]
        return least, np.append(first, len(rows))

    def __len__(self) -> int:
        return len(self.together.rows)

    @property
    def size(self) -> int:
        """How many values the dimensions have together."""
        return prod(int(self.space.arrays.sizes[at]) for at in self.dims)

    def _seen(self, rows: Floats) -> Floats:
        """Return rows with what does not matter left out: how lanes are parted between the sides of an array."""
        if merges(self.space):
            machine, slots = self.space.accelerator, slots_by_level(self.space)
            memories, fans = len(machine.memories), len(machine.fanouts)
            for f, fanout in enumerate(machine.fanouts):
                own = [4 * memories + fans + s for s in slots[fanout.name]]
                rows[:, own] = 1.0
                rows[:, own[0]] = rows[:, 4 * memories + f]
        return rows

    @cached_property
    def _ways(self) -> dict[int, tuple[Integers, list[tuple[int, ...]]]]:
        return {}

    def ways(self, row: int) -> tuple[Integers, list[tuple[int, ...]]]:
        """Return (w, d, s) the steps that make up a row, one of each way to part lanes between slots, and lanes (s)."""
        if row not in self._ways:
            found: dict[tuple[int, ...], Integers] = {}
            lanes = np.array([slot.axis != "T" for slot in self.space.layout.slots])
            for number in self.together.same(row):
                places = np.unravel_index(number, [len(one.rows) for one in self.each])
                own = [one.same(int(place)) for one, place in zip(self.each, places, strict=True)]
                for chosen in product(*own):
                    steps = np.array([every[c] for every, c in zip(self.steps, chosen, strict=True)])
                    counts = np.prod([counts_of(int(self.space.arrays.sizes[place]), one[None])[0]
                                      for place, one in zip(self.dims, steps, strict=True)], axis=0)
                    found.setdefault(tuple(np.where(lanes, counts, 1).tolist()), steps)
            self._ways[row] = np.array(list(found.values())), list(found)
        return self._ways[row]


class UnlistedChains(StepChains):
    """Chains of a dimension that nobody looks at: one row of nothing stands for all."""

    together = DistinctRows(np.zeros((1, 1)), np.zeros(1, dtype=np.int64), np.array([0, 1]))
    bundles = together.rows, together.starts
