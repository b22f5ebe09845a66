"""How what operators of PyTorch read is what they make, by table."""

from collections.abc import Callable
from math import prod
from typing import Any

from tilewright.interop import views
from tilewright.interop.pytorch.arranged import APPEND
from tilewright.interop.pytorch.macs import spread
from tilewright.interop.pytorch.vectors import CONVERSIONS, KINDS, POOLS
from tilewright.interop.scene import NodeView
from tilewright.interop.views import Seen


def seen(node: NodeView) -> Seen | None:
    """Return how what a node of vector work or data movement reads is what it makes; None where that is not known."""
    return views.found(_SEEN.get(node.kind), node)


def _windows(node: NodeView) -> Seen:
    rank = POOLS[node.kind]
    kernel = spread(node, "kernel_size", 1, rank)
    stride = spread(node, "stride", 1, rank) if node.attributes.get("stride") else kernel
    return views.windows(node, kernel, stride, spread(node, "padding", 0, rank), spread(node, "dilation", 1, rank))


def _padded(node: NodeView) -> Seen | None:
    pads = node.integers("pad")
    before = [*[0] * (len(node.out()) - len(pads) // 2), *reversed(pads[::2])]
    return views.padded(node, before) if node.attributes.get("mode", "constant") == "constant" else None


def _reduced(node: NodeView) -> Seen | None:
    axes: Any = node.attributes.get("dim")
    axes = [axes] if isinstance(axes, int) else axes or []
    return views.reduced(node, axes) if len(node.outputs) == 1 else None


def _averaged(node: NodeView) -> Seen | None:
    rank = len(node.out())
    return views.reduced(node, range(2, rank)) if rank == len(node.shape(0)) and prod(node.out()[2:]) == 1 else None


def _normed(node: NodeView) -> Seen:
    return views.rows(node, range(-len(node.attributes.get("normalized_shape") or [1]), 0))


_SEEN: dict[str, Callable[[NodeView], Seen | None]] = {
    **dict.fromkeys(KINDS.each_word, views.broadcast),
    **dict.fromkeys(KINDS.views | CONVERSIONS | {"dropout", "feature_dropout", "alpha_dropout"}, views.kept),
    **dict.fromkeys(("softmax", "_softmax", "_safe_softmax", "special_softmax", "log_softmax", "_log_softmax"),
                    lambda node: views.rows(node, [node.integer("dim", -1)])),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"), _normed),
    **dict.fromkeys(("group_norm", "native_group_norm", "instance_norm"),
                    lambda node: views.rows(node, range(1, len(node.shape(0))))),
    **dict.fromkeys(("sum", "nansum", "mean", "nanmean", "amax", "amin", "linalg_vector_norm", "logsumexp"), _reduced),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"), _averaged),
    **dict.fromkeys(POOLS, _windows),
    APPEND: lambda node: views.placed_last(node, -2),
    "permute": lambda node: views.turned(node, node.integers("dims")),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), lambda node: views.exchanged(
        node, node.integer("dim0", node.integer("axis0")), node.integer("dim1", node.integer("axis1")))),
    "t": lambda node: views.exchanged(node, 0, -1),
    "numpy_T": lambda node: views.turned(node, range(len(node.out()))[::-1]),
    **dict.fromkeys(("mT", "adjoint"), lambda node: views.exchanged(node, -2, -1)),
    **dict.fromkeys(("slice", "narrow"), lambda node: views.cut(
        node, [(node.integer("dim"), node.attributes.get("start") or 0, node.integer("step", 1))])),
    "select": lambda node: views.picked(node, node.integer("dim"), node.integer("index")),
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk"),
                    lambda node: views.parted(node, node.integer("dim"))),
    **dict.fromkeys(("cat", "concat", "concatenate"), lambda node: views.joined(node, node.integer("dim"))),
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), views.broadcast),
    **dict.fromkeys(("pad", "constant_pad_nd"), _padded),
}
