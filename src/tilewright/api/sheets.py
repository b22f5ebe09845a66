"""Results that are shown on a sheet: printed, or written as a page or as JSON."""

import json
import os
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import tilewright.report
from tilewright.api.places import ready_place
from tilewright.api.text import data_frame, plotly_figure, shown
from tilewright.base import text_html, unknown_name, write_whole

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure


class OnSheet(Protocol):
    """What has a ``sheet``, and the same as ``plain`` data."""

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""

    def write_report(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained HTML page; folders are made."""
        return tilewright.report.write_sheet(self.sheet, ready_place(path))

    def write_json(self, path: str | os.PathLike[str]) -> Path:
        """Write all of it as JSON; folders are made."""
        return write_whole(ready_place(path), json.dumps(self.plain, indent=1, ensure_ascii=False) + "\n")

    def plot(self, name: str = "") -> "Figure":
        """Return one of its plots as a Plotly figure, by name; by default the first one."""
        plots = {one.name: one for one in (*self.sheet.plots, *chain(*self.sheet.folded.values()))}
        if not plots or (name and name not in plots):
            raise unknown_name("plot", name, list(plots))
        found = plots[name or next(iter(plots))]
        return plotly_figure({"data": found.data, "layout": {**found.layout, "title": {"text": found.title}}})

    def to_pandas(self, table: str = "") -> "DataFrame":
        """Return one of its tables as a data frame of pandas, which must be installed; by default the first one."""
        tables = {one.name: one for one in self.sheet.tables}
        if not tables or (table and table not in tables):
            raise unknown_name("table", table, list(tables))
        found = tables[table or next(iter(tables))]
        return data_frame(found.rows, found.columns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sheet.title}: {next(iter(self.sheet.facts), '')})"

    def _repr_html_(self) -> str:
        return text_html(self)

    def __str__(self) -> str:
        return shown(lambda console: tilewright.report.print_sheet(self.sheet, console))
