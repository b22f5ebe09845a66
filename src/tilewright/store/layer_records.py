"""Mappings as runs hold them: as data, as text and as rows to draw; and what layers cost, bounds, and what limits."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tilewright.cost import CycleLimit, Expected, limited_by
from tilewright.hardware import Accelerator
from tilewright.mapping import LevelLoops, Loop, Mapping, NestRow, dump_mapping, nest_rows, render
from tilewright.workload import Operator

SpatialAxis = Literal["X", "Y"]


@dataclass(frozen=True)
class LevelRecord:
    """The loops of a mapping at one level, as ``(dimension, step, axis)``, and the tensors that it keeps."""

    level: str
    loops: tuple[tuple[str, int, SpatialAxis | None], ...] = ()
    keeps: tuple[str, ...] | None = None


@dataclass(frozen=True)
class MappingRecord:
    """A mapping as data, as a YAML file, as an annotated loop nest in text, and as the rows of its drawing."""

    levels: tuple[LevelRecord, ...]
    yaml: str
    text: str
    nest: tuple[NestRow, ...]

    def __str__(self) -> str:
        return self.text


def mapping_record(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> MappingRecord:
    """Return the record of a mapping: as data, as a YAML file, as text and as rows to draw."""
    rows = nest_rows(mapping, operator, accelerator)
    return MappingRecord(level_records(mapping), dump_mapping(mapping, operator, accelerator),
                         render(mapping, operator, accelerator, rows=rows), rows)


def level_records(mapping: Mapping) -> tuple[LevelRecord, ...]:
    """Return a mapping as data."""
    return tuple(
        LevelRecord(entry.level, tuple((loop.dimension, int(loop.step), loop.axis) for loop in entry.loops),
                    entry.keeps)
        for entry in mapping.levels)


def mapping_from(levels: Iterable[LevelRecord]) -> Mapping:
    """Return the mapping that records of its levels describe; they may have lists, of JSON, in place of tuples."""
    return Mapping(tuple(
        LevelLoops(level.level, tuple(Loop(*loop) for loop in level.loops),
                   None if level.keeps is None else tuple(level.keeps)) for level in levels))


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
