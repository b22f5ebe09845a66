"""Bounds where zeros are made use of: held against every mapping of small layers, and near the best of them."""

import pytest

from tilewright.cost import space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Elision, Memory, Sparsity
from tilewright.mapping import MapSpace
from tilewright.search import search
from tilewright.workload import ROLES, matmul, with_densities


def machine(buffer_pj: float, sparsity: Sparsity) -> Accelerator:
    return Accelerator("sparse", (
        Memory("DRAM", ROLES, AccessEnergy(50.0, 0.0, 50.0, 0.0)),
        Memory("buffer", ROLES, AccessEnergy(buffer_pj, 0.0, buffer_pj, 0.0), capacity_bytes=4096,
               buffering="buffet")), Compute("MAC", 0.0), sparsity=sparsity)


@pytest.mark.parametrize(("memory", "buffer_pj", "near"), [
    ("buffer", 1.0, 0.999), ("buffer", 20.0, 0.999), ("DRAM", 1.0, 0.92), ("DRAM", 20.0, 0.58)])
@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 8), (2, 6, 4)])
def test_the_least_energy_is_near_what_the_best_mapping_takes(m, n, k, memory, buffer_pj, near):
    """What is left out at the DRAM is not read further in; what is left out there still comes in from the DRAM."""
    operator = with_densities(matmul("m", m=m, n=n, k=k), {"inputs": 0.25})
    zeros = Sparsity((), tuple(Elision(memory, "gate", tensor, ("inputs",)) for tensor in ("weights", "outputs")))
    space = MapSpace(operator, machine(buffer_pj, zeros), "perfect")
    best = search(operator, space.accelerator, space=space, mapper="exhaustive", budget=10**6, objective="energy")
    bound = space_bounds(space).energy_pj
    assert best.complete and near * best.score <= bound <= best.score


@pytest.mark.parametrize(("action", "share"), [("skip", 0.25), ("gate", 1.0)])
def test_ports_take_the_words_that_take_time(action, share):
    """Of 128 products 128 inputs are read, weights where these are not zero, and partial sums but for the first."""
    operator = with_densities(matmul("m", m=4, n=4, k=8), {"inputs": 0.25})
    zeros = Sparsity((), (Elision("DRAM", action, "weights", ("inputs",)),))
    dram = Memory("DRAM", ROLES, AccessEnergy(1.0, 0.0, 1.0, 0.0), bandwidth=Bandwidth(read=0.5))
    alone = Accelerator("alone", (dram,), sparsity=zeros)
    space = MapSpace(operator, alone, "perfect")
    best = search(operator, alone, space=space, mapper="exhaustive", budget=10**6, objective="latency")
    assert best.complete and space_bounds(space).latency_cycles == 2 * (128 * (1 + share) + 112) == best.score
