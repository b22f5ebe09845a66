"""Views of tensors hold where networks run: nests read through them make the values that PyTorch and ONNX make."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch import nn
from torch.nn import functional

from tilewright.interop import load_onnx, load_torch
from tilewright.workload import DataMovement, MacNode, tensor_graph, unrolled


class Kept(torch.fx.Interpreter):
    """Runs a program and keeps the values of all its tensors by name."""

    def __init__(self, program):
        super().__init__(program.graph_module)
        self.values = {}

    def run_node(self, node):
        found = super().run_node(node)
        parts = {node.name: found} if isinstance(found, torch.Tensor) else {
            f"{node.name}#{place}": one for place, one in enumerate(found)}
        self.values |= {name: one.detach().clone().numpy() for name, one in parts.items()}
        return found


def executed(module, inputs):
    """Return the values of all tensors of a module by the names that its exported program has for them."""
    program = torch.export.export(module.eval(), inputs, strict=False)
    signature, state = program.graph_signature, {**program.state_dict, **program.constants}
    owned = {**signature.inputs_to_parameters, **signature.inputs_to_buffers,
             **signature.inputs_to_lifted_tensor_constants}
    given = iter(inputs)
    names = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    kept = Kept(program)
    kept.run(*(state[owned[name]] if name in owned else next(given) for name in names))
    return kept.values


def grid(sizes):
    """Return the places of a box, one array for each axis."""
    return dict(zip(sizes, np.indices(tuple(sizes.values())), strict=True))


def gathered(array, view, places):
    """Return the words of an array that a view sees at some places; zero outside it."""
    shape = next(iter(places.values())).shape if places else ()
    at = [np.broadcast_to(link.at(places), shape) for link in view]
    inside = np.ones(shape, bool)
    for one, size in zip(at, array.shape, strict=True):
        inside &= (one >= 0) & (one < size)
    return np.where(inside, array[tuple(np.clip(one, 0, size - 1) for one, size in zip(at, array.shape, strict=True))],
                    0)


def nest(node, edges, values):
    """Return the output of an operator, axis by axis, of operands read through their views."""
    operator, places = node.operator, grid(node.operator.sizes)
    product = np.ones(tuple(operator.sizes.values()))
    for tensor in operator.operands:
        read = next(one for one in edges.reads if one.name == tensor.name)
        along = {axis: sum(by * places[name] for name, by in one.terms) for axis, one in enumerate(tensor.axes)}
        product = product * gathered(values[read.tensor], read.view, along)
    at = tuple(sum(by * places[name] for name, by in axis.terms) for axis in operator.output.axes)
    found = np.zeros(tuple(int(one.max()) + 1 for one in at))
    np.add.at(found, at, product)
    return found


def rest(node, edges, values):
    """Return the result of a node that is no operator, of operands read through their views, over its space."""
    places = grid(dict(enumerate(edges.space)))
    rank = len(edges.makes[0].view)
    parts = [gathered(values[one.tensor], one.view, places) for one in edges.reads]
    beyond = tuple(range(rank, len(edges.space)))
    if isinstance(node, DataMovement) or node.kind.lower() == "add":
        return sum(parts)
    if node.kind.lower() == "softmax":
        row = np.exp(parts[0] - parts[0].max(beyond, keepdims=True))
        here = gathered(values[edges.reads[0].tensor], edges.makes[0].view, places)
        return (np.exp(here - parts[0].max(beyond, keepdims=True)) / row.sum(beyond, keepdims=True))[
            (..., *[0] * len(beyond))]
    kind = node.kind.lower().removeprefix("reduce").replace("globalaverage", "adaptive_avg_").replace("maxp", "max_p")
    worked = {"relu": lambda one: np.maximum(one, 0), "mul": lambda *both: both[0] * both[1],
              "sum": lambda one: one.sum(beyond), "max_pool": lambda one: one.max(beyond),
              **dict.fromkeys(("mean", "avg_pool", "adaptive_avg_pool"), lambda one: one.mean(beyond))}
    return worked[kind.removesuffix("2d")](*parts)


def follow(network, values):
    """Work every node of a network out through its views; return the nodes whose values were those given."""
    checked = []
    for node in network.nodes:
        edges = node.edges
        made = nest(node, edges, values) if isinstance(node, MacNode) else rest(node, edges, values)
        for result in edges.makes:
            found = gathered(made, result.view, grid(dict(enumerate(result.shape))))
            if result.name in values:
                np.testing.assert_allclose(found, values[result.name], atol=1e-4, rtol=1e-4)
                checked.append(node.name)
            else:
                scale = node.operator.sizes["K"] ** -0.5 if node.name.endswith("scores") else 1
                values[result.name] = found * scale  # PyTorch scales within its attention
    return checked


class Calls(nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def heads(x, y):
    """Attention of two heads, the right way round and back."""
    q, k = (one.view(2, 5, 2, 4).transpose(1, 2) for one in (x, y))
    return functional.scaled_dot_product_attention(q, k, k).transpose(1, 2).reshape(2, 5, 8)


def grouped(q, k):
    """Attention whose heads share keys and values, repeated for each."""
    wide = k[:, :, None].expand(1, 2, 3, 5, 4).reshape(1, 6, 5, 4)
    return functional.scaled_dot_product_attention(q, wide, wide)


def swapped(x):
    """Halves that change places, and one of their rows."""
    first, second = x.chunk(2, 1)
    joined = torch.cat([second, first, second[:, 1:]], 1)
    return joined.select(1, 1) + joined[:, 3, :]


def unbound(x):
    q, k, v = x.view(2, 5, 3, 4).permute(2, 0, 1, 3).unbind(0)
    return functional.softmax(q @ k.transpose(-2, -1), -1) @ v


def in_place(x):
    y = x * x
    y += x
    return functional.pad(y.split([1, 3], 2)[1].relu_(), (2, 0, 1, 1))


def seeded(module):
    torch.manual_seed(3)
    for one in module.parameters():
        nn.init.normal_(one)
    return module


MODELS = {
    "conv": (nn.Conv2d(3, 4, (3, 2), stride=2, padding=(1, 0), bias=False), [(2, 3, 7, 6)]),
    "grouped conv": (nn.Conv2d(4, 6, 3, groups=2, padding=2, dilation=2, bias=False), [(1, 4, 5, 5)]),
    "depthwise": (nn.Conv1d(4, 8, 3, groups=4, padding="same", bias=False), [(2, 4, 6)]),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False),
                   [(2, 4, 3, 4)]),
    "unbatched": (nn.Conv2d(3, 2, 3, bias=False), [(3, 5, 4)]),
    "linear": (nn.Linear(6, 4, bias=False), [(2, 3, 6)]),
    "residual": (Calls(lambda x: functional.relu(x) + functional.avg_pool2d(x, 3, 1, 1)), [(1, 2, 4, 5)]),
    "pools": (Calls(lambda x: functional.adaptive_avg_pool2d(functional.max_pool2d(functional.relu(x), 3, 2, 1), 1)),
              [(1, 2, 7, 7)]),
    "heads": (Calls(heads), [(2, 5, 8), (2, 5, 8)]),
    "grouped heads": (Calls(grouped), [(1, 6, 4, 4), (1, 2, 5, 4)]),
    "halves": (Calls(swapped), [(2, 4, 3)]),
    "unbound": (Calls(unbound), [(2, 5, 12)]),
    "in place": (Calls(in_place), [(2, 3, 4)]),
    "broadcast batch": (Calls(lambda a, b: a @ b), [(2, 1, 3, 4), (5, 4, 2)]),
    "left matrix": (Calls(lambda a, b: a @ b), [(3, 4), (2, 4, 5)]),
    "vector": (Calls(lambda a, b: a @ b), [(4,), (2, 4, 5)]),
    "repeated keys": (Calls(lambda a, b: a @ b[:, :, None].expand(1, 2, 3, 4, 5).reshape(1, 6, 4, 5)),
                      [(1, 6, 3, 4), (1, 2, 4, 5)]),
    "einsum": (Calls(lambda a, b: torch.einsum("bij,jkb->bki", a, b)), [(2, 3, 4), (4, 5, 2)]),
    "tensordot": (Calls(lambda a, b: torch.tensordot(a, b, ([0, 2], [1, 0]))), [(2, 3, 4), (4, 2, 5)]),
    "rows": (Calls(lambda x: x.mean((1, 3)) + x.sum(3)[:, 0]), [(2, 3, 4, 5)]),
}


@pytest.mark.parametrize("name", MODELS)
def test_nests_and_moves_read_what_pytorch_reads(name):
    module, shapes = MODELS[name]
    torch.manual_seed(5)
    inputs = tuple(torch.randn(shape) for shape in shapes)
    assert follow(load_torch(seeded(module), inputs), executed(module, inputs))


def test_what_is_written_over_keeps_its_bytes_and_its_readers():
    def function(x):
        y = x * 2
        left, right = y.split([1, 3], 2)
        left.relu_()
        return y + right.sum()

    found = tensor_graph(load_torch(Calls(function), (torch.zeros(2, 3, 4),)))
    written = found.tensors["relu_"] if "relu_" in found.tensors else found.tensors["relu"]
    assert written.storage != written.name
    assert {written.name, "mul"} <= {tensor.name for _, tensor in found.read_by("add")}


def test_what_was_written_over_is_read_as_it_is_now():
    def function(x):
        y = x * 2
        y.relu_()
        return y + 1

    found = tensor_graph(load_torch(Calls(function), (torch.zeros(2, 3),)))
    ((_, read),) = found.read_by("add")
    assert (read.producer.startswith("relu"), read.storage) == (True, "mul")


def test_weights_read_twice_are_one_tensor():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 4)

        def forward(self, x):
            return self.table(x) @ self.table.weight.t()

    found = tensor_graph(load_torch(Tied(), (torch.zeros(2, 3, dtype=torch.long),)))
    (weights,) = (tensor for tensor in found.tensors.values() if tensor.kind == "weights")
    assert [read.operand for read in weights.reads] == ["table", "W"]


def numbers(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def test_onnx_nodes_read_what_its_reference_reads(tmp_path):
    rng = np.random.default_rng(1)
    weights = {"conv_w": (4, 3, 3, 3), "gemm_w": (5, 7), "deconv_w": (4, 2, 3, 3)}
    made = [numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name) for name, shape in weights.items()]
    made += [numbers("starts", 1, -3), numbers("ends", 99, 99), numbers("axes", 1, 2), numbers("steps", 2, 1),
             numbers("pads", 0, 1, 0, 0, 0, 1), numbers("first", 1), numpy_helper.from_array(np.array(2), "third"),
             numbers("shape", 2, 4, 20), numbers("last", -1)]
    nodes = [
        helper.make_node("Conv", ["x", "conv_w"], ["conv"], auto_pad="SAME_LOWER", strides=[2, 1]),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("ConvTranspose", ["relu", "deconv_w"], ["deconv"], strides=[2, 2], pads=[1, 1, 1, 1],
                         output_padding=[1, 0]),
        helper.make_node("MaxPool", ["relu"], ["pool"], kernel_shape=[3, 3], pads=[0, 1, 2, 1], strides=[2, 2]),
        helper.make_node("Reshape", ["relu", "shape"], ["rows"]),
        helper.make_node("Slice", ["rows", "starts", "ends", "axes", "steps"], ["slice"]),
        helper.make_node("Split", ["rows"], ["left", "right"], axis=2, num_outputs=2),
        helper.make_node("Concat", ["right", "left", "right"], ["cat"], axis=2),
        helper.make_node("Transpose", ["cat"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["cat", "turned"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["softmax"], axis=1),
        helper.make_node("Pad", ["softmax", "pads"], ["pad"]),
        helper.make_node("Gather", ["pad", "first"], ["gathered"], axis=1),
        helper.make_node("Gather", ["turned", "third"], ["picked"], axis=1),
        helper.make_node("Mul", ["pad", "gathered"], ["mul"]),
        helper.make_node("ReduceMean", ["mul", "last"], ["mean"], keepdims=0),
        helper.make_node("Transpose", ["y"], ["y2"]),
        helper.make_node("Gemm", ["y2", "gemm_w"], ["gemm"], transA=1, transB=1),
    ]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 7, 5]),
             helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 7])]
    names = [name for node in nodes for name in node.output]
    graph = helper.make_graph(nodes, "moves", given, [onnx.ValueInfoProto(name=name) for name in names], made)
    for value in graph.output:
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, tmp_path / "moves.onnx")
    inputs = {"x": rng.normal(size=(2, 3, 7, 5)).astype(np.float32), "y": rng.normal(size=(3, 7)).astype(np.float32)}
    values = dict(zip(names, ReferenceEvaluator(model).run(None, inputs), strict=True)) | inputs
    values |= {tensor.name: numpy_helper.to_array(tensor) for tensor in made}
    assert len(follow(load_onnx(tmp_path / "moves.onnx"), values)) >= len(nodes)


def test_unrolled_steps_make_what_pytorch_makes():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 3, bias=False)

        def forward(self, x):
            return self.lstm(x)[0]

    module, x = seeded(Recurrent()), torch.randn(5, 2, 4)
    graph = unrolled(load_torch(module, (x,)))
    found, values = tensor_graph(graph), {"x": x.numpy()}
    weights = {"lstm.input.W": module.lstm.weight_ih_l0, "lstm.state[0].W": module.lstm.weight_hh_l0}
    values |= {name: one.detach().numpy().T for name, one in weights.items()}
    values |= {t.name: np.zeros(t.shape) for t in found.tensors.values() if t.kind == "state"}
    for node in graph.nodes:
        read = {operand: values[tensor.name] for operand, tensor in found.read_by(node.name)}
        made = [tensor.name for tensor in found.made_by(node.name)]
        if isinstance(node, MacNode):
            values[made[0]] = read["I"] @ read["W"]
        else:
            step = int(node.name[len("lstm.cell["):-1])
            gates = torch.from_numpy(read["0"][step] + read["1"])
            one, forget, cell, out = gates.chunk(4, 1)
            kept = forget.sigmoid() * torch.from_numpy(read["state"]) + one.sigmoid() * cell.tanh()
            values[made[-1]], values[made[0]] = kept.numpy(), (out.sigmoid() * kept.tanh()).numpy()
    steps = [values[found.made_by(f"lstm.cell[{step}]")[0].name] for step in range(5)]
    np.testing.assert_allclose(np.stack(steps), module(x).detach().numpy(), atol=1e-5)
