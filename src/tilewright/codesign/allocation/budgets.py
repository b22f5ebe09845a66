"""Budgets of a pipeline: shares of its largest form (table 8.2), totals of an FPGA (8.2.6), or plain figures."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, unknown_name
from tilewright.codesign.allocation.table import AllocationTable

Floats = NDArray[np.float64]
MEASURES = {"area": "um2", "power": "mW", "elements": "", "bytes": "B"}
"""What may be limited, and the unit that limits are kept in."""
SHARES = {"cloud": 0.5, "iot": 0.1, "iotx": 0.05}
"""Of the area or power of the whole network with the largest pair everywhere (table 8.2)."""
FPGAS = {"fpga-cloud": "elements=4096,bytes=8192B", "fpga-edge": "elements=256,bytes=4096B"}
"""Totals of section 8.2.6. Bytes are those of one element of each layer: 4,096 buffers of 19 B would take 78 KB."""
UNITS = {"area": {"um2": 1.0, "mm2": 1e6}, "power": {"mW": 1.0, "W": 1000.0}, "elements": {"": 1.0},
         "bytes": {"B": 1.0, "kB": 1000.0, "KiB": 1024.0}}
RELEASE = "release-"
_FIGURE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*[0-9]?)\s*")


@dataclass(frozen=True)
class AllocationBudget:
    """What a design may take in all: ``limits`` of some `MEASURES`. Elements and bytes are summed over layers."""

    measures: tuple[str, ...] = ()
    limits: tuple[float, ...] = ()

    def costs(self, table: AllocationTable) -> Floats:
        """Return what every cell takes of each measure: ``(m, l, s, p, k)``."""
        found = {"area": table.area_um2, "power": table.power_mw, "elements": table.elements,
                 "bytes": table.buffer_bytes}
        return np.stack([found[measure] for measure in self.measures]) if self.measures else np.empty(
            (0, *table.stages.shape))

    def __str__(self) -> str:
        parts = (f"{measure}={told(measure, limit)}" for measure, limit in zip(self.measures, self.limits, strict=True))
        return ",".join(parts) or "unlimited"


UNLIMITED = AllocationBudget()


def told(measure: str, limit: float) -> str:
    """Return a limit as people read it, and `read_budget` does."""
    if measure == "area" and limit >= 1e4:
        return f"{limit / 1e6:.6g}mm2"
    return f"{limit:.6g}{MEASURES[measure]}"


def enough(measure: str, needed: float) -> str:
    """Return a limit that is enough, rounded up at the fourth digit, as people read it."""
    scale = 10.0 ** (np.floor(np.log10(needed)) - 3)
    return told(measure, float(np.ceil(needed / scale) * scale))


def read_budget(text: str, table: AllocationTable, deployment: str = "pipelined") -> AllocationBudget:
    """Return the budget that ``text`` states for the stages of ``table``: ``area=iot``, ``area=7mm2,power=2W`` ...

    Limits of area and power are figures with a unit, or ``cloud``, ``iot``, ``iotx`` (shares of the largest pair
    everywhere), or those after ``release-`` (the least of the four corner pairs, and the same share of its distance to
    the most). ``fpga-cloud``, ``fpga-edge`` and ``unlimited`` stand alone.

    Raises
    ------
    InputError
        If a measure or name is unknown or repeated, a unit is missing, or the limit is not positive.
    """
    text = FPGAS.get(text, text)
    if text == "unlimited":
        return UNLIMITED
    limits: dict[str, float] = {}
    for part in text.split(","):
        measure, equals, value = (piece.strip() for piece in part.partition("="))
        if measure not in MEASURES:
            raise unknown_name("budget", measure, [*MEASURES, *FPGAS, "unlimited"], "within")
        if not equals or measure in limits:
            raise InputError(f"within.{measure}", "must be given once, with a limit" if equals else "must have a limit",
                             text, f"Write {measure}={'iot' if measure in ('area', 'power') else '256'}")
        limits[measure] = _limit(measure, value, table, deployment)
    return AllocationBudget(tuple(limits), tuple(limits.values()))


def _limit(measure: str, value: str, table: AllocationTable, deployment: str) -> float:
    share = SHARES.get(value.removeprefix(RELEASE))
    if share is not None and measure in ("area", "power"):
        cells = table.area_um2 if measure == "area" else table.power_mw
        whole = cells.sum(axis=0) if deployment == "pipelined" else cells.max(axis=0)  # (s, p, k)
        corners = whole[:, [0, 0, -1, -1], [0, -1, 0, -1]]
        if value.startswith(RELEASE):
            return float(corners.min() + share * (corners.max() - corners.min()))
        return float(share * corners[:, -1].max())
    match, units = _FIGURE.fullmatch(value), UNITS[measure]
    if match is None:
        names = [*SHARES, *(RELEASE + name for name in SHARES)] if measure in ("area", "power") else []
        raise InputError(f"within.{measure}", f"must be a figure with a unit{' or one of ' if names else ''}"
                         f"{', '.join(names)}", value, f"Units: {', '.join(filter(None, units)) or 'none'}")
    number, unit = match.groups()
    if unit not in units:
        raise InputError(f"within.{measure}", f"must have one of the units {', '.join(units)}" if "" not in units else
                         "takes no unit", value, f"Write {measure}={number}{next(iter(units))}")
    if not 0 < float(number) * units[unit] < np.inf:
        raise InputError(f"within.{measure}", "must be positive and finite", value)
    return float(number) * units[unit]
