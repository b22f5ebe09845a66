"""The schedule methods: each module registers its own."""

from tilewright.scheduling.methods import auto, lists, magma, points

__all__ = ["auto", "lists", "magma", "points"]
