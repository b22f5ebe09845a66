"""What scores the mappings of a search, on its machine or on machines that the mapper proposes."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.cost import Cost, DenseModel, HardwareBatch, SparseModel, compile_aside, cost_model
from tilewright.hardware import Accelerator, with_numbers
from tilewright.mapping import Mapping, MappingBatch, MapSpace
from tilewright.search.objective import Costs, Objective
from tilewright.search.sweep import SweptModel


class CostModel(Protocol):
    """What scores mappings; `tilewright.cost.DenseModel` unless another is given."""

    def score(self, batch: MappingBatch, *, threads: int = 1) -> Costs:
        """Score a batch."""

    def cost(self, mapping: Mapping) -> Cost:
        """Return all counts of one mapping."""


def model_of(space: MapSpace, objective: Objective) -> CostModel:
    """Return the cost model of a space: dense, sparse where the machine makes use of zeros, or over several densities.

    On a new machine, another process compiles the engine meanwhile.
    """
    compile_aside()
    if objective.densities is not None:
        return SweptModel(space, objective.densities)
    return cost_model(space.operator, space.accelerator, space.layout)


def score_on(model: CostModel, batch: MappingBatch, hardware: HardwareBatch | None, threads: int = 1) -> Costs:
    """Score mappings, each on its row of ``hardware``; models that others write know of none."""
    if hardware is None:
        return model.score(batch, threads=threads)
    assert isinstance(model, DenseModel | SparseModel | SweptModel)
    return model.score(batch, hardware, threads)


def machine_rows(machine: Accelerator) -> NDArray[np.str_]:
    """Return the numbers of a machine as rows (level, what, value) of text, as checkpoints keep them."""
    return np.array([(*key, repr(float(value))) for key, value in machine.numbers.items()])


def machine_of(rows: NDArray[np.str_], base: Accelerator) -> Accelerator:
    """Return the machine whose numbers `machine_rows` returned."""
    return with_numbers(base, {(str(level), str(what)): float(value) for level, what, value in rows})
