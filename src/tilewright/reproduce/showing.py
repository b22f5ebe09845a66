"""A reproduction as a person sees it: claims and tables on the terminal, and one self-contained page with the plots."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.report import print_tables, significant, write_plots
from tilewright.reproduce.running import StudyOutcome
from tilewright.reproduce.study import Table

_COLOURS = {"holds": "green", "holds in direction": "yellow", "does not hold": "red", "impossible as published": "red",
            "not judged": "dim"}


def print_reproduction(outcome: StudyOutcome, console: Console | None = None) -> None:
    """Print the paper's table beside ours, and the verdict on every claim."""
    console = console or Console(highlight=False)
    study, found = outcome.study, outcome.findings
    console.print(Text(f"{study.name}: {study.title}", style="bold"), soft_wrap=True)
    console.print(f"{study.source} · {outcome.setting}", style="dim", markup=False, soft_wrap=True)
    print_tables(found.tables, numeric, console)
    console.print("\nClaims", style="bold")
    for judged in found.judgements:
        console.print(Text.assemble((judged.verdict, f"bold {_COLOURS[judged.verdict]}"), f": {judged.claim.text}"),
                      soft_wrap=True)
        part = f" ({judged.effect} of the effect)" if judged.effect else ""
        console.print(f"  published {judged.claim.published}; ours {judged.ours}{part}"
                      f"{f'; {judged.because}' if judged.because else ''}", markup=False, soft_wrap=True)
    for note in found.notes:
        console.print(f"\n{note}", markup=False, soft_wrap=True)
    console.print(f"\n{outcome.computed_cells} cells computed, {outcome.reused_cells} taken over, "
                  f"{significant(outcome.seconds)} s.", style="dim", markup=False, soft_wrap=True)
    if outcome.older_cells:
        console.print(f"{outcome.older_cells} cells were computed by other sources than the present ones: without "
                      "--keep-outdated they are computed anew.", style="yellow", markup=False, soft_wrap=True)


def write_reproduction(outcome: StudyOutcome) -> Path:
    """Write the page of a reproduction beside its data, and return its path."""
    return write_plots("reproduction.html.j2", outcome.file("html"), outcome.findings.plots, outcome=outcome,
                       numeric=numeric)


def numeric(table: Table) -> tuple[int, ...]:
    """Return the columns of a table that hold numbers."""
    columns = range(len(table.columns))
    return tuple(index for index in columns
                 if any(row[index] is not None for row in table.rows)
                 and all(row[index] is None or not isinstance(row[index], str) for row in table.rows))
