"""Best, bound and gap of searches: never beaten, worked out late, shown to all who ask."""

import math

import pytest

from tilewright.hardware import preset
from tilewright.mapping import Constraints, MapSpace
from tilewright.search import Bounding, Objective, Watch, search, search_spaces
from tilewright.search.bounding import relative_gap
from tilewright.workload import matmul

OPERATOR = matmul("g", m=24, n=18, k=20)
ACCELERATOR = preset("eyeriss")


class Seen:
    def __init__(self):
        self.steps = []

    def update(self, progress):
        self.steps.append(progress)


@pytest.mark.parametrize("objective", ["latency", "energy", "edp", "0.5*latency + 0.5*energy"])
def test_every_objective_has_a_bound_that_the_best_does_not_beat(objective):
    seen = Seen()
    result = search(OPERATOR, ACCELERATOR, objective=objective, budget=3000, watch=Watch(progress=seen))
    assert 0 < result.bound <= result.score
    assert result.gap == pytest.approx(result.score / result.bound - 1)
    last = seen.steps[-1]
    assert (last.best, last.bound, last.gap) == (result.history[-1].score, result.bound, pytest.approx(result.gap))


@pytest.mark.parametrize("objective", ["power", "0.5*power + 0.5*latency"])
def test_power_has_a_bound_and_what_has_none_has_no_gap(objective):
    result = search(OPERATOR, ACCELERATOR, objective=objective, budget=2000)
    assert 0 < result.bound <= result.score < 5 * result.bound
    sparse = search(OPERATOR, preset("accel-b-sparse"), objective=objective, budget=100, densities=[0.5, 1.0])
    assert (sparse.bound, sparse.gap) == (None, None)


def test_within_a_pace_power_is_bounded_by_the_energy_that_all_mappings_take():
    free, limited = (search(OPERATOR, ACCELERATOR, objective="power", constraints=limits, budget=2000)
                     for limits in ([], ["latency<=2000"]))
    assert free.bound < limited.bound <= limited.score


def test_a_score_below_its_bound_shows_as_a_negative_gap():
    assert relative_gap(1.0, 2.0) == -0.5
    assert relative_gap(1.0, 1.0 + 1e-12) == 0.0
    assert relative_gap(3.0, 2.0) == 0.5
    assert relative_gap(3.0, 0.0) is None


def test_a_complete_search_has_no_gap():
    cube = matmul("cube", m=6, n=4, k=4)
    result = search(cube, ACCELERATOR, mapper="exhaustive", budget=10**7, space=MapSpace(cube, ACCELERATOR, "perfect"))
    assert result.complete
    assert result.bounding.score <= result.bound == result.score
    assert result.gap == 0


def test_nothing_legal_or_feasible_has_no_gap():
    result = search(OPERATOR, ACCELERATOR, budget=200, constraints=["latency<=1"])
    assert not result.feasible
    assert result.gap is None


def test_the_bound_is_worked_out_only_when_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr("tilewright.search.bounding.space_bounds", asked.append)
    result = search(OPERATOR, ACCELERATOR, budget=100)
    assert math.isfinite(result.score)
    assert not asked


def test_a_union_is_bounded_by_its_loosest_member():
    wide = MapSpace(OPERATOR, ACCELERATOR)
    narrow = MapSpace(OPERATOR, ACCELERATOR, constraints=Constraints(keeps={"GLB": ()}))
    goal = Objective.parse("energy")
    each = [Bounding((space,), goal).score for space in (wide, narrow)]
    assert each[0] != each[1]
    result = search_spaces([wide, narrow], objective="energy", budget=2000)
    assert result.bound == min(each) <= result.score
