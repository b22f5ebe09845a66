"""Systolic arrays: what a run on one is called, what other tools count differently, and what is counted."""

from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.cost.records import Assumptions

Whole: TypeAlias = NDArray[np.int64]
Real: TypeAlias = NDArray[np.float64]

SYSTOLIC_DATAFLOWS = {"os": "output-stationary", "ws": "weight-stationary", "is": "input-stationary"}
"""Dataflows of systolic arrays: short name, long name."""
SYSTOLIC_RESTING = {"os": "outputs", "ws": "weights", "is": "inputs"}
"""What rests in the elements, by dataflow."""

SYSTOLIC_ASSUMPTIONS = {
    "whole_folds": "every fold takes as long as one that fills the array (ours: only as long as its own rows and "
                   "columns need)",
    "last_cycle_index": "the total is the number of the last cycle, counted from zero (ours: the number of cycles)",
    "side_writes": "output-stationary folds write as many words more than their outputs as the array has rows and "
                   "columns (ours: the outputs)",
    "unread_partial_sums": "partial sums of the folds of a reduction are written by each and never read (ours: each "
                           "fold but the first reads what it adds to)",
    "partial_sums_leave": "every partial sum written goes out to DRAM (ours: only where the block of outputs that a "
                          "reduction adds to does not fit half the memory)",
    "shifted_outputs": "output-stationary arrays shift outputs out behind the fold, one row a cycle (ours: a column "
                       "hands out each output as it is finished)",
    "hundredth_sets": "a half of an operand's memory is fifty sets of a hundredth of it, rounded down, emptied as soon "
                      "as it is full, and never begun afresh (ours: half the words, emptied for the next word that "
                      "does not fit, and afresh for each round of columns; weights stay by whole tiles)",
    "reach_beyond": "words past the input's edge, where the last window hangs over it, cost no DRAM read (ours: words "
                    "like any others)",
}
"""What each assumption says, and what our rules say instead."""


@dataclass(frozen=True)
class SystolicConventions(Assumptions):
    """Assumptions that part a tool's figures from ours; see `SYSTOLIC_ASSUMPTIONS`. None made: our rules."""

    whole_folds: bool = False
    last_cycle_index: bool = False
    side_writes: bool = False
    unread_partial_sums: bool = False
    partial_sums_leave: bool = False
    shifted_outputs: bool = False
    hundredth_sets: bool = False
    reach_beyond: bool = False

SYSTOLIC_RULES = SystolicConventions()
SCALE_SIM = SystolicConventions(whole_folds=True, last_cycle_index=True, side_writes=True, unread_partial_sums=True,
                                partial_sums_leave=True, hundredth_sets=True, reach_beyond=True)
SCALE_SIM_PAPER = SystolicConventions(whole_folds=True, shifted_outputs=True)
SYSTOLIC_CONVENTIONS = {"tilewright": SYSTOLIC_RULES, "scale-sim": SCALE_SIM, "scale-sim-paper": SCALE_SIM_PAPER}
"""Presets: ours; the tool, versions 2.0.2 and 3.0.0; its analytical model (Samajdar et al., ISPASS 2020)."""


@dataclass(frozen=True)
class SystolicCounts:
    """What matrix products take on systolic arrays: arrays of one shape, the broadcast shape of what was asked."""

    cycles: Whole
    """From the first operand that enters the array to the last output that leaves it, without waiting for DRAM."""
    row_folds: Whole
    column_folds: Whole
    """``row_folds`` and ``column_folds``: how many tiles the array's rows and columns take one after the other."""
    input_reads: Whole
    weight_reads: Whole
    """``input_reads`` and ``weight_reads``: words that the memories of the operands hand to the array."""
    output_writes: Whole
    output_reads: Whole
    """``output_writes`` and ``output_reads``: words that the array hands to the memory of the outputs, and partial sums
    that it takes back."""
    macs: Whole
    mapping_efficiency: Real
    """Share of the array's elements that hold a tile, averaged over folds."""
    utilization: Real
    """Multiply-accumulates over cycles and elements."""

    def one(self) -> dict[str, Any]:
        """Return the figures of a single product as plain numbers, by name.

        Raises a `ValueError` if there are several.
        """
        return {entry.name: getattr(self, entry.name).item() for entry in fields(self)}


@dataclass(frozen=True)
class SystolicMemories:
    """Words that the memories of inputs, weights and outputs hold, both halves together; None: all that come.

    Raises an `InputError` if one holds less than a word in each half.
    """

    inputs: int | None = None
    weights: int | None = None
    outputs: int | None = None

    def __post_init__(self) -> None:
        for entry in fields(self):
            given = getattr(self, entry.name)
            if given is not None and given < 2:
                raise InputError(f"memories.{entry.name}", "must hold two words or more, one in each half", given)


@dataclass(frozen=True)
class SystolicArray:
    """A systolic array with a memory for each tensor, of two halves: one in use, one on its way from or to DRAM."""

    rows: int
    columns: int
    """``rows`` and ``columns``: its sides: inputs enter along rows, sums leave along columns."""
    dataflow: str
    """One of `SYSTOLIC_DATAFLOWS`, short."""
    memories: SystolicMemories = SystolicMemories()
    bandwidths: tuple[float | None, float | None, float | None] = (None, None, None)
    """Words a cycle that DRAM moves for inputs, weights and outputs, each by itself; None: any number."""
    shared_bandwidth: float | None = None
    """Words a cycle for all three together."""

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            if getattr(self, name) < 1:
                raise InputError(f"array.{name}", "must be a positive integer", getattr(self, name))
        if self.dataflow not in SYSTOLIC_DATAFLOWS:
            raise InputError("array.dataflow", f"must be one of {', '.join(SYSTOLIC_DATAFLOWS)}", self.dataflow)
        if any(rate is not None and rate <= 0 for rate in (*self.bandwidths, self.shared_bandwidth)):
            raise InputError("array.bandwidths", "must be positive", [*self.bandwidths, self.shared_bandwidth])


@dataclass(frozen=True)
class SystolicWords:
    """Words that move between DRAM and the memories of a systolic array in one layer."""

    input_reads: int
    weight_reads: int
    output_writes: int
    output_reads: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.input_reads + self.weight_reads + self.output_writes + self.output_reads
