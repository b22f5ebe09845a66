"""The integer program: residency as rows of binary variables, for every solver that takes such (thesis 5.2, mended).

``x[n, k, m]`` says that tensor n is on scratchpad k during operation m. A load at a use costs what `Prices` say, a
store is paid once for each time that a tensor is written, and moves, where there is a way, are variables of their own.
Solvers are CP-SAT and, through MathOpt, HiGHS and GLOP, all of OR-Tools.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil, inf
from typing import Any

from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.stays import Held, Prices, Stay, empty, stays_of, versions
from tilewright.base import require_extra

Row = tuple[list[int], list[int], int]
"""Places of variables, their coefficients, and what their sum is at most."""
EXTRA = "cp-sat"
RELATIVE_SLACK, SLACK = 1e-9, 1e-3
"""What bounds of floating-point solvers are lowered by, of their size and at least, before they count."""


@dataclass
class LinearProgram:
    """Minimise ``fixed + cost @ x`` over binary ``x``, each row at most its limit, one of each group of ``choices``."""

    problem: ResidencyProblem
    prices: Prices
    fixed: int = 0
    cost: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    choices: list[list[int]] = field(default_factory=list)
    here: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Place of ``x[n, k, m]``."""
    moves: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    """Place of "tensor n moves from k to l before m"."""
    came: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Place of "tensor n is loaded again onto k for m"."""
    stored: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Place of "what m wrote of tensor n is stored from k"."""

    def variable(self, cost: int = 0) -> int:
        """Add a variable and return its place."""
        self.cost.append(cost)
        return len(self.cost) - 1

    def at_most(self, limit: int, *terms: tuple[int, int]) -> None:
        """Add a row of ``(coefficient, place)``."""
        self.rows.append(([place for _, place in terms], [factor for factor, _ in terms], limit))

    def held(self, values: Sequence[float]) -> Held:
        """Return ``(tensors, steps)`` what a solution holds where."""
        held = empty(self.problem)
        for (tensor, pad, step), place in self.here.items():
            if values[place] > 0.5:
                held[tensor, step] = pad
        return held

    def stays(self, values: Sequence[float]) -> tuple[Stay, ...]:
        """Return the stays of a solution."""
        return stays_of(self.problem, self.held(values))

    def values(self, held: Held) -> list[int]:
        """Return the solution that holds this; zeros where a variable follows from others."""
        found = [0] * len(self.cost)
        for (tensor, pad, step), place in self.here.items():
            found[place] = int(held[tensor, step] == pad)
        for (tensor, origin, pad, step), place in self.moves.items():
            found[place] = int(held[tensor, step - 1] == origin and held[tensor, step] == pad)
        for (tensor, pad, step), place in self.came.items():
            moved = any(found[self.moves[key]] for origin in range(len(self.problem.pads))
                        if (key := (tensor, origin, pad, step)) in self.moves)
            found[place] = int(held[tensor, step] == pad and held[tensor, step - 1] != pad and not moved)
        for (tensor, pad, step), place in self.stored.items():
            later = [at for at in self.problem.written[tensor] if at > step]
            end = later[0] if later else len(self.problem.steps)
            found[place] = int(held[tensor, step] == pad and any(
                found[place] for (one, _, at), place in self.came.items() if one == tensor and step < at <= end))
        return found

    def forbid(self, stays: Sequence[Stay]) -> None:
        """Leave out every plan in which all of these stays are, on this scratchpad or on one that is like it."""
        alike = [at for at, one in enumerate(self.problem.classes) if one == self.problem.classes[stays[0].pad]]
        for pad in alike:
            cells = [self.here.get((stay.tensor, pad, at)) for stay in stays for at in range(stay.first, stay.last + 1)]
            known = [cell for cell in cells if cell is not None]
            if len(known) == len(cells):
                self.at_most(len(known) - 1, *((1, cell) for cell in known))


def linear_program(problem: ResidencyProblem, prices: Prices) -> LinearProgram:
    """Return the integer program of a problem."""
    made = LinearProgram(problem, prices, prices.fixed)
    for tensor, steps in enumerate(problem.touches):
        if steps:
            _life(made, tensor, steps)
            _stores(made, tensor)
    for at in range(len(problem.steps)):
        for pad, one in enumerate(problem.pads):
            terms = [(problem.rooms[tensor][pad], made.here[tensor, pad, at]) for tensor in range(len(problem.tensors))
                     if (tensor, pad, at) in made.here]
            if sum(room for room, _ in terms) > one.capacity_bytes:
                made.at_most(one.capacity_bytes, *terms)
    return made


def _life(made: LinearProgram, tensor: int, steps: tuple[int, ...]) -> None:
    """Add where a tensor is in each step of its life, and how it comes there."""
    problem, here = made.problem, made.here
    first_price = "load" if problem.tensors[tensor].outside else ""
    for at in range(steps[0], steps[-1] + 1):
        pads = problem.pads_of(tensor, at)
        for pad in pads:
            price = made.prices.price("load", tensor, pad) if at == steps[0] and first_price else 0
            here[tensor, pad, at] = made.variable(price)
        if at in steps:
            made.choices.append([here[tensor, pad, at] for pad in pads])
        else:
            made.at_most(1, *((1, here[tensor, pad, at]) for pad in pads))
        if at == steps[0]:
            continue
        before = [pad for pad in range(len(problem.pads)) if (tensor, pad, at - 1) in here]
        for pad in pads:
            came = [(-1, here[tensor, pad, at - 1])] if pad in before else []
            for origin in before:
                if origin != pad and problem.across(origin, pad) is not None:
                    move = made.moves[tensor, origin, pad, at] = made.variable(
                        made.prices.price("move", tensor, pad, origin))
                    made.at_most(0, (1, move), (-1, here[tensor, origin, at - 1]))
                    came.append((-1, move))
            if at in steps:
                load = made.came[tensor, pad, at] = made.variable(made.prices.price("load", tensor, pad))
                came.append((-1, load))
            made.at_most(0, (1, here[tensor, pad, at]), *came)


def _stores(made: LinearProgram, tensor: int) -> None:
    """Add what stores a tensor: once for each time that it is written, before it is loaded again or as it leaves."""
    problem = made.problem
    for at, end in versions(problem, tensor):
        pads = problem.pads_of(tensor, at)
        if not problem.dirty(tensor, at):
            for pad in pads:
                made.cost[made.here[tensor, pad, at]] += made.prices.price("store", tensor, pad)
            continue
        loads = [(pad, step) for one, pad, step in made.came if one == tensor and at < step <= end]
        for pad in pads if loads else ():
            stored = made.stored[tensor, pad, at] = made.variable(made.prices.price("store", tensor, pad))
            for step in sorted({step for _, step in loads}):
                coming = [(1, made.came[tensor, other, step]) for other, one in loads if one == step]
                made.at_most(1, *coming, (1, made.here[tensor, pad, at]), (-1, stored))


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
