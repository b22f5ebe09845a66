"""Files of MAESTRO and GAMMA that say something wrong: one error each, with file and line."""

import pytest

from tilewright.base import InputError
from tilewright.interop import load_maestro

DIMENSIONS = "Dimensions { K: 4, C: 2, R: 3, S: 3, Y: 10, X: 8 }"


def layer(body):
    return f"Network n {{\nLayer one {{\n{body}\n}}\n}}\n"


def flow(directives):
    return layer(f"Type: CONV {DIMENSIONS}\nDataflow {{\n{directives}\n}}")


NETWORKS = [
    ("", ":1: must hold a Network"),
    ("// only a comment", ":1: must hold a Network"),
    ("Network n { }", ":1: must have at least one Layer"),
    ("Net n { }", ":1: must be Network, Constant or Accelerator; Got 'Net'"),
    ("Network n { Layer a { Type: CONV", "must go on with"),
    ("Network n {\nLayr a { } }", ":2: must be Layer or a closing brace; Got 'Layr'"),
    ("Network n { Layer a { } }\nNetwork m { }", "must have a Type"),
    (layer(f"Type: CONV {DIMENSIONS}") * 2, ":6: must be the only Network"),
    ("Constant A 0;\n" + layer(""), ":1: the constant A must be a positive whole number; Got '0'"),
    ("Constant A B;\n" + layer(""), ":1: the constant A must be a number"),
    (layer("Type: POOL"), ":3: Type must be one of CONV"),
    (layer("Typ: CONV"), ":3: must be one of Type, Stride, Dimensions, Dataflow; Got 'Typ'"),
    (layer("Type: CONV"), ":2: one must have Dimensions"),
    (layer(f"Type: CONV\nType: CONV {DIMENSIONS}"), ":4: Type must be given once"),
    (layer("Type: CONV Dimensions { K: 4, C: 2 }"), ":3: Dimensions of a CONV layer must give R, S, Y, X"),
    (layer("Type: CONV Dimensions { K: 4, M: 2 }"), ":3: Dimensions of a CONV layer must be of"),
    (layer("Type: CONV Dimensions { K: 4, K: 5 }"), ":3: Dimensions of K must be given once"),
    (layer("Type: CONV Dimensions { K: many }"), ":3: Dimensions of K must be a number, a Constant"),
    (layer("Type: CONV Dimensions { K: 3/2 }"), ":3: Dimensions of K must be a positive whole number; Got '3/2'"),
    (layer("Type: CONV Dimensions { K: 4/0 }"), ":3: Dimensions of K must not divide by 0"),
    (layer("Type: CONV Dimensions { K: " + "(" * 80 + "1"), "at most 50 brackets"),
    (layer(f"Type: CONV Stride {{ K: 2 }} {DIMENSIONS}"), ":3: Stride must be of Y and X"),
    (layer("Type: CONV Dimensions { K: 4, C: 2, R: 11, S: 3, Y: 10, X: 8 }"), ":3 one.Dimensions: one.kernel must fit"),
    (layer("Type: GEMM Dimensions { M: 4, N: 2 }"), ":3: Dimensions of a GEMM layer must give K"),
    (layer("Type: CONV Dataflow { TemporalMap(Sz(R),1) Y; }"), ":3: Sz must be of a dimension given before"),
    (flow("TemporalMap(1,1) Z;"), ":5: directives of a CONV layer must be of .*; Got 'Z'"),
    (flow("TemporalMap(0,1) K;"), ":5: the size of a TemporalMap must be a positive whole number"),
    (flow("TemporalMap(1,1-2) K;"), ":5: the offset of a TemporalMap must be a positive whole number; Got '-1'"),
    (flow("TemporalMap(1) K;"), ":5: must be ',' between size and offset"),
    (flow("TemporalMap[1,1] K;"), ":5: must be '\\(' after TemporalMap"),
    (flow("Temporal(1,1) K;"), ":5: must be TemporalMap, SpatialMap or Cluster"),
    (flow("SpatialMap(1,1) K;\nCluster(4, Q);"), ":6: a Cluster must be of kind P"),
    (flow("SpatialMap(1,1) K;\nCluster(4, P);"), ":6: must have directives after the last Cluster"),
    (flow("SpatialMap(1,1) K;\nCluster(64, P);\nSpatialMap(1,1) C;"), ":6 one.Cluster: must have room in 16"),
    (flow("TemporalMap(99999999999999999999,1) K;"), ":5: the size of a TemporalMap must be a number"),
]
HARDWARE = [
    ("num_pes", ":1: must go on with num_pes"),
    ("num_pes: many", ":1: num_pes must be a number"),
    ("num_pes: 0", ":1: num_pes must be a positive whole number; Got '0'"),
    ("num_pes: 3000000000", ":1: num_pes must be at most 2147483647; Got 3000000000"),
    ("num_pes: -4", ":1: num_pes must be a number"),
    ("num_pes: 4\nnum_pes: 4", ":2: num_pes must be given once"),
    ("num_pes: 4\nNumPEs: 4", ":2: NumPEs must be given once"),
    ("L1Size: 4", ":1: must give num_pes; Got 'l1_bytes'"),
    ("num_pes: 4\nl1_size: 4", ":2: must be a known field of a hardware file; Got 'l1_size'; Did you mean"),
    ("num_pes: 4\nl1_size_cstr: 1.5", ":2: l1_size_cstr must be a number"),
    ("num_pes: 4\nl2_size_cstr:\n", ":2: must go on with l2_size_cstr"),
    ("num_pes: 4\nnoc_bw_cstr: {}", ":2: noc_bw_cstr must be a number"),
    ("num_pes: 4\n{", ":2: must be a field such as num_pes; Got '{'"),
    ("num_pes: 4\noffchip_bw_cstr: 0", ":2: offchip_bw_cstr must be a positive whole number"),
    ("num_pes: 4\nNoC_NumHops: x", ":2: NoC_NumHops must be a number"),
    ("num_pes: 4, 5", ":1: must be a known field of a hardware file; Got '5'"),
]
TABLES = [
    ("", ":1: must have at least one row"),
    ("K,C,Y,X,R,S,T\n", ":1: must have at least one row"),
    ("K,C,Y,X,R,S\n1,1,1,1,1,1\n", ":1: must have the columns K,C,Y,X,R,S,T or M,N,K; Got '6 columns"),
    ("C,K,Y,X,R,S,T\n1,1,1,1,1,1,1\n", ":1 K: must be a whole number from 1 to 2147483648; Got 'C'"),
    ("1,1,1,1,1,1,1\nK,C,Y,X,R,S,T\n", ":2 K: must be a whole number"),
    ("4,4,8,8,3,3\n", ":1: must have the columns"),
    (f"{'9' * 5000},4,8,8,3,3,1\n", ":1 K: must be a whole number from 1"),
    ("4,4,8,8,3,3,1,1\n", ":1: must have the columns"),
    ("4,4,8,8,3,3,one\n", ":1 T: must be a whole number from 0 to 2147483648; Got 'one'"),
    ("4,4,8,8,3,3,7\n", ":1 T: must be one of 0, 1, 2, 3; Got 7"),
    ("4,4,8,8,3,3,1\n4,0,8,8,3,3,1\n", ":2 C: must be a whole number from 1 to 2147483648; Got '0'"),
    ("4,-4,8,8,3,3,1\n", ":1 C: must be a whole number"),
    ("4,4.5,8,8,3,3,1\n", ":1 C: must be a whole number"),
    ("4,,8,8,3,3,1\n", ":1 C: must be a whole number from 1 to 2147483648; Got ''"),
    ("4,4,2,8,3,3,1\n", ":1 Layer_1.Dimensions: Layer_1.kernel must fit"),
    ("4,9999999999,8,8,3,3,1\n", ":1 C: must be a whole number"),
    ("4;4;8;8;3;3;1\n", ":1: must have the columns"),
    ("7,12\n", ":1: must have the columns"),
    ("best_sol\n[]\n", "must come with the layer table"),
]
GENES = "['K', 4], ['C', 1], ['R', 2], ['S', 3], ['Y', 3], ['X', 3]"
GENOMES = [
    ("none", "must be a list of genes"),
    ("[]", "must be a list of genes"),
    ("[['K', 4]]", "must have 7 genes for every level; Got 1"),
    (f"[['K', 4], {GENES}, ['K', 2]]", "must have 7 genes for every level; Got 8"),
    (f"[['K', 4], {GENES.replace('C', 'K')}]", "must have one tile for each of K, C, Y, X, R, S at every level"),
    (f"[['K', 4], {GENES.replace('C', 'N')}]", "must have one tile for each of"),
    (f"[['N', 4], {GENES}]", "must spread one of K, C, Y, X, R, S; Got 'N'"),
    (f"[['K', 0], {GENES}]", "must be a whole number from 1 to 2147483648; Got '0'"),
    (f"[['K', 4], {GENES.replace('3', '0')}]", "must be a whole number from 1"),
    (f"[['K', -4], {GENES}]", "must be a list of genes"),
    (f"[['K', 4.5], {GENES}]", "must be a list of genes"),
    (f"[['K'], {GENES}]", "must be a list of genes"),
    (f"__import__('os').system('true'), {GENES}", "must be a list of genes"),
    (f"[['K', 4, 5], {GENES}]", "must be a list of genes"),
    (f"[['K', 4], {GENES}, ['K', 99], {GENES}]", "must have room in 16"),
]


def check(paths, expected, name):
    with pytest.raises(InputError, match=f"^{name}.*{expected}"):
        load_maestro(paths)


@pytest.mark.parametrize(("text", "expected"), NETWORKS)
def test_networks(text, expected, tmp_path):
    network, hardware = tmp_path / "net.m", tmp_path / "hw.m"
    network.write_text(text)
    hardware.write_text("num_pes: 16")
    check([network, hardware], expected, "net.m")


@pytest.mark.parametrize(("text", "expected"), HARDWARE)
def test_hardware(text, expected, tmp_path):
    path = tmp_path / "hw.m"
    path.write_text(text)
    check([path], expected, "hw.m")


@pytest.mark.parametrize(("text", "expected"), TABLES)
def test_tables(text, expected, tmp_path):
    path = tmp_path / "net.csv"
    path.write_text(text)
    check([path], expected, "net.csv")


@pytest.mark.parametrize(("genome", "expected"), GENOMES)
def test_genomes(genome, expected, tmp_path):
    table, result, log = tmp_path / "net.csv", tmp_path / "result_c.csv", tmp_path / "Layer_1"
    table.write_text("6,4,10,10,3,3,1\n")
    result.write_text(f',PE,best_sol\n0,16.0,"{genome}"\n')
    hardware = tmp_path / "hw.m"
    hardware.write_text("num_pes: 16")
    check([table, result], expected, "result_c.csv:2")
    log.write_text(f"Layer id: 1\nLayer: [6 4 10 10 3 3 1]\nBest Sol:\n{genome}")
    check([log, hardware], expected, "Layer_1:3")


@pytest.mark.parametrize(("files", "expected"), [
    ({"result_c.csv": ",PE,best_sol\n0,4,\n1,4,\n"}, "result_c.csv:3: must have at most a row for each layer"),
    ({"result_c.csv": ",PE,best_sol\n"}, "result_c.csv:1: must have a row for each layer"),
    ({"result_c.csv": ",PE,best_sol\n0,x,\n"}, "result_c.csv:2 PE: must be a whole number"),
    ({"result_c.csv": ",PE,best_sol\n0,4\n"}, "result_c.csv:2: must have 3 columns"),
    ({"a.csv": ",PE,best_sol\n0,4,\n", "b.csv": ",PE,best_sol\n0,4,\n"}, "b.csv:1: must be the only result"),
    ({"hw.m": "num_pes: 4", "hw2.m": "num_pes: 4"}, "hw2.m:1: must be the only hardware file"),
    ({"b.csv": "6,4,10,10,3,3,1\n"}, "b.csv:1: must be the only file that holds a network"),
    ({"Layer_1": "Layer id: 1\nBest Sol:\n[]"}, "Layer_1:1: must come without a layer table"),
])
def test_files_that_do_not_go_together(files, expected, tmp_path):
    paths = [tmp_path / "net.csv"]
    paths[0].write_text("6,4,10,10,3,3,1\n")
    for name, text in files.items():
        paths.append(tmp_path / name)
        paths[-1].write_text(text)
    check(paths, expected, "")


@pytest.mark.parametrize(("text", "expected"), [
    ("Layer id: 1\nBest Sol:\n[]", "Layer_1:1: must have the sizes of its layer"),
    ("Layer id: 1\nLayer: [1 2 3]\nBest Sol:\n[]", "Layer_1:2 Layer: must give K, C, Y, X, R, S, T"),
    ("Layer id: 1\nLayer: [6 4 10 10 3 3 1]\n", "Layer_1:2: must have the genome after Best Sol:"),
    ("Layer id: 1\nLayer: [6 4 10 10 3 3 one]\nBest Sol: []", "Layer_1:2 T: must be a whole number"),
])
def test_logs(text, expected, tmp_path):
    path = tmp_path / "Layer_1"
    path.write_text(text)
    check([path], expected, "")


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "net.m"
    path.write_bytes(b"Network \xff\xfe {")
    with pytest.raises(InputError, match="must be a readable text file in UTF-8"):
        load_maestro([path])
    with pytest.raises(InputError, match="must be an existing file"):
        load_maestro([tmp_path / "none.m"])
