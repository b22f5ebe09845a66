"""Bounds and proofs where one memory serves all lanes along a side: held against every mapping of small layers."""

import pytest

from tilewright.cost import space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Compute, Fanout, Memory
from tilewright.mapping import MapSpace
from tilewright.search import search
from tilewright.workload import ROLES, matmul

FREE = AccessEnergy(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("multicast", [True, False])
@pytest.mark.parametrize(("dram_pj", "shared_pj", "network_pj", "leakage_mw"), [
    (0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 2.0), (1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 1.0, 9.0)])
def test_no_mapping_is_below_the_bound_and_what_is_proved_is_the_least(
        dram_pj, shared_pj, network_pj, leakage_mw, multicast):
    """Leakage makes lanes worth while, so that those that share words count in what is proved."""
    operator = matmul("m", m=4, n=2, k=4)
    machine = Accelerator("served", (
        Memory("DRAM", ROLES, AccessEnergy(dram_pj, 0.0, 0.0, 0.0), leakage_mw=leakage_mw),
        Fanout("PEs", (4, 1), multicast=multicast, network_energy_pj_per_word=network_pj),
        Memory("weights", ("weights",), AccessEnergy(shared_pj, shared_pj, 0.0, 0.0), capacity_bytes=8,
               buffering="buffet", always=True, shared=("PEs.x",)),
        Memory("others", ("inputs", "outputs"), FREE, buffering="buffet")), Compute("MAC", 0.0))
    space = MapSpace(operator, machine, "perfect")
    every = search(operator, machine, space=space, mapper="exhaustive", budget=10**6, objective="energy")
    proved = search(operator, machine, space=space, mapper="exact", budget=10**6, objective="energy",
                    options={"start": 1})
    assert every.complete and 0 < every.score == proved.score and proved.complete
    assert space_bounds(space).energy_pj <= every.score
