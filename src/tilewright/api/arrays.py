"""Matrix products on reconfigurable systolic arrays: all configurations, the best first."""

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import tilewright.report
from tilewright.api.array_options import ArrayOptions
from tilewright.api.engine import ready_cache
from tilewright.api.flags import command_line, takes
from tilewright.api.sheets import OnSheet
from tilewright.base import InputError
from tilewright.cost import (
    RECONFIGURABLE_ARRAYS,
    ArrayConfiguration,
    PartitionedCounts,
    PartitionEffects,
    ReconfigurableArray,
    partitioned_counts,
    partitioned_energy,
    reconfigurable_array,
)


@dataclass(frozen=True)
class RankedConfiguration:
    """A configuration and what a product takes on it; ``energy_pj`` is None where the array's power is not known."""

    configuration: ArrayConfiguration
    cycles: int
    utilization: float
    sram_reads: int
    dram_words: int
    active_partitions: int
    energy_pj: float | None


@dataclass(frozen=True)
class ProductRanking:
    """The best configurations of a product.

    Parameters
    ----------
    bound_cycles
        Multiply-accumulates over units, rounded up: no configuration takes less.
    equals
        How many configurations take no more cycles than the best.
    monolithic
        The best that is one sub-array alone; None where the space has none.
    """

    sizes: tuple[int, int, int]
    bound_cycles: int
    equals: int
    ranked: tuple[RankedConfiguration, ...]
    monolithic: RankedConfiguration | None

    @property
    def best(self) -> RankedConfiguration:
        """Fewest cycles; among equals fewest partitions, then os, ws, is, then fewest reads."""
        return self.ranked[0]


@dataclass(frozen=True, repr=False)
class ArrayRun(OnSheet):
    """Products on a reconfigurable array.

    Examples
    --------
    >>> import tilewright as tw
    >>> run = tw.array("sagar", ["784x256x1152"])
    >>> str(run.products[0].best.configuration), run.products[0].best.cycles >= run.products[0].bound_cycles
    ('32x32 of 4x4 ws', True)
    """

    array: ReconfigurableArray
    effects: PartitionEffects
    space: str
    classes: int
    products: tuple[ProductRanking, ...]
    command: str = ""

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.array_sheet(self.plain, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        def row(one: RankedConfiguration) -> dict[str, Any]:
            return {**asdict(one), "name": str(one.configuration)}

        return {"array": self.array.record(), "effects": asdict(self.effects), "space": self.space,
                "configurations": self.classes, "products": [
                    {"m": found.sizes[0], "n": found.sizes[1], "k": found.sizes[2],
                     "bound_cycles": found.bound_cycles, "equals": found.equals,
                     "ranked": [row(one) for one in found.ranked],
                     "monolithic": row(found.monolithic) if found.monolithic else None} for found in self.products]}


@takes(ArrayOptions)
def array(asked: ArrayOptions) -> ArrayRun:
    """Rank the configurations of a reconfigurable systolic array for matrix products, all counted exactly.

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.array(256, [(16, 16, 64)], top=1).products[0].best.cycles
    70
    """
    machine = _machine(asked)
    effects = PartitionEffects(asked.bypass, asked.summation, asked.ports, asked.collate,  # type: ignore[arg-type]
                               asked.dram)  # type: ignore[arg-type]
    sizes = [_sizes(given) for given in asked.products]
    if not sizes:
        raise InputError("--product", "must be given", "none", "For example --product 784x256x1152")
    configurations = machine.configurations(asked.space)
    ready_cache()
    counts = partitioned_counts(np.array(sizes, dtype=np.int64), configurations, machine, effects)
    products = tuple(_ranking(place, one, configurations, counts, (machine, asked.top))
                     for place, one in enumerate(sizes))
    command = command_line("array", ArrayOptions, {**vars(asked), "products": ["x".join(map(str, one))
                                                                               for one in sizes]})
    return ArrayRun(machine, effects, asked.space, len(configurations), products, command)


def _machine(asked: ArrayOptions) -> ReconfigurableArray:
    given = str(asked.array)
    if not given.isdecimal():
        found = reconfigurable_array(given)
        return found if asked.cell is None else replace(found, cell=asked.cell)
    units = int(given)
    return ReconfigurableArray(units, asked.cell or RECONFIGURABLE_ARRAYS["sagar"].cell, name=f"{units:,} units")


def _sizes(given: str | tuple[int, int, int]) -> tuple[int, int, int]:
    if not isinstance(given, str):
        given = "x".join(map(str, given))
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){2}", given):
        raise InputError("--product", "must be MxNxK, three positive integers below a billion", given,
                         "For example --product 784x256x1152")
    m, n, k = map(int, given.split("x"))
    return m, n, k


def _ranking(place: int, sizes: tuple[int, int, int], configurations: tuple[ArrayConfiguration, ...],
             counts: PartitionedCounts, shown: tuple[ReconfigurableArray, int]) -> ProductRanking:
    machine, top = shown
    cycles, reads = counts.cycles[place], counts.sram_reads[place]
    order = sorted(range(len(configurations)), key=lambda one: (
        cycles[one], configurations[one].order[:2], reads[one], configurations[one].order))
    spent = partitioned_energy(counts, machine)

    def row(one: int) -> RankedConfiguration:
        return RankedConfiguration(
            configurations[one], int(cycles[one]), float(counts.utilization[place, one]), int(reads[one]),
            int(counts.dram_reads[place, one] + counts.dram_writes[place, one]),
            int(counts.active_partitions[place, one]), None if spent is None else float(spent[place, one]))

    alone = next((one for one in order if configurations[one].partitions == 1), None)
    bound = -(-sizes[0] * sizes[1] * sizes[2] // machine.macs)
    return ProductRanking(sizes, bound, int((cycles == cycles.min()).sum()),
                          tuple(row(one) for one in order[:top]), None if alone is None else row(alone))
