"""The mappers: one module each, registered when imported."""

from tilewright.search.mappers import auto, bayes, evolution, exact, exhaustive, gamma, genetic, neighbours, random
from tilewright.search.mappers.learned import gradient, mind_mappings

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
