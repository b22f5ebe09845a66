"""From words that move to cycles and energy (counting rules 8 and 9): of one mapping exactly, or of many as arrays.

What moves are *tallies* by `TallyKey`. The dense model tells them of one mapping as whole numbers, and all of them
move; of the sparse model each figure is an array (b,), and `Left` says which share of the words zeros leave.
"""

from collections.abc import Iterator
from collections.abc import Mapping as Dict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.cost.dense.nest import Boundary, Keeps, boundaries, carries
from tilewright.cost.hardware import Columns
from tilewright.cost.records import KINDS, Cost, Count, Expected, MemoryTraffic
from tilewright.cost.tables import TallyKey
from tilewright.hardware import ACCESSES, LEAKAGE, NETWORK, RATE, Accelerator, Bandwidth, Fanout, Memory
from tilewright.mapping import held_bits, lane_use, tensor_bits
from tilewright.workload import Operator, Tensor

Value = Any
"""A figure of one mapping, a whole number or fraction, or of many, an array (b,)."""
Tallies = Dict[TallyKey, Value]
PRICES = dict(zip(KINDS, (f"{kind}_energy_pj_per_word" for kind in ACCESSES["shared"]), strict=True))
"""What the energy of each kind of access is called among the numbers of a memory."""
SERVED = {port: tuple(f"{kind}s" for kind in kinds) for port, kinds in ACCESSES.items()}
"""Kinds of access that each port serves."""
BLOCKING = {"drains": "read", "fills": "write"}
"""What compute waits for at a single-buffered memory, and at which port."""


@dataclass(frozen=True)
class KeptTensor:
    """A tensor in a memory, with its boundaries outward (None: this is its home) and inward."""

    level: int
    tensor: Tensor
    memory: Memory
    bits: int | Fraction
    final_bits: int | Fraction
    """Bits of a word, of outputs of a partial sum, and of one that comes here for the last time."""
    outward: Boundary | None
    inward: Boundary

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of access: only outputs go outward, and nothing comes to a home, or leaves it, from outside."""
        crossing = () if self.outward is None else ("fills", "drains") if self.tensor.is_output else ("fills",)
        inward = ("reads", "updates") if self.tensor.is_output else ("reads",)
        return tuple(kind for kind in KINDS if kind in inward + crossing)

    @cached_property
    def scale(self) -> int | Fraction:
        """Words of the memory's own width in a word of the tensor."""
        return _fraction(self.bits, self.memory.word_bits)

    @cached_property
    def final_scale(self) -> int | Fraction:
        """The same of a word that comes here for the last time."""
        return _fraction(self.final_bits, self.memory.word_bits)


class Plan:
    """Who keeps what."""

    def __init__(self, operator: Operator, accelerator: Accelerator, keeps: Keeps) -> None:
        self.operator, self.accelerator = operator, accelerator
        self.crossings = [at for tensor in operator.tensors for at in boundaries(tensor, keeps)]
        self.kept = [self._kept(at) for at in self.crossings]
        self.memories = [(at, level) for at, level in enumerate(accelerator.levels) if isinstance(level, Memory)]

    def _kept(self, inward: Boundary) -> KeptTensor:
        tensor, bits = inward.tensor, held_bits(inward.tensor, self.accelerator)
        outward = next((at for at in self.crossings if at.tensor is tensor and at.child == inward.parent), None)
        return KeptTensor(inward.parent, tensor, self.accelerator.memory(inward.parent), bits,
                          tensor_bits(tensor, self.accelerator) if outward is None else bits, outward, inward)

    def of(self, level: int) -> list[KeptTensor]:
        """Return what a memory keeps."""
        return [kept for kept in self.kept if kept.level == level]

    @property
    def blocking(self) -> list[int]:
        """Memories inside the outermost whose single buffers block compute."""
        return [at for at, memory in self.memories if at and memory.buffering == "single"]

    @property
    def overlapping(self) -> list[int]:
        """Memories inside the outermost that fill as others compute, but for the first tiles and the last."""
        return [at for at, memory in self.memories if at and memory.buffering != "single"]

    def ends(self, level: int, last: bool) -> Iterator[tuple[str, str, list[tuple[KeptTensor, Boundary]]]]:
        """Yield what moves as the first operand tiles of a memory come in, or as its last output tile leaves.

        By port and kind of access: at the memory itself, and at those that the tiles come from or go to.
        """
        crossing = [at for at in self.crossings if at.child == level and at.tensor.is_output == last]
        own = [(kept, at) for at in crossing for kept in self.of(level) if kept.outward is at]
        if own:
            yield *(("read", "drains") if last else ("write", "fills")), own
        for parent in dict.fromkeys(at.parent for at in crossing):
            yield *(("write", "updates") if last else ("read", "reads")), [
                (kept, at) for at in crossing for kept in self.of(parent) if kept.inward is at]


@dataclass(frozen=True)
class MovedShares:
    """What is moved for each word that the static schedule moves, by kind of access.

    ``data`` are words of the tensor that take energy, ``timed`` those that also take time; ``metadata`` are bits,
    whatever the access, None where there are none.
    """

    data: dict[str, Value]
    timed: dict[str, Value]
    metadata: Value | None = None

    @property
    def bits(self) -> Value:
        """The metadata, 0 where there are none."""
        return 0.0 if self.metadata is None else self.metadata


@dataclass(frozen=True)
class Left:
    """What zeros leave of the static schedule: shares by level and tensor, and of what enters the compute unit."""

    moved: dict[tuple[int, str], MovedShares]
    fed: dict[str, Value]
    steps: float
    macs: float
    """Shares of the multiply-accumulates that take time, and of those that take energy."""


class Sums:
    """The costs of mappings from their tallies, on machines with these numbers; ``left`` is None where all is moved."""

    def __init__(self, plan: Plan, tallies: Tallies, columns: Columns, left: Left | None = None) -> None:
        self.plan, self.tallies, self.columns, self.left = plan, tallies, columns, left
        self.accelerator, self.operator = plan.accelerator, plan.operator
        self.lanes = lane_use(plan.operator, plan.accelerator)

    def _words(self, view: str, kept: KeptTensor, kind: str, *, time: bool) -> Value:
        """Words of the memory's own width, metadata included."""
        count, block = self.tallies[view, kept.level, kept.tensor.name, kind], 1 if time else kept.memory.block_words
        if self.left is None:
            return _in_blocks(count, block) * kept.scale
        moved, scale = self.left.moved[kept.level, kept.tensor.name], float(kept.scale)
        shares = moved.timed if time else moved.data
        if kind not in shares:
            return 0.0
        share = shares[kind] * (1.0 if block > 1 else scale)
        data = count if isinstance(share, float) and share == 1.0 else count * share
        data = _in_blocks(data, block) * scale if block > 1 else data
        return data if moved.metadata is None else data + count * moved.metadata / kept.memory.word_bits

    def _port(self, level: int, view: str, kinds: tuple[str, ...]) -> Value:
        """Words through the ports of the instance that is busiest in a view (`walks.VIEWS`)."""
        kept = self.plan.of(level)
        view = view if any((view, level, k.tensor.name, kind) in self.tallies for k in kept for kind in kinds) else (
            "busiest")
        spared = sum(self._finals(k) * (k.scale - k.final_scale) for k in kept if "updates" in kinds)
        return sum((self._words(view, k, kind, time=True) for k in kept for kind in kinds), -spared)

    def _finals(self, kept: KeptTensor) -> int:
        """Words of an output that come to its home for the last time, if they are narrower then."""
        narrower = kept.tensor.is_output and kept.final_bits != kept.bits
        return kept.tensor.words(self.operator.sizes) if narrower else 0

    def _ports(self, level: int) -> tuple[Value, Value, Value]:
        """Words read, written, and both, each at the instance that is busiest there."""
        read, written, both = (self._port(level, port, kinds) for port, kinds in SERVED.items())
        return read, written, both

    @cached_property
    def steps(self) -> Value:
        """Steps of compute that are not skipped, in the mean."""
        steps = self.tallies["total", -1, "", "steps"]
        # Last digits are taken off, so that what is whole but for rounding is not rounded up.
        return steps if self.left is None or self.left.steps == 1 else np.ceil(steps * self.left.steps * (1 - 1e-12))

    @cached_property
    def paced(self) -> Value:
        """Cycles of the steps."""
        pace = self.lanes.cycles
        return self.steps if pace == 1 else -(-self.steps * pace.numerator // pace.denominator)

    def _cycles(self, words: Value, memory: Memory, port: str) -> Value:
        """Cycles to move words through a port, rounded up, but for the last digits of means; 0 where unlimited."""
        key = memory.name, RATE.format(port)
        if key not in self.columns.numbers:
            return 0
        moved, cycles = self.columns.exact(key)
        if self.left is None:
            return -(-words * int(cycles) // int(moved))
        return np.ceil(np.asarray(words) * cycles / moved * (1 - 2.0**-48))

    def _slower(self, words: Value, memory: Memory, port: str) -> Value:
        """Cycles to move words through a port or the one that all accesses share, whichever takes longer."""
        return _most(self._cycles(words, memory, port), self._cycles(words, memory, "shared"))

    @cached_property
    def traffic(self) -> dict[int, tuple[Value, Value, Value]]:
        """Words read and written at the busiest instance of each memory with limited ports, and the cycles."""
        found: dict[int, tuple[Value, Value, Value]] = {}
        for level, memory in self.plan.memories:
            if memory.bandwidth != Bandwidth():
                read, written, both = self._ports(level)
                found[level] = read, written, _most(
                    self._cycles(read, memory, "read"), self._cycles(written, memory, "write"),
                    self._cycles(both, memory, "shared"))
        return found

    @cached_property
    def blocked(self) -> Value:
        """Cycles of the steps, and those for which single-buffered memories block them."""
        return sum((self._blocking(level, memory) for level, memory in self.plan.memories), self.paced)

    def _blocking(self, level: int, memory: Memory) -> Value:
        """Cycles in which compute waits for the tiles of a single-buffered memory to come and go."""
        if level not in self.plan.blocking or level not in self.traffic:
            return 0
        return sum(self._slower(self._port(level, "blocking", (kind,)), memory, port)
                   for kind, port in BLOCKING.items())

    @cached_property
    def steady(self) -> Value:
        """Steady cycles."""
        return _most(self.blocked, *(cycles for _, _, cycles in self.traffic.values()))

    @cached_property
    def ramps(self) -> tuple[Value, Value]:
        """Cycles in which first operand tiles come in, and last output tiles go out, and nothing overlaps (rule 8)."""
        first, last = (sum((self._end(level, last) for level in self.plan.overlapping), 0 * self.steps)
                       for last in (False, True))
        return first, last

    @cached_property
    def ramp(self) -> Value:
        """Cycles of the cold start and the tail."""
        return sum(self.ramps)

    def _end(self, level: int, last: bool) -> Value:
        """Cycles of the slowest port as the first tiles come to a memory, or the last one leaves it."""
        return _most(0, *(self._slower(sum(self._at_end(*each, kind) for each in moved), moved[0][0].memory, port)
                          for port, kind, moved in self.plan.ends(level, last)))

    def _at_end(self, kept: KeptTensor, edge: Boundary, kind: str) -> Value:
        """Words of one side of a boundary in one visit, in the memory's own width."""
        count = self.tallies.get(("edge", edge.child, kept.tensor.name, kind), 0)
        if self.left is None:
            return count * kept.final_scale
        moved = self.left.moved[kept.level, kept.tensor.name]
        return count * (moved.timed[kind] * float(kept.scale)) + count * (moved.bits / kept.memory.word_bits)

    @cached_property
    def latency(self) -> Value:
        """Cycles."""
        return self.steady + self.ramp

    @cached_property
    def spent(self) -> dict[str, Value]:
        """Picojoules by memory, compute unit and fan-out."""
        numbers, name = self.columns.numbers, self.accelerator.compute.name
        found = {memory.name: sum((self._accesses_pj(kept) for kept in self.plan.of(level)), 0.0)
                 for level, memory in self.plan.memories}
        performed = self.operator.macs * (1 if self.left is None else self.left.macs)
        found[name] = performed * numbers[name, "energy_pj_per_mac"] * self.lanes.energy
        for level, fanout in enumerate(self.accelerator.levels):
            if isinstance(fanout, Fanout):
                paid = fanout.network_energy_pj_per_word > 0
                found[fanout.name] = self._network_words(level) * numbers[fanout.name, NETWORK] if paid else 0.0
        return found

    @cached_property
    def energies(self) -> dict[str, Value]:
        """The same, and leakage."""
        leaks = {"leakage": self.latency * self.columns.numbers[LEAKAGE]} if self.accelerator.leakage_mw else {}
        return self.spent | leaks

    def _network_words(self, level: int) -> Value:
        """Words across a fan-out, as the child counts them; metadata in words of the tensor."""
        total: Value = 0
        for at in self.plan.crossings:
            if not carries(self.accelerator, at, level):
                continue
            for kind in ("fills", "drains") if at.tensor.is_output else ("fills",):
                count = self.tallies["total", at.child, at.tensor.name, kind]
                total = total + count * self._crossing(at, kind)
        return total

    def _crossing(self, at: Boundary, kind: str) -> Value:
        """Words that cross an array for each that the static schedule moves there."""
        if self.left is None:
            return 1
        moved = self.left.moved.get((at.child, at.tensor.name))
        if moved is None:
            return self.left.fed[at.tensor.name]
        return moved.data[kind] + moved.bits / float(tensor_bits(at.tensor, self.accelerator))

    def _accesses_pj(self, kept: KeptTensor) -> Value:
        """Picojoules of what is moved of a tensor at a memory."""
        prices = {kind: self.columns.numbers[kept.memory.name, name] for kind, name in PRICES.items()}
        found = sum((self._words("total", kept, kind, time=False) * price for kind, price in prices.items()), 0.0)
        if last := self._finals(kept):
            updates = self.tallies["total", kept.level, kept.tensor.name, "updates"]
            whole, others, last = (_in_blocks(words, kept.memory.block_words) for words in (
                updates, updates - last, last))
            found -= float((whole - others) * kept.scale - last * kept.final_scale) * prices["updates"]
        return found

    @cached_property
    def energy(self) -> Value:
        """Picojoules."""
        return sum(self.energies.values(), 0.0 * self.steps)

    @property
    def outermost_bytes(self) -> Value:
        """Bytes that are moved at the outermost memory where zeros are made use of, metadata included."""
        assert self.left is not None
        total = 0.0 * self.steps
        for kept in self.plan.of(0):
            moved = self.left.moved[0, kept.tensor.name]
            for kind in KINDS:
                count = self.tallies["total", 0, kept.tensor.name, kind]
                words = moved.data.get(kind, 0.0) if kind in ("reads", "updates") else 0.0
                total = total + count * (words * float(kept.bits) + moved.bits) / 8
        return total

    def cost(self) -> Cost:
        """Return everything about the one mapping of which these are tallies."""
        pace, left, places = self.lanes.cycles, self.left, [(kept.memory.name, kept.tensor.name)
                                                           for kept in self.plan.kept]
        energies = {name: float(_one(pj)) for name, pj in self.energies.items()}
        traffic = {memory.name: self._memory_traffic(level, memory) for level, memory in self.plan.memories}
        steady, latency = int(_one(self.steady)), int(_one(self.latency))
        timed = self.operator.macs * (1 if left is None else left.steps)
        return Cost(
            macs=self.operator.macs, steps=int(_one(self.steps)), steady_cycles=steady, ramp_cycles=latency - steady,
            energy_pj=sum(energies.values()), energy_by_component_pj=energies,
            counts=self.counts, traffic=traffic,
            bottleneck="compute" if _one(self.blocked) >= steady else max(traffic, key=lambda n: traffic[n].cycles),
            utilisation=timed * float(pace) / (self.accelerator.compute_instances * max(1, latency)),
            expected=None if left is None else {
                place: self._expected(kept, left) for place, kept in zip(places, self.plan.kept, strict=True)},
            performed_macs=None if left is None else self.operator.macs * left.macs,
            paced_cycles=None if pace == 1 else int(_one(self.paced)),
            energy_by_tensor_pj={place: float(_one(self._accesses_pj(kept)))
                                 for place, kept in zip(places, self.plan.kept, strict=True)})

    @property
    def counts(self) -> dict[tuple[str, str], Count]:
        """What the static schedule of the one mapping moves."""
        return {(kept.memory.name, kept.tensor.name): Count(**{
            kind: int(_one(words)) for kind, words in self._counts(kept).items()}) for kept in self.plan.kept}

    def _counts(self, kept: KeptTensor) -> dict[str, Value]:
        """Words that the static schedule moves, summed over instances."""
        return {kind: self.tallies["total", kept.level, kept.tensor.name, kind] for kind in KINDS}

    def _memory_traffic(self, level: int, memory: Memory) -> MemoryTraffic:
        read, written, cycles = self.traffic[level] if level in self.traffic else (*self._ports(level)[:2], 0)
        return MemoryTraffic(float(_one(read)), float(_one(written)), int(_one(cycles)),
                             int(_one(self._blocking(level, memory))))

    def _expected(self, kept: KeptTensor, left: Left) -> Expected:
        moved, counts = left.moved[kept.level, kept.tensor.name], self._counts(kept)
        words = {kind: float(_one(count * moved.data.get(kind, 0.0))) for kind, count in counts.items()}
        return Expected(**words, metadata_bits=float(_one(sum(counts.values()) * moved.bits)))


def _fraction(bits: int | Fraction, width: int) -> int | Fraction:
    found = Fraction(bits, width)
    return found.numerator if found.denominator == 1 else found


def _in_blocks(words: Value, block: int) -> Value:
    """Return words in whole blocks."""
    if block == 1:
        return words
    return np.ceil(words / block) * block if isinstance(words, np.ndarray) else -(-words // block) * block


def _most(*values: Value) -> Value:
    found = values[0]
    for value in values[1:]:
        found = np.maximum(found, value) if isinstance(found, np.ndarray) or isinstance(value, np.ndarray) else max(
            found, value)
    return found


def _one(value: Value) -> Any:
    """Return the figure of the one mapping."""
    return value[0] if isinstance(value, np.ndarray) else value
