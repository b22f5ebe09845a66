"""The job analysis table: for every distinct job and machine the front of its mappings (Kao 2022, 7.1.4).

A front is that of cycles with all the bandwidth asked for, of bytes to and from the shared memory, and of energy. The
samples of a job on a machine are shared by searches for the fewest cycles, for the fewest bytes, and for both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.cost import VectorShare
from tilewright.jobs import Job, Runner
from tilewright.mapping import Mapping as Nest
from tilewright.scheduling.jobs import LayerJob
from tilewright.scheduling.problem import AnalysisTable, Floats
from tilewright.scheduling.system import Core, System
from tilewright.search import Watch, joined, search
from tilewright.store import LevelRecord, level_records, machine_fingerprint, mapping_from, operator_fingerprint
from tilewright.workload import Operator

JOB_STUDY = "job-analysis"
JOB_SAMPLES = 2_000
LEGS = (("latency", 0.4), ("0.5*latency+0.5*traffic", 0.3), ("traffic", 0.3))
"""What the samples are searched for, and their shares."""
OPTIONS = {"enumerate": False}
"""To count a space takes longer than to search it so briefly."""
METRICS = ("latency", "traffic", "energy")
Point = tuple[float, float, float]
"""A mapping of a front: cycles with all the bandwidth that it asks for, bytes, picojoules."""
MOST_POINTS = 16
"""Mappings of a front that are kept: the fastest, those of the fewest bytes and the least energy, and between them."""


@dataclass(frozen=True)
class Analysis:
    """What jobs take on the cores of a system."""

    system: System
    fronts: tuple[tuple[tuple[Point, ...], ...], ...]
    """By distinct job and kind of core (`System.kinds`): cycles, bytes and picojoules of its mappings, the fastest
    first; a job that runs several times takes as much as all its runs, and its vector work besides."""
    rows: NDArray[np.int64]
    """``(n)``: the row of the table of each job."""
    kept: tuple[tuple[Mapping[str, Any], ...], ...]
    """The same as it is kept: ``points`` and ``mappings`` of one run, or ``why`` there are none."""
    samples: int
    """Mappings scored in this run; 0 where all was kept."""

    @cached_property
    def table(self) -> AnalysisTable:
        """What each distinct job takes on each core."""
        return front_table(self.fronts, self.system.kind_of.tolist())

    def mapping(self, job: int, core: int, option: int) -> Nest:
        """Return a mapping of a front."""
        return mapping_from(LevelRecord(*level) for level in self._front(job, core)["mappings"][option])

    def _front(self, job: int, core: int) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.kept[int(self.rows[job])][int(self.system.kind_of[core])]
        return found


def analyse(jobs: Sequence[LayerJob], system: System, *, samples: int = JOB_SAMPLES, seed: int = 0,
            runner: Runner | None = None) -> Analysis:
    """Return what each job takes on each core; what the runner's keeper knows is not searched again.

    Raises
    ------
    InputError
        If there is no job, too few samples, or a job fits no core: with the reason.
    KeyboardInterrupt
        If it was stopped; what was analysed until then is kept.
    """
    if not jobs:
        raise InputError("jobs", "must be at least one", "none")
    if samples < len(LEGS):
        raise InputError("samples", f"must be at least {len(LEGS)} for each job and core", samples)
    places: dict[object, int] = {}
    rows = [places.setdefault((job.operator.signature, job.count, job.vector), len(places)) for job in jobs]
    first = [jobs[rows.index(row)] for row in range(len(places))]
    searched = list({job.operator.signature: job.operator for job in first}.values())
    runner = runner or Runner("jobs")
    asked = [_job(operator, core, samples, seed) for operator in searched for core in system.kinds]
    begun = runner.samples
    found = runner.run(asked)
    kinds = len(system.kinds)
    fronts = {operator.signature: tuple(found[place * kinds:(place + 1) * kinds])
              for place, operator in enumerate(searched)}
    for job in first:
        reasons = [front["why"] for front in fronts[job.operator.signature]]
        if all(reasons):
            raise InputError(f"job {job.name}", "must fit a core", f"no mapping on any of {kinds} kinds", "; ".join(
                f"{core.name}: {why}" for core, why in zip(system.kinds, reasons, strict=True)))
    whole = tuple(fronts[job.operator.signature] for job in first)
    points = tuple(tuple(_points(job, front["points"], share) for front, share in zip(
        of_job, job.vector or (VectorShare(),) * kinds, strict=True)) for job, of_job in zip(first, whole, strict=True))
    return Analysis(system, points, np.array(rows, dtype=np.int64), whole, runner.samples - begun)


def _points(job: LayerJob, points: Sequence[Point], vector: VectorShare) -> tuple[Point, ...]:
    """Return what mappings of one run take in all runs, and the vector work of the job besides."""
    return tuple((job.count * cycles + vector.latency_cycles, job.count * moved + vector.traffic_bytes,
                  job.count * energy + vector.energy_pj) for cycles, moved, energy in points)


def front_table(fronts: Sequence[Sequence[Sequence[Point]]], kind_of: Sequence[int]) -> AnalysisTable:
    """Return the table of fronts by distinct job and kind of core, for cores of these kinds."""
    count = np.array([[len(points) for points in row] for row in fronts], dtype=np.int64)
    figures = np.full((3, *count.shape, max(1, int(count.max()))), np.inf)
    for row, of_job in enumerate(fronts):
        for kind, points in enumerate(of_job):
            if points:
                figures[:, row, kind, :len(points)] = np.array(points).T
    cycles, traffic, energy = figures[:, :, list(kind_of)]
    return AnalysisTable(cycles, traffic, energy, count[:, list(kind_of)])


def _job(operator: Operator, core: Core, samples: int, seed: int) -> Job[dict[str, Any]]:
    key = {"operator": operator_fingerprint(operator), "accelerator": machine_fingerprint(core.accelerator),
           "dataflow": core.dataflow, "samples": samples, "seed": seed}
    return Job(key, _searched, samples=lambda value: int(value["samples"]), inputs=(operator, core, samples, seed))


def _searched(operator: Operator, core: Core, samples: int, seed: int) -> dict[str, Any]:
    """Return the front of one job on one core as plain data: points, mappings, samples; or why there is none."""
    try:
        space = core.space(operator)
        space.refuse_empty(alone=True)
    except InputError as error:
        return {"points": [], "mappings": [], "samples": 0, "why": str(error)}
    fronts, spent = [], 0
    for place, (objective, share) in enumerate(LEGS):
        result = search(operator, core.accelerator, objective=objective, budget=max(1, int(share * samples)),
                        seed=(seed, place), space=space, options=OPTIONS, front=METRICS, watch=Watch(threads=1))
        spent += result.samples
        fronts.append(result.front)
    front = joined(fronts)
    if front is None or not front.points:
        return {"points": [], "mappings": [], "samples": spent, "why": f"no legal mapping in {spent:,} samples"}
    points = [front.points[place] for place in _few(np.array([point.values for point in front.points]), MOST_POINTS)]
    return {"points": [list(point.values) for point in points], "samples": spent, "why": "",
            "mappings": [[astuple(level) for level in level_records(point.mapping)] for point in points]}


def _few(values: Floats, most: int) -> NDArray[np.intp]:
    """Return which points of a front to keep, in its order: where there are too many, those apart from each other.

    The ends stay: the fewest cycles, bytes, picojoules, and the least product of cycles and picojoules.
    """
    if len(values) <= most:
        return np.arange(len(values))
    near = np.log(values / values.min(axis=0))
    ends = [int(near[:, at].argmin()) for at in range(3)] + [int((near[:, 0] + near[:, 2]).argmin())]
    chosen = list(dict.fromkeys(ends))
    while len(chosen) < most:
        apart = np.abs(near[:, None] - near[None, chosen]).max(axis=2).min(axis=1)
        chosen.append(int(apart.argmax()))
    return np.array(sorted(chosen))
