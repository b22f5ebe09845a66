"""What a run's record says of costs: counts, cycles and energy of a layer, its bounds, and what limits it."""

from dataclasses import dataclass, field
from typing import Literal

from tilewright.cost import CycleLimit, Expected, limited_by


@dataclass(frozen=True)
class CountRecord:
    """Words of one tensor at one memory, summed over instances.

    ``mean`` is what of them is moved where the machine makes use of zeros, ``energy_pj`` what that takes.
    """

    memory: str
    tensor: str
    reads: int
    fills: int
    updates: int
    drains: int
    mean: Expected | None = None
    energy_pj: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TrafficRecord:
    """Words through the ports of the busiest instance of a memory, and the cycles they take."""

    memory: str
    read_words: float
    write_words: float
    cycles: int


@dataclass(frozen=True)
class CostRecord:
    """What the mapping of a layer costs, once (not multiplied by the layer's count).

    ``bottleneck`` is what to cure: the first of ``limits`` (compute or a memory), which stand in the order of
    `tilewright.cost.limits_of`.
    """

    macs: int
    steps: int
    steady_cycles: int
    ramp_cycles: int
    latency_cycles: int
    energy_pj: float
    edp: float
    energy_by_component_pj: dict[str, float]
    counts: tuple[CountRecord, ...]
    traffic: tuple[TrafficRecord, ...]
    bottleneck: str
    utilisation: float
    limits: tuple[CycleLimit, ...] = ()

    @property
    def limited_by(self) -> str:
        """What sets the cycles, in a few words."""
        return limited_by(self.limits) if self.limits else self.bottleneck


@dataclass(frozen=True)
class BoundsRecord:
    """What no mapping of the layer can beat.

    ``blocked_cycles`` are transfers that compute waits for; the bound on latency is the larger of compute with them
    and data movement. ``score`` is the bound on the objective where one is known.
    """

    compute_cycles: int
    data_movement_cycles: int
    latency_cycles: int
    energy_pj: float
    edp: float
    blocked_cycles: int = 0
    latency_binding: str = ""
    energy_binding: str = ""
    score: float | None = None


@dataclass(frozen=True)
class RooflineRecord:
    """Where a layer lies under the roof of the machine's outermost memory; a bandwidth of None is unlimited.

    The intensity is that of the mapping; ``compulsory_macs_per_byte`` that of one which moves each word once.
    """

    intensity_macs_per_byte: float
    achieved_macs_per_cycle: float
    peak_macs_per_cycle: float
    bandwidth_bytes_per_cycle: float | None
    memory: str = ""
    compulsory_macs_per_byte: float | None = None

    @property
    def roof_macs_per_cycle(self) -> float:
        """The most that this intensity allows."""
        if self.bandwidth_bytes_per_cycle is None:
            return self.peak_macs_per_cycle
        return min(self.peak_macs_per_cycle, self.bandwidth_bytes_per_cycle * self.intensity_macs_per_byte)

    @property
    def side(self) -> Literal["compute", "memory"]:
        """Which part of the roof is above the layer."""
        return "compute" if self.roof_macs_per_cycle >= self.peak_macs_per_cycle else "memory"


@dataclass(frozen=True)
class DiagnosisRecord:
    """What sets most of a network's cycles: ``limit``, in so many of its distinct layers, and what would cure it."""

    limit: str
    layers: int
    share: float
    """Of all cycles, vector work's among them where that is limited so too."""
    latency_cycles: int | None
    """The network's, for the mappings found, with twice of it, by the model; None where nothing can be doubled."""
    sentence: str
    """All this in words."""
