"""From nouns to records and back."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost.records import Cost, Count, MemoryTraffic
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.store import (
    BoundsRecord,
    LayerRecord,
    RooflineRecord,
    SearchRecord,
    accelerator_record,
    cost_record,
    fingerprint,
    mapping_of,
    mapping_record,
    nest_rows,
    new_run_id,
    operator_of,
    operator_record,
    roofline_record,
    software_record,
    totals_of,
)
from tilewright.workload import Axis, Operator, Tensor

ENERGY = AccessEnergy(1, 1, 1, 1)
OPERATOR = Operator(
    "slide", "conv", (("K", 8), ("P", 10), ("R", 3)),
    (Tensor("I", "inputs", (Axis((("P", 2), ("R", 1))),), word_bits=4), Tensor("W", "weights", (Axis((("K", 1),)),
                                                                                            Axis((("R", 1),)))),
     Tensor("O", "outputs", (Axis((("K", 1),)), Axis((("P", 1),))))))
MACHINE = Accelerator(
    "small",
    (Memory("DRAM", ("inputs", "weights", "outputs"), ENERGY, word_bits=16, bandwidth=Bandwidth(read=2.0, write=1.0)),
     Memory("Buffer", ("inputs", "O"), ENERGY, capacity_bytes=64),
     Fanout("array", (4, 2)),
     Memory("Register", ("weights", "outputs"), ENERGY, partitions_bytes=(("weights", 3), ("O", 9)),
            buffering="single")),
    Compute(area_um2=2.0), word_bits=(("inputs", 8), ("weights", 8), ("outputs", 16)))
MAPPING = Mapping((
    LevelLoops("DRAM", (Loop("P", 4),)),
    LevelLoops("Buffer", (Loop("K", 8), Loop("P", 2))),
    LevelLoops("array", (Loop("K", 2, "X"), Loop("P", 1, "Y"))),
    LevelLoops("Register", (Loop("K", 1), Loop("R", 1)), ("W",))))
COST = Cost(240, 36, 40, 2, 512.0, {"DRAM": 400.0, "MAC": 112.0},
            {("DRAM", "I"): Count(40, 0, 0, 0), ("DRAM", "W"): Count(20, 0, 0, 0), ("DRAM", "O"): Count(5, 0, 80, 0),
             ("Buffer", "I"): Count(np.int64(9), 9, 0, 0)},
            {"DRAM": MemoryTraffic(65.0, 80.0, 40)}, "DRAM", 0.71)


def layer(**changes) -> LayerRecord:
    base = LayerRecord(("slide", "again"), 2, operator_record(OPERATOR, MACHINE),
                       mapping_record(OPERATOR, MACHINE, MAPPING, "levels: []"), cost_record(COST),
                       BoundsRecord(30, 38, 500.0, 19000.0), None, SearchRecord("random", 1, 100, 50, 0.1, "budget"))
    return replace(base, **changes)


def test_operator_and_mapping_come_back_equal():
    assert operator_of(layer()) == OPERATOR
    assert mapping_of(layer()) == MAPPING


def test_no_mapping_comes_back_as_an_error_with_the_reason():
    with pytest.raises(InputError, match=r"slide\.mapping.*Register is too small"):
        mapping_of(layer(mapping=None, reason="Register is too small"))


def test_rows_of_the_nest_name_loops_and_ragged_ends():
    rows = nest_rows(OPERATOR, MACHINE, MAPPING)
    assert [(row.indent, row.kind, row.text, row.trips) for row in rows] == [
        (0, "memory", "DRAM", 1),
        (1, "temporal", "for P in 0..9 by 4 (last 2)", 3),
        (2, "memory", "Buffer", 1),
        (3, "temporal", "for P in 0..3 by 2", 2),
        (4, "fanout", "array: 4 x 2 of 4 x 2", 8),
        (5, "spatial", "spread K in 0..7 by 2 along X", 4),
        (6, "spatial", "spread P in 0..1 along Y", 2),
        (7, "memory", "Register", 1),
        (8, "temporal", "for K in 0..1", 2),
        (9, "temporal", "for R in 0..2", 3),
        (10, "compute", "O += I x W", 1)]
    assert rows[-1].instances == 8 and rows[4].instances == 8


def test_rows_of_the_nest_hold_the_tiles_of_each_memory():
    dram, buffer, register = (row for row in nest_rows(OPERATOR, MACHINE, MAPPING) if row.kind == "memory")
    # inputs 2*P + R: 10 x 3 touches 21 of them, 4 x 3 touches 9, at four bits each
    assert [(tile.tensor, tile.words, tile.bytes) for tile in dram.tiles] == [
        ("I", 21, 10.5), ("W", 24, 24.0), ("O", 80, 160.0)]
    assert [(tile.tensor, tile.words, tile.bytes) for tile in buffer.tiles] == [("I", 9, 4.5), ("O", 32, 64.0)]
    assert (buffer.capacity_bytes, buffer.buffers, dram.capacity_bytes) == (64.0, 2, None)
    assert [(tile.tensor, tile.words, tile.capacity_bytes) for tile in register.tiles] == [("W", 6, 3.0)]
    assert (register.buffers, register.instances) == (1, 8)


def test_cost_becomes_plain_numbers():
    record = cost_record(COST)
    assert (record.latency_cycles, record.edp) == (42, 42 * 512.0)
    assert [(count.memory, count.tensor, count.reads, count.updates) for count in record.counts][2] == (
        "DRAM", "O", 5, 80)
    assert type(record.counts[3].reads) is int


def test_roofline_counts_bytes_of_the_outermost_memory():
    found = roofline_record(OPERATOR, MACHINE, COST)
    assert found.intensity_macs_per_byte == 240 / (40 * 0.5 + 20 + 85 * 2)
    assert found.achieved_macs_per_cycle == 240 / 42
    assert (found.peak_macs_per_cycle, found.bandwidth_bytes_per_cycle) == (8.0, 6.0)
    assert (found.side, found.memory) == ("memory", "DRAM")
    assert found.roof_macs_per_cycle == pytest.approx(6.0 * 240 / 210)
    assert RooflineRecord(0.001, 1, 8, None).side == "compute"


def test_totals_multiply_by_counts_and_tell_what_is_missing():
    machine = accelerator_record(MACHINE, "yaml")
    once = layer(count=1, cost=replace(layer().cost, energy_pj=100.0))
    totals = totals_of([layer(), once], machine, 1.5)
    assert (totals.latency_cycles, totals.energy_pj, totals.macs) == (126, 1124.0, 720)
    assert totals.edp == 126 * 1124.0
    assert totals.utilisation == 720 / (126 * 8)
    assert (totals.bound_latency_cycles, totals.bound_energy_pj, totals.bound_edp) == (114, 1500.0, 114 * 1500.0)
    assert (totals.samples, totals.seconds, totals.area_um2, totals.unmapped_layers) == (200, 1.5, 16.0, 0)
    missing = totals_of([layer(mapping=None, cost=None), once], machine, 1.5)
    assert (missing.unmapped_layers, missing.latency_cycles, missing.bound_latency_cycles) == (2, 42, 38)
    assert totals_of([layer(bounds=None), once], machine, 1.5).bound_edp is None
    assert totals_of([], machine, 0.0).utilisation == 0.0


def test_fingerprints_follow_content_alone():
    assert fingerprint(MACHINE) == fingerprint(replace(MACHINE))
    assert fingerprint(MACHINE) != fingerprint(replace(MACHINE, frequency_mhz=1.0))
    assert fingerprint({"a": 1, "b": np.float64(2.0)}) == fingerprint({"b": 2.0, "a": 1})
    renamed = replace(OPERATOR, name="other")
    assert operator_record(renamed, MACHINE).sha256 == operator_record(OPERATOR, MACHINE).sha256
    with pytest.raises(TypeError, match="no JSON form"):
        fingerprint({"a": object()})


def test_identities_are_fresh_and_versions_are_told():
    assert len({new_run_id() for _ in range(50)}) == 50
    software = software_record()
    assert software.numpy == np.__version__
    assert software.python.startswith("3.")
