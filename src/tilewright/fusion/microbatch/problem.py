"""What a micro-batch strategy is judged by: a chain, a batch, a memory and a machine (Kao et al. 2022, section 3).

A network is a chain of entries there, which says which of them each reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, unknown_name
from tilewright.fusion.microbatch.records import ByteRates, GroupTables
from tilewright.hardware import Accelerator, Memory
from tilewright.workload import DataMovement, Graph, MacNode, Node, Unmodelled

ADDITION = "add"
INPUT = "input"
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FusionObjective = Literal["latency", "energy"]
FUSION_OBJECTIVES: tuple[FusionObjective, ...] = ("latency", "energy")
SYNC = -1
"""Of a strategy: the entry's result goes off chip before anything after it begins."""
MOST_BATCH = 4096
OVER = 1e30
"""What a strategy that does not fit counts as, times how often over it needs the memory."""


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


@dataclass(frozen=True)
class FusedMachine:
    """What a machine is to fused groups."""

    name: str
    elements: int
    """Multiply-accumulates a cycle."""
    offchip_bytes_per_cycle: float
    onchip_bytes_per_cycle: float
    """``offchip_bytes_per_cycle`` and ``onchip_bytes_per_cycle``: of the outermost memory and of the one inside it;
    infinite where it never limits."""
    capacity_bytes: float
    """Of the one inside."""
    clock_mhz: float
    mac_pj: float
    read_pj_per_byte: float
    write_pj_per_byte: float
    onchip_pj_per_byte: float
    """``read_pj_per_byte``, ``write_pj_per_byte`` and ``onchip_pj_per_byte``: of a byte that comes from off chip, goes
    there, or passes the memory inside."""
    leakage_pj_per_cycle: float
    """Of all of it."""
    memories: tuple[str, str] = ("DRAM", "GLB")
    """Names of the one off chip and of the one inside it."""

    @classmethod
    def of(cls, machine: Accelerator) -> "FusedMachine":
        """Return what a machine is to fused groups: its first memory is off chip, the second holds what is staged.

        Raises an `InputError` if there is no second memory of limited capacity outside all arrays.
        """
        outer, *inner = machine.levels
        shared = inner[0] if inner else None
        if not isinstance(outer, Memory) or not isinstance(shared, Memory) or not shared.capacity_bytes:
            raise InputError(f"{machine.name}.levels[1]", "must be a memory of some capacity that all elements share",
                             getattr(shared, "name", None), "For example --arch dnnfuser")
        return cls(machine.name, machine.compute_instances, _rate(outer), _rate(shared), shared.capacity_bytes,
                   machine.frequency_mhz, machine.compute.energy_pj_per_mac,
                   outer.energy.read_pj * 8 / outer.word_bits, outer.energy.update_pj * 8 / outer.word_bits,
                   (shared.energy.read_pj + shared.energy.fill_pj) / 2 * 8 / shared.word_bits,
                   1e3 * machine.leakage_mw / machine.frequency_mhz, (outer.name, shared.name))


def _rate(memory: Memory) -> float:
    """Return bytes a cycle of all ports together, where one limits."""
    ports = memory.bandwidth
    known = [rate for rate in (ports.shared, ports.read, ports.write) if rate is not None]
    return min(known) * memory.word_bits / 8 if known else inf


@dataclass(frozen=True)
class MicroBatchProblem:
    """Find a strategy ``[mB_0 ... mB_N]`` for the input (0) and the ``N`` layers of a network (equation 1).

    ``mB_i`` samples of what entry ``i`` makes are staged on chip at a time; -1 ends a group: the result goes off chip
    before the next group begins. Groups run one after the other. Within one,

    - a group's memory is the sum of its staged micro-batches; weights are apart, and what is not staged streams by;
    - a layer runs for as many samples at a time as the least micro-batch among its own and those that it must not let
      go: results of the group that are still to be read. A residual thus lives until its last reader has passed;
    - weights come once for each of these runs, or once where all weights of the group fit ``weight_bytes`` together;
    - what an earlier group made is read from off chip by each of its readers; what a later one reads is written there;
    - a group takes as long as the longest of multiplications (all elements busy), words off chip, and words on chip,
      which each input, weight and result passes once. Vector work takes no time.

    Micro-batches that do not divide one another count as if they did.

    Raises an `InputError` if the objective is unknown, batch or words are not positive, or the memory holds no sample
    of any result.
    """

    name: str
    entries: tuple[ChainEntry, ...]
    """Of `chain`."""
    machine: FusedMachine
    batch: int
    memory_bytes: float
    """For micro-batches."""
    weight_bytes: float = 0.0
    """Besides, for weights that stay."""
    word_bytes: float = 1.0
    """Of every word."""
    objective: FusionObjective = "latency"

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= MOST_BATCH:
            raise InputError("batch", f"must be from 1 to {MOST_BATCH} samples", self.batch)
        if self.objective not in FUSION_OBJECTIVES:
            raise unknown_name("objective", self.objective, list(FUSION_OBJECTIVES))
        for name in ("word_bytes", "memory_bytes"):
            if not 0 < getattr(self, name) < inf:
                raise InputError(name, "must be positive", getattr(self, name))
        least = self.tiles[1:].min()
        if self.memory_bytes < least:
            raise InputError("memory", "must hold one sample of some layer's result", f"{self.memory_bytes:,.0f} bytes",
                             f"The smallest of {self.name} is {least:,.0f} bytes")

    @classmethod
    def of(cls, graph: Graph, machine: Accelerator, batch: int, memory_bytes: float | None = None,
           **more: Any) -> "MicroBatchProblem":
        """Return the problem of a network on a machine, by default with all of its memory for micro-batches."""
        fused = FusedMachine.of(machine)
        return cls(graph.name, chain(graph), fused, batch,
                   fused.capacity_bytes if memory_bytes is None else memory_bytes, **more)

    @property
    def length(self) -> int:
        """``N + 1``."""
        return len(self.entries)

    @cached_property
    def tiles(self) -> Floats:
        """``(N + 1)``: bytes of one staged sample of each entry."""
        return self.word_bytes * np.array([entry.tile_words for entry in self.entries], dtype=np.float64)

    @cached_property
    def sizes(self) -> Floats:
        """``(N + 1)``: bytes that the whole batch of each entry's result has for its readers."""
        return self.batch * self.word_bytes * np.array([entry.words for entry in self.entries], dtype=np.float64)

    @cached_property
    def weights(self) -> Floats:
        """``(N + 1)``: bytes of each layer's weights."""
        return self.word_bytes * np.array([entry.weight_words for entry in self.entries], dtype=np.float64)

    @cached_property
    def cycles(self) -> Floats:
        """``(N + 1)``: cycles that each layer's multiplications take on all elements."""
        return self.batch / self.machine.elements * np.array([entry.macs for entry in self.entries], dtype=np.float64)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Who reads each entry, in order."""
        return tuple(tuple(q for q, entry in enumerate(self.entries) if p in entry.reads) for p in range(self.length))

    @cached_property
    def tables(self) -> GroupTables:
        """What the kernels read."""
        last = [self.length if entry.leaves else max(readers, default=0)
                for entry, readers in zip(self.entries, self.readers, strict=True)]
        reads = [[(q, p) for p in entry.reads] for q, entry in enumerate(self.entries)]
        held = [[(p, next(r for r in readers if r >= q)) for p, readers in enumerate(self.readers[:q])
                 if readers and readers[-1] >= q] for q in range(self.length)]
        return GroupTables(self.batch, self.tiles, self.sizes, self.weights, self.cycles,
                           np.array(last, dtype=np.int64), *_listed(reads), *_listed(held), float(self.weight_bytes),
                           self.rates)

    @cached_property
    def rates(self) -> ByteRates:
        """What a byte and a cycle take on the machine."""
        machine = self.machine
        return ByteRates(1 / machine.offchip_bytes_per_cycle, 1 / machine.onchip_bytes_per_cycle,
                         float(machine.read_pj_per_byte), float(machine.write_pj_per_byte),
                         float(machine.onchip_pj_per_byte), float(machine.mac_pj * machine.elements),
                         float(machine.leakage_pj_per_cycle))

    @cached_property
    def choices(self) -> Ints:
        """The micro-batches worth choosing, from the largest: the least that comes to each number of runs."""
        return -(-self.batch // self.runs)

    @cached_property
    def runs(self) -> Ints:
        """How often a layer can run, by the micro-batches that there are; the least first."""
        return np.unique(-(-self.batch // np.arange(1, self.batch + 1)))

    @property
    def unfused(self) -> Ints:
        """``(1, N + 1)``: layer by layer."""
        return np.full((1, self.length), SYNC, dtype=np.int64)

    def drawn(self, rng: Generator, count: int) -> Ints:
        """Return ``count`` random strategies: of every entry any micro-batch, or -1."""
        return self.at(rng.random((count, self.length)))

    def at(self, shares: Floats) -> Ints:
        """Return the strategies ``(b, N + 1)`` at shares from 0 to 1 of the batch + 1 choices that each entry has."""
        found = np.minimum(np.clip(shares, 0.0, 1.0) * (self.batch + 1), self.batch).astype(np.int64)
        return np.where(found == 0, SYNC, found)

    def check(self, strategies: Ints) -> Ints:
        """Return strategies as ``(b, N + 1)``.

        Raises an `InputError` if they are of another number of layers, or a micro-batch is neither -1 nor from 1 to the
        batch.
        """
        found = np.atleast_2d(np.asarray(strategies))
        if found.ndim != 2 or found.shape[1] != self.length:
            raise InputError("strategy", f"must have {self.length} micro-batches, those of the input and of the "
                             f"{self.length - 1} layers of {self.name}", found.shape[-1])
        wrong = found[~((found == SYNC) | ((found >= 1) & (found <= self.batch)))]
        if len(wrong) or found.dtype.kind not in "iu":
            raise InputError("strategy", f"must be of -1 and whole numbers from 1 to the batch, {self.batch}",
                             wrong.tolist()[:9] or found.tolist()[:1])
        return np.ascontiguousarray(found, dtype=np.int64)


def _listed(rows: list[list[tuple[int, int]]]) -> tuple[Ints, Ints]:
    """Return where the pairs of each row begin ``(n + 1)``, and all pairs ``(p, 2)``."""
    starts = np.cumsum([0, *map(len, rows)])
    return starts.astype(np.int64), np.array([pair for row in rows for pair in row], dtype=np.int64).reshape(-1, 2)
