"""Optimisers that know numbers alone, as schedule methods: the baselines of table 7.3, and others of `MAPPERS`."""

import numpy as np

from tilewright.scheduling.problem import Floats, PlanGenomes, ScheduleProblem
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import register_points


def decoded(problem: ScheduleProblem, points: Floats) -> PlanGenomes:
    """Return the plans of points ``(b, 3 n)`` of the unit cube, or ``(b, 2 n)``: cores, priorities, mappings.

    A core, and a mapping, is the one at that share of those that the job may use.
    """
    cores, priority, options = np.split(np.pad(points, ((0, 0), (0, 3 * problem.jobs - points.shape[1]))), 3, axis=1)
    core = problem.cores_at(np.clip(cores, 0.0, 1.0))
    return PlanGenomes(core, np.clip(priority, 0.0, 1.0), problem.options_at(core, np.clip(options, 0.0, 1.0)))


def _numbers(session: ScheduleSession) -> int:
    return (3 if session.problem.counts.max() > 1 else 2) * session.problem.jobs


register_points(SCHEDULERS, _numbers, lambda session, points: decoded(session.problem, points))
