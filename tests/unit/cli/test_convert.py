"""``tilewright convert``, and Timeloop's files wherever ours are read."""

import json
import re

import numpy as np
import onnx
import pytest

from tilewright.interop import load_timeloop
from tilewright.mapping import Bounds

LAYER = "matmul:M=8,N=6,K=4"


@pytest.fixture
def written(tilewright, tmp_path):
    tilewright("map", LAYER, "--arch", "edge-s1", "--tiling", "perfect", "--budget", 500, "--json", "run.json")
    done = tilewright("convert", "last", "--to", "timeloop", "--out", "tl")
    assert done.code == 0, done.err
    return done


def test_a_run_becomes_timeloops_files(written, tmp_path):
    assert [line for line in written.out.splitlines() if line.startswith("Wrote")] == [
        f"Wrote tl/{name}.yaml" for name in ("arch", "problem", "ERT", "ART", "mapping")]
    assert "PEs: dropped: the energy of the network" in written.out
    found = load_timeloop([tmp_path / "tl" / f"{name}.yaml" for name in ("arch", "problem", "ERT", "mapping")])
    assert found.operator.macs == 8 * 6 * 4
    assert found.mapping is not None


def test_timeloops_files_become_ours_and_can_be_mapped(written, tilewright, tmp_path):
    files = [f"tl/{name}.yaml" for name in ("arch", "problem", "ERT", "mapping")]
    assert tilewright("convert", *files, "--out", "ours").code == 0
    done = tilewright("evaluate", "ours/mapping.yaml", "-n", "ours/network.yaml", "-a", "ours/accelerator.yaml",
                      "--json", "again.json")
    assert done.code == 0, done.err
    before = json.loads((tmp_path / "run.json").read_text())["layers"][0]["cost"]
    after = json.loads((tmp_path / "again.json").read_text())["layer"]["cost"]
    words = [(count["reads"], count["fills"], count["updates"], count["drains"]) for count in before["counts"]]
    assert sorted(words) == sorted(
        (count["reads"], count["fills"], count["updates"], count["drains"]) for count in after["counts"])
    done = tilewright("map", "tl/problem.yaml", "--arch", "tl/arch.yaml,tl/ERT.yaml", "--budget", 200)
    assert done.code == 0, done.err


def test_strict_refuses_what_cannot_be_said(written, tilewright):
    done = tilewright("convert", "last", "--to", "timeloop", "--out", "tl", "--strict")
    assert (done.code, done.out) == (2, "")
    assert "PEs: must be honoured in full, but would be dropped" in done.err


def test_constraints_go_along_with_a_layer_and_a_machine(tilewright, tmp_path):
    (tmp_path / "space.yaml").write_text("factors: {SL: {M: 2}}\norders: {SG: [['*', K, N]]}\n")
    done = tilewright("convert", "--network", LAYER, "--arch", "edge-s1", "--constraints", "space.yaml",
                      "--to", "timeloop-model", "--out", "program")
    assert done.code == 0, done.err
    written = {path.name for path in (tmp_path / "program").iterdir()}
    assert written == {"arch.yaml", "problem.yaml", "ERT.yaml", "ART.yaml", "constraints.yaml"}
    found = load_timeloop([tmp_path / "program" / name for name in written])
    assert found.constraints.factors == {"SL": {"M": Bounds(2, 2)}}
    assert found.constraints.orders == {"SG": (("*", "K", "N"),)}
    done = tilewright("convert", "--arch", "edge-s1", "--constraints", "space.yaml", "--to", "timeloop", "--out", "x")
    assert done.code == 2 and "must come with a layer and a machine; Got 'no layer'" in done.err


def test_energies_of_tables_hold_wherever_a_machine_is_named(written, tilewright, tmp_path):
    text = (tmp_path / "tl" / "ERT.yaml").read_text()
    (tmp_path / "tables.yaml").write_text(text)
    plain = tilewright("map", LAYER, "--arch", "edge-s1", "--budget", 200, "--json", "a.json")
    tables = tilewright("map", LAYER, "--arch", "edge-s1,tables.yaml", "--budget", 200, "--json", "b.json")
    assert plain.code == tables.code == 0, tables.err
    assert "tables.yaml" in json.loads((tmp_path / "b.json").read_text())["accelerator"]["sources"][-1]
    (tmp_path / "tables.yaml").write_text(re.sub(r"edge-s1\.\w+", "chip.Other", text))
    wrong = tilewright("map", LAYER, "--arch", "tpu-like,tables.yaml", "--budget", 200)
    assert wrong.code == 2 and "must name components of tpu-like" in wrong.err


@pytest.mark.parametrize(("words", "message"), [
    (("convert", "none.yaml", "--out", "x"), "none.yaml: must be an existing file"),
    (("convert", "a.yaml", "b.yaml", "--to", "timeloop", "--out", "x"), "must be an existing file"),
    (("convert", "a.yaml", "--layer", "x", "--out", "x"), "must be left out with foreign files"),
    (("convert", "--network", LAYER, "--to", "tilewrigth"), "Did you mean tilewright"),
    (("evaluate", "tl/mapping.yaml", "-n", LAYER, "-a", "edge-s1"), "in files of timeloop, as it is one"),
    (("map", "tl/problem.yaml", "--bind", "M=3", "-a", "edge-s1"), "Write the sizes into it"),
])
def test_wrong_words_are_named(written, tilewright, words, message):
    done = tilewright(*words)
    assert done.code == 2
    assert message in done.err


def test_strict_ends_with_1_where_a_network_is_lost_in_part(tilewright, tmp_path):
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy")
    nodes = [onnx.helper.make_node("Strange", ["x"], ["y"], domain="my.house"),
             onnx.helper.make_node("MatMul", ["x", "w"], ["z"])]
    w = onnx.numpy_helper.from_array(np.zeros((3, 4), np.float32), "w")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y], [w])), str(tmp_path / "odd.onnx"))
    for words in ((str(tmp_path / "odd.onnx"),), ("--network", str(tmp_path / "odd.onnx"))):
        done = tilewright("convert", *words, "--out", "ours", "--strict")
        assert done.code == 1 and "1 node of unknown size lost" in done.out and not (tmp_path / "ours").exists()
    done = tilewright("convert", *words, "--out", "ours")
    assert done.code == 0 and "1 node of unknown size lost" in done.out
