"""Bounds over everything that memories may keep: those of each kept set, the sets that may be best first.

What the words of one tensor cost by themselves, with all room to spare, depends on that tensor's memories alone. Their
sum over tensors bounds every set from below in no time; sets are then looked at one by one, the least sum first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.layer import LowerBounds
from tilewright.cost.bounds.machines import layer_bounds
from tilewright.cost.bounds.passing import keepers
from tilewright.cost.bounds.steps import compute_bound
from tilewright.cost.bounds.traffic import Traffic
from tilewright.hardware import Accelerator
from tilewright.mapping import KeptSets, MapSpace, lane_use
from tilewright.workload import Operator, Tensor

Score = Callable[[float, float], float]
"""Makes a score of cycles and picojoules, which more of either cannot lower."""

MOST_LISTED, FEWEST, MOST, SURE = 1 << 14, 4, 64, 3
"""Sets whose sums are listed at most; those looked at one by one at least (where there are so many) and at most; and
how many of the least bounds must be of sets that were looked at."""
_SLACK = 1 - 1e-9


@dataclass(frozen=True)
class KeptBounds:
    """Bounds of the members of a union that differ by what memories keep."""

    kept: KeptSets

    @cached_property
    def union(self) -> LowerBounds:
        """Bounds that every legal mapping of any member respects; parts are those of the least total."""
        space = self.kept.space
        keeps, perfect = dict(space.constraints.keeps), space.tiling == "perfect"
        if space.accelerator.sparsity is not None or len(self.kept) == 1:
            return layer_bounds(space.operator, space.accelerator, keeps, perfect=perfect)
        free = layer_bounds(space.operator, space.accelerator, keeps, bypass=True, perfect=perfect)
        energy = max(free.energy_pj, self.least(lambda _, energy: energy))
        edp = max(energy * free.latency_cycles, self.least(lambda cycles, energy: cycles * energy))
        return replace(free, energy_pj=energy, edp=edp,
                       refetch_pj=max(0.0, energy - sum(free.energy_by_component_pj.values())))

    def least(self, score: Score) -> float:
        """Return the score that no mapping of any member beats."""
        if self.kept.space.accelerator.sparsity is not None:
            return score(self.union.latency_cycles, self.union.energy_pj)
        listed = self.scores(score)
        least = min(listed.values())
        if len(listed) == len(self.kept):
            return least
        energies, _, _ = self._listed
        return min(least, score(self._steps, float(energies.min()) * _SLACK))

    def scores(self, score: Score) -> dict[int, float]:
        """Return what no mapping of a member scores below, by its number, the least first.

        Where zeros are made use of, these are of dense mappings: they order members, but bound none. Of very many
        members those of the least sums are told.
        """
        sums = self._sums(score)
        known: dict[int, float] = {}
        for total, number in sums[:MOST]:
            if len(known) >= FEWEST and total >= sorted(known.values())[SURE - 1]:
                break
            known[number] = self.score(number, score)
        return dict(sorted(((number, known.get(number, total)) for total, number in sums),
                           key=lambda each: (each[1], each[0] not in known)))

    def score(self, number: int, score: Score) -> float:
        """Return what no mapping of one member scores below; of very many members `scores` tells not all."""
        bounds = self._bounds(number)
        return score(bounds.latency_cycles, bounds.energy_pj)

    def _bounds(self, number: int) -> LowerBounds:
        if number not in self._known:
            space = self.kept.space
            self._known[number] = layer_bounds(space.operator, self._dense, self.kept.keeps(self.kept.passed(number)),
                                               perfect=space.tiling == "perfect")
        return self._known[number]

    @cached_property
    def _known(self) -> dict[int, LowerBounds]:
        return {}

    @cached_property
    def _dense(self) -> Accelerator:
        machine = self.kept.space.accelerator
        return machine if machine.sparsity is None else replace(machine, sparsity=None)

    def _sums(self, score: Score) -> list[tuple[float, int]]:
        """Return the scores from sums over tensors and the numbers of the members, the least first."""
        energies, cycles, numbers = self._listed
        return sorted((score(steps, energy * _SLACK), number) for energy, steps, number in zip(
            energies.tolist(), cycles.tolist(), numbers.tolist(), strict=True))

    @cached_property
    def _steps(self) -> int:
        space = self.kept.space
        return compute_bound(space.operator, self._dense, space.tiling == "perfect")

    @cached_property
    def _listed(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Energies, cycles and numbers of members, from sums over tensors; of very many, those of the least energy."""
        machine = self._dense
        options = [self._alone(tensor) for tensor in self.kept.space.operator.tensors]
        while np.prod([len(own) for own in options]) > MOST_LISTED:
            longest = max(options, key=len)
            del longest[len(longest) // 2:]
        sums, numbers = np.zeros((1, len(options[0][0][0]))), np.zeros(1, dtype=np.int64)
        for own in options:
            sums = (sums[:, None] + [least for least, _ in own]).reshape(-1, sums.shape[1])
            numbers = np.add.outer(numbers, [number for _, number in own]).ravel()
        cycles = np.maximum(self._steps, np.ceil(sums[:, 1:].max(axis=1, initial=0.0) * _SLACK)).astype(np.int64)
        leakage = machine.leakage_mw / machine.frequency_mhz * 1000 * cycles
        return sums[:, 0] + self._computing_pj + leakage, cycles, numbers

    @cached_property
    def _computing_pj(self) -> float:
        """Energy of all multiply-accumulates."""
        operator, machine = self.kept.space.operator, self._dense
        return operator.macs * machine.compute.energy_pj_per_mac * lane_use(operator, machine).energy

    def _alone(self, tensor: Tensor) -> list[tuple[list[float], int]]:
        """Return what one tensor costs at least, whatever room the others take, and its bits, by the memories kept.

        The costs are its energy and its cycles at every port.
        """
        space, machine = self.kept.space, self._dense
        bits = [1 << bit for bit, (_, name) in enumerate(self.kept.open) if name == tensor.name]
        found = []
        for passing in product((0, 1), repeat=len(bits)):
            number = sum(bit for bit, out in zip(bits, passing, strict=True) if out)
            keeps = self.kept.keeps(self.kept.passed(number))
            chains = {other.name: keepers(other, machine, keeps) for other in space.operator.tensors}
            chains = {name: chain if name == tensor.name else chain[:1] for name, chain in chains.items()}
            traffic = Traffic.of(space.operator, machine, chains, space.tiling == "perfect")
            energy, cycles = traffic.ports_least(traffic.ports, tensor)
            found.append(([*energy.tolist(), *cycles[:, 0].tolist()], number))
        return sorted(found)


def kept_bounds(operator: Operator, accelerator: Accelerator) -> LowerBounds:
    """Return bounds that every legal mapping respects, whatever memories keep of what the machine leaves open."""
    return KeptBounds(KeptSets(MapSpace(operator, accelerator))).union
