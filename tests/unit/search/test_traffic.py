"""Traffic: bytes to and from the outermost memory, as an objective, a limit, a metric of fronts, and in bounds."""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import cost_model, outermost_bytes
from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import METRICS, Objective, search
from tilewright.workload import convolution, matmul, with_densities

PRODUCT = matmul("product", m=48, n=64, k=96)
CONVOLUTION = convolution("conv", in_channels=16, out_channels=32, kernel=3, out_size=14, stride=2)


@pytest.mark.sample(4)
@pytest.mark.parametrize("arch", ["eyeriss", "nvdla-like", "simba-like", "accel-b-sparse"])
@pytest.mark.parametrize("operator", [PRODUCT, CONVOLUTION], ids=lambda one: one.name)
def test_scored_traffic_is_that_of_the_counts(arch, operator):
    machine = preset(arch)
    if machine.sparsity is not None:
        operator = with_densities(operator, {"weights": 0.5, "inputs": 0.25})
    space = MapSpace(operator, machine)
    batch = space.sample(np.random.default_rng(3), 40)
    model = cost_model(operator, machine, space.layout)
    told = [outermost_bytes(model.cost(batch.mapping(at, operator.sizes)), operator, machine) for at in range(40)]
    assert model.score(batch).traffic_bytes == pytest.approx(told, rel=1e-12)
    assert len({*told}) > 5


@pytest.mark.parametrize("arch", ["eyeriss", "nvdla-like"])
def test_a_search_for_least_traffic_finds_less_and_stays_above_its_bound(arch):
    machine = preset(arch)
    found = search(PRODUCT, machine, objective="traffic", budget=600)
    fast = search(PRODUCT, machine, objective="latency", budget=600)
    assert found.score == outermost_bytes(found.cost, PRODUCT, machine)
    assert found.bound * (1 - 1e-9) <= found.score <= outermost_bytes(fast.cost, PRODUCT, machine)
    once = sum(tensor.words(PRODUCT.sizes) * machine.memories[0].word_bits / 8 for tensor in PRODUCT.tensors)
    assert found.bound >= once * (1 - 1e-9)


@pytest.mark.parametrize("mapper", ["auto", "gamma", "nsga2", "random"])
def test_fronts_have_traffic(mapper):
    found = search(CONVOLUTION, preset("eyeriss"), objective="0.5*latency+0.5*traffic", mapper=mapper, budget=800,
                   front="latency,traffic,energy")
    machine = preset("eyeriss")
    model = cost_model(CONVOLUTION, machine)
    for point in found.front.points:
        cost = model.cost(point.mapping)
        assert point.values == pytest.approx((cost.latency_cycles, outermost_bytes(cost, CONVOLUTION, machine),
                                              cost.energy_pj))


def test_traffic_can_be_limited_and_stand_beside_energy():
    machine = preset("eyeriss")
    least = search(PRODUCT, machine, objective="traffic", budget=400).score
    found = search(PRODUCT, machine, objective="latency", constraints=[f"traffic<={1.2 * least}"], budget=800)
    assert found.feasible and outermost_bytes(found.cost, PRODUCT, machine) <= 1.2 * least
    both = search(PRODUCT, machine, objective="0.5*energy+0.5*traffic", budget=200)
    assert both.feasible and both.bound is None


def test_products_of_cycles_and_energy_do_not_tell_traffic():
    with pytest.raises(InputError, match="traffic"):
        METRICS["traffic"].of(1.0, 1.0, 1.0, 1.0)
    goal, space = Objective.parse("traffic").as_energy(MapSpace(PRODUCT, preset("eyeriss")))
    assert str(goal) == "energy" and space.accelerator.memories[0].energy.read_pj == 2.0
    assert all(memory.energy.read_pj == 0.0 for memory in space.accelerator.memories[1:])
