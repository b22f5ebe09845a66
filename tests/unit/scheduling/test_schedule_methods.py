"""What every registered schedule method must do, and what some of them are known for."""

from dataclasses import replace

import numpy as np
import pytest
from random_schedules import random_problem, random_table
from test_simulation import problem

from tilewright.base import InputError, has_extra
from tilewright.scheduling import (
    SCHEDULERS,
    KnownPlan,
    PlanGenomes,
    ScheduleBound,
    ScheduleProblem,
    ScheduleSession,
    adopted,
    schedule,
    simulate,
)
from tilewright.scheduling.methods.lists import CORES, ORDERS, ListOptions, list_plans
from tilewright.scheduling.methods.magma import Breeding, magma_options

NOTHING = ScheduleBound(0.0)
FIXED = ("list", "herald-like", "ai-mt-like", "cp-sat")
AGENTS = ("a2c", "ppo")
SINGLE = ("herald-like", "ai-mt-like", "cp-sat", *AGENTS)  # of one step


def extra_of(method):
    """Return the extra that a method says it needs; empty for none."""
    return getattr(SCHEDULERS.get(method), "extra", "")


def stands_by(method):
    """Whether others stand for it by default: optimisers of numbers, each of which is held to all this as a mapper."""
    return hasattr(SCHEDULERS.get(method), "box") and method not in ("ga", "one-plus-one")


EVERY = pytest.mark.parametrize("method", [
    pytest.param(method, marks=[pytest.mark.skipif(not has_extra(extra_of(method)), reason=extra_of(method)),
                                *([pytest.mark.slow] if stands_by(method) else [])])
    for method in SCHEDULERS])


def group():
    """Return a problem with releases, orders, and jobs that do not fit some cores."""
    rng = np.random.default_rng(11)
    return ScheduleProblem(random_table(rng, 12, 3, 3), rng.integers(12, size=30), 9.0, np.arange(30) * 3.0,
                           before=np.array([[0, 3], [4, 3], [5, 1]]), sharing="max-min")


def samples_of(method):
    return 4 if method in AGENTS else 210


def told(found):
    return (found.score, found.samples, found.trace[:, [0, 2]].tolist(), found.plan.core.tolist(),
            found.plan.priority.tolist(), found.plan.option.tolist())


@pytest.fixture(scope="module")
def runs():
    kept = {}

    def made(method):
        if method not in kept:
            kept[method] = schedule(group(), method, samples=samples_of(method), seed=3, bound=NOTHING)
        return kept[method]

    return made


@EVERY
def test_what_is_found_is_what_was_simulated_within_the_budget(method, runs):
    found = runs(method)
    assert found.samples <= samples_of(method) and (found.samples == samples_of(method)) == (method not in FIXED)
    assert simulate(group(), found.plan).score[0] == found.score < np.inf
    assert (np.diff(found.trace[:, 0]) > 0).all() and (np.diff(found.trace[:, 2]) < 0).all()
    assert found.trace[-1, 2] == found.score and 1 <= found.trace[0, 0] <= found.trace[-1, 0] <= samples_of(method)
    assert found.timeline.end.max() == pytest.approx(found.score)


@EVERY
def test_the_same_seed_finds_the_same_on_any_number_of_threads(method, runs):
    again = schedule(group(), method, samples=samples_of(method), seed=3, bound=NOTHING, threads=3)
    assert told(again) == told(runs(method))
    other = schedule(group(), method, samples=samples_of(method), seed=4, bound=NOTHING)
    assert (told(other)[2:] == told(again)[2:]) == (method in FIXED)


@EVERY
def test_what_is_stopped_and_taken_up_ends_as_what_was_not(method, runs, tmp_path):
    file, calls = tmp_path / "kept.npz", []

    class Stop:
        def is_set(self):
            return len(calls) >= 2

    asked = {"samples": samples_of(method), "seed": 3, "bound": NOTHING, "checkpoint": file}
    part = schedule(group(), method, told=calls.append, stop=Stop(), **asked)
    assert part.samples <= samples_of(method) and (part.interrupted or method in SINGLE)
    assert told(schedule(group(), method, **asked)) == told(runs(method))
    with pytest.raises(InputError, match="same search; seed differ"):
        schedule(group(), method, **asked | {"seed": 5})


@EVERY
def test_unknown_options_are_refused(method):
    with pytest.raises(InputError, match="option"):
        schedule(group(), method, samples=10, options={"no such": 1}, bound=NOTHING)


def test_time_ends_a_run_and_a_bound_that_is_met_too():
    found = schedule(group(), "magma", seconds=0.05, bound=NOTHING)
    assert 0 < found.samples and found.seconds < 5
    met = schedule(problem([(10, 0)] * 2, 1), "magma", samples=10_000)
    assert met.samples < 10_000 and met.gap == pytest.approx(0, abs=1e-6)
    with pytest.raises(InputError, match="samples"):
        schedule(group(), samples=0)


def test_samples_are_counted_one_by_one():
    session = ScheduleSession(group(), 25, None, bound=NOTHING)
    plans = group().drawn(np.random.default_rng(0), 40)
    scores, expected = session.score(plans), simulate(group(), plans).score
    assert (scores[:25] == expected[:25]).all() and np.isinf(scores[25:]).all() and session.left == 0 and session.over
    assert session.steps[-1, 0] == expected[:25].argmin() + 1 and session.value == expected[:25].min()
    assert np.isinf(session.score(plans)).all() and session.spent == 25


def only(name, value, asked=None):
    """Return the operators at rates of 0 but for one, and a problem."""
    rates = {rate: 0.0 for rate in ("mutation", "genome", "range", "accelerator")} | {name: value}
    asked = problem([(1 + j, 10) for j in range(10)], 1, 3) if asked is None else asked
    return asked, Breeding(asked, magma_options(rates), np.random.default_rng(0))


def parents(asked, count=400):
    rng = np.random.default_rng(1)
    one, other = asked.drawn(rng, count), asked.drawn(rng, count)
    return one, other, one.take(slice(None))


def test_the_crossover_of_a_genome_takes_one_of_them_from_a_pivot_on():
    asked, breeding = only("genome", 0.5)
    one, other, born = parents(asked)
    breeding.exchange_genome(born, other)
    changed = born.priority != one.priority
    rows = changed.any(axis=1)
    assert (born.priority[changed] == other.priority[changed]).all()
    assert (np.diff(changed.astype(int), axis=1) >= 0).all() and 0.15 < rows.mean() < 0.35
    assert (born.core[rows] == one.core[rows]).all()
    cores = (born.core != one.core).any(axis=1)
    assert 0.1 < cores.mean() < 0.35 and not (cores & rows).any()


def test_the_crossover_of_a_range_takes_all_genes_of_its_jobs():
    asked, breeding = only("range", 0.5)
    one, other, born = parents(asked)
    breeding.exchange_range(born, other)
    changed = born.priority != one.priority
    assert (np.abs(np.diff(changed.astype(int), axis=1)).sum(axis=1) <= 2).all()
    assert (born.core == np.where(changed, other.core, one.core)).all()
    assert 0.35 < changed.any(axis=1).mean() < 0.5 and changed[:, 0].any() and not changed[:, 0].all()


def test_the_crossover_of_a_core_hands_on_all_jobs_of_that_core():
    asked, breeding = only("accelerator", 1.0)
    one, other, born = parents(asked)
    breeding.inherit_core(born, other)
    seen = set()
    for row, (was, theirs, now) in enumerate(zip(one.core, other.core, born.core, strict=True)):
        taken = born.priority[row] != one.priority[row]
        if not taken.any():
            continue
        (core,) = (core for core in range(3) if (taken == (theirs == core)).all())
        assert (now[taken] == core).all() and (born.priority[row][taken] == other.priority[row][taken]).all()
        assert (now[~taken & (was != core)] == was[~taken & (was != core)]).all()
        seen.add(core)
    assert seen == {0, 1, 2}
    lost = (one.core != born.core) & (born.priority == one.priority)
    assert len(set(born.core[lost].tolist())) == 3


def test_mutation_changes_each_gene_by_its_chance():
    asked, breeding = only("mutation", 0.3)
    one, _, born = parents(asked)
    breeding.mutate(born)
    assert 0.25 < (born.priority != one.priority).mean() < 0.35
    assert 0.25 * 2 / 3 < (born.core != one.core).mean() < 0.35 * 2 / 3
    assert (born.option == one.option).all()


def test_mappings_are_a_genome_of_their_own():
    asked, breeding = only("genome", 1.0, group())
    one, other, born = parents(asked)
    breeding.exchange_genome(born, other)
    rows = (born.option != one.option).any(axis=1)
    assert 0.2 < rows.mean() < 0.5 and (born.core[rows] == one.core[rows]).all()
    assert (born.option == np.where(born.option != one.option, other.option, one.option)).all()
    _, breeding = only("range", 1.0, asked)
    one, other, born = parents(asked)
    breeding.exchange_range(born, other)
    assert (born.option == np.where(born.priority != one.priority, other.option, one.option)).all()
    _, breeding = only("mutation", 1.0, asked)
    one, other, born = parents(asked)
    breeding.mutate(born)
    assert (born.option != one.option).mean() > 0.2


def test_children_have_two_parents_and_mappings_that_their_cores_have():
    asked, breeding = only("range", 1.0, group())
    plans, _, _ = parents(asked, 20)
    born = breeding.bred(plans, 300)
    of = [{int(np.flatnonzero(plans.priority[:, job] == born.priority[row, job])[0]) for job in range(asked.jobs)}
          for row in range(300)]
    assert {len(each) for each in of} == {1, 2} and np.mean([len(each) for each in of]) > 1.7
    _, breeding = only("genome", 1.0, asked)
    mixed = breeding.bred(plans, 300)
    assert (mixed.option < asked.counts[np.arange(asked.jobs), mixed.core]).all()


def test_fitter_parents_have_more_children_in_the_release(monkeypatch):
    asked = group()
    session = ScheduleSession(asked, None, None, 5, bound=NOTHING)
    method, seen = SCHEDULERS.get("magma")(session, {"preset": "release"}), []
    monkeypatch.setattr(method.breeding, "bred", lambda plans, count, weights: seen.append(weights) or plans)
    method.step()
    least = np.sort(method.scores)[:3]
    method.step()
    assert seen[0] == pytest.approx(1 / least / (1 / least).sum()) and seen[0][0] > seen[0][-1]


def test_elites_live_on_and_children_come_of_the_best():
    asked = group()
    session = ScheduleSession(asked, None, None, 5, bound=NOTHING)
    method = SCHEDULERS.get("magma")(session, {"population": 40, "mutation": 0.0, "genome": 0.0, "range": 0.0,
                                               "accelerator": 0.0})
    method.step()
    best = method.plans.take(np.argsort(method.scores, kind="stable")[:4])
    worth = np.sort(method.scores)[:4]
    method.step()
    assert session.spent == 80 and set(method.scores.tolist()) <= set(worth.tolist())
    assert {row.tobytes() for row in method.plans.priority} <= {row.tobytes() for row in best.priority}
    assert method.scores.min() == worth.min() and len(method.plans) == 42
    release = SCHEDULERS.get("magma")(session, {"preset": "release"})
    release.step()
    release.step()
    assert session.spent == 80 + asked.jobs + asked.jobs + 2 and release.options.range == 0.1
    assert release.options.accelerator == 0.1
    with pytest.raises(InputError, match="text, release"):
        schedule(asked, "magma", options={"preset": "published"}, bound=NOTHING)


def listed(asked, order, cores):
    return schedule(asked, "list", options={"order": order, "cores": cores}, bound=NOTHING).plan


def test_list_rules_do_what_they_are_called():
    asked = problem([(3, 0), (1, 0), (2, 0), (6, 0)], 1)
    assert listed(asked, "fcfs", "round-robin").core.tolist() == [[0, 1, 0, 1]]
    assert listed(asked, "shortest", "round-robin").core.tolist() == [[0, 0, 1, 1]]
    assert listed(asked, "longest", "least-busy").core.tolist() == [[1, 1, 1, 0]]
    assert np.argsort(listed(asked, "longest", "least-busy").priority[0]).tolist() == [3, 0, 2, 1]
    chained = replace(asked, before=np.array([[1, 3]]))
    assert np.argsort(listed(chained, "heft", "earliest-end").priority[0]).tolist() == [1, 3, 0, 2]
    assert simulate(chained, listed(chained, "heft", "earliest-end")).makespan_cycles[0] == 7
    asked.table.cycles[0, 1] = 99  # which no plan needs to use
    slow = replace(chained)
    assert np.argsort(listed(slow, "heft", "earliest-end").priority[0]).tolist() == [0, 1, 3, 2]
    assert np.argsort(listed(slow, "critical", "earliest-end").priority[0]).tolist() == [1, 3, 0, 2]


def test_list_rules_know_slow_cores():
    asked = problem([(10, 0)] * 6, 1)
    asked.table.cycles[:, 1] = 25
    assert listed(asked, "fcfs", "fastest").core.tolist() == [[0] * 6]
    assert listed(asked, "fcfs", "least-busy").core.tolist() == [[0, 1, 0, 0, 1, 0]]
    assert listed(asked, "fcfs", "earliest-end").core.tolist() == [[0, 0, 1, 0, 0, 1]]
    assert schedule(asked, "herald-like", bound=NOTHING).plan.core.tolist() == [[0, 1, 0, 0, 0, 1]]
    assert len(list(list_plans(asked, ListOptions()))) == 2 * len(ORDERS) * len(CORES)


def test_ai_mt_like_lets_jobs_of_both_kinds_take_turns():
    asked = problem([(10, 0)] * 3 + [(10, 100)] * 3, 10)
    plan = schedule(asked, "ai-mt-like", bound=NOTHING).plan
    assert np.argsort(plan.priority[0]).tolist() == [3, 0, 4, 1, 5, 2]


def test_a_known_plan_serves_the_most_similar_jobs():
    asked = problem([(1, 5), (10, 50), (100, 500)], 3)
    known = KnownPlan.of(asked, PlanGenomes(np.array([[0, 1, 1]]), np.array([[0.1, 0.2, 0.3]]),
                                            np.zeros((1, 3), dtype=np.int64)))
    other = problem([(90, 400), (1, 6), (11, 60)], 3)
    plan = adopted(other, known).take(slice(1))
    assert plan.core.tolist() == [[1, 0, 1]] and plan.priority.tolist() == [[0.3, 0.1, 0.2]]
    more = adopted(problem([(90, 400), (1, 6), (11, 60), (1, 4)], 3), known)
    assert more.core[0].tolist() == [1, 0, 1, 0]
    many = problem([(n, 6 * n) for n in range(1, 61)], 3)
    known = KnownPlan.of(many, many.drawn(np.random.default_rng(1), 1))
    plans = adopted(many, known)
    assert len(plans) == 60 and np.array_equal(plans.priority[0], known.priority)
    near = (plans.priority[1:, :, None] == known.priority) & (np.abs(np.arange(60) - np.arange(60)[:, None]) <= 8)
    assert 0.9 < near.any(axis=2).mean() < 1.0  # but for random genes all are of jobs that are near
    assert 0.75 < (plans.priority[1:] == known.priority).mean() < 0.95  # most of the job itself
    with pytest.raises(InputError, match="2 cores"):
        adopted(other, replace(known, profiles=known.profiles[:, :2]))


def test_adopted_plans_give_jobs_of_busy_cores_to_others_while_bytes_do_not_hold_the_makespan():
    takes = np.random.default_rng(2).integers(1, 9, 40)
    asked = problem([(cycles, 0) for cycles in takes], 1, 3)
    nothing = np.zeros((1, 40), dtype=np.int64)
    known = KnownPlan.of(asked, PlanGenomes(nothing, nothing.astype(np.float64), nothing))
    level = adopted(asked, known)
    assert simulate(asked, level).makespan_cycles.max() <= takes.sum() / 3 + takes.max()
    assert (level.core == 0).mean() < 0.7
    assert (adopted(replace(asked, objective="energy"), known).core == 0).mean() > 0.9
    full = problem([(cycles, 5 * cycles) for cycles in takes], 5, 3)  # one core takes all there is
    assert (adopted(full, replace(known, profiles=KnownPlan.of(full, level).profiles)).core[0] == 0).all()
    asked.table.cycles[:, 1:] *= 100  # so slow that only small jobs are worth giving away
    assert (simulate(asked, adopted(asked, known)).makespan_cycles <= takes.sum()).all()


def test_magma_begins_from_what_is_known():
    asked = group()
    found = schedule(asked, "magma", samples=600, seed=1, bound=NOTHING)
    warm = schedule(asked, "magma", samples=20, seed=2, warm=found.plan, bound=NOTHING)
    cold = schedule(asked, "magma", samples=20, seed=2, bound=NOTHING)
    assert warm.score <= found.score < cold.score and warm.trace[0, 2] == found.score


def test_auto_finds_what_is_proven_where_magma_does_not():
    """Twelve jobs, most of them slow on the last core: assignments that the bound suggests are worth most."""
    rng = np.random.default_rng(2)
    gaps = {"auto": [], "magma": []}
    for _ in range(4):
        asked = problem([(c, 0) for c in rng.integers(100, 1000, 30)], 10, 3)
        asked.table.cycles[:, 2] *= rng.uniform(2, 30, (30, 1))
        for method, known in gaps.items():
            known.append(schedule(asked, method, samples=2000).gap)
    assert max(gaps["auto"]) < 0.01 < min(gaps["magma"])


def test_auto_lets_one_core_take_what_the_others_leave_of_the_bandwidth(monkeypatch):
    """Cores and bandwidth are full where ten jobs that ask for 16 times the bandwidth run one after the other."""
    jobs = [(c, c / 10) for c in np.random.default_rng(5).integers(50, 150, 40)]
    left = sum(cycles / 2 - moved for cycles, moved in jobs)
    asked = problem([*jobs, *[(left / 160, left / 10)] * 10], 1, 3, sharing="max-min")
    assert schedule(asked, "auto", samples=60).gap < 1e-3
    monkeypatch.setattr("tilewright.scheduling.methods.auto.HUNGRY", np.inf)
    assert schedule(asked, "auto", samples=60).gap > 1e-2


def test_auto_lets_cores_wait_for_the_bandwidth(monkeypatch):
    """Half of the jobs ask for more than their part: assignments that fill the cores whole cannot be had."""
    rng = np.random.default_rng(9)
    cycles = rng.integers(50, 150, 40)
    asked = problem([*zip(cycles, cycles * rng.choice([0.2, 1.6], 40), strict=True)], 3, 4, sharing="max-min")
    assert schedule(asked, "auto", samples=100).gap < 0.015
    monkeypatch.setattr("tilewright.scheduling.methods.auto.IDLE", ())
    assert schedule(asked, "auto", samples=100).gap > 0.03


def test_climbing_keeps_the_best_and_what_its_scores_say():
    asked = group()
    session = ScheduleSession(asked, None, None, 1, bound=NOTHING)
    method = SCHEDULERS.get("auto")(session, {"chains": 3, "round": 40, "patience": 0.2})
    method.step()
    assert len(method.plans) == 3 and session.value == method.scores.min() == simulate(asked, session.best).score[0]
    for _ in range(8):
        spent = session.spent
        method.step()
        assert session.spent == spent + 120
        assert simulate(asked, session.best).score[0] == session.value
        fits = asked.counts[np.arange(asked.jobs), method.plans.core]
        assert (method.plans.option < fits).all() and (method.plans.option >= 0).all()


def test_a_change_makes_one_move():
    from tilewright.scheduling.kernels import WAYS, PlanArrays, change

    asked, rng = group(), np.random.default_rng(4)
    ways = dict.fromkeys(range(5), 0)
    for _ in range(500):
        plan, draw = asked.drawn(rng, 1), rng.random(4)
        core, priority, option = plan.core[0], plan.priority[0], plan.option[0]
        old = core.copy(), priority.copy(), option.copy()
        change.py_func(PlanArrays(core, priority, option), asked.counts, draw, 0)
        moved, timed = np.flatnonzero(core != old[0]), np.flatnonzero(priority != old[1])
        place = int(draw[0] * len(WAYS))
        way = WAYS[place]
        ways[way] += len(moved) + len(timed) + int((option != old[2]).any())
        assert len(moved) <= (1, 2, 0, 0, 0)[way] and len(timed) <= (0, 0, 0, 1, 2)[way]
        assert (option < asked.counts[np.arange(asked.jobs), core]).all()
        assert np.array_equal(np.sort(core), np.sort(old[0])) or way == 0
        assert np.array_equal(np.sort(priority), np.sort(old[1])) or way == 3
        if draw[0] * len(WAYS) - place < 0.5 and way == 0 and len(moved):
            assert old[0][moved[0]] == old[0][0]  # of the core that ends last
    assert all(count > 20 for count in ways.values())


def test_integer_assignments_are_whole_and_no_better_than_their_bound():
    from tilewright.scheduling.bounds import Relaxation

    rng = np.random.default_rng(8)
    for _ in range(20):
        asked = random_problem(rng, 9)
        for apart in (False, True):
            relaxation = Relaxation(asked, apart)
            chosen, bound = relaxation.assign(5.0)
            assert (np.bincount(relaxation.columns[0], chosen) == np.bincount(relaxation.classes[1])).all()
            assert bound >= relaxation.split()[0][0] * relaxation.unit * (1 - 1e-5)


@pytest.mark.skipif(not has_extra("cp-sat"), reason="cp-sat")
def test_constraint_programming_proves_optima_that_auto_finds():
    rng = np.random.default_rng(3)
    proven = 0
    for _ in range(6):
        asked = problem([(c, 5 * c) for c in rng.integers(100, 1000, 12)], 40, 3)
        asked.table.cycles[:, 2] *= rng.uniform(2, 5, (12, 1))
        exact, auto = schedule(asked, "cp-sat"), schedule(asked, "auto", samples=3000)
        proven += exact.gap < 1e-5
        assert auto.score <= exact.score * 1.01 and auto.score >= exact.bound.value
    assert proven == 6
    chained = replace(asked, before=np.array([[j, j + 4] for j in range(8)]), release=np.arange(12) * 50.0)
    found = schedule(chained, "cp-sat")
    assert found.bound.value <= found.score <= found.bound.value * 1.05
    with pytest.raises(InputError, match="makespan"):
        schedule(replace(asked, objective="edp"), "cp-sat")
