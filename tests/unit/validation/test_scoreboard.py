"""Errors, orders and verdicts; what a set must say of itself."""

import json
from dataclasses import replace
from math import inf

import pytest

from tilewright.base import InputError
from tilewright.validation import (
    SETS,
    Figure,
    Quantity,
    ReferenceSet,
    SetFigures,
    Summary,
    accepted_text,
    read_accepted,
    reference_sets,
    summary,
    validate,
)
from tilewright.validation.accepting import accepted_key, judge

CYCLES = Quantity("cycles", "cycles", ordered=True)
FIGURES = tuple(Figure(f"case {n}", "cycles", ours, theirs) for n, (ours, theirs) in enumerate(
    [(110, 100), (190, 200), (300, 300), (290, 400)]))
SET = ReferenceSet("mine", "Mine", "model", "nobody", (CYCLES,), lambda watch: SetFigures(FIGURES), "about")


@pytest.mark.parametrize(("ours", "theirs", "error"), [
    (110, 100, 0.1), (90, 100, -0.1), (0, 0, 0.0), (1, 0, inf), (0, 5, -1.0)])
def test_an_error_is_ours_over_theirs_less_one(ours, theirs, error):
    assert Figure("case", "cycles", ours, theirs).error == pytest.approx(error)


def test_a_summary_has_median_worst_and_order():
    found = summary(CYCLES, FIGURES)
    assert found == Summary(4, pytest.approx(0.075), pytest.approx(0.275), pytest.approx(5 / 6), "case 3")
    assert summary(replace(CYCLES, ordered=False), FIGURES).order is None
    assert summary(CYCLES, ()) == Summary(0, inf, inf)


def accepted(**changes):
    return {"mine": {"cycles": replace(Summary(4, 0.075, 0.275, 0.8333), **changes)}}


@pytest.mark.parametrize(("changes", "verdict"), [
    ({}, "as accepted"),
    ({"worst_error": 0.3}, "better"),
    ({"order": 0.8}, "better"),
    ({"worst_error": 0.2749}, "grown"),
    ({"median_error": 0.07}, "grown"),
    ({"order": 0.84}, "grown"),
    ({"cases": 5}, "grown"),
    ({"cases": 3}, "as accepted"),
])
def test_an_error_that_grows_is_told(changes, verdict):
    outcome = judge(SET, SetFigures(FIGURES), accepted(**changes))
    assert outcome.judged[0].verdict == verdict
    assert outcome.holds == (verdict != "grown")


def test_what_nobody_accepted_does_not_hold():
    outcome = judge(SET, SetFigures(FIGURES), {})
    assert outcome.judged[0].verdict == "not accepted yet"
    assert not outcome.holds


def test_a_full_run_that_compares_more_has_errors_of_its_own():
    deeper = replace(SET, deeper=True)
    assert judge(deeper, SetFigures(FIGURES), accepted(), full=True).key == "mine --full"
    assert judge(deeper, SetFigures(FIGURES), accepted()).holds
    assert not judge(deeper, SetFigures(FIGURES), accepted(), full=True).holds
    assert judge(SET, SetFigures(FIGURES), accepted(), full=True).holds


def test_a_quantity_without_figures_does_not_hold():
    assert not judge(SET, SetFigures(()), accepted()).holds


def test_figures_of_quantities_that_a_set_does_not_name_are_a_fault():
    with pytest.raises(ValueError, match="mine has figures of energy"):
        judge(SET, SetFigures((Figure("case", "energy", 1, 1),)), {})


def test_accepted_errors_are_read_back_and_others_are_kept(tmp_path):
    file = tmp_path / "accepted.json"
    endless = SetFigures((Figure("case", "cycles", 1, 0),))
    kept = {"other": {"energy": Summary(1, 0.5, 0.5)}}
    file.write_text(accepted_text((judge(SET, endless, {}),), kept))
    assert read_accepted(file) == {**kept, "mine": {"cycles": Summary(1, inf, inf, 1.0)}}
    assert judge(SET, endless, read_accepted(file)).judged[0].verdict == "as accepted"


@pytest.mark.parametrize("text", ["", "[]", '{"mine": 3}', '{"mine": {"cycles": {}}}',
                                  '{"mine": {"cycles": {"cases": 1, "median_error": "large", "worst_error": 0}}}'])
def test_a_broken_file_of_accepted_errors_is_refused(tmp_path, text):
    file = tmp_path / "accepted.json"
    file.write_text(text)
    with pytest.raises(InputError, match="must hold accepted errors"):
        read_accepted(file)


def test_a_missing_file_of_accepted_errors_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be a readable file"):
        read_accepted(tmp_path / "none.json")


def test_sets_come_from_our_oracle_to_chips():
    kinds = [found.kind for found in reference_sets()]
    order = ["oracle", "model", "RTL", "silicon"]
    assert kinds == sorted(kinds, key=order.index)
    assert kinds[0] == "oracle"
    assert {found.name for found in reference_sets()} == set(SETS)


@pytest.mark.parametrize("name", list(SETS))
def test_every_set_says_what_it_is(name):
    found = SETS.get(name)
    assert found.name == name
    assert found.about and found.source and found.quantities
    names = [quantity.name for quantity in found.quantities]
    assert len(set(names)) == len(names)
    assert all(set(read_accepted()[accepted_key(found, full)]) == set(names) for full in (False, True))


def test_nothing_is_accepted_of_sets_that_are_gone():
    assert set(read_accepted()) == {accepted_key(SETS.get(name), full) for name in SETS for full in (False, True)}


@pytest.mark.parametrize("names", [["gemini"], ["gemmini", "gemmini"]])
def test_wrong_names_are_refused(names):
    with pytest.raises(InputError):
        validate(names)


def test_progress_is_told_and_all_is_plain_data():
    told = []
    board = validate(["gemmini"], observer=lambda *args: told.append(args))
    assert told[0] == ("gemmini", 0, 74)
    tree = json.loads(json.dumps(board.plain, allow_nan=False))
    (found,) = tree["sets"]
    assert found["kind"] == "RTL" and found["holds"] and tree["holds"]
    assert len(found["cases"]) == sum(quantity["found"]["cases"] for quantity in found["quantities"])
    assert {"case", "quantity", "ours", "reference", "error"} == set(found["cases"][0])
