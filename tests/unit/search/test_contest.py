"""Mappers side by side: statistics against brute force, curves, kept searches, what is refused."""

import math
import threading
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.jobs import Runner
from tilewright.search import Improvement, search
from tilewright.search.studies import (
    Attempt,
    Contender,
    Contest,
    Terms,
    compare,
    holm,
    median_interval,
    parse_contenders,
    run_contest,
)

LAYER = "conv:K=16,C=8,P=14,Q=14,R=3,S=3"


@pytest.fixture(scope="module")
def space():
    return tw.map_space(LAYER, "edge-s1")


def test_the_interval_of_ten_values_goes_from_the_second_to_the_ninth():
    found = median_interval([9, 0, 8, 1, 7, 2, 6, 3, 5, 4])
    assert (found.low, found.median, found.high) == (1, 4.5, 8)
    assert found.coverage == pytest.approx(1 - 2 * (1 + 10) / 2**10)
    few = median_interval([3, 1, 2])
    assert (few.low, few.high, few.coverage) == (1, 3, 0.75)
    alone = median_interval([5])
    assert (alone.low, alone.median, alone.high, alone.coverage) == (5, 5, 5, 0)
    assert median_interval([1, 2, math.inf, math.inf]).median == math.inf


@pytest.mark.parametrize("count", [6, 11, 25])
def test_the_interval_covers_the_median_as_often_as_it_says(count):
    rng = np.random.default_rng(count)
    drawn = rng.exponential(size=(4000, count))
    found = [median_interval(list(row)) for row in drawn]
    hit = np.mean([each.low <= math.log(2) <= each.high for each in found])
    assert found[0].coverage >= 0.95
    assert hit == pytest.approx(found[0].coverage, abs=0.012)


@pytest.mark.parametrize(("first", "second"), [
    ([1, 2, 3], [4, 5, 6, 7]), ([1, 5, 3], [4, 2, 6]), ([1, 1, 2], [1, 2, 2, 3]), ([4, 4], [4, 4, 4]),
    ([math.inf, 1], [2, math.inf, 3]),
])
def test_ranks_are_compared_as_by_all_permutations(first, second):
    values = [*first, *second]
    ranks = [np.mean([place for place, v in enumerate(sorted(values), start=1) if v == value]) for value in values]
    n = len(first)
    centre = n * (len(values) + 1) / 2
    sums = [sum(ranks[index] for index in chosen) for chosen in combinations(range(len(values)), n)]
    far = [abs(each - centre) >= abs(sum(ranks[:n]) - centre) - 1e-9 for each in sums]
    wins = np.mean([0.5 if a == b else float(a < b) for a in first for b in second])
    found = compare(first, second)
    assert found.p == pytest.approx(np.mean(far))
    assert found.wins == pytest.approx(wins)


def test_p_values_are_corrected_for_how_many_there_are():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_contenders_are_read_with_their_options():
    found = parse_contenders("gamma, gamma:crossover=0,tile=1 ,random:batch=64")
    assert [one.name for one in found] == ["gamma", "gamma:crossover=0,tile=1", "random:batch=64"]
    assert found[1].options == {"crossover": 0, "tile": 1}
    assert parse_contenders(["gamma:paper=true"])[0].options == {"paper": True}
    own = Contender("mine", "gamma", {"population": 20})
    assert parse_contenders(["random", own])[1] is own


@pytest.mark.parametrize(("text", "message"), [
    ("gama", "mapper: must be a known mapper; Got 'gama'; Did you mean gamma"),
    ("gamma:crossover", "mappers.gamma: must give options as NAME=VALUE; Got 'crossover'"),
    ("gamma,gamma", "mappers: must differ"),
])
def test_contenders_that_mean_nothing_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_contenders(text)


@pytest.mark.parametrize(("asked", "message"), [
    ({"contenders": "gamma:crosover=0"}, "gamma option: must be a known gamma option"),
    ({"contenders": "gamma:crossover=2"}, "options.crossover: must be at least 0 and at most 1"),
    ({"contenders": []}, "mappers: must name at least one"),
    ({"seeds": 0}, "seeds: must be from 1 to 100"),
    ({"budget": 0}, "budget.samples: must be positive"),
])
def test_contests_that_cannot_be_are_refused_before_anything_is_searched(space, asked, message):
    with pytest.raises(InputError, match=message):
        contenders = asked.pop("contenders", "gamma")
        run_contest(space, contenders, Terms(**{"budget": 100, "seeds": 2, **asked}))


def test_a_contest_has_the_searches_that_were_asked_for(space):
    found = run_contest(space, "gamma,random:batch=50", Terms(budget=400, seeds=3, seed=5))
    assert (found.seeds, found.names) == ((5, 6, 7), ("gamma", "random:batch=50"))
    alone = search(space.operator, space.accelerator, mapper="gamma", budget=400, seed=6, space=space)
    attempt = found.of("gamma")[1]
    assert (attempt.seed, attempt.score, attempt.samples) == (6, alone.score, 400)
    assert [(s.samples, s.score) for s in attempt.history] == [(s.samples, s.score) for s in alone.history]
    assert found.bound == alone.bound
    assert found.best == min(each.score for each in found.attempts)
    assert found.equal_samples == 400


def test_scores_do_not_depend_on_workers(space):
    one, two = (run_contest(space, "gamma,random", Terms(budget=300, seeds=3), Runner(workers=workers))
                for workers in (1, 2))
    assert [a.score for a in one.attempts] == [a.score for a in two.attempts]


def test_searches_are_kept_and_taken_over(space):
    class Memory(dict):
        def take(self, cells):
            return [self.get(repr(sorted(cell.items()))) for cell in cells]

        def put(self, cell, value):
            self[repr(sorted(cell.items()))] = value

    memory = Memory()
    first = run_contest(space, "gamma,random", Terms(budget=200, seeds=2), Runner(workers=1, keeper=memory))
    assert len(memory) == 4
    again = run_contest(space, "gamma,random", Terms(budget=200, seeds=3), Runner(workers=1, keeper=memory))
    assert len(memory) == 6
    assert again.attempts[:4] == first.attempts  # to the second, so that nothing was searched


def test_a_contest_that_is_stopped_has_whole_seeds(space):
    stop = threading.Event()

    def told(standing):
        if standing.done == 3:
            stop.set()

    found = run_contest(space, "gamma,random", Terms(budget=200, seeds=4), Runner(workers=1, observer=told, stop=stop))
    assert found.seeds == (0,)
    assert len(found.attempts) == 2


def made(histories, samples=100):
    """Return a contest of these improvements: by mapper, (samples, seconds, score) of each seed."""
    attempts = [Attempt(name, seed, tuple(Improvement(*step) for step in steps), samples, samples, samples / 100.0)
                for name, searches in histories.items() for seed, steps in enumerate(searches)]
    seeds = tuple(range(len(next(iter(histories.values())))))
    return Contest("layer", "machine", "edp", "pJ x cycles", tuple(Contender(name, name) for name in histories), seeds,
                   tuple(attempts), 1.0)


def test_curves_and_goals_by_hand():
    found = made({"a": [[(1, 0.1, 8.0), (10, 0.2, 2.0)], [(2, 0.1, 4.0)], [(4, 0.4, 6.0), (50, 0.5, 2.1)]],
                  "b": [[], [(100, 1.0, 9.0)], [(60, 0.6, 3.0)]]})
    assert found.best == 2.0
    assert found.final("a").median == 2.1
    assert found.standing("a", 5).median == 6.0
    assert found.standing("a", 3).median == 8.0
    assert found.standing("a", 1).median == math.inf
    assert found.standing("a", 0.3, "seconds").median == 4.0
    assert found.reach("a", 0.05).median == 50
    assert found.reach("a", 0.01).median == math.inf
    assert found.reach("a", 0.05, "seconds").median == 0.5
    assert found.gap("a") == pytest.approx(1.1)
    assert replace(found, bound=4.2).gap("a") == pytest.approx(-0.5), "a bound that is none shows"
    band = found.band("a")
    assert (band.at[0], band.at[-1]) == (1, 100)
    medians = [each.median for each in band.intervals]
    assert medians == sorted(medians, reverse=True)
    (first, second, duel), = found.duels()
    assert (first, second) == ("a", "b")
    assert duel.wins == 8 / 9


def test_duels_are_at_the_samples_and_seconds_that_all_had():
    """`late` overtakes `early` after the samples and the seconds that the shorter searches had."""
    found = made({"early": [[(10, 1.0, 5.0)]] * 6, "late": [[(20, 2.0, 9.0), (150, 15.0, 1.0)]] * 6}, samples=200)
    longer = [replace(a, samples=200, seconds=20.0) if a.contender == "late" else replace(a, samples=100, seconds=10.0)
              for a in found.attempts]
    found = replace(found, attempts=tuple(longer))
    assert (found.equal_samples, found.equal_seconds) == (100, 10.0)
    for clock in ("samples", "seconds"):
        (_, _, duel), = found.duels(clock)
        assert duel.wins == 1.0 and duel.p < 0.01, clock
    assert (found.final("early").median, found.final("late").median) == (5.0, 1.0)
    one_short = replace(found, attempts=(replace(longer[0], samples=60), *longer[1:]))
    assert one_short.equal_samples == 60


def test_a_search_that_ends_by_itself_does_not_shorten_the_others(space):
    tiny = tw.map_space("matmul:M=2,N=2,K=2", "edge-s1", tiling="perfect")
    found = run_contest(tiny, "exact,random", Terms(budget=5000, seeds=2))
    ended = found.of("exact")[0]
    assert ended.ended and ended.samples < 5000
    assert found.equal_samples == 5000
    assert found.equal_seconds >= found.time("random").low
    assert found.standing("exact", found.equal_samples).median == found.bound == found.best
    alone = run_contest(tiny, "exact", Terms(budget=5000, seeds=2))
    assert alone.equal_samples == ended.samples


def test_a_hundred_seeds_are_compared_at_once():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=100), rng.normal(0.2, size=100)
    wins = np.mean(first[:, None] < second[None, :])
    found = compare(list(first), list(second))
    spread = math.sqrt(100 * 100 * 201 / 12)
    z = abs(wins * 100**2 - 100**2 / 2) / spread
    assert found.wins == pytest.approx(wins)
    assert found.p == pytest.approx(math.erfc(z / math.sqrt(2)), rel=0.02)
