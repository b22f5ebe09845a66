"""Builders of operators: convolutions, matrix products, einsums.

Names of dimensions
-------------------
Convolution: N batch, G groups (left out where there is one group), K output channels and C input channels *of a group*,
P and Q output rows and columns, R and S kernel rows and columns. One-dimensional convolutions use P and R alone;
three-dimensional ones put the pair D (output depth) and T (kernel depth) before them. Tensors: I, W, O.

Matrix product: B batch, M rows, N columns, K depth. Tensors: I[B, M, K], W[K, N] (or W[B, K, N]), O[B, M, N].

Words of padding are words of I like any others: the counting rules know a tensor by its axes alone (docs/concepts.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict, Unpack

from tilewright.base import InputError
from tilewright.workload.operator import Axis, Operator, Role, Tensor

Sizes = int | Sequence[int]
Padding = int | Sequence[int] | Sequence[tuple[int, int]]

_OUTPUT_AXES = {1: ("P",), 2: ("P", "Q"), 3: ("D", "P", "Q")}
_KERNEL_AXES = {1: ("R",), 2: ("R", "S"), 3: ("T", "R", "S")}


class _WindowShape(TypedDict):
    """A `ConvolutionShape` without channels and groups."""

    kernel: Sizes
    in_size: NotRequired[Sizes]
    out_size: NotRequired[Sizes]
    batch: NotRequired[int]
    stride: NotRequired[Sizes]
    dilation: NotRequired[Sizes]
    padding: NotRequired[Padding]


class ConvolutionShape(_WindowShape):
    """What describes a convolution. A single number stands for the same number along every axis.

    ``in_size`` or ``out_size`` gives the spatial axes (one to three); ``padding`` may hold ``(before, after)`` pairs.
    """

    in_channels: int
    out_channels: int
    groups: NotRequired[int]


@dataclass(frozen=True)
class _Geometry:
    """A checked `ConvolutionShape`, one entry per spatial axis."""

    name: str
    batch: int
    groups: int
    in_channels: int
    out_channels: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    in_size: tuple[int, ...] | None
    out_size: tuple[int, ...] | None

    @property
    def rank(self) -> int:
        return len(self.kernel)

    def attributes(self, in_size: tuple[int, ...], out_size: tuple[int, ...]) -> tuple[tuple[str, int | str], ...]:
        sides = [f"{a}" if a == b else f"{a}:{b}" for a, b in self.padding]
        return (("in_size", _cross(in_size)), ("out_size", _cross(out_size)), ("kernel", _cross(self.kernel)),
                ("stride", _cross(self.stride)), ("dilation", _cross(self.dilation)), ("padding", "x".join(sides)),
                ("groups", self.groups))


def convolution(name: str, **shape: Unpack[ConvolutionShape]) -> Operator:
    """Return a convolution over one to three spatial axes (see `ConvolutionShape` and the names above).

    The input's rows are ``stride*P + dilation*R``; with ``in_size`` the output has
    ``(in + padding - dilation*(kernel - 1) - 1) // stride + 1`` positions.

    Raises an `InputError` if sizes are missing, not positive or disagree, the kernel is larger than the padded input,
    or the groups do not divide the channels.

    Examples
    --------
    >>> convolution("c", in_channels=3, out_channels=64, in_size=(224, 224), kernel=7, stride=2, padding=3).macs
    118013952
    """
    geometry = _geometry(name, shape)
    out_size = geometry.out_size or _slide(geometry)
    reach = [s * (p - 1) + d * (r - 1) + 1 for p, r, s, d in
             zip(out_size, geometry.kernel, geometry.stride, geometry.dilation, strict=True)]
    in_size = geometry.in_size or tuple(
        max(1, size - before - after) for size, (before, after) in zip(reach, geometry.padding, strict=True))
    kind = "depthwise" if 1 < geometry.groups == geometry.in_channels else "conv"
    return _assemble(geometry, kind, out_size, geometry.attributes(in_size, out_size))


def depthwise(name: str, channels: int, *, multiplier: int = 1, **shape: Unpack[_WindowShape]) -> Operator:
    """Return a depthwise convolution: as many groups as ``channels``, each with ``multiplier`` output channels."""
    return convolution(name, in_channels=channels, out_channels=channels * multiplier, groups=channels, **shape)


def transposed_convolution(name: str, *, output_padding: Sizes = 0, **shape: Unpack[ConvolutionShape]) -> Operator:
    """Return a transposed convolution: P and Q are *input* positions, the *output* slides: ``stride*P + dilation*R``.

    Every input position meets every kernel position, so the multiply-accumulates are input positions times kernel,
    those that padding crops from the output included. ``out_size`` is derived and must not be given.

    Raises an `InputError`, as `convolution`; or if ``in_size`` is missing or the padding leaves no output.
    """
    if "out_size" in shape or "in_size" not in shape:
        raise InputError(f"{name}.in_size", "must be given (alone) for a transposed convolution", sorted(shape))
    geometry = _geometry(name, shape)
    in_size = geometry.in_size or ()
    extra = _per_axis(f"{name}.output_padding", output_padding, geometry.rank, least=0)
    out_size = tuple(
        s * (p - 1) + d * (r - 1) + 1 + more - before - after for p, r, s, d, more, (before, after) in
        zip(in_size, geometry.kernel, geometry.stride, geometry.dilation, extra, geometry.padding, strict=True))
    if min(out_size) < 1:
        raise InputError(f"{name}.padding", "must leave at least one output position", geometry.padding,
                         f"The output would be {_cross(out_size)}")
    return _assemble(geometry, "conv_transpose", in_size, geometry.attributes(in_size, out_size))


def matmul(name: str, m: int, n: int, k: int, batch: int = 1) -> Operator:
    """Return ``O[B, M, N] += I[B, M, K] * W[B, K, N]``: ``batch`` separate products; W has no B where ``batch`` is 1.

    Where one weight matrix serves a whole batch, fold the batch into the rows, as `linear` does.

    Examples
    --------
    >>> matmul("scores", m=128, n=128, k=64, batch=12).macs
    12582912
    """
    weights = ("B", "K", "N") if batch > 1 else ("K", "N")
    tensors = (_tensor("I", "inputs", "B", "M", "K"), _tensor("W", "weights", *weights),
               _tensor("O", "outputs", "B", "M", "N"))
    return Operator(name, "matmul", (("B", batch), ("M", m), ("N", n), ("K", k)), tensors)


def linear(name: str, *, rows: int, in_features: int, out_features: int) -> Operator:
    """Return a fully connected layer applied to ``rows`` vectors (batch and positions together)."""
    return matmul(name, m=rows, n=out_features, k=in_features)


def einsum(expression: str, sizes: Mapping[str, int], name: str = "einsum") -> Operator:
    """Return the loop nest of an einsum such as ``"bik,bkj->bij"``, one dimension per letter.

    The first operand has the role inputs, the others weights; they are named I, W (W1, W2 ... where there are several)
    and O. Without an arrow the output has the letters that occur once, in alphabetical order, as in NumPy. More than
    two operands make one nest over all letters, in which a step multiplies all of them.

    Raises an `InputError` if the expression has an ellipsis, a letter twice in one term (a diagonal), an output letter
    that no operand has, a character that is no letter, or a letter without a size.
    """
    path = f"{name}.expression"
    operands, output = _split_einsum(path, expression)
    letters = list(dict.fromkeys("".join(operands)))
    for term in (*operands, output):
        _check_term(path, expression, term)
    for letter in output:
        if letter not in letters:
            raise InputError(path, f"must have output letter {letter!r} in an operand", expression)
    missing = [letter for letter in letters if letter not in sizes]
    if missing:
        raise InputError(f"{name}.sizes", "must give a size for every letter", sorted(sizes),
                         f"Add {', '.join(missing)}")
    if not letters:
        raise InputError(path, "must have at least one letter", expression)
    order = [*output, *(letter for letter in letters if letter not in output)]
    names = ["I", "W"] if len(operands) <= 2 else ["I", *(f"W{i}" for i in range(1, len(operands)))]
    roles: list[Role] = ["inputs"]
    roles += ["weights"] * (len(operands) - 1)
    tensors = [_tensor(n, role, *term) for n, role, term in zip(names, roles, operands, strict=False)]
    return Operator(name, "einsum", tuple((letter, sizes[letter]) for letter in order),
                    (*tensors, _tensor("O", "outputs", *output)),
                    (("expression", f"{','.join(operands)}->{output}"),))


def _split_einsum(path: str, expression: str) -> tuple[list[str], str]:
    text = "".join(expression.split())
    if "." in text:
        raise InputError(path, "must name every dimension", expression, "Write letters in place of the ellipsis")
    if text.count("->") > 1 or text.replace("->", "").count("-") or text.replace("->", "").count(">"):
        raise InputError(path, "must have at most one arrow `->`", expression)
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    if not arrow:
        right = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    return operands, right


def _check_term(path: str, expression: str, term: str) -> None:
    if any(not (c.isascii() and c.isalpha()) for c in term):
        raise InputError(path, "must consist of letters, commas and one arrow", expression,
                         "For example 'bik,bkj->bij'")
    twice = sorted({letter for letter in term if term.count(letter) > 1})
    if twice:
        raise InputError(path, "must not repeat a letter within a term (diagonals are not boxes of words)", expression,
                         f"Take the diagonal over {', '.join(twice)} before")


def _axis(*terms: str | tuple[str, int]) -> Axis:
    return Axis(tuple((t, 1) if isinstance(t, str) else t for t in terms))


def _tensor(name: str, role: Role, *axes: str | Axis) -> Tensor:
    return Tensor(name, role, tuple(_axis(axis) if isinstance(axis, str) else axis for axis in axes))


def _assemble(g: _Geometry, kind: str, positions: tuple[int, ...],
              attributes: tuple[tuple[str, int | str], ...]) -> Operator:
    """Put the nest together; ``positions`` are the sizes of P and Q; the output slides where it is transposed."""
    group = ("G",) if g.groups > 1 else ()
    rank = g.rank
    pairs = zip(_OUTPUT_AXES[rank], g.stride, _KERNEL_AXES[rank], g.dilation, strict=True)
    sliding = tuple(_axis((p, stride), (r, dilation)) for p, stride, r, dilation in pairs)
    plain = tuple(_axis(p) for p in _OUTPUT_AXES[rank])
    inputs, outputs = (plain, sliding) if kind == "conv_transpose" else (sliding, plain)
    dimensions = [("N", g.batch), *((x, g.groups) for x in group), ("K", g.out_channels // g.groups),
                  ("C", g.in_channels // g.groups), *zip(_OUTPUT_AXES[rank], positions, strict=True),
                  *zip(_KERNEL_AXES[rank], g.kernel, strict=True)]
    tensors = (_tensor("I", "inputs", "N", *group, "C", *inputs),
               _tensor("W", "weights", *group, "K", "C", *_KERNEL_AXES[rank]),
               _tensor("O", "outputs", "N", *group, "K", *outputs))
    return Operator(g.name, kind, tuple(dimensions), tensors, attributes)


def _slide(g: _Geometry) -> tuple[int, ...]:
    """Output positions along each axis."""
    out = []
    rows = zip(g.in_size or (), g.kernel, g.stride, g.dilation, g.padding, strict=True)
    for size, kernel, stride, dilation, (before, after) in rows:
        room, reach = size + before + after, dilation * (kernel - 1) + 1
        if room < reach:
            raise InputError(f"{g.name}.kernel", f"must fit in the padded input of {room}", reach,
                             "Enlarge the input or the padding")
        out.append((room - reach) // stride + 1)
    return tuple(out)


def _geometry(name: str, shape: ConvolutionShape) -> _Geometry:
    missing = [key for key in ("kernel", "in_channels", "out_channels") if key not in shape]
    if missing:
        raise InputError(f"{name}.{missing[0]}", "must be given")
    kernel = shape["kernel"]
    sizes = [shape[key] for key in ("in_size", "out_size") if key in shape]
    if not sizes:
        raise InputError(f"{name}.in_size", "must be given (or out_size)", None, "Add in_size=(rows, columns)")
    ranks = {len(value) for value in (*sizes, kernel) if not isinstance(value, int)}
    if len(ranks) > 1:
        raise InputError(f"{name}.kernel", "must have as many axes as the sizes", kernel)
    rank = ranks.pop() if ranks else 2
    if rank not in _OUTPUT_AXES:
        raise InputError(f"{name}.kernel", "must have one to three spatial axes", rank)
    for key in ("batch", "groups", "in_channels", "out_channels"):
        value = shape.get(key, 1)
        if not isinstance(value, int) or value < 1:
            raise InputError(f"{name}.{key}", "must be a positive integer", value)
    groups = shape.get("groups", 1)
    for key, channels in (("in_channels", shape["in_channels"]), ("out_channels", shape["out_channels"])):
        if channels % groups:
            raise InputError(f"{name}.{key}", f"must be divisible by the {groups} groups", channels)
    spread = {key: _per_axis(f"{name}.{key}", shape.get(key, 1), rank) for key in ("stride", "dilation")}  # type: ignore[arg-type]
    given = {key: _per_axis(f"{name}.{key}", shape[key], rank) if key in shape else None
             for key in ("in_size", "out_size")}
    geometry = _Geometry(name, shape.get("batch", 1), groups, shape["in_channels"], shape["out_channels"],
                         _per_axis(f"{name}.kernel", kernel, rank), spread["stride"], spread["dilation"],
                         _paddings(f"{name}.padding", shape.get("padding", 0), rank), given["in_size"],
                         given["out_size"])
    if geometry.in_size and geometry.out_size and _slide(geometry) != geometry.out_size:
        raise InputError(f"{name}.out_size", f"must be {_cross(_slide(geometry))} for this in_size, kernel and padding",
                         _cross(geometry.out_size), "Give one of in_size and out_size")
    return geometry


def _per_axis(path: str, value: Sizes, rank: int, least: int = 1) -> tuple[int, ...]:
    entries = (value,) * rank if isinstance(value, int) else tuple(value)
    if len(entries) != rank or any(not isinstance(entry, int) or entry < least for entry in entries):
        kind = "positive integer" if least else "non-negative integer"
        raise InputError(path, f"must be one {kind} or {rank} of them", value)
    return entries


def _paddings(path: str, value: Padding, rank: int) -> tuple[tuple[int, int], ...]:
    sides: Sequence[int | tuple[int, int]] = [value] * rank if isinstance(value, int) else list(value)
    pairs = tuple((side, side) if isinstance(side, int) else tuple(side) for side in sides)
    if len(pairs) != rank or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise InputError(path, f"must be a non-negative integer, {rank} of them, or {rank} (before, after) pairs",
                         value)
    return tuple((pair[0], pair[1]) for pair in pairs)


def _cross(sizes: Sequence[int]) -> str:
    return "x".join(str(size) for size in sizes)
