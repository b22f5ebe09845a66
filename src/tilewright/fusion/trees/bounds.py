"""What no plan of a network can beat: what each operator takes at least, wherever its tensors pass.

- *Operators.* In a group an operator is a nest of its own, in which an intermediate tensor begins or ends in the memory
  that holds it. So the bounds of single layers hold (`cost/bounds`), on a machine where nothing outside that memory
  keeps the tensor, and its room there is free: an operator has one for every home that its tensors may have.
- *Tensors.* One that is never written to the outermost memory is held further in by its maker and by all its readers.
  One that is written costs its maker that much, and its one reader, which then reads it from there. Dynamic programming
  over the operators, in their order, finds the least sum over all choices. Where too many tensors are under way, and
  for those of several readers, or whose words change their places, every operator chooses for itself.
- *Cycles.* Operators of a group share all resources at best: of each the cycles add up. The vector unit does its
  operations, but those that the machine folds.

That what is held takes room, and halos are made again or held, is not in it.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, inf

from tilewright.cost import COMPUTE, kept_bounds
from tilewright.fusion.trees.network import TreeCost, TreeGoal, TreeProblem
from tilewright.fusion.trees.shapes import holding
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory, exact_rate
from tilewright.mapping import held_bits, tensor_bits
from tilewright.workload import DataMovement, MacNode, Operator, Tensor, VectorOperator, vector_kind

ROUNDING = 1 - 1e-9
"""Sums of floats are lowered to this share."""
FREE = 1e17
"""Bytes of a room that nothing fills."""
MOST_OPEN = 10
"""Tensors under way whose choices are followed together."""
Homes = tuple[tuple[str, str], ...]
"""Tensors of an operator with the memories on the chip that hold them; all others come from outside."""


@dataclass(frozen=True)
class TreeBounds:
    """Bounds on any plan, fused or not: cycles by what forces them, bytes of the outermost memory, energy."""

    compute_cycles: int
    vector_cycles: int
    dram_cycles: int
    dram_bytes: float
    energy_pj: float
    memory_cycles: int = 0

    @property
    def latency_cycles(self) -> int:
        """The largest of all."""
        return max(self.compute_cycles, self.vector_cycles, self.dram_cycles, self.memory_cycles)

    def value(self, goal: TreeGoal) -> float:
        """Return the bound on an objective."""
        return TreeCost(self.latency_cycles, self.energy_pj, self.dram_bytes).value(goal)


def tree_bounds(problem: TreeProblem) -> TreeBounds:
    """Return what no plan of a network can beat."""
    machine, least = problem.accelerator, _Least(problem)
    outer, energy, vector = machine.memories[0], least.total("energy"), Fraction(0)
    unit = machine.vector_unit
    for work in problem.tensors.graph.nodes:
        if isinstance(work, VectorOperator):
            energy += work.count * work.operations * (unit.energy_pj_per_operation or 0.0)
            if vector_kind(work) not in unit.folds:
                vector += work.count * Fraction(work.operations) / exact_rate(unit.rate(vector_kind(work)))
    moved, cycles = least.total("bytes"), {name: int(least.total(name)) for name in (
        COMPUTE, *(memory.name for memory in machine.memories))}
    if outer.bandwidth.shared:
        cycles[outer.name] = max(cycles[outer.name],
                                 ceil(moved * ROUNDING * 8 / outer.word_bits / float(outer.bandwidth.shared)))
    compute, dram = cycles.pop(COMPUTE), cycles.pop(outer.name)
    found = TreeBounds(compute, int(vector), dram, moved * ROUNDING, energy, max(cycles.values()))
    leaking = machine.leakage_mw * found.latency_cycles / machine.frequency_mhz * 1000
    return replace(found, energy_pj=(energy + leaking) * ROUNDING)


@dataclass(frozen=True, eq=False)
class _Least:
    """The least sums over the operators of a problem's network.

    Tensors have classes: what is done on the way behind an operator, or moves all words of its result, makes none anew.
    A class is called after who makes it.
    """

    problem: TreeProblem
    known: dict[tuple[object, ...], dict[str, float]] = field(default_factory=dict)

    @cached_property
    def quiet(self) -> Accelerator:
        """The machine without leakage, which is of the whole plan."""
        machine = self.problem.accelerator
        levels = tuple(replace(level, leakage_mw=0.0) if isinstance(level, Memory) else level
                       for level in machine.levels)
        return replace(machine, levels=levels, compute=replace(machine.compute, leakage_mw=0.0))

    def maker(self, name: str) -> str:
        """Return the class of the result of a node, or of nothing."""
        tensors = self.problem.tensors
        while name:
            reads, work = tensors.read_by(name), self.problem.work.get(name)
            passed = isinstance(tensors.nodes[name], DataMovement) or (work is not None and bool(work.folded))
            if not passed or len(reads) != 1 or len(reads[0][1].reads) != 1 or not reads[0][1].producer:
                break
            name = reads[0][1].producer
        return name

    @cached_property
    def reads(self) -> dict[str, dict[str, str]]:
        """Of each operator that makes a class, in their order, the classes that it reads as its operands."""
        tensors, found = self.problem.tensors, dict[str, dict[str, str]]()
        for node in tensors.graph.nodes:
            if isinstance(node, MacNode) or (isinstance(node, VectorOperator) and self.maker(node.name) == node.name):
                own = [tensor.name for tensor in node.operator.operands] if isinstance(node, MacNode) else []
                found[node.name] = {operand: self.maker(tensor.producer)
                                    for operand, tensor in tensors.read_by(node.name)
                                    if tensor.producer and (operand in own or isinstance(node, VectorOperator))}
        return found

    @cached_property
    def readers(self) -> dict[str, int]:
        """How many operands are of each class; those of nodes that make no class count twice."""
        found = dict.fromkeys(self.reads, 0)
        for node in self.problem.tensors.graph.nodes:
            if self.maker(node.name) == node.name:
                for operand, tensor in self.problem.tensors.read_by(node.name):
                    name = self.maker(tensor.producer)
                    found[name] = found.get(name, 0) + (1 if operand in self.reads.get(node.name, {}) else 2)
        return found

    @cached_property
    def final(self) -> frozenset[str]:
        """The classes of tensors that leave the network."""
        leaving = {self.maker(tensor.producer) for tensor in self.problem.tensors.tensors.values() if tensor.is_output}
        return frozenset(leaving | {name for name, count in self.readers.items() if not count})

    def total(self, what: str) -> float:
        """Return the least sum of a figure: energy, bytes, or the cycles of a resource."""
        last = {made: name for name, reads in self.reads.items() for made in (name, *reads.values())}
        ways: dict[frozenset[str], float] = {frozenset(): 0.0}
        known = set[str]()
        for name, reads in self.reads.items():
            after = dict[frozenset[str], float]()
            costs = dict[tuple[object, ...], float]()
            for written, spent in ways.items():
                for out in ((True,) if name in self.final else (False, True)):
                    key = (*(made in written for made in reads.values()), out)
                    if key not in costs:
                        costs[key] = self._cost(name, written, known, out, what)
                    left = frozenset(made for made in {*written, *([name] if out else [])} if last[made] != name)
                    after[left] = min(after.get(left, inf), spent + costs[key])
            known |= {name}
            if len(after) > 1 << MOST_OPEN:
                after, known = {frozenset(): min(after.values())}, set()
            ways = after
        return min(ways.values())

    def _cost(self, name: str, written: frozenset[str], known: set[str], out: bool, what: str) -> float:
        """Return the least of a figure of one operator; of tensors not ``known`` it is open if they are written."""
        node = self.problem.tensors.nodes[name]
        if not isinstance(node, MacNode):
            return 0.0
        operator, once = node.operator, node.count == 1
        choices = dict[str, list[str]]()
        for operand, made in self.reads[name].items():
            inside = self._able(operator.tensor(operand)) if once and (
                made not in written or self.readers[made] > 1 or made in self.final) else []
            choices[operand] = [*inside, *([""] if made not in known or made in written else [])]
        choices[operator.output.name] = [*(self._able(operator.output) if once else []), *([""] if out else [])]
        found = inf
        for places in product(*choices.values()):
            homes = tuple((tensor, place) for tensor, place in zip(choices, places, strict=True) if place)
            own = self._operator(operator, homes)[what]
            if out and places[-1]:
                own += self._leaving(operator).get(what, 0.0)
            found = min(found, node.count * own)
        return found

    def _able(self, tensor: Tensor) -> list[str]:
        return [memory.name for memory in holding(self.quiet) if memory.can_keep(tensor.name, tensor.role)]

    def _leaving(self, operator: Operator) -> dict[str, float]:
        """Return what it takes to bring a result out that is held on the chip."""
        outer, bits = self.quiet.memories[0], float(tensor_bits(operator.output, self.quiet))
        words = operator.output.words(operator.sizes)
        return {"energy": words * bits / outer.word_bits * outer.energy.update_pj, "bytes": words * bits / 8}

    def _operator(self, operator: Operator, homes: Homes) -> dict[str, float]:
        """Return the least figures of an operator whose tensors are held so, each by itself."""
        key = operator.signature, homes
        if key not in self.known:
            machine, output = _holding(self.quiet, operator, homes), operator.output
            found, words = kept_bounds(operator, machine), kept_bounds(operator, _outermost_alone(machine))
            wide = float(held_bits(output, machine) - tensor_bits(output, machine)) / 8 * output.words(operator.sizes)
            self.known[key] = {"energy": found.energy_pj, "bytes": max(0.0, words.energy_pj - wide),
                               COMPUTE: found.compute_cycles + found.blocked_cycles, **found.data_cycles}
        return self.known[key]


def _holding(machine: Accelerator, operator: Operator, homes: Homes) -> Accelerator:
    """Return the machine where tensors of an operator have homes, with room of their own there, and are not outside."""
    places = {memory.name: at for at, memory in enumerate(machine.memories)}
    levels = list[Memory | Fanout](machine.levels)
    for at, level in enumerate(machine.levels):
        if isinstance(level, Memory) and homes:
            gone = {tensor for tensor, home in homes if places[home] > places[level.name]}
            levels[at] = replace(
                level, keeps=tuple(tensor.name for tensor in operator.tensors
                                   if tensor.name not in gone and level.can_keep(tensor.name, tensor.role)),
                partitions_bytes=(*((tensor, FREE) for tensor, home in homes if home == level.name),
                                  *level.partitions_bytes))
    return replace(machine, levels=tuple(levels))


def _outermost_alone(machine: Accelerator) -> Accelerator:
    """Return the machine with bytes of the outermost memory for picojoules, and nothing else that takes any."""
    levels = list[Memory | Fanout]()
    for level in machine.levels:
        if isinstance(level, Memory):
            price = level.word_bits / 8 if level is machine.memories[0] else 0.0
            levels.append(replace(level, energy=AccessEnergy(price, price, price, price)))
        else:
            levels.append(replace(level, network_energy_pj_per_word=0.0))
    return replace(machine, levels=tuple(levels), compute=replace(machine.compute, energy_pj_per_mac=0.0))
