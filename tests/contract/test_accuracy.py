"""No error has grown, none is accepted that is not there, and the page on accuracy tells what is measured."""

from pathlib import Path

import pytest

from tilewright.report import accuracy_page
from tilewright.validation import ReferenceSet, validate

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
COMMAND = ("tilewright validate --page docs/accuracy.md --accept src/tilewright/validation/data/accepted.json\n"
           "writes the errors of the present code, where they are meant to be so")


@pytest.fixture(scope="module")
def board():
    return validate()


def test_no_error_has_grown(board):
    grown = [(outcome.set.name, each.quantity, each.found, each.accepted) for outcome in board.outcomes
             for each in outcome.judged if not each.holds]
    assert not grown, COMMAND


def test_no_more_error_is_accepted_than_there_is(board):
    slack = [(outcome.set.name, each.quantity) for outcome in board.outcomes for each in outcome.judged
             if each.verdict == "better"]
    assert not slack, f"These have become better. {COMMAND}"


def test_the_page_on_accuracy_is_what_is_measured(board):
    assert PAGE.read_text(encoding="utf-8") == accuracy_page(board), COMMAND


def test_every_case_of_sets_with_few_is_on_the_page(board):
    text = accuracy_page(board)
    for outcome in board.outcomes:
        assert isinstance(outcome.set, ReferenceSet)
        assert f"\n## {outcome.set.name}\n" in text
        if outcome.set.each_case:
            for figure in outcome.findings.figures:
                assert f"| {figure.quantity} | {figure.case} |" in text


@pytest.mark.slow
def test_no_error_has_grown_in_a_full_run():
    assert validate(full=True).holds, COMMAND
