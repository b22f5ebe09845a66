"""The mappers: one module each, registered when imported."""

from tilewright.search.mappers import exact, exhaustive, gamma, gradient, random

__all__ = ["exact", "exhaustive", "gamma", "gradient", "random"]
