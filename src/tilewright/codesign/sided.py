"""Machines side by side: what a network takes on each, how far that is from the best, and the front."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from tilewright.base import InputError
from tilewright.codesign.limits import Floats
from tilewright.codesign.problem import DesignProblem
from tilewright.codesign.screening import value_bound
from tilewright.cost import kept_least
from tilewright.hardware import Accelerator, Number
from tilewright.search import METRICS, first_of_front, read_front


@dataclass(frozen=True)
class SidedMachine:
    """A machine among others, and what a network takes on it."""

    values: Mapping[str, str]
    """What it is told apart by, in words: numbers that vary, or its name."""
    machine: Accelerator
    latency_cycles: float
    energy_pj: float
    score: float
    """``latency_cycles``, ``energy_pj`` and ``score``: of the whole network; infinite where a layer has no mapping."""
    bound: float | None = None
    """What the objective is at least on it, however layers are mapped; None where that was not worked out."""
    unmapped: tuple[str, ...] = ()
    """Layers that have no mapping."""

    @property
    def gap(self) -> float | None:
        """By which share the score can be above the best that there is on this machine, as far as that is known."""
        return self.score / self.bound - 1.0 if self.bound and np.isfinite(self.score) else None

    def figure(self, metric: str) -> float:
        """Return a metric of the network on the machine."""
        return float(METRICS[metric].of(self.latency_cycles, self.energy_pj, self.machine.area_um2,
                                        self.machine.frequency_mhz))


@dataclass(frozen=True, repr=False)
class SidedMachines:
    """Machines side by side, in the order of their numbers."""

    network: str
    """Its name."""
    objective: str
    varied: tuple[str, ...]
    """What machines are told apart by."""
    machines: tuple[SidedMachine, ...]
    front_metrics: tuple[str, ...]
    """Metrics of the front."""
    samples: int
    """Mappings of a layer that were scored in all."""
    command: str
    """What repeats it."""
    interrupted: bool = False

    @cached_property
    def best(self) -> SidedMachine:
        """The machine with the least objective; an `InputError` where no machine runs all layers."""
        best = min(self.machines, key=lambda one: one.score, default=None)
        if best is None or best.score == inf:
            raise InputError("sweep", "must have a machine on which every layer has a mapping", "none",
                             "Enlarge its memories, or give more samples")
        return best

    def front(self, metrics: str | Sequence[str] | None = None) -> tuple[SidedMachine, ...]:
        """Return the machines that no other beats in all of some metrics, by rising first one."""
        names = read_front(metrics or self.front_metrics)
        points = [one for one in self.machines if one.score < inf]
        if not points:
            return ()
        values = np.array([[one.figure(name) for name in names] for one in points])
        return tuple(points[row] for row in first_of_front(values))


def machine_bounds(problem: DesignProblem, chosen: Mapping[Number, Floats]) -> Floats:
    """Return (m) what the objective is at least on machines, however layers are mapped and whatever memories keep."""
    hardware = problem.rows(chosen)
    found = problem.bounds(hardware)
    latency, energy, edp = found.latency_cycles, found.energy_pj, found.edp
    for layer, kept in enumerate(problem.kept):
        if problem.objective.startswith("energy"):
            energy[layer] = np.maximum(energy[layer], kept_least(kept, hardware, lambda _, picojoules: picojoules))
        elif problem.objective.startswith("edp"):
            edp[layer] = np.maximum(edp[layer], kept_least(kept, hardware, lambda cycles, pj: cycles * pj))
    # Vector work is a layer of its own: what is beside all layers counts in both sums.
    beside = [np.broadcast_to(one, len(hardware)) for one in problem.beside(hardware)]
    latency, energy, edp = (np.vstack([rows, last]) for rows, last in zip(
        (latency, energy, edp), (*beside, beside[0] * beside[1]), strict=True))
    problem = replace(problem, weights=np.append(problem.weights, 1.0), vector=())
    area = np.asarray(problem.area(chosen), dtype=np.float64)
    return value_bound(problem, problem.total(latency, energy, area, hardware), edp, area)
