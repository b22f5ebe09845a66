"""The one rule by which all claims are judged."""

import math

import pytest

from tilewright.reproduce import REPRODUCTIONS
from tilewright.reproduce.claims import apart, cases, exact, gain, judge, kept, lower, part_of, same
from tilewright.reproduce.study import claims, published_cells

FASTER = gain("faster", "runtime 0.5", 0.5)


def verdict(claim, ours, **more):
    return judge(claim, ours, "", **more).verdict


@pytest.mark.parametrize(("ours", "expected"), [
    (0.4, "holds"), (0.5, "holds"), (0.5 ** 0.76, "holds"), (0.5 ** 0.74, "holds in direction"),
    (0.5 ** 0.26, "holds in direction"), (0.5 ** 0.24, "does not hold"), (1.0, "does not hold"),
    (2.0, "does not hold")])
def test_three_quarters_of_a_gain_hold_and_one_quarter_in_direction(ours, expected):
    assert verdict(FASTER, [ours] * 3) == verdict(FASTER, ours) == expected
    assert verdict(gain("slower", "2", 2.0), [1 / ours] * 3) == expected


def test_the_interval_over_seeds_must_not_reach_what_is_no_gain():
    assert verdict(FASTER, [0.5] * 4 + [1.01]) == "does not hold"
    assert verdict(FASTER, [0.5] * 4 + [0.99]) == "holds"
    # nine seeds: from the second smallest to the second largest, so one stray seed is none of it
    assert verdict(FASTER, [0.5] * 8 + [1.5]) == "holds"
    low, median, high = judge(FASTER, [0.5, 0.6, 0.9], "").reached
    assert (high, median, low) == (1.0, pytest.approx(math.log(0.6) / math.log(0.5)),
                                   pytest.approx(math.log(0.9) / math.log(0.5)))


def test_one_seed_has_no_interval_and_what_is_counted_needs_none():
    assert verdict(FASTER, [0.5]) == verdict(FASTER, []) == "not judged"
    assert verdict(FASTER, 0.5) == "holds"
    assert verdict(FASTER, [0.5, math.nan]) == "does not hold"
    assert verdict(FASTER, [math.inf, 0.5]) == verdict(FASTER, [math.inf] * 2) == "does not hold"


def test_impossible_is_what_a_bound_says():
    assert verdict(FASTER, [0.5] * 3, impossible=True) == "impossible as published"


def test_alike_is_judged_by_what_it_is_contrasted_with():
    alike = same("the same", "1", 0.8, "the ratio")
    values = [(1.0, "holds"), (1.25 ** 0.2, "holds"), (1.25 ** 0.5, "holds in direction"), (1.25, "does not hold"),
              (3.0, "does not hold")]
    assert [verdict(alike, [value] * 2) for value, _ in values] == [expected for _, expected in values]
    assert apart(2.0, 4.0) == apart(4.0, 2.0) == 2.0 and apart(0.0, 1.0) == math.inf


def test_shares_count_from_what_luck_gives():
    first = cases("first", "all", "the share")
    assert [verdict(first, [share] * 2) for share in (1.0, 0.88, 0.86, 0.63, 0.6, 0.5, 0.0)] == [
        "holds", "holds", "holds in direction", "holds in direction", *["does not hold"] * 3]
    assert lower([(1, 2), (2, 2), (3, 2)]) == 0.5
    most = kept("most", "0.9", "the part", 0.9)
    assert [verdict(most, [part_of(part, 0.4)] * 2) for part in (0.5, 0.9)] == ["holds", "does not hold"]
    assert part_of(0.9, 1.0) == part_of(0.9, math.inf) == 0.0


def test_counted_figures_must_all_be_the_printed_ones():
    table = exact("a table", "1 2 3 4", "all")
    assert [verdict(table, share) for share in (1.0, 0.75, 0.7)] == ["holds", "holds in direction", "does not hold"]


def test_a_study_judges_the_claims_of_the_file_in_its_order_and_begins_with_them():
    rows = published_cells("claims")[1:]
    assert {row[0] for row in rows} <= set(REPRODUCTIONS)
    for name in REPRODUCTIONS:
        named = [text for of, _, _, _, _, text, *_ in rows if of == name]
        assert [claim.text for claim in REPRODUCTIONS.get(name).claims][:len(named)] == named


def test_a_claim_of_the_file_may_give_its_figure_as_a_quotient_or_leave_it_to_the_code():
    *_, nearly, coarse, _ = claims("flexion-shape", NEARLY=0.5)
    assert (nearly.figure, coarse.figure) == (0.5, 0.96 / 0.98)
    assert [claim.figure for claim in claims("gamma-fig4.5", 3.0, 4.0)][:2] == [3.0, 4.0]
