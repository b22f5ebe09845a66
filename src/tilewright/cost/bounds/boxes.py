"""Bounds of boxes of machines: what no mapping on any machine between two can beat.

A mapping that is legal on a machine is legal wherever every capacity and array is at least as large, and takes no more
there, where no bandwidth is less and no energy more: counts know the mapping alone, idle instances take nothing. So
what no mapping beats on a machine with the most room and rate, and the least energies and leakage, of a box holds for
all machines in it. It may be above what is found for one of them alone, as both are lower bounds of their own.
"""

import numpy as np

from tilewright.base import InputError
from tilewright.cost.bounds.machines import BoundBatch, hardware_bounds
from tilewright.cost.bounds.passing import Bypass
from tilewright.cost.hardware import HardwareBatch
from tilewright.hardware import LEAKAGE, Accelerator, flexibility_overhead
from tilewright.workload import Operator

ROOM_AND_RATE = ("x", "y", "instances", "capacity_bytes", "bandwidth")
"""How the names begin of numbers of which more is never worse."""


def box_bounds(operator: Operator, low: HardwareBatch, high: HardwareBatch, accelerator: Accelerator, *,  # noqa: PLR0913
               bypass: Bypass = False, perfect: bool = False) -> BoundBatch:
    """Return what no mapping can beat on any machine between each row of ``low`` and of ``high`` (see `best_of_box`).

    Memories keep all that they can; with ``bypass`` as of `layer_bounds`.

    Raises an `InputError`, as of `best_of_box` and `hardware_bounds`.
    """
    return hardware_bounds(operator, best_of_box(low, high, accelerator), accelerator, bypass=bypass, perfect=perfect)


def best_of_box(low: HardwareBatch, high: HardwareBatch, accelerator: Accelerator) -> HardwareBatch:
    """Return for each box all numbers of a machine on which no mapping does worse than on any machine of the box.

    A box are all machines of which each number that the batches name is from that of the row of ``low`` to that of
    ``high``. Numbers that follow (`HardwareBatch`) are taken where they are least; area too, so that what is over a
    limit on this machine is so on all.

    Raises an `InputError` if the batches name other numbers or rows, one of ``low`` is above that of ``high``, or what
    follows from a capacity does not rise with it.
    """
    if low.values.keys() != high.values.keys() or len(low) != len(high) or low.base != high.base:
        raise InputError("high", "must name the numbers of low, in as many rows, and have its base",
                         [".".join(key) for key in high.values])
    for key, least in low.values.items():
        if (np.asarray(least) > high.values[key]).any():
            raise InputError(f"high.{'.'.join(key)}", "must not be below that of low", float(np.min(high.values[key])))
    machine = low.base or accelerator
    for memory in machine.memories:
        if memory.storage is not None and not memory.storage.rising:
            raise InputError(f"{machine.name}.{memory.name}", "must have figures that rise with its capacity", None,
                             "Give its energies, area and leakage in the file where boxes are bounded")
    smallest, largest = (batch.on(accelerator).numbers for batch in (low, high))
    found = {key: largest[key] if key[1].startswith(ROOM_AND_RATE) else smallest[key] for key in smallest}
    stated = machine.flexibility
    if stated is not None and stated.costs.leakage_mw_per_um2 is None and LEAKAGE not in low.values:
        # As much for each area as in all of the machine, which may be largest where leakage is least.
        added, area = flexibility_overhead(machine, smallest), machine.total("area_um2", largest)
        share = added.base_leakage_mw / np.where(area > 0, area, 1.0) * (area > 0)
        found[LEAKAGE] = (added.base_leakage_mw + share * added.total_um2) / machine.frequency_mhz * 1000
    return HardwareBatch({key: np.broadcast_to(np.asarray(value, dtype=np.float64), len(low)).copy()
                          for key, value in found.items()}, low.base)
