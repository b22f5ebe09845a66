"""A network as the micro-batch space sees it: a chain of entries, and which of them each reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tilewright.base import InputError
from tilewright.workload import DataMovement, Graph, MacNode, Node, Unmodelled

ADDITION = "add"
INPUT = "input"


@dataclass(frozen=True)
class ChainEntry:
    """One place of a strategy: the network's input (the first), or a layer; all figures are of one sample."""

    name: str
    """Of the layer that multiplies and accumulates."""
    macs: int
    weight_words: int
    """``macs`` and ``weight_words``: of the layer, with those of a projection that is added to its result."""
    tile_words: int
    """Of what the layer makes: what a micro-batch of it takes on chip."""
    words: int
    """Of what others read of it: after pooling, additions and the like, which are done on the way out."""
    reads: tuple[int, ...]
    """Places of the entries that it reads, each once."""
    leaves: bool
    """Whether the result leaves the network."""
    shape: tuple[int, ...] = (0, 0, 0, 0, 0, 0)
    """``(K, C, Y, X, R, S)`` of the layer (Kao et al. 2022, equation 2); zeros for the input."""


def chain(graph: Graph) -> tuple[ChainEntry, ...]:
    """Return the network's input and its layers, in order of execution.

    Layers are the nodes that multiply and accumulate. Vector work and copies belong to the last layer that they read.
    A projection (a layer whose result is added to that of the layer before it, as on the shortcuts of ResNets) belongs
    to that layer: so ResNet-18 has 18 layers. What copies read counts as read by those who read the copy.

    Raises an `InputError` if a layer is of an unknown kind, or none multiplies and accumulates.
    """
    unknown = next((node for node in graph.nodes if isinstance(node, Unmodelled)), None)
    if unknown is not None:
        raise InputError(f"{graph.name}.{unknown.name}", "must be a layer of a known kind", unknown.kind,
                         unknown.reason)
    if not graph.mac_nodes:
        raise InputError(graph.name, "must have layers that multiply and accumulate", "none")
    layers = _Layers(graph)
    for node in graph.nodes:
        layers.take(node)
    return layers.entries()


class _Layers:
    """Collects nodes into layers, numbered from 1; 0 is the network's input."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)
        self.nodes: list[list[Node]] = [[]]
        self.layer_of: dict[str, int] = {}
        self.sources: dict[str, frozenset[str]] = {}
        """Which nodes are read where one is: itself, but what a copy reads."""

    def take(self, node: Node) -> None:
        """Give a node to its layer."""
        place = max((self.layer_of[name] for name in node.inputs), default=0)
        if isinstance(node, MacNode):
            if self._is_projection(node):
                place = len(self.nodes) - 1
            else:
                self.nodes.append([])
                place = len(self.nodes) - 1
        self.nodes[place].append(node)
        self.layer_of[node.name] = place
        copies = isinstance(node, DataMovement) and node.inputs
        self.sources[node.name] = self._read(node.inputs) if copies else frozenset({node.name})

    def _read(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self.sources[name] for name in names))

    def _is_projection(self, node: MacNode) -> bool:
        """Whether an addition to the result of the layer before it is all that reads the node's."""
        readers = self.readers.get(node.name, [])
        if len(self.nodes) < 2 or len(readers) != 1 or readers[0].kind != ADDITION:
            return False
        others = set(readers[0].inputs) - {node.name}
        made = {one.name for one in self.nodes[-1]}
        return bool(others) and others <= made and not made & set(node.inputs)

    def entries(self) -> tuple[ChainEntry, ...]:
        """Return the chain."""
        first = next(node for node in self.graph.nodes if isinstance(node, MacNode))
        return tuple(self._entry(place, first) for place in range(len(self.nodes)))

    def _entry(self, place: int, first: MacNode) -> ChainEntry:
        nodes, read = self.nodes[place], set[int]()
        for node in nodes:
            given = self._read(node.inputs)
            read |= {self.layer_of[name] for name in given} - {place}
            if not node.inputs and place:
                read.add(0)
        names = {node.name for node in nodes}
        leaving = [node for node in nodes if self.sources[node.name] & names
                   and any(self.layer_of[one.name] != place for one in self._readers(node))]
        last = [node for node in nodes if not self._readers(node)]
        words = max((_made(node) for node in leaving or last), default=0)
        if not place:
            words = words or _input_words(first)
            return ChainEntry(INPUT, 0, 0, words, words, (), False)
        macs = [node for node in nodes if isinstance(node, MacNode)]
        return ChainEntry(macs[0].name, sum(node.macs for node in macs), sum(map(_weight_words, macs)), _made(macs[0]),
                     words, tuple(sorted(read)), bool(last), _shape(macs[0]))

    def _readers(self, node: Node) -> list[Node]:
        """Return who reads a node's result, through copies too."""
        found: list[Node] = []
        for reader in self.readers.get(node.name, []):
            found += self._readers(reader) or [reader] if isinstance(reader, DataMovement) else [reader]
        return found


def _made(node: Node) -> int:
    if isinstance(node, MacNode):
        return node.count * node.operator.output.words(node.operator.sizes)
    return 0 if isinstance(node, Unmodelled) else node.count * node.written_words


def _weight_words(node: MacNode) -> int:
    operator = node.operator
    computed = dict(operator.attributes).get("weights") in ("activations", "cache")
    return 0 if computed else sum(
        tensor.words(operator.sizes) for tensor in operator.operands if tensor.role == "weights")


def _input_words(node: MacNode) -> int:
    """Return the words of the network's input: what its first layer reads, without the padding."""
    operator = node.operator
    tensor = next(one for one in operator.operands if one.role == "inputs")
    size = dict(operator.attributes).get("in_size")
    if size is None:
        return tensor.words(operator.sizes, box=True)
    plain = [axis for axis in tensor.axes if len(axis.terms) == 1]
    return prod(axis.words(operator.sizes) for axis in plain) * prod(map(int, str(size).split("x")))


def _shape(node: MacNode) -> tuple[int, ...]:
    """Return the sizes ``(K, C, Y, X, R, S)`` of a layer; of what is no convolution with its nearest ones."""
    sizes = node.operator.sizes
    if "P" in sizes or "R" in sizes:
        groups = sizes.get("G", 1)
        return (sizes.get("K", 1) * groups, sizes.get("C", 1) * groups, sizes.get("P", 1), sizes.get("Q", 1),
                sizes.get("R", 1), sizes.get("S", 1))
    return (sizes.get("N", 1), sizes.get("K", 1), sizes.get("M", 1), sizes.get("B", 1), 1, 1)
