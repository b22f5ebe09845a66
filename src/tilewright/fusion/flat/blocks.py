"""Attention as a workload: the pair of products around a softmax, and where networks have it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.base import InputError
from tilewright.workload import Graph, MacNode, Node, VectorOperator, vector_kind

FLAT_MODELS: Mapping[str, tuple[int, int, int]] = {
    "BERT": (768, 12, 3072), "TrXL": (1024, 16, 4096), "FlauBERT": (1024, 16, 4096), "T5": (512, 8, 2048),
    "XLM": (2048, 16, 8192)}
"""Width, heads and feed-forward of the models of FLAT (Kao, dissertation, Georgia Tech 2022, section A.3.1).

Their sizes are not printed there. BERT base, Transformer-XL large, T5 small and XLM are those of FuseMax's run of the
authors' model; FlauBERT is read as large.
"""
FLAT_BATCH = 64


@dataclass(frozen=True)
class Attention:
    """The products L (queries by keys) and A (shares by values) of one attention, with the softmax between.

    ``instances`` = batch x heads of keys and values: they share no words. Queries of the ``group`` of heads that share
    keys are rows of one product, those of one position one after the other.

    Raises an `InputError` if a size is not positive, the group does not divide the rows, or a causal one has more
    positions than keys.
    """

    name: str
    instances: int
    rows: int
    keys: int
    """``rows`` and ``keys``: rows of queries (positions x group) and keys of one instance."""
    depth: int
    width: int
    """``depth`` and ``width``: features of a key, and of a value."""
    heads: int = 1
    """Instances of one sequence."""
    group: int = 1
    causal: bool = False
    """Whether a position attends to none after itself; the last position attends to all keys."""
    count: int = 1
    """How often the network does it."""

    def __post_init__(self) -> None:
        for name in ("instances", "rows", "keys", "depth", "width", "heads", "group", "count"):
            if getattr(self, name) < 1:
                raise InputError(f"attention.{name}", "must be positive", getattr(self, name))
        if self.rows % self.group:
            raise InputError("attention.group", f"must divide the {self.rows} rows", self.group)
        if self.causal and self.positions > self.keys:
            raise InputError("attention.causal", f"must have at least {self.positions} keys, one a position", self.keys)

    @property
    def positions(self) -> int:
        """Queries of one head."""
        return self.rows // self.group

    @property
    def pairs(self) -> int:
        """Pairs of a row and a key of one instance that are not masked."""
        if not self.causal:
            return self.rows * self.keys
        first = self.keys - self.positions + 1
        return self.group * self.positions * (first + self.keys) // 2

    @property
    def macs(self) -> int:
        """Multiply-accumulates of both products that are not masked, of all instances."""
        return self.instances * self.pairs * (self.depth + self.width)

    @property
    def compulsory_words(self) -> int:
        """Words of queries, keys, values and outputs of all instances."""
        return self.instances * (self.rows + self.keys) * (self.depth + self.width)

    def extents(self, ends: np.ndarray) -> np.ndarray:
        """Return how many keys the rows before each of ``ends`` attend to, the masked ones left out."""
        if not self.causal:
            return np.full(len(ends), self.keys, dtype=np.int64)
        return self.keys - self.positions + (ends + self.group - 1) // self.group


@dataclass(frozen=True)
class Product:
    """A product of a network that is not of an attention: ``instances`` of rows x columns x depth."""

    name: str
    instances: int
    rows: int
    columns: int
    depth: int
    count: int = 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all instances."""
        return self.instances * self.rows * self.columns * self.depth


@dataclass(frozen=True)
class AttentionBlock:
    """One block of a model: its attention, and the other products of the block."""

    attention: Attention
    products: tuple[Product, ...]


def flat_block(model: str, sequence: int, batch: int = FLAT_BATCH) -> AttentionBlock:
    """Return a block of one of FLAT's models: attention, the four projections, and both feed-forwards.

    >>> block = flat_block("BERT", 512)
    >>> block.attention.instances, block.attention.depth, round(block.attention.macs / 1e9, 1)
    (768, 64, 25.8)
    """
    if model not in FLAT_MODELS:
        raise InputError("model", f"must be one of {', '.join(FLAT_MODELS)}", model)
    size, heads, inner = FLAT_MODELS[model]
    rows = batch * sequence
    attention = Attention(f"{model}.attention", batch * heads, sequence, sequence, size // heads, size // heads, heads)
    return AttentionBlock(attention, (Product("K/Q/V/O", 1, rows, size, size, 4), Product("FF1", 1, rows, inner, size),
                                      Product("FF2", 1, rows, size, inner)))


def attentions(graph: Graph, *, causal: bool = False) -> tuple[Attention, ...]:
    """Return the attentions of a network, those of the same sizes counted together; empty where it has none.

    An attention is a product whose result reaches a softmax through vector work and views, and the product whose first
    operand is that softmax. Heads are told by the widths of the products that make queries and keys.

    >>> from tilewright.workload import zoo
    >>> found = attentions(zoo.load("llama-3-8b:phase=decode,context=4096"))[0]
    >>> found.instances, found.rows, found.keys, found.group, found.count
    (8, 4, 4096, 4, 32)
    """
    nodes = {node.name: node for node in graph.nodes}
    names: dict[Attention, str] = {}
    counts = Counter[Attention]()
    for node in graph.mac_nodes:
        scores = _scores(node, nodes)
        if scores is not None:
            one = replace(_attention(scores, node, nodes), causal=causal)
            key = replace(one, name="")
            names.setdefault(key, one.name)
            counts[key] += node.count
    return tuple(replace(key, name=names[key], count=count) for key, count in counts.items())


def other_products(graph: Graph) -> tuple[Product, ...]:
    """Return the products of a network that are not of its attentions, as matrix products."""
    nodes = {node.name: node for node in graph.nodes}
    taken = {each.name for node in graph.mac_nodes if (scores := _scores(node, nodes)) for each in (scores, node)}
    return tuple(Product(node.name, *_sizes(node), node.count) for node in graph.mac_nodes
                 if node.name not in taken and set(node.operator.sizes) <= set("BMNK"))


def _sizes(node: MacNode) -> tuple[int, int, int, int]:
    sizes = node.operator.sizes
    batch, rows, columns, depth = (sizes.get(name, 1) for name in "BMNK")
    return batch, rows, columns, depth


def _scores(node: MacNode, nodes: Mapping[str, Node]) -> MacNode | None:
    """Return the product whose softmax is the first operand of this one, if it fits."""
    if len(node.inputs) < 2 or not set(node.operator.sizes) <= set("BMNK"):
        return None
    *path, scores = _back(nodes[node.inputs[0]], nodes)
    if not any(isinstance(each, VectorOperator) and vector_kind(each) == "softmax" for each in path):
        return None
    if not isinstance(scores, MacNode) or len(scores.inputs) < 2 or not set(scores.operator.sizes) <= set("BMNK"):
        return None
    (batch, rows, columns, _), (_, _, _, depth) = _sizes(scores), _sizes(node)
    return scores if (batch, rows, columns) == (*_sizes(node)[:2], depth) else None


def _back(node: Node, nodes: Mapping[str, Node]) -> Iterator[Node]:
    """Yield a node and the first operands before it, up to the first product."""
    yield node
    while not isinstance(node, MacNode) and node.inputs:
        node = nodes[node.inputs[0]]
        yield node


def _attention(scores: MacNode, mixed: MacNode, nodes: Mapping[str, Node]) -> Attention:
    instances, rows, keys, depth = _sizes(scores)
    made = [list(_back(nodes[name], nodes))[-1] for name in scores.inputs[:2]]
    heads, groups = (_sizes(each)[2] // depth if isinstance(each, MacNode) and _sizes(each)[2] % depth == 0 else 0
                     for each in made)
    if not (heads and groups and heads % groups == 0 and instances % groups == 0 and rows % (heads // groups) == 0):
        heads = groups = 1
    return Attention(scores.name.rpartition(".")[0] or scores.name, instances, rows, keys, depth, _sizes(mixed)[2],
                     groups, heads // groups)
