"""The schedule methods: each module registers its own."""

from tilewright.scheduling.methods import auto, baselines, constraint, lists, magma

__all__ = ["auto", "baselines", "constraint", "lists", "magma"]
