"""The schedule methods: each module registers its own."""

from tilewright.scheduling.methods import lists, magma, points

__all__ = ["lists", "magma", "points"]
