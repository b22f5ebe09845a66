"""Result records that the fast model and the oracle share."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Self

COMPUTE = "compute"
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

    ``cycles`` is what its ports need for them, rounded up; 0 where bandwidth is unlimited. In ``blocking_cycles``
    compute waits for the tiles of a single-buffered memory to come and go.
    """

    read_words: float
    write_words: float
    cycles: int
    blocking_cycles: int = 0


@dataclass(frozen=True)
class CycleLimit:
    """What takes cycles: steps of compute, the port of a memory, waits for its tiles, or the ramp.

    ``cycles`` are what it needs by itself, ``adds`` what it adds to those named before it; 0 where it is hidden.
    """

    name: str
    kind: Literal["compute", "port", "waits", "ramp"]
    cycles: int
    adds: int = 0

    @property
    def words(self) -> str:
        """What it is, in a sentence."""
        owner = f"{self.name}'" if self.name.endswith("s") else f"{self.name}'s"
        return {"port": f"{owner} port", "waits": f"waits for {self.name}"}.get(self.kind, self.name)


def limited_by(limits: Sequence[CycleLimit]) -> str:
    """Return what sets the cycles in a few words, what adds most to it behind: ``compute, Spads +2.4 %``.

    >>> limited_by([CycleLimit("compute", "compute", 688_128, 688_128), CycleLimit("Spads", "port", 704_854, 16_726)])
    'compute, Spads +2.4 %'
    """
    first, *others = (limit for limit in limits if limit.adds)
    worth = [limit for limit in others if limit.adds >= first.adds * (0.1 if limit.kind == "ramp" else 0.005)]
    told = [f"{most.name} +{100 * most.adds / first.adds:.1f} %"
            for most in sorted(worth, key=lambda limit: -limit.adds)[:1]]
    return ", ".join([first.name, *told])


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
    """What one mapping costs."""

    macs: int
    steps: int
    """Steps of compute: the real temporal iterations of the longest-running instance."""
    steady_cycles: int
    ramp_cycles: int
    energy_pj: float
    energy_by_component_pj: dict[str, float]
    """By memory name, compute name, fan-out name (network) and ``"leakage"``."""
    counts: dict[tuple[str, str], Count]
    """By ``(memory, tensor)``, for each tensor that the memory keeps: what the static schedule moves, zeros and all."""
    traffic: dict[str, MemoryTraffic]
    """By memory."""
    bottleneck: str
    """``"compute"`` or the name of the memory that sets the steady cycles."""
    utilisation: float
    expected: dict[tuple[str, str], Expected] | None = None
    """What of the counts is moved where the machine makes use of zeros; None where it does not. Energy, traffic,
    cycles and steps are then those of these words."""
    performed_macs: float | None = None
    """Multiply-accumulates that take energy then; None: all."""
    energy_by_tensor_pj: dict[tuple[str, str], float] = field(default_factory=dict, compare=False)
    """By ``(memory, tensor)``: what each tensor has of a memory's energy."""
    paced_cycles: int | None = None
    """Cycles of the steps, where a step does not take one (lanes take the words of the operands faster, or in
    parts)."""

    @property
    def compute_cycles(self) -> int:
        """Cycles of the steps of compute."""
        return self.steps if self.paced_cycles is None else self.paced_cycles

    @property
    def latency_cycles(self) -> int:
        """Steady and ramp cycles together."""
        return self.steady_cycles + self.ramp_cycles

    @property
    def edp(self) -> float:
        """Energy-delay product in picojoule-cycles."""
        return self.energy_pj * self.latency_cycles


@dataclass(frozen=True)
class FusedCost:
    """What a fused group costs."""

    macs: int
    steady_cycles: int
    ramp_cycles: int
    energy_pj: float
    energy_by_component_pj: dict[str, float]
    counts: dict[tuple[str, str, str], Count]
    """By ``(operator, memory, tensor)``, for each tensor of the operator that the memory keeps."""
    cycles: dict[str, int]
    """What each resource needs for all operators together: ``"compute"``, ``"vector unit"`` and each memory's port."""
    bottleneck: str
    utilisation: float
    held: dict[str, tuple[int, int]]
    """By the producer of an intermediate tensor: the most words that are held of it at one time, and those of them
    that stay from one iteration to the next."""
    made: dict[str, float]
    """By operator: how many times the multiply-accumulates, or scalar operations, of the operator alone are done."""

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
