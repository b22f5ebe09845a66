"""Mappings from those of like layers: legal, scored, no worse than what is known, and refused where nothing is."""

import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import KeptSets, MapSpace, flexible_spaces, is_legal
from tilewright.recommendation import first_guess
from tilewright.search import Objective, Source, search, search_spaces
from tilewright.workload import matmul

EDP = Objective.parse("edp", ())
KNOWN, LIKE = matmul("known", m=96, n=64, k=80), matmul("like", m=112, n=48, k=160)


@pytest.mark.parametrize("arch", ["edge-s2", "flexion"])
def test_a_known_layer_keeps_its_score_and_a_like_one_gets_a_legal_mapping_of_that_cost(arch):
    machine = preset(arch)
    found = search_spaces(flexible_spaces(KNOWN, machine), budget=600)
    lent = [Source(found.mapping, KNOWN.sizes)]
    assert first_guess(flexible_spaces(KNOWN, machine), lent, EDP).score <= found.score
    guess = first_guess(flexible_spaces(LIKE, machine), lent, EDP)
    told = tw.evaluate(guess.mapping, LIKE, arch)
    assert told.legal and guess.score == pytest.approx(told.cost.latency_cycles * told.cost.energy_pj)
    assert guess.mapper == "nearest" and 1 <= guess.samples <= 8 * len(flexible_spaces(LIKE, machine))
    assert guess.bound <= guess.score


def test_a_guess_lets_pass_what_its_source_does_and_the_better_source_wins():
    machine = preset("edge-s2")
    kept = KeptSets(MapSpace(KNOWN, machine))
    number = next(at for at in range(1, len(kept)) if kept.passed(at)[0][0] == "SG")
    whole, less = (search(KNOWN, machine, space=kept[at], budget=400) for at in (0, number))
    lent = [Source(one.mapping, KNOWN.sizes) for one in (whole, less)]
    spaces = KeptSets(MapSpace(LIKE, machine))
    alone = [first_guess(spaces, [one], EDP) for one in lent]
    assert [spaces.number_of(one.mapping) for one in alone] == [0, number]
    both = first_guess(spaces, lent, EDP)
    assert both.score == min(one.score for one in alone) and both.samples == sum(one.samples for one in alone)
    assert is_legal(both.mapping, LIKE, machine)


def test_no_source_is_refused():
    with pytest.raises(InputError, match="sources"):
        first_guess(flexible_spaces(LIKE, preset("edge-s2")), [], EDP)
