"""The integer program of residency given to solvers: CP-SAT and, through MathOpt, HiGHS, all of OR-Tools."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, inf
from typing import Any

from tilewright.allocation.linear import LinearProgram
from tilewright.base import require_extra

EXTRA = "cp-sat"
RELATIVE_SLACK, SLACK = 1e-9, 1e-3
"""What bounds of floating-point solvers are lowered by, of their size and at least, before they count."""


@dataclass(frozen=True)
class ProgramOutcome:
    """What a solver found: the values of all variables, if any, and what no plan scores below."""

    values: Sequence[float] | None
    bound: int
    optimal: bool


def by_constraints(program: LinearProgram, seconds: float, hint: Sequence[int] | None = None,
                   stopped: Any = None) -> ProgramOutcome:
    """Solve by CP-SAT; ``hint`` is a solution to begin from."""
    require_extra(EXTRA, "--solver", "cp-sat")
    from ortools.sat.python import cp_model  # noqa: PLC0415  (an extra)

    model = cp_model.CpModel()
    literals = [model.new_bool_var("") for _ in program.cost]
    for places, factors, limit in program.rows:
        model.add(cp_model.LinearExpr.weighted_sum([literals[at] for at in places], factors) <= limit)
    for group in program.choices:
        model.add_exactly_one(literals[at] for at in group)
    priced = [at for at, price in enumerate(program.cost) if price]
    model.minimize(cp_model.LinearExpr.weighted_sum([literals[at] for at in priced],
                                                    [program.cost[at] for at in priced]))
    for at, value in enumerate(hint or ()):
        model.add_hint(literals[at], value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.random_seed = 0
    solver.parameters.max_time_in_seconds = max(0.01, seconds)
    status = solver.solve(model, _stopping(stopped))
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    values = [solver.value(one) for one in literals] if found else None
    bound = program.fixed + ceil(solver.best_objective_bound - 0.5) if status != cp_model.UNKNOWN or found else 0
    return ProgramOutcome(values, bound, status == cp_model.OPTIMAL)


def _stopping(stopped: Any) -> Any:
    """Return what ends CP-SAT where ``stopped`` says so, as soon as it has found something."""
    from ortools.sat.python import cp_model  # noqa: PLC0415

    class _Watch(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            if stopped is not None and stopped():
                self.stop_search()

    return _Watch()


def by_mathopt(program: LinearProgram, seconds: float, relaxed: bool = False) -> ProgramOutcome:
    """Solve by HiGHS; with ``relaxed`` variables may be parts, which GLOP solves: its bound is what counts."""
    require_extra(EXTRA, "--solver", "lp-bound" if relaxed else "milp")
    from ortools.math_opt.python import mathopt  # noqa: PLC0415  (an extra)

    model = mathopt.Model()
    variables = [model.add_variable(lb=0.0, ub=1.0, is_integer=not relaxed) for _ in program.cost]
    for places, factors, limit in program.rows:
        model.add_linear_constraint(lb=-inf, ub=limit, expr=mathopt.fast_sum(
            factor * variables[at] for at, factor in zip(places, factors, strict=True)))
    for group in program.choices:
        model.add_linear_constraint(lb=1, ub=1, expr=mathopt.fast_sum(variables[at] for at in group))
    model.minimize(mathopt.fast_sum(price * variables[at] for at, price in enumerate(program.cost) if price))
    result = mathopt.solve(model, mathopt.SolverType.GLOP if relaxed else mathopt.SolverType.HIGHS,
                           params=mathopt.SolveParameters(
                               time_limit=timedelta(seconds=max(0.01, seconds)),
                               relative_gap_tolerance=None if relaxed else 1e-9))
    optimal = result.termination.reason == mathopt.TerminationReason.OPTIMAL
    values = result.variable_values(variables) if result.has_primal_feasible_solution() else None
    bound = result.dual_bound() if optimal or not relaxed else -inf
    low = 0 if bound == -inf else program.fixed + ceil(bound - RELATIVE_SLACK * abs(bound) - SLACK)
    return ProgramOutcome(values, low, optimal)
