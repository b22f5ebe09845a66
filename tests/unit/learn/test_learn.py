"""Networks and their training: they learn, are the same anywhere, come back from files, and refuse what is wrong."""

import threading

import numpy as np
import pytest

from tilewright.base import InputError

torch = pytest.importorskip("torch")

from tilewright.learn import (  # noqa: E402
    Regressor,
    TrainingOptions,
    load_regressor,
    rank_correlation,
    save_regressor,
    train,
)

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(4000, 6)).astype(np.float32) * np.array([1, 5, 1, 1, 0.1, 0], dtype=np.float32) + 3
TARGETS = np.stack([np.abs(FEATURES[:, 0]) * 4, FEATURES[:, 1] - 10 * FEATURES[:, 4]], axis=1).astype(np.float32)
SMALL = TrainingOptions((32, 32), epochs=8, batch=1024, rate=1e-2, held_out=0.2, seed=3)


def test_it_learns_what_it_is_shown():
    told = []
    trained = train(FEATURES, TARGETS, SMALL, progress=told.append)
    assert tuple(told) == trained.curve and len(told) == 8
    assert trained.curve[-1].held_out_loss < 0.1 * trained.curve[0].loss
    assert trained.held_out == 800
    assert min(trained.ranks) > 0.95
    found = trained.regressor.predict(FEATURES)
    assert np.sqrt(((found - TARGETS) ** 2).mean(axis=0)) == pytest.approx(trained.errors, rel=0.3)
    assert (np.array(trained.errors) < 0.3 * TARGETS.std(axis=0)).all()


def test_the_same_seed_gives_the_same_network_on_any_number_of_threads_and_another_another():
    first, second = (train(FEATURES, TARGETS, SMALL, threads=threads).regressor.arrays() for threads in (1, 2))
    other = train(FEATURES, TARGETS, TrainingOptions((32, 32), epochs=8, seed=4)).regressor.arrays()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["weight0"], other["weight0"])


def test_training_ends_early_when_told():
    stop = threading.Event()
    stop.set()
    assert len(train(FEATURES, TARGETS, SMALL, stop=stop).curve) == 1


def test_slopes_are_those_of_small_steps():
    regressor = train(FEATURES, TARGETS, SMALL).regressor
    points, weights = FEATURES[:5], np.array([[1.0, 0.0]] * 3 + [[0.5, 2.0]] * 2, dtype=np.float32)
    slopes = regressor.slopes(points, weights)
    for f, deviation in enumerate(regressor.inputs.deviation.numpy()):
        step = np.zeros(6, dtype=np.float32)
        step[f] = deviation * 1e-3
        rise = ((regressor.predict(points + step) - regressor.predict(points - step)) * weights).sum(axis=1) / 2e-3
        assert slopes[:, f] == pytest.approx(rise, abs=0.1 + 0.05 * float(np.abs(slopes).max()))


def test_a_network_comes_back_from_its_file(tmp_path):
    regressor = train(FEATURES, TARGETS, SMALL).regressor
    save_regressor(tmp_path / "new" / "network.pt", regressor, {"machine": "m", "n": [1, 2]})
    again, about = load_regressor(tmp_path / "new" / "network.pt")
    assert about == {"machine": "m", "n": [1, 2]}
    assert isinstance(again, Regressor)
    assert np.array_equal(again.predict(FEATURES), regressor.predict(FEATURES))


def test_files_that_are_none_of_ours_are_refused_and_run_nothing(tmp_path):
    with pytest.raises(InputError, match="train-surrogate"):
        load_regressor(tmp_path / "missing.pt")
    (tmp_path / "text.pt").write_text("no network")
    torch.save({"kind": "other"}, tmp_path / "other.pt")

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    torch.save({"kind": Evil()}, tmp_path / "evil.pt")
    for name in ("text", "other", "evil"):
        with pytest.raises(InputError, match=r"that train-surrogate wrote; Got .*; Train one: tilewright"):
            load_regressor(tmp_path / f"{name}.pt")
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("wrong", [{"hidden": ()}, {"epochs": 0}, {"batch": 0}, {"held_out": 1.0}, {"rate": 0.0}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        TrainingOptions(**wrong)


def test_data_that_cannot_be_learnt_from_are_refused():
    with pytest.raises(InputError, match="at least 2"):
        train(FEATURES[:1], TARGETS[:1], SMALL)
    with pytest.raises(InputError, match="finite"):
        train(np.full((9, 2), np.nan, dtype=np.float32), TARGETS[:9], SMALL)


def test_rank_correlation_is_that_of_the_order():
    assert rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([3.0, 5.0, 6.0])) == pytest.approx(1)
    assert rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([3.0, 2.0, 1.0])) == pytest.approx(-1)
    assert rank_correlation(np.ones(4), np.arange(4.0)) == 0
