"""A schedule as a person sees it: the cores over time, the bandwidth below them, every job, and how near the best."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, percent, seconds_of, shortened, significant, titled
from tilewright.report.search_plots import log_axis
from tilewright.report.sheet import Sheet
from tilewright.scheduling import Explained, GroupRecord, MovedJob, PlannedJob, ScheduleRecord

COLOURS, MOST_ROWS, CLOSED = 7, 400, 1e-6
HATCHES = ("", "/", "x", ".", "|", "-", "+")
UNITS = {"makespan": ("cycles", 1.0), "energy": ("J", 1e-12), "edp": ("J·cycles", 1e-12), "slowdown": ("times", 1.0),
         "deadlines": ("missed", 1.0)}
BOUND = "the bound: no schedule of these mappings ends sooner"
Placed = tuple[int, float, PlannedJob]
"""The number of a job, when its group begins in cycles, and the job."""


def schedule_sheet(record: ScheduleRecord) -> Sheet:
    """Return what is to be shown of a schedule."""
    facts = (_verdict(record), _throughput(record), _search(record), *map(str, record.assumptions))
    title = f"{record.source} on {record.system}, {significant(_gigabytes(record, record.bandwidth))} GB/s"
    lead = (f"{len(record.jobs):,} jobs on {len(record.cores)} cores that share one memory, by {record.objective}; "
            f"sharing {record.sharing}" + ("." if record.choose_mapping else "; each job with its fastest mapping."))
    tables = [_groups(record)] if len(record.groups) > 1 else []
    plots = [_gantt(record), *([_convergence(record)] if any(group.trace for group in record.groups) else [])]
    return Sheet(title, lead, facts, (*tables, _cores(record), _jobs(record)), tuple(plots), {}, record.command)


def _gigabytes(record: ScheduleRecord, bytes_per_cycle: float) -> float:
    return bytes_per_cycle * record.clock_mhz / 1e3


def _time(record: ScheduleRecord, cycles: float) -> str:
    return engineering(seconds_of(cycles, record.clock_mhz), "s")


def _verdict(record: ScheduleRecord) -> str:
    unit, scale = UNITS[record.objective]
    score, bound = (scale * sum(getattr(group, name) for group in record.groups) for name in ("score", "bound"))
    told = f"{titled(record.objective)} {engineering(score)} {unit}"
    if record.objective == "makespan":
        told += f" = {_time(record, record.makespan_cycles)}"
    if record.gap < CLOSED:
        return f"{told}: no schedule of these mappings does better."
    return (f"{told}. No schedule of these mappings can do with less than {engineering(bound)} {unit}, however the "
            f"bandwidth is shared: this one is at most {percent(record.gap)} above the best there is of them.")


def _throughput(record: ScheduleRecord) -> str:
    moved = sum(job.traffic_bytes for job in record.jobs)
    held = [max(group.bound_shares.items(), key=lambda one: one[1], default=("", 0.0))[0] for group in record.groups]
    told = {"cores": "the cores", "bandwidth": "the bandwidth", "order": "order and arrivals",
            "jobs": "the longest job"}.get(max(held, key=held.count), "")
    return (f"{engineering(record.gflops * 1e9)}FLOP/s of a peak of {engineering(record.peak_gflops * 1e9)}FLOP/s; "
            f"{engineering(moved)}B moved, {percent(moved / record.makespan_cycles / record.bandwidth)} of the "
            f"bandwidth; {engineering(record.energy_pj * 1e-12, 'J')}." + (f" Bottleneck: {told}." if told else ""))


def _search(record: ScheduleRecord) -> str:
    samples, seconds = (sum(getattr(group, name) for group in record.groups) for name in ("samples", "seconds"))
    analysed = f"{record.analysed_samples:,} mappings scored" if record.analysed_samples else "all mappings were known"
    return (f"Method {record.method}, seed {record.seed}: {samples:,} plans simulated in {engineering(seconds, 's')}; "
            f"{analysed}, for {len(record.fronts):,} distinct jobs.")


def _placed(record: ScheduleRecord) -> Iterator[Placed]:
    begins = accumulate((group.makespan_cycles for group in record.groups), initial=0.0)
    number = 0
    for group, begin in zip(record.groups, begins, strict=False):
        for job in group.jobs:
            yield number, begin, job
            number += 1


def _groups(record: ScheduleRecord) -> Table:
    rows = tuple((at, len(group.jobs), engineering(group.makespan_cycles), engineering(group.bound_cycles),
                  percent(max(0.0, group.makespan_cycles / group.bound_cycles - 1)),
                  significant(2e-3 * record.clock_mhz * sum(job.macs for job in group.jobs) / group.makespan_cycles))
                 for at, group in enumerate(record.groups))
    return Table("groups", "Groups, one after the other", (
        "Group", "Jobs", "Makespan (cycles)", "Bound (cycles)", "Above", "GFLOP/s"), rows)


def _cores(record: ScheduleRecord) -> Table:
    rows: list[tuple[Value, ...]] = []
    for place, core in enumerate(record.cores):
        jobs = [job for job in record.jobs if job.core == place]
        busy, macs = (sum(getattr(job, name) for job in jobs) for name in ("duration_cycles", "macs"))
        alone = sum(job.here_cycles for job in jobs)
        rows.append((core.name, core.accelerator, core.style, core.elements, len(jobs),
                     percent(busy / record.makespan_cycles), percent(macs / (busy * core.elements)) if busy else "-",
                     f"{engineering(sum(job.traffic_bytes for job in jobs))}B",
                     significant(busy / alone) if alone else "-"))
    return Table("cores", "Cores", ("Core", "Accelerator", "Style", "Elements", "Jobs", "Busy", "Used while busy",
                                    "Moved", "Slowdown"), tuple(rows),
                 ("Slowdown: time of its jobs as a multiple of what they take there on an empty system.",))


def _jobs(record: ScheduleRecord) -> Table:
    several = len(record.groups) > 1
    rows: list[tuple[Value, ...]] = []
    for number, begin, job in list(_placed(record))[:MOST_ROWS]:
        options = len(record.fronts[job.row][record.cores[job.core].kind])
        late = [] if job.deadline_cycles is None else ["late" if job.end_cycles > job.deadline_cycles else "in time"]
        rows.append((number, shortened(job.name, 36), record.cores[job.core].name,
                     engineering(begin + job.start_cycles), engineering(begin + job.end_cycles),
                     f"{job.option + 1} of {options}", engineering(job.alone_cycles), engineering(job.here_cycles),
                     f"{job.slowdown:.2f}", significant(_gigabytes(record, job.wanted_bytes_per_cycle)),
                     significant(_gigabytes(record, job.share_bytes_per_cycle)), *late))
    timed = any(job.deadline_cycles is not None for job in record.jobs)
    rows = [row if len(row) == 11 + timed else (*row, "") for row in rows]
    notes = ("Alone, here: cycles on an empty system, on the core and with the mapping that are best, and with its "
             "own. Slowdown: its time as a multiple of the latter.",
             *(["From the beginning of the first group on."] if several else []),
             *([f"The first {MOST_ROWS} of {len(record.jobs):,}; the JSON has all."]
               if len(record.jobs) > MOST_ROWS else []))
    return Table("jobs", "Jobs", (
        "Job", "Name", "Core", "Start", "End", "Mapping", "Alone", "Here", "Slowdown", "Asks (GB/s)",
        "Share", *(["Deadline"] if timed else [])), tuple(rows), notes)


def _gantt(record: ScheduleRecord) -> Plot:
    """Return the cores over time, and below what each draws of the bandwidth, with the bound as a line."""
    size = sorted({job.network for job in record.jobs}, key=lambda name: -sum(
        job.macs for job in record.jobs if job.network == name))
    shown = size if len(size) <= COLOURS + 1 else size[:COLOURS]
    data = [_bars(record, (name,), name or "jobs", f"@curve-{at}") for at, name in enumerate(shown)]
    if len(shown) < len(size):
        data.append(_bars(record, size[len(shown):], "other networks", "@faint"))
    firsts = {core.kind: place for place, core in reversed([*enumerate(record.cores)])}
    for place, core in enumerate(record.cores):
        x, y = _draws(record, place)
        data.append({"type": "scatter", "mode": "lines", "x": x, "y": y, "yaxis": "y2", "stackgroup": "bandwidth",
                     "name": escape(f"below: {core.accelerator} ({core.style})"),
                     "line": {"shape": "hv", "width": 0, "color": "@muted"},
                     "showlegend": firsts[core.kind] == place, "legendgroup": f"kind {core.kind}",
                     "fillcolor": "@muted", "fillpattern": {"shape": HATCHES[core.kind % len(HATCHES)], "size": 5},
                     "hovertemplate": f"{escape(core.name)}: %{{y:.3g}} GB/s at %{{x:.4s}}s<extra></extra>"})
    end = seconds_of(record.makespan_cycles, record.clock_mhz)
    bound = seconds_of(record.bound_cycles, record.clock_mhz)
    most = _gigabytes(record, record.bandwidth)
    line = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    data.append({**line, "name": BOUND, "x": [bound, bound], "y": [-0.5, len(record.cores) - 0.5],
                 "line": {"color": "@strong", "width": 2}})
    data.append({**line, "name": BOUND, "x": [bound, bound], "y": [0, 1.15 * most], "yaxis": "y2", "showlegend": False,
                 "line": {"color": "@strong", "width": 2}})
    data.append({**line, "name": "the bandwidth", "x": [0, end], "y": [most, most], "yaxis": "y2",
                 "line": {"color": "@strong", "width": 1.5, "dash": "dash"}})
    names = [core.name for core in record.cores]
    return Plot("gantt", "Cores and bandwidth over time", data, {
        "barmode": "overlay", "height": 330 + 24 * len(names), "hovermode": "closest", "legend": LEGEND,
        "xaxis": {"title": {"text": "Time"}, "tickformat": "~s", "ticksuffix": "s", "anchor": "y2",
                  "range": [0, 1.02 * max(end, bound)]},
        "yaxis": {"domain": [0.36, 1], "tickvals": list(range(len(names))), "ticktext": names,
                  "range": [len(names) - 0.5, -0.5], "showgrid": False, "zeroline": False},
        "yaxis2": {"domain": [0, 0.28], "title": {"text": "GB/s"}, "range": [0, 1.15 * most]}},
        "Bars are jobs, coloured by network; below, in grey, what each core draws of the "
        "bandwidth, hatched by kind of core.")


def _bars(record: ScheduleRecord, networks: Sequence[str], name: str, colour: str) -> dict[str, Any]:
    mine = [one for one in _placed(record) if one[2].network in networks]
    return {"type": "bar", "orientation": "h", "name": escape(shortened(name, 24)), "width": 0.8,
            "y": [job.core for _, _, job in mine],
            "base": [seconds_of(begin + job.start_cycles, record.clock_mhz) for _, begin, job in mine],
            "x": [seconds_of(job.duration_cycles, record.clock_mhz) for _, _, job in mine],
            "marker": {"color": colour, "line": {"color": "@surface", "width": 0.5}},
            "customdata": [[number, escape(shortened(job.name, 60)), f"{job.slowdown:.2f}",
                            significant(_gigabytes(record, job.share_bytes_per_cycle))] for number, _, job in mine],
            "hovertemplate": "<b>Job %{customdata[0]}: %{customdata[1]}</b><br>%{base:.4s}s, for %{x:.4s}s<br>"
                             "slowdown %{customdata[2]}, %{customdata[3]} GB/s<extra></extra>"}


def _draws(record: ScheduleRecord, core: int) -> tuple[list[float], list[float]]:
    """Return times in seconds, and what a core draws from each on, in GB/s."""
    x, y, begin = list[float](), list[float](), 0.0
    for group in record.groups:
        x += [seconds_of(begin + at, record.clock_mhz) for at in group.events]
        drawn = [_gigabytes(record, share[core]) for share in group.shares]
        y += [*drawn, drawn[-1] if drawn else 0.0]
        begin += group.makespan_cycles
    return x, y


def _convergence(record: ScheduleRecord) -> Plot:
    data: list[dict[str, Any]] = []
    for at, group in enumerate(record.groups):
        scale = group.bound if group.bound > 0 else 1.0
        points = [(max(1.0, samples), score / scale) for samples, _, score in group.trace]
        points += [(float(group.samples), points[-1][1])] if points and group.samples > points[-1][0] else []
        data.append({"type": "scatter", "mode": "lines", "name": f"group {at}" if len(record.groups) > 1 else "best",
                     "x": [x for x, _ in points], "y": [y for _, y in points],
                     "line": {"shape": "hv", "width": 2, "color": f"@curve-{at % COLOURS}"}})
    x = [at for trace in data for at in trace["x"]]
    data.append({"type": "scatter", "mode": "lines", "name": "bound", "x": [min(x), max(x)], "y": [1, 1],
                 "line": {"color": "@strong", "width": 1.5, "dash": "dash"}})
    return Plot("convergence", "Best plan over samples", data, {
        "xaxis": log_axis("Plans simulated", x),
        "yaxis": log_axis("Best / bound", [at for trace in data for at in trace["y"]]), "legend": LEGEND,
        "hovermode": "closest"})


def explanation_sheet(record: ScheduleRecord, number: int, found: Explained) -> Sheet:
    """Return why a job of a schedule runs where, when and at the share that it does."""
    group = record.groups[found.group]
    job = group.jobs[found.place]
    core = record.cores[job.core].name
    turn = found.queue.index(found.place)
    facts = (f"It runs on {core} from {_time(record, job.start_cycles)} to {_time(record, job.end_cycles)}"
             + (f" of group {found.group}" if len(record.groups) > 1 else "")
             + f": job {turn + 1} of {len(found.queue)} there, with mapping {job.option + 1} of its "
             f"{len(record.fronts[job.row][record.cores[job.core].kind])}.",
             _why_there(record, job, found), _why_then(record, group, job, found, turn), _why_share(record, group, job))
    rows = tuple((record.cores[one.core].name, record.cores[one.core].style, one.option + 1, engineering(one.cycles),
                  f"{engineering(one.traffic_bytes)}B",
                  significant(_gigabytes(record, one.traffic_bytes / one.cycles)), engineering(one.makespan_cycles),
                  _change(one.makespan_cycles, group.makespan_cycles),
                  "as planned" if (one.core, one.option) == (job.core, job.option) else "") for one in found.otherwise)
    table = Table("otherwise", "The same plan with this job elsewhere, or with another mapping", (
        "Core", "Style", "Mapping", "Cycles", "Moves", "Asks for (GB/s)", "Group then takes", "Change", ""), rows,
        ("On other cores with the mapping that is best there. Cycles: with all the bandwidth that it asks for.",))
    return Sheet(f"Job {number}: {job.name}", f"{record.source} on {record.system}.", facts, (table,), (), {},
                 record.command)


def _change(one: float, other: float) -> str:
    return "none" if abs(one / other - 1) < 5e-5 else f"{100 * (one / other - 1):+.2f} %"


def _why_there(record: ScheduleRecord, job: PlannedJob, found: Explained) -> str:
    def kind(one: MovedJob) -> int:
        return record.cores[one.core].kind

    own = record.cores[job.core].kind
    quickest = {kind(one): min(other.cycles for other in found.otherwise if kind(other) == kind(one))
                for one in found.otherwise}
    others = [one for one in found.otherwise if one.core != job.core]
    name = {core.kind: core for core in reversed(record.cores)}
    told = [f"{significant(cycles / quickest[own])} times as long on a {name[at].accelerator} ({name[at].style})"
            for at, cycles in quickest.items() if at != own]
    best = min(others, key=lambda one: one.score, default=None)
    now = next(one.score for one in found.otherwise if (one.core, one.option) == (job.core, job.option))
    where = "It fits no other core." if best is None else (
        f"On {record.cores[best.core].name} the plan would be as good: where it runs does not matter."
        if _change(best.score, now) == "none" else
        f"Moved to {record.cores[best.core].name}, the best of the others, the objective changes by "
        f"{_change(best.score, now)}.")
    return f"There: {where}" + (f" At its quickest it takes {', '.join(told)}." if told else "")


def _why_then(record: ScheduleRecord, group: GroupRecord, job: PlannedJob, found: Explained, turn: int) -> str:
    near = 1e-9 * max(1.0, group.makespan_cycles)
    waited = [group.jobs[place] for place in job.after if abs(group.jobs[place].end_cycles - job.start_cycles) <= near]
    if waited:
        return f"Then: as {waited[0].name}, whose result it reads, ended."
    if job.release_cycles and abs(job.release_cycles - job.start_cycles) <= near:
        return "Then: as it came."
    if turn == 0:
        return "Then: it is the first on its core."
    before = group.jobs[found.queue[turn - 1]]
    return f"Then: as {before.name}, the one before it on {record.cores[job.core].name}, ended."


def _why_share(record: ScheduleRecord, group: GroupRecord, job: PlannedJob) -> str:
    spans: Sequence[tuple[float, float, float]] = [
        (max(first, job.start_cycles), min(last, job.end_cycles), sum(share))
        for first, last, share in zip(group.events, group.events[1:], group.shares, strict=False)
        if first < job.end_cycles and last > job.start_cycles]
    full = sum(last - first for first, last, drawn in spans if drawn >= record.bandwidth * (1 - 1e-9))
    asks, had = (significant(_gigabytes(record, value))
                 for value in (job.wanted_bytes_per_cycle, job.share_bytes_per_cycle))
    if job.slowdown < 1 + 1e-6:
        return f"At that share: it asks for {asks} GB/s and has it all the time."
    return (f"At that share: it asks for {asks} GB/s and had {had} in the mean: it took {job.slowdown:.2f} times "
            f"as long. The bandwidth was full for {percent(full / job.duration_cycles)} of that.")
