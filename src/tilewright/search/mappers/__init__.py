"""The mappers: one module each, registered when imported."""

from tilewright.search.mappers import (
    auto,
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
    "auto",
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
