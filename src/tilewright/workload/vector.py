"""What vector work is and costs: its kinds, and scalar operations per element, for the zoo and for every importer.

Each comparison, addition, multiplication, division, exponential, root or error function is one operation. The counts
follow from the usual definition of each function; they say how much work a vector unit has, not how long it takes.
"""

import re

from tilewright.workload.graph import DataMovement, VectorOperator

OPERATIONS_PER_ELEMENT: dict[str, int] = {
    "relu": 1,  # max
    "relu6": 2,  # max, min
    "leaky_relu": 2,  # multiply, max
    "clip": 2,
    "sigmoid": 4,  # negate, exp, add, divide
    "tanh": 5,  # scale, exp, subtract, add, divide
    "hard_sigmoid": 4,  # multiply, add, max, min
    "hard_swish": 5,  # hard sigmoid, multiply
    "silu": 5,  # sigmoid, multiply
    "gelu": 5,  # x/2 * (1 + erf(x / sqrt 2)): scale, erf, add, scale, multiply
    "elu": 4,  # exp, subtract, multiply, compare
    "softplus": 3,  # exp, add, log
    "softmax": 5,  # max, subtract, exp, sum, divide
    "layer_norm": 8,  # mean, subtract, square, sum, root and divide, multiply, add
    "rms_norm": 5,  # square, sum, root and divide, multiply
    "batch_norm": 2,  # multiply, add (statistics are constants)
    "local_response_norm": 9,  # square, sum of five, scale, add, power, divide
    "group_norm": 8,  # as layer_norm
    "topk": 2,  # compare with the least of the few kept so far, put in its place
    "rotary": 3,  # rotate pairs by their position's angle: two products and a sum each
    "selective_scan": 8,  # per word of state: decay (product, exp), input (2 products), update (2), output (2)
    "add": 1,
    "multiply": 1,
    "scale": 1,
    "lstm_cell": 30,  # per hidden unit: 3 sigmoids, 2 tanh, 4 additions of gate inputs, 3 products, 1 sum
    "gru_cell": 22,  # per hidden unit: 2 sigmoids, 1 tanh, 3 additions of gate inputs, 3 products, 3 sums
    "rnn_cell": 6,  # per hidden unit: tanh, addition
}

_NAMES = {
    "add": "Sum add sub subtract rsub qlinearadd biasadd",
    "multiply": "mul multiply div divide truedivide floordivide qlinearmul",
    "scale": "scale",
    "elementwise": "Max Min Mean",
    "convert": """cast castlike quantizelinear dequantizelinear dynamicquantizelinear to tocopy todtype typeas float
        half double dequantize quantizepertensor quantizeperchannel quantizepertoken dequantizepertensor
        dequantizeperchannel dequantizepertoken autocasttofullprecision autocasttoreducedprecision
        fakequantizepertensoraffine fakequantizeperchannelaffine""",
    "relu": "relu prelu prelukernel rrelu threshold thresholdedrelu",
    "leaky_relu": "leakyrelu qlinearleakyrelu",
    "clip": "clip clamp clampmin clampmax hardtanh relu6",
    "sigmoid": "sigmoid logsigmoid qlinearsigmoid glu",
    "tanh": "tanh tanhshrink",
    "gelu": "gelu fastgelu biasgelu biassplitgelu",
    "silu": "silu swish quickgelu mish",
    "elu": "elu selu celu",
    "softplus": "softplus",
    "hard_sigmoid": "hardsigmoid",
    "hard_swish": "hardswish",
    "softmax": "softmax logsoftmax hardmax safesoftmax specialsoftmax gumbelsoftmax",
    "layer_norm": """layernorm layernormalization nativelayernorm skiplayernormalization embedlayernormalization
        meanvariancenormalization lpnormalization""",
    "rms_norm": """rmsnorm rmsnormalization fusedrmsnorm simplifiedlayernormalization
        skipsimplifiedlayernormalization""",
    "batch_norm": """batchnorm batchnormalization nativebatchnorm nativebatchnormlegit nativebatchnormlegitnotraining
        batchnormwithupdate""",
    "group_norm": "groupnorm groupnormalization nativegroupnorm instancenorm instancenormalization",
    "local_response_norm": "localresponsenorm lrn",
    "max_pool": "maxpool maxpoolwithindices globalmaxpool adaptivemaxpool",
    "average_pool": """averagepool avgpool globalaveragepool adaptiveavgpool qlinearaveragepool
        qlinearglobalaveragepool lppool globallppool""",
    "reduce": """reducesum reducemean reducemax reducemin reduceprod reducel1 reducel2 reducesumsquare reducelogsum
        reducelogsumexp argmax argmin sum nansum mean nanmean amax amin max min aminmax prod norm linalgvectornorm
        linalgnorm var std varmean stdmean logsumexp any all countnonzero trace histc bincount cumsum cummax cummin
        cumprod logcumsumexp chooseqparams chooseqparamspertoken""",
    "resize": """resize upsample roialign gridsample gridsampler upsamplenearest upsamplenearestexact upsamplelinear
        upsamplebilinear upsamplebilinearaa upsampletrilinear upsamplebicubic upsamplebicubicaa""",
    "sort": "topk sort argsort median kthvalue",
    "cell": "lstmcell grucell rnncell",
    "gather": """gather gatherelements gathernd embedding embeddingbag embeddingbagforwardonly index indexselect
        takealongdim take unsafeindex""",
}
_KIND_OF = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""What operators are called in the zoo, ONNX and PyTorch (as they are written, or in lower case without underscores,
namespaces and ranks), and their kind. All others are ``elementwise``, or ``copy`` where they have no operations."""


def vector_kind(node: VectorOperator | DataMovement) -> str:
    """Return the kind of an operator's work, as machines name it: ``softmax``, ``add``, ``copy`` and so on.

    A sum (or product) of one result and of what is smaller, such as a constant for each channel, is ``bias`` (or
    ``scale``). What moves no words is a ``view``.

    >>> vector_kind(VectorOperator("y", "QLinearAdd", 60, 20, 10, ("a", "b")))
    'add'
    >>> vector_kind(VectorOperator("y", "aten_add", 10, 12, 10, ("a",)))
    'elementwise'
    """
    if not node.read_words and not node.written_words:
        return "view"
    plain = re.sub("[123]d", "", node.kind.rpartition(".")[2].lower().replace("_", ""))
    kind = _KIND_OF.get(node.kind) or _KIND_OF.get(plain)
    if kind is None:
        return "elementwise" if isinstance(node, VectorOperator) else "copy"
    alone = len(node.inputs) < 2 and node.read_words < 2 * node.written_words
    return {"add": "bias", "multiply": "scale"}.get(kind, kind) if alone else kind
