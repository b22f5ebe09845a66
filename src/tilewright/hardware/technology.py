"""What an access, an operation, a millimetre and a bit cost: technology tables, read between their rows."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tilewright.base import InputError, unknown_name

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

Value = TypeVar("Value", float, "NDArray[float64]")
"""One figure, or one of each candidate."""
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

    Raises an `InputError` if there is no row, ``x`` repeats or decreases, or a value is not positive.
    """

    name: str
    """Path shown in errors, for example ``45nm.sram.read``."""
    anchors: tuple[Anchor, ...]
    """Rows in increasing ``x``; all values positive."""
    low: float
    high: float
    """``low`` and ``high``: range of ``x`` in which the curve may be read."""
    unit: str
    """Of ``x``."""

    def __post_init__(self) -> None:
        xs = [anchor.x for anchor in self.anchors]
        if not xs or xs != sorted(set(xs)):
            raise InputError(f"technology.{self.name}", f"must have rows of distinct {self.unit}, in order", xs)
        worst = min(min(anchor.x, anchor.y) for anchor in self.anchors)
        if worst <= 0:
            raise InputError(f"technology.{self.name}", "must have positive figures only", worst)

    def at(self, x: Value) -> Value:
        """Return the value at ``x``, or at each of an array of them; outside the range it is an `InputError`."""
        if not isinstance(x, float | int):
            from tilewright.hardware.columns import read_curve  # noqa: PLC0415  (NumPy and Numba load late)

            return read_curve(self, x)
        if not self.low <= x <= self.high:
            raise InputError(
                f"technology.{self.name}", f"knows {self.low:g} to {self.high:g} {self.unit} only", x,
                "Give the figure in the file, or add a row to the technology",
            )
        rows, figures, exponents = self.segments
        if x in rows:
            return figures[rows.index(x)]
        if not exponents:
            return figures[0] * x / rows[0]
        at = min(max(bisect_right(rows, x), 1), len(exponents)) - 1
        return float(figures[at] * (x / rows[at]) ** exponents[at])

    @cached_property
    def segments(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
        """Rows, their figures, and the exponent from each row to the next."""
        exponents = tuple(log(b.y / a.y) / log(b.x / a.x) for a, b in pairwise(self.anchors))
        return tuple(anchor.x for anchor in self.anchors), tuple(anchor.y for anchor in self.anchors), exponents

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

    @property
    def rising(self) -> bool:
        """Whether no figure falls where the capacity grows."""
        curves = self.read_pj_per_bit, self.write_pj_per_bit, self.area_um2, self.leakage_mw
        return all(min(curve.segments[2], default=1.0) >= 0 for curve in curves if curve is not None)

    def read_pj(self, capacity_bytes: Value, bits: int) -> Value:
        """Return picojoules to read ``bits`` from a memory of ``capacity_bytes``."""
        return self.read_pj_per_bit.at(capacity_bytes) * bits

    def write_pj(self, capacity_bytes: Value, bits: int) -> Value:
        """Return picojoules to write ``bits`` to a memory of ``capacity_bytes``."""
        return self.write_pj_per_bit.at(capacity_bytes) * bits

    def area(self, parts: Sequence[Any]) -> Any:
        """Return square micrometres of a memory made of parts of so many bytes."""
        return sum((self.area_um2.at(part) for part in parts), start=0.0)

    def leakage(self, parts: Sequence[Any]) -> Any:
        """Return milliwatts that a memory made of parts of so many bytes leaks; 0 where nothing is published."""
        return 0.0 if self.leakage_mw is None else sum((self.leakage_mw.at(part) for part in parts), start=0.0)


@dataclass(frozen=True)
class Technology:
    """A technology table."""

    name: str
    node_nm: float
    voltage_v: float
    """``node_nm`` and ``voltage_v``: feature size and supply voltage that the figures hold for."""
    dram_pj_per_bit: Mapping[str, tuple[float, str]]
    """By DRAM type: (picojoules per bit, source)."""
    storage: Mapping[str, Storage]
    """``sram`` and ``registers``."""
    mac_energy_pj: Mapping[str, Curve]
    mac_area_um2: Mapping[str, Curve]
    """``mac_energy_pj`` and ``mac_area_um2``: by number type (``int``, ``fp``), over the width of the operands in
    bits."""
    wire_pj_per_bit_mm: tuple[float, str]
    """Energy to move one bit one millimetre on chip, and its source."""
    about: str = field(default="", compare=False)

    def dram_pj(self, dram_type: str, bits: int) -> float:
        """Return picojoules to move ``bits`` to or from a DRAM; an unknown type is an `InputError`."""
        if dram_type not in self.dram_pj_per_bit:
            raise unknown_name("DRAM type", dram_type, list(self.dram_pj_per_bit))
        return self.dram_pj_per_bit[dram_type][0] * bits

    def read_pj(self, kind: StorageKind, capacity_bytes: float, bits: int) -> float:
        """Return picojoules to read ``bits`` from an on-chip memory of ``capacity_bytes``."""
        return self.storage[kind].read_pj(capacity_bytes, bits)

    def write_pj(self, kind: StorageKind, capacity_bytes: float, bits: int) -> float:
        """Return picojoules to write ``bits`` to an on-chip memory of ``capacity_bytes``."""
        return self.storage[kind].write_pj(capacity_bytes, bits)

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
