"""What is to be designed: networks, what may vary, what it may take, and what is minimised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, digest
from tilewright.codesign.limits import DesignBudget, Floats, Limit, power_mw
from tilewright.cost import BoundBatch, DenseModel, HardwareBatch, hardware_bounds
from tilewright.hardware import AREA, Accelerator, DesignSpace, Number, with_numbers
from tilewright.mapping import Constraints, KeptSets, Layout, MappingBatch, MapSpace, Tiling, dataflow_constraints
from tilewright.search import METRICS
from tilewright.workload import Operator, UniqueOperator

GOALS = ("latency", "energy", "edp", "latency-area", "energy-area", "edp-area")


@dataclass(frozen=True)
class Figures:
    """What networks take on machines, one figure each or ``(b)``: cycles, picojoules, square micrometres."""

    latency_cycles: Any
    energy_pj: Any
    area_um2: Any

    def of(self, metric: str, machine: Accelerator) -> Any:
        """Return a metric of them."""
        return METRICS[metric].of(self.latency_cycles, self.energy_pj, self.area_um2, machine.frequency_mhz)


@dataclass(frozen=True)
class DesignProblem:
    """The design of one machine for all layers of networks.

    Parameters
    ----------
    layers
        Distinct layers of all networks.
    weights
        ``(l)``: how often each runs, times the weight of its network, summed over networks.
    space
        What may vary.
    limits
        What it may take.
    objective
        One of `GOALS`.
    dataflow
        What the mappings follow on every machine, a name of `DATAFLOWS`; empty for any mapping.
    passed
        Pairs of a memory and a tensor that passes it, of each layer; empty where memories keep all that they can.
    spread
        Whether searches of a layer tell all mappings of which none is better in both cycles and picojoules, as fronts
        need; those of a product or of limited power do so anyway.
    """

    layers: tuple[Operator, ...]
    weights: Floats
    space: DesignSpace
    limits: tuple[Limit, ...]
    objective: str = "latency"
    dataflow: str = ""
    tiling: Tiling = "imperfect"
    spread: bool = False
    passed: tuple[tuple[tuple[str, str], ...], ...] = ()

    def __post_init__(self) -> None:
        if self.objective not in GOALS:
            raise InputError("objective", f"must be one of {', '.join(GOALS)}", self.objective)
        if not self.layers:
            raise InputError("networks", "must have layers of multiply-accumulates", "none")
        machine = self.space.accelerator
        for section, why in (("sparsity", "zeros are not made use of in designs"),
                             ("flexibility", "designs search all mappings of a machine")):
            if getattr(machine, section) is not None:
                raise InputError(f"{machine.name}.{section}", f"must not be there, as {why}", section,
                                 "Leave the section out")

    @classmethod
    def of(cls, networks: Sequence[tuple[Sequence[UniqueOperator], float]], space: DesignSpace,
           limits: tuple[Limit, ...], **others: Any) -> "DesignProblem":
        """Return the problem of networks, each with its weight; equal layers of several are one."""
        found: dict[object, tuple[Operator, float]] = {}
        for layers, weight in networks:
            for layer in layers:
                first, so_far = found.get(layer.operator.signature, (layer.operator, 0.0))
                found[layer.operator.signature] = first, so_far + layer.count * weight
        return cls(tuple(operator for operator, _ in found.values()),
                   np.array([weight for _, weight in found.values()]), space, limits, **others)

    @cached_property
    def identity(self) -> str:
        """A hash of all that it is."""
        return digest(replace(self, weights=self.weights.tolist()))

    @property
    def spreads(self) -> bool:
        """Whether searches tell mappings between the fewest cycles and the fewest picojoules."""
        return self.spread or self.objective.startswith("edp") or any(one.what == "power" for one in self.limits)

    @property
    def priced(self) -> bool:
        """Whether energy counts in the objective or the limits."""
        return not self.objective.startswith("latency") or any(one.what == "power" for one in self.limits)

    def bounds(self, hardware: HardwareBatch) -> list[BoundBatch]:
        """Return what no mapping of each layer can beat on each row; energy only where it counts."""
        return [hardware_bounds(layer, hardware, self.space.accelerator, perfect=self.tiling == "perfect",
                                energy=self.priced) for layer in self.layers]

    @cached_property
    def budget(self) -> DesignBudget:
        """The limits, on the machines of the space."""
        return DesignBudget(self.space, self.limits, self.smallest)

    @cached_property
    def widest(self) -> Accelerator:
        """A machine with both sides of every array that may have them."""
        return self.machine({key: max(one.value(min(1, len(one) - 1)), self.space.accelerator.numbers[key])
                             for key, one in self.space.ranges.items() if key[1] in ("x", "y")})

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """Of the mappings of each layer, with both sides of every array that may have them."""
        return tuple(Layout.of(operator, self.widest, keeps=self._keeps(layer, self.widest))
                     for layer, operator in enumerate(self.layers))

    def _keeps(self, layer: int, machine: Accelerator) -> dict[str, tuple[str, ...]]:
        """Return what memories keep of a layer, where that is less than they can."""
        return KeptSets(MapSpace(self.layers[layer], machine)).keeps(self.passed[layer]) if self.passed else {}

    @cached_property
    def models(self) -> tuple[DenseModel, ...]:
        """The model of each layer on machines of the space."""
        return tuple(DenseModel(operator, self.space.accelerator, layout)
                     for operator, layout in zip(self.layers, self.layouts, strict=True))

    def needed(self, batches: Sequence[MappingBatch]) -> dict[Number, Floats]:
        """Return ``(b)`` each: the least capacities, sides and instances that vary with which every layer fits.

        They are values of their ranges, the highest where more is needed. ``batches`` are ``b`` mappings of each layer.
        """
        machine = self.space.accelerator
        found: dict[Number, Floats] = {}
        for model, batch in zip(self.models, batches, strict=True):
            for key, row in model.needs(batch).numbers(machine).items():
                name, times = self.space.follow.get(key, (key, 1.0))
                if name in self.space.ranges:
                    found[name] = np.maximum(found.get(name, 0.0), row / times)
        return {key: np.asarray(one.value(one.first_places(found[key])), dtype=np.float64)
                for key, one in self.space.ranges.items() if key in found}

    @cached_property
    def ones(self) -> tuple[MappingBatch, ...]:
        """A mapping of each layer whose tiles are all a word."""
        return tuple(MappingBatch(layout, np.ones((*layout.shape, 1), dtype=np.int32),
                                  np.arange(layout.shape[1], dtype=np.int8)[None, :, None].repeat(layout.shape[0], 0))
                     for layout in self.layouts)

    @cached_property
    def smallest(self) -> dict[Number, float]:
        """The least of every number with which any machine runs all layers: a word of each tensor fits everywhere."""
        lowest = {key: one.low for key, one in self.space.ranges.items()}
        return lowest | {key: float(row[0]) for key, row in self.needed(self.ones).items()}

    def machine(self, chosen: Mapping[Number, float], name: str | None = None) -> Accelerator:
        """Return a machine of the space."""
        return with_numbers(self.space.accelerator, self.space.numbers(chosen), name)

    def map_space(self, layer: int, machine: Accelerator) -> MapSpace:
        """Return the mappings of a layer on a machine."""
        operator = self.layers[layer]
        ruled = self._ruled(operator, machine)
        keeps = self._keeps(layer, machine)
        return MapSpace(operator, machine, self.tiling, replace(ruled, keeps=keeps) if keeps else ruled)

    def _ruled(self, operator: Operator, machine: Accelerator) -> Constraints:
        """Return what the dataflow asks for on a machine, whose sides are told apart even where one has one place."""
        if not self.dataflow:
            return Constraints()
        narrow = {key: 2.0 for key in (*self.space.ranges, *self.space.follow)
                  if key[1] in ("x", "y", "instances") and machine.numbers[key] < 2}
        asked = dataflow_constraints(self.dataflow, operator, with_numbers(machine, self.space.numbers(narrow)))
        places = {machine.levels[slot.level].name + ("" if slot.axis == "T" else f".{slot.axis}")
                  for slot in Layout.of(operator, machine).slots}
        return replace(asked, loops={place: rule for place, rule in asked.loops.items() if place in places},
                       factors={place: rule for place, rule in asked.factors.items() if place in places})

    def total(self, latency: Floats, energy: Floats, area_um2: Any) -> Figures:
        """Return what all layers take: ``latency`` and ``energy`` are ``(l)`` or ``(l, b)``."""
        return Figures(np.tensordot(self.weights, latency, 1), np.tensordot(self.weights, energy, 1), area_um2)

    def value(self, figures: Figures) -> Any:
        """Return the objective."""
        return figures.of(self.objective, self.space.accelerator)

    def scores(self, figures: Figures) -> Any:
        """Return the objective; infinite where the power is over its limit."""
        return np.where(self.power(figures) <= self.budget.most("power"), self.value(figures), np.inf)

    def rows(self, chosen: Mapping[Number, Any]) -> HardwareBatch:
        """Return machines of the space as rows, of figures ``(b)`` each."""
        return HardwareBatch({key: np.asarray(column, dtype=np.float64)
                              for key, column in self.space.numbers(chosen).items()})

    def overheated(self, figures: Figures) -> Any:
        """Return by which shares the power is over its limit; 0 within."""
        return np.maximum(self.power(figures) / self.budget.most("power") - 1.0, 0.0)

    def power(self, figures: Figures) -> Any:
        """Return milliwatts, on average while the networks run."""
        return power_mw(self.space.accelerator, figures.latency_cycles, figures.energy_pj)

    def area(self, chosen: Mapping[Number, Any]) -> Any:
        """Return the area of machines of the space."""
        return self.budget.completed(chosen)[AREA]


@dataclass(frozen=True)
class LayerFront:
    """Mappings of one layer on one machine of which none is better than another in both cycles and picojoules.

    Parameters
    ----------
    latency, energy
        ``(f)``.
    steps, ranks
        ``(f, s, d)``, as of a `MappingBatch`.
    """

    latency: Floats
    energy: Floats
    steps: NDArray[np.int32]
    ranks: NDArray[np.int8]

    @classmethod
    def of(cls, batch: MappingBatch, latency: Any, energy: Any) -> "LayerFront":
        """Return the mappings of a batch with what they cost."""
        return cls(np.atleast_1d(latency), np.atleast_1d(energy), batch.steps.transpose(2, 0, 1),
                   batch.ranks.transpose(2, 0, 1))


def composed(problem: DesignProblem, fronts: Sequence[LayerFront],
             area_um2: float) -> tuple[NDArray[np.intp], Figures, float]:
    """Return which mapping of each layer makes the best network of all, what that takes, and the score.

    Of a sum alone (cycles, picojoules) each layer's own least is best. Else the best of `rated` is taken, so that the
    choice may miss the best of all combinations, but never names figures that it does not have.
    """
    sums = problem.objective.split("-")[0]
    alone = problem.budget.most("power") == np.inf and sums in ("latency", "energy")
    choice, figures = rated(problem, fronts, area_um2, [0.0 if sums == "energy" else np.inf] if alone else None)
    scores = np.broadcast_to(problem.scores(figures), choice.shape[1])
    best = int(scores.argmin() if np.isfinite(scores).any() else problem.power(figures).argmin())
    return choice[:, best], Figures(float(figures.latency_cycles[best]), float(figures.energy_pj[best]), area_um2), \
        float(scores[best])


def rated(problem: DesignProblem, fronts: Sequence[LayerFront], area_um2: float,
          rates: Sequence[float] | None = None) -> tuple[NDArray[np.intp], Figures]:
    """Return ``(l, r)``, which mapping of each layer is best at each rate, and what the networks then take.

    All layers weigh cycles against picojoules alike, by ``rates`` in picojoules a cycle: none, infinite, and between
    them all around that of the least figures, in steps of 4 %.
    """
    if rates is None:
        least = problem.total(np.array([front.latency.min() for front in fronts]),
                              np.array([front.energy.min() for front in fronts]), area_um2)
        middle = least.energy_pj / max(least.latency_cycles, 1e-9)
        rates = [0.0, *(middle * np.exp(np.arange(-200, 201) * 0.04)).tolist(), np.inf]
    known = np.array(rates)
    latency, energy = np.empty((len(fronts), len(known))), np.empty((len(fronts), len(known)))
    chosen = np.empty((len(fronts), len(known)), dtype=np.intp)
    for at, front in enumerate(fronts):
        costs = front.energy[:, None] + np.where(known == np.inf, 0.0, known) * front.latency[:, None]
        chosen[at] = np.where(known == np.inf, front.latency.argmin(), costs.argmin(axis=0))
        latency[at], energy[at] = front.latency[chosen[at]], front.energy[chosen[at]]
    return chosen, problem.total(latency, energy, area_um2)
