"""Result records that the fast model and the oracle share."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Count:
    """Words of one tensor at one memory, summed over instances (DESIGN rules 1 to 7).

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
class Cost:
    """What one mapping costs.

    Parameters
    ----------
    counts
        By ``(memory, tensor)``, for each tensor that the memory keeps.
    traffic
        By memory.
    steps
        Steps of compute: the real temporal iterations of the longest-running instance.
    energy_by_component_pj
        By memory name, compute name, fan-out name (network) and ``"leakage"``.
    bottleneck
        ``"compute"`` or the name of the memory that sets the steady cycles.
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

    @property
    def latency_cycles(self) -> int:
        """Steady and ramp cycles together."""
        return self.steady_cycles + self.ramp_cycles

    @property
    def edp(self) -> float:
        """Energy-delay product in picojoule-cycles."""
        return self.energy_pj * self.latency_cycles
