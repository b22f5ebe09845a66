"""Warm start as in figures 5.9 to 5.11: tiny runs, and the arithmetic behind the verdicts."""

import csv
import json
import math

import pytest

from tilewright.reproduce import REPRODUCTIONS, Setting, run_study
from tilewright.reproduce.mse_fig5_9 import _ratio
from tilewright.reproduce.mse_fig5_11 import OURS, QUALITY, _least, _quality, _sooner
from tilewright.reproduce.mse_warm import Layer, geometric
from tilewright.workload import matmul

TINY = Setting("tiny", 1, {"samples": 60, "networks": ("vgg16", "mnasnet")})
OPERATOR = matmul("layer", m=8, n=8, k=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studies")


@pytest.mark.parametrize("name", ["mse-fig5.11", "mse-fig5.9"])
def test_a_tiny_run_judges_every_claim_and_writes_what_parses(name, folder):
    outcome = run_study(name, TINY, out=folder)
    found = outcome.findings
    assert [judged.claim for judged in found.judgements] == list(outcome.study.claims)
    assert len(found.plots) >= 1
    json.loads(outcome.file("json").read_text())
    for table in found.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        with outcome.file(f"{table.name}.csv").open(newline="") as file:
            assert len(list(csv.reader(file))) == len(table.rows) + 1
    words = next(note for note in found.notes if note.startswith("The oracle confirms")).split()
    assert words[3] == words[6] != "0"
    again = run_study(name, TINY, out=folder)
    assert again.computed_cells == 0
    assert again.findings == found
    bounds = [row[-1] for table in found.tables if table.columns[-1] == "Final over bound" for row in table.rows]
    assert min(bounds) >= 1


def test_both_share_their_cells(folder):
    assert REPRODUCTIONS.get("mse-fig5.9").cells == "mse-fig5.11"
    run_study("mse-fig5.11", TINY, out=folder)
    assert run_study("mse-fig5.9", TINY, out=folder).computed_cells == 0


def layer(*runs, network="vgg16"):
    plain = [{"random": 100.0, "lenders": {}, "previous": {"published": [30.0, 40.0], "all": [30.0, 40.0, 12.0]},
              "similar": {"published": [30.0], "all": [30.0]},
              "cold": {"edp": cold[-1][1], "history": cold},
              "warm": {"edp": warm[-1][1], "history": warm, "from": ["x"]}}
             for cold, warm in runs]
    return Layer(network, "layer", OPERATOR, tuple(plain))


COLD = [[100, 20.0], [500, 10.4], [900, 10.0]]


def test_convergence_is_that_of_the_cold_searches_improvement():
    # From a random mapping: 100 - 0.995 * 90 = 10.45; from the first generation: 20 - 0.995 * 10 = 10.05.
    one = layer((COLD, [[5, 10.45], [300, 10.0]]))
    assert (one.samples("cold"), one.samples("warm"), one.speedup()) == (500, 5, 100)
    assert (one.samples("cold", True), one.samples("warm", True), one.speedup(True)) == (900, 300, 3)
    assert (one.speedup(generations=True), one.speedup(True, generations=True)) == (3, 2.5)


def test_a_search_that_never_gets_there_is_infinitely_long():
    never = layer((COLD, [[5, 11.0]]))
    assert never.samples("warm") == math.inf
    assert never.speedup() == never.speedup(generations=True) == 0
    twice = layer((COLD, [[5, 11.0]]), (COLD, [[5, 10.0]]), (COLD, [[7, 10.0]]))
    assert twice.samples("warm") == 7


def test_starts_are_measured_against_the_better_final_mapping():
    one = layer((COLD, [[5, 8.0]]))
    assert one.start("previous") == 30 / 8
    assert one.start("previous", whole=True) == 12 / 8
    assert (one.random, one.first_generation) == (12.5, 2.5)


def test_verdicts_follow_the_worst_network():
    good, bad = layer((COLD, [[5, 10.0]])), layer((COLD, [[400, 10.6], [480, 10.0]]), network="mnasnet")
    assert _quality({"vgg16": [good], "mnasnet": [bad]}).verdict == "holds"
    assert _quality({"vgg16": [layer((COLD, [[5, 10.3]]))]}).verdict == "holds in direction"
    assert _quality({"vgg16": [layer((COLD, [[5, 11.0]]))]}).verdict == "does not hold"
    assert _sooner(OURS, {"vgg16": [good]}, 5.0, generations=False).verdict == "holds"
    assert _sooner(OURS, {"vgg16": [good], "mnasnet": [bad]}, 5.0, generations=False).verdict == "does not hold"
    assert _least({"vgg16": [good], "mnasnet": [bad]}).verdict == "holds"
    assert _least({"vgg16": [bad], "mnasnet": [good]}).verdict == "does not hold"
    assert [_ratio(QUALITY, ours, 4.0, "").verdict for ours in (4.0, 1.5, 1.2)] == [
        "holds", "holds in direction", "does not hold"]
    assert geometric([1.0, 4.0]) == pytest.approx(2.0)
