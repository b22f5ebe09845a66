"""A reproduction as a person sees it: claims and tables on the terminal, and one self-contained page with the plots."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.base import Table, Value, write_whole
from tilewright.report.quantities import MISSING, engineering, significant
from tilewright.report.terminal import print_listing

_COLOURS = {"holds": "green", "holds in direction": "yellow", "does not hold": "red", "impossible as published": "red",
            "not judged": "dim"}
_LARGE = 1e7


def print_reproduction(outcome: Outcome, console: Console | None = None) -> None:
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


def print_tables(tables: Iterable[Table], numeric: Callable[[Table], tuple[int, ...]], console: Console) -> None:
    """Print tables with their titles and notes; ``numeric`` tells which columns of each read as numbers."""
    for table in tables:
        console.print(f"\n{table.title}", style="bold", markup=False, soft_wrap=True)
        print_listing(table.columns, [[shown(cell) for cell in row] for row in table.rows], numeric(table), console)
        for note in table.notes:
            console.print(note, style="dim", markup=False, soft_wrap=True)


def write_reproduction(outcome: Outcome) -> Path:
    """Write the page of a reproduction beside its data, and return its path."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415  (Plotly loads late)

    from tilewright.report.page import page_environment  # noqa: PLC0415

    figures = {plot.name: {"data": plot.data, "layout": plot.layout} for plot in outcome.findings.plots}
    text = page_environment().get_template("reproduction.html.j2").render(
        outcome=outcome, figures=figures, numeric=numeric, shown=shown, plotly_js=get_plotlyjs(),
        version=outcome.versions["tilewright"])
    return write_whole(outcome.file("html"), text)


def shown(cell: Value) -> str:
    """Return a cell as people read it: whole numbers with commas, others with three digits."""
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) and abs(cell) < _LARGE:
        return f"{cell:,}"
    return engineering(cell) if abs(cell) >= _LARGE or not math.isfinite(cell) else significant(cell)


def numeric(table: Table) -> tuple[int, ...]:
    """Return the columns of a table that hold numbers."""
    columns = range(len(table.columns))
    return tuple(index for index in columns
                 if any(row[index] is not None for row in table.rows)
                 and all(row[index] is None or not isinstance(row[index], str) for row in table.rows))
