"""Bounds of any machine: those of the sparse model where it has a ``sparsity`` section, else of the dense one."""

from typing import TYPE_CHECKING

from tilewright.cost import bounds
from tilewright.cost.bounds import Bounds, Keeps
from tilewright.cost.bounds_sparse import sparse_bounds
from tilewright.hardware import Accelerator
from tilewright.workload import Operator

if TYPE_CHECKING:
    from tilewright.mapping import MapSpace


def space_bounds(space: "MapSpace") -> Bounds:
    """Return bounds that every legal mapping of ``space`` respects."""
    return layer_bounds(space.operator, space.accelerator, dict(space.constraints.keeps),
                        perfect=space.tiling == "perfect")


def layer_bounds(operator: Operator, accelerator: Accelerator, keeps: Keeps | None = None, *,
                 bypass: bool = False, perfect: bool = False) -> Bounds:
    """Return bounds that every legal mapping respects, as `tilewright.cost.bounds.layer_bounds` does.

    Where zeros are made use of, they are those of `sparse_bounds`, which hold whatever memories keep.
    """
    if accelerator.sparsity is not None:
        return sparse_bounds(operator, accelerator, perfect=perfect)
    return bounds.layer_bounds(operator, accelerator, keeps, bypass=bypass, perfect=perfect)
