"""The loop orders that can be best for given steps: few, by the counting rules.

At a memory, let t be a tensor that the innermost loop does not use. All loops there that t does not use may as well
stand innermost: t is fetched less often, and all others advance with the innermost loop as before (rule 2). Beyond that
an order shows in windows alone (rule 3), which carry over along the innermost advancing loop: that is the innermost
loop, for those that use it, and for t the first that it uses. So it is enough to try each sliding dimension in those
two places. Where a dimension is unused by several tensors, or slides in all, or orders are restricted, all are tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping import Layout, MappingBatch
from tilewright.search.mappers.exact.tables import Tables

Order = tuple[int, ...]


@dataclass(frozen=True)
class OrderedSteps:
    """Mappings: steps (n, s, d), each with the orders (c, s, d) of one of some tables; they end at ``ends[1:]``."""

    layout: Layout
    steps: NDArray[np.int32]
    which: NDArray[np.intp]
    tables: Sequence[NDArray[np.int8]]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.ends[-1])

    def take(self, first: int, last: int) -> MappingBatch:
        """Return the mappings from one on to before another."""
        numbers = np.arange(first, min(last, len(self)))
        place = np.searchsorted(self.ends, numbers, "right") - 1
        ranks = np.empty((len(numbers), *self.layout.shape), dtype=np.int8)
        for table in np.unique(self.which[place]).tolist():
            mine = np.flatnonzero(self.which[place] == table)
            ranks[mine] = self.tables[table][numbers[mine] - self.ends[place[mine]]]
        return MappingBatch(self.layout, np.ascontiguousarray(np.moveaxis(self.steps[place], 0, 2)),
                            np.ascontiguousarray(np.moveaxis(ranks, 0, 2)))


@dataclass(frozen=True)
class Orders:
    """Turns choices of chains into mappings with every order that can be best."""

    tables: Tables
    known: dict[tuple[object, ...], NDArray[np.int8]] = field(default_factory=dict)

    @cached_property
    def _unused_by(self) -> list[tuple[bool, ...]]:
        operator = self.tables.space.operator
        return [tuple(name not in tensor.dimensions for tensor in operator.tensors) for name in operator.sizes]

    @cached_property
    def _sliding(self) -> list[tuple[bool, ...]]:
        """Whether each dimension slides in each operand."""
        operator = self.tables.space.operator
        return [tuple(any(len(axis.terms) > 1 and name in axis.dimensions
                          and all(operator.sizes[d] > 1 for d in axis.dimensions) for axis in tensor.axes)
                      for tensor in operator.operands) for name in operator.sizes]

    @cached_property
    def _all(self) -> list[bool]:
        """By memory, whether all orders have to be tried."""
        space = self.tables.space
        odd = any(sum(self._unused_by[d]) > 1 or (not any(self._unused_by[d]) and any(self._sliding[d]))
                  for chains in self.tables.chains for d in chains.dims)
        return [odd or memory.name in space.constraints.orders for memory in self.tables.memories]

    @property
    def every(self) -> bool:
        """Whether all orders have to be tried at some memory."""
        return any(self._all)

    def batches(self, found: NDArray[np.int64], reach: NDArray[np.int64]) -> MappingBatch:
        """Return the mappings of choices ``found`` (n, d), with the kinds of order that the bits of ``reach`` allow.

        Choices whose lanes cannot be parted between the sides of arrays have none.
        """
        ways = [self._steps(tuple(row)) for row in (found - self.tables.starts[:-1]).tolist()]
        fits = np.array([way is not None for way in ways], dtype=np.bool_)
        steps = np.array([way for way in ways if way is not None], dtype=np.int32)
        made = self.ordered(steps.reshape(-1, *self.tables.space.layout.shape), reach[fits])
        return made.take(0, len(made))

    def ordered(self, steps: NDArray[np.int32], reach: NDArray[np.int64]) -> "OrderedSteps":
        """Return steps (n, s, d) with the kinds of order that the bits of ``reach`` (n) allow."""
        sizes = np.array(list(self.tables.space.operator.sizes.values()), dtype=np.int32)
        outside = np.concatenate([np.broadcast_to(sizes, (len(steps), 1, len(sizes))), steps[:, :-1]], axis=1)
        slots = [self.tables.slots[memory.name][0] for memory in self.tables.memories]
        loops = (outside[:, slots] > steps[:, slots]) @ (1 << np.arange(len(sizes)))
        keys, back = np.unique(np.column_stack([loops, reach]), axis=0, return_inverse=True)
        tables = [self._ranks(tuple(key[:-1]), key[-1]) for key in keys.tolist()]
        counts = np.array([len(table) for table in tables], dtype=np.int64)[back.reshape(-1)]
        return OrderedSteps(self.tables.space.layout, steps, back.reshape(-1), tables, np.cumsum([0, *counts]))

    def _steps(self, rows: tuple[int, ...]) -> NDArray[np.int64] | None:
        """Return (s, d) steps that make up a row of each table of chains and whose lanes fit the sides of arrays."""
        parted: dict[tuple[int, ...], tuple[NDArray[np.int64], ...]] = {(1,) * len(self.tables.space.layout.slots): ()}
        for chains, row in zip(self.tables.chains, rows, strict=True):
            every, counts = chains.ways(row)
            lanes, before = np.array(list(parted))[:, None] * np.array(counts), list(parted.values())
            fits = self.fits(lanes.reshape(-1, lanes.shape[2])).reshape(lanes.shape[:2])
            parted = {tuple(lanes[one, way].tolist()): (*before[one], every[way])
                      for one, way in np.argwhere(fits).tolist()}
            if not parted:
                return None
        steps = np.ones(self.tables.space.layout.shape, dtype=np.int64)
        for chains, way in zip(self.tables.chains, next(iter(parted.values())), strict=True):
            steps[:, list(chains.dims)] = way.T
        return steps

    def fits(self, lanes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether (n) so many lanes (n, s) at every slot fit the arrays."""
        found = np.ones(len(lanes), dtype=np.bool_)
        for slot, partner, across, down, most in self.tables.sides.tolist():
            one, other = lanes[:, slot], lanes[:, partner] if partner >= 0 else np.ones_like(lanes[:, slot])
            if across:
                one, other = -(-one // across), -(-other // down)
            found &= one * other <= most
        return found

    def _ranks(self, loops: tuple[int, ...], reach: int) -> NDArray[np.int8]:
        """Return (c, s, d) ranks for loops given as bits by memory."""
        if (loops, reach) not in self.known:
            dims = len(self._unused_by)
            combinations: dict[tuple[Order, ...], None] = {}
            for kind, resting in enumerate(self.tables.kinds.tolist()):
                if reach >> kind & 1:
                    options = [self._orders(m, [d for d in range(dims) if bits >> d & 1],
                                            resting[m] if m + 1 < len(loops) else None)
                               for m, bits in enumerate(loops)]
                    combinations.update(dict.fromkeys(product(*options)))
            shape = (len(combinations), *self.tables.space.layout.shape)
            table = np.broadcast_to(np.arange(dims, dtype=np.int8), shape).copy()
            for row, orders in zip(table, combinations, strict=True):
                for memory, order in zip(self.tables.memories, orders, strict=True):
                    full = [*order, *(d for d in range(dims) if d not in order)]
                    row[self.tables.slots[memory.name][0], full] = np.arange(dims)
            self.known[loops, reach] = table
        return self.known[loops, reach]

    def _orders(self, memory: int, loops: list[int], resting: list[int] | None) -> list[Order]:
        """Return the orders of ``loops``, outermost first, that leave ``resting`` in place; one where none matters."""
        if self._all[memory]:
            return list(permutations(loops))
        still = [d for d in loops if resting is not None and self._unused_by[d] == tuple(map(bool, resting))]
        if resting is None or not any(any(self._unused_by[d]) for d in loops):
            return [tuple(loops)]
        if not any(resting) or not still:
            return []
        rest = [d for d in loops if d not in still]
        slides = [t for t, still_there in enumerate(resting[:-1]) if still_there]
        first = [d for d in still if any(self._sliding[d])] or still[:1]
        then = [d for d in rest if any(self._sliding[d][t] for t in slides)] or rest[:1]
        inner = [(*(d for d in still if d != last), last) for last in first]
        outer = [(*(d for d in rest if d != last), last) for last in then] or [()]
        return [(*out, *within) for out, within in product(outer, inner)]
