"""ONNX import: real models against published totals, every kind of node on small ones."""

from collections.abc import Callable
from math import prod
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.base import InputError
from tilewright.cost import cost_model, layer_bounds
from tilewright.hardware import preset
from tilewright.interop import load_onnx
from tilewright.interop.onnx_macs import window_padding
from tilewright.mapping import dataflow
from tilewright.workload import (
    DataMovement,
    Graph,
    MacNode,
    Unmodelled,
    VectorOperator,
    coverage,
    unique_operators,
    zoo,
)

DATA = Path(onnx.__file__).parent / "backend/test/data"
MICROSOFT = "com.microsoft"


def tensor(name: str, *shape: int, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))


def weights(**shapes: tuple[int, ...]) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in shapes.items()]


def integers(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Graph]:
    """Save a model of these nodes and load it back."""

    def build(nodes: list, inputs: list, constants: list | tuple = (), outputs: list | tuple = (), *,
              bind: dict[str, int] | None = None) -> Graph:
        made = list(outputs) or [onnx.ValueInfoProto(name=nodes[-1].output[0])]
        graph = helper.make_graph(nodes, "net", inputs, made, list(constants))
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)]
        file = tmp_path / "net.onnx"
        onnx.save(helper.make_model(graph, opset_imports=opsets), str(file))
        return load_onnx(file, bind=bind)

    return build


# Real models of the onnx wheel. Totals: torchvision's published _ops (in 10^9) where it has the very network.
REAL = {
    "resnet50": (4.089, 0.001, "torchvision ResNet50_Weights.IMAGENET1K_V1"),
    "vgg19": (19.632, 0.001, "torchvision VGG19_Weights.IMAGENET1K_V1"),
    "densenet121": (2.834, 0.001, "torchvision DenseNet121_Weights.IMAGENET1K_V1"),
    "squeezenet": (0.349, 0.002, "torchvision SqueezeNet1_1_Weights.IMAGENET1K_V1"),
    "inception_v1": (1.5, 0.05, "Szegedy et al., Rethinking the Inception Architecture, CVPR 2016, table 4 (1.5)"),
    "inception_v2": (2.0, 0.02, "Szegedy et al., the same table (BN-Inception, 2.0)"),
}


@pytest.mark.parametrize("name", REAL)
def test_real_models_against_published_totals(name: str) -> None:
    published, tolerance, source = REAL[name]
    graph = load_onnx(DATA / "light" / f"light_{name}.onnx")
    assert graph.macs == pytest.approx(published * 1e9, rel=tolerance), source
    report = coverage(graph)
    assert report.sentence == "100 % of MACs, 100 % of bytes modelled"


def test_resnet50_is_that_of_the_zoo() -> None:
    ours, theirs = zoo.load("resnet50"), load_onnx(DATA / "light/light_resnet50.onnx")
    assert ours.macs == theirs.macs
    assert ours.weight_words == theirs.weight_words
    # The file strides in the first 1x1 of a block or in the 3x3: same shapes of the zoo, counted as often.
    counts = [{u.operator.signature: u.count for u in unique_operators(graph)} for graph in (ours, theirs)]
    assert counts[0] == counts[1]


def test_alexnet_on_224_pixels() -> None:
    """Conv1 slides over 224 pixels without padding: 54 x 54 positions, then 26 x 26 and 12 x 12."""
    graph = load_onnx(DATA / "light/light_bvlc_alexnet.onnx")
    fully = 9216 * 4096 + 4096 * 4096 + 4096 * 1000
    convolutions = (96 * 363 * 54**2 + 256 * 48 * 25 * 26**2 + 384 * 256 * 9 * 12**2
                    + 384 * 192 * 9 * 12**2 + 256 * 192 * 9 * 12**2)
    assert graph.macs == convolutions + fully
    assert graph.weight_words == zoo.load("alexnet").weight_words


def test_every_model_of_the_wheel_loads() -> None:
    files = sorted(DATA.glob("*/*/model.onnx"))
    assert len(files) > 100
    for file in files:
        if file.parent.name == "test_sequence_model8":
            continue  # the one with a dynamic dimension
        graph = load_onnx(file)
        assert coverage(graph).sentence
        for node in graph.mac_nodes:
            if node.kind in ("conv", "depthwise"):
                assert node.macs == prod(node.operator.sizes.values())


@pytest.mark.slow
def test_every_operator_case_of_the_standard_loads(tmp_path: Path) -> None:
    """The standard's own test cases, some 1900: a network, or one clear error about dynamic dimensions."""
    import warnings

    from onnx.backend.test.case.node import collect_testcases

    from tilewright.base import InputError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    loaded = 0
    for case in cases:
        (tmp_path / "m.onnx").write_bytes(case.model.SerializeToString())
        try:
            assert coverage(load_onnx(tmp_path / "m.onnx")).sentence
            loaded += 1
        except InputError as error:
            assert "dynamic dimensions: must be bound" in str(error)
    assert loaded > 1600


def single(graph: Graph) -> MacNode:
    (node,) = graph.mac_nodes
    return node


@pytest.mark.parametrize(("attributes", "x", "w", "macs", "out"), [
    ({}, (1, 3, 8, 8), (4, 3, 3, 3), 36 * 27 * 4, "6x6"),
    ({"strides": [2, 2], "pads": [1, 1, 1, 1]}, (2, 3, 8, 8), (4, 3, 3, 3), 2 * 16 * 27 * 4, "4x4"),
    ({"group": 4, "pads": [1, 0, 0, 1]}, (1, 8, 6, 6), (8, 2, 2, 2), 36 * 2 * 4 * 8, "6x6"),
    ({"group": 6}, (1, 6, 5, 5), (6, 1, 3, 3), 9 * 9 * 6, "3x3"),
    ({"dilations": [2, 3]}, (1, 1, 9, 9), (1, 1, 3, 3), 5 * 3 * 9, "5x3"),
    ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (1, 1, 7, 8), (1, 1, 3, 3), 16 * 9, "4x4"),
    ({"auto_pad": "SAME_LOWER", "strides": [3, 2]}, (1, 1, 7, 8), (1, 1, 2, 5), 3 * 4 * 10, "3x4"),
    ({"auto_pad": "VALID", "strides": [2, 2]}, (1, 1, 8, 8), (1, 1, 3, 3), 9 * 9, "3x3"),
    ({"strides": [2]}, (1, 2, 9), (3, 2, 3), 4 * 6 * 3, "4"),
    ({}, (1, 2, 4, 5, 6), (3, 2, 2, 2, 2), 3 * 4 * 5 * 16 * 3, "3x4x5"),
])
def test_convolutions(load, attributes, x, w, macs, out) -> None:
    node = single(load([helper.make_node("Conv", ["x", "w"], ["y"], **attributes)], [tensor("x", *x)], weights(w=w)))
    assert node.macs == macs
    assert dict(node.operator.attributes)["out_size"] == out
    assert dict(node.operator.attributes)["element_type"] == "float"


@pytest.mark.parametrize(("mode", "pairs"), [("SAME_UPPER", [(1, 2)]), ("SAME_LOWER", [(2, 1)]), ("VALID", [(0, 0)])])
def test_an_odd_row_of_padding_is_at_the_end_or_at_the_start(mode, pairs):
    node = SimpleNamespace(text=lambda name, default: mode)
    assert window_padding(node, (7,), ([4], [1], [1])) == pairs


@pytest.mark.parametrize(("attributes", "out"), [
    ({"strides": [2, 2]}, "9x9"),
    ({"strides": [2, 2], "pads": [1, 1, 0, 0], "output_padding": [1, 0]}, "9x8"),
    ({"strides": [2, 2], "auto_pad": "SAME_UPPER"}, "8x8"),
    ({"strides": [2, 2], "output_shape": [10, 7]}, "10x7"),
    ({"strides": [2, 2], "dilations": [2, 1]}, "11x9"),
])
def test_transposed_convolutions(load, attributes, out) -> None:
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)]
    node = single(load(nodes, [tensor("x", 1, 2, 4, 4)], weights(w=(2, 3, 3, 3))))
    assert node.macs == 16 * 9 * 2 * 3  # input positions times kernel times channels
    assert dict(node.operator.attributes)["out_size"] == out
    assert node.operator.output.axes[2].terms[0] == ("P", 2)


@pytest.mark.parametrize(("a", "b", "sizes"), [
    ((5, 4), (4, 3), {"B": 1, "M": 5, "N": 3, "K": 4}),
    ((2, 5, 4), (4, 3), {"B": 1, "M": 10, "N": 3, "K": 4}),
    ((2, 7, 5, 4), (2, 7, 4, 3), {"B": 14, "M": 5, "N": 3, "K": 4}),
    ((2, 7, 5, 4), (2, 1, 4, 3), {"B": 2, "M": 35, "N": 3, "K": 4}),
    ((7, 5, 4), (2, 7, 4, 3), {"B": 7, "M": 5, "N": 6, "K": 4}),
    ((4,), (4, 3), {"B": 1, "M": 1, "N": 3, "K": 4}),
    ((5, 4), (4,), {"B": 1, "M": 5, "N": 1, "K": 4}),
])
def test_matrix_products_as_numpy_broadcasts_them(load, a, b, sizes) -> None:
    node = single(load([helper.make_node("MatMul", ["a", "b"], ["y"])], [tensor("a", *a), tensor("b", *b)]))
    assert node.operator.sizes == sizes
    result = np.matmul(np.zeros(a), np.zeros(b))
    assert node.macs == result.size * a[-1]
    assert dict(node.operator.attributes)["weights"] == "activations"


def test_constants_on_the_left_are_weights_all_the_same(load) -> None:
    graph = load([helper.make_node("MatMul", ["w", "x"], ["y"])], [tensor("x", 4, 3)], weights(w=(50, 4)))
    assert single(graph).operator.sizes == {"B": 1, "M": 3, "N": 50, "K": 4}
    assert graph.weight_words == 200


@pytest.mark.parametrize(("attributes", "a", "b"), [({}, (5, 4), (4, 3)), ({"transA": 1}, (4, 5), (4, 3)),
                                                    ({"transB": 1}, (5, 4), (3, 4))])
def test_gemm(load, attributes, a, b) -> None:
    nodes = [helper.make_node("Gemm", ["a", "b", "c"], ["y"], **attributes)]
    node = single(load(nodes, [tensor("a", *a)], weights(b=b, c=(3,))))
    assert node.operator.sizes == {"B": 1, "M": 5, "N": 3, "K": 4}
    assert "weights" not in dict(node.operator.attributes)


@pytest.mark.parametrize(("equation", "shapes", "macs"), [
    ("bik,bkj->bij", [(2, 3, 4), (2, 4, 5)], 120),
    ("ij,jk", [(3, 4), (4, 5)], 60),
    ("...ik,...kj->...ij", [(2, 6, 3, 4), (2, 6, 4, 5)], 720),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)], 120),
])
def test_einsums(load, equation, shapes, macs) -> None:
    inputs = [tensor(f"x{i}", *shape) for i, shape in enumerate(shapes)]
    nodes = [helper.make_node("Einsum", [v.name for v in inputs], ["y"], equation=equation)]
    assert single(load(nodes, inputs)).macs == macs


def test_einsums_of_one_operand_are_no_products(load) -> None:
    graph = load([helper.make_node("Einsum", ["x"], ["y"], equation="ij->i")], [tensor("x", 3, 4)])
    assert graph.nodes == (VectorOperator("y", "Einsum", 9, 12, 3),)


def test_einsums_that_no_nest_covers_are_listed(load) -> None:
    nodes = [helper.make_node("Einsum", ["x", "y"], ["z"], equation="ii,i->i")]
    graph = load(nodes, [tensor("x", 3, 3), tensor("y", 3)])
    assert coverage(graph).sentence.endswith(
        "not modelled: z (Einsum: a diagonal is no box of words); MACs or bytes unknown of z")


@pytest.mark.parametrize(("kind", "order"), [("ConvInteger", ["x", "w"]),
                                             ("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z"])])
def test_quantised_convolutions(load, kind, order) -> None:
    constants = [numpy_helper.from_array(np.zeros((4, 3, 3, 3), np.uint8), "w"),
                 numpy_helper.from_array(np.float32(1), "s"), numpy_helper.from_array(np.uint8(0), "z")]
    graph = load([helper.make_node(kind, order, ["y"])], [tensor("x", 1, 3, 8, 8, kind=TensorProto.UINT8)], constants)
    node = single(graph)
    assert node.macs == 36 * 27 * 4
    assert dict(node.operator.attributes)["element_type"] == "uint8"
    assert all(t.word_bits is None for t in node.operator.tensors)


@pytest.mark.parametrize(("kind", "order"), [("MatMulInteger", ["a", "b"]),
                                             ("QLinearMatMul", ["a", "s", "z", "b", "s", "z", "s", "z"])])
def test_quantised_products(load, kind, order) -> None:
    constants = [numpy_helper.from_array(np.zeros((4, 3), np.uint8), "b"),
                 numpy_helper.from_array(np.float32(1), "s"), numpy_helper.from_array(np.uint8(0), "z")]
    graph = load([helper.make_node(kind, order, ["y"])], [tensor("a", 5, 4, kind=TensorProto.UINT8)], constants)
    assert single(graph).macs == 60
    assert graph.weight_words == 12


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("directions", [1, 2])
def test_recurrent_layers_are_products_times_steps(load, kind, gates, directions) -> None:
    steps, batch, features, hidden = 7, 2, 5, 6
    nodes = [helper.make_node(kind, ["x", "w", "r"], ["y"], "rnn", hidden_size=hidden,
                              direction="forward" if directions == 1 else "bidirectional"),
             helper.make_node("Relu", ["y"], ["z"])]
    graph = load(nodes, [tensor("x", steps, batch, features)],
                 weights(w=(directions, gates * hidden, features), r=(directions, gates * hidden, hidden)))
    given = steps * batch * features * gates * hidden
    state = steps * batch * hidden * gates * hidden
    assert graph.macs == directions * (given + state)
    assert {node.count for node in graph.mac_nodes} == {1, steps}
    assert len(graph.node("z").inputs) == directions
    assert "rnn" in coverage(graph).sentence
    assert "as matrix products with the input at once and with the state step by step" in coverage(graph).sentence


def test_recurrent_layers_with_the_batch_first(load) -> None:
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=6, layout=1)]
    graph = load(nodes, [tensor("x", 2, 7, 5)], weights(w=(1, 24, 5), r=(1, 24, 6)))
    assert sorted(node.count for node in graph.mac_nodes) == [1, 7]


def test_fused_attention_is_taken_apart(load) -> None:
    """One BERT-like layer of com.microsoft: projection, scores, softmax, context."""
    nodes = [helper.make_node("Attention", ["x", "w", "b"], ["y"], "att", domain=MICROSOFT, num_heads=4)]
    graph = load(nodes, [tensor("x", 2, 16, 32)], weights(w=(32, 96), b=(96,)), [tensor("y", 2, 16, 32)])
    assert graph.macs == 2 * (16 * 32 * 96 + 2 * 16 * 16 * 32)
    assert [n.name for n in graph.nodes] == ["att.qkv", "att.scores", "att.softmax", "att.context"]
    assert "as batched matrix products and a softmax" in coverage(graph).sentence
    assert graph.weight_words == 32 * 96


@pytest.mark.parametrize(("kind", "heads", "groups"), [("MultiHeadAttention", 4, 4), ("GroupQueryAttention", 4, 2)])
def test_attention_over_given_heads(load, kind, heads, groups) -> None:
    attributes = {"num_heads": heads} | ({"kv_num_heads": groups} if groups != heads else {})
    nodes = [helper.make_node(kind, ["q", "k", "v"], ["y"], domain=MICROSOFT, **attributes)]
    inputs = [tensor("q", 2, 10, heads * 8), tensor("k", 2, 12, groups * 8), tensor("v", 2, 12, groups * 8)]
    graph = load(nodes, inputs, outputs=[tensor("y", 2, 10, heads * 8)])
    assert graph.macs == 2 * 2 * 10 * 12 * heads * 8
    assert graph.mac_nodes[0].operator.sizes["B"] == 2 * groups


@pytest.mark.parametrize(("kind", "place"), [("MultiHeadAttention", 6), ("GroupQueryAttention", 3)])
def test_keys_of_the_past_are_attended_to(load, kind, place) -> None:
    names = ["q", "k", "v", "", "", "", "", ""]
    names[place:place + 2] = ["pk", "pv"]
    attributes = {"num_heads": 4} | ({"kv_num_heads": 4} if place == 3 else {})
    nodes = [helper.make_node(kind, names[:place + 2], ["y"], domain=MICROSOFT, **attributes)]
    inputs = [tensor("q", 2, 10, 32), tensor("k", 2, 12, 32), tensor("v", 2, 12, 32), tensor("pk", 2, 4, 7, 8),
              tensor("pv", 2, 4, 7, 8)]
    graph = load(nodes, inputs, outputs=[tensor("y", 2, 10, 32)])
    assert graph.macs == 2 * 2 * 10 * (12 + 7) * 32


def test_transposed_and_packed_products_of_other_vendors(load) -> None:
    nodes = [helper.make_node("FusedMatMul", ["a", "b"], ["c"], domain=MICROSOFT, transB=1),
             helper.make_node("MatMulNBits", ["c", "p", "s"], ["d"], domain=MICROSOFT, N=9, K=3, bits=4, block_size=16)]
    constants = [*weights(b=(3, 4), s=(9,)), numpy_helper.from_array(np.zeros((9, 1, 8), np.uint8), "p")]
    graph = load(nodes, [tensor("a", 5, 4)], constants, [tensor("d", 5, 9), tensor("c", 5, 3)])
    assert [node.macs for node in graph.mac_nodes] == [60, 135]
    assert "d as a product with weights of 4 bits, and 2 for each of scales and zero" in coverage(graph).sentence
    assert [node.operator.tensor("W").word_bits for node in graph.mac_nodes] == [None, 4 + 32 / 16]
    assert graph.mac_nodes[1].bytes_moved(8) == 5 * 3 + 3 * 9 * 6 / 8 + 5 * 9


def test_packed_weights_take_their_bits_in_every_memory(load) -> None:
    """A machine of 16-bit words moves a 4-bit weight as a quarter of a word, and holds it in half a byte."""
    def product(bits):
        node = helper.make_node("MatMulNBits", ["a", "p", "s"], ["d"], domain=MICROSOFT, N=64, K=32, bits=bits,
                                block_size=16)
        constants = [*weights(s=(128,)), numpy_helper.from_array(np.zeros((64, 2, bits * 2), np.uint8), "p")]
        return load([node], [tensor("a", 8, 32)], constants, [tensor("d", 8, 64)]).mac_nodes[0].operator

    machine = preset("eyeriss")
    four, sixteen = product(4), product(16)
    mapping = dataflow("weight-stationary", four, machine)
    costs = {bits: cost_model(operator, machine).cost(mapping) for bits, operator in ((4, four), (16, sixteen))}
    assert costs[4].counts == costs[16].counts  # words are words; their energy is that of their bits
    dram = machine.memories[0].energy.read_pj * costs[4].counts["DRAM", "W"].reads
    assert costs[16].energy_pj - costs[4].energy_pj >= 0.75 * dram > 0
    assert layer_bounds(four, machine).energy_pj < layer_bounds(sixteen, machine).energy_pj


def vector_of(graph: Graph) -> VectorOperator:
    (node,) = graph.nodes
    assert isinstance(node, VectorOperator)
    return node


@pytest.mark.parametrize(("kind", "attributes", "operations", "written"), [
    ("Relu", {}, 192, 192), ("Sigmoid", {}, 4 * 192, 192), ("Softmax", {}, 5 * 192, 192),
    ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2]}, 9 * 3 * 9, 3 * 9),
    ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, 9 * 3 * 16, 3 * 16),
    ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}, 4 * 48, 48),
    ("GlobalAveragePool", {}, 192, 3), ("ReduceMean", {}, 192, 1), ("ArgMax", {"axis": 1}, 192, 64),
    ("LRN", {"size": 5}, 9 * 192, 192), ("Erf", {}, 192, 192), ("Gelu", {}, 5 * 192, 192),
])
def test_vector_work(load, kind, attributes, operations, written) -> None:
    node = vector_of(load([helper.make_node(kind, ["x"], ["y"], **attributes)], [tensor("x", 1, 3, 8, 8)]))
    assert (node.operations, node.read_words, node.written_words) == (operations, 192, written)
    assert dict(node.attributes)["element_type"] == "float"


def test_vector_work_of_several_operands(load) -> None:
    node = vector_of(load([helper.make_node("Add", ["x", "b"], ["y"])], [tensor("x", 2, 6)], weights(b=(6,))))
    assert (node.operations, node.read_words, node.written_words) == (12, 18, 12)
    node = vector_of(load([helper.make_node("Sum", ["x", "x", "x"], ["y"])], [tensor("x", 2, 6)]))
    assert node.operations == 24
    norm = [helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"])]
    node = vector_of(load(norm, [tensor("x", 2, 6)], weights(g=(6,), b=(6,))))
    assert (node.operations, node.read_words) == (96, 24)


@pytest.mark.parametrize(("nodes", "constants", "read", "written"), [
    ([helper.make_node("Reshape", ["x", "s"], ["y"])], [integers("s", 3, -1)], 0, 0),
    ([helper.make_node("Flatten", ["x"], ["y"])], [], 0, 0),
    ([helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, 2])], [], 24, 24),
    ([helper.make_node("Concat", ["x", "x"], ["y"], axis=1)], [], 48, 48),
    ([helper.make_node("Slice", ["x", "s", "e"], ["y"])], [integers("s", 0), integers("e", 1)], 12, 12),
    ([helper.make_node("Split", ["x"], ["y", "z"], axis=0, num_outputs=2)], [], 24, 24),
    ([helper.make_node("Pad", ["x", "p"], ["y"])], [integers("p", 0, 0, 1, 0, 0, 1)], 24, 36),
    ([helper.make_node("Tile", ["x", "t"], ["y"])], [integers("t", 1, 2, 1)], 24, 48),
])
def test_data_movement(load, nodes, constants, read, written) -> None:
    (node,) = load(nodes, [tensor("x", 2, 3, 4)], constants).nodes
    assert isinstance(node, DataMovement)
    assert (node.read_words, node.written_words) == (read, written)


def test_embeddings_carry_their_table(load) -> None:
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"])]
    graph = load(nodes, [tensor("ids", 2, 5, kind=TensorProto.INT64)], weights(table=(1000, 8)))
    (node,) = graph.nodes
    assert isinstance(node, DataMovement)
    assert (node.read_words, node.written_words, graph.weight_words) == (80, 80, 8000)


def test_tied_weights_are_counted_once(load) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("MatMul", ["y", "w"], ["z"])]
    graph = load(nodes, [tensor("x", 3, 4)], weights(w=(4, 4)))
    assert graph.weight_words == 16
    assert [(u.count, u.names) for u in unique_operators(graph)] == [(2, ("y", "z"))]


def test_strangers_are_listed_and_a_branch_that_depends_on_data_is_the_larger_one(load) -> None:
    body = helper.make_graph([helper.make_node("Relu", ["r"], ["s"]), helper.make_node("Neg", ["s"], ["t"])], "then",
                             [], [tensor("t", 2, 3)])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "else", [], [tensor("e", 2, 3)])
    nodes = [helper.make_node("Relu", ["x"], ["r"], "before"),
             helper.make_node("If", ["c"], ["y"], "branch", then_branch=body, else_branch=other),
             helper.make_node("Strange", ["y"], ["z"], "odd", domain="my.house"),
             helper.make_node("MatMul", ["x", "w"], ["m"])]
    graph = load(nodes, [tensor("c", kind=TensorProto.BOOL), tensor("x", 2, 3)], weights(w=(3, 4)))
    (lost,) = [node for node in graph.nodes if isinstance(node, Unmodelled)]
    assert (lost.name, lost.reason, lost.inputs) == ("odd", "operator of the domain my.house", ("branch/y",))
    assert [node.kind for node in graph.nodes] == ["Relu", "Relu", "Neg", "Identity", "Strange", "matmul"]
    assert graph.notes[0] == ("If branch: its condition depends on the data; the larger branch (2 nodes) is counted")
    sentence = coverage(graph).sentence
    # The one product; nobody knows what the others have.
    assert sentence.startswith("an unknown share: 24 MACs and ")
    assert "1 node of unknown size lost" in sentence and not coverage(graph).complete


def test_a_branch_is_the_one_that_a_condition_on_shapes_takes(load) -> None:
    """Nested, and between nodes of one name."""
    small = helper.make_graph([helper.make_node("Relu", ["x"], ["q"])], "small", [], [tensor("q", 2, 3)])
    inner = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["q"])], "inner", [], [tensor("q", 2, 4)])
    same = [helper.make_node("Equal", ["n", "three"], ["c"]), helper.make_node("Not", ["c"], ["d"])]
    body = helper.make_graph([helper.make_node("If", ["d"], ["q"], then_branch=small, else_branch=inner)], "then", [],
                             [tensor("q", 2, 4)])
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "one"], ["n"]), *same,
             helper.make_node("If", ["c"], ["y"], "branch", then_branch=body, else_branch=small)]
    constants = [*weights(w=(3, 4)), numpy_helper.from_array(np.array(1), "one"),
                 numpy_helper.from_array(np.array(3), "three")]
    graph = load(nodes, [tensor("x", 2, 3)], constants, [tensor("y", 2, 4)])
    assert [(node.kind, node.macs) for node in graph.mac_nodes] == [("matmul", 24)]
    assert coverage(graph).complete and not any("larger" in note for note in graph.notes)


def looped(trips, *nodes):
    """A loop over ``x`` (2, 3), which it hands on, with one result of each trip."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), *nodes], "body",
        [tensor("i", kind=TensorProto.INT64), tensor("go", kind=TensorProto.BOOL), tensor("v", 2, 3)],
        [tensor("on", kind=TensorProto.BOOL), tensor("u", 2, 3), tensor("p", 2, 4)], weights(w=(3, 4)))
    return helper.make_node("Loop", [trips, "", "x"], ["last", "all"], "loop", body=body)


def test_the_body_of_a_loop_counts_as_often_as_it_runs(load) -> None:
    step = [helper.make_node("MatMul", ["v", "w"], ["p"], "step"), helper.make_node("Relu", ["v"], ["u"], "other")]
    end = helper.make_node("MatMul", ["all", "m"], ["y"], "end")
    constants = [numpy_helper.from_array(np.array(5), "five"), *weights(m=(4, 6))]
    graph = load([looped("five", *step), end], [tensor("x", 2, 3)], constants, [tensor("y", 5, 2, 6)])
    assert [(node.name, node.count, node.macs) for node in graph.mac_nodes] == [("step", 5, 5 * 24), ("end", 1, 240)]
    assert [node.count for node in graph.nodes if node.name == "other"] == [5]
    assert "Loop loop: its body counts 5 times" in graph.notes and coverage(graph).complete
    unknown = load([looped("n", *step)], [tensor("x", 2, 3), tensor("n", kind=TensorProto.INT64)], constants,
                   [tensor("all", 5, 2, 4)])
    assert [node.reason for node in unknown.nodes if isinstance(node, Unmodelled)] == [
        "control flow, its trips are counted at run time; within it 1 MatMul"]


def test_the_body_of_a_scan_counts_once_a_slice(load) -> None:
    body = helper.make_graph([helper.make_node("MatMul", ["row", "w"], ["p"], "step"),
                              helper.make_node("Add", ["state", "p"], ["next"])], "body",
                             [tensor("state", 1, 4), tensor("row", 1, 3)], [tensor("next", 1, 4), tensor("p", 1, 4)])
    node = helper.make_node("Scan", ["first", "rows"], ["last", "all"], "scan", body=body, num_scan_inputs=1)
    graph = load([node], [tensor("first", 1, 4), tensor("rows", 7, 1, 3)], weights(w=(3, 4)),
                 [tensor("last", 1, 4), tensor("all", 7, 1, 4)])
    assert [(node.count, node.macs) for node in graph.mac_nodes] == [(7, 7 * 12)]
    assert [node.written_words for node in graph.nodes if node.kind == "Concat"] == [28]
    assert coverage(graph).complete


def test_a_quantised_recurrent_layer_is_the_layer(load) -> None:
    plain = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=4)]
    names = ["x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"]
    nodes = [helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain=MICROSOFT, hidden_size=4),
             helper.make_node("Relu", ["y"], ["out"])]
    x = [tensor("x", 5, 1, 3)]
    expected = load(plain, x, weights(w=(1, 16, 3), r=(1, 16, 4)), [tensor("y", 5, 1, 1, 4)])
    found = load(nodes, x, [*weights(w=(1, 3, 16), r=(1, 4, 16), s=(1,), z=(1,))], [tensor("out", 5, 1, 1, 4)])
    assert [node.operator.dimensions for node in found.mac_nodes] == [
        node.operator.dimensions for node in expected.mac_nodes]
    assert coverage(found).complete  # the shape of its result is known, too


@pytest.mark.parametrize("written", ["{}[{}]", "{}.{}"])
def test_dimensions_of_no_name_are_bound_by_input_and_axis(load, written) -> None:
    """Files call every one of them ``?``, though they differ."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["?", "?"])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["?", 4])
    bind = {written.format("x", axis): size for axis, size in enumerate((2, 3))}
    graph = load([helper.make_node("MatMul", ["x", "w"], ["y"])], [given], weights(w=(3, 4)), [made], bind=bind)
    assert graph.macs == 24
    with pytest.raises(InputError, match=r"must be bound; Got 'x\[0\], x\[1\]'"):
        load([helper.make_node("MatMul", ["x", "w"], ["y"])], [given], weights(w=(3, 4)), [made])


def test_what_follows_an_unknown_shape_is_listed_too(load) -> None:
    nodes = [helper.make_node("Strange", ["x"], ["y"], domain="my.house"),
             helper.make_node("MatMul", ["y", "w"], ["z"])]
    graph = load(nodes, [tensor("x", 2, 3)], weights(w=(3, 4)))
    assert [n.reason for n in graph.nodes if isinstance(n, Unmodelled)][1] == "the shape of y is unknown"
    assert graph.notes == ("Shapes were lost at y (Strange): for want of them 1 node is not modelled",)
    told = load([helper.make_node("Relu", ["x"], ["r"], "before"), *nodes], [tensor("x", 2, 3)], weights(w=(3, 4)))
    assert told.notes == graph.notes


def test_a_deformable_convolution_is_sampling_and_a_product(load) -> None:
    """As many multiply-accumulates as the convolution, group by group, behind four neighbours for each input."""
    nodes = [helper.make_node("DeformConv", ["x", "w", "o"], ["y"], "bent", group=3),
             helper.make_node("Conv", ["x", "w"], ["z"], "plain", group=3)]
    graph = load(nodes, [tensor("x", 1, 3, 6, 6), tensor("o", 1, 18, 4, 4)], weights(w=(6, 1, 3, 3)),
                 [tensor("y", 1, 6, 4, 4), tensor("z", 1, 6, 4, 4)])
    assert {node.name: node.macs for node in graph.mac_nodes} == {"bent": 6 * 16 * 9, "plain": 6 * 16 * 9}
    (sample,) = (node for node in graph.nodes if isinstance(node, VectorOperator))
    assert (sample.operations, sample.written_words) == (8 * 16 * 3 * 9, 16 * 3 * 9)
    assert graph.mac_nodes[0].inputs == (sample.name,) and coverage(graph).complete


@pytest.mark.parametrize(("node", "inputs", "out", "operations"), [
    (helper.make_node("DFT", ["x"], ["y"]), [tensor("x", 2, 64, 1)], (2, 64, 2), 2 * 5 * 64 * 6),
    (helper.make_node("STFT", ["x", "step", "window"], ["y"], onesided=1), [tensor("x", 1, 256, 1)], (1, 7, 33, 2),
     7 * (64 + 5 * 64 * 6))])
def test_transforms_are_vector_work_of_fast_ones(load, node, inputs, out, operations) -> None:
    constants = [*weights(window=(64,)), numpy_helper.from_array(np.array(32), "step")]
    graph = load([node], inputs, constants, [tensor("y", *out)])
    assert vector_of(graph).operations == operations and "fast transform" in vector_of(graph).approximated_as

def test_constants_are_folded(load) -> None:
    """Weights made at run time from constants alone (transposed, scaled, filled) are weights."""
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["w0"]), helper.make_node("Transpose", ["w0"], ["w1"]),
             helper.make_node("Mul", ["w1", "k"], ["w2"]), helper.make_node("MatMul", ["x", "w2"], ["y"])]
    graph = load(nodes, [tensor("x", 5, 300)], [integers("s", 400, 300), *weights(k=(1,))])
    assert [n.name for n in graph.nodes] == ["y"]
    assert graph.weight_words == 400 * 300
    assert graph.notes == ("3 constant nodes folded",)


def dynamic(name: str, *shape: int | str | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def test_dynamic_dimensions_are_bound(load) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = load(nodes, [dynamic("x", "batch", None, 4)], weights(w=(4, 3)), [dynamic("y", "batch", "n", 3)],
                 bind={"batch": 6, "x[1]": 7})
    assert graph.macs == 6 * 7 * 12
    assert graph.notes == ("Bound batch = 6", "Bound x[1] = 7")


def test_shapes_computed_at_run_time_are_followed(load) -> None:
    """Heads split as PyTorch exports it: Shape, Gather, Unsqueeze, Concat, Reshape, and Expand by Where and Equal."""
    make = helper.make_node
    nodes = [
        make("Shape", ["x"], ["shape"]),
        make("Gather", ["shape", "zero"], ["b"]), make("Gather", ["shape", "one"], ["l"]),
        make("Unsqueeze", ["b", "axes"], ["b1"]), make("Unsqueeze", ["l", "axes"], ["l1"]),
        make("Concat", ["b1", "l1", "heads", "size"], ["split"], axis=0),
        make("Reshape", ["x", "split"], ["x4"]), make("Transpose", ["x4"], ["q"], perm=[0, 2, 1, 3]),
        make("Transpose", ["x4"], ["k"], perm=[0, 2, 3, 1]),
        make("Concat", ["b1", "minus", "minus", "minus"], ["wish"], axis=0),
        make("Equal", ["wish", "minus"], ["open"]), make("ConstantOfShape", ["four"], ["ones0"]),
        make("Where", ["open", "filled", "wish"], ["target"]), make("Expand", ["k", "target"], ["kk"]),
        make("MatMul", ["q", "kk"], ["scores"]),
    ]
    constants = [numpy_helper.from_array(np.int64(0), "zero"), numpy_helper.from_array(np.int64(1), "one"),
                 integers("axes", 0), integers("heads", 4), integers("size", 8), integers("minus", -1),
                 integers("four", 4), integers("filled", 1, 1, 1, 1)]
    graph = load(nodes, [dynamic("x", "batch", "length", 32)], constants, bind={"batch": 3, "length": 10})
    assert single(graph).operator.sizes == {"B": 12, "M": 10, "N": 10, "K": 8}
    assert coverage(graph).sentence == "100 % of MACs, 100 % of bytes modelled"


def test_missing_weight_files_do_not_matter(tmp_path: Path) -> None:
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [tensor("x", 5, 40)],
                              [tensor("y", 5, 30)], weights(w=(40, 30)))
    file = tmp_path / "big.onnx"
    onnx.save(helper.make_model(graph), str(file), save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    assert load_onnx(file).macs == 6000


def test_onnxslim_may_fail(load, monkeypatch) -> None:
    import onnxslim

    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(onnxslim, "slim", broken)
    nodes = [helper.make_node("Strange", ["x"], ["y"], domain="my.house"),
             helper.make_node("MatMul", ["x", "w"], ["z"])]
    assert load(nodes, [tensor("x", 2, 3)], weights(w=(3, 4))).macs == 24


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    body = [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("Relu", ["c"], ["d"])]
    function = helper.make_function("mine", "Dense", ["a", "b"], ["d"], body, opsets[:1])
    graph = helper.make_graph([helper.make_node("Dense", ["x", "w"], ["y"], domain="mine")], "g", [tensor("x", 5, 4)],
                              [tensor("y", 5, 3)], weights(w=(4, 3)))
    file = tmp_path / "f.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[function]), str(file))
    loaded = load_onnx(file)
    assert [n.kind for n in loaded.nodes] == ["matmul", "Relu"]


def test_edges_join_the_nodes(load) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "first"), helper.make_node("Relu", ["y"], ["z"], "act"),
             helper.make_node("Add", ["y", "z"], ["s"], "sum"), helper.make_node("MatMul", ["s", "w"], ["o"], "first")]
    graph = load(nodes, [tensor("x", 3, 4)], weights(w=(4, 4)))
    assert [(n.name, n.inputs) for n in graph.nodes] == [
        ("first", ()), ("act", ("first",)), ("sum", ("first", "act")), ("first_2", ("sum",))]


def test_names_that_repeat_are_numbered_and_told(load) -> None:
    nodes = [helper.make_node("MatMul", [x, "w"], [y], name=name) for x, y, name in (
        ("x", "a", "fc"), ("a", "b", "fc"), ("b", "c", ""), ("c", "d", "other"))]
    graph = load(nodes, [tensor("x", 2, 4)], weights(w=(4, 4)))
    assert [node.name for node in graph.mac_nodes] == ["fc", "fc_2", "c", "other"]
    assert graph.notes == ("names that repeat have numbers: fc_2",)
