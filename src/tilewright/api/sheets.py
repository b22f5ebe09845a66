"""Results that are shown on a sheet: printed, or written as a page or as JSON."""

import json
import os
from pathlib import Path
from typing import Any, Protocol

import tilewright.report
from tilewright.api.places import ready_place
from tilewright.api.text import shown
from tilewright.base import write_whole


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

    def __str__(self) -> str:
        return shown(lambda console: tilewright.report.print_sheet(self.sheet, console))
