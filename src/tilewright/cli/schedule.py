"""``tilewright schedule``: many networks on many accelerators."""

from pathlib import Path
from typing import Annotated

import typer

import tilewright.api
import tilewright.report
from tilewright.api.schedule_options import ScheduleOptions
from tilewright.base import InputError
from tilewright.cli.compare import conducted, deliver, end_early
from tilewright.cli.options import Asked, Json, Page, console, ready, verb

Explain = Annotated[int | None, typer.Option(
    "--explain", metavar="JOB", show_default=False,
    help="Of a schedule in JSON: why this job runs there, then, at that share.")]


@verb(ScheduleOptions)
def schedule(asked: Asked, explain: Explain = None, report: Page = None, json: Json = None) -> None:
    """Schedule jobs of many networks on accelerators that share one memory: which core, when, with which mapping.

    No schedule of the mappings that were found for the jobs beats the bound that is told, however the bandwidth is
    shared. Ctrl-C keeps what was found (exit code 130), as does SIGTERM (143). With a schedule in JSON, show it again,
    or with --explain one of its jobs.
    """
    given: list[str] = list(asked["networks"] or ())
    asked["networks"] = given
    kept = [one for one in given if one.endswith(".json") and Path(one).is_file()]
    ready(report, json)
    if explain is not None or (kept and asked["system"] is None):
        if len(given) != 1:
            raise InputError("--explain", "must come with one schedule in JSON", ", ".join(given) or None,
                             "For example tilewright schedule out.json --explain 17")
        plan = tilewright.api.open_schedule(given[0])
        if explain is not None:
            tilewright.report.print_sheet(plan.explain(explain), console(json))
            return
        deliver("schedule", plan.sheet, plan.plain, (report, json, None))
        return
    plan = conducted(tilewright.api.schedule, asked, "plans")
    deliver("schedule", plan.sheet, plan.plain, (report, json, asked["out"]))
    if plan.place:
        typer.echo(f"Stored as schedule {plan.place}", err=True)
    if plan.interrupted:
        end_early("", asked["out"])
