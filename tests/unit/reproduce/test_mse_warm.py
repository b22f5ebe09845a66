"""Warm start as in figures 5.9 to 5.11: tiny runs, and the arithmetic behind the verdicts."""

import math

import pytest

from tilewright.reproduce.mse_warm import OURS, Warmed, _least, _quality, _sooner, geometric
from tilewright.workload import matmul

OPERATOR = matmul("layer", m=8, n=8, k=8)


def layer(*runs, network="vgg16"):
    plain = [{"random": 100.0, "lenders": {}, "previous": {"published": [30.0, 40.0], "all": [30.0, 40.0, 12.0]},
              "similar": {"published": [30.0], "all": [30.0]},
              "cold": {"edp": cold[-1][1], "history": cold},
              "warm": {"edp": warm[-1][1], "history": warm, "from": ["x"]}}
             for cold, warm in runs]
    return Warmed(network, "layer", OPERATOR, tuple(plain))


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
    def verdict(judge, **networks):
        seeds = [{name: [each.at(seed) for each in layers] for name, layers in networks.items()} for seed in range(2)]
        return judge(networks, seeds).verdict

    def sooner(found, seeds):
        return _sooner(OURS, found, seeds, generations=False)

    good, bad = (layer(*[pair] * 2, network=name) for pair, name in (
        ((COLD, [[5, 10.0]]), "vgg16"), ((COLD, [[400, 10.6], [480, 10.0]]), "mnasnet")))
    assert verdict(_quality, vgg16=[good], mnasnet=[bad]) == "holds"
    assert verdict(_quality, vgg16=[layer(*[(COLD, [[5, 14.0]])] * 2)]) == "holds in direction"
    assert verdict(_quality, vgg16=[layer(*[(COLD, [[5, 19.0]])] * 2)]) == "does not hold"
    assert verdict(sooner, vgg16=[good]) == "holds"
    assert verdict(sooner, vgg16=[good], mnasnet=[bad]) == "does not hold"
    assert verdict(_least, vgg16=[good], mnasnet=[bad]) == "holds"
    assert verdict(_least, vgg16=[bad], mnasnet=[good]) == "does not hold"
    assert geometric([1.0, 4.0]) == pytest.approx(2.0)
