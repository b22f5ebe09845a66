"""The least of any weighted sum of accesses: what memories move as sums of what crosses boundaries, stage by stage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np

from tilewright.cost.bounds.compute import ComputeStage
from tilewright.cost.bounds.groups import Floats
from tilewright.cost.bounds.refetch import Stages
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import tensor_bits
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
    accelerator: Accelerator
    chain: tuple[str, ...]
    apart: tuple[bool, ...]
    accesses: dict[tuple[str, str], Floats]
    sent: dict[str, Floats]

    @property
    def boundaries(self) -> int:
        """How many there are; the last feeds the compute units."""
        return len(self.chain)

    @cached_property
    def _known(self) -> dict[Sum, Floats | None]:
        return {}

    def settled(self, wanted: Sum) -> Floats | None:
        """Return a sum that is no larger and has no negative weights, not to be written to; None if there is none.

        Where no fan-out lies between, as much comes in as was asked for. What a memory evicts of outputs has been
        updated there before, so that it is at most what crosses the next boundary.
        """
        if wanted not in self._known:
            self._known[wanted] = self._settled(self._energy() if wanted == ENERGY else self._moved(*wanted))
        return self._known[wanted]

    def _energy(self) -> Floats:
        bits, total = tensor_bits(self.tensor, self.accelerator), np.zeros(1 + 2 * self.boundaries)
        for (name, kind), weights in self.accesses.items():
            memory = self.accelerator.level(name)
            assert isinstance(memory, Memory)
            total = total + weights * getattr(memory.energy, f"{kind}_pj") * bits / memory.word_bits
        for level in self.accelerator.fanouts:
            if level.name in self.sent:
                total = total + self.sent[level.name] * level.network_energy_pj_per_word
        return total

    def _moved(self, name: str, kinds: tuple[str, ...]) -> Floats:
        memory = self.accelerator.level(name)
        assert isinstance(memory, Memory)
        parts = [self.accesses[name, kind] for kind in kinds if (name, kind) in self.accesses]
        scale = tensor_bits(self.tensor, self.accelerator) / memory.word_bits
        return sum(parts, start=np.zeros(1 + 2 * self.boundaries)) * scale

    def _settled(self, weights: Floats) -> Floats | None:
        n = self.boundaries
        for at in range(n - 1):
            if not self.apart[at]:
                weights[1 + at] += weights[1 + n + at]
                weights[1 + n + at] = 0.0
            elif weights[1 + n + at] < 0:
                weights[2 + at] += weights[1 + n + at]
                weights[1 + n + at] = 0.0
        return weights if weights[1:].min() >= -1e-9 else None


def flow(tensor: Tensor, operator: Operator, accelerator: Accelerator, chain: tuple[str, ...]) -> TensorTraffic:
    """Return how the accesses for ``tensor`` follow from what crosses the boundaries of ``chain`` (rules 4 to 6)."""
    n, names = len(chain), [level.name for level in accelerator.levels]
    unit = np.eye(1 + 2 * n)
    one, moved, received = unit[0], unit[1:1 + n], unit[1 + n:].copy()
    received[-1] = one * operator.macs
    accesses: dict[tuple[str, str], Floats] = {}
    sent: dict[str, Floats] = {}
    apart = []
    filled = -tensor.words(operator.sizes) * one
    for at, parent in enumerate(chain):
        inner = names.index(chain[at + 1]) if at + 1 < n else len(names)
        arrays = [x for x in accelerator.levels[names.index(parent):inner] if isinstance(x, Fanout)]
        apart.append(prod(array.instances for array in arrays) > 1)
        if not tensor.is_output:
            accesses[parent, "read"], crossing = moved[at], received[at]
            filled = received[at]
        else:
            evicted = received[at - 1] if at else 0 * one
            accesses[parent, "update"], accesses[parent, "read"] = moved[at], moved[at] - evicted + filled
            filled = accesses[parent, "read"] if _merging(tensor, operator, arrays) else 0 * one
            crossing = received[at] + filled
        for array in arrays:
            sent[array.name] = crossing
        if at + 1 < n:
            accesses[chain[at + 1], "fill"] = filled
            if tensor.is_output:
                accesses[chain[at + 1], "drain"] = received[at]
    return TensorTraffic(tensor, accelerator, chain, tuple(apart), accesses, sent)


@lru_cache(maxsize=64)
def _flows_of(operator: Operator, accelerator: Accelerator) -> dict[tuple[str, tuple[str, ...]], TensorTraffic]:
    """Return what is known by tensor and chain: kept sets share most of it."""
    return {}


def _merging(tensor: Tensor, operator: Operator, arrays: Iterable[Fanout]) -> bool:
    """Whether partial sums are always read back into one of the instances that merge (rule 5).

    Lanes along an axis of two dimensions may be set apart even where one of these has only one value.
    """
    slides = any(len(axis.terms) > 1 and any(operator.sizes[d] > 1 for d in axis.dimensions) for axis in tensor.axes)
    return not slides and all(array.reduce or array.instances == 1 for array in arrays)


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
class Traffic:
    """Lower bounds on weighted sums of accesses, over all tiles that fit and all loop orders at once."""

    stages: Stages
    flows: tuple[TensorTraffic, ...]

    @classmethod
    def of(cls, operator: Operator, accelerator: Accelerator, chains: dict[str, tuple[str, ...]],
           perfect: bool = False) -> "Traffic":
        """Return the traffic of an operator whose tensors stay in ``chains`` of memories, outermost first."""
        known = _flows_of(operator, accelerator)
        for tensor in operator.tensors:
            if (tensor.name, chains[tensor.name]) not in known:
                known[tensor.name, chains[tensor.name]] = flow(tensor, operator, accelerator, chains[tensor.name])
        return cls(Stages(operator, accelerator, chains, perfect),
                   tuple(known[tensor.name, chains[tensor.name]] for tensor in operator.tensors))

    def least(self, wanted: Sequence[Sum], only: Tensor | None = None) -> list[float]:
        """Return lower bounds on sums of accesses, for all tensors or one; 0 where none is known."""
        known: dict[int, list[Floats]] = {}
        for index, one in enumerate(wanted):
            settled = [each.settled(one) if only in (None, each.tensor) else np.zeros(1 + 2 * each.boundaries)
                       for each in self.flows]
            parts = [each for each in settled if each is not None]
            if len(parts) == len(settled):
                known[index] = parts
        found = [0.0] * len(wanted)
        if known:
            totals = self._totals([np.array(parts) for parts in zip(*known.values(), strict=True)])
            for index, total in zip(known, totals.tolist(), strict=True):
                found[index] = max(0.0, total)
        return found

    def _totals(self, sums: list[Floats]) -> Floats:
        """Return (o) bounds on sums of accesses: by tensor (o, 1 + 2 n), settled."""
        charges = _charges(tuple(each.chain for each in self.flows), tuple(self.stages.places))
        totals = np.sum([weights[:, 0] for weights in sums], axis=0)[:, None]
        words = np.array([each.tensor.words(self.stages.operator.sizes) for each in self.flows], dtype=np.float64)
        for name, (sets, taken) in charges.items():
            merged = np.stack([weights[:, 1:1 + each.boundaries] @ own.T
                               for each, weights, own in zip(self.flows, sums, sets, strict=True)], axis=2)
            received = np.broadcast_to(self._received(name, sums)[:, None, :], merged.shape)
            least = np.zeros(merged.shape[:2])
            some = merged.any(axis=2) | received.any(axis=2)
            if name == COMPUTE:
                least[some] = self._compute.least(merged[some])
            else:
                least[some] = self.stages.by_name[name].least(merged[some] * words, received[some] * words)
            totals = totals + least[:, taken]
        best: Floats = totals.max(axis=1)
        return best

    def _received(self, name: str, sums: list[Floats]) -> Floats:
        """Return (o, t) the weights of what the instances of a stage receive; next to compute it is no choice."""
        found = np.zeros((len(sums[0]), len(self.flows)))
        for place, (each, weights) in enumerate(zip(self.flows, sums, strict=True)):
            if name in each.chain[1:]:
                found[:, place] = weights[:, each.boundaries + each.chain.index(name)]
        return found

    @cached_property
    def _compute(self) -> ComputeStage:
        feeding = {each.tensor.name: each.chain[-1] for each in self.flows}
        return ComputeStage(self.stages.tiles, self.stages.accelerator, feeding)
