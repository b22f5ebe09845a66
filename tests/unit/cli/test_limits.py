"""What is too little, too large or too odd to be computed ends in one clear error and exit code 2, in every verb."""

import os

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


def lost(path, *others):
    """Write a network of which nothing can be read but what ``others`` do: its one product stands in a loop.

    The trips of the loop depend on its input.
    """
    value = helper.make_tensor_value_info
    again = helper.make_node("Identity", ["k"], ["on"])
    body = helper.make_graph([helper.make_node("MatMul", ["v", "v"], ["w"]), again], "b", [
        value("i", TensorProto.INT64, []), value("k", TensorProto.BOOL, []), value("v", 1, [4, 4])],
        [value("on", TensorProto.BOOL, []), value("w", 1, [4, 4])])
    nodes = [*others, helper.make_node("Loop", ["n", "c", "x"], ["y"], "loop", body=body)]
    inputs = value("n", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("x", 1, [4, 4])
    graph = helper.make_graph(nodes, "lost", inputs, [value("y", 1, [4, 4])])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))


@pytest.mark.parametrize("verb", VERBS)
def test_a_network_of_which_nothing_is_left_is_an_error(tilewright, tmp_path, verb):
    lost(tmp_path / "lost.onnx")
    (tmp_path / "m.yaml").write_text("levels: []\n")
    found = run(tilewright, verb, "lost.onnx")
    assert found.code == 2
    assert "lost: must have at least one layer of multiply-accumulates; Got '1 other nodes'" in found.err
    assert "Not modelled: 1 x Loop: control flow, its trips are counted at run time; within it 1 MatMul." in found.err


def test_bounds_say_what_of_the_network_they_are(tilewright, tmp_path):
    lost(tmp_path / "half.onnx", helper.make_node("MatMul", ["x", "x"], ["z"], "known"))
    found = tilewright("bounds", "half.onnx", "--arch", "eyeriss")
    assert "not modelled: loop (Loop: control flow" in found.out
    assert "What is modelled of the network: at least" in found.out
    assert "The whole network: at least" in tilewright("bounds", OPERATOR, "--arch", "eyeriss").out


LARGE = {
    "macs": ("matmul:M=2147483647,N=2147483647,K=2147483647", "matmul.macs: must be at most 2,251,799,813,685,248, as "
             "counts are exact up to 2^53"),
    "size": ("matmul:M=2147483648,N=1,K=1", "matmul.M: must be at most 2,147,483,647 to be counted"),
    "stride": ("conv:K=1,C=1,P=2,Q=2,R=2,S=2,stride=99999999999",
               "conv.I.P: must have a stride or dilation of at most 4,096; Got 99999999999"),
    "digits": ("conv:K=\uff11\uff16,C=1,P=1,Q=1,R=1,S=1", "must give sizes as NAME=NUMBER"),
    "no integer": ("matmul:M=9223372036854775808,N=1,K=1", "must give sizes as NAME=NUMBER"),
}


@pytest.mark.parametrize("verb", ["map", "bounds", "space", "systolic"])
@pytest.mark.parametrize("case", LARGE)
def test_what_is_too_large_to_be_counted_is_an_error(tilewright, verb, case):
    network, message = LARGE[case]
    found = run(tilewright, verb, network)
    assert (found.code, message in found.err) == (2, True), found.err


@pytest.mark.parametrize("network", ["conv:K=2147483647,C=1,P=1,Q=1,R=1,S=1", "matmul:M=2147483646,N=1,K=1",
                                     "conv:K=1,C=1,P=2147483647,Q=1,R=3,S=1,stride=2"])
def test_what_is_just_not_too_large_has_bounds(tilewright, network):
    found = tilewright("bounds", network, "--arch", "eyeriss")
    assert (found.code, "The whole network: at least" in found.out) == (0, True), found.err


MACHINE = """\
name: a
frequency_mhz: 1000
word_bits: {inputs: 8, weights: 8, outputs: 8}
levels:
  - memory: D
    keeps: [inputs, weights, outputs]
    energy_pj_per_word: {read: 1, fill: 1, update: 1, drain: 1}
    bandwidth_words_per_cycle: {shared: 2}
  - memory: B
    keeps: [inputs, weights, outputs]
    capacity_bytes: 64
    energy_pj_per_word: {read: 1, fill: 1, update: 1, drain: 1}
  - fanout: F
    shape: [4, 4]
compute: {energy_pj_per_mac: 1}
"""
FIGURES = [
    ("shared: 2", "shared: 5e-324"), ("shared: 2", "shared: 1e-300"), ("shared: 2", "shared: 1e300"),
    ("shared: 2", "shared: 0"), ("shared: 2", "shared: .nan"), ("shared: 2", "shared: .inf"),
    ("{read: 1,", "{read: -1,"), ("{read: 1,", "{read: .nan,"), ("{read: 1,", "{read: 1e308,"),
    ("{read: 1,", "{read: 1e400,"), ("bytes: 64", "bytes: 0"), ("bytes: 64", "bytes: 9223372036854775808"),
    ("bytes: 64", "bytes: 1e300"), ("bytes: 64", "bytes: \uff16\uff14 KiB"), ("inputs: 8", "inputs: 0"),
    ("inputs: 8", "inputs: 1000000000"), ("mhz: 1000", "mhz: 1e-300"), ("mhz: 1000", "mhz: 1e300"),
    ("mac: 1", "mac: 1e308"), ("[4, 4]", "[0, 4]"), ("[4, 4]", "[2147483647, 2]"),
    ("[4, 4]", "[9223372036854775808, 1]"), ("bytes: 64", "bytes: 64\n    block_words: 9223372036854775808"),
]


@pytest.mark.parametrize(("old", "new"), FIGURES)
def test_figures_out_of_range_are_refused_with_their_line(tilewright, tmp_path, old, new):
    assert old in MACHINE
    (tmp_path / "a.yaml").write_text(MACHINE.replace(old, new, 1))
    found = tilewright("bounds", OPERATOR, "--arch", "a.yaml")
    assert found.code == 2
    assert found.err.startswith("Error: a") and found.err.count("\n") == 1, found.err


@pytest.mark.parametrize("place", ["empty.yaml", "bytes.yaml", "folder.yaml", "pipe.yaml", "/dev/null", "/dev/zero"])
def test_files_that_are_no_accelerators_end_in_one_error(tilewright, tmp_path, place):
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "bytes.yaml").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    for words in (("bounds", OPERATOR, "--arch", place), ("map", OPERATOR, "--arch", "eyeriss", "--constraints", place),
                  ("evaluate", "--cases", place) if place != "/dev/null" else ("bounds", place, "--arch", "eyeriss")):
        found = tilewright(*words)
        empty = "--cases" in words and place in ("empty.yaml", "pipe.yaml")  # no cases are no error
        assert found.code == (0 if empty else 2), (words, found)
        assert found.err.count("\n") <= 1


@pytest.mark.parametrize("words", [
    ("--budget", "\uff11\uff10\uff10"), ("--budget", "1e400s"), ("--budget", "."), ("--budget", "0"),
    ("--budget", "-1"), ("--budget", "1e30"), ("--budget", "nan"), ("--seed", "-1"), ("--seed", "18446744073709551616"),
    ("--seed", "\uff11"), ("--seed=\uff11",), ("--density", "W=-1"), ("--density", "W=2"), ("--density", "W=nan"),
    ("--density", "W=\uff10.5"), ("--density", f"W={'9' * 400}:{'9' * 401}"), ("--constraint", "latency<=1e400"),
    ("--option", "population=\uff11\uff10"), ("--workers", "0"), ("--workers", "\uff11"),
])
def test_numbers_out_of_range_or_in_other_digits_are_refused(tilewright, words):
    mapper = ("--mapper", "gamma") if "--option" in words else ()
    machine = "accel-b-sparse" if "--density" in words else "eyeriss"
    budget = () if "--budget" in words else ("--budget", "20")
    found = tilewright("map", OPERATOR, "--arch", machine, *budget, *mapper, *words)
    assert found.code == 2, found
    assert "Internal" not in found.err
