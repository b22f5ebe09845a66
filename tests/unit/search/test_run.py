"""The search loop: budgets, seeds, checkpoints, progress, interruption."""

import math
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.mapping import Constraints, MapSpace
from tilewright.search import Budget, Progress, Watch, search
from tilewright.search.checkpoint import load_checkpoint, pack_generator, save_checkpoint, unpack_generator
from tilewright.search.run import generator
from tilewright.workload import matmul

OPERATOR = matmul("small", m=24, n=18, k=20)
ACCELERATOR = preset("eyeriss")


@pytest.mark.parametrize(("text", "budget"), [
    ("10000", Budget(10_000)), (500, Budget(500)), ("1e6", Budget(1_000_000)), ("10s", Budget(seconds=10.0)),
    ("250ms", Budget(seconds=0.25)), ("5min", Budget(seconds=300.0)), ("1.5h", Budget(seconds=5400.0)),
    ("2000, 3s", Budget(2000, 3.0)),
])
def test_budgets_are_read(text, budget):
    assert Budget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "soon", "-5", "0", "10 parsecs", "1.2.3", "0s", "inf", "10,500", "1s,2s", "1.5"])
def test_wrong_budgets_are_named(text):
    with pytest.raises(InputError, match="budget"):
        Budget.parse(text)


def test_progress_comes_with_rate_and_time_left():
    seen = []

    class Watcher:
        def update(self, progress):
            seen.append(progress)

    result = search(OPERATOR, ACCELERATOR, mapper="random", budget=200_000, progress=Watcher())
    assert seen[-1].samples == result.samples == seen[-1].total_samples
    assert seen[-1].eta_seconds == 0
    assert seen[-1].fraction == 1
    assert seen[-1].best == pytest.approx(result.score)
    assert [p.samples for p in seen] == sorted(p.samples for p in seen)
    half = Progress("x", 50, 10, 2.0, None, 100, 2.0)
    assert half.fraction == 0.5


def test_every_improvement_is_kept_also_within_a_batch():
    found = search(OPERATOR, ACCELERATOR, mapper="random", budget=3000, seed=3)
    scored = []

    class Model(DenseModel):
        def score(self, batch, hardware=None, threads=1):
            costs = super().score(batch, hardware, threads)
            scored.append(np.where(costs.legal, costs.latency_cycles * costs.energy_pj, math.inf))
            return costs

    again = search(OPERATOR, ACCELERATOR, mapper="random", budget=3000, seed=3, model=Model(OPERATOR, ACCELERATOR))
    every = np.concatenate(scored)
    best = np.minimum.accumulate(every)
    places = np.flatnonzero(every < np.concatenate([[math.inf], best[:-1]]))
    assert [step.samples for step in again.history] == [step.samples for step in found.history] == (places + 1).tolist()
    assert [step.score for step in again.history] == pytest.approx(every[places].tolist())
    assert len(places) > 3


def test_a_recorder_is_given_the_result():
    kept = []
    result = search(OPERATOR, ACCELERATOR, budget=300, watch=Watch(recorder=kept.append))
    assert kept == [result]


def test_the_first_interrupt_keeps_what_was_found():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background may ignore it
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    search(OPERATOR, ACCELERATOR, mapper="random", budget=10)
    timer.start()
    result = search(OPERATOR, ACCELERATOR, mapper="random", budget=10**9)
    timer.join()
    assert result.stopped == "interrupted"
    assert result.mapping is not None
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_constraints_that_nothing_meets_give_the_least_bad_mapping():
    best = search(OPERATOR, ACCELERATOR, objective="latency", budget=3000)
    bound = best.score * 0.9
    result = search(OPERATOR, ACCELERATOR, objective="energy", constraints=[f"latency<={bound}"], budget=3000)
    assert not result.feasible
    assert result.history == ()
    assert result.cost.latency_cycles <= 1.05 * best.score
    met = search(OPERATOR, ACCELERATOR, objective="energy", constraints=[f"latency<={best.score * 1.2}"], budget=3000)
    assert met.feasible
    assert met.cost.latency_cycles <= best.score * 1.2


def test_nothing_that_fits_gives_no_mapping():
    levels = list(ACCELERATOR.levels)
    levels[-1] = replace(levels[-1], partitions_bytes=(("inputs", 1.0), ("weights", 1.0), ("outputs", 1.0)))
    result = search(OPERATOR, replace(ACCELERATOR, levels=tuple(levels)), budget=500)
    assert result.mapping is None
    assert result.cost is None
    assert result.score == math.inf
    assert (result.legal_samples, result.feasible, result.samples) == (0, False, 500)


def test_a_damaged_checkpoint_and_one_of_another_search_are_refused(tmp_path):
    file = tmp_path / "a" / "b.npz"
    search(OPERATOR, ACCELERATOR, budget=300, checkpoint=file)
    with pytest.raises(InputError, match=r"seed.*differ"):
        search(OPERATOR, ACCELERATOR, budget=300, checkpoint=file, seed=1)
    with pytest.raises(InputError, match="operator"):
        search(matmul("small", m=24, n=18, k=21), ACCELERATOR, budget=300, checkpoint=file)
    for damage in (b"", b"not a checkpoint", file.read_bytes()[:200]):
        file.write_bytes(damage)
        with pytest.raises(InputError, match="checkpoint"):
            search(OPERATOR, ACCELERATOR, budget=300, checkpoint=file)


def test_checkpoints_are_replaced_as_a_whole(tmp_path, monkeypatch):
    file = tmp_path / "state.npz"
    save_checkpoint(file, {"a": "1"}, {"x": np.arange(3)})

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save_checkpoint(file, {"a": "1"}, {"x": np.arange(9)})
    assert list(load_checkpoint(file, {"a": "1"})["x"]) == [0, 1, 2]


def test_generators_are_packed_whole():
    rng = generator((7, 3))
    rng.integers(0, 9, 5, dtype=np.int32)
    words = pack_generator(rng)
    other = generator(0)
    unpack_generator(other, words)
    assert np.array_equal(rng.random(10), other.random(10))
    assert not np.array_equal(generator((7, 3)).random(3), generator((7, 4)).random(3))


def test_unknown_mappers_and_values_out_of_range_are_named():
    with pytest.raises(InputError, match="Did you mean gamma"):
        search(OPERATOR, ACCELERATOR, mapper="gama")
    for options in ({"population": 0}, {"crossover": 1.5}, {"tile": -0.1}, {"chain": 1.0}, {"population": "many"},
                    {"repair": 1}):
        with pytest.raises(InputError, match=next(iter(options))):
            search(OPERATOR, ACCELERATOR, mapper="gamma", options=options)


def test_a_restricted_space_is_kept_to():
    space = MapSpace(OPERATOR, ACCELERATOR, "perfect", Constraints(loops={"PEs.X": ("M",), "PEs.Y": ("N",)}))
    result = search(OPERATOR, ACCELERATOR, space=space, budget=1000)
    assert {(loop.dimension, loop.axis) for loop in result.mapping.at("PEs").loops} <= {("M", "X"), ("N", "Y")}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(("mapper", "name"), [
    ("annealing", "hot"), ("annealing", "changes"), ("one-plus-lambda", "step"), ("gamma", "crossover")])
def test_options_that_are_no_finite_numbers_are_refused(mapper, name, value):
    with pytest.raises(InputError) as error:
        search(matmul("m", m=4, n=4, k=4), preset("eyeriss"), mapper=mapper, budget=10, options={name: value})
    assert error.value.field == f"options.{name}" and "finite" in error.value.rule
