"""``tilewright flexibility``: how many of all ways to run a network a machine has."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

import tilewright.api
import tilewright.report
from tilewright.api.machine_options import FlexibilityOptions
from tilewright.cli.compare import deliver
from tilewright.cli.options import Asked, Json, ready, verb


@verb(FlexibilityOptions)
def flexibility(
    asked: Asked,
    json_file: Json = None,
    html: Annotated[Path | None, typer.Option(
        "--html", metavar="FILE.html", show_default=False, help="Write a page with Venn diagrams to scale.")] = None,
) -> None:
    """Show how flexible a machine is: what its axes allow and cost, and the sizes of its map spaces on a network.

    H-F is the share of what any machine of the class can do, W-F the share of what the workload can use. The machine's
    file says what is flexible (docs/flexibility.md).
    """
    ready(html, json_file)
    found = tilewright.api.flexibility(**asked)
    sheet = tilewright.report.flexibility_sheet(found, shlex.join(["tilewright", *sys.argv[1:]]))
    deliver("flexibility", sheet, tilewright.report.flexibility_tree(found), (html, json_file, None))
