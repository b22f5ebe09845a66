"""Advice for products: a configuration, what it takes, what the best takes, how sure, and who says so."""

from dataclasses import dataclass

import numpy as np

from tilewright.cost import ArrayConfiguration
from tilewright.recommendation.choices import Choices, Whole
from tilewright.recommendation.labels import LARGEST
from tilewright.recommendation.networks import Fallback, Recommender

EXACT, MODEL, SCORED, SEARCHED, BEYOND = (
    "exact", "model", "model, top {} scored", "exact: the model's top {} may be poor",
    f"exact: a size is beyond the model's {LARGEST:,}")


@dataclass(frozen=True)
class Advice:
    """What an adviser says of one product ``m, n, k``.

    Parameters
    ----------
    configuration, cost_cycles
        What is advised, and what it takes.
    best, best_cycles
        The best of all configurations, found by looking at every one.
    bound_cycles
        What nothing can do with less of.
    equals
        How many configurations are as good as the best.
    confidence
        How likely the advice is as good as the best; 1 where it was looked up.
    source
        Who says so: the exact path, the model, or the model with its first guesses scored.
    """

    product: tuple[int, int, int]
    configuration: ArrayConfiguration
    cost_cycles: int
    best: ArrayConfiguration
    best_cycles: int
    bound_cycles: int
    equals: int
    confidence: float
    source: str

    @property
    def regret(self) -> float:
        """By what part it takes longer than the best."""
        return self.cost_cycles / self.best_cycles - 1.0


def advise(products: Whole, choices: Choices, model: Recommender | None = None,
           fallback: Fallback | None = None) -> tuple[Advice, ...]:
    """Return advice for products ``(p, 3)``: exact, or a model's for those within its sizes, see `Recommender.advise`.

    Raises
    ------
    InputError
        If a size is not positive, or too large to be counted.
    """
    exact = choices.best(products)
    classes, sure = exact.classes.copy(), np.ones(len(products))
    cost = exact.cycles.copy()
    sources = np.full(len(products), EXACT, dtype=object)
    if model is not None:
        within = (products <= LARGEST).all(axis=1)
        sources[~within] = BEYOND
        if within.any():
            told = model.advise(products[within], fallback)
            classes[within], sure[within] = told.classes, told.sure
            sources[within] = MODEL if fallback is None else np.where(
                told.searched, SEARCHED.format(fallback.top), SCORED.format(fallback.top))
            cost[within] = choices.cycles(products[within], classes[within][:, None])[:, 0]
    of = choices.configurations
    return tuple(Advice((int(m), int(n), int(k)), of[classes[at]], int(cost[at]), of[exact.classes[at]],
                        int(exact.cycles[at]), int(bound), int(exact.equals[at]), float(sure[at]), str(sources[at]))
                 for at, ((m, n, k), bound) in enumerate(zip(products, choices.bound(products), strict=True)))
