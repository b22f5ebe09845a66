"""What is computed: operators, graphs, layer tables, the zoo."""

from tilewright.workload import zoo
from tilewright.workload.build import (
    ConvolutionShape,
    convolution,
    depthwise,
    einsum,
    linear,
    matmul,
    transposed_convolution,
)
from tilewright.workload.density import (
    EVEN,
    Density,
    graph_with_densities,
    read_density,
    with_densities,
    with_given,
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
from tilewright.workload.layers_language import spread_evenly
from tilewright.workload.likeness import edit_distance, form
from tilewright.workload.links import AxisLink, Digit, Edges, Operand, Result, View
from tilewright.workload.operator import ROLES, Axis, Operator, Role, Tensor
from tilewright.workload.plain import dump_operators, operators_graph
from tilewright.workload.sketch import EXPERTS, LAYERS
from tilewright.workload.table import read_table, table_graph
from tilewright.workload.tensors import NetworkTensor, Read, TensorGraph, TensorLink, result_shape, tensor_graph
from tilewright.workload.vector import OPERATIONS_PER_ELEMENT, vector_kind

__all__ = [
    "EVEN",
    "EXPERTS",
    "LAYERS",
    "OPERATIONS_PER_ELEMENT",
    "ROLES",
    "Axis",
    "AxisLink",
    "ConvolutionShape",
    "Coverage",
    "DataMovement",
    "Density",
    "Digit",
    "Edges",
    "Graph",
    "MacNode",
    "NetworkTensor",
    "Node",
    "Operand",
    "Operator",
    "Read",
    "Result",
    "Role",
    "Tensor",
    "TensorGraph",
    "TensorLink",
    "UniqueOperator",
    "Unmodelled",
    "VectorOperator",
    "View",
    "convolution",
    "coverage",
    "depthwise",
    "dump_operators",
    "edit_distance",
    "einsum",
    "form",
    "graph_with_densities",
    "linear",
    "matmul",
    "operators_graph",
    "read_density",
    "read_table",
    "result_shape",
    "spread_evenly",
    "table_graph",
    "tensor_graph",
    "transposed_convolution",
    "unique_operators",
    "vector_kind",
    "with_densities",
    "with_given",
    "zoo",
]
