"""What the exact mapper's compiled descent reads: chains of steps of every dimension, and the cost rules as arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from tilewright.cost import ENERGY, Traffic, ports_of
from tilewright.hardware import Accelerator, Fanout, Memory, exact_rate
from tilewright.mapping import LaneUse, MapSpace, lane_use, tensor_bits
from tilewright.mapping.spaces.rules import arrays as rules
from tilewright.search.mappers.exact.chains import (
    Floats,
    Integers,
    StepChains,
    UnlistedChains,
    groups_of,
    merges,
    slot_around,
    slots_by_level,
)
from tilewright.search.objective import Metric, Objective, Scorer
from tilewright.workload import Tensor

Made = TypeVar("Made")

TENSOR, PARENT, CHILD = range(3)
"""Columns of a boundary (`Arrays.edges`): the tensor that crosses it, and the memories outside and inside it."""
KEY, MEMORY, OUTSIDE, CYCLES = range(4)
"""Columns of what nothing overlaps (`Arrays.ramp`); from the last on, cycles of a word of each tensor."""
_ROUNDING = 1 - 1e-12
"""Lowers what may come out high by its last digits."""


class Shape(NamedTuple):
    """How many of each there are in `Arrays`, and where rows of the room to work in begin (see `Tables.room`)."""

    memories: int
    fanouts: int
    slots: int
    tensors: int
    dims: int
    scratch: int
    moving: int
    parts: int
    joint: int
    sliding: int
    busy: int
    feeding: int
    sums: int


class Arrays(NamedTuple):
    """What the compiled descent reads."""

    features: Floats
    """``(c, f)``: the chains of all dimensions (see `exact_kernels`)."""
    unused: Integers
    """``(d, t)``: whether a tensor does not use a dimension."""
    axes: Integers
    spans: Integers
    """``(a, 4)``: two dimensions (the second -1 where the axis does not slide), stride and dilation; those of tensor
    ``t`` stand from ``spans[t]`` to ``spans[t + 1]``."""
    shape: Shape
    sides: Integers
    """``(n, 5)``: limits of arrays: two slots, the block's sides (0 without blocks) and the most lanes or blocks."""
    groups: Floats
    bits: Floats
    """``(g, 2)`` and ``(g, t)``: memory and room of what is limited together, and the bits of a tensor's words
    there."""
    weights: Floats
    """``(2 b + 1, 1 + r)``: energy, then cycles of each port, of a word read and of one filled at every boundary; last
    what is always there."""
    edges: Integers
    share: Integers
    """``(b, 3)`` boundaries, and ``(b, f)`` whether a fan-out merges what crosses them, along a side at least."""
    macs: float
    leakage_pj_per_cycle: float
    instances: Floats
    sizes: Floats
    """Operations, leakage, lanes ``(f)`` and sizes of dimensions ``(d)``."""
    classes: Integers
    picks: Integers
    """``(c, t)``: classes of dimensions by the tensors that do not use them, and ``(k, m)`` kinds of order: the class
    that runs innermost at each memory but the innermost, as a row of sums behind the first."""
    terms: Floats
    """``(n, 3)``: terms of the objective: weight, and whether cycles and energy are factors."""
    limits: Floats
    """``(n, 3)``: what its constraints hold to 1 at most: a factor, and whether cycles and energy are factors."""
    ramp: Floats
    """``(n, 3 + t)``: see `Tables.ramp`."""
    words: Floats
    """``(t)``: words of each tensor."""
    pace: float
    """Cycles of a step of compute, at least."""
    plain: Integers
    """``(d)``: whether no window slides along a dimension."""
    bundles: Integers
    """``(b + 1)``: where bundles of the last dimension's chains begin; their rows stand behind all others."""
    slides: Integers
    """``(t)``: whether it is an operand along one of whose axes a window slides."""
    ports: Integers
    """``(r, 2)``: instances, and fan-outs outside, of every port; first those of energy."""


@dataclass(frozen=True)
class Tables:
    """A space, an objective, and the dimensions in the order in which they are decided, as arrays."""

    space: MapSpace
    objective: Objective
    chains: tuple[StepChains, ...]
    """Those of each dimension, or of dimensions that count as one."""

    @classmethod
    def of(cls, space: MapSpace, objective: Objective) -> "Tables | None":
        """Return the tables; None where a dimension has too many chains to list."""
        made = [StepChains.of(space, places) for places in groups_of(space)]
        found = [chains for chains in made if chains is not None]
        return cls(space, objective, tuple(sorted(found, key=lambda chains: -len(chains)))) if len(found) == len(
            made) else None

    @classmethod
    def unlisted(cls, space: MapSpace, objective: Objective) -> "Tables":
        """Return the tables without any chains of steps."""
        sizes, resting = space.arrays.sizes, np.ones((1, space.layout.shape[0]), dtype=np.int64)
        active = np.flatnonzero(sizes > 1) if (sizes > 1).any() else np.array([0])
        return cls(space, objective, tuple(UnlistedChains(space, (at,), (resting,)) for at in active.tolist()))

    @property
    def accelerator(self) -> Accelerator:
        """The machine, every lane with memories of its own: no mapping costs less there."""
        return self.space.accelerator.unshared

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the first dimensions of all that count as one."""
        every = list(self.space.operator.sizes)
        return tuple(every[chains.dims[0]] for chains in self.chains)

    @cached_property
    def starts(self) -> Integers:
        """Where the chains of each dimension begin, and all end."""
        return np.cumsum([0, *(len(chains) for chains in self.chains)])

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """The memories, outermost first."""
        return self.accelerator.memories

    @cached_property
    def slots(self) -> dict[str, list[int]]:
        """Slots of every level."""
        return slots_by_level(self.space)

    @cached_property
    def classes(self) -> Integers:
        """Classes of dimensions (c, t) by the tensors that do not use them, but those that all use."""
        tensors = self.space.operator.tensors
        found = sorted({tuple(name not in t.dimensions for t in tensors) for name in self.names})
        return np.array([one for one in found if any(one)] or [(False,) * len(tensors)], dtype=np.int64)

    @property
    def _places(self) -> int:
        return len(self.memories) - 1

    @cached_property
    def _picked(self) -> Integers:
        classes, places = len(self.classes), self._places
        return np.ascontiguousarray(np.indices((classes,) * places).reshape(places, classes ** places).T)

    @property
    def kinds(self) -> Integers:
        """Kinds of order (k, m, t): which tensors the innermost loops at each memory leave in place."""
        return self.classes[self._picked]

    @property
    def _shape(self) -> Shape:
        memories, fanouts = len(self.memories), len(self.accelerator.fanouts)
        ends = np.cumsum([2 * memories + fanouts, 1, memories, memories, memories, 2 * memories, 1, 2]).tolist()
        return Shape(memories, fanouts, len(self.space.layout.slots), len(self.space.operator.tensors),
                     len(self.chains), *ends)

    @property
    def room(self) -> Floats:
        """An array to work in.

        Its rows: by memory pieces, then counts of loops; by fan-out lanes; a spare one; by memory whether loops move
        tensors, then pieces of dimensions not decided, alone and together; by child how often windows overlap, out and
        in; how much the busiest instance does; by tensor what compute's accesses cost but for lanes left, and the most
        of these; sums of energy and cycles.
        """
        shape = self._shape
        return np.zeros((shape.sums + 1 + self._places * len(self.classes), max(4, len(self.ports), *shape[:5])))

    @cached_property
    def features(self) -> Floats:
        """Rows of `exact_kernels`; behind them those of bundles of the last chains."""
        return np.vstack([*(chains.together.rows for chains in self.chains), self.chains[-1].bundles[0]])

    @cached_property
    def arrays(self) -> Arrays:
        """Everything, as `exact_kernels` takes it."""
        operator, fanouts = self.space.operator, self.accelerator.fanouts
        tensors = operator.tensors
        unused = np.array([[name not in tensor.dimensions for tensor in tensors] for name in self.names])
        weights, edges, share = self._costs
        axes, spans = self._axes
        words = np.array([float(tensor.words(operator.sizes)) for tensor in tensors])
        groups, bits = self._groups
        return Arrays(
            self.features, unused.astype(np.int64), axes, spans, self._shape, self._sides, groups, bits, weights, edges,
            share, float(operator.macs), self.accelerator.leakage_mw / self.accelerator.frequency_mhz * 1000,
            np.array([float(fanout.instances) for fanout in fanouts]),
            np.array([float(chains.size) for chains in self.chains]),
            self.classes, self._picked + 1 + len(self.classes) * np.arange(self._places), self._terms,
            self._limits, self.ramp[(self.space.tiling == "perfect") | (self.ramp[:, KEY] % 2 == 0)], words,
            float(self.lanes.cycles) * (1.0 if self.lanes.cycles.denominator == 1 else _ROUNDING), self._plain,
            self.starts[-2] + self.chains[-1].bundles[1], np.array([
                not tensor.is_output and bool((axes[spans[t]:spans[t + 1], 1] >= 0).any())
                for t, tensor in enumerate(tensors)], dtype=np.int64), self.ports)

    @cached_property
    def lanes(self) -> LaneUse:
        """What a multiply-accumulate takes of a lane."""
        return lane_use(self.space.operator, self.accelerator)

    @property
    def _plain(self) -> Integers:
        slides = {d for row in self._axes[0].tolist() if row[1] >= 0 for d in row[:2]}
        return np.array([place not in slides for place in range(len(self.chains))], dtype=np.int64)

    @cached_property
    def _axes(self) -> tuple[Integers, Integers]:
        rows = rules.active_axes(rules.axis_table(self.space.operator, False),
                                  np.array([chains.dims[0] for chains in self.chains], dtype=np.intp))
        spans = np.searchsorted(rows[:, 0], np.arange(len(self.space.operator.tensors) + 1))
        return np.ascontiguousarray(rows[:, [1, 3, 2, 4]]), spans

    @cached_property
    def _sides(self) -> Integers:
        """Limits of arrays as chains show them, where lanes of both sides may stand for one another those of both."""
        if merges(self.space):
            return np.array([(self.slots[fanout.name][0], -1, 0, 0, fanout.instances)
                             for fanout in self.accelerator.fanouts], dtype=np.int64).reshape(-1, 5)
        return self.sides

    @cached_property
    def sides(self) -> Integers:
        """Limits of arrays: the slots, the block's sides (0 without blocks) and the most lanes or blocks."""
        rows = []
        slots = self.space.arrays.slots[:, :rules.PARTNER_BLOCK + 1].tolist()
        for s, (kind, partner, mode, limit, *block) in enumerate(slots):
            if kind == rules.SPATIAL and mode == rules.FIXED:
                rows.append((s, -1, 0, 0, limit))
            elif kind == rules.SPATIAL and not 0 <= partner < s:
                rows.append((s, partner, *(block if mode == rules.BLOCKS else (0, 0)), limit))
        return np.array(rows, dtype=np.int64).reshape(-1, 5)

    @cached_property
    def _kept(self) -> dict[str, list[tuple[int, Tensor]]]:
        """Places and tensors that each memory keeps."""
        tensors = [*enumerate(self.space.operator.tensors)]
        return {level: [(t, tensor) for t, tensor in tensors if tensor.name in names]
                for level, names in zip(self.space.layout.levels, self.space.layout.keeps, strict=True)}

    @cached_property
    def _groups(self) -> tuple[Floats, Floats]:
        numbers = {self.slots[memory.name][0]: m for m, memory in enumerate(self.memories)}
        groups = self.space.arrays.groups.astype(np.float64)
        groups[:, 0] = [numbers[slot] for slot in self.space.arrays.groups[:, 0].tolist()]
        return np.ascontiguousarray(groups[:, :2]), np.ascontiguousarray(groups[:, 2:])

    @cached_property
    def _traffic(self) -> Traffic:
        chains = {tensor.name: tuple(memory.name for memory in self.memories
                                     if any(tensor is kept for _, kept in self._kept[memory.name]))
                  for tensor in self.space.operator.tensors}
        return Traffic.of(self.space.operator, self.accelerator, chains, self.space.tiling == "perfect")

    @cached_property
    def _costs(self) -> tuple[Floats, Integers, Integers]:
        """Weights (2 b + 1, r) of energy and of each port's cycles; boundaries (b, 3); fan-outs that merge (b, f)."""
        edges, share = self._once("crossings", self._crossings)
        sums = self._traffic.rows.once("sums of ports", lambda: [(ENERGY, 1.0), *(
            ((port.memory.name, port.kinds), port.rate[0] * self.accelerator.instances(port.memory.name))
            for port in ports_of(self._traffic.rows))])
        weights = np.zeros((2 * len(edges) + 1, len(sums)))
        settled = [flow.settled(tuple(wanted for wanted, _ in sums)) for flow in self._traffic.flows]
        for row, (_, scale) in enumerate(sums):
            if not all(right[0, row, 0] for _, right in settled):
                continue
            parts = [each[0, row, :, 0] for each, _ in settled]
            weights[:len(edges), row] = np.concatenate([p[1:1 + (len(p) - 1) // 2] for p in parts]) / scale
            weights[len(edges):-1, row] = np.concatenate([p[1 + (len(p) - 1) // 2:] for p in parts]) / scale
            weights[-1, row] = sum(p[0] for p in parts) / scale
        weights[-1, 0] += self.space.operator.macs * self.accelerator.compute.energy_pj_per_mac * self.lanes.energy
        return weights, edges, share

    def _once(self, what: str, make: Callable[[], Made]) -> Made:
        """Return what is the same for all layers whose tensors are alike, where memories keep the same of them."""
        return self._traffic.rows.once((what, self.space.operator.tensors, self.space.layout), make)

    def _crossings(self) -> tuple[Integers, Integers]:
        places = {memory.name: m for m, memory in enumerate(self.memories)}
        levels = [level.name for level in self.accelerator.levels]
        edges, share = [], []
        for t, flow in enumerate(self._traffic.flows):
            for at, parent in enumerate(flow.chain):
                child = flow.chain[at + 1] if at + 1 < len(flow.chain) else None
                edges.append((t, places[parent], len(places) if child is None else places[child]))
                inside = levels.index(child) if child is not None else len(levels)
                share.append([levels.index(parent) < levels.index(fanout.name) < inside
                              and any(fanout.merges(flow.tensor.name, flow.tensor.role))
                              for fanout in self.accelerator.fanouts])
        return np.array(edges, dtype=np.int64), np.array(share, dtype=np.int64).reshape(
            len(edges), len(self.accelerator.fanouts))

    @property
    def ports(self) -> Integers:
        """Instances of the memory, and fan-outs outside it, for energy and then every port (r, 2)."""
        return self._traffic.rows.once("fan-outs of ports", self._ports)

    def _ports(self) -> Integers:
        levels = self.accelerator.levels
        rows = [(1, 0), *((self.accelerator.instances(port.memory.name), sum(
            isinstance(level, Fanout) for level in levels[:levels.index(port.memory)]))
            for port in ports_of(self._traffic.rows))]
        return np.array(rows, dtype=np.int64)

    @cached_property
    def _terms(self) -> Floats:
        """Terms of the objective: weight, and whether cycles and energy are factors; none where it cannot be bound."""
        return self._factors(self._scorer.weights if self.objective.grows else ())

    @property
    def _limits(self) -> Floats:
        """What constraints hold to 1 at most, of those that more cycles or energy break."""
        return self._factors(self._scorer.limits)

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.objective, self.space.operator, self.accelerator)

    def _factors(self, weighted: Sequence[tuple[float, Metric]]) -> Floats:
        """Return (n, 3) factors with the areas that metrics have, and whether cycles and energy are factors."""
        return np.array([(weight * self.accelerator.area_um2 ** metric.area, metric.latency, metric.energy)
                         for weight, metric in weighted], dtype=np.float64).reshape(-1, 3)

    @cached_property
    def ramp(self) -> Floats:
        """What comes and goes while nothing overlaps: key, memory, whether that is around it, cycles by word.

        What comes is left out where a memory forwards words: the tiles further inward decide on it. "Around" is
        outside the array of the memory. Keys are twice the memory's number, and one more for what goes.
        """
        return self._once("ramp", self._ramp)

    def _ramp(self) -> Floats:
        tensors, rows = self.space.operator.tensors, []
        levels = [level.name for level in self.accelerator.levels]
        for m, memory in enumerate(self.memories):
            if m == 0 or memory.buffering == "single":
                continue
            for which, ends in enumerate((("write", "read"), ("read", "write"))):
                if which == 0 and memory.forwards == "words":
                    continue
                # At its home a tensor neither comes nor goes.
                kept = [(t, tensor) for t, tensor in self._kept[memory.name] if tensor.is_output == (which == 1)
                        and self._traffic.stages.chains[tensor.name][0] != memory.name]
                first = self.space.layout.slots[slot_around(self.space, memory)].level
                parents: dict[str, list[tuple[int, Tensor]]] = {}
                for t, tensor in kept:
                    chain = self._traffic.stages.parent(tensor.name, memory.name)
                    parents.setdefault(chain, []).append((t, tensor))
                for at, members, port, around in ((memory, kept, ends[0], 0),
                                                  *((self.accelerator.level(parent), some, ends[1],
                                                     int(levels.index(parent) < first))
                                                    for parent, some in parents.items())):
                    assert isinstance(at, Memory)
                    rates = [float(exact_rate(rate)) for rate in (getattr(at.bandwidth, port), at.bandwidth.shared)
                             if rate is not None]
                    row = np.zeros(3 + len(tensors))
                    row[:3] = 2 * m + which, m, around
                    for t, tensor in members:
                        words = float(tensor_bits(tensor, self.accelerator)) / at.word_bits
                        row[3 + t] = words / min(rates) if rates else 0.0
                    if row[3:].any():
                        rows.append(row)
        return np.array(rows).reshape(-1, 3 + len(tensors))
