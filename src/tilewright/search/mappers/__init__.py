"""The mappers: one module each, registered when imported."""

from tilewright.search.mappers import bayes, evolution, exact, exhaustive, gamma, genetic, gradient, neighbours, random

__all__ = ["bayes", "evolution", "exact", "exhaustive", "gamma", "genetic", "gradient", "neighbours", "random"]
