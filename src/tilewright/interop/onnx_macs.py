"""ONNX nodes that are multiply-accumulate nests: convolutions, products, einsums, recurrent layers, attention."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

from tilewright.interop.onnx_scene import NodeView, Shape, Unsupported
from tilewright.workload import (
    OPERATIONS_PER_ELEMENT,
    MacNode,
    Node,
    Operator,
    VectorOperator,
    convolution,
    einsum,
    linear,
    matmul,
    transposed_convolution,
)

Translator = Callable[[NodeView], list[Node]]


def _conv(node: NodeView, data: int = 0, weights: int = 1, fused: str = "") -> list[Node]:
    x, w = node.shape(data), node.shape(weights)
    rank, groups = len(x) - 2, node.integer("group", 1)
    _check_conv(node, x, w, w[1] * groups, "input channels of the weights times groups")
    if w[0] % groups:
        raise node.error(f"must have output channels divisible by its {groups} groups", w[0])
    kernel, stride, dilation = _window(node, w, rank)
    padding = _padding(node, x[2:], kernel, stride, dilation)
    operator = convolution(node.name, batch=x[0], in_channels=x[1], out_channels=w[0], groups=groups, in_size=x[2:],
                           kernel=kernel, stride=stride, dilation=dilation, padding=padding)
    return [_mac(node, operator, node.inputs[weights], fused)]


def _conv_transpose(node: NodeView) -> list[Node]:
    x, w = node.shape(0), node.shape(1)
    rank, groups = len(x) - 2, node.integer("group", 1)
    _check_conv(node, x, w, w[0], "first axis of the weights")
    kernel, stride, dilation = _window(node, w, rank)
    extra = node.integers("output_padding", [0] * rank)
    if node.given("output_shape") or node.text("auto_pad", "NOTSET").startswith("SAME"):
        wanted = node.integers("output_shape") or [size * s for size, s in zip(x[2:], stride, strict=True)]
        full = [s * (i - 1) + e + d * (k - 1) + 1 for s, i, e, d, k in
                zip(stride, x[2:], extra, dilation, kernel, strict=True)]
        crop = [f - o for f, o in zip(full, wanted[-rank:], strict=True)]
        padding = [(max(0, c) // 2, max(0, c) - max(0, c) // 2) for c in crop]
        extra = [e + max(0, -c) for e, c in zip(extra, crop, strict=True)]
    else:
        padding = _padding(node, x[2:], kernel, stride, dilation)
    operator = transposed_convolution(node.name, batch=x[0], in_channels=x[1], out_channels=w[1] * groups,
                                      groups=groups, in_size=x[2:], kernel=kernel, stride=stride, dilation=dilation,
                                      padding=padding, output_padding=extra)
    return [_mac(node, operator, node.inputs[1])]


def _check_conv(node: NodeView, x: Shape, w: Shape, channels: int, which: str) -> None:
    if len(x) < 3 or len(x) != len(w):
        raise node.error("must have an input and weights of one rank, with one to three spatial axes", (x, w))
    if len(x) > 5:
        raise Unsupported(f"{len(x) - 2} spatial axes")
    if x[1] != channels:
        raise node.error(f"must have as many input channels as the {which} ({channels})", x[1])


def _window(node: NodeView, w: Shape, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Kernel, strides and dilations; the kernel as the weights have it, which the attribute must not contradict."""
    kernel = node.integers("kernel_shape", w[2:])
    if kernel != list(w[2:]):
        raise node.error(f"must have the kernel_shape of its weights, {list(w[2:])}", kernel)
    stride, dilation = node.integers("strides", [1] * rank), node.integers("dilations", [1] * rank)
    if len(stride) != rank or len(dilation) != rank:
        raise node.error(f"must have {rank} strides and dilations", (stride, dilation))
    return kernel, stride, dilation


def _padding(node: NodeView, size: Shape, kernel: list[int], stride: list[int],
             dilation: list[int]) -> list[tuple[int, int]]:
    """Give the padding before and after each axis; SAME puts the odd row at the end (UPPER) or at the start (LOWER)."""
    mode = node.text("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = node.integers("pads", [0] * 2 * len(size))
        if len(pads) != 2 * len(size):
            raise node.error(f"must have {2 * len(size)} pads", pads)
        return list(zip(pads[:len(size)], pads[len(size):], strict=True))
    if mode == "VALID":
        return [(0, 0)] * len(size)
    pairs = []
    for i, k, s, d in zip(size, kernel, stride, dilation, strict=True):
        total = max(0, (-(-i // s) - 1) * s + d * (k - 1) + 1 - i)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return pairs


def _gemm(node: NodeView, fused: str = "", right: int = 1) -> list[Node]:
    a, b = node.shape(0), node.shape(right)
    if len(a) != 2 or len(b) != 2:
        raise node.error("must multiply two matrices", (a, b))
    m, k = a[::-1] if node.integer("transA") else a
    k_b, n = b[::-1] if node.integer("transB") else b
    if k != k_b:
        raise node.error("must have inner sizes that agree", (k, k_b), "See transA and transB")
    return [_oriented(node, (1, m, n, k), (0, right), fused)]


def _gemm_quantised(node: NodeView) -> list[Node]:
    return _gemm(node, right=3)


def _matmul(node: NodeView, left: int = 0, right: int = 1) -> list[Node]:
    a, b = node.shape(left), node.shape(right)
    if node.integer("transA"):
        a = (*a[:-2], a[-1], a[-2])
    if node.integer("transB"):
        b = (*b[:-2], b[-1], b[-2])
    if not a or not b:
        raise node.error("must not multiply scalars", (a, b))
    return [_oriented(node, _fold(node, a, b), (left, right))]


def _fold(node: NodeView, a: Shape, b: Shape) -> tuple[int, int, int, int]:
    """Batch, M, N, K of a NumPy-style product: axes that one side broadcasts are rows (or columns) of the other."""
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if a[-1] != b[-2]:
        raise node.error("must have inner sizes that agree", (a, b))
    rank = max(len(a), len(b))
    outer_a, outer_b = ((1,) * (rank - len(s)) + s[:-2] for s in (a, b))
    batch, m, n = 1, a[-2], b[-1]
    for p, q in zip(outer_a, outer_b, strict=True):
        if p == q:
            batch *= p
        elif q == 1:
            m *= p
        elif p == 1:
            n *= q
        else:
            raise node.error("must have batch axes that agree or are 1", (a, b))
    return batch, m, n, a[-1]


def _matmul_packed(node: NodeView) -> list[Node]:
    """Weights packed in blocks (MatMulNBits): the sizes are attributes."""
    n, k = node.integer("N"), node.integer("K")
    rows = node.words(0) // max(1, k)
    return [_product(node, node.name, (1, rows, n, k), 1, f"a product with weights of {node.integer('bits', 4)} bits")]


def _einsum(node: NodeView) -> list[Node]:
    shapes = [node.shape(index) for index in range(len(node.inputs))]
    equation = _spell_out(node, "".join(node.text("equation").split()), shapes)
    terms = equation.split("->")[0].split(",")
    if len(terms) != len(shapes):
        raise node.error(f"must have one term for each of its {len(shapes)} inputs", equation)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise node.error("must have one letter for each axis of its inputs", (term, shape))
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise node.error(f"must have one size for the letter {letter!r}", sorted({sizes[letter], size}))
    if any(len(set(term)) != len(term) for term in terms):
        raise Unsupported("a diagonal is no box of words")
    if len(terms) == 1:
        words = prod(node.out())
        return [VectorOperator(node.name, "Einsum", node.words(0) - words, node.words(0), words, node.readers)]
    return [_mac(node, einsum(equation, sizes, node.name), node.inputs[1])]


def _spell_out(node: NodeView, equation: str, shapes: list[Shape]) -> str:
    """Put letters in place of the ellipsis (which must cover as many axes in every term)."""
    if "..." not in equation:
        return equation
    left, arrow, right = equation.partition("->")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    counts = {len(shape) - len(term.replace("...", "")) for term, shape in
              zip(left.split(","), shapes, strict=False) if "..." in term}
    if len(counts) != 1 or not arrow or min(counts) < 0:
        raise Unsupported("an ellipsis that broadcasts")
    letters = "".join(spare[:counts.pop()])
    return f"{left.replace('...', letters)}->{right.replace('...', letters)}"


def _recurrent(node: NodeView) -> list[Node]:
    """Products with the input (all steps at once) and with the state (step by step), and the cell's vector work."""
    gates, cell = {"LSTM": (4, "lstm_cell"), "GRU": (3, "gru_cell"), "RNN": (1, "rnn_cell")}[node.kind]
    x, w, r = node.shape(0), node.shape(1), node.shape(2)
    if len(x) != 3 or len(w) != 3 or len(r) != 3:
        raise node.error("must have X, W and R of rank 3", (x, w, r))
    batch, steps = (x[0], x[1]) if node.integer("layout") else (x[1], x[0])
    hidden = r[2]
    if w[1] != gates * hidden or r[1] != gates * hidden or w[2] != x[2]:
        raise node.error(f"must have W of {gates} x {hidden} rows by {x[2]} columns", w)
    nodes: list[Node] = []
    note = "matrix products with the input at once and with the state step by step, and vector work"
    for direction in range(w[0]):
        stem = node.name if w[0] == 1 else f"{node.name}.{('forward', 'backward')[direction % 2]}"
        names = [node.scene.free_name(f"{stem}.{part}") for part in ("input", "state", "cell")]
        given = _product(node, names[0], (1, steps * batch, gates * hidden, x[2]), 1, note)
        state = linear(names[1], rows=batch, in_features=hidden, out_features=gates * hidden)
        words = batch * hidden
        nodes += [given, MacNode(state, (names[0],), steps, note),
                  VectorOperator(names[2], cell, OPERATIONS_PER_ELEMENT[cell] * words, 2 * gates * words, 2 * words,
                                 (names[1],), steps, approximated_as=note)]
    return nodes


def _attention_fused(node: NodeView) -> list[Node]:
    """Attention of the com.microsoft domain: one projection to queries, keys and values, then attention."""
    x, w = node.shape(0), node.shape(1)
    heads = node.integer("num_heads")
    if len(x) != 3 or len(w) != 2 or heads < 1:
        raise Unsupported("a form other than (batch, positions, features) with num_heads")
    sizes = node.integers("qkv_hidden_sizes") or [w[1] // 3] * 3
    name = node.scene.free_name(f"{node.name}.qkv")
    note = _ATTENTION_NOTE
    project = _product(node, name, (1, x[0] * x[1], w[1], x[2]), 1, note)
    return [project, *_scores(node, (x[0], heads, heads), (x[1], x[1]), (sizes[0] // heads, sizes[2] // heads), name)]


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
    return _scores(node, (q[0], heads, groups), (rows, columns), (size, width), "")


_ATTENTION_NOTE = "batched matrix products and a softmax, without regard to masks"


def _scores(node: NodeView, heads: tuple[int, int, int], lengths: tuple[int, int], widths: tuple[int, int],
            origin: str) -> list[Node]:
    """Scores, softmax, context; ``heads`` = batch, heads, heads of keys (queries that share keys are rows of one)."""
    (batch, count, groups), (rows, columns), (size, width) = heads, lengths, widths
    parts = ("scores", "softmax", "context")
    scores, softmax, context = (node.scene.free_name(f"{node.name}.{part}") for part in parts)
    first = (origin,) if origin else node.readers
    folded = rows * (count // groups)
    words = batch * count * rows * columns
    attributes = (("weights", "activations"), ("element_type", node.element_type))
    score = replace(matmul(scores, folded, columns, size, batch * groups), attributes=attributes)
    mix = replace(matmul(context, folded, width, columns, batch * groups), attributes=attributes)
    return [MacNode(score, first, 1, _ATTENTION_NOTE),
            VectorOperator(softmax, "softmax", OPERATIONS_PER_ELEMENT["softmax"] * words, words, words, (scores,),
                           approximated_as=_ATTENTION_NOTE),
            MacNode(mix, (softmax, *(name for name in first if name != softmax)), 1, _ATTENTION_NOTE)]


def _oriented(node: NodeView, sizes: tuple[int, int, int, int], sides: tuple[int, int], note: str = "") -> MacNode:
    """Make the product of two inputs; where only the left one is constant, of their transposes, so that it is W."""
    left, right = sides
    if node.is_constant(left) and not node.is_constant(right):
        batch, m, n, k = sizes
        return _product(node, node.name, (batch, n, m, k), left, note)
    return _product(node, node.name, sizes, right, note)


def _product(node: NodeView, name: str, sizes: tuple[int, int, int, int], weights: int, note: str = "") -> MacNode:
    batch, m, n, k = sizes
    if min(sizes) < 1:
        raise node.error("must have positive sizes", sizes)
    return _mac(node, matmul(name, m, n, k, batch), node.inputs[weights], note)


def _mac(node: NodeView, operator: Operator, weights: str, note: str = "") -> MacNode:
    """Wrap an operator; mark weights that are activations, or that another node counts already."""
    attributes: list[tuple[str, int | str]] = [*operator.attributes, ("element_type", node.element_type)]
    if weights not in node.scene.constants:
        attributes.append(("weights", "activations"))
    elif weights in node.scene.claimed:
        attributes.append(("weights", "tied"))
    node.scene.claimed.add(weights)
    return MacNode(replace(operator, attributes=tuple(attributes)), node.readers, 1, note)


_FUSED = "the operator without what is fused behind it"

MAC_TRANSLATORS: dict[str, Translator] = {
    "Conv": _conv,
    "FusedConv": lambda node: _conv(node, fused=_FUSED),
    "ConvInteger": _conv,
    "QLinearConv": lambda node: _conv(node, 0, 3),
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "FusedGemm": lambda node: _gemm(node, _FUSED),
    "QGemm": _gemm_quantised,
    "MatMul": _matmul,
    "FusedMatMul": _matmul,
    "MatMulInteger": _matmul,
    "MatMulIntegerToFloat": _matmul,
    "DynamicQuantizeMatMul": _matmul,
    "QLinearMatMul": lambda node: _matmul(node, 0, 3),
    "MatMulNBits": _matmul_packed,
    "Einsum": _einsum,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "MultiHeadAttention": _attention_heads,
    "GroupQueryAttention": _attention_heads,
}


def translate_macs(node: NodeView, domain: str) -> list[Node] | None:
    """Translate a node of multiply-accumulates into nodes whose last one makes its result; None if it is none.

    Raises
    ------
    InputError
        If sizes contradict one another.
    UnknownShape, Unsupported
        If it cannot be modelled.
    """
    if node.kind == "Attention":
        return _attention_fused(node) if domain == "com.microsoft" else _attention_heads(node)
    translator = MAC_TRANSLATORS.get(node.kind)
    return None if translator is None else translator(node)
