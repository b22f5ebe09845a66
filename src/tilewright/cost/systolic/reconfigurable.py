"""Systolic arrays that fall apart into smaller ones: cells with bypass links, how they may be set, what is modelled.

A cell is a small grid of multiply-accumulate units whose edges take operands from the neighbour or from a bypass
link of their own; see Samajdar et al., "Learning Flexible GEMM Accelerator Configuration and Mapping-space using ML"
(arXiv 2101.04799), sections II to IV.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, unknown_name
from tilewright.cost.systolic.records import SYSTOLIC_DATAFLOWS

ARRAY_SPACES = {
    "published": "every sub-array whose sides are the cell's times powers of two, in every layout (section III-A)",
    "realisable": "those whose sub-arrays are no longer than the plane of cells",
    "planar": "those whose layout of sub-arrays is the plane itself",
    "units": "those whose sub-arrays are single cells: arrays of a distributed machine, which cannot be joined",
}
"""Spaces of configurations: name, what they hold."""
TIE_RULE = ("partitions", "os", "ws", "is", "reads")
"""What decides between configurations that are equally good, in this order: the fewest partitions, one dataflow before
others, the fewest words that memories hand out. In the end it is `ArrayConfiguration.order`."""


@dataclass(frozen=True)
class ArrayConfiguration:
    """How a reconfigurable array is set: ``down`` x ``across`` sub-arrays of ``rows`` x ``columns``, one dataflow.

    Rows of a product (what lies along rows of the array) are split over ``down``, its columns over ``across``.

    Raises an `InputError` if a number is not positive or the dataflow unknown.
    """

    rows: int
    columns: int
    down: int
    across: int
    dataflow: str

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "down", "across"):
            if getattr(self, name) < 1:
                raise InputError(f"configuration.{name}", "must be a positive integer", getattr(self, name))
        if self.dataflow not in SYSTOLIC_DATAFLOWS:
            raise unknown_name("dataflow of systolic arrays", self.dataflow, list(SYSTOLIC_DATAFLOWS))

    @property
    def partitions(self) -> int:
        """Sub-arrays."""
        return self.down * self.across

    @property
    def macs(self) -> int:
        """Multiply-accumulate units of all sub-arrays."""
        return self.rows * self.columns * self.partitions

    @property
    def order(self) -> tuple[int, ...]:
        """Where it stands among equals, the first being best: fewest partitions, then os, ws, is, then the sides."""
        return (self.partitions, list(SYSTOLIC_DATAFLOWS).index(self.dataflow), self.rows, self.down, self.columns)

    def standing(self, ties: Sequence[str]) -> tuple[int, ...]:
        """Return where it stands among equals by words of a tie rule, the first being best; reads are no matter."""
        return tuple(self.partitions if word == "partitions" else self.dataflow != word
                     for word in ties if word != "reads")

    def __str__(self) -> str:
        return f"{self.down}x{self.across} of {self.rows}x{self.columns} {self.dataflow}"


@dataclass(frozen=True)
class PartitionEffects:
    """What a run on sub-arrays is held to, each a switch. All off: stall-free runtime, as published.

    Raises an `InputError` if a word is unknown.
    """

    bypass: bool = False
    """Bypass links take a cycle for every so many cells, once a run: the farthest sub-array begins and ends later."""
    summation: Literal["free", "tree", "banks"] = "free"
    """Where weights or inputs rest, the reduction is split over ``down`` and its partial sums must be added: ``free``
    (as published), in a ``tree`` of adders between the sub-arrays and the memory, or in the ``banks`` of the
    memory of outputs, which read every partial sum again once all are there."""
    ports: bool = False
    """A bank hands out or takes one word a cycle: no run is shorter than the words of its busiest memory over banks."""
    collation: bool = False
    """Sub-arrays that want a word in the same cycle share one read."""
    dram: Literal["off", "whole", "replicated"] = "off"
    """Words between DRAM and the memories: ``off``; the three memories ``whole``, or ``replicated``: each sub-array
    has its share of them for itself alone. A run is then no shorter than DRAM needs."""

    def __post_init__(self) -> None:
        for name, known in (("summation", SUMMATIONS), ("dram", DRAM_MEMORIES)):
            if getattr(self, name) not in known:
                raise InputError(f"effects.{name}", f"must be one of {', '.join(known)}", getattr(self, name))


SUMMATIONS = ("free", "tree", "banks")
DRAM_MEMORIES = ("off", "whole", "replicated")
STALL_FREE = PartitionEffects()


@dataclass(frozen=True)
class ReconfigurableArray:
    """A plane of systolic cells, three memories of banks, and bypass links.

    Raises an `InputError` if a number is not positive, or cells do not divide the array into a power of two.
    """

    macs: int
    """Multiply-accumulate units; ``macs / cell**2`` cells, a power of two, in a plane as square as can be."""
    cell: int = 4
    """Side of a cell."""
    banks: int = 1024
    bank_words: int = 1024
    """``banks`` and ``bank_words``: of each of the three memories, both halves together."""
    cells_per_stage: int = 8
    """Cells that a bypass link passes in a cycle."""
    dram_words_per_cycle: float | None = None
    """Of all three tensors together; None: any number."""
    name: str = "array"
    power_w: float | None = None
    area_mm2: float | None = None
    clock_ghz: float = 1.0
    """``power_w``, ``area_mm2`` and ``clock_ghz``: of the whole machine, as laid out and at full use; None where that
    is not known."""

    def __post_init__(self) -> None:
        for name in ("macs", "cell", "banks", "bank_words", "cells_per_stage"):
            if getattr(self, name) < 1:
                raise InputError(f"{self.name}.{name}", "must be a positive integer", getattr(self, name))
        for name in ("dram_words_per_cycle", "power_w", "area_mm2", "clock_ghz"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{self.name}.{name}", "must be positive", getattr(self, name))
        if self.macs % self.cell**2 or self.cells.bit_count() != 1:
            raise InputError(f"{self.name}.cell", f"must divide {self.macs} units into a power of two of cells",
                             f"{self.cell} x {self.cell}", "Give units that are its square times a power of two")

    @property
    def cells(self) -> int:
        """Cells."""
        return self.macs // self.cell**2

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns of units, where no bypass is set."""
        doublings = self.cells.bit_length() - 1
        return self.cell << (doublings + 1) // 2, self.cell << doublings // 2

    def configurations(self, space: str = "published") -> tuple[ArrayConfiguration, ...]:
        """Return the configurations of one of `ARRAY_SPACES`, the best among equals first (`ArrayConfiguration.order`).

        Raises an `InputError` if the space is unknown.
        """
        if space not in ARRAY_SPACES:
            raise unknown_name("space of configurations", space, list(ARRAY_SPACES))
        doublings, (plane_rows, plane_columns) = self.cells.bit_length() - 1, self.plane
        found = [ArrayConfiguration(self.cell << i, self.cell << j, 1 << k, 1 << doublings - i - j - k, flow)
                 for flow in SYSTOLIC_DATAFLOWS for i in range(doublings + 1) for j in range(doublings + 1 - i)
                 for k in range(doublings + 1 - i - j)]
        held = {"published": lambda one: True,
                "realisable": lambda one: one.rows <= plane_rows and one.columns <= plane_columns,
                "planar": lambda one: (one.rows * one.down, one.columns * one.across) == self.plane,
                "units": lambda one: one.rows == one.columns == self.cell}[space]
        return tuple(sorted(filter(held, found), key=lambda one: one.order))

    def units(self, rows: int, columns: int) -> tuple[ArrayConfiguration, ...]:
        """Return the configurations whose sub-arrays have these sides: those of a distributed machine of such arrays.

        Raises an `InputError` if there are none.
        """
        found = tuple(one for one in self.configurations() if (one.rows, one.columns) == (rows, columns))
        if not found:
            raise InputError("unit", f"must be cells of {self.cell} x {self.cell} times powers of two, in {self.macs}",
                             f"{rows} x {columns}")
        return found

    def record(self) -> dict[str, Any]:
        """Return all that it is as plain data, fit to be written or hashed."""
        return asdict(self)


SAGAR = ReconfigurableArray(2**14, name="sagar", power_w=13.01, area_mm2=81.90)
"""32 x 32 cells of 4 x 4, three memories of 1,024 banks of 1 KB, words of a byte, 8 cells a stage (II-C, IV-B); power
and area at 28 nm and 1 GHz with AdaptNetX in them (V-B)."""
RECONFIGURABLE_ARRAYS = {"sagar": SAGAR}
MONOLITHIC = ReconfigurableArray(2**14, 128, 128, 8192, name="monolithic", power_w=13.01 / 1.5, area_mm2=81.90 / 1.08)
"""One systolic array of 128 x 128, a bank for each row or column (table III); SAGAR takes about half as much power
again, and 8 % more area (V-B)."""
DISTRIBUTED = ReconfigurableArray(2**14, 4, 4 * 1024, 256, name="distributed-4x4", power_w=5.3 * 13.01 / 1.5,
                                  area_mm2=3.2 * 81.90)
"""Arrays of 4 x 4 on a mesh, a bank for each of their rows and columns (table III); 5.3 times the power of one array,
3.2 times SAGAR's area (V-B, which also says about 5 times that of one array: 4.6 times SAGAR's)."""
FIXED_ARRAYS = {one.name: one for one in (MONOLITHIC, DISTRIBUTED, *(
    ReconfigurableArray(2**14, side, 2**14 // side, 64 * side, name=f"distributed-{side}x{side}")
    for side in (8, 16, 32, 64)))}
"""Machines of table III whose arrays are what they are (space ``units``); of most the text tells no power."""


def reconfigurable_array(name: str, fixed: bool = False) -> ReconfigurableArray:
    """Return a preset, ``fixed`` ones included where that is asked.

    Raises an `InputError` if there is none of that name.
    """
    known = RECONFIGURABLE_ARRAYS | (FIXED_ARRAYS if fixed else {})
    if name not in known:
        raise unknown_name("reconfigurable array", name, list(known))
    return known[name]


@dataclass(frozen=True)
class ConfigurationTable:
    """Configurations as compiled code takes them."""

    entries: NDArray[np.int64]
    """``(c, 5)``: rows, columns, down, across, dataflow (its place in `SYSTOLIC_DATAFLOWS`)."""

    @classmethod
    def of(cls, configurations: Sequence[ArrayConfiguration]) -> "ConfigurationTable":
        """Take configurations as they come."""
        flows = list(SYSTOLIC_DATAFLOWS)
        return cls(np.array([(one.rows, one.columns, one.down, one.across, flows.index(one.dataflow))
                             for one in configurations], dtype=np.int64).reshape(-1, 5))

    @cached_property
    def lines(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``(u, 2)`` different pairs of side and parts, along rows or columns; ``(c, 2)`` the pairs of each one."""
        pairs, places = np.unique(self.entries[:, [0, 2, 1, 3]].reshape(-1, 2), axis=0, return_inverse=True)
        return pairs, places.reshape(-1, 2).astype(np.int64)
