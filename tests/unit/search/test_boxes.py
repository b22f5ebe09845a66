"""Optimisers of vectors: what they learn, and what is said where their libraries are missing."""

import sys

import numpy as np
import pytest

from tilewright.base import InputError, extras
from tilewright.cli import main
from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import MAPPERS, BlackBox, Problem, Task, search
from tilewright.search.boxes import losses_of
from tilewright.search.objective import BREAKS_CONSTRAINT, ILLEGAL
from tilewright.workload import matmul

BOXES = [name for name in MAPPERS if isinstance(MAPPERS.get(name), BlackBox)]
OPERATOR = matmul("small", m=24, n=18, k=20)
ACCELERATOR = preset("eyeriss")
CENTRE = 0.37


def distances(points):
    return np.sqrt(((points - CENTRE) ** 2).sum(axis=1))


def optimise(name, options=None, samples=800, seed=3):
    """Return the least distance from one point that an optimiser comes to in nine dimensions."""
    box = MAPPERS.get(name)
    made, best, asked = box.build(box.options_type(**(options or {})), Problem(9, seed, samples)), np.inf, 0
    while asked < samples:
        points = made.ask()
        assert points.ndim == 2 and points.shape[1] == 9 and len(points)
        assert ((points >= 0.0) & (points <= 1.0)).all()
        made.tell(np.log(distances(points)))
        asked += len(points)
        best = min(best, float(distances(points).min()))
    return best


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", BOXES)
def test_optimisers_come_much_nearer_than_chance(name):
    chance = distances(np.random.default_rng(0).random((500, 9))).min()
    # With its published momentum the swarm flies apart.
    options = {"momentum": 0.72} if name == "pso" else None
    assert optimise(name, options, samples=500) < 0.8 * chance


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", BOXES)
def test_seeds_differ_and_the_same_seed_repeats(name):
    assert optimise(name, samples=150, seed=1) == optimise(name, samples=150, seed=1)
    assert optimise(name, samples=150, seed=1) != optimise(name, samples=150, seed=2)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", BOXES)
def test_losses_that_say_nothing_do_no_harm(name):
    box = MAPPERS.get(name)
    rng = np.random.default_rng(1)
    for dimension, losses in ((2, np.zeros), (7, np.zeros), (7, lambda count: rng.choice([1.0, 460.0], size=count))):
        made, asked = box.build(box.options_type(), Problem(dimension, 1, 400)), 0
        while asked < (150 if name == "bayes" else 400):
            points = made.ask()
            assert len(points) and np.isfinite(points).all()
            made.tell(losses(len(points)))
            asked += len(points)


def test_a_genetic_algorithm_that_can_breed_nothing_new_starts_afresh():
    box = MAPPERS.get("ga")
    made = box.build(box.options_type(population=4, mutation=0.0, crossover=0.0), Problem(3, 1))
    points = []
    for _ in range(4):
        points.append(made.ask())
        made.tell(np.arange(4.0))
    assert len(np.unique(np.concatenate(points), axis=0)) == 16


def test_losses_are_finite_and_keep_the_order_of_scores():
    scores = np.array([1e-3, 5.0, 1e17, BREAKS_CONSTRAINT, BREAKS_CONSTRAINT * 1e40, ILLEGAL, ILLEGAL * 1.5, 1e290])
    losses = losses_of(scores)
    assert np.isfinite(losses).all()
    assert (np.diff(losses) > 0).all()
    assert np.isfinite(losses_of(np.zeros(1))).all()


def test_the_model_of_bayes_stays_small():
    box = MAPPERS.get("bayes")
    made = box.build(box.options_type(window=40, first=30, population=10, candidates=50), Problem(5, 1))
    rng = np.random.default_rng(0)
    best = np.inf
    for _ in range(20):
        losses = rng.random(len(made.ask()))
        best = min(best, losses.min())
        made.tell(losses)
        assert len(made.points) <= 40
        assert made.losses.min() == best


@pytest.mark.parametrize("name", [name for name in BOXES if MAPPERS.get(name).extra])
def test_a_missing_library_is_named_with_the_command_that_mends_it(name, monkeypatch, capsys):
    monkeypatch.setattr(extras, "find_spec", lambda library: None)
    with pytest.raises(InputError, match=r"pip install 'tilewright\[optimizers\]'") as error:
        search(OPERATOR, ACCELERATOR, mapper=name, budget=10)
    assert (error.value.field, error.value.given) == ("mapper", name)
    assert MAPPERS.get(name).extra in error.value.rule
    monkeypatch.setattr(sys, "argv", ["tilewright", "map", "matmul:M=4,N=4,K=4", "--arch", "eyeriss", "--mapper", name])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "pip install" in capsys.readouterr().err.replace("\n", " ")


def test_lists_do_not_need_the_libraries(monkeypatch, capsys):
    monkeypatch.setattr(extras, "find_spec", lambda library: None)
    for words in (["list", "mappers"], ["list", "mappers", "cma-es"]):
        monkeypatch.setattr(sys, "argv", ["tilewright", *words])
        with pytest.raises(SystemExit) as end:
            main()
            sys.exit(0)
        assert not end.value.code
        assert "optimizers" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "options"), [
    ("ga", {"population": 1}), ("ga", {"mutation": 1.5}), ("de", {"population": 0}), ("cma-es", {"population": 1}),
    ("cma-es", {"step": 0.0}), ("annealing", {"chains": 0}), ("annealing", {"cold": 0.0}), ("bayes", {"window": 1}),
    ("de", {"crossover": 1.5}),
    ("bayes", {"population": 900}), ("one-plus-lambda", {"children": 0}), ("one-plus-lambda", {"step": -1.0}),
])
def test_options_out_of_range_are_named(name, options):
    with pytest.raises(InputError, match=r"options\.\w+"):
        search(OPERATOR, ACCELERATOR, mapper=name, options=options, budget=10)


def test_a_state_is_that_of_any_mapper_of_the_same_problem():
    space = MapSpace(OPERATOR, ACCELERATOR)
    first, second = (MAPPERS.get("annealing")(Task(space, np.random.default_rng(seed), 500)) for seed in (1, 2))
    rng = np.random.default_rng(5)
    for most in (4, 3, 30, 1):
        batch = first.ask(most)
        first.tell(batch, rng.random(len(batch)) + 1.0)
    second.restore(first.state())
    assert np.array_equal(first.ask(50).steps, second.ask(50).steps)


def test_linear_algebra_keeps_to_one_thread_until_the_last_has_left():
    pytest.importorskip("threadpoolctl")
    from tilewright.search import blas

    def threads():
        return [entry["num_threads"] for entry in blas._controller().info() if entry["user_api"] == "blas"]

    with blas.single_thread():
        pass
    before = threads()
    first, second = blas.single_thread(), blas.single_thread()
    first.__enter__()
    second.__enter__()
    assert set(threads()) == {1}
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before
