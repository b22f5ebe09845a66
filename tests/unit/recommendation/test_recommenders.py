"""Networks that learnt which configuration is best: what they tell, what is scored, and what is refused."""

import threading

import numpy as np
import pytest

pytest.importorskip("torch")

from tilewright.api import train_recommender
from tilewright.base import InputError
from tilewright.cost import ReconfigurableArray
from tilewright.recommendation import (
    BASELINES,
    Choices,
    Drawn,
    advise,
    label,
    load_recommender,
    score,
    training_options,
)
from tilewright.recommendation import train_recommender as train

CHOICES = Choices(ReconfigurableArray(2**12), "published")


@pytest.fixture(scope="module")
def known():
    return label(CHOICES, Drawn("uniform", 20_000, 0))


@pytest.fixture(scope="module")
def trained(known):
    return train(CHOICES, known.parts[0], "terms", training_options("terms", 3, 256, 0))


def test_it_beats_the_fixed_class_and_scoring_its_first_guesses_beats_it(known, trained):
    unseen = known.parts[1]
    alone = score("terms", CHOICES, unseen, trained.recommender.advise(unseen.products)[0])
    scored = score("top", CHOICES, unseen, trained.recommender.advise(unseen.products, 8)[0])
    fixed = score("fixed", CHOICES, unseen, np.full(len(unseen.products), np.bincount(known.classes).argmax()))
    assert alone.same_cycles > 4 * fixed.same_cycles and alone.mean_share > 0.99
    assert scored.same_cycles > 0.9 and scored.same_cycles > alone.same_cycles
    assert scored.worst_share >= alone.worst_share
    sure = trained.recommender.advise(unseen.products, 8)[1]
    assert (sure >= trained.recommender.advise(unseen.products)[1] - 1e-6).all() and sure.max() <= 1


def test_a_file_gives_the_same_advice_and_is_refused_for_other_choices(trained, tmp_path):
    trained.recommender.save(tmp_path / "net.pt")
    read = load_recommender(tmp_path / "net.pt", CHOICES)
    products = np.array([[100, 200, 300], [9999, 1, 10_000]])
    assert np.array_equal(read.advise(products)[0], trained.recommender.advise(products)[0])
    for other in (Choices(CHOICES.array, "realisable"), Choices(ReconfigurableArray(2**10), "published")):
        with pytest.raises(InputError, match="same rules"):
            load_recommender(tmp_path / "net.pt", other)
    with pytest.raises(InputError, match="Train one"):
        load_recommender(tmp_path / "nosuch.pt", CHOICES)


def test_sizes_beyond_the_model_are_refused_by_it_and_answered_exactly(trained):
    with pytest.raises(InputError, match="10,000"):
        trained.recommender.advise(np.array([[1, 1, 10_001]]))
    within, beyond = advise(np.array([[50, 60, 70], [50, 60, 10_001]]), CHOICES, trained.recommender, 8)
    assert within.source == "model, top 8 scored" and within.cost_cycles >= within.best_cycles
    assert beyond.source.startswith("exact: ") and beyond.regret == 0 and beyond.confidence == 1


@pytest.mark.parametrize("name", list(BASELINES))
def test_baselines_learn_more_than_nothing_or_remember(name, known):
    if name == "xgboost":
        pytest.importorskip("xgboost")
    if name in ("svc", "neighbours"):
        pytest.importorskip("sklearn")
    few = known.rows(slice(None, 600))
    classify = BASELINES.get(name)(few, 0)
    told = score(name, CHOICES, few, classify(few.products))
    often = np.bincount(few.classes).max() / len(few.classes)
    assert told.same_class > 1.3 * often
    if name == "memory":
        assert told.same_class == 1
        assert len(set(classify(known.parts[1].products).tolist())) == 1


def test_training_that_was_stopped_goes_on_to_the_same_file(tmp_path):
    def run(file, **more):
        return train_recommender("4096", tmp_path / file, samples=2_000, epochs=2, batch=256, **more)

    stop = threading.Event()
    stop.set()
    whole = run("whole.pt")
    assert len(run("half.pt", checkpoint=tmp_path / "state", stop=stop).curve) == 1
    later = run("later.pt", checkpoint=tmp_path / "state")
    assert len(later.curve) == 2 and later.scores == whole.scores
    one, other = (load_recommender(tmp_path / file, Choices(ReconfigurableArray(4096))).classifier
                  for file in ("whole.pt", "later.pt"))
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(one.parameters, other.parameters, strict=True))
    assert whole.plain["live"] <= whole.configurations
    with pytest.raises(InputError, match="same training"):
        run("later.pt", checkpoint=tmp_path / "state", seed=1)
