"""Random nests of kinds beyond the reference cases: replays never fail, repeat, and name what parts them."""

import numpy as np
import pytest

from tilewright.cost.reference import ASSUMPTIONS, TILEWRIGHT, TIMELOOP, partings, replay
from tilewright.hardware import Accelerator, AccessEnergy, Compute, Fanout, Memory
from tilewright.mapping import MapSpace
from tilewright.workload import convolution, matmul

QUICK, ALL = 24, 200
ENERGY = AccessEnergy(1.0, 1.25, 1.5, 1.0)


def operator_of(rng):
    """Draw a tiny operator: plain, strided, dilated, depthwise, one-dimensional, or a product."""
    kind = rng.integers(5)
    a, b, c = (int(size) for size in rng.choice((1, 2, 3, 4), 3))
    if kind == 0:
        return matmul("product", m=a, n=b, k=c, batch=int(rng.integers(1, 3)))
    if kind == 1:
        return convolution("depthwise", in_channels=a, out_channels=a, groups=a, kernel=(2, 1), out_size=(b, c))
    if kind == 2:
        return convolution("line", in_channels=a, out_channels=b, kernel=(1, 3), out_size=(1, c),
                           dilation=int(rng.integers(1, 3)))
    return convolution("conv", in_channels=a, out_channels=b, kernel=(2, 1), out_size=(c, 2),
                       stride=int(rng.integers(1, 3)), dilation=int(rng.integers(1, 3)))


def machine_of(rng, operator):
    """Draw a machine of one to three memories and up to three arrays, anywhere between or behind them."""
    names = [tensor.name for tensor in operator.tensors]
    levels: list[Memory | Fanout] = []
    arrays = int(rng.integers(4))
    for at in range(int(rng.integers(1, 4))):
        kept = names if at == 0 else [name for name in names if rng.random() < 0.7]
        levels.append(Memory(f"M{at}", tuple(kept), ENERGY, buffering="buffet"))
        while arrays and rng.random() < 0.6:
            arrays -= 1
            levels.append(Fanout(f"A{arrays}", (4, 4), bool(rng.random() < 0.8), bool(rng.random() < 0.8)))
    return Accelerator("drawn", tuple(levels), Compute(energy_pj_per_mac=0.5))


def case_of(seed):
    """Draw a nest with perfect factors."""
    rng = np.random.default_rng([4711, seed])
    operator = operator_of(rng)
    machine = machine_of(rng, operator)
    return operator, machine, MapSpace(operator, machine, "perfect").sample(rng, 1).mapping(0, operator.sizes)


def figures(made):
    return {place: (c.reads, c.fills, c.updates, c.drains) for place, c in made.counts.items()} | {
        "cycles": made.cycles, "energy": made.energy_pj}


def check(seed):
    operator, machine, mapping = case_of(seed)
    theirs = replay(operator, machine, mapping, TIMELOOP)
    assert figures(theirs) == figures(replay(*case_of(seed), TIMELOOP))
    assert figures(replay(operator, machine, mapping, TILEWRIGHT))["cycles"] > 0
    for parting in partings(operator, machine, mapping, TIMELOOP):
        assert not parting.differs or parting.assumptions, (seed, parting)
        assert set(parting.assumptions) <= set(ASSUMPTIONS)


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(QUICK))
def test_replays_of_random_nests_are_named(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(QUICK, ALL))
def test_replays_of_many_random_nests_are_named(seed):
    check(seed)


def test_the_kinds_are_all_there():
    cases = [case_of(seed) for seed in range(ALL)]
    assert any(len(machine.fanouts) == 3 for _, machine, _ in cases)
    assert any(len(machine.memories) == 1 for _, machine, _ in cases)
    assert {operator.name for operator, _, _ in cases} == {"product", "depthwise", "line", "conv"}
    assert any(len(level.keeps) < 3 for _, machine, _ in cases for level in machine.memories)
