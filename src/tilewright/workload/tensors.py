"""A network's tensors: each with its name, who makes and who reads it, its words, and whose bytes it shares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TypeAlias

from tilewright.base import InputError, free_name
from tilewright.workload.graph import DataMovement, Graph, MacNode, Node, VectorOperator
from tilewright.workload.links import (
    AxisLink,
    Digit,
    Edges,
    Key,
    Kind,
    Operand,
    Result,
    Shape,
    View,
    composed,
    extents,
    operand_shape,
    operand_view,
    output_shape,
    result_view,
    same,
)

_Seen: TypeAlias = tuple[View | None, Mapping[Key, int], Shape]
"""Axes of a node seen from the dimensions of a reader, the sizes of these, and of the axes."""


@dataclass(frozen=True)
class Read:
    """One reading of a tensor: by a node, as one of its operands.

    ``operand`` is the name of the operator's tensor where the node multiplies and accumulates (``I``, ``W``); of other
    nodes, and of what is read besides (a residual, for one), its place: ``0``, ``1`` and so on. ``view`` is the tensor
    seen from the axes of the operator's tensor, or from those that another node runs over; None where that is not
    affine, or not known.
    """

    node: str
    operand: str
    view: View | None = None


@dataclass(frozen=True)
class NetworkTensor:
    """A tensor of a network."""

    name: str
    """Unique in the network: of the one result of a node the node's; of weights such as ``conv1.W``."""
    shape: Shape | None
    """With the batch; None where it is not known."""
    kind: Kind
    """``weights`` are known before the network runs, a ``state`` is kept from pass to pass (or from step to step), an
    ``input`` is given by who runs it, an ``activation`` is made by a node."""
    producer: str
    """Name of the node that makes it; empty where none does."""
    reads: tuple[Read, ...]
    """Who reads it, in order of execution."""
    word_bits: float | None
    """None where the machine decides."""
    storage: str
    """Name of the tensor whose bytes it shares, as views do and what is written in place; its own where it has its
    own."""
    is_output: bool
    """Whether it leaves the network."""

    @property
    def words(self) -> int:
        """Words of the tensor; an `InputError` where its shape is not known."""
        if self.shape is None:
            raise InputError(f"{self.name}.shape", "must be known", None, "Bind the sizes that it depends on")
        return prod(self.shape)


@dataclass(frozen=True)
class TensorLink:
    """How what a node reads is what another one has made."""

    tensors: tuple[str, ...]
    """The tensors on the way, that of the producer first: more than one where words only changed their places."""
    axes: Mapping[Key, AxisLink] | None
    """For each dimension of the producer's output its value, as a sum of the reader's dimensions; None where that is
    not affine, or not known. Of a node that is no operator the dimensions are places, from 0 on."""


@dataclass(frozen=True)
class TensorGraph:
    """The tensors of a network in order: each before those that nodes make of it, and a node's operands together.

    ``edges`` are those of its nodes, by the names of the tensors.
    """

    graph: Graph
    tensors: Mapping[str, NetworkTensor]
    edges: Mapping[str, Edges]

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.graph.name

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.graph.nodes}

    def made_by(self, node: str) -> tuple[NetworkTensor, ...]:
        """Return the tensors that a node makes, in its order."""
        return tuple(self.tensors[result.name] for result in self.edges[node].makes)

    def read_by(self, node: str) -> tuple[tuple[str, NetworkTensor], ...]:
        """Return the operands of a node with their tensors, in the node's order; one tensor may be several."""
        return tuple((operand.name, self.tensors[operand.tensor]) for operand in self.edges[node].reads)

    def links(self, producer: str, reader: str, operand: str) -> tuple[TensorLink, ...]:
        """Return how an operand of a node is what another node makes, through whatever only moves words between them.

        There are several where words come by several ways, as when both halves of a tensor change places.

        Examples
        --------
        >>> from tilewright.workload import zoo
        >>> (link,) = tensor_graph(zoo.load("resnet18")).links("maxpool", "layer1.0.conv1", "I")
        >>> link.axes[2].digits, link.axes[2].offset
        ((Digit(axis='P', stride=1, divisor=1, extent=56), Digit(axis='R', stride=1, divisor=1, extent=3)), -1)
        """
        node = self.nodes[reader]
        found = list[TensorLink]()
        for read in self.edges[reader].reads:
            if read.name == operand:
                seen, sizes, middle = _from_dimensions(node, operand, self.edges[reader].space)
                found += self._through(producer, read, (seen, sizes, middle), ())
        return tuple(found)

    def _through(self, producer: str, read: Operand, seen: _Seen, path: tuple[str, ...]) -> Iterator[TensorLink]:
        """Yield the links to a producer of an operand of a node whose space is ``seen``."""
        first, sizes, middle = seen
        tensor = self.tensors[read.tensor]
        maker, path = tensor.producer, (tensor.name, *path)
        if not maker or tensor.shape is None:
            return
        view = composed(first, read.view, sizes, middle, tensor.shape)
        made = next(one for one in self.edges[maker].makes if one.name == tensor.name)
        node, space = self.nodes[maker], self.edges[maker].space
        around = extents(node.operator, node.operator.output) if isinstance(node, MacNode) else (
            space or tensor.shape)  # a lookup in a table runs over what it makes
        view = composed(view, made.view, sizes, tensor.shape, around[:len(made.view or ())])
        if maker == producer:
            yield TensorLink(path, None if view is None else _to_dimensions(node, view))
        elif isinstance(node, DataMovement):
            for inner in self.edges[maker].reads:
                yield from self._through(producer, inner, (view, sizes, space), path)


def _from_dimensions(node: Node, operand: str, space: Shape) -> _Seen:
    """Return the axes of an operand seen from the dimensions of its node."""
    if isinstance(node, MacNode):
        sizes = node.operator.sizes
        tensor = next((one for one in node.operator.operands if one.name == operand), None)
        if tensor is None:
            return None, {}, ()
        seen = tuple(AxisLink(tuple(Digit(name, by, extent=sizes[name]) for name, by in axis.terms))
                     for axis in tensor.axes)
        return seen, {name: size for name, size in sizes.items()}, extents(node.operator, tensor)
    return same(space), dict(enumerate(space)), space


def _to_dimensions(node: Node, view: View) -> dict[Key, AxisLink]:
    """Return what the dimensions of a node are from the axes of its output; not those that slide together."""
    if not isinstance(node, MacNode):
        return dict(enumerate(view))
    axes = (axis.terms for axis in node.operator.output.axes)
    return {terms[0][0]: link for terms, link in zip(axes, view, strict=True) if len(terms) == 1}


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
    known = dict(known_edges(graph))
    for node, edges in zip(graph.nodes, known.values(), strict=True):
        for operand in edges.reads:
            if operand.tensor not in drafts:
                operand = _left_out(node, operand)  # noqa: PLW2901
                drafts[operand.tensor] = _Draft(_free(_named(node, operand), taken), node, operand)
            drafts[operand.tensor].reads.append(Read(node.name, operand.name, operand.view))
        for index, result in enumerate(edges.makes):
            state = result.name.endswith(".state") and f"{node.name}.state"
            wanted = node.name if index == 0 else state or f"{node.name}.{index}"
            drafts[result.name] = _Draft(_free(wanted, taken), node, result)
    renamed = {node: replace(
        edges, reads=tuple(replace(one, tensor=drafts[one.tensor].name) for one in edges.reads),
        makes=tuple(replace(one, name=drafts[one.name].name) for one in edges.makes)) for node, edges in known.items()}
    return TensorGraph(graph, {draft.name: draft.tensor(drafts) for draft in drafts.values()}, renamed)


def _left_out(node: Node, operand: Operand) -> Operand:
    """Return an operand that no node makes; of a network's part, with the shape that its operator gives it."""
    if operand.shape is not None or not isinstance(node, MacNode):
        return operand
    tensor = next((one for one in node.operator.operands if one.name == operand.name), None)
    if tensor is None:
        return operand
    shape = operand_shape(node.operator, tensor)
    return replace(operand, shape=shape, view=operand_view(node.operator, tensor, shape))


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
        bits = getattr(self.node.operator.output if isinstance(self.node, MacNode) else self.node, "word_bits", None)
        return NetworkTensor(self.name, shape, "activation", self.node.name, reads, bits, holder.name, leaves)


def known_edges(graph: Graph) -> Iterator[tuple[str, Edges]]:
    """Give every node's name with its edges; those that nobody knows as the nodes that it reads suggest."""
    made: dict[str, Result] = {}
    for node in graph.nodes:
        edges = node.edges or _suggested(node, made)
        if edges.makes:
            made[node.name] = edges.makes[0]
        yield node.name, edges


def _suggested(node: Node, made: Mapping[str, Result]) -> Edges:
    before = [made[name] for name in node.inputs if name in made]
    reads = []
    if isinstance(node, MacNode):
        operator = node.operator
        computed = dict(operator.attributes).get("weights") in ("activations", "cache")
        for tensor in operator.operands:
            if before and (tensor.role == "inputs" or computed):
                shape = before[0].shape if node.count == 1 else None
                reads.append(Operand(before.pop(0).name, tensor.name,
                                     view=None if shape is None else operand_view(operator, tensor, shape)))
            else:
                kind: Kind = "input" if tensor.role == "inputs" or computed else "weights"
                shape = operand_shape(operator, tensor)
                reads.append(Operand(f"{node.name}.{tensor.name}", tensor.name, shape, kind,
                                     operand_view(operator, tensor, shape)))
    reads += [Operand(one.name, str(index)) for index, one in enumerate(before)]
    shape, seen = result_shape(node), None
    if isinstance(node, MacNode) and node.count == 1 and shape is not None:
        seen = result_view(node.operator, shape)
    view = isinstance(node, DataMovement) and not node.read_words and not node.written_words and len(before) == 1
    return Edges(tuple(reads), (Result(node.name, shape, before[0].name if view else "", view=seen),))


def result_shape(node: Node) -> Shape | None:
    """Return the shape of a node's result as far as the node alone tells it."""
    if isinstance(node, MacNode):
        shape = output_shape(node.operator)
        return shape if node.count == 1 else (node.count, *shape)
    words = node.written_words * node.count if isinstance(node, VectorOperator | DataMovement) else 0
    return (words,) if words else None


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
