"""Operators of PyTorch that are no multiply-accumulate nests: vector work and data movement, by table.

Transposing, slicing and expanding count as data movement though PyTorch makes views of them: the words have to be
brought into that order when they are read, and other importers count them so. What copies a view (``contiguous``,
``clone``) then moves nothing more.
"""

from collections.abc import Callable
from math import ceil, log2, prod

from tilewright.interop.pytorch.arranged import APPEND
from tilewright.interop.pytorch.macs import shape, spread, tensor
from tilewright.interop.pytorch.program import Ref
from tilewright.interop.pytorch.torch import SCAN
from tilewright.interop.scene import NodeView
from tilewright.workload import OPERATIONS_PER_ELEMENT, DataMovement, Node, VectorOperator

_OPS = OPERATIONS_PER_ELEMENT

_ONE = """
abs absolute neg negative sign sgn floor ceil round trunc frac fix exp exp2 expm1 log log2 log10 log1p sqrt reciprocal
square erf erfc erfinv logical_not bitwise_not isnan isinf isfinite signbit sin cos tan asin acos atan arcsin arccos
arctan positive add sub subtract rsub mul multiply div divide true_divide floor_divide pow float_power remainder fmod
maximum minimum fmax fmin atan2 arctan2 logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ __lshift__ __rshift__ __iand__ __ior__ eq ne gt ge lt le
equal not_equal greater greater_equal less less_equal where masked_fill cumsum cumprod outer ger kron type_as rand
randn randint randperm rand_like randn_like randint_like normal uniform bernoulli exponential random multinomial
complex bucketize searchsorted dequantize
""".split()
# Operations per element of the output.
_PER_OUTPUT = {
    **dict.fromkeys(_ONE, 1),
    "relu": _OPS["relu"], "relu6": _OPS["relu6"], "leaky_relu": _OPS["leaky_relu"], "prelu": 2, "_prelu_kernel": 2,
    "rrelu": 2, "threshold": 2, "clamp": _OPS["clip"], "clip": _OPS["clip"], "hardtanh": _OPS["clip"], "clamp_min": 1,
    "clamp_max": 1, "sigmoid": _OPS["sigmoid"], "log_sigmoid": _OPS["softplus"] + 1, "tanh": _OPS["tanh"],
    "hardsigmoid": _OPS["hard_sigmoid"], "hardswish": _OPS["hard_swish"], "silu": _OPS["silu"], "gelu": _OPS["gelu"],
    "elu": _OPS["elu"], "selu": 5, "celu": 6, "mish": 9, "softplus": _OPS["softplus"], "softsign": 3, "glu":
    _OPS["sigmoid"] + 1, "rsqrt": 2, "sinh": 4, "cosh": 4, "asinh": 4, "acosh": 4, "atanh": 4, "hardshrink": 2,
    "softshrink": 3, "tanhshrink": _OPS["tanh"] + 1, "lerp": 3, "addcmul": 3, "addcdiv": 3, "logaddexp": 4, "logit": 4,
    "xlogy": 2, "nan_to_num": 3, "dropout": 2, "feature_dropout": 2, "alpha_dropout": 3, "native_dropout": 2,
    "batch_norm": _OPS["batch_norm"], "native_batch_norm": _OPS["batch_norm"],
    "_native_batch_norm_legit_no_training": _OPS["batch_norm"], "_native_batch_norm_legit": _OPS["layer_norm"],
    "_batch_norm_with_update": _OPS["layer_norm"], "layer_norm": _OPS["layer_norm"],
    "native_layer_norm": _OPS["layer_norm"], "group_norm": _OPS["layer_norm"], "native_group_norm": _OPS["layer_norm"],
    "instance_norm": _OPS["layer_norm"], "rms_norm": _OPS["rms_norm"], "_fused_rms_norm": _OPS["rms_norm"],
    "softmax": _OPS["softmax"], "_softmax": _OPS["softmax"], "_safe_softmax": _OPS["softmax"],
    "special_softmax": _OPS["softmax"], "log_softmax": _OPS["softmax"] + 1, "_log_softmax": _OPS["softmax"] + 1,
    "gumbel_softmax": _OPS["softmax"] + 3, "fake_quantize_per_tensor_affine": 5, "fake_quantize_per_channel_affine": 5,
    "quantize_per_tensor": 3, "quantize_per_channel": 3, "isin": 1, "logcumsumexp": 3, "polar": 3, "angle": 3,
    "quantized_decomposed.quantize_per_tensor": 3, "quantized_decomposed.quantize_per_channel": 3,
    "quantized_decomposed.quantize_per_token": 3, "quantized_decomposed.dequantize_per_tensor": 2,
    "quantized_decomposed.dequantize_per_channel": 2, "quantized_decomposed.dequantize_per_token": 2,
}
# Operations per element of the first input: reductions and searches.
_PER_INPUT = {
    "sum": 1, "nansum": 1, "mean": 1, "nanmean": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "aminmax": 2, "prod": 1,
    "norm": 2, "linalg_vector_norm": 2, "linalg_norm": 2, "var": 4, "std": 4, "var_mean": 4, "std_mean": 4,
    "logsumexp": 2, "argmax": 1, "argmin": 1, "any": 1, "all": 1, "count_nonzero": 1, "adaptive_avg_pool1d": 1,
    "adaptive_avg_pool2d": 1, "adaptive_avg_pool3d": 1, "_adaptive_avg_pool2d": 1, "_adaptive_avg_pool3d": 1,
    "adaptive_max_pool1d": 1, "adaptive_max_pool2d": 1, "adaptive_max_pool3d": 1, "trace": 1, "histc": 1, "bincount": 1,
    "cummax": 1, "cummin": 1, "quantized_decomposed.choose_qparams": 2,
    "quantized_decomposed.choose_qparams_per_token": 2,
}
POOLS = {f"{kind}_pool{rank}d{suffix}": rank for kind in ("max", "avg") for rank in (1, 2, 3)
          for suffix in ("", "_with_indices") if kind == "max" or not suffix}
_RESIZED = {"nearest": 0, "linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 4}

VIEWS = set("""
view reshape flatten unflatten squeeze unsqueeze contiguous clone detach alias lift_fresh lift_fresh_copy view_as
reshape_as _unsafe_view _reshape_alias identity resolve_conj resolve_neg view_as_real view_as_complex real imag conj
_conj detach_copy view_copy atleast_1d atleast_2d atleast_3d ravel broadcast_tensors _to_cpu pin_memory
""".split())
_WRITTEN = "out"
EACH_WORD = frozenset(_PER_OUTPUT) - set("""
cumsum cumprod outer ger kron glu bucketize searchsorted logcumsumexp isin multinomial dequantize softmax _softmax
_safe_softmax special_softmax log_softmax _log_softmax gumbel_softmax layer_norm native_layer_norm rms_norm
_fused_rms_norm group_norm native_group_norm instance_norm _native_batch_norm_legit
""".split()) | {"gelu"}
"""What is done to each word (of operands that are broadcast) by itself."""
# Data movement: which words are read. "out" as many as are written, "in" the whole first input, "all" every input.
_MOVES = {
    **dict.fromkeys("""
permute transpose t numpy_T numpy_t adjoint mT mH matrix_H movedim moveaxis swapaxes swapdims cat concat concatenate
stack hstack vstack dstack column_stack slice select narrow diagonal split split_with_sizes chunk unbind tensor_split
unsafe_split unsafe_chunk hsplit vsplit dsplit unfold as_strided pixel_shuffle pixel_unshuffle channel_shuffle
native_channel_shuffle roll flip fliplr flipud rot90 gather index index_select embedding take_along_dim take
masked_select tril triu unsafe_index _unsafe_index combinations meshgrid copy fill select_copy slice_copy cartesian_prod
sort argsort linalg_diagonal
""".split(), _WRITTEN),
    **dict.fromkeys("""
expand expand_as expand_copy broadcast_to repeat repeat_interleave tile pad constant_pad_nd reflection_pad1d
reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d im2col col2im one_hot nonzero
nonzero_numpy unique unique_dim unique_consecutive _unique2 _unique diag diag_embed block_diag max_unpool2d max_unpool3d
_pad_circular pad_sequence
""".split(), "in"),
    **dict.fromkeys("""
scatter scatter_add scatter_reduce index_put index_copy index_add index_fill index_reduce slice_scatter select_scatter
diagonal_scatter masked_scatter put _index_put_impl
""".split(), "all"),
}
_TABLES = {"embedding": "weight", "index": "self", "index_select": "self", "gather": "self"}


def translate_vector(node: NodeView) -> Node | None:
    """Translate a node of vector work or data movement; None if its kind is in none of the tables.

    Raises `Unsupported` if a shape that it needs is not known.
    """
    kind = node.kind
    if kind == APPEND:
        words = node.words(0)
        held = ("cache", prod(node.out()))
        return DataMovement(node.name, "append", words, words, node.readers, attributes=(*_typed(node), held))
    if kind in VIEWS or _does_nothing(node) or node.outputs[0] in node.scene.arranged:
        return DataMovement(node.name, kind, 0, 0, node.readers, attributes=_typed(node))
    if kind == SCAN:
        return _scanned(node)
    special = _SPECIAL.get(kind)
    operations = special(node) if special is not None else _operations(node)
    if operations is not None:
        return _vector(node, operations)
    return _movement(node) if kind in _MOVES else None


def is_vector(kind: str) -> bool:
    """Whether the kind is one of vector work or data movement, without multiply-accumulates."""
    return any(kind in table for table in (VIEWS, _SPECIAL, _PER_OUTPUT, _PER_INPUT, POOLS, _MOVES, CONVERSIONS))


def _does_nothing(node: NodeView) -> bool:
    """Whether it is a dropout at inference, a slice of all, or a conversion to the type that the tensor has."""
    if node.kind in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout", "rrelu"):
        return not (node.attributes.get("train") or node.attributes.get("training"))
    if node.kind in ("slice", "narrow", "expand", "expand_as", "broadcast_to"):
        return node.shape(0) == node.out()
    return node.kind in CONVERSIONS and _kept_type(node)


CONVERSIONS = {"to", "_to_copy", "type_as", "float", "half", "double", "_to_dtype", "_autocast_to_full_precision",
                "_autocast_to_reduced_precision"}


def _kept_type(node: NodeView) -> bool:
    types = node.scene.types
    return types.get(node.inputs[0]) == types.get(node.outputs[0])


def _operations(node: NodeView) -> int | None:
    kind = node.kind
    if kind in CONVERSIONS or (kind in ("max", "min") and "other" in node.attributes):
        return prod(node.out())
    if kind in _PER_OUTPUT:
        return _PER_OUTPUT[kind] * prod(node.out())
    if kind in _PER_INPUT:
        return _PER_INPUT[kind] * node.words(0)
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
    return (9 if node.attributes.get("approximate") == "tanh" else _OPS["gelu"]) * prod(node.out())


def _distances(node: NodeView) -> int:
    """Subtract, square and add for each feature of each pair, and a root."""
    return (3 * shape(node, "x1")[-1] + 1) * prod(node.out())


def _bag(node: NodeView) -> int:
    """One addition for each word that is gathered."""
    return prod(shape(node, "indices")) * shape(node, "weight")[-1]


def _sampled(node: NodeView) -> int:
    """Four corners, each multiplied and added."""
    return 8 * prod(node.out())


_SPECIAL: dict[str, Callable[[NodeView], int]] = {
    "topk": _top_k, "sort": _sorted, "argsort": _sorted, "median": _sorted, "kthvalue": _sorted, "gelu": _gelu,
    "cdist": _distances, "_cdist_forward": _distances, "embedding_bag": _bag, "_embedding_bag": _bag,
    "_embedding_bag_forward_only": _bag, "grid_sampler": _sampled, "grid_sampler_2d": _sampled,
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
    return VectorOperator(node.name, "selective_scan", _OPS["selective_scan"] * positions * state,
                          node.read_words + state, node.written_words + state, node.readers,
                          approximated_as="vector work, products of states included", attributes=_typed(node))


def _movement(node: NodeView) -> DataMovement:
    node.out()
    written = node.written_words
    read = {_WRITTEN: written, "in": node.words(0)}.get(_MOVES[node.kind])
    return DataMovement(node.name, node.kind, node.read_words if read is None else read, written, node.readers,
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
