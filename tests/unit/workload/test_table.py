"""Layer tables: what may stand in them, and what they say when something is wrong."""

import json
from pathlib import Path

import pytest

from tilewright.base import InputError
from tilewright.workload import LAYERS, MacNode, read_table, table_graph

TINY = """
name: tiny
options: {batch: 1, size: 8}
input: [3, $size, $size]
layers:
- conv: {name: c1, out: 4, kernel: 3, padding: 1, activation: relu}
- conv: {name: c2, out: 4, kernel: 1, input: c1}
- vector: {name: sum, kind: add, other: c1}
- pool: {kind: average}
- linear: {name: fc, out: 10}
"""


def test_a_table_becomes_a_network(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY)
    graph = read_table(file)
    assert [n.name for n in graph.nodes] == ["c1", "c1.relu", "c2", "sum", "pool", "fc"]
    assert graph.macs == 64 * 4 * 27 + 64 * 16 + 40
    assert graph.node("c2").inputs == ("c1.relu",)  # the name of a layer stands for what it hands on
    assert graph.node("sum").inputs == ("c2", "c1.relu")
    assert graph.source == str(file)
    assert read_table(file, batch=2, size=4).macs == 2 * (16 * 4 * 27 + 16 * 16 + 40)


def test_names_that_repeat_are_numbered_and_told() -> None:
    layers = [{"conv": {"name": name, "out": 4, "kernel": 1, "activation": "relu"}} for name in ("dw", "dw", "pw")]
    graph = table_graph({"input": [3, 8, 8], "layers": [*layers, *({"linear": {"out": 2}} for _ in range(2))]})
    assert [node.name for node in graph.mac_nodes] == ["dw", "dw_2", "pw", "linear", "linear_2"]
    assert graph.notes == ("names that repeat have numbers: dw_2, dw.relu_2",)
    assert table_graph({"input": [3, 8, 8], "layers": layers[1:]}).notes == ()


def test_json_reads_as_well(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"layers": [{"matmul": {"name": "m", "m": 2, "n": 3, "k": 4}}]}))
    assert read_table(file).macs == 24


def test_ceiling_pools_hang_over_the_edge() -> None:
    pool = {"kernel": 3, "stride": 2}
    layers = [{"conv": {"name": "c", "out": 1, "kernel": 1}}]
    floor = table_graph({"input": [1, 8, 8], "layers": [{"pool": pool}, *layers]})
    ceiling = table_graph({"input": [1, 8, 8], "layers": [{"pool": {**pool, "ceil": True}}, *layers]})
    assert (floor.macs, ceiling.macs) == (9, 16)


def test_recurrent_steps_run_one_after_the_other() -> None:
    layer = {"name": "l", "cell": "lstm", "hidden": 6}
    graph = table_graph({"input": [5, 4], "layers": [{"recurrent": layer}]})
    state = graph.node("l.state")
    assert isinstance(state, MacNode)
    assert (state.count, state.operator.macs, state.macs) == (5, 4 * 6 * 6, 5 * 144)
    assert graph.node("l.input").macs == 5 * 4 * 24
    stepwise = table_graph({"input": [5, 4], "layers": [{"recurrent": {**layer, "stepwise": True}}]})
    assert stepwise.macs == graph.macs
    assert stepwise.node("l.input").count == 5
    both = table_graph({"input": [5, 4], "layers": [{"recurrent": {**layer, "directions": 2}}]})
    assert both.macs == 2 * graph.macs


IMAGE = "input: [1, 8, 8]\nlayers: "
MALFORMED = [
    ("layers: [", "t.yaml:1: must be YAML"),
    ("layers: " + "[" * 3000, "t.yaml: must nest at most 100 deep"),
    ("layers: " + "9" * 5000, "t.yaml: must be YAML"),
    ("- a\n- b\n", "must hold a mapping with `layers` or `operators`; Got 'a list'"),
    ("", "must hold a mapping with `layers` or `operators`; Got 'nothing'"),
    ("name: n\n", "n.layers: must be a list with at least one layer."),
    ("layers: []\n", "network.layers: must be a list with at least one layer; Got []"),
    ("layer: []\n", "network: must be a known key; Got 'layer'; Did you mean layers?"),
    ("layers: [{cnv: {out: 1}}]", "network.layers[0]: must be a known kind of layer; Got 'cnv'; Did you mean conv?"),
    ("options: [1, 2]\nlayers: [{linear: {out: 1}}]",
     "network.options: must hold the options with what they are otherwise; Got [1, 2]"),
    ("notes: 5\nlayers: [{linear: {out: 1}}]", "network.notes: must be a list of texts; Got 5"),
    ("notes: [[1]]\nlayers: [{linear: {out: 1}}]", "network.notes: must be a list of texts; Got [[1]]"),
    ("input: [true, 3]\nlayers: [{linear: {out: 1}}]", "network.input: must be a list of positive integers"),
    ("layers: [conv]", "network.layers[0]: must be one layer, `kind: {fields}`; Got 'conv'"),
    ("layers: [{conv: 3}]", "network.layers[0].conv: must hold the layer's fields; Got 3"),
    (IMAGE + "[{conv: {out: 4, kernel: 3}}, {upsample: {}}, {stack: {others: [conv]}}]",
     "[2]: stack.inputs: must all have the size 12x12; Got '6x6'"),
    (IMAGE + "[{unet: {widths: [6], attention: 1, repeat: 1, heads: 4}}]",
     "[0]: unet.down0.0.transformer.self.heads: must divide the 6 features of the queries; Got 4."),
    (IMAGE + "[{conv: {out: 4, kernal: 3}}]", "[0].conv: must be a known field; Got 'kernal'; Did you mean kernel?"),
    (IMAGE + "[{conv: {kernel: 3}}]", "network.layers[0].conv.out: must be given"),
    (IMAGE + "[{conv: {out: many, kernel: 3}}]", "network.layers[0].conv.out: must be a valid integer"),
    (IMAGE + "[{conv: {out: 4, kernel: 9}}]", "network.layers[0]: conv.kernel: must fit in the padded"),
    (IMAGE + "[{conv: {out: 4, kernel: 3, input: x}}]", "conv.input: must name a layer above; Got 'x'"),
    ("input: [1, 8]\nlayers: [{conv: {out: 4, kernel: [3, 3]}}]", "conv.kernel: must have as many axes as the sizes"),
    ("input: [0]\nlayers: [{linear: {out: 4}}]", "network.input: must be a list of positive integers; Got [0]"),
    ("input: [$size]\nlayers: [{linear: {out: 4}}]", "network.input: must name an option of this table; Got '$size'"),
    ("options: {batch: 0}\nlayers: [{linear: {out: 4}}]", "network.options.batch: must be a positive integer; Got 0"),
    ("input: [4, 4]\nlayers: [{vector: {kind: sine}}]", "network.layers[0]: vector.kind: must be one of relu"),
    ("input: [4]\nlayers: [{transformer: {repeat: 1, heads: 2, feedforward: 8}}]", "must fit the shape that it reads"),
    ("input: [4, 2]\nlayers: [{recurrent: {cell: lstn, hidden: 2}}]", "recurrent.cell: must be 'lstm', 'gru' or 'rnn'"),
    ("layers: [{matmul_list: {rows: ['2 3 nn']}}]", "must have 3 numbers and 1 word; Got '2 3 nn'"),
    ("layers: [{matmul_list: {rows: ['2 x 3 nn']}}]", "must have 3 numbers and 1 word; Got '2 x 3 nn'"),
    ("layers: [{convolution_list: {rows: ['1 2 3']}}]", "must have 11 numbers; Got '1 2 3'"),
]


@pytest.mark.parametrize(("words", "message"), MALFORMED, ids=[message[:50] for _, message in MALFORMED])
def test_malformed_tables_say_where_and_what(tmp_path: Path, words: str, message: str) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(words)
    with pytest.raises(InputError) as error:
        read_table(file)
    assert message in str(error.value)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be an existing file"):
        read_table(tmp_path / "no.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InputError, match="must be a readable text file in UTF-8"):
        read_table(tmp_path / "b.yaml")
    (tmp_path / "b.json").write_text('{"layers": ]')
    with pytest.raises(InputError, match=r"b.json:1: must be JSON"):
        read_table(tmp_path / "b.json")


def test_every_kind_of_layer_is_documented() -> None:
    assert all(kind.__doc__ and not kind.__doc__.startswith(kind.__name__ + "(") for kind in LAYERS.values())
