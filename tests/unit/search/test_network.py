"""Whole networks: seeds by layer, any number of workers, interruption and resumption."""

import math
import multiprocessing
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tilewright.base import standing_still
from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import Budget, NetworkResult, search_network
from tilewright.search.layers import Abreast
from tilewright.search.run import SearchRun
from tilewright.workload import Graph, MacNode, matmul

ACCELERATOR = preset("eyeriss")
LAYERS = [matmul("a", m=24, n=18, k=20), matmul("b", m=64, n=8, k=8), matmul("c", m=5, n=7, k=9)]


def scores(result):
    return [(layer.names, layer.count, layer.result.score, str(layer.result.mapping)) for layer in result.layers]


def test_results_do_not_depend_on_workers_or_on_other_layers():
    one, two = (search_network(LAYERS, ACCELERATOR, budget=600, seed=3, workers=n) for n in (1, 3))
    assert scores(one) == scores(two)
    assert one.complete
    assert scores(search_network(LAYERS[:1], ACCELERATOR, budget=600, seed=3)) == scores(one)[:1]


@pytest.mark.parametrize(("workers", "layers", "budget", "on"), [
    (2, 400, "300", "processes"), (2, 399, "300", "threads"), (1, 400, "300", "threads"),
    (2, 400, "1s", "threads"), (2, 400, "300,1s", "threads")])
def test_many_layers_with_few_mappings_each_are_searched_in_processes(workers, layers, budget, on):
    assert Abreast(workers, layers, "auto", Budget.parse(budget)).on == on


def test_in_a_worker_of_multiprocessing_many_layers_stay_on_threads(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert Abreast(2, 400, "auto", Budget(300)).on == "threads"


def test_layers_in_processes_are_found_alike_and_told_as_they_end(monkeypatch):
    monkeypatch.setattr("tilewright.search.layers.MANY", 2)
    told = []
    progress = SimpleNamespace(update=lambda step: told.append((step.name, step.samples, step.best, step.eta_seconds)))
    near = search_network(LAYERS, ACCELERATOR, budget=150, on="threads")
    far = search_network(LAYERS, ACCELERATOR, budget=150, workers=2, progress=progress)
    assert scores(far) == scores(near)
    assert sorted(told) == [(each.result.operator.name, each.result.samples, each.result.score, 0.0)
                            for each in near.layers]


def test_every_layer_has_a_seed_of_its_own():
    twins = [replace(LAYERS[0], name=name) for name in "xyz"]
    found = search_network(twins, ACCELERATOR, mapper="random", budget=50, seed=3)
    assert [layer.result.seed for layer in found.layers] == [(3, 0), (3, 1), (3, 2)]
    assert len({layer.result.mapping for layer in found.layers}) == 3


def test_equal_operators_are_searched_once_and_counted():
    nodes = (MacNode(LAYERS[0]), MacNode(replace(LAYERS[0], name="again"), count=2), MacNode(LAYERS[1]))
    result = search_network(Graph("net", nodes), ACCELERATOR, budget=300)
    assert [(layer.names, layer.count) for layer in result.layers] == [(("a", "again"), 3), (("b",), 1)]
    first, second = (layer.result.cost for layer in result.layers)
    assert result.latency_cycles == 3 * first.latency_cycles + second.latency_cycles
    assert result.energy_pj == pytest.approx(3 * first.energy_pj + second.energy_pj)
    assert result.samples == 600


def test_a_layer_without_a_mapping_makes_the_totals_infinite():
    result = search_network(LAYERS[:1], ACCELERATOR, budget=100)
    broken = replace(result.layers[0], result=replace(result.layers[0].result, cost=None))
    assert NetworkResult((broken,), (), 1.0).energy_pj == math.inf


class StopAfter:
    """Interrupts the network as Ctrl-C would, once a search has reported a number of times."""

    def __init__(self, stop, times):
        self.stop, self.times = stop, times

    def update(self, progress):
        self.times -= 1
        if self.times == 0:
            self.stop.set()


def test_an_interrupted_network_keeps_what_is_finished_and_resumes(tmp_path):
    whole = search_network(LAYERS, ACCELERATOR, budget=2000, seed=1)
    stop = threading.Event()
    part = search_network(LAYERS, ACCELERATOR, budget=2000, seed=1, workers=1, checkpoint=tmp_path,
                          progress=StopAfter(stop, 1), stop=stop)
    assert not part.complete
    assert part.unfinished
    resumed = search_network(LAYERS, ACCELERATOR, budget=2000, seed=1, checkpoint=tmp_path)
    assert resumed.complete
    assert scores(resumed) == scores(whole)


def test_an_error_in_one_layer_ends_all():
    with pytest.raises(ValueError, match="no such space"):
        search_network(LAYERS, ACCELERATOR, budget=10**8, workers=2, space=_none_for_the_second)


def _none_for_the_second(operator):
    if operator.name == "b":
        raise ValueError("no such space")
    return MapSpace(operator, ACCELERATOR)


def test_every_layer_has_a_batch_before_any_has_its_second(monkeypatch):
    steps, step = [], SearchRun._step

    def counted(self):
        steps.append(self.request.space.operator.name)
        step(self)

    monkeypatch.setattr(SearchRun, "_step", counted)
    search_network(LAYERS, ACCELERATOR, mapper="random", budget=100_000, workers=1)
    assert steps[:3] == ["a", "b", "c"]  # the largest first
    assert len(steps) > 100


@pytest.mark.parametrize(("setup", "each"), [(1.0, 2.0), (7.0, 1.5)])
def test_layers_share_the_time_that_set_up_leaves_evenly(monkeypatch, setup, each):
    """By a clock that goes on only by what is scored and, before that, by what is set up; that takes half at most."""
    now, score = [0.0], DenseModel.score

    def scored(self, batch, hardware=None, threads=1):
        now[0] += len(batch) / 10_000
        return score(self, batch, hardware, threads)

    def space(operator):
        now[0] += setup
        return MapSpace(operator, ACCELERATOR)

    monkeypatch.setattr(DenseModel, "score", scored)
    monkeypatch.setattr("tilewright.jobs.runner.now", lambda: now[0])
    found = search_network(LAYERS, ACCELERATOR, mapper="random", budget=Budget(seconds=3.0), workers=1, space=space)
    assert found.setup_seconds == pytest.approx(3 * setup)
    assert 3 * each <= found.seconds <= 3 * each + 0.1
    assert sum(layer.result.seconds for layer in found.layers) == pytest.approx(found.seconds)
    for layer in found.layers:
        assert layer.result.stopped == "seconds"
        assert layer.result.seconds == pytest.approx(each, abs=0.3)


def test_what_one_layer_compiles_takes_none_of_the_time_of_any(monkeypatch):
    now, score, compiled = [0.0], DenseModel.score, []

    def scored(self, batch, hardware=None, threads=1):
        now[0] += len(batch) / 10_000
        if not compiled:
            compiled.append(self)
            with standing_still():
                now[0] += 50.0
        return score(self, batch, hardware, threads)

    monkeypatch.setattr(DenseModel, "score", scored)
    monkeypatch.setattr("tilewright.base.standstill.perf_counter", lambda: now[0])
    found = search_network(LAYERS, ACCELERATOR, mapper="random", budget=Budget(seconds=2.0), workers=2)
    assert compiled
    assert found.seconds == pytest.approx(4.0, abs=0.3)
    assert found.samples == pytest.approx(40_000, rel=0.1)


def test_a_budget_of_seconds_counts_all_legs(tmp_path, monkeypatch):
    now, score = [0.0], DenseModel.score

    def scored(self, batch, hardware=None, threads=1):
        now[0] += len(batch) / 10_000
        return score(self, batch, hardware, threads)

    monkeypatch.setattr(DenseModel, "score", scored)
    monkeypatch.setattr("tilewright.jobs.runner.now", lambda: now[0])
    spent = []
    for seconds in (1.0, 1.0, 3.0):
        before = now[0]
        found = search_network(LAYERS, ACCELERATOR, mapper="random", budget=Budget(seconds=seconds), workers=1,
                               checkpoint=tmp_path)
        assert found.seconds == pytest.approx(3 * seconds, abs=0.1)
        assert found.samples == pytest.approx(10_000 * found.seconds, rel=0.01)
        spent.append(now[0] - before)
    assert spent == pytest.approx([3.0, 0.0, 6.0], abs=0.2)


def test_an_error_in_one_layer_keeps_the_others_where_someone_is_told():
    errors = []
    found = search_network(LAYERS, ACCELERATOR, budget=10**8, workers=1, space=_none_for_the_second,
                           failed=errors.append)
    assert [str(error) for error in errors] == ["no such space"]
    assert set(found.unfinished) == {"a", "b", "c"}
