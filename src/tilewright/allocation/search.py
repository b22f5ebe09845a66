"""One search for a plan: the best one with addresses so far, what none is below, and the solvers, which offer plans."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.allocation.addresses import addressed, proven_conflict
from tilewright.allocation.bounds import capacity_bound, flow_bound, role_bound
from tilewright.allocation.heuristics import (
    LARGE,
    belady,
    colouring,
    eager,
    greedy,
    kept_sets,
    naive,
    onsram_multi,
    onsram_static,
    placed,
)
from tilewright.allocation.linear import (
    EXTRA,
    LinearProgram,
    ProgramOutcome,
    by_constraints,
    by_mathopt,
    linear_program,
)
from tilewright.allocation.network import shares_of_parts
from tilewright.allocation.order import best_sets
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import Prices, Shares, Stay, held_of, stays_of, transfers_of
from tilewright.base import Registry, has_extra

FOR_PARTS = ("compulsory", "roles", "capacity", "flow")
"""Bounds that count tensors as if they could leave in part."""
AllocationSolver = Callable[["PlanSearch"], None]
"""Offers plans to a search, and raises its bound."""
SOLVERS: Registry[AllocationSolver] = Registry("allocation solver")
Rule = Callable[[ResidencyProblem, Prices], tuple[Stay, ...]]
RULES: dict[str, Rule] = {
    "naive": naive, "onsram-static": onsram_static, "onsram-eager": eager, "onsram-multi": onsram_multi,
    "colouring": colouring, "belady": belady, "greedy": greedy}
"""Heuristics, those of the literature first."""
MOST_CELLS = 200_000
"""Places of tensors over time beyond which `exact` leaves out the integer program."""
MOST_CUTS = 50
"""Residencies without addresses that are cut off before it ends with a gap."""


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


def standing_bounds(search: PlanSearch) -> None:
    """Raise the bounds that every plan is held against, whichever way it is found."""
    whole = search.whole
    if whole is not None and search.divides:
        standing_bounds(whole)
        search.take_bounds(whole)
        return
    for name, bound in (("compulsory", search.prices.compulsory),
                        ("roles", role_bound(search.problem, search.prices)),
                        ("capacity", capacity_bound(search.problem, search.prices))):
        search.raise_bound(name, bound)


def _ruled(name: str, rule: Rule) -> None:
    def solve(search: PlanSearch) -> None:
        search.offer(name, rule(search.problem, search.prices))

    solve.__doc__ = rule.__doc__
    SOLVERS.register(name)(solve)


for _name, _rule in RULES.items():
    _ruled(_name, _rule)


def _begin(search: PlanSearch) -> None:
    """Begin from the best heuristic, of large problems from `online`, and bounds that cost nothing."""
    if not search.bounds:
        standing_bounds(search)
    large = len(search.problem.steps) > LARGE
    for name, rule in () if large else reversed(RULES.items()):
        if not search.closed and (search.left > 0 or search.score is None):
            search.offer(name, rule(search.problem, search.prices))
    if not search.closed and (search.left > 0 or search.score is None):
        online(search)


@SOLVERS.register("online")
def online(search: PlanSearch) -> None:
    """Give what comes an address at once, where what lies there is worth least for the steps until its next use."""
    _online(search)


def _online(search: PlanSearch, shares: Shares | None = None) -> None:
    from tilewright.allocation.online import OnlineRun  # noqa: PLC0415  (Numba loads late)

    for stays in OnlineRun(search.problem, search.prices, shares).plans():
        search.take("online", stays)
        if search.closed or search.left <= 0:
            break
    if search.score is None:
        search.offer("belady", belady(search.problem, search.prices))


@SOLVERS.register("lp-bound")
def lp_bound(search: PlanSearch) -> None:
    """Solve the linear relaxation, keep tensors in the order of how much it keeps them, and take its bound."""
    program = linear_program(search.problem, search.prices)
    found = by_mathopt(program, search.left, relaxed=True)
    search.raise_bound("lp", found.bound)
    values = found.values
    if values is None:
        search.offer("naive", naive(search.problem, search.prices))
    else:
        def kept(gap: tuple[int, int, int]) -> float:
            tensor, _, last = gap
            return -sum(values[program.here[tensor, pad, last - 1]] for pad in range(len(search.problem.pads))
                        if (tensor, pad, last - 1) in program.here)

        sets = kept_sets(search.problem, sorted(search.problem.gaps, key=kept))
        search.offer("lp-bound", stays_of(search.problem, placed(search.problem, sets)))


def _programmed(search: PlanSearch, name: str, solve: Callable[[LinearProgram], ProgramOutcome]) -> None:
    """Solve the integer program; cut off each residency that has no addresses, and solve on."""
    program = linear_program(search.problem, search.prices)
    for _ in range(MOST_CUTS):
        if search.left <= 0:
            return
        found = solve(program)
        search.raise_bound(name, found.bound)
        if found.values is None:
            return
        stays = program.stays(found.values)
        refused = search.offer(name, stays)
        if search.closed or not refused or not found.optimal:
            return
        conflict = proven_conflict(search.problem, stays)
        if not conflict:
            return
        program.forbid(conflict)


@SOLVERS.register("milp")
def milp(search: PlanSearch) -> None:
    """Solve the integer program by HiGHS (through MathOpt of OR-Tools)."""
    _begin(search)
    _programmed(search, "milp", lambda program: by_mathopt(program, search.left))


@SOLVERS.register("cp-sat")
def cp_sat(search: PlanSearch) -> None:
    """Solve the integer program by CP-SAT of OR-Tools, from the best heuristic on."""
    _begin(search)
    _programmed(search, "cp-sat", lambda program: by_constraints(
        program, search.left, program.values(held_of(search.problem, search.stays)), lambda: search.left <= 0))


@SOLVERS.register("exact")
def exact(search: PlanSearch) -> None:
    """Take the best heuristic, and prove it or find better.

    First by bounds alone, then by the best sets to hold in each step (moves being free) or, where too many wait for
    that, by what a flow of least cost keeps; last by the integer program. Of tensors in parts that flow is the one that
    was worked out for whole tensors, where that holds for them.
    """
    whole = search.whole
    if whole is not None and whole.shares is not None and search.divides:
        search.take_bounds(whole)
        _online(search, shares_of_parts(whole.problem, search.problem, whole.shares))
    else:
        _begin(search)
        if not search.closed:
            _best_kept(search)
    cells = sum(steps[-1] - steps[0] + 1 for steps in search.problem.touches if steps) * len(search.problem.pads)
    if not search.closed and cells <= MOST_CELLS and has_extra(EXTRA):
        _programmed(search, "milp", lambda program: by_mathopt(program, search.left))


def _best_kept(search: PlanSearch) -> None:
    """Take the best sets to hold, or else what the flow keeps."""
    found = best_sets(search.problem, search.prices, search.score, lambda: search.left <= 0)
    if found is not None:
        search.raise_bound("sets", found.score)
        search.offer("exact", stays_of(search.problem, placed(search.problem, found.sets)))
    elif has_extra(EXTRA):
        bound, search.shares = flow_bound(search.problem, search.prices, lambda: search.left <= 0)
        search.raise_bound("flow", bound)
        if not search.closed:
            _online(search, search.shares)
