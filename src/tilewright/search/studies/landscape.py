"""A map space in two dimensions: random mappings, and those that mappers sampled, by principal components."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, Rows
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.bounding import Bounding
from tilewright.search.objective import BREAKS_CONSTRAINT, Costs, Objective, Scorer
from tilewright.search.records import Budget
from tilewright.search.run import generator, search
from tilewright.search.scoring import CostModel, model_of
from tilewright.search.studies.axes import OWN
from tilewright.search.studies.contest import Contender, parse_contenders

ENCODING = ("For each loop the binary logarithm of how often it runs (of extent outside over step), at every memory "
            "and along every side of an array; for each memory the place of each loop among those that run there, from "
            "0 (outermost) to 1, one half for loops that run once. Centred, not scaled.")

_DRAWN = 4096
_ROUNDS = 400

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Points(Rows):
    """Legal mappings in the picture: ``x``, ``y`` (p), their scores (p), and after how many samples each came (p)."""

    x: Floats
    y: Floats
    scores: Floats
    samples: NDArray[np.int64]

    def near(self, goal: float) -> float:
        """Return the share of points whose score is at most ``goal``; 0 where there are none."""
        return float(np.mean(self.scores <= goal)) if len(self) else 0.0

    def thinned(self, most: int) -> "Points":
        """Return at most ``most`` points, evenly over the samples, with the best one among them."""
        if len(self) <= most:
            return self
        evenly = np.linspace(0, len(self) - 1, most - 1).astype(np.int64)
        chosen = np.unique(np.append(evenly, self.scores.argmin()))
        return self.take(chosen)


@dataclass(frozen=True)
class Landscape:
    """The picture of a map space."""

    layer: str
    machine: str
    objective: str
    unit: str
    explained: tuple[float, float]
    """Share of the variance of the random mappings' encoding that each of the two axes holds."""
    features: int
    leading: tuple[tuple[tuple[str, float], ...], tuple[tuple[str, float], ...]]
    """For each axis the features that weigh most, as (name, weight)."""
    background: Points
    """Random mappings that fit."""
    trails: dict[str, Points] = field(default_factory=dict)
    """By contender: all legal mappings that it sampled, in order."""
    bound: float | None = None

    @property
    def best(self) -> float:
        """The best score of all points."""
        return min(float(points.scores.min()) for points in (self.background, *self.trails.values()) if len(points))

    def distance(self, name: str) -> float:
        """Return how far the best point of a contender is from the middle of the random mappings.

        In the plane, as a multiple of the root mean square distance of the random mappings.
        """
        points, random = self.trails[name], self.background
        middle = float(random.x.mean()), float(random.y.mean())
        spread = math.sqrt(float(((random.x - middle[0]) ** 2 + (random.y - middle[1]) ** 2).mean())) or 1.0
        best = int(points.scores.argmin())
        return math.hypot(float(points.x[best]) - middle[0], float(points.y[best]) - middle[1]) / spread


def encode(space: MapSpace, batch: MappingBatch) -> Floats:
    """Return ``(b, f)`` features of mappings, as `ENCODING` says."""
    steps, outside, memories = batch.steps, batch.outside(space.arrays.sizes), batch.layout.temporal
    ranks, here = batch.ranks[memories], (steps < outside)[memories]
    # before[m, d, b]: loops that run at memory m outside that over d.
    before = ((ranks[:, None, :, :] < ranks[:, :, None, :]) & here[:, None, :, :]).sum(axis=2)
    last = np.maximum(here.sum(axis=1, keepdims=True) - 1, 1)
    places = np.where(here & (here.sum(axis=1, keepdims=True) > 1), before / last, 0.5)
    parts = [np.log2(outside / steps), places]
    return np.concatenate([part.reshape(-1, len(batch)) for part in parts]).T


def feature_names(space: MapSpace) -> list[str]:
    """Return the name of each feature of `encode`."""
    dims = space.layout.dimensions
    return [*(f"{place} {name} count" for place in space.layout.places for name in dims),
            *(f"{space.layout.places[s]} {name} place" for s in space.layout.temporal for name in dims)]


def study_landscape(  # noqa: PLR0913  (keywords of an entry point)
    space: MapSpace,
    contenders: "str | Iterable[str | Contender]" = "gamma,random-pruned",
    *,
    objective: str | Objective = "edp",
    points: int = 20_000,
    budget: Budget | str | int = 5_000,
    seed: int = 0,
    uniform: bool = False,
) -> Landscape:
    """Draw random mappings that fit, lay the plane through them that shows most of how they differ, and search.

    Parameters
    ----------
    uniform
        Draw every mapping of the space with the same chance (`MapSpace.draw`) instead of spreading the draws over all
        scales of tiles (`MapSpace.sample`), as mappers do when they begin.

    Raises
    ------
    InputError
        If hardly any random mapping fits, or a mapper or number is wrong.
    """
    if points < 3:
        raise InputError("points", "must be at least 3", points)
    goal, entrants = Objective.parse(objective), parse_contenders(contenders)
    model = model_of(space, goal)
    scorer = Scorer(goal, space.operator, space.accelerator)
    features, scores, samples = _random(space, scorer, model, (points, seed), uniform=uniform)
    centre = features.mean(axis=0)
    _, singular, axes = np.linalg.svd(features - centre, full_matrices=False)
    axes = axes[:2] * np.where(axes[:2, np.abs(axes[:2]).argmax(axis=1)].diagonal() < 0, -1.0, 1.0)[:, None]
    whole = float((singular**2).sum()) or 1.0
    share = singular[:2] ** 2 / whole

    def placed(found: Floats, values: Floats, after: NDArray[np.int64]) -> Points:
        x, y = axes @ (found - centre).T
        return Points(x, y, values, after)

    trails = {}
    for contender in entrants:
        camera = _Camera(space, scorer, model)
        search(space.operator, space.accelerator, objective=goal, mapper=contender.mapper, budget=budget, seed=seed,
               space=space, options=contender.options, model=camera)
        trails[contender.name] = placed(*camera.taken())
    names = feature_names(space)
    leading = [tuple((names[f], float(axis[f])) for f in np.argsort(-np.abs(axis))[:4]) for axis in axes]
    return Landscape(space.operator.name, space.accelerator.name, str(goal), goal.unit,
                     (float(share[0]), float(share[1])), features.shape[1], (leading[0], leading[1]),
                     placed(features, scores, samples), trails, Bounding((space,), goal).score)


def _random(space: MapSpace, scorer: Scorer, model: CostModel,
            wanted: tuple[int, int], *, uniform: bool) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return features, scores and numbers of ``points`` random mappings that fit."""
    points, seed = wanted
    rng, camera = generator((seed, OWN)), _Camera(space, scorer, model)
    for _ in range(_ROUNDS):
        count = min(_DRAWN, points - camera.found)
        camera.score(space.draw(rng, count, legal=True) if uniform else space.sample(rng, _DRAWN))
        if camera.found >= points:
            break
    if camera.found < 3:
        raise InputError(f"{space.operator.name}.mapping", "must be found among random ones",
                         f"{camera.found} in {camera.seen}")
    features, scores, samples = camera.taken()
    return features[:points], scores[:points], samples[:points]


class _Camera:
    """A cost model that takes note of every legal mapping it scores."""

    def __init__(self, space: MapSpace, scorer: Scorer, model: CostModel) -> None:
        self.space, self.scorer, self.model = space, scorer, model
        self.features: list[Floats] = [np.zeros((0, len(feature_names(space))))]
        self.scores: list[Floats] = [np.zeros(0)]
        self.samples: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        self.seen = self.found = 0
        self.cost = model.cost

    def score(self, batch: MappingBatch, *, threads: int = 1) -> Costs:
        costs = self.model.score(batch, threads=threads)
        values = self.scorer.scores(costs)
        legal = np.flatnonzero(values < BREAKS_CONSTRAINT)
        self.features.append(encode(self.space, batch.take(legal)))
        self.scores.append(values[legal])
        self.samples.append(legal + self.seen + 1)
        self.seen, self.found = self.seen + len(batch), self.found + len(legal)
        return costs

    def taken(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        return np.concatenate(self.features), np.concatenate(self.scores), np.concatenate(self.samples)
