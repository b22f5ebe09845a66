"""Matrix products on reconfigurable systolic arrays: all configurations, the best first."""

import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import tilewright.report
from tilewright.api.array_options import ArrayOptions
from tilewright.api.flags import command_line, takes
from tilewright.api.places import ready_cache
from tilewright.api.sheets import OnSheet
from tilewright.base import InputError, unknown_name
from tilewright.cost import (
    ARRAY_OBJECTIVES,
    FIXED_ARRAYS,
    SAGAR,
    ArrayConfiguration,
    PartitionedCounts,
    PartitionEffects,
    ReconfigurableArray,
    array_energy,
    partitioned_counts,
    partitioned_energy,
    reconfigurable_array,
)


@dataclass(frozen=True)
class RankedConfiguration:
    """A configuration and what a product takes on it; energies are None where the array's power is not known."""

    configuration: ArrayConfiguration
    cycles: int
    utilization: float
    sram_reads: int
    dram_words: int
    active_partitions: int
    energy_pj: float | None
    energy_parts_pj: dict[str, float] | None

    def figure(self, objective: str) -> float:
        """Return cycles, picojoules, or their product; NaN where energy is not known."""
        spent = np.nan if self.energy_pj is None else self.energy_pj
        return {"latency": self.cycles, "energy": spent, "edp": spent * self.cycles}[objective]


@dataclass(frozen=True)
class ProductRanking:
    """The best configurations of a product."""

    sizes: tuple[int, int, int]
    bound_cycles: int
    """Multiply-accumulates over units, rounded up; no configuration takes less."""
    bound: float
    """What no configuration can do with less of, by the objective."""
    equals: int
    """How many configurations are as good as the best."""
    ranked: tuple[RankedConfiguration, ...]
    monolithic: RankedConfiguration | None
    """The best that is one sub-array alone; None where the space has none."""

    @property
    def best(self) -> RankedConfiguration:
        """The least by the objective; among equals fewest partitions, then os, ws, is, then fewest reads."""
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
    objective: str
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

        return {"array": self.array.record(), "effects": asdict(self.effects), "objective": self.objective,
                "space": self.space, "configurations": self.classes, "products": [
                    {"m": found.sizes[0], "n": found.sizes[1], "k": found.sizes[2],
                     "bound_cycles": found.bound_cycles, "bound": found.bound, "equals": found.equals,
                     "ranked": [row(one) for one in found.ranked],
                     "monolithic": row(found.monolithic) if found.monolithic else None} for found in self.products]}


@takes(ArrayOptions)
def array(asked: ArrayOptions) -> ArrayRun:
    """Rank the configurations of a reconfigurable systolic array for matrix products, all counted exactly.

    Energy comes from counts and from the power of the whole array, by `tilewright.cost.array_energy`.

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
    if asked.objective not in ARRAY_OBJECTIVES:
        raise unknown_name("objective of arrays", asked.objective, list(ARRAY_OBJECTIVES))
    space = asked.space or ("units" if asked.array in FIXED_ARRAYS else "realisable")
    configurations = machine.configurations(space)
    if machine.power_w is not None or asked.objective != "latency":
        array_energy(machine)
    ready_cache()
    counts = partitioned_counts(np.array(sizes, dtype=np.int64), configurations, machine, effects)
    products = tuple(_ranking(counts, place, configurations, machine, asked) for place in range(len(sizes)))
    command = command_line("array", asked, products=["x".join(map(str, one)) for one in sizes])
    return ArrayRun(machine, effects, asked.objective, space, len(configurations), products, command)


def _machine(asked: ArrayOptions) -> ReconfigurableArray:
    given = str(asked.array)
    found = (ReconfigurableArray(int(given), asked.cell or SAGAR.cell, name=f"{int(given):,} units")
             if given.isdecimal() else reconfigurable_array(given, fixed=True))
    if asked.cell not in (None, found.cell) and given in FIXED_ARRAYS:
        raise InputError("--cell", f"must be left out: arrays of {given} are what they are", asked.cell)
    power = found.power_w if asked.power is None else asked.power
    return replace(found, cell=asked.cell or found.cell, power_w=power)


def _sizes(given: str | tuple[int, int, int]) -> tuple[int, int, int]:
    if not isinstance(given, str):
        given = "x".join(map(str, given))
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){2}", given):
        raise InputError("--product", "must be MxNxK, three positive integers below a billion", given,
                         "For example --product 784x256x1152")
    m, n, k = map(int, given.split("x"))
    return m, n, k


def _ranking(counts: PartitionedCounts, place: int, configurations: tuple[ArrayConfiguration, ...],
             machine: ReconfigurableArray, asked: ArrayOptions) -> ProductRanking:
    spent = None if machine.power_w is None else partitioned_energy(counts, machine)

    def row(one: int) -> RankedConfiguration:
        parts = None if spent is None else {
            "macs": float(spent.mac_pj[place, 0]), "sram": float((spent.read_pj + spent.write_pj)[place, one]),
            "dram": float(spent.dram_pj[place, one]), "standing": float(spent.standing_pj[place, one])}
        return RankedConfiguration(
            configurations[one], int(counts.cycles[place, one]), float(counts.utilization[place, one]),
            int(counts.sram_reads[place, one]), int((counts.dram_reads + counts.dram_writes)[place, one]),
            int(counts.active_partitions[place, one]), None if spent is None else float(spent.total_pj[place, one]),
            parts)

    rows = [row(one) for one in range(len(configurations))]
    rows.sort(key=lambda one: (one.figure(asked.objective), one.configuration.order[:2], one.sram_reads,
                               one.configuration.order))
    sizes = _sizes(asked.products[place])
    cycles = -(-math.prod(sizes) // machine.macs)
    bound = float(cycles)
    if spent is not None and asked.objective != "latency":
        bound = float(array_energy(machine).bound(np.array([sizes]), np.array([cycles]))[0])
        bound *= cycles if asked.objective == "edp" else 1
    best = rows[0].figure(asked.objective)
    alone = next((one for one in rows if one.configuration.partitions == 1), None)
    return ProductRanking(sizes, cycles, bound, sum(one.figure(asked.objective) == best for one in rows),
                          tuple(rows[:asked.top]), alone)
