"""What a micro-batch strategy is judged by: a chain, a batch, a memory and a machine (Kao et al. 2022, section 3)."""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, unknown_name
from tilewright.fusion.microbatch.chain import ChainEntry, chain
from tilewright.hardware import Accelerator, Memory
from tilewright.workload import Graph

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
    def tables(self) -> tuple[Any, ...]:
        """What the kernels read; see `tilewright.fusion.microbatch.kernels.score_plans`."""
        last = [self.length if entry.leaves else max(readers, default=0)
                for entry, readers in zip(self.entries, self.readers, strict=True)]
        reads = [[(q, p) for p in entry.reads] for q, entry in enumerate(self.entries)]
        held = [[(p, next(r for r in readers if r >= q)) for p, readers in enumerate(self.readers[:q])
                 if readers and readers[-1] >= q] for q in range(self.length)]
        return (self.batch, self.tiles, self.sizes, self.weights, self.cycles, np.array(last, dtype=np.int64),
                *_listed(reads), *_listed(held), self.weight_bytes, self.rates)

    @cached_property
    def rates(self) -> Floats:
        """``(7)``: cycles a byte off and on chip, picojoules of a byte read, written, on chip, of compute, leakage."""
        machine = self.machine
        return np.array([1 / machine.offchip_bytes_per_cycle, 1 / machine.onchip_bytes_per_cycle,
                         machine.read_pj_per_byte, machine.write_pj_per_byte, machine.onchip_pj_per_byte,
                         machine.mac_pj * machine.elements, machine.leakage_pj_per_cycle])

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
