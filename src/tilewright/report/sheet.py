"""A plain page of facts, plots and tables, for what is no run of searches over layers."""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.base import Plot, Table, Value, write_whole
from tilewright.report.quantities import MISSING, engineering, significant
from tilewright.report.terminal import print_listing
from tilewright.store import RunRecord

_LARGE = 1e7


@dataclass(frozen=True)
class Sheet:
    """What a person sees, on the terminal (without plots) and as a page."""

    title: str
    lead: str
    facts: tuple[str, ...]
    """Short lines below the title."""
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()
    folded: Mapping[str, tuple[Plot, ...]] = field(default_factory=dict)
    """Plots that the page shows when asked to, by heading."""
    command: str = ""
    """What repeats it."""
    runs: tuple[RunRecord, ...] = ()
    """Runs whose mappings the page shows."""


def numeric(table: Table) -> tuple[int, ...]:
    """Return the columns that read as numbers: numbers, or texts that begin as such (percentages, estimates)."""
    def reads(cell: Value) -> bool:
        return not isinstance(cell, str) or not cell or re.match(r"[+-]?\d|-$", cell) is not None

    return tuple(index for index in range(len(table.columns)) if all(reads(row[index]) for row in table.rows)
                 and any(row[index] not in (None, "") for row in table.rows))


def print_sheet(sheet: Sheet, console: Console | None = None) -> None:
    """Print title, facts and tables; on a terminal that these fill, title and first fact once more below."""
    console = console or Console(highlight=False)
    _head(sheet.title, sheet.facts, console)
    print_tables(sheet.tables, numeric, console)
    if console.is_terminal and sum(len(table.rows) for table in sheet.tables) >= console.height:
        console.print()
        _head(sheet.title, sheet.facts[:1], console)


def _head(title: str, facts: Iterable[str], console: Console) -> None:
    console.print(Text(title, style="bold"), soft_wrap=True)
    for fact in facts:
        console.print(fact, style="dim", markup=False, soft_wrap=True)


def write_sheet(sheet: Sheet, path: str | os.PathLike[str]) -> Path:
    """Write the page to ``path`` and return it.

    Raises an `InputError` if the place cannot be written.
    """
    plots = [*sheet.plots, *(plot for group in sheet.folded.values() for plot in group)]
    from tilewright.report.page import nests_of  # noqa: PLC0415  (Jinja loads late)

    return write_plots("sheet.html.j2", path, plots, sheet=sheet, numeric=numeric, **nests_of(sheet.runs))


def write_plots(template: str, path: str | os.PathLike[str], plots: Iterable[Plot], **values: object) -> Path:
    """Write a page of tables and plots, and return its path."""
    from tilewright.report.page import page_environment  # noqa: PLC0415

    figures = {plot.name: {"data": plot.data, "layout": plot.layout} for plot in plots}
    return write_whole(Path(path), page_environment().get_template(template).render(
        **values, figures=figures, shown=shown, version=version("tilewright")))


def print_tables(tables: Iterable[Table], numeric: Callable[[Table], tuple[int, ...]], console: Console) -> None:
    """Print tables with their titles and notes; ``numeric`` tells which columns of each read as numbers."""
    for table in tables:
        console.print(f"\n{table.title}", style="bold", markup=False, soft_wrap=True)
        print_listing(table.columns, [[shown(cell) for cell in row] for row in table.rows], numeric(table), console)
        for note in table.notes:
            console.print(note, style="dim", markup=False, soft_wrap=True)


def shown(cell: Value) -> str:
    """Return a cell as people read it: whole numbers with commas, others with three digits."""
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) and abs(cell) < _LARGE:
        return f"{cell:,}"
    return engineering(cell) if abs(cell) >= _LARGE or not math.isfinite(cell) else significant(cell)
