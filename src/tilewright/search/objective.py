"""What a search minimises: metrics, weighted sums of them, and limits on them."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, unknown_name
from tilewright.hardware import Accelerator, AccessEnergy, Memory
from tilewright.mapping import MapSpace, lane_use
from tilewright.search.sweep import Densities, Sweep, SweptCosts
from tilewright.workload import Operator


class Costs(Protocol):
    """What is needed of a scored batch (``b`` mappings)."""

    @property
    def latency_cycles(self) -> NDArray[np.float64]:
        """``(b)``."""

    @property
    def energy_pj(self) -> NDArray[np.float64]:
        """``(b)``."""

    @property
    def area_um2(self) -> float | NDArray[np.float64]:
        """One figure, or ``(b)``."""

    @property
    def traffic_bytes(self) -> NDArray[np.float64]:
        """``(b)``."""

    @property
    def legal(self) -> NDArray[np.bool_]:
        """``(b)``."""

    @property
    def excess(self) -> NDArray[np.float64]:
        """``(b)``: how far over the limits of memories and arrays, 0 where legal."""


@dataclass(frozen=True)
class Metric:
    """A product of powers of latency (cycles), energy (pJ) and area (um2), times the clock (MHz) where ``clock``.

    Or, where ``traffic``, the bytes that are read from and written to the outermost memory.
    """

    latency: int
    energy: int
    area: int
    unit: str
    clock: bool = False
    traffic: bool = False

    def of(self, latency_cycles: "Values", energy_pj: "Values", area_um2: "Values", frequency_mhz: float,
           traffic_bytes: "Values | None" = None) -> "Values":
        """Return the metric, elementwise; of unknown traffic it is an `InputError`."""
        if self.traffic:
            if traffic_bytes is None:
                raise InputError("metric", "must not be traffic beside energy here, where no words are counted",
                                 "traffic", "Leave one of the two out, or take another mapper, such as auto")
            return traffic_bytes
        value: Values = 1e-3 * frequency_mhz if self.clock else 1.0
        for base, power in ((latency_cycles, self.latency), (energy_pj, self.energy), (area_um2, self.area)):
            if power:
                value = value * base if power > 0 else value / base
        return value

    @property
    def grows(self) -> bool:
        """Whether it follows from latency and energy (and the area), and more of them cannot lower it."""
        return min(self.latency, self.energy) >= 0 and not self.traffic


Values = float | NDArray[np.float64]

METRICS: dict[str, Metric] = {
    "latency": Metric(1, 0, 0, "cycles"),
    "energy": Metric(0, 1, 0, "pJ"),
    "edp": Metric(1, 1, 0, "pJ x cycles"),
    # pJ / cycles x MHz is 1e-6 W.
    "power": Metric(-1, 1, 0, "mW", clock=True),
    "area": Metric(0, 0, 1, "um2"),
    "traffic": Metric(0, 0, 0, "bytes", traffic=True),
    "latency-area": Metric(1, 0, 1, "cycles x um2"),
    "energy-area": Metric(0, 1, 1, "pJ x um2"),
    "edp-area": Metric(1, 1, 1, "pJ x cycles x um2"),
}


@dataclass(frozen=True)
class Term:
    """One metric and its weight in a sum."""

    weight: float
    metric: str


@dataclass(frozen=True)
class Constraint:
    """A metric that must not exceed ``most``, in the metric's unit."""

    metric: str
    most: float

    @classmethod
    def parse(cls, text: str) -> "Constraint":
        """Read ``latency<=1e6``; raise `InputError` where that is not possible."""
        found = re.fullmatch(r"\s*([\w-]+)\s*<=?\s*([-+.\deE]+)\s*", text, re.ASCII)
        number = _number(found.group(2)) if found else None
        if found is None or number is None or number <= 0:
            raise InputError("constraint", "must be METRIC<=NUMBER", text, "For example latency<=1e6")
        return cls(_known(found.group(1)), number)

    def __str__(self) -> str:
        short = f"{self.most:g}"
        return f"{self.metric}<={short if float(short) == self.most else repr(self.most)}"


@dataclass(frozen=True)
class Objective:
    """A metric, or a weighted sum of metrics, and what limits it.

    A single metric of weight 1 is minimised in its own unit. In a sum every metric is first divided by its floor for
    the operator and machine (see `floors`), so that weights compare multiples of the least conceivable, not units.
    With ``densities`` all that is summed over them, by their weights.
    """

    terms: tuple[Term, ...]
    constraints: tuple[Constraint, ...] = ()
    densities: Sweep | None = None

    @classmethod
    def parse(cls, text: "str | Objective", constraints: Iterable[str | Constraint] = ()) -> "Objective":
        """Read ``edp`` or ``0.5*latency + 0.5*energy``, and constraints such as ``latency<=1e6``.

        Raises an `InputError` if a metric is unknown, a weight is no positive number, or a constraint cannot be read.
        """
        limits = tuple(c if isinstance(c, Constraint) else Constraint.parse(c) for c in constraints)
        if isinstance(text, Objective):
            return replace(text, constraints=text.constraints + limits)
        return cls(tuple(_term(part) for part in text.split("+")), limits)

    def over(self, densities: Densities | None) -> "Objective":
        """Return the objective summed over these densities (see `Sweep.parse`), or as it is where there are none.

        Raises an `InputError` if a density or weight is out of range.
        """
        if densities is None:
            return self
        return replace(self, densities=Sweep.parse(densities))

    def widest(self, space: MapSpace) -> MapSpace:
        """Return the space in which mappings are legal at all densities of the objective."""
        return space if self.densities is None else self.densities.widest(space)

    @property
    def normalised(self) -> bool:
        """Whether metrics are divided by their floors."""
        return len(self.terms) > 1 or self.terms[0].weight != 1.0

    @property
    def unit(self) -> str:
        """Unit of the score."""
        return "multiples of the floors" if self.normalised else METRICS[self.terms[0].metric].unit

    @property
    def traffic(self) -> bool:
        """Whether traffic counts."""
        return any(metric.traffic for metric in self._metrics)

    @property
    def grows(self) -> bool:
        """Whether it follows from latency and energy, of one density, and more of them cannot lower it."""
        return self.densities is None and all(METRICS[term.metric].grows for term in self.terms)

    @property
    def _metrics(self) -> list[Metric]:
        return [METRICS[name] for name in (*(term.metric for term in self.terms),
                                           *(limit.metric for limit in self.constraints))]

    def as_energy(self, space: MapSpace) -> "tuple[Objective, MapSpace]":
        """Return the objective, and the space on a machine on which traffic is energy: what can be bound and estimated.

        As they are where no traffic counts, or energy does too. Spaces and layouts have the same mappings.
        """
        if not self.traffic or any(metric.energy for metric in self._metrics):
            return self, space
        named = {name: "energy" if metric.traffic else name for name, metric in METRICS.items()}
        return replace(
            self, terms=tuple(replace(one, metric=named[one.metric]) for one in self.terms),
            constraints=tuple(replace(one, metric=named[one.metric]) for one in self.constraints),
        ), replace(space, accelerator=priced_by_bytes(space.accelerator))

    def __str__(self) -> str:
        over = "" if self.densities is None else f" over {self.densities}"
        if not self.normalised:
            return self.terms[0].metric + over
        return " + ".join(f"{term.weight:g}*{term.metric}" for term in self.terms) + over


def _known(metric: str) -> str:
    if metric not in METRICS:
        raise unknown_name("metric", metric, list(METRICS))
    return metric


def _number(text: str) -> float | None:
    try:
        return float(text) if text.isascii() and math.isfinite(float(text)) else None
    except ValueError:
        return None


def _term(text: str) -> Term:
    weight_text, _, name = text.rpartition("*")
    weight = _number(weight_text) if weight_text else 1.0
    if weight is None or not 0 < weight < np.inf:
        raise InputError("objective", "must give each metric a positive weight", text.strip(),
                         "For example 0.5*latency+0.5*energy")
    return Term(weight, _known(name.strip().lower()))


def floors(operator: Operator, accelerator: Accelerator) -> tuple[float, float]:
    """Return cycles and picojoules that no mapping can beat, as the scale of weighted sums.

    Cycles: multiply-accumulates over compute units. Energy: all multiply-accumulates, and every word of every tensor
    once at the outermost memory. (Tighter bounds are the business of `tilewright.cost`.)
    """
    lanes = lane_use(operator, accelerator)
    cycles = max(1.0, operator.macs * float(lanes.cycles) / accelerator.compute_instances)
    outermost = accelerator.memories[0]
    words = sum(tensor.words(operator.sizes) * min(outermost.energy.read_pj, outermost.energy.update_pj)
                for tensor in operator.tensors)
    return cycles, max(operator.macs * accelerator.compute.energy_pj_per_mac * lanes.energy + words, 1e-9)


@lru_cache(maxsize=64)
def priced_by_bytes(accelerator: Accelerator) -> Accelerator:
    """Return the machine that spends a picojoule on each byte at its outermost memory, and nothing else."""
    free = AccessEnergy(0.0, 0.0, 0.0, 0.0)
    levels = [replace(level, energy=free, leakage_mw=0.0) if isinstance(level, Memory)
              else replace(level, network_energy_pj_per_word=0.0) for level in accelerator.levels]
    first = accelerator.memories[0]
    byte = first.word_bits / 8
    levels[0] = replace(first, energy=AccessEnergy(byte, 0.0, byte, 0.0), leakage_mw=0.0, block_words=1)
    return replace(accelerator, levels=tuple(levels), compute=replace(
        accelerator.compute, energy_pj_per_mac=0.0, leakage_mw=0.0))


# Scores at or above are of mappings that break a constraint, or are illegal; both still rank by how badly.
BREAKS_CONSTRAINT = 1e150
WITHIN = 1 - 1e-9
"""Takes off what rounding may have added to a bound that is held against a limit."""
ILLEGAL = 1e200


def _broken(over: Values, scores: Values) -> NDArray[np.float64]:
    """Return scores, those of what is ``over`` its limits by a share as such."""
    return np.where(over > 0.0, BREAKS_CONSTRAINT * (1.0 + np.minimum(over, 1e40)), scores)


@dataclass(frozen=True)
class Scorer:
    """An objective for one operator on one machine: turns costs into scores, the lower the better.

    Every legal mapping that meets the constraints scores below every one that breaks some (`BREAKS_CONSTRAINT` and up,
    by the relative excess), and those below the illegal ones (`ILLEGAL` and up, by their ``excess``).
    """

    objective: Objective
    operator: Operator
    accelerator: Accelerator

    @cached_property
    def weights(self) -> tuple[tuple[float, Metric], ...]:
        """The factor and the metric of each term."""
        floor = (*floors(self.operator, self.accelerator), self.accelerator.area_um2)
        least = floors(self.operator, priced_by_bytes(self.accelerator))[1]
        found = []
        for term in self.objective.terms:
            metric, weight = METRICS[term.metric], term.weight
            if metric.area and self.accelerator.area_um2 <= 0:
                raise InputError(f"{self.accelerator.name}.area_um2", "must be known to minimise area",
                                 self.accelerator.area_um2, "Give area_um2 or a technology with areas")
            scale = metric.of(*floor, self.accelerator.frequency_mhz, least) if self.objective.normalised else 1.0
            found.append((weight / float(scale), metric))
        return tuple(found)

    def values(self, latency_cycles: Values, energy_pj: Values, area_um2: Values,
               traffic_bytes: Values | None = None) -> Values:
        """Return the objective alone, elementwise."""
        given = latency_cycles, energy_pj, area_um2, self.accelerator.frequency_mhz, traffic_bytes
        parts = [weight * metric.of(*given) for weight, metric in self.weights]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def scores(self, costs: Costs) -> NDArray[np.float64]:
        """Return ``(b)`` scores, with penalties."""
        legal = costs.legal
        parts = costs.parts if isinstance(costs, SweptCosts) else ((1.0, costs),)
        given = [(part.latency_cycles, part.energy_pj, part.area_um2, part.traffic_bytes if self.objective.traffic
                  else None) for _, part in parts]
        values = [self.values(*figures) for figures in given]
        scores = np.full(len(legal), values[0]) if not isinstance(values[0], np.ndarray) else values[0]
        if isinstance(costs, SweptCosts):
            scores = costs.together(values)
        if self.objective.constraints:
            scores = _broken(sum((self.over(*figures) for figures in given), start=np.zeros(len(legal))), scores)
        if legal.all():
            return scores
        return np.where(legal, scores, ILLEGAL * (1.0 + np.minimum(costs.excess, 1e90)))

    @cached_property
    def limits(self) -> tuple[tuple[float, Metric], ...]:
        """What is at most 1 (a factor and the metric), of those constraints that more latency or energy breaks."""
        return tuple((1 / limit.most, metric) for limit in self.objective.constraints
                     if (metric := METRICS[limit.metric]).grows)

    def least(self, latency_cycles: Values, energy_pj: Values, pj_per_cycle: float = 0.0) -> Values:
        """Return, elementwise, what no mapping scores below that takes so many cycles and picojoules, or more.

        And no fewer picojoules in a cycle, which counts where more cycles lower the objective.
        """
        given = latency_cycles, energy_pj, self.accelerator.area_um2
        over = sum((np.maximum(factor * metric.of(*given, self.accelerator.frequency_mhz) * WITHIN - 1.0, 0.0)
                    for factor, metric in self.limits), start=0.0 * latency_cycles)
        values = sum((weight * metric.of(*(given if metric.grows else (1.0, pj_per_cycle, given[2])),
                                         self.accelerator.frequency_mhz) for weight, metric in self.weights),
                     start=0.0 * latency_cycles)
        return _broken(over, values)

    def over(self, latency_cycles: Values, energy_pj: Values, area_um2: Values,
             traffic_bytes: Values | None = None) -> Values:
        """Return by which shares limits are exceeded, summed, elementwise."""
        metrics = (latency_cycles, energy_pj, area_um2, self.accelerator.frequency_mhz, traffic_bytes)
        parts = [np.maximum(METRICS[c.metric].of(*metrics) / c.most - 1.0, 0.0) for c in self.objective.constraints]
        return sum(parts, start=0.0)
