"""Bounds over everything that memories may keep: those of each kept set, the sets that may be best first.

What the words of one tensor cost by themselves, with all room to spare, depends on that tensor's memories alone. Their
sum over tensors bounds every set from below in no time; sets are then looked at one by one, the least sum first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.layer import BoundRows, LowerBounds, bound_rows
from tilewright.cost.bounds.machines import MOST_ROWS, layer_bounds
from tilewright.cost.bounds.passing import keepers
from tilewright.cost.bounds.rows import Floats, MachineRows, Once
from tilewright.cost.bounds.rules import Leeway
from tilewright.cost.bounds.steps import compute_steps, paced
from tilewright.cost.bounds.traffic import TensorTraffic, blocking_of, known_flows, least_alone, ports_of
from tilewright.cost.hardware import HardwareBatch
from tilewright.hardware import Accelerator
from tilewright.mapping import KeptSets, MapSpace, lane_use
from tilewright.workload import Operator, Tensor

Score = Callable[[Any, Any], Any]
"""Makes a score of cycles and picojoules, which more of either cannot lower; of arrays of them an array."""

MOST_LISTED, MOST = 1 << 14, 64
"""Sets whose sums are listed at most, and those looked at one by one at most."""
MOST_NUMBERS, FEW_CHAINS = 1 << 22, 64
"""Weights of sums that are looked at together, and chains of a tensor, where there are no more, that are remembered."""
_SLACK = 1 - 1e-9


@dataclass(frozen=True)
class KeptSums:
    """What members (m) cost at least on machines (r), as sums over tensors; of very many members some are left out.

    ``least_pj`` (r) holds for those that are left out too.
    """

    numbers: NDArray[np.int64]
    cycles: Floats
    energy_pj: Floats
    least_pj: Floats


@dataclass(frozen=True)
class KeptRows(Once):
    """Bounds of the members of a union on machines that were parted (`MachineRows.parts`), dense ones."""

    kept: KeptSets
    rows: MachineRows

    def least(self, score: Score) -> Floats:
        """Return (r) the score that no mapping of any member beats."""
        sums, every = self.sums, np.arange(self.rows.count)
        totals = np.broadcast_to(score(sums.cycles, sums.energy_pj), sums.cycles.shape).copy()
        unlisted = np.inf if len(totals) == len(self.kept) else score(self.steps, sums.least_pj)
        least: Floats = np.full(self.rows.count, np.inf)
        for _ in range(MOST):
            first = totals.argmin(axis=0)
            beaten = totals[first, every] < least
            if not beaten.any():
                break
            wanted = int(np.bincount(first[beaten]).argmax())
            found = self.bounds(int(sums.numbers[wanted]))
            least = np.minimum(least, score(found.latency_cycles.astype(np.float64), found.energy_pj))
            totals[wanted] = np.inf
        least = np.minimum(np.minimum(least, totals.min(axis=0)), unlisted)
        return least

    def bounds(self, number: int) -> BoundRows:
        """Return the bounds of a member, made once."""
        return self.once(number, lambda: bound_rows(
            self._operator, self.rows, self.kept.keeps(self.kept.passed(number)), perfect=self._perfect))

    @property
    def _operator(self) -> Operator:
        return self.kept.space.operator

    @property
    def _perfect(self) -> bool:
        return self.kept.space.tiling == "perfect"

    @cached_property
    def steps(self) -> Floats:
        """The fewest cycles of compute (r)."""
        steps = compute_steps(self._operator, self.rows, self._perfect)
        return paced(steps, self._operator, self.rows.machine).astype(np.float64)

    @cached_property
    def sums(self) -> KeptSums:
        """Sums over tensors; of very many members of those that take the least energy."""
        operator, machine = self._operator, self.rows.machine
        options = [self._alone(tensor) for tensor in operator.tensors]
        computing = operator.macs * self.rows.numbers[machine.compute.name, "energy_pj_per_mac"] * lane_use(
            operator, machine).energy
        least = computing + self.rows.leakage * self.steps + sum(costs[:, 0].min(axis=0) for costs, _ in options)
        while prod(len(numbers) for _, numbers in options) > MOST_LISTED:
            longest = max(range(len(options)), key=lambda place: len(options[place][1]))
            costs, numbers = options[longest]
            options[longest] = costs[:len(costs) // 2], numbers[:len(numbers) // 2]
        sums, numbers = np.zeros((1, *options[0][0].shape[1:])), np.zeros(1, dtype=np.int64)
        for costs, own in options:
            sums = (sums[:, None] + costs).reshape(-1, *sums.shape[1:])
            numbers = np.add.outer(numbers, own).ravel()
        cycles = np.maximum(self.steps, np.ceil(sums[:, 1:].max(axis=1, initial=0.0) * _SLACK))
        energy = sums[:, 0] + computing + self.rows.leakage * cycles
        return KeptSums(numbers, cycles, energy * _SLACK, least * _SLACK)

    def _alone(self, tensor: Tensor) -> tuple[Floats, NDArray[np.int64]]:
        """Return what one tensor costs at least, whatever room the others take, and its bits, by the memories kept.

        The costs (k, 1 + p, r) are its energy and its cycles at every port; those of the least energy come first.
        """
        operator, rows, stated = self._operator, self.rows, dict(self.kept.space.constraints.keeps)
        homes = {other.name: keepers(other, rows.machine, stated)[0] for other in operator.tensors}
        memories, ports = keepers(tensor, rows.machine, stated), ports_of(rows)
        bits = [(1 << bit, memories.index(memory)) for bit, (memory, name) in enumerate(self.kept.open)
                if name == tensor.name]
        numbers, kept = np.zeros(1, dtype=np.int64), np.ones((1, len(memories)), dtype=np.bool_)
        for bit, at in bits:
            numbers, kept = np.concatenate((numbers, numbers + bit)), np.concatenate((kept, kept))
            kept[len(kept) // 2:, at] = False
        known, found = known_flows(operator, rows), []
        every = [*ports, *blocking_of(rows)]
        most = max(1, MOST_NUMBERS // (rows.count * (1 + len(every)) * (1 + 2 * len(memories))))
        for first in range(0, len(kept), most):
            flow = TensorTraffic(tensor, operator, rows, memories, kept[first:first + most])
            energy, cycles = least_alone(flow, every, homes, self._perfect)
            found.append(np.concatenate((energy[:, None], cycles[:, :len(ports)]), axis=1))
            for each in map(flow.take, range(len(kept) if len(kept) <= FEW_CHAINS else 0)):
                known.setdefault((tensor.name, each.chain), each)
        costs = np.concatenate(found)
        order = np.lexsort((numbers, *costs.sum(axis=2).T[::-1]))
        return costs[order], numbers[order]


@dataclass(frozen=True)
class KeptBounds:
    """Bounds of the members of a union that differ by what memories keep."""

    kept: KeptSets

    def __getstate__(self) -> dict[str, Any]:
        """Return the members and the bounds of all, without the tables of every layer that lie behind them."""
        return {"kept": self.kept, "union": self.union}

    @cached_property
    def union(self) -> LowerBounds:
        """Bounds that every legal mapping of any member respects; parts are those of the least total."""
        space = self.kept.space
        keeps, perfect = dict(space.constraints.keeps), space.tiling == "perfect"
        if space.accelerator.sparsity is not None or len(self.kept) == 1:
            return layer_bounds(space.operator, space.accelerator, keeps, perfect=perfect, rules=self._rules)
        free = layer_bounds(space.operator, space.accelerator, keeps, bypass=True, perfect=perfect,
                            rules=self._rules)
        energy = max(free.energy_pj, self.least(lambda _, energy: energy))
        edp = max(energy * free.latency_cycles, self.least(lambda cycles, energy: cycles * energy))
        return replace(free, energy_pj=energy, edp=edp,
                       refetch_pj=max(0.0, energy - sum(free.energy_by_component_pj.values())))

    def least(self, score: Score) -> float:
        """Return the score that no mapping of any member beats."""
        if self.kept.space.accelerator.sparsity is not None:
            return float(score(self.union.latency_cycles, self.union.energy_pj))
        return float(self._rows.least(score)[0])

    def scores(self, score: Score, sure: int) -> dict[int, float]:
        """Return what no mapping of a member scores below, by its number, the least first, and of equals by EDP.

        The first are ``sure`` to be the least, as many as that. Where zeros are made use of, these are of dense
        mappings: they order members, but bound none. Of very many members those of the least sums are told.
        """
        sums = self._rows.sums
        cycles, energy = sums.cycles[:, 0], sums.energy_pj[:, 0]
        totals = sorted(zip(np.broadcast_to(score(cycles, energy), cycles.shape).tolist(), (cycles * energy).tolist(),
                            sums.numbers.tolist(), strict=True))
        known: dict[int, float] = {}
        for total, _, number in totals[:MOST]:
            if len(known) > sure and total >= sorted(known.values())[sure - 1]:
                break
            known[number] = self.score(number, score)
        return dict(sorted(((number, known.get(number, total)) for total, _, number in totals),
                           key=lambda each: (each[1], each[0] not in known)))

    def score(self, number: int, score: Score) -> float:
        """Return what no mapping of one member scores below; of very many members `scores` tells not all."""
        bounds = self._rows.bounds(number)
        return float(score(float(bounds.latency_cycles[0]), float(bounds.energy_pj[0])))

    @cached_property
    def _rules(self) -> Leeway | None:
        return Leeway.of(self.kept.space)

    @cached_property
    def _rows(self) -> KeptRows:
        """The machine as a row, as if it made use of no zeros."""
        machine = self.kept.space.accelerator
        return KeptRows(self.kept, MachineRows.one(
            machine if machine.sparsity is None else replace(machine, sparsity=None), self._rules))


def kept_least(kept: KeptSets, hardware: HardwareBatch, score: Score) -> Floats:
    """Return (b) the score that no mapping of any member beats on each row, of the structure of the space's machine."""
    rows = MachineRows(hardware.on(kept.space.accelerator), len(hardware))
    found = np.empty(rows.count)
    for part in rows.parts(MOST_ROWS):
        found[part] = KeptRows(kept, rows.take(part)).least(score)
    return found


def kept_bounds(operator: Operator, accelerator: Accelerator) -> LowerBounds:
    """Return bounds that every legal mapping respects, whatever memories keep of what the machine leaves open."""
    return KeptBounds(KeptSets(MapSpace(operator, accelerator))).union
