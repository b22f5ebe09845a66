"""``tilewright fuse``: which operators run together."""

from pathlib import Path
from typing import Annotated

import typer

import tilewright.api
from tilewright.api.fuse_options import FuseOptions
from tilewright.cli.compare import conducted, deliver, end_early
from tilewright.cli.options import Asked, Json, Page, ready, verb

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
