"""The cost model made smooth: any real factors and soft loop orders, for many mappings at once, in PyTorch.

A mapping is a point: the logarithm of the count of every loop, and a score for every loop of a memory by which its
order is told, the higher the further in. The closed forms of the counting rules (`cost/dense/closed_form`) are stated
anew for factors that divide, as products of powers of these counts; then

- a loop counts as one that runs by how far its count is from 1 to 2 (rules 2 and 3 pass over those that do not run);
- that one loop stands inside another of the same memory is a sigmoid of the difference of their scores;
- the largest of several times is a smooth maximum;
- what is over capacities and arrays is a penalty.

With ``hard`` all of this is sharp: reads, fills, updates and energy of mappings with perfect factors are then those of
the model where no window slides and no fan-out lacks multicast or reduction, and close to them elsewhere. Mappings with
ragged tiles are scored as if they were not. After Hong et al., DOSA (MICRO 2023), whose differentiable model has fixed
loop orders by stationary tensor.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import gcd, log

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.hardware import LEAKAGE, NETWORK, Fanout, Memory, Number, room_name
from tilewright.mapping import MapSpace, by_room, held_bits, lane_use
from tilewright.search.objective import Objective, Scorer

LOG2 = log(2.0)
TINY = 1e-30
Numbers = Mapping[Number, float | torch.Tensor]
"""Numbers of machines: one each, or ``(b)``."""
PARENT, CHILD = 0, 2
"""Views of a transfer: all instances, seen from its parent (where lanes merge) or from its child; the next view of each
is that of the busiest instance."""


@dataclass(frozen=True)
class Transfer:
    """Words of one tensor between a memory and its child, by level; the compute unit stands after the last level."""

    tensor: int
    parent: int
    child: int


@dataclass(frozen=True)
class Softness:
    """How soft the model is.

    ``order``: difference of order scores at which a loop stands inside another with a chance of 73 %. ``maximum``:
    power of the norm that stands for the largest of several times. None: sharp.
    """

    order: float | None = 0.3
    maximum: float | None = 8.0


HARD = Softness(None, None)


@dataclass(frozen=True)
class Estimate:
    """What the relaxed model says of ``b`` points, each ``(b)``: logarithms of cycles and picojoules, and the excess.

    ``excess`` sums the logarithms of the ratios by which capacities and arrays are exceeded; 0 where all fits.
    """

    log_cycles: torch.Tensor
    log_energy: torch.Tensor
    excess: torch.Tensor


class RelaxedModel:
    """Differentiable costs of points of one map space.

    Points are ``logs`` ``(b, s, d)``, logarithms of loop counts, and ``orders`` ``(b, m, d)``, scores at each memory.

    Parameters
    ----------
    space
        Its operator, accelerator and layout are modelled; its constraints are not.
    """

    def __init__(self, space: MapSpace) -> None:
        self.operator, self.accelerator, self.layout = space.operator, space.accelerator.unshared, space.layout
        levels, self.lanes = len(self.layout.levels), lane_use(self.operator, self.accelerator)
        keepers = [[level for level, kept in enumerate(self.layout.keeps) if tensor.name in kept]
                   for tensor in self.operator.tensors]
        self.transfers = [Transfer(t, *pair) for t, own in enumerate(keepers) for pair in pairwise((*own, levels))]
        self.memories = [(i, level) for i, level in enumerate(self.accelerator.levels) if isinstance(level, Memory)]
        self.axes = [[row for row in space.arrays.axes.tolist() if row[0] == t] for t in range(len(keepers))]
        self.temporal = space.layout.temporal
        self.further = torch.from_numpy(np.triu(np.ones((len(self.temporal),) * 2), 1))
        self.relevant = torch.from_numpy(space.arrays.relevant.astype(np.float64))
        self.own = torch.tensor([transfer.tensor for transfer in self.transfers])
        self.relevant_to = self.relevant[self.own]
        alone = torch.zeros_like(self.relevant)
        for tensor, dimension, _, second, *_ in space.arrays.axes.tolist():
            alone[tensor, dimension] = max(float(alone[tensor, dimension]), float(second < 0))
        self.plain = alone[self.own]
        self.sliding = [_Sliding(torch.tensor([k for k, move in enumerate(self.transfers) if move.tensor == t]), row)
                        for t, axes in enumerate(self.axes) for row in axes if row[3] >= 0]
        self._lay_out()
        self.sides, self.groups = self._limits(space)

    def _lay_out(self) -> None:
        """Set what of the layout each transfer looks at, as arrays of 0 and 1.

        By transfer and slot ``(k, s)``: ``time``, the temporal loops outside the child, ``inside``, the loops that make
        up its tile, and ``first``, those that make up what it waits for at its cold start; ``counted`` and ``merged``
        ``(v, k, s)``, the spatial loops whose lanes are counted apart, and those whose lanes merge. By transfer:
        ``reloads``, where each temporal loop advances the child (compute), and ``halo``, where words of the visit
        before stay.
        """
        outputs = np.array([tensor.is_output for tensor in self.operator.tensors])[self.own.numpy()]
        parent, child = (np.array([[getattr(move, end)] for move in self.transfers]) for end in ("parent", "child"))
        level = np.array([slot.level for slot in self.layout.slots])
        temporal = np.array([slot.axis == "T" for slot in self.layout.slots])
        slots = [(self.accelerator.levels[slot.level], slot.axis) for slot in self.layout.slots]
        networks = np.array([[isinstance(each, Fanout) and each.merges(tensor.name, tensor.role)[axis == "Y"]
                              for each, axis in slots] for tensor in self.operator.tensors])
        lanes = ~temporal & (level < child)
        near = lanes & (level > parent)
        merges = near & networks[self.own.numpy()]
        none = np.zeros_like(lanes)

        def masked(mask: NDArray[np.bool_]) -> torch.Tensor:
            return torch.from_numpy(mask.astype(np.float64))

        self.time, self.inside = masked(temporal & (level < child)), masked(level >= child)
        onward = np.array([[self._waits_for(move)] for move in self.transfers])
        self.first = masked((level >= onward) | (~temporal & (level >= child)))
        self.counted = masked(np.stack([lanes & ~merges, near & ~merges, lanes, none]))
        self.merged = masked(np.stack([merges, merges, none, none]))
        compute = child[:, 0] == len(self.layout.levels)
        self.reloads, self.halo = masked(compute), masked(~compute & ~outputs)

    def _waits_for(self, move: Transfer) -> int:
        """Level whose tile a child waits for at its cold start: its own, or further inward if it forwards words."""
        tensor = self.operator.tensors[move.tensor]
        if tensor.is_output or getattr([*self.accelerator.levels, None][move.child], "forwards", None) != "words":
            return move.child
        return next(inner.child for inner in self.transfers
                    if inner.tensor == move.tensor and inner.parent == move.child)

    def _limits(self, space: MapSpace) -> tuple[list[tuple[Number, list[int], float]],
                                                list[tuple[Number, list[int]]]]:
        """Return slots of arrays and the logarithm of their lanes; and the stores of memories, as in `SpaceArrays`.

        Each with the number of the machine that limits it.
        """
        sides: list[tuple[Number, list[int], float]] = []
        for index, level in enumerate(self.accelerator.levels):
            own = [s for s, slot in enumerate(self.layout.slots) if slot.level == index]
            if isinstance(level, Fanout):
                sides += [((level.name, "instances"), own, log(level.instances))] if level.one_piece else [
                    ((level.name, self.layout.slots[s].axis.lower()), [s], log(level.side(self.layout.slots[s].axis)))
                    for s in own]
        stores = []
        for first, *group in space.arrays.groups.tolist():
            memory = self.accelerator.levels[self.layout.slots[first].level]
            assert isinstance(memory, Memory)
            held = [tensor for tensor, bits in zip(self.operator.tensors, group[1:], strict=True) if bits]
            stores += [((memory.name, room_name(owner)), [first, *group]) for owner in by_room(memory, held[:1])]
        return sides, stores

    @cached_property
    def _numbers(self) -> Numbers:
        leakage = self.accelerator.leakage_mw / self.accelerator.frequency_mhz * 1000
        return {**self.accelerator.numbers, LEAKAGE: leakage}

    def estimate(self, logs: torch.Tensor, orders: torch.Tensor, softness: Softness,
                 numbers: Numbers | None = None) -> Estimate:
        """Return costs of points; energies and leakage are of the machine, or as ``numbers`` say."""
        words = self._words(logs, orders, softness)
        traffic = _Traffic(self, words, logs)
        log_cycles = self._log_cycles(logs, traffic, softness)
        energy = traffic.energy_pj(torch.exp(log_cycles), self._numbers if numbers is None else numbers)
        return Estimate(log_cycles, torch.log(torch.clamp(energy, min=TINY)), self._excess(logs))

    def scores(self, scorer: Scorer, found: Estimate, penalty: float) -> torch.Tensor:
        """Return ``(b)``: the logarithm of the objective, and penalties for what does not fit or breaks its limits."""
        metrics = torch.exp(found.log_cycles), torch.exp(found.log_energy), self.accelerator.area_um2
        total = torch.log(torch.clamp(scorer.values(*metrics), min=TINY)) + penalty * found.excess
        for limit in scorer.objective.constraints:
            alone = Scorer(Objective.parse(limit.metric), self.operator, self.accelerator)
            over = torch.log(alone.values(*metrics)) - log(limit.most)
            total = total + penalty * torch.relu(over)
        return total

    def _words(self, logs: torch.Tensor, orders: torch.Tensor, softness: Softness) -> torch.Tensor:
        """Return ``(b, v, k)``: words of every transfer in every view."""
        visits, moving = self._advances(logs, orders, softness)
        timed = torch.einsum("ks,bsd->bkd", self.time, logs)
        tile = torch.einsum("ks,bsd->bkd", self.inside, logs)
        counted = torch.einsum("vks,bsd->bvkd", self.counted, logs)
        merged = torch.einsum("vks,bsd->bvkd", self.merged, logs)
        still = 1 - self.relevant_to
        found = ((visits[:, None] + counted) * still).sum(-1)
        pieces, extents = timed[:, None] + counted, tile[:, None] + merged
        found = found + ((pieces + extents) * self.plain).sum(-1)
        for axis in self.sliding:
            ks, (first, second) = axis.transfers, axis.dimensions
            widths = torch.exp(extents[:, :, ks, first]), torch.exp(extents[:, :, ks, second])
            words = axis.words(*widths)
            fresh = (axis.words(2 * widths[0], widths[1]) - words, axis.words(widths[0], 2 * widths[1]) - words)
            kept = sum((moving[:, None, ks, d] * torch.relu(words - new)
                        for d, new in zip((first, second), fresh, strict=True)), start=torch.zeros(()))
            whole = torch.log(torch.clamp(words - kept, min=TINY)) + pieces[:, :, ks, first] + pieces[:, :, ks, second]
            found = found.index_add(2, ks, whole)
        return torch.exp(found)

    def _advances(self, logs: torch.Tensor, orders: torch.Tensor,
                  softness: Softness) -> tuple[torch.Tensor, torch.Tensor]:
        """Return two tensors ``(b, k, d)`` on the temporal loops outside the child.

        First the logarithm of the iterations that advance the tile (rule 2) of dimensions that the tensor does not use;
        then the share of its visits in which the innermost advancing loop, over that dimension, has stepped (rule 3).
        """
        own = logs[:, self.temporal]
        runs = torch.clamp(own / LOG2, 0.0, 1.0)
        apart = orders[:, :, None, :] - orders[:, :, :, None]  # (b, m, i, j): how far j stands inside i
        inner = (apart > 0).to(logs.dtype) if softness.order is None else torch.sigmoid(apart / softness.order)
        inner = inner * (1 - torch.eye(own.shape[-1], dtype=logs.dtype))
        moves = runs[:, None] * self.relevant[None, :, None]  # (b, t, m, d)
        below = (moves[:, :, :, None, :] * inner[:, None]).amax(-1)[:, self.own]
        outside = self.time[:, self.temporal]  # (k, m)
        some = moves.amax(-1)[:, self.own] * outside
        beyond = (some[:, :, None, :] * self.further).amax(-1)
        advances = torch.maximum(torch.maximum(below, beyond[..., None]), self.reloads[None, :, None, None])
        timed = outside[None, :, :, None] * own[:, None]
        visits = (timed * advances).sum(2)
        last = moves[:, self.own] * (1 - below) * (1 - beyond[..., None]) * outside[None, :, :, None]
        stepped = (last * (1 - torch.exp(-own))[:, None]).sum(2) * self.halo[None, :, None]
        return visits, stepped

    def taken(self, logs: torch.Tensor) -> Iterator[tuple[Number, torch.Tensor, float]]:
        """Yield the logarithms ``(b)`` of lanes and bits that points take, and of those that there are."""
        for key, slots, limit in self.sides:
            yield key, logs[:, slots].sum((1, 2)), limit
        for key, (first, capacity, *bits) in self.groups:
            extents = torch.exp(logs[:, first:].sum(1))
            used = sum((each * self.tile_words(t, extents, self.accelerator.footprint == "box")
                        for t, each in enumerate(bits) if each), start=torch.zeros(()))
            yield key, torch.log(used), log(max(1, capacity))

    def _excess(self, logs: torch.Tensor) -> torch.Tensor:
        """Return ``(b)``: logarithms of the ratios by which limits are exceeded, summed."""
        total = torch.zeros(len(logs), dtype=logs.dtype)
        for _, taken, limit in self.taken(logs):
            total = total + torch.relu(taken - limit)
        return total

    def tile_words(self, tensor: int, extents: torch.Tensor, box: bool = False) -> torch.Tensor:
        """Return ``(b)``: words of a tile of ``extents`` ``(b, d)``, or of the smallest box around it."""
        total = torch.ones(len(extents), dtype=extents.dtype)
        for row in self.axes[tensor]:
            _, first, stride, second, dilation, _ = row
            if box:
                others = [(second, dilation)] if second >= 0 else []
                total = total * (1 + sum(times * (extents[:, d] - 1) for d, times in ((first, stride), *others)))
            elif second < 0:
                total = total * extents[:, first]
            else:
                total = total * _Sliding(torch.empty(0), row).words(extents[:, first], extents[:, second])
        return total

    def _log_cycles(self, logs: torch.Tensor, traffic: "_Traffic", softness: Softness) -> torch.Tensor:
        steps = logs[:, self.temporal].sum((1, 2)) + log(self.lanes.cycles)
        blocked = torch.logaddexp(steps, torch.log(traffic.blocking() + TINY))
        steady = largest(torch.stack([blocked, *(torch.log(port + TINY) for port in traffic.ports())]), softness)
        return torch.logaddexp(steady, torch.log(traffic.ramp() + TINY))


def largest(logs: torch.Tensor, softness: Softness) -> torch.Tensor:
    """Return ``(b)``: the largest of ``(n, b)``, or about that."""
    if softness.maximum is None:
        return logs.amax(0)
    return torch.logsumexp(softness.maximum * logs, 0) / softness.maximum


class _Sliding:
    """An axis of two dimensions (a row of `SpaceArrays.axes`), and the ``transfers`` of its tensor."""

    def __init__(self, transfers: torch.Tensor, row: list[int]) -> None:
        _, first, stride, second, dilation, _ = row
        self.transfers, self.dimensions = transfers, (first, second)
        self.stride, self.dilation = (each / gcd(stride, dilation) for each in (stride, dilation))

    def words(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Distinct words of a box (rule 1)."""
        return first * second - torch.relu(first - self.dilation) * torch.relu(second - self.stride)


class _Traffic:
    """Words at every memory, all instances' and the busiest one's, and what they cost."""

    def __init__(self, model: RelaxedModel, words: torch.Tensor, logs: torch.Tensor) -> None:
        self.model, self.words, self.logs = model, words, logs
        self.none = torch.zeros(len(logs), dtype=logs.dtype)
        self.moved: dict[tuple[int, int, str, bool], torch.Tensor] = {}
        for index, tensor in enumerate(model.operator.tensors):
            own = [k for k, move in enumerate(model.transfers) if move.tensor == index]
            for busiest in (False, True):
                if tensor.is_output:
                    self._outputs(own, busiest)
                    continue
                for k in own:
                    self._move(k, "reads", words[:, PARENT + busiest, k], busiest)
                    self._move(k, "fills", words[:, CHILD + busiest, k], busiest)

    def _move(self, k: int, kind: str, words: torch.Tensor, busiest: bool) -> None:
        """Take note of words of transfer ``k`` at its parent or its child."""
        move = self.model.transfers[k]
        level = move.parent if kind in ("reads", "updates") else move.child
        self.moved[level, move.tensor, kind, busiest] = words

    def _outputs(self, own: list[int], busiest: bool) -> None:
        index = self.model.transfers[own[0]].tensor
        evicted = self.model.tile_words(index, torch.exp(self.logs.sum(1)))
        filled = torch.zeros_like(evicted)
        for k in own:
            updates, leaving = self.words[:, PARENT + busiest, k], self.words[:, CHILD + busiest, k]
            back = torch.relu(updates - (evicted - filled))
            # Busiest: no more than what its first instance does not begin with.
            delivered = torch.minimum(torch.relu(leaving - self._tile(k, self.model.time[k] + self.model.inside[k])),
                                      back) if busiest else back
            filled, evicted = delivered * (1 - self._apart(k)), leaving
            for kind, words in (("updates", updates), ("reads", back), ("fills", filled), ("drains", leaving)):
                self._move(k, kind, words, busiest)

    def _tile(self, k: int, where: torch.Tensor) -> torch.Tensor:
        """Words of the tensor of transfer ``k`` that loops at the slots ``where`` ``(s)`` touch."""
        extents = torch.exp(torch.einsum("s,bsd->bd", where, self.logs))
        return self.model.tile_words(self.model.transfers[k].tensor, extents)

    def _apart(self, k: int) -> torch.Tensor:
        """How far lanes that share output words are not merged: the parent combines their partial sums (rule 5)."""
        model, move = self.model, self.model.transfers[k]
        apart = [s for s, slot in enumerate(model.layout.slots) if slot.axis != "T"
                 and move.parent < slot.level < move.child and not model.merged[PARENT, k, s]]
        if not apart:
            return self.none
        runs = torch.clamp(self.logs[:, apart] / LOG2, 0.0, 1.0) * (1 - model.plain[k])
        return runs.amax((1, 2))

    def _scale(self, memory: Memory, index: int) -> float:
        return float(held_bits(self.model.operator.tensors[index], self.model.accelerator)) / memory.word_bits

    def _sum(self, level: int, kinds: tuple[str, ...], busiest: bool = True) -> torch.Tensor:
        memory, total = self.model.accelerator.levels[level], self.none
        assert isinstance(memory, Memory)
        for (at, index, kind, of), words in self.moved.items():
            if at == level and kind in kinds and of == busiest:
                total = total + words * self._scale(memory, index)
        return total

    def ports(self) -> list[torch.Tensor]:
        """Cycles of every limited port."""
        found = []
        for level, memory in self.model.memories:
            read, write = self._sum(level, ("reads", "drains")), self._sum(level, ("updates", "fills"))
            for words, limit in ((read, memory.bandwidth.read), (write, memory.bandwidth.write),
                                 (read + write, memory.bandwidth.shared)):
                if limit is not None:
                    found.append(words / limit)
        return found

    def blocking(self) -> torch.Tensor:
        """Cycles of compute that single-buffered memories block."""
        total = self.none
        for level, memory in self.model.memories:
            if level and memory.buffering == "single":
                ports = memory.bandwidth
                total = total + _cycles(self._sum(level, ("drains",)), ports.read, ports.shared)
                total = total + _cycles(self._sum(level, ("fills",)), ports.write, ports.shared)
        return total

    def ramp(self) -> torch.Tensor:
        """Cycles of the cold start and the tail that nothing overlaps: of the first and the last whole tiles."""
        model, total, memories = self.model, self.none, dict(self.model.memories)
        for k, move in enumerate(model.transfers):
            if move.child == len(model.layout.levels) or memories[move.child].buffering == "single":
                continue
            child, parent = memories[move.child], memories[move.parent]
            own = self._tile(k, model.first[k]) * self._scale(child, move.tensor)
            merged = self._tile(k, model.first[k] + model.merged[PARENT, k]) * self._scale(parent, move.tensor)
            near, far = child.bandwidth, parent.bandwidth
            is_output = model.operator.tensors[move.tensor].is_output
            ports = (near.read, far.write) if is_output else (near.write, far.read)
            total = total + torch.maximum(_cycles(own, ports[0], near.shared), _cycles(merged, ports[1], far.shared))
        return total

    def energy_pj(self, cycles: torch.Tensor, numbers: Numbers) -> torch.Tensor:
        """Return ``(b)``: picojoules of a run of ``cycles``."""
        accelerator, operator = self.model.accelerator, self.model.operator
        total = cycles * numbers[LEAKAGE]
        total = total + operator.macs * accelerator.compute.energy_pj_per_mac * self.model.lanes.energy
        for level, memory in self.model.memories:
            for kind in ("reads", "fills", "updates", "drains"):
                price = numbers[memory.name, f"{kind[:-1]}_energy_pj_per_word"]
                if isinstance(price, torch.Tensor) or price:
                    total = total + price * self._sum(level, (kind,), busiest=False)
        for level, fanout in enumerate(accelerator.levels):
            if isinstance(fanout, Fanout) and fanout.network_energy_pj_per_word:
                through = [words for move in self.model.transfers if move.parent < level < move.child
                           for kind in ("fills", "drains")
                           if (words := self.moved.get((move.child, move.tensor, kind, False))) is not None]
                total = total + numbers[fanout.name, NETWORK] * sum(through, start=self.none)
        return total


def _cycles(words: torch.Tensor, *limits: float | None) -> torch.Tensor:
    """Cycles of the narrowest of some ports; 0 where none is limited."""
    least = min((limit for limit in limits if limit is not None), default=None)
    return torch.zeros_like(words) if least is None else words / least
