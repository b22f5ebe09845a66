"""``tilewright pack``: buffers in one memory."""

import typer

import tilewright.api
from tilewright.api.packing_options import PackOptions
from tilewright.cli.compare import deliver
from tilewright.cli.options import INTERRUPTED, Asked, Json, Page, ready, verb

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
