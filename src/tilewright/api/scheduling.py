"""Jobs of many networks on many accelerators: what is asked for, and what came of it (Kao 2022, chapter 7)."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

import tilewright.report
from tilewright.api.flags import command_line, takes
from tilewright.api.inputs import Network, each_network, load_layers, load_network, name_of, pick_operator
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.plan_options import ScheduleOptions
from tilewright.api.sheets import OnSheet
from tilewright.api.tasks import budget_text, check_seed, cores, counts_vector, read_budget
from tilewright.base import InputError, read_text, whole_of, write_whole
from tilewright.jobs import Runner, Stop, interruptible, present_stop
from tilewright.scheduling import (
    GROUP,
    JOB_STUDY,
    SCHEDULERS,
    Analysis,
    GroupRecord,
    KnownPlan,
    LayerJob,
    PlanGenomes,
    PlannedJob,
    ScheduleProblem,
    ScheduleRecord,
    System,
    adopted,
    analyse,
    check_order,
    chopped,
    explained,
    group_problem,
    group_record,
    load_system,
    network_jobs,
    read_schedule,
    read_time,
    schedule_bound,
    schedule_record,
    task_groups,
)
from tilewright.scheduling import schedule as schedule_group
from tilewright.search import Budget
from tilewright.store import Results, machine_fingerprint
from tilewright.workload import Operator

COLUMNS = ("layer", "job", "count", "arrival", "deadline", "after")


def is_job_list(text: str) -> bool:
    """Whether a file's text is such a list: its head names a column ``layer``, and not M, N and K as SCALE-Sim's."""
    head = {cell.strip().lower() for cell in text.lstrip("\ufeff").partition("\n")[0].split(",")}
    return "layer" in head and not {"m", "n", "k"} <= head


def read_jobs(path: str | Path, clock_mhz: float, bind: Mapping[str, int | str] | None = None) -> tuple[LayerJob, ...]:
    """Return the jobs of a list.

    Its columns are ``layer``, an operator in short (``matmul:M=20 N=512 K=128``) or ``NETWORK/LAYER``; and, where
    wanted, ``job``, its name, ``count``, times that it runs, ``arrival`` and ``deadline``, times with units, and
    ``after``, the names of jobs that it waits for.

    Raises an `InputError` with file and line, where something is wrong, or jobs wait for one another.
    """
    label = Path(path).name
    rows = csv.DictReader(read_text(path).lstrip("\ufeff").splitlines(), skipinitialspace=True)
    heads = [str(head).strip().lower() for head in rows.fieldnames or ()]
    for head in heads:
        if head not in COLUMNS:
            raise InputError(f"{label}:1", f"must have the columns {', '.join(COLUMNS)}", head or "nothing")
    rows.fieldnames = heads
    jobs: list[LayerJob] = []
    waits: list[tuple[int, str]] = []
    for row in rows:
        cells = {name: (value or "").strip() for name, value in row.items() if isinstance(name, str)}
        if None in row:
            raise InputError(f"{label}:{rows.line_num}", f"must have at most {len(heads)} cells",
                             ", ".join(row[None]), 'Put texts with commas between quotation marks ("")')
        if any(cells.values()):
            jobs.append(_job(f"{label}:{rows.line_num}", len(jobs), cells, clock_mhz, bind))
            waits.append((rows.line_num, cells.get("after", "")))
    if not jobs:
        raise InputError(f"{label}:1", "must have at least one job below its head", "none")
    return _ordered(label, jobs, waits)


def _job(where: str, place: int, cells: Mapping[str, str], clock_mhz: float,
         bind: Mapping[str, int | str] | None) -> LayerJob:
    if not cells.get("layer"):
        raise InputError(f"{where} layer", "must be given", None, "For example matmul:M=20 N=512 K=128")
    count = whole_of(cells.get("count") or "1")
    if count is None:
        raise InputError(f"{where} count", "must be a positive integer", cells["count"])
    try:
        network, operator = _operator(cells["layer"], bind)
    except InputError as error:
        kind = "" if error.field == "layer" else f" {error.field}"
        raise InputError(f"{where} layer{kind}", error.rule, error.given, error.mend) from None
    times = {name: read_time(cells[name], clock_mhz, f"{where} {name}") for name in ("arrival", "deadline")
             if cells.get(name)}
    return LayerJob(cells.get("job") or f"{cells['layer']}#{place}", operator, network, count, (),
                    times.get("arrival", 0.0), times.get("deadline", float("inf")))


def _operator(text: str, bind: Mapping[str, int | str] | None) -> tuple[str, Operator]:
    network, sign, layer = text.partition("/")
    if not sign or ":" in layer:
        return "", pick_operator(text)
    graph = load_network(network, bind)
    return graph.name, pick_operator(graph, layer)


def _ordered(label: str, jobs: list[LayerJob], waits: list[tuple[int, str]]) -> tuple[LayerJob, ...]:
    """Return the jobs with the places of those that they wait for."""
    places = {job.name: place for place, job in enumerate(jobs)}
    if len(places) < len(jobs):
        twice = next(job.name for place, job in enumerate(jobs) if places[job.name] != place)
        raise InputError(f"{label} job", "must have a name of its own", twice)
    found = []
    for job, (line, names) in zip(jobs, waits, strict=True):
        unknown = [name for name in names.split() if name not in places]
        if unknown:
            raise InputError(f"{label}:{line} after", "must name jobs of the list, with spaces between", unknown[0])
        found.append(replace(job, after=tuple(places[name] for name in names.split())))
    check_order(found)
    return tuple(found)


SIGN = "*"
PLANS, WARM = "schedule-plans", "schedule-warm"
"""What of the store holds schedules, and plans to begin from."""


@dataclass(frozen=True, repr=False)
class SchedulePlan(OnSheet):
    """What came of scheduling: which job runs where, when and with which mapping; all of it in ``record``.

    Examples
    --------
    >>> import tilewright as tw
    >>> plan = tw.schedule("ncf", system="s2", bandwidth="16GB/s", budget=200, mappings=60, store=False)
    >>> plan.makespan_cycles >= plan.bound_cycles, plan.jobs[0].core
    (True, 'HB32.1')
    """

    record: ScheduleRecord
    place: str = field(default="", compare=False)
    """Where it is kept; empty where it is not."""

    @property
    def makespan_cycles(self) -> float:
        """Cycles until the last job has ended."""
        return self.record.makespan_cycles

    @property
    def bound_cycles(self) -> float:
        """What no schedule of these mappings is below."""
        return self.record.bound_cycles

    @property
    def gap(self) -> float:
        """By which share the objective is at most above the best there is."""
        return self.record.gap

    @property
    def gflops(self) -> float:
        """Throughput: 10^9 operations a second, two for each multiply-accumulate."""
        return self.record.gflops

    @property
    def jobs(self) -> tuple["JobPlan", ...]:
        """The jobs of all groups, with the names of their cores."""
        return tuple(JobPlan(job, self.record.cores[job.core].name) for job in self.record.jobs)

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped early."""
        return self.record.interrupted

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.schedule_sheet(self.record)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return self.record.plain()

    def write(self, path: str | Path) -> Path:
        """Write all of it as JSON, which `open_schedule` reads; folders are made."""
        return write_whole(ready_place(path), json.dumps(self.plain, ensure_ascii=False, allow_nan=False) + "\n")

    def explain(self, job: int) -> "tilewright.report.Sheet":
        """Return why a job runs there, then, and at that share; an `InputError` where there is no such job."""
        return tilewright.report.explanation_sheet(self.record, job, explained(self.record, job))


@dataclass(frozen=True)
class JobPlan:
    """A job of a schedule: where (``core``) and when it runs; everything else of it is in ``planned``."""

    planned: PlannedJob
    core: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.planned, name)


def open_schedule(path: str | Path) -> SchedulePlan:
    """Return the schedule in a JSON file; an `InputError` where it holds none."""
    return SchedulePlan(read_schedule(read_text(path), Path(path).name), str(path))


@takes(ScheduleOptions, raises=", or a job fits no core")
def schedule(asked: ScheduleOptions) -> SchedulePlan:
    """Find which job runs on which core, when, and with which mapping; and a bound.

    No schedule of the mappings that were found for the jobs is below the bound.

    Where ``out`` names a folder, the same call later goes on from what had been searched, and comes to the same end.
    Ctrl-C ends it and returns what was found, once all jobs are analysed.

    Examples
    --------
    >>> import tilewright as tw
    >>> plan = tw.schedule(task="recom", system="s1", group_size=8, budget=200, mappings=60, store=False)
    >>> len(plan.jobs), plan.gap < 1
    (8, True)
    """
    if asked.system is None:
        raise InputError("--system", "must be given", None, "For example s2; see: tilewright list systems")
    system = load_system(asked.system)
    if asked.bandwidth is not None:
        system = system.with_bandwidth(asked.bandwidth)
    budget = read_budget(asked.budget)
    check_seed(asked.seed)
    counted = system if counts_vector(asked.vector) else None
    source, groups = _jobs(asked, system, counted)
    system = _told(system, groups, counted is not None)
    SCHEDULERS.get(asked.method)
    ready_cache()
    stop = asked.stop or present_stop()
    with interruptible(stop):
        with _stored(asked, JOB_STUDY) as kept:
            runner = Runner("jobs", workers=asked.workers, on=asked.on, keeper=kept, observer=asked.told, stop=stop)
            analysis = analyse([job for group in groups for job in group], system, samples=asked.mappings,
                               seed=asked.seed, runner=runner)
        found = list(_scheduled(asked, system, budget, groups, analysis, stop))
    if not found:
        raise KeyboardInterrupt
    record = schedule_record(source, _command(asked, budget), system, analysis, found, asked.method, asked.seed,
                             _terms(asked))
    return SchedulePlan(record, _keep(asked, record))


def _terms(asked: ScheduleOptions) -> dict[str, Any]:
    return {"sharing": asked.sharing, "objective": asked.objective, "choose_mapping": not asked.fastest}


def _scheduled(asked: ScheduleOptions, system: System, budget: Budget,  # noqa: PLR0913, PLR0917
               groups: Sequence[Sequence[LayerJob]], analysis: Analysis, stop: Stop) -> Iterator[GroupRecord]:
    """Schedule groups one after the other, until all are or it is stopped."""
    begin, first = _Beginning(asked, system), 0
    for number, jobs in enumerate(groups):
        rows = analysis.rows[first:first + len(jobs)].tolist()
        first += len(jobs)
        problem = group_problem(jobs, rows, analysis, system.bandwidth, **_terms(asked))
        bound = schedule_bound(problem)
        time = bound if asked.objective == "makespan" else schedule_bound(replace(problem, objective="makespan"))
        found = schedule_group(
            problem, asked.method, samples=budget.samples, seconds=budget.seconds, seed=asked.seed + number,
            options=asked.options, warm=begin.plan(problem), bound=bound, threads=cores(), told=asked.told, stop=stop,
            checkpoint=None if asked.out is None else Path(asked.out) / f"group-{number:04d}.npz")
        if isfinite(found.score):
            begin.learn(KnownPlan.of(problem, found.plan))
            yield group_record(jobs, found, time.value, time.shares)
        if stop.is_set():
            return


def _told(system: System, groups: Sequence[Sequence[LayerJob]], counted: bool) -> System:
    """Return the system with what its schedules assume of vector work."""
    lines = ["Vector work is left out."]
    if counted and any(job.vector for group in groups for job in group):
        lines = ["Vector work is done in the job of the layer whose results it takes.", *dict.fromkeys(
            f"{core.accelerator.name}: {core.accelerator.vector_assumption}" for core in system.kinds
            if core.accelerator.vector_assumption)]
    elif counted:
        lines = ["No job has vector work (a layer in a list of jobs is alone)."]
    return replace(system, assumptions=(*system.assumptions, *lines))


def _jobs(asked: ScheduleOptions, system: System, counted: System | None,
          ) -> tuple[str, tuple[tuple[LayerJob, ...], ...]]:
    """Return what is to be scheduled in words, and its groups, with vector work where its system is ``counted``."""
    given = list(asked.networks.items()) if isinstance(asked.networks, Mapping) else [
        _times(one) for one in each_network(asked.networks)]
    if asked.task is not None:
        timed = [name for name in ("keep_order", "arrival", "deadline", "bind") if getattr(asked, name)]
        if given or timed:
            raise InputError("--task", "must come without networks, orders and times", asked.task,
                             f"Leave {timed[0] if timed else 'the networks'} out, or --task")
        groups = task_groups(asked.task, asked.groups, asked.seed, GROUP if asked.group_size is None
                             else asked.group_size, counted)
        return f"{asked.task} ({len(groups)} x {len(groups[0])} jobs)", groups
    if not given:
        raise InputError("networks", "must be given, unless --task is", None,
                         "For example tilewright schedule resnet50 --system s2")
    if asked.groups != 1:
        raise InputError("--groups", "must come with --task", asked.groups, "--group-size chops networks into groups")
    lists = [str(one) for one, _ in given if _is_list(one)]
    if lists:
        if len(given) > 1 or asked.arrival or asked.deadline or asked.keep_order:
            raise InputError(lists[0], "must come alone: a list of jobs says when they come, and what they wait for",
                             None, "Write it into the columns arrival, deadline and after")
        return Path(lists[0]).name, chopped(read_jobs(lists[0], system.clock_mhz, asked.bind), asked.group_size)
    times = {what: {name: read_time(text, system.clock_mhz, f"{what} {name}") for name, text in (given or {}).items()}
             for what, given in (("arrival", asked.arrival), ("deadline", asked.deadline))}
    graphs = [(load_layers(one, asked.bind), count) for one, count in given]
    jobs = network_jobs(graphs, keep_order=asked.keep_order, release=times["arrival"], deadline=times["deadline"],
                        system=counted)
    check_order(jobs)
    return ", ".join(graph.name + (f" x {count}" if count > 1 else "") for graph, count in graphs), chopped(
        jobs, asked.group_size)


def _times(one: Network) -> tuple[Network, int]:
    """Return a network, and how often it runs."""
    name, sign, text = one.rpartition(SIGN) if isinstance(one, str) else ("", "", "")
    if not sign:
        return one, 1
    count = whole_of(text, 1, 10_000)
    if count is None:
        raise InputError("networks", "must have a whole number of runs from 1 to 10000", str(one),
                         "For example bert-base:sequence=20*4")
    return name, count


def _is_list(one: object) -> bool:
    path = Path(one) if isinstance(one, str | Path) else Path()
    with suppress(OSError, ValueError):
        return path.suffix.lower() == ".csv" and path.is_file() and is_job_list(read_text(path))
    return False


def _command(asked: ScheduleOptions, budget: Budget) -> str:
    given = asked.networks.items() if isinstance(asked.networks, Mapping) else (
        _times(one) for one in each_network(asked.networks))
    names = [name_of(one) + (f"{SIGN}{count}" if count != 1 else "") for one, count in given]
    system = asked.system.name if isinstance(asked.system, System) else str(asked.system)
    return command_line("schedule", asked, networks=names, system=system, budget=budget_text(budget))


def _stored(asked: ScheduleOptions, study: str) -> AbstractContextManager[Results | None]:
    """Return what is kept of a study in the store that was asked for, if any."""
    return nullcontext() if asked.store is False else Results(None if asked.store is True else asked.store, study)


class _Beginning:
    """Plans that groups of one task on one system begin from."""

    def __init__(self, asked: ScheduleOptions, system: System) -> None:
        self.asked = asked
        machines = [[machine_fingerprint(core.accelerator), core.dataflow] for core in system.cores]
        self.key = {"task": asked.task or "networks", "system": machines, "bandwidth": system.bandwidth,
                    "objective": asked.objective}
        self.known: KnownPlan | None = None

    def plan(self, problem: ScheduleProblem) -> PlanGenomes | None:
        """Return the plan to begin a group from, None where there is none."""
        if not self.asked.warm_start:
            return None
        if self.known is None:
            with _stored(self.asked, WARM) as kept:
                (found,) = [None] if kept is None else kept.take([self.key])
            self.known = None if found is None else KnownPlan(**{name: np.array(rows) for name, rows in found.items()})
        return None if self.known is None else adopted(problem, self.known, self.asked.seed)

    def learn(self, known: KnownPlan) -> None:
        """Keep a plan; the store keeps the first of each task on each system."""
        self.known = known
        with _stored(self.asked, WARM) as kept:
            if kept is not None and self.asked.task is not None:
                kept.put(self.key, {name: rows.tolist() for name, rows in vars(known).items()})


def _keep(asked: ScheduleOptions, record: ScheduleRecord) -> str:
    """Keep a schedule in the store; return how it is named there."""
    with _stored(asked, PLANS) as kept:
        if kept is None:
            return ""
        plain = record.plain()
        identity = sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]
        kept.put({"schedule": identity}, plain)
        return f"{identity} in {kept.shown}"
