"""What is to be scheduled: jobs with what each takes on each core, one shared bandwidth, and what is to be least."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, Rows, unknown_name

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sharing = Literal["proportional", "max-min", "critical-first"]
ScheduleObjective = Literal["makespan", "energy", "edp", "slowdown", "deadlines"]
SHARINGS = ("proportional", "max-min", "critical-first")
"""How running jobs share the bandwidth where they ask for more than there is."""
SCHEDULE_OBJECTIVES = ("makespan", "energy", "slowdown", "edp", "deadlines")


@dataclass(frozen=True)
class AnalysisTable:
    """The job analysis table (Kao 2022, 7.1.4), with a front of mappings where the text has one.

    Raises an `InputError` if shapes do not agree, or cycles within ``count`` are not positive, bytes or energies
    negative or infinite.
    """

    cycles: Floats
    traffic_bytes: Floats
    energy_pj: Floats
    """``cycles``, ``traffic_bytes`` and ``energy_pj``: ``(r, a, o)`` for ``r`` distinct jobs, ``a`` cores and ``o``
    mappings of a front: cycles with all the bandwidth that the job asks for, bytes to and from the shared memory, and
    energy. Infinite beyond ``count``."""
    count: Ints
    """``(r, a)``: mappings of the front, fastest first; 0 where the job does not fit that core."""

    def __post_init__(self) -> None:
        shape = self.cycles.shape
        if len(shape) != 3 or self.count.shape != shape[:2] or not 0 < shape[1] or not 0 < shape[2] \
                or self.traffic_bytes.shape != shape or self.energy_pj.shape != shape:
            raise InputError("table", "must have cycles, traffic and energy of (job, core, mapping) and a count of "
                             "(job, core)", (shape, self.count.shape))
        if self.count.size and (self.count.min() < 0 or self.count.max() > shape[2]):
            raise InputError("table.count", f"must be from 0 to {shape[2]}", self.count.tolist())
        for name, least in (("cycles", np.nextafter(0.0, 1.0)), ("traffic_bytes", 0.0), ("energy_pj", 0.0)):
            known = getattr(self, name)[self.within]
            wrong = ~((known >= least) & (known < np.inf))
            if wrong.any():
                rule = "positive and finite" if name == "cycles" else "finite and not negative"
                raise InputError(f"table.{name}", f"must be {rule}", float(known[wrong][0]))

    @cached_property
    def within(self) -> NDArray[np.bool_]:
        """``(r, a, o)``: which entries are mappings."""
        return np.asarray(np.arange(self.cycles.shape[2]) < self.count[:, :, None])


@dataclass(frozen=True)
class PlanGenomes(Rows):
    """Plans ``b`` of ``n`` jobs: on which core each runs, with which mapping, and when among the jobs of its core.

    Parameters
    ----------
    core, option
        ``(b, n)``: places in the table.
    priority
        ``(b, n)`` from 0, which is first, to 1.
    """

    core: Ints
    priority: Floats
    option: Ints

    def __getitem__(self, rows: slice) -> "PlanGenomes":
        """Return copies of some plans."""
        return self.take(rows)


@dataclass(frozen=True)
class Timeline:
    """What happens in one plan of ``n`` jobs on ``a`` cores, in cycles."""

    start: Floats
    end: Floats
    """``start`` and ``end``: ``(n)``."""
    core: Ints
    option: Ints
    """``core`` and ``option``: ``(n)``: where each job runs, and with which mapping."""
    events: Floats
    """``(e + 1)``: times, from 0 on, between which nothing begins or ends; the last is the makespan."""
    share: Floats
    """``(e, a)``: bytes a cycle that each core draws from each event to the next."""


def circle(waits: Sequence[Iterable[int]]) -> list[int]:
    """Return places of which each must come before the next, the first again at the end; empty where none are.

    ``waits`` says of each place for which it waits.
    """
    try:
        TopologicalSorter(dict(enumerate(waits))).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@dataclass(frozen=True)
class ScheduleProblem:
    """Run the ``n`` jobs of a group on cores that share one bandwidth.

    A core runs its jobs one by one, in the order of their priorities (equal ones by number); a job begins once the one
    before it on its core and all its predecessors have ended, and not before its release: until then its core waits. A
    job counts as no earlier than its predecessors, whatever its priority, so that every plan comes to an end.

    Raises an `InputError` if names are unknown, shapes do not agree, there is no bandwidth, a job fits no core, or
    orders form a circle.
    """

    table: AnalysisTable
    rows: Ints
    """``(n)``: which row of the table each job is."""
    bandwidth: float
    """Bytes a cycle to and from the shared memory."""
    release: Floats = field(default_factory=lambda: np.zeros(0))
    deadline: Floats = field(default_factory=lambda: np.zeros(0))
    """``release`` and ``deadline``: ``(n)``, in cycles; by default 0 and none."""
    before: Ints = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    """``(p, 2)``: each names a job and one that begins only after it has ended."""
    sharing: Sharing = "proportional"
    """How running jobs share the bandwidth (`tilewright.scheduling.simulate`)."""
    objective: ScheduleObjective = "makespan"
    """``makespan`` in cycles, ``energy`` in picojoules, ``edp``, their product; ``slowdown``, the most that a job
    takes, from its release to its end, as a multiple of what it takes alone at best; ``deadlines``: how many jobs
    end late, and, below one, how late the latest as a share of the makespan."""
    choose_mapping: bool = True
    """Whether a plan chooses among the mappings of a job; else the fastest is taken."""

    def __post_init__(self) -> None:
        if self.sharing not in SHARINGS:
            raise unknown_name("sharing", self.sharing, list(SHARINGS))
        if self.objective not in SCHEDULE_OBJECTIVES:
            raise unknown_name("objective", self.objective, list(SCHEDULE_OBJECTIVES))
        jobs = len(self.rows)
        if not jobs or self.rows.min() < 0 or self.rows.max() >= len(self.table.cycles):
            raise InputError("rows", f"must name rows of a table of {len(self.table.cycles)}, at least one",
                             self.rows.tolist()[:9])
        if not 0 < self.bandwidth < np.inf:
            raise InputError("bandwidth", "must be positive and finite, in bytes a cycle", self.bandwidth)
        for name, value in (("release", 0.0), ("deadline", np.inf)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(jobs, value))
            given = getattr(self, name)
            if given.shape != (jobs,) or not np.all(given >= 0) or (name == "release" and np.isinf(given).any()):
                raise InputError(name, f"must be {jobs} times in cycles, from 0 on", given.tolist()[:9])
        unfit = np.flatnonzero(self.counts.sum(axis=1) == 0)
        if len(unfit):
            raise InputError(f"jobs[{unfit[0]}]", "must fit a core", "none", "Give larger cores, or split the job")
        if self.before.shape != (len(self.before), 2) or (
                len(self.before) and not (0 <= self.before.min() and self.before.max() < jobs)):
            raise InputError("before", f"must be pairs of jobs from 0 to {jobs - 1}", self.before.tolist()[:9])
        _ = self.topological

    @property
    def jobs(self) -> int:
        """``n``."""
        return len(self.rows)

    @property
    def cores(self) -> int:
        """``a``."""
        return int(self.counts.shape[1])

    @cached_property
    def counts(self) -> Ints:
        """``(n, a)``: mappings that each job may choose among on each core."""
        counts = self.table.count if self.choose_mapping else np.minimum(self.table.count, 1)
        return np.ascontiguousarray(counts[self.rows])

    @cached_property
    def of_jobs(self) -> tuple[Floats, Floats, Floats]:
        """Cycles, bytes and picojoules ``(n, a, o)``; infinite where there is no choice."""
        most = int(self.counts.max())
        open_ = np.arange(most) < self.counts[:, :, None]
        whole = (self.table.cycles, self.table.traffic_bytes, self.table.energy_pj)
        cycles, traffic, energy = (np.where(open_, rows[self.rows][:, :, :most], np.inf) for rows in whole)
        return cycles, traffic, energy

    @cached_property
    def durations(self) -> Floats:
        """``(n, a, o)``: cycles of each job alone with all the bandwidth; infinite where there is no choice."""
        cycles, traffic, _ = self.of_jobs
        return np.maximum(cycles, traffic / self.bandwidth)

    @cached_property
    def alone(self) -> Floats:
        """``(n)``: the fewest cycles that each job can take."""
        return np.asarray(self.durations.min(axis=(1, 2)))

    @cached_property
    def topological(self) -> Ints:
        """``(n)``: the jobs, each after its predecessors; among those that may stand next the first by number.

        Jobs stand by how many others, one after the other, must come before them.
        """
        level = np.zeros(self.jobs, dtype=np.int64)
        for _ in range(self.jobs):
            raised = level.copy()
            np.maximum.at(raised, self.before[:, 1], level[self.before[:, 0]] + 1)
            if np.array_equal(raised, level):
                return np.argsort(level, kind="stable")
            level = raised
        waits = [self.before[self.before[:, 1] == job, 0].tolist() for job in range(self.jobs)]
        raise InputError("before", "must not form a circle", " before ".join(map(str, circle(waits))))

    @cached_property
    def successors(self) -> tuple[Ints, Ints]:
        """Where the successors of each job begin ``(n + 1)``, and all of them one after the other ``(p)``."""
        order = np.argsort(self.before[:, 0], kind="stable")
        starts = np.searchsorted(self.before[order, 0], np.arange(self.jobs + 1))
        return starts.astype(np.int64), np.ascontiguousarray(self.before[order, 1])

    @cached_property
    def heads(self) -> Floats:
        """``(n)``: before what time no job can begin, for its release and its predecessors."""
        heads, (starts, successors) = self.release.copy(), self.successors
        for job in self.topological:
            after = successors[starts[job]:starts[job + 1]]
            heads[after] = np.maximum(heads[after], heads[job] + self.alone[job])
        return heads

    @cached_property
    def tails(self) -> Floats:
        """``(n)``: the fewest cycles from the end of each job to that of the last that must come after it."""
        tails, (starts, successors) = np.zeros(self.jobs), self.successors
        for job in self.topological[::-1]:
            after = successors[starts[job]:starts[job + 1]]
            tails[job] = (tails[after] + self.alone[after]).max(initial=0.0)
        return tails

    def drawn(self, rng: Generator, count: int) -> PlanGenomes:
        """Return ``count`` random plans: each job on any core that it fits, with any mapping, at any priority."""
        shape = (count, self.jobs)
        core = self.cores_at(rng.random(shape))
        return PlanGenomes(core, rng.random(shape), self.options_at(core, rng.random(shape)))

    def cores_at(self, shares: Floats) -> Ints:
        """Return the core ``(b, n)`` at each share, from 0 to 1, of those that the job fits."""
        fits = self.counts > 0
        place = np.minimum(shares * fits.sum(axis=1), fits.sum(axis=1) - 1).astype(np.int64)
        allowed = np.argsort(~fits, axis=1, kind="stable")
        return np.asarray(allowed[np.arange(self.jobs), place])

    def options_at(self, core: Ints, shares: Floats) -> Ints:
        """Return the mapping ``(b, n)`` at each share, from 0 to 1, of those that the job has on its core."""
        count = self.counts[np.arange(self.jobs), core]
        return np.minimum(shares * count, np.maximum(count - 1, 0)).astype(np.int64)

    def mended(self, genomes: PlanGenomes) -> PlanGenomes:
        """Return the plans with options that their cores have: those beyond become the last."""
        count = self.counts[np.arange(self.jobs), genomes.core]
        return PlanGenomes(genomes.core, genomes.priority, np.clip(genomes.option, 0, np.maximum(count - 1, 0)))
