"""Mappings as arrays: what goes in comes out."""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import LevelLoops, Loop, Mapping, MappingBatch, extents_at
from tilewright.workload import matmul

GEMM = matmul("gemm", m=12, n=10, k=9)


@pytest.fixture
def machine(machines):
    spads = machines["spads"]
    return Accelerator("m", (spads.levels[0], spads.levels[1], Fanout("PEs", (4, 4)), spads.levels[3]))


def mapping(dram=(), glb=(), pes=(), rf=None, keeps=(None, None, None)):
    cover = tuple(Loop(d, 1) for d in ("M", "N", "K"))
    levels = (LevelLoops("DRAM", dram, keeps[0]), LevelLoops("GLB", glb, keeps[1]), LevelLoops("PEs", pes),
              LevelLoops("RF", cover if rf is None else rf, keeps[2]))
    return Mapping(levels)


def loops_that_run(found: Mapping, sizes: dict[str, int]) -> list[list[Loop]]:
    extents, result = dict(sizes), []
    for entry in found.levels:
        result.append([])
        for loop in entry.loops:
            if loop.step < extents[loop.dimension]:
                result[-1].append(loop)
            extents[loop.dimension] = loop.step
    return result


def test_layout_has_a_slot_per_memory_and_one_per_side(machine):
    batch = MappingBatch.from_mappings([mapping()], GEMM, machine)
    assert [(s.level, s.axis) for s in batch.layout.slots] == [(0, "T"), (1, "T"), (2, "X"), (2, "Y"), (3, "T")]
    assert batch.layout.keeps == (("I", "W", "O"), ("I", "O"), (), ("I", "W", "O"))
    assert batch.steps.shape == (5, 4, 1) and batch.steps.dtype == np.int32 and batch.ranks.dtype == np.int8


def test_temporal_order_becomes_ranks(machine):
    one = mapping(dram=(Loop("K", 3), Loop("M", 5)), glb=(Loop("N", 4), Loop("K", 2), Loop("M", 3)))
    batch = MappingBatch.from_mappings([one], GEMM, machine)
    index = batch.layout.dimensions.index
    assert batch.ranks[0, [index("K"), index("M")], 0].tolist() == [0, 1]
    assert batch.ranks[1, [index("N"), index("K"), index("M")], 0].tolist() == [0, 1, 2]
    assert batch.steps[0, :, 0].tolist() == [1, 5, 10, 3]
    assert loops_that_run(batch.mapping(0, GEMM.sizes), GEMM.sizes) == loops_that_run(one, GEMM.sizes)


def test_a_dimension_looped_over_twice_gets_a_second_row_with_all_after_it(machine):
    one = mapping(glb=(Loop("M", 6), Loop("N", 5), Loop("M", 3), Loop("K", 3), Loop("N", 2), Loop("M", 2)))
    batch = MappingBatch.from_mappings([one, mapping(dram=(Loop("K", 3),))], GEMM, machine)
    assert sum(slot.level == 1 for slot in batch.layout.slots) == 3
    assert batch.mapping(0, GEMM.sizes).at("GLB").loops == one.at("GLB").loops
    assert batch.mapping(1, GEMM.sizes).at("GLB").loops == ()


@pytest.mark.parametrize(("order", "rows"), [
    ((Loop("M", 4, "X"), Loop("M", 2, "Y")), 1),
    ((Loop("M", 4, "Y"), Loop("M", 2, "X")), 2),
    ((Loop("M", 4, "X"), Loop("K", 3, "Y"), Loop("M", 2, "Y")), 1),
    ((Loop("M", 6, "Y"), Loop("M", 3, "Y"), Loop("N", 5, "X")), 2),
    ((Loop("M", 8, "Y"), Loop("M", 6, "X"), Loop("M", 3, "Y"), Loop("M", 2, "X")), 3),
])
def test_spatial_loops_over_one_dimension_keep_their_order(machine, order, rows):
    batch = MappingBatch.from_mappings([mapping(pes=order)], GEMM, machine)
    assert sum(slot.level == 2 for slot in batch.layout.slots) == 2 * rows
    back = batch.mapping(0, GEMM.sizes).at("PEs").loops
    for dimension in ("M", "N", "K"):
        assert [loop for loop in back if loop.dimension == dimension] == [
            loop for loop in order if loop.dimension == dimension]


def test_loops_that_run_once_take_no_slot(machine):
    idle = (Loop("M", 12), Loop("M", 12), Loop("K", 3), Loop("K", 3))
    batch = MappingBatch.from_mappings([mapping(dram=idle, glb=idle)], GEMM, machine)
    assert len(batch.layout.slots) == 5
    assert batch.mapping(0, GEMM.sizes).at("DRAM").loops == (Loop("K", 3),)


def test_a_side_that_an_array_has_not_takes_only_idle_loops(machines):
    chips = machines["chiplets"]
    entries = [LevelLoops(level.name) for level in chips.levels]
    entries[1] = LevelLoops("L2", (Loop("M", 1), Loop("N", 1), Loop("K", 1)))
    entries[4] = LevelLoops("lanes", (Loop("M", 1, "Y"),))
    MappingBatch.from_mappings([Mapping(tuple(entries))], GEMM, chips)
    entries[1] = LevelLoops("L2", (Loop("N", 1), Loop("K", 1)))
    with pytest.raises(InputError, match=r"mappings\[0\]\.lanes: must loop along X; Got 'M@Y: 1'"):
        MappingBatch.from_mappings([Mapping(tuple(entries))], GEMM, chips)


def test_keeps_compare_by_meaning(machine):
    said = mapping(keeps=(("O", "W", "I"), ("O", "I"), None))
    batch = MappingBatch.from_mappings([mapping(), said], GEMM, machine)
    assert batch.layout.keeps[1] == ("I", "O")
    with pytest.raises(InputError, match=r"mappings\[1\]: must keep the same tensors"):
        MappingBatch.from_mappings([mapping(), mapping(keeps=(None, ("I",), None))], GEMM, machine)


def test_bypass_survives(machine):
    one = mapping(keeps=(None, ("O",), ("W",)))
    back = MappingBatch.from_mappings([one], GEMM, machine).mapping(0, GEMM.sizes)
    assert [back.at(name).keeps for name in ("DRAM", "GLB", "PEs", "RF")] == [("I", "W", "O"), ("O",), None, ("W",)]


@pytest.mark.parametrize(("broken", "message"), [
    (mapping(dram=(Loop("Z", 2),)), r"mappings\[0\]\.DRAM\.Z: must be one of B, M, N, K"),
    (mapping(dram=(Loop("M", 13),)), r"mappings\[0\]\.DRAM\.M: must have a step of 1 to 12; Got 13"),
    (mapping(dram=(Loop("M", 0),)), r"mappings\[0\]\.DRAM\.M: must have a step of 1 to 12; Got 0"),
    (mapping(rf=(Loop("M", 1),)), r"mappings\[0\]: must cover every dimension down to 1; Got \['N', 'K'\]"),
    (mapping(dram=(Loop("M", 2, "X"),)), r"mappings\[0\]\.DRAM: must loop along T"),
    (mapping(pes=(Loop("M", 4),)), r"mappings\[0\]\.PEs: must loop along X or Y"),
    (Mapping((LevelLoops("DRAM"),)), r"mappings\[0\]\.levels: must be DRAM, GLB, PEs, RF"),
])
def test_what_has_no_encoding_is_an_input_error(machine, broken, message):
    with pytest.raises(InputError, match=message):
        MappingBatch.from_mappings([broken], GEMM, machine)


def test_no_mappings_make_no_batch(machine):
    with pytest.raises(InputError, match="must be at least one"):
        MappingBatch.from_mappings([], GEMM, machine)


def test_take_keeps_mappings_apart(machine):
    several = [mapping(dram=(Loop("M", step),)) for step in (1, 2, 3, 7)]
    batch = MappingBatch.from_mappings(several, GEMM, machine)
    part = batch.take(np.array([3, 1]))
    assert len(part) == 2 and part.steps.flags.c_contiguous
    assert [part.mapping(i, GEMM.sizes).at("DRAM").loops for i in (0, 1)] == [(Loop("M", 7),), (Loop("M", 2),)]
    assert len(batch.take(slice(1, 3))) == 2


def test_steps_agree_with_the_extents_of_the_mapping(machine):
    one = mapping(dram=(Loop("K", 4),), glb=(Loop("M", 7), Loop("K", 3), Loop("M", 2)), pes=(Loop("K", 1, "Y"),))
    batch = MappingBatch.from_mappings([one], GEMM, machine)
    after = {slot.level: batch.steps[s, :, 0] for s, slot in enumerate(batch.layout.slots)}
    for level, extents in enumerate(extents_at(one, GEMM.sizes)[1:]):
        assert after[level].tolist() == [extents[name] for name in batch.layout.dimensions]
