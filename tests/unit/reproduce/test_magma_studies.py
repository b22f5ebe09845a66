"""The studies of MAGMA: verdicts on invented results, and on what is printed."""

import math

import pytest

from tilewright.jobs import Runner
from tilewright.reproduce import REPRODUCTIONS, Setting, magma_systems
from tilewright.reproduce.magma_figures import AVERAGES, OVER_SYSTEMS, plans_of, printed_epoch, printed_factors


@pytest.fixture(autouse=True)
def without_the_oracle(monkeypatch):
    """Let nobody ask whether invented mappings are right."""
    monkeypatch.setattr(magma_systems, "oracles", lambda *_: "")


class Invented(Runner):
    """Gives back cells that a function of their keys invents."""

    def __init__(self, cell):
        super().__init__("invented")
        self.cell = cell

    def run(self, cells):
        return [self.cell(cell.key) for cell in cells]


def verdicts(name, cell, **values):
    study = REPRODUCTIONS.get(name)
    given = Setting("invented", 2, {**study.quick.values, **values})
    return [judged.verdict for judged in study.run(given, Invented(cell)).judgements]


def group(key, rate, cycles=100.0, moved=4.0, asked=((2.0,) * 10, (1.0,) * 10)):
    """Return a cell: throughput by method, what jobs take alone, and what two methods ask for."""
    plain = dict(zip(("magma", "herald-like"), map(list, asked), strict=True))
    return {"gflops": {method: rate(method) for method in key["methods"]}, "bound_gflops": 1e9,
            "alone": {"cycles": cycles, "bytes": moved}, "asked": plain, "drawn": plain}


def width(key):
    return float(key["bandwidth"].removesuffix("GB/s"))


def test_a_lead_that_grows_as_bandwidth_falls_holds_and_one_that_shrinks_does_not():
    def cell(power, at):
        def invented(key):
            most = {"s2": 16.0, "s4": 256.0}[key["system"]]
            return group(key, lambda method: at * (most / width(key)) ** power if method == "magma" else 1.0)
        return invented

    assert verdicts("magma-fig7.9", cell(math.log(1.6 / 1.2, 16), 1.2)) == ["holds"] * 3
    assert verdicts("magma-fig7.9", cell(-0.1, 1.2)) == ["holds", "does not hold", "does not hold"]
    assert verdicts("magma-fig7.9", cell(0.0, 1.0)) == ["does not hold"] * 3


def test_orders_of_systems_hold_as_published_and_not_the_other_way_round():
    def cell(sign):
        def invented(key):
            place = ("s3", "s4", "s5").index(key["system"]) * sign
            scarce = width(key) == 1
            return group(key, lambda _: 10.0 + (place if scarce else -place), 100.0 + place, 10.0 - place)
        return invented

    assert verdicts("magma-fig7.10", cell(1)) == ["holds"] * 4
    assert verdicts("magma-fig7.10", cell(-1)) == ["does not hold"] * 4
    assert verdicts("magma-fig7.10", lambda key: group(key, lambda _: 1.0)) == ["does not hold"] * 4


def test_flexible_arrays_are_faster_or_not():
    def cell(factor):
        def invented(key):
            better = factor if key["system"].endswith("flex") else 1.0
            return group(key, lambda _: better, 100.0 / better, better)
        return invented

    assert verdicts("magma-fig7.11", cell(1.5)) == ["holds"] * 3
    assert verdicts("magma-fig7.11", cell(0.5)) == ["does not hold"] * 3


def test_plans_ask_early_or_late():
    early, level = (3.0,) * 5 + (1.0,) * 5, (2.0,) * 10

    def cell(rate, asked):
        return lambda key: group(key, lambda method: rate if method == "magma" else 1.0, asked=asked)

    assert verdicts("magma-fig7.12", cell(1.2, (level, early))) == ["holds"] * 3
    assert verdicts("magma-fig7.12", cell(1.0, (early, level))) == ["does not hold"] * 3


def test_small_groups_are_slower_or_not():
    def cell(few, others):
        return lambda key: {"gflops": {str(size): few if size == 4 else 1.0 if size == max(key["sizes"]) else others
                                       for size in key["sizes"]},
                            "bound_gflops": dict.fromkeys(map(str, key["sizes"]), 2.0)}

    assert verdicts("magma-fig7.13", cell(0.5, 0.95)) == ["holds", "holds", "does not hold"]
    assert verdicts("magma-fig7.13", cell(0.95, 0.5)) == ["does not hold"] * 3


def test_the_search_space_of_the_text_has_equal_shares():
    assert plans_of(2, 2) == 6  # two on either core in two orders each, or one on each, two ways
    assert plans_of(60, 4) / math.factorial(60) == 39_711


def test_warm_starts_gain_or_not():
    def cell(raw, begun, one, later):
        told = {"raw": raw, "0": begun, "1": one, "30": later, "100": 1.0, "cold": 0.9, "gap": 0.1,
                "sooner": [[100.0, 1.0], [20.0, 1.0]]}
        return lambda key: {"groups": [told] * 4}

    assert verdicts("magma-table7.4", cell(0.03, 0.5, 0.95, 0.99))[:3] == ["holds"] * 3
    assert verdicts("magma-table7.4", cell(0.9, 0.9, 0.92, 0.95))[:3] == ["does not hold"] * 3


def test_the_text_of_table_7_4_does_not_follow_from_it():
    found = printed_factors(AVERAGES, OVER_SYSTEMS)
    assert found.verdict == "does not hold" and found.because.count("the text has") == 1 and "152" in found.because
    assert printed_factors(AVERAGES, {**OVER_SYSTEMS, "recom": (0.006, 0.88)}).verdict == "holds"
    assert printed_epoch(AVERAGES["1"]).verdict == "does not hold"
    assert printed_epoch(0.93).verdict == "holds"


@pytest.mark.parametrize("slow", [1.0, 12.0])
def test_factors_are_of_the_slow_core_where_they_are_found_there_alone(slow):
    def invented(key):
        lead = slow if key["system"] in ("s1", "s3") else 12.0
        return group(key, lambda method: lead if method == "magma" else slow if method == "list" else 1.0)

    *_, plain, lists = verdicts("magma-fig7.8", invented)
    assert (plain, lists) == (("holds", "does not hold") if slow > 1 else ("does not hold", "holds"))
