"""What it costs: counts, cycles, energy and bounds of mappings."""

from tilewright.cost.bounds import Bounds, Roofline, layer_bounds, outermost_bytes, roofline
from tilewright.cost.dense import CostBatch, DenseModel, HardwareBatch
from tilewright.cost.records import Cost, Count, MemoryTraffic

__all__ = [
    "Bounds",
    "Cost",
    "CostBatch",
    "Count",
    "DenseModel",
    "HardwareBatch",
    "MemoryTraffic",
    "Roofline",
    "layer_bounds",
    "outermost_bytes",
    "roofline",
]
