"""MAESTRO's layers as operators, and operators as MAESTRO's layers.

Y and X are rows and columns of the input, padding included (MAESTRO knows none), so that the output has
``(Y - R) // stride + 1`` rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.base import InputError
from tilewright.interop.maestro.network import LayerText
from tilewright.interop.notes import Notes
from tilewright.workload import Operator, convolution, matmul, transposed_convolution

STRETCH = 2
"""The stride that MAESTRO takes for every transposed convolution."""
_PAIRS = {"Y": ("P", "R"), "X": ("Q", "S")}
_MATMUL = ("B", "M", "N", "K")


@dataclass(frozen=True)
class WindowDimension:
    """An input dimension (``Y``): the operator's dimensions of output positions and of the kernel that slides over it.

    Where ``transposed``, the positions are those of the input, and the kernel slides over the output.
    """

    position: str
    kernel: str
    stride: int
    transposed: bool = False


@dataclass(frozen=True)
class MaestroView:
    """An operator as MAESTRO describes it, by its own dimensions."""

    type: str
    operator: Operator
    plain: dict[str, str] = field(default_factory=dict)
    """MAESTRO's dimensions and those of the operator that they stand for; those that stand for none are 1."""
    windows: dict[str, WindowDimension] = field(default_factory=dict)
    """What ``Y`` and ``X`` are; empty for matrix products."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Dimensions of the operator in the order in which MAESTRO's files list them."""
        windowed = [window.position for window in self.windows.values()]
        return tuple(name for name in (*self.plain.values(), *windowed) if name in self.operator.sizes)

    def letter(self, dimension: str) -> str:
        """Return MAESTRO's name of a dimension of the operator, that of the output for output positions."""
        for letter, name in self.plain.items():
            if name == dimension:
                return letter
        letter = next(letter for letter, window in self.windows.items() if window.position == dimension)
        return letter if self.windows[letter].transposed else f"{letter}'"


def read_layer(layer: LayerText, name: str, notes: Notes) -> MaestroView:
    """Return the operator that a layer describes, called ``name``; what cannot be honoured is added to ``notes``.

    Raises an `InputError` with file and line, if sizes do not go together.
    """
    sizes = layer.sizes
    if layer.type in ("GEMM", "BMM"):
        operator = matmul(name, m=sizes["M"], n=sizes["N"], k=sizes["K"], batch=sizes.get("B", 1))
        return view_of(operator)
    try:
        operator = _windowed(layer, name, notes)
    except InputError as error:
        raise InputError(layer.where("Dimensions"), f"{error.field} {error.rule}", error.given,
                         "Y and X are sizes of the input, padding included") from None
    return view_of(operator)


def _windowed(layer: LayerText, name: str, notes: Notes) -> Operator:
    sizes, kind = layer.sizes, layer.type
    stride = tuple(layer.strides.get(letter, 1) for letter in _PAIRS)
    k, c, groups = sizes.get("K", 1), sizes["C"], sizes.get("G", 1)
    if kind == "TRCONV":
        if not layer.strides:
            stride = (STRETCH, STRETCH)
        notes.approximated(layer.where("Type"), f"a transposed convolution of stride {stride[0]}, {stride[1]} by its "
                           f"input positions (MAESTRO: a convolution over an input stretched {STRETCH} times)")
        return transposed_convolution(name, in_channels=c, out_channels=k, kernel=(sizes["R"], sizes["S"]),
                                      in_size=(sizes["Y"], sizes["X"]), stride=stride, batch=sizes.get("N", 1))
    if kind == "DSCONV":
        if k > 1:
            notes.dropped(layer.where("Dimensions"),
                          f"K: {k}, as every channel of a depthwise layer has one output channel")
        k, c, groups = 1, 1, c
    elif groups > 1:
        notes.approximated(layer.where("Dimensions"),
                           f"K: {k} and C: {c} as the channels of each of the {groups} groups, not of all")
    return convolution(name, in_channels=c * groups, out_channels=k * groups, groups=groups,
                       in_size=(sizes["Y"], sizes["X"]), kernel=(sizes["R"], sizes["S"]), stride=stride,
                       batch=sizes.get("N", 1))


def view_of(operator: Operator) -> MaestroView:
    """Return an operator by MAESTRO's dimensions.

    Raises an `InputError` if MAESTRO has no type of layer for it.
    """
    sizes = operator.sizes
    if set(sizes) == set(_MATMUL):
        same = matmul(operator.name, m=sizes["M"], n=sizes["N"], k=sizes["K"], batch=sizes["B"])
        if _alike(operator, same):
            batched = sizes["B"] > 1
            return MaestroView("BMM" if batched else "GEMM", operator, {name: name for name in _MATMUL[not batched:]})
    elif {"N", "K", "C", "P", "R"} <= set(sizes) <= {"N", "G", "K", "C", "P", "Q", "R", "S"}:
        made = _window_view(operator)
        if made is not None:
            return made
    raise InputError(operator.name, "must be a convolution over one or two axes or a matrix product for MAESTRO",
                     operator.kind)


def _window_view(operator: Operator) -> MaestroView | None:
    sizes = operator.sizes
    rank = 2 if "Q" in sizes else 1
    for tensor in operator.tensors:
        transposed = tensor.is_output
        pairs = [axis.terms for axis in tensor.axes if len(axis.terms) == 2]
        if len(pairs) != rank:
            continue
        stride, dilation = tuple(pair[0][1] for pair in pairs), tuple(pair[1][1] for pair in pairs)
        kernel, size = tuple(sizes[r] for r in ("R", "S")[:rank]), tuple(sizes[p] for p in ("P", "Q")[:rank])
        groups = sizes.get("G", 1)
        if transposed and groups == 1:
            same = transposed_convolution(
                operator.name, in_channels=sizes["C"], out_channels=sizes["K"], in_size=size, kernel=kernel,
                stride=stride, dilation=dilation, batch=sizes["N"])
        else:
            same = convolution(
                operator.name, in_channels=sizes["C"] * groups, out_channels=sizes["K"] * groups, groups=groups,
                out_size=size, kernel=kernel, stride=stride, dilation=dilation, batch=sizes["N"])
        if _alike(operator, same):
            depthwise = groups > 1 and sizes["K"] == sizes["C"] == 1
            plain = {name: name for name in "NGKCRS" if name in sizes}
            if depthwise:
                plain = {"C" if name == "G" else name: name for name in "NGRS" if name in sizes}
            windows = {letter: WindowDimension(position, kernel_name, step, transposed)
                       for (letter, (position, kernel_name)), step
                       in zip(list(_PAIRS.items())[:rank], stride, strict=True)}
            kind = "TRCONV" if transposed else "DSCONV" if depthwise else "NGCONV" if groups > 1 else "CONV"
            return MaestroView(kind, operator, plain, windows)
    return None


def _alike(operator: Operator, same: Operator) -> bool:
    """Whether two operators are the same nest, whatever their tensors and they are called."""
    return operator.sizes == same.sizes and sorted(_axes(operator)) == sorted(_axes(same))


def _axes(operator: Operator) -> list[tuple[bool, Sequence[tuple[tuple[str, int], ...]]]]:
    return [(tensor.is_output, [axis.terms for axis in tensor.axes]) for tensor in operator.tensors]


def layer_sizes(view: MaestroView, notes: Notes) -> tuple[dict[str, int], dict[str, int]]:
    """Return the strides and dimensions with which MAESTRO has the view's operator.

    The input is as large as the output positions need, or as large as it is where that gives the same positions.
    """
    sizes, operator = view.operator.sizes, view.operator
    if not view.windows:
        return {}, {letter: sizes[name] for letter, name in view.plain.items()}
    found = {letter: sizes[name] for letter, name in view.plain.items()}
    if view.type == "DSCONV":
        found = {"K": 1, **found}
    strides = {}
    dilations = {axis.terms[1][0]: axis.terms[1][1] for tensor in operator.tensors for axis in tensor.axes
                 if len(axis.terms) == 2}
    for letter in _PAIRS:
        window = view.windows.get(letter)
        if window is None:
            found |= {"S": 1, letter: 1}
            continue
        position, kernel = sizes[window.position], sizes[window.kernel]
        strides[letter] = window.stride
        found[letter] = position if window.transposed else (position - 1) * window.stride + kernel
        if dilations[window.kernel] > 1:
            notes.approximated(operator.name, f"a dilation of {dilations[window.kernel]} over {window.kernel} as 1: "
                               "MAESTRO knows none")
    order = [name for name in ("N", "G", "K", "C", "R", "S", "Y", "X") if name in found]
    return strides, {name: found[name] for name in order}
