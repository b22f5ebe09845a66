"""``tilewright sweep``: machines side by side."""

import threading

import typer

import tilewright.api
from tilewright.api.machine_options import SweepOptions
from tilewright.cli.compare import deliver, tell_stopped
from tilewright.cli.options import INTERRUPTED, Asked, Json, Page, ready, verb


@verb(SweepOptions)
def sweep(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Map a network on every machine that comes of numbers that vary, and set the machines side by side.

    Ends with a table of the front and the best machines, with --report a page with a heat map, with --json all of
    them. Ctrl-C keeps what was found (exit code 130). Exit code 1: no machine runs all layers.
    """
    from tilewright.report import SearchBar

    stop = threading.Event()
    ready(report, json)
    with SearchBar("samples") as bar:
        found = tilewright.api.sweep(**asked, told=bar.update, stop=stop)
    deliver("sweep", found.sheet, found.plain, (report, json, asked["out"]))
    if found.interrupted:
        tell_stopped(". ", asked["out"])
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(int(all(one.unmapped for one in found.machines)))
