"""ONNX nodes that are multiply-accumulate nests: convolutions, products, einsums, recurrent layers, attention."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tilewright.hardware import number_type
from tilewright.interop import nests
from tilewright.interop.scene import NodeView, Shape, Translator, Unsupported, within
from tilewright.workload import Node, VectorOperator


def _conv(node: NodeView, data: int = 0, weights: int = 1, fused: str = "") -> list[Node]:
    x, w = node.shape(data), node.shape(weights)
    groups = node.integer("group", 1)
    nests.check_convolution(node, x, w, w[1] * groups, "input channels of the weights times groups")
    kernel, stride, dilation = _window(node, w)
    window = nests.ConvolutionWindow(stride, dilation, window_padding(node, x[2:], (kernel, stride, dilation)), groups)
    return nests.convolved(node, (x, w), (node.inputs[data], node.inputs[weights]), window, fused)


def _conv_transpose(node: NodeView) -> list[Node]:
    x, w = node.shape(0), node.shape(1)
    rank, groups = len(x) - 2, node.integer("group", 1)
    nests.check_convolution(node, x, w, w[0], "first axis of the weights")
    kernel, stride, dilation = _window(node, w)
    extra = node.integers("output_padding", [0] * rank)
    if "output_shape" in node.attributes or node.text("auto_pad", "NOTSET").startswith("SAME"):
        wanted = node.integers("output_shape") or [size * s for size, s in zip(x[2:], stride, strict=True)]
        full = [s * (i - 1) + e + d * (k - 1) + 1 for s, i, e, d, k in
                zip(stride, x[2:], extra, dilation, kernel, strict=True)]
        crop = [f - o for f, o in zip(full, wanted[-rank:], strict=True)]
        padding = [(max(0, c) // 2, max(0, c) - max(0, c) // 2) for c in crop]
        extra = [e + max(0, -c) for e, c in zip(extra, crop, strict=True)]
    else:
        padding = window_padding(node, x[2:], (kernel, stride, dilation))
    window = nests.ConvolutionWindow(stride, dilation, padding, groups, extra)
    return nests.deconvolved(node, (x, w), (node.inputs[0], node.inputs[1]), window)


def _window(node: NodeView, w: Shape) -> tuple[list[int], list[int], list[int]]:
    """Kernel, strides and dilations; the kernel as the weights have it, which the attribute must not contradict."""
    rank = len(w) - 2
    kernel = node.integers("kernel_shape", w[2:])
    if kernel != list(w[2:]):
        raise node.error(f"must have the kernel_shape of its weights, {list(w[2:])}", kernel)
    stride, dilation = node.integers("strides", [1] * rank), node.integers("dilations", [1] * rank)
    if len(stride) != rank or len(dilation) != rank:
        raise node.error(f"must have {rank} strides and dilations", (stride, dilation))
    return kernel, stride, dilation


def window_padding(node: NodeView, size: Shape,
                   window: tuple[list[int], list[int], list[int]]) -> list[tuple[int, int]]:
    """Give the padding before and after each axis around a window (kernel, strides, dilations).

    SAME puts the odd row at the end (UPPER) or at the start (LOWER).
    """
    mode = node.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = node.integers("pads", [0] * 2 * len(size))
        if len(pads) != 2 * len(size):
            raise node.error(f"must have {2 * len(size)} pads", pads)
        return list(zip(pads[:len(size)], pads[len(size):], strict=True))
    if mode == "VALID":
        return [(0, 0)] * len(size)
    pairs = []
    for i, k, s, d in zip(size, *window, strict=True):
        total = max(0, (-(-i // s) - 1) * s + d * (k - 1) + 1 - i)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return pairs


def _deformable(node: NodeView) -> list[Node]:
    """Sample between four neighbours wherever the offsets point, and multiply what was sampled."""
    x, w, out, groups = node.shape(0), node.shape(1), node.out(), node.integer("group", 1)
    nests.check_convolution(node, x, w, w[1] * groups, "input channels of the weights times groups")
    if w[0] % groups:
        raise node.error(f"must have output channels divisible by its {groups} groups", w[0])
    positions = out[0] * prod(out[2:])
    words = positions * x[1] * prod(w[2:])
    sample = VectorOperator(node.scene.free_name(f"{node.name}.sample"), "sample", (8 + node.has(4)) * words,
                            sum(node.words(at) for at in (0, 2, 4)), words, node.readers, approximated_as=_SAMPLED)
    made = nests.product(node, node.name, (groups, positions, w[0] // groups, prod(w[1:])),
                         (within(sample.name), node.inputs[1]), _SAMPLED)
    return [sample, replace(made, inputs=(sample.name,))]


def _gemm(node: NodeView, fused: str = "", right: int = 1) -> list[Node]:
    a, b = node.shape(0), node.shape(right)
    if len(a) != 2 or len(b) != 2:
        raise node.error("must multiply two matrices", (a, b))
    m, k = a[::-1] if node.integer("transA") else a
    k_b, n = b[::-1] if node.integer("transB") else b
    if k != k_b:
        raise node.error("must have inner sizes that agree", (k, k_b), "See transA and transB")
    sizes = {"m": m, "n": n, "k": k}
    left, columns = (["k"], ["m"]) if node.integer("transA") else (["m"], ["k"]), (["k"], ["n"])
    right_axes = columns[::-1] if node.integer("transB") else columns
    given = nests.MatrixProduct(left, right_axes, (["m"], ["n"]), ((), ["m"], ["n"], ["k"]), sizes)
    return [nests.oriented(node, given, (node.inputs[0], node.inputs[right]), fused)]


def _matmul(node: NodeView, left: int = 0, right: int = 1) -> list[Node]:
    a, b = node.shape(left), node.shape(right)
    if node.integer("transA"):
        a = (*a[:-2], a[-1], a[-2])
    if node.integer("transB"):
        b = (*b[:-2], b[-1], b[-2])
    given = nests.fold(node, a, b)
    if node.integer("transA"):
        given = replace(given, left=[*given.left[:-2], *given.left[:-3:-1]])
    if node.integer("transB"):
        given = replace(given, right=[*given.right[:-2], *given.right[:-3:-1]])
    return [nests.oriented(node, given, (node.inputs[left], node.inputs[right]))]


def _matmul_packed(node: NodeView) -> list[Node]:
    """Weights packed in blocks (MatMulNBits), each with a scale: the sizes and the width are attributes."""
    n, k, bits = node.integer("N"), node.integer("K"), node.integer("bits", 4)
    if not 1 <= bits <= 64:
        raise node.error("must have weights of 1 to 64 bits", bits)
    rows, block = node.words(0) // max(1, k), node.integer("block_size")
    scale = number_type(node.scene.type(node.input(2))) if node.has(2) else None
    beside = (scale.bits if scale is not None else 0) + (bits if node.has(3) else 0)
    x = node.shape(0)
    given = nests.rows_by_columns(x, [n]) if x[-1:] == (k,) else (1, rows, n, k)
    return [nests.packed(node, given, (node.input(0), node.input(1)), bits, (beside, block))]


def _einsum(node: NodeView) -> list[Node]:
    return nests.summed(node, node.text("equation"), [node.input(index) for index in range(len(node.inputs))], "Einsum")


def _recurrent(node: NodeView) -> list[Node]:
    """Products with the input (all steps at once) and with the state (step by step), and the cell's vector work."""
    gates, cell = {"GRU": (3, "gru_cell"), "RNN": (1, "rnn_cell")}.get(node.kind, (4, "lstm_cell"))
    x, w, r = node.shape(0), node.shape(1), node.shape(2)
    if node.kind == "DynamicQuantizeLSTM" and len(w) == len(r) == 3:  # which has its weights transposed
        w, r = (w[0], w[2], w[1]), (r[0], r[2], r[1])
    if len(x) != 3 or len(w) != 3 or len(r) != 3:
        raise node.error("must have X, W and R of rank 3", (x, w, r))
    batch, steps = (x[0], x[1]) if node.integer("layout") else (x[1], x[0])
    hidden = r[2]
    if w[1] != gates * hidden or r[1] != gates * hidden or w[2] != x[2]:
        raise node.error(f"must have W of {gates} x {hidden} rows by {x[2]} columns", w)
    nodes: list[Node] = []
    for direction in range(w[0]):
        stem = node.name if w[0] == 1 else f"{node.name}.{('forward', 'backward')[direction % 2]}"
        layer = nests.Recurrence(cell, gates, steps, batch, x[2], hidden, hidden)
        nodes += nests.recurrent(node, stem, layer, node.inputs[:3])
    return nodes


def _attention_fused(node: NodeView) -> list[Node]:
    """Attention of the com.microsoft domain: one projection to queries, keys and values, then attention."""
    x, w = node.shape(0), node.shape(1)
    heads = node.integer("num_heads")
    if len(x) != 3 or len(w) != 2 or heads < 1:
        raise Unsupported("a form other than (batch, positions, features) with num_heads")
    sizes = node.integers("qkv_hidden_sizes") or [w[1] // 3] * 3
    name = node.scene.free_name(f"{node.name}.qkv")
    project = nests.product(node, name, (1, x[0] * x[1], w[1], x[2]), node.inputs[:2], nests.ATTENTION)
    widths = sizes[0] // heads, sizes[2] // heads
    return [project, *nests.attention(node, (x[0], heads, heads), (x[1], x[1]), widths, (within(name),) * 3)]


def _attention_heads(node: NodeView) -> list[Node]:
    """Attention over given queries, keys and values (ONNX Attention, MultiHeadAttention, GroupQueryAttention)."""
    q = node.shape(0)
    if not (node.has(1) and node.has(2)):
        raise Unsupported("packed queries, keys and values")
    k, v = node.shape(1), node.shape(2)
    heads = node.integer("q_num_heads") or node.integer("num_heads") or (q[1] if len(q) == 4 else 0)
    groups = node.integer("kv_num_heads") or (k[1] if len(k) == 4 else heads)
    if len({len(q), len(k), len(v)}) != 1 or len(q) not in (3, 4) or heads < 1 or groups < 1 or heads % groups:
        raise Unsupported("a form other than three tensors of rank 3 or 4 with their numbers of heads")
    if len(q) == 3:
        rows, columns, size, width = q[1], k[1], q[2] // heads, v[2] // groups
    else:
        rows, columns, size, width = q[2], k[2], q[3], v[3]
    past = {"Attention": 4, "GroupQueryAttention": 3, "MultiHeadAttention": 6}[node.kind]
    if node.has(past):
        columns += node.shape(past)[2]
    return nests.attention(node, (q[0], heads, groups), (rows, columns), (size, width), node.inputs[:3])


_SAMPLED = "a product of inputs sampled between four neighbours beforehand"
_FUSED = "the operator without what is fused behind it"

MAC_TRANSLATORS: dict[str, Translator] = {
    "Conv": _conv,
    "FusedConv": lambda node: _conv(node, fused=_FUSED),
    "ConvInteger": _conv,
    "QLinearConv": lambda node: _conv(node, 0, 3),
    "ConvTranspose": _conv_transpose,
    "DeformConv": _deformable,
    "Gemm": _gemm,
    "FusedGemm": lambda node: _gemm(node, _FUSED),
    "QGemm": lambda node: _gemm(node, right=3),
    "MatMul": _matmul,
    "FusedMatMul": _matmul,
    "MatMulInteger": _matmul,
    "MatMulIntegerToFloat": _matmul,
    "DynamicQuantizeMatMul": _matmul,
    "QLinearMatMul": lambda node: _matmul(node, 0, 3),
    "MatMulNBits": _matmul_packed,
    "Einsum": _einsum,
    "LSTM": _recurrent,
    "DynamicQuantizeLSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "MultiHeadAttention": _attention_heads,
    "GroupQueryAttention": _attention_heads,
}


def translate_macs(node: NodeView, domain: str) -> Sequence[Node] | None:
    """Translate a node of multiply-accumulates into nodes whose last one makes its result; None if it is none.

    Raises
    ------
    InputError
        If sizes contradict one another.
    Unsupported
        If it cannot be modelled.
    """
    if node.kind == "Attention":
        return _attention_fused(node) if domain == "com.microsoft" else _attention_heads(node)
    translator = MAC_TRANSLATORS.get(node.kind)
    return None if translator is None else translator(node)
