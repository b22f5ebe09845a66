"""``tilewright design``: the machine and the mappings together."""

from pathlib import Path
from typing import Annotated

import typer

import tilewright.api
from tilewright.api.machine_options import DesignOptions
from tilewright.base import InputError
from tilewright.cli.compare import conducted, deliver, end_early
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
