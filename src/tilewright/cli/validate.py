"""``tilewright validate``: our figures beside those of other models, RTL and chips."""

from typing import Annotated

import typer

import tilewright.report
from tilewright.base import InputError
from tilewright.cli.options import INTERRUPTED, Json, console, ready, write_json, write_text

GROWN = 1


def validate(
    sets: Annotated[list[str] | None, typer.Argument(
        metavar="[SET]...", show_default=False, help="Sets of reference figures; --list names them. Default: all.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the sets, and end.")] = False,
    cases: Annotated[bool, typer.Option("--cases", help="Show every case besides.")] = False,
    full: Annotated[bool, typer.Option(
        "--full", help="Minutes instead of seconds: more random nests beside the oracle.")] = False,
    json_file: Json = None,
    page: Annotated[str | None, typer.Option(
        "--page", metavar="FILE.md", show_default=False,
        help="Write the page on accuracy of the documents; - is standard output. For all sets.")] = None,
    accept: Annotated[str | None, typer.Option(
        "--accept", metavar="FILE.json", show_default=False,
        help="Write the errors of this run, as those to be accepted from now on "
             "(src/tilewright/validation/data/accepted.json); - is standard output.")] = None,
) -> None:
    """Set our figures beside those of other models, RTL simulation and chips, and judge the errors.

    Exit code 1: an error has grown beyond the one that is accepted.
    """
    if listed:
        _list()
        return
    if page is not None and (sets or full):
        raise InputError("--page", "must come without sets and --full: it tells a quick run of all of them", page)
    from tilewright.api import validate as run_sets
    from tilewright.report import Bar

    ready(None, json_file)
    try:
        with Bar("Starting") as bar:
            board = run_sets(sets or (), full=full,
                             observer=lambda name, done, total: bar.show(name, done, total, f"{done}/{total}"))
    except KeyboardInterrupt:
        typer.echo("Stopped before the end; nothing is judged.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    write_json(json_file, board.plain, ensure_ascii=False, allow_nan=False)
    if page is not None:
        write_text(page, tilewright.report.accuracy_page(board))
    if accept is not None:
        from tilewright.validation import accepted_text, read_accepted

        write_text(accept, accepted_text(board.outcomes, read_accepted()))
    tilewright.report.print_scoreboard(board, console("-" if "-" in (json_file, page, accept) else None), cases=cases)
    raise typer.Exit(0 if board.holds or accept is not None else GROWN)


def _list() -> None:
    from tilewright.validation import reference_sets

    rows = [(found.name, found.title, found.kind, found.source) for found in reference_sets()]
    tilewright.report.print_listing(("Set", "What it is", "Reference", "Source"), rows, (), console())
