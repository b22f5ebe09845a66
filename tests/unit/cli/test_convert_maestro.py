"""MAESTRO's and GAMMA's files at the command line: converted, mapped, evaluated, refused."""

import json

import pytest

NETWORK = """Network n {
  Layer first { Type: CONV Dimensions { K: 4, C: 2, R: 3, S: 3, Y: 8, X: 6 } Dataflow {
    SpatialMap(1,1) K; TemporalMap(64,64) C; TemporalMap(3,1) Y; Cluster(2,P); SpatialMap(1,1) C; } }
  Layer second { Type: GEMM Dimensions { M: 8, N: 4, K: 6 } Dataflow {
    SpatialMap(1,1) M; Cluster(2,P); SpatialMap(1,1) K; } }
}"""
TABLE, GENOME = "4,2,8,6,3,3,1\n", "[['K',4],['K',1],['C',2],['R',3],['S',3],['Y',1],['X',9]]"


@pytest.fixture(autouse=True)
def files(tmp_path):
    for name, text in (("net.m", NETWORK), ("hw.m", "num_pes: 8\nl1_size_cstr: 512\n"), ("net.csv", TABLE),
                       ("result_c.csv", f',PE,best_sol\n0,4,"{GENOME}"\n')):
        (tmp_path / name).write_text(text)


def test_networks_become_ours_and_are_told(tilewright, tmp_path):
    done = tilewright("convert", "net.m", "hw.m", "--out", "ours")
    assert done.code == 0
    assert "net.m:3 first.TemporalMap C: approximated: a tile of 64 runs past the 2 of C" in done.out
    assert {path.name for path in (tmp_path / "ours").iterdir()} == {
        "accelerator.yaml", "network.yaml", "mapping-first.yaml", "mapping-second.yaml"}
    for layer in ("first", "second"):
        checked = tilewright("evaluate", f"ours/mapping-{layer}.yaml", "-n", "net.m", "-l", layer, "-a",
                             "ours/accelerator.yaml", "--json", "out.json")
        assert checked.code == 0, checked.err
        assert json.loads((tmp_path / "out.json").read_text())["legal"]


def test_strict_refuses_what_is_clamped(tilewright):
    done = tilewright("convert", "net.m", "hw.m", "--out", "ours", "--strict")
    assert done.code == 2
    assert "net.m:3 first.TemporalMap C: must be honoured in full, but would be approximated" in done.err
    done = tilewright("convert", "net.csv", "result_c.csv", "--out", "ours", "--strict")
    assert done.code == 2
    assert "result_c.csv:2 Layer_1.TemporalMap X': must be honoured in full" in done.err


def test_one_layer_alone(tilewright, tmp_path):
    assert tilewright("convert", "net.m", "hw.m", "--bind", "layer=2", "--strict", "--out", "ours").code == 0
    assert (tmp_path / "ours" / "mapping.yaml").exists()
    wrong = tilewright("convert", "net.m", "hw.m", "--bind", "layer=3", "--out", "ours")
    assert wrong.code == 2 and "layer: must be from 1 to 2" in wrong.err


def test_files_stand_where_networks_and_machines_do(tilewright):
    done = tilewright("map", "net.m", "--arch", "hw.m", "--budget", 200)
    assert done.code == 0, done.err
    done = tilewright("convert", "last", "--layer", "first", "--to", "gamma", "--out", "theirs")
    assert done.code == 0, done.err
    done = tilewright("convert", "theirs/first.csv", "theirs/result_c.csv", "theirs/hw_config.m", "--from", "gamma",
                      "--to", "maestro", "--out", "again")
    assert done.code == 0, done.err
    assert tilewright("bounds", "net.csv", "--arch", "hw.m").code == 0


@pytest.mark.parametrize(("words", "message"), [
    (("convert", "net.m", "net.csv", "--out", "x"), "net.csv:1: must be the only file that holds a network"),
    (("convert", "result_c.csv", "--out", "x"), "result_c.csv:1: must come with the layer table"),
    (("map", "net.m", "--arch", "hw.m", "--bind", "batch=2"), "bind: must be left out"),
    (("convert", "--network", "einsum:abc,cd->abd:a=2,b=2,c=2,d=2", "--to", "maestro", "--out", "x"),
     "must be a convolution over one or two axes or a matrix product for MAESTRO"),
])
def test_wrong_words_are_named(tilewright, words, message):
    done = tilewright(*words)
    assert done.code == 2
    assert message in done.err


def test_layers_of_like_names_keep_a_file_each(tilewright, tmp_path):
    body = "{ Type: GEMM Dimensions { M: 4, N: 4, K: 6 } Dataflow { SpatialMap(1,1) M; } }"
    layers = "".join(f"Layer {name} {body} "
                     for name in ("a/b", "a_b", "A b", "x" * 300))
    (tmp_path / "alike.m").write_text(f"Network n {{ {layers} }}")
    done = tilewright("convert", "alike.m", "hw.m", "--out", "ours")
    assert done.code == 0, done.err
    for name, layer in (("a_b", '"a/b"'), ("a_b.2", "a_b"), ("A_b.3", '"A b"'), ("x" * 60, "x" * 300)):
        assert f"operator: {layer}\n" in (tmp_path / "ours" / f"mapping-{name}.yaml").read_text()
