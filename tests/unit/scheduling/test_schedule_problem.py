"""What schedule problems refuse, and what they derive."""

import numpy as np
import pytest
from random_schedules import random_problem, random_table

from tilewright.base import InputError
from tilewright.scheduling import AnalysisTable, ScheduleProblem


def plain(jobs=3, cores=2, **given):
    ones = np.ones((1, cores, 1))
    table = AnalysisTable(10 * ones, 40 * ones, ones, np.ones((1, cores), dtype=np.int64))
    return ScheduleProblem(table, np.zeros(jobs, dtype=np.int64), given.pop("bandwidth", 2.0), **given)


@pytest.mark.parametrize(("given", "told"), [
    ({"bandwidth": 0.0}, "bandwidth: must be positive"),
    ({"bandwidth": float("nan")}, "bandwidth: must be positive"),
    ({"sharing": "fair"}, "sharing: must be a known sharing"),
    ({"objective": "makspan"}, "Did you mean makespan"),
    ({"release": np.array([1.0])}, "release: must be 3 times"),
    ({"deadline": np.array([1.0, -1.0, 2.0])}, "deadline: must be 3 times"),
    ({"before": np.array([[0, 3]])}, "before: must be pairs of jobs from 0 to 2"),
    ({"before": np.array([[0, 1], [1, 0]])}, "0 before 1 before 0"),
    ({"before": np.array([[2, 2]])}, "2 before 2"),
    ({"jobs": 0}, "rows: must name rows"),
])
def test_what_is_refused(given, told):
    with pytest.raises(InputError) as error:
        plain(**given)
    assert told in str(error.value)


def test_a_circle_is_told_without_what_only_leads_to_it():
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 1], [3, 4]])
    with pytest.raises(InputError, match="1 before 2 before 3 before 1"):
        plain(jobs=5, before=pairs)


def test_jobs_that_fit_no_core_and_tables_that_cannot_be_are_refused():
    table = random_table(np.random.default_rng(0))
    table.count[2] = 0
    with pytest.raises(InputError, match=r"jobs\[1\].*must fit a core"):
        ScheduleProblem(table, np.array([0, 2]), 1.0)
    ones = np.ones((1, 1, 1))
    for cycles, traffic in ((0 * ones, ones), (ones, -ones), (ones, np.inf * ones), (np.nan * ones, ones)):
        with pytest.raises(InputError, match="table"):
            AnalysisTable(cycles, traffic, ones, np.ones((1, 1), dtype=np.int64))
    with pytest.raises(InputError, match="count"):
        AnalysisTable(ones, ones, ones, np.full((1, 1), 2))
    with pytest.raises(InputError, match="table"):
        AnalysisTable(ones, ones[0], ones, np.ones((1, 1), dtype=np.int64))


def test_heads_and_tails_are_the_longest_ways():
    chain = plain(jobs=4, before=np.array([[0, 1], [1, 3], [2, 3]]), release=np.array([0.0, 0.0, 50.0, 0.0]))
    assert chain.alone.tolist() == [20.0] * 4
    assert chain.heads.tolist() == [0, 20, 50, 70] and chain.tails.tolist() == [40, 20, 20, 0]
    assert chain.topological.tolist() == [0, 2, 1, 3]


def test_random_plans_are_of_mappings_that_there_are():
    rng = np.random.default_rng(1)
    for _ in range(50):
        problem = random_problem(rng)
        plans = problem.drawn(rng, 40)
        count = problem.counts[np.arange(problem.jobs), plans.core]
        assert (plans.option < count).all() and (plans.option >= 0).all()
        for job in range(problem.jobs):
            assert set(plans.core[:, job]) <= set(np.flatnonzero(problem.counts[job]))
        place = {int(job): at for at, job in enumerate(problem.topological)}
        assert all(place[int(one)] < place[int(other)] for one, other in problem.before)


def test_without_a_choice_of_mappings_the_fastest_is_taken():
    rng = np.random.default_rng(2)
    problem = random_problem(rng, choose_mapping=False)
    assert (problem.drawn(rng, 20).option == 0).all() and problem.durations.shape[2] == 1
