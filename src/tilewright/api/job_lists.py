"""Lists of jobs as CSV files: a layer in each row, with when it comes, must have ended, and what it waits for."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tilewright.api.inputs import load_network, pick_operator
from tilewright.base import InputError, read_text, whole_of
from tilewright.scheduling import LayerJob, check_order, read_time
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
        raise InputError(f"{where} layer {error.field}", error.rule, error.given, error.mend) from None
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
