import threading

import numpy as np
import pytest

pytest.importorskip("torch")

from tilewright.base import InputError
from tilewright.learn import (
    Classifier,
    TrainingOptions,
    TrainingWatch,
    calibration_error,
    load_classifier,
    reliability,
    train_classifier,
)

OPTIONS = TrainingOptions(hidden=(16,), epochs=6, batch=64, rate=0.03, held_out=0.1, seed=3)


def rows(count=1200):
    """Return pairs of numbers below 8, and whether the first is larger, equal or smaller."""
    numbers = np.random.default_rng(0).integers(0, 8, (count, 2))
    return numbers, np.sign(numbers[:, 0] - numbers[:, 1]) + 1


def trained(watch=None, tables=(2, 8, 4)):
    numbers, classes = rows()
    return train_classifier(Classifier.fresh(tables, 3, OPTIONS), numbers, classes, OPTIONS, watch)


@pytest.mark.parametrize("tables", [(2, 8, 4), [np.arange(8, dtype=np.float32)[:, None]] * 2])
def test_numbers_are_told_apart_by_learnt_tables_and_by_known_figures(tables):
    found = trained(tables=tables)
    numbers, classes = rows(300)
    told = found.classifier.probabilities(numbers)
    assert (told.argmax(axis=1) == classes).mean() > 0.95
    assert np.allclose(told.sum(axis=1), 1, atol=1e-5)
    assert found.curve[-1].held_out_loss < 0.5 * found.curve[0].held_out_loss
    assert found.calibration_error < 0.1


def test_a_stopped_training_goes_on_to_the_same_network_bit_for_bit(tmp_path):
    whole = trained(TrainingWatch(threads=2)).classifier
    stop, place = threading.Event(), tmp_path / "state"
    trained(TrainingWatch(lambda epoch: stop.set() if epoch.epoch == 2 else None, stop, place, "it"))
    later = trained(TrainingWatch(checkpoint=place, mark="it"))
    assert len(later.curve) == OPTIONS.epochs
    for ours, theirs in zip(whole.parameters, later.classifier.parameters, strict=True):
        assert np.array_equal(ours.numpy(), theirs.numpy())
    assert np.array_equal(whole.reliability, later.classifier.reliability)
    with pytest.raises(InputError, match="same training"):
        trained(TrainingWatch(checkpoint=place, mark="another"))
    place.write_bytes(b"no file of ours")
    with pytest.raises(InputError, match=r"that training wrote; Got .*; Delete it to begin anew"):
        trained(TrainingWatch(checkpoint=place, mark="it"))


def test_a_file_holds_the_same_classifier(tmp_path):
    found = trained().classifier
    found.save(tmp_path / "net.pt", {"of": "tests"})
    read, about = load_classifier(tmp_path / "net.pt", "model", "train")
    assert about == {"of": "tests"}
    one, other = (each.confidence(each.probabilities(rows()[0])) for each in (read, found))
    assert np.array_equal(one, other)
    assert read.size == 2 * 8 * 4 + 8 * 16 + 16 + 16 * 3 + 3
    with pytest.raises(InputError, match="from 0 to 7"):
        read.probabilities(np.array([[8, 0]]))


def test_what_was_held_out_makes_confidence_the_share_of_right_answers():
    rng = np.random.default_rng(1)

    def noisy(count):
        """Labels are random three times in four."""
        numbers, classes = rng.integers(0, 8, (count, 2)), rng.integers(0, 3, count)
        return numbers, np.where(rng.random(count) < 0.75, classes, np.sign(numbers[:, 0] - numbers[:, 1]) + 1)

    options = TrainingOptions(hidden=(64,), epochs=6, batch=64, rate=0.03, held_out=0.5, seed=0)
    found = train_classifier(Classifier.fresh((2, 8, 8), 3, options), *noisy(2000), options)
    numbers, classes = noisy(4000)
    told = found.classifier.probabilities(numbers)
    right = told.argmax(axis=1) == classes
    assert found.calibration_error < 0.08
    assert found.classifier.confidence(told).mean() == pytest.approx(right.mean(), abs=0.04)


def test_the_calibration_error_is_the_mean_distance_over_bins():
    confidence = np.array([0.9, 0.9, 0.5, 0.5], dtype=np.float32)
    assert calibration_error(confidence, np.array([True, True, True, False])) == pytest.approx(0.05, abs=1e-6)
    assert calibration_error(confidence, np.array([False, False, True, False])) == pytest.approx(0.45, abs=1e-6)
    whole = np.array([1.0, 0.9999], dtype=np.float32)  # certainty is in the bin of what is nearly certain
    assert calibration_error(whole, np.array([False, True])) == pytest.approx(0.49995, abs=1e-6)


def test_reliability_is_the_share_of_right_answers_by_confidence_and_never_falls():
    rng = np.random.default_rng(4)
    confidence = rng.random(60_000).astype(np.float32)
    right = rng.random(60_000) < confidence**2
    seen, shares = reliability(confidence, right)
    assert np.abs(shares - (seen**2 + 1 / (12 * 15**2))).max() < 0.03 and (np.diff(shares) >= 0).all()
    assert reliability(confidence[:1], right[:1]).shape == (2, 1)


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="device"):
        TrainingWatch(device="nosuch")
