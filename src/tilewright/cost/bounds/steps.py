"""The fewest steps of compute: the least product of ceil(size / lanes) with few enough lanes in all."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.rows import MachineRows, Whole, whole
from tilewright.hardware import Accelerator
from tilewright.mapping import lane_use
from tilewright.workload import Operator

Integers = NDArray[np.int64]
MOST_EXACT = 1 << 62
"""Multiply-accumulates up to which steps are counted in whole numbers; of more there may be too many for these."""


def paced(steps: Whole, operator: Operator, accelerator: Accelerator) -> Whole:
    """Return the cycles (r) of so many steps, as fast as lanes take the words of the operands."""
    pace = lane_use(operator, accelerator).cycles
    cycles: Whole = -(-steps * pace.numerator // pace.denominator)
    return cycles


def compute_steps(operator: Operator, rows: MachineRows, perfect: bool = False) -> Whole:
    """Return (r) the fewest steps of compute; where ``perfect``, the lanes of a dimension divide its size.

    Machines of up to 2^n instances, and more than half of that, share a table.
    """
    known = rows.rules and rows.rules.steps(perfect)
    if known is not None:
        return whole(np.full(rows.count, known))
    instances, few = rows.instances(rows.machine.fanouts), operator.macs < MOST_EXACT
    most = np.array([1 << (count - 1).bit_length() for count in instances.tolist()])
    found: Any = np.empty(rows.count, dtype=np.int64 if few else np.float64)
    for limit in set(most.tolist()):
        lanes, steps = _fewest(operator.dimensions, limit, perfect, few)
        found[most == limit] = steps[np.searchsorted(lanes, instances[most == limit], side="right") - 1]
    return whole(found if few else np.floor(found * (1 - 1e-12)))


@lru_cache(maxsize=256)
def _fewest(dimensions: tuple[tuple[str, int], ...], most: int, perfect: bool, few: bool) -> tuple[Integers, Any]:
    """Return numbers of lanes, up to ``most``, and the fewest steps with no more than each, real numbers if not few."""
    lanes, steps = np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int64 if few else np.float64)
    for _, size in dimensions:
        own_lanes, own_steps = _divisors(size, most) if perfect else _ways(size, most)
        lanes, steps = np.multiply.outer(lanes, own_lanes).ravel(), np.multiply.outer(steps, own_steps).ravel()
        lanes, steps = _frontier(lanes, steps, most)
    return lanes, steps


def _ways(size: int, instances: int) -> tuple[Integers, Integers]:
    """Return the fewest lanes for each number of steps that one dimension can take."""
    found = []
    lanes = 1
    while lanes <= instances:
        steps = -(-size // lanes)
        found.append((lanes, steps))
        if steps == 1:
            break
        lanes = -(-size // (steps - 1))
    table = np.array(found, dtype=np.int64)
    return table[:, 0], table[:, 1]


def _divisors(size: int, instances: int) -> tuple[Integers, Integers]:
    """Return the numbers of lanes that divide one dimension, and the steps that it then takes."""
    lanes = np.arange(1, min(size, instances) + 1, dtype=np.int64)
    lanes = lanes[size % lanes == 0]
    return lanes, size // lanes


_FRONTIER = 2048


def _frontier(lanes: Integers, steps: Any, instances: int) -> tuple[Integers, Any]:
    """Return the choices that no other beats in both; neighbours merge into their best where there are too many."""
    fits = lanes <= instances
    lanes, steps = lanes[fits], steps[fits]
    order = np.lexsort((steps, lanes))
    lanes, steps = lanes[order], steps[order]
    best = np.minimum.accumulate(steps)
    kept = np.concatenate(([True], steps[1:] < best[:-1]))
    lanes, steps = lanes[kept], steps[kept]
    while len(lanes) > _FRONTIER:
        even = len(lanes) // 2 * 2
        lanes = np.concatenate((lanes[:even:2], lanes[even:]))
        steps = np.concatenate((steps[1:even:2], steps[even:]))
    return lanes, steps
