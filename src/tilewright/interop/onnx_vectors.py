"""ONNX nodes that are no multiply-accumulate nests: vector work and data movement, by table."""

from math import ceil, log2, prod

from tilewright.interop.scene import NodeView, Unsupported
from tilewright.interop.vector_kinds import VectorKinds
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
