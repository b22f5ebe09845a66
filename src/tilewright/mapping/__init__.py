"""How it runs: mappings, legality, map spaces, dataflows."""

from tilewright.mapping.mapping import LevelLoops, Loop, Mapping

__all__ = ["LevelLoops", "Loop", "Mapping"]
