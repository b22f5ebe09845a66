"""Types of quantised networks: a ``quantization_config`` of Hugging Face, and ONNX between quantisers."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.hardware import preset
from tilewright.interop import FORMATS, Foreign, load_huggingface, load_onnx
from tilewright.interop.pytorch.huggingface import with_quantisation
from tilewright.mapping import precise, precise_graph
from tilewright.workload import Graph, MacNode, VectorOperator, matmul

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
         "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
         "torch_dtype": "bfloat16", "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}


def product(name, **attributes):
    found = {"types": "bfloat16,bfloat16,bfloat16", **attributes}
    return MacNode(replace(matmul(name, 4, 4, 4), attributes=tuple(found.items())))


def types(graph):
    return [dict(node.operator.attributes)["types"] for node in graph.mac_nodes]


@pytest.mark.parametrize(("config", "expected"), [
    ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "bfloat16,int4+20/128,bfloat16"),
    ({"quant_method": "awq", "bits": 4, "group_size": -1}, "bfloat16,int4,bfloat16"),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bfloat16,int8,bfloat16"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bfloat16,fp4+32/64,bfloat16"),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8,fp8+32/16384,bfloat16"),
    ({"quant_method": "mxfp4"}, "bfloat16,mxfp4,bfloat16"),
    ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
        "weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8, "type": "float"}}}},
     "fp8,fp8,bfloat16")])
def test_a_quantisation_sets_the_types_of_weights(config, expected):
    """Heads, attention and what a configuration leaves out stay as they are."""
    nodes = product("q_proj"), product("lm_head"), product("scores", weights="activations")
    found = with_quantisation(Graph("net", nodes), config)
    assert types(found) == [expected, *["bfloat16,bfloat16,bfloat16"] * 2]
    assert config["quant_method"] in found.notes[-1]
    assert types(with_quantisation(Graph("net", nodes), {**config, "modules_to_not_convert": ["q_"]}))[0] == (
        "bfloat16,bfloat16,bfloat16")


def test_a_quantisation_that_is_not_known_is_told():
    graph = Graph("net", (product("q_proj"),))
    for odd in ({}, {"config_groups": [1]}, {"config_groups": {"a": 1}}, {"modules_to_not_convert": 3}):
        found = with_quantisation(graph, {"quant_method": "aqlm", **odd})
        assert types(found) == types(graph) and "aqlm is not known: types stay" in found.notes[0]
    assert types(with_quantisation(graph, {"quant_method": "fp8", "weight_block_size": 128})) == ["fp8,fp8,bfloat16"]
    assert with_quantisation(graph, None) is graph


def test_a_llama_runs_in_the_types_of_its_configuration(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    graph = load_huggingface(tmp_path, bind={"batch": 1, "sequence": 8})
    found = precise_graph(graph, preset("eyeriss"))
    widths = {node.name.rpartition(".")[2]: [tensor.word_bits for tensor in node.operator.tensors]
              for node in found.mac_nodes}
    assert widths["q_proj"] == [16, 4 + 20 / 32, 16]
    assert widths["lm_head"] == [16, 16, 16]
    assert {node.word_bits for node in found.nodes if isinstance(node, VectorOperator)} == {16, 32}


def conv(path, nodes, constants, out):
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])
    made = helper.make_tensor_value_info("y", out, [1, 8, 6, 6])
    held = [numpy_helper.from_array(np.zeros((8, 4, 3, 3), np.int8), "wq"),
            numpy_helper.from_array(np.float32(0.1), "s"), numpy_helper.from_array(np.int8(0), "z"), *constants]
    graph = helper.make_graph(nodes, "g", [given], [made], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return load_onnx(path)


def test_between_quantisers_a_layer_has_the_quantised_types(tmp_path):
    """Q, DQ, Conv, Relu, Q: eight bits come in and go out; where the result is read elsewhere, it leaves as fp32."""
    pads = {"pads": [1] * 4, "kernel_shape": [3, 3]}
    around = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
              helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
              helper.make_node("DequantizeLinear", ["wq", "s", "z"], ["wd"]),
              helper.make_node("Conv", ["xd", "wd"], ["c"], **pads)]
    last = [helper.make_node("Relu", ["c"], ["r"]), helper.make_node("QuantizeLinear", ["r", "s", "z"], ["y"])]
    whole = conv(tmp_path / "whole.onnx", [*around, *last], [], TensorProto.INT8)
    assert types(whole) == ["int8,int8,int8"]
    other = [helper.make_node("Relu", ["c"], ["y"]), helper.make_node("QuantizeLinear", ["y", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]), helper.make_node("Neg", ["y"], ["n"])]
    assert types(conv(tmp_path / "open.onnx", [*around, *other], [], TensorProto.FLOAT)) == ["int8,int8,float"]


def test_what_timeloop_cannot_say_of_words_is_noted():
    machine = preset("eyeriss")
    operator = precise(replace(matmul("m", 4, 4, 4), attributes=(("types", "fp32,int4,int8"),)), machine, "model")
    notes = FORMATS.get("timeloop").write(Foreign(Graph("m", (MacNode(operator),)), machine)).notes
    assert any("words of 4, 8, 16, 32 bits count as words of 16 bits" in note.text for note in notes)
    assert any("lanes that take fp32 x int4 in 2 parts" in note.text for note in notes)
