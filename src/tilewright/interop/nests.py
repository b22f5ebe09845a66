"""Multiply-accumulate nests of foreign networks, whatever file they come from: products, convolutions, attention ...

Of matrix products it is told which axes of their tensors are rows, columns, depth and batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from tilewright.hardware import read_type
from tilewright.interop.scene import NodeView, Shape, Unsupported, within
from tilewright.workload import (
    OPERATIONS_PER_ELEMENT,
    AxisLink,
    Letters,
    MacNode,
    Node,
    Operand,
    Operator,
    VectorOperator,
    View,
    convolution,
    einsum,
    linear,
    matmul,
    operand_view,
    related,
    result_view,
    same,
    transposed_convolution,
    whole,
)

ATTENTION = "batched matrix products and a softmax, without regard to masks"
RECURRENT = "matrix products with the input at once and with the state step by step, and vector work"


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product of tensors, told by named parts: of each axis of its two sides and its result.

    ``dimensions`` are the parts of B, M, N and K, ``sizes`` those of all parts.
    """

    left: Letters
    right: Letters
    out: Letters
    dimensions: tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]
    sizes: Mapping[str, int]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Sizes of B, M, N and K."""
        b, m, n, k = (prod(self.sizes[part] for part in parts) for parts in self.dimensions)
        return b, m, n, k

    @property
    def turned(self) -> "MatrixProduct":
        """The same of transposes: the right side comes first."""
        b, m, n, k = self.dimensions
        return MatrixProduct(self.right, self.left, self.out, (b, n, m, k), self.sizes)

    def views(self) -> tuple[View, View, View]:
        """Return both sides seen from the axes of I and W, and the axes of O seen from the result."""
        b, m, n, k = self.dimensions
        columns = [b, k, n] if self.shape[0] > 1 else [k, n]
        return (related(self.left, [b, m, k], self.sizes), related(self.right, columns, self.sizes),
                related([b, m, n], self.out, self.sizes))


def rows_by_columns(x: Shape, columns: Sequence[int]) -> MatrixProduct:
    """Return the product of a tensor, along its last axis, with weights (columns, depth)."""
    parts = [f"m{axis}" for axis in range(len(x) - 1)]
    wide = [f"n{axis}" for axis in range(len(columns))]
    axes, ends = [[part] for part in parts], [[part] for part in wide]
    return MatrixProduct([*axes, ["k"]], [*ends, ["k"]], [*axes, *ends], ((), parts, wide, ["k"]),
                   dict(zip([*parts, "k", *wide], [*x, *columns], strict=True)))


def shared(given: MatrixProduct, axes: Sequence[Sequence[tuple[int, bool]]]) -> MatrixProduct:
    """Return a product whose right side has axes that repeat matrices: their repetitions are rows of one matrix."""
    sizes, cut, repeats = dict(given.sizes), dict[str, list[str]](), list[str]()
    for parts, factors in zip(given.right, axes, strict=True):
        if any(again for _, again in factors) and len(parts) == 1:
            cut[parts[0]] = [f"{parts[0]}.{place}" for place in range(len(factors))]
            sizes |= dict(zip(cut[parts[0]], (size for size, _ in factors), strict=True))
            repeats += [f"{parts[0]}.{place}" for place, (_, again) in enumerate(factors) if again]

    def spelled(axis: Sequence[str]) -> list[str]:
        return [part for one in axis for part in cut.get(one, [one])]

    batch, m, n, k = (spelled(parts) for parts in given.dimensions)
    batch = [part for part in batch if part not in repeats]
    left, right, out = ([spelled(axis) for axis in side] for side in (given.left, given.right, given.out))
    return MatrixProduct(left, right, out, (batch, [*repeats, *m], n, k), sizes)


def fold(node: NodeView, a: Shape, b: Shape) -> MatrixProduct:
    """Return a NumPy-style product: axes that one side broadcasts are rows (or columns) of the other."""
    plain = len(a) > 1, len(b) > 1
    if not a or not b:
        raise node.error("must not multiply scalars", (a, b))
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    if a[-1] != b[-2]:
        raise node.error("must have inner sizes that agree", (a, b))
    rank = max(len(a), len(b))
    outer_a, outer_b = ((1,) * (rank - len(s)) + s[:-2] for s in (a, b))
    parts: dict[str, list[str]] = {"b": [], "m": [], "n": []}
    sizes, left, right = {"m": a[-2], "n": b[-1], "k": a[-1]}, list[list[str]](), list[list[str]]()
    for axis, (p, q) in enumerate(zip(outer_a, outer_b, strict=True)):
        if p != q and 1 not in (p, q):
            raise node.error("must have batch axes that agree or are 1", (a, b))
        mark = "b" if p == q else "m" if q == 1 else "n"
        part = f"{mark}{axis}"
        parts[mark].append(part)
        sizes[part] = max(p, q)
        left.append([part] if mark != "n" else [])
        right.append([part] if mark != "m" else [])
    out = [[*one, *(part for part in two if part not in one)] for one, two in zip(left, right, strict=True)]
    m, n = [["m"]] if plain[0] else [], [["n"]] if plain[1] else []
    left, right = left[rank - len(a):] + m + [["k"]], [*right[rank - len(b):], ["k"], *n]
    return MatrixProduct(left, right, out + m + n, (parts["b"], [*parts["m"], "m"], [*parts["n"], "n"], ["k"]), sizes)


def heads_seen(node: NodeView, sides: Sequence[str], sizes: Mapping[str, int]) -> tuple[View | None, ...]:
    """Return queries, keys and values seen from the products of attention, and the last product from the result.

    Parts are ``g`` groups of ``r`` heads, ``p`` and ``c`` positions of queries and keys, ``d`` and ``w`` features. Axes
    are (batch ..., heads, positions, features), or (batch, positions, features of all heads).
    """
    first = node.scene.shapes.get(sides[0], ())
    count = sizes["g"] * sizes["r"]
    merged = count > 1 and len(first) == 3 and first[1:] == (sizes["p"], count * sizes["d"])
    lead = ["b0"] if merged else [f"b{axis}" for axis in range(len(first) - 3)]
    known = {**sizes, **dict(zip(lead, first, strict=False))}
    batch, found = [*lead, "g"], list[View | None]()
    alone = prod(known[part] for part in batch) == 1  # then the right sides have no batch
    outer = ([batch, ["r", "p"], ["d"]], [batch, ["d"], ["c"]][alone:], [batch, ["c"], ["w"]][alone:])
    ends = zip((*sides, node.outputs[0]), (("p", "d"), ("c", "d"), ("c", "w"), ("p", "w")), strict=True)
    for index, (name, (place, word)) in enumerate(ends):
        shape = node.scene.shapes.get(name, ())
        heads = _heads_of(node, name, merged, known, word)
        axes = [*([part] for part in lead), *([[place], [*heads, word]] if merged else [heads, [place], [word]])]
        if not merged and len(shape) == 2:
            axes = [[place], [word]]
        if not heads or len(axes) != len(shape):
            found.append(None)
        elif index == 3:
            found.append(related([batch, ["r", "p"], ["w"]], axes, known))
        else:
            at, view = axes.index([place]), related(axes, outer[index], known)
            link = AxisLink(view[at].digits, shape[at] - known[place])  # behind those of the past
            found.append((*view[:at], link, *view[at + 1:]))
    return tuple(found)


def _heads_of(node: NodeView, name: str, merged: bool, sizes: Mapping[str, int], word: str) -> list[str]:
    """Return the parts of heads that a tensor has: only groups, or every head; nothing where that is not known."""
    shape = node.scene.shapes.get(name, ())
    if len(shape) < 3:
        return ["g", "r"]
    count = shape[-1] // max(1, sizes[word]) if merged else shape[-3]
    factors = node.scene.arranged.get(name, ())[-3:-2]
    if any(again and not later for axis in factors for (_, again), (_, later) in pairwise(axis)):
        return []  # not those of a group side by side
    return ["g"] if count == sizes["g"] else ["g", "r"] if count == sizes["g"] * sizes["r"] else []


@dataclass(frozen=True)
class ConvolutionWindow:
    """How a convolution slides: one entry per spatial axis, paddings before and after.

    ``extra`` are positions that a transposed convolution adds behind the output of each axis.
    """

    stride: Sequence[int]
    dilation: Sequence[int]
    padding: Sequence[tuple[int, int]]
    groups: int = 1
    extra: Sequence[int] = ()


def mac(node: NodeView, operator: Operator, sides: Sequence[str], note: str = "",
        views: Sequence[View | None] = ()) -> MacNode:
    """Wrap an operator that reads the tensors ``sides``, of which the second is its weights.

    Mark weights that are activations, or that another node counts already. ``views`` are those of the sides, seen from
    the axes of the operator's tensors, and that of the operator's output seen from the result.
    """
    weights = sides[1]
    attributes: list[tuple[str, int | str]] = [*operator.attributes, ("element_type", node.element_type),
                                               ("types", ",".join(_types(node, operator, weights)))]
    if weights in node.scene.caches:
        attributes.append(("weights", "cache"))
    elif weights not in node.scene.constants:
        attributes.append(("weights", "activations"))
    elif node.scene.origin(weights) in node.scene.claimed:
        attributes.append(("weights", "tied"))
    node.scene.claimed.add(node.scene.origin(weights))
    names = [tensor.name for tensor in operator.operands]
    return MacNode(replace(operator, attributes=tuple(attributes)), node.readers, 1, note,
                   node.edges([*zip(names, sides, strict=True), *node.beside(sides)], views=views))


def _types(node: NodeView, operator: Operator, weights: str) -> list[str]:
    """Return the types of an operator's tensors: its inputs, the ``weights`` (others: those of the inputs), outputs."""
    scene = node.scene
    others = [name for name in node.inputs if name != weights]
    matrices = [name for name in others if len(scene.shapes.get(name, ())) > 1]
    first = scene.type(next(iter(matrices or others), weights)) or node.element_type
    return [first, *[scene.type(weights) or first] * (len(operator.operands) - 1),
            scene.type(node.outputs[0]) if node.outputs else ""]


def product(node: NodeView, name: str, given: MatrixProduct | tuple[int, int, int, int], sides: Sequence[str],
            note: str = "") -> MacNode:
    """Make a product of the tensors ``sides``; ``given`` are B, M, N and K alone where no more is known."""
    sizes = given.shape if isinstance(given, MatrixProduct) else given
    batch, m, n, k = sizes
    if min(sizes) < 1:
        raise node.error("must have positive sizes", sizes)
    views = given.views() if isinstance(given, MatrixProduct) else ()
    return mac(node, matmul(name, m, n, k, batch), sides, note, views)


def packed(node: NodeView, given: MatrixProduct | tuple[int, int, int, int], sides: tuple[str, str], bits: int,
           scales: tuple[int, int]) -> MacNode:
    """Make a product whose weights are packed words of so many ``bits``; ``scales`` are bits beside so many of them."""
    beside, block = scales
    known = beside > 0 and block > 0 and not block & (block - 1)
    found = read_type(f"{node.name}.weights", f"int{bits}" + (f"+{beside}/{block}" if known else ""))
    note = f"a product with weights of {bits} bits, " + (
        f"and {found.word_bits - bits:g} for each of scales and zero points" if known else "without scales beside them")
    made = product(node, node.name, given, sides, note)
    tensors = tuple(replace(t, word_bits=found.word_bits, type=found.name) if t.role == "weights" else t
                    for t in made.operator.tensors)
    return replace(made, operator=replace(made.operator, tensors=tensors))


def oriented(node: NodeView, given: MatrixProduct, sides: tuple[str, str], note: str = "") -> MacNode:
    """Make the product of two tensors; where only the left one is constant, of their transposes, so that it is W."""
    left, right = sides
    constants = node.scene.constants
    if node.scene.repeats(right) > 1:  # matrices that rows of as many others of the left side share
        return product(node, node.name, shared(given, node.scene.arranged[right]), sides, note)
    if left in constants and right not in constants:
        return product(node, node.name, given.turned, (right, left), note)
    return product(node, node.name, given, sides, note)


def check_convolution(node: NodeView, x: Shape, w: Shape, channels: int, which: str) -> None:
    """Refuse an input and weights that do not go together; ``channels`` are those that the weights ask for.

    Raises an `InputError` or `Unsupported` if the shapes contradict one another, or there are more than three spatial
    axes.
    """
    if len(x) < 3 or len(x) != len(w):
        raise node.error("must have an input and weights of one rank, with one to three spatial axes", (x, w))
    if len(x) > 5:
        raise Unsupported(f"{len(x) - 2} spatial axes")
    if x[1] != channels:
        raise node.error(f"must have as many input channels as the {which} ({channels})", x[1])


def convolved(node: NodeView, shapes: tuple[Shape, Shape], sides: tuple[str, str], window: ConvolutionWindow,
              note: str = "") -> list[Node]:
    """Make the convolution of an input (N, C, ...) with weights (K, C of a group, ...), the tensors ``sides``."""
    x, w = shapes
    if w[0] % window.groups:
        raise node.error(f"must have output channels divisible by its {window.groups} groups", w[0])
    operator = convolution(node.name, batch=x[0], in_channels=x[1], out_channels=w[0], groups=window.groups,
                           in_size=x[2:], kernel=w[2:], stride=window.stride, dilation=window.dilation,
                           padding=window.padding)
    return [mac(node, operator, sides, note, _images(node, operator, sides))]


def _images(node: NodeView, operator: Operator, sides: Sequence[str]) -> Sequence[View | None]:
    """Return the views of a convolution's input, weights and output."""
    x, w, out = (node.scene.shapes.get(name) for name in (*sides, node.outputs[0]))
    weights = None if w is None else operand_view(operator, operator.tensors[1], w)
    if operator.kind == "conv_transpose" and w is not None:  # whose weights have their channels the other way round
        names = [axis.dimensions[0] for axis in operator.tensors[1].axes]
        weights = related([["G", "C"] if "G" in names else ["C"], ["K"], *names[-len(w) + 2:]], names, operator.sizes)
    return (None if x is None else operand_view(operator, operator.tensors[0], x), weights,
            None if out is None else result_view(operator, out))


def deconvolved(node: NodeView, shapes: tuple[Shape, Shape], sides: tuple[str, str],
                window: ConvolutionWindow) -> list[Node]:
    """Make the transposed convolution of an input (N, C, ...) with weights (C, K of a group, ...)."""
    x, w = shapes
    operator = transposed_convolution(node.name, batch=x[0], in_channels=x[1], out_channels=w[1] * window.groups,
                                      groups=window.groups, in_size=x[2:], kernel=w[2:], stride=window.stride,
                                      dilation=window.dilation, padding=window.padding, output_padding=window.extra)
    return [mac(node, operator, sides, views=_images(node, operator, sides))]


def summed(node: NodeView, equation: str, tensors: Sequence[str], kind: str) -> list[Node]:
    """Make an einsum of ``tensors``; vector work of this ``kind`` where there is only one."""
    shapes = [node.scene.shape(name) for name in tensors]
    equation = _spell_out("".join(equation.split()), shapes)
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
        return [VectorOperator(node.name, kind, node.words(0) - words, node.words(0), words, node.readers)]
    return [mac(node, einsum(equation, sizes, node.name), tensors, "", [same(shape) for shape in [
        *shapes, *filter(None, [node.scene.shapes.get(node.outputs[0])])]])]


def _spell_out(equation: str, shapes: list[Shape]) -> str:
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


@dataclass(frozen=True)
class Recurrence:
    """One direction of a recurrent layer: ``gates`` products of ``hidden`` units each, over ``steps`` of a batch.

    ``cell`` is the name of its vector work (`OPERATIONS_PER_ELEMENT`); ``state`` the units that are fed back.
    """

    cell: str
    gates: int
    steps: int
    batch: int
    features: int
    hidden: int
    state: int


def recurrent(node: NodeView, stem: str, layer: Recurrence, sides: Sequence[str],
              inputs: tuple[str, ...] = ()) -> list[Node]:
    """Products with the input (all steps at once) and with the state (step by step), and the cell's vector work.

    ``sides`` are the tensors of the input and of both weights; ``inputs`` the nodes that it reads, where these are not
    the foreign node's own.
    """
    names = [node.scene.free_name(f"{stem}.{part}") for part in ("input", "state", "cell")]
    rows = layer.gates * layer.hidden
    given = product(node, names[0], (1, layer.steps * layer.batch, rows, layer.features), sides[:2], RECURRENT)
    if inputs:
        reads = [*[("I", within(name)) for name in inputs], ("W", sides[1])]
        given = replace(given, inputs=inputs, edges=node.edges(reads))
    state = linear(names[1], rows=layer.batch, in_features=layer.state, out_features=rows)
    state = replace(state, attributes=(("types", dict(given.operator.attributes)["types"]),))
    words = layer.batch * layer.hidden
    kept = [Operand(f"{names[2]}.{part}", name, (layer.batch, size), "state")
            for part, name, size in (("hidden", "I", layer.state), ("state", "state", layer.hidden))]
    back = node.edges([("W", sides[2])])
    made = layer.steps, layer.batch, layer.hidden
    cell = node.edges([("0", within(names[0])), ("1", within(names[1]))], made)
    return [given, MacNode(state, (names[0],), layer.steps, RECURRENT, replace(back, reads=(kept[0], *back.reads))),
            VectorOperator(names[2], layer.cell, OPERATIONS_PER_ELEMENT[layer.cell] * words, 2 * layer.gates * words,
                           2 * words, (names[1],), layer.steps, approximated_as=RECURRENT,
                           edges=replace(cell, reads=(*cell.reads, kept[1])))]


def attention(node: NodeView, heads: tuple[int, int, int], lengths: tuple[int, int], widths: tuple[int, int],
              sides: Sequence[str]) -> list[Node]:
    """Scores, softmax, context; ``heads`` = batch, heads, heads of keys (queries that share keys are rows of one).

    ``sides`` are the tensors of the queries, keys and values: inputs of the foreign node, or made `within` it.
    """
    (batch, count, groups), (rows, columns), (size, width) = heads, lengths, widths
    parts = ("scores", "softmax", "context")
    scores, softmax, context = (node.scene.free_name(f"{node.name}.{part}") for part in parts)
    inner = sides[0] not in node.inputs
    first = (sides[0][1:],) if inner else node.readers
    folded = rows * (count // groups)
    words = batch * count * rows * columns
    kind = node.scene.type(node.inputs[0]) if node.inputs else ""
    attributes = (("weights", "activations"), ("element_type", node.element_type), ("types", f"{kind},{kind},{kind}"))
    score = replace(matmul(scores, folded, columns, size, batch * groups), attributes=attributes)
    mix = replace(matmul(context, folded, width, columns, batch * groups), attributes=attributes)
    beside, matrix = [] if inner else node.beside(sides), (batch * groups, folded, columns)
    seen, space = whole(matrix, [2])
    views = heads_seen(node, sides, {"g": groups, "r": count // groups, "p": rows, "c": columns, "d": size, "w": width})
    weighed = node.edges([("0", within(scores))], matrix, (seen, same(matrix)))
    return [MacNode(score, first, 1, ATTENTION, node.edges(
                [("I", sides[0]), ("W", sides[1]), *beside], matrix, (*views[:2], same(matrix)))),
            VectorOperator(softmax, "softmax", OPERATIONS_PER_ELEMENT["softmax"] * words, words, words, (scores,),
                           approximated_as=ATTENTION, edges=replace(weighed, space=space)),
            MacNode(mix, (softmax, *(name for name in first if name != softmax)), 1, ATTENTION, node.edges(
                [("I", within(softmax)), ("W", sides[2])], None, (same(matrix), *views[2:])))]
