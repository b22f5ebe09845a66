"""What studies of MAGMA have in common: parts of its systems, groups scheduled by many methods, the oracle's word."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from statistics import geometric_mean
from typing import Any

import numpy as np

from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.mapping import dump_mapping
from tilewright.reproduce.claims import Claim, Judgement, listed
from tilewright.reproduce.searching import oracle_cell
from tilewright.reproduce.study import Cell, Setting, Table, Value
from tilewright.scheduling import (
    Analysis,
    LayerJob,
    Scheduled,
    ScheduleProblem,
    System,
    analyse,
    group_problem,
    load_system,
    schedule,
    task_groups,
)

MAGMA, HERALD = "magma", "herald-like"
HAND = (HERALD, "ai-mt-like")
BLACK_BOX = ("ga", "de", "cma-es", "tbpsa", "pso")
"""Optimisers of table 7.3 that know numbers alone; A2C and PPO are left out."""
OURS = ("list", "auto")
METHODS = (MAGMA, *HAND, *BLACK_BOX, *OURS)
FEW = {"samples": 1_600, "mappings": 60, "jobs": 40}
WHOLE = {"samples": 10_000, "mappings": 2_000, "jobs": 100}
"""What quick and full runs spend: plans of a method, mappings of a job and core, jobs of a group."""
TENTHS = 10
"""Parts of a plan's time for which is told what jobs ask for, and have, of the bandwidth."""
NOTES = (
    "Jobs are drawn from the zoo, as the released lists cannot be shipped; batches and sequences are our assumption. "
    "Two genomes and proportional sharing, as in the text. The rules of herald-like and ai-mt-like are ours.",)
Place = tuple[str, str, str]
"""Task, system, bandwidth."""


def only(name: str, cores: Iterable[int]) -> System:
    """Return a known system with only some of its cores."""
    system = load_system(name)
    return replace(system, cores=tuple(system.cores[place] for place in cores))


def sweep(tasks: Iterable[str], widths: Mapping[str, Iterable[int]]) -> tuple[Place, ...]:
    """Return the places of tasks on systems, each at some GB/s."""
    return tuple((task, name, f"{width}GB/s") for task, (name, those) in product(tasks, widths.items())
                 for width in those)


@lru_cache(maxsize=16)
def analysed(task: str, name: str, groups: int, jobs: int, mappings: int,  # noqa: PLR0913, PLR0917
             seed: int) -> tuple[tuple[tuple[LayerJob, ...], ...], Analysis]:
    """Return groups of a task, and what their jobs take on a system at so many mappings each."""
    drawn = task_groups(task, groups, seed, jobs)
    return drawn, analyse([job for group in drawn for job in group], load_system(name), samples=mappings,
                          runner=Runner(workers=1))


def as_published(jobs: Sequence[LayerJob], rows: Sequence[int], analysis: Analysis, place: Place) -> ScheduleProblem:
    """Return the problem of a group with two genomes and proportional sharing."""
    bandwidth = load_system(place[1]).with_bandwidth(place[2]).bandwidth
    return group_problem(jobs, rows, analysis, bandwidth, choose_mapping=False)


def flops(jobs: Sequence[LayerJob], system: System) -> float:
    """Return what jobs take in GFLOP/s, were it done in a cycle."""
    return 2e-3 * system.clock_mhz * sum(job.macs for job in jobs)


@lru_cache(maxsize=8)
def first_job(task: str, jobs: int) -> LayerJob:
    """Return the first job of a group of the first seed."""
    return task_groups(task, 1, 0, jobs)[0][0]


def cell_key(place: Place, seed: int, setting: Setting) -> dict[str, Any]:
    """Return what tells the cells of studies of MAGMA apart."""
    task, name, bandwidth = place
    return {"task": task, "system": name, "bandwidth": bandwidth, "jobs": setting["jobs"], "plans": setting["samples"],
            "mappings": setting["mappings"], "seed": seed}


def first_mapping(jobs: Sequence[LayerJob], analysis: Analysis) -> str:
    """Return the fastest mapping of the first job on the first core, as YAML."""
    return dump_mapping(analysis.mapping(0, 0, 0), jobs[0].operator, analysis.system.cores[0].accelerator)


def _cell(place: Place, seed: int, setting: Setting, methods: Sequence[str]) -> Cell:
    def compute() -> dict[str, Any]:
        (jobs,), analysis = analysed(*place[:2], 1, setting["jobs"], setting["mappings"], seed)
        problem, rate = as_published(jobs, analysis.rows.tolist(), analysis, place), flops(jobs, analysis.system)
        runs = {method: schedule(problem, method, samples=setting["samples"], seed=seed) for method in methods}
        cycles, moved = (rows[np.isfinite(rows)] for rows in problem.of_jobs[:2])
        return {"gflops": {method: rate / run.score for method, run in runs.items()},
                "bound_gflops": rate / max(run.bound.value for run in runs.values()),
                "alone": {"cycles": float(cycles.mean()), "bytes": float((moved / cycles).mean())},
                "asked": {method: tenths(runs[method])[0] for method in (MAGMA, HERALD) if method in runs},
                "drawn": {method: tenths(runs[method])[1] for method in (MAGMA, HERALD) if method in runs},
                "samples": sum(run.samples for run in runs.values()) + analysis.samples,
                "mapping": first_mapping(jobs, analysis)}

    return Cell(cell_key(place, seed, setting) | {"methods": list(methods)}, compute,
                lambda value: int(value["samples"]))


def tenths(run: Scheduled) -> tuple[list[float], list[float]]:
    """Return what running jobs ask for, and what they have, in each tenth of a plan's time, as parts of the bandwidth.

    >>> import numpy as np
    >>> from tilewright.scheduling import AnalysisTable, ScheduleProblem
    >>> told = np.full((1, 1, 1), 10.0)
    >>> problem = ScheduleProblem(AnalysisTable(told, 4 * told, told, np.array([[1]])), np.array([0]), 2.0)
    >>> [set(rows) for rows in tenths(schedule(problem, "list"))]
    [{2.0}, {1.0}]
    """
    line, problem = run.timeline, run.problem
    at = np.arange(problem.jobs), line.core, line.option
    cycles, moved, _ = problem.of_jobs
    edges = np.linspace(0.0, line.events[-1], TENTHS + 1)
    running = np.minimum(line.end[:, None], edges[1:]) - np.maximum(line.start[:, None], edges[:-1])
    asked = (moved[at] / cycles[at]) @ np.maximum(running, 0.0)
    had = np.concatenate([[0.0], np.cumsum(np.diff(line.events) * line.share.sum(axis=1))])
    whole = problem.bandwidth * line.events[-1] / TENTHS
    told = asked / whole, np.diff(np.interp(edges, line.events, had)) / whole
    first, second = ([round(float(each), 9) for each in rows] for rows in told)
    return first, second


def oracles(runner: Runner, asked: Sequence[tuple[Cell, LayerJob, Accelerator, Mapping[str, Any]]]) -> str:
    """Return what the oracle says of a mapping of each cell."""
    told = runner.run([oracle_cell(cell.key or {}, job.operator, machine, value["mapping"])
                       for cell, job, machine, value in asked])
    right = sum(bool(one["agrees"]) for one in told)
    return f"The oracle confirms {right} of {len(told)} mappings." + (" It disagrees." if right < len(told) else "")


@dataclass(frozen=True)
class Groups:
    """What came of groups: the values of cells by place and seed, and what the oracle says of a mapping of each place.

    A cell tells ``mapping``: that of its first job on the first core.
    """

    values: Mapping[tuple[Place, int], Any]
    seeds: range
    oracle: str

    @classmethod
    def measured(cls, runner: Runner, setting: Setting, places: Iterable[Place],
                 cell_of: Callable[[Place, int], Cell]) -> "Groups":
        """Return the values of cells; the oracle is asked of those of the first seed."""
        seeds = range(setting.seeds)
        cells = {(place, seed): cell_of(place, seed) for place in places for seed in seeds}
        values = dict(zip(cells, runner.run([*cells.values()]), strict=True))
        return cls(values, seeds, oracles(runner, [
            (cell, first_job(place[0], (cell.key or {})["jobs"]), load_system(place[1]).cores[0].accelerator,
             values[place, seed]) for (place, seed), cell in cells.items() if seed == 0]))

    @classmethod
    def scheduled(cls, places: Iterable[Place], setting: Setting, runner: Runner,
                  methods: Sequence[str] = METHODS) -> "Groups":
        """Return what methods reach; two genomes, proportional sharing."""
        return cls.measured(runner, setting, places, lambda place, seed: _cell(place, seed, setting, methods))

    def lead(self, places: Iterable[Place], seed: int, others: Sequence[str]) -> float:
        """Return how many times the throughput of others MAGMA has: the geometric mean over places and methods."""
        rates = [self.values[place, seed]["gflops"] for place in places]
        return geometric_mean(rate[MAGMA] / rate[other] for rate in rates for other in others)

    def leads(self, claim: Claim, places: Iterable[Place], others: Sequence[str]) -> Judgement:
        """Judge a claim of how far MAGMA leads."""
        places = list(places)
        return listed(claim, (self.lead(places, seed, others) for seed in self.seeds), "{:.3g}x")

    def shares(self, claim: Claim, share: Callable[[int], float]) -> Judgement:
        """Judge a claim of a share, of which a function tells that of each seed."""
        return listed(claim, map(share, self.seeds))

    def beside(self, places: Iterable[Place]) -> str:
        """Return how far MAGMA is ahead of a list schedule and of auto, which the paper does not have."""
        places = list(places)
        told = [f"of {other} {min(ours):.3g}x to {max(ours):.3g}x" for other in OURS
                for ours in [[self.lead(places, seed, (other,)) for seed in self.seeds]]]
        return f"MAGMA has the throughput {' and '.join(told)} (geometric means over places, by seed)."

    def throughput(self, published: Mapping[Place, float], methods: Sequence[str] = METHODS) -> Table:
        """Return the table of throughputs, of the first seed."""
        rows: list[tuple[Value, ...]] = []
        for (place, seed), value in self.values.items():
            if seed == 0:
                rows.append((*place, published.get(place), *(value["gflops"][method] for method in methods),
                             value["bound_gflops"], value["alone"]["cycles"], value["alone"]["bytes"]))
        return Table("throughput", "Throughput in GFLOP/s (first seed)", (
            "Task", "System", "Bandwidth", "published", *methods, "bound", "cycles alone", "bytes a cycle alone"),
            tuple(rows), ("Published: MAGMA's, on other jobs. Bound: no schedule of these jobs does better. Alone: the "
                          "mean over jobs and cores, with all the bandwidth that they ask for.",))
