"""Broken, foreign and contradictory ``.pt2`` files: one clear error each, and nothing in them is run."""

import json
import pickle
import zipfile
from io import BytesIO

import numpy as np
import pytest
import torch
from torch import nn

from tilewright.base import InputError
from tilewright.cli import main
from tilewright.interop import load_exported

NAME = "net/models/model.json"


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))


@pytest.fixture(scope="module")
def good():
    """Return the bytes of a good file, whose batch is dynamic."""
    batch = torch.export.Dim("batch", min=3, max=9)
    exported = torch.export.export(Small().eval(), (torch.zeros(4, 3, 8, 8),), dynamic_shapes=({0: batch},),
                                   strict=False)
    stream = BytesIO()
    torch.export.save(exported, stream)
    return stream.getvalue()


def document(good):
    with zipfile.ZipFile(BytesIO(good)) as archive:
        name = next(name for name in archive.namelist() if name.endswith("models/model.json"))
        return json.loads(archive.read(name))


def zipped(**files):
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return stream.getvalue()


def packed(tree):
    return zipped(**{NAME: tree if isinstance(tree, str | bytes) else json.dumps(tree)})


def changed(change):
    """Return what makes a file whose document ``change`` has altered."""

    def make(good):
        tree = document(good)
        change(tree)
        return packed(tree)

    return make


def nodes(tree):
    return tree["graph_module"]["graph"]["nodes"]


def tensors(tree):
    return tree["graph_module"]["graph"]["tensor_values"]


def put(tree, path, value):
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def batch_is(expression):
    return changed(lambda tree: put(tensors(tree)["conv2d"], ["sizes", 0], {"as_expr": {"expr_str": expression}}))


def weights_are(*sizes):
    return changed(lambda tree: put(tensors(tree)["p_conv_weight"], ["sizes"], [{"as_int": size} for size in sizes]))


def argument_is(node, index, value):
    return changed(lambda tree: put(nodes(tree)[node], ["inputs", index, "arg"], value))


def torch_saved(thing):
    stream = BytesIO()
    torch.save(thing, stream)
    return stream.getvalue()


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("the file was run",))


BOUND = {"x[0]": 4}
FILES = {
    "empty": (lambda good: b"", BOUND, "must be a file of torch.export.save (.pt2); Got 'an empty file'"),
    "text": (lambda good: b"hello, no archive at all\n" * 9, BOUND, "The file is broken, cut short or of another"),
    "image": (lambda good: b"\x89PNG\r\n\x1a\n" + bytes(100), BOUND, "The file is broken, cut short or of another"),
    "cut_in_half": (lambda good: good[:len(good) // 2], BOUND, "The file is broken, cut short or of another"),
    "cut_at_the_end": (lambda good: good[:-30], BOUND, "The file is broken, cut short or of another"),
    "pickle": (lambda good: pickle.dumps(Trap()), BOUND, "The file is broken, cut short or of another"),
    "weights": (lambda good: torch_saved({"w": torch.zeros(3)}), BOUND, "Got 'a pickle of torch.save (weights, or a"),
    "torchscript": (lambda good: zipped(net__constants_pkl="", **{"net__constants.pkl": b""}), BOUND,
                    "Got 'a TorchScript module'"),
    "archive": (lambda good: zipped(readme="hello"), BOUND, "Got 'an archive of 1 other files'"),
    "two_programs": (lambda good: zipped(**{NAME: "{}", "net/models/other.json": "{}"}), BOUND,
                     "must hold one program"),
    "no_json": (lambda good: packed("{'graph_module'"), BOUND, "models/model.json:1: must be JSON"),
    "deep_json": (lambda good: packed("[" * 100_000), BOUND, "models/model.json: must be JSON"),
    "list": (lambda good: packed([]), BOUND, "models/model.json"),
    "nothing_in_it": (lambda good: packed({}), BOUND, "model.json: schema_version: Field required"),
    "later_schema": (changed(lambda tree: put(tree, ["schema_version", "major"], 9)), BOUND,
                     "schema_version.major: must be 8, the version known here; Got 9"),
    "no_graph": (changed(lambda tree: tree["graph_module"].pop("graph")), BOUND, "graph_module.graph: Field required"),
    "nodes_are_text": (changed(lambda tree: put(tree, ["graph_module", "graph", "nodes"], "none")), BOUND,
                       "graph_module.graph.nodes"),
    "node_without_target": (changed(lambda tree: nodes(tree)[1].pop("target")), BOUND,
                            "graph_module.graph.nodes[1].target: Field required"),
    "reads_nothing": (argument_is(-1, 0, {"as_tensor": {"name": "ghost"}}), BOUND, "must read what exists; Got 'gho"),
    "made_twice": (changed(lambda tree: nodes(tree).insert(1, nodes(tree)[0])), BOUND,
                   "must not make a tensor that exists already"),
    "two_forms": (argument_is(0, 0, {"as_int": 1, "as_none": True}), BOUND, "must follow the schema of torch.export"),
    "number_for_tensor": (argument_is(0, 1, {"as_int": 1}), BOUND,
                          "node conv (conv2d): must have the tensor; Got 'weight'"),
    "text_for_stride": (changed(lambda tree: nodes(tree)[0]["inputs"].append(
        {"name": "stride", "arg": {"as_string": "two"}})), BOUND, "node conv (conv2d): must have"),
    "no_groups": (changed(lambda tree: nodes(tree)[0]["inputs"].append({"name": "groups", "arg": {"as_int": 0}})),
                  BOUND, "node conv"),
    "channels": (weights_are(4, 5, 3, 3), BOUND, "must have as many input channels as the input channels of the"),
    "rank": (weights_are(4, 3, 3), BOUND, "must have an input and weights of one rank"),
    "kernel": (weights_are(4, 3, 30, 3), BOUND, "node conv.kernel: must fit in the padded input"),
    "code_for_a_size": (batch_is("__import__('os').mkdir('ran')"), BOUND, "must state its sizes as torch.export does"),
    "method_for_a_size": (batch_is("Symbol('s0').__class__"), BOUND, "must state its sizes as torch.export does"),
    "endless_number": (batch_is("Integer('1e999999999')"), BOUND, "must state its sizes as torch.export does"),
    "no_expression": (batch_is("1 +"), BOUND, "must state its sizes as torch.export does"),
    "long_expression": (batch_is("Add(" + "Integer(1), " * 9000 + ")"), BOUND, "an expression of "),
    "deep_expression": (batch_is("Add(" * 4000 + ")" * 4000), BOUND, "must state its sizes as torch.export does"),
    "two_for_one": (batch_is("FloorDiv(Integer(1))"), BOUND, "must state its sizes as torch.export does"),
    "unbound": (lambda good: good, {}, "dynamic dimensions: must be bound; Got 'x[0]'; Add --bind x[0]=SIZE"),
    "wrong_name": (lambda good: good, {"batch": 4, **BOUND}, "bind batch: must name a dynamic dimension of"),
    "zero": (lambda good: good, {"x[0]": 0}, "bind x[0]: must be a positive integer; Got 0"),
    "too_large": (lambda good: good, {"x[0]": 10}, "bind x[0]: must be from 3 to 9, the range it was exported for"),
    "too_small": (lambda good: good, {"x[0]": 2}, "bind x[0]: must be from 3 to 9, the range it was exported for"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_is_one_clear_error(case, good, tmp_path, monkeypatch):
    make, bind, text = FILES[case]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.pt2"
    path.write_bytes(make(good))
    with pytest.raises(InputError) as found:
        load_exported(path, bind=bind)
    assert text in str(found.value)
    assert str(path) in str(found.value) or "bind" in str(found.value)
    assert [one.name for one in tmp_path.iterdir()] == ["net.pt2"]


def test_the_good_file_is_read(good, tmp_path):
    path = tmp_path / "net.pt2"
    path.write_bytes(good)
    assert [node.macs for node in load_exported(path, bind=BOUND).mac_nodes] == [4 * 4 * 3 * 36 * 9, 4 * 4 * 2]


@pytest.mark.parametrize("expression", ["Pow(Integer(10), Integer(1000000000))", "Mul(Integer(2), NoSuch(Integer(3)))",
                                        "Rational(1, 2)", "FloorDiv(Integer(1), Integer(0))"])
def test_a_size_that_nobody_can_tell_leaves_its_readers_unmodelled(expression, good, tmp_path):
    path = tmp_path / "net.pt2"
    path.write_bytes(batch_is(expression)(good))
    graph = load_exported(path, bind=BOUND)
    assert graph.node("mean").reason == "the shape of conv2d is unknown"


def test_the_older_layout_is_read_too(good, tmp_path):
    path = tmp_path / "net.pt2"
    path.write_bytes(zipped(**{"serialized_exported_program.json": json.dumps(document(good)), "version": "8.20"}))
    assert len(load_exported(path, bind=BOUND).mac_nodes) == 2


def places(tree, path=()):
    """Give the path of every value in a document."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


JUNK = [None, "", "x", "conv2d", -1, 0, 10**30, 1.5, True, [], {}, [1], {"as_int": -3}, {"as_tensor": {"name": "x"}}]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_stands_in_a_document_there_is_one_error_or_none(seed, good, tmp_path):
    choose, path = np.random.default_rng(seed), tmp_path / "net.pt2"
    whole = json.dumps(document(good))
    everywhere = [place for place in places(json.loads(whole)) if "graph" in place or "signature" in place]
    refused = 0
    for _ in range(100):
        tree = json.loads(whole)
        put(tree, everywhere[choose.integers(len(everywhere))], JUNK[choose.integers(len(JUNK))])
        path.write_bytes(packed(tree))
        try:
            load_exported(path, bind=BOUND)
        except InputError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("path", ["none.pt2", "."])
def test_no_file(path, tmp_path):
    with pytest.raises(InputError, match=r"must be a file of torch\.export\.save"):
        load_exported(tmp_path / path)


@pytest.mark.parametrize(("content", "bind"), [(None, []), (b"hello", []), ("good", []), ("good", ["x[0]=0"]),
                                               ("good", ["batch=4"])])
def test_the_shell_says_it_in_one_line(content, bind, good, tmp_path, monkeypatch, capsys):
    path = tmp_path / "net.pt2"
    if content is not None:
        path.write_bytes(good if content == "good" else content)
    words = [word for one in bind for word in ("--bind", one)]
    monkeypatch.setattr("sys.argv", ["tilewright", "bounds", str(path), "--arch", "eyeriss", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "Traceback" not in capsys.readouterr().err
