"""The mappers of micro-batches: each module registers its own."""

from tilewright.fusion.microbatch.mappers import agents, proven, sampler, vectors

__all__ = ["agents", "proven", "sampler", "vectors"]
