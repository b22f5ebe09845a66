"""What `busiest_kernels` needs to know of an operator on a machine: tables by memory, and arrays to work in."""

from collections.abc import Mapping as Dict
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.dense.nest import boundaries, keepers, standing
from tilewright.cost.dense.walk_records import (
    EVICT,
    FILL,
    FIRST,
    HELD,
    INNER_LANES,
    LACKING,
    LOWEST,
    NO_LANES,
    OUTER_LANES,
    PLAIN,
    READ,
    SLIDING,
    UPDATE,
    VIEWS,
    PackedNests,
    UnpackedNest,
    WalkEntry,
    WalkHead,
    WalkTables,
    WalkUnit,
    WalkWork,
)
from tilewright.cost.hardware import Columns, own_columns
from tilewright.cost.records import KINDS
from tilewright.cost.tables import TallyKey
from tilewright.hardware import PORTS, RATE, Accelerator, Bandwidth, Fanout, Memory
from tilewright.mapping import Layout, Slot, held_bits
from tilewright.workload import Operator, Tensor

MOST_INSTANCES = 1 << 20
"""Of mappings with more instances along one axis than any machine has, only the first ones are looked at."""
MOST_VALUES = 1 << 16
"""A sliding axis of more pairs of values is not walked, which takes seconds a mapping: first instances count."""
FAR = 1 << 30

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Walks:
    """Memories whose busiest instance need not be the first, and what is known of them."""

    operator: Operator
    accelerator: Accelerator
    layout: Layout
    """Of the nest's arrays."""
    unlimited: bool = False
    """Whether memories are walked too whose ports take no time."""

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Levels of the memories that are walked: behind lanes, with a limited port and a tensor for which it matters.

        Those are outputs along whose sliding axes lanes overlap, and operands whose sliding axes may have holes.
        """
        if any(prod(self.operator.sizes[name] for name in axis.dimensions) > MOST_VALUES
               for tensor in self.operator.tensors for axis in tensor.axes if len(axis.terms) > 1):
            return ()
        return tuple(at for at, memory in enumerate(self.accelerator.levels)
                     if isinstance(memory, Memory) and at > 0
                     and (self.unlimited or memory.bandwidth != Bandwidth())
                     and any(slot.axis != "T" for slot in self.layout.slots[:self.layout.starts[at]])
                     and any(tensor.name in self.layout.keeps[at] and self._slides(tensor)
                             for tensor in self.operator.tensors))

    def _slides(self, tensor: Tensor) -> bool:
        sizes = self.operator.sizes
        return any(len(axis.terms) > 1 and (tensor.is_output or (
            all(sizes[name] > 1 for name in axis.dimensions) and max(axis.coprime) > 1)) for axis in tensor.axes)

    def _chain(self, tensor: Tensor) -> list[int]:
        """Levels that keep ``tensor``, outermost first, and the compute unit."""
        return [*keepers(tensor, self.layout.keeps), len(self.layout.keeps)]

    @cached_property
    def _clusters(self) -> list[int]:
        """Cluster of each dimension: those of one sliding axis are in one, -1 where a dimension is on none."""
        member = {name: -1 for name in self.layout.dimensions}
        for tensor in self.operator.tensors:
            for axis in tensor.axes:
                if len(axis.terms) > 1:
                    first, second = axis.dimensions
                    mine = max([member[first], member[second], -1])
                    mine = max(member.values()) + 1 if mine < 0 else mine
                    joined = {member[first], member[second]} - {-1}
                    member |= {name: mine for name, at in member.items() if at in joined}
                    member |= {first: mine, second: mine}
        numbers = sorted(set(member.values()) - {-1})
        return [numbers.index(at) if at >= 0 else -1 for at in member.values()]

    def _entries(self, level: int) -> list[WalkEntry]:
        """Return what is counted at a memory."""
        found, end = [], self.layout.starts[level]
        for t, tensor in enumerate(self.operator.tensors):
            if tensor.name not in self.layout.keeps[level]:
                continue
            chain = self._chain(tensor)
            inner = chain[chain.index(level) + 1]
            child = self.layout.starts[inner]
            kinds = (EVICT, UPDATE) if tensor.is_output else (FILL, READ)
            if chain[0] != level:
                found.append(WalkEntry(kinds[0], t, end, 0, end, FAR, 0, 0))
            elif tensor.is_output:
                found.append(WalkEntry(HELD, t, 0, 0, 0, FAR, 0, 0))
            found.append(WalkEntry(kinds[1], t, child, int(inner == len(self.layout.keeps)), child, FAR, 0, 0))
            if tensor.is_output:
                ends = self._ends(level)
                for number, i in enumerate(range(len(ends) - 1, 0, -1)):
                    found.append(WalkEntry(LOWEST, t, end, 0, ends[i], ends[i - 1], number, i))
                    found.append(WalkEntry(FIRST, t, end, 0, ends[i - 1], ends[i - 1], number, i))
        return found

    def _ends(self, level: int) -> list[int]:
        """Slots outside each keeper of the output down to ``level``, where that is one; none move its home's tile."""
        _, *chain = self._chain(self.operator.output)
        return [0, *(self.layout.starts[at] for at in chain[:chain.index(level) + 1])] if level in chain else []

    def _units(self, level: int) -> list[WalkUnit]:
        """Return what the factors of the entries come from."""
        found, index = [], self.layout.dimensions.index
        for t, tensor in enumerate(self.operator.tensors):
            if tensor.name not in self.layout.keeps[level]:
                continue
            for axis in tensor.axes:
                names = axis.dimensions
                if len(names) == 1:
                    found.append(WalkUnit(t, PLAIN, index(names[0]), 1, -1, 0))
                else:
                    (first, second), (stride, dilation) = names, axis.coprime
                    found.append(WalkUnit(t, SLIDING, index(first), stride, index(second), dilation))
            found += [WalkUnit(t, LACKING, index(name), 0, -1, 0) for name in self.layout.dimensions
                      if name not in tensor.dimensions]
        return found

    @cached_property
    def tables(self) -> WalkTables:
        """What is known of the memories that are walked."""
        tensors, output = self.operator.tensors, self.operator.output
        slots = [[self._slot(at, slot) for slot in self.layout.slots] for at in self.levels]
        entries, units = ([make(at) for at in self.levels] for make in (self._entries, self._units))
        ends = [self._ends(at) for at in self.levels]
        heads = []
        for m, at in enumerate(self.levels):
            heads.append(WalkHead(self.layout.starts[at], len(entries[m]), len(units[m]),
                                  tensors.index(output) if ends[m] else -1, len(ends[m]) - 1,
                                  int(self.accelerator.memory(at).buffering == "single")))
        plain = {axis.dimensions[0] for axis in output.axes if len(axis.terms) == 1}
        kinds = [PLAIN if name in plain else SLIDING if name in output.dimensions else LACKING
                 for name in self.layout.dimensions]
        relevant = [[name in tensor.dimensions for name in self.layout.dimensions] for tensor in tensors]
        bits = [[int(held_bits(tensor, self.accelerator) * self._parts) for tensor in tensors] for _ in self.levels]
        followed = any(head.output >= 0 for head in heads)
        telling = [followed or cluster >= 0 for cluster in self._clusters]
        found = (_padded(slots), heads, _padded(entries), _padded(units), kinds, _padded(ends), self._clusters,
                 relevant, bits, telling)
        return WalkTables(*(np.array(table, dtype=np.int64) for table in found))

    def _slot(self, level: int, slot: Slot) -> list[int]:
        """Return a slot's level, whether it holds lanes, and which tensors these merge."""
        array, memory = self.accelerator.levels[slot.level], self.accelerator.memory(level)
        if not isinstance(array, Fanout):
            return [slot.level, NO_LANES, *(0 for _ in self.operator.tensors)]
        found = [slot.level, INNER_LANES if memory.shares(array.name, slot.axis) else OUTER_LANES]
        for tensor in self.operator.tensors:
            inner = next((edge for edge in boundaries(tensor, self.layout.keeps) if edge.parent == level), None)
            one = inner is not None and standing(self.accelerator, inner, slot.level, slot.axis) is None
            found.append(int(one or array.merges(tensor.name, tensor.role)[slot.axis == "Y"]))
        return found

    @cached_property
    def _parts(self) -> int:
        """How many parts of a bit make one, so that all widths are whole numbers of them."""
        return lcm(*(held_bits(tensor, self.accelerator).denominator for tensor in self.operator.tensors))

    def rates(self, columns: Columns | None = None) -> Integers:
        """Return (m, port, 2, b): bits in so many cycles at each port, none where it is unlimited.

        ``columns`` are of the machines of each mapping, where they differ.
        """
        columns = columns or own_columns(self.accelerator)
        kept: dict[object, Integers] = vars(columns).setdefault("_bits", {})  # by what is walked
        if (self.levels, self._parts) in kept:
            return kept[self.levels, self._parts]
        ports = {(m, p): (self.accelerator.levels[at].name, RATE.format(port)) for m, at in enumerate(self.levels)
                 for p, port in enumerate(PORTS)}
        exact = {place: columns.exact(key) for place, key in ports.items() if key in columns.numbers}
        count = max((np.size(words) for words, _ in exact.values()), default=1)
        found = np.zeros((len(self.levels), len(PORTS), 2, count), dtype=np.int64)
        for (m, p), (words, cycles) in exact.items():
            bits = np.asarray(words, dtype=np.int64) * self.accelerator.memory(self.levels[m]).word_bits * self._parts
            periods = np.asarray(cycles, dtype=np.int64)
            common = np.gcd(bits, periods)
            found[m, p, 0], found[m, p, 1] = bits // common, periods // common
        kept[self.levels, self._parts] = found
        return found

    def busiest(self, steps: NDArray[np.int32], ranks: NDArray[np.int8], first: Dict[TallyKey, Any],
                columns: Columns | None = None) -> dict[TallyKey, NDArray[np.float64]]:
        """Return the words (b) of the busiest instances of memories that are walked; ``first`` tells the first ones."""
        if not self.levels:
            return {}
        from tilewright.cost.dense.busiest_kernels import settle  # noqa: PLC0415 - Numba takes long to import

        names, count = [tensor.name for tensor in self.operator.tensors], steps.shape[2]
        keys = [(view, level, name, kind) for level, view, name, kind in product(self.levels, VIEWS, names, KINDS)]
        words = np.array([np.broadcast_to(first.get(key, 0.0), count) for key in keys], dtype=np.float64)
        settle(PackedNests(steps, ranks), (0, count), self.tables, self.rates(columns), np.zeros(1), self.work(),
               np.empty((0, 0)), words.reshape(len(self.levels), len(VIEWS), len(names), len(KINDS), count))
        return {key: row for key, row in zip(keys, words, strict=True) if key in first}

    @cached_property
    def sizes(self) -> Integers:
        """Sizes of the dimensions."""
        return np.array([self.operator.sizes[name] for name in self.layout.dimensions], dtype=np.int64)

    def work(self) -> WalkWork:
        """Return arrays for one thread to work in."""
        sizes, clusters, tables = self.operator.sizes, self._clusters, self.tables
        dims = [sizes[name] for name, at in zip(self.layout.dimensions, clusters, strict=True) if at >= 0]
        longest, entries = max(dims, default=1), tables.entries.shape[1]
        most = max((prod(4 * sizes[name] for name, at in zip(self.layout.dimensions, clusters, strict=True) if at == c)
                    for c in range(max(clusters, default=-1) + 1)), default=1)
        most, tensors, slots = min(most, MOST_INSTANCES), len(self.operator.tensors), len(self.layout.slots)

        def room(*shape: int) -> Integers:
            return np.empty(shape, dtype=np.int64)

        nest = UnpackedNest(self.sizes, *(room(*self.layout.shape) for _ in range(4)))
        return WalkWork(nest=nest, values=room(2, 8, longest), factors=room(max(2, entries), most),
                        touches=room(2, longest), pieces=room(2, slots + 2), cuts=room(max(1, tables.ends.shape[1]), 2),
                        worth=room(slots, 2), lanes=room(len(self.layout.dimensions)),
                        tables=room(max(clusters, default=-1) + 2, entries, most), words=room(tensors, len(KINDS)),
                        most=room(len(VIEWS)), busiest=room(len(VIEWS), tensors, len(KINDS)))


def _padded(tables: list[Any]) -> list[Any]:
    """Fill tables up with zeros to one size."""
    found = [np.atleast_1d(np.array(table, dtype=np.int64)) for table in tables]
    shape = [max(size) for size in zip(*(table.shape for table in found), strict=True)] if found else []
    room = np.zeros((len(found), *shape), dtype=np.int64)
    for row, table in zip(room, found, strict=True):
        row[tuple(slice(size) for size in table.shape)] = table
    return list(room)
