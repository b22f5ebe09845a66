"""Random mappings that fit."""

from itertools import permutations

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import Constraints, MapSpace
from tilewright.workload import convolution, matmul

CONV = convolution("c", batch=4, in_channels=96, out_channels=320, in_size=(30, 30), kernel=3)
STRIDED = convolution("s", in_channels=3, out_channels=61, in_size=(224, 224), kernel=7, padding=3, stride=2)
FIXED_ORDER = Constraints(orders={"GLB": (("K", "C", "P", "Q", "R", "S", "N"), ("Q", "P", "C", "K", "R", "S", "N"))},
                          loops={"PEs.X": ("K", "P")})


@pytest.mark.parametrize("tiling", ["perfect", "imperfect", "ruby-s"])
@pytest.mark.parametrize("operator", [CONV, STRIDED, matmul("m", m=5, n=1, k=4096)])
@pytest.mark.parametrize("machine", ["accel-a", "eyeriss", "edge-s2", "edge-s3", "cloud-s1"])
def test_they_are_of_the_space_and_fit(machine, operator, tiling):
    space = MapSpace(operator, preset(machine), tiling)
    for filling in (0.0, 1.0):
        batch = space.fitting(np.random.default_rng(0), 300, filling)
        assert space.contains(batch).all()
        assert space.fits(batch).mean() > 0.99


def test_orders_are_all_alike_or_those_allowed():
    space = MapSpace(matmul("m", m=64, n=64, k=64), preset("accel-a"))
    ranks = space.fitting(np.random.default_rng(0), 24_000).ranks
    active = [d for d, size in enumerate(space.operator.sizes.values()) if size > 1]
    for slot in (0, 1, 4):
        found, counts = np.unique(ranks[slot, active], axis=1, return_counts=True)
        assert sorted(map(tuple, found.T)) == sorted(permutations(range(3)))
        assert counts == pytest.approx(24_000 / 6, rel=0.1)
    ordered = MapSpace(CONV, preset("eyeriss"), constraints=FIXED_ORDER)
    assert ordered.contains(ordered.fitting(np.random.default_rng(0), 500)).all()


def test_any_number_can_be_drawn_and_the_same_seed_gives_the_same():
    space = MapSpace(CONV, preset("accel-a"))
    for count in (0, 1, 127, 129):
        first, again = (space.fitting(np.random.default_rng(7), count, 0.5) for _ in range(2))
        assert len(first) == count and (first.steps == again.steps).all() and (first.ranks == again.ranks).all()


def test_a_space_that_can_hold_nothing_is_refused_as_in_sample():
    with pytest.raises(InputError, match="must let N loop"):
        MapSpace(CONV, preset("eyeriss"), constraints=Constraints(loops=dict.fromkeys(
            ("DRAM", "GLB", "Spads"), ("C",)))).fitting(np.random.default_rng(0), 5)
