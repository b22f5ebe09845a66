"""Searches over unions of spaces: equal samples, the best of all members, nothing lost."""

import time
from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import CLASSES, preset
from tilewright.jobs import finished
from tilewright.mapping import MapSpace, flexible_spaces
from tilewright.search import (
    Budget,
    Objective,
    Watch,
    race,
    search,
    search_flexible,
    search_network,
    search_spaces,
)
from tilewright.search.run import Request
from tilewright.workload import convolution, matmul

BASE = preset("flexion")
LAYER = convolution("c", in_channels=24, out_channels=40, in_size=14, kernel=3, padding=1)


def flexible(bits):
    return replace(BASE, flexibility=BASE.flexibility.of_class(bits))


@pytest.mark.sample(6)
@pytest.mark.parametrize("bits", CLASSES)
def test_every_class_is_searched_with_the_samples_given(bits):
    found = search_flexible(LAYER, flexible(bits), objective="latency", budget=600, seed=3)
    assert found.mapping is not None
    assert found.samples <= 600
    assert found.samples == 600 or found.complete
    assert (found.stopped == "exhausted") == found.complete
    assert found.seed == 3
    assert found.budget.samples == 600


def test_an_inflexible_machine_needs_one_sample():
    found = search_flexible(LAYER, BASE, budget=500)
    assert (found.samples, found.complete, found.space_size.mappings) == (1, True, 1)


def test_more_flexibility_is_no_worse_where_all_is_enumerated():
    latency = {}
    for bits in ("0000", "0010"):
        found = search_flexible(LAYER, flexible(bits), objective="latency", budget=2000)
        assert found.complete
        latency[bits] = found.cost.latency_cycles
    assert latency["0010"] <= latency["0000"]


def test_the_best_member_is_found():
    spaces = flexible_spaces(LAYER, flexible("0010"))
    each = [search(space.operator, space.accelerator, space=space, objective="latency", mapper="exhaustive",
                   budget=1000).score for space in spaces]
    assert search_spaces(spaces, objective="latency", budget=1000).score == min(each)


def test_the_better_of_two_large_spaces_is_found():
    """The first is on a machine where no access is as cheap as on that of the second."""
    dear = preset("edge-s1")
    dear = replace(dear, compute=replace(dear.compute, energy_pj_per_mac=1e6))
    spaces = MapSpace(LAYER, dear), MapSpace(LAYER, preset("edge-s1"))
    found = search_spaces(spaces, objective="energy", mapper="random", budget=400)
    alone = search(LAYER, dear, objective="energy", mapper="random", budget=400)
    assert (found.samples, alone.samples) == (400, 400)
    assert found.score < alone.bound


def test_members_that_their_part_covers_are_enumerated_beside_those_that_race():
    """One mapping, on a machine where no access of the other member's machine is as cheap."""
    dear = preset("edge-s1")
    dear = replace(dear, compute=replace(dear.compute, energy_pj_per_mac=1e6))
    one, large = flexible_spaces(LAYER, BASE)[0], MapSpace(LAYER, dear)
    alone = search(LAYER, one.accelerator, space=one, objective="energy", mapper="exhaustive", budget=2)
    found = search_spaces([large, one], objective="energy", budget=400, options={"prove": 0})
    assert (found.score, found.samples) == (alone.score, 400)


def test_members_race_for_what_enumeration_has_left_over():
    few, large = flexible_spaces(LAYER, flexible("0010")), [MapSpace(LAYER, preset("edge-s1"))] * 2
    request = Request(large[0], Objective.parse("latency"), "random", Budget(1000, 60.0), 0, {})
    members = race._Race(race._Rules.of_spaces([*few, *large], request, Watch()), request, Watch())
    assert len(members.entrants()) == 2
    for number in members.rules.first:
        finished(members.give(members.member(number)))
    members.begin()
    assert members.samples == 1000 - sum(space.size().mappings for space in few) > 0
    assert members.seconds == 60 - sum(members.member(number).run.seconds for number in members.rules.first) < 60


def test_a_member_that_a_bound_rules_out_is_bred_no_further():
    """As above; that no access is as cheap is proved once the other member's mapping is known."""
    dear = preset("edge-s1")
    dear = replace(dear, compute=replace(dear.compute, energy_pj_per_mac=1e6))
    found = search_spaces([MapSpace(LAYER, dear), flexible_spaces(LAYER, BASE)[0]], objective="energy", budget=400)
    assert found.complete
    assert found.samples < 10


def test_the_same_seed_finds_the_same():
    one, other = (search_flexible(LAYER, flexible("1011"), budget=900, seed=1) for _ in range(2))
    assert one.mapping == other.mapping
    assert [(x.samples, x.score) for x in one.history] == [(x.samples, x.score) for x in other.history]


def test_one_member_is_searched_as_alone():
    space = MapSpace(LAYER, preset("edge-s1"))
    alone = search(LAYER, preset("edge-s1"), space=space, budget=700, seed=5)
    found = search_spaces([space], budget=700, seed=5)
    assert (found.mapping, found.score, found.samples, found.stopped) == (
        alone.mapping, alone.score, alone.samples, alone.stopped)


def test_time_is_shared_too():
    started = time.process_time()
    found = search_flexible(LAYER, flexible("1011"), objective="latency", budget="0.5s",
                            watch=Watch(clock=time.process_time))
    assert 0.35 < time.process_time() - started < 6
    assert found.mapping is not None
    assert found.samples > 200
    assert found.stopped == "seconds"
    assert search_flexible(LAYER, flexible("1011"), budget="600,100s").samples == 600
    assert search_flexible(LAYER, flexible("1011"), budget="600,100s").stopped == "samples"
    assert search_flexible(LAYER, flexible("1011"), budget="100000000,0.1s").stopped == "seconds"


def test_a_network_is_searched_in_what_its_machine_can_run():
    found = search_network([LAYER, matmul("m", m=20, n=30, k=40)], flexible("0011"), objective="latency", budget=400)
    for layer in found.layers:
        alone = search_flexible(layer.result.operator, flexible("0011"), objective="latency", budget=400,
                                seed=layer.result.seed)
        assert layer.result.score == alone.score
    rigid = search_network([LAYER], BASE, objective="latency", budget=400)
    assert rigid.samples == 1


def test_checkpoints_are_for_single_spaces(tmp_path):
    file = tmp_path / "one.npz"
    with pytest.raises(InputError, match="must be left out"):
        search_flexible(LAYER, flexible("1010"), budget=100, watch=Watch(checkpoint=file))


def test_wrong_unions_are_refused():
    spaces = flexible_spaces(LAYER, flexible("1010"))
    with pytest.raises(InputError, match="one or more of one operator"):
        search_spaces([])
    with pytest.raises(InputError, match="one or more of one operator"):
        search_spaces([spaces[0], MapSpace(matmul("m", m=2, n=2, k=2), BASE)])
    with pytest.raises(InputError, match="at least 1 for each"):
        search_spaces(spaces, budget=2)


@pytest.mark.parametrize("bits", ("0000", "0010", "1111"))
def test_stopped_before_it_began_it_found_nothing(bits):
    watch = Watch()
    watch.stop.set()
    found = search_flexible(LAYER, flexible(bits), budget=600, watch=watch)
    assert (found.mapping, found.samples, found.stopped) == (None, 0, "interrupted")
