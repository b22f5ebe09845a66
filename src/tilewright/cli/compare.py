"""``tilewright compare``: which mapper is better, how surely, and how fast."""

import json
import shlex
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.api.options import CompareOptions
from tilewright.base import csv_text
from tilewright.cli.options import Asked, Json, console, ready, verb, write_text

if TYPE_CHECKING:
    from tilewright.base import Table
    from tilewright.report import Sheet

INTERRUPTED = 130

Html = Annotated[Path | None, typer.Option(
    "--html", metavar="FILE.html", show_default=False, help="Write a page with plots.")]


@verb(CompareOptions)
def compare(asked: Asked, html: Html = None, json_file: Json = None) -> None:
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
        found = compare_mappers(**asked, told=bar.update, stop=stop)
    if found.seeds:
        says = f"{asked['budget']} a search, {times(len(found.seeds))}"
        if asked["workers"] > 1:
            says += f", {asked['workers']} searches side by side: their seconds are not to be compared with others"
        deliver(contest_sheet(found, says, command()), contest_tree(found, says), (html, json_file, asked["out"]),
                "compare", (contest_curves(found),))
    end_early(stop, bool(found.seeds), asked["out"] is not None)


def command() -> str:
    """Return the command line as it was given."""
    return shlex.join(["tilewright", *sys.argv[1:]])


def times(seeds: int) -> str:
    """Return how many seeds in words."""
    return f"{seeds} seed{'s' if seeds > 1 else ''}"


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
