"""SCALE-Sim's configurations and topologies: what is read, what is written, what is told of the rest."""

import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.interop import FORMATS, Foreign, ScaleSimConfig, format_of, read_config
from tilewright.workload import Graph, MacNode, convolution, depthwise, einsum, matmul, with_densities, zoo

FORM = FORMATS.get("scale-sim")
HEAD = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"
CONFIG = """\
[general]
run_name = small

[architecture_presets]
ArrayHeight:    8
ArrayWidth:     16
IfmapSramSzkB:   4
FilterSramSzkB:  2
OfmapSramSzkB:   1
IfmapOffset:    0
FilterOffset:   10000000
OfmapOffset:    20000000
Dataflow : ws
Bandwidth : 10
MemoryBanks: 1

[run_presets]
InterfaceBandwidth: CALC
"""


def read(tmp_path, text, name="net.csv"):
    path = tmp_path / name
    path.write_text(text)
    return FORM.read([path], {})


def operators(found):
    return [node.operator for node in found.graph.mac_nodes]


def test_convolutions(tmp_path):
    found = read(tmp_path, HEAD + ",,,,,,,,\nConv1, 224, 224, 3, 3, 3, 32, 2,\n"
                 "\tConv2 , 14, 12, 3, 1, 8, 16, 1,# remark\n")
    first, second = operators(found)
    assert first == convolution("Conv1", in_channels=3, out_channels=32, kernel=3, out_size=(112, 112), stride=2)
    assert second == convolution("Conv2", in_channels=8, out_channels=16, kernel=(3, 1), in_size=(14, 12))
    assert (found.graph.name, found.graph.source, found.accelerator) == ("net", "net.csv", None)
    assert [str(note) for note in found.notes] == [
        "net.csv:3 Conv1: approximated: the last windows reach 1 rows and 1 columns past the IFMAP; as in SCALE-Sim "
        "they are computed, and those words count as any others"]
    assert dict(first.attributes)["in_size"] == "224x224"


def test_products_and_ratios_of_version_3(tmp_path):
    found = read(tmp_path, "Layer Name, M, N, K, Sparsity,\nGEMM_1, 3, 5, 16, 3:4,\nGEMM_1, 1, 5, 16, 1:1,\n")
    first, second = operators(found)
    assert first == with_densities(matmul("GEMM_1", m=3, n=5, k=16), {"weights": "3:4"})
    assert second == matmul("GEMM_1_2", m=1, n=5, k=16)
    assert [str(note) for note in found.notes] == [
        "net.csv:3 GEMM_1: approximated: a name that another layer has; called GEMM_1_2"]


def test_strides_of_version_2_and_ratios_of_convolutions(tmp_path):
    wide = HEAD.replace("Strides", "Stride height, Stride width")
    (operator,) = operators(read(tmp_path, wide + "c, 9, 9, 3, 3, 2, 4, 2, 3,\n"))
    assert operator == convolution("c", in_channels=2, out_channels=4, kernel=3, in_size=(9, 9), stride=(2, 3))
    (operator,) = operators(read(tmp_path, HEAD + "c, 9, 9, 3, 3, 2, 4, 2, 2:4,\n"))
    assert operator.tensor("W").structure == (2, 4)


def test_depthwise_layers_are_those_with_dp_in_their_names(tmp_path):
    (operator,) = operators(read(tmp_path, HEAD + "Conv_DP_1, 9, 9, 3, 3, 6, 2, 1,\n"))
    assert operator == depthwise("Conv_DP_1", channels=6, multiplier=2, in_size=(9, 9), kernel=3)


def test_a_row_without_its_comma_is_read_in_full_and_told(tmp_path):
    found = read(tmp_path, "Layer,M,N,K\nQKT,1024,1000,64\n")
    assert operators(found) == [matmul("QKT", m=1024, n=1000, k=64)]
    assert "ends without a comma: SCALE-Sim loses its last value" in str(found.notes[0])


def test_products_are_read_by_place_as_scale_sim_does(tmp_path):
    found = read(tmp_path, "Layer, M, K, N,\nx, 2, 3, 4,\n")
    assert operators(found) == [matmul("x", m=2, n=3, k=4)]
    assert "the head says M, K, N" in str(found.notes[0])


def test_a_configuration_is_a_machine(tmp_path):
    found = read(tmp_path, CONFIG, "scale.cfg")
    machine = found.accelerator
    assert not found.notes
    assert [level.name for level in machine.levels] == ["DRAM", "IfmapSRAM", "FilterSRAM", "OfmapSRAM", "PEs",
                                                        "PERegister"]
    assert machine.level("PEs").shape == (16, 8)
    assert machine.level("IfmapSRAM").capacity_bytes == 4096
    assert machine.level("PERegister").keeps == ("weights",)
    assert all(memory.energy.read_pj > 0 for memory in machine.memories)
    config, _ = read_config(tmp_path / "scale.cfg")
    assert config == ScaleSimConfig("small", 8, 16, (4, 2, 1), "ws")
    assert (config.array().rows, config.array().memories.weights) == (8, 2048)


def test_configurations_of_version_1(tmp_path):
    text = """[general]
run_name = "lab"
[architecture_presets]
ArrayHeight:    12
ArrayWidth:     14
IfmapSramSz:    108
FilterSramSz:   64
OfmapSramSz:    32
IfmapOffset:    0
FilterOffset:   10000000
OfmapOffset:    20000000
Dataflow:       is
"""
    found = read(tmp_path, text, "old.cfg")
    assert not found.notes
    assert read_config(tmp_path / "old.cfg")[0] == ScaleSimConfig("lab", 12, 14, (108, 64, 32), "is")


def test_bandwidth_counts_only_where_the_interface_is_the_users(tmp_path):
    found = read(tmp_path, CONFIG.replace("CALC", "USER"), "scale.cfg")
    ports = found.accelerator.memories[0].bandwidth
    assert (ports.read, ports.write, ports.shared) == (20, 10, None), "inputs and weights come by ports of their own"
    assert read_config(tmp_path / "scale.cfg")[0].array().bandwidths == (10, 10, 10)


def test_what_a_configuration_says_besides_is_told_with_its_line(tmp_path):
    text = CONFIG.replace("InterfaceBandwidth: CALC", "UseRamulatorTrace: True\nSpeed: 9") + (
        "[layout]\nIfmapCustomLayout: True\nFilterCustomLayout: False\nIfmapSRAMBankNum: 4\n"
        "[sparsity]\nSparsitySupport: true\nSparseRep: csr\n[network_presets]\nTopologyCsvLoc: \"x.csv\"\n")
    notes = [str(note) for note in read(tmp_path, text, "scale.cfg").notes]
    assert [note.split(": ")[0] for note in notes] == [
        "scale.cfg run_presets.InterfaceBandwidth", "scale.cfg:18 run_presets.UseRamulatorTrace",
        "scale.cfg:19 run_presets.Speed", "scale.cfg:21 layout.IfmapCustomLayout",
        "scale.cfg:25 sparsity.SparsitySupport", "scale.cfg:28 network_presets.TopologyCsvLoc"]


MALFORMED_CONFIGS = {
    "no section": ("ArrayHeight: 4\n", "bad.cfg:1", "must be a [section]"),
    "other sections": ("[general]\nrun_name = x\n", "bad.cfg:1", "[architecture_presets]"),
    "no height": (CONFIG.replace("ArrayHeight:    8\n", ""), "bad.cfg architecture_presets.ArrayHeight", "given"),
    "no dataflow": (CONFIG.replace("Dataflow : ws\n", ""), "bad.cfg architecture_presets.Dataflow", "given"),
    "row-stationary": (CONFIG.replace(": ws", ": rs"), "bad.cfg:13", "os, ws, is"),
    "height of a word": (CONFIG.replace(":    8", ": eight"), "bad.cfg:5", "whole number"),
    "height of thousands of digits": (CONFIG.replace(":    8", ": " + "9" * 5000), "bad.cfg:5", "whole number"),
    "height of zero": (CONFIG.replace(":    8", ": 0"), "bad.cfg:5", "whole number"),
    "half a kilobyte": (CONFIG.replace(":   4", ": 0.5"), "bad.cfg:7", "whole number"),
    "negative memory": (CONFIG.replace(":   4", ": -4"), "bad.cfg:7", "whole number"),
    "memory that no table knows": (CONFIG.replace(":   4", ": 99999999"), "bad.cfg architecture_presets", "bytes"),
    "twice": (CONFIG.replace("ArrayWidth:     16", "ArrayHeight: 16"), "bad.cfg:6", "line 5"),
    "a line of neither": (CONFIG + "something\n", "bad.cfg:19", "NAME : VALUE"),
    "interface of neither": (CONFIG.replace("CALC", "AUTO"), "bad.cfg:18", "CALC or USER"),
    "no bandwidth for the user": (CONFIG.replace("CALC", "USER").replace("Bandwidth : 10\n", ""),
                                  "architecture_presets.Bandwidth", "given"),
    "bandwidth of a word": (CONFIG.replace("CALC", "USER").replace(": 10\n", ": much\n"), "bad.cfg:14", "whole"),
    "a switch half on": (CONFIG + "UseRamulatorTrace: perhaps\n", "bad.cfg:19", "True or False"),
    "not text": ("\udc80\udcff", "bad.cfg", "UTF-8"),
}
MALFORMED_TOPOLOGIES = {
    "empty": ("", "bad.csv:1", "head"),
    "no head": ("c, 9, 9, 3, 3, 2, 4, 1,\n", "bad.csv:1", "head"),
    "a layout": ("Layer name, IFMAP Height Intraline Factor, x, y, z, a, b, c,\n", "bad.csv:1", "head"),
    "no layers": (HEAD, "bad.csv:1", "at least one layer"),
    "too few": (HEAD + "c, 9, 9, 3, 3, 2, 4,\n", "bad.csv:2 c", "6 values"),
    "too many": (HEAD + "c, 9, 9, 3, 3, 2, 4, 1, 1, 1:2, 7,\n", "bad.csv:2 c", "10 values"),
    "thousands of digits": (HEAD + f"c, 9, {'9' * 5000}, 3, 3, 2, 4, 1,\n", "bad.csv:2 c.IFMAP Width", "whole number"),
    "a ratio of thousands of digits": (HEAD + f"c, 9, 9, 3, 3, 2, 4, 1, 1:{'9' * 5000},\n", "bad.csv:2 c.Sparsity",
                                       "ratio"),
    "a word": (HEAD + "c, 9, nine, 3, 3, 2, 4, 1,\n", "bad.csv:2 c.IFMAP Width", "whole number"),
    "a fraction": (HEAD + "c, 9, 9.5, 3, 3, 2, 4, 1,\n", "bad.csv:2 c.IFMAP Width", "whole number"),
    "nothing": (HEAD + "c, 9, 9, , 3, 2, 4, 1,\n", "bad.csv:2 c.Filter Height", "whole number"),
    "zero": (HEAD + "a, 9, 9, 3, 3, 2, 4, 1,\nc, 9, 9, 3, 3, 0, 4, 1,\n", "bad.csv:3 c.Channels", "whole number"),
    "negative": (HEAD + "c, 9, 9, 3, 3, 2, 4, -1,\n", "bad.csv:2 c.Strides", "whole number"),
    "a filter too high": (HEAD + "c, 9, 9, 10, 3, 2, 4, 1,\n", "bad.csv:2 c.Filter Height", "larger"),
    "a filter too wide": (HEAD + "c, 9, 9, 3, 11, 2, 4, 1,\n", "bad.csv:2 c.Filter Width", "larger"),
    "no name": (HEAD + ", 9, 9, 3, 3, 2, 4, 1,\n", "bad.csv:2 Layer name", "given"),
    "a ratio above one": (HEAD + "c, 9, 9, 3, 3, 2, 4, 1, 5:4,\n", "bad.csv:2 c.Sparsity", "N:M"),
    "a ratio of words": (HEAD + "c, 9, 9, 3, 3, 2, 4, 1, a:b,\n", "bad.csv:2 c.Sparsity", "N:M"),
    "no ratio": ("Layer, M, N, K,\nx, 1, 2, 3, 4,\n", "bad.csv:2 x.Sparsity", "N:M"),
    "a ratio for K": ("Layer, M, N, K,\nx, 1, 2, 1:2,\n", "bad.csv:2 x.K", "given"),
    "two of three": ("Layer, M, N, K,\nx, 1, 2,\n", "bad.csv:2 x", "2 values"),
    "huge": ("Layer, M, N, K,\nx, 1, 2, 99999999999,\n", "bad.csv:2 x.K", "whole number"),
}


@pytest.mark.parametrize(("name", "case"), [
    *((f"bad.cfg {name}", case) for name, case in MALFORMED_CONFIGS.items()),
    *((f"bad.csv {name}", case) for name, case in MALFORMED_TOPOLOGIES.items())])
def test_malformed_files_say_where_and_what(name, case, tmp_path):
    text, field, rule = case
    path = tmp_path / name.split()[0]
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as error:
        FORM.read([path], {})
    assert field in error.value.field
    assert rule in str(error.value)


def test_files_that_do_not_go_together(tmp_path):
    one, two = tmp_path / "one.cfg", tmp_path / "two.cfg"
    net, again = tmp_path / "net.csv", tmp_path / "again.csv"
    for path in (one, two):
        path.write_text(CONFIG)
    for path in (net, again):
        path.write_text("Layer, M, N, K,\nx, 1, 2, 3,\n")
    with pytest.raises(InputError, match="only configuration"):
        FORM.read([one, two], {})
    with pytest.raises(InputError, match="layers of the other files"):
        FORM.read([net, again], {})
    with pytest.raises(InputError, match="bind"):
        FORM.read([net], {"batch": 2})


def test_files_are_known_by_what_is_in_them(tmp_path):
    for name, text, part in (("a.cfg", CONFIG, "accelerator"), ("b.txt", CONFIG, "accelerator"),
                             ("c.csv", HEAD, "network"), ("d.csv", "Layer,M,N,K\n", "network")):
        (tmp_path / name).write_text(text)
        assert format_of(tmp_path / name, part).name == "scale-sim"
    for name, text in (("e.csv", "K,C,Y,X,R,S,T\n64,3,224,224,7,7,1\n"), ("f.csv", "a,b\n"), ("g.cfg", "[x]\ny=1\n"),
                       ("h.csv", "Layer name, IFMAP Height Intraline Factor, a, b, c, d, e, f,\n")):
        (tmp_path / name).write_text(text)
        assert not FORM.holds(tmp_path / name)


def written(*operators, **others):
    return FORM.write(Foreign(graph=Graph("net", tuple(MacNode(op) for op in operators)), **others))


def test_networks_of_the_zoo_can_be_written(tmp_path):
    for name in ("resnet18", "mobilenet-v2", "bert-base"):
        graph = zoo.load(name)
        text = FORM.write(Foreign(graph=graph))
        paths = text_files(text, tmp_path / name)
        back = FORM.read(paths, {}).graph
        macs = sum(node.operator.macs / back_count(node) for node in graph.mac_nodes)
        assert sum(node.operator.macs for node in back.mac_nodes) == macs
        (told,) = [note.text for note in text.notes if "not multiply-accumulates" in note.text]
        assert told.startswith(f"{len(graph.nodes) - len(graph.mac_nodes)} nodes")


def back_count(node):
    """Products of which the topology tells one: those of a batch, and heads."""
    return node.operator.sizes.get("B", 1)


def text_files(text, folder):
    return text.write(folder)


def test_what_a_topology_cannot_say_is_told():
    text = written(
        convolution("dilated", in_channels=3, out_channels=4, in_size=(9, 9), kernel=3, dilation=2),
        convolution("batch", in_channels=3, out_channels=4, in_size=(9, 9), kernel=3, batch=5),
        convolution("grouped", in_channels=4, out_channels=4, in_size=(9, 9), kernel=3, groups=2),
        convolution("row,DP", in_channels=4, out_channels=4, in_size=(9,), kernel=3),
        convolution("conv DP", in_channels=4, out_channels=4, in_size=(9, 9), kernel=3, stride=(1, 2)),
        depthwise("depth", channels=4, in_size=(9, 9), kernel=3),
        matmul("heads", m=4, n=4, k=4, batch=12), einsum("abc,cb->ab", {"a": 3, "b": 4, "c": 5}))
    told = {note.where: note.text for note in text.notes}
    assert told["dilated"].startswith("written as a matrix product")
    assert told["batch"] == "one of a batch of 5"
    assert told["grouped"] == "one of 2 products alike"
    assert told["row,DP"] == "called row_DP"
    assert told["conv DP"] == "called conv D_P"
    assert told["depth"] == "called depth_DP"
    assert told["heads"] == "one of 12 products alike"
    assert set(text.files) == {"net.csv", "net-products.csv"}
    assert "conv D_P, 9, 9, 3, 3, 4, 4, 1, 2,\n" in text.files["net.csv"]


def test_runs_and_densities_that_are_no_ratios_are_told():
    operator = with_densities(matmul("x", m=2, n=3, k=4), {"weights": 0.5, "inputs": 0.5})
    text = FORM.write(Foreign(graph=Graph("net", (MacNode(operator, count=3),))))
    assert {note.text for note in text.notes} == {
        "written once; it runs 3 times", "the density of I", "a density of W that is no ratio"}


def test_machines_of_ours_as_configurations(tmp_path):
    text = FORM.write(Foreign(accelerator=preset("tpu-like")))
    paths = text.write(tmp_path)
    config, notes = read_config(paths[0])
    assert not notes
    assert config == ScaleSimConfig("tpu-like", 256, 256, (24 * 1024, 64, 1024), "ws", 49)
    assert {note.kind for note in text.notes} == {"approximated", "dropped"}
    with pytest.raises(InputError, match="one array"):
        FORM.write(Foreign(accelerator=preset("simba-like")))


def test_networks_without_layers_cannot_be_written():
    with pytest.raises(InputError, match="convolution or matrix product"):
        FORM.write(Foreign(graph=Graph("none", ())))
