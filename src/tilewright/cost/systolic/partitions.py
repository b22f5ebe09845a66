"""Matrix products on reconfigurable arrays: cycles, accesses and traffic of every configuration, and the best.

A product's rows and columns (what lies along those of the array) are split over sub-arrays in blocks of one size, of
which the last has what is left; what streams is not. Sub-arrays keep step, fold by fold, so that the one with the
largest block tells the cycles. Products ``p``, configurations ``c``.

Samajdar et al., "Learning Flexible GEMM Accelerator Configuration and Mapping-space using ML" (arXiv 2101.04799); the
split is that of Samajdar et al., "A Systematic Methodology for Characterizing Scalability of DNN Accelerators using
SCALE-Sim" (ISPASS 2020), with edges counted exactly.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tilewright.base import InputError, share, unknown_name
from tilewright.cost.systolic.array_energy import ArrayEnergy, array_energy
from tilewright.cost.systolic.reconfigurable import (
    DRAM_MEMORIES,
    STALL_FREE,
    SUMMATIONS,
    TIE_RULE,
    ArrayConfiguration,
    ConfigurationTable,
    PartitionEffects,
    ReconfigurableArray,
)
from tilewright.cost.systolic.records import SYSTOLIC_RULES, Real, SystolicConventions, Whole

if TYPE_CHECKING:
    from tilewright.cost.systolic.partition_kernels import Rules

ARRAY_OBJECTIVES = ("latency", "energy", "edp")
_CHUNK = 4096
_LARGEST = 2.0**61


@dataclass(frozen=True)
class PartitionedCounts:
    """What products take on configurations: arrays ``(p, c)``."""

    cycles: Whole
    """In all; where all effects are off these are ``compute_cycles``."""
    compute_cycles: Whole
    """Of the sub-array with the largest block, waiting for nothing."""
    input_reads: Whole
    weight_reads: Whole
    output_writes: Whole
    output_reads: Whole
    """``input_reads``, ``weight_reads``, ``output_writes`` and ``output_reads``: words between the memories and the
    sub-arrays."""
    dram_reads: Whole
    dram_writes: Whole
    """``dram_reads`` and ``dram_writes``: words between DRAM and the memories; 0 where that is not modelled."""
    active_partitions: Whole
    """Sub-arrays that have work."""
    macs: Whole
    """``(p, 1)``."""
    utilization: Real
    """Multiply-accumulates over cycles and units of all sub-arrays."""

    @property
    def sram_reads(self) -> Whole:
        """Words that all three memories hand out."""
        return self.input_reads + self.weight_reads + self.output_reads


@dataclass(frozen=True)
class BestConfigurations:
    """The best configuration of each of ``p`` products."""

    index: Whole
    """Its place among the configurations given; among equals, by the tie rule."""
    cycles: Whole
    """What it takes."""
    equals: Whole
    """How many configurations are as good."""


def partitioned_counts(products: ArrayLike, configurations: Sequence[ArrayConfiguration], array: ReconfigurableArray,
                       effects: PartitionEffects = STALL_FREE,
                       conventions: SystolicConventions = SYSTOLIC_RULES) -> PartitionedCounts:
    """Return all figures of products ``(p, 3)``, each m, n, k, on configurations of an array.

    Raises an `InputError` if a size is no positive integer, a count would need more than 61 bits, there is no
    configuration, one has other units than the array, or a convention is about DRAM, which is counted by our rules
    alone.

    Examples
    --------
    >>> from tilewright.cost import SAGAR, ArrayConfiguration
    >>> fig3 = [ArrayConfiguration(side, side, 128 // side, 128 // side, "os") for side in (128, 32, 4)]
    >>> partitioned_counts([(256, 256, 64)], fig3, SAGAR).cycles.tolist()
    [[1272, 504, 280]]
    """
    from tilewright.cost.systolic.partition_kernels import FIGURES, count_all  # noqa: PLC0415  (Numba loads late)

    held = _prepared(_Same(tuple(configurations)), array.macs)
    sizes, table = _checked(products, held), held.table
    figures = np.empty((len(sizes), len(configurations), len(FIGURES)), dtype=np.int64)
    count_all(sizes, table.entries, _rules(array, effects, conventions), figures)
    macs = sizes.prod(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        utilization = macs / (figures[..., 0] * array.macs)
    named = {name: figures[..., index] for index, name in enumerate(FIGURES)}
    return PartitionedCounts(**named, macs=macs, utilization=utilization)


def partitioned_cycles(products: ArrayLike, configurations: Sequence[ArrayConfiguration], array: ReconfigurableArray,
                       effects: PartitionEffects = STALL_FREE) -> Whole:
    """Return cycles ``(p, c)``; arguments and errors as for `partitioned_counts`."""
    return partitioned_counts(products, configurations, array, effects).cycles


def best_configurations(products: ArrayLike,  # noqa: PLR0913  (what is asked, of what, by which rules)
                        configurations: Sequence[ArrayConfiguration], array: ReconfigurableArray,
                        effects: PartitionEffects = STALL_FREE, *, threads: int = 1, objective: str = "latency",
                        ties: tuple[str, ...] = TIE_RULE) -> BestConfigurations:
    """Return the best configuration of each product; the result is the same for any number of threads.

    ``objective`` is one of `ARRAY_OBJECTIVES`; ``ties`` are words of `TIE_RULE`, in any order. Other arguments and
    errors as for `partitioned_counts`, and where energy counts those of `array_energy`; no table of products by
    configurations is made.
    """
    from tilewright.cost.systolic.partition_kernels import EventPrices, least  # noqa: PLC0415  (as above)

    if objective not in ARRAY_OBJECTIVES:
        raise unknown_name("objective of arrays", objective, list(ARRAY_OBJECTIVES))

    held = _prepared(_Same(tuple(configurations)), array.macs, ties)
    sizes, order, table = _checked(products, held), held.order, held.ordered
    rules = _rules(array, effects, SYSTOLIC_RULES)
    each = ArrayEnergy(0.0, 0.0, 0.0, 0.0, 0.0) if objective == "latency" else array_energy(array)
    prices = EventPrices(ARRAY_OBJECTIVES.index(objective), *astuple(each))
    free = effects == STALL_FREE and objective == "latency"
    best, cycles, equals = np.empty((3, len(sizes)), dtype=np.int64)

    def some(first: int) -> None:
        part = slice(first, first + _CHUNK)
        least(sizes[part], table.entries, *table.lines, held.ranks, rules, prices, free, best[part], cycles[part],
              equals[part])

    share(some, range(0, len(sizes), _CHUNK), threads)
    return BestConfigurations(order[best], cycles, equals)


def _rules(array: ReconfigurableArray, effects: PartitionEffects, conventions: SystolicConventions) -> "Rules":
    from tilewright.cost.systolic.partition_kernels import Rules  # noqa: PLC0415  (as above)

    apart = {"partial_sums_leave", "hundredth_sets", "reach_beyond"} & set(conventions.made)
    if apart and effects.dram != "off":
        raise InputError("conventions", "must be ours where words of DRAM are counted on sub-arrays", sorted(apart))
    return Rules(effects.bypass, SUMMATIONS.index(effects.summation), effects.ports, effects.collation,
                 DRAM_MEMORIES.index(effects.dram), conventions.whole_folds, conventions.shifted_outputs,
                 conventions.last_cycle_index, conventions.side_writes, conventions.unread_partial_sums, array.cell,
                 array.banks, array.banks * array.bank_words, array.cells_per_stage, *array.plane,
                 float(array.dram_words_per_cycle or 0.0))


@dataclass(frozen=True, eq=False)
class _Same:
    """Configurations that are told from others by being the same tuple, as comparing hundreds takes long."""

    held: tuple[ArrayConfiguration, ...]

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.held is self.held


@dataclass(frozen=True)
class _Prepared:
    """Configurations as given, and in their order among equals; ``side`` and ``parts`` are the largest.

    ``ranks`` are equal where the fewest reads decide.
    """

    table: ConfigurationTable
    order: Whole
    ordered: ConfigurationTable
    ranks: Whole
    side: int
    parts: int


@lru_cache(maxsize=16)
def _prepared(configurations: _Same, macs: int, ties: tuple[str, ...] = TIE_RULE) -> _Prepared:
    given = configurations.held
    if not set(ties) <= set(TIE_RULE) or len(set(ties)) < len(ties):
        raise InputError("ties", f"must be different words of {', '.join(TIE_RULE)}", ", ".join(ties))
    if not given:
        raise InputError("configurations", "must be one or more", "none")
    for one in given:
        if one.macs != macs:
            raise InputError("configuration", f"must have the {macs} units of the array", f"{one.macs} ({one})")
    order = sorted(range(len(given)), key=lambda one: (given[one].standing(ties), given[one].order))
    if "reads" in ties:
        before = [given[one].standing(ties[:ties.index("reads")]) for one in order]
        ranks = np.cumsum([0, *(one != other for one, other in pairwise(before))])
    else:
        ranks = np.arange(len(order))
    ordered = ConfigurationTable.of([given[one] for one in order])
    return _Prepared(ConfigurationTable.of(given), np.array(order, dtype=np.int64), ordered, ranks.astype(np.int64),
                     max(max(one.rows, one.columns) for one in given), max(one.partitions for one in given))


def _checked(products: ArrayLike, held: _Prepared) -> Whole:
    """Return products as integers ``(p, 3)``."""
    given = np.asarray(products)
    if given.ndim != 2 or given.shape[1] != 3 or given.dtype.kind not in "iu" or (given < 1).any():
        raise InputError("products", "must be rows of three positive integers, m, n and k",
                         given.tolist() if given.size < 10 else f"{given.shape} of {given.dtype}")
    m, n, k = (float(size) + 2 * held.side for size in given.max(axis=0, initial=1))
    if m * n * k * 4 >= _LARGEST or m * n * held.parts * 4 >= _LARGEST:
        raise InputError("products", "must be small enough for counts of at most 61 bits", given.max(axis=0).tolist(),
                         "Split the product")
    return np.ascontiguousarray(given, dtype=np.int64)
