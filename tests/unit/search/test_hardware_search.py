"""A mapper may propose a machine beside each mapping: the loop scores, keeps and tells the pair."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.cost import DenseModel, HardwareBatch, cost_model, layer_bounds
from tilewright.hardware import preset
from tilewright.mapping import is_legal
from tilewright.search import MAPPERS, search
from tilewright.search.checkpoint import pack_generator, unpack_generator
from tilewright.workload import matmul, with_densities

OPERATOR = matmul("small", m=24, n=18, k=20)
MACHINE = preset("edge-s2")
SIZES = np.array([2e3, 2e4, 2e5])


class Pairs:
    """Draws mappings, and a buffer and an array for each."""

    covers_space = False

    def __init__(self, task):
        self.space, self.rng = task.space, task.rng
        self.hardware = None

    def ask(self, most):
        batch = self.space.sample(self.rng, min(most, 100))
        count = len(batch)
        memory = self.space.accelerator.memories[1].name
        self.hardware = HardwareBatch({
            (memory, "capacity_bytes"): self.rng.choice(SIZES, count),
            (self.space.accelerator.fanouts[0].name, "x"): self.rng.integers(2, 20, count).astype(float)})
        return batch

    def tell(self, batch, scores):
        assert len(batch) == len(self.hardware) == len(scores)

    def state(self):
        return {"rng": pack_generator(self.rng)}

    def restore(self, state):
        unpack_generator(self.rng, state["rng"])


@pytest.fixture(autouse=True)
def pairs():
    MAPPERS.register("pairs")(Pairs)
    yield
    del MAPPERS._members["pairs"]


@pytest.mark.parametrize("objective", ["edp-area", "latency", "energy"])
def test_the_best_pair_of_machine_and_mapping_is_found(objective):
    found = search(OPERATOR, MACHINE, mapper="pairs", objective=objective, budget=2000)
    machine = found.machine
    assert machine.memories[1].capacity_bytes in SIZES
    assert machine.area_um2 != MACHINE.area_um2 and machine.structure == MACHINE.structure
    cost = DenseModel(OPERATOR, machine).cost(found.mapping)
    assert is_legal(found.mapping, OPERATOR, machine)
    assert found.cost == cost and found.bound is None
    figures = {"edp-area": cost.latency_cycles * cost.energy_pj * machine.area_um2, "latency": cost.latency_cycles,
               "energy": cost.energy_pj}
    assert found.score == pytest.approx(figures[objective], rel=1e-12)
    assert found.history[-1].score == pytest.approx(found.score, rel=1e-9)
    assert cost.latency_cycles >= layer_bounds(OPERATOR, machine).latency_cycles


def test_a_search_over_machines_is_taken_up_where_it_was(tmp_path):
    whole = search(OPERATOR, MACHINE, mapper="pairs", budget=1000)
    search(OPERATOR, MACHINE, mapper="pairs", budget=500, checkpoint=tmp_path / "kept")
    resumed = search(OPERATOR, MACHINE, mapper="pairs", budget=1000, checkpoint=tmp_path / "kept")
    assert (resumed.machine, resumed.mapping, resumed.score) == (whole.machine, whole.mapping, whole.score)


@pytest.mark.parametrize("densities", [None, "inputs=1,0.3"])
def test_machines_that_use_zeros_are_searched_alike(densities):
    sparse, machine = with_densities(OPERATOR, {"weights": 0.5}), preset("accel-b-sparse")
    found = search(sparse, machine, mapper="pairs", budget=300, densities=densities)
    assert found.machine.sparsity == machine.sparsity and found.machine != machine
    if densities is None:
        cost = cost_model(sparse, replace(found.machine, name="again")).cost(found.mapping)
        assert found.score == pytest.approx(cost.latency_cycles * cost.energy_pj)
