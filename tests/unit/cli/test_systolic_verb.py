"""``tilewright systolic``, and SCALE-Sim's files wherever ours are read."""

import json
from math import inf

import pytest

import tilewright as tw
from tilewright.base import InputError

TOPOLOGY = """\
Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,
Conv1, 20, 20, 3, 3, 3, 32, 2,
Conv2_DP, 10, 10, 3, 3, 8, 1, 1,
FC, 1, 1, 1, 1, 256, 100, 1,
"""
CONFIG = """\
[general]
run_name = small
[architecture_presets]
ArrayHeight : 16
ArrayWidth : 8
IfmapSramSzkB : 4
FilterSramSzkB : 4
OfmapSramSzkB : 4
Dataflow : os
Bandwidth : 2
[layout]
IfmapCustomLayout : True
[run_presets]
InterfaceBandwidth : CALC
"""


@pytest.fixture(autouse=True)
def files(tmp_path, tilewright):
    (tmp_path / "net.csv").write_text(TOPOLOGY)
    (tmp_path / "scale.cfg").write_text(CONFIG)
    (tmp_path / "user.cfg").write_text(CONFIG.replace("CALC", "USER").replace(": True", ": False"))


def figures(tilewright, *words):
    done = tilewright("systolic", *words, "--json", "-")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_topology_on_a_configuration(tilewright):
    found = figures(tilewright, "net.csv", "--config", "scale.cfg")
    assert (found["array"]["rows"], found["array"]["columns"]) == (16, 8)
    assert found["array"]["memory_words"] == {"inputs": 4096, "weights": 4096, "outputs": 4096}
    first, second, third = found["layers"]
    assert (first["m"], first["n"], first["k"], first["products"]) == (100, 32, 27, 1)
    assert first["scale-sim"]["compute_cycles"] == 7 * 4 * (27 + 16 + 8 - 2) - 1
    assert first["tilewright"]["compute_cycles"] == 6 * 4 * (27 + 22) + 4 * (27 + 4 + 8 - 2)
    assert first["scale-sim"]["sram_output_writes"] == 100 * 32 + 28 * 24
    assert first["tilewright"]["sram_output_writes"] == 100 * 32
    assert second["products"] == 8
    assert second["tilewright"]["dram_weight_reads"] == 72
    assert third["tilewright"]["dram_weight_reads"] == 25600
    assert set(third["energy_pj"]) == {"DRAM", "IfmapSRAM", "FilterSRAM", "OfmapSRAM", "MAC"}
    assert found["cycles"]["scale-sim"] == sum(layer["scale-sim"]["compute_cycles"] for layer in found["layers"])
    told = found["assumptions"]["scale-sim"]
    assert told["side_writes"]["more"] == {"SRAM writes": sum(
        layer["tilewright"]["row_folds"] * layer["tilewright"]["column_folds"] * layer["products"] * 24
        for layer in found["layers"])}
    assert told["last_cycle_index"]["more"] == {"cycles": -10}
    assert sum(parted["more"].get("cycles", 0) for parted in told.values()) == (
        found["cycles"]["scale-sim"] - found["cycles"]["tilewright"])
    first, second = found["notes"]
    assert first.startswith("net.csv:2 Conv1: approximated: the last windows reach 1 rows and 1 columns past the IFMAP")
    assert second.startswith("scale.cfg:12 layout.IfmapCustomLayout: dropped: the layout of words in banks")


def test_bandwidth_of_the_user_makes_arrays_wait(tilewright):
    found = figures(tilewright, "net.csv", "--config", "user.cfg")["layers"][2]["tilewright"]
    assert found["bound"] == "weights"
    assert found["cycles"] == 25600 / 2 + 4 / 2
    assert found["stall_cycles"] == found["cycles"] - found["compute_cycles"]


def test_a_converted_configuration_counts_alike(tilewright):
    assert tilewright("convert", "scale.cfg", "--out", "ours").code == 0
    theirs = figures(tilewright, "net.csv", "--config", "scale.cfg")
    ours = figures(tilewright, "net.csv", "--arch", "ours/accelerator.yaml")
    assert ours["array"] == theirs["array"]
    assert ours["layers"] == theirs["layers"]


def test_what_a_bandwidth_leaves_out_is_told(tilewright):
    assert "waits for DRAM are not reproduced" in tilewright("systolic", "net.csv", "--config", "user.cfg").out
    assert "waits for DRAM are not reproduced" not in tilewright("systolic", "net.csv", "--config", "scale.cfg").out
    assert "come by 2 words a cycle each, share twice as many" in tilewright("list", "accelerators", "user.cfg").out


def test_a_network_of_the_zoo_on_an_array_of_given_sides(tilewright):
    found = figures(tilewright, "resnet18", "--array", "32x16", "--dataflow", "ws", "--as", "scale-sim-paper",
                    "--as", "scale-sim", "--layers", "layer4.*")
    assert list(found["cycles"]) == ["scale-sim-paper", "scale-sim"]
    assert found["machine"] == "32x16"
    assert "energy_pj" not in found["layers"][0]
    assert found["layers"][0]["scale-sim"]["compute_cycles"] == 72 * 32 * (49 + 64 + 16 - 2) - 1


def test_totals_sum_layers_as_often_as_they_run():
    run = tw.systolic("gnmt", arch="tpu-like")
    assert len({row.times for row in run.rows}) > 1
    assert run.totals.latency_cycles == sum(row.times * row.layer.cycles for row in run.rows) == run.cycles()
    assert run.totals.energy_pj == pytest.approx(sum(row.times * sum(row.energy_pj.values()) for row in run.rows))
    assert run.totals.edp == run.totals.latency_cycles * run.totals.energy_pj
    assert tw.systolic("matmul:M=64,N=64,K=64", array="16x16").totals.energy_pj == inf


def test_the_table_tells_cycles_by_both_conventions_and_energy(tilewright):
    done = tilewright("systolic", "net.csv", "--config", "scale.cfg")
    assert done.code == 0, done.err
    assert "net on small: 16 x 8, output-stationary" in done.out
    for word in ("Cycles", "SCALE-Sim", "Mapped", "Energy", "Conv2_DP", "Total"):
        assert word in done.out
    assert "scale.cfg:12" in done.out
    assert "last_cycle_index: the total is the number of the last cycle" in done.out
    assert "; here -10 cycles" in done.out
    bare = tilewright("systolic", "net.csv", "--array", "16x8", "--as", "scale-sim")
    assert "Energy" not in bare.out
    assert "Bound" not in bare.out


def test_machines_of_ours_have_their_dataflow(tilewright):
    assert figures(tilewright, "net.csv", "--arch", "tpu-like")["array"]["dataflow"] == "ws"
    done = tilewright("systolic", "net.csv", "--arch", "eyeriss")
    assert done.code == 2
    assert "--dataflow: must be given, as" in done.err
    assert figures(tilewright, "net.csv", "--arch", "eyeriss", "--dataflow", "os")["array"]["columns"] > 0


def test_layers_that_are_no_products_are_named(tilewright, tmp_path):
    from tilewright.api import systolic
    from tilewright.workload import matmul, transposed_convolution

    up = transposed_convolution("up", in_channels=2, out_channels=2, kernel=3, in_size=(4, 4))
    found = systolic([matmul("p", m=4, n=4, k=4), up], array=(2, 2))
    assert [name for name, _ in found.skipped] == ["up"]
    with pytest.raises(InputError, match="must have a layer that a systolic array can be counted for"):
        systolic([up], array=(2, 2))


@pytest.mark.parametrize(("words", "message"), [
    ((), "array: must be given, or a machine, and not both"),
    (("--config", "scale.cfg", "--array", "4x4"), "array: must be given, or a machine, and not both"),
    (("--config", "scale.cfg", "--sram", "1,1,1"), "--sram: must be left out where a machine is named"),
    (("--config", "scale.cfg", "--bandwidth", "3"), "--bandwidth: must be left out where a machine is named"),
    (("--array", "4by4"), "--array: must be ROWSxCOLUMNS"),
    (("--array", "0x4"), "array.rows: must be a positive integer"),
    (("--array", "4x4", "--dataflow", "rs"), "array.dataflow: must be one of os, ws, is"),
    (("--array", "4x4", "--sram", "1,1"), "--sram: must be three positive numbers of KiB"),
    (("--array", "4x4", "--sram", "1,1,x"), "--sram: must be three whole numbers"),
    (("--array", "4x4", "--as", "timeloop"), "must be a known convention of systolic arrays"),
    (("--array", "4x4", "--layers", "none"), "layers: must match at least one layer"),
    (("--arch", "simba-like", "--dataflow", "ws"), "must have one array to be a systolic one"),
    (("--arch", "absent.cfg"), "absent.cfg"),
    (("--array", "8x8", "--sram", "99999999,1,1"), "--sram: technology.45nm.sram.read knows"),
    (("--array", "99999999999999999999x8"), "Conv1 "),
    (("--config", "scale.cfg", "--strict"), "net.csv:2 Conv1: must be honoured in full, but would be"),
])
def test_wrong_options_are_one_clear_error(words, message, tilewright):
    done = tilewright("systolic", "net.csv", *words)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_topologies_and_configurations_stand_where_networks_and_machines_do(tilewright, tmp_path):
    done = tilewright("map", "net.csv", "--arch", "scale.cfg", "--budget", 200, "--json", "run.json")
    assert done.code == 0, done.err
    assert [layer["names"][0] for layer in json.loads((tmp_path / "run.json").read_text())["layers"]] == [
        "Conv1", "Conv2_DP", "FC"]
    assert "assumed: net.csv:2 Conv1: approximated" in done.out
    done = tilewright("list", "accelerators", "scale.cfg")
    assert "assumed: scale.cfg:12 layout.IfmapCustomLayout: dropped" in done.out
    done = tilewright("convert", "net.csv", "user.cfg", "--out", "ours")
    assert done.code == 0, done.err
    assert {path.name for path in (tmp_path / "ours").iterdir()} == {"network.yaml", "accelerator.yaml"}
    done = tilewright("convert", "--network", "ours/network.yaml", "--arch", "ours/accelerator.yaml",
                      "--to", "scale-sim", "--out", "theirs")
    assert done.code == 0, done.err
    assert (tmp_path / "theirs" / "net.csv").read_text() == TOPOLOGY
