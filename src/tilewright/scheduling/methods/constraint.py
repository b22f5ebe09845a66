"""Assignments and orders by constraint programming: CP-SAT of OR-Tools, with a bound of its own (extra ``cp-sat``)."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from tilewright.base import InputError, require_extra
from tilewright.scheduling.methods.auto import in_orders
from tilewright.scheduling.methods.lists import as_plan
from tilewright.scheduling.problem import PlanGenomes
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import Count, MapperOptions, Options, Resumable, read_options

FINE = 10_000_000
"""Units of time that the bound is cut into; what jobs take is rounded down, so that bounds hold."""


@dataclass(frozen=True)
class ConstraintOptions(MapperOptions):
    """Options of ``cp-sat``."""

    effort: Annotated[Count, "For how long it works, in the solver's own seconds, which are the same on every machine; "
                             "time ends it, too."] = 20


class ConstraintScheduler(Resumable):
    """Solves in one step, and simulates what it found, in some orders; what was stopped before begins anew."""

    changing = ()

    def __init__(self, session: ScheduleSession, options: Options) -> None:
        self.options = read_options(ConstraintOptions, options, "cp-sat")
        if session.problem.objective != "makespan":
            raise InputError("objective", "must be makespan for the method cp-sat", session.problem.objective)
        require_extra("cp-sat", "method", "cp-sat")
        self.session = session

    def step(self) -> None:
        """Solve, raise the bound, and end."""
        from ortools.sat.python import cp_model  # noqa: PLC0415  (an extra)

        session, problem = self.session, self.session.problem
        unit = session.bound.value / FINE if session.bound.value > 0 else float(problem.alone.max()) / FINE
        model = cp_model.CpModel()
        chosen, begins, makespan = self._model(model, unit)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = self.options.effort
        if session.seconds is not None:
            solver.parameters.max_time_in_seconds = max(0.01, 0.9 * session.seconds - session.used_seconds)
        model.minimize(makespan)
        status = solver.solve(model)
        session.ended = True
        session.floor = max(session.floor, solver.best_objective_bound * unit * (1 - 1e-9))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            session.score(problem.drawn(np.random.default_rng(session.seed), 1))
            return
        core, option = np.zeros(problem.jobs, dtype=np.int64), np.zeros(problem.jobs, dtype=np.int64)
        for (job, a, o), literal in chosen.items():
            if solver.value(literal):
                core[job], option[job] = a, o
        session.score(self._plan(core, option, np.array([solver.value(begin) for begin in begins])))
        for plan in in_orders(problem, core, option):
            session.score(plan)

    def _plan(self, core: Any, option: Any, begins: Any) -> PlanGenomes:
        options = np.repeat(option[:, None], self.session.problem.cores, axis=1)
        return as_plan(self.session.problem, np.argsort(begins, kind="stable"), core, options)

    def _model(self, model: Any, unit: float) -> tuple[dict[tuple[int, int, int], Any], list[Any], Any]:
        """Return literals of what each job chooses, variables of when it begins, and that of the makespan.

        A core runs one job at a time, each for as long as it takes alone; bytes of all take no more than the makespan.
        """
        problem = self.session.problem
        times = np.floor(problem.durations / unit)
        moved = np.floor(problem.of_jobs[1] / problem.bandwidth / unit)
        finite = np.isfinite(times)
        horizon = int(times[finite].max() * problem.jobs + problem.release.max() / unit) + 1
        makespan = model.new_int_var(0, horizon, "makespan")
        plain = not len(problem.before) and not problem.release.any()
        chosen: dict[tuple[int, int, int], Any] = {}
        begins: list[Any] = []
        ends: list[Any] = []
        on_core: list[list[Any]] = [[] for _ in range(problem.cores)]
        for job in range(problem.jobs):
            mine = {(job, int(a), int(o)): model.new_bool_var("") for a, o in np.argwhere(finite[job])}
            model.add_exactly_one(mine.values())
            begins.append(model.new_int_var(int(problem.release[job] / unit), horizon, ""))
            takes = sum(int(times[key]) * literal for key, literal in mine.items())
            ends.append(begins[job] + takes)
            model.add(ends[job] <= makespan)
            if not plain:
                for key, literal in mine.items():
                    on_core[key[1]].append(model.new_optional_fixed_size_interval_var(
                        begins[job], int(times[key]), literal, ""))
            chosen |= mine
        for a in range(problem.cores):
            model.add(sum(int(times[key]) * literal for key, literal in chosen.items() if key[1] == a) <= makespan)
            if not plain:
                model.add_no_overlap(on_core[a])
        model.add(sum(int(moved[key]) * literal for key, literal in chosen.items()) <= makespan)
        for one, other in problem.before.tolist():
            model.add(begins[other] >= ends[one])
        return chosen, begins, makespan


@dataclass(frozen=True)
class ConstraintMember:
    """Constraint programming by OR-Tools' CP-SAT on cores, mappings and orders, with a bound of its own."""

    extra: str = "cp-sat"

    def __call__(self, session: ScheduleSession, options: Options) -> ConstraintScheduler:
        """Return a scheduler; an `InputError` if an option is wrong or the extra is not installed."""
        return ConstraintScheduler(session, options)


SCHEDULERS.register("cp-sat", ConstraintOptions)(ConstraintMember())
