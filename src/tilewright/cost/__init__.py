"""What it costs: counts, cycles, energy and bounds of mappings."""

from tilewright.cost.bounds import Bounds, Roofline, outermost_bytes, roofline
from tilewright.cost.bounds_any import layer_bounds, space_bounds
from tilewright.cost.bounds_traffic import Traffic
from tilewright.cost.dense import CostBatch, DenseModel, HardwareBatch
from tilewright.cost.engine import compile_aside
from tilewright.cost.explain import Explanation, explain
from tilewright.cost.records import Cost, Count, Expected, MemoryTraffic
from tilewright.cost.rounds import RoundLatency, Sequencer, round_latency
from tilewright.cost.sparse import SparseModel, cost_model

__all__ = [
    "Bounds",
    "Cost",
    "CostBatch",
    "Count",
    "DenseModel",
    "Expected",
    "Explanation",
    "HardwareBatch",
    "MemoryTraffic",
    "Roofline",
    "RoundLatency",
    "Sequencer",
    "SparseModel",
    "Traffic",
    "compile_aside",
    "cost_model",
    "explain",
    "layer_bounds",
    "outermost_bytes",
    "roofline",
    "round_latency",
    "space_bounds",
]
