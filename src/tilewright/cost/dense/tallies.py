"""What one mapping moves, by the closed forms: the same rows as `DenseModel.tallies`, for a batch of one."""

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense.model import KINDS, TallyKey
from tilewright.cost.dense.nest import Nest
from tilewright.cost.dense.single import busiest_counts, counts, first_read, last_tile, last_written


def tallies_of(nest: Nest) -> dict[TallyKey, NDArray[np.float64]]:
    """Return all rows as arrays of one; whether the mapping fits is not looked at."""
    found: dict[TallyKey, int] = {("total", -1, "", "steps"): cf.steps(nest), ("total", -1, "", "arrays"): 0}
    first = counts(nest, busiest=True)
    views = {"total": counts(nest, busiest=False), "busiest": first}
    for walked in busiest_counts(nest, first).values():
        for view, moved in walked.items():
            views[view] = views.get(view, {}) | moved
    for view, moved in views.items():
        for (level, name), count in moved.items():
            found |= {(view, level, name, kind): getattr(count, kind) for kind in KINDS}
    for tensor in nest.operator.tensors:
        for edge in nest.boundaries(tensor):
            if edge.child == len(nest.mapping.levels):
                continue
            own = last_tile(nest, edge) if tensor.is_output else tensor.words(nest.extents(edge.child))
            parent = last_written(nest, edge) if tensor.is_output else first_read(nest, edge)
            found["edge", edge.child, tensor.name, "own"] = own
            found["edge", edge.child, tensor.name, "parent"] = parent
    return {key: np.array([float(value)]) for key, value in found.items()}
