"""Fixed dataflows: legal for any layer on any machine, and true to their names."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, preset, preset_names
from tilewright.mapping import MappingBatch, dataflow, extents_at, violations
from tilewright.mapping.dataflows import DATAFLOWS, classes_of

MACHINES = ("spads", "plain", "scalar", "flexible", "blocks", "systolic", "chiplets")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", list(DATAFLOWS))
def test_legal_and_encodable_for_every_layer(machines, layers, name, machine):
    for layer in layers.values():
        mapping = dataflow(name, layer, machines[machine])
        assert violations(mapping, layer, machines[machine]) == (), layer.name
        assert len(MappingBatch.from_mappings([mapping], layer, machines[machine])) == 1


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", preset_names())
def test_legal_on_every_preset(layers, name):
    accelerator = preset(name)
    for flow in DATAFLOWS:
        for layer in layers.values():
            assert violations(dataflow(flow, layer, accelerator), layer, accelerator) == (), f"{flow} of {layer.name}"


def spread(mapping, level):
    return {(loop.dimension, loop.axis) for loop in mapping.at(level).loops}


@pytest.mark.parametrize(("name", "expected"), [
    ("nvdla", {("K", "X"), ("C", "Y")}),
    ("eyeriss", {("P", "X"), ("R", "Y"), ("C", "Y")}),
    ("row-stationary", {("P", "X"), ("R", "Y"), ("C", "Y")}),
    ("shidiannao", {("Q", "X"), ("P", "Y")}),
    ("weight-stationary", {("K", "X"), ("C", "Y")}),
    ("output-stationary", {("Q", "X"), ("P", "Y")}),
    ("input-stationary", {("C", "X"), ("Q", "Y")}),
])
def test_a_convolution_is_spread_as_the_name_says(machines, layers, name, expected):
    assert spread(dataflow(name, layers["conv3x3"], machines["spads"]), "PEs") == expected


@pytest.mark.parametrize(("name", "expected"), [
    ("nvdla", {("N", "X"), ("K", "Y")}),
    ("eyeriss", {("M", "X"), ("K", "Y")}),
    ("shidiannao", {("M", "Y")}),
    ("output-stationary", {("N", "X"), ("M", "Y")}),
    ("input-stationary", {("K", "X"), ("M", "Y")}),
])
def test_a_matrix_product_by_the_tensors_that_use_its_dimensions(machines, layers, name, expected):
    assert spread(dataflow(name, layers["gemm"], machines["systolic"]), "array") == expected


@pytest.mark.parametrize(("name", "tensor"), [
    ("weight-stationary", "W"), ("nvdla", "W"), ("output-stationary", "O"), ("shidiannao", "O"),
    ("input-stationary", "I")])
def test_the_stationary_tensor_stays_while_others_pass(machines, layers, name, tensor):
    """At every memory, no loop that moves the stationary tensor runs inside one that does not."""
    for machine in MACHINES:
        for layer in layers.values():
            if tensor not in {t.name for t in layer.tensors}:
                continue
            used = layer.tensor(tensor).dimensions
            mapping = dataflow(name, layer, machines[machine])
            for memory in machines[machine].memories:
                moves = [loop.dimension in used for loop in mapping.at(memory.name).loops]
                assert moves == sorted(moves, reverse=True)


def test_partial_sums_do_not_leave_for_the_outermost_memory(machines, layers):
    """A buffer that keeps no outputs, with registers that do: its reductions run innermost, whatever is stationary.

    Outer products are what they are because they do not.
    """
    dram, l2, array, l1 = machines["flexible"].levels
    spilling = Accelerator("spilling", (dram, replace(l2, keeps=("inputs", "weights")), array, l1))
    for name in DATAFLOWS:
        for layer in layers.values():
            loops = dataflow(name, layer, spilling).at("L2").loops
            reduces = [loop.dimension not in layer.output.dimensions for loop in loops]
            assert reduces == sorted(reduces, reverse=DATAFLOWS.get(name).reductions_first)


def test_arrays_fill_up_where_sizes_do_not_divide(machines, layers):
    """1x1 with 96 and 17 channels: 17 filters take 2 passes of 9 on a side of 14, 96 channels 8 of 12."""
    entry = dataflow("nvdla", layers["pointwise"], machines["spads"]).at("PEs")
    counts = {}
    extents = extents_at(dataflow("nvdla", layers["pointwise"], machines["spads"]), layers["pointwise"].sizes)[2]
    for loop in entry.loops:
        counts[loop.dimension] = -(-extents[loop.dimension] // loop.step)
    assert counts == {"K": 9, "C": 12}


def test_a_flexible_array_takes_the_shape_that_needs_the_fewest_passes(machines, layers):
    flexible = machines["flexible"]
    mapping = dataflow("nvdla", layers["gemm"], flexible)
    extents = extents_at(mapping, layers["gemm"].sizes)[2]
    lanes = [-(-extents[loop.dimension] // loop.step) for loop in mapping.at("PEs").loops]
    assert lanes[0] * lanes[1] >= 0.8 * 168


def test_a_memory_without_room_for_a_word_lets_the_tensor_pass(machines, layers):
    dram, l2, array, l1 = machines["flexible"].levels
    tiny = Accelerator("tiny", (dram, l2, array, replace(l1, capacity_bytes=2.0)))
    for name in DATAFLOWS:
        mapping = dataflow(name, layers["conv3x3"], tiny)
        assert mapping.at("L1").keeps == ("I", "W")
        assert violations(mapping, layers["conv3x3"], tiny) == ()


def test_fewer_lanes_where_a_buffer_cannot_hold_a_tile_as_wide_as_the_array(machines, layers):
    dram, l2, array, l1 = machines["flexible"].levels
    narrow = Accelerator("narrow", (dram, replace(l2, capacity_bytes=96.0), array, l1))
    for name in DATAFLOWS:
        assert violations(dataflow(name, layers["stem"], narrow), layers["stem"], narrow) == ()


def test_dimensions_are_classed_by_use(layers):
    conv = classes_of(layers["conv3x3"])
    assert (conv["filters"], conv["channels"], conv["window"], conv["rows"], conv["columns"], conv["batch"]) == (
        ("K",), ("C",), ("R", "S"), ("P",), ("Q",), ("N",))
    assert conv["window rows"] == ("R",)
    gemm = classes_of(layers["attention"])
    assert (gemm["filters"], gemm["channels"], gemm["rows"], gemm["groups"]) == (("N",), ("K",), ("M",), ("B",))
    assert classes_of(layers["depthwise"])["groups"] == ("G",)


def test_bad_requests_are_input_errors(machines, layers):
    with pytest.raises(InputError, match="Did you mean eyeriss"):
        dataflow("eyeris", layers["gemm"], machines["plain"])
    dram = replace(machines["scalar"].levels[0], capacity_bytes=10.0)
    with pytest.raises(InputError, match=r"small\.DRAM: must be able to keep all tensors whole"):
        dataflow("nvdla", layers["gemm"], Accelerator("small", (dram,)))
