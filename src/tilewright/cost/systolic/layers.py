"""A layer on a systolic array: cycles and accesses, the wait for DRAM, energy."""

from dataclasses import dataclass
from functools import cached_property

from tilewright.base import InputError
from tilewright.cost.systolic.counts import systolic_counts
from tilewright.cost.systolic.products import SystolicProduct
from tilewright.cost.systolic.records import (
    SYSTOLIC_RULES,
    SystolicArray,
    SystolicConventions,
    SystolicCounts,
    SystolicMemories,
    SystolicWords,
)
from tilewright.cost.systolic.traffic import systolic_words
from tilewright.hardware import Accelerator, Fanout, Memory, exact_rate
from tilewright.workload import Operator

_ROLES = ("inputs", "weights", "outputs")


@dataclass(frozen=True)
class SystolicLayer:
    """What a layer takes: ``count`` products of M x N x K one after the other."""

    operator: Operator
    m: int
    n: int
    k: int
    count: int
    array: SystolicArray
    conventions: SystolicConventions
    counts: SystolicCounts
    """Of one product; all properties are of the whole layer."""

    @cached_property
    def words(self) -> SystolicWords:
        """Words that move between DRAM and the memories; found when first asked for, as windows take a walk."""
        return systolic_words(self.operator, self.array, self.conventions)

    @property
    def compute_cycles(self) -> int:
        """Cycles where nothing waits for DRAM."""
        return int(self.counts.cycles) * self.count

    @property
    def waits(self) -> dict[str, float]:
        """Cycles that DRAM is busy, by what it moves; only what has a bandwidth."""
        moved = (self.words.input_reads, self.words.weight_reads, self.words.output_writes + self.words.output_reads)
        found = {role: float(words / exact_rate(rate))
                 for role, words, rate in zip(_ROLES, moved, self.array.bandwidths, strict=True) if rate is not None}
        if self.array.shared_bandwidth is not None:
            found["DRAM"] = float(self.words.total / exact_rate(self.array.shared_bandwidth))
        return found

    @property
    def ends_cycles(self) -> float:
        """Cycles before the first element can begin (its resting tile comes in) and after the last has ended."""
        array = self.array
        rates = [rate or array.shared_bandwidth for rate in array.bandwidths]
        down = self.m if array.dataflow == "os" else self.k
        across = self.m if array.dataflow == "is" else self.n
        if array.dataflow == "os":
            words, rate = self._last(down, array.rows) * self._last(across, array.columns), rates[2]
        else:
            words, rate = min(down, array.rows) * min(across, array.columns), rates[0 if array.dataflow == "is" else 1]
        return float(words / exact_rate(rate)) if rate else 0.0

    @staticmethod
    def _last(size: int, side: int) -> int:
        return (size - 1) % side + 1

    @property
    def cycles(self) -> float:
        """Cycles in all: the longest of computing and moving, which overlap, and what nothing overlaps."""
        return max(self.compute_cycles, *self.waits.values(), 0) + self.ends_cycles

    @property
    def stall_cycles(self) -> float:
        """Cycles that the array waits for DRAM."""
        return self.cycles - self.compute_cycles

    @property
    def bound(self) -> str:
        """What takes longest: ``compute``, or what DRAM moves."""
        waits = self.waits
        slowest = max(waits, key=lambda role: waits[role], default="compute")
        return slowest if waits and waits[slowest] > self.compute_cycles else "compute"

    @property
    def utilization(self) -> float:
        """Multiply-accumulates over cycles in all and elements."""
        macs = self.m * self.n * self.k * self.count
        return macs / (self.cycles * self.array.rows * self.array.columns) if self.cycles else float("inf")


def systolic_layer(operator: Operator, array: SystolicArray,
                   conventions: SystolicConventions = SYSTOLIC_RULES) -> SystolicLayer:
    """Return what a layer takes on a systolic array.

    Raises an `InputError` if the operator is neither a matrix product nor a convolution, or too large to count.
    """
    product = SystolicProduct.of(operator)
    counts = systolic_counts(product.m, product.n, product.k, array.rows, array.columns, array.dataflow, conventions)
    return SystolicLayer(operator, product.m, product.n, product.k, product.count, array, conventions, counts)


def systolic_array(accelerator: Accelerator, dataflow: str) -> SystolicArray:
    """Return a machine with one array as a systolic one: X its columns, Y its rows, DRAM its outermost memory.

    The memory of a tensor is the one nearest to the array, outside it, that keeps the tensor; one that several share
    counts in full for each. Bandwidths inside DRAM are taken to keep up.

    Raises an `InputError` if there is no array, or several.
    """
    array = _array(accelerator)
    columns, rows = array.shape
    words = [None if memory is None or room is None else max(2, int(room * 8 // memory.word_bits))
             for memory, room in (_memory(accelerator, array, role) for role in _ROLES)]
    port = accelerator.memories[0].bandwidth
    return SystolicArray(rows, columns, dataflow, SystolicMemories(*words), (port.read, port.read, port.write),
                         port.shared)


def _array(accelerator: Accelerator) -> Fanout:
    arrays = [fanout for fanout in accelerator.fanouts if fanout.instances > 1] or list(accelerator.fanouts)
    if len(arrays) != 1:
        raise InputError(f"{accelerator.name}.levels", "must have one array to be a systolic one",
                         ", ".join(array.name for array in arrays) or "none", "Give its sides instead: --array 32x32")
    return arrays[0]


def _memory(accelerator: Accelerator, array: Fanout, role: str) -> tuple[Memory | None, float | None]:
    """Return the memory of a role, and its bytes; None where DRAM feeds the array, or there is no limit."""
    outside = accelerator.levels[1:accelerator.levels.index(array)]
    for level in reversed(outside):
        if isinstance(level, Memory) and level.can_keep(role[0].upper(), role):
            return level, dict(level.partitions_bytes).get(role, level.capacity_bytes)
    return None, None


def systolic_energy(layer: SystolicLayer, accelerator: Accelerator) -> dict[str, float]:
    """Return picojoules by component: DRAM, the memory of each tensor, multiply-accumulates; registers are left out.

    Raises an `InputError` if the machine has not one array.
    """
    array = _array(accelerator)
    words, counts, bits = layer.words, layer.counts, dict(accelerator.word_bits)
    dram = accelerator.memories[0]
    found = {dram.name: 0.0}
    for role in _ROLES:
        scale = bits[role] / dram.word_bits
        came = {"inputs": words.input_reads, "weights": words.weight_reads, "outputs": words.output_reads}[role]
        left = words.output_writes if role == "outputs" else 0
        found[dram.name] += scale * (came * dram.energy.read_pj + left * dram.energy.update_pj)
        memory, _ = _memory(accelerator, array, role)
        if memory is None:
            continue
        read = {"inputs": counts.input_reads, "weights": counts.weight_reads, "outputs": counts.output_reads}[role]
        written = int(counts.output_writes) * layer.count if role == "outputs" else 0
        energy = (came * memory.energy.fill_pj + int(read) * layer.count * memory.energy.read_pj
                  + written * memory.energy.update_pj + left * memory.energy.drain_pj)
        found[memory.name] = found.get(memory.name, 0.0) + energy * bits[role] / memory.word_bits
    macs = layer.m * layer.n * layer.k * layer.count
    found[accelerator.compute.name] = macs * accelerator.compute.energy_pj_per_mac
    return found
