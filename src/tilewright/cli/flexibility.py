"""``tilewright flexibility``: how many of all ways to run a network a machine has."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.options import Arch, Bind, Json, Network, console, ready, say, sizes, write_text


def flexibility(
    network: Network,
    arch: Arch,
    layer: Annotated[str | None, typer.Option(
        "--layer", "-l", show_default=False, help="One of its layers. Default: all, and their average.")] = None,
    axes: Annotated[str, typer.Option("--axes", help="Letters of TOPS: tile, order, parallelism, shape.")] = "TOPS",
    klass: Annotated[str | None, typer.Option(
        "--class", metavar="1010|FullFlex-1010", show_default=False,
        help="Take the machine as one of this class (digits of T, O, P, S): axes of 1 fully flexible, axes of 0 as its "
             "file fixes them.")] = None,
    bind: Bind = None,
    json_file: Json = None,
    html: Annotated[Path | None, typer.Option(
        "--html", metavar="FILE.html", show_default=False, help="Write a page with Venn diagrams to scale.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the draws behind counts that are estimated.")] = 0,
) -> None:
    """Show how flexible a machine is: what its axes allow and cost, and the sizes of its map spaces on a network.

    H-F is the share of what any machine of the class can do, W-F the share of what the workload can use. The machine's
    file says what is flexible (docs/flexibility.md).
    """
    from tilewright.api import flexibility as measure
    from tilewright.report import flexibility_sheet, flexibility_tree, print_sheet, write_sheet

    ready(html, json_file)
    found = measure(network, arch, layer, klass=klass, axes=axes, bind=sizes(bind, "--bind"), seed=seed)
    sheet = flexibility_sheet(found, shlex.join(["tilewright", *sys.argv[1:]]))
    print_sheet(sheet, console(json_file))
    if json_file is not None:
        write_text(json_file, json.dumps(flexibility_tree(found), indent=1, ensure_ascii=False) + "\n")
    if html is not None:
        say(console("-"), f"Page {write_sheet(sheet, html)}")
