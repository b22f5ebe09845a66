"""The mappers: one module each, registered when imported."""

from tilewright.search.mappers import (
    bayes,
    evolution,
    exact,
    exhaustive,
    gamma,
    genetic,
    gradient,
    mind_mappings,
    neighbours,
    random,
)

__all__ = [
    "bayes",
    "evolution",
    "exact",
    "exhaustive",
    "gamma",
    "genetic",
    "gradient",
    "mind_mappings",
    "neighbours",
    "random",
]
