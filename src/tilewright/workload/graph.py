"""A network: its nodes in order of execution, and how much of it is modelled.

Four kinds of node: `MacNode` (a multiply-accumulate nest that is mapped), `VectorOperator` (pooling, softmax,
additions: operations and words, no nest), `DataMovement` (words, no operations) and `Unmodelled` (named, with the
reason). Nothing is left out in silence: what is not modelled is a node too, and `coverage` says how much it weighs.

Vector work has kinds, and scalar operations per element, for the zoo and for every importer: each comparison, addition,
multiplication, division, exponential, root or error function is one operation. The counts follow from the usual
definition of each function; they say how much work a vector unit has, not how long it takes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from tilewright.base import InputError
from tilewright.workload.links import Edges
from tilewright.workload.operator import Operator

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


@dataclass(frozen=True)
class MacNode:
    """A multiply-accumulate operator at its place in the network."""

    operator: Operator
    inputs: tuple[str, ...] = ()
    """Names of the nodes whose results it reads."""
    count: int = 1
    """Times it runs, one after the other, with the same shape (the steps of a recurrent layer)."""
    approximated_as: str = ""
    """What it stands for, where the nest is not literally what the network computes; otherwise empty."""
    edges: Edges | None = field(default=None, compare=False, repr=False)
    """The tensors that it reads and makes, of every kind of node; None where ``inputs`` are all that is known."""

    @property
    def name(self) -> str:
        """Name of the operator."""
        return self.operator.name

    @property
    def kind(self) -> str:
        """Kind of the operator."""
        return self.operator.kind

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all runs."""
        return self.operator.macs * self.count

    def bytes_moved(self, default_bits: int = 8) -> float:
        """Bytes of all operands and results, each word once a run; ``default_bits`` where no width is stated."""
        sizes = self.operator.sizes
        bits = sum(t.words(sizes) * (t.word_bits or default_bits) for t in self.operator.tensors)
        return self.count * bits / 8


@dataclass(frozen=True)
class VectorOperator:
    """Work that is not a multiply-accumulate nest: elementwise, pooling, softmax, normalisation, reduction.

    ``operations`` are scalar operations (an exponential, a comparison and an addition are one each); ``read_words`` and
    ``written_words`` count each word once; all three are of one run. ``word_bits`` is None where the accelerator
    decides.
    """

    name: str
    kind: str
    operations: int
    read_words: int
    written_words: int
    inputs: tuple[str, ...] = ()
    count: int = 1
    word_bits: int | None = None
    approximated_as: str = ""
    attributes: tuple[tuple[str, int | str], ...] = field(default=(), compare=False)
    edges: Edges | None = field(default=None, compare=False, repr=False)

    def bytes_moved(self, default_bits: int = 8) -> float:
        """Bytes read and written in all runs."""
        return self.count * (self.read_words + self.written_words) * (self.word_bits or default_bits) / 8


@dataclass(frozen=True)
class DataMovement:
    """Words that change place: transpose, concatenation, slice, gather; a view (reshape) moves none."""

    name: str
    kind: str
    read_words: int
    written_words: int
    inputs: tuple[str, ...] = ()
    count: int = 1
    word_bits: int | None = None
    approximated_as: str = ""
    attributes: tuple[tuple[str, int | str], ...] = field(default=(), compare=False)
    edges: Edges | None = field(default=None, compare=False, repr=False)

    def bytes_moved(self, default_bits: int = 8) -> float:
        """Bytes read and written in all runs."""
        return self.count * (self.read_words + self.written_words) * (self.word_bits or default_bits) / 8


@dataclass(frozen=True)
class Unmodelled:
    """A node that nothing here models, and why. ``macs`` and ``words`` are estimates; None where unknown."""

    name: str
    kind: str
    reason: str
    macs: int | None = None
    words: int | None = None
    inputs: tuple[str, ...] = ()
    edges: Edges | None = field(default=None, compare=False, repr=False)

    def bytes_moved(self, default_bits: int = 8) -> float:
        """Bytes of the estimated words; 0 where unknown (`coverage` names such nodes)."""
        return (self.words or 0) * default_bits / 8


Node: TypeAlias = MacNode | VectorOperator | DataMovement | Unmodelled


@dataclass(frozen=True)
class Graph:
    """A network: named nodes in an order in which each comes after the nodes that it reads.

    Raises an `InputError` if names repeat, or a node reads one that does not come before it.
    """

    name: str
    nodes: tuple[Node, ...]
    source: str = ""
    """Where it comes from: a path, or the citation of a zoo entry."""
    notes: tuple[str, ...] = ()
    """What was assumed on the way in, one sentence each (bound dimensions, chosen variant)."""
    tokens: int = 0
    """Tokens that one pass of a language model takes in, of all sequences; 0 for what is none."""
    precision: tuple[str, ...] = ()
    """Which words its layers have on a machine, in sentences, where they were settled."""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise InputError(f"{self.name}.nodes", "must have distinct names", node.name)
            unknown = [name for name in node.inputs if name not in seen]
            if unknown:
                raise InputError(f"{self.name}.{node.name}.inputs", "must name nodes that come before", unknown)
            seen.add(node.name)

    @property
    def mac_nodes(self) -> tuple[MacNode, ...]:
        """The nodes to be mapped, in order."""
        return tuple(node for node in self.nodes if isinstance(node, MacNode))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all nodes to be mapped."""
        return sum(node.macs for node in self.mac_nodes)

    @property
    def weight_words(self) -> int:
        """Words of all weights and embedding tables, each once; biases and normalisation parameters are not kept."""
        total = 0
        for node in self.nodes:
            if isinstance(node, MacNode) and "weights" not in dict(node.operator.attributes):
                sizes = node.operator.sizes
                total += sum(t.words(sizes) for t in node.operator.operands if t.role == "weights")
            elif isinstance(node, DataMovement):
                total += int(dict(node.attributes).get("parameters", 0))
        return total

    def node(self, name: str) -> Node:
        """Return the node called ``name``."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise InputError(f"{self.name}.nodes", "must have a node of this name", name)


@dataclass(frozen=True)
class UniqueOperator:
    """An operator that is searched once: ``count`` runs of it, in the nodes called ``names``."""

    operator: Operator
    count: int
    names: tuple[str, ...]


def unique_operators(graph: Graph) -> tuple[UniqueOperator, ...]:
    """Return the distinct operators in the order of their first use; those of equal signature are one."""
    groups: dict[tuple[object, ...], list[MacNode]] = {}
    for node in graph.mac_nodes:
        groups.setdefault(node.operator.signature, []).append(node)
    return tuple(UniqueOperator(nodes[0].operator, sum(node.count for node in nodes), tuple(n.name for n in nodes))
                 for nodes in groups.values())


@dataclass(frozen=True)
class Coverage:
    """How much of a network is modelled.

    ``macs_unmodelled`` and ``bytes_unmodelled`` are estimates over `Unmodelled` nodes, ``lost`` in number; ``unknown``
    names those of them whose multiply-accumulates or bytes nobody can tell: where it is not empty, the fractions are
    upper limits. ``approximations`` holds ``(what it is approximated as, names)``, ``unmodelled``
    ``(kind: reason, names)``.
    """

    macs_modelled: int
    macs_unmodelled: int
    bytes_modelled: float
    bytes_unmodelled: float
    unknown: tuple[str, ...]
    approximations: tuple[tuple[str, tuple[str, ...]], ...]
    unmodelled: tuple[tuple[str, tuple[str, ...]], ...]
    lost: int = 0

    @property
    def complete(self) -> bool:
        """Whether every node with multiply-accumulates or bytes is modelled."""
        return not (self.unknown or self.macs_unmodelled or self.bytes_unmodelled)

    @property
    def figures(self) -> str:
        """The numbers in a line: multiply-accumulates and bytes that are modelled, and what is lost of each."""
        known = self.lost - len(self.unknown)
        lost = [f"{self.macs_unmodelled:,} MACs and {self.bytes_unmodelled:,.0f} bytes lost with {_nodes(known)} of "
                "known size" if known else "",
                f"{_nodes(len(self.unknown))} of unknown size lost" if self.unknown else ""]
        return ", ".join(filter(None, [
            f"{self.macs_modelled:,} MACs and {self.bytes_modelled:,.0f} bytes modelled", *lost])) + (
                "" if self.lost else ", none lost")

    @property
    def macs_fraction(self) -> float:
        """Modelled multiply-accumulates over all known ones; 0 where none is modelled of a network that has some."""
        return _fraction(self.macs_modelled, self.macs_unmodelled, bool(self.unknown))

    @property
    def bytes_fraction(self) -> float:
        """Modelled bytes over all known ones; 0 where none is modelled of a network that has some."""
        return _fraction(self.bytes_modelled, self.bytes_unmodelled, bool(self.unknown))

    @property
    def sentence(self) -> str:
        """One line: "x % of MACs, y % of bytes modelled; these nodes approximated as ..."."""
        parts = ([f"an unknown share: {self.figures}"] if self.unknown else
                 [f"{_percent(self.macs_fraction)} of MACs, {_percent(self.bytes_fraction)} of bytes modelled"])
        if self.approximations:
            parts.append("these nodes approximated: " + ", ".join(
                f"{_some(names)} as {text}" for text, names in self.approximations))
        if self.unmodelled:
            parts.append("not modelled: " + ", ".join(f"{_some(names)} ({text})" for text, names in self.unmodelled))
        if self.unknown:
            parts.append(f"MACs or bytes unknown of {_some(self.unknown)}")
        return "; ".join(parts)


def coverage(graph: Graph, default_bits: int = 8) -> Coverage:
    """Say how much of ``graph`` is modelled; tensors without a width of their own count ``default_bits`` a word.

    Bytes are those of each node's operands and results, each word once: what an unfused network has to touch.
    """
    lost = [node for node in graph.nodes if isinstance(node, Unmodelled)]
    kept = [node for node in graph.nodes if not isinstance(node, Unmodelled)]
    return Coverage(
        macs_modelled=graph.macs,
        macs_unmodelled=sum(node.macs or 0 for node in lost),
        bytes_modelled=sum(node.bytes_moved(default_bits) for node in kept),
        bytes_unmodelled=sum(node.bytes_moved(default_bits) for node in lost),
        unknown=tuple(node.name for node in lost if node.macs is None or node.words is None),
        approximations=_grouped((node.approximated_as, node.name) for node in kept if node.approximated_as),
        unmodelled=_grouped((f"{node.kind}: {node.reason}", node.name) for node in lost),
        lost=len(lost),
    )


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def _grouped(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    groups: dict[str, list[str]] = {}
    for text, name in pairs:
        groups.setdefault(text, []).append(name)
    return tuple((text, tuple(names)) for text, names in groups.items())


def _fraction(part: float, rest: float, unknown: bool) -> float:
    return part / (part + rest) if part + rest else float(not unknown)


def _percent(fraction: float) -> str:
    """Write a percentage that reads 100 % only where nothing at all is missing."""
    return "100 %" if fraction == 1 else f"{min(99.9, 100 * fraction):.1f} %"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


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
