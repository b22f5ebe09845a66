"""Operators of PyTorch that are multiply-accumulate nests: convolutions, products, recurrent layers, attention."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.interop import nests
from tilewright.interop.pytorch.program import Ref
from tilewright.interop.scene import NodeView, Shape, Translator, Unsupported, within
from tilewright.workload import EXPERTS, Node, einsum, matmul, spread_evenly


def tensor(node: NodeView, name: str) -> str:
    """Return the tensor that is given as ``name``; an `InputError` if there is none."""
    value = node.attributes.get(name)
    if not isinstance(value, Ref):
        raise node.error("must have the tensor", name)
    return value.name


def shape(node: NodeView, name: str) -> Shape:
    """Shape of the tensor that is given as ``name``."""
    return node.scene.shape(tensor(node, name))


def spread(node: NodeView, name: str, default: int, rank: int) -> list[int]:
    """Return an argument of one number, or one for each of ``rank`` axes."""
    value: Any = node.attributes.get(name, default)
    values = [value] if isinstance(value, int) else list(value)
    values = values or [default]
    values = values * rank if len(values) == 1 else values
    if len(values) != rank:
        raise node.error(f"must have one or {rank} numbers as {name}", values)
    return [int(one) for one in values]


def _conv(node: NodeView) -> list[Node]:
    x, w = _batched(shape(node, "input"), shape(node, "weight")), shape(node, "weight")
    if node.attributes.get("transposed"):
        return _conv_transpose(node)
    groups, rank = node.integer("groups", 1), len(w) - 2
    nests.check_convolution(node, x, w, w[1] * groups, "input channels of the weights times groups")
    stride, dilation = spread(node, "stride", 1, rank), spread(node, "dilation", 1, rank)
    window = nests.ConvolutionWindow(stride, dilation, _padding(node, w, dilation), groups)
    return nests.convolved(node, (x, w), (tensor(node, "input"), tensor(node, "weight")), window)


def _conv_transpose(node: NodeView) -> list[Node]:
    w = shape(node, "weight")
    x = _batched(shape(node, "input"), w)
    nests.check_convolution(node, x, w, w[0], "first axis of the weights")
    rank = len(w) - 2
    sides = [(side, side) for side in spread(node, "padding", 0, rank)]
    window = nests.ConvolutionWindow(spread(node, "stride", 1, rank), spread(node, "dilation", 1, rank), sides,
                    node.integer("groups", 1), spread(node, "output_padding", 0, rank))
    return nests.deconvolved(node, (x, w), (tensor(node, "input"), tensor(node, "weight")), window)


def _batched(x: Shape, w: Shape) -> Shape:
    """Return the shape of an input with the batch that it may lack."""
    return (1, *x) if len(x) == len(w) - 1 else x


def _padding(node: NodeView, w: Shape, dilation: Sequence[int]) -> list[tuple[int, int]]:
    """Give the padding before and after each axis; "same" puts the odd row behind."""
    given = node.attributes.get("padding", 0)
    if given == "valid":
        return [(0, 0)] * (len(w) - 2)
    if given == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, w[2:], strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(side, side) for side in spread(node, "padding", 0, len(w) - 2)]


def _linear(node: NodeView) -> list[Node]:
    x, w = shape(node, "input"), shape(node, "weight")
    if not x or not w or x[-1] != w[-1]:
        raise node.error("must have as many features as the weights have columns", (x, w))
    sides = tensor(node, "input"), tensor(node, "weight")
    return [nests.product(node, node.name, nests.rows_by_columns(x, w[:-1]), sides)]


def _product_of(left: str, right: str) -> Translator:
    """Translate a NumPy-style product of the arguments called ``left`` and ``right``."""

    def translate(node: NodeView) -> list[Node]:
        given = nests.fold(node, shape(node, left), shape(node, right))
        return [nests.oriented(node, given, (tensor(node, left), tensor(node, right)))]

    return translate


def _inner(node: NodeView) -> list[Node]:
    """``inner``: sums over the last axis of both."""
    a, b = shape(node, "self"), shape(node, "other")
    if not a or not b or a[-1] != b[-1]:
        raise node.error("must have last axes of one size", (a, b))
    return [nests.oriented(node, nests.rows_by_columns(a, b[:-1]), (tensor(node, "self"), tensor(node, "other")))]


def _vecdot(node: NodeView) -> list[Node]:
    a, b = shape(node, "x"), shape(node, "y")
    axis = node.integer("dim", -1)
    if a != b or not a:
        raise Unsupported("a product of vectors that broadcasts")
    return [nests.product(node, node.name, (prod(a) // a[axis], 1, 1, a[axis]), (tensor(node, "x"), tensor(node, "y")))]


def _tensordot(node: NodeView) -> list[Node]:
    a, b = shape(node, "self"), shape(node, "other")
    over_a = [axis % len(a) for axis in node.integers("dims_self")]
    over_b = [axis % len(b) for axis in node.integers("dims_other")]
    inner = [a[axis] for axis in over_a]
    if inner != [b[axis] for axis in over_b]:
        raise node.error("must have inner sizes that agree", (a, b))
    left, right = [f"m{axis}" for axis in range(len(a))], [f"n{axis}" for axis in range(len(b))]
    for index, (axis, other) in enumerate(zip(over_a, over_b, strict=True)):
        left[axis] = right[other] = f"k{index}"
    rows, columns = ([part for part in parts if part[0] != "k"] for parts in (left, right))
    one, two, out = ([[part] for part in parts] for parts in (left, right, rows + columns))
    depth = [f"k{index}" for index in range(len(inner))]
    known = dict(zip(left + right, [*a, *b], strict=True))
    given = nests.MatrixProduct(one, two, out, ((), rows, columns, depth), known)
    return [nests.oriented(node, given, (tensor(node, "self"), tensor(node, "other")))]


def _einsum(node: NodeView) -> list[Node]:
    tensors = [one.name for one in node.attributes["tensors"]]
    return nests.summed(node, node.text("equation"), tensors, "einsum")


def _bilinear(node: NodeView) -> list[Node]:
    """Three factors in a step: both inputs and the weight, over all pairs of features."""
    a, w = shape(node, "input1"), shape(node, "weight")
    sizes = {"n": prod(a[:-1]), "o": w[0], "i": w[1], "j": w[2]}
    sides = [tensor(node, name) for name in ("input1", "weight", "input2")]
    return [nests.mac(node, einsum("ni,oij,nj->no", sizes, node.name), sides,
                "one nest whose steps multiply three factors")]


def _packed(node: NodeView) -> list[Node]:
    """Weights packed several to a word: the columns are those of the result.

    Of 8 bits they have a scale for each column, of 4 bits a scale and a zero point for each group.
    """
    x, out = shape(node, "self"), node.out()
    given = nests.rows_by_columns(x, out[-1:])
    bits, scales = (8, (16, x[-1])) if "int8" in node.kind else (4, (32, node.integer("qGroupSize")))
    return [nests.packed(node, given, (tensor(node, "self"), tensor(node, "mat2")), bits, scales)]


def _experts(weights: str, rows: str) -> Translator:
    """Translate products of groups of rows with a matrix of weights each: as many rows for each as it goes."""

    def translate(node: NodeView) -> list[Node]:
        x, w = shape(node, rows), shape(node, weights)
        if len(x) != 2 or len(w) != 3 or x[1] != w[1]:
            raise Unsupported("a form other than rows (tokens, features) by weights (experts, features, columns)")
        shares = spread_evenly(x[0], w[0])
        sides = tensor(node, rows), tensor(node, weights)
        nodes = [nests.product(node, node.name, (*shares[0], w[2], w[1]), sides, EXPERTS)]
        if len(shares) > 1:
            count, size = shares[1]
            rest = matmul(node.scene.free_name(f"{node.name}.rest"), size, w[2], w[1], count)
            nodes.append(replace(nodes[0], operator=replace(rest, attributes=nodes[0].operator.attributes)))
        return list(nodes)

    return translate


def _attention(node: NodeView) -> list[Node]:
    q, k, v = shape(node, "query"), shape(node, "key"), shape(node, "value")
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise node.error("must have queries, keys and values that go together", (q, k, v))
    count = q[-3] if len(q) > 2 else 1
    groups = (k[-3] if len(k) > 2 else 1) // node.scene.repeats(tensor(node, "key"))
    if prod(q[:-3]) != prod(k[:-3]) or len(q) != len(k) or count % groups or k[:-2] != v[:-2]:
        raise Unsupported("queries and keys whose heads broadcast")
    sides = tensor(node, "query"), tensor(node, "key"), tensor(node, "value")
    return nests.attention(node, (prod(q[:-3]), count, groups), (q[-2], k[-2]), (q[-1], v[-1]), sides)


_CELLS = {"lstm": (4, "lstm_cell"), "gru": (3, "gru_cell"), "rnn_tanh": (1, "rnn_cell"), "rnn_relu": (1, "rnn_cell")}


def _recurrent(node: NodeView) -> list[Node]:
    """Layers of one or two directions; a layer reads what both directions below it have made."""
    if "batch_sizes" in node.attributes:
        raise Unsupported("packed sequences, whose lengths depend on the data")
    gates, cell = _CELLS[node.kind]
    x = shape(node, "input")
    steps, batch = (x[0], 1) if len(x) == 2 else (x[1], x[0]) if node.attributes.get("batch_first") else x[:2]
    params = [one.name for one in node.attributes["params"]]
    layers, directions = node.integer("num_layers", 1), 2 if node.attributes.get("bidirectional") else 1
    each, odd = divmod(len(params), layers * directions)
    if odd or each < 2:
        raise node.error(f"must have weights for {layers} layers of {directions} directions", len(params))
    nodes: list[Node] = []
    before: tuple[str, ...] = ()
    for layer in range(layers):
        made: list[Node] = []
        for direction in range(directions):
            start = (layer * directions + direction) * each
            stem = ".".join([node.name, *[f"layer{layer}"] * (layers > 1),
                             *[("forward", "backward")[direction]] * (directions > 1)])
            made += _direction(node, stem, (gates, cell, steps, batch), params[start:start + each], before)
        before = tuple(one.name for one in made if one.name.endswith((".cell", ".projection")) and
                       not any(one.name in other.inputs for other in made))
        nodes += made
    return nodes


def _direction(node: NodeView, stem: str, cell: tuple[int, str, int, int], params: list[str],
               before: tuple[str, ...]) -> list[Node]:
    gates, kind, steps, batch = cell
    w, r = node.scene.shape(params[0]), node.scene.shape(params[1])
    if len(w) != 2 or len(r) != 2 or w[0] % gates or r[0] != w[0]:
        raise node.error(f"must have weights of {gates} gates", (w, r))
    layer = nests.Recurrence(kind, gates, steps, batch, w[1], w[0] // gates, r[1])
    nodes = nests.recurrent(node, stem, layer, (tensor(node, "input"), params[0], params[1]), before)
    if r[1] != w[0] // gates:  # an LSTM whose state is projected
        nodes.append(_projection(node, stem, layer, params[-1], nodes[-1].name))
    return nodes


def _projection(node: NodeView, stem: str, layer: nests.Recurrence, weights: str, cell: str) -> Node:
    name = node.scene.free_name(f"{stem}.projection")
    made = nests.product(node, name, (1, layer.batch, layer.state, layer.hidden), (within(cell), weights))
    return replace(made, inputs=(cell,), count=layer.steps)


def _cell(node: NodeView) -> list[Node]:
    gates, kind = _CELLS[node.kind.removesuffix("_cell")]
    x = shape(node, "input")
    params = [tensor(node, "w_ih"), tensor(node, "w_hh")]
    return _direction(node, node.name, (gates, kind, 1, x[0] if len(x) > 1 else 1), params, ())


MAC_TRANSLATORS: dict[str, Translator] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "_convolution"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    "linear": _linear,
    **dict.fromkeys(("matmul", "__matmul__", "linalg_matmul"), _product_of("self", "other")),
    **dict.fromkeys(("mm", "bmm", "_int_mm", "_scaled_mm"), _product_of("self", "mat2")),
    **dict.fromkeys(("_weight_int8pack_mm", "_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu"), _packed),
    "addmm": _product_of("mat1", "mat2"),
    **dict.fromkeys(("baddbmm", "addbmm"), _product_of("batch1", "batch2")),
    "mv": _product_of("self", "vec"),
    "addmv": _product_of("mat", "vec"),
    "dot": _product_of("self", "tensor"),
    "vdot": _product_of("self", "other"),
    "inner": _inner,
    "linalg_vecdot": _vecdot,
    "tensordot": _tensordot,
    "einsum": _einsum,
    "bilinear": _bilinear,
    "_grouped_mm": _experts("mat2", "self"),
    "transformers.grouped_mm_fallback": _experts("weight", "input"),
    **dict.fromkeys(("scaled_dot_product_attention", "_scaled_dot_product_attention_math",
                     "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
                     "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention"), _attention),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
    **dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), _cell),
}
