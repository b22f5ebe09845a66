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
    Fallback,
    ProductSample,
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
    return label(CHOICES, ProductSample("uniform", 20_000, 0))


@pytest.fixture(scope="module")
def trained(known):
    return train(CHOICES, known.parts[0], "mlp-a", training_options("mlp-a", 8, 128, 0))


def test_it_beats_the_fixed_class_and_scoring_its_first_guesses_beats_it(known, trained):
    unseen = known.parts[1]
    alone, scored = (trained.recommender.judged(unseen, fallback) for fallback in (None, Fallback(8, np.inf)))
    fixed = score("fixed", CHOICES, unseen, np.full(len(unseen.products), np.bincount(known.classes).argmax()))
    assert alone.same_cycles > fixed.same_cycles and alone.mean_share > 0.98 > fixed.mean_share
    assert scored.same_cycles > 0.6 > 3 * alone.same_cycles
    assert scored.worst_share >= alone.worst_share and scored.searched == alone.searched == 0
    assert (alone.adviser, scored.adviser) == ("mlp-a", "mlp-a, top 8 scored") and scored.microseconds > 0
    sure = trained.recommender.advise(unseen.products, Fallback(8, np.inf)).sure
    assert (sure >= trained.recommender.advise(unseen.products).sure - 1e-6).all() and sure.max() <= 1


@pytest.mark.parametrize("within", [0.0, 0.002, 0.5])
def test_advice_with_a_fallback_is_never_worse_than_asked_and_searches_where_guesses_are_poor(known, trained, within):
    unseen = known.parts[1]
    told = trained.recommender.advise(unseen.products, Fallback(2, within))
    regret = CHOICES.cycles(unseen.products, told.classes[:, None])[:, 0] / unseen.cycles - 1
    guesses = trained.recommender.advise(unseen.products, Fallback(2, np.inf))
    poor = CHOICES.cycles(unseen.products, guesses.classes[:, None])[:, 0] > unseen.cycles * (1 + within)
    assert regret.max() <= within and poor.any() == (within < 0.3) and not poor.all()
    assert np.array_equal(told.searched, poor) and (regret[poor] == 0).all()
    assert (told.sure[regret == 0] == 1).all() and (told.sure[regret > 0] < 1).all()


def test_terms_are_learnt_to_the_last_cycle():
    """Every product unseen is told a best configuration, sizes that were not shown included, and surely."""
    choices = Choices(ReconfigurableArray(2**9), "published")
    shown, unseen = (label(choices, ProductSample(sampler, 2_000, 0)) for sampler in ("log-uniform", "uniform"))
    done = train(choices, shown, "terms", training_options("terms", 20, 1, 0))
    told = done.recommender.advise(unseen.products)
    among = choices.all_cycles(unseen.products, shown.live.tolist()).min(axis=1)
    assert np.array_equal(choices.cycles(unseen.products, told.classes[:, None])[:, 0], among)
    assert (told.sure == 1).all() and done.calibration_error == 0 and len(np.unique(told.classes)) > 5


def test_a_file_gives_the_same_advice_and_is_refused_for_other_choices(trained, tmp_path):
    trained.recommender.save(tmp_path / "net.pt")
    read = load_recommender(tmp_path / "net.pt", CHOICES)
    products = np.array([[100, 200, 300], [9999, 1, 10_000]])
    assert np.array_equal(read.advise(products).classes, trained.recommender.advise(products).classes)
    for other in (Choices(CHOICES.array, "realisable"), Choices(ReconfigurableArray(2**10), "published")):
        with pytest.raises(InputError, match="same rules"):
            load_recommender(tmp_path / "net.pt", other)
    with pytest.raises(InputError, match="must be latency"):
        load_recommender(tmp_path / "net.pt", Choices(CHOICES.array, CHOICES.space, objective="edp"))
    with pytest.raises(InputError, match="Train one"):
        load_recommender(tmp_path / "nosuch.pt", CHOICES)


def test_sizes_beyond_the_model_are_refused_by_it_and_answered_exactly(trained):
    with pytest.raises(InputError, match="10,000"):
        trained.recommender.advise(np.array([[1, 1, 10_001]]))
    products = np.array([[50, 60, 70], [50, 60, 10_001]])
    within, beyond = advise(products, CHOICES, trained.recommender, Fallback(8, np.inf))
    assert within.source == "model, top 8 scored" and within.cost >= within.best_cost
    assert beyond.source.startswith("exact: ") and beyond.regret == 0 and beyond.confidence == 1
    alone, _ = advise(np.array([[50, 60, 70], [50, 60, 71]]), CHOICES, trained.recommender)
    assert alone.source == "model"
    products = np.random.default_rng(5).integers(1, 10_001, (100, 3))
    told = advise(products, CHOICES, trained.recommender, Fallback(1, 0.0))
    assert {each.source for each in told} == {"exact: the model's top 1 may be poor", "model, top 1 scored"}
    assert all(each.regret == 0 for each in told)


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
        return train_recommender("4096", tmp_path / file, samples=2_000, network="adaptnet", epochs=2, batch=256,
                                 **more)

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
