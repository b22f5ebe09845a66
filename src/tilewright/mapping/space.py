"""The mappings that a mapper may use, and how to draw, enumerate and repair them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.mapping.batch import Layout, MappingBatch
from tilewright.mapping.constraints import ANY, Constraints
from tilewright.mapping.space_arrays import (
    KIND,
    ORDER_COUNT,
    ORDER_START,
    SPATIAL,
    SpaceArrays,
    axis_table,
    capacity_groups,
    divisor_table,
    pack,
    relevance,
    slot_table,
)
from tilewright.mapping.space_size import SpaceSize, space_size
from tilewright.workload import Operator

Tiling = Literal["perfect", "imperfect"]


@dataclass(frozen=True)
class MapSpace:
    """The mappings of one operator on one accelerator that a mapper may use.

    Parameters
    ----------
    tiling
        ``perfect``: every step divides the extent outside it. ``imperfect``: any step at any slot.
    constraints
        What is left out beside that. Every dimension needs a memory where it may loop.

    Raises
    ------
    InputError
        If a constraint names an unknown place or dimension, or leaves a dimension no memory to loop at.
    """

    operator: Operator
    accelerator: Accelerator
    tiling: Tiling = "imperfect"
    constraints: Constraints = field(default_factory=Constraints)

    def __post_init__(self) -> None:
        if self.tiling not in ("perfect", "imperfect"):
            raise InputError("space.tiling", "must be perfect or imperfect", self.tiling)
        places = [self._place(s) for s in range(len(self.layout.slots))]
        memories = [level.name for level in self.accelerator.memories]
        for name, known in (("loops", places), ("orders", memories)):
            unknown = sorted(set(getattr(self.constraints, name)) - set(known))
            if unknown:
                raise InputError(f"space.{name}", f"must name places among {', '.join(known)}", unknown)
        for place, dims in self.constraints.loops.items():
            unknown = sorted(set(dims) - set(self.operator.sizes))
            if unknown:
                raise InputError(f"space.loops.{place}", f"must name dimensions of {self.operator.name}", unknown)
        for place, choices in self.constraints.orders.items():
            for choice in choices:
                named = [name for name in choice if name != ANY]
                rest = set(self.operator.sizes) - set(named)
                if len(set(choice)) < len(choice) or set(named) - set(self.operator.sizes) or (
                        rest and ANY not in choice):
                    raise InputError(f"space.orders.{place}", "must list orders of every dimension", choice,
                                     f"Give each of {', '.join(self.operator.sizes)} once, or {ANY} for the others")

    @cached_property
    def layout(self) -> Layout:
        """The layout of all batches of this space."""
        return Layout.of(self.operator, self.accelerator, keeps=dict(self.constraints.keeps))

    @cached_property
    def arrays(self) -> SpaceArrays:
        """The space as arrays."""
        layout, sizes = self.layout, list(self.operator.sizes.values())
        slots = slot_table(layout, self.accelerator)
        orders = self._order_rows(slots)
        free = self._free_table()
        temporal = free * (slots[:, KIND] != SPATIAL)[:, None]
        for d, name in enumerate(layout.dimensions):
            if sizes[d] > 1 and not temporal[:, d].any():
                raise InputError("space.loops", f"must let {name} loop at some memory", dict(self.constraints.loops))
        return SpaceArrays(
            sizes=np.array(sizes, dtype=np.int32),
            slots=slots,
            free=free,
            anchor=temporal.argmax(axis=0).astype(np.int32),
            divisors=divisor_table(sizes),
            orders=orders,
            axes=axis_table(self.operator),
            groups=capacity_groups(self.operator, self.accelerator, layout),
            relevant=relevance(self.operator),
            perfect=self.tiling == "perfect",
        )

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """The space as the one table that compiled code reads."""
        return pack(self.arrays)

    def size(self) -> SpaceSize:
        """Return how many mappings `enumerate` yields, or an upper bound where that cannot be counted."""
        return self._size

    @cached_property
    def _size(self) -> SpaceSize:
        return space_size(self.arrays)

    def empty(self, count: int) -> MappingBatch:
        """Return a batch of ``count`` mappings without loops."""
        shape = (*self.layout.shape, count)
        return MappingBatch(self.layout, np.ones(shape, dtype=np.int32), np.zeros(shape, dtype=np.int8))

    def unwritten(self, count: int) -> MappingBatch:
        """Return a batch whose arrays hold anything, all of which is to be written."""
        shape = (*self.layout.shape, count)
        return MappingBatch(self.layout, np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int8))

    def scratch(self) -> NDArray[np.int64]:
        """Return room for compiled code to work in; one for each thread."""
        slots, dims = self.layout.shape
        return np.zeros((4, max(slots + 1, 3), max(slots, dims)), dtype=np.int64)

    def sample(self, rng: Generator, count: int, filling: float = 0.0) -> MappingBatch:
        """Draw ``count`` random mappings whose loops fit the arrays (their tiles may not fit the memories).

        Each dimension visits its slots in random order, and each slot takes a random part of what is left: with
        perfect tiling a divisor, all equally likely, otherwise a count, uniform in its logarithm. ``filling`` is the
        share of mappings that first spread as many lanes as fit.
        """
        from tilewright.mapping import space_sampling  # noqa: PLC0415  (Numba loads late)

        batch = self.empty(count)
        space_sampling.sample(self.table, random_state(rng), float(filling), self.scratch(), batch.steps, batch.ranks)
        return batch

    def repair(self, batch: MappingBatch) -> MappingBatch:
        """Return the batch with steps made monotone, divisible where asked and within the arrays; legal ones stay."""
        from tilewright.mapping import space_sampling  # noqa: PLC0415  (Numba loads late)

        repaired = MappingBatch(batch.layout, batch.steps.copy(), batch.ranks.copy())
        space_sampling.repair_batch(self.table, self.scratch(), repaired.steps, repaired.ranks)
        return repaired

    def fits(self, batch: MappingBatch) -> NDArray[np.bool_]:
        """Return ``(b)``: whether loops fit the arrays and tiles the memories."""
        from tilewright.mapping import space_sampling  # noqa: PLC0415  (Numba loads late)

        out = np.empty(len(batch), dtype=np.bool_)
        space_sampling.fit_mask(self.table, self.scratch(), batch.steps, batch.ranks, out)
        return out

    def enumerate(self, batch: int = 4096, distinct: bool = False) -> Iterator[MappingBatch]:
        """Yield all mappings whose loops fit the arrays, in batches, each encoding once.

        Loops that run once stand innermost, in the operator's order. With ``distinct``, of loop orders that cannot
        differ in cost (by rules 2 and 3 of the counting rules) only one is given.
        """
        enumeration = Enumeration(self, distinct)
        while len(found := enumeration.take(batch)):
            yield found

    def _place(self, s: int) -> str:
        slot = self.layout.slots[s]
        name = self.layout.levels[slot.level]
        return name if slot.axis == "T" else f"{name}.{slot.axis}"

    def _free_table(self) -> NDArray[np.uint8]:
        names = self.layout.dimensions
        sizes = self.operator.sizes
        rows = [self.constraints.loops.get(self._place(s), names) for s in range(len(self.layout.slots))]
        return np.array([[name in row and sizes[name] > 1 for name in names] for row in rows], dtype=np.uint8)

    def _order_rows(self, slots: NDArray[np.int32]) -> NDArray[np.int8]:
        """Return ``(n, d)`` ranks of all allowed orders, and note in ``slots`` where each slot's begin."""
        rows: list[list[int]] = []
        for s in range(len(slots)):
            choices = self._orders_at(self._place(s))
            slots[s, ORDER_START], slots[s, ORDER_COUNT] = len(rows), len(choices)
            rows += [[choice.index(name) for name in self.layout.dimensions] for choice in choices]
        return np.array(rows, dtype=np.int8).reshape(-1, len(self.layout.dimensions))


    def _orders_at(self, place: str) -> list[tuple[str, ...]]:
        """Return the orders to choose from at a memory, those with `ANY` written out; none where all are allowed."""
        found: dict[tuple[str, ...], None] = {}
        for choice in self.constraints.orders.get(place, ()):
            if choice == (ANY,):
                return []
            rest = [name for name in self.layout.dimensions if name not in choice]
            at = choice.index(ANY) if ANY in choice else 0
            for middle in permutations(rest):
                found[(*choice[:at], *middle, *(name for name in choice[at:] if name != ANY))] = None
        return list(found)


class Enumeration:
    """A walk through all mappings of a space that can be stopped, saved and taken up again.

    ``state`` holds the arrays that say where it stands.
    """

    def __init__(self, space: MapSpace, distinct: bool = False) -> None:
        self.space = space
        self.distinct = distinct
        slots, dims = space.layout.shape
        self.state = {
            "extents": np.ones((slots + 1, dims), dtype=np.int64),
            "ranks": np.zeros((slots, dims), dtype=np.int64),
            "orders": np.zeros(slots + 1, dtype=np.int64),
        }

    def take(self, count: int) -> MappingBatch:
        """Return the next ``count`` mappings; fewer at the end, then none."""
        from tilewright.mapping import space_enumerate, space_sampling  # noqa: PLC0415  (Numba loads late)

        batch, work = self.space.empty(count), self.space.scratch()
        work[space_sampling.ROWS, space_sampling.LEFT, 0] = self.distinct
        where = (self.state["extents"], self.state["ranks"], self.state["orders"])
        written = space_enumerate.enumerate_into(self.space.table, *where, work, batch.steps, batch.ranks)
        return batch if written == count else batch.take(slice(0, written))


def random_state(rng: Generator, count: int = 1) -> NDArray[np.uint64]:
    """Return ``(count)`` seeds of the compiled operators' generators, drawn from ``rng``."""
    return rng.integers(0, 2**64, size=count, dtype=np.uint64, endpoint=False)
