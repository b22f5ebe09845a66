"""``tilewright sweep``: machines side by side."""

import typer

import tilewright.api
from tilewright.api.machine_options import SweepOptions
from tilewright.cli.compare import NOTHING, conducted, deliver, end_early
from tilewright.cli.options import Asked, Json, Page, ready, verb


@verb(SweepOptions)
def sweep(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Map a network on every machine that comes of numbers that vary, and set the machines side by side.

    Ends with a table of the front and the best machines, with --report a page with a heat map, with --json all of
    them. Ctrl-C keeps what was found (exit code 130). Exit code 1: no machine runs all layers.
    """
    ready(report, json)
    found = conducted(tilewright.api.sweep, asked, "samples")
    if found.interrupted and not found.machines:
        end_early(NOTHING, asked["out"])
    deliver("sweep", found.sheet, found.plain, (report, json, asked["out"]))
    if found.interrupted:
        end_early("", asked["out"])
    raise typer.Exit(int(all(one.unmapped for one in found.machines)))
