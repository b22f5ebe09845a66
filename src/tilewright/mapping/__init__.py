"""How it runs: mappings, legality, map spaces, dataflows."""

from tilewright.mapping.batch import Layout, MappingBatch, Slot
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping

__all__ = ["Layout", "LevelLoops", "Loop", "Mapping", "MappingBatch", "Slot"]
