"""From nouns to records and back."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import Cost, Count, MemoryTraffic, layer_bounds, vector_work
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping, NestRoom, load_mapping, render
from tilewright.store import (
    BoundsRecord,
    CoverageRecord,
    LayerRecord,
    RooflineRecord,
    SearchRecord,
    VectorRecord,
    accelerator_of,
    cost_record,
    fingerprint,
    mapping_of,
    new_run_id,
    operator_of,
)
from tilewright.store.build import (
    accelerator_record,
    bounds_record,
    network_record,
    not_modelled,
    operator_record,
    roofline_record,
    software_record,
    totals_of,
    vector_records,
)
from tilewright.store.layer_records import mapping_record
from tilewright.workload import (
    Axis,
    DataMovement,
    Graph,
    MacNode,
    Operator,
    Tensor,
    Unmodelled,
    VectorOperator,
    with_densities,
)

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
     Memory("Register", ("weights", "outputs"), ENERGY, partitions_bytes=(("weights", 3), ("outputs", 9)),
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
                       mapping_record(OPERATOR, MACHINE, MAPPING), cost_record(COST),
                       BoundsRecord(30, 38, 38, 500.0, 19000.0), None,
                       SearchRecord("random", 1, 100, 50, 0.1, "samples"))
    return replace(base, **changes)


def test_operator_and_mapping_come_back_equal():
    assert operator_of(layer()) == OPERATOR
    assert mapping_of(layer()) == MAPPING
    even = with_densities(OPERATOR, {"inputs": "even:0.5", "weights": "1:2"})
    assert operator_of(layer(operator=operator_record(even, MACHINE))) == even
    plain = with_densities(OPERATOR, {"inputs": 0.5, "weights": "1:2"})
    assert operator_record(even, MACHINE).sha256 != operator_record(plain, MACHINE).sha256


def test_no_mapping_comes_back_as_an_error_with_the_reason():
    with pytest.raises(InputError, match=r"slide\.mapping.*Register is too small"):
        mapping_of(layer(mapping=None, reason="Register is too small"))


def test_a_mapping_is_kept_as_data_yaml_text_and_rows():
    record = layer().mapping
    assert load_mapping(record.yaml, OPERATOR, MACHINE) == MAPPING
    assert record.text == render(MAPPING, OPERATOR, MACHINE)
    assert [(row.kind, row.level, row.count, row.instances) for row in record.nest] == [
        ("memory", "DRAM", 1, 1), ("for", "DRAM", 3, 1), ("memory", "Buffer", 1, 1), ("for", "Buffer", 2, 1),
        ("fanout", "array", 1, 1), ("par-for", "array", 4, 1), ("par-for", "array", 2, 1),
        ("memory", "Register", 1, 8), ("for", "Register", 2, 8), ("for", "Register", 3, 8), ("compute", "MAC", 1, 8)]


def test_rows_hold_the_tiles_and_rooms_of_each_memory():
    dram, buffer, register = (row for row in layer().mapping.nest if row.kind == "memory")
    # inputs 2*P + R: 10 x 3 touches 21 of them, 4 x 3 touches 9, at four bits each
    assert [(tile.tensor, tile.words, tile.bytes) for tile in dram.tiles] == [
        ("I", 21, 10.5), ("W", 24, 24.0), ("O", 80, 160.0)]
    assert [(tile.tensor, tile.role, tile.words, tile.bytes) for tile in buffer.tiles] == [
        ("I", "inputs", 9, 4.5), ("O", "outputs", 32, 64.0)]
    assert buffer.rooms == (NestRoom(None, 137.0, 64.0, 2),)
    assert dram.rooms[0].capacity_bytes is None
    assert [(tile.tensor, tile.words, tile.partition) for tile in register.tiles] == [("W", 6, "weights")]
    assert register.rooms == (NestRoom("weights", 6.0, 3.0, 1),)


def test_cost_becomes_plain_numbers():
    record = cost_record(COST)
    assert (record.latency_cycles, record.edp) == (42, 42 * 512.0)
    assert [(count.memory, count.tensor, count.reads, count.updates) for count in record.counts][2] == (
        "DRAM", "O", 5, 80)
    assert type(record.counts[3].reads) is int


def test_roofline_counts_bytes_of_the_outermost_memory():
    found = roofline_record(OPERATOR, MACHINE, COST)
    assert found.intensity_macs_per_byte == 240 / (40 * 0.5 + 20 + 85 * 2)
    assert found.compulsory_macs_per_byte == pytest.approx(240 / (21 * 0.5 + 24 + 80 * 2))
    assert found.achieved_macs_per_cycle == 240 / 42
    assert (found.peak_macs_per_cycle, found.bandwidth_bytes_per_cycle) == (8.0, 6.0)
    assert (found.side, found.memory) == ("memory", "DRAM")
    assert found.roof_macs_per_cycle == pytest.approx(6.0 * 240 / 210)
    assert RooflineRecord(0.001, 1, 8, None).side == "compute"


def test_bounds_are_taken_over():
    bounds = layer_bounds(OPERATOR, MACHINE)
    record = bounds_record(bounds, score=7)
    assert (record.latency_cycles, record.energy_pj, record.edp) == (
        bounds.latency_cycles, bounds.energy_pj, bounds.edp)
    assert record.data_movement_cycles == bounds.data_movement_cycles
    assert record.latency_binding == bounds.latency_binding
    assert (record.score, type(record.score), bounds_record(bounds).score) == (7.0, float, None)


def test_networks_are_told_with_what_is_beside_the_layers():
    graph = Graph("net", (
        MacNode(OPERATOR, count=2),
        VectorOperator("relu1", "Relu", 80, 80, 80, count=2, approximated_as="one operation a word"),
        VectorOperator("relu2", "Relu", 10, 10, 10, word_bits=16, approximated_as="one operation a word"),
        DataMovement("turn", "Transpose", 5, 5), Unmodelled("top", "ArgMax", "no model")), "a file", ("N bound to 1",))
    record = network_record(graph, 8)
    assert (record.name, record.source, record.notes) == ("net", "a file", ("N bound to 1",))
    assert "480 MACs" in record.coverage
    assert record.covered == CoverageRecord(480, 0, record.covered.bytes, 0.0, 0, 1, record.covered.figures)
    assert record.covered.bytes == 2 * (21 / 2 + 24 + 80) + 2 * 160 + 40 + 10 and not record.covered.complete
    work = vector_work(graph, MACHINE)
    assert vector_records(work, 8, free=True) == (
        VectorRecord("relu", ("relu1", "relu2"), 3, 170, 360.0, "one operation a word"),
        VectorRecord("copy", ("turn",), 1, 0, 10.0, ""))
    relu, copy = vector_records(work, 8)
    assert (relu.latency_cycles, copy.latency_cycles) == (
        2 * work[0].latency_cycles + work[1].latency_cycles, work[2].latency_cycles)
    assert relu.energy_pj == 2 * work[0].energy_pj + work[1].energy_pj
    assert (relu.bottleneck, relu.folded) == (work[0].bottleneck, False)
    assert not_modelled(graph) == ("ArgMax top: no model",)
    renamed = replace(graph, name="other", nodes=graph.nodes[:1])
    assert network_record(renamed).sha256 == record.sha256
    once = replace(graph, nodes=(replace(graph.nodes[0], count=1),))
    assert network_record(once).sha256 != record.sha256


def test_a_machine_is_kept_whole():
    record = accelerator_record(MACHINE)
    assert accelerator_of(record) == MACHINE
    assert (record.compute_instances, record.area_um2, record.frequency_mhz) == (8, 16.0, 1000.0)
    assert "Buffer" in record.description


def test_totals_multiply_by_counts_and_tell_what_is_missing():
    machine = accelerator_record(MACHINE)
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
    tensors = tuple(replace(tensor, type="int8") for tensor in once.operator.tensors)  # of which lanes may do several
    typed = [replace(one, operator=replace(one.operator, tensors=tensors)) for one in (layer(), once)]
    assert totals_of(typed, machine, 1.5).utilisation == pytest.approx(0.71)


@pytest.mark.parametrize(("objective", "score", "least"), [
    ("latency", 41.0, (3 * 41, 1500.0, 3 * 41 * 1500.0)), ("energy", 502.5, (114, 1507.5, 114 * 1507.5)),
    ("edp", 40_000.0, (114, 1500.0, 3 * 3 * 40_000.0)), ("edp", 1.0, (114, 1500.0, 114 * 1500.0)),
    ("power", 1e9, (114, 1500.0, 114 * 1500.0))])
def test_what_was_proven_of_the_layers_bounds_the_totals(objective, score, least):
    one = layer()
    both = [replace(each, bounds=replace(each.bounds, score=score)) for each in (one, layer(count=1))]
    totals = totals_of(both, accelerator_record(MACHINE), 0.0, objective=objective)
    assert (totals.bound_latency_cycles, totals.bound_energy_pj, totals.bound_edp) == pytest.approx(least, rel=1e-9)


def test_fingerprints_follow_content_alone():
    assert fingerprint(MACHINE) == fingerprint(replace(MACHINE))
    assert fingerprint(MACHINE) != fingerprint(replace(MACHINE, frequency_mhz=1.0))
    assert fingerprint({"a": 1, "b": np.float64(2.0)}) == fingerprint({"b": 2.0, "a": 1})
    renamed = replace(OPERATOR, name="other")
    assert operator_record(renamed, MACHINE).sha256 == operator_record(OPERATOR, MACHINE).sha256
    with pytest.raises(TypeError, match="no place in a record"):
        fingerprint({"a": object()})


def test_identities_are_fresh_and_versions_are_told():
    assert len({new_run_id() for _ in range(50)}) == 50
    software = software_record()
    assert software.numpy == np.__version__
    assert software.python.startswith("3.")


def test_machines_of_one_name_have_records_of_their_own():
    elsewhere = replace(MACHINE, sources=("elsewhere",))
    records = [accelerator_record(one) for one in (MACHINE, replace(MACHINE, frequency_mhz=7), elsewhere, MACHINE)]
    assert elsewhere == MACHINE and records[0] == records[3]
    assert [record.frequency_mhz for record in records[:2]] == [MACHINE.frequency_mhz, 7]
    assert "elsewhere" in records[2].definition and records[2].sources == ("elsewhere",) != records[3].sources
