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
    """What an adviser says of one product ``m, n, k``."""

    product: tuple[int, int, int]
    configuration: ArrayConfiguration
    cost: float
    """``configuration`` and ``cost``: what is advised, and what it takes by the objective: cycles, picojoules, or
    picojoules times cycles."""
    best: ArrayConfiguration
    best_cost: float
    """``best`` and ``best_cost``: the best of all configurations, found by looking at every one."""
    bound: float
    """What nothing can do with less of."""
    cycles: int
    energy_pj: float | None
    """``cycles`` and ``energy_pj``: of what is advised; None where the power of the array is not known."""
    equals: int
    """How many configurations are as good as the best."""
    confidence: float
    """How likely the advice is as good as the best; 1 where it was looked up."""
    source: str
    """Who says so: the exact path, the model, or the model with its first guesses scored."""

    @property
    def regret(self) -> float:
        """By what part it takes more than the best."""
        return self.cost / self.best_cost - 1.0


def advise(products: Whole, choices: Choices, model: Recommender | None = None,
           fallback: Fallback | None = None) -> tuple[Advice, ...]:
    """Return advice for products ``(p, 3)``: exact, or a model's for those within its sizes, see `Recommender.advise`.

    Raises an `InputError` if a size is not positive, or too large to be counted; or energy is asked for and the power
    is not known.
    """
    exact = choices.best(products)
    classes, sure = exact.classes.copy(), np.ones(len(products))
    sources = np.full(len(products), EXACT, dtype=object)
    if model is not None:
        within = (products <= LARGEST).all(axis=1)
        sources[~within] = BEYOND
        if within.any():
            told = model.advise(products[within], fallback)
            classes[within], sure[within] = told.classes, told.sure
            sources[within] = MODEL if fallback is None else np.where(
                told.searched, SEARCHED.format(fallback.top), SCORED.format(fallback.top))
    of = choices.configurations
    figures = zip(*(each.tolist() for each in (
        choices.figures(products, classes), choices.figures(products, exact.classes), choices.bound_figures(products),
        choices.cycles(products, classes[:, None])[:, 0])), strict=True)
    spent = ([None] * len(products) if choices.array.power_w is None
             else choices.energies(products, classes[:, None])[:, 0].tolist())
    return tuple(Advice((m, n, k), of[classes[at]], cost, of[exact.classes[at]], best, bound, cycles, spent[at],
                        int(exact.equals[at]), float(sure[at]), str(sources[at]))
                 for at, ((m, n, k), (cost, best, bound, cycles)) in enumerate(
                     zip(products.tolist(), figures, strict=True)))
