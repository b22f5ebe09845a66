"""Bounds of any machine: those of the sparse model where it has a ``sparsity`` section, else of the dense one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds import layer as bounds
from tilewright.cost.bounds.layer import Keeps, LowerBounds
from tilewright.cost.bounds.sparse import sparse_bounds
from tilewright.cost.hardware import HardwareBatch
from tilewright.hardware import Accelerator
from tilewright.workload import Operator

if TYPE_CHECKING:
    from tilewright.mapping import MapSpace


def space_bounds(space: "MapSpace") -> LowerBounds:
    """Return bounds that every legal mapping of ``space`` respects."""
    return layer_bounds(space.operator, space.accelerator, dict(space.constraints.keeps),
                        perfect=space.tiling == "perfect")


def layer_bounds(operator: Operator, accelerator: Accelerator, keeps: Keeps | None = None, *,
                 bypass: bool = False, perfect: bool = False) -> LowerBounds:
    """Return bounds that every legal mapping respects, as `tilewright.cost.bounds.layer.layer_bounds` does.

    Where zeros are made use of, they are those of `sparse_bounds`, which hold whatever memories keep.
    """
    if accelerator.sparsity is not None:
        return sparse_bounds(operator, accelerator, perfect=perfect)
    return bounds.layer_bounds(operator, accelerator, keeps, bypass=bypass, perfect=perfect)


@dataclass(frozen=True)
class BoundBatch:
    """Lower bounds (b,) for one operator on ``b`` machines, as of `LowerBounds`."""

    latency_cycles: NDArray[np.float64]
    energy_pj: NDArray[np.float64]
    edp: NDArray[np.float64]


def hardware_bounds(operator: Operator, hardware: HardwareBatch, accelerator: Accelerator, *,
                    bypass: bool = False, perfect: bool = False) -> BoundBatch:
    """Return what no mapping on each row of ``hardware`` can beat; ``accelerator`` has what the rows do not name.

    Some milliseconds for each different row.
    """
    if not len(hardware):
        return BoundBatch(*np.empty((3, 0)))
    table = np.array(list(hardware.values.values()))
    _, first, back = np.unique(table, axis=1, return_index=True, return_inverse=True)
    found = [layer_bounds(operator, hardware.machine(int(index), accelerator), bypass=bypass, perfect=perfect)
             for index in first]
    rows = np.array([(each.latency_cycles, each.energy_pj, each.edp) for each in found])[back.reshape(-1)].T
    return BoundBatch(*rows)
