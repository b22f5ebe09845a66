"""What is computed: operators, graphs, the zoo."""

from tilewright.workload.build import (
    ConvolutionShape,
    convolution,
    depthwise,
    einsum,
    linear,
    matmul,
    transposed_convolution,
)
from tilewright.workload.graph import (
    Coverage,
    DataMovement,
    Graph,
    MacNode,
    Node,
    UniqueOperator,
    Unmodelled,
    VectorOperator,
    coverage,
    unique_operators,
)
from tilewright.workload.operator import ROLES, Axis, Operator, Role, Tensor

__all__ = [
    "ROLES",
    "Axis",
    "ConvolutionShape",
    "Coverage",
    "DataMovement",
    "Graph",
    "MacNode",
    "Node",
    "Operator",
    "Role",
    "Tensor",
    "UniqueOperator",
    "Unmodelled",
    "VectorOperator",
    "convolution",
    "coverage",
    "depthwise",
    "einsum",
    "linear",
    "matmul",
    "transposed_convolution",
    "unique_operators",
]
