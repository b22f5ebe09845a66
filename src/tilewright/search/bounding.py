"""What no mapping of a space can score below, and how far from it a search still is."""

from dataclasses import dataclass
from functools import cached_property

from tilewright.cost import Bounds, space_bounds
from tilewright.mapping import MapSpace
from tilewright.search.objective import METRICS, Objective, Scorer

ROUNDING = 1e-9


@dataclass(frozen=True)
class Bounding:
    """The bound of a search in the union of ``spaces``, worked out when first asked for (some milliseconds each)."""

    spaces: tuple[MapSpace, ...]
    objective: Objective

    @cached_property
    def bounds(self) -> tuple[Bounds, ...]:
        """Those of each space."""
        return tuple(map(space_bounds, self.spaces))

    @cached_property
    def score(self) -> float | None:
        """Bound on the objective; None where more latency or energy can lower it (power)."""
        found = [score_bound(space, self.objective, bounds)
                 for space, bounds in zip(self.spaces, self.bounds, strict=True)]
        known = [score for score in found if score is not None]
        return min(known) if len(known) == len(found) else None


def score_bound(space: MapSpace, objective: Objective, bounds: Bounds) -> float | None:
    """Return what no mapping's score can beat.

    None where more latency or energy can lower the objective (power), and where it is over several densities.
    """
    metrics = [METRICS[term.metric] for term in objective.terms]
    if objective.densities is not None or any(min(metric.latency, metric.energy) < 0 for metric in metrics):
        return None
    accelerator = space.accelerator
    scorer = Scorer(objective, space.operator, accelerator)
    value = scorer.values(float(bounds.latency_cycles), bounds.energy_pj, accelerator.area_um2)
    assert isinstance(value, float)
    return value


def relative_gap(score: float | None, bound: float | None) -> float | None:
    """Return by how much of the bound a score is above it; None where either is unknown.

    Below the bound by more than rounding it is negative, so that a wrong bound shows.
    """
    if score is None or not bound or score == float("inf"):
        return None
    gap = score / bound - 1.0
    return gap if gap < -ROUNDING else max(0.0, gap)
