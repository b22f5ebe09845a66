"""Result records that the fast model and the oracle share."""

from dataclasses import dataclass, fields, replace
from typing import Self

KINDS = ("reads", "fills", "updates", "drains")
"""Kinds of access, in the order of a `Count`."""


@dataclass(frozen=True)
class Count:
    """Words of one tensor at one memory, summed over instances (counting rules 1 to 7).

    ``reads`` by children or the compute unit, ``fills`` from the parent, ``updates`` from children or the compute
    unit, ``drains`` to the parent.
    """

    reads: int
    fills: int
    updates: int
    drains: int


@dataclass(frozen=True)
class MemoryTraffic:
    """Words moved by the busiest instance of one memory, in words of the memory's own width.

    ``cycles`` is what its ports need for them, rounded up; 0 where bandwidth is unlimited.
    """

    read_words: float
    write_words: float
    cycles: int


@dataclass(frozen=True)
class Expected:
    """Words of one tensor that are moved at one memory in the mean over the zeros of all tensors, by kind of access.

    Summed over instances, in words of the tensor; ``metadata_bits`` move beside them (docs/sparsity.md).
    """

    reads: float
    fills: float
    updates: float
    drains: float
    metadata_bits: float


@dataclass(frozen=True)
class Cost:
    """What one mapping costs.

    Parameters
    ----------
    counts
        By ``(memory, tensor)``, for each tensor that the memory keeps: what the static schedule moves, zeros and all.
    traffic
        By memory.
    steps
        Steps of compute: the real temporal iterations of the longest-running instance.
    energy_by_component_pj
        By memory name, compute name, fan-out name (network) and ``"leakage"``.
    bottleneck
        ``"compute"`` or the name of the memory that sets the steady cycles.
    expected
        What of the counts is moved where the machine makes use of zeros; None where it does not. Energy, traffic,
        cycles and steps are then those of these words.
    performed_macs
        Multiply-accumulates that take energy then; None: all.
    """

    macs: int
    steps: int
    steady_cycles: int
    ramp_cycles: int
    energy_pj: float
    energy_by_component_pj: dict[str, float]
    counts: dict[tuple[str, str], Count]
    traffic: dict[str, MemoryTraffic]
    bottleneck: str
    utilisation: float
    expected: dict[tuple[str, str], Expected] | None = None
    performed_macs: float | None = None

    @property
    def latency_cycles(self) -> int:
        """Steady and ramp cycles together."""
        return self.steady_cycles + self.ramp_cycles

    @property
    def edp(self) -> float:
        """Energy-delay product in picojoule-cycles."""
        return self.energy_pj * self.latency_cycles


@dataclass(frozen=True)
class Assumptions:
    """Assumptions that part a tool's figures from ours, each a flag. None made: our rules."""

    @property
    def made(self) -> tuple[str, ...]:
        """Names of the assumptions that are made."""
        return tuple(entry.name for entry in fields(self) if getattr(self, entry.name))

    def having(self, name: str, made: bool) -> Self:
        """Return these conventions with one assumption made or dropped."""
        return replace(self, **{name: made})
