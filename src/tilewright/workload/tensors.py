"""A network's tensors: each with its name, who makes and who reads it, its words, and whose bytes it shares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from tilewright.base import InputError, free_name
from tilewright.workload.graph import DataMovement, Graph, MacNode, Node, VectorOperator
from tilewright.workload.links import Edges, Kind, Operand, Result, Shape
from tilewright.workload.operator import Tensor


@dataclass(frozen=True)
class Read:
    """One reading of a tensor: by a node, as one of its operands.

    ``operand`` is the name of the operator's tensor where the node multiplies and accumulates (``I``, ``W``); of other
    nodes, and of what is read besides (a residual, for one), its place: ``0``, ``1`` and so on.
    """

    node: str
    operand: str


@dataclass(frozen=True)
class NetworkTensor:
    """A tensor of a network.

    Parameters
    ----------
    name
        Unique in the network: of the one result of a node the node's; of weights such as ``conv1.W``.
    shape
        With the batch; None where it is not known.
    kind
        ``weights`` are known before the network runs, a ``state`` is kept from pass to pass (or from step to step), an
        ``input`` is given by who runs it, an ``activation`` is made by a node.
    producer
        Name of the node that makes it; empty where none does.
    reads
        Who reads it, in order of execution.
    word_bits
        None where the machine decides.
    storage
        Name of the tensor whose bytes it shares, as views do and what is written in place; its own where it has its
        own.
    is_output
        Whether it leaves the network.
    """

    name: str
    shape: Shape | None
    kind: Kind
    producer: str
    reads: tuple[Read, ...]
    word_bits: float | None
    storage: str
    is_output: bool

    @property
    def words(self) -> int:
        """Words of the tensor; an `InputError` where its shape is not known."""
        if self.shape is None:
            raise InputError(f"{self.name}.shape", "must be known", None, "Bind the sizes that it depends on")
        return prod(self.shape)


@dataclass(frozen=True)
class TensorGraph:
    """The tensors of a network in order: each before those that nodes make of it, and a node's operands together."""

    graph: Graph
    tensors: Mapping[str, NetworkTensor]

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.graph.name

    def made_by(self, node: str) -> tuple[NetworkTensor, ...]:
        """Return the tensors that a node makes, in its order."""
        return self._made.get(node, ())

    def read_by(self, node: str) -> tuple[tuple[str, NetworkTensor], ...]:
        """Return the operands of a node with their tensors, in the node's order; one tensor may be several."""
        return self._read.get(node, ())

    @cached_property
    def _made(self) -> dict[str, tuple[NetworkTensor, ...]]:
        found: dict[str, tuple[NetworkTensor, ...]] = {}
        for tensor in self.tensors.values():
            found[tensor.producer] = (*found.get(tensor.producer, ()), tensor)
        return found

    @cached_property
    def _read(self) -> dict[str, tuple[tuple[str, NetworkTensor], ...]]:
        order = {node.name: [one.name for one in edges.reads] for node, edges in _edges(self.graph)}
        found: dict[str, list[tuple[str, NetworkTensor]]] = {}
        for tensor in self.tensors.values():
            for read in tensor.reads:
                found.setdefault(read.node, []).append((read.operand, tensor))
        return {node: tuple(sorted(given, key=lambda one, node=node: order[node].index(one[0])))  # type: ignore[misc]
                for node, given in found.items()}


def tensor_graph(graph: Graph) -> TensorGraph:
    """Return the tensors of a network.

    Where a node's ``edges`` are not known (networks that were put together by hand, or read from layer lists), what it
    reads follows from the nodes named in its ``inputs``, in the order of its operands; what they do not say is an
    input of the network, or weights.

    Examples
    --------
    >>> from tilewright.workload import zoo
    >>> found = tensor_graph(zoo.load("resnet18")).tensors["layer1.0.add"]
    >>> found.shape, [read.node for read in found.reads]
    ((1, 64, 56, 56), ['layer1.0.relu'])
    """
    drafts: dict[str, _Draft] = {}
    taken: set[str] = set()
    for node, edges in _edges(graph):
        for operand in edges.reads:
            if operand.tensor not in drafts:
                drafts[operand.tensor] = _Draft(_free(_named(node, operand), taken), node, operand)
            drafts[operand.tensor].reads.append(Read(node.name, operand.name))
        for index, result in enumerate(edges.makes):
            wanted = node.name if index == 0 else f"{node.name}.{index}"
            drafts[result.name] = _Draft(_free(wanted, taken), node, result)
    return TensorGraph(graph, {draft.name: draft.tensor(drafts) for draft in drafts.values()})


@dataclass
class _Draft:
    """A tensor whose readers are not all known yet, and the node that makes it or reads it first."""

    name: str
    node: Node
    known: Operand | Result
    reads: list[Read] = field(default_factory=list)

    def tensor(self, drafts: Mapping[str, "_Draft"]) -> NetworkTensor:
        """Return it as it is now."""
        holder, shape, reads = self, self.known.shape, tuple(self.reads)
        while isinstance(holder.known, Result) and holder.known.of:
            holder = drafts[holder.known.of]
        if isinstance(self.known, Operand):
            bits = _operand_bits(self.node, self.known.name)
            return NetworkTensor(self.name, shape, self.known.kind, "", reads, bits, holder.name, False)
        leaves = not reads if self.known.leaves is None else self.known.leaves
        return NetworkTensor(self.name, shape, "activation", self.node.name, reads, _result_bits(self.node),
                             holder.name, leaves)


def _edges(graph: Graph) -> Iterator[tuple[Node, Edges]]:
    """Give every node with its edges; those that nobody knows as the nodes that it reads suggest."""
    made: dict[str, str] = {}
    for node in graph.nodes:
        edges = node.edges or _suggested(node, made)
        if edges.makes:
            made[node.name] = edges.makes[0].name
        yield node, edges


def _suggested(node: Node, made: Mapping[str, str]) -> Edges:
    before = [made[name] for name in node.inputs if name in made]
    reads = []
    if isinstance(node, MacNode):
        computed = dict(node.operator.attributes).get("weights") in ("activations", "cache")
        for tensor in node.operator.operands:
            if before and (tensor.role == "inputs" or computed):
                reads.append(Operand(before.pop(0), tensor.name))
            else:
                kind: Kind = "input" if tensor.role == "inputs" or computed else "weights"
                reads.append(Operand(f"{node.name}.{tensor.name}", tensor.name, _extents(node, tensor), kind))
    reads += [Operand(name, str(index)) for index, name in enumerate(before)]
    view = isinstance(node, DataMovement) and not node.read_words and not node.written_words and len(before) == 1
    return Edges(tuple(reads), (Result(node.name, result_shape(node), before[0] if view else ""),))


def result_shape(node: Node) -> Shape | None:
    """Return the shape of a node's result as far as the node alone tells it."""
    if isinstance(node, MacNode):
        shape = _extents(node, node.operator.output)
        return shape if node.count == 1 else (node.count, *shape)
    words = node.written_words * node.count if isinstance(node, VectorOperator | DataMovement) else 0
    return (words,) if words else None


def _extents(node: MacNode, tensor: Tensor) -> Shape:
    return tuple(axis.words(node.operator.sizes, box=True) for axis in tensor.axes)


def _named(node: Node, operand: Operand) -> str:
    """Return what to call a tensor that no node makes: weights by their first reader."""
    if isinstance(node, MacNode) and operand.kind == "weights":
        return f"{node.name}.{operand.name}"
    return operand.tensor


def _free(wanted: str, taken: set[str]) -> str:
    name = free_name(wanted, taken)
    taken.add(name)
    return name


def _operand_bits(node: Node, operand: str) -> float | None:
    if isinstance(node, MacNode):
        return next((one.word_bits for one in node.operator.operands if one.name == operand), None)
    return getattr(node, "word_bits", None)


def _result_bits(node: Node) -> float | None:
    return node.operator.output.word_bits if isinstance(node, MacNode) else getattr(node, "word_bits", None)
