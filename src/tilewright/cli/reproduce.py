"""``tilewright reproduce``: a published table or figure, measured again."""

import re
from pathlib import Path
from typing import Annotated

import typer

from tilewright.base import InputError
from tilewright.cli.options import INTERRUPTED, On, console


def reproduce(
    name: Annotated[str | None, typer.Argument(
        metavar="NAME", show_default=False, help="What to reproduce, as ruby-table1; --list names all.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what can be reproduced, and end.")] = False,
    full: Annotated[bool, typer.Option(
        "--full", help="Spend what the paper spent or more; without it, what takes under a minute.")] = False,
    seeds: Annotated[int | None, typer.Option(
        "--seeds", show_default=False, help="Repetitions, in place of the setting's own.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for tables, data and plots.")] = Path(
        "out/reproduce"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what earlier runs computed.")] = False,
    keep_outdated: Annotated[bool, typer.Option(
        "--keep-outdated", help="Take over what was computed before the sources of the model changed.")] = False,
    page: Annotated[Path | None, typer.Option(
        "--write-page", metavar="FILE", show_default=False, help="Put the outcomes kept in DIR into the marked places "
        "of a page of documentation, as docs/papers.md, and end.")] = None,
    on: On = "auto",
) -> None:
    """Measure a published table or figure again: theirs beside ours, and a verdict on every claim.

    What ended is kept in DIR/NAME, so that a run that was interrupted goes on where it was.
    What was computed before the sources of the model changed is computed again.
    """
    if listed:
        _list()
        return
    if page is not None:
        from tilewright.reproduce import write_page

        typer.echo(f"Written to {page}: {', '.join(write_page(page, out))}.")
        return
    if name is None:
        raise InputError("NAME", "must be given", None, "tilewright reproduce --list names all reproductions")
    from tilewright.report import SearchBar
    from tilewright.reproduce import REPRODUCTIONS, print_reproduction, run_study, write_reproduction

    study = REPRODUCTIONS.get(name)
    try:
        with SearchBar("cells") as bar:
            outcome = run_study(study, "full" if full else "quick", seeds=seeds, out=out, fresh=fresh,
                                keep_outdated=keep_outdated, observer=bar.update, on=on)
    except KeyboardInterrupt:
        typer.echo(f"Stopped; what had ended is kept in {out / study.name}. The same command goes on from there.",
                   err=True)
        raise typer.Exit(INTERRUPTED) from None
    page = write_reproduction(outcome)
    print_reproduction(outcome, console())
    tables = len(outcome.findings.tables) + 1
    typer.echo(f"Written: {page}; beside it {outcome.file('json').name} and {tables} CSV files.")


def _list() -> None:
    from tilewright.report import print_listing
    from tilewright.reproduce import REPRODUCTIONS

    rows = [(name, study.title, study.source, str(study.quick), str(study.full))
            for name, study in ((name, REPRODUCTIONS.get(name)) for name in sorted(REPRODUCTIONS, key=_natural))]
    print_listing(("Reproduction", "What it shows", "Source", "Quick", "Full"), rows, (), console())


def _natural(name: str) -> list[tuple[str, int]]:
    """Return what sorts fig8 before fig10: letters as such, digits as numbers."""
    return [(letters, int(digits or -1)) for letters, digits in re.findall(r"(\D*)(\d*)", name)]
