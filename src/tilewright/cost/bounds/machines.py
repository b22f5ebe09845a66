"""Bounds of any machine: those of the sparse model where it has a ``sparsity`` section, else of the dense one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.again import Again
from tilewright.cost.bounds.groups import tiles_of
from tilewright.cost.bounds.layer import BoundRows, LowerBounds, bound_rows
from tilewright.cost.bounds.passing import Bypass, Chain, Keeps, Passing
from tilewright.cost.bounds.rows import MachineRows
from tilewright.cost.bounds.rules import Leeway
from tilewright.cost.bounds.sparse import sparse_rows
from tilewright.cost.hardware import HardwareBatch
from tilewright.hardware import Accelerator
from tilewright.workload import Operator

if TYPE_CHECKING:
    from tilewright.mapping import MapSpace


def space_bounds(space: "MapSpace") -> LowerBounds:
    """Return bounds that every legal mapping of ``space`` respects."""
    return layer_bounds(space.operator, space.accelerator, dict(space.constraints.keeps),
                        perfect=space.tiling == "perfect", rules=Leeway.of(space))


def layer_bounds(operator: Operator, accelerator: Accelerator, keeps: Keeps | None = None, *,  # noqa: PLR0913
                 bypass: Bypass = False, perfect: bool = False, rules: Leeway | None = None) -> LowerBounds:
    """Return bounds that every legal mapping respects.

    Memories keep all that they can, or what ``keeps`` says for some of them. With ``bypass`` any memory but the
    outermost may let any tensor pass, or those pairs of a memory and a tensor may that it names, so the bounds are
    lower, each word counts once, and the split by component is only that of the least total. ``perfect`` is for
    mappings whose steps all divide the extents outside them, ``rules`` for those that keep to them. Where
    zeros are made use of, bounds hold whatever memories keep.

    Raises an `InputError` if a bandwidth is not positive.
    """
    rows = MachineRows.one(accelerator, rules)
    return _bounded(operator, rows, keeps, bypass=bypass, perfect=perfect).first(operator, accelerator)


def _bounded(operator: Operator, rows: MachineRows, keeps: Keeps | None = None, *, bypass: Bypass,  # noqa: PLR0913
             perfect: bool, energy: bool = True, compiled: bool = False) -> BoundRows:
    if rows.machine.sparsity is not None:
        return sparse_rows(operator, rows, perfect=perfect)
    return bound_rows(operator, rows, keeps, bypass=bypass, perfect=perfect, energy=energy, compiled=compiled)


MOST_ROWS = 128
"""Machines that are bounded at a time: few enough that their tables stay in the inner caches."""


@dataclass(frozen=True)
class BoundBatch:
    """Lower bounds (b,) for one operator on ``b`` machines, as of `LowerBounds`."""

    latency_cycles: NDArray[np.float64]
    energy_pj: NDArray[np.float64]
    edp: NDArray[np.float64]


def hardware_bounds(operator: Operator, hardware: HardwareBatch, accelerator: Accelerator, *,  # noqa: PLR0913
                    bypass: Bypass = False, perfect: bool = False, energy: bool = True) -> BoundBatch:
    """Return what no mapping on each row of ``hardware`` can beat; ``accelerator`` has what the rows do not name.

    Memories keep all that they can; with ``bypass`` as of `layer_bounds`.
    Equal rows are bounded once, and each as `layer_bounds` would by itself, or higher where tensors may pass memories:
    what must come again counts there too. Without ``energy`` that is bounded by 0, which is sooner done.
    """
    if not len(hardware):
        return BoundBatch(*np.empty((3, 0)))
    back, parts = _distinct(hardware, accelerator)
    out = np.empty((3, len(hardware)))
    for part, rows in parts:
        found = _bounded(operator, rows, bypass=bypass, perfect=perfect, energy=energy, compiled=True)
        out[:, part] = found.latency_cycles.astype(np.float64), found.energy_pj, found.edp
    return BoundBatch(*out[:, back])


def _distinct(hardware: HardwareBatch, accelerator: Accelerator) -> tuple[NDArray[np.intp], list[Any]]:
    """Return which row stands for each, and those with their places, parted; kept, as all layers ask for the same."""
    columns = hardware.on(accelerator)
    if "_distinct" not in vars(columns):
        table = np.array(list(hardware.values.values()))
        _, different, back = np.unique(table, axis=1, return_index=True, return_inverse=True)
        machines = MachineRows(columns, len(hardware)).take(different)
        vars(columns)["_distinct"] = back.reshape(-1), [
            (part, machines.take(part)) for part in machines.parts(MOST_ROWS)]
    found: tuple[NDArray[np.intp], list[Any]] = vars(columns)["_distinct"]
    return found


def likely_chains(operator: Operator, accelerator: Accelerator, bypass: Bypass, *,
                  perfect: bool = False) -> list[dict[str, Chain]]:
    """Return memories that keep each tensor where others may let it pass, those of the least bounds on energy first.

    Of the memories that a tensor may pass, two at most keep it; where these are too many to tell, there are none.
    """
    again = Again(Passing(operator, MachineRows.one(accelerator, None), {}, bypass), tiles_of(operator, perfect))
    return again.ranked() if again.known else []
