"""Whole numbers among the words that people type."""

import pytest

from tilewright.base import whole_of


@pytest.mark.parametrize(("text", "number"), [
    ("7", 7), ("0007", 7), ("0", None), ("-7", None), ("7.0", None), ("", None),
    ("x", None), ("\u00b2", None), ("\uff11\uff16", None),
    (str(2**63 - 1), 2**63 - 1), (str(2**63), None), ("9" * 5000, None), ("0" * 5000 + "3", 3)])
def test_whole_numbers_are_read_or_none(text, number):
    assert whole_of(text) == number


def test_limits_belong_to_the_range():
    assert [whole_of(text, 0, 12) for text in ("0", "12", "13")] == [0, 12, None]
