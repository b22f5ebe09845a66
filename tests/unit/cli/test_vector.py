"""Vector work in the totals of ``map`` and ``bounds``, and coverage in numbers, on the command line and in Python."""

import json

import pytest
from onnx import TensorProto, helper, save_model

import tilewright as tw
from tilewright.cost import Totals

QUICK = ("--budget", "20", "--no-store", "--mapper", "random")


@pytest.fixture
def network(tmp_path):
    """A product with a bias, a softmax and what is not known; and the same without that."""
    value = helper.make_tensor_value_info
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [8, 16], [0.0] * 128),
               helper.make_tensor("b", TensorProto.FLOAT, [16], [0.0] * 16)]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"], "product"),
             helper.make_node("Add", ["m", "b"], ["a"], "bias"),
             helper.make_node("Softmax", ["a"], ["s"], "softmax"),
             helper.make_node("Sorcery", ["s"], ["y"], "spell", domain="elsewhere")]
    for name, some in (("whole", nodes[:3]), ("part", nodes)):
        graph = helper.make_graph(some, name, [value("x", 1, [4, 8])], [value(some[-1].output[0], 1, [4, 16])], weights)
        save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                           helper.make_opsetid("elsewhere", 1)]),
                   str(tmp_path / f"{name}.onnx"))
    return "whole.onnx"


def mapped(tilewright, tmp_path, network, machine, *words):
    found = tilewright("map", network, "--arch", machine, *QUICK, "--json", "run.json", *words)
    return found, json.loads((tmp_path / "run.json").read_text())


def test_totals_and_bounds_have_vector_work_in_them_unless_it_is_free(tilewright, machine, network, tmp_path):
    """The machine: eight units, so 2 lanes at Buffer, DRAM of 4 words a cycle; nothing is folded.

    The bias reads 64 + 16 words and writes 64: 36 cycles of DRAM, 32 of the lanes. The softmax takes 5 * 64 / 2.
    """
    found, run = mapped(tilewright, tmp_path, network, machine)
    free, without = mapped(tilewright, tmp_path, network, machine, "--vector", "free")
    assert found.code == free.code == 0
    by_kind = {one["kind"]: one for one in run["vector_nodes"]}
    assert {kind: one["latency_cycles"] for kind, one in by_kind.items()} == {"bias": 36, "softmax": 160}
    assert by_kind["bias"]["energy_pj"] == 144 * 200 + 2 * 144 * 2 + 64
    energy = by_kind["bias"]["energy_pj"] + by_kind["softmax"]["energy_pj"]
    assert (run["request"]["vector"], without["request"]["vector"]) == ("included", "free")
    assert (run["totals"]["vector_cycles"], run["totals"]["vector_energy_pj"]) == (196, energy)
    assert (without["totals"]["vector_cycles"], without["vector_nodes"][0]["latency_cycles"]) == (0, 0)
    (layer,) = without["layers"]
    assert without["totals"]["latency_cycles"] == layer["cost"]["latency_cycles"]
    assert without["totals"]["energy_pj"] == layer["cost"]["energy_pj"]
    assert run["layers"][0]["cost"] == layer["cost"]
    for figure, more in (("latency_cycles", 196), ("energy_pj", energy)):
        for bound in ("", "bound_"):
            assert run["totals"][bound + figure] == pytest.approx(without["totals"][bound + figure] + more)
    assert run["totals"]["edp"] == run["totals"]["latency_cycles"] * run["totals"]["energy_pj"]
    assert "--vector" not in run["request"]["command"] and "--vector free" in without["request"]["command"]
    assert "Vector work, in the totals" in found.out and "Vector work, free, not in the totals" in free.out
    assert "assumed: Vector unit (the machine states none): 2 lanes" in found.out and "Vector unit" not in free.out


def test_bounds_tell_the_same_totals(tilewright, machine, network, tmp_path):
    _, run = mapped(tilewright, tmp_path, network, machine)
    found = tilewright("bounds", network, "--arch", machine, "--json", "bounds.json")
    told = json.loads((tmp_path / "bounds.json").read_text())
    assert told["totals"] == pytest.approx({name: run["totals"][f"bound_{name}"] for name in (
        "latency_cycles", "energy_pj", "edp")})
    assert told["vector_nodes"] == run["vector_nodes"] and told["coverage"] == run["network"]["covered"]
    assert "\nVector work " in found.out and "Coverage: 512 MACs and" in found.out
    free = tilewright("bounds", network, "--arch", machine, "--vector", "free", "--json", "bounds.json")
    less = json.loads((tmp_path / "bounds.json").read_text())
    assert less["totals"]["latency_cycles"] == told["totals"]["latency_cycles"] - 196
    assert less["totals"]["latency_cycles"] == less["layers"][0]["latency_cycles"]
    assert "Vector work, free" in free.out


def test_what_is_folded_is_named_and_costs_its_operations_alone(tilewright, machine, network, tmp_path):
    path = tmp_path / machine
    path.write_text(f"{path.read_text()}vector: {{lanes: 64, folds: [bias, softmax]}}\n")
    found, run = mapped(tilewright, tmp_path, network, machine)
    assert [(one["kind"], one["folded"], one["latency_cycles"]) for one in run["vector_nodes"]] == [
        ("bias", True, 4), ("softmax", True, 0)]  # the sixteen words of the bias come in
    assert next(line for line in found.out.splitlines() if line.startswith("softmax ")).rstrip().endswith("folded")
    assert "assumed: Vector unit" not in found.out


def test_coverage_below_all_is_an_exit_code_where_strict(tilewright, machine, network, tmp_path):
    for verb in (("map", *QUICK), ("bounds",)):
        for name, strict, code in (("whole", ["--strict"], 0), ("part", [], 0), ("part", ["--strict"], 1)):
            found = tilewright(verb[0], f"{name}.onnx", "--arch", machine, *verb[1:], *strict)
            assert found.code == code, (verb, name, strict)
            assert "Coverage: 512 MACs and" in found.out
            assert ("1 node of unknown size lost" in found.out) == (name == "part")
    assert "Coverage: 512 MACs and 496 bytes modelled, 1 node of unknown size lost." in tilewright(
        "convert", "part.onnx").out
    covered = json.loads(tilewright("bounds", "part.onnx", "--arch", machine, "--json", "-").out)["coverage"]
    assert (covered["macs"], covered["lost_macs"], covered["lost_nodes"], covered["unknown_nodes"]) == (512, 0, 0, 1)


def test_python_takes_the_same_and_layers_alone_have_none():
    included, free = (tw.map("ncf", "edge-s1", budget=20, mapper="random", store=False, vector=how)
                      for how in ("included", "free"))
    work = Totals.of((one.node.count, one) for one in tw.vector_work("ncf", "edge-s1"))
    assert included.latency_cycles == free.latency_cycles + work.latency_cycles > free.latency_cycles
    assert included.energy_pj == pytest.approx(free.energy_pj + work.energy_pj)
    assert included.latency_cycles >= included.record.totals.bound_latency_cycles
    assert free.latency_cycles == sum(layer.count * layer.cost.latency_cycles for layer in free.record.layers)
    one = tw.map("matmul:M=4,N=4,K=4", "edge-s1", budget=20, mapper="random", store=False)
    assert one.record.totals.vector_cycles == 0 and one.record.vector_nodes == ()
    part = tw.map("ncf", "edge-s1", budget=20, mapper="random", store=False, layers="*1")
    assert part.record.vector_nodes == ()
    with pytest.raises(tw.InputError, match="vector: must be one of included, free; Got 'no'"):
        tw.map("ncf", "edge-s1", vector="no")
