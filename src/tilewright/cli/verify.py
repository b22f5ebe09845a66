"""``tilewright verify``: whether what a plan or a certificate says is so."""

from pathlib import Path
from typing import Annotated

import typer

import tilewright.api

PlanFile = Annotated[Path, typer.Argument(metavar="FILE.json", show_default=False, help=(
    "A plan that tilewright allocate wrote, or a certificate of tilewright map (its --json, too)."))]
UNTOLD = 3
"""Exit code where it could not be told whether a claim holds."""


def verify(
    plan: PlanFile,
    optimum: Annotated[bool, typer.Option("--optimum", help=(
        "Of a certificate, check more than it claims: that each mapping is the optimum, whatever the bound."))] = False,
) -> None:
    """Check a plan for scratchpads, or the bounds of a mapped network, apart from what made it.

    A plan is carried out, word by word. Of a certificate, every mapping is scored anew, and the space of all mappings
    gone through for one that scores below the bound. Exit code 1 where something does not hold, 3 where that could not
    be told.
    """
    if tilewright.api.is_run(plan):
        holds = list[bool | None]()
        for claim in tilewright.api.checked(plan, optimum):
            holds.append(claim.holds)
            typer.echo(str(claim))
            if claim.better is not None:
                typer.echo(str(claim.better))
        raise typer.Exit(1 if False in holds else UNTOLD if None in holds else 0)
    found = tilewright.api.open_plan(plan)
    faults = found.verify()
    for fault in faults:
        typer.echo(f"Not so: {fault.rule} ({fault.where})")
    if faults:
        raise typer.Exit(1)
    record = found.record
    typer.echo(f"The plan holds: {len(record.residency):,} stays and {len(record.transfers):,} transfers of "
               f"{record.tally.dram_bytes:,} bytes, carried out over {len(record.steps):,} operations.")
