"""``tilewright compare``: which mapper is better, how surely, and how fast."""

import json
import shlex
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import csv_text
from tilewright.cli.options import (
    Arch,
    Bind,
    Dataflow,
    Json,
    Network,
    SpaceFile,
    TilingOption,
    console,
    ready,
    sizes,
    write_text,
)

if TYPE_CHECKING:
    from tilewright.report import Sheet
    from tilewright.reproduce import Table

INTERRUPTED = 130

Layer = Annotated[str | None, typer.Option(
    "--layer", "-l", show_default=False, help="One of its layers; may be left out where there is but one.")]
Objective = Annotated[str, typer.Option("--objective", "-o", help="What to minimise, as for tilewright map.")]
SearchBudget = Annotated[str, typer.Option("--budget", "-b", metavar="N|TIME", help=(
    "Of each search: mappings (10000, 10k), a time (2s), or both (10k,2s)."))]
Seeds = Annotated[int, typer.Option("--seeds", help="Repetitions.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The first seed. Same seeds, same scores.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", show_default=False, help=(
    "Keep searches there as they end, to go on where a run was stopped, and write JSON, CSV and a page."))]
Html = Annotated[Path | None, typer.Option(
    "--html", metavar="FILE.html", show_default=False, help="Write a page with plots.")]
Workers = Annotated[int, typer.Option(
    "--workers", min=1, help="Searches side by side. Scores do not depend on it; seconds are only fair with one.")]


def compare(
    network: Network,
    arch: Arch,
    layer: Layer = None,
    mappers: Annotated[str, typer.Option("--mappers", "-m", metavar="NAME[:OPTION=VALUE,...],...", help=(
        "Mappers to compare, as gamma,gamma:crossover=0,tile=1,random; see: tilewright list mappers."))
    ] = "auto,gamma,random-pruned",
    objective: Objective = "edp",
    budget: SearchBudget = "10000",
    seeds: Seeds = 10,
    seed: Seed = 0,
    tiling: TilingOption = None,
    constraints: SpaceFile = None,
    dataflow: Dataflow = None,
    bind: Bind = None,
    html: Html = None,
    json_file: Json = None,
    out: Out = None,
    workers: Workers = 1,
) -> None:
    """Compare mappers on one layer: convergence over samples and over time, and who is better, how surely.

    Curves are medians over seeds with intervals of order statistics. Ctrl-C shows the seeds that are complete (exit
    code 130).
    """
    from tilewright.api import compare as compare_mappers
    from tilewright.cli.progress import SearchBar
    from tilewright.report import contest_curves, contest_sheet, contest_tree

    ready(html, json_file)
    stop = threading.Event()
    with SearchBar() as bar:
        found = compare_mappers(
            network, arch, layer, mappers, objective=objective, budget=budget, seeds=seeds, seed=seed,
            tiling=tiling and tiling.value, constraints=Path(constraints) if constraints is not None else None,
            dataflow=dataflow, bind=sizes(bind, "--bind"), out=out, workers=workers, told=bar.update, stop=stop)
    if found.seeds:
        asked = f"{budget} a search, {len(found.seeds)} seed{'s' if len(found.seeds) > 1 else ''}"
        if workers > 1:
            asked += f", {workers} searches side by side: their seconds are not to be compared with others"
        sheet = contest_sheet(found, asked, shlex.join(["tilewright", *sys.argv[1:]]))
        deliver(sheet, contest_tree(found, asked), (html, json_file, out), "compare", (contest_curves(found),))
    end_early(stop, bool(found.seeds), out is not None)


def deliver(sheet: "Sheet", tree: object, places: tuple[Path | None, str | None, Path | None], name: str,
            more: "tuple[Table, ...]" = ()) -> None:
    """Print a study, and write its page, its JSON, and all of it with its tables as CSV into a folder."""
    from tilewright.report import print_sheet, write_sheet

    html, json_file, out = places
    print_sheet(sheet, console(json_file))
    text = json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if json_file is not None:
        write_text(json_file, text)
    if html is not None:
        typer.echo(f"Page {write_sheet(sheet, html)}", err=True)
    if out is not None:
        write_text(str(out / f"{name}.json"), text)
        tables = (*sheet.tables, *more)
        for table in tables:
            write_text(str(out / f"{table.name}.csv"), csv_text([table.columns, *table.rows]))
        page = write_sheet(sheet, out / f"{name}.html")
        typer.echo(f"Written: {page}; beside it {name}.json and {len(tables)} CSV files.", err=True)


def end_early(stop: threading.Event, some: bool, kept: bool) -> None:
    """Say what is missing, and end with the code for that, where a run was stopped."""
    if stop.is_set():
        typer.echo("Stopped before the end" + (". " if some else "; nothing is complete. ")
                   + ("The same command goes on from there." if kept else "With --out DIR a run can go on later."),
                   err=True)
        raise typer.Exit(INTERRUPTED)
