"""Objectives: what is minimised, how sums are scaled, how constraints and illegal mappings rank."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.search import METRICS, Constraint, Objective, Scorer
from tilewright.search.objective import BREAKS_CONSTRAINT, ILLEGAL, floors
from tilewright.workload import matmul

OPERATOR = matmul("small", m=16, n=16, k=16)
ACCELERATOR = replace(preset("eyeriss"), frequency_mhz=200.0)


@dataclass
class Costs:
    latency_cycles: np.ndarray
    energy_pj: np.ndarray
    area_um2: float
    excess: np.ndarray

    @property
    def legal(self):
        return self.excess == 0


def costs(latency, energy, excess=None, area=10.0):
    zeros = [0.0] * len(latency) if excess is None else excess
    return Costs(np.array(latency, float), np.array(energy, float), area, np.array(zeros, float))


def scores(text, batch, constraints=()):
    return Scorer(Objective.parse(text, constraints), OPERATOR, ACCELERATOR).scores(batch)


@pytest.mark.parametrize(("text", "expected"), [
    ("latency", [2.0, 4.0]), ("energy", [30.0, 5.0]), ("edp", [60.0, 20.0]), ("area", [10.0, 10.0]),
    ("latency-area", [20.0, 40.0]), ("energy-area", [300.0, 50.0]), ("edp-area", [600.0, 200.0]),
    # 30 pJ in 2 cycles of 5 ns are 3 mW.
    ("power", [3.0, 0.25]),
])
def test_metrics(text, expected):
    assert scores(text, costs([2, 4], [30, 5])) == pytest.approx(expected)
    assert text in METRICS


def test_sums_count_multiples_of_the_floors():
    cycles, energy = floors(OPERATOR, ACCELERATOR)
    assert cycles == 16**3 / 168
    words = 3 * 16 * 16 * min(ACCELERATOR.memories[0].energy.read_pj, ACCELERATOR.memories[0].energy.update_pj)
    assert energy == pytest.approx(16**3 * ACCELERATOR.compute.energy_pj_per_mac + words)
    found = scores("0.25*latency + 0.75*energy", costs([cycles, 2 * cycles], [energy, energy * 3]))
    assert found == pytest.approx([1.0, 0.25 * 2 + 0.75 * 3])


def test_constraints_rank_below_what_meets_them_and_above_what_is_illegal():
    batch = costs([5, 100, 20, 1], [1, 1, 1, 1], excess=[0, 0, 0, 0.5])
    found = scores("energy", batch, ["latency<=10"])
    assert found[0] == 1
    assert found[0] < BREAKS_CONSTRAINT < found[2] < found[1] < ILLEGAL < found[3]


def test_every_constraint_counts_and_what_breaks_more_ranks_below():
    found = scores("energy", costs([5, 5, 20, 20], [1, 3, 1, 3]), ["latency<=10", "energy<=2"])
    assert found[0] == 1 < BREAKS_CONSTRAINT <= min(found[1:])
    assert found[3] > max(found[1], found[2])


def test_more_excess_is_worse():
    found = scores("edp", costs([1, 1, 1], [1, 1, 1], excess=[3.0, 0.1, 0]))
    assert found[2] < ILLEGAL < found[1] < found[0]


def test_text_round_trips():
    objective = Objective.parse("0.5*latency + 2*edp-area", ["power<=3.5", Constraint("area", 2.0)])
    assert Objective.parse(str(objective), map(str, objective.constraints)) == objective
    assert str(Objective.parse(" EDP ")) == "edp"
    assert Objective.parse(objective, ["energy<=1e6"]).constraints[-1] == Constraint("energy", 1e6)


@pytest.mark.parametrize(("text", "says"), [
    ("speed", "metric"), ("latncy", "Did you mean latency"), ("0*latency", "positive"), ("-1*edp", "positive"),
    ("x*edp", "positive"), ("latency+", "metric"), ("inf*edp", "positive"),
])
def test_wrong_objectives_are_named(text, says):
    with pytest.raises(InputError, match=says):
        Objective.parse(text)


@pytest.mark.parametrize("text", ["latency", "latency>=3", "latency<=", "latency<=-1", "latency<=1e", "speed<=3"])
def test_wrong_constraints_are_named(text):
    with pytest.raises(InputError):
        Objective.parse("edp", [text])


def test_area_must_be_known():
    def bare(level):
        return replace(level, area_um2=0.0) if hasattr(level, "area_um2") else level

    machine = replace(ACCELERATOR, levels=tuple(map(bare, ACCELERATOR.levels)),
                      compute=replace(ACCELERATOR.compute, area_um2=0.0))
    with pytest.raises(InputError, match="area"):
        Scorer(Objective.parse("edp-area"), OPERATOR, machine).scores(costs([1], [1]))
