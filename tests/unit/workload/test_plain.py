"""Networks as operators written out: every network of the zoo comes back as it was, and what is wrong is named."""

from dataclasses import replace

import pytest
from ruamel.yaml import YAML

from tilewright.base import InputError
from tilewright.workload import dump_operators, matmul, operators_graph, read_table, with_densities, zoo
from tilewright.workload.graph import Graph, MacNode

TEXT = """\
name: tiny
operators:
- name: one
  dimensions: {M: 4, K: 3}
  tensors:
    A: {role: inputs, axes: [2*M + K]}
    W: {role: weights, axes: [K], density: "1:3", word_bits: 4}
    Z: {role: outputs, axes: [M]}
- name: two
  dimensions: {M: 4}
  count: 3
  after: [one]
  tensors: {Z: {role: outputs, axes: [M]}}
"""


def read(text):
    return operators_graph(YAML(typ="safe").load(text))


@pytest.mark.parametrize("name", ["resnet50", "bert-base", "mobilenet-v2", "dlrm", "gnmt"])
def test_a_network_written_out_comes_back(name, tmp_path):
    graph = zoo.load(name)
    path = tmp_path / "network.yaml"
    path.write_text(dump_operators(graph))
    kept = {node.name for node in graph.mac_nodes}
    expected = tuple(replace(node, inputs=tuple(one for one in node.inputs if one in kept)) for node in graph.mac_nodes)
    again = read_table(path)
    assert again.nodes == expected
    assert [node.operator.attributes for node in again.nodes] == [node.operator.attributes for node in expected]
    assert (again.name, again.source, again.notes) == (graph.name, graph.source, graph.notes)


def test_densities_and_widths_come_back():
    given = {"weights": "2:4", "inputs": 0.3, "outputs": "even:0.5"}
    graph = Graph("g", (MacNode(with_densities(matmul("m", m=4, n=4, k=8), given)),))
    assert read(dump_operators(graph)) == graph


def test_what_is_written_by_hand_is_read():
    graph = read(TEXT)
    first = graph.mac_nodes[0].operator
    assert first.tensor("A").axes[0].terms == (("M", 2), ("K", 1))
    assert (first.tensor("W").structure, first.tensor("W").word_bits) == ((1, 3), 4)
    assert graph.macs == 12 + 3 * 4


@pytest.mark.parametrize(("old", "new", "message"), [
    ("2*M + K", "2*M + X", "tiny.operators[0].tensors.A.axes[0]: must be a sum of dimensions"),
    ("2*M + K", "M + K + K", "must be a dimension or the sum of two"),
    ("2*M + K", "0*M + K", "with positive factors"),
    ("M: 4, K: 3", "M: 4, K: 0", "tiny.operators[0].dimensions.K: must be a positive integer"),
    ("role: inputs", "role: input", "tensors.A.role: must be one of inputs, weights, outputs"),
    ("word_bits: 4", "word_bits: 0", "tensors.W.word_bits: must be a positive number of bits"),
    ('"1:3"', "7", "tensors.W.density: must be above 0 and at most 1"),
    ("role: weights", "rolle: weights", "tensors.W.rolle: must be one of the fields"),
    ("count: 3", "count: 0", "tiny.operators[1].count: must be a positive integer"),
    ("count: 3", "count: three", "tiny.operators[1].count: must be a whole number"),
    ("after: [one]", "after: [three]", "tiny.two.inputs: must name nodes that come before"),
    ("name: two", "name: one", "tiny.nodes: must have distinct names"),
    ("  dimensions: {M: 4, K: 3}\n", "", "tiny.operators[0].dimensions: must be given"),
    ("role: outputs, axes: [M]}\n-", "role: inputs, axes: [M]}\n-", "must be operands followed by exactly one output"),
])
def test_what_is_wrong_is_named(old, new, message):
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        read(TEXT.replace(old, new))
    assert message in str(caught.value)


def test_sizes_cannot_be_bound_where_they_are_written_out(tmp_path):
    path = tmp_path / "network.yaml"
    path.write_text(TEXT)
    with pytest.raises(InputError, match="Write the sizes into the file"):
        read_table(path, batch=2)
