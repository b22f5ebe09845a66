"""The scoreboard on the terminal and as a page."""

import io

import pytest
from rich.console import Console

from tilewright.report import accuracy_page, print_scoreboard
from tilewright.report.validation import error_text, number
from tilewright.validation import Figure, Quantity, ReferenceSet, Scoreboard, SetFigures
from tilewright.validation.accepting import judge

FIGURES = (Figure("first", "cycles", 110, 100), Figure("second", "cycles", 0, 0), Figure("third", "words", 7, 0))
SET = ReferenceSet("mine", "My chip", "silicon", "measured by us", (Quantity("cycles", "cycles"), Quantity("words")),
                   lambda watch: SetFigures(FIGURES), "One line.\n\n- an item\n- another\n\nAnd a last one.",
                   "Because.", each_case=True)
BOARD = Scoreboard((judge(SET, SetFigures(FIGURES, ("A note.",)), {}),))


@pytest.mark.parametrize(("error", "text"), [
    (0.0, "0 %"), (1e-7, "< 0.001 %"), (-1e-7, "< 0.001 %"), (0.0005, "+0.05 %"), (-0.123, "-12.3 %"),
    (5.0, "+500.0 %"), (float("inf"), "unbounded")])
def test_errors_are_told_with_the_digits_they_have(error, text):
    assert error_text(error) == text


@pytest.mark.parametrize(("value", "text"), [(1234567, "1,234,567"), (15.49873, "15.499"), (234567.8, "234,568")])
def test_figures_keep_their_digits(value, text):
    assert number(value) == text


def test_the_terminal_shows_errors_and_what_has_grown():
    out = io.StringIO()
    print_scoreboard(BOARD, Console(file=out, width=200), cases=True)
    text = out.getvalue()
    assert "10.0 %" in text and "unbounded" in text and "mine: A note." in text
    assert "Errors that have grown: mine (cycles); mine (words)." in text
    assert [line.split() for line in text.splitlines() if line.startswith("first")] == [
        ["first", "cycles", "110", "100", "+10.0", "%"]]


def test_the_page_has_a_section_with_every_case():
    page = accuracy_page(BOARD)
    assert "| [mine](#mine) | silicon | cycles | 2 | 5.0 % | 10.0 % (first) | - |" in page
    assert "\n## mine\n\nMy chip (silicon). Source: measured by us.\n\nOne line.\n\n- an item\n- another\n\nAnd" in page
    assert "| cycles | first | 110 | 100 | +10.0 % |" in page
    assert page.endswith("A note.\n\nBecause.\n")
    assert max(map(len, page.splitlines())) <= 128
