"""Bayesian optimisation on vectors, with a window that keeps it usable at any budget."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.search.blas import single_thread
from tilewright.search.boxes import Problem, black_box
from tilewright.search.mapper import Limits, MapperOptions
from tilewright.search.mappers.neighbours import reflected

LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Length scales that are tried, in parts of the typical distance of two random points."""
CHOSEN = 8
"""Models made with one of them before they are tried again."""
NOISE = 0.05
NEAR = 0.2
CHANGED = 3.0
Several = Annotated[int, Limits(ge=2)]


@dataclass(frozen=True)
class BayesOptions(MapperOptions):
    """Options of ``bayes``."""

    first: Annotated[Several, "Random points proposed before a model is made."] = 100
    population: Annotated[Several, "Points proposed for each model: those of the largest expected improvement among "
                                   "the candidates."] = 50
    window: Annotated[Several, "Points that the model is made of: the best so far and, for the other half, the "
                               "latest."] = 160
    candidates: Annotated[Several, "Points among which it chooses: half of them random, half near the best ones."] = 800

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates < self.population:
            raise InputError("options.candidates", f"must be at least the population ({self.population})",
                             self.candidates)


@black_box("bayes", BayesOptions, "optimizers")
class BayesianOptimisation:
    """Bayesian optimisation on vectors: expected improvement under a Gaussian process, by scikit-learn.

    The model sees a window of all points and the ranks of their scores, not these themselves, as mappings differ by
    orders of magnitude and many are illegal; so a proposal takes the same time after 10,000 samples as after 200.
    """

    def __init__(self, options: BayesOptions, problem: Problem) -> None:
        self.options = options
        self.rng = np.random.default_rng(problem.seed)
        self.typical = math.sqrt(problem.dimension / 6.0)
        self.proposed = self.rng.random((options.first, problem.dimension))
        self.points = self.proposed[:0]
        self.losses = np.empty(0)
        if problem.known is not None:
            known = problem.known.best(options.window // 2)
            self.points, self.losses = known.points, known.losses
        self.begun = False
        self.length = 1.0
        self.models = 0

    def ask(self) -> NDArray[np.float64]:
        """Propose what promises most; at first random points."""
        if self.begun:
            candidates = self._candidates()
            with single_thread():
                gains = self._gains(candidates)
            self.proposed = candidates[np.argsort(-gains, kind="stable")[:self.options.population]]
        return self.proposed

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Keep the best points and the latest."""
        self.begun = True
        points = np.concatenate([self.points, self.proposed])
        known = np.concatenate([self.losses, losses])
        best = np.argsort(known, kind="stable")[:self.options.window // 2]
        latest = np.arange(max(0, len(known) - self.options.window // 2), len(known))
        kept = np.union1d(best, latest)
        self.points, self.losses = points[kept], known[kept]

    def _candidates(self) -> NDArray[np.float64]:
        random = self.options.candidates // 2
        count, dimension = self.options.candidates - random, self.points.shape[1]
        best = self.points[np.argsort(self.losses, kind="stable")[:self.options.population]]
        near = best[self.rng.integers(len(best), size=count)]
        changed = self.rng.random(near.shape) < CHANGED / dimension
        near = reflected(near + changed * NEAR * self.rng.standard_normal(near.shape))
        return np.concatenate([self.rng.random((random, dimension)), near])

    def _gains(self, candidates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected improvement at each candidate."""
        from scipy.stats import norm  # noqa: PLC0415  (an extra)

        # Ranks as quantiles of a normal distribution: -2.5 or so for the best.
        ranks = self.losses.argsort(kind="stable").argsort(kind="stable")
        values = norm.ppf((ranks + 0.5) / len(ranks))
        if self.models % CHOSEN == 0:
            self.length = max(LENGTHS, key=lambda length: float(
                self._model(length, values).log_marginal_likelihood_value_))
        self.models += 1
        model = self._model(self.length, values)
        mean, deviation = model.predict(candidates, return_std=True)
        deviation = np.maximum(deviation, 1e-9)
        lead = (values.min() - mean) / deviation
        return np.asarray(deviation * (lead * norm.cdf(lead) + norm.pdf(lead)))

    def _model(self, length: float, values: NDArray[np.float64]) -> Any:
        from sklearn.gaussian_process import GaussianProcessRegressor, kernels  # noqa: PLC0415  (an extra)

        kernel = kernels.Matern(length * self.typical, nu=2.5)
        return GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None).fit(self.points, values)
