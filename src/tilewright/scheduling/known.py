"""Plans of other groups to begin from: jobs do as like jobs did, and cores get level (Kao 2022, 7.2.3)."""

from dataclasses import dataclass

import numpy as np

from tilewright.base import InputError
from tilewright.scheduling.problem import Floats, Ints, PlanGenomes, ScheduleProblem

NEAR, SWAPPED, RANDOM = 8, 0.15, 0.01
"""Of plans that a known one suggests: among how many like jobs one is taken, for what share of the jobs, and what share
of genes is random."""


@dataclass(frozen=True)
class KnownPlan:
    """A plan of a group that was scheduled, as other groups can begin from it (Kao 2022, 7.2.3)."""

    profiles: Floats
    """``(n, 2 a)``: logarithms of each job's cycles and bytes on each core, with its fastest mapping."""
    core: Ints
    priority: Floats
    option: Ints
    """``core``, ``priority`` and ``option``: ``(n)``."""

    @classmethod
    def of(cls, problem: ScheduleProblem, plan: PlanGenomes) -> "KnownPlan":
        """Return the first of some plans as one that is known."""
        return cls(_profiles(problem), plan.core[0], plan.priority[0], plan.option[0])


def adopted(problem: ScheduleProblem, known: KnownPlan, seed: int = 0) -> PlanGenomes:
    """Return plans for other jobs on the same cores, as many as jobs.

    In the first each job does as the job of the known plan that is most like it. Jobs are matched so that all
    differences of profiles together are the least; each job of the known plan serves once where there are as many. In
    the others some jobs do as another one of those that are near, and a few genes are random. As the jobs are not quite
    the same, some cores then have too much to do; where the makespan is to be least, they give jobs to others.

    Raises an `InputError` if the plan is of another number of cores.
    """
    mine, rng = _profiles(problem), np.random.default_rng(seed)
    if known.profiles.shape[1] != mine.shape[1]:
        raise InputError("warm", f"must be of {problem.cores} cores", known.profiles.shape[1] // 2)
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415  (takes part of a second to load)

    each, times = np.arange(problem.jobs), -(-len(mine) // len(known.profiles))
    far = np.abs(mine[:, None] - known.profiles[None]).sum(axis=2)
    jobs, like = linear_sum_assignment(np.tile(far, (1, times)))
    like = np.repeat(like[np.argsort(jobs)][None] % len(known.profiles), problem.jobs, axis=0)
    near = np.argsort(far, axis=1, kind="stable")[:, :NEAR]
    other = near[each, rng.integers(near.shape[1], size=like.shape)]
    swapped, random = rng.random((2, *like.shape)) < np.array([SWAPPED, RANDOM])[:, None, None]
    swapped[0] = random[0] = False
    like = np.where(swapped, other, like)
    core = np.where(problem.counts[each, known.core[like]] > 0, known.core[like], problem.counts.argmax(axis=1))
    drawn = problem.drawn(rng, problem.jobs)
    plans = problem.mended(PlanGenomes(*(np.where(random, new, old) for new, old in (
        (drawn.core, core), (drawn.priority, known.priority[like]), (drawn.option, known.option[like])))))
    if problem.objective == "makespan":
        for genes in zip(plans.core, plans.option, strict=True):
            _level(problem, *genes)
    return plans


def _level(problem: ScheduleProblem, core: Ints, option: Ints) -> None:
    """Let the core with most to do give a job to another, with any mapping, while the makespan may fall by that.

    It is no less than what the jobs of a core take with all the bandwidth, nor than what all bytes take: the job and
    the mapping are those with which the most of these, of the two cores and the bytes, is the least. In place.
    """
    durations, moved = problem.durations, problem.of_jobs[1] / problem.bandwidth
    each = np.arange(problem.jobs)
    busy = np.bincount(core, durations[each, core, option], problem.cores)
    whole = float(moved[each, core, option].sum())
    for _ in each:
        most = int(busy.argmax())
        mine = np.flatnonzero(core == most)
        now = mine, most, option[mine]
        left = busy[most] - durations[now]
        then = np.where(np.arange(problem.cores) == most, left[:, None], busy)[:, :, None] + durations[mine]
        changed = whole - moved[now][:, None, None] + moved[mine]
        worth = np.maximum(np.maximum(left[:, None, None], then), changed)
        place, a, o = np.unravel_index(int(worth.argmin()), worth.shape)
        if not worth[place, a, o] < busy[most]:
            return
        busy[most], busy[a], whole = left[place], then[place, a, o], float(changed[place, a, o])
        core[mine[place]], option[mine[place]] = a, o


def _profiles(problem: ScheduleProblem) -> Floats:
    told = [np.where(np.isfinite(rows[:, :, 0]), np.log1p(np.minimum(rows[:, :, 0], 1e300)), 100.0)
            for rows in problem.of_jobs[:2]]
    return np.concatenate(told, axis=1)
