"""The least of any weighted sum of accesses: what memories move as sums of what crosses boundaries, stage by stage."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
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


@dataclass(frozen=True)
class Flow:
    """The accesses for one tensor as sums.

    Every array (1 + 2 n) weighs one, what crosses the port of the parent at each of the n boundaries (outermost first),
    and what the children there receive or evict, all in words. ``accesses`` are by memory and kind, ``sent`` by array.
    """

    tensor: Tensor
    chain: tuple[str, ...]
    apart: tuple[bool, ...]
    accesses: dict[tuple[str, str], Floats]
    sent: dict[str, Floats]

    @property
    def boundaries(self) -> int:
        """How many there are; the last feeds the compute units."""
        return len(self.chain)

    def settled(self, weights: Floats) -> Floats | None:
        """Return a sum that is no larger and has no negative weights; None if there is none.

        Where no fan-out lies between, as much comes in as was asked for. What a memory evicts of outputs has been
        updated there before, so that it is at most what crosses the next boundary.
        """
        weights, n = weights.copy(), self.boundaries
        for at in range(n - 1):
            if not self.apart[at]:
                weights[1 + at] += weights[1 + n + at]
                weights[1 + n + at] = 0.0
            elif weights[1 + n + at] < 0:
                weights[2 + at] += weights[1 + n + at]
                weights[1 + n + at] = 0.0
        return weights if weights[1:].min() >= -1e-9 else None


def flow(tensor: Tensor, operator: Operator, accelerator: Accelerator, chain: tuple[str, ...]) -> Flow:
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
    return Flow(tensor, chain, tuple(apart), accesses, sent)


def _merging(tensor: Tensor, operator: Operator, arrays: Iterable[Fanout]) -> bool:
    """Whether partial sums are always read back into one of the instances that merge (rule 5).

    Lanes along an axis of two dimensions may be set apart even where one of these has only one value.
    """
    slides = any(len(axis.terms) > 1 and any(operator.sizes[d] > 1 for d in axis.dimensions) for axis in tensor.axes)
    return not slides and all(array.reduce or array.instances == 1 for array in arrays)


@dataclass(frozen=True)
class Traffic:
    """Lower bounds on weighted sums of accesses, over all tiles that fit and all loop orders at once."""

    stages: Stages
    flows: tuple[Flow, ...]

    @classmethod
    def of(cls, operator: Operator, accelerator: Accelerator, chains: dict[str, tuple[str, ...]],
           perfect: bool = False) -> "Traffic":
        """Return the traffic of an operator whose tensors stay in ``chains`` of memories, outermost first."""
        flows = tuple(flow(tensor, operator, accelerator, chains[tensor.name]) for tensor in operator.tensors)
        return cls(Stages(operator, accelerator, chains, perfect), flows)

    def least(self, sums: list[list[Floats]]) -> list[float]:
        """Return lower bounds on sums of accesses, each given by tensor as `Flow` does; 0 where none is known."""
        rows: list[tuple[int, list[Floats], tuple[str, ...]]] = []
        found = [0.0] * len(sums)
        for index, weights in enumerate(sums):
            settled = [flow.settled(given) for flow, given in zip(self.flows, weights, strict=True)]
            known = [each for each in settled if each is not None]
            if len(known) == len(settled):
                rows += [(index, known, places) for places in self._choices]
        totals = self._totals(rows)
        for (index, _, _), total in zip(rows, totals, strict=True):
            found[index] = max(found[index], float(total))
        return found

    @cached_property
    def _choices(self) -> list[tuple[str, ...]]:
        """Stages where each boundary of each tensor, in order, may be charged: its child's, or one that it passes."""
        options = []
        order, places = self.stages.order, self.stages.places
        for each in self.flows:
            for at, parent in enumerate(each.chain):
                child = each.chain[at + 1] if at + 1 < each.boundaries else COMPUTE
                last = places.get(child, len(places))
                passed = [name for name in order if places[parent] < places[name] < last]
                options.append((child, *passed))
        if prod(map(len, options)) <= _MOST_CHOICES:
            return list(product(*options))
        own = tuple(option[0] for option in options)
        return [own, *((*own[:i], other, *own[i + 1:]) for i, option in enumerate(options) for other in option[1:])]

    def _totals(self, rows: list[tuple[int, list[Floats], tuple[str, ...]]]) -> Floats:
        count, tensors = len(rows), len(self.flows)
        names = (*self.stages.order, COMPUTE)
        merged = {name: np.zeros((count, tensors)) for name in names}
        received = {name: np.zeros((count, tensors)) for name in names}
        totals = np.zeros(count)
        for row, (_, weights, places) in enumerate(rows):
            boundary = iter(places)
            for t, each in enumerate(self.flows):
                totals[row] += weights[t][0]
                for at in range(each.boundaries):
                    merged[next(boundary)][row, t] += weights[t][1 + at]
                    if at + 1 < each.boundaries:
                        received[each.chain[at + 1]][row, t] += weights[t][1 + each.boundaries + at]
        words = np.array([each.tensor.words(self.stages.operator.sizes) for each in self.flows], dtype=np.float64)
        for name in names:
            both, back = np.unique(np.hstack([merged[name], received[name]]), axis=0, return_inverse=True)
            if not both.any():
                continue
            if name == COMPUTE:
                least = self._compute.least(both[:, :tensors])
            else:
                least = self.stages.by_name[name].least(both[:, :tensors] * words, both[:, tensors:] * words)
            totals += least[back.reshape(-1)]
        return totals

    @cached_property
    def _compute(self) -> ComputeStage:
        feeding = {each.tensor.name: each.chain[-1] for each in self.flows}
        return ComputeStage(self.stages.tiles, self.stages.accelerator, feeding)

    def energy_weights(self) -> list[Floats]:
        """Return the energy of all memories and networks as sums by tensor (see `Flow`)."""
        sums = []
        for each in self.flows:
            bits, total = tensor_bits(each.tensor, self.stages.accelerator), np.zeros(1 + 2 * each.boundaries)
            for (name, kind), weights in each.accesses.items():
                memory = self.stages.accelerator.level(name)
                assert isinstance(memory, Memory)
                total = total + weights * getattr(memory.energy, f"{kind}_pj") * bits / memory.word_bits
            for level in self.stages.accelerator.fanouts:
                if level.name in each.sent:
                    total = total + each.sent[level.name] * level.network_energy_pj_per_word
            sums.append(total)
        return sums

    def port_weights(self, name: str, kinds: tuple[str, ...]) -> list[Floats]:
        """Return what a memory moves by accesses of some kinds, in words of its own width, as sums by tensor."""
        memory = self.stages.accelerator.level(name)
        assert isinstance(memory, Memory)
        row = []
        for each in self.flows:
            scale = tensor_bits(each.tensor, self.stages.accelerator) / memory.word_bits
            parts = [each.accesses[name, kind] for kind in kinds if (name, kind) in each.accesses]
            row.append(sum(parts, start=np.zeros(1 + 2 * each.boundaries)) * scale)
        return row


