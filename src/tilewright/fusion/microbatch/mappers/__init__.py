"""The mappers of micro-batches: each module registers its own."""

from tilewright.fusion.microbatch.mappers import baselines, proven, sampler

__all__ = ["baselines", "proven", "sampler"]
