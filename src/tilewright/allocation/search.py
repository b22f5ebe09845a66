"""One search for a plan: the best one with addresses so far, and what none is below."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.allocation.addresses import addressed
from tilewright.allocation.heuristics import naive
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import Prices, Shares, Stay, transfers_of
from tilewright.base import Registry

FOR_PARTS = ("compulsory", "roles", "capacity", "flow")
"""Bounds that count tensors as if they could leave in part."""
AllocationSolver = Callable[["PlanSearch"], None]
"""Offers plans to a search, and raises its bound."""


@dataclass
class PlanSearch:
    """Where a search stands."""

    problem: ResidencyProblem
    prices: Prices
    seconds: float = 60.0
    """For all of it."""
    stopped: Callable[[], bool] = lambda: False
    """Says whether it is to end early."""
    score: int | None = None
    stays: tuple[Stay, ...] = ()
    """Those of the best plan, with their addresses."""
    bounds: dict[str, int] = field(default_factory=dict)
    """What no plan scores below, by how it was found."""
    trace: list[tuple[float, int, str]] = field(default_factory=list)
    """Seconds, score and by whom, of every plan that was better than those before it."""
    shares: Shares | None = None
    """How much of each tensor stays between two uses where that costs least, if that was worked out."""
    whole: "PlanSearch | None" = None
    """The search for a plan of the whole tensors, where tensors are in parts."""
    told: Callable[["PlanSearch"], None] | None = None
    began: float = field(default_factory=time.perf_counter)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return 0.0 if self.stopped() else self.seconds - (time.perf_counter() - self.began)

    @property
    def bound(self) -> int:
        """What no plan scores below."""
        return max(self.bounds.values(), default=0)

    @property
    def closed(self) -> bool:
        """Whether no plan is better, but for moves that break ties."""
        return self.score is not None and self.prices.named(self.score) <= self.prices.named(self.bound)

    def raise_bound(self, name: str, bound: int) -> None:
        """Take note of what no plan scores below."""
        self.bounds[name] = max(self.prices.lift(bound), self.bounds.get(name, 0))

    @property
    def divides(self) -> bool:
        """Whether parts move as much and take as much room as their tensors: by bytes alone, where those fill words."""
        return self.whole is not None and self.prices.metrics == ("bytes",) and all(
            room == tensor.size_bytes for tensor, rooms in zip(
                self.whole.problem.tensors, self.whole.problem.rooms, strict=True) for room in rooms)

    def take_bounds(self, whole: "PlanSearch") -> None:
        """Take what no plan of whole tensors is below, where it `divides`."""
        for name in FOR_PARTS:
            if name in whole.bounds:
                self.raise_bound(name, whole.prices.named(whole.bounds[name]) * self.prices.unit)

    def offer(self, name: str, stays: Sequence[Stay]) -> bool:
        """Take a plan if it has addresses and is the best; return whether it might be the best but has none.

        What has no addresses is given them as it comes, and some of it leaves for others (`OnlineRun`).
        """
        score = self.prices.score(transfers_of(self.problem, stays))
        if self.score is not None and (score >= self.score or self.left <= 0):
            return False
        placed = addressed(self.problem, stays)
        if placed is not None:
            self.take(name, placed)
            return False
        self._place_anew(name, stays)
        if self.score is None:
            self.offer(name, naive(self.problem, self.prices))
        return True

    def _place_anew(self, name: str, stays: Sequence[Stay]) -> None:
        """Take plans whose tensors get addresses as they come, and stay where they did in others as far as they can."""
        from tilewright.allocation.online import OnlineRun  # noqa: PLC0415  (Numba loads late)

        kept = {(stay.tensor, at): 1.0 for stay in stays for at in self.problem.touches[stay.tensor]
                if stay.first <= at < stay.last}
        for found in OnlineRun(self.problem, self.prices, kept).plans():
            self.take(name, found)

    def take(self, name: str, stays: Sequence[Stay]) -> None:
        """Take a plan with addresses if it is the best."""
        score = self.prices.score(transfers_of(self.problem, stays))
        if self.score is None or score < self.score:
            self.score, self.stays = score, tuple(stays)
            self.trace.append((time.perf_counter() - self.began, score, name))
            if self.told is not None:
                self.told(self)


SOLVERS: Registry[AllocationSolver] = Registry("allocation solver")
