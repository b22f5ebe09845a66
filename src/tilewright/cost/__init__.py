"""What it costs: counts, cycles, energy and bounds of mappings."""

from tilewright.cost.dense import CostBatch, DenseModel, HardwareBatch
from tilewright.cost.records import Cost, Count, MemoryTraffic

__all__ = ["Cost", "CostBatch", "Count", "DenseModel", "HardwareBatch", "MemoryTraffic"]
