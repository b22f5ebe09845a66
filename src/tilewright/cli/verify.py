"""``tilewright verify``: whether what a plan or a certificate says is so."""

import threading
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import tilewright.api
from tilewright.cli.options import INTERRUPTED

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
