"""What zeros leave of a count of the static schedule, in a sentence."""

from tilewright.cost.records import Cost
from tilewright.cost.sparse.model import SparseModel
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping
from tilewright.workload import Operator


def told_densities(operator: Operator) -> str:
    """Return the densities of tensors that have zeros: ``I 0.5, W 2:4``."""
    told = []
    for tensor in operator.tensors:
        if tensor.structure is not None:
            told.append(f"{tensor.name} {tensor.structure[0]}:{tensor.structure[1]}")
        elif tensor.density < 1:
            told.append(f"{tensor.name} {'even:' if tensor.even else ''}{tensor.density:g}")
    return ", ".join(told) or "1"


def sparse_cost(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Cost | None:
    """Return the cost with what is moved in the mean; None where the machine makes no use of zeros."""
    return None if accelerator.sparsity is None else SparseModel(operator, accelerator).cost(mapping)


def left_of(operator: Operator, cost: Cost, name: str) -> str:
    """Return what is left of the count ``MEMORY.TENSOR.KIND`` in the mean.

    >>> from tilewright.hardware import preset
    >>> from tilewright.mapping import dataflow
    >>> from tilewright.workload import matmul, with_densities
    >>> layer, machine = with_densities(matmul("m", m=8, n=8, k=8), {"I": "even:0.5"}), preset("accel-b-sparse")
    >>> cost = sparse_cost(layer, machine, dataflow("weight-stationary", layer, machine))
    >>> left_of(layer, cost, "DRAM.I.reads").split(",")[0]
    'At densities I even:0.5'
    """
    memory, tensor, kind = name.rsplit(".", 2)
    found = (cost.expected or {})[memory, tensor]
    bits = f", and {found.metadata_bits:,.6g} bits of metadata with all that {memory} moves of {tensor}" if (
        found.metadata_bits) else ""
    return (f"At densities {told_densities(operator)}, {getattr(found, kind):,.6g} of these words are moved in the "
            f"mean{bits}.")
