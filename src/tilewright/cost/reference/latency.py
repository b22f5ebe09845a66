"""Cycles (counting rule 8): what the ports need, what single buffers block, how the pipeline fills and empties.

All sums are exact fractions; only whole cycles come out.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from tilewright.cost.records import MemoryTraffic
from tilewright.cost.reference.boundary import Moved, WalkedBoundary
from tilewright.cost.reference.nest import Indices, WalkedNest
from tilewright.hardware import Memory, exact_rate
from tilewright.mapping import held_bits, tensor_bits

PARTS = 1024
"""Widths are whole numbers of such parts of a bit."""
Crossings = dict[str, list[tuple[WalkedBoundary, Moved]]]


def cycles(words: Fraction, *rates: float | None) -> int:
    """Return whole cycles to move ``words`` at the slowest of ``rates`` in words per cycle; None is unlimited."""
    return max((ceil(words / exact_rate(rate)) for rate in rates if rate is not None), default=0)


Tally = dict[str, Indices]
"""Words of one tensor at a memory by kind, each ``(i,)`` over its nominal instances."""


@dataclass(frozen=True, eq=False)
class Transfers:
    """Everything that moved, and the words' widths.

    ``tallies`` are by ``(level, tensor)``, ``crossings`` by tensor, outermost boundary first.
    """

    nest: WalkedNest
    crossings: Crossings
    tallies: dict[tuple[int, str], Tally]

    def bits(self, tensor: str) -> int | Fraction:
        """Width of a word of ``tensor``, of outputs of a partial sum."""
        return held_bits(self.nest.operator.tensor(tensor), self.nest.accelerator)

    def scale(self, tensor: str, memory: Memory) -> Fraction:
        """Words of ``memory`` in one word of ``tensor``."""
        return Fraction(self.bits(tensor), memory.word_bits)

    def last_updates(self, memory: Memory) -> int:
        """Words of the output that come to ``memory`` for the last time and are final then: at its home each once."""
        output = self.nest.operator.output.name
        boundary, moved = self.crossings[output][0]
        if self.nest.accelerator.levels[boundary.parent] is not memory:
            return 0
        return len(np.unique(moved.crossed % boundary.words))

    def narrower(self, memory: Memory) -> Fraction:
        """Words of ``memory`` by which a final word of the output is narrower than a partial sum."""
        output = self.nest.operator.output
        final = tensor_bits(output, self.nest.accelerator)
        return Fraction(self.bits(output.name) - final, memory.word_bits)

    def port(self, memory: Memory, *kinds: str) -> list[Fraction]:
        """Words of all tensors and the given kinds at each instance of ``memory``, in its own words."""
        level = self.nest.accelerator.levels.index(memory)
        parts = np.zeros(self.nest.lanes(level), dtype=np.int64)
        for tensor in self.nest.keeps[level]:
            tally, width = self.tallies[level, tensor], int(self.bits(tensor) * PARTS)
            for kind in kinds:
                parts += width * tally[kind]
        found = [Fraction(moved, memory.word_bits * PARTS) for moved in parts.tolist()]
        # Only the home of the output, which has one instance, is updated for the last time.
        if "updates" in kinds:
            found[0] -= self.narrower(memory) * self.last_updates(memory)
        return found


Port = Callable[..., list[Fraction]]
"""Takes a memory and kinds of access; returns what `Transfers.port` does."""


def traffic(memories: Sequence[Memory], port: Port) -> dict[str, MemoryTraffic]:
    """Return what the busiest instance of each memory moves; the busiest is found for each port by itself."""
    return {memory.name: _traffic(port, memory, outermost=memory is memories[0]) for memory in memories}


def _traffic(port: Port, memory: Memory, *, outermost: bool) -> MemoryTraffic:
    rate = memory.bandwidth
    read, write = max(port(memory, "reads", "drains")), max(port(memory, "fills", "updates"))
    both = max(port(memory, "reads", "drains", "fills", "updates"))
    slowest = max(cycles(read, rate.read), cycles(write, rate.write), cycles(both, rate.shared))
    blocks = memory.buffering == "single" and not outermost
    return MemoryTraffic(float(read), float(write), slowest, _blocking(port, memory) if blocks else 0)


def _blocking(port: Port, memory: Memory) -> int:
    """Cycles for which transfers from and to the parent block the slowest instance of a single-buffered memory."""
    rate = memory.bandwidth
    pairs = set(zip(port(memory, "drains"), port(memory, "fills"), strict=True))
    return max(cycles(drain, rate.read, rate.shared) + cycles(fill, rate.write, rate.shared) for drain, fill in pairs)


def steady(moved: dict[str, MemoryTraffic], steps: int) -> tuple[int, str]:
    """Return the steady cycles and the name of what sets them, ``"compute"`` if nothing else needs more."""
    slowest, bottleneck = steps + sum(each.blocking_cycles for each in moved.values()), "compute"
    for name, each in moved.items():
        if each.cycles > slowest:
            slowest, bottleneck = each.cycles, name
    return slowest, bottleneck


def ramps(transfers: Transfers) -> tuple[int, int]:
    """Return the cycles of the cold start, and of the tail, summed over the memories that overlap their transfers."""
    overlapping = [memory for memory in transfers.nest.accelerator.memories[1:] if memory.buffering != "single"]
    return (sum(_cold_start(transfers, memory) for memory in overlapping),
            sum(_tail(transfers, memory) for memory in overlapping))


def _entering(transfers: Transfers, memory: Memory) -> list[tuple[WalkedBoundary, Moved]]:
    """Return the boundaries whose child is ``memory``."""
    level = transfers.nest.accelerator.levels.index(memory)
    return [(b, m) for crossed in transfers.crossings.values() for b, m in crossed if b.child == level]


def _cold_start(transfers: Transfers, memory: Memory) -> int:
    """First operand tiles of the first lane: written here, read at each parent, whichever is slower.

    Of a memory that forwards words: what is read of it for the first visit of the next one inward, if that is less.
    """
    arriving = Fraction(0)
    leaving: dict[int, Fraction] = defaultdict(Fraction)
    for boundary, moved in _entering(transfers, memory):
        if not boundary.tensor.is_output:
            name, parent = boundary.tensor.name, transfers.nest.accelerator.memory(boundary.parent)
            received, read = moved.first_received, moved.first_read
            if memory.forwards == "words":
                inward, first = next((b, m) for b, m in transfers.crossings[name] if b.parent == boundary.child)
                through = WalkedBoundary(boundary.nest, boundary.tensor, boundary.parent, inward.child).operand()
                received, read = min(received, first.first_read), min(read, through.first_read)
            arriving += received * transfers.scale(name, memory)
            leaving[boundary.parent] += read * transfers.scale(name, parent)
    slowest = cycles(arriving, memory.bandwidth.write, memory.bandwidth.shared)
    for level, words in leaving.items():
        rate = transfers.nest.accelerator.memory(level).bandwidth
        slowest = max(slowest, cycles(words, rate.read, rate.shared))
    return slowest


def _tail(transfers: Transfers, memory: Memory) -> int:
    """Last output tile of the first lane: read here, written at the parent, whichever is slower."""
    slowest = 0
    for boundary, moved in _entering(transfers, memory):
        if boundary.tensor.is_output:
            name, parent = boundary.tensor.name, transfers.nest.accelerator.memory(boundary.parent)
            out = cycles(moved.last_evicted * transfers.scale(name, memory), memory.bandwidth.read,
                         memory.bandwidth.shared)
            less = transfers.narrower(parent) if transfers.last_updates(parent) else 0
            into = cycles(moved.last_written * (transfers.scale(name, parent) - less), parent.bandwidth.write,
                          parent.bandwidth.shared)
            slowest = max(slowest, out, into)
    return slowest
