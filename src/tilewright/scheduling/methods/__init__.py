"""The schedule methods: each module registers its own."""

from tilewright.scheduling.methods import agents, auto, constraint, lists, magma, points

__all__ = ["agents", "auto", "constraint", "lists", "magma", "points"]
