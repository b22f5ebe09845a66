"""The least of any weighted sum of accesses: what memories move as sums of what crosses boundaries, stage by stage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.compute import ComputeStage
from tilewright.cost.bounds.groups import Floats
from tilewright.cost.bounds.refetch import Stages
from tilewright.cost.bounds.rows import ACCESSES, MachineRows, Whole
from tilewright.hardware import NETWORK, Accelerator, Fanout, Memory
from tilewright.workload import Operator, Tensor

_MOST_CHOICES = 32
COMPUTE = ""

Sum = tuple[str, tuple[str, ...]]
"""Accesses of some kinds at a memory, in words of its own width."""
ENERGY: Sum = "", ()
"""The picojoules of all accesses and networks."""


@dataclass(frozen=True)
class TensorTraffic:
    """The accesses for one tensor as weighted sums.

    Every array (1 + 2 n) holds the weights of a constant, of the words that cross the port of the parent at each of the
    n boundaries (outermost first), and of those that the children there receive or evict. ``accesses`` are by memory
    and kind, ``sent`` by array.
    """

    tensor: Tensor
    rows: MachineRows
    chain: tuple[str, ...]
    apart: tuple[bool, ...]
    accesses: dict[tuple[str, str], Floats]
    sent: dict[str, Floats]

    @property
    def boundaries(self) -> int:
        """How many there are; the last feeds the compute units."""
        return len(self.chain)

    @cached_property
    def _known(self) -> dict[Sum, tuple[Floats, NDArray[np.bool_]]]:
        return {}

    def settled(self, wanted: Sum) -> tuple[Floats, NDArray[np.bool_]]:
        """Return a sum (1 + 2 n, r) that is no larger, not to be written to, and where (r) it has no negative weights.

        Where no fan-out lies between, as much comes in as was asked for. What a memory evicts of outputs has been
        updated there before, so that it is at most what crosses the next boundary.
        """
        if wanted not in self._known:
            weights = self._energy() if wanted == ENERGY else self._moved(*wanted)
            n = self.boundaries
            for at in range(n - 1):
                come = weights[1 + n + at]
                moved = np.minimum(come, 0.0) if self.apart[at] else come.copy()
                weights[1 + at + self.apart[at]] += moved
                come -= moved
            self._known[wanted] = weights, weights[1:].min(axis=0) >= -1e-9
        return self._known[wanted]

    def _energy(self) -> Floats:
        total = np.zeros((1 + 2 * self.boundaries, self.rows.count))
        for (name, kind), weights in self.accesses.items():
            price = self.rows.numbers[name, f"{kind}_energy_pj_per_word"]
            total += weights[:, None] * (price * self.rows.scale(self.tensor, name))
        for name, weights in self.sent.items():
            total += weights[:, None] * self.rows.numbers[name, NETWORK]
        return total

    def _moved(self, name: str, kinds: tuple[str, ...]) -> Floats:
        total = sum((self.accesses[name, kind] for kind in kinds if (name, kind) in self.accesses),
                    start=np.zeros(1 + 2 * self.boundaries)) * self.rows.scale(self.tensor, name)
        return np.repeat(total[:, None], self.rows.count, axis=1)


def flow(tensor: Tensor, operator: Operator, rows: MachineRows, chain: tuple[str, ...]) -> TensorTraffic:
    """Return how the accesses for ``tensor`` follow from what crosses the boundaries of ``chain`` (rules 4 to 6)."""
    n, levels = len(chain), rows.machine.levels
    names = [level.name for level in levels]
    unit = np.eye(1 + 2 * n)
    one, moved, received = unit[0], unit[1:1 + n], unit[1 + n:].copy()
    received[-1] = one * operator.macs
    accesses: dict[tuple[str, str], Floats] = {}
    sent: dict[str, Floats] = {}
    apart = []
    filled = -tensor.words(operator.sizes) * one
    for at, parent in enumerate(chain):
        inner = names.index(chain[at + 1]) if at + 1 < n else len(names)
        arrays = [level for level in levels[names.index(parent):inner] if isinstance(level, Fanout)]
        spread = [array for array in arrays if rows.instances([array])[0] > 1]  # in all rows alike
        apart.append(bool(spread))
        if not tensor.is_output:
            accesses[parent, "read"], crossing = moved[at], received[at]
            filled = received[at]
        else:
            evicted = received[at - 1] if at else 0 * one
            accesses[parent, "update"], accesses[parent, "read"] = moved[at], moved[at] - evicted + filled
            filled = accesses[parent, "read"] if _merging(tensor, operator, spread) else 0 * one
            crossing = received[at] + filled
        for array in arrays:
            sent[array.name] = crossing
        if at + 1 < n:
            accesses[chain[at + 1], "fill"] = filled
            if tensor.is_output:
                accesses[chain[at + 1], "drain"] = received[at]
    return TensorTraffic(tensor, rows, chain, tuple(apart), accesses, sent)


def _merging(tensor: Tensor, operator: Operator, spread: Iterable[Fanout]) -> bool:
    """Whether partial sums are always read back into one of the instances that merge (rule 5).

    Lanes along an axis of two dimensions may be set apart even where one of these has only one value.
    """
    slides = any(len(axis.terms) > 1 and any(operator.sizes[d] > 1 for d in axis.dimensions) for axis in tensor.axes)
    return not slides and all(all(array.merges(tensor.name, tensor.role)) for array in spread)


@lru_cache(maxsize=1024)
def _charges(chains: tuple[tuple[str, ...], ...],
             levels: tuple[str, ...]) -> dict[str, tuple[tuple[Floats, ...], list[int]]]:
    """Return by stage which sets of boundaries may be charged there, and which of these each choice takes.

    Each boundary of each tensor is charged to the stage of its child, or to one that it passes. Sets are given by
    tensor (u, n), with 1 for a boundary that is charged.
    """
    places = {name: index for index, name in enumerate(levels)}
    stages = [name for name in levels if any(name in chain[1:] for chain in chains)]
    options = []
    for chain in chains:
        for parent, child in pairwise((*chain, COMPUTE)):
            last = places.get(child, len(places))
            options.append((child, *(name for name in stages if places[parent] < places[name] < last)))
    ends = np.cumsum([len(chain) for chain in chains])[:-1]
    choices = _choices(options)
    found = {}
    for stage in (*stages, COMPUTE):
        charged = [tuple(each == stage for each in choice) for choice in choices]
        sets = list(dict.fromkeys(charged))
        table = np.array(sets, dtype=np.float64)
        found[stage] = tuple(np.split(table, ends, axis=1)), [sets.index(each) for each in charged]
    return found


def _choices(options: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return a stage for each boundary in all ways; where they are many, all at their own but one."""
    if prod(map(len, options)) <= _MOST_CHOICES:
        return list(product(*options))
    own = tuple(option[0] for option in options)
    return [own, *((*own[:i], other, *own[i + 1:]) for i, option in enumerate(options) for other in option[1:])]


@dataclass(frozen=True)
class Port:
    """What accesses of some kinds share at a memory: words a cycle, (r)."""

    memory: Memory
    kinds: tuple[str, ...]
    rate: Floats


def _a_cycle(rate: tuple[Whole, Whole]) -> Floats:
    words, cycles = rate
    return words.astype(np.float64) / cycles.astype(np.float64)


@dataclass(frozen=True)
class Traffic:
    """Lower bounds on weighted sums of accesses, over all tiles that fit and all loop orders at once."""

    stages: Stages
    flows: tuple[TensorTraffic, ...]

    @classmethod
    def of(cls, operator: Operator, machines: Accelerator | MachineRows, chains: dict[str, tuple[str, ...]],
           perfect: bool = False) -> "Traffic":
        """Return the traffic of an operator whose tensors stay in ``chains`` of memories, outermost first."""
        rows = machines if isinstance(machines, MachineRows) else MachineRows.one(machines)
        known: dict[tuple[str, tuple[str, ...]], TensorTraffic] = rows.once((operator, "traffic"), dict)
        for tensor in operator.tensors:
            if (tensor.name, chains[tensor.name]) not in known:
                known[tensor.name, chains[tensor.name]] = flow(tensor, operator, rows, chains[tensor.name])
        return cls(Stages(operator, rows, chains, perfect),
                   tuple(known[tensor.name, chains[tensor.name]] for tensor in operator.tensors))

    @property
    def rows(self) -> MachineRows:
        """The machines."""
        return self.stages.rows

    @cached_property
    def ports(self) -> list[Port]:
        """All ports with a limit."""
        return [Port(memory, kinds, _a_cycle(self.rows.rates[memory.name, port]))
                for memory in self.rows.machine.memories for port, kinds in ACCESSES.items()
                if (memory.name, port) in self.rows.rates]

    @cached_property
    def blocking(self) -> list[Port]:
        """What compute waits for at single-buffered memories: drains and fills, at the slower of both rates."""
        found = []
        for memory in self.rows.machine.memories[1:]:
            for kind, own in (("drain", "read"), ("fill", "write")):
                given = [_a_cycle(self.rows.rates[memory.name, port]) for port in (own, "shared")
                         if (memory.name, port) in self.rows.rates]
                if memory.buffering == "single" and given:
                    found.append(Port(memory, (kind,), np.min(given, axis=0)))
        return found

    def ports_least(self, ports: Sequence[Port], alone: Tensor | None = None,
                    priced: bool = True) -> tuple[Floats, Floats]:
        """Return the least energy (r) of memories and networks, and the least cycles (p, r) of ports, not rounded.

        Of one tensor ``alone``, where it is named. Energy is 0 where it is not ``priced``.
        """
        sums: list[Sum] = [(port.memory.name, port.kinds) for port in ports]
        if priced:
            energy, *words = self.least([ENERGY, *sums], alone)
        else:
            energy, words = np.zeros(self.rows.count), list(self.least(sums, alone) if sums else ())
        cycles = [moved / port.rate / self.rows.active[port.memory.name]
                  for port, moved in zip(ports, words, strict=True)]
        return energy, np.array(cycles, dtype=np.float64).reshape(len(ports), self.rows.count)

    def least(self, wanted: Sequence[Sum], alone: Tensor | None = None) -> Floats:
        """Return (o, r) lower bounds on sums of accesses, for all tensors or one; 0 where none is known."""
        known, sums = np.ones((len(wanted), self.rows.count), dtype=np.bool_), []
        for each in self.flows:
            weights = np.zeros((len(wanted), 1 + 2 * each.boundaries, self.rows.count))
            for place, one in enumerate(wanted if alone in (None, each.tensor) else ()):
                weights[place], right = each.settled(one)
                known[place] &= right
            sums.append(weights)
        totals = self._totals([np.where(known[:, None], weights, 0.0) for weights in sums])
        return np.maximum(0.0, np.where(known, totals, 0.0))

    def _totals(self, sums: list[Floats]) -> Floats:
        """Return (o, r) bounds on sums of accesses: by tensor (o, 1 + 2 n, r), settled."""
        charges = _charges(tuple(each.chain for each in self.flows), tuple(self.stages.places))
        totals = np.sum([weights[:, 0] for weights in sums], axis=0)[:, None]
        words = np.array([float(each.tensor.words(self.stages.operator.sizes)) for each in self.flows])[:, None]
        for name, (sets, taken) in charges.items():
            merged = np.stack([own @ weights[:, 1:1 + each.boundaries]
                               for each, weights, own in zip(self.flows, sums, sets, strict=True)], axis=2)
            received = np.broadcast_to(self._received(name, sums)[:, None], merged.shape)
            least = np.zeros((*merged.shape[:2], self.rows.count))
            some = merged.any(axis=(2, 3)) | received.any(axis=(2, 3))
            if some.any():
                least[some] = self._compute.least(merged[some]) if name == COMPUTE else (
                    self.stages.by_name[name].least(merged[some] * words, received[some] * words))
            totals = totals + least[:, taken]
        best: Floats = totals.max(axis=1)
        return best

    def _received(self, name: str, sums: list[Floats]) -> Floats:
        """Return (o, t, r) the weights of what the instances of a stage receive; next to compute it is no choice."""
        found = np.zeros((len(sums[0]), len(self.flows), self.rows.count))
        for place, (each, weights) in enumerate(zip(self.flows, sums, strict=True)):
            if name in each.chain[1:]:
                found[:, place] = weights[:, each.boundaries + each.chain.index(name)]
        return found

    @cached_property
    def _compute(self) -> ComputeStage:
        feeding = {each.tensor.name: each.chain[-1] for each in self.flows}
        return ComputeStage(self.stages.tiles, self.rows, feeding)
