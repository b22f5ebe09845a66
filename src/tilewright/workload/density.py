"""Densities that a user gives: of tensors, by name or role, in one operator or a whole network."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.base import InputError
from tilewright.workload.graph import Graph, MacNode
from tilewright.workload.operator import ROLES, Operator, Tensor

Density = float | str
EVEN = "even:"
"""What stands before a density of words that are spread evenly."""
_MOST_EVERY = 2**20
_MEND = "For example 0.5, even:0.5, or 2:4 for two of every four words"


@dataclass(frozen=True)
class Sparse:
    """A density that has been read, and where the words that are not zero lie (see `Tensor`)."""

    density: float
    structure: tuple[int, int] | None = None
    even: bool = False

    def of(self, tensor: Tensor) -> Tensor:
        """Return the tensor with this density."""
        return replace(tensor, density=self.density, structure=self.structure, even=self.even)


def read_density(name: str, given: Density) -> Sparse:
    """Read ``0.5``, ``even:0.5`` or ``2:4``.

    Raises an `InputError` if it is none of them, or not above 0 and at most 1.
    """
    field, structure, even = f"density {name}", None, False
    try:
        if isinstance(given, str) and not given.isascii():  # Python reads digits of every script
            raise ValueError
        if isinstance(given, str) and given.strip().startswith(EVEN):
            even, density = True, float(given.strip().removeprefix(EVEN))
        elif isinstance(given, str) and ":" in given:
            some, every = (int(part) for part in given.split(":"))
            structure, density = (some, every), some / every
        else:
            density = float(given)
    except (TypeError, ValueError, ArithmeticError):
        raise InputError(field, "must be a number above 0 and at most 1, even:NUMBER, or N:M", given, _MEND) from None
    if not 0 < density <= 1 or (structure is not None and structure[0] < 1):
        raise InputError(field, "must be above 0 and at most 1", given, _MEND)
    if structure is not None and structure[1] > _MOST_EVERY:
        raise InputError(field, f"must be N of at most {_MOST_EVERY:,} words", given, _MEND)
    return Sparse(density, structure, even)


def with_densities(operator: Operator, densities: Mapping[str, Density]) -> Operator:
    """Return the operator with these densities of its tensors, by name or by role (a name comes first).

    >>> from tilewright.workload import matmul
    >>> with_densities(matmul("m", m=4, n=4, k=4), {"weights": "2:4"}).tensor("W").density
    0.5

    Raises an `InputError` if a density is out of range.
    """
    read = {name.lower(): read_density(name, given) for name, given in densities.items()}

    def changed(tensor: Tensor) -> Tensor:
        for key in (tensor.name.lower(), tensor.role):
            if key in read:
                return read[key].of(tensor)
        return tensor

    return replace(operator, tensors=tuple(changed(tensor) for tensor in operator.tensors))


def with_given(operator: Operator, densities: Mapping[str, Density]) -> Operator:
    """Return the operator with these densities, each of which must be of one of its tensors.

    Raises an `InputError` if it has no tensor of some name.
    """
    return graph_with_densities(Graph(operator.name, (MacNode(operator),), "given"), densities).mac_nodes[0].operator


def graph_with_densities(graph: Graph, densities: Mapping[str, Density]) -> Graph:
    """Return the network with these densities in every layer that has such a tensor.

    Raises an `InputError` if no layer has a tensor of some name, or they are not given by name.
    """
    if not isinstance(densities, Mapping):
        raise InputError("density", "must give densities by role or tensor", densities, "For example {'weights': 0.5}")
    if not densities:
        return graph
    known = {name.lower() for node in graph.mac_nodes for tensor in node.operator.tensors
             for name in (tensor.name, tensor.role)}
    for name in densities:
        if name.lower() not in known:
            names = [*ROLES, *sorted({t.name for node in graph.mac_nodes for t in node.operator.tensors})]
            raise InputError(f"density {name}", f"must name a role or a tensor: {', '.join(names)}", name)
    nodes = tuple(replace(node, operator=with_densities(node.operator, densities)) if isinstance(node, MacNode)
                  else node for node in graph.nodes)
    told = ", ".join(f"{name} {given}" for name, given in densities.items())
    return replace(graph, nodes=nodes, notes=(*graph.notes, f"densities: {told}"))
