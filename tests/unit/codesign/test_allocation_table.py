"""The table of allocation: legal cells, oracle's figures, published buffers, what the styles say they spread."""

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.codesign.allocation import PE_LEVELS, STYLES, PipelineStages, allocation_table, buffer_bytes
from tilewright.cost.reference import walk
from tilewright.hardware import preset
from tilewright.mapping import violations
from tilewright.workload import Graph, MacNode, convolution, depthwise, matmul

MACHINE = preset("confuciux")
LAYERS = (
    convolution("strided", in_channels=5, out_channels=7, out_size=(6, 5), kernel=3, stride=2),
    convolution("seven", in_channels=3, out_channels=5, out_size=(4, 4), kernel=7),
    convolution("five", in_channels=3, out_channels=4, out_size=(3, 7), kernel=5),
    convolution("point", in_channels=20, out_channels=13, out_size=(3, 4), kernel=1),
    convolution("grouped", in_channels=8, out_channels=6, out_size=(3, 3), kernel=3, groups=2),
    depthwise("depthwise", 11, out_size=(5, 4), kernel=3),
    depthwise("wide", 5, out_size=(4, 3), kernel=5, stride=2),
    matmul("product", 6, 14, 23),
    matmul("batched", 3, 4, 5, batch=3),
)
GRAPH = Graph("some", tuple(MacNode(layer, count=1 + i % 3) for i, layer in enumerate(LAYERS)))
STAGES = PipelineStages.of(GRAPH, MACHINE, styles=tuple(STYLES))


@pytest.fixture(scope="module")
def table():
    return allocation_table(STAGES)


def test_levels_are_those_of_table_8_1():
    assert PE_LEVELS == (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
    assert STAGES.buffers == (19, 29, 39, 49, 59, 69, 79, 89, 99, 109, 119, 129)
    assert buffer_bytes(12) == 9 * 12 + 9 + 12


@pytest.mark.sample(14)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_the_oracle_confirms_cells(table, layer, style):
    s, at, rng = STAGES.styles.index(style), LAYERS.index(layer), np.random.default_rng(5)
    for p, k in {*zip(rng.integers(12, size=5), rng.integers(12, size=5), strict=True), (4, 2), (11, 11)}:
        mapping, machine = STAGES.built(at, (s, p, k))
        assert violations(mapping, layer, machine) == ()
        cost, cell, runs = walk(layer, machine, mapping), (at, s, p, k), STAGES.runs[at]
        assert table.latency_cycles[cell] == runs * cost.latency_cycles
        assert table.energy_pj[cell] == pytest.approx(runs * cost.energy_pj, rel=1e-12)
        assert table.area_um2[cell] == pytest.approx(machine.area_um2, rel=1e-12)
        assert table.power_mw[cell] == pytest.approx(cost.energy_pj / cost.latency_cycles, rel=1e-12)  # at 1 GHz


def test_no_cell_is_quicker_than_its_elements(table):
    assert (table.latency_cycles * table.elements >= STAGES.macs[:, None, None, None]).all()
    assert (table.latency_cycles[:, :, 0] == STAGES.macs[:, None, None]).all()  # one element is always busy


def test_area_is_that_of_the_elements_and_what_the_mapping_needs(table):
    elements = table.elements * (4470 + 4505.2 / 64 * table.buffer_bytes)
    shared = (table.area_um2 - elements) * 32768 / 4161.5
    assert (shared > 64 - 1e-3).all()
    point, nvdla = 3, STAGES.styles.index("nvdla")
    # All 20 channels of one row of four columns, of its filters' weights, and those filters' sums.
    filters = np.minimum(13, np.minimum(np.array(PE_LEVELS)[:, None], -(-13 // np.arange(1, 13))) * np.arange(1, 13))
    assert shared[point, nvdla] == pytest.approx(np.maximum(64, 80 + 24 * filters), abs=1e-3)


@pytest.mark.parametrize(("style", "along", "elements", "busy"), [
    ("nvdla", "K@X", 4, 4), ("nvdla-release", "C@X", 4, 4), ("eyeriss", "P@X", 12, 9), ("shidiannao", "Q@Y", 12, 12)])
def test_styles_spread_what_they_are_named_for(style, along, elements, busy):
    layer = convolution("layer", in_channels=8, out_channels=8, out_size=(6, 4), kernel=3)
    graph = Graph("one", (MacNode(layer),))
    stages = PipelineStages.of(graph, MACHINE, styles=[style], elements=[elements], filters=[2])
    mapping, _ = stages.built(0, (0, 0, 0))
    assert along in str(mapping)
    table = allocation_table(stages)
    assert table.latency_cycles[0, 0, 0, 0] == layer.macs / busy


def test_depthwise_filters_bring_inputs_of_their_own():
    stages = PipelineStages.of(Graph("one", (MacNode(LAYERS[5]),)), MACHINE, elements=[1], filters=[12])
    mapping, machine = stages.built(0, (0, 0, 0))
    assert "G: 6" in str(mapping)  # six of 9 + 9 + 1 bytes each are in 129
    assert machine.level("L1").capacity_bytes == 129


def test_published_networks_have_their_layers():
    for name, layers, macs in (("mobilenet-v2", 52, 299_494_272), ("mnasnet", 52, None), ("resnet50", 53, None)):
        stages = PipelineStages.of(tw.load_network(name), MACHINE, convolutions=True)
        assert len(stages) == layers
        assert macs is None or stages.macs.sum() == macs


@pytest.mark.parametrize(("machine", "given", "message"), [
    (preset("eyeriss"), {}, "one flexible array"),
    (MACHINE, {"styles": ["dla"]}, "known style"),
    (MACHINE, {"elements": []}, "one or more positive"),
    (MACHINE, {"filters": [0]}, "one or more positive"),
    (MACHINE, {"styles": []}, "one or more"),
])
def test_stages_that_are_none_are_refused(machine, given, message):
    with pytest.raises(InputError, match=message):
        PipelineStages.of(GRAPH, machine, **given)
    with pytest.raises(InputError, match="must have a layer"):
        PipelineStages.of(Graph("none", (MacNode(LAYERS[-1]),)), MACHINE, convolutions=True)


def test_words_wider_than_a_byte_are_refused():
    wide = replace(MACHINE, word_bits=(("inputs", 16), ("weights", 16), ("outputs", 16)))
    with pytest.raises(InputError, match="words of 8 bits"):
        allocation_table(PipelineStages.of(GRAPH, wide))
