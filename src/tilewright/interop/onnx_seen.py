"""How what ONNX nodes read is what they make, by table."""

from collections.abc import Callable

from tilewright.interop import views
from tilewright.interop.onnx_macs import window_padding
from tilewright.interop.onnx_vectors import EACH_WORD, KINDS
from tilewright.interop.scene import NodeView
from tilewright.interop.views import Seen


def seen(node: NodeView) -> Seen | None:
    """Return how what a node of vector work or data movement reads is what it makes; None where that is not known."""
    return views.found(_SEEN.get(node.kind), node)


def _transposed(node: NodeView) -> Seen:
    rank = len(node.shape(0))
    return views.turned(node, node.integers("perm", range(rank)[::-1]))


def _numbers(node: NodeView, name: str, place: int) -> list[int] | None:
    """Return what is an attribute in old files and a constant input in new ones; None where it is not known."""
    if name in node.attributes:
        return node.integers(name)
    return node.scene.numbers.get(node.inputs[place]) if node.has(place) else []


def _sliced(node: NodeView) -> Seen | None:
    starts, ends, axes, steps = (_numbers(node, name, place) for place, name in
                                 enumerate(("starts", "ends", "axes", "steps"), start=1))
    if starts is None or ends is None or axes is None or steps is None:
        return None
    return views.cut(node, list(zip(axes or range(len(starts)), starts, steps or [1] * len(starts), strict=True)))


def _gathered(node: NodeView) -> Seen | None:
    index = node.scene.numbers.get(node.inputs[1])
    if index is None or len(index) != 1:
        return None
    axis, (place,) = node.integer("axis"), index
    lacks = len(node.out()) < len(node.shape(0))
    return views.picked(node, axis, place) if lacks else views.cut(node, [(axis, place, 1)])


def _padded(node: NodeView) -> Seen | None:
    pads, rank = _numbers(node, "pads", 1), len(node.out())
    plain = node.text("mode", "constant") == "constant" and not node.has(3)
    return views.padded(node, pads[:rank]) if plain and pads is not None and len(pads) == 2 * rank else None


def _normed(node: NodeView) -> Seen:
    rank = len(node.shape(0))
    return views.rows(node, range(node.integer("axis", -1) % rank, rank))


def _reduced(node: NodeView) -> Seen | None:
    axes = _numbers(node, "axes", 1)
    return None if axes is None else views.reduced(node, axes)


def _pooled(node: NodeView) -> Seen | None:
    kernel = node.integers("kernel_shape")
    ones = [1] * len(kernel)
    stride, dilation = node.integers("strides", ones), node.integers("dilations", ones)
    sides = window_padding(node, node.shape(0)[2:], (kernel, stride, dilation))
    return views.windows(node, kernel, stride, [before for before, _ in sides], dilation)


_SEEN: dict[str, Callable[[NodeView], Seen | None]] = {
    **dict.fromkeys(EACH_WORD, views.broadcast),
    **dict.fromkeys(KINDS.views, views.kept),
    **dict.fromkeys(("Softmax", "LogSoftmax"), lambda node: views.rows(node, [node.integer("axis", -1)])),
    **dict.fromkeys(("LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization"), _normed),
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization"),
                    lambda node: views.rows(node, range(1, len(node.shape(0))))),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"), _reduced),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"),
                    lambda node: views.reduced(node, range(2, len(node.shape(0))))),
    **dict.fromkeys(("MaxPool", "AveragePool"), _pooled),
    "LRN": lambda node: views.rows(node, [1]),
    "Transpose": _transposed,
    "Slice": _sliced,
    "Split": lambda node: views.parted(node, node.integer("axis")),
    "Concat": lambda node: views.joined(node, node.integer("axis")),
    "Expand": views.broadcast,
    "Gather": _gathered,
    "Pad": _padded,
}
