"""List schedules: jobs in an order, each to a core by a rule; and two rules by hand, like Herald's and AI-MT's."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tilewright.base import unknown_name
from tilewright.scheduling.problem import Floats, Ints, PlanGenomes, ScheduleProblem
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import MapperOptions, Options, Resumable, read_options

ORDERS = ("fcfs", "shortest", "longest", "heft", "critical")
"""First come first served; by their fewest cycles; by the longest chain that they begin, of mean cycles over cores, or
of each job's least (where one core is very slow, means say little)."""
CORES = ("least-busy", "fastest", "earliest-end", "round-robin")
"""The core with the least to do so far; where the job takes least; where it would end first; one after the other."""
PATIENCE = 1.25
"""Times its even part, what a core may be given before `herald-like` looks for another."""


def job_order(problem: ScheduleProblem, times: Floats, order: str) -> Ints:
    """Return the jobs ``(n)`` in an order; ``times`` ``(n, a)`` are what each takes on each core."""
    if order == "fcfs":
        return np.argsort(problem.release, kind="stable")
    least = times.min(axis=1)
    if order == "shortest":
        return np.argsort(least, kind="stable")
    if order == "longest":
        return np.argsort(-least, kind="stable")
    if order == "critical":
        return np.argsort(-problem.alone - problem.tails, kind="stable")
    mean = np.nanmean(np.where(np.isfinite(times), times, np.nan), axis=1)
    rank, (starts, successors) = mean.copy(), problem.successors
    for job in problem.topological[::-1]:
        rank[job] += rank[successors[starts[job]:starts[job + 1]]].max(initial=0.0)
    return np.argsort(-rank, kind="stable")


def list_plan(problem: ScheduleProblem, times: Floats, option: Ints, order: str, cores: str) -> PlanGenomes:
    """Return the plan of one order and one rule; ``option`` ``(n, a)`` are the mappings that take ``times``."""
    jobs = _sorted(problem, job_order(problem, times, order))
    free, ends = np.zeros(problem.cores), np.zeros(problem.jobs)
    core = np.zeros(problem.jobs, dtype=np.int64)
    before = [problem.before[problem.before[:, 1] == job, 0] for job in range(problem.jobs)]
    for place, job in enumerate(jobs):
        ready = max(problem.release[job], ends[before[job]].max(initial=0.0))
        begin = np.maximum(free, ready)
        fits = np.isfinite(times[job])
        turn = (np.arange(problem.cores) - place) % problem.cores
        rank = {"least-busy": free, "fastest": times[job], "earliest-end": begin + times[job], "round-robin": turn}
        chosen = np.lexsort((np.arange(problem.cores), free, np.where(fits, rank[cores], np.inf), ~fits))[0]
        core[job] = chosen
        ends[job] = free[chosen] = begin[chosen] + times[job, chosen]
    return as_plan(problem, jobs, core, option)


def _sorted(problem: ScheduleProblem, order: Ints) -> Ints:
    """Return the jobs as simulations take them: none before its predecessors."""
    key = np.empty(problem.jobs)
    key[order] = np.arange(problem.jobs)
    starts, successors = problem.successors
    for job in problem.topological:
        after = successors[starts[job]:starts[job + 1]]
        key[after] = np.maximum(key[after], key[job])
    return problem.topological[np.argsort(key[problem.topological], kind="stable")]


def as_plan(problem: ScheduleProblem, jobs: Ints, core: Ints, option: Ints) -> PlanGenomes:
    """Return plans of jobs in orders ``(b, n)``, or of one ``(n)``, on their cores, by mappings ``(n, a)`` for each."""
    jobs, core = np.atleast_2d(jobs, core)
    priority, places = np.empty(jobs.shape), np.arange(problem.jobs) / max(1, problem.jobs - 1)
    np.put_along_axis(priority, jobs, np.broadcast_to(places, jobs.shape), axis=1)
    return PlanGenomes(core, priority, option[np.arange(problem.jobs), core])


def mapping_rules(problem: ScheduleProblem) -> list[tuple[Floats, Ints]]:
    """Return times and mappings ``(n, a)`` by two rules: the fastest, and what is fastest with an even share."""
    cycles, traffic, _ = problem.of_jobs
    slowed = np.maximum(cycles, traffic * problem.cores / problem.bandwidth)
    found = []
    for rank in (cycles, slowed):
        option = rank.argmin(axis=2)
        found.append((np.take_along_axis(rank, option[:, :, None], axis=2)[:, :, 0], option))
    return found if problem.counts.max() > 1 else [found[0], (found[1][0], found[0][1])]


@dataclass(frozen=True)
class ListOptions(MapperOptions):
    """Options of ``list``."""

    order: Annotated[str, "Which rule orders jobs; ``all`` tries each."] = "all"
    cores: Annotated[str, "Which rule chooses cores; ``all`` tries each."] = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("order", ORDERS), ("cores", CORES)):
            if getattr(self, name) not in ("all", *known):
                raise unknown_name(name, getattr(self, name), ["all", *known], f"options.{name}")


def list_plans(problem: ScheduleProblem, options: ListOptions) -> Iterator[PlanGenomes]:
    """Return the plans of all chosen rules, with the fastest mappings first."""
    for times, option in mapping_rules(problem):
        for order in ORDERS if options.order == "all" else (options.order,):
            for cores in CORES if options.cores == "all" else (options.cores,):
                yield list_plan(problem, times, option, order, cores)


class Planned(Resumable):
    """Scores some plans, and ends."""

    changing = ("at",)

    def __init__(self, session: ScheduleSession, plans: Iterator[PlanGenomes]) -> None:
        self.session, self.plans, self.at = session, list(plans), 0

    def step(self) -> None:
        """Score the next."""
        self.session.score(self.plans[self.at])
        self.at += 1
        self.session.ended = self.at == len(self.plans)


@SCHEDULERS.register("list", ListOptions)
def lists(session: ScheduleSession, options: Options) -> Planned:
    """List schedules: every order with every rule for cores, with two rules for mappings."""
    return Planned(session, list_plans(session.problem, read_options(ListOptions, options, "list")))


@SCHEDULERS.register("herald-like")
def herald_like(session: ScheduleSession, options: Options) -> Planned:
    """Each job, as it comes, goes where it takes fewest cycles, unless that core has more than its part.

    Its part is 1.25 times an even share of all cycles given so far; where it has more, the next best core is looked at;
    where all have, the least busy one takes the job. The text does not give Herald's rules (HPCA 2021): these are ours,
    after its description. Bandwidth plays no role in them.
    """
    read_options(MapperOptions, options, "herald-like")
    problem = session.problem
    times, option = mapping_rules(problem)[0]
    load, core = np.zeros(problem.cores), np.zeros(problem.jobs, dtype=np.int64)
    jobs = _sorted(problem, job_order(problem, times, "fcfs"))
    for job in jobs:
        fits = [int(a) for a in np.argsort(times[job], kind="stable") if np.isfinite(times[job, a])]
        most = PATIENCE * (load.sum() + times[job, fits[0]]) / problem.cores
        within = [a for a in fits if load[a] + times[job, a] <= most]
        core[job] = within[0] if within else min(fits, key=lambda a: float(load[a]))
        load[core[job]] += times[job, core[job]]
    return Planned(session, iter([as_plan(problem, jobs, core, option)]))


@SCHEDULERS.register("ai-mt-like")
def ai_mt_like(session: ScheduleSession, options: Options) -> Planned:
    """Jobs bound by the memory and by their arithmetic by turns, to the core with least to do, as if all were alike.

    A job takes as long as on the first core that it fits, or as its bytes take with all the bandwidth; it is bound by
    what is more. While the bytes given out take less than the cycles, over all cores, the next is one bound by the
    memory. The text does not give AI-MT's rules (ISCA 2020): these are ours, after its description.
    """
    read_options(MapperOptions, options, "ai-mt-like")
    problem = session.problem
    times, option = mapping_rules(problem)[0]
    known = np.arange(problem.jobs), np.isfinite(times).argmax(axis=1)
    cycles, moving = times[known], problem.of_jobs[1][*known, option[known]] / problem.bandwidth
    bound = [[job for job in range(problem.jobs) if (moving[job] > cycles[job] / problem.cores) == by] for by in (0, 1)]
    order = []
    worked = moved = 0.0
    while bound[0] or bound[1]:
        wanted = int(moved <= worked / problem.cores)
        job = bound[wanted if bound[wanted] else 1 - wanted].pop(0)
        worked, moved = worked + cycles[job], moved + moving[job]
        order.append(job)
    load, core = np.zeros(problem.cores), np.zeros(problem.jobs, dtype=np.int64)
    jobs = _sorted(problem, np.array(order))
    for job in jobs:
        core[job] = int(np.where(np.isfinite(times[job]), load, np.inf).argmin())
        load[core[job]] += cycles[job]
    return Planned(session, iter([as_plan(problem, jobs, core, option)]))
