"""Operators of PyTorch that are no multiply-accumulate nests: vector work and data movement, by table.

And how what they read is what they make. Transposing, slicing and expanding count as data movement though PyTorch
makes views of them: the words have to be brought into that order when they are read, and other importers count them so.
What copies a view (``contiguous``, ``clone``) then moves nothing more.
"""

from collections.abc import Callable
from math import ceil, log2, prod
from typing import Any

from tilewright.interop import views
from tilewright.interop.pytorch.arranged import APPEND
from tilewright.interop.pytorch.macs import shape, spread, tensor
from tilewright.interop.pytorch.program import Ref
from tilewright.interop.pytorch.torch import SCAN
from tilewright.interop.scene import NodeView
from tilewright.interop.vector_kinds import VectorKinds
from tilewright.interop.views import Seen
from tilewright.workload import OPERATIONS_PER_ELEMENT, DataMovement, Node, VectorOperator

KINDS = VectorKinds.of("pytorch")
POOLS = {f"{kind}_pool{rank}d{suffix}": rank for kind in ("max", "avg") for rank in (1, 2, 3)
          for suffix in ("", "_with_indices") if kind == "max" or not suffix}
_RESIZED = {"nearest": 0, "linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 4}
_TABLES = {"embedding": "weight", "index": "self", "index_select": "self", "gather": "self"}
CONVERSIONS = {"to", "_to_copy", "type_as", "float", "half", "double", "_to_dtype", "_autocast_to_full_precision",
                "_autocast_to_reduced_precision"}


def translate_vector(node: NodeView) -> Node | None:
    """Translate a node of vector work or data movement; None if its kind is in none of the tables.

    Raises `Unsupported` if a shape that it needs is not known.
    """
    kind = node.kind
    if kind == APPEND:
        words = node.words(0)
        held = ("cache", prod(node.out()))
        return DataMovement(node.name, "append", words, words, node.readers, attributes=(*_typed(node), held))
    if kind in KINDS.views or _does_nothing(node) or node.outputs[0] in node.scene.arranged:
        return DataMovement(node.name, kind, 0, 0, node.readers, attributes=_typed(node))
    if kind == SCAN:
        return _scanned(node)
    special = _SPECIAL.get(kind)
    operations = special(node) if special is not None else _operations(node)
    if operations is not None:
        return _vector(node, operations)
    return _movement(node) if kind in KINDS.moves else None


def is_vector(kind: str) -> bool:
    """Whether the kind is one of vector work or data movement, without multiply-accumulates."""
    return any(kind in table for table in (KINDS.views, KINDS.per_output, KINDS.per_input, KINDS.moves, _SPECIAL, POOLS,
                                           CONVERSIONS))


def _does_nothing(node: NodeView) -> bool:
    """Whether it is a dropout at inference, a slice of all, or a conversion to the type that the tensor has."""
    if node.kind in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "rrelu"):
        return not (node.attributes.get("train") or node.attributes.get("training"))
    if node.kind in ("slice", "narrow", "expand", "expand_as", "broadcast_to"):
        return node.shape(0) == node.out()
    types = node.scene.types
    return node.kind in CONVERSIONS and types.get(node.inputs[0]) == types.get(node.outputs[0])


def _operations(node: NodeView) -> int | None:
    kind = node.kind
    if kind in CONVERSIONS or (kind in ("max", "min") and "other" in node.attributes):
        return prod(node.out())
    counted = KINDS.operations(node)
    if counted is not None:
        return counted
    if kind in POOLS:
        return prod(spread(node, "kernel_size", 1, POOLS[kind])) * prod(node.out())
    if kind.startswith(("upsample_", "_upsample_")):
        return _resize(node)
    return None


def _resize(node: NodeView) -> int | None:
    """Nearest: none; (bi)linear: a multiplication and an addition for each of 2^axes corners; cubic: of 4^axes."""
    mode = node.kind.removeprefix("_").removeprefix("upsample_").rstrip("123d").split("_")[0]
    if mode not in _RESIZED:
        return None
    corners, axes = _RESIZED[mode], len(node.out()) - 2
    return 2 * corners**axes * prod(node.out()) if corners else 0


def _top_k(node: NodeView) -> int:
    """Comparisons of a heap of k over each element."""
    return node.words(0) * max(1, ceil(log2(node.integer("k", 1) + 1)))


def _sorted(node: NodeView) -> int:
    """Comparisons of sorting along an axis."""
    x = node.shape(0)
    return node.words(0) * max(1, ceil(log2(max(2, x[node.integer("dim", -1)] if x else 1))))


def _gelu(node: NodeView) -> int:
    """With the error function; the approximation by tanh takes nine."""
    return (9 if node.attributes.get("approximate") == "tanh" else OPERATIONS_PER_ELEMENT["gelu"]) * prod(node.out())


def _distances(node: NodeView) -> int:
    """Subtract, square and add for each feature of each pair, and a root."""
    return (3 * shape(node, "x1")[-1] + 1) * prod(node.out())


def _bag(node: NodeView) -> int:
    """One addition for each word that is gathered."""
    return prod(shape(node, "indices")) * shape(node, "weight")[-1]


_SPECIAL: dict[str, Callable[[NodeView], int]] = {
    "topk": _top_k, "sort": _sorted, "argsort": _sorted, "median": _sorted, "kthvalue": _sorted, "gelu": _gelu,
    "cdist": _distances, "_cdist_forward": _distances, "embedding_bag": _bag, "_embedding_bag": _bag,
    "_embedding_bag_forward_only": _bag,
}


def _typed(node: NodeView) -> tuple[tuple[str, int | str], ...]:
    return (("element_type", node.element_type),)


def _vector(node: NodeView, operations: int) -> VectorOperator:
    node.out()
    note = "vector work with a heap" if node.kind == "topk" else ""
    read = operations if "embedding_bag" in node.kind else node.read_words  # a bag reads the rows that are asked for
    return VectorOperator(node.name, node.kind, operations, read, node.written_words, node.readers,
                          approximated_as=note, attributes=_typed(node))


def _scanned(node: NodeView) -> VectorOperator:
    """Scan an input (batch, features, positions) with a state of so many words a feature, which is read and kept."""
    batch, _, positions = node.shape(0)
    state = batch * prod(node.shape(2))
    return VectorOperator(node.name, "selective_scan", OPERATIONS_PER_ELEMENT["selective_scan"] * positions * state,
                          node.read_words + state, node.written_words + state, node.readers,
                          approximated_as="vector work, products of states included", attributes=_typed(node))


def _movement(node: NodeView) -> DataMovement:
    node.out()
    written = node.written_words
    return DataMovement(node.name, node.kind, KINDS.read_words(node, written), written, node.readers,
                        attributes=(*_typed(node), *_parameters(node)))


def _parameters(node: NodeView) -> tuple[tuple[str, int], ...]:
    """Count a constant table that rows are taken from, once."""
    name = _TABLES.get(node.kind)
    if name is None or not isinstance(node.attributes.get(name), Ref):
        return ()
    table = node.scene.origin(tensor(node, name))
    if table not in node.scene.constants or table in node.scene.claimed:
        return ()
    node.scene.claimed.add(table)
    return (("parameters", prod(node.scene.shape(table))),)


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
