"""What vector work costs: operators that are no multiply-accumulate loops, on the vector unit of the machine.

Every layer of a network is mapped alone: it reads its operands from the outermost memory that keeps them, their home,
and leaves its results there. Vector work finds its tensors there, and leaves its own there, whatever their size. The
words pass every memory between home and the unit that can keep inputs (or outputs), each at its bandwidth, while the
lanes work; so an operator takes as long as the slowest of all these, and there is no choice in it: its cost is its own
lower bound.

What the machine folds is done on the way behind the operator that makes its input, where nothing else reads that: it
brings in its other operands alone. Behind a layer its operations take no time; behind vector work they take the lanes.
"""

from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.hardware import Columns, Floats, HardwareBatch, own_columns
from tilewright.hardware import ACCESSES, LEAKAGE, RATE, Accelerator, Memory, VectorUnit, exact_rate
from tilewright.workload import DataMovement, Graph, MacNode, VectorOperator, vector_kind

UNIT = "vector unit"
"""What the unit is called among the components that take energy, and where its lanes set the pace."""
VectorNode: TypeAlias = VectorOperator | DataMovement
Counts: TypeAlias = NDArray[np.int64]
Moved: TypeAlias = Dict[str, Any]
"""Bits that a memory moves by kind of access: one figure each, or many."""


@dataclass(frozen=True)
class VectorWork:
    """An operator that is no multiply-accumulate loops, and what one of its ``node.count`` runs takes."""

    node: VectorNode
    kind: str
    folded: str
    """The operator behind which it is done on the way; empty where it runs by itself."""
    latency_cycles: int
    """Of it and of all that is folded into it; 0 where it is folded into vector work."""
    energy_by_component_pj: dict[str, float]
    bottleneck: str
    """The ``vector unit`` or the memory that sets the cycles; empty where there are none."""
    traffic_bytes: float = 0.0
    """To and from the outermost memory of the machine; 0 where it is folded into vector work."""

    @property
    def energy_pj(self) -> float:
        """Energy of one run."""
        return sum(self.energy_by_component_pj.values())


@dataclass(frozen=True)
class VectorShare:
    """What the vector work of a layer takes, all runs of it: cycles, picojoules, bytes of the outermost memory."""

    latency_cycles: int = 0
    energy_pj: float = 0.0
    traffic_bytes: float = 0.0


@dataclass
class _Pass:
    """What is done in one go: an operator and what is folded into it, or one that is folded into a layer.

    Or many of them, whose words are arrays (p, 1) then, and their operations of one kind.
    """

    reads: Any
    writes: Any
    operations: list[tuple[str, Any]] = field(default_factory=list)
    lanes: Any = None
    """The cycles of the lanes, where they are known."""


def vector_work(graph: Graph, accelerator: Accelerator) -> tuple[VectorWork, ...]:
    """Return what each operator of a network takes that is no multiply-accumulate loops, in their order.

    What moves no words (a view) is left out. Words are as wide as the node says, else as inputs of the machine.

    Examples
    --------
    >>> from tilewright.hardware import preset
    >>> from tilewright.workload import zoo
    >>> work = vector_work(zoo.load("vgg16"), preset("edge-s2"))
    >>> [(one.kind, one.folded, one.latency_cycles) for one in work[:3]]
    [('relu', 'conv1_1', 0), ('relu', 'conv1_2', 0), ('max_pool', '', 229376)]
    """
    folds = _folds(graph, accelerator.vector_unit)
    passes, rows, found = _passes(graph, folds), own_columns(accelerator), []
    for node in _nodes(graph):
        whole = passes.get(node.name, _Pass(0, 0))
        own, bits = getattr(node, "operations", 0), _bits(node, accelerator)
        cycles = _cycles(whole, bits, rows)
        slowest = max(cycles, key=cycles.__getitem__)
        outer = sum(sum(moved.values()) for memory, moved in _moved(whole, bits, accelerator)
                    if memory == accelerator.memories[0])
        found.append(VectorWork(
            node, vector_kind(node), folds.get(node.name, ("", ""))[0], cycles[slowest],
            _energy(whole, own, bits, cycles[slowest], rows), slowest if cycles[slowest] else "", outer / 8))
    return tuple(found)


@dataclass(frozen=True, repr=False)
class VectorModel:
    """What all vector work of a network takes on machines of one structure."""

    graph: Graph
    accelerator: Accelerator

    @cached_property
    def _parts(self) -> tuple[_Pass, Counts, Counts, list[int]]:
        """Passes that differ, operations and bits of a word of each (p, 1), and how often they are done."""
        machine, rows = self.accelerator, own_columns(self.accelerator)
        stated = machine.vector is not None
        passes, often = _passes(self.graph, _folds(self.graph, machine.vector_unit)), Counter[tuple[int, ...]]()
        for node in _nodes(self.graph):
            whole, own = passes.get(node.name, _Pass(0, 0)), getattr(node, "operations", 0)
            lanes = _lanes(whole, rows) if stated else sum(count for _, count in whole.operations)
            often[whole.reads, whole.writes, lanes, own, _bits(node, machine)] += node.count
        table = np.array([*often], dtype=np.int64).reshape(-1, 5, 1)
        reads, writes, lanes, own, bits = (table[:, at] for at in range(5))
        whole = _Pass(reads, writes, lanes=lanes) if stated else _Pass(reads, writes, [("", lanes)])
        return whole, own, bits, [*often.values()]

    def sums(self, hardware: HardwareBatch) -> tuple[Floats, Floats]:
        """Return cycles and picojoules ``(b)`` on each row, as `vector_work` tells them of each machine."""
        rows = hardware.on(self.accelerator)
        latency, energy = np.zeros((2, max(1, len(hardware))))
        whole, own, bits, often = self._parts
        cycles: Any = 0
        for part in _cycles(whole, bits, rows).values():
            cycles = np.maximum(cycles, part)
        spent: Any = sum(_energy(whole, own, bits, cycles, rows).values())
        for count, busy, picojoules in zip(often, cycles, spent, strict=True):
            latency += count * busy
            energy += count * picojoules
        return latency, energy


def vector_shares(graph: Graph, accelerator: Accelerator) -> dict[str, VectorShare]:
    """Return by layer what the vector work takes that belongs to it; nothing of layers that have none.

    It belongs to the last layer whose results it reads, be it through other nodes; where it reads none, to the first
    layer that reads it; else to the first of the network. Each belongs to one layer, so that the shares of a network
    that has layers are all of its vector work.

    Examples
    --------
    >>> from tilewright.hardware import preset
    >>> from tilewright.workload import zoo
    >>> shares = vector_shares(zoo.load("vgg16"), preset("edge-s2"))
    >>> shares["conv1_1"].latency_cycles, shares["conv1_2"].latency_cycles  # ReLUs are folded, a pooling is not
    (0, 229376)
    """
    owners, found = _owners(graph), dict[str, VectorShare]()
    for one in vector_work(graph, accelerator):
        layer, count = owners[one.node.name], one.node.count
        if layer:
            known = found.get(layer, VectorShare())
            found[layer] = VectorShare(known.latency_cycles + count * one.latency_cycles,
                                       known.energy_pj + count * one.energy_pj,
                                       known.traffic_bytes + count * one.traffic_bytes)
    return found


def _owners(graph: Graph) -> dict[str, str]:
    """Return the layer that each node belongs to, by the rule of `vector_shares`; nothing where there are no layers."""
    place = {node.name: index for index, node in enumerate(graph.nodes)}
    found = {node.name: node.name for node in graph.mac_nodes}
    for node in graph.nodes:
        before = [found[name] for name in node.inputs if name in found]
        if before and node.name not in found:
            found[node.name] = max(before, key=place.__getitem__)
    fed = set(found)
    for node in reversed(graph.nodes):
        for name in node.inputs if node.name in found else ():
            if name not in fed:
                found[name] = min(found.get(name, found[node.name]), found[node.name], key=place.__getitem__)
    first = graph.mac_nodes[0].name if graph.mac_nodes else ""
    return {node.name: found.get(node.name, first) for node in graph.nodes}


def _nodes(graph: Graph) -> list[VectorNode]:
    return [node for node in graph.nodes if isinstance(node, VectorOperator | DataMovement)
            and vector_kind(node) != "view"]


def _made(node: MacNode | VectorNode) -> int:
    """Return the words of the result of one run."""
    if not isinstance(node, MacNode):
        return node.written_words
    return sum(tensor.words(node.operator.sizes) for tensor in node.operator.tensors if tensor.role == "outputs")


def _folds(graph: Graph, unit: VectorUnit) -> dict[str, tuple[str, str]]:
    """Return of each folded operator the one behind which it is done, and the first one of that pass."""
    views = {node.name: node.inputs for node in graph.nodes
             if isinstance(node, DataMovement) and vector_kind(node) == "view"}

    def makers(names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            yield from makers(views[name]) if name in views else (name,)

    known = {node.name: node for node in graph.nodes}
    sources = {node.name: list(makers(node.inputs)) for node in graph.nodes if node.name not in views}
    readers = Counter(name for names in sources.values() for name in set(names))
    found: dict[str, tuple[str, str]] = {}
    place = {node.name: index for index, node in enumerate(graph.nodes)}
    for node in _nodes(graph):
        if vector_kind(node) not in unit.folds:
            continue
        able = [name for name in sources[node.name] if readers[name] == 1
                and isinstance(maker := known[name], MacNode | VectorOperator | DataMovement)
                and maker.count == node.count and not (maker.edges and any(one.leaves for one in maker.edges.makes))]
        if able:
            behind = max(able, key=place.__getitem__)
            found[node.name] = behind, found[behind][1] if behind in found else behind
    return found


def _passes(graph: Graph, folds: dict[str, tuple[str, str]]) -> dict[str, _Pass]:
    """Return what is done in one go by its first operator or, behind a layer, by each that is folded into it."""
    known = {node.name: node for node in graph.nodes}
    found: dict[str, _Pass] = {}
    for node in _nodes(graph):
        work = (vector_kind(node), node.operations if isinstance(node, VectorOperator) else 0)
        if node.name not in folds:
            found[node.name] = _Pass(node.read_words, node.written_words, [work])
            continue
        behind, first = folds[node.name]
        maker = known[behind]
        assert isinstance(maker, MacNode | VectorOperator | DataMovement)
        others = max(0, node.read_words - _made(maker))
        if isinstance(known[first], MacNode):
            found[node.name] = _Pass(others, max(0, node.written_words - _made(maker)))
        else:
            whole = found[first]
            whole.reads, whole.writes = whole.reads + others, node.written_words
            whole.operations.append(work)
    return found


def way(accelerator: Accelerator, role: str, first: int = 0) -> list[Memory]:
    """Return the memories, from the ``first`` on, that words of a role pass on their way to the unit."""
    memories, unit = accelerator.memories, accelerator.vector_unit.memory
    end = [memory.name for memory in memories].index(unit or memories[0].name)
    return [memory for memory in memories[first:end + 1] if memory.name == unit or memory.can_keep(role, role)]


def _moved(whole: _Pass, bits: Any, accelerator: Accelerator) -> Iterator[tuple[Memory, Moved]]:
    """Yield each memory with the bits that it moves: read, filled, updated and drained."""
    ways = {role: [memory.name for memory in way(accelerator, role)]
            for role in ("inputs", "outputs")}
    for memory in accelerator.memories:
        moved = dict.fromkeys(ACCESSES["shared"], 0)
        for role, count, (inner, outer) in (("inputs", whole.reads, ("read", "fill")),
                                            ("outputs", whole.writes, ("update", "drain"))):
            if memory.name in ways[role]:
                moved[inner] = count * bits
                moved[outer] = moved[inner] if memory.name != ways[role][0] else 0
        if any(np.any(bits_moved) for bits_moved in moved.values()):
            yield memory, moved


def _cycles(whole: _Pass, bits: Any, rows: Columns) -> dict[str, Any]:
    """Return the cycles of one run by what they are taken by, of one machine or ``(b)``."""
    found: dict[str, Any] = {UNIT: _lanes(whole, rows)}
    for memory, moved in _moved(whole, bits, rows.machine):
        found[memory.name] = port_cycles(memory, moved, rows)
    return found


def port_cycles(memory: Memory, moved: Moved, rows: Columns) -> Any:
    """Return the cycles that the slowest port of a memory takes."""
    found: Any = 0
    for port, kinds in ACCESSES.items():
        key = memory.name, RATE.format(port)
        if key in rows.numbers:
            words, cycles = (_whole(part) for part in rows.exact(key))
            each = memory.word_bits * words * _whole(rows.machine.instances(memory.name, rows.numbers))
            found = _larger(found, -(-sum(moved[kind] for kind in kinds) * cycles // each))
    return found


def accesses_pj(memory: Memory, moved: Moved, rows: Columns) -> Any:
    """Return the picojoules of what a memory moves, in whole blocks."""
    block = memory.block_words * memory.word_bits
    return sum(-(-count // block) * memory.block_words * rows.numbers[memory.name, f"{kind}_energy_pj_per_word"]
               for kind, count in moved.items())


def _lanes(whole: _Pass, rows: Columns) -> Any:
    """Return the cycles that the lanes take for a pass."""
    machine, unit = rows.machine, rows.machine.vector_unit
    if whole.lanes is not None:
        return whole.lanes
    if machine.vector is not None:
        return ceil(sum((count / exact_rate(unit.rate(kind)) for kind, count in whole.operations), Fraction(0)))
    elements: Any = 1
    for array in machine.fanouts:
        elements = elements * rows.numbers[array.name, "instances"]
    lanes = _whole(np.sqrt(elements)) if isinstance(elements, np.ndarray) else int(unit.lanes)
    return -(-sum(count for _, count in whole.operations) // lanes)


def _whole(figure: Any) -> Any:
    """Return a whole number as one; of many, those."""
    return figure.astype(np.int64) if isinstance(figure, np.ndarray) else int(figure)


def _larger(one: Any, other: Any) -> Any:
    return max(one, other) if isinstance(one, int) and isinstance(other, int) else np.maximum(one, other)


def _energy(whole: _Pass, operations: Any, bits: Any, cycles: Any, rows: Columns) -> dict[str, Any]:
    """Return picojoules of one run by memory, and of the unit: ``operations`` of its own, whether folded or not."""
    machine, numbers, found = rows.machine, rows.numbers, dict[str, Any]()
    for memory, moved in _moved(whole, bits, machine):
        found[memory.name] = accesses_pj(memory, moved, rows)
    stated = machine.vector.energy_pj_per_operation if machine.vector is not None else None
    found[UNIT] = operations * (numbers[machine.compute.name, "energy_pj_per_mac"] if stated is None else stated)
    if machine.leakage_mw:
        found["leakage"] = numbers[LEAKAGE] * cycles
    return found


def _bits(node: VectorNode, accelerator: Accelerator) -> int:
    return node.word_bits or dict(accelerator.word_bits)["inputs"]
