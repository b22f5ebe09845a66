"""The operators of a network as fused groups take them, what runs before what, and what runs in no group."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from tilewright.base import InputError
from tilewright.cost import FusedCost, VectorWork, vector_work
from tilewright.hardware import Accelerator
from tilewright.mapping import FusedGroup, fused_group, held_bits, operations_of, tensor_bits
from tilewright.workload import DataMovement, MacNode, TensorGraph, VectorOperator

TreeGoal = Literal["latency", "energy", "edp", "dram"]


@dataclass(frozen=True)
class TreeCost:
    """What a plan, or a part of one, takes: cycles, picojoules, bytes to and from the outermost memory."""

    latency_cycles: int = 0
    energy_pj: float = 0.0
    dram_bytes: float = 0.0

    def __add__(self, other: "TreeCost") -> "TreeCost":
        return TreeCost(self.latency_cycles + other.latency_cycles, self.energy_pj + other.energy_pj,
                        self.dram_bytes + other.dram_bytes)

    def times(self, count: int) -> "TreeCost":
        """Return what as many of it take, one after the other."""
        return TreeCost(count * self.latency_cycles, count * self.energy_pj, count * self.dram_bytes)

    def value(self, goal: TreeGoal) -> float:
        """Return the objective."""
        return {"latency": float(self.latency_cycles), "energy": self.energy_pj, "dram": self.dram_bytes,
                "edp": self.latency_cycles * self.energy_pj}[goal]


def summed_costs(parts: Iterable[TreeCost]) -> TreeCost:
    """Return what all parts take, one after the other."""
    return sum(parts, start=TreeCost())


def group_cost(group: FusedGroup, cost: FusedCost, accelerator: Accelerator) -> TreeCost:
    """Return what a costed group takes; bytes are those of `outermost_bytes`."""
    outer, total = accelerator.levels[0].name, 0.0
    for operator in group.operators:
        vector = operations_of(operator) is not None
        for tensor in operator.tensors:
            count = cost.counts.get((operator.name, outer, tensor.name))
            if count is None:
                continue
            bits = float(tensor.word_bits or dict(accelerator.word_bits)["inputs"]) if vector else float(
                held_bits(tensor, accelerator))
            total += (count.reads + count.updates) * bits / 8
            if tensor.is_output and not vector:
                total -= tensor.words(operator.sizes) * (bits - float(tensor_bits(tensor, accelerator))) / 8
    return TreeCost(cost.latency_cycles, cost.energy_pj, total)


@dataclass(frozen=True)
class FusableUnit:
    """What stays together in every plan: an operator, and vector work that the machine does behind it in one pass."""

    names: tuple[str, ...]
    before: frozenset[int]
    """Places of the units whose results it reads, be it through words that only change their places."""
    layer: bool
    fusable: bool
    """Whether it may be part of a group with others."""


@dataclass(frozen=True)
class TreeProblem:
    """A network on a machine, and what a plan is to be best at.

    Raises an `InputError` if the objective is unknown, or the network has no layer, or nothing below the machine's
    outermost memory can hold what passes between operators.
    """

    tensors: TensorGraph
    accelerator: Accelerator
    goal: TreeGoal = "latency"

    def __post_init__(self) -> None:
        if self.goal not in get_args(TreeGoal):
            raise InputError("--objective", f"must be one of {', '.join(get_args(TreeGoal))}", self.goal)
        if not self.tensors.graph.mac_nodes:
            raise InputError("network", "must have a layer that can be mapped", self.tensors.name)
        machine = self.accelerator
        for way, reason in ((machine.sparsity, "sparsity"), (machine.flexibility, "flexibility")):
            if way is not None:
                raise InputError(f"{machine.name}.{reason}", "must not be stated: fused trees count neither zeros nor "
                                 "what a machine cannot run", None, "Leave it out, or take another machine")
        if len(machine.memories) < 2 or machine.levels[1] is not machine.memories[1]:
            raise InputError(f"{machine.name}.levels", "must have a memory on the chip outside all arrays, for trees",
                             ", ".join(level.name for level in machine.levels))

    @cached_property
    def work(self) -> dict[str, VectorWork]:
        """What vector work and moves of words take where no group holds them, by name."""
        return {one.node.name: one for one in vector_work(self.tensors.graph, self.accelerator)}

    def _behind(self, name: str) -> str:
        """Return the operator at the head of the pass in which vector work is done; its own name where it is that."""
        while name in self.work and self.work[name].folded:
            name = self.work[name].folded
        return name

    @cached_property
    def units(self) -> tuple[FusableUnit, ...]:
        """The units in an order in which they can run. What is done on the way behind a layer belongs to no unit."""
        heads, members = dict[str, int](), list[list[str]]()
        before, reached = list[set[int]](), dict[str, set[int]]()
        for node in self.tensors.graph.nodes:
            sources = set[int]().union(*(reached[read.producer] for _, read in self.tensors.read_by(node.name)
                                         if read.producer in reached))
            head = self._behind(node.name)
            on_the_way = isinstance(self.tensors.nodes[head], MacNode) and len(self.tensors.edges[node.name].reads) == 1
            if isinstance(node, MacNode) or (isinstance(node, VectorOperator) and not on_the_way):
                if head not in heads:
                    heads[head] = len(members)
                    members.append([])
                    before.append(set())
                place = heads[head]
                members[place].append(node.name)
                before[place] |= sources - {place}
                sources = {place}
            reached[node.name] = sources
        return tuple(FusableUnit(tuple(names), frozenset(sources), isinstance(
            self.tensors.nodes[names[0]], MacNode), self._fusable(names))
            for names, sources in zip(members, before, strict=True))

    def _fusable(self, names: list[str]) -> bool:
        try:
            self.group(names)
        except InputError:
            return False
        return True

    def group(self, names: Iterable[str]) -> FusedGroup:
        """Return operators as a group; an `InputError` where they can be none."""
        return fused_group(self.tensors, tuple(names), self.accelerator.vector_unit.folds)

    def names(self, places: Iterable[int]) -> tuple[str, ...]:
        """Return the names of the operators of units."""
        return tuple(name for place in sorted(places) for name in self.units[place].names)

    def work_cost(self, names: Iterable[str]) -> TreeCost:
        """Return what vector work and moves take where no group holds them."""
        return summed_costs(TreeCost(one.latency_cycles, one.energy_pj, one.traffic_bytes).times(one.node.count)
                            for one in map(self.work.__getitem__, names))

    @cached_property
    def rest(self) -> tuple[str, ...]:
        """Vector work and moves that belong to no unit."""
        known = {name for unit in self.units for name in unit.names}
        return tuple(name for name in self.work if name not in known)

    @cached_property
    def _moves(self) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
        """Of each move of words the operators that make what it moves, and those that read it."""
        owned, found = {name for unit in self.units for name in unit.names}, {}
        for name in self.rest:
            if isinstance(self.tensors.nodes[name], DataMovement):
                makers, readers = frozenset(self._ends(name, owned, False)), frozenset(self._ends(name, owned, True))
                if makers and readers and not any(made.is_output for made in self.tensors.made_by(name)):
                    found[name] = makers, readers
        return found

    def _ends(self, name: str, owned: set[str], forward: bool) -> Iterator[str]:
        ways = ([read.node for made in self.tensors.made_by(name) for read in made.reads] if forward
                else [read.producer for _, read in self.tensors.read_by(name)])
        for other in ways:
            if other in owned or not other:
                yield other
            else:
                yield from self._ends(other, owned, forward)

    def moved_inside(self, names: Iterable[str]) -> TreeCost:
        """Return what moves of words cost that a group of these operators makes needless."""
        inside = set(names)
        return self.work_cost(name for name, (makers, readers) in self._moves.items()
                              if makers <= inside and readers <= inside)
