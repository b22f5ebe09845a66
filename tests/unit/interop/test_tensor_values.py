"""Views of tensors hold where PyTorch runs: nests read through them make the values that PyTorch makes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tilewright.interop import load_torch
from tilewright.workload import DataMovement, MacNode, tensor_graph


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
    if isinstance(node, DataMovement) or node.kind == "add":
        return sum(parts)
    if node.kind == "softmax":
        row = np.exp(parts[0] - parts[0].max(beyond, keepdims=True))
        here = gathered(values[edges.reads[0].tensor], edges.makes[0].view, places)
        return (np.exp(here - parts[0].max(beyond, keepdims=True)) / row.sum(beyond, keepdims=True))[
            (..., *[0] * len(beyond))]
    worked = {"relu": lambda one: np.maximum(one, 0), "mul": lambda *both: both[0] * both[1],
              "mean": lambda one: one.mean(beyond), "sum": lambda one: one.sum(beyond),
              "avg_pool2d": lambda one: one.mean(beyond), "adaptive_avg_pool2d": lambda one: one.mean(beyond),
              "max_pool2d": lambda one: one.max(beyond)}
    return worked[node.kind](*parts)


def follow(module, *inputs):
    """Work every node of a module out through its views; return the nodes whose values were those of PyTorch."""
    values, checked = executed(module, inputs), []
    for node in load_torch(module, inputs).nodes:
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
    assert follow(seeded(module), *(torch.randn(shape) for shape in shapes))


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
