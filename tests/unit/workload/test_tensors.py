"""Tensors of networks: who makes and who reads them, what they weigh, and whose bytes they share."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.workload import (
    AxisLink,
    DataMovement,
    Digit,
    Graph,
    MacNode,
    VectorOperator,
    matmul,
    table_graph,
    tensor_graph,
    unrolled,
    zoo,
)


def readers(tensors, name):
    return [(read.node, read.operand) for read in tensors.tensors[name].reads]


@pytest.mark.parametrize("name", zoo.names())
def test_every_node_reads_and_makes_tensors_of_its_words(name):
    found = tensor_graph(zoo.load(name, batch=2) if "batch" in dict(zoo.describe(name).options) else zoo.load(name))
    for node in found.graph.nodes:
        (made,) = found.made_by(node.name)
        assert made.name == node.name
        read = {tensor.producer for _, tensor in found.read_by(node.name)}
        assert set(node.inputs) <= read or node.name.endswith(".state")  # which adds to what it follows
        if isinstance(node, MacNode):
            assert made.words == node.count * node.operator.output.words(node.operator.sizes, box=True)
            assert [operand for operand, _ in found.read_by(node.name)] == [t.name for t in node.operator.operands]


@pytest.mark.parametrize(("network", "add", "first", "second"), [
    ("resnet18", "layer1.1.add", "layer1.1.conv2", "layer1.0.relu"),
    ("resnet50", "layer2.0.add", "layer2.0.conv3", "layer2.0.downsample"),
    ("bert-base", "layer.0.ff.add", "layer.0.ff2", "layer.0.attention.norm"),
])
def test_residuals_are_edges(network, add, first, second):
    found = tensor_graph(zoo.load(network))
    assert [(operand, tensor.name) for operand, tensor in found.read_by(add)] == [("0", first), ("1", second)]
    assert len(found.tensors[second].reads) > 1 or "downsample" in second


def test_weights_inputs_and_states_are_apart():
    found = tensor_graph(zoo.load("llama-3-8b:phase=decode,context=64"))
    cache = found.tensors["layer.0.attention.key.append.state"]
    assert (cache.kind, cache.producer, cache.shape) == ("state", "", (1, 64, 1024))
    appended = found.tensors["layer.0.attention.key.append"]
    assert appended.storage == cache.name
    assert ("layer.0.attention.scores", "W") in readers(found, appended.name)
    assert found.tensors["layer.0.attention.query.W"].kind == "weights"
    image = tensor_graph(zoo.load("vgg16", batch=2)).tensors["input"]
    assert (image.kind, image.shape, image.words) == ("input", (2, 3, 224, 224), 2 * 3 * 224 * 224)


def test_independent_layers_have_inputs_of_their_own():
    rows = {"name": "two", "layers": [{"matmul_list": {"name": "gemm", "rows": ["8 4 2 nn", "8 6 2 nn"]}}]}
    found = tensor_graph(table_graph(rows))
    assert [t.name for t in found.tensors.values() if t.kind == "input"] == ["gemm.0", "gemm.1"]


def test_what_inputs_alone_tell_is_enough_for_networks_made_by_hand():
    nodes = (MacNode(matmul("a", 4, 8, 2)), DataMovement("flat", "reshape", 0, 0, ("a",)),
             VectorOperator("sum", "add", 32, 64, 32, ("flat", "a")), MacNode(matmul("b", 4, 3, 8), ("sum", "a")))
    found = tensor_graph(Graph("hand", nodes))
    assert found.tensors["flat"].storage == "a"
    assert readers(found, "a") == [("flat", "0"), ("sum", "1"), ("b", "0")]
    assert readers(found, "b.W") == [("b", "W")]
    assert [t.name for t in found.tensors.values() if t.is_output] == ["b"]
    with pytest.raises(InputError, match=r"flat\.shape"):
        print(found.tensors["flat"].words)


def link(network, producer, reader, operand, **options):
    (found,) = tensor_graph(zoo.load(network, **options)).links(producer, reader, operand)
    return found


def test_links_of_convolutions_slide():
    axes = link("resnet18", "layer2.0.relu1", "layer2.0.conv2", "I").axes
    assert axes[2] == AxisLink((Digit("P", 1, extent=28), Digit("R", 1, extent=3)), -1)
    axes = link("resnet18", "layer1.1.relu", "layer2.0.conv1", "I").axes
    assert axes[3] == AxisLink((Digit("Q", 2, extent=28), Digit("S", 1, extent=3)), -1)


def test_links_cut_and_merge_heads():
    axes = link("bert-base", "layer.0.attention.key", "layer.0.attention.scores", "W", batch=2).axes
    assert axes["N"] == AxisLink((Digit("B", 64, 1, 12), Digit("K", 1, 1, 64)))
    assert axes["M"] == AxisLink((Digit("B", 512, 12, 2), Digit("N", 1, 1, 512)))
    back = link("bert-base", "layer.0.attention.context", "layer.0.attention.output", "I", batch=2).axes
    assert back["B"] == AxisLink((Digit("M", 12, 512, 2), Digit("K", 1, 64, 12)))


def test_queries_that_share_keys_are_rows_of_one_product():
    axes = link("llama-3-8b", "layer.0.attention.query.rotary", "layer.0.attention.scores", "I").axes
    assert axes[2] == AxisLink((Digit("B", 512, 1, 8), Digit("M", 128, 2048, 4), Digit("K", 1, 1, 128)))
    assert axes[1] == AxisLink((Digit("M", 1, 1, 2048),))


def test_links_pass_what_only_moves_words():
    one = link("densenet121", "block1.0.conv2", "block1.2.relu1", "0")
    assert one.tensors == ("block1.0.conv2", "block1.0.concat", "block1.1.concat")
    assert one.axes["K"] == AxisLink((Digit(1, 1, 1, 128),), -64)
    kept = link("llama-3-8b", "layer.0.attention.key.rotary", "layer.0.attention.scores", "W", phase="decode")
    assert kept.axes[1] == AxisLink((Digit("N", extent=2048),), -2047)


@pytest.mark.parametrize(("network", "producer", "reader"), [
    ("ncf", "mf_user", "mlp_input"), ("mobilebert", "embedding.0", "trigram"),
    ("transformer-xl", "embedding.0", "layer.0.memory"), ("dlrm", "bottom.1", "interaction.concat")])
def test_links_pass_lookups_in_tables(network, producer, reader):
    graph = tensor_graph(zoo.load(network))
    for operand, _ in graph.read_by(reader):
        assert all(link.axes is None or len(link.axes) > 0 for link in graph.links(producer, reader, operand))


def test_rows_of_softmax_are_read_whole():
    axes = link("bert-base", "layer.0.attention.scale", "layer.0.attention.softmax", "0").axes
    assert [digit.axis for axis in (1, 2) for digit in axes[axis].digits] == [1, 3]


@pytest.mark.parametrize("name", sorted({*zoo.names()} - {"transformer-xl"}))
def test_weights_are_as_many_words_as_the_network_has(name):
    graph = zoo.load(name)
    assert sum(t.words for t in tensor_graph(graph).tensors.values() if t.kind == "weights") == graph.weight_words


@pytest.mark.parametrize(("network", "reader", "weights"), [
    ("gpt2", "lm_head", "embedding.0.table"), ("albert", "layer.5.ff1", "layer.0.ff1.W"),
    ("faster-rcnn", "rpn3.class", "rpn1.class.W"),
])
def test_tied_weights_are_those_of_another_layer(network, reader, weights):
    found = dict(tensor_graph(zoo.load(network)).read_by(reader))["W"]
    assert (found.name, found.reads[0].node != reader) == (weights, True)


def test_unrolled_steps_read_what_the_step_before_made():
    rolled = zoo.load("gnmt:source=4,target=3")
    graph = unrolled(rolled)
    assert (graph.macs, graph.weight_words) == (rolled.macs, rolled.weight_words)
    assert {getattr(node, "count", 1) for node in graph.nodes} == {1}
    found = tensor_graph(graph)
    assert readers(found, "encoder2.cell[1]") == [("encoder2.state[2]", "I"), ("encoder3.input", "I"),
                                                  ("encoder3_residual", "1")]
    assert readers(found, "encoder2.cell[1].state") == [("encoder2.cell[2]", "state")]
    assert readers(found, "encoder2.cell.hidden") == [("encoder2.state[0]", "I")]
    weights = dict(found.read_by("encoder2.state[3]"))["W"]
    assert [read.node for read in weights.reads] == [f"encoder2.state[{step}]" for step in range(4)]
    assert sum(one.words for one in found.made_by("encoder2.cell[0]")[:1]) * 4 == tensor_graph(
        rolled).tensors["encoder2.cell"].words


def test_part_of_a_network_reads_what_is_left_out_as_its_input():
    whole = zoo.load("resnet18")
    node = whole.node("layer1.0.conv1")
    found = tensor_graph(Graph("part", (replace(node, inputs=()),)))
    tensor = found.tensors["maxpool"]
    assert (tensor.kind, tensor.shape) == ("input", (1, 64, 56, 56))
    assert tensor.reads[0].view[2].at({2: 0}) == -1  # padding
