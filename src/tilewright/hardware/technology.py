"""What an access, an operation, a millimetre and a bit cost: technology tables, read between their rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import Literal

from tilewright.base import InputError, unknown_name

StorageKind = Literal["sram", "registers"]
MacType = Literal["int", "fp"]


@dataclass(frozen=True)
class Anchor:
    """One published row: ``y`` at ``x``, and where it comes from."""

    x: float
    y: float
    source: str


@dataclass(frozen=True)
class Curve:
    """Published rows, straight lines between them on log-log axes.

    A row is returned exactly. Outside the rows, but inside ``[low, high]``, the exponent of the nearest segment is kept
    (1, that is proportionality, where there is a single row).

    Parameters
    ----------
    name
        Path shown in errors, for example ``45nm.sram.read``.
    anchors
        Rows in increasing ``x``; all values positive.
    low, high
        Range of ``x`` in which the curve may be read.
    unit
        Of ``x``.

    Raises
    ------
    InputError
        If there is no row, ``x`` repeats or decreases, or a value is not positive.
    """

    name: str
    anchors: tuple[Anchor, ...]
    low: float
    high: float
    unit: str

    def __post_init__(self) -> None:
        xs = [anchor.x for anchor in self.anchors]
        if not xs or xs != sorted(set(xs)):
            raise InputError(f"technology.{self.name}", f"must have rows of distinct {self.unit}, in order", xs)
        worst = min(min(anchor.x, anchor.y) for anchor in self.anchors)
        if worst <= 0:
            raise InputError(f"technology.{self.name}", "must have positive figures only", worst)

    def at(self, x: float) -> float:
        """Return the value at ``x``; outside the range it is an `InputError`."""
        if not self.low <= x <= self.high:
            raise InputError(
                f"technology.{self.name}", f"knows {self.low:g} to {self.high:g} {self.unit} only", x,
                "Give the figure in the file, or add a row to the technology",
            )
        for anchor in self.anchors:
            if anchor.x == x:
                return anchor.y
        if len(self.anchors) == 1:
            return self.anchors[0].y * x / self.anchors[0].x
        right = next((i for i, anchor in enumerate(self.anchors) if anchor.x > x), len(self.anchors) - 1)
        a, b = self.anchors[max(right, 1) - 1], self.anchors[max(right, 1)]
        exponent = log(b.y / a.y) / log(b.x / a.x)
        return float(a.y * (x / a.x) ** exponent)

    def scaled(self, name: str, factor: float) -> "Curve":
        """Return the curve with every value times ``factor``, under a new ``name``."""
        anchors = tuple(Anchor(anchor.x, anchor.y * factor, anchor.source) for anchor in self.anchors)
        return Curve(name, anchors, self.low, self.high, self.unit)


@dataclass(frozen=True)
class Storage:
    """One way of keeping words on chip, by capacity in bytes.

    ``read_pj_per_bit`` and ``write_pj_per_bit`` are multiplied by the bits that an access moves; ``area_um2`` and
    ``leakage_mw`` are of the whole memory. ``leakage_mw`` is None where nothing is published.
    """

    read_pj_per_bit: Curve
    write_pj_per_bit: Curve
    area_um2: Curve
    leakage_mw: Curve | None = None


@dataclass(frozen=True)
class Technology:
    """A technology table.

    Parameters
    ----------
    node_nm, voltage_v
        Feature size and supply voltage that the figures hold for.
    dram_pj_per_bit
        By DRAM type: (picojoules per bit, source).
    storage
        ``sram`` and ``registers``.
    mac_energy_pj, mac_area_um2
        By number type (``int``, ``fp``), over the width of the operands in bits.
    wire_pj_per_bit_mm
        Energy to move one bit one millimetre on chip, and its source.
    """

    name: str
    node_nm: float
    voltage_v: float
    dram_pj_per_bit: Mapping[str, tuple[float, str]]
    storage: Mapping[str, Storage]
    mac_energy_pj: Mapping[str, Curve]
    mac_area_um2: Mapping[str, Curve]
    wire_pj_per_bit_mm: tuple[float, str]
    about: str = field(default="", compare=False)

    def dram_pj(self, dram_type: str, bits: int) -> float:
        """Return picojoules to move ``bits`` to or from a DRAM; an unknown type is an `InputError`."""
        if dram_type not in self.dram_pj_per_bit:
            raise unknown_name("DRAM type", dram_type, list(self.dram_pj_per_bit))
        return self.dram_pj_per_bit[dram_type][0] * bits

    def read_pj(self, kind: StorageKind, capacity_bytes: float, bits: int) -> float:
        """Return picojoules to read ``bits`` from an on-chip memory of ``capacity_bytes``."""
        return self.storage[kind].read_pj_per_bit.at(capacity_bytes) * bits

    def write_pj(self, kind: StorageKind, capacity_bytes: float, bits: int) -> float:
        """Return picojoules to write ``bits`` to an on-chip memory of ``capacity_bytes``."""
        return self.storage[kind].write_pj_per_bit.at(capacity_bytes) * bits

    def area_um2(self, kind: StorageKind, capacity_bytes: float) -> float:
        """Return square micrometres of an on-chip memory of ``capacity_bytes``."""
        return self.storage[kind].area_um2.at(capacity_bytes)

    def leakage_mw(self, kind: StorageKind, capacity_bytes: float) -> float | None:
        """Return milliwatts that an on-chip memory of ``capacity_bytes`` leaks; None where nothing is published."""
        curve = self.storage[kind].leakage_mw
        return None if curve is None else curve.at(capacity_bytes)

    def mac_pj(self, mac_type: MacType, width_bits: int) -> float:
        """Return picojoules of one multiply-accumulate of ``width_bits`` operands."""
        return self.mac_energy_pj[mac_type].at(width_bits)

    def mac_um2(self, mac_type: MacType, width_bits: int) -> float:
        """Return square micrometres of one multiply-accumulate unit of ``width_bits`` operands."""
        return self.mac_area_um2[mac_type].at(width_bits)

    def wire_pj(self, bits: int, length_mm: float) -> float:
        """Return picojoules to move ``bits`` over ``length_mm`` of wire on chip."""
        return self.wire_pj_per_bit_mm[0] * bits * length_mm

    @property
    def sources(self) -> tuple[str, ...]:
        """Every citation of the table, each once."""
        curves = [*self.mac_energy_pj.values()]
        for store in self.storage.values():
            curves += [store.read_pj_per_bit, store.area_um2, *([store.leakage_mw] if store.leakage_mw else [])]
        found = [source for _, source in self.dram_pj_per_bit.values()]
        found += [anchor.source for curve in curves for anchor in curve.anchors]
        return tuple(dict.fromkeys([*found, self.wire_pj_per_bit_mm[1]]))
