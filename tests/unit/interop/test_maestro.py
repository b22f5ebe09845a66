"""MAESTRO's files, in small examples whose meaning can be told by hand."""

import pytest

from tilewright.base import InputError
from tilewright.cost import DenseModel
from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator, AccessEnergy, Compute, Fanout, Memory
from tilewright.interop import Foreign, dump_maestro, format_of, load_maestro
from tilewright.interop.maestro.stages import rows_of
from tilewright.mapping import LevelLoops, Loop, Mapping, dataflow, violations
from tilewright.workload import ROLES, convolution, matmul, transposed_convolution

HARDWARE = "num_pes: 16\nl1_size_cstr: 512\nl2_size_cstr: 108000\nnoc_bw_cstr: 64\noffchip_bw_cstr: 16\n"
WEIGHTS_STAY = """
// weight-stationary, clusters of 4
Constant Group 4;
Network demo {
  Layer Conv2d-1 {
    Type: CONV
    Stride { X: 2, Y: 2 }
    Dimensions { K: 16, C: 8, R: 3, S: 3, Y: 13, X: 13 }
    Dataflow {
      SpatialMap(1,1) K;
      TemporalMap(Group,Group) C;
      TemporalMap(Sz(R),Sz(R)) R;
      TemporalMap(Sz(S),Sz(S)) S;
      TemporalMap(Sz(R),1) Y;   // MAESTRO itself moves it on by the stride
      TemporalMap(2*Sz(S)-1,1) X;
      Cluster(Group, P);
      SpatialMap(1,1) C;
      TemporalMap(Sz(R),1) Y;
      TemporalMap(Sz(S),1) X;
      TemporalMap(Sz(R),Sz(R)) R;
      TemporalMap(Sz(S),Sz(S)) S;
    }
  }
}
"""
ROWS_STAY = """
Network rs { Layer one {
  Type: CONV
  Dimensions { K 6, C 4, R 3, S 3, Y 8, X 8 }
  Dataflow {
    TemporalMap(1,1) K; TemporalMap(2,2) C; TemporalMap(3,3) R;
    SpatialMap(Sz(R),1) Y;
    TemporalMap(4+Sz(S)-1,4) X;
    Cluster(4, P);
    SpatialMap(1,1) Y;
    SpatialMap(1,1) R;
    TemporalMap(Sz(S),Sz(S)) S;
  } } }
"""


@pytest.fixture
def files(tmp_path):
    def write(network, hardware=HARDWARE):
        paths = [tmp_path / "net.m"]
        paths[0].write_text(network)
        if hardware:
            paths.append(tmp_path / "hw.m")
            paths[1].write_text(hardware)
        return paths
    return write


def layer(dimensions, directives="", kind="CONV", stride=""):
    flow = f"Dataflow {{ {directives} }}" if directives else ""
    return f"Network n {{ Layer one {{ Type: {kind} {stride} Dimensions {{ {dimensions} }} {flow} }} }}"


def computed(operator, accelerator, mapping):
    """Multiply-accumulates that the oracle sees at L1: every one reads two operands there and updates an output."""
    counts = walk(operator, accelerator, mapping).counts
    first = {counts["L1", "I"].reads, counts["L1", "W"].reads, counts["L1", "O"].updates}
    assert len(first) == 1
    return first.pop()


def test_clusters_become_arrays_and_maps_become_loops(files):
    found = load_maestro(files(WEIGHTS_STAY))
    operator, mapping = found.operator, found.mapping
    assert operator.sizes == {"N": 1, "K": 16, "C": 8, "P": 6, "Q": 6, "R": 3, "S": 3}
    assert [level.name for level in found.accelerator.levels] == [
        "DRAM", "L2", "Array1", "Cluster1", "Array2", "L1"]
    assert [level.shape for level in found.accelerator.fanouts] == [(4, 1), (4, 1)]
    assert mapping.at("DRAM").loops == (Loop("K", 4), Loop("C", 4), Loop("P", 1), Loop("Q", 2))
    assert mapping.at("L2").loops == ()
    assert mapping.at("Array1").loops == (Loop("K", 1, "X"),)
    assert mapping.at("Cluster1").loops == (Loop("Q", 1),)
    assert mapping.at("Cluster1").keeps == ()
    assert mapping.at("Array2").loops == (Loop("C", 1, "X"),)
    assert mapping.at("L1").loops == (Loop("R", 1), Loop("S", 1))
    assert computed(operator, found.accelerator, mapping) == 16 * 8 * 6 * 6 * 3 * 3
    assert not found.notes


def test_the_hardware_file_gives_sizes_and_bandwidths(files):
    machine = load_maestro(files(WEIGHTS_STAY)).accelerator
    assert machine.compute_instances == 16
    assert machine.level("L1").capacity_bytes == 512
    assert machine.level("L2").capacity_bytes == 108000
    assert machine.level("L2").bandwidth.read == machine.level("L2").bandwidth.write == 64
    assert machine.level("DRAM").bandwidth.shared == 16
    assert machine.level("L2").energy.read_pj > machine.level("L1").energy.read_pj > 0


def test_both_spellings_of_hardware_fields_mean_the_same(tmp_path):
    old, new = tmp_path / "old.m", tmp_path / "new.m"
    old.write_text("NumPEs: 16\nL1Size: 512\nL2Size: 108000\nNoC_BW: 64\nNoC_NumHops: 1")
    new.write_text(HARDWARE.replace("offchip_bw_cstr: 16\n", ""))
    first, second = load_maestro([old]), load_maestro([new])
    assert first.accelerator == second.accelerator
    assert [str(note) for note in first.notes] == ["old.m:5 NoC_NumHops: dropped: hops take no time here"]
    assert [type(level) for level in first.accelerator.levels] == [Memory, Memory, Fanout, Memory]


def test_an_array_of_any_shape_gets_a_row_more_than_ragged_loops_use():
    operator = matmul("m", m=5, n=4, k=3)
    machine = Accelerator("any", (
        Memory("DRAM", ROLES, AccessEnergy(*[1.0] * 4)), Fanout("PEs", (4, 4), flexible=True),
        Memory("L1", ROLES, AccessEnergy(*[1.0] * 4))), Compute("MAC", 1.0))
    nest = Mapping((LevelLoops("DRAM"), LevelLoops("PEs", (Loop("M", 2, "Y"), Loop("N", 1, "X"))),
                    LevelLoops("L1", (Loop("M", 1), Loop("K", 1)))))
    assert rows_of({"a": nest, "b": nest}, {"a": operator, "b": operator}, machine) == {"a": 4}


def test_rows_that_spread_with_kernel_rows_are_kernel_rows_that_spread(files):
    found = load_maestro(files(ROWS_STAY))
    assert found.mapping.at("DRAM").loops == (Loop("K", 1), Loop("C", 2), Loop("P", 4), Loop("Q", 4))
    assert found.mapping.at("Array1").loops == (Loop("P", 1, "X"),)
    assert found.mapping.at("Array2").loops == (Loop("R", 1, "X"),)
    assert computed(found.operator, found.accelerator, found.mapping) == 6 * 4 * 6 * 6 * 3 * 3


def test_rows_and_columns_of_the_output_are_read_too(files):
    flow = "TemporalMap(4,4) Y'; TemporalMap(2,2) X'; SpatialMap(1,1) K; TemporalMap(3,3) R; TemporalMap(3,3) S;"
    found = load_maestro(files(layer("K: 4, C: 2, R: 3, S: 3, Y: 10, X: 8", flow)))
    assert found.mapping.at("DRAM").loops == (Loop("P", 4), Loop("Q", 2))
    assert found.mapping.at("Array1").loops == (Loop("K", 1, "X"),)
    assert not found.notes


def test_tiles_that_run_past_a_dimension_are_clamped_and_told_with_their_line(files):
    text = layer("K: 4, C: 2, R: 3, S: 3, Y: 10, X: 8",
                 "\nTemporalMap(64,64) C;\nTemporalMap(9,9) Y';\nSpatialMap(1,1) K;\nTemporalMap(12,1) X;\n")
    found = load_maestro(files(text))
    assert [str(note) for note in found.notes] == [
        "net.m:2 one.TemporalMap C: approximated: a tile of 64 runs past the 2 of C that there are; clamped to 2",
        "net.m:3 one.TemporalMap Y': approximated: a tile of 9 runs past the 8 of Y' that there are; clamped to 8",
        "net.m:5 one.TemporalMap X: approximated: a tile of 12 runs past the 8 of X that there are; clamped to 8",
    ]
    assert computed(found.operator, found.accelerator, found.mapping) == 4 * 2 * 8 * 6 * 9


def test_tiles_past_a_54_wide_output_compute_the_whole_layer_and_respect_the_bound(files):
    """Of this layer MAESTRO counts 73,728 multiply-accumulates, as the tiles of 56 and 55 run past 54 positions."""
    flow = """
      SpatialMap(1,1) K; TemporalMap(56,56) Y'; TemporalMap(55,55) X'; TemporalMap(1,1) C; TemporalMap(1,1) R;
      TemporalMap(1,1) S;
      Cluster(3,P);
      SpatialMap(56,56) Y'; TemporalMap(1,1) K; TemporalMap(55,55) X'; TemporalMap(1,1) C; TemporalMap(1,1) R;
      TemporalMap(1,1) S;
    """
    found = load_maestro(files(layer("K: 64, C: 64, R: 3, S: 3, Y: 56, X: 56", flow), "num_pes: 168\n"))
    cost = DenseModel(found.operator, found.accelerator).cost(found.mapping)
    assert cost.macs == 107_495_424
    assert cost.counts["L1", "O"].updates == cost.counts["L1", "I"].reads == cost.macs
    assert cost.latency_cycles >= cost.steps >= cost.macs / 168 > 639_853
    past = [note.text for note in found.notes]
    assert past == [f"a tile of {tile} runs past the 54 of {name} that there are; clamped to 54"
                    for tile, name in ((56, "Y'"), (55, "X'"), (56, "Y'"), (55, "X'"))]


def test_more_clusters_than_there_are_take_turns(files):
    flow = "TemporalMap(1,1) C; SpatialMap(3,3) K; TemporalMap(1,1) R;"
    found = load_maestro(files(layer("K: 20, C: 2, R: 1, S: 1, Y: 2, X: 2", flow), "num_pes: 4\n"))
    assert found.mapping.at("DRAM").loops == (Loop("C", 1), Loop("K", 12))
    assert found.mapping.at("Array1").loops == (Loop("K", 3, "X"),)
    assert computed(found.operator, found.accelerator, found.mapping) == 20 * 2 * 4


def test_without_a_hardware_file_the_machine_is_as_large_as_can_be_used(files):
    found = load_maestro(files(WEIGHTS_STAY, None))
    assert found.accelerator.compute_instances == 16 * 4
    assert [str(note) for note in found.notes] == [
        "net.m:9 Conv2d-1.Dataflow: approximated: a machine of 64 processing elements, as many as the dataflows can "
        "use, with memories and bandwidths without limit: no hardware file is given"]


def test_memories_without_limit_say_by_what_size_they_are_counted(files):
    machine = load_maestro(files(WEIGHTS_STAY, "num_pes: 16\n")).accelerator
    assert machine.level("L1").capacity_bytes is None
    assert "L1 has no limit; its energies are those of 2048 bytes." in machine.assumptions


def test_elements_in_no_whole_cluster_are_told(files):
    found = load_maestro(files(WEIGHTS_STAY, "num_pes: 18\n"))
    assert found.accelerator.compute_instances == 16
    assert "18 processing elements as 16" in found.notes[-1].text


def test_offsets_that_leave_or_repeat_outputs_are_told(files):
    flow = "TemporalMap(4,1) Y; TemporalMap(2,1) K; SpatialMap(1,1) C; TemporalMap(2,2) X;"
    found = load_maestro(files(layer("K: 4, C: 2, R: 3, S: 3, Y: 10, X: 8", flow)))
    assert [note.text for note in found.notes] == [
        "an offset of 1 as one of 2, the tile's size",
        "an offset of 1 as one of 2, so that every position of the output is computed once",
        "a window of 2 is smaller than the 3 of S; taken as one position of the output"]
    assert computed(found.operator, found.accelerator, found.mapping) == 4 * 2 * 8 * 6 * 9


def test_two_dimensions_that_spread_over_the_same_clusters(files):
    flow = "SpatialMap(1,1) K; SpatialMap(1,1) C;"
    found = load_maestro(files(layer("K: 4, C: 2, R: 1, S: 1, Y: 2, X: 2", flow)))
    assert [note.text for note in found.notes] == ["C in time, as K spreads over the same clusters"]
    assert found.mapping.at("DRAM").loops == (Loop("C", 1),)


def test_layers_without_a_dataflow_follow_the_layer_before(files):
    text = WEIGHTS_STAY.rstrip().removesuffix("}") + """
      Layer next { Type: CONV Dimensions { K: 4, C: 4, R: 1, S: 1, Y: 4, X: 4 } } }"""
    found = load_maestro(files(text))
    mapping = found.mappings["next"]
    assert mapping.at("DRAM").loops == (Loop("P", 3),)
    assert "a tile of 3 runs past the 1 of R" in " ".join(note.text for note in found.notes)
    assert computed(found.graph.mac_nodes[1].operator, found.accelerator, mapping) == 4 * 4 * 16


def test_a_network_alone_has_no_machine(files):
    found = load_maestro(files(layer("K: 4, C: 2, R: 1, S: 1, Y: 2, X: 2"), None))
    assert found.accelerator is None
    assert not found.mappings
    assert not found.notes


def test_layers_that_share_a_name_are_told_apart(files):
    text = """Network n { Layer a { Type: GEMM Dimensions { M: 2, N: 3, K: 4 } }
    Layer a { Type: GEMM Dimensions { M: 2, N: 3, K: 5 } } }"""
    found = load_maestro(files(text, None))
    assert [node.name for node in found.graph.nodes] == ["a", "a.2"]
    assert "net.m:2 a: approximated: the name, as a.2" in str(found.notes[0])


TWO_SHAPES = """Network n {
  Layer small { Type: GEMM Dimensions { M: 6, N: 8, K: 4 } Dataflow {
    SpatialMap(2,2) M; TemporalMap(4,4) N; Cluster(2,P); TemporalMap(2,2) N; TemporalMap(1,1) M; SpatialMap(1,1) K; } }
  Layer large { Type: GEMM Dimensions { M: 20, N: 8, K: 4 } Dataflow {
    SpatialMap(1,1) M; Cluster(4,P); SpatialMap(1,1) K; } }
  Layer none { Type: GEMM Dimensions { M: 20, N: 8, K: 4 } Dataflow { } }
  Layer deep { Type: GEMM Dimensions { M: 20, N: 8, K: 4 } Dataflow {
    SpatialMap(1,1) M; Cluster(2,P); SpatialMap(1,1) K; Cluster(2,P); SpatialMap(1,1) N; } }
}"""


def test_layers_with_different_clusters_share_an_array_of_any_shape(files):
    found = load_maestro(files(TWO_SHAPES))
    assert [level.name for level in found.accelerator.levels] == ["DRAM", "L2", "PEs", "L1"]
    array = found.accelerator.level("PEs")
    assert (array.instances, array.flexible) == (16, True)
    small = found.mappings["small"]  # three clusters of M, in turns now: 3 of M at once, twice
    assert small.at("DRAM").loops == (Loop("N", 4),)
    assert small.at("L2").loops == (Loop("N", 2), Loop("M", 3), Loop("K", 2))
    assert small.at("PEs").loops == (Loop("M", 1, "X"), Loop("K", 1, "Y"))
    assert found.mappings["large"].at("PEs").loops == (Loop("M", 1, "X"), Loop("K", 1, "Y"))
    assert found.mappings["large"].at("DRAM").loops == (Loop("M", 4),)
    for node in found.graph.mac_nodes[:2]:
        assert computed(node.operator, found.accelerator, found.mappings[node.name]) == node.operator.macs
        assert not violations(found.mappings[node.name], node.operator, found.accelerator)
    assert [str(note) for note in found.notes] == [
        "net.m:6 none.Dataflow: approximated: no mapping, as it is empty (MAESTRO takes that of the layer before)",
        "net.m:2 small.Dataflow: approximated: the loops inside its clusters outside the array, whose shape differs "
        "from layer to layer",
        "net.m:7 deep.Dataflow: dropped: its clusters make arrays of 4 x 2 x 2, more than one array of any shape has "
        "sides: read this layer alone, with --bind layer=NUMBER"]


def test_layers_whose_clusters_make_another_machine_have_no_mapping(files):
    text = """Network n {
    Layer small { Type: GEMM Dimensions { M: 2, N: 8, K: 4 } Dataflow {
      SpatialMap(1,1) M; Cluster(2,P); SpatialMap(1,1) K; } }
    Layer deep { Type: GEMM Dimensions { M: 20, N: 8, K: 4 } Dataflow {
      SpatialMap(1,1) M; Cluster(2,P); SpatialMap(1,1) K; Cluster(2,P); SpatialMap(1,1) N; } }
    }"""
    found = load_maestro(files(text))
    assert set(found.mappings) == {"deep"}
    assert [str(note) for note in found.notes] == [
        "net.m:2 small.Dataflow: dropped: its clusters make arrays of 8 x 2, those of most of the work 4 x 2 x 2: read "
        "this layer alone, with --bind layer=NUMBER"]


def test_one_layer_may_be_read_alone_and_has_its_own_machine(files):
    text = """Network n {
    Layer small { Type: GEMM Dimensions { M: 2, N: 8, K: 4 } Dataflow {
      SpatialMap(1,1) M; Cluster(2,P); SpatialMap(1,1) K; } }
    Layer large { Type: GEMM Dimensions { M: 20, N: 8, K: 4 } Dataflow {
      SpatialMap(1,1) M; Cluster(4,P); SpatialMap(1,1) K; } }
    }"""
    paths = files(text)
    form = format_of(paths[0])
    found = form.read(paths, {"layer": 1})
    assert found.operator.name == "small"
    assert [level.shape for level in found.accelerator.fanouts] == [(8, 1), (2, 1)]
    assert not found.notes
    with pytest.raises(InputError, match="layer: must be from 1 to 2, the layers of n; Got 3"):
        form.read(paths, {"layer": 3})
    with pytest.raises(InputError, match="bind: must be left out"):
        form.read(paths, {"batch": 3})


def test_of_two_directives_over_one_dimension_the_first_counts(files):
    flow = "SpatialMap(1,1) S;\nTemporalMap(2,2) S;\nTemporalMap(3,1) Y;\nTemporalMap(2,2) Y';"
    found = load_maestro(files(layer("K: 4, C: 2, R: 3, S: 2, Y: 10, X: 8", flow)))
    assert [str(note) for note in found.notes] == [
        "net.m:2 one.TemporalMap S: dropped: S is mapped already in line 1",
        "net.m:4 one.TemporalMap Y': dropped: Y is mapped already in line 3"]
    assert found.mapping.at("Array1").loops == (Loop("S", 1, "X"),)


@pytest.mark.parametrize(("text", "operator"), [
    (layer("M: 5, N: 6, K: 7", kind="GEMM"), matmul("one", m=5, n=6, k=7)),
    (layer("B: 2, M: 5, N: 6, K: 7", kind="BMM"), matmul("one", m=5, n=6, k=7, batch=2)),
    (layer("K: 1, C: 6, R: 3, S: 3, Y: 7, X: 9", kind="DSCONV", stride="Stride { Y: 2, X: 2 }"),
     convolution("one", in_channels=6, out_channels=6, groups=6, kernel=3, in_size=(7, 9), stride=2)),
    (layer("C: 6, R: 3, S: 3, Y: 7, X: 9", kind="DSCONV"),
     convolution("one", in_channels=6, out_channels=6, groups=6, kernel=3, in_size=(7, 9))),
    (layer("N: 2, G: 3, K: 4, C: 5, R: 3, S: 1, Y: 7, X: 9", kind="NGCONV"),
     convolution("one", in_channels=15, out_channels=12, groups=3, kernel=(3, 1), in_size=(7, 9), batch=2)),
    (layer("K: 4, C: 5, R: 2, S: 2, Y: 7, X: 9", kind="TRCONV"),
     transposed_convolution("one", in_channels=5, out_channels=4, kernel=2, in_size=(7, 9), stride=2)),
])
def test_types_of_layers(text, operator, files):
    assert load_maestro(files(text, None)).operator == operator


def test_what_cannot_be_honoured_of_a_type_is_told(files):
    trconv = load_maestro(files(layer("K: 4, C: 5, R: 2, S: 2, Y: 7, X: 9",
                                      "SpatialMap(Sz(R),1) Y; TemporalMap(4,4) X';", "TRCONV"), None))
    texts = [note.text for note in trconv.notes]
    assert texts[0].startswith("a transposed convolution of stride 2, 2 by its input positions")
    assert texts[2:] == ["a window of 2 as the 1 input positions that it moves by",
                         "4 positions of the output as 2 of the input"]
    assert computed(trconv.operator, trconv.accelerator, trconv.mapping) == 4 * 5 * 7 * 9 * 4
    groups = load_maestro(files(layer("G: 3, K: 4, C: 5, R: 1, S: 1, Y: 2, X: 2", kind="NGCONV"), None))
    assert groups.notes[0].text == "K: 4 and C: 5 as the channels of each of the 3 groups, not of all"
    deep = load_maestro(files(layer("K: 4, C: 5, R: 1, S: 1, Y: 2, X: 2", kind="DSCONV"), None))
    assert deep.notes[0].kind == "dropped"


def test_clusters_of_one_are_no_arrays_but_places_for_loops(files):
    flow = """SpatialMap(4,4) N; TemporalMap(4,4) M; TemporalMap(2,2) K; Cluster(4,P);
              TemporalMap(2,2) M; SpatialMap(1,1) N; Cluster(1,P); SpatialMap(1,1) K; TemporalMap(1,1) M;"""
    found = load_maestro(files(layer("M: 8, N: 4, K: 6", flow, "GEMM"), "num_pes: 4\n"))
    assert [level.name for level in found.accelerator.levels] == ["DRAM", "L2", "Array1", "L1"]
    assert found.mapping.at("DRAM").loops == (Loop("M", 4), Loop("K", 2))
    assert found.mapping.at("L2").loops == (Loop("M", 2),)
    assert found.mapping.at("L1").loops == (Loop("K", 1), Loop("M", 1))
    assert computed(found.operator, found.accelerator, found.mapping) == 8 * 4 * 6


@pytest.mark.parametrize("arch", ["eyeriss", "tpu-like", "nvdla-like", "simba-like", "edge-s2"])
@pytest.mark.parametrize("operator", [
    convolution("conv", in_channels=16, out_channels=32, in_size=14, kernel=3, stride=2),
    convolution("deep", in_channels=32, out_channels=32, groups=32, in_size=14, kernel=3),
    matmul("product", m=24, n=40, k=36),
])
def test_mappings_of_our_machines_are_written_and_still_compute_the_layer(arch, operator, tmp_path):
    import tilewright as tw

    machine = tw.load_accelerator(arch)
    mapping = dataflow("weight-stationary", operator, machine)
    graph = tw.load_network(operator)
    made = dump_maestro(Foreign(graph, machine, {operator.name: mapping}))
    again = load_maestro(made.write(tmp_path))
    assert again.operator == operator
    assert 0 < again.accelerator.compute_instances <= machine.compute_instances
    cost = DenseModel(operator, again.accelerator).cost(again.mapping)
    assert cost.counts["L1", "O"].updates == operator.macs
    ours = DenseModel(operator, machine).cost(mapping)
    assert cost.steps == ours.steps


def test_what_maestro_has_no_words_for_is_told_or_refused():
    import tilewright as tw

    machine = tw.load_accelerator("simba-like")
    operator = convolution("conv", in_channels=4, out_channels=4, in_size=9, kernel=3, dilation=2)
    made = dump_maestro(Foreign(tw.load_network(operator), machine))
    assert any("a dilation of 2 over R as 1" in note.text for note in made.notes)
    with pytest.raises(InputError, match="matrix product for MAESTRO"):
        dump_maestro(Foreign(tw.load_network("einsum:abc,cd->abd:a=2,b=2,c=2,d=2")))
    with pytest.raises(InputError, match="must be given with mappings"):
        dump_maestro(Foreign(tw.load_network(operator), None, {"conv": None}))


def test_files_are_known_by_their_beginning(tmp_path, files):
    network, hardware = files(WEIGHTS_STAY)
    other = tmp_path / "matlab.m"
    other.write_text("function y = f(x)\n  y = x; % Network\nend\n")
    assert format_of(network, "network").name == "maestro"
    assert format_of(hardware, "accelerator").name == "maestro"
    assert format_of(other) is None


def test_a_machine_survives_our_own_file(files):
    from tilewright.hardware import dump_accelerator, load_accelerator

    found = load_maestro(files(WEIGHTS_STAY))
    assert load_accelerator(dump_accelerator(found.accelerator)) == found.accelerator
    assert not violations(found.mapping, found.operator, found.accelerator)
