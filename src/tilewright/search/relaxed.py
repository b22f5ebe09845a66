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

from dataclasses import dataclass
from itertools import pairwise
from math import gcd, log

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import Layout, MapSpace, tensor_bits
from tilewright.search.objective import Objective, Scorer
from tilewright.workload import Axis, Operator, Tensor

Array = NDArray[np.float64]
LOG2 = log(2.0)
TINY = 1e-30
PARENT, PARENT_BUSIEST, CHILD, CHILD_BUSIEST = range(4)
"""Views of a transfer: all instances or the busiest one, seen from its parent (where lanes merge) or from its child."""


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
        self.operator, self.accelerator, self.layout = space.operator, space.accelerator, space.layout
        self.transfers = transfers(self.operator, self.layout)
        masks = _Masks(self.operator, self.accelerator, self.layout, self.transfers)
        self.temporal = [s for s, slot in enumerate(self.layout.slots) if slot.axis == "T"]
        self.relevant = torch.from_numpy(masks.relevant())
        self.own = torch.tensor([transfer.tensor for transfer in self.transfers])
        self.relevant_to = self.relevant[self.own]
        self.plain = torch.from_numpy(masks.plain())[self.own]
        self.time, self.inside = torch.from_numpy(masks.time()), torch.from_numpy(masks.inside())
        self.counted, self.merged = (torch.from_numpy(found) for found in masks.lanes())
        self.reloads = torch.from_numpy(masks.reloads())
        self.halo = torch.from_numpy(masks.halo())
        self.further = torch.from_numpy(np.triu(np.ones((len(self.temporal),) * 2), 1))
        self.sliding = masks.sliding()
        self.fitting = _Fitting(self.operator, self.accelerator, self.layout)

    def estimate(self, logs: torch.Tensor, orders: torch.Tensor, softness: Softness) -> Estimate:
        """Return costs of points."""
        words = self._words(logs, orders, softness)
        traffic = _Traffic(self, words, logs)
        log_cycles = self._log_cycles(logs, traffic, softness)
        energy = traffic.energy_pj(torch.exp(log_cycles))
        return Estimate(log_cycles, torch.log(torch.clamp(energy, min=TINY)), self.fitting.excess(logs))

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

    def _log_cycles(self, logs: torch.Tensor, traffic: "_Traffic", softness: Softness) -> torch.Tensor:
        steps = logs[:, self.temporal].sum((1, 2))
        blocked = torch.logaddexp(steps, torch.log(traffic.blocking() + TINY))
        steady = _largest([blocked, *(torch.log(port + TINY) for port in traffic.ports())], softness)
        return torch.logaddexp(steady, torch.log(traffic.ramp() + TINY))


def _largest(logs: list[torch.Tensor], softness: Softness) -> torch.Tensor:
    stacked = torch.stack(logs)
    if softness.maximum is None:
        return stacked.amax(0)
    return torch.logsumexp(softness.maximum * stacked, 0) / softness.maximum


def transfers(operator: Operator, layout: Layout) -> list[Transfer]:
    """List every transfer of every tensor, outermost first."""
    found = []
    for index, tensor in enumerate(operator.tensors):
        keepers = [level for level, kept in enumerate(layout.keeps) if tensor.name in kept]
        found += [Transfer(index, *pair) for pair in pairwise((*keepers, len(layout.levels)))]
    return found


@dataclass(frozen=True)
class _Sliding:
    """An axis of two dimensions, and the transfers of its tensor."""

    transfers: torch.Tensor
    dimensions: tuple[int, int]
    stride: float
    dilation: float

    def words(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Distinct words of a box (rule 1)."""
        return first * second - torch.relu(first - self.dilation) * torch.relu(second - self.stride)


class _Masks:
    """What of the layout each transfer looks at, as arrays of 0 and 1."""

    def __init__(self, operator: Operator, accelerator: Accelerator, layout: Layout, moved: list[Transfer]) -> None:
        self.operator, self.accelerator, self.layout, self.moved = operator, accelerator, layout, moved

    def _by_slot(self, holds: "list[list[bool]]") -> Array:
        return np.array(holds, dtype=np.float64).reshape(len(self.moved), len(self.layout.slots))

    def relevant(self) -> Array:
        """``(t, d)``: the tensor uses the dimension."""
        return np.array([[float(name in tensor.dimensions) for name in self.layout.dimensions]
                         for tensor in self.operator.tensors])

    def plain(self) -> Array:
        """``(t, d)``: it does so along an axis of its own."""
        return np.array([[float(any(axis.dimensions == (name,) for axis in tensor.axes))
                          for name in self.layout.dimensions] for tensor in self.operator.tensors])

    def time(self) -> Array:
        """``(k, s)``: temporal loops outside the child."""
        return self._by_slot([[slot.axis == "T" and slot.level < move.child for slot in self.layout.slots]
                              for move in self.moved])

    def inside(self) -> Array:
        """``(k, s)``: loops that make up the child's tile."""
        return self._by_slot([[slot.level >= move.child for slot in self.layout.slots] for move in self.moved])

    def reloads(self) -> Array:
        """``(k)``: every temporal loop advances the child, the compute unit."""
        return np.array([float(move.child == len(self.layout.levels)) for move in self.moved])

    def halo(self) -> Array:
        """``(k)``: words of the visit before stay."""
        computes, tensors = len(self.layout.levels), self.operator.tensors
        return np.array([float(move.child < computes and not tensors[move.tensor].is_output) for move in self.moved])

    def lanes(self) -> tuple[Array, Array]:
        """Two arrays ``(v, k, s)``: spatial loops whose lanes are counted apart, and those whose lanes merge."""
        shape = (4, len(self.moved), len(self.layout.slots))
        counted, merged = np.zeros(shape), np.zeros(shape)
        for k, move in enumerate(self.moved):
            for s, slot in enumerate(self.layout.slots):
                if slot.axis == "T" or slot.level >= move.child:
                    continue
                merges = slot.level > move.parent and self._merges(move, slot.level)
                counted[PARENT, k, s] = counted[CHILD, k, s] = 1.0
                counted[PARENT_BUSIEST, k, s] = float(slot.level > move.parent)
                if merges:
                    counted[PARENT, k, s] = counted[PARENT_BUSIEST, k, s] = 0.0
                    merged[PARENT, k, s] = merged[PARENT_BUSIEST, k, s] = 1.0
        return counted, merged

    def _merges(self, move: Transfer, level: int) -> bool:
        fanout = self.accelerator.levels[level]
        assert isinstance(fanout, Fanout)
        return fanout.reduce if self.operator.tensors[move.tensor].is_output else fanout.multicast

    def sliding(self) -> list[_Sliding]:
        """Every axis of two dimensions."""
        at = {name: d for d, name in enumerate(self.layout.dimensions)}
        found = []
        for index, tensor in enumerate(self.operator.tensors):
            ks = torch.tensor([k for k, move in enumerate(self.moved) if move.tensor == index])
            for axis in (axis for axis in tensor.axes if len(axis.terms) == 2):
                first, second = axis.dimensions
                found.append(_Sliding(ks, (at[first], at[second]), *_coefficients(axis)))
        return found


def _coefficients(axis: Axis) -> tuple[float, float]:
    stride, dilation = (coefficient for _, coefficient in axis.terms)
    return stride / gcd(stride, dilation), dilation / gcd(stride, dilation)


class _Fitting:
    """Capacities and array sides, as limits on points."""

    def __init__(self, operator: Operator, accelerator: Accelerator, layout: Layout) -> None:
        self.operator, self.layout, self.box = operator, layout, accelerator.footprint == "box"
        self.groups: list[tuple[int, float, list[tuple[int, float]]]] = []
        self.sides: list[tuple[list[int], float]] = []
        for index, level in enumerate(accelerator.levels):
            own = [s for s, slot in enumerate(layout.slots) if slot.level == index]
            if isinstance(level, Fanout):
                together = level.flexible or level.blocks is not None
                limits = [(own, level.instances)] if together else [
                    ([s], level.shape[0 if layout.slots[s].axis == "X" else 1]) for s in own]
                self.sides += [(slots, log(limit)) for slots, limit in limits]
            else:
                stores = _stores(operator, accelerator, level, layout.keeps[index])
                self.groups += [(own[0], *store) for store in stores]

    def excess(self, logs: torch.Tensor) -> torch.Tensor:
        """Return ``(b)``: logarithms of the ratios by which limits are exceeded, summed."""
        total = torch.zeros(len(logs), dtype=logs.dtype)
        for slots, limit in self.sides:
            total = total + torch.relu(logs[:, slots].sum((1, 2)) - limit)
        for first, capacity, members in self.groups:
            extents = torch.exp(logs[:, first:].sum(1))
            used = sum((bits * tile_words(self.operator.tensors[t], self.layout, extents, self.box)
                        for t, bits in members), start=torch.zeros(()))
            total = total + torch.relu(torch.log(used) - log(capacity))
        return total


def _stores(operator: Operator, accelerator: Accelerator, memory: Memory,
            kept: tuple[str, ...]) -> list[tuple[float, list[tuple[int, float]]]]:
    """Return the bits of each store of a memory, and what a word of each tensor in it takes of them."""
    copies = 2.0 if memory.buffering == "double" else 1.0
    owners = dict(memory.partitions_bytes)
    found: dict[str, list[tuple[int, float]]] = {}
    for index, tensor in enumerate(operator.tensors):
        if tensor.name in kept:
            owner = tensor.name if tensor.name in owners else tensor.role if tensor.role in owners else ""
            found.setdefault(owner, []).append((index, copies * tensor_bits(tensor, accelerator)))
    sizes: dict[str, float | None] = {**owners, "": memory.capacity_bytes}
    return [(8.0 * size, members) for owner, members in found.items() if (size := sizes[owner]) is not None]


def tile_words(tensor: Tensor, layout: Layout, extents: torch.Tensor, box: bool = False) -> torch.Tensor:
    """Return ``(b)``: words of a tile of ``extents`` ``(b, d)``, or of the smallest box around it."""
    at = {name: d for d, name in enumerate(layout.dimensions)}
    total = torch.ones(len(extents), dtype=extents.dtype)
    for axis in tensor.axes:
        if box:
            total = total * (1 + sum(times * (extents[:, at[name]] - 1) for name, times in axis.terms))
        elif len(axis.terms) == 1:
            total = total * extents[:, at[axis.dimensions[0]]]
        else:
            window = _Sliding(torch.empty(0), (0, 0), *_coefficients(axis))
            total = total * window.words(*(extents[:, at[name]] for name in axis.dimensions))
    return total


class _Traffic:
    """Words at every memory, all instances' and the busiest one's, and what they cost."""

    def __init__(self, model: RelaxedModel, words: torch.Tensor, logs: torch.Tensor) -> None:
        self.model, self.words, self.logs = model, words, logs
        self.moved: dict[tuple[int, int, str, bool], torch.Tensor] = {}
        for index, tensor in enumerate(model.operator.tensors):
            own = [(k, move) for k, move in enumerate(model.transfers) if move.tensor == index]
            for busiest in (False, True):
                if tensor.is_output:
                    self._outputs(own, busiest)
                else:
                    for k, move in own:
                        self.moved[move.parent, index, "reads", busiest] = words[:, PARENT + busiest, k]
                        self.moved[move.child, index, "fills", busiest] = words[:, CHILD + busiest, k]

    def _outputs(self, own: list[tuple[int, Transfer]], busiest: bool) -> None:
        model = self.model
        index = own[0][1].tensor
        extents = torch.exp(self.logs.sum(1))
        evicted = tile_words(model.operator.tensors[index], model.layout, extents)
        filled = torch.zeros_like(evicted)
        for k, move in own:
            updates, leaving = self.words[:, PARENT + busiest, k], self.words[:, CHILD + busiest, k]
            back = torch.relu(updates - (evicted - filled))
            self.moved[move.parent, index, "updates", busiest] = updates
            self.moved[move.parent, index, "reads", busiest] = back
            delivered = torch.minimum(torch.relu(leaving - self._first(k)), back) if busiest else back
            filled = delivered * (1 - self._apart(k))
            evicted = leaving
            self.moved[move.child, index, "fills", busiest] = filled
            self.moved[move.child, index, "drains", busiest] = leaving

    def _first(self, k: int) -> torch.Tensor:
        """Words that the first instance of the child touches at all."""
        model = self.model
        where = model.time[k] + model.inside[k]
        touched = torch.exp(torch.einsum("s,bsd->bd", where, self.logs))
        return tile_words(model.operator.tensors[model.transfers[k].tensor], model.layout, touched)

    def _apart(self, k: int) -> torch.Tensor:
        """How far lanes that share output words are not merged: the parent combines their partial sums (rule 5)."""
        model, move = self.model, self.model.transfers[k]
        apart = [s for s, slot in enumerate(model.layout.slots) if slot.axis != "T"
                 and move.parent < slot.level < move.child and not model.merged[PARENT, k, s]]
        if not apart:
            return torch.zeros(len(self.logs), dtype=self.logs.dtype)
        runs = torch.clamp(self.logs[:, apart] / LOG2, 0.0, 1.0) * (1 - model.plain[k])
        return runs.amax((1, 2))

    def _scale(self, level: int, index: int) -> float:
        memory = self.model.accelerator.levels[level]
        assert isinstance(memory, Memory)
        return tensor_bits(self.model.operator.tensors[index], self.model.accelerator) / memory.word_bits

    def _sum(self, level: int, kinds: tuple[str, ...], busiest: bool = True) -> torch.Tensor:
        total = torch.zeros(len(self.logs), dtype=self.logs.dtype)
        for (at, index, kind, of), words in self.moved.items():
            if at == level and kind in kinds and of == busiest:
                total = total + words * self._scale(level, index)
        return total

    def _memories(self) -> list[tuple[int, Memory]]:
        return [(i, level) for i, level in enumerate(self.model.accelerator.levels) if isinstance(level, Memory)]

    def ports(self) -> list[torch.Tensor]:
        """Cycles of every limited port."""
        found = []
        for level, memory in self._memories():
            read, write = self._sum(level, ("reads", "drains")), self._sum(level, ("updates", "fills"))
            for words, limit in ((read, memory.bandwidth.read), (write, memory.bandwidth.write),
                                 (read + write, memory.bandwidth.shared)):
                if limit is not None:
                    found.append(words / limit)
        return found

    def blocking(self) -> torch.Tensor:
        """Cycles of compute that single-buffered memories block."""
        total = torch.zeros(len(self.logs), dtype=self.logs.dtype)
        for level, memory in self._memories():
            if level and memory.buffering == "single":
                ports = memory.bandwidth
                total = total + _cycles(self._sum(level, ("drains",)), ports.read, ports.shared)
                total = total + _cycles(self._sum(level, ("fills",)), ports.write, ports.shared)
        return total

    def ramp(self) -> torch.Tensor:
        """Cycles of the cold start and the tail that nothing overlaps: of the first and the last whole tiles."""
        model = self.model
        total = torch.zeros(len(self.logs), dtype=self.logs.dtype)
        for k, move in enumerate(model.transfers):
            if move.child == len(model.layout.levels):
                continue
            child = model.accelerator.levels[move.child]
            parent = model.accelerator.levels[move.parent]
            assert isinstance(child, Memory) and isinstance(parent, Memory)
            if child.buffering == "single":
                continue
            tensor = model.operator.tensors[move.tensor]
            own, merged = (tile_words(tensor, model.layout, torch.exp(torch.einsum("s,bsd->bd", where, self.logs)))
                           for where in (model.inside[k], model.inside[k] + model.merged[PARENT, k]))
            own, merged = own * self._scale(move.child, move.tensor), merged * self._scale(move.parent, move.tensor)
            near, far = child.bandwidth, parent.bandwidth
            ports = (near.read, far.write) if tensor.is_output else (near.write, far.read)
            total = total + torch.maximum(_cycles(own, ports[0], near.shared), _cycles(merged, ports[1], far.shared))
        return total

    def energy_pj(self, cycles: torch.Tensor) -> torch.Tensor:
        """Return ``(b)``: picojoules of a run of ``cycles``."""
        accelerator, operator = self.model.accelerator, self.model.operator
        total = cycles * (accelerator.leakage_mw / accelerator.frequency_mhz * 1000)
        total = total + operator.macs * accelerator.compute.energy_pj_per_mac
        for level, memory in self._memories():
            each = memory.energy
            for kind, price in (("reads", each.read_pj), ("fills", each.fill_pj), ("updates", each.update_pj),
                                ("drains", each.drain_pj)):
                if price:
                    total = total + price * self._sum(level, (kind,), busiest=False)
        for level, fanout in enumerate(accelerator.levels):
            if isinstance(fanout, Fanout) and fanout.network_energy_pj_per_word:
                total = total + fanout.network_energy_pj_per_word * self._through(level)
        return total

    def _through(self, level: int) -> torch.Tensor:
        total = torch.zeros(len(self.logs), dtype=self.logs.dtype)
        for move in self.model.transfers:
            if move.parent < level < move.child:
                for kind in ("fills", "drains"):
                    total = total + self.moved.get((move.child, move.tensor, kind, False), torch.zeros(()))
        return total


def _cycles(words: torch.Tensor, *limits: float | None) -> torch.Tensor:
    """Cycles of the narrowest of some ports; 0 where none is limited."""
    least = min((limit for limit in limits if limit is not None), default=None)
    return torch.zeros_like(words) if least is None else words / least
