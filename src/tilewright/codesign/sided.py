"""Machines side by side: what a network takes on each, how far that is from the best, and the front."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from tilewright.base import InputError
from tilewright.codesign.problem import DesignProblem
from tilewright.codesign.screening import value_bound
from tilewright.cost import HardwareBatch, KeptBounds, layer_bounds
from tilewright.hardware import Accelerator
from tilewright.mapping import KeptSets
from tilewright.search import METRICS, first_of_front, read_front


@dataclass(frozen=True)
class SidedMachine:
    """A machine among others, and what a network takes on it.

    Parameters
    ----------
    values
        What it is told apart by, in words: numbers that vary, or its name.
    latency_cycles, energy_pj, score
        Of the whole network; infinite where a layer has no mapping.
    bound
        What the objective is at least on it, however layers are mapped; None where that was not worked out.
    unmapped
        Layers that have no mapping.
    """

    values: Mapping[str, str]
    machine: Accelerator
    latency_cycles: float
    energy_pj: float
    score: float
    bound: float | None = None
    unmapped: tuple[str, ...] = ()

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
    """Machines side by side, in the order of their numbers.

    Parameters
    ----------
    network
        Its name.
    varied
        What machines are told apart by.
    front_metrics
        Those of the front.
    samples
        Mappings of a layer that were scored in all.
    command
        What repeats it.
    """

    network: str
    objective: str
    varied: tuple[str, ...]
    machines: tuple[SidedMachine, ...]
    front_metrics: tuple[str, ...]
    samples: int
    command: str
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


def machine_bound(problem: DesignProblem, machine: Accelerator) -> float:
    """Return what the objective is at least on a machine, however layers are mapped and whatever memories keep."""
    latency, energy, edp = np.zeros((3, len(problem.layers) + 1, 1))
    latency[-1], energy[-1] = problem.beside(HardwareBatch(base=machine))
    edp[-1] = latency[-1] * energy[-1]
    for layer in range(len(problem.layers)):
        space = problem.map_space(layer, machine)
        kept, free = KeptBounds(KeptSets(space)), layer_bounds(
            space.operator, machine, dict(space.constraints.keeps), bypass=True, perfect=space.tiling == "perfect")
        latency[layer], energy[layer] = free.latency_cycles, free.energy_pj
        if problem.objective.startswith("energy"):
            energy[layer] = max(free.energy_pj, kept.least(lambda _, picojoules: picojoules))
        elif problem.objective.startswith("edp"):
            edp[layer] = max(free.latency_cycles * free.energy_pj, kept.least(lambda cycles, pj: cycles * pj))
    problem = replace(problem, weights=np.append(problem.weights, 1.0), vector=())
    area = np.array([machine.area_um2])
    figures = problem.total(latency, energy, area, HardwareBatch(base=machine))
    return float(value_bound(problem, figures, edp, area)[0])
