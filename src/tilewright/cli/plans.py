"""``tilewright schedule``, ``allocate``, ``verify``, ``pack`` and ``fuse``: what is where on the chip, and when."""

import threading
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import tilewright.api
import tilewright.report
from tilewright.api.plan_options import FuseOptions, PackOptions, ResidencyOptions, ScheduleOptions
from tilewright.base import InputError
from tilewright.cli.conduct import conducted, deliver, end_early
from tilewright.cli.options import INTERRUPTED, Asked, Json, Page, console, ready, verb

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


@verb(ResidencyOptions)
def allocate(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Plan which tensors of a network stay on which scratchpad, when, and at which address; with a bound on all plans.

    What is loaded, stored and moved is counted; the plan is checked word by word before it is shown. Ctrl-C keeps the
    best plan with its gap (exit code 130).
    """
    ready(report, json)
    plan = conducted(tilewright.api.allocate, asked, "s")
    faults = plan.verify()
    assert not faults, faults
    deliver("plan", plan.sheet, plan.plain, (report, json, asked["out"]))
    if plan.interrupted:
        end_early("", asked["out"])


NOT_PLACED = 1


@verb(PackOptions)
def pack(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Place buffers in address and time so that none share an address while both live.

    Without --capacity the least height is looked for. The exit code is 1 where nothing was placed within the capacity:
    because there is no such placement, or because time ended the search, which is told. Ctrl-C keeps what was found
    (exit code 130).
    """
    ready(report, json)
    run = tilewright.api.pack(**asked)
    deliver("pack", run.sheet, run.plain, (report, json, None))
    if run.placed and asked["out"] is not None:
        typer.echo(f"Written: {asked['out']}", err=True)
    if run.interrupted:
        raise typer.Exit(INTERRUPTED)
    if not run.placed:
        raise typer.Exit(NOT_PLACED)


Save = Annotated[Path | None, typer.Option(
    "--save", metavar="FILE.yaml", show_default=False, help="Write the plan as YAML, for --plan.")]


@verb(FuseOptions)
def fuse(asked: Asked, report: Page = None, json: Json = None, save: Save = None) -> None:
    """Find which operators of a network are best run together, in what tiles, and what stays on the chip meanwhile.

    Beside the plan stand the best one that fuses nothing, and what no plan can beat. Ctrl-C keeps the best plan of
    micro-batches or trees so far (exit code 130).
    """
    planned = (tilewright.api.MicroBatchRun, tilewright.api.FusedAttention, tilewright.api.TreeRun)
    ready(report, json, save)
    run = conducted(tilewright.api.fuse, asked, "plans")
    deliver("fuse", run.sheet, run.plain, (report, json, None))
    if save is not None and isinstance(run, planned):
        typer.echo(f"Plan {run.write_plan(save)}", err=True)
    if isinstance(run, tilewright.api.MicroBatchRun | tilewright.api.TreeRun) and run.interrupted:
        end_early(": the best plan so far", asked["out"])


PlanFile = Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False, help=(
    "A plan that tilewright allocate wrote, or a certificate of tilewright map (its --json, too)."))]
UNTOLD = 3
"""Exit code where it could not be told whether a claim holds."""


def verify(
    plan: PlanFile,
    optimum: Annotated[bool, typer.Option("--optimum", help=(
        "Of a certificate, check more than it claims: that each mapping is the optimum, whatever the bound."))] = False,
    seconds: Annotated[float | None, typer.Option("--seconds", metavar="S", show_default=False, help=(
        "Of a certificate: for each layer; where they do not suffice it is told how far that came. Default: no limit."
        ))] = None,
) -> None:
    """Check a plan for scratchpads, or the bounds of a mapped network, apart from what made it.

    A plan is carried out, word by word. Of a certificate, every mapping is scored anew, and the space of all mappings
    gone through for one that scores below the bound, which may take hours where many mappings do almost as well as
    the bound. Exit code 1 where something does not hold, 3 where that could not be told; Ctrl-C says how far it came
    (130).
    """
    if tilewright.api.is_run(plan):
        _verify_run(plan, optimum, seconds)
    found = tilewright.api.open_plan(plan)
    faults = found.verify()
    for fault in faults:
        typer.echo(f"Not so: {fault.rule} ({fault.where})")
    if faults:
        raise typer.Exit(1)
    record = found.record
    typer.echo(f"The plan holds: {len(record.residency):,} stays and {len(record.transfers):,} transfers of "
               f"{record.tally.dram_bytes:,} bytes, carried out over {len(record.steps):,} operations.")


def _verify_run(place: Path, optimum: bool, seconds: float | None) -> NoReturn:
    from tilewright.jobs import interruptible
    from tilewright.report import Bar

    holds, stop = list[bool | None](), threading.Event()

    def told(name: str, done: int, total: int) -> None:
        bar.show(name, done, total, f"{done}/{total} kept sets")

    claims = tilewright.api.checked(place, optimum, seconds, told=told, stop=stop)
    with interruptible(stop):
        while True:
            with Bar("Checking") as bar:
                claim = next(claims, None)
            if claim is None:
                break
            holds.append(claim.holds)
            typer.echo(str(claim))
            if claim.better is not None:
                typer.echo(str(claim.better))
    if stop.is_set():
        typer.echo("Stopped before the end.", err=True)
        raise typer.Exit(INTERRUPTED)
    if not holds:
        typer.echo("There is no layer to check.")
    raise typer.Exit(1 if False in holds else UNTOLD if None in holds or not holds else 0)
