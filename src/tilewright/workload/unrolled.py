"""Recurrences step by step: what runs so many times, one after the other, as so many nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from tilewright.workload.graph import Graph, MacNode, Node, Unmodelled
from tilewright.workload.links import Edges, Operand, Result
from tilewright.workload.tensors import known_edges


def unrolled(graph: Graph) -> Graph:
    """Return a network in which every node runs once: ``cell`` of 50 steps becomes ``cell[0]`` to ``cell[49]``.

    Neighbours that run equally often take turns, as the parts of a recurrent layer do. What a layer keeps from step to
    step (a `NetworkTensor` of the kind ``state``) is read from outside by its first step; the others read what the step
    before has made. All steps read the same weights. What reads all steps reads each as a tensor of its own, of which
    no view is known.

    Examples
    --------
    >>> from tilewright.workload import tensor_graph, zoo
    >>> found = tensor_graph(unrolled(zoo.load("gnmt:source=3,target=2")))
    >>> [read.node for read in found.tensors["encoder2.cell[1].state"].reads]
    ['encoder2.cell[2]']
    """
    steps = _Steps()
    known = dict(known_edges(graph))
    nodes: list[Node] = []
    for count, group in groupby(graph.nodes, key=lambda node: 1 if isinstance(node, Unmodelled) else node.count):
        run = list(group)
        if count > 1:
            for node in run:
                steps.cut(node, known[node.name], count)
            nodes += [steps.copy(node, known[node.name], step) for step in range(count) for node in run]
        else:
            nodes += [replace(node, inputs=steps.nodes(node.inputs), edges=replace(
                known[node.name], reads=steps.operands(known[node.name].reads))) for node in run]
    return replace(graph, nodes=tuple(nodes))


@dataclass
class _Steps:
    """What has been cut so far: the names of the copies of nodes, and the parts of tensors."""

    copies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parts: dict[str, tuple[Result, ...]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)

    def cut(self, node: Node, edges: Edges, count: int) -> None:
        """Name the copies of a node, and the parts of its first result: shares of the first axis that has them."""
        self.copies[node.name] = tuple(f"{node.name}[{step}]" for step in range(count))
        made = edges.makes[0]
        axis = next((at for at, size in enumerate(made.shape or ()) if size % count == 0), None)
        shape = None if made.shape is None or axis is None else (
            *made.shape[:axis], made.shape[axis] // count, *made.shape[axis + 1:])
        self.results[node.name] = made.name
        self.parts[made.name] = tuple(Result(f"{made.name}[{step}]", shape, leaves=made.leaves)
                                      for step in range(count))

    def nodes(self, names: Iterable[str], step: int | None = None, count: int = 0) -> tuple[str, ...]:
        """Return nodes with their copies in their place: that of the same ``step``, or all."""
        found = [self.copies.get(name, (name,)) for name in names]
        return tuple(one for copies in found for one in ([copies[step]] if step is not None and len(copies) == count
                                                         else copies))

    def operands(self, reads: Iterable[Operand], step: int | None = None, count: int = 0) -> tuple[Operand, ...]:
        """Return operands with their parts in their place: that of the same ``step``, or all."""
        found: list[Operand] = []
        for one in reads:
            parts = self.parts.get(one.tensor)
            if parts is None:
                found.append(one)
            else:
                chosen = parts[step:step + 1] if step is not None and len(parts) == count else parts
                found += [Operand(part.name, one.name) for part in chosen]
        return tuple(found)

    def copy(self, node: Node, edges: Edges, step: int) -> Node:
        """Return one step of a node."""
        count, before = len(self.copies[node.name]), []
        reads: list[Operand] = []
        for one in edges.reads:
            keeper = one.tensor.rpartition(".")[0]  # the node that keeps a state names it
            if one.kind == "state" and step and keeper in self.copies:
                last = self.parts[self.results[keeper]][step - 1].name
                reads.append(Operand(f"{last}.state" if one.name == "state" else last, one.name))
                before.append(self.copies[keeper][step - 1])
            else:
                reads += self.operands([one], step, count)
        part = self.parts[edges.makes[0].name][step]
        makes = [part, *(edges.makes[1:] if step == count - 1 else ())]
        if any(one.name == "state" for one in edges.reads):
            makes.append(Result(f"{part.name}.state", part.shape, leaves=False))
        inputs = tuple(dict.fromkeys([*self.nodes(node.inputs, step, count), *before]))
        found = replace(node, inputs=inputs, edges=Edges(tuple(reads), tuple(makes)))
        name = self.copies[node.name][step]
        if isinstance(found, MacNode):
            told = dict(found.operator.attributes)
            told |= {"weights": "tied"} if step and "weights" not in told else {}
            return replace(found, count=1, operator=replace(found.operator, name=name, attributes=tuple(told.items())))
        return replace(found, name=name) if isinstance(found, Unmodelled) else replace(found, name=name, count=1)
