"""Map spaces: what is drawn, repaired, enumerated and counted."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.mapping import Bounds, Constraints, Enumeration, MappingBatch, MapSpace, is_legal, violations
from tilewright.workload import Axis, Operator, Tensor

ALL = ("inputs", "weights", "outputs")
UNIT = AccessEnergy(1.0, 1.0, 1.0, 1.0)


def plain(*names):
    return tuple(Axis(((name, 1),)) for name in names)


def conv(stride=1, dilation=1, **sizes):
    dims = {name: sizes.get(name, 1) for name in "NKCPQRS"}
    window = (Axis((("P", stride), ("R", dilation))), Axis((("Q", stride), ("S", dilation))))
    return Operator("conv", "conv", tuple(dims.items()), (
        Tensor("I", "inputs", (*plain("N", "C"), *window)),
        Tensor("W", "weights", plain("K", "C", "R", "S")),
        Tensor("O", "outputs", plain("N", "K", "P", "Q")),
    ))


def matmul(m, n, k):
    return Operator("matmul", "matmul", (("M", m), ("N", n), ("K", k)), (
        Tensor("A", "inputs", plain("M", "K")), Tensor("B", "weights", plain("K", "N")),
        Tensor("C", "outputs", plain("M", "N")),
    ))


def machine(*inner):
    return Accelerator("machine", (Memory("DRAM", ALL, UNIT), Memory("GLB", ALL, UNIT, capacity_bytes=8192), *inner))


PADS = Memory("PAD", ALL, UNIT, partitions_bytes=(("inputs", 24), ("W", 96), ("outputs", 48)), buffering="single")
REGS = Memory("REG", ALL, UNIT, capacity_bytes=64)
MACHINES = {
    "fixed": machine(Fanout("PE", (6, 4)), PADS),
    "flexible": machine(Fanout("PE", (6, 4), flexible=True), REGS),
    "blocks": machine(Fanout("PE", (8, 4), blocks=(2, 2)), REGS),
    "line": machine(Fanout("PE", (5, 1)), REGS),
    "two": machine(Fanout("CL", (2, 1)), Memory("L2", ALL, UNIT, capacity_bytes=999), Fanout("PE", (3, 2)), REGS),
    "array last": machine(Fanout("PE", (4, 4))),
}


def chains(space, batch):
    """Return extents ``(s + 1, d, b)``, from the whole operator inward."""
    sizes = np.array(list(space.operator.sizes.values()), dtype=np.int32)
    return np.concatenate([np.broadcast_to(sizes[None, :, None], (1, *batch.steps.shape[1:])), batch.steps])


def encodings(batches):
    return [(b.steps[:, :, i].tobytes(), b.ranks[:, :, i].tobytes()) for b in batches for i in range(len(b))]


@pytest.mark.sample(6)
@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
@pytest.mark.parametrize("name", list(MACHINES))
def test_samples_fit_the_arrays_and_fits_agrees_with_the_legality_of_single_mappings(name, tiling):
    operator = conv(K=12, C=10, P=14, Q=7, R=3, S=3, stride=2)
    space = MapSpace(operator, MACHINES[name], tiling)
    batch = space.sample(np.random.default_rng(1), 60, filling=0.5)
    legal = space.fits(batch)
    for index in range(len(batch)):
        found = violations(batch.mapping(index, operator.sizes), operator, MACHINES[name])
        assert {v.kind for v in found} <= {"capacity"}
        assert legal[index] == (not found)
    extents = chains(space, batch)
    assert (extents[-1] == 1).all()
    if tiling == "perfect":
        assert (extents[:-1] % extents[1:] == 0).all()
    assert (np.sort(batch.ranks, axis=1) == np.arange(7)[None, :, None]).all()
    again = space.repair(batch)
    assert np.array_equal(again.steps, batch.steps)
    assert np.array_equal(again.ranks, batch.ranks)


@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
@pytest.mark.parametrize("name", list(MACHINES))
def test_repair_makes_anything_cover_the_operator_and_fit_the_arrays(name, tiling):
    operator = matmul(20, 12, 9)
    space = MapSpace(operator, MACHINES[name], tiling)
    rng = np.random.default_rng(2)
    noise = space.empty(40)
    noise.steps[:] = rng.integers(-3, 40, noise.steps.shape)
    noise.ranks[:] = rng.integers(-5, 5, noise.ranks.shape)
    repaired = space.repair(noise)
    for index in range(len(repaired)):
        found = violations(repaired.mapping(index, operator.sizes), operator, MACHINES[name])
        assert {v.kind for v in found} <= {"capacity"}
    extents = chains(space, repaired)
    assert (extents[:-1] >= extents[1:]).all()
    assert tiling == "imperfect" or (extents[:-1] % extents[1:] == 0).all()
    assert (np.sort(repaired.ranks, axis=1) == np.arange(3)[None, :, None]).all()


@pytest.mark.parametrize(("name", "tiling", "operator"), [
    ("fixed", "perfect", conv(K=4, P=3, R=2)),
    ("fixed", "imperfect", matmul(4, 3, 2)),
    ("flexible", "perfect", matmul(6, 4, 4)),
    ("flexible", "imperfect", matmul(5, 3, 1)),
    ("blocks", "perfect", matmul(8, 4, 3)),
    ("two", "perfect", matmul(4, 2, 3)),
    ("array last", "imperfect", matmul(7, 5, 3)),
])
def test_size_is_the_number_of_mappings_enumerated_and_none_is_given_twice(name, tiling, operator):
    space = MapSpace(operator, MACHINES[name], tiling)
    found = encodings(space.enumerate(batch=1000))
    assert len(found) == len(set(found)) == space.size().mappings
    assert space.size().exact


def test_enumeration_finds_every_mapping_that_brute_force_finds():
    space = MapSpace(matmul(4, 3, 1), MACHINES["array last"], "imperfect")
    slots = len(space.layout.slots)
    batch = space.empty(1)
    expected = 0
    for first in np.ndindex(*(4,) * (slots - 1)):
        for second in np.ndindex(*(3,) * (slots - 1)):
            batch.steps[:, :, 0] = np.array([(*first, 0), (*second, 0), (0,) * slots]).T + 1
            steps = chains(space, batch)[:, :, 0]
            if (steps[:-1] >= steps[1:]).all() and is_legal_array(space, batch):
                loops = (steps[:-1] > steps[1:]).sum(axis=1)
                temporal = [n for n, slot in zip(loops, space.layout.slots, strict=True) if slot.axis == "T"]
                expected += int(np.prod([[1, 1, 2, 6][n] for n in temporal]))
    assert sum(len(b) for b in space.enumerate()) == expected


def is_legal_array(space, batch):
    mapping = batch.mapping(0, space.operator.sizes)
    return not [v for v in violations(mapping, space.operator, space.accelerator) if v.kind != "capacity"]


def test_all_samples_are_among_the_enumerated():
    space = MapSpace(matmul(4, 3, 2), MACHINES["fixed"], "imperfect")
    known = {space_key(space, b, i) for b in space.enumerate() for i in range(len(b))}
    drawn = space.sample(np.random.default_rng(3), 500, filling=0.3)
    assert {space_key(space, drawn, i) for i in range(500)} <= known


@pytest.mark.parametrize("tiling", ["ruby", "ruby-s", "ruby-t", "imperfect"])
def test_dimensions_are_split_without_remainders_as_often_as_asked_where_the_tiling_is_one_of_rubys(tiling):
    space = MapSpace(conv(K=15, C=10, P=13, R=3), MACHINES["fixed"], tiling)
    plain, mixed, whole = (space.sample(np.random.default_rng(2), 600, 0.5, chance) for chance in (0, 0.5, 1))
    assert space.contains(mixed).all() and space.contains(whole).all()
    if tiling == "imperfect":
        assert np.array_equal(plain.steps, mixed.steps) and np.array_equal(plain.steps, whole.steps)
        return
    divides = [(extents[:-1] % extents[1:] == 0).all(axis=0) for extents in
               (chains(space, batch) for batch in (plain, mixed, whole))]
    assert divides[2].all()
    large = [space.layout.dimensions.index(name) for name in "KCP"]
    low, middle = (each[large].mean(axis=1) for each in divides[:2])
    assert (low < 0.9).all() and (abs(middle - (1 + low) / 2) < 0.12).all()


def space_key(space, batch, index):
    return batch.mapping(index, space.operator.sizes)


def test_distinct_orders_are_fewer_and_a_walk_can_be_taken_up_again():
    space = MapSpace(conv(K=2, C=2, P=2, R=2), MACHINES["line"], "perfect")
    every, distinct = encodings(space.enumerate()), encodings(space.enumerate(distinct=True))
    assert set(distinct) < set(every)
    walk = Enumeration(space)
    first = walk.take(777)
    other = Enumeration(space)
    other.state = {name: array.copy() for name, array in walk.state.items()}
    assert encodings([first, other.take(10**5)]) == every
    assert len(other.take(5)) == 0


def test_restrictions_hold_for_samples_repairs_and_enumeration():
    operator = matmul(8, 6, 4)
    orders = {"GLB": (("K", "M", "N"), ("N", "M", "K"))}
    space = MapSpace(operator, MACHINES["fixed"], "perfect",
                     Constraints(loops={"PE.X": ("M",), "PE.Y": (), "PAD": ("K",)}, orders=orders))
    batches = [space.sample(np.random.default_rng(4), 200), *space.enumerate()]
    noise = space.empty(50)
    noise.steps[:] = np.random.default_rng(5).integers(1, 9, noise.steps.shape)
    batches.append(space.repair(noise))
    assert sum(map(len, batches[1:-1])) == space.size().mappings
    for batch in batches:
        for index in range(0, len(batch), 7):
            mapping = batch.mapping(index, operator.sizes)
            assert {loop.dimension for loop in mapping.at("PE").loops if loop.axis == "X"} <= {"M"}
            assert not [loop for loop in mapping.at("PE").loops if loop.axis == "Y"]
            assert {loop.dimension for loop in mapping.at("PAD").loops} <= {"K"}
            looping = [loop.dimension for loop in mapping.at("GLB").loops]
            assert any([d for d in order if d in looping] == looping for order in orders["GLB"])


@pytest.mark.parametrize(("restriction", "path"), [
    ({"tiling": "ragged"}, "space.tiling"),
    ({"constraints": Constraints(loops={"PE": ("M",)})}, "space.loops"),
    ({"constraints": Constraints(loops={"GLB": ("X",)})}, "space.loops.GLB"),
    ({"constraints": Constraints(orders={"GLB": (("M", "N"),)})}, "space.orders.GLB"),
    ({"constraints": Constraints(orders={"PE.X": (("M", "N", "K"),)})}, "space.orders"),
])
def test_wrong_restrictions_are_named(restriction, path):
    with pytest.raises(InputError) as caught:
        MapSpace(matmul(4, 4, 4), MACHINES["fixed"], **restriction)
    assert path in str(caught.value)


def test_a_dimension_without_a_memory_to_loop_at_is_named():
    nowhere = {name: ("N", "K") for name in ("DRAM", "GLB", "PAD")}
    with pytest.raises(InputError, match="M"):
        _ = MapSpace(matmul(4, 4, 4), MACHINES["fixed"], constraints=Constraints(loops=nowhere)).arrays


def test_same_seed_draws_the_same_and_legal_mappings_decode():
    space = MapSpace(matmul(16, 16, 16), MACHINES["two"])
    first, second = (space.sample(np.random.default_rng(9), 30) for _ in range(2))
    assert np.array_equal(first.steps, second.steps)
    assert np.array_equal(first.ranks, second.ranks)
    legal = [first.mapping(int(i), space.operator.sizes) for i in np.flatnonzero(space.fits(first))]
    assert legal
    assert all(is_legal(mapping, space.operator, space.accelerator) for mapping in legal)
    back = MappingBatch.from_mappings(legal, space.operator, space.accelerator)
    assert [back.mapping(i, space.operator.sizes) for i in range(len(legal))] == legal


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("constraints", [{}, {"tiles": {"GLB": {"K": Bounds(1, 4)}}}], ids=["free", "ruled"])
def test_a_space_on_another_machine_is_as_made_anew(name, constraints):
    given = MACHINES[name]
    other = replace(given, levels=tuple(
        replace(level, capacity_bytes=level.capacity_bytes // 2) if isinstance(level, Memory) and level.capacity_bytes
        else replace(level, shape=(2 * level.shape[0], level.shape[1])) if isinstance(level, Fanout) else level
        for level in given.levels))
    space = MapSpace(conv(K=12, C=6, P=5, R=3), given, constraints=Constraints(**constraints))
    found, anew = space.on(other), replace(space, accelerator=other)
    assert found == anew
    for part, expected in zip(found.arrays[:-1], anew.arrays[:-1], strict=True):
        np.testing.assert_equal(part, expected)
    np.testing.assert_array_equal(found.table, anew.table)
    if not constraints:
        np.testing.assert_array_equal(space.table_on(other), anew.table)
