"""The mappers: one module each, registered when imported."""

from tilewright.search.mappers import exhaustive, gamma, random

__all__ = ["exhaustive", "gamma", "random"]
