"""Bounds on schedules: no plan is below, whatever the sharing; exact where that can be worked out."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from random_schedules import random_problem
from test_simulation import problem

from tilewright.scheduling import (
    SCHEDULE_OBJECTIVES,
    SHARINGS,
    AnalysisTable,
    PlanGenomes,
    ScheduleProblem,
    schedule,
    schedule_bound,
    simulate,
    timeline,
)
from tilewright.scheduling.bounds import Relaxation
from tilewright.scheduling.methods.auto import moment_bound


def every_plan(asked):
    """Return all assignments of few jobs to cores and mappings, each in some orders."""
    choices = [[(core, option) for core in range(asked.cores) for option in range(asked.counts[job, core])]
               for job in range(asked.jobs)]
    genes = np.array(list(product(*choices))[:4000])
    rng = np.random.default_rng(0)
    return PlanGenomes(np.repeat(genes[:, :, 0], 3, axis=0), rng.random((3 * len(genes), asked.jobs)),
                       np.repeat(genes[:, :, 1], 3, axis=0))


def test_no_plan_is_below_its_bound_however_bandwidth_is_shared():
    rng = np.random.default_rng(5)
    near = []
    for case in range(60):
        asked = random_problem(rng, 4 if case % 2 else 7, objective=SCHEDULE_OBJECTIVES[case % 5])
        bound = schedule_bound(asked, seconds=1.0 if case % 3 == 0 else None).value
        plans = every_plan(asked) if asked.jobs < 5 else asked.drawn(rng, 1000)
        for sharing in SHARINGS:
            found = simulate(replace(asked, sharing=sharing), plans).score
            assert found.min() >= bound
            if asked.objective == "makespan" and asked.jobs < 5:
                near.append(bound / found.min())
    assert len(near) > 6 and np.median(near) > 0.8


@pytest.mark.slow
def test_no_plan_of_many_is_below_its_bound():
    rng = np.random.default_rng(6)
    for case in range(1500):
        asked = random_problem(rng, 4, objective=SCHEDULE_OBJECTIVES[case % 5])
        bound = schedule_bound(asked, seconds=1.0 if case % 3 == 0 else None).value
        for sharing in SHARINGS:
            assert simulate(replace(asked, sharing=sharing), every_plan(asked)).score.min() >= bound


def value(*arguments, **given):
    return pytest.approx(schedule_bound(problem(*arguments, **given)).value, rel=1e-5)


def test_each_limit_is_reached_where_it_is_what_holds():
    assert value([(10, 0)] * 6, 1) == 30  # two cores
    assert value([(10, 60)] * 6, 6) == 60  # bytes
    assert value([(10, 0), (10, 90)], 6) == 15  # one job's bytes
    assert value([(10, 0)] * 3, 1, 3, before=np.array([[0, 1], [1, 2]])) == 30
    assert value([(10, 0)] * 3, 1, 3, release=np.array([0.0, 70.0, 0.0])) == 80
    # Four released at 50 on two cores, and what must follow them.
    late = np.array([0.0, 50.0, 50.0, 50.0, 50.0])
    assert value([(10, 0)] * 5, 1, release=late) == 70
    assert value([(10, 60)] * 5, 6, release=late) == 90
    assert value([(10, 0)] * 5, 1, 4, before=np.array([[j, 4] for j in range(4)])) == 20
    assert value([(10, 0)] * 9, 1, 2, before=np.array([[j, 8] for j in range(8)])) == 50
    for name, told in (("cores", ([(10, 0)] * 6, 1)), ("bandwidth", ([(10, 60)] * 6, 6)),
                       ("jobs", ([(10, 0), (1, 0)], 1))):
        assert schedule_bound(problem(*told)).shares[name] == pytest.approx(1.0)
    chain = problem([(10, 0)] * 3, 1, 3, before=np.array([[0, 1], [1, 2]]))
    assert schedule_bound(chain).shares["order"] == pytest.approx(1.0)


def test_cores_may_be_told_to_leave_time_aside():
    for told, least in ((([(10, 0)] * 6, 1), 60), (([(10, 60)] * 6, 6), 60), (([(10, 0), (10, 90)], 6), 25)):
        relaxation = Relaxation(problem(*told), idle=0.5)
        assert relaxation.split()[0][0] * relaxation.unit == pytest.approx(least)


def unlike(rows, bandwidth=1.0, traffic=0.0, energy=None, **given):
    """Return a problem of jobs whose cycles are told for each core."""
    cycles = np.array(rows, dtype=float)[:, :, None]
    energy = np.ones(cycles.shape) if energy is None else np.array(energy, dtype=float)[:, :, None]
    table = AnalysisTable(cycles, np.full(cycles.shape, traffic), energy, np.ones(cycles.shape[:2], dtype=np.int64))
    return ScheduleProblem(table, np.arange(len(rows)), bandwidth, **given)


def test_a_job_is_not_split_onto_cores_where_it_takes_longer_than_all():
    """Split, 0.39 of them would be on the third core, and all end at 15.7."""
    asked = unlike([[12, 12, 40]] * 3)
    assert schedule_bound(asked).value == pytest.approx(18)
    assert simulate(asked, PlanGenomes(np.array([[0, 1, 0]]), np.zeros((1, 3)), np.zeros((1, 3), dtype=np.int64))
                    ).score[0] == 24
    assert schedule_bound(asked, seconds=5.0).value == pytest.approx(24, rel=1e-5)


def test_the_bound_of_two_figures_is_the_least_product_of_splits():
    """Jobs are quick or frugal: with n of 4 on the quick core, T = max(2 n, 6 (4 - n)) and E = 9 n + (4 - n)."""
    asked = unlike([[2, 6]] * 4, energy=[[9, 1]] * 4, objective="edp")
    found = schedule_bound(asked).value
    best = min(max(2 * n, 6 * (4 - n)) * (9 * n + 4 - n) for n in np.linspace(0, 4, 4001))
    assert found == pytest.approx(best, rel=1e-3)
    assert schedule_bound(replace(asked, objective="energy")).value == pytest.approx(4)


def test_bounds_of_slowdown_and_deadlines():
    asked = problem([(10, 0)] * 6, 1, objective="slowdown")
    assert schedule_bound(asked).value == pytest.approx(3)
    late = problem([(10, 0)] * 2, 1, objective="deadlines", deadline=np.array([9.0, 10.0]))
    assert schedule_bound(late).value == 1
    mixed = problem([(1, 0), (1, 0), (1, 0), (1000, 0)], 1, objective="slowdown")
    assert schedule_bound(mixed).value == pytest.approx(1.5)  # the quick ones among themselves


def moments_of(asked, plans):
    """Return the bound over moments, begun from the best of some plans."""
    best = int(simulate(asked, plans).makespan_cycles.argmin())
    return moment_bound(asked, timeline(asked, plans.take(slice(best, best + 1))))


def test_no_plan_is_below_the_bound_over_moments_however_bandwidth_is_shared():
    rng, near, better = np.random.default_rng(8), [], 0
    for case in range(60):
        free = {"before": np.empty((0, 2), dtype=np.int64), "release": np.zeros(0)} if case % 3 else {}
        asked = random_problem(rng, 4, **free)
        plans, plain = every_plan(asked), schedule_bound(asked).value
        bound = moments_of(replace(asked, sharing=SHARINGS[case % 2]), plans)
        least = min(float(simulate(replace(asked, sharing=sharing), plans).makespan_cycles.min())
                    for sharing in SHARINGS)
        assert bound <= least * (1 + 1e-9)
        near.append(bound / least)
        better += bound > plain * 1.001
    assert np.median(near) > 0.9 and better >= 1


def test_moments_know_that_a_core_waits_while_others_draw():
    """One core has a job of 10 cycles and 2 bytes; the other one of 5 cycles and 5 bytes, and one of 5 without.

    Cores are busy for 10 cycles, and bytes take 7. But of the 5 cycles of the second, those beside the first are
    slowed: 4 / 5 of it is done in 5 cycles, the rest in one more, and nothing does better than 11.
    """
    cycles = np.array([[10, np.inf], [np.inf, 5], [np.inf, 5]])[:, :, None]
    traffic = np.where(np.isfinite(cycles), np.array([2.0, 5.0, 0.0])[:, None, None], np.inf)
    fits = np.isfinite(cycles[:, :, 0]).astype(np.int64)
    asked = ScheduleProblem(AnalysisTable(cycles, traffic, cycles, fits), np.arange(3), 1.0, sharing="max-min")
    assert schedule_bound(asked).value == pytest.approx(10)
    order = PlanGenomes(np.array([[0, 1, 1]]), np.array([[0.0, 1.0, 0.0]]), np.zeros((1, 3), dtype=np.int64))
    assert moments_of(asked, order) == pytest.approx(11, rel=1e-3)
    found = schedule(asked, "auto", samples=200)
    assert found.score == pytest.approx(11) and found.gap < 1e-3


def test_a_job_is_not_on_two_cores_at_a_moment():
    asked = problem([(10, 0), (10, 0), (10, 0)], 1)
    assert moments_of(asked, every_plan(asked)) == pytest.approx(15, rel=1e-3)  # of three, one may move
    asked = problem([(10, 0), (1, 0)], 1)
    assert moments_of(asked, every_plan(asked)) == pytest.approx(10, rel=1e-3)
