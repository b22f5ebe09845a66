"""Mind Mappings: what its network is shown, how it generalises, and what the mapper does with it."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.api import train_surrogate
from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import search
from tilewright.workload import convolution, matmul

torch = pytest.importorskip("torch")

from tilewright.search.points import fitted, to_points  # noqa: E402
from tilewright.search.surrogate import Family, Surrogate, draw_samples, random_convolutions, targets_of  # noqa: E402

CONV = convolution("c", in_channels=64, out_channels=128, in_size=(28, 28), kernel=3, padding=1)
MACHINE = preset("accel-a")
SPACE = MapSpace(CONV, MACHINE)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_surrogate(MACHINE, tmp_path_factory.mktemp("s") / "a.pt", samples=20_000, layers=40,
                           hidden=(128, 64), epochs=8, test_archs=["accel-b"], threads=1)


def test_a_network_tells_costs_of_layers_it_has_not_seen_but_not_of_other_machines(trained):
    own, other = trained.tests
    assert (own.machine, other.machine) == ("accel-a", "accel-b")
    assert own.mappings > 8_000
    assert own.layer_rank > 0.75 and own.latency_rank > 0.75
    assert other.layer_rank < own.layer_rank
    assert other.energy_error > 2 * own.energy_error
    assert trained.held_out["latency"][1] > 0.8
    assert [step.epoch for step in trained.curve] == list(range(1, 9))


def test_a_trained_network_is_used_from_the_first_sample_on(trained):
    options = {"surrogate": str(trained.file)}
    found = search(CONV, MACHINE, mapper="mind-mappings", budget=400, options=options)
    again = search(CONV, MACHINE, mapper="mind-mappings", budget=400, options=options)
    assert found.score == again.score and found.samples == 400
    drawn = search(CONV, MACHINE, mapper="random", budget=400)
    assert found.score < drawn.score
    assert search(CONV, preset("accel-b"), mapper="mind-mappings", budget=50, options=options).samples == 50


def test_what_it_is_shown_tells_one_mapping_from_another():
    batch = fitted(SPACE.sample(np.random.default_rng(0), 50, 0.5), SPACE)
    family = Family.of(SPACE)
    points = to_points(batch, SPACE)
    features = family.features(points, SPACE)
    assert len(np.unique(features, axis=0)) == 50
    assert features[:, :7] == pytest.approx(np.log2(np.tile([1, 128, 64, 28, 28, 3, 3], (50, 1))))
    first = 7 + 2 * len(family.windows)
    shown = features[:, first:first + points[0][0].size].reshape(50, -1, 7)
    assert shown.sum(1) == pytest.approx(features[:, :7], abs=1e-5)


@pytest.mark.parametrize("machine", ["accel-a", "accel-b"])
@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
def test_mappings_are_encoded_as_their_points_are(machine, tiling):
    space = MapSpace(CONV, preset(machine), tiling)
    batch = space.fitting(np.random.default_rng(0), 130, 0.5)
    family = Family.of(SPACE)
    encoded = np.empty((len(batch), family.width), dtype=np.float32)
    family.encode(batch, space, encoded)
    assert encoded == pytest.approx(family.features(to_points(batch, space), space), abs=1e-5)


def test_samples_do_not_depend_on_the_threads():
    operators = random_convolutions(4, np.random.default_rng(2))
    one, two = (draw_samples(operators, MACHINE, 1000, np.random.default_rng(0), threads=threads) for threads in (1, 2))
    assert (one.features == two.features).all() and (one.targets == two.targets).all()


def test_a_layer_of_which_nothing_fits_is_refused():
    tiny = replace(MACHINE, levels=tuple(
        replace(level, capacity_bytes=3) if level.name == "Private" else level for level in MACHINE.levels))
    with pytest.raises(InputError, match="must have mappings that fit"):
        draw_samples([CONV], tiny, 10, np.random.default_rng(0))


def test_steps_of_features_are_steps_of_points():
    family = Family.of(SPACE)
    points = to_points(fitted(SPACE.sample(np.random.default_rng(0), 4, 0.5), SPACE), SPACE)
    features = family.features(points, SPACE)
    slopes = np.random.default_rng(1).normal(size=features.shape).astype(np.float32)
    logs, orders = family.back(slopes, SPACE, np.ones(features.shape[1], dtype=np.float32))
    moved = family.features((points[0] + 1e-2 * logs, points[1] + 1e-2 * orders), SPACE)
    first = 7 + 2 * len(family.windows)
    assert moved[:, first:] - features[:, first:] == pytest.approx(1e-2 * slopes[:, first:], abs=1e-5)


def test_places_that_it_does_not_know_are_counted_outside():
    other = MapSpace(CONV, preset("accel-b"))
    family = Family.of(SPACE)
    points = to_points(fitted(other.sample(np.random.default_rng(0), 20, 0.5), other), other)
    features = family.features(points, other)
    first = 7 + 2 * len(family.windows)
    shown = features[:, first:first + len(family.places) * 7].reshape(20, -1, 7)
    assert shown.sum(1) == pytest.approx(features[:, :7], abs=1e-5)
    logs, orders = family.back(np.ones_like(features), other, np.ones(features.shape[1], dtype=np.float32))
    assert logs.shape == points[0].shape and orders.shape == points[1].shape
    assert (logs[:, other.layout.places.index("ALUs.X")] == 0).all()


def test_layers_of_another_kind_are_refused(trained):
    with pytest.raises(InputError, match="trained on layers of dimensions"):
        search(matmul("m", m=8, n=8, k=8), MACHINE, mapper="mind-mappings", budget=10,
               options={"surrogate": str(trained.file)})
    with pytest.raises(InputError, match="dimensions"):
        draw_samples([CONV, matmul("m", m=8, n=8, k=8)], MACHINE, 100, np.random.default_rng(0))


def test_samples_are_legal_and_as_many_of_each_layer():
    operators = random_convolutions(3, np.random.default_rng(2))
    samples = draw_samples(operators, MACHINE, 100, np.random.default_rng(0))
    assert samples.features.shape[0] == samples.targets.shape[0] == 100
    sizes = np.log2([list(operator.sizes.values()) for operator in operators])
    counts = [(np.abs(samples.features[:, :7] - row).max(1) < 1e-4).sum() for row in sizes]
    assert sorted(counts) == [33, 33, 34]
    assert (samples.targets[:, 1] >= 0).all()


def test_a_file_comes_back_with_its_family(trained):
    again = Surrogate.load(trained.file)
    assert again.family == Family.of(SPACE)
    targets, legal = targets_of(SPACE, fitted(SPACE.sample(np.random.default_rng(9), 64, 0.5), SPACE))
    assert legal.all() and targets.shape == (64, 2)


@pytest.mark.parametrize("options", [{"learnt": 1.0}, {"rate": 0.0}, {"walkers": 0}, {"surrogate": "missing.pt"}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        search(CONV, MACHINE, mapper="mind-mappings", budget=10, options=options)
