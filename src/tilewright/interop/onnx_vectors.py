"""ONNX nodes that are no multiply-accumulate nests: vector work and data movement, by table."""

from math import ceil, log2, prod

from tilewright.interop.scene import NodeView, Unsupported
from tilewright.workload import OPERATIONS_PER_ELEMENT, DataMovement, Unmodelled, VectorOperator

_OPS = OPERATIONS_PER_ELEMENT

# Operations per element of the output. Names are those of ONNX and of the com.microsoft domain.
_PER_OUTPUT = {
    "Relu": _OPS["relu"], "LeakyRelu": _OPS["leaky_relu"], "PRelu": 2, "ThresholdedRelu": 2, "Clip": _OPS["clip"],
    "Sigmoid": _OPS["sigmoid"], "Tanh": _OPS["tanh"], "HardSigmoid": _OPS["hard_sigmoid"],
    "HardSwish": _OPS["hard_swish"], "Swish": _OPS["silu"], "QuickGelu": _OPS["silu"], "Gelu": _OPS["gelu"],
    "FastGelu": 9, "BiasGelu": _OPS["gelu"] + 1, "Elu": _OPS["elu"], "Selu": 5, "Celu": 6, "Mish": 9,
    "Softplus": _OPS["softplus"], "Softsign": 3, "Erf": 1, "Exp": 1, "Log": 1, "Sqrt": 1, "Reciprocal": 1, "Abs": 1,
    "Neg": 1, "Sign": 1, "Floor": 1, "Ceil": 1, "Round": 1, "Not": 1, "IsNaN": 1, "IsInf": 1, "Sin": 1, "Cos": 1,
    "Tan": 1, "Asin": 1, "Acos": 1, "Atan": 1, "Sinh": 4, "Cosh": 4, "Asinh": 4, "Acosh": 4, "Atanh": 4,
    "BitwiseNot": 1, "Add": 1, "Sub": 1, "Mul": 1, "Div": 1, "Pow": 1, "Mod": 1, "And": 1, "Or": 1, "Xor": 1,
    "BitShift": 1, "BitwiseAnd": 1, "BitwiseOr": 1, "BitwiseXor": 1, "Equal": 1, "Greater": 1, "GreaterOrEqual": 1,
    "Less": 1, "LessOrEqual": 1, "Where": 1, "Cast": 1, "CastLike": 1, "QuantizeLinear": 3, "DequantizeLinear": 2,
    "QLinearAdd": 6, "QLinearMul": 5, "QLinearSigmoid": 8, "QLinearLeakyRelu": 6, "QLinearConcat": 3,
    "DynamicQuantizeLinear": 5, "BatchNormalization": _OPS["batch_norm"], "InstanceNormalization": _OPS["layer_norm"],
    "GroupNormalization": _OPS["layer_norm"], "LayerNormalization": _OPS["layer_norm"],
    "SimplifiedLayerNormalization": _OPS["rms_norm"], "RMSNormalization": _OPS["rms_norm"],
    "SkipLayerNormalization": _OPS["layer_norm"] + 1, "SkipSimplifiedLayerNormalization": _OPS["rms_norm"] + 1,
    "EmbedLayerNormalization": _OPS["layer_norm"] + 2, "MeanVarianceNormalization": 6, "LpNormalization": 3,
    "Softmax": _OPS["softmax"], "LogSoftmax": _OPS["softmax"] + 1, "Hardmax": 2, "CumSum": 1, "RotaryEmbedding": 3,
    "RandomNormalLike": 1, "RandomUniformLike": 1, "Bernoulli": 1, "Shrink": 3, "BiasSplitGelu": 6, "BiasAdd": 1,
}
EACH_WORD = frozenset(_PER_OUTPUT) - set("""
LayerNormalization SimplifiedLayerNormalization RMSNormalization SkipLayerNormalization InstanceNormalization CumSum
SkipSimplifiedLayerNormalization EmbedLayerNormalization MeanVarianceNormalization LpNormalization GroupNormalization
Softmax LogSoftmax Hardmax RotaryEmbedding QLinearConcat BiasSplitGelu
""".split()) | {"Sum", "Mean", "Max", "Min"}
"""What is done to each word (of operands that are broadcast) by itself."""
# Operations per element of the input: reductions and searches.
_PER_INPUT = {
    "ReduceSum": 1, "ReduceMean": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceL1": 2, "ReduceL2": 2,
    "ReduceSumSquare": 2, "ReduceLogSum": 1, "ReduceLogSumExp": 2, "ArgMax": 1, "ArgMin": 1, "GlobalAveragePool": 1,
    "GlobalMaxPool": 1, "GlobalLpPool": 2, "QLinearGlobalAveragePool": 1,
}
_POOLS = {"MaxPool": 1, "AveragePool": 1, "LpPool": 2, "QLinearAveragePool": 1}
_NARY = {"Sum", "Mean", "Max", "Min"}
VIEWS = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Shape", "Size", "Optional",
          "OptionalGetElement"}
# Data movement: which words are read. "out" as many as are written, "in" the whole first input, "all" every input.
_MOVES = {
    "Transpose": "out", "Concat": "out", "Slice": "out", "Split": "in", "Pad": "in", "Expand": "in", "Tile": "in",
    "DepthToSpace": "out", "SpaceToDepth": "out", "Gather": "out", "GatherElements": "out", "GatherND": "out",
    "ScatterElements": "all", "ScatterND": "all", "Scatter": "all", "OneHot": "in", "Trilu": "out", "Compress": "out",
    "ReverseSequence": "out", "Range": "in", "EyeLike": "in", "NonZero": "in", "Unique": "in", "Col2Im": "in",
    "CenterCropPad": "out", "TensorScatter": "all", "MaxUnpool": "in", "RandomNormal": "in", "RandomUniform": "in",
    "ConstantOfShape": "in", "SequenceConstruct": "out", "ConcatFromSequence": "out",
}
_WITHOUT_MACS = {"NonMaxSuppression": "sorting and suppression depend on the data"}


def translate_vector(node: NodeView) -> VectorOperator | DataMovement | Unmodelled | None:
    """Translate a node of vector work or data movement; None if its kind is in none of the tables.

    Raises `Unsupported` if a shape that it needs is not known.
    """
    kind = node.kind
    if kind in VIEWS:
        return _move(node, 0, 0)
    if kind in _MOVES:
        return _movement(node)
    if kind in _WITHOUT_MACS:
        return Unmodelled(node.name, kind, _WITHOUT_MACS[kind], macs=0, words=node.read_words, inputs=node.readers)
    operations = _operations(node)
    return None if operations is None else _vector(node, operations)


def _operations(node: NodeView) -> int | None:
    kind = node.kind
    if kind in _PER_OUTPUT:
        return _PER_OUTPUT[kind] * prod(node.out())
    if kind in _PER_INPUT:
        return _PER_INPUT[kind] * node.words(0)
    if kind in _POOLS:
        return _POOLS[kind] * prod(node.integers("kernel_shape")) * prod(node.out())
    if kind in _NARY:
        return max(1, len(node.inputs) - 1) * prod(node.out())
    special = {"LRN": _lrn, "TopK": _top_k, "Resize": _resize, "Upsample": _resize, "RoiAlign": _roi_align,
               "GridSample": _grid_sample, "DFT": _dft, "STFT": _stft}.get(kind)
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


def _grid_sample(node: NodeView) -> int:
    """Four corners, each multiplied and added."""
    return 8 * prod(node.out())


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
    which = _MOVES[node.kind]
    read = written
    if which == "in":
        read = node.words(0)
    elif which == "all":
        read = node.read_words
    return _move(node, read, written)


def _move(node: NodeView, read: int, written: int) -> DataMovement:
    attributes: tuple[tuple[str, int | str], ...] = (("element_type", node.element_type),)
    if node.kind == "Gather" and node.inputs[0] in node.scene.constants and node.inputs[0] not in node.scene.claimed:
        node.scene.claimed.add(node.inputs[0])
        attributes = (*attributes, ("parameters", node.words(0)))
    return DataMovement(node.name, node.kind, read, written, node.readers, attributes=attributes)
