"""Fused groups of a network: its operators by name, linked as its tensors are."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypeAlias

from tilewright.base import InputError
from tilewright.mapping.fused import FusedGroup, FusedLink
from tilewright.workload import (
    Axis,
    AxisLink,
    DataMovement,
    Digit,
    Graph,
    MacNode,
    Operator,
    Tensor,
    TensorGraph,
    VectorOperator,
    tensor_graph,
    vector_kind,
)


def fused_group(graph: Graph | TensorGraph, names: Collection[str], folds: Collection[str] = ()) -> FusedGroup:
    """Return operators of a network as a group.

    Moves of words between them (reshapes, turns, concatenations) are ways to look at what is held: they are named
    nowhere and take nothing. Nor need vector operators be named that read one tensor alone, and are of kinds that the
    machine ``folds`` into the operator before. Steps of a recurrence are no group.

    Raises an `InputError` if an operator is unknown, runs several times, or moves words alone, or it is not known which
    words of another one it needs.

    Examples
    --------
    >>> from tilewright.workload import zoo
    >>> group = fused_group(zoo.load("resnet18"), ["layer1.0.conv1", "layer1.0.relu1", "layer1.0.conv2"])
    >>> [(link.producer, link.reader, link.operand) for link in group.links]
    [('layer1.0.conv1', 'layer1.0.relu1', '0'), ('layer1.0.relu1', 'layer1.0.conv2', 'I')]
    """
    tensors = graph if isinstance(graph, TensorGraph) else tensor_graph(graph)
    order = {node.name: at for at, node in enumerate(tensors.graph.nodes)}
    for name in names:
        if name not in order:
            near = get_close_matches(name, order, 3)
            raise InputError(f"group.{name}", f"must be an operator of {tensors.name}", name,
                             f"Did you mean {', '.join(near)}?" if near else f"For example {', '.join([*order][:3])}")
    known = _Named(tensors, frozenset(names), frozenset(folds))
    operators = tuple(_operator(tensors, name) for name in sorted(names, key=order.__getitem__))
    links = tuple(link for reader in operators for operand in reader.operands for producer in operators
                  if producer is not reader for link in known.links(producer.name, reader.name, operand.name))
    return FusedGroup(operators, links, tuple(operator.name for operator in operators if any(
        known.leaves(made.name) for made in tensors.made_by(operator.name))))


Axes: TypeAlias = Mapping[int | str, AxisLink]
"""Of dimensions of a producer, or places, their coordinates from those of a reader."""


@dataclass(frozen=True)
class _Named:
    """The tensors of a network, the operators of a group, and the kinds that are folded into those before."""

    tensors: TensorGraph
    names: frozenset[str]
    folds: frozenset[str]

    def folded(self, name: str) -> bool:
        """Whether a node outside the group is done on the way by who makes what it reads."""
        node = self.tensors.nodes[name]
        return (name not in self.names and isinstance(node, VectorOperator) and vector_kind(node) in self.folds
                and len(self.tensors.edges[name].reads) == 1)

    def leaves(self, name: str) -> bool:
        """Whether a tensor is read outside the group, be it with its words in other places, or leaves the network."""
        tensor = self.tensors.tensors[name]
        return tensor.is_output or any(
            read.node not in self.names
            and (not (isinstance(self.tensors.nodes[read.node], DataMovement) or self.folded(read.node))
                 or any(self.leaves(made.name) for made in self.tensors.made_by(read.node)))
            for read in tensor.reads)

    def links(self, producer: str, reader: str, operand: str) -> list[FusedLink]:
        """Return the links from one operator to another, through what is folded between them."""
        found = []
        for axes in self._axes(producer, reader, operand):
            if axes is None:
                raise InputError(f"{self.tensors.name}.{reader}.{operand}", f"must be words of {producer} in known "
                                 "places", "places that no sum gives", "Leave one of them out of the group")
            found.append(FusedLink(producer, reader, operand, tuple(
                (_dimension(key), AxisLink(tuple(replace(digit, axis=_dimension(digit.axis)) for digit in axis.digits),
                                           axis.offset)) for key, axis in axes.items())))
        return found

    def _axes(self, producer: str, reader: str, operand: str) -> list[Axes | None]:
        found = [link.axes for link in self.tensors.links(producer, reader, operand)]
        for made in self.tensors.made_by(producer):
            for read in made.reads if len(made.reads) == 1 else ():
                if self.folded(read.node) and read.node != reader:
                    (link,) = self.tensors.links(producer, read.node, read.operand)
                    space = self.tensors.edges[read.node].space
                    found += [_composed(link.axes, inner, space) for inner in self._axes(read.node, reader, operand)]
        return found


def _composed(outer: Axes | None, inner: Axes | None, space: tuple[int, ...]) -> Axes | None:
    """Return coordinates of a producer from those in what is between, of ``space``, and these from a reader."""
    if outer is None or inner is None:
        return None
    found = {}
    for name, axis in outer.items():
        digits, offset = list[Digit](), axis.offset
        for digit in axis.digits:
            through = inner.get(digit.axis)
            if through is None:  # along a window, of which a reader asks for more than one word
                return None
            if digit.divisor > 1 or digit.extent < space[int(digit.axis)]:
                if through.offset or len(through.digits) != 1 or through.digits[0].stride != 1 or (
                        through.digits[0].divisor != 1):
                    return None
                digits.append(replace(digit, axis=through.digits[0].axis))
                continue
            digits += [replace(each, stride=each.stride * digit.stride) for each in through.digits]
            offset += digit.stride * through.offset
        found[name] = AxisLink(tuple(digits), offset)
    return found


def _operator(tensors: TensorGraph, name: str) -> Operator:
    node, path = tensors.nodes[name], f"{tensors.name}.{name}"
    if not isinstance(node, MacNode | VectorOperator) or node.count > 1:
        raise InputError(path, "must be an operator that runs once, to be fused", node.kind,
                         "Name the operators around it; words only change their places in it")
    if isinstance(node, MacNode):
        return node.operator
    space = tensors.edges[name].space
    made = tensors.made_by(name)[0]
    if not space or made.shape is None:
        raise InputError(path, "must say which words it makes of which, to be fused", node.kind)
    axes = tuple(Axis(((_dimension(at), 1),)) for at in range(len(made.shape)))
    result = Tensor("O", "outputs", axes, made.word_bits)
    operands = []
    for read in tensors.edges[name].reads:
        if read.view is None:
            raise InputError(f"{path}.{read.name}", "must say which words it needs for which, to be fused", node.kind)
        operands.append(Tensor(read.name, "inputs", tuple(_axis(axis, path) for axis in read.view if axis.digits),
                               tensors.tensors[read.tensor].word_bits))
    return Operator(name, vector_kind(node), tuple((_dimension(at), size) for at, size in enumerate(space)),
                    (*operands, result), (("operations", node.operations),))


def _axis(axis: AxisLink, path: str) -> Axis:
    if any(digit.divisor > 1 or digit.stride < 1 for digit in axis.digits) or len(axis.digits) > 2:
        raise InputError(path, "must have operands whose axes are sums of two of its own at most, to be fused")
    return Axis(tuple((_dimension(digit.axis), digit.stride) for digit in axis.digits))


def _dimension(key: int | str) -> str:
    """Return what a dimension is called: of a vector operator by its place."""
    return f"X{key}" if isinstance(key, int) else key
