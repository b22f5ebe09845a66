"""What is too little, too large or too odd to be computed ends in one clear error and exit code 2, in every verb."""

import pytest
from onnx import TensorProto, helper, save_model

OPERATOR = "conv:K=4,C=3,P=5,Q=4,R=3,S=2"
VERBS = {
    "map": ("map", "NETWORK", "--arch", "eyeriss", "--budget", "20"),
    "pipeline": ("pipeline", "NETWORK", "--arch", "eyeriss", "--budget", "20"),
    "compare": ("compare", "NETWORK", "--arch", "eyeriss", "--budget", "20"),
    "bounds": ("bounds", "NETWORK", "--arch", "eyeriss"),
    "evaluate": ("evaluate", "--dataflow", "weight-stationary", "--network", "NETWORK", "--arch", "eyeriss"),
    "explain": ("explain", "m.yaml", "--network", "NETWORK", "--arch", "eyeriss", "--count", "DRAM.I.reads"),
    "space": ("space", "NETWORK", "--arch", "eyeriss"),
    "flexibility": ("flexibility", "NETWORK", "--arch", "flexion"),
    "explore": ("explore", "NETWORK", "--arch", "flexion", "--budget", "20"),
    "systolic": ("systolic", "NETWORK", "--array", "8x8"),
    "study axes": ("study", "axes", "NETWORK", "--arch", "eyeriss", "--budget", "20"),
    "study crossover": ("study", "crossover", "NETWORK", "--arch", "eyeriss", "--budget", "20"),
    "train-surrogate": ("train-surrogate", "--network", "NETWORK", "--arch", "eyeriss", "--out", "s.pt"),
}


def run(tilewright, verb, network):
    return tilewright(*(network if word == "NETWORK" else word for word in VERBS[verb]))


def lost(path):
    """Write a network of which nothing can be read: its one product stands in the branches of an If."""
    value = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["t"])], "b", [], [value("t", 1, [4, 4])])
    nodes = [helper.make_node("If", ["c"], ["y"], "branch", then_branch=body, else_branch=body)]
    graph = helper.make_graph(nodes, "lost", [value("c", TensorProto.BOOL, []), value("x", 1, [4, 4])],
                              [value("y", 1, [4, 4])])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))


@pytest.mark.parametrize("verb", VERBS)
def test_a_network_of_which_nothing_is_left_is_an_error(tilewright, tmp_path, verb):
    lost(tmp_path / "lost.onnx")
    (tmp_path / "m.yaml").write_text("levels: []\n")
    found = run(tilewright, verb, "lost.onnx")
    assert found.code == 2
    assert "lost: must have at least one layer of multiply-accumulates; Got '1 other nodes'" in found.err
    assert "Not modelled: 1 x If: control flow, branches are chosen at run time; within it 2 MatMul." in found.err


def test_bounds_say_what_of_the_network_they_are(tilewright, tmp_path):
    value = helper.make_tensor_value_info
    body = helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["t"])], "b", [], [value("t", 1, [4, 4])])
    nodes = [helper.make_node("MatMul", ["x", "x"], ["z"], "known"),
             helper.make_node("If", ["c"], ["y"], "branch", then_branch=body, else_branch=body)]
    graph = helper.make_graph(nodes, "half", [value("c", TensorProto.BOOL, []), value("x", 1, [4, 4])],
                              [value("y", 1, [4, 4]), value("z", 1, [4, 4])])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(tmp_path / "half.onnx"))
    found = tilewright("bounds", "half.onnx", "--arch", "eyeriss")
    assert "not modelled: branch (If: control flow" in found.out
    assert "What is modelled of the network: at least" in found.out
    assert "The whole network: at least" in tilewright("bounds", OPERATOR, "--arch", "eyeriss").out
