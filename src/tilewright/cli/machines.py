"""``tilewright design``, ``sweep``, ``explore``, ``flexibility``: which machine, and what flexible ones are worth."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import tilewright.api
import tilewright.report
from tilewright.api.machine_options import DesignOptions, ExploreOptions, FlexibilityOptions, SweepOptions
from tilewright.base import InputError
from tilewright.cli.conduct import NOTHING, conduct, conducted, deliver, end_early, times
from tilewright.cli.options import Asked, Json, Page, ready, verb

Write = Annotated[Path | None, typer.Option(
    "--write", metavar="FILE.yaml", show_default=False, help="Write the machine, which every verb takes as --arch; "
    "with --deployment pipelined or --per-layer, a folder with one for each layer.")]
Mappings = Annotated[Path | None, typer.Option(
    "--write-mappings", metavar="DIR", show_default=False,
    help="With --write: write the mapping of every layer there, which tilewright evaluate takes.")]


@verb(DesignOptions)
def design(asked: Asked, write: Write = None, mappings: Mappings = None, report: Page = None,
           json: Json = None) -> None:
    """Find the machine within a budget, with the mapping of every layer, and what no such machine can beat.

    What none can beat holds for all mappings, whatever memories keep; which tensors they keep is searched.

    The figures count memories and multiply-accumulate units: not networks on chip, clocks or control logic. Ctrl-C
    keeps what was found (exit code 130), as does SIGTERM (143). Exit code 1: nothing within the limits was found.
    """
    several = asked["per_layer"] or asked["deployment"] == "pipelined"
    if write is not None and several and write.suffix in (".yaml", ".yml"):
        raise InputError("--write", "must be a folder where each layer has a machine of its own", str(write),
                         "For example --write machines")
    ready(report, json, write and (write / "machine.yaml" if several else write))
    if mappings is not None and write is None:
        raise InputError("--write-mappings", "must come with --write FILE.yaml")
    found = conducted(tilewright.api.design, asked, "samples")
    if write is not None and found.found:
        found.write(write, mappings)
    deliver("design", found.sheet, found.plain, (report, json, asked["out"]))
    for run in found.runs:
        if run.kept is not None:
            typer.echo(run.kept.warning or f"Stored as run {run.record.id} in {run.kept.place}", err=True)
        if run.library.warning:
            typer.echo(run.library.warning, err=True)
    if found.interrupted:
        end_early("", asked["out"])
    raise typer.Exit(int(not found.found))


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


@verb(ExploreOptions)
def explore(asked: Asked, json_file: Json = None) -> None:
    """Find which flexibility pays: what each choice is worth on networks, and the area that it adds.

    Every layer is searched on every choice at equal samples. Ctrl-C shows what is complete (exit code 130).
    """
    def says(found: Any) -> str:
        fixed = f", fixed as suits {asked['tuned_for']}" if asked["tuned_for"] else ""
        return (f"{asked['budget']:,} samples a layer and choice, mapper {asked['mapper']}, "
                f"{times(range(asked['seeds']))}{fixed}, vector work {asked['vector']}") if found.outcomes else ""

    conduct("explore", tilewright.api.explore, asked, says, (None, json_file, asked["out"]), "exploration")


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
