"""Tables and plots as plain data: what studies and reproductions hand out, and reports show."""

from dataclasses import dataclass
from typing import Any

Value = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A table as it is printed and written as CSV."""

    name: str
    """Ends the name of the CSV file."""
    title: str
    columns: tuple[str, ...]
    """Heads, with units; cells are texts, numbers or None."""
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    """Printed below."""


@dataclass(frozen=True)
class Plot:
    """A Plotly figure in plain data; colours are names such as ``@curve-0`` (see `tilewright.report`)."""

    name: str
    title: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    note: str = ""
