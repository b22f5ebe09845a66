"""Kinds of vector work: every operator that importers know has one; six networks have as many as papers say."""

from collections import Counter

import pytest

from tilewright.hardware import VECTOR_KINDS
from tilewright.interop import onnx_vectors
from tilewright.interop.pytorch import vectors as torch_vectors
from tilewright.workload import OPERATIONS_PER_ELEMENT, DataMovement, VectorOperator, vector_kind, zoo
from tilewright.workload.graph import _NAMES

PAIRS = [
    ("Softmax", "softmax"), ("_softmax", "softmax"), ("LogSoftmax", "softmax"), ("softmax", "softmax"),
    ("LayerNormalization", "layer_norm"), ("native_layer_norm", "layer_norm"), ("layer_norm", "layer_norm"),
    ("SimplifiedLayerNormalization", "rms_norm"), ("_fused_rms_norm", "rms_norm"),
    ("InstanceNormalization", "group_norm"),
    ("_native_batch_norm_legit_no_training", "batch_norm"), ("LRN", "local_response_norm"), ("Clip", "clip"),
    ("relu6", "clip"), ("hardtanh", "clip"), ("Swish", "silu"), ("max_pool2d_with_indices", "max_pool"),
    ("GlobalAveragePool", "average_pool"), ("_adaptive_avg_pool2d", "average_pool"), ("Sum", "add"), ("sum", "reduce"),
    ("Max", "elementwise"), ("max", "reduce"), ("aten.add", "add"), ("QLinearAdd", "add"), ("Erf", "elementwise"),
    ("upsample_bilinear2d", "resize"), ("_upsample_bicubic2d_aa", "resize"), ("grid_sampler_2d", "resize"),
    ("TopK", "sort"), ("quantized_decomposed.quantize_per_tensor", "convert"), ("_to_copy", "convert"),
    ("embedding_bag", "gather"), ("lstm_cell", "cell"), ("Frobnicate", "elementwise"),
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_names_of_three_sources_are_of_one_kind(name, kind):
    assert vector_kind(VectorOperator("y", name, 10, 20, 10, ("a", "b"))) == kind


def test_what_moves_words_is_a_copy_or_a_gather():
    kinds = {name: vector_kind(DataMovement("y", name, 10, 10)) for name in (
        "Transpose", "cat", "split", "Gather", "embedding", "upsample", "Pad")}
    assert kinds == {"Transpose": "copy", "cat": "copy", "split": "copy", "Gather": "gather", "embedding": "gather",
                     "upsample": "resize", "Pad": "copy"}
    assert vector_kind(DataMovement("y", "Reshape", 0, 0)) == "view"


def test_a_constant_makes_a_sum_a_bias_and_a_product_a_scale():
    def kind(name, read, *inputs):
        return vector_kind(VectorOperator("y", name, 64, read, 64, inputs))

    assert [kind("Add", 72, "a"), kind("mul", 65, "a"), kind("Add", 128, "a", "b"), kind("Add", 128, "a")] == [
        "bias", "scale", "add", "add"]  # the last: twice the same result, or a constant as large
    assert kind("Mul", 72, "a", "b") == "multiply"


def test_the_table_covers_what_importers_know():
    assert set(_NAMES) | {"bias", "copy"} == set(VECTOR_KINDS)
    spelled = Counter(name for names in _NAMES.values() for name in names.split())
    assert {name for name, count in spelled.items() if count > 1} == set()
    tables = (onnx_vectors.KINDS.per_output, onnx_vectors.KINDS.per_input, onnx_vectors._POOLS, onnx_vectors._NARY,
              torch_vectors.KINDS.per_output, torch_vectors.KINDS.per_input, torch_vectors.POOLS,
              torch_vectors._SPECIAL, OPERATIONS_PER_ELEMENT)
    for name in (name for table in tables for name in table):
        found = vector_kind(VectorOperator("y", name, 10, 20, 10, ("a", "b")))
        assert found in VECTOR_KINDS
        # What normalises, pools or is a known function is never merely "elementwise".
        if any(part in name.lower() for part in ("norm_", "normalization", "pool", "softmax", "elu", "sigmoid")):
            assert found != "elementwise", name


def elements(name, **options):
    """Return the number of nodes and of result words of every kind, of all runs."""
    nodes, words = Counter(), Counter()
    for node in zoo.load(name, **options).nodes:
        if isinstance(node, VectorOperator | DataMovement):
            kind = vector_kind(node)
            nodes[kind] += node.count
            words[kind] += node.count * node.written_words
    return nodes, words


def stages(*sides_and_channels):
    return sum(count * side * side * channels for side, channels, count in sides_and_channels)


def test_resnet50_against_its_table():
    """He et al., CVPR 2016, table 1: blocks of 3, 4, 6, 3; each ends in a sum; the stride is in the 3x3 (v1.5)."""
    nodes, words = elements("resnet50")
    ends = stages((56, 256, 3), (28, 512, 4), (14, 1024, 6), (7, 2048, 3))
    first = stages((56, 64, 3), (56, 128, 1), (28, 128, 3), (28, 256, 1), (14, 256, 5), (14, 512, 1), (7, 512, 2))
    second = stages((56, 64, 3), (28, 128, 4), (14, 256, 6), (7, 512, 3))
    assert (nodes["add"], nodes["relu"], nodes["max_pool"], nodes["average_pool"]) == (16, 49, 1, 1)
    assert words["add"] == ends
    assert words["relu"] == 112 * 112 * 64 + first + second + ends
    assert (words["max_pool"], words["average_pool"]) == (56 * 56 * 64, 2048)


def test_vgg16_and_alexnet_against_their_papers():
    """Simonyan and Zisserman, ICLR 2015, table 1, D; thirteen convolutions, two of three linear layers rectified."""
    nodes, words = elements("vgg16")
    assert (nodes["relu"], nodes["max_pool"]) == (15, 5)
    assert words["relu"] == stages((224, 64, 2), (112, 128, 2), (56, 256, 3), (28, 512, 3), (14, 512, 3)) + 2 * 4096
    assert words["max_pool"] == stages((112, 64, 1), (56, 128, 1), (28, 256, 1), (14, 512, 1), (7, 512, 1))


def test_mobilenet_v2_against_its_table():
    """Sandler et al., CVPR 2018, table 2: ten of seventeen blocks are residual; ReLU6 after all but projections."""
    nodes, words = elements("mobilenet-v2")
    assert (nodes["add"], nodes["clip"], nodes["average_pool"]) == (10, 35, 1)
    assert words["add"] == stages((56, 24, 1), (28, 32, 2), (14, 64, 3), (14, 96, 2), (7, 160, 2))


@pytest.mark.parametrize(("name", "layers", "heads", "width", "inner"), [
    ("bert-base", 12, 12, 768, 3072), ("bert-large", 24, 16, 1024, 4096), ("gpt2", 12, 12, 768, 3072)])
@pytest.mark.parametrize("rows", [128, 384])
def test_transformers_against_their_formulas(name, layers, heads, width, inner, rows):
    """Vaswani et al., 2017: a softmax over rows by rows a head, two sums and normalisations a layer and one before."""
    nodes, words = elements(name, sequence=rows)
    assert words["softmax"] == words["scale"] == layers * heads * rows * rows
    assert words["gelu"] == layers * rows * inner
    assert nodes["layer_norm"] == 2 * layers + 1
    assert words["layer_norm"] == (2 * layers + 1) * rows * width
    assert words["add"] == (2 * layers + 1) * rows * width
