"""Sheets on a terminal."""

from io import StringIO

import pytest
from rich.console import Console

from tilewright.base import Table
from tilewright.report import Sheet, print_sheet


@pytest.mark.parametrize(("rows", "terminal", "heads"), [(30, True, 2), (5, True, 1), (30, False, 1)])
def test_the_verdict_is_seen_below_tables_that_fill_a_terminal(rows, terminal, heads):
    text = StringIO()
    table = Table("jobs", "Jobs", ("Job", "Cycles"), tuple((row, 10 * row) for row in range(rows)))
    sheet = Sheet("mix on s4", "", ("No schedule does better.", "Seed 0."), (table,))
    print_sheet(sheet, Console(file=text, width=80, height=24, force_terminal=terminal, color_system=None))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    assert lines.count("mix on s4") == lines.count("No schedule does better.") == heads
    assert lines.count("Seed 0.") == 1
    assert lines[-2:] == ["mix on s4", "No schedule does better."] or heads == 1
