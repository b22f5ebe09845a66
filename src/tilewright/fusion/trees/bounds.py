"""What no plan of a network can beat: compute, compulsory words, and the energy of both.

- *Compute*: every layer's steps (see `cost/bounds`), one layer after the other, as all use the same elements; the
  vector unit's operations but those that the machine folds.
- *Compulsory words*: those of weights, of the network's inputs that a layer reads, and of results that leave it, each
  once. Intermediate tensors count nothing: a plan may hold all of them.
- *Energy*: of each layer what it needs inside the memories that can hold intermediate tensors, with these and the
  outermost memory free; of the vector unit its operations; and the compulsory words.

What a small memory forces back of intermediate tensors is not in it, so the gap is at most what is told.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from tilewright.cost import kept_bounds
from tilewright.fusion.trees.network import TreeCost, TreeGoal, TreeProblem
from tilewright.fusion.trees.shapes import holding
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Fanout, Memory, exact_rate
from tilewright.mapping import tensor_bits
from tilewright.workload import Operator, VectorOperator, vector_kind

ROUNDING = 1 - 1e-9
"""Sums of floats are lowered to this share."""


@dataclass(frozen=True)
class TreeBounds:
    """Bounds on any plan, fused or not: cycles by what forces them, bytes of the outermost memory, energy."""

    compute_cycles: int
    vector_cycles: int
    dram_cycles: int
    dram_bytes: float
    energy_pj: float

    @property
    def latency_cycles(self) -> int:
        """The largest of all."""
        return max(self.compute_cycles, self.vector_cycles, self.dram_cycles)

    def value(self, goal: TreeGoal) -> float:
        """Return the bound on an objective."""
        return TreeCost(self.latency_cycles, self.energy_pj, self.dram_bytes).value(goal)


def tree_bounds(problem: TreeProblem) -> TreeBounds:
    """Return what no plan of a network can beat."""
    machine, compute, inner = problem.accelerator, 0, 0.0
    free, known = _inner(machine), dict[tuple[object, ...], tuple[int, float]]()
    for node in problem.tensors.graph.mac_nodes:
        key = node.operator.signature
        if key not in known:
            found = kept_bounds(node.operator, free)
            known[key] = found.compute_cycles, found.energy_pj
        compute += node.count * known[key][0]
        inner += node.count * known[key][1]
    vector, unit = Fraction(0), machine.vector_unit
    for work in problem.tensors.graph.nodes:
        if isinstance(work, VectorOperator):
            inner += work.count * work.operations * (unit.energy_pj_per_operation or 0.0)
            if vector_kind(work) not in unit.folds:
                vector += work.count * Fraction(work.operations) / exact_rate(unit.rate(vector_kind(work)))
    reads, writes = _compulsory(problem)
    outer = machine.memories[0]
    dram = reads / outer.word_bits * outer.energy.read_pj + writes / outer.word_bits * outer.energy.update_pj
    ports = ((outer.bandwidth.read, reads), (outer.bandwidth.write, writes), (outer.bandwidth.shared, reads + writes))
    cycles = max((ceil(bits * ROUNDING / outer.word_bits / float(rate)) for rate, bits in ports if rate), default=0)
    latency = max(compute, int(vector), cycles)
    energy = inner + dram + machine.leakage_mw * latency / machine.frequency_mhz * 1000
    return TreeBounds(compute, int(vector), cycles, (reads + writes) / 8 * ROUNDING, energy * ROUNDING)


def _inner(machine: Accelerator) -> Accelerator:
    """Return the machine as if memories that can hold intermediate tensors, and the outermost, took nothing."""
    free = {memory.name for memory in (machine.memories[0], *holding(machine))}
    levels = list[Memory | Fanout]()
    for level in machine.levels:
        if isinstance(level, Memory):
            gone = {"energy": AccessEnergy(0.0, 0.0, 0.0, 0.0), "bandwidth": Bandwidth()} if level.name in free else {}
            levels.append(replace(level, leakage_mw=0.0, **gone))  # type: ignore[arg-type]
        else:
            levels.append(level)
    return replace(machine, levels=tuple(levels), compute=replace(machine.compute, leakage_mw=0.0))


def _compulsory(problem: TreeProblem) -> tuple[float, float]:
    """Return the bits that are read from the outermost memory at least, and written to it."""
    reads, writes, machine = dict[str, float](), 0.0, problem.accelerator
    outer, tensors = machine.memories[0], problem.tensors
    for node in tensors.graph.mac_nodes:
        operator = node.operator
        own = {tensor.name for tensor in operator.operands}
        for operand, tensor in tensors.read_by(node.name):
            if not tensor.producer and operand in own and outer.can_keep(operand, operator.tensor(operand).role):
                words = _touched(operator, operand) * float(tensor_bits(operator.tensor(operand), machine))
                reads[tensor.storage] = max(reads.get(tensor.storage, 0.0), words)
        for made in tensors.made_by(node.name):
            output = operator.output
            if made.is_output and outer.can_keep(output.name, output.role) and made.name == node.name:
                writes += output.words(operator.sizes) * float(tensor_bits(output, machine))
    return sum(reads.values()), writes


def _touched(operator: Operator, operand: str) -> int:
    """Return the words of an operand that an operator uses, padding counted as the cost model counts it."""
    return operator.tensor(operand).words(operator.sizes)


