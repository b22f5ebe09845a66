"""Pipelines: the slowest layer sets the pace, and what has time to spare may save energy but never breaks it."""

import math
import threading
from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.search import Objective, Pace, search_network, search_pipeline
from tilewright.search.objective import Constraint
from tilewright.search.pipeline import kept_if_better, least_longest, share_out
from tilewright.workload import Graph, MacNode, matmul

MACHINE = preset("edge-s3")
LAYERS = (matmul("a", m=24, n=18, k=20), matmul("b", m=96, n=64, k=80), matmul("c", m=5, n=7, k=9))
NET = Graph("net", (MacNode(LAYERS[0]), MacNode(LAYERS[1]), MacNode(LAYERS[2]),
                    MacNode(replace(LAYERS[0], name="again"), count=2)))


def run(network=NET, **asked):
    return search_pipeline(network, MACHINE, **{"budget": 300, "seed": 1, **asked})


def test_the_slowest_layer_of_the_first_search_limits_all_of_the_second():
    found = run()
    fastest = search_network(NET, MACHINE, objective="latency", budget=300, seed=1)
    cycles = {name: layer.result.cost.latency_cycles for layer in fastest.layers for name in layer.names}
    assert [layer.first.cost.latency_cycles for layer in found.layers] == [cycles[node.name] for node in NET.mac_nodes]
    assert found.limit_cycles == max(node.count * cycles[node.name] for node in NET.mac_nodes)
    assert [layer.stage for layer in found.layers] == [0, 1, 2, 3]
    assert [layer.limit_cycles for layer in found.layers] == [found.limit_cycles] * 3 + [found.limit_cycles // 2]
    assert found.feasible
    assert found.bound_cycles <= found.figures().interval_cycles <= found.limit_cycles
    assert found.figures("first").interval_cycles == found.limit_cycles
    assert found.samples == (3 + 4) * 300  # "again" has another limit than "a"


@pytest.mark.parametrize("then", ["energy", "power"])
def test_no_layer_gets_worse_and_those_with_time_to_spare_gain(then):
    found, gains = run(then=then), []
    for layer in found.layers:
        before, after = layer.first.cost, layer.then.cost
        assert after.latency_cycles <= layer.limit_cycles
        assert layer.then.feasible
        slower = after.latency_cycles / before.latency_cycles if then == "power" else 1
        gains.append(after.energy_pj / before.energy_pj / slower)
        assert DenseModel(layer.operator, MACHINE).cost(layer.then.mapping) == after
    assert max(gains) <= 1
    assert min(gains) < 0.9
    first, second = found.figures("first"), found.figures()
    assert second.energy_pj < first.energy_pj if then == "energy" else second.layer_power_mw < first.layer_power_mw


def test_a_mapping_of_the_first_search_stays_where_the_second_finds_nothing_better():
    goal = Objective.parse("energy")
    good = search_network([LAYERS[1]], MACHINE, objective="energy", budget=4000).layers[0].result
    poor = search_network([LAYERS[1]], MACHINE, objective="energy", mapper="random", budget=30).layers[0].result
    assert poor.cost.energy_pj > good.cost.energy_pj
    kept = kept_if_better(good, poor, goal, MACHINE)
    assert (kept.mapping, kept.cost, kept.score) == (good.mapping, good.cost, pytest.approx(good.cost.energy_pj))
    assert kept.samples == poor.samples
    assert kept_if_better(poor, good, goal, MACHINE) is good
    limited = replace(goal, constraints=(Constraint("latency", good.cost.latency_cycles - 1),))
    broken = kept_if_better(good, replace(poor, cost=None, mapping=None, feasible=False), limited, MACHINE)
    assert broken.mapping == good.mapping
    assert not broken.feasible


def test_the_second_search_begins_from_the_mapping_of_the_first():
    found = run(mapper="random", budget=40)
    assert all(layer.first.mapping is not None for layer in found.layers)
    assert found.layers[1].first.start == ()
    assert [origin.kind for origin in found.layers[1].then.start] == ["given"]
    assert found.layers[1].then.history[0].samples <= 8  # the first mapping itself keeps the limit


def test_results_do_not_depend_on_workers():
    one, two = (run(workers=n) for n in (1, 2))
    assert [layer.then.cost for layer in one.layers] == [layer.then.cost for layer in two.layers]
    assert one.figures() == two.figures()


def test_with_fewer_accelerators_layers_share_them_and_their_time():
    whole, found = run(), run(accelerators=2)
    cycles = [layer.count * layer.first.cost.latency_cycles for layer in found.layers]
    best = min(max(sum(cycles[:cut]), sum(cycles[cut:])) for cut in range(1, 4))
    assert found.limit_cycles == best >= whole.limit_cycles
    assert {layer.stage for layer in found.layers} == {0, 1}
    assert found.feasible
    assert found.figures().interval_cycles <= best
    one = run(accelerators=1)
    assert one.limit_cycles == sum(cycles)
    assert one.bound_cycles == sum(layer.count * math.ceil(layer.first.bound) for layer in one.layers)
    assert one.figures().stage_cycles == (pytest.approx(one.figures().interval_cycles),)


@pytest.mark.parametrize(("cycles", "parts"), [
    ([3, 1, 4, 1, 5, 9, 2, 6], 3), ([7], 4), ([1, 1, 1, 1], 2), ([9, 1, 1, 1], 2), ([2, 2, 2, 9], 3), ([5, 5], 2)])
def test_sharing_out_is_as_even_as_runs_of_neighbours_can_be(cycles, parts):
    def least(rest, left):
        if left == 1 or len(rest) == 1:
            return sum(rest)
        return min(max(sum(rest[:cut]), least(rest[cut:], left - 1) if rest[cut:] else 0)
                   for cut in range(1, len(rest) + 1))

    places = share_out(cycles, parts)
    lengths = [sum(c for c, at in zip(cycles, places, strict=True) if at == part) for part in range(places[-1] + 1)]
    assert places == sorted(places)
    assert len(lengths) <= parts
    assert max(lengths) == least_longest(cycles, parts) == least(cycles, parts)


def test_a_slower_pace_saves_more_and_a_pace_that_cannot_be_kept_is_told():
    own = run()
    slow = run(pace=Pace(latency_limit=20 * own.limit_cycles))
    assert slow.limit_cycles == 20 * own.limit_cycles
    assert slow.feasible
    assert own.limit_cycles < slow.figures().interval_cycles <= slow.limit_cycles
    assert slow.figures().energy_pj <= own.figures().energy_pj
    asked = run(pace=Pace(throughput=1e6 * MACHINE.frequency_mhz / (5 * own.limit_cycles)))
    assert asked.limit_cycles == pytest.approx(5 * own.limit_cycles, abs=1)
    fast = run(pace=Pace(latency_limit=own.bound_cycles / 2))
    assert not fast.feasible
    assert fast.figures().interval_cycles <= own.limit_cycles
    assert all(layer.then.cost.latency_cycles <= own.limit_cycles for layer in fast.layers)


def test_a_little_slack_leaves_the_slowest_layer_a_choice():
    own, slack = run(), run(pace=Pace(slack=0.25))
    assert slack.limit_cycles == int(1.25 * own.limit_cycles)
    assert slack.feasible
    slowest = own.figures().stage_cycles.index(own.figures().interval_cycles)
    before, after = own.layers[slowest].then.cost, slack.layers[slowest].then.cost
    assert before.latency_cycles <= own.limit_cycles < after.latency_cycles <= slack.limit_cycles
    assert after.energy_pj < before.energy_pj


def test_figures_add_up():
    found = run()
    figures = found.figures()
    assert figures.energy_pj == pytest.approx(sum(layer.count * layer.then.cost.energy_pj for layer in found.layers))
    assert figures.stage_cycles[3] == 2 * found.layers[3].then.cost.latency_cycles
    assert figures.interval_cycles == max(figures.stage_cycles)
    assert figures.inputs_per_second * figures.interval_cycles == pytest.approx(200e6)
    assert figures.power_mw == pytest.approx(figures.energy_pj * 1e-12 * figures.inputs_per_second * 1e3)
    assert figures.fill_cycles == 4 * figures.interval_cycles
    powers = [layer.then.cost.energy_pj / layer.then.cost.latency_cycles * 0.2 for layer in found.layers]
    assert figures.layer_power_mw == pytest.approx(sum(powers) / 4)
    assert figures.peak_power_mw == pytest.approx(max(powers))


def test_a_layer_without_a_mapping_leaves_the_pipeline_without_a_pace():
    large = Graph("large", (*NET.nodes, MacNode(matmul("large", m=4096, n=4096, k=4096))))
    found = run(large, mapper="random", options={"batch": 1}, budget=1)
    assert any(layer.first.cost is None for layer in found.layers)
    assert found.limit_cycles is None
    assert not found.feasible
    assert all(layer.then is None for layer in found.layers)
    assert found.figures().interval_cycles == math.inf


def test_a_stop_ends_both_searches_and_keeps_what_was_found():
    stop = threading.Event()
    seen = []

    def begin(search, layers):
        seen.append((search, layers))
        if search == "then":
            stop.set()

    found = run(stop=stop, begin=begin)
    assert seen == [("first", 3), ("then", 4)]
    assert set(found.unfinished) == {"a", "b", "c", "again"}
    assert [layer.final for layer in found.layers] == [layer.first for layer in found.layers]


@pytest.mark.parametrize(("asked", "field"), [
    ({"then": "latency"}, "then"), ({"accelerators": 0}, "accelerators"), ({"then": "speed"}, "metric"),
    ({"network": Graph("none", ())}, "network")])
def test_wrong_wishes_are_named(asked, field):
    with pytest.raises(InputError) as caught:
        run(**asked)
    assert field in caught.value.field


@pytest.mark.parametrize("given", [
    {"latency_limit": 0}, {"throughput": math.inf}, {"latency_limit": 5, "throughput": 5}, {"latency_limit": -1},
    {"throughput": 5, "slack": 0.1}, {"slack": 0}])
def test_a_pace_is_one_positive_number(given):
    with pytest.raises(InputError):
        Pace(**given)


def test_a_pace_is_whole_cycles_that_are_no_slower_than_asked():
    assert Pace(throughput=3e6).limit(10, 100.0) == 33
    assert Pace(latency_limit=33.9).limit(10, 100.0) == 33
    assert Pace(slack=0.19).limit(10, 100.0) == 11
    assert Pace().limit(10, 100.0) == 10


def test_limits_are_written_exactly():
    assert str(Constraint("latency", 1234567)) == "latency<=1234567"
    assert str(Constraint("latency", 1e6)) == "latency<=1e+06"
    assert Constraint.parse(str(Constraint("latency", 123456789))).most == 123456789
