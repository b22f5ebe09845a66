"""The solvers: all offer plans to one search, by one objective."""

from collections.abc import Callable

from tilewright.allocation.addresses import proven_conflict
from tilewright.allocation.bounds import flow_bound, standing_bounds
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
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.search import SOLVERS, PlanSearch
from tilewright.allocation.sets import best_sets
from tilewright.allocation.stays import Prices, Shares, Stay, held_of, stays_of
from tilewright.base import has_extra

Rule = Callable[[ResidencyProblem, Prices], tuple[Stay, ...]]
RULES: dict[str, Rule] = {
    "naive": naive, "onsram-static": onsram_static, "onsram-eager": eager, "onsram-multi": onsram_multi,
    "colouring": colouring, "belady": belady, "greedy": greedy}
"""Heuristics, those of the literature first."""

MOST_CELLS = 200_000
"""Places of tensors over time beyond which `exact` leaves out the integer program."""
MOST_CUTS = 50
"""Residencies without addresses that are cut off before it ends with a gap."""


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
