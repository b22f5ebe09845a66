"""``tilewright reproduce``: a published table or figure, measured again."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import InputError
from tilewright.cli.options import console

if TYPE_CHECKING:
    from tilewright.reproduce import Standing

INTERRUPTED = 130


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
) -> None:
    """Measure a published table or figure again: theirs beside ours, and a verdict on every claim.

    What ended is kept in DIR/NAME/cells.jsonl, so that a run that was interrupted goes on where it was.
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
    from tilewright.report import print_reproduction, write_reproduction
    from tilewright.reproduce import REPRODUCTIONS, run_study

    study = REPRODUCTIONS.get(name)
    try:
        with _Bar() as bar:
            outcome = run_study(study, "full" if full else "quick", seeds=seeds, out=out, fresh=fresh,
                                keep_outdated=keep_outdated, observer=bar.update)
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


class _Bar:
    """A bar on stderr: cells done, samples a second, time left; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        screen = Console(stderr=True)
        self.bars = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[about]}"),
            console=screen, transient=True, disable=not screen.is_terminal)
        self.task = self.bars.add_task("Starting", total=None, about="")

    def __enter__(self) -> "_Bar":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def update(self, standing: "Standing") -> None:
        """Show where the study stands."""
        from tilewright.report import engineering

        parts = [f"{engineering(standing.samples)} samples",
                 f"{engineering(standing.samples / max(standing.seconds, 1e-9))}/s"] if standing.samples else []
        if standing.eta_seconds is not None:
            left = int(standing.eta_seconds)
            parts.append(f"{left // 60}:{left % 60:02d} left")
        self.bars.update(self.task, description=f"{standing.study} {standing.done}/{standing.total} cells",
                         total=standing.total, completed=standing.done, about=" · ".join(parts))
