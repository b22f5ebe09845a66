"""Sparsity-aware search: mappings scored over several densities at once (Kao 2022, section 5.3.2).

The score is the weighted sum of the objective at every density. The weights are by default those of the paper: one over
the density, or over its square where two tensors are sparse together, so that densities count more alike although the
cost falls with them. Or it is the geometric mean, of which a share more or less at one density is worth the same at
every other: what maximises it maximises the mean share of the best at each density, whatever these are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.cost import Cost, CostBatch, DenseModel, HardwareBatch, SparseModel, cost_model
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.workload import EVEN, Operator, read_density, with_densities

GEOMEAN = "geomean:"
"""What stands before densities that are scored by their geometric mean."""
PAPER = (1.0, 0.8, 0.5, 0.2, 0.1)
"""Densities of section 5.3.2."""


@dataclass(frozen=True)
class Sweep:
    """Densities that a mapping is scored over."""

    tensors: tuple[str, ...]
    """Names or roles of the tensors that have them, all the same one at a time."""
    points: tuple[tuple[float, float], ...]
    """``(density, weight)``."""
    even: bool = False
    """Whether the words that are not zero are spread evenly (see `Tensor`)."""
    geometric: bool = False
    """Whether the score is the geometric mean, weights being exponents."""

    @classmethod
    def parse(cls, given: "Densities") -> "Sweep":
        """Read ``1,0.8,0.5,0.2,0.1``, ``weights=1,0.5`` or ``inputs+weights=1:2,0.5:1`` (weights after colons).

        ``even:`` before all that spreads the words that are not zero evenly, ``geomean:`` takes the geometric mean.
        Numbers, or a mapping of numbers to weights, are those of the inputs; without weights they have the paper's, or
        all the same in a geometric mean.

        Raises an `InputError` if there is none, or a density or weight is out of range.
        """
        if isinstance(given, Sweep):
            return given
        marks: set[str] = set()
        if isinstance(given, str):
            marks, given = _marks(given)
            names, sign, text = given.rpartition("=")
            tensors = tuple(name.strip() for name in names.split("+")) if sign else ("inputs",)
            pairs = [tuple(part.split(":", 1)) for part in text.split(",")]
            points: list[tuple[object, object]] = [
                (pair[0].strip(), pair[1] if len(pair) > 1 else None) for pair in pairs]
        else:
            if not isinstance(given, Iterable):
                raise InputError("densities", "must be several densities, or text", given, "For example 1,0.5,0.1")
            tensors = ("inputs",)
            points = [*given.items()] if isinstance(given, Mapping) else [(one, None) for one in given]
        if not all(tensors) or not points:
            raise InputError("densities", "must be one or more densities", str(given), "For example 1,0.5,0.1")
        power = 0 if GEOMEAN in marks else len(tensors)
        found = [_point(tensors, *point, power) for point in points]
        return cls(tensors, tuple(found), EVEN in marks, GEOMEAN in marks)

    def at(self, operator: Operator, density: float) -> Operator:
        """Return the operator with this density of the tensors; names unknown or of one tensor are an `InputError`."""
        known = {name.lower() for tensor in operator.tensors for name in (tensor.name, tensor.role)}
        for name in self.tensors:
            if name.lower() not in known:
                raise InputError("densities", f"must name tensors or roles of {operator.name}", name,
                                 f"Known: {', '.join(sorted(known))}")
        for tensor in operator.tensors:
            if len([name for name in self.tensors if name.lower() in (tensor.name.lower(), tensor.role)]) > 1:
                raise InputError("densities", "must name every tensor once", "+".join(self.tensors),
                                 f"Leave one of the names of {tensor.name} out")
        given = f"{EVEN}{density!r}" if self.even else density
        return with_densities(operator, dict.fromkeys(self.tensors, given))

    @property
    def largest(self) -> float:
        """The largest density."""
        return max(density for density, _ in self.points)

    def widest(self, space: MapSpace) -> MapSpace:
        """Return the space of the largest density, in which tiles are largest."""
        return replace(space, operator=self.at(space.operator, self.largest))

    def __str__(self) -> str:
        def point(density: float, weight: float) -> str:
            usual = abs(weight * density ** (0 if self.geometric else len(self.tensors)) - 1) < 1e-9
            return _exact(density) if usual else f"{_exact(density)}:{_exact(weight)}"

        marks = (GEOMEAN if self.geometric else "") + (EVEN if self.even else "")
        return f"{marks}{'+'.join(self.tensors)}={','.join(point(*each) for each in self.points)}"


def _exact(number: float) -> str:
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


Densities: TypeAlias = str | Iterable[float] | Mapping[float, float] | Sweep


def _marks(text: str) -> tuple[set[str], str]:
    """Return the words that stand before densities, and what is left."""
    found, left = set(), text.strip()
    while mark := next((mark for mark in (EVEN, GEOMEAN) if left.startswith(mark) and mark not in found), ""):
        found.add(mark)
        left = left.removeprefix(mark).strip()
    return found, left


def _point(tensors: tuple[str, ...], density: object, weight: object, power: int) -> tuple[float, float]:
    read = read_density("+".join(tensors), density).density  # type: ignore[arg-type]
    if weight is None:
        return read, read ** -power
    try:
        number = float(weight)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise InputError("densities", "must have positive weights", weight, "For example 1:1,0.5:2")
    return read, number


@dataclass(frozen=True)
class SweptCosts:
    """Costs of a batch at every density, with weights; latency and energy are those at the largest density."""

    parts: tuple[tuple[float, CostBatch], ...]
    geometric: bool = False

    def together(self, values: Sequence[float | NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return ``(b)``: the weighted sum of values at every density, or their geometric mean."""
        return together([weight for weight, _ in self.parts], values, geometric=self.geometric)

    @property
    def first(self) -> CostBatch:
        """The costs at the largest density."""
        return self.parts[0][1]

    @property
    def latency_cycles(self) -> NDArray[np.float64]:
        """``(b)``."""
        return self.first.latency_cycles

    @property
    def energy_pj(self) -> NDArray[np.float64]:
        """``(b)``."""
        return self.first.energy_pj

    @property
    def area_um2(self) -> float | NDArray[np.float64]:
        """Of the machine, or ``(b)``."""
        return self.first.area_um2

    @property
    def traffic_bytes(self) -> NDArray[np.float64]:
        """``(b)``."""
        return self.first.traffic_bytes

    @cached_property
    def excess(self) -> NDArray[np.float64]:
        """``(b)``: the largest at any density."""
        return np.asarray(np.max([costs.excess for _, costs in self.parts], axis=0))

    @cached_property
    def legal(self) -> NDArray[np.bool_]:
        """``(b)``: at every density."""
        return np.asarray(self.excess == 0)


def together(weights: Sequence[float], values: Sequence[float | NDArray[np.float64]], *,
             geometric: bool) -> NDArray[np.float64]:
    """Return ``(b)``: the weighted sum of values at every density, or their geometric mean."""
    if geometric:
        logarithms = sum(weight * np.log(value) for weight, value in zip(weights, values, strict=True))
        return np.asarray(np.exp(logarithms / sum(weights)))
    return np.asarray(sum(weight * value for weight, value in zip(weights, values, strict=True)))


class SweptModel:
    """Scores mappings over the densities of a sweep; ``cost`` tells that at the largest."""

    def __init__(self, space: MapSpace, sweep: Sweep) -> None:
        points = sorted(sweep.points, reverse=True)
        self.geometric = sweep.geometric
        self.models: list[tuple[float, DenseModel | SparseModel]] = [
            (weight, cost_model(sweep.at(space.operator, density), space.accelerator, space.layout))
            for density, weight in points]

    def score(self, batch: MappingBatch, hardware: HardwareBatch | None = None, threads: int = 1) -> SweptCosts:
        """Score all mappings of a batch at every density."""
        return SweptCosts(tuple((weight, model.score(batch, hardware, threads)) for weight, model in self.models),
                          self.geometric)

    def cost(self, mapping: Nest) -> Cost:
        """Return everything about one mapping at the largest density."""
        return self.models[0][1].cost(mapping)
