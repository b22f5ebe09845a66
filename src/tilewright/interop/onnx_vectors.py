"""ONNX nodes that are no multiply-accumulate nests: vector work and data movement, by table.

And how what they read is what they make.
"""

from collections.abc import Callable
from math import ceil, log2, prod

from tilewright.interop import views
from tilewright.interop.onnx_macs import window_padding
from tilewright.interop.scene import NodeView, Unsupported
from tilewright.interop.vector_kinds import VectorKinds
from tilewright.interop.views import Seen
from tilewright.workload import DataMovement, Unmodelled, VectorOperator

KINDS = VectorKinds.of("onnx")
_POOLS = {"MaxPool": 1, "AveragePool": 1, "LpPool": 2, "QLinearAveragePool": 1}
_NARY = {"Sum", "Mean", "Max", "Min"}
EACH_WORD = KINDS.each_word | _NARY
"""What is done to each word (of operands that are broadcast) by itself."""
_WITHOUT_MACS = {"NonMaxSuppression": "sorting and suppression depend on the data"}


def translate_vector(node: NodeView) -> VectorOperator | DataMovement | Unmodelled | None:
    """Translate a node of vector work or data movement; None if its kind is in none of the tables.

    Raises `Unsupported` if a shape that it needs is not known.
    """
    kind = node.kind
    if kind in KINDS.views:
        return _move(node, 0, 0)
    if kind in KINDS.moves:
        return _movement(node)
    if kind in _WITHOUT_MACS:
        return Unmodelled(node.name, kind, _WITHOUT_MACS[kind], macs=0, words=node.read_words, inputs=node.readers)
    operations = _operations(node)
    return None if operations is None else _vector(node, operations)


def _operations(node: NodeView) -> int | None:
    kind = node.kind
    counted = KINDS.operations(node)
    if counted is not None:
        return counted
    if kind in _POOLS:
        return _POOLS[kind] * prod(node.integers("kernel_shape")) * prod(node.out())
    if kind in _NARY:
        return max(1, len(node.inputs) - 1) * prod(node.out())
    special = {"LRN": _lrn, "TopK": _top_k, "Resize": _resize, "Upsample": _resize, "RoiAlign": _roi_align,
               "DFT": _dft, "STFT": _stft}.get(kind)
    return None if special is None else special(node)


def _lrn(node: NodeView) -> int:
    """Square, sum of ``size``, scale, add, power, divide."""
    return (4 + node.integer("size", 1)) * prod(node.out())


def _top_k(node: NodeView) -> int:
    """Comparisons of a heap of k over each element."""
    kept, size = node.out()[node.integer("axis", -1)], node.words(0)
    return size * max(1, ceil(log2(kept + 1)))


def _resize(node: NodeView) -> int:
    """Nearest: none; (bi)linear: a multiplication and an addition for each of 2^axes corners; cubic: of 4^axes."""
    mode = node.text("mode", "nearest")
    axes = sum(a != b for a, b in zip(node.shape(0), node.out(), strict=False))
    corners = {"nearest": 0, "linear": 2, "cubic": 4}.get(mode)
    if corners is None:
        raise Unsupported(f"mode {mode}")
    return 2 * corners**axes * prod(node.out()) if corners else 0


def _roi_align(node: NodeView) -> int:
    """Four corners, each multiplied and added, for every sampling point (2 x 2 a cell where the file says nothing)."""
    samples = node.integer("sampling_ratio") or 2
    return 8 * samples * samples * prod(node.out())


def _dft(node: NodeView) -> int:
    """Count a fast transform along the axis: 5 n log2 n a line (Frigo and Johnson, Proc. IEEE 93(2), 2005)."""
    shape, axis = node.shape(0), node.integer("axis", 1)
    if node.has(2):
        if len(shape) != 3:
            raise Unsupported("an axis that is an input")
        axis = 1
    return _transform(shape[axis]) * prod(shape[:-1]) // shape[axis]


def _stft(node: NodeView) -> int:
    """Count a window and a fast transform for each frame."""
    if not node.has(2):
        raise Unsupported("frames of an unknown length")
    frames, length = node.out(), node.words(2)
    return frames[0] * frames[1] * (length + _transform(length))


def _transform(length: int) -> int:
    return ceil(5 * length * log2(length)) if length > 1 else 0


def _vector(node: NodeView, operations: int) -> VectorOperator:
    node.out()
    transform = "vector work of a fast transform"
    note = {"TopK": "vector work with a heap", "DFT": transform, "STFT": transform}.get(node.kind, "")
    return VectorOperator(node.name, node.kind, operations, node.read_words, node.written_words, node.readers,
                          approximated_as=note, attributes=(("element_type", node.element_type),))


def _movement(node: NodeView) -> DataMovement:
    written = prod(node.out()) if len(node.outputs) == 1 else node.written_words
    return _move(node, KINDS.read_words(node, written), written)


def _move(node: NodeView, read: int, written: int) -> DataMovement:
    attributes: tuple[tuple[str, int | str], ...] = (("element_type", node.element_type),)
    if node.kind == "Gather" and node.inputs[0] in node.scene.constants and node.inputs[0] not in node.scene.claimed:
        node.scene.claimed.add(node.inputs[0])
        attributes = (*attributes, ("parameters", node.words(0)))
    return DataMovement(node.name, node.kind, read, written, node.readers, attributes=attributes)


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
