"""A tensor's home is the outermost memory that keeps it, whichever that is: counts, legality, spaces, bounds."""

import numpy as np
import pytest

from random_variants import with_homes
from tilewright.base import InputError
from tilewright.cost import DenseModel, layer_bounds
from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import Constraints, MappingBatch, MapSpace, is_legal
from tilewright.search import search
from tilewright.validation.random_nests import random_case
from tilewright.workload import ROLES, matmul

BITS = (("inputs", 8), ("weights", 8), ("outputs", 8))
KINDS = ("reads", "fills", "updates", "drains")
OPERATOR = matmul("m", m=4, n=3, k=2)


def machine(room, buffering="buffet"):
    def memory(name, energy, **more):
        return Memory(name, ROLES, AccessEnergy(*[energy] * 4), bandwidth=Bandwidth(2.0, 1.0), buffering=buffering,
                      **more)

    levels = (memory("DRAM", 20.0), memory("Buffer", 2.0, capacity_bytes=room), Fanout("PEs", (2, 1)),
              memory("Reg", 0.5, capacity_bytes=6))
    return Accelerator("homes", levels, Compute("MAC", 0.5), word_bits=BITS)


def check_nest(seed):
    """Return whether a random nest has a home further in, of which oracle, closed forms and engine count the same."""
    rng = np.random.default_rng([99, seed])
    operator, accelerator, mapping = with_homes(rng, *random_case(rng, 600, sliding=seed % 3 == 1))
    if len(mapping.levels[0].keeps) == len(operator.tensors):
        return False
    walked, single = walk(operator, accelerator, mapping), DenseModel(operator, accelerator).cost(mapping)
    assert single.counts == walked.counts
    assert (single.steady_cycles, single.ramp_cycles) == (walked.steady_cycles, walked.ramp_cycles)
    batch = MappingBatch.from_mappings([mapping], operator, accelerator)
    model = DenseModel(operator, accelerator, batch.layout)
    costs, counts = model.score(batch), model.table(batch).words
    assert costs.latency_cycles[0] == walked.latency_cycles
    assert single.energy_pj == pytest.approx(walked.energy_pj) == pytest.approx(costs.energy_pj[0])
    assert all(counts[key][kind][0] == getattr(count, kind) for key, count in walked.counts.items() for kind in KINDS)
    assert bool(costs.legal[0]) == is_legal(mapping, operator, accelerator)
    return True


def test_oracle_closed_forms_and_engine_agree_on_random_homes():
    # In the last one the output's home is looked at for its busiest instance, and reads nothing back at first updates.
    assert sum(check_nest(seed) for seed in [*range(16), 238]) > 8


@pytest.mark.slow
def test_oracle_closed_forms_and_engine_agree_on_many_random_homes():
    assert sum(check_nest(seed) for seed in range(16, 1000)) > 600


@pytest.mark.parametrize(("room", "buffering", "housed"), [
    (14, "buffet", "O"), (30, "buffet", "O"), (30, "double", "I"), (64, "single", "IWO")])
def test_spaces_engine_legality_bounds_and_mappers_know_the_home(room, buffering, housed):
    accelerator = machine(room, buffering)
    stay = tuple(tensor.name for tensor in OPERATOR.tensors if tensor.name not in housed)
    space = MapSpace(OPERATOR, accelerator, "perfect", Constraints(keeps={"DRAM": stay}))
    model, best = DenseModel(OPERATOR, accelerator, space.layout), np.inf
    for batch in space.enumerate(distinct=True):
        costs = model.score(batch)
        assert np.array_equal(costs.legal, space.fits(batch))
        assert [is_legal(batch.mapping(b, OPERATOR.sizes), OPERATOR, accelerator)
                for b in range(0, len(batch), 97)] == costs.legal[::97].tolist()
        best = min(best, float((costs.energy_pj * costs.latency_cycles)[costs.legal].min(initial=np.inf)))
    assert np.isfinite(best)
    bounds = layer_bounds(OPERATOR, accelerator, dict(space.constraints.keeps), perfect=True)
    assert bounds.edp <= best * (1 + 1e-12)
    exact = search(OPERATOR, accelerator, space=space, mapper="exact", budget=20_000)
    assert exact.complete and exact.score == pytest.approx(best, rel=1e-12)
    assert search(OPERATOR, accelerator, space=space, budget=3000).score >= best * (1 - 1e-12)


def test_all_of_a_tensor_has_room_at_its_home():
    """12 outputs of 8 bits; with loops outside, the tile alone would be smaller."""
    space = MapSpace(OPERATOR, machine(11), "perfect", Constraints(keeps={"DRAM": ("I", "W"), "Buffer": ("O",)}))
    assert not any(space.fits(batch).any() for batch in space.enumerate())
    roomy = MapSpace(OPERATOR, machine(12), "perfect", space.constraints)
    assert any(roomy.fits(batch).any() for batch in roomy.enumerate())


def test_what_has_no_home_is_told():
    with pytest.raises(InputError, match="must let some memory keep O"):
        MapSpace(OPERATOR, machine(64), constraints=Constraints(keeps=dict.fromkeys(
            ("DRAM", "Buffer", "Reg"), ("I", "W"))))
    with pytest.raises(InputError, match=r"homes.Reg.keeps: must not be the home of O: sums of several instances"):
        MapSpace(OPERATOR, machine(64), constraints=Constraints(keeps=dict.fromkeys(("DRAM", "Buffer"), ("I", "W"))))
