"""Fused groups of a network: its operators by name, linked as its tensors are."""

from dataclasses import replace
from difflib import get_close_matches

from tilewright.base import InputError
from tilewright.mapping.fused import FusedGroup, FusedLink
from tilewright.workload import (
    Axis,
    AxisLink,
    Graph,
    MacNode,
    Operator,
    Tensor,
    TensorGraph,
    VectorOperator,
    tensor_graph,
    vector_kind,
)


def fused_group(graph: Graph | TensorGraph, names: tuple[str, ...] | list[str]) -> FusedGroup:
    """Return operators of a network as a group.

    Moves of words between them (reshapes, turns, concatenations) are ways to look at what is held: they are named
    nowhere and take nothing. Steps of a recurrence are no group.

    Raises
    ------
    InputError
        If an operator is unknown, runs several times, or moves words alone, or it is not known which words of another
        one it needs.

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
    ordered = sorted(names, key=order.__getitem__)
    operators = tuple(_operator(tensors, name) for name in ordered)
    return FusedGroup(operators, tuple(
        link for reader in operators for operand in reader.operands for producer in operators
        for link in _links(tensors, producer, reader, operand.name)))


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


def _links(tensors: TensorGraph, producer: Operator, reader: Operator, operand: str) -> list[FusedLink]:
    found: list[FusedLink] = []
    if producer.name == reader.name:
        return found
    for link in tensors.links(producer.name, reader.name, operand):
        if link.axes is None:
            raise InputError(f"{tensors.name}.{reader.name}.{operand}", f"must be words of {producer.name} in known "
                             "places", "places that no sum gives", "Leave one of them out of the group")
        found.append(FusedLink(producer.name, reader.name, operand, tuple(
            (_dimension(key), AxisLink(tuple(replace(digit, axis=_dimension(digit.axis)) for digit in axis.digits),
                                       axis.offset)) for key, axis in link.axes.items())))
    return found


def _dimension(key: int | str) -> str:
    """Return what a dimension is called: of a vector operator by its place."""
    return f"X{key}" if isinstance(key, int) else key
