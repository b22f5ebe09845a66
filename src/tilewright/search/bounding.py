"""What no mapping of a space can score below, and how far from it a search still is."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import inf
from typing import Any

from tilewright.cost import KeptBounds, LowerBounds, least_power, space_bounds
from tilewright.mapping import KeptSets, MapSpace
from tilewright.search.objective import Objective, Scorer
from tilewright.search.sweep import together

ROUNDING = 1e-9


@dataclass(frozen=True)
class Bounding:
    """The bound of a search in the union of ``spaces``, worked out when first asked for (some milliseconds each)."""

    spaces: tuple[MapSpace, ...]
    objective: Objective
    bounded = False
    """None of the spaces is told apart by its bound (`scores`)."""

    @property
    def scores(self) -> dict[int, float]:
        """Nothing known of each space, by its number."""
        return dict.fromkeys(range(len(self.spaces)), -inf)

    def limit(self, number: int) -> float:
        """Return as much of one space."""
        return self.scores[number]

    @cached_property
    def _seen(self) -> tuple[tuple[Objective, MapSpace], ...]:
        """The objective and each space as they can be bound."""
        return tuple(self.objective.as_energy(space) for space in self.spaces)

    @cached_property
    def bounds(self) -> tuple[LowerBounds, ...]:
        """Those of each space."""
        return tuple(space_bounds(space) for _, space in self._seen)

    @cached_property
    def score(self) -> float | None:
        """Bound on the objective; None where traffic counts beside energy, or power over several densities."""
        found = [score_bound(space, objective, bounds)
                 for (objective, space), bounds in zip(self._seen, self.bounds, strict=True)]
        known = [score for score in found if score is not None]
        return min(known) if len(known) == len(found) else None


@dataclass(frozen=True)
class KeptBounding:
    """The bound of a search in the union of ``kept``, and the order in which members promise most."""

    kept: KeptSets
    objective: Objective
    sure: int = 3
    """How many members are known for sure to promise most."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what is asked and told, which results of other processes bring along, without what it is made of."""
        return {name: getattr(self, name) for name in ("kept", "objective", "sure", "bounds", "score")}

    @cached_property
    def _seen(self) -> tuple[Objective, MapSpace]:
        """The objective and the space as they can be bound."""
        return self.objective.as_energy(self.kept.space)

    @cached_property
    def bounds(self) -> KeptBounds:
        """Bounds of the members."""
        return KeptBounds(KeptSets(self._seen[1]))

    @property
    def bounded(self) -> bool:
        """Whether bounds of members bound the objective."""
        return self._seen[0].grows and self.kept.space.accelerator.sparsity is None

    @cached_property
    def score(self) -> float | None:
        """Bound on the objective; None where traffic counts beside energy, or power over several densities."""
        objective, space = self._seen
        return self.bounds.least(self._scored) if objective.grows else score_bound(
            space, objective, self.bounds.union, self.kept.passed(len(self.kept) - 1))

    @cached_property
    def scores(self) -> dict[int, float]:
        """Bounds by the members' numbers, the least first; of EDP where the objective cannot be bound."""
        return self.bounds.scores(self._scored, self.sure)

    def limit(self, number: int) -> float:
        """Return the bound of one member, whether it is among `scores` or, of very many, not."""
        known = self.scores.get(number)
        return self.bounds.score(number, self._scored) if known is None else known

    def leading(self, most: int) -> list[int]:
        """Return the numbers of the members to search, at most so many: of the least bounds, and where all is kept."""
        found = list(islice(self.scores, most))
        return found if 0 in found else [*found[:most - 1], 0]

    def _scored(self, cycles: Any, energy_pj: Any) -> Any:
        """Return the score of cycles and energy, elementwise; EDP where the objective cannot be bound."""
        return self._scorer.least(cycles, energy_pj) if self._seen[0].grows else cycles * energy_pj

    @cached_property
    def _scorer(self) -> Scorer:
        objective, space = self._seen
        return Scorer(objective, space.operator, space.accelerator)


def score_bound(space: MapSpace, objective: Objective, bounds: LowerBounds,
                bypass: Collection[tuple[str, str]] = ()) -> float | None:
    """Return what no mapping's score can beat, whichever tensors pass memories by ``bypass``.

    None where traffic counts beside energy, or power over several densities. Over several densities it is made of what
    bounds each of them, as scores are.
    """
    scorer, densities = Scorer(objective, space.operator, space.accelerator), objective.densities
    grows = replace(objective, densities=None).grows
    if not grows and (objective.traffic or densities is not None):
        return None
    if densities is None:
        power = 0.0 if grows else max([least_power(space, bypass), *(
            bounds.energy_pj / limit.most for limit in objective.constraints if limit.metric == "latency")])
        return float(scorer.least(float(bounds.latency_cycles), bounds.energy_pj, power))
    scores, area = [], space.accelerator.area_um2
    for density, _ in densities.points:
        least = KeptBounds(KeptSets(replace(space, operator=densities.at(space.operator, density)))).union
        scores.append(scorer.values(float(least.latency_cycles), least.energy_pj, area))
    return float(together([weight for _, weight in densities.points], scores, geometric=densities.geometric))


def relative_gap(score: float | None, bound: float | None) -> float | None:
    """Return by how much of the bound a score is above it; None where either is unknown.

    Below the bound by more than rounding it is negative, so that a wrong bound shows.
    """
    if score is None or not bound or score == inf:
        return None
    gap = score / bound - 1.0
    return gap if gap < -ROUNDING else max(0.0, gap)
