"""Schedules as records: plain data that lasts, from which the problem and the plan can be made again.

Why a job runs where it does: what the plan would take if it ran elsewhere, or with another mapping.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.base import InputError, RecordFormat, read_record
from tilewright.scheduling.analysis import Analysis, Point, front_table
from tilewright.scheduling.jobs import LayerJob
from tilewright.scheduling.problem import AnalysisTable, Ints, PlanGenomes, ScheduleObjective, ScheduleProblem, Sharing
from tilewright.scheduling.simulation import simulate
from tilewright.scheduling.system import System

if TYPE_CHECKING:
    from tilewright.scheduling.session import Scheduled

FORMAT = RecordFormat("tilewright schedule 1", "a schedule", "schedule",
                      ("makespan_cycles", "bound_cycles", "gap", "gflops"))


@dataclass(frozen=True)
class CoreRecord:
    """A core: ``kind`` is the place of its column in the fronts of jobs."""

    name: str
    accelerator: str
    style: str
    elements: int
    kind: int


@dataclass(frozen=True)
class PlannedJob:
    """A job and its place in the plan of its group."""

    name: str
    network: str
    row: int
    """Of the fronts."""
    macs: int
    core: int
    option: int
    """``core`` and ``option``: which core runs it, and with which mapping of its front there."""
    priority: float
    start_cycles: float
    end_cycles: float
    """``start_cycles`` and ``end_cycles``: from the beginning of its group."""
    cycles: float
    traffic_bytes: float
    energy_pj: float
    """``cycles``, ``traffic_bytes`` and ``energy_pj``: of that mapping: cycles with all the bandwidth that it asks
    for."""
    alone_cycles: float
    here_cycles: float
    """``alone_cycles`` and ``here_cycles``: what it takes on an empty system: on the core and with the mapping that are
    best, and with its own."""
    release_cycles: float = 0.0
    deadline_cycles: float | None = None
    """None where there is none."""
    after: tuple[int, ...] = ()
    """Places in its group."""

    @property
    def duration_cycles(self) -> float:
        """From its start to its end."""
        return self.end_cycles - self.start_cycles

    @property
    def slowdown(self) -> float:
        """Its time as a multiple of what it takes there on an empty system."""
        return self.duration_cycles / self.here_cycles

    @property
    def share_bytes_per_cycle(self) -> float:
        """What it had of the bandwidth, in the mean."""
        return self.traffic_bytes / self.duration_cycles

    @property
    def wanted_bytes_per_cycle(self) -> float:
        """What it asks for."""
        return self.traffic_bytes / self.cycles


@dataclass(frozen=True)
class GroupRecord:
    """A group, which begins when the one before it has ended."""

    jobs: tuple[PlannedJob, ...]
    score: float
    bound: float
    """``score`` and ``bound``: the objective, and what no schedule of the group is below."""
    makespan_cycles: float
    bound_cycles: float
    """What no makespan of the group is below; ``bound_shares`` say what holds it."""
    bound_shares: dict[str, float]
    energy_pj: float
    missed: int
    samples: int
    seconds: float
    events: tuple[float, ...]
    shares: tuple[tuple[float, ...], ...]
    """``events`` and ``shares``: times from 0 to the makespan, and what each core draws between them: ``(e + 1)`` and
    ``(e, a)``, bytes a cycle."""
    trace: tuple[tuple[float, float, float], ...]
    """Samples, seconds and objective of every improvement."""
    interrupted: bool = False


@dataclass(frozen=True)
class ScheduleRecord:
    """A schedule of jobs on a system."""

    kind: str
    command: str
    source: str
    """What the jobs are, in words."""
    system: str
    cores: tuple[CoreRecord, ...]
    clock_mhz: float
    bandwidth: float
    """Bytes a cycle."""
    sharing: Sharing
    objective: ScheduleObjective
    choose_mapping: bool
    """Whether the plan chose among the mappings of ``fronts``."""
    method: str
    seed: int
    analysed_samples: int
    """Mappings scored for the fronts in this run; 0 where all were known."""
    assumptions: tuple[str, ...]
    fronts: tuple[tuple[tuple[Point, ...], ...], ...]
    """By distinct job and kind of core: its mappings, the fastest first."""
    groups: tuple[GroupRecord, ...]

    @cached_property
    def jobs(self) -> tuple[PlannedJob, ...]:
        """The jobs of all groups."""
        return tuple(job for group in self.groups for job in group.jobs)

    @property
    def makespan_cycles(self) -> float:
        """Cycles of all groups, one after the other."""
        return sum(group.makespan_cycles for group in self.groups)

    @property
    def bound_cycles(self) -> float:
        """What no schedule of these groups, one after the other, is below."""
        return sum(group.bound_cycles for group in self.groups)

    @property
    def gap(self) -> float:
        """By which share of the bound the objective is above it, summed over groups; the most there is to be had."""
        score, bound = (sum(getattr(group, name) for group in self.groups) for name in ("score", "bound"))
        return max(0.0, score / bound - 1.0) if bound > 0 else 0.0 if score <= bound else inf

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all jobs."""
        return sum(job.macs for job in self.jobs)

    @property
    def gflops(self) -> float:
        """Throughput: two operations for each multiply-accumulate."""
        return 2e-3 * self.macs * self.clock_mhz / self.makespan_cycles

    @property
    def energy_pj(self) -> float:
        """Picojoules of all jobs."""
        return sum(group.energy_pj for group in self.groups)

    @property
    def interrupted(self) -> bool:
        """Whether some group was stopped early."""
        return any(group.interrupted for group in self.groups)

    @property
    def peak_gflops(self) -> float:
        """Of all cores."""
        return 2e-3 * self.clock_mhz * sum(core.elements for core in self.cores)

    def place(self, number: int) -> tuple[int, int]:
        """Return the group of a job, and its place there.

        Raises an `InputError` if there is no such job.
        """
        if not 0 <= number < len(self.jobs):
            raise InputError("explain", f"must be the number of a job, from 0 to {len(self.jobs) - 1}", number)
        group = 0
        while number >= len(self.groups[group].jobs):
            number -= len(self.groups[group].jobs)
            group += 1
        return group, number

    @cached_property
    def table(self) -> AnalysisTable:
        """What each distinct job takes on each core."""
        return front_table(self.fronts, [core.kind for core in self.cores])

    def problem(self, group: int) -> ScheduleProblem:
        """Return what was scheduled."""
        jobs = self.groups[group].jobs
        return ScheduleProblem(
            self.table, np.array([job.row for job in jobs], dtype=np.int64), self.bandwidth,
            np.array([job.release_cycles for job in jobs]),
            np.array([inf if job.deadline_cycles is None else job.deadline_cycles for job in jobs]),
            pairs([job.after for job in jobs]), self.sharing, self.objective, self.choose_mapping)

    def genomes(self, group: int) -> PlanGenomes:
        """Return the plan of a group."""
        jobs = self.groups[group].jobs
        return PlanGenomes(np.array([[job.core for job in jobs]], dtype=np.int64),
                           np.array([[job.priority for job in jobs]], dtype=np.float64),
                           np.array([[job.option for job in jobs]], dtype=np.int64))

    def plain(self) -> dict[str, Any]:
        """Return all of it as plain data, with the figures that follow."""
        return {"kind": self.kind, "makespan_cycles": self.makespan_cycles, "bound_cycles": self.bound_cycles,
                "gap": self.gap if isfinite(self.gap) else None, "gflops": self.gflops} | asdict(self)


def read_schedule(text: str, label: str) -> ScheduleRecord:
    """Return the schedule that `ScheduleRecord.plain` told, from JSON.

    Raises an `InputError` if the text is none, or something in it is wrong.
    """
    return read_record(ScheduleRecord, FORMAT, text, label)


def pairs(after: Sequence[Sequence[int]]) -> Ints:
    """Return ``(p, 2)``: each job that others wait for, and who does."""
    return np.array([(before, job) for job, others in enumerate(after) for before in others],
                    dtype=np.int64).reshape(-1, 2)


def group_problem(jobs: Sequence[LayerJob], rows: Sequence[int], analysis: Analysis, bandwidth: float,
                  **asked: Any) -> ScheduleProblem:
    """Return the problem of a group whose jobs are these rows of an analysis."""
    return ScheduleProblem(
        analysis.table, np.array(rows, dtype=np.int64), bandwidth, np.array([job.release_cycles for job in jobs]),
        np.array([job.deadline_cycles for job in jobs]), pairs([job.after for job in jobs]), **asked)


def group_record(jobs: Sequence[LayerJob], found: "Scheduled", bound_cycles: float,
                 bound_shares: dict[str, float]) -> GroupRecord:
    """Return the record of a group that was scheduled."""
    problem, line, plan = found.problem, found.timeline, found.plan
    cycles, traffic, energy = problem.of_jobs
    planned = []
    for place, job in enumerate(jobs):
        core, option = int(line.core[place]), int(line.option[place])
        at = place, core, option
        planned.append(PlannedJob(
            job.name, job.network, int(problem.rows[place]), job.macs, core, option, float(plan.priority[0, place]),
            float(line.start[place]), float(line.end[place]), float(cycles[at]), float(traffic[at]), float(energy[at]),
            float(problem.alone[place]), float(problem.durations[at]), job.release_cycles,
            None if job.deadline_cycles == inf else job.deadline_cycles, job.after))
    figures = found.figures
    return GroupRecord(
        tuple(planned), found.score, found.bound.value, float(figures.makespan_cycles[0]), bound_cycles, bound_shares,
        float(figures.energy_pj[0]), int(figures.missed[0]), found.samples, found.seconds,
        tuple(line.events.tolist()), tuple(map(tuple, line.share.tolist())), tuple(map(tuple, found.trace.tolist())),
        found.interrupted)


def schedule_record(source: str, command: str, system: System, analysis: Analysis,  # noqa: PLR0913, PLR0917
                    groups: Sequence[GroupRecord], method: str, seed: int, terms: dict[str, Any]) -> ScheduleRecord:
    """Return the record of a schedule; ``terms`` are ``sharing``, ``objective`` and ``choose_mapping``."""
    cores = tuple(
        CoreRecord(core.name, core.accelerator.name, core.style, core.accelerator.compute_instances, int(kind))
        for core, kind in zip(system.cores, system.kind_of, strict=True))
    return ScheduleRecord(
        kind=FORMAT.kind, command=command, source=source, system=system.name, cores=cores, clock_mhz=system.clock_mhz,
        bandwidth=system.bandwidth, method=method, seed=seed, analysed_samples=analysis.samples,
        assumptions=system.assumptions, fronts=analysis.fronts, groups=tuple(groups), **terms)


@dataclass(frozen=True)
class MovedJob:
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
    otherwise: tuple[MovedJob, ...]
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
    every = [MovedJob(at, with_, float(cycles[place, at, with_]), float(traffic[place, at, with_]),
                       float(energy[place, at, with_]), float(score), float(makespan))
             for (at, with_), score, makespan in zip(moves, found.score, found.makespan_cycles, strict=True)]
    own = jobs[place].core
    best = {one.core: one for one in sorted(every, key=lambda one: -one.score)}
    queue = sorted((at for at, job in enumerate(jobs) if job.core == own), key=lambda at: jobs[at].start_cycles)
    kept = [one for one in every if one.core == own or one is best[one.core]]
    return Explained(group, place, tuple(queue), tuple(kept))
