"""What words tensors have on a machine, and what its lanes make of them."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tilewright.api import bounds, evaluate, map_space
from tilewright.api.inputs import load_layers
from tilewright.base import InputError
from tilewright.hardware import Precision, dump_accelerator, load_accelerator, number_type, preset
from tilewright.mapping import held_bits, lane_use, precise, precise_graph, smallest_mapping, tensor_bits
from tilewright.workload import DataMovement, Graph, MacNode, VectorOperator, matmul

MACHINE = """
name: small
technology: 45nm
frequency_mhz: 200
word_bits: {inputs: 8, weights: 8, outputs: 24}
levels:
  - {memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4}
compute:
  type: int
  width_bits: 8
  precisions: {int4: {macs_per_cycle: 2}, fp16: {macs_per_cycle: 0.5, energy: 3, partial_bits: 32}, "fp16*int4": {}}
"""


def typed(inputs, weights, outputs):
    return replace(matmul("m", 4, 4, 4), attributes=(("types", f"{inputs},{weights},{outputs}"),))


@pytest.mark.parametrize(("name", "found", "bits"), [
    ("float", "fp32", 32), ("torch.bfloat16", "bf16", 16), ("uint8", "int8", 8), ("float8_e4m3fn", "fp8", 8),
    ("FLOAT8E5M2", "fp8", 8), ("mxfp4", "fp4", 4.25), ("nvfp4", "fp4", 4.5), ("int4+20/128", "int4", 4.15625),
    ("tf32", "tf32", 32), ("int4+16/32", "int4", 4.5)])
def test_types_go_by_the_names_of_files_and_people(name, found, bits):
    kind = number_type(name)
    assert (kind.name, kind.word_bits) == (found, bits)


@pytest.mark.parametrize("name", ["int", "int4+16", "int4+16/48", "complex64", "fp99", "string", ""])
def test_what_is_no_type_is_none(name):
    assert number_type(name) is None


@pytest.mark.parametrize(("inputs", "weights", "cycles", "energy"), [
    ("int8", "int8", 1, 1), ("int8", "int4", 1, 1), ("int4", "int4", Fraction(1, 2), None),
    ("fp16", "fp16", 2, 3), ("fp16", "int4", 1, None), ("fp16", "int8", 2, 3), ("int16", "int16", 2, 3),
    ("fp8", "fp8", 1, 1), ("int16", "fp32", 8, 8), ("fp32", "int8", 4, 4)])
def test_lanes_take_what_is_stated_else_the_next_wider_else_parts(inputs, weights, cycles, energy):
    """Two of 8 bits by four; the TPU's rule: half speed where one operand is twice as wide, a quarter where both."""
    machine = load_accelerator(MACHINE)
    use = lane_use(precise(typed(inputs, weights, ""), machine, "model"), machine)
    assert use.cycles == cycles
    assert energy is None or use.energy == energy


def test_energy_of_a_precision_follows_the_technology_or_the_cycle():
    machine = load_accelerator(MACHINE)
    four, sixteen, mixed = machine.precisions
    assert sixteen == Precision("fp16", "fp16", 0.5, 3.0, 32)
    assert four.energy == 0.5 and any("int4: not known, the same every cycle" in line for line in machine.assumptions)
    assert mixed.energy == pytest.approx(1.1 / 0.2, rel=0.2)  # a product of fp16 over one of int8, Horowitz 2014
    assert load_accelerator(dump_accelerator(machine)) == machine


@pytest.mark.parametrize(("text", "bits"), [
    ("auto", (8, 4, 24)), ("model", (32, 4, 16)), ("machine", (8, 8, 24)), ("fp16", (16, 16, 16)),
    ("weights=mxfp4", (8, 4.25, 24)), ("inputs=fp16,outputs=fp16", (16, 8, 16))])
def test_words_are_the_models_or_what_is_asked_for(text, bits):
    """Where nobody chose, files hold fp32: only ``model`` takes it."""
    machine = load_accelerator(MACHINE)
    operator = precise(typed("float", "int4", "half" if text == "model" else "float"), machine, text)
    assert tuple(float(tensor_bits(tensor, machine)) for tensor in operator.tensors) == bits
    assert precise(operator, machine) is operator  # settled once


def test_partial_sums_are_as_wide_as_the_machine_says():
    machine = load_accelerator(MACHINE)
    small, half = (precise(typed(kind, kind, kind), machine).output for kind in ("int8", "fp16"))
    assert [held_bits(small, machine), tensor_bits(small, machine)] == [24, 8]
    assert held_bits(half, machine) == 32  # stated with fp16
    given = load_accelerator(MACHINE.replace("outputs: 24}", "outputs: 8, partial_sums: 20}"))
    assert [held_bits(matmul("m", 4, 4, 4).output, given), tensor_bits(matmul("m", 4, 4, 4).output, given)] == [20, 8]


def test_a_network_tells_its_words_and_what_was_not_taken():
    machine, attributes = preset("tpu-like"), (("element_type", "float16"),)
    graph = Graph("net", (
        MacNode(typed("float16", "float16", "float16")), MacNode(replace(typed("float", "float", "float"), name="n")),
        VectorOperator("v", "Relu", 4, 4, 4, attributes=attributes),
        DataMovement("d", "Transpose", 4, 4, attributes=attributes)))
    found = precise_graph(graph, machine, "model")
    assert [node.word_bits for node in found.nodes[2:]] == [16, 16]
    first, *lanes = found.precision
    assert "1 of 2 layers I fp16 (16 bits)" in first and "partial sums 32 bits" in first
    assert lanes[0] == ("Lanes take fp16 x fp16 in 4 parts of 8 x 8 bits, a cycle each, as the machine states nothing "
                        "for them.")
    assert "1 of 2 layers I fp32 (32 bits)" in first  # beside fp16 it was chosen
    whole = precise_graph(graph, machine)  # lanes of 8 bits take neither whole
    assert "2 of 2 layers the machine's words" in whole.precision[0] and "fp16, fp32 is not taken" in whole.precision[0]
    assert [node.word_bits for node in whole.nodes[2:]] == [None, None]
    assert [node.word_bits for node in precise_graph(graph, preset("eyeriss")).nodes[2:]] == [None, None]
    halves = Graph("net", (graph.nodes[0], *graph.nodes[2:]))
    assert [node.word_bits for node in precise_graph(halves, preset("eyeriss")).nodes[1:]] == [16, 16]
    alone = precise_graph(Graph("net", graph.nodes[1:]), machine).precision
    assert alone == ("Precision auto: 1 of 1 layers the machine's words (8, 8, 32 bits). Of the model fp32 is not "
                     "taken, as files hold it where nobody chose.",)
    assert precise_graph(found, machine) is found
    assert precise_graph(Graph("plain", (MacNode(matmul("m", 4, 4, 4)),)), machine).precision == ()


@pytest.mark.parametrize(("text", "message"), [
    ("int", "precision: must be a type of numbers"), ("weights=fish", "precision.weights: must be a type"),
    ("sums=int8", "must name each of inputs, weights, outputs once"), ("inputs=int8,inputs=fp8", "once at most")])
def test_what_is_no_precision_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        precise(matmul("m", 4, 4, 4), preset("eyeriss"), text)


@pytest.mark.parametrize(("old", "new", "message"), [
    ("int4:", "int44x:", "compute.precisions.int44x: must be a type of numbers"),
    ("int4:", '"int4+16/32":', "must be a type of numbers"),
    ('"fp16*int4"', '"fp16*int4*int8"', "or two .of inputs and weights. with an asterisk"),
    ("macs_per_cycle: 2", "macs_per_cycle: 0", "macs_per_cycle"),
    ("partial_bits: 32", "partial_bits: -1", "partial_bits"), ("precisions: {", "precisions: {INT4: {}, ", "once")])
def test_what_is_wrong_with_a_machines_precisions_is_told(old, new, message):
    with pytest.raises(InputError, match=message):
        load_accelerator(MACHINE.replace(old, new))


def test_a_layer_alone_has_the_words_that_it_has_in_its_network():
    """Beside bf16, fp32 was chosen: bounds, spaces and evaluations of the layer must agree on its 32 bits."""
    machine = load_accelerator(MACHINE.replace("fp16: {macs_per_cycle: 0.5", "fp32: {macs_per_cycle: 0.5"))
    layers = [replace(matmul(kind, m=4, n=4, k=4), attributes=(("types", f"{kind},{kind},{kind}"),))
              for kind in ("bf16", "fp32")]
    graph = Graph("two", tuple(MacNode(layer) for layer in layers))
    found = evaluate(smallest_mapping(layers[1], machine), graph, machine, "fp32")
    assert [tensor.word_bits for tensor in found.operator.tensors] == [32, 32, 32]
    assert found.cost.energy_pj >= bounds(graph, machine)["fp32"].energy_pj
    assert found.operator == map_space(graph, machine, "fp32").operator
    (chosen,) = load_layers(graph, pattern="fp*", arch=machine).mac_nodes
    assert chosen.operator == found.operator
    alone = evaluate(found.mapping, layers[1], machine)
    assert [tensor.word_bits for tensor in alone.operator.tensors] == [None] * 3
