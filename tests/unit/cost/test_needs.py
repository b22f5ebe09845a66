"""What mappings need of machines: bytes of every room and lanes of every array, as legality counts them one by one."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.cost import HardwareBatch, NetworkModel, cost_model
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compression, Compute, Fanout, Memory, Sparsity
from tilewright.mapping import Constraints, MapSpace, extents_at, full_keeps, is_legal, kept_tensors, lanes
from tilewright.mapping.fit import homed_at, rooms
from tilewright.workload import UniqueOperator, convolution, matmul, with_densities

ROLES = ("inputs", "weights", "outputs")
LAYERS = (
    convolution("strided", batch=2, in_channels=6, out_channels=10, in_size=(25, 18), kernel=(3, 5), stride=(2, 1),
                dilation=(1, 2), padding=2),
    matmul("gemm", m=37, n=24, k=50),
)
FORMATS = Sparsity((Compression("GLB", "inputs", "bitmask"), Compression("RF", "weights", "coordinates"),
                    Compression("DRAM", "outputs", "csr")), capacity="expected")
ARRAYS = {"fixed": {"shape": (6, 5)}, "row": {"shape": (9, 1)}, "flexible": {"shape": (6, 5), "flexible": True},
          "blocks": {"shape": (8, 6), "blocks": (4, 2)}}


def machine(array="fixed", **more):
    """Shared and parted rooms, with and without a limit, kept once and twice."""
    def memory(name, energy, **own):
        return Memory(name, ROLES, AccessEnergy(*[energy] * 4), bandwidth=Bandwidth(shared=4.0), **own)

    return Accelerator("needs", (
        memory("DRAM", 100.0),
        memory("GLB", 6.0, capacity_bytes=600.0, buffering="double"),
        Fanout("PEs", **ARRAYS[array]),
        memory("RF", 1.0, capacity_bytes=40.0, partitions_bytes=(("W", 30.0), ("inputs", 50.0)), buffering="single"),
    ), Compute("MAC", 0.5), word_bits=(("inputs", 8), ("weights", 4), ("outputs", 24)), **more)


CASES = {array: (machine(array), ()) for array in ARRAYS} | {
    "box": (machine(footprint="box"), ()), "home of O": (machine(), ("O",)), "home of I and W": (machine(), ("I", "W")),
    "formats": (machine(sparsity=FORMATS), ()), "formats in boxes": (machine(sparsity=FORMATS, footprint="box"), ()),
    "formats and homes": (machine(sparsity=FORMATS), ("W", "O"))}


def mappings(operator, accelerator, housed, count=60):
    """Return mappings, legal and illegal; the tensors ``housed`` are at home in the buffer."""
    outermost = tuple(tensor.name for tensor in operator.tensors if tensor.name not in housed)
    # Where zeros are made use of, no space has other homes; the model counts them all the same.
    space = MapSpace(operator, replace(accelerator, sparsity=None),
                     constraints=Constraints(keeps={"DRAM": outermost} if housed else {}))
    return space.sample(np.random.default_rng(4), count, filling=1)


def one_by_one(mapping, operator, accelerator):
    """Return the bytes of every room, the bytes of every tile and the lanes of every array, from `mapping.fit`."""
    extents, room_bytes, tile_bytes, sides = extents_at(mapping, operator.sizes), [], {}, []
    for at, (level, entry) in enumerate(zip(accelerator.levels, mapping.levels, strict=True)):
        if isinstance(level, Fanout):
            sides.append(lanes(entry, extents[at]))
            continue
        homed = homed_at(at, mapping, operator, accelerator)
        found = {room.partition: room for room in rooms(
            level, kept_tensors(entry, level, operator), extents[at], accelerator, homed)}
        room_bytes += [found[owner].needed_bytes if owner in found else 0.0 for owner in level.rooms]
        tile_bytes |= {(level.name, name): room.copies * size for room in found.values()
                       for name, size in room.bytes_by_tensor}
    return room_bytes, tile_bytes, sides


@pytest.mark.sample(10)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.parametrize(("accelerator", "housed"), CASES.values(), ids=CASES)
def test_needs_are_those_of_each_mapping(accelerator, housed, layer):
    operator = with_densities(layer, {"inputs": 0.4, "weights": 0.7})
    batch = mappings(operator, accelerator, housed)
    network = NetworkModel([UniqueOperator(operator, 1, (operator.name,))], accelerator)
    network.__dict__["models"] = (cost_model(operator, accelerator, batch.layout),)
    found, alone = network.score(0, batch), network.needs(0, batch)
    assert found.needs.rooms == alone.rooms == (
        ("DRAM", "capacity_bytes"), ("GLB", "capacity_bytes"), ("RF", "capacity_bytes"), ("RF", "capacity_bytes[W]"),
        ("RF", "capacity_bytes[inputs]"))
    np.testing.assert_array_equal(found.needs.bytes, alone.bytes)
    np.testing.assert_array_equal(found.needs.lanes, alone.lanes)
    for b in range(len(batch)):
        mapping = batch.mapping(b, operator.sizes)
        room_bytes, tile_bytes, sides = one_by_one(mapping, operator, accelerator)
        assert alone.bytes[:, b].tolist() == pytest.approx(room_bytes, rel=1e-12)
        assert {key: row[b] for key, row in found.needed_bytes.items()} == pytest.approx(tile_bytes, rel=1e-12)
        assert [tuple(pair) for pair in alone.lanes[:, :, b].tolist()] == sides
        assert bool(found.costs.legal[b]) == is_legal(mapping, operator, accelerator)
        assert set(found.words) == {(name, t) for name, kept in full_keeps(mapping, operator, accelerator).items()
                                    for t in kept}


@pytest.mark.parametrize("array", ARRAYS)
def test_a_machine_made_of_its_needs_fits_and_no_smaller_one_does(array):
    accelerator = machine(array)
    operator = LAYERS[0]
    batch = MapSpace(operator, accelerator).sample(np.random.default_rng(2), 300, filling=1)
    model = cost_model(operator, accelerator)
    least = model.needs(batch).numbers(accelerator)
    (costs, timed), scored = model.timed(batch), model.score(batch)
    np.testing.assert_array_equal([*timed.numbers(accelerator).values()], [*least.values()])
    np.testing.assert_array_equal([costs.latency_cycles, costs.excess], [scored.latency_cycles, scored.excess])
    sides = [("PEs", "x"), ("PEs", "y")] if array in ("fixed", "row") else [("PEs", "instances")]
    assert set(least) == {("GLB", "capacity_bytes"), ("RF", "capacity_bytes"), ("RF", "capacity_bytes[W]"),
                          ("RF", "capacity_bytes[inputs]"), *sides}
    assert model.score(batch, HardwareBatch(least)).legal.all()
    for key, row in least.items():
        if array == "row" and key == ("PEs", "y"):
            continue  # such an array has no loops along Y
        smaller = row - 1 if key[0] == "PEs" else row * (1 - 1e-9)
        less = model.score(batch, HardwareBatch(least | {key: smaller}))
        assert not less.legal[smaller > 0].any()


def test_needs_are_the_same_on_any_number_of_threads_and_of_none():
    accelerator, operator = machine(), LAYERS[1]
    batch = MapSpace(operator, accelerator).sample(np.random.default_rng(2), 5000)
    for own in (accelerator, replace(accelerator, sparsity=FORMATS)):
        model = cost_model(operator, own)
        one, three = (model.table(batch, threads=threads) for threads in (1, 3))
        np.testing.assert_array_equal(one.needs.bytes, three.needs.bytes)
        np.testing.assert_array_equal(one.words["GLB", "O"]["updates"], three.words["GLB", "O"]["updates"])
        np.testing.assert_array_equal(one.costs.energy_pj, model.score(batch).energy_pj)
        none = model.table(batch.take(slice(0, 0)))
        assert none.needs.bytes.shape == (5, 0) and none.needs.lanes.shape == (1, 2, 0) and len(none.costs) == 0
