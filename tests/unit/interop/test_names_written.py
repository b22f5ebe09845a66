"""Names of layers that a format cannot have: told where they change, and never the same for two layers."""

import pytest

from tilewright.interop import FORMATS, Foreign
from tilewright.workload import Graph, MacNode, convolution, matmul

NAMES = ("a{b", "a}b", "a_b", "a,b", "//c", " d ", "")


def network(names, name="net"):
    layers = [matmul(each, m=3, n=4, k=5) if index % 2 else
              convolution(each, in_channels=2, out_channels=3, out_size=(4, 4), kernel=3)
              for index, each in enumerate(names)]
    return Foreign(Graph(name, tuple(MacNode(layer) for layer in layers)))


@pytest.mark.parametrize("name", ["maestro", "gamma", "scale-sim"])
def test_layers_keep_names_of_their_own_and_changes_are_told(name, tmp_path):
    form, what = FORMATS.get(name), network(NAMES)
    made = form.write(what)
    layers = form.read(made.write(tmp_path), {}).graph.mac_nodes
    assert len({node.name for node in layers}) == len(NAMES)
    assert sum(node.operator.macs for node in layers) == sum(node.operator.macs for node in what.graph.mac_nodes)
    if {node.name for node in layers} != set(NAMES):
        assert any("called" in note.text or "the names" in note.text for note in made.notes)


@pytest.mark.parametrize("name", ["maestro", "gamma", "scale-sim"])
def test_names_that_a_format_can_have_are_told_nothing_of(name):
    assert FORMATS.get(name).write(network(("Layer_1",))).notes == ()


def test_a_table_is_not_called_as_the_result_beside_it():
    assert set(FORMATS.get("gamma").write(network(("Layer_1",), "result_c")).files) == {"result_c_layers.csv"}
