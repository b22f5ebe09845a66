"""Amounts that are sums of products of terms are learnt to the last unit; others as well as can be, and not trusted."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from tilewright.base import InputError
from tilewright.learn import TrainingOptions, TrainingWatch, load_classifier, train_terms
from tilewright.learn.epochs import Epoch, run_epochs
from tilewright.learn.terms import TermNetwork

OPTIONS = TrainingOptions(hidden=(1,), epochs=8, held_out=0.5, seed=1)
SIZES = np.arange(1, 201)
FIGURES = np.stack([SIZES / 10, np.ones(200), -SIZES % 4 / 4, -SIZES % 16 / 16], axis=1)


def rows(count=800, seed=0):
    """Return rows of numbers, and what two classes amount to: folds times what streams, and what fills each fold."""
    numbers = np.random.default_rng(seed).integers(0, 200, (count, 3))
    m, n, k = (numbers + 1).T
    return numbers, np.stack([-(-m // 4) * (-(-n // 16) * (k + 6) + n), -(-k // 16) * (-(-m // 4) * (n + 2) + m)],
                             axis=1).astype(np.float64)


def noisy(count=800, seed=0):
    """Return the same with amounts that are no sums of products of terms."""
    (numbers, amounts), rng = rows(count, seed), np.random.default_rng(100 + seed)
    return numbers, np.maximum(1, np.rint(amounts * np.exp(rng.normal(0, 0.7, amounts.shape))))


def test_amounts_of_rows_unseen_are_told_to_the_last_unit():
    found, (numbers, amounts) = train_terms(FIGURES, *rows(), OPTIONS), rows(2_000, 7)
    told = found.classifier.probabilities(numbers)
    assert np.array_equal(told.argmax(axis=1), amounts.argmin(axis=1))
    assert set(np.unique(amounts.argmin(axis=1))) == {0, 1}
    assert (found.classifier.confidence(told) == 1).all() and found.calibration_error == 0
    ratio = amounts[:, 1] / amounts[:, 0]
    near = np.abs(ratio - 1) < 0.02
    assert near.any() and np.allclose(told[near, 0] / told[near, 1], ratio[near] ** (2_000 / np.log(2)), rtol=1e-3)


def test_what_is_no_such_sum_is_not_trusted():
    found, (fresh, amounts) = train_terms(FIGURES, *noisy(2_000), replace(OPTIONS, epochs=1)), noisy(2_000, 5)
    told = found.classifier.probabilities(fresh)
    right = told.argmax(axis=1) == amounts.argmin(axis=1)
    assert right.mean() < 0.65 and found.classifier.confidence(told).mean() < 0.75
    assert 0 < found.calibration_error < 0.2


def test_a_stopped_training_goes_on_to_the_same_network_and_a_file_holds_it(tmp_path):
    stop, place = threading.Event(), tmp_path / "state"
    stop.set()
    options = replace(OPTIONS, epochs=3)
    whole = train_terms(FIGURES, *noisy(), options)
    first = train_terms(FIGURES, *noisy(), options, TrainingWatch(None, stop, place, "it"))
    later = train_terms(FIGURES, *noisy(), options, TrainingWatch(checkpoint=place, mark="it"))
    assert len(first.curve) == 1 and len(whole.curve) == len(later.curve) == 3
    losses = [one.loss for one in whole.curve]
    assert losses == sorted(losses, reverse=True) and losses[2] < losses[0]
    later.classifier.save(tmp_path / "net.pt", {"of": "tests"})
    read, about = load_classifier(tmp_path / "net.pt", "model", "train")
    assert about == {"of": "tests"} and read.size == whole.classifier.size
    for ours, theirs in zip(whole.classifier.parameters, read.parameters, strict=True):
        assert np.array_equal(ours.numpy(), theirs.numpy())
    assert np.array_equal(whole.classifier.reliability, read.reliability)
    with pytest.raises(InputError, match="same training"):
        train_terms(FIGURES, *noisy(), options, TrainingWatch(checkpoint=place, mark="another"))
    with pytest.raises(InputError, match="from 0 to 199"):
        read.probabilities(np.array([[200, 0, 0]]))


def test_what_amounts_to_nothing_is_told_last():
    figures, core = torch.ones((1, 1), dtype=torch.float64), torch.zeros((2, 2, 2, 2), dtype=torch.float64)
    core[1] = 0.125
    network = TermNetwork(figures, torch.ones((2, 3, 2, 1), dtype=torch.float64), core)
    assert network.probabilities(np.zeros((1, 3), dtype=np.int64)).tolist() == [[0.0, 1.0]]


def test_the_seconds_of_a_training_that_goes_on_count_from_its_first_leg():
    began = []
    run = SimpleNamespace(curve=[Epoch(1, 1.0, 1.0, 100.0)], ended=False, epoch=lambda at: (
        began.append(at), run.curve.append(Epoch(2, 1.0, 1.0, 101.0))))
    run_epochs(run, 2, TrainingWatch())
    assert len(began) == 1 and time.perf_counter() - began[0] >= 100.0
