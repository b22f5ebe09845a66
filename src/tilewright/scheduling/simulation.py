"""What plans take: every job's begin and end, and the share of the bandwidth that each has in between."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.base import InputError, late_module, share
from tilewright.scheduling.problem import SCHEDULE_OBJECTIVES, SHARINGS, Floats, PlanGenomes, ScheduleProblem, Timeline

if TYPE_CHECKING:
    from tilewright.scheduling.kernels import JobTables, PlanArrays

kernels = late_module("tilewright.scheduling.kernels")
TOGETHER = 50
"""Plans that a thread simulates at a time."""


@dataclass(frozen=True)
class Simulated:
    """What ``b`` plans take; infinite where a job is on a core that it does not fit."""

    makespan_cycles: Floats
    energy_pj: Floats
    """``makespan_cycles`` and ``energy_pj``: ``(b)``: when the last job ends, and what all of them take."""
    slowdown: Floats
    """``(b)``: the most that a job takes, from its release on, as a multiple of what it takes alone at best."""
    missed: Floats
    """``(b)``: jobs that end after their deadlines."""
    score: Floats
    """``(b)``: the problem's objective, the lower the better."""


def simulate(problem: ScheduleProblem, plans: PlanGenomes, threads: int = 1) -> Simulated:
    """Run plans, event by event (algorithm 1 of Kao 2022, 7.1.5); exact up to rounding, on any number of threads.

    A job moves its bytes evenly over its cycles: it asks for bytes / cycles, and with a part of that share it takes so
    much longer. Between two events (a job begins or ends) all shares stay as they are. Where the running jobs ask
    together for more than there is, ``proportional`` gives each the same part of what it asks for; ``max-min`` gives
    all the same share, but none more than it asks for; ``critical-first`` serves one after the other, first the job
    after whose start the longest chain of cycles is left: its own and those that must follow, on its core or by
    precedence, each at full speed (of equal ones that on the first core). A job without bytes runs at full speed.

    Raises an `InputError` if the plans are not of the problem's jobs, cores and mappings, or a priority is not a
    number.
    """
    _check(problem, plans)
    figures = np.empty((len(plans), kernels.FIGURES))

    def work(rows: slice) -> None:
        kernels.run_plans(compiled_plan(plans, rows), tables(problem), figures[rows])

    share(work, [slice(at, at + TOGETHER) for at in range(0, len(plans), TOGETHER)], threads)
    told = (kernels.MAKESPAN, kernels.ENERGY, kernels.SLOWDOWN, kernels.LATE, kernels.SCORE)
    return Simulated(*(figures[:, figure] for figure in told))


def tables(problem: ScheduleProblem) -> "JobTables":
    """Return what the kernels are given of a problem."""
    cycles, traffic, energy = problem.of_jobs
    starts, successors = problem.successors
    found: JobTables = kernels.JobTables(
        cycles, traffic, energy, float(problem.bandwidth), SHARINGS.index(problem.sharing),
        SCHEDULE_OBJECTIVES.index(problem.objective), problem.release, problem.deadline, problem.alone,
        problem.topological, starts, successors)
    return found


def compiled_plan(plans: PlanGenomes, rows: slice | int) -> "PlanArrays":
    """Return one or some of the plans as the kernels take them."""
    found: PlanArrays = kernels.PlanArrays(plans.core[rows], plans.priority[rows], plans.option[rows])
    return found


def timeline(problem: ScheduleProblem, plan: PlanGenomes) -> Timeline:
    """Return what happens in the first of the plans, as `simulate` has it.

    Raises an `InputError` as `simulate` does, and where a job is on a core that it does not fit.
    """
    _check(problem, plan)
    core, option = plan.core[0], plan.option[0]
    unfit = np.flatnonzero(option >= problem.counts[np.arange(problem.jobs), core])
    if len(unfit):
        raise InputError(f"plan.core[{unfit[0]}]", "must be a core that the job fits", int(core[unfit[0]]))
    start, end = np.empty(problem.jobs), np.empty(problem.jobs)
    most = kernels.MOST_EVENTS * problem.jobs + 1
    events, shares = np.empty(most + 1), np.empty((most, problem.cores))
    count = kernels.run_plan(compiled_plan(plan, 0), tables(problem), start, end, events, shares)
    return Timeline(start, end, core, option, events[:count + 1], shares[:count])


def _check(problem: ScheduleProblem, plans: PlanGenomes) -> None:
    shape = (len(plans), problem.jobs)
    for name, most in (("core", problem.cores), ("option", problem.of_jobs[0].shape[2])):
        genes = getattr(plans, name)
        if genes.shape != shape or (genes.size and not (0 <= genes.min() and genes.max() < most)):
            raise InputError(f"plans.{name}", f"must be from 0 to {most - 1} for each of {problem.jobs} jobs",
                             genes.shape)
    if plans.priority.shape != shape or np.isnan(plans.priority).any():
        raise InputError("plans.priority", f"must be numbers of shape (b, {problem.jobs})", plans.priority.shape)
