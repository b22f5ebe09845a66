"""Mappings known of each layer, and what they come to on any machine: each is scored once, and serves all machines.

What a mapping needs of a machine, its cycles and its words do not depend on capacities, sides and prices. So the best
mappings of all layers on a machine are looked up, and hardware is chosen by looking many machines up at once. Where
bandwidths vary, cycles are those of the machine that a mapping was scored on, and so is the energy of an array's
network, which knows the area inside: there what is looked up is a guess, and what is found is scored again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import Rows
from tilewright.codesign.limits import Floats
from tilewright.codesign.problem import DesignProblem, Figures, LayerFront, Nests
from tilewright.cost import DenseModel, HardwareBatch
from tilewright.hardware import LEAKAGE, Accelerator, Number
from tilewright.mapping import MappingBatch

MOST = 512
"""Mappings of a layer that are kept, at most."""
Worth = tuple[float, float]
"""What a cycle and a picojoule are worth."""


@dataclass(frozen=True)
class MappingPool(Rows):
    """Mappings of one layer of which none is better than another in all: needs, cycles and, where it counts, energy."""

    steps: NDArray[np.int32]
    ranks: NDArray[np.int8]
    kept: NDArray[np.int64]
    """As of `Nests`."""
    needs: Floats
    """``(n, k)``: what each needs of the numbers that vary."""
    latency: Floats
    """``(n)``: cycles."""
    rest: Floats
    words: Floats
    """``(n)`` and ``(n, j)``: picojoules that do not depend on prices, and accesses of each price."""

    @property
    def nests(self) -> Nests:
        """The mappings."""
        return Nests(self.steps, self.ranks, self.kept)

    def energy(self, prices: Floats) -> Floats:
        """Return ``(n, m)``: picojoules on machines of ``prices`` ``(j + 1, m)``, the last for a cycle."""
        found: Floats = self.rest[:, None] + np.column_stack([self.words, self.latency]) @ prices
        return found

    def unbeaten(self, prices: Floats, old: int = 0) -> "MappingPool":
        """Return those that no other is better than or as good in all; of the first ``old`` none beats another."""
        from tilewright.codesign.pool_kernels import drop_beaten  # noqa: PLC0415  (Numba takes long to import)

        kept = np.ones(len(self), dtype=np.bool_)
        drop_beaten(np.column_stack([self.needs, self.latency, self.energy(prices)]), old, kept)
        return self if kept.all() else self.take(kept)

    def least(self, value: Floats, most: int) -> "MappingPool":
        """Return those of the least values ``(n)``, in order."""
        return self.take(np.argsort(value, kind="stable")[:most])


@dataclass(frozen=True)
class Pooling:
    """How mappings of a problem are pooled: which numbers they need, and what their words cost."""

    problem: DesignProblem

    @cached_property
    def machine(self) -> Accelerator:
        """Whose structure all machines have."""
        return self.problem.space.accelerator

    @cached_property
    def _one(self) -> tuple[DenseModel, MappingBatch]:
        """The model and a mapping of the first layer by which memories keep all that they can."""
        one = self.problem.ones(0, 0)
        return self.problem.model(0, one.layout), one

    @cached_property
    def needed(self) -> tuple[Number, ...]:
        """The numbers that vary and that mappings need."""
        model, one = self._one
        return tuple(self.problem.varying(model.needs(one)))

    @property
    def priced(self) -> bool:
        """Whether energy is pooled."""
        return self.problem.spread or self.problem.priced

    @cached_property
    def moved(self) -> dict[Number, list[tuple[tuple[str, str], str, float]]]:
        """Memory, tensor and kind of the accesses of each price that varies, and the words of it in one."""
        varying = {level for level, what in (*self.problem.space.ranges, *self.problem.space.follow)
                   if what.startswith("capacity")}
        found: dict[Number, list[tuple[tuple[str, str], str, float]]] = {}
        if not self.priced or not varying:
            return found
        model, one = self._one
        table = model.table(one)
        for (memory, tensor), kinds in table.words.items():
            if memory in varying:
                width = next(one.word_bits for one in self.machine.memories if one.name == memory)
                for kind in kinds:
                    found.setdefault((memory, f"{kind.removesuffix('s')}_energy_pj_per_word"), []).append(
                        ((memory, tensor), kind, table.word_bits[tensor] / width))
        return found

    def prices(self, chosen: Mapping[Number, Any]) -> Floats:
        """Return ``(j + 1, m)``: picojoules of each access, and of a cycle, on machines of figures ``(m)`` each.

        Figures may be those of one machine.
        """
        count = np.size(next(iter(chosen.values())))
        if not self.priced:
            return np.zeros((1, count))
        numbers = self.problem.budget.completed(chosen)
        rows = [np.broadcast_to(numbers[key], count) for key in self.moved]
        return np.array([*rows, np.broadcast_to(numbers[LEAKAGE], count)], dtype=np.float64)

    def pool(self, layer: int, nests: Nests, hardware: HardwareBatch, prices: Floats) -> MappingPool:
        """Score mappings of a layer on a machine of ``prices``, and return those that are legal there."""
        found = [self.scored(layer, int(nests.kept[rows[0]]), batch, hardware, prices)
                 for rows, batch in nests.parts(self.problem, layer)]
        return found[0].joined(*found[1:]) if len(found) > 1 else found[0]

    def scored(self, layer: int, kept: int, batch: MappingBatch, hardware: HardwareBatch,
               prices: Floats) -> MappingPool:
        """Return mappings of one kept set with their scores, those that are legal."""
        model = self.problem.model(layer, batch.layout)
        told = model.table(batch, hardware) if self.priced else None
        costs, needed = model.timed(batch, hardware) if told is None else (told.costs, told.needs)
        needs = self.problem.varying(needed)
        nothing = np.zeros(len(batch))  # of what memories do not keep
        table = np.array([needs.get(key, nothing) for key in self.needed])
        table = table.reshape(len(self.needed), len(batch)).T
        latency, rest, words = costs.latency_cycles, nothing, np.empty((len(batch), 0))
        if told is not None:
            words = np.array([sum((told.words.get(place, {}).get(kind, nothing) * scale for place, kind, scale in each),
                                  start=nothing) for each in self.moved.values()])
            words = words.reshape(len(self.moved), len(batch)).T
            rest = np.broadcast_to(costs.energy_pj, len(batch)) - words @ prices[:-1, 0] - latency * prices[-1, 0]
        found = MappingPool(batch.steps.transpose(2, 0, 1), batch.ranks.transpose(2, 0, 1), np.full(len(batch), kept),
                            table, latency, rest, words)
        return found if costs.legal.all() else found.take(costs.legal)

    def fits(self, pool: MappingPool, chosen: Mapping[Number, Any]) -> NDArray[np.bool_]:
        """Return ``(n, m)``: which mappings run on which machines, or on one."""
        found = np.ones((len(pool), np.size(next(iter(chosen.values())))), dtype=np.bool_)
        for at, name in enumerate(self.needed):
            found &= pool.needs[:, at, None] <= chosen[name]
        return found

    def look_up(self, pools: Sequence[MappingPool], chosen: Mapping[Number, Floats],
                worths: Sequence[Worth]) -> tuple[NDArray[np.intp], Floats]:
        """Return the best mapping of each layer ``(l, m)`` on machines of figures ``(m)`` each, and their `merit`.

        By any of some worths. A machine on which a layer has no mapping takes infinitely long.
        """
        prices, area = self.prices(chosen), np.asarray(self.problem.area(chosen), dtype=np.float64)
        count = prices.shape[1]
        shape = (len(worths), len(pools), count)
        rows, latency, energy = np.zeros(shape, dtype=np.intp), np.full(shape, np.inf), np.full(shape, np.inf)
        at = np.arange(count)
        for layer, pool in enumerate(pools):
            if not len(pool):
                continue
            fits = self.fits(pool, chosen)
            energies = pool.energy(prices) if self.priced else np.zeros((len(pool), count))
            for way, (cycle, picojoule) in enumerate(worths):
                value = cycle * pool.latency[:, None] if picojoule == 0 else (
                    cycle * pool.latency[:, None] + picojoule * energies)
                best = np.where(fits, value, np.inf).argmin(axis=0)
                rows[way, layer], some = best, fits[best, at]
                latency[way, layer] = np.where(some, pool.latency[best], np.inf)
                energy[way, layer] = np.where(some, energies[best, at], np.inf)
        machines = self.problem.rows(chosen)
        merits = np.array([self.merit(self.problem.total(*way, area, machines))
                           for way in zip(latency, energy, strict=True)])
        best = merits.argmin(axis=0)
        return rows[best, :, at].T, merits[best, at]

    def merit(self, figures: Figures) -> Floats:
        """Return ``(m)``: the score, far above all scores where the power is over its limit."""
        with np.errstate(invalid="ignore"):
            value = np.asarray(self.problem.value(figures), dtype=np.float64)
            over = np.asarray(self.problem.overheated(figures)) if self.priced else np.zeros(len(value))
        value = np.where(np.isnan(value), np.inf, value)
        return np.where(over > 0, 1e200 * (1 + np.nan_to_num(over, nan=1.0, posinf=1.0)) + value, value)

    def front(self, layer: int, pool: MappingPool, hardware: HardwareBatch,
              rows: NDArray[np.intp]) -> LayerFront | None:
        """Return mappings of a layer as they cost on a machine; None where none of them is legal there."""
        nests = pool.nests.take(rows)
        latency, energy, excess = nests.costs(self.problem, layer, hardware)
        legal = np.flatnonzero(excess == 0)
        return LayerFront(latency[legal], energy[legal], nests.take(legal)) if len(legal) else None
