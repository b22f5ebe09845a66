"""What verbs do that make something which can be stopped, shown and written: studies, plans, machines."""

import json
import shlex
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import tilewright.api
import tilewright.report
from tilewright.base import Table, csv_text
from tilewright.cli.options import INTERRUPTED, Asked, console, ready, write_text

Html = Annotated[Path | None, typer.Option(
    "--html", metavar="FILE.html", show_default=False, help="Write a page with plots.")]

NOTHING = "; nothing is complete"


def contest_tables(found: Any) -> tuple[Table, ...]:
    """Return the tables of a contest that its page does not have."""
    return (tilewright.report.contest_curves(found),)


def times(seeds: Any) -> str:
    """Return how many seeds in words."""
    return f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"


def conduct(name: str, search: Callable[..., Any], asked: Asked, says: Callable[[Any], str],
            files: tuple[Path | None, str | None, Path | None], shown: str,
            tables: Callable[[Any], tuple[Table, ...]] = lambda found: ()) -> None:
    """Run a study with a bar; print it, and write its page, its JSON, and all of it with its tables into a folder.

    Parameters
    ----------
    name
        Of its files in the folder.
    search
        Makes the study of what is ``asked``; one that has a folder among that can be stopped, and go on later.
    says
        Returns what was asked for in words, empty where nothing is complete.
    files
        The page, the JSON, and the folder.
    shown
        What reports call its results.
    tables
        Returns those that go into the folder besides the ones of the page.
    """
    report, stop = tilewright.report, threading.Event()
    kept = None if "out" in asked or files[2] is None else files[2] / f"{name}.json"  # else the search looks at it
    ready(files[0], files[1], kept)
    found = conducted(search, asked, stop=stop) if "out" in asked else search(**asked)
    if told := says(found):
        sheet = getattr(report, f"{shown}_sheet")(found, told, shlex.join(["tilewright", *sys.argv[1:]]))
        deliver(name, sheet, getattr(report, f"{shown}_tree")(found, told), files, tables(found))
    if stop.is_set():
        end_early("" if told else NOTHING, files[2])


def conducted(search: Callable[..., Any], asked: Asked, unit: str = "searches",
              stop: threading.Event | None = None) -> Any:
    """Return what comes of a search that can be stopped, with a bar of so many of a ``unit``.

    Where it was stopped before there was anything, that is told, and the verb ends.
    """
    try:
        with tilewright.report.SearchBar(unit) as bar:
            return search(**asked, told=bar.update, stop=stop or threading.Event())
    except KeyboardInterrupt:
        end_early(NOTHING, asked["out"])


def end_early(what: str, out: Path | None) -> NoReturn:
    """End with the exit code of what Ctrl-C ended; say ``what`` there is of it, and how it goes on."""
    typer.echo(f"Stopped before the end{what}. " + ("The same command goes on from there." if out
                                                    else "With --out DIR a run can go on later."), err=True)
    raise typer.Exit(INTERRUPTED)


def deliver(name: str, sheet: "tilewright.report.Sheet", tree: dict[str, Any],
            files: tuple[Path | None, str | None, Path | None], tables: tuple[Table, ...] = ()) -> None:
    """Print a sheet, and write its page, its tree as JSON, and all of it with ``tables`` into a folder."""
    report, (html, json_file, out) = tilewright.report, files
    report.print_sheet(sheet, console(json_file))
    text = json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if json_file is not None:
        write_text(json_file, text)
    if html is not None:
        typer.echo(f"Page {report.write_sheet(sheet, html)}", err=True)
    if out is not None:
        every = (*sheet.tables, *tables)
        write_text(str(out / f"{name}.json"), text)
        for table in every:
            write_text(str(out / f"{table.name}.csv"), csv_text([table.columns, *table.rows]))
        page = report.write_sheet(sheet, out / f"{name}.html")
        typer.echo(f"Written: {page}; beside it {name}.json and {len(every)} CSV files.", err=True)
