"""Searches that step from a point to points near it."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.search.boxes import Problem, black_box
from tilewright.search.mapper import Count, MapperOptions, Positive

UNLIMITED = 10_000
"""Points of one cooling where the budget names none."""
RISE = 2.0
MOST_STEP, LEAST_STEP = 1.0, 1e-4


@dataclass(frozen=True)
class LambdaOptions(MapperOptions):
    """Options of ``one-plus-lambda``."""

    children: Annotated[Count, "Points of a generation (lambda)."] = 20
    step: Annotated[Positive, "Standard deviation of the first generation."] = 0.25


@black_box("one-plus-lambda", LambdaOptions)
class OnePlusLambda:
    """(1+lambda) evolution strategy on vectors: the best of a parent and its children is the next parent.

    Steps double where a generation improves and shrink by 2^(1/4) where none does (the one-fifth rule of Rechenberg,
    1973, in the form of Kern et al., 2004, for generations instead of single points).
    """

    def __init__(self, options: LambdaOptions, problem: Problem) -> None:
        self.options = options
        self.rng = np.random.default_rng(problem.seed)
        self.parent = np.full(problem.dimension, 0.5)
        self.loss = math.inf
        self.step = options.step
        if problem.known is not None:
            known = problem.known.best(1)
            self.parent, self.loss = known.points[0], float(known.losses[0])
        self.children = self.parent[None]

    def ask(self) -> NDArray[np.float64]:
        """Propose the children of the present parent; the first time itself too."""
        noise = self.rng.standard_normal((self.options.children, len(self.parent)))
        self.children = reflected(self.parent + self.step * noise)
        if self.loss == math.inf:
            self.children[0] = self.parent
        return self.children

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Let the best live on, and set the step."""
        best = int(losses.argmin())
        better = losses[best] < self.loss
        self.step = min(max(self.step * (RISE if better else RISE**-0.25), LEAST_STEP), MOST_STEP)
        if losses[best] <= self.loss:
            self.parent, self.loss = self.children[best], float(losses[best])


@dataclass(frozen=True)
class AnnealingOptions(MapperOptions):
    """Options of ``annealing``."""

    chains: Annotated[Count, "Walks side by side."] = 10
    hot: Annotated[Positive, "First temperature: the rise of the score's logarithm that is accepted with a chance of "
                             "1/e."] = 1.0
    cold: Annotated[Positive, "Last temperature."] = 0.01
    changes: Annotated[Positive, "Numbers of a point that change in a step, on average."] = 2.0
    step: Annotated[Positive, "Standard deviation of such a change."] = 0.3


@black_box("annealing", AnnealingOptions)
class Annealing:
    """Simulated annealing on vectors (Kirkpatrick et al., 1983), with several walks side by side.

    Temperatures fall geometrically over the budget; where that names no samples, over every 10,000, then from hot
    again.
    """

    def __init__(self, options: AnnealingOptions, problem: Problem) -> None:
        self.options = options
        self.rng: Generator = np.random.default_rng(problem.seed)
        self.steps = max(1, (problem.samples or UNLIMITED) // options.chains)
        self.points = self.rng.random((options.chains, problem.dimension))
        self.losses = np.full(options.chains, math.inf)
        if problem.known is not None:
            known = problem.known.best(options.chains)
            places = np.arange(options.chains) % len(known.points)
            self.points, self.losses = known.points[places], known.losses[places]
        self.proposed = self.points
        self.taken = 0

    def ask(self) -> NDArray[np.float64]:
        """Propose a step of each walk; at first where it begins, if that is not known."""
        if self.taken or self.losses[0] < math.inf:
            shape = self.points.shape
            changed = self.rng.random(shape) < self.options.changes / shape[1]
            changed[np.arange(shape[0]), self.rng.integers(shape[1], size=shape[0])] = True
            noise = self.options.step * self.rng.standard_normal(shape)
            self.proposed = reflected(self.points + changed * noise)
        return self.proposed

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Take every step down, and steps up by chance, the less the colder it is."""
        options = self.options
        part = self.taken % self.steps / self.steps
        temperature = options.hot * (options.cold / options.hot)**part
        rise = np.where(self.losses < math.inf, losses - self.losses, -math.inf)
        accepted = self.rng.random(len(losses)) < np.exp(np.minimum(-rise / temperature, 0.0))
        self.points = np.where(accepted[:, None], self.proposed, self.points)
        self.losses = np.where(accepted, losses, self.losses)
        self.taken += 1


def reflected(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points with numbers out of ``[0, 1]`` mirrored at its ends."""
    folded = np.mod(points, 2.0)
    return np.minimum(folded, 2.0 - folded)
