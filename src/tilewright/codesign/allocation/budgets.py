"""Budgets of a pipeline: shares of its largest form (table 8.2), totals of an FPGA (8.2.6), or plain figures."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.allocation.table import AllocationTable
from tilewright.codesign.limits import UNITS, Limit, read_limits

Floats = NDArray[np.float64]
MEASURES = tuple(UNITS)
"""What may be limited."""
SHARES = {"cloud": 0.5, "iot": 0.1, "iotx": 0.05}
"""Of the area or power of the whole network with the largest pair everywhere (table 8.2)."""
FPGAS = {"fpga-cloud": "elements=4096,bytes=8192B", "fpga-edge": "elements=256,bytes=4096B"}
"""Totals of section 8.2.6. Bytes are those of one element of each layer: 4,096 buffers of 19 B would take 78 KB."""
RELEASE = "release-"


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

    @property
    def each(self) -> tuple[Limit, ...]:
        """The limits by their measures."""
        return tuple(Limit(*one) for one in zip(self.measures, self.limits, strict=True))

    def __str__(self) -> str:
        return ",".join(map(str, self.each)) or "unlimited"


UNLIMITED = AllocationBudget()


def read_budget(within: str | Iterable[str | Limit], table: AllocationTable,
                deployment: str = "pipelined") -> AllocationBudget:
    """Return the budget of the stages of ``table``: ``area=iot``, ``area=7mm2,power=2W`` ...

    Limits of area and power are figures with a unit, or ``cloud``, ``iot``, ``iotx`` (shares of the largest pair
    everywhere), or those after ``release-`` (the least of the four corner pairs, and the same share of its distance to
    the most). ``fpga-cloud``, ``fpga-edge`` and ``unlimited`` stand alone.

    Raises an `InputError` if a figure or name is unknown or repeated, a unit is missing, or the limit is not positive.
    """
    if within == "unlimited":
        return UNLIMITED

    def named(measure: str, name: str) -> float | None:
        share = SHARES.get(name.removeprefix(RELEASE))
        if share is None or measure not in ("area", "power"):
            return None
        cells = table.area_um2 if measure == "area" else table.power_mw
        whole = cells.sum(axis=0) if deployment == "pipelined" else cells.max(axis=0)  # (s, p, k)
        corners = whole[:, [0, 0, -1, -1], [0, -1, 0, -1]]
        if name.startswith(RELEASE):
            return float(corners.min() + share * (corners.max() - corners.min()))
        return float(share * corners[:, -1].max())

    given = FPGAS.get(within, within) if isinstance(within, str) else within
    names = f"of area and power {', '.join(SHARES)} or {RELEASE}{next(iter(SHARES))}", f"alone {', '.join(FPGAS)}"
    limits = read_limits(given, named, names)
    return AllocationBudget(tuple(one.what for one in limits), tuple(one.most for one in limits))
