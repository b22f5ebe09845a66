"""What every registered mapper must do, whatever it does inside."""

import math
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tilewright.base import InputError, has_extra
from tilewright.cost import DenseModel, layer_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Compute, Fanout, Memory, preset
from tilewright.mapping import MapSpace, extents_at, is_legal
from tilewright.search import MAPPERS, Budget, Task, Watch, search
from tilewright.search.run import FEWEST
from tilewright.workload import convolution, matmul

OPERATOR = matmul("small", m=24, n=18, k=20)
ACCELERATOR = preset("eyeriss")
SPACE = MapSpace(OPERATOR, ACCELERATOR, "imperfect")


def extra_of(mapper):
    """Return the extra that a mapper says it needs; empty for none."""
    return getattr(MAPPERS.get(mapper), "extra", "")


INSTALLED = [mapper for mapper in MAPPERS if has_extra(extra_of(mapper))]
EVERY = pytest.mark.parametrize("mapper", [
    pytest.param(mapper, marks=pytest.mark.skipif(mapper not in INSTALLED, reason=f"needs extra {extra_of(mapper)}"))
    for mapper in MAPPERS])
# What libraries do in Python takes up to a thousand times longer.
SLOW = {mapper for mapper in MAPPERS if extra_of(mapper) == "optimizers"}
FEWER = {*SLOW, "gradient", "mind-mappings"}
# All optimisers of libraries propose points, which one class makes mappings of: by default one stands for them.
ADAPTED = pytest.mark.parametrize("mapper", [
    pytest.param(mapper, marks=[pytest.mark.skipif(mapper not in INSTALLED, reason=f"needs extra {extra_of(mapper)}"),
                                *([pytest.mark.slow] if mapper in SLOW and mapper != "cma-es" else [])])
    for mapper in MAPPERS])
SAMPLES = {mapper: 150 if mapper in FEWER else 634 for mapper in MAPPERS}
SHORTER = {"gradient": {"starts": 8, "steps": 5}}
"""Options with which a mapper takes less time, and does the same."""


def run(mapper, **changes):
    return search(OPERATOR, ACCELERATOR, **{"mapper": mapper, "budget": SAMPLES[mapper], "seed": 5, "space": SPACE,
                                            "options": SHORTER.get(mapper, {}), **changes})


@cache
def plain_run(mapper):
    """Return the result of a plain run, which several tests look at."""
    return run(mapper)


def timeless(result):
    """Return a result without the time that it took."""
    return replace(result, seconds=0.0, history=tuple(replace(step, seconds=0.0) for step in result.history))


def same(first, second):
    """Whether two results agree in all but the time that they took."""
    return timeless(first) == timeless(second)


def told(result):
    """Return what a result found, and on which way, as text."""
    steps = [(step.samples, step.score) for step in result.history]
    return repr((result.samples, result.legal_samples, result.score, steps, str(result.mapping)))


class Interrupt:
    """Counts updates of progress and stops the search after some."""

    def __init__(self, mapper, after):
        self.inner = MAPPERS.get(mapper)
        self.left = after
        self.watch = None
        self.most = 40 if mapper in FEWER else 120

    def __call__(self, task):
        made = self.inner(task)
        ask = made.ask

        def counted(most):
            self.left -= 1
            if self.left == 0:
                self.watch.stop.set()
            return ask(min(most, self.most))

        made.ask = counted
        return made


@EVERY
def test_the_budget_is_spent_to_the_last_sample_and_no_further(mapper):
    for samples in (1, 77, SAMPLES[mapper]):
        result = plain_run(mapper) if samples == SAMPLES[mapper] else run(mapper, budget=samples)
        assert (result.samples, result.stopped) == (samples, "samples")
        assert result.legal_samples <= samples


@EVERY
def test_a_mapping_is_found_and_is_legal_and_costs_what_was_scored(mapper):
    result = plain_run(mapper)
    assert result.mapping is not None
    assert is_legal(result.mapping, OPERATOR, ACCELERATOR)
    assert result.score == pytest.approx(result.cost.edp, rel=1e-9)
    assert result.score == pytest.approx(result.history[-1].score, rel=1e-9)
    assert result.feasible


STRIDED = convolution("strided", in_channels=4, out_channels=6, kernel=(1, 3), out_size=(6, 10), stride=3, dilation=2)
SMALL = Accelerator("small", (
    Memory("DRAM", ("inputs", "weights", "outputs"), AccessEnergy(*[100.0] * 4)),
    Memory("GLB", ("inputs", "weights", "outputs"), AccessEnergy(*[6.0] * 4), 260.0),
    Fanout("PE", (4, 2)),
    Memory("RF", ("inputs", "weights", "outputs"), AccessEnergy(*[1.0] * 4), 40.0)), Compute("MAC", 1.0))


def boxes_fit(mapping, operator, machine):
    """Whether the smallest boxes around all tiles fit, by the coordinates that they reach."""
    copies = {memory.name: 2 if memory.buffering == "double" else 1 for memory in machine.memories}
    for entry, extents in zip(mapping.levels, extents_at(mapping, operator.sizes), strict=False):
        room = getattr(machine.level(entry.level), "capacity_bytes", None)
        if room is not None:
            kept = [t for t in operator.tensors if entry.keeps is None or t.name in entry.keeps]
            reach = [[max(sum(times * at for (_, times), at in zip(axis.terms, spots, strict=True))
                          for spots in product(*(range(extents[d]) for d in axis.dimensions))) for axis in tensor.axes]
                     for tensor in kept]
            if copies[entry.level] * sum(math.prod(last + 1 for last in tensor) for tensor in reach) > room:
                return False
    return True


@ADAPTED
def test_boxes_fit_where_a_machine_counts_them(mapper):
    machine = replace(SMALL, footprint="box")
    found = search(STRIDED, machine, mapper=mapper, budget=60 if mapper in FEWER else 600, seed=3,
                   options=SHORTER.get(mapper, {}))
    assert found.mapping is not None
    assert is_legal(found.mapping, STRIDED, machine)
    assert boxes_fit(found.mapping, STRIDED, machine)
    assert found.score >= layer_bounds(STRIDED, machine).edp


@pytest.mark.parametrize("mapper", ["gamma", "random"])
def test_boxes_do_not_fit_by_themselves(mapper):
    found = search(STRIDED, SMALL, mapper=mapper, budget=600, seed=3)
    assert not boxes_fit(found.mapping, STRIDED, SMALL)


@EVERY
def test_history_only_improves_and_stays_within_the_budget(mapper):
    history = plain_run(mapper).history
    scores = [step.score for step in history]
    samples = [step.samples for step in history]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    assert samples == sorted(samples)
    assert 1 <= samples[0] <= samples[-1] <= SAMPLES[mapper]


@ADAPTED
def test_all_that_is_proposed_fits_the_arrays_and_covers_the_operator(mapper):
    task = Task(SPACE, np.random.default_rng(1), SAMPLES[mapper], SHORTER.get(mapper, {}))
    made = MAPPERS.get(mapper)(task)
    rng = np.random.default_rng(2)
    for _ in range(5):
        batch = made.ask(300)
        assert 0 < len(batch) <= 300
        assert np.array_equal(SPACE.repair(batch).steps, batch.steps)
        assert (np.sort(batch.ranks, axis=1) == np.arange(4)[None, :, None]).all()
        made.tell(batch, rng.random(len(batch)))


@EVERY
def test_same_seed_same_result_on_any_number_of_threads(mapper):
    for threads in (1, 3):
        assert same(run(mapper, watch=Watch(threads=threads)), plain_run(mapper))


@EVERY
def test_another_seed_draws_something_else(mapper):
    first, again, other = (run(mapper, budget=60, seed=seed) for seed in (5, 5, 6))
    assert told(first) == told(again)
    if MAPPERS.get(mapper)(Task(SPACE, np.random.default_rng(0), 10)).covers_space:
        assert told(first) == told(other)
    else:
        assert timeless(first).history != timeless(other).history
        assert first.mapping != other.mapping


@pytest.mark.parametrize("ours", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["ours", "of libraries"])
def test_same_seed_same_result_in_a_fresh_process(ours):
    mappers = [mapper for mapper in INSTALLED if ours != bool(extra_of(mapper))]
    code = (
        "from test_mappers import run, told\n"
        f"print([(m, told(run(m, budget=60))) for m in {mappers}])\n"
    )
    here = [(m, told(run(m, budget=60))) for m in mappers]
    there = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True,
                           check=True)
    assert there.stdout.strip() == str(here)


@EVERY
def test_a_search_that_is_stopped_and_resumed_ends_as_one_that_was_not(mapper, tmp_path, monkeypatch):
    file = tmp_path / "search.npz"
    interrupted = Interrupt(mapper, after=10**9)
    monkeypatch.setitem(MAPPERS._members, mapper, interrupted)
    whole = run(mapper)
    interrupted.left = 3
    interrupted.watch = Watch(checkpoint=file)
    part = run(mapper, watch=interrupted.watch)
    assert part.stopped == "interrupted"
    assert 0 < part.samples < SAMPLES[mapper]
    interrupted.left = 10**9
    resumed = run(mapper, watch=Watch(checkpoint=file))
    assert same(resumed, whole)
    assert same(run(mapper, watch=Watch(checkpoint=file)), whole)


@ADAPTED
def test_mappings_to_start_from_are_scored_first(mapper):
    start = SPACE.sample(np.random.default_rng(8), 7)
    each = [run("random", budget=1, start=start.take(slice(b, b + 1))).score for b in range(7)]
    some, warm = run(mapper, budget=7, start=start), run(mapper, start=start)
    assert some.samples == 7
    assert some.score == min(each)
    assert warm.samples == SAMPLES[mapper]
    assert warm.score <= min(each)
    assert [origin.kind for origin in warm.start] == ["given"]
    assert same(warm, run(mapper, start=start, watch=Watch(threads=3)))


@ADAPTED
def test_a_warm_search_that_is_stopped_and_resumed_ends_as_one_that_was_not(mapper, tmp_path, monkeypatch):
    start = SPACE.sample(np.random.default_rng(8), 7)
    interrupted = Interrupt(mapper, after=10**9)
    monkeypatch.setitem(MAPPERS._members, mapper, interrupted)
    whole = run(mapper, start=start)
    for after in (1, 3):
        interrupted.left = after
        interrupted.watch = Watch(checkpoint=tmp_path / f"{after}.npz")
        assert run(mapper, start=start, watch=interrupted.watch).samples < SAMPLES[mapper]
        interrupted.left = 10**9
        assert same(run(mapper, start=start, watch=Watch(checkpoint=tmp_path / f"{after}.npz")), whole)


LEARNS = [mapper for mapper in MAPPERS if mapper not in ("random", "random-pruned", "exhaustive", "exact")]


@pytest.mark.parametrize("mapper", [
    pytest.param(mapper, marks=[pytest.mark.skipif(mapper not in INSTALLED, reason=f"needs extra {extra_of(mapper)}"),
                                *([pytest.mark.slow] if mapper in SLOW and mapper != "cma-es" else [])])
    for mapper in LEARNS])
def test_what_a_search_begins_from_is_proposed_first_and_decides_what_follows(mapper):
    drawn = SPACE.refit(SPACE.sample(np.random.default_rng(4), 12))
    follows = []
    for start in (drawn.take(slice(0, 6)), drawn.take(slice(6, 12))):
        made = MAPPERS.get(mapper)(Task(SPACE, np.random.default_rng(0), 400, SHORTER.get(mapper, {}), start=start))
        assert made.takes_start
        first, learnt = [], np.random.default_rng(1)
        while sum(map(len, first)) < 300:
            first.append(made.ask(300))
            made.tell(first[-1], learnt.random(len(first[-1])) + 1.0)
        steps = np.concatenate([batch.steps for batch in first], axis=2)
        assert np.array_equal(steps[:, :, :6], start.steps)
        follows.append(steps[:, :, 6:300])
    assert not np.array_equal(*follows)


class Clock:
    """A clock that goes on by what is scored alone, each mapping taking as long as the last."""

    def __init__(self, rate):
        self.now, self.rate = 100.0, rate

    def __call__(self):
        return self.now

    def model(self):
        clock = self

        class Counted(DenseModel):
            def score(self, batch, hardware=None, threads=1):
                clock.now += len(batch) / clock.rate
                return super().score(batch, hardware, threads)

        return Counted(OPERATOR, ACCELERATOR)


@pytest.mark.sample(19)
@EVERY
@pytest.mark.parametrize(("rate", "seconds"), [(1000.0, 0.3), (5000.0, 0.1), (2e4, 0.02)])
def test_a_budget_of_seconds_is_kept(mapper, rate, seconds):
    clock = Clock(rate)
    result = run(mapper, budget=Budget(seconds=seconds), watch=Watch(clock=clock), model=clock.model())
    assert result.stopped in ("seconds", "exhausted")
    assert 0 < result.samples and result.seconds == clock.now - 100.0
    # Over by no more than the few mappings that are always asked for.
    assert result.seconds <= 1.1 * seconds + FEWEST / rate
    if mapper not in SLOW and not result.complete:
        assert result.seconds >= seconds


@pytest.mark.parametrize("mapper", ["auto", "gamma"])
@pytest.mark.parametrize("most", [1, 8, 60, 250, 10_000])
def test_no_more_is_bred_than_asked_for_where_time_is_limited(mapper, most):
    space = MapSpace(matmul("large", m=4096, n=4096, k=4096), ACCELERATOR)
    made = MAPPERS.get(mapper)(Task(space, np.random.default_rng(1), seconds=1.0))
    gamma = getattr(made, "gamma", made)
    assert len(gamma.steps) == 2
    bred, bear = [], gamma.bear

    def counted(batch, island, half, span, parents):
        bred.append(span[1] - span[0])
        bear(batch, island, half, span, parents)

    gamma.bear = counted
    assert len(made.ask(most)) == sum(bred) == min(most, 2 * gamma.options.population)


@pytest.mark.parametrize("mapper", [mapper for mapper in MAPPERS if extra_of(mapper)])
def test_a_mapper_whose_extra_is_missing_says_how_to_install_it(mapper, monkeypatch):
    monkeypatch.setattr("tilewright.base.extras.find_spec", lambda name: None)
    with pytest.raises(InputError, match=rf"needs the extra .*{mapper}.*pip install"):
        run(mapper)


@EVERY
def test_unknown_options_are_named(mapper):
    with pytest.raises(InputError, match="option"):
        run(mapper, options={"no such option": 1})


@pytest.mark.sample(19)
@EVERY
@pytest.mark.parametrize("objective", ["latency", "energy", "power", "0.5*latency + 0.5*energy"])
def test_every_objective_is_minimised(mapper, objective):
    result = run(mapper, objective=objective, budget=200)
    assert 0 < result.score < math.inf
    assert result.score <= run(mapper, objective=objective, budget=60).score


@EVERY
def test_a_space_of_one_mapping_is_no_trouble(mapper):
    tiny = matmul("tiny", m=1, n=1, k=1)
    result = search(tiny, ACCELERATOR, mapper=mapper, budget=50, options=SHORTER.get(mapper, {}))
    assert result.mapping is not None
    assert result.samples == (1 if result.complete else 50)


def test_exhaustive_ends_with_the_optimum_and_the_size_of_the_space():
    operator = matmul("cube", m=6, n=4, k=4)
    space = MapSpace(operator, ACCELERATOR, "perfect")
    plain = search(operator, ACCELERATOR, space=space, mapper="exhaustive", budget=10**7, options={"distinct": False})
    distinct = search(operator, ACCELERATOR, space=space, mapper="exhaustive", budget=10**7)
    assert plain.complete and distinct.complete
    assert plain.stopped == "exhausted"
    assert plain.samples == plain.space_size.mappings > distinct.samples
    assert plain.score == distinct.score
    for mapper in INSTALLED:
        found = search(operator, ACCELERATOR, space=space, mapper=mapper, budget=min(500, SAMPLES[mapper]))
        assert found.score >= plain.score * (1 - 1e-12)
