"""Why a job runs where it does: what the plan would take if it ran elsewhere, or with another mapping."""

from dataclasses import dataclass

import numpy as np

from tilewright.scheduling.problem import PlanGenomes
from tilewright.scheduling.records import ScheduleRecord
from tilewright.scheduling.simulation import simulate


@dataclass(frozen=True)
class Otherwise:
    """A job moved to a core, with one of its mappings there, all else as planned.

    ``cycles``, ``traffic_bytes`` and ``energy_pj`` are the mapping's; ``score`` and ``makespan_cycles`` the group's.
    """

    core: int
    option: int
    cycles: float
    traffic_bytes: float
    energy_pj: float
    score: float
    makespan_cycles: float


@dataclass(frozen=True)
class Explained:
    """What is known of a job in its plan."""

    group: int
    place: int
    """``group`` and ``place``: where it stands."""
    queue: tuple[int, ...]
    """The jobs on its core, in order."""
    otherwise: tuple[Otherwise, ...]
    """It elsewhere: on each core with the mapping that is best there, and on its own core with each mapping."""


def explained(record: ScheduleRecord, number: int) -> Explained:
    """Return what the plan would take with one job elsewhere: on every core, and with every mapping of its own one.

    Raises an `InputError` if there is no such job.
    """
    group, place = record.place(number)
    problem, plan = record.problem(group), record.genomes(group)
    jobs = record.groups[group].jobs
    moves = [(core, option) for core in range(problem.cores) for option in range(int(problem.counts[place, core]))]
    core, option = (np.repeat(genes, len(moves), axis=0) for genes in (plan.core, plan.option))
    core[:, place], option[:, place] = np.array(moves, dtype=np.int64).T
    found = simulate(problem, PlanGenomes(core, np.repeat(plan.priority, len(moves), axis=0), option))
    cycles, traffic, energy = problem.of_jobs
    every = [Otherwise(at, with_, float(cycles[place, at, with_]), float(traffic[place, at, with_]),
                       float(energy[place, at, with_]), float(score), float(makespan))
             for (at, with_), score, makespan in zip(moves, found.score, found.makespan_cycles, strict=True)]
    own = jobs[place].core
    best = {one.core: one for one in sorted(every, key=lambda one: -one.score)}
    queue = sorted((at for at, job in enumerate(jobs) if job.core == own), key=lambda at: jobs[at].start_cycles)
    kept = [one for one in every if one.core == own or one is best[one.core]]
    return Explained(group, place, tuple(queue), tuple(kept))
