"""The smooth form of the cost model: exact where it claims to be, close elsewhere, and differentiable."""

import numpy as np
import pytest

from random_variants import forwarding
from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import Objective, Scorer
from tilewright.workload import convolution, matmul

torch = pytest.importorskip("torch")

from tilewright.search.points import (  # noqa: E402
    fitted,
    onto_simplex,
    to_mappings,
    to_points,
    whole_chains,
)
from tilewright.search.relaxed import HARD, RelaxedModel, Softness  # noqa: E402

MATMUL = matmul("m", m=48, n=64, k=96)
CONV = convolution("c", in_channels=64, out_channels=64, in_size=(56, 56), kernel=3, padding=1)


def drawn(operator, machine, tiling="perfect", count=300):
    space = MapSpace(operator, preset(machine) if isinstance(machine, str) else machine, tiling)
    rng = np.random.default_rng(0)
    return space, fitted(space.sample(rng, count, 0.5), space)


def tensors(space, batch):
    return [torch.from_numpy(part) for part in to_points(batch, space)]


@pytest.mark.parametrize("machine", ["eyeriss", "accel-a", "accel-b", "edge-s3", "simba-like", "tpu-like",
                                     pytest.param(forwarding(preset("eyeriss")), id="forwards words")])
def test_sharp_and_without_sliding_windows_it_is_the_model(machine):
    space, batch = drawn(MATMUL, machine)
    costs = DenseModel(MATMUL, space.accelerator, space.layout).score(batch)
    found = RelaxedModel(space).estimate(*tensors(space, batch), HARD)
    assert torch.exp(found.log_energy).numpy() == pytest.approx(costs.energy_pj, rel=2e-4)  # leakage goes by the cycles
    ratio = torch.exp(found.log_cycles).numpy() / costs.latency_cycles
    assert np.median(ratio) == pytest.approx(1, abs=0.003)  # cycles are rounded up
    assert ratio.min() > 0.85 and ratio.max() < 1.1
    assert np.array_equal(found.excess.numpy() < 1e-9, costs.legal)


@pytest.mark.parametrize("machine", ["eyeriss", "accel-a", "edge-s3"])
def test_sliding_windows_are_close(machine):
    space, batch = drawn(CONV, machine)
    costs = DenseModel(CONV, space.accelerator, space.layout).score(batch)
    found = RelaxedModel(space).estimate(*tensors(space, batch), HARD)
    ratio = torch.exp(found.log_energy).numpy() / costs.energy_pj
    assert np.median(ratio) == pytest.approx(1, abs=1e-3)
    assert np.quantile(ratio, 0.1) > 0.95


def test_soft_it_ranks_mappings_as_the_model_does():
    space, batch = drawn(CONV, "eyeriss", "imperfect", 1000)
    costs = DenseModel(CONV, space.accelerator, space.layout).score(batch)
    found = RelaxedModel(space).estimate(*tensors(space, batch), Softness())
    places = [np.argsort(np.argsort(values)) for values in (
        (found.log_energy + found.log_cycles).numpy(), costs.energy_pj * costs.latency_cycles)]
    assert np.corrcoef(*places)[0, 1] > 0.8


def test_what_does_not_fit_is_told_by_how_far():
    space = MapSpace(MATMUL, preset("eyeriss"), "perfect")
    batch = space.sample(np.random.default_rng(1), 500)
    costs = DenseModel(MATMUL, space.accelerator, space.layout).score(batch)
    found = RelaxedModel(space).estimate(*tensors(space, batch), HARD)
    assert not costs.legal.all()
    assert np.array_equal(found.excess.numpy() > 1e-9, ~costs.legal)


@pytest.mark.parametrize("objective", ["edp", "latency", "energy", "power", "0.5*latency + 0.5*energy"])
def test_slopes_are_those_of_small_steps(objective):
    space, batch = drawn(CONV, "accel-b", count=2)
    model, scorer = RelaxedModel(space), Scorer(Objective.parse(objective, ["latency<=1e5"]), CONV, space.accelerator)
    logs, orders = tensors(space, batch)
    rng = np.random.default_rng(3)  # away from the corners, where slopes jump
    logs = torch.from_numpy(onto_simplex(logs.numpy() + rng.uniform(0.1, 0.4, logs.shape), space.arrays.free > 0,
                                         np.log(space.arrays.sizes)))
    orders = orders + torch.from_numpy(rng.uniform(0, 0.05, orders.shape))
    assert torch.autograd.gradcheck(
        lambda a, b: model.scores(scorer, model.estimate(a, b, Softness()), 2.0),
        (logs.requires_grad_(), orders.requires_grad_()), eps=1e-7, atol=1e-4, rtol=1e-3, fast_mode=True)


def test_points_of_mappings_come_back_as_the_same_mappings():
    space, batch = drawn(CONV, "eyeriss", "imperfect")
    again = to_mappings(to_points(batch, space), space)
    model = DenseModel(CONV, space.accelerator, space.layout)
    assert np.array_equal(again.steps, batch.steps)
    assert np.array_equal(model.score(again).energy_pj, model.score(batch).energy_pj)


def test_any_point_becomes_a_mapping_of_the_space_that_fits():
    for tiling in ("perfect", "imperfect", "ruby-s"):
        space = MapSpace(CONV, preset("eyeriss"), tiling)
        slots, dims = space.layout.shape
        rng = np.random.default_rng(4)
        logs = onto_simplex(rng.random((40, slots, dims)) * 3, space.arrays.free > 0, np.log(space.arrays.sizes))
        batch = to_mappings((logs, rng.random((40, 3, dims))), space)
        assert space.contains(batch).all()
        assert space.fits(batch).all()


def test_projection_is_onto_the_simplex_and_the_nearest_point_there():
    rng = np.random.default_rng(5)
    free = rng.random((5, 3)) < 0.7
    free[0] = True
    totals = np.array([2.0, 0.0, 1.0])
    given = rng.normal(size=(50, 5, 3))
    found = onto_simplex(given, free, totals)
    assert (found >= 0).all() and (found[:, ~free] == 0).all()
    assert found.sum(1) == pytest.approx(np.broadcast_to(totals, (50, 3)))
    for _ in range(20):
        other = np.where(free, rng.random(given.shape), 0)
        other *= totals / other.sum(1, keepdims=True)
        near, far = (((given - point) ** 2 * free).sum(1) for point in (found, other))
        assert (near <= far + 1e-9).all()


def test_whole_chains_cover_the_size_and_divide_where_they_must():
    rng = np.random.default_rng(6)
    free = np.array([True, True, False, True, True])
    logs = rng.random((40, 5)) * free
    logs *= np.log(60) / logs.sum(1, keepdims=True)
    counts = np.exp(whole_chains(logs, 60, free, rng, np.arange(8) % 2 == 0))
    assert np.rint(counts) == pytest.approx(counts)
    assert (counts[:, :, ~free] == 1).all()
    product = np.rint(counts).prod(axis=2)
    assert (product[::2] == 60).all()
    assert (product[1::2] >= 60).all() and (product[1::2] < 120).mean() > 0.9
    for rows in np.rint(counts[::2]).reshape(-1, 5):
        assert all(60 % count == 0 for count in rows)


def test_whole_chains_of_points_that_are_whole_are_these_points():
    counts = np.array([[4.0, 1.0, 5.0, 3.0]])
    found = whole_chains(np.log(counts), 60, np.ones(4, dtype=bool), np.random.default_rng(0), np.array([True, True]))
    assert np.exp(found) == pytest.approx(np.repeat(counts[None], 2, axis=0))
