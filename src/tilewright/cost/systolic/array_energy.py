"""Energy of products on reconfigurable arrays, from what was counted and from the power that was laid out.

Multiply-accumulates and words take what the house's 28 nm table says of units and banks of their size. What the
machine takes besides (clocks, links, networks, leakage) goes on whatever it does, as nothing of it is gated: the
published power less what all units and all banks of operands take when each does its work in every cycle.

Samajdar et al. (arXiv 2101.04799), V-A: energies are cycles and reads times what each takes, and parts that idle take
as much as parts that work; V-B and table III: power and banks. Which words its power was measured with is not told.
"""

from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tilewright.base import InputError
from tilewright.cost.systolic.reconfigurable import ReconfigurableArray
from tilewright.cost.systolic.records import Real, Whole
from tilewright.hardware import technology

if TYPE_CHECKING:
    from tilewright.cost.systolic.partitions import PartitionedCounts

NODE, DRAM = "28nm", "HBM2"
WORD_BITS = 8


@dataclass(frozen=True)
class ArrayEnergy:
    """Picojoules of a multiply-accumulate, of a word of each kind, and of a cycle whatever happens in it."""

    mac_pj: float
    read_pj: float
    write_pj: float
    dram_pj: float
    standing_pj: float

    def bound(self, products: Whole, cycles: Whole) -> Real:
        """Return what products ``(p, 3)`` take at least, in so many cycles: each word once from and to a memory."""
        m, n, k = products.T
        found: Real = (m * n * k * np.float64(self.mac_pj) + (m * k + n * k) * self.read_pj + m * n * self.write_pj
                       + cycles * self.standing_pj)
        return found


@lru_cache(maxsize=64)
def array_energy(array: ReconfigurableArray) -> ArrayEnergy:
    """Return what events take on an array.

    Raises an `InputError` if its power is not known, or less than units and banks take at full use; or banks are of no
    known size.

    Examples
    --------
    >>> from tilewright.cost import SAGAR
    >>> found = array_energy(SAGAR)
    >>> round(SAGAR.macs * found.mac_pj + 2 * SAGAR.banks * found.read_pj + found.standing_pj)
    13010
    """
    if array.power_w is None:
        raise InputError(f"{array.name}.power_w", "must be known where energy is asked for", "nothing",
                         "Give the power of the whole array at full use (--power), or ask for latency")
    table, bank_bytes = technology(NODE), array.bank_words * WORD_BITS / 8
    mac, dram = table.mac_pj("int", WORD_BITS), table.dram_pj(DRAM, WORD_BITS)
    read, write = (of("sram", bank_bytes, WORD_BITS) for of in (table.read_pj, table.write_pj))
    busy = array.macs * mac + 2 * array.banks * read
    standing = array.power_w / array.clock_ghz * 1e3 - busy
    if standing < 0:
        raise InputError(f"{array.name}.power_w", "must be at least what units and banks take at full use",
                         array.power_w, f"Give {busy * array.clock_ghz / 1e3:.4g} W or more")
    return ArrayEnergy(mac, read, write, dram, standing)


@dataclass(frozen=True)
class PartitionedEnergy:
    """Picojoules of products on configurations by what takes them: arrays ``(p, c)``, ``mac_pj`` ``(p, 1)``."""

    mac_pj: Real
    read_pj: Real
    write_pj: Real
    dram_pj: Real
    standing_pj: Real

    @property
    def total_pj(self) -> Real:
        """All of it."""
        return self.mac_pj + self.read_pj + self.write_pj + self.dram_pj + self.standing_pj


def partitioned_energy(counts: "PartitionedCounts", array: ReconfigurableArray) -> PartitionedEnergy:
    """Return what products take on configurations of an array, counted by `partitioned_counts`.

    Raises an `InputError` if its power is not known, or contradicts its units and banks.
    """
    mac, read, write, dram, standing = map(np.float64, astuple(array_energy(array)))
    return PartitionedEnergy(counts.macs * mac, counts.sram_reads * read, counts.output_writes * write,
                             (counts.dram_reads + counts.dram_writes) * dram, counts.cycles * standing)
