"""GAMMA's layer tables and genomes, in small examples whose meaning can be told by hand."""

import pytest

from tilewright.cost.reference import walk
from tilewright.interop import Foreign, dump_gamma, format_of, load_maestro
from tilewright.mapping import Loop
from tilewright.workload import Graph, MacNode, convolution, matmul

TABLE = "K,C,Y,X,R,S,T\n6,4,10,10,3,3,1\n1,8,9,9,3,3,2\n12,10,7,1,1,1,3\n"
RESULT = """,runtime,area,PE,best_sol
0,6.0,1.0,12.0,"[['K', 110], ['K', 1], ['Y', 7], ['X', 1], ['S', 3], ['C', 3], ['R', 3], \
['Y', 4], ['C', 1], ['S', 3], ['Y', 1], ['K', 1], ['R', 3], ['X', 1]]"
1,6.0,1.0,12.0,"[['C', 110], ['K', 1], ['Y', 2], ['X', 9], ['S', 3], ['C', 3], ['R', 2], \
['X', 4], ['C', 1], ['S', 3], ['Y', 1], ['K', 1], ['R', 1], ['X', 1]]"
2,6.0,1.0,12.0,"[['K', 110], ['K', 2], ['Y', 2], ['X', 1], ['S', 1], ['C', 3], ['R', 1], \
['C', 4], ['C', 1], ['S', 1], ['Y', 1], ['K', 1], ['R', 1], ['X', 1]]"
"""
LOG = """Layer id: 1
Layer: [ 6   4 10 10   3   3   1]

Num generation: 1, Num population: 100
Best  fitness :1.439389e+06Best Sol:
[['Y', 168], ['K', 4], ['C', 1], ['R', 2], ['S', 3], ['Y', 3], ['X', 30]]
[['K', 4], ['C', 1], ['X', 1], ['S', 1], ['Y', 1], ['K', 1], ['R', 1]]"""


@pytest.fixture
def searched(tmp_path):
    for name, text in (("net.csv", TABLE), ("result_c.csv", RESULT)):
        (tmp_path / name).write_text(text)
    return [tmp_path / "net.csv", tmp_path / "result_c.csv"]


def test_rows_are_layers(searched):
    found = load_maestro(searched[:1])
    assert [node.operator for node in found.graph.mac_nodes] == [
        convolution("Layer_1", in_channels=4, out_channels=6, in_size=10, kernel=3),
        convolution("Layer_2", in_channels=8, out_channels=8, groups=8, in_size=9, kernel=3),
        matmul("Layer_3", m=7, n=12, k=10)]
    assert found.accelerator is None
    assert format_of(searched[0], "network").name == format_of(searched[1], "mapping").name == "maestro"


@pytest.mark.parametrize("text", ["7,12,10\n", "M,N,K\n7,12,10\n", "m, n, k\n\n 7, 12 , 10.0\n"])
def test_tables_of_matrix_products(text, tmp_path):
    path = tmp_path / "gnmt_gemm_m.csv"
    path.write_text(text)
    assert load_maestro([path]).operator == matmul("Layer_1", m=7, n=12, k=10)
    assert load_maestro([path]).graph.name == "gnmt_gemm_m"


def test_tables_without_a_header(tmp_path):
    path = tmp_path / "net_m.csv"
    path.write_text("64,3,224,224,7,7,1\n1000,512,1,1,1,1,0\n")
    first, second = (node.operator for node in load_maestro([path]).graph.mac_nodes)
    assert first.sizes == {"N": 1, "K": 64, "C": 3, "P": 218, "Q": 218, "R": 7, "S": 7}
    assert second.macs == 512_000


def test_genes_are_tiles_orders_and_clusters(searched):
    found = load_maestro(searched)
    mapping = found.mappings["Layer_1"]
    assert found.accelerator.compute_instances == 12
    assert mapping.at("DRAM").loops == (Loop("K", 3), Loop("P", 7), Loop("Q", 1), Loop("C", 3))
    assert mapping.at("Array1").loops == (Loop("K", 1, "X"),)
    assert mapping.at("Cluster1").loops == (Loop("C", 1), Loop("P", 4))
    assert mapping.at("Array2").loops == (Loop("P", 1, "X"),)
    assert mapping.at("L1").loops == (Loop("R", 1), Loop("S", 1))


def test_every_genome_computes_its_layer(searched):
    found = load_maestro(searched)
    for node, macs in zip(found.graph.mac_nodes, (6 * 4 * 64 * 9, 8 * 49 * 9, 7 * 12 * 10), strict=True):
        counts = walk(node.operator, found.accelerator, found.mappings[node.name]).counts
        assert counts["L1", "I"].reads == counts["L1", "W"].reads == counts["L1", "O"].updates == macs


def test_tiles_that_run_past_a_dimension_are_told_with_file_and_line(searched):
    assert [str(note) for note in load_maestro(searched).notes] == [
        "result_c.csv:3 Layer_2.TemporalMap X': approximated: a tile of 9 runs past the 7 of X' that there are; "
        "clamped to 7"]


def test_a_result_of_the_first_layers(searched):
    searched[1].write_text("\n".join(RESULT.splitlines()[:2]) + "\n")
    found = load_maestro(searched)
    assert set(found.mappings) == {"Layer_1"}
    assert [str(note) for note in found.notes] == [
        "result_c.csv:1 best_sol: approximated: 1 genomes as those of the first 1 of 3 layers"]


def test_a_mark_of_byte_order_is_no_text(searched):
    for path in searched:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(load_maestro(searched).mappings) == 3
    assert format_of(searched[0], "network") and format_of(searched[1], "mapping")


def test_the_log_of_a_layer_has_both(tmp_path):
    path = tmp_path / "Layer_1"
    path.write_text(LOG)
    found = load_maestro([path])
    assert found.operator == convolution("Layer_1", in_channels=4, out_channels=6, in_size=10, kernel=3)
    assert found.mapping.at("DRAM").loops[:3] == (Loop("K", 4), Loop("C", 1), Loop("R", 2))
    assert {str(note).split(" ")[0] for note in found.notes} == {"Layer_1:5"}
    assert found.accelerator.compute_instances == 3 * 4
    assert format_of(path, "mapping").name == "maestro"


def test_a_hardware_file_comes_before_the_elements_of_the_result(searched, tmp_path):
    hardware = tmp_path / "hw_config.m"
    hardware.write_text("NumPEs: 16\nL1Size: 5120\nL2Size: 1080000\nNoC_BW: 81920000")
    found = load_maestro([*searched, hardware])
    assert found.accelerator.compute_instances == 16
    assert found.accelerator.level("L2").capacity_bytes == 1_080_000


def test_what_gamma_has_no_words_for_is_told():
    operators = (convolution("stride", in_channels=4, out_channels=6, in_size=11, kernel=3, stride=2),
                 convolution("groups", in_channels=4, out_channels=6, in_size=11, kernel=3, groups=2),
                 matmul("batch", m=2, n=3, k=4, batch=5), matmul("plain", m=2, n=3, k=4))
    made = dump_gamma(Foreign(Graph("net", tuple(MacNode(operator) for operator in operators))))
    assert made.files == {"net.csv": "K,C,Y,X,R,S,T\n6,4,7,7,3,3,1\n3,4,2,1,1,1,3\n"}
    assert [(note.where, note.kind) for note in made.notes] == [
        ("net.groups", "dropped"), ("net.batch", "dropped"), ("stride", "approximated"), ("net", "dropped")]


def test_layers_without_a_genome_have_empty_cells(searched, tmp_path):
    found = load_maestro(searched)
    some = Foreign(found.graph, found.accelerator, {"Layer_2": found.mappings["Layer_2"]})
    made = dump_gamma(some)
    assert made.files["result_c.csv"].splitlines()[1] == "0,12,"
    again = load_maestro(made.write(tmp_path / "again"))
    assert again.mappings == some.mappings
