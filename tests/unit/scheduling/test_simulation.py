"""The compiled simulator: cases worked out by hand, the literal one in fractions, and what every plan keeps to."""

from dataclasses import replace

import numpy as np
import pytest
from plan_walk import walk_plan
from random_schedules import random_problem

from tilewright.base import InputError
from tilewright.scheduling import SHARINGS, AnalysisTable, PlanGenomes, ScheduleProblem, simulate, timeline


def problem(jobs, bandwidth, cores=2, **given):
    """Return a problem of jobs ``(cycles, bytes)``, alike on all cores, and energy 1 each."""
    rows = np.array(jobs, dtype=float)[:, None, None, :] * np.ones((1, cores, 1, 1))
    table = AnalysisTable(rows[..., 0].copy(), rows[..., 1].copy(), np.ones(rows.shape[:3]),
                          np.ones(rows.shape[:2], dtype=np.int64))
    return ScheduleProblem(table, np.arange(len(jobs)), bandwidth, **given)


def plan(core, priority):
    return PlanGenomes(np.array([core]), np.array([priority], dtype=float), np.zeros((1, len(core)), dtype=np.int64))


def ends(asked, core, priority):
    return timeline(asked, plan(core, priority)).end.tolist()


def test_jobs_side_by_side_share_what_they_ask_for():
    """They ask for 8 and 2 bytes a cycle of 5: all take twice as long, or the second gets all that it asks for."""
    jobs = [(10, 80), (10, 20)]
    assert ends(problem(jobs, 5), [0, 1], [0, 0]) == [20, 20]
    assert ends(problem(jobs, 5, sharing="max-min"), [0, 1], [0, 0]) == [pytest.approx(20), 10]
    # The first is served first, and gets all 5; then the second begins to move.
    assert ends(problem(jobs, 5, sharing="critical-first"), [0, 1], [0, 0]) == [16, 26]
    assert ends(problem(jobs, 10), [0, 1], [0, 0]) == [10, 10]


def test_max_min_gives_what_one_does_not_need_to_the_others():
    """Needs 1, 4, 9 of 9: the first gets 1, the others 4 each."""
    asked = problem([(10, 10), (10, 40), (10, 90)], 9, 3, sharing="max-min")
    told = timeline(asked, plan([0, 1, 2], [0, 0, 0]))
    assert told.share[0].tolist() == [1, 4, 4] and told.share[1].tolist() == [0, 0, 9]
    assert told.end.tolist() == [10, 10, pytest.approx(10 + 50 / 9)]


def test_critical_first_looks_at_all_that_must_follow():
    """The second core's job is short, but a long one comes after it: by its core, or by precedence."""
    jobs = [(20, 100), (10, 50), (30, 0)]
    asked = problem(jobs, 5, sharing="critical-first")
    assert ends(asked, [0, 1, 1], [0, 0, 1]) == [30, 10, 40]
    far = problem(jobs, 5, 3, sharing="critical-first", before=np.array([[1, 2]]))
    assert ends(far, [0, 1, 2], [0, 0, 0]) == [30, 10, 40]
    assert ends(problem([*jobs[:2], (10, 0)], 5, 3, sharing="critical-first", before=np.array([[1, 2]])),
                [0, 1, 2], [0, 0, 0]) == [20, 30, 40]  # a tie: the first core's


def test_a_plan_that_cannot_end_is_told_instead_of_run_for_ever():
    asked = problem([(10, 0), (10, 0)], 1, before=np.array([[0, 1]]))
    vars(asked)["topological"] = np.array([1, 0])  # so that the core waits for its own second job
    for run in (simulate, timeline):
        with pytest.raises(ValueError, match="wait for each other"):
            run(asked, plan([0, 0], [1, 0]))


def test_ends_that_are_near_are_two_events():
    asked = problem([(1000, 0), (1000.0001, 0), (1, 0), (1, 0)], 1)
    assert ends(asked, [0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx([1000, 1000.0001, 1001, 1001.0001], rel=1e-12)


def test_jobs_without_bytes_are_never_slowed():
    for sharing in SHARINGS:
        assert ends(problem([(10, 0), (10, 100)], 5, sharing=sharing), [0, 1], [0, 0]) == [10, 20]


def test_a_core_runs_its_jobs_by_priority_and_equal_ones_by_number():
    asked = problem([(1, 0), (2, 0), (4, 0)], 1)
    assert ends(asked, [0, 0, 0], [0.5, 0.2, 0.9]) == [3, 2, 7]
    assert ends(asked, [0, 0, 0], [0.3, 0.3, 0.3]) == [1, 3, 7]
    assert ends(asked, [0, 0, 0], [0.3, 0.3, 0.0]) == [5, 7, 4]


def test_a_core_waits_for_releases_and_predecessors():
    jobs = [(10, 0), (5, 0), (3, 0)]
    late = problem(jobs, 1, release=np.array([7.0, 0.0, 0.0]))
    told = timeline(late, plan([0, 0, 1], [0, 1, 0]))
    assert told.start.tolist() == [7, 17, 0] and told.end.tolist() == [17, 22, 3]
    after = problem(jobs, 1, before=np.array([[0, 2]]))
    assert timeline(after, plan([0, 1, 1], [0, 1, 0])).start.tolist() == [0, 13, 10]


def test_a_job_counts_as_no_earlier_than_its_predecessors():
    """Each core's first job waits for the other core's second by the priorities alone."""
    asked = problem([(1, 0), (2, 0), (4, 0), (8, 0)], 1, before=np.array([[1, 2], [3, 0]]))
    told = timeline(asked, plan([0, 0, 1, 1], [0.1, 0.9, 0.1, 0.9]))
    assert told.start.tolist() == [8, 0, 8, 0]
    # Equal keys go by level, then by number: 1 and 3 have no predecessors.
    assert told.end.tolist() == [9, 2, 12, 8]


def test_objectives_are_what_they_say():
    jobs = [(10, 100), (20, 0), (10, 0)]
    given = {"release": np.array([0.0, 0.0, 5.0]), "deadline": np.array([20.0, 19.0, 30.0])}
    found = {name: simulate(problem(jobs, 10, objective=name, **given), plan([0, 1, 0], [0, 0, 1]))
             for name in ("makespan", "energy", "edp", "slowdown", "deadlines")}
    scores = {name: float(each.score[0]) for name, each in found.items()}
    assert scores == {"makespan": 20, "energy": 3, "edp": 60, "slowdown": 1.5, "deadlines": pytest.approx(1.05)}
    assert found["edp"].missed[0] == 1 and found["edp"].slowdown[0] == 1.5


def test_a_job_on_a_core_that_it_does_not_fit_takes_for_ever():
    asked = problem([(1, 0), (2, 0)], 1)
    asked.table.count[0, 1] = 0
    for objective in ("makespan", "energy", "edp", "slowdown", "deadlines"):
        assert simulate(replace(asked, objective=objective), plan([1, 0], [0, 0])).score[0] == np.inf
    with pytest.raises(InputError, match=r"plan\.core\[0\]"):
        timeline(replace(asked), plan([1, 0], [0, 0]))


@pytest.mark.parametrize("wrong", [plan([0, 2], [0, 0]), plan([0, -1], [0, 0]), plan([0], [0]),
                                   plan([0, 0], [0, np.nan])])
def test_plans_of_other_jobs_are_refused(wrong):
    with pytest.raises(InputError, match="plans"):
        simulate(problem([(1, 0), (2, 0)], 1), wrong)


def agree(cases, seed, jobs):
    rng = np.random.default_rng(seed)
    for case in range(cases):
        asked = random_problem(rng, jobs, sharing=SHARINGS[case % 3])
        drawn = asked.drawn(rng, 1)
        if case % 5 == 0:  # ties
            drawn = PlanGenomes(drawn.core, np.round(2 * drawn.priority) / 2, drawn.option)
        start, end = walk_plan(asked, drawn)
        told = timeline(asked, drawn)
        np.testing.assert_allclose(told.end, np.array(end, dtype=float), rtol=1e-9)
        np.testing.assert_allclose(told.start, np.array(start, dtype=float), rtol=1e-9)
        assert simulate(asked, drawn).makespan_cycles[0] == told.end.max()
        assert keeps_to_the_rules(asked, told)


def keeps_to_the_rules(asked, told):
    """Whether no more is drawn than there is, all bytes are moved, and no job begins too soon or beside another."""
    spans = np.diff(told.events)
    cycles, traffic, _ = (rows[np.arange(asked.jobs), told.core, told.option] for rows in asked.of_jobs)
    moved = np.array([sum(span * told.share[e, core] for e, span in enumerate(spans)
                          if start <= told.events[e] < end)
                      for start, end, core in zip(told.start, told.end, told.core, strict=True)])
    sums = told.share.sum(axis=1)
    by_core = [np.argsort(told.start[told.core == core], kind="stable") for core in range(asked.cores)]
    apart = all((told.end[told.core == core][order][:-1] <= told.start[told.core == core][order][1:] * (1 + 1e-9)).all()
                for core, order in enumerate(by_core))
    return bool((spans >= 0).all() and (sums <= asked.bandwidth * (1 + 1e-9)).all() and apart
                and np.allclose(moved, traffic, rtol=1e-7, atol=1e-7)
                and (told.end - told.start >= cycles * (1 - 1e-9)).all() and (told.start >= asked.release).all()
                and all(told.end[one] <= told.start[other] for one, other in asked.before))


def test_it_agrees_with_the_literal_one():
    agree(1000, 0, 9)


@pytest.mark.slow
def test_it_agrees_with_the_literal_one_on_many():
    agree(19_000, 1, 12)


def test_it_is_the_same_on_any_number_of_threads():
    rng = np.random.default_rng(3)
    asked = random_problem(rng, 30, sharing="max-min")
    drawn = asked.drawn(rng, 333)
    one, three = (simulate(asked, drawn, threads).makespan_cycles for threads in (1, 3))
    assert (one == three).all() and len(set(one.tolist())) > 1
