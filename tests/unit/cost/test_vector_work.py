"""What vector work takes, counted by hand; what is folded; and that softmax bounds attention as FuseMax found."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from tilewright.cost import HardwareBatch, Totals, VectorModel, kept_bounds, vector_work
from tilewright.hardware import (
    Accelerator,
    AccessEnergy,
    Bandwidth,
    Compute,
    Fanout,
    Memory,
    VectorUnit,
    preset,
    preset_names,
)
from tilewright.workload import (
    DataMovement,
    Edges,
    Graph,
    MacNode,
    Result,
    Unmodelled,
    VectorOperator,
    linear,
    table_graph,
    unique_operators,
    zoo,
)

ALL = ("inputs", "weights", "outputs")
MACHINE = Accelerator(
    "small",
    (Memory("DRAM", ALL, AccessEnergy(100, 0, 200, 0), word_bits=16, bandwidth=Bandwidth(shared=2.0)),
     Memory("Weights", ("weights",), AccessEnergy(1, 1, 1, 1), capacity_bytes=64, bandwidth=Bandwidth(shared=0.001)),
     Memory("Buffer", ("inputs", "outputs"), AccessEnergy(1, 2, 3, 4), capacity_bytes=640,
            bandwidth=Bandwidth(read=5.0, write=4.0)),
     Fanout("array", (4, 2)),
     Memory("Spads", ALL, AccessEnergy(1, 1, 1, 1), capacity_bytes=64, bandwidth=Bandwidth(read=0.5, write=1.0))),
    Compute("MAC", 0.5), vector=VectorUnit(8, energy_pj_per_operation=0.25))


def net(*nodes):
    return Graph("net", (MacNode(linear("fc", rows=10, in_features=4, out_features=10)), *nodes))


def relu(name="relu", behind="fc", words=100, **more):
    return VectorOperator(name, "Relu", words, words, words, (behind,), **more)


def one(graph, machine=MACHINE):
    (found,) = vector_work(graph, machine)
    return found


def unit(**fields):
    return replace(MACHINE, vector=replace(MACHINE.vector, **fields))


def test_words_pass_every_memory_between_home_and_the_unit():
    """100 words of 8 bits each way are 50 of DRAM's; the buffer is filled and read, updated and drained."""
    found = one(net(relu()))
    assert (found.kind, found.folded, found.bottleneck) == ("relu", "", "DRAM")
    assert found.latency_cycles == (50 + 50) / 2  # buffer: 200 / 5 and 200 / 4 = 50 too; lanes: 13
    assert found.energy_by_component_pj == {
        "DRAM": 50 * 100 + 50 * 200, "Buffer": 100 * (1 + 2 + 3 + 4), "vector unit": 100 * 0.25}
    assert found.energy_pj == 15_000 + 1_000 + 25


@pytest.mark.parametrize(("memory", "cycles", "energy"), [
    ("DRAM", 50, {"DRAM": 15_000, "vector unit": 25}),
    # Eight instances of half a word read and a whole one written a cycle: 200 / 4 and 200 / 8.
    ("Spads", 50, {"DRAM": 15_000, "Buffer": 1_000, "Spads": 400, "vector unit": 25})])
def test_the_unit_may_stand_elsewhere(memory, cycles, energy):
    found = one(net(relu()), unit(memory=memory))
    assert (found.latency_cycles, found.energy_by_component_pj) == (cycles, energy)


def test_lanes_and_rates_set_the_pace_where_they_are_slower():
    norm = VectorOperator("y", "LayerNormalization", 800, 100, 100, ("fc",))
    assert one(net(norm)).latency_cycles == 100 and one(net(norm)).bottleneck == "vector unit"
    assert one(net(norm), unit(operations_per_cycle=(("layer_norm", 0.3),))).latency_cycles == ceil(800 / 0.3)
    assert one(net(norm), unit(operations_per_cycle=(("softmax", 1),))).latency_cycles == 100
    assert one(net(norm), unit(lanes=1000)).latency_cycles == 50


def test_widths_blocks_and_leakage():
    wide = one(net(relu(word_bits=32)))
    assert wide.latency_cycles == 200 and wide.energy_by_component_pj["DRAM"] == 200 * 100 + 200 * 200
    blocks = tuple(replace(level, block_words=64) if level.name == "DRAM" else level for level in MACHINE.levels)
    assert one(net(relu()), replace(MACHINE, levels=blocks)).energy_by_component_pj["DRAM"] == 64 * (100 + 200)
    leaks = replace(MACHINE, compute=replace(MACHINE.compute, leakage_mw=2.0))
    assert one(net(relu()), leaks).energy_by_component_pj["leakage"] == 8 * 2.0 * 50 / 1000 * 1000
    free = tuple(replace(level, bandwidth=Bandwidth()) if isinstance(level, Memory) else level
                 for level in MACHINE.levels)
    assert one(net(relu()), replace(MACHINE, levels=free)).latency_cycles == 13


def test_copies_take_words_alone_and_views_nothing():
    copy, view = DataMovement("t", "Transpose", 100, 60, ("fc",)), DataMovement("v", "Reshape", 0, 0, ("fc",))
    found = one(net(copy, view))
    assert (found.kind, found.latency_cycles) == ("copy", 40)
    assert found.energy_by_component_pj == {"DRAM": 50 * 100 + 30 * 200, "Buffer": 100 * 3 + 60 * 7, "vector unit": 0}


FOLDED = [
    # what the machine folds, nodes behind a layer of 100 words, cycles of each, and what each is folded into
    (("relu",), (relu(),), [0], ["fc"]),
    (("bias", "relu"), (VectorOperator("bias", "Add", 100, 110, 100, ("fc",)), relu(behind="bias")),
     [3, 0], ["fc", "bias"]),  # the ten words of the bias: 5 of DRAM's at 2 a cycle, 10 that fill the buffer at 4
    (("relu",), (DataMovement("view", "Reshape", 0, 0, ("fc",)), relu(behind="view")), [0], ["fc"]),
    (("relu",), (relu(), relu("again")), [50, 50], ["", ""]),  # both read it
    (("relu",), (relu(count=2),), [50], [""]),  # it runs twice
    (("tanh",), (relu(),), [50], [""]),
    (("relu",), (Unmodelled("odd", "Odd", "none", inputs=("fc",)), relu(behind="odd")), [50], [""]),
    # A sum of two results on the lanes, 200 words in and 100 out; the ReLU behind it takes lanes, but moves nothing.
    (("relu",), (DataMovement("t", "Transpose", 100, 100), VectorOperator("sum", "Add", 100, 200, 100, ("fc", "t")),
                 relu(behind="sum")), [50, 75, 0], ["", "", "sum"]),
    # Folded into the later one of its makers, which is not the layer: the layer's result is brought in.
    (("add",), (DataMovement("t", "Transpose", 100, 100), VectorOperator("sum", "Add", 100, 200, 100, ("fc", "t"))),
     [75, 0], ["", "t"]),
]


def test_nothing_is_folded_behind_a_result_that_leaves_the_network_as_it_is():
    (layer, behind) = net(relu()).nodes
    for leaves, folded in ((None, "fc"), (False, "fc"), (True, "")):
        own = replace(layer, edges=Edges((), (Result("fc", (10, 10), leaves=leaves),)))
        assert one(Graph("net", (own, behind)), unit(folds=("relu",))).folded == folded


def test_what_leaves_a_pass_is_what_its_last_operator_makes():
    """100 words in and, behind a pooling that is folded, 25 out: 125 bytes over 4 a cycle, of DRAM and into Buffer."""
    tanh, pool = (VectorOperator(name, name, 100, 100, words, (behind,))
                  for name, words, behind in (("Tanh", 100, "fc"), ("MaxPool", 25, "Tanh")))
    first, second = vector_work(net(tanh, pool), unit(folds=("max_pool",)))
    assert (first.latency_cycles, first.traffic_bytes, second.latency_cycles) == (ceil(125 / 4), 125, 0)


@pytest.mark.parametrize(("folds", "nodes", "cycles", "behind"), FOLDED)
def test_what_is_folded(folds, nodes, cycles, behind):
    found = vector_work(net(*nodes), unit(folds=folds))
    assert [work.folded for work in found] == behind
    assert [work.latency_cycles for work in found] == cycles
    assert all(work.energy_by_component_pj["vector unit"] == 0.25 * getattr(work.node, "operations", 0)
               for work in found)


def test_operations_folded_into_vector_work_take_its_lanes():
    nodes = relu("a", words=100), VectorOperator("b", "Tanh", 500, 100, 100, ("a",))
    first, second = vector_work(net(*nodes), unit(folds=("tanh",)))
    assert (first.latency_cycles, second.latency_cycles) == (600 / 8, 0)
    layer = vector_work(net(*nodes), unit(folds=("relu", "tanh")))
    assert [work.latency_cycles for work in layer] == [0, 0]


@pytest.mark.parametrize("network", ["resnet50", "bert-base", "densenet121", "gnmt"])
@pytest.mark.parametrize("name", ["eyeriss", "tpu-like", "nvdla-like", "shidiannao-like"])
def test_more_never_takes_longer(network, name):
    """More lanes, or more that is folded, takes no more cycles and no more energy."""
    graph, machine = zoo.load(network), preset(name)

    def total(**fields):
        work = vector_work(graph, replace(machine, vector=replace(machine.vector, **fields)))
        return Totals.of((one.node.count, one) for one in work)

    given, few, none = total(), total(lanes=1, operations_per_cycle=()), total(folds=())
    every = total(folds=tuple({*machine.vector.folds, "add", "gelu", "softmax", "copy", "layer_norm", "cell"}))
    assert given.latency_cycles <= few.latency_cycles and given.latency_cycles <= none.latency_cycles
    assert every.latency_cycles <= given.latency_cycles
    assert every.energy_pj <= given.energy_pj * (1 + 1e-12) and given.energy_pj <= none.energy_pj * (1 + 1e-12)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_runs_it(name):
    work = vector_work(zoo.load("resnet18"), preset(name))
    total = Totals.of((one.node.count, one) for one in work)
    assert total.latency_cycles > 0 and total.energy_pj > 0
    assert {one.kind for one in work} == {"relu", "max_pool", "add", "average_pool"}


RATE = "bandwidth_words_per_cycle."
VARIES = {"small": {("array", "x"): (1, 9), ("array", "y"): (1, 9), ("DRAM", f"{RATE}shared"): (0.3, 7),
                    ("Buffer", f"{RATE}read"): (0.1, 9), ("MAC", "energy_pj_per_mac"): (0.1, 2),
                    ("Buffer", "fill_energy_pj_per_word"): (1, 5)},
          "eyeriss": {("PEs", "x"): (1, 20), ("DRAM", f"{RATE}shared"): (0.7, 9),
                      ("GLB", "capacity_bytes"): (9_000, 200_000)},
          "simba-like": {("PEs", "x"): (1, 9), ("Lanes", "x"): (1, 9)}}


@pytest.mark.parametrize("network", ["resnet18", "bert-base"])
@pytest.mark.parametrize(("machine", "vector"), [
    (MACHINE, VectorUnit(8, energy_pj_per_operation=0.25, folds=("add",))), (MACHINE, None),
    (replace(MACHINE, compute=Compute("MAC", 0.5, leakage_mw=0.2)), VectorUnit(3, "DRAM", None, (("softmax", 0.7),))),
    (preset("eyeriss"), preset("eyeriss").vector), (preset("eyeriss"), None), (preset("simba-like"), None)])
def test_many_machines_take_what_each_does(network, machine, vector):
    machine, graph = replace(machine, vector=vector), zoo.load(network)
    rng = np.random.default_rng(7)
    rows = HardwareBatch({key: np.round(rng.uniform(*ends, 8), 0 if key[1] in ("x", "y", "capacity_bytes") else 2)
                          for key, ends in VARIES[machine.name].items()})
    latency, energy = VectorModel(graph, machine).sums(rows)
    for row in range(8):
        one = Totals.beside(graph, rows.machine(row, machine))
        assert (latency[row], energy[row]) == (one.latency_cycles, pytest.approx(one.energy_pj))
    whole = VectorModel(graph, machine).sums(HardwareBatch())
    assert [each.tolist() for each in whole] == [[Totals.beside(graph, machine).latency_cycles],
                                                 [pytest.approx(Totals.beside(graph, machine).energy_pj)]]


def attention(side, lanes):
    """One layer of BERT's attention, and a machine with a square array and DRAM of 400 GB/s at 940 MHz."""
    energy = AccessEnergy(1, 1, 1, 1)
    machine = Accelerator(
        "square", (Memory("DRAM", ALL, energy, bandwidth=Bandwidth(shared=425.0)),
                   Memory("Buffer", ALL, energy, capacity_bytes=16 * 2**20, bandwidth=Bandwidth(2048.0, 2048.0)),
                   Fanout("array", (side, side)), Memory("RF", ALL, energy, capacity_bytes=64)),
        frequency_mhz=940.0, vector=VectorUnit(lanes))
    block = {"transformer": {"name": "encoder", "repeat": 1, "heads": 12, "feedforward": 3072}}
    graph = table_graph({"name": "bert", "input": [4096, 768], "layers": [block]})
    parts = tuple(node for node in graph.nodes if node.name.endswith((".scores", ".context", ".softmax")))
    kept = {node.name for node in parts}
    graph = Graph("attention", tuple(replace(node, inputs=tuple(set(node.inputs) & kept)) for node in parts))
    layers = Totals.of((unique.count, kept_bounds(unique.operator, machine)) for unique in unique_operators(graph))
    (softmax,) = vector_work(graph, machine)
    return layers.latency_cycles, softmax


def test_softmax_bounds_attention_where_the_array_has_one_row_of_lanes():
    """FuseMax (Nayak et al., MICRO 2024): on a 2-D array with a 1-D one, what is not products limits attention.

    Of each score, two products of 64 take 128 / 128^2 cycles of the array, and five operations 5 / 128 of the lanes:
    five times as much, whatever the length of the sequence.
    """
    products, softmax = attention(128, 128)
    assert softmax.kind == "softmax" and softmax.bottleneck == "vector unit"
    assert softmax.latency_cycles == 12 * 4096**2 * 5 / 128
    assert softmax.latency_cycles / products == pytest.approx(5, rel=0.01)
    products, softmax = attention(128, 128 * 128)  # with a lane for each multiplier the words limit it
    assert softmax.bottleneck == "DRAM" and softmax.latency_cycles < products
