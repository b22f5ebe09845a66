"""Mappings as points: every mapping has one, every point is a mapping of the space."""

from itertools import product

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory, preset
from tilewright.mapping import ANY, TILINGS, Bounds, Constraints, MapSpace
from tilewright.search import VectorSpace
from tilewright.workload import convolution, matmul

ALL = ("inputs", "weights", "outputs")
UNIT = AccessEnergy(1.0, 1.0, 1.0, 1.0)


def machine(*inner):
    return Accelerator("machine", (Memory("DRAM", ALL, UNIT), Memory("GLB", ALL, UNIT, capacity_bytes=64), *inner))


REGS = Memory("REG", ALL, UNIT, capacity_bytes=12)
MACHINES = {
    "fixed": machine(Fanout("PE", (3, 2)), REGS),
    "flexible": machine(Fanout("PE", (3, 2), flexible=True), REGS),
    "blocks": machine(Fanout("PE", (4, 2), blocks=(2, 1)), REGS),
    "two": machine(Fanout("PE", (3, 1)), Memory("L2", ALL, UNIT, capacity_bytes=24), Fanout("CL", (2, 1)), REGS),
}
CONSTRAINTS = {
    "none": Constraints(),
    "factors": Constraints(factors={"PE.X": {"M": Bounds(2, 3)}, "GLB": {"N": Bounds(1, 2)}, "DRAM": {"M": Bounds(2)}}),
    "loops": Constraints(loops={"PE.X": ("N",), "GLB": ("M", "N"), "DRAM": ("M",)}),
    "orders": Constraints(orders={"GLB": (("N", ANY), (ANY, "K", "M")), "DRAM": (("K", "M", "N"),)}),
    "utilization": Constraints(utilization={"PE": 0.6}, factors={"GLB": {"M": Bounds(1, 3)}}),
}
CASES = [case for case in product(MACHINES, TILINGS, CONSTRAINTS)
         if case[0] == "fixed" or case[1:] in (("perfect", "orders"), ("ruby-s", "none"), ("imperfect", "utilization"))]
OPERATOR = matmul("small", m=6, n=4, k=2)


def spaces():
    for name, tiling, constraints in CASES:
        try:
            space = MapSpace(OPERATOR, MACHINES[name], tiling, CONSTRAINTS[constraints])
            next(space.enumerate(1))
        except (InputError, StopIteration):
            continue
        yield pytest.param(space, id=f"{name} {tiling} {constraints}")


SPACES = list(spaces())


def mappings(batch, operator=OPERATOR):
    return [str(batch.mapping(index, operator.sizes)) for index in range(len(batch))]


@pytest.mark.sample(10)
@pytest.mark.parametrize("space", SPACES)
def test_every_mapping_has_a_point(space):
    vectors, found = VectorSpace(space), 0
    for batch in space.enumerate(4096):
        points = vectors.encode(batch)
        again = vectors.decode(points)
        assert points.shape == (len(batch), vectors.dimension)
        assert ((points >= 0.0) & (points <= 1.0)).all()
        assert np.array_equal(again.steps, batch.steps)
        assert mappings(again.take(slice(0, 300))) == mappings(batch.take(slice(0, 300)))
        looping = np.concatenate([np.broadcast_to(space.arrays.sizes[None, :, None], (1, *batch.steps.shape[1:])),
                                  batch.steps])
        looping = looping[:-1] > looping[1:]
        # Among the loops of a slot the order is the same, whatever stands between them.
        earlier = [batch_.ranks[:, :, None] < batch_.ranks[:, None] for batch_ in (batch, again)]
        temporal = np.array([slot.axis == "T" for slot in space.layout.slots])[:, None, None, None]
        both = looping[:, :, None] & looping[:, None] & temporal
        assert np.array_equal(earlier[0] & both, earlier[1] & both)
        found += len(batch)
        if found > 30_000:
            break
    assert found > 0


@pytest.mark.parametrize("space", SPACES)
def test_every_point_is_a_mapping_of_the_space_by_itself(space):
    vectors, rng = VectorSpace(space), np.random.default_rng(0)
    points = rng.random((400, vectors.dimension)) * 1.4 - 0.2
    points[:50] = np.round(points[:50])
    batch = vectors.decode(points)
    assert space.contains(batch).all()
    backwards = vectors.decode(points[::-1])
    assert np.array_equal(backwards.steps[:, :, ::-1], batch.steps)
    assert np.array_equal(backwards.ranks[:, :, ::-1], batch.ranks)
    alone = vectors.decode(points[7:8])
    assert np.array_equal(alone.steps, batch.steps[:, :, 7:8])


@pytest.mark.parametrize("tiling", TILINGS)
def test_large_mappings_come_back_from_their_points(tiling):
    operator = convolution("conv", in_channels=96, out_channels=51, in_size=(61, 55), kernel=3, stride=2)
    space = MapSpace(operator, preset("eyeriss"), tiling)
    vectors = VectorSpace(space)
    batch = space.sample(np.random.default_rng(3), 500, filling=0.5)
    again = vectors.decode(vectors.encode(batch))
    assert np.array_equal(again.steps, batch.steps)
    assert mappings(again, operator) == mappings(batch, operator)


def test_random_points_use_all_four_axes():
    operator = convolution("conv", in_channels=64, out_channels=64, in_size=(56, 56), kernel=3, padding=1)
    space = MapSpace(operator, preset("edge-s2"))
    vectors = VectorSpace(space)
    batch = vectors.decode(np.random.default_rng(0).random((300, vectors.dimension)))
    assert len(np.unique(batch.steps, axis=2).T) == 300
    for s, slot in enumerate(space.layout.slots):
        if slot.axis == "T":
            assert len(np.unique(batch.ranks[s], axis=1).T) > 200
        elif s:
            counts = -(-batch.steps[s - 1] // batch.steps[s])
            assert len({tuple(np.flatnonzero(counts[:, b] > 1)) for b in range(300)}) > 20
    assert 0.1 < space.fits(batch).mean() < 0.9


def test_a_space_of_one_mapping_has_points():
    space = MapSpace(matmul("one", m=1, n=1, k=1), preset("eyeriss"))
    vectors = VectorSpace(space)
    batch = vectors.decode(np.array([[0.3, 0.1], [0.9, 1.0]]))
    assert vectors.dimension == 2 and (batch.steps == 1).all()
    assert vectors.encode(batch).shape == (2, 2)


@pytest.mark.parametrize("points", [np.zeros((2, 3)), np.zeros(5), np.full((1, 23), np.nan)])
def test_wrong_points_are_named(points):
    vectors = VectorSpace(MapSpace(OPERATOR, MACHINES["fixed"]))
    if points.ndim == 2 and np.isnan(points).any():
        points = np.full((1, vectors.dimension), np.nan)
    with pytest.raises(InputError, match="vectors"):
        vectors.decode(points)
