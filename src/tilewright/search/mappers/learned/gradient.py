"""Gradient descent on a relaxation of the cost model itself, with rounding and correction among whole mappings."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, require_extra
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.checkpoint import Resumable
from tilewright.search.mapper import MAPPERS, Count, Limits, MapperOptions, Share, Task, read_options
from tilewright.search.objective import BREAKS_CONSTRAINT, Objective, Scorer
from tilewright.search.points import Points, fitted, to_mappings, to_points

FREE_COUNT = 0.5
"""Share of the moves that split off a factor of any size, in spaces where tiles need not divide."""


@dataclass(frozen=True)
class GradientOptions(MapperOptions):
    """Options of ``gradient``."""

    starts: Annotated[Count, "Points that descend together."] = 64
    steps: Annotated[Count, "Steps of each descent."] = 40
    rate: Annotated[float, Limits(ge=0), "Length of a step, in logarithms of loop counts."] = 0.15
    elite: Annotated[Count, "Best mappings kept, from which corrections set out."] = 24
    corrections: Annotated[Count, "Mappings proposed at a time around the best ones."] = 256
    patience: Annotated[Count, "Rounds of corrections without improvement after which new points descend."] = 4
    newcomers: Annotated[Share, "Share of the starts that are drawn; the others are best mappings, shaken."] = 0.5
    greed: Annotated[float, Limits(ge=0), "How much likelier a correction is that promises more by the gradient; 0 for "
                                          "not at all."] = 1.0
    remembered: Annotated[Count, "Places in the table of mappings already proposed."] = 1 << 16


@MAPPERS.register("gradient", GradientOptions)
class GradientMapper(Resumable):
    """Descends a smooth form of the cost model, rounds to mappings, and corrects the best of them along the gradient.

    Needs the extra `learn` (PyTorch), but no training. Loop counts become real numbers and loop orders scores; the
    closed forms of the counting rules are then differentiable (`search/relaxed`), as in DOSA (Hong et al., MICRO
    2023), there with fixed orders. Many random points descend together; their dimensions are rounded one by one while
    the others descend on. From the best mappings, factors are moved between levels and loops swapped, the likelier the
    more the gradient promises; where that no longer helps, new points descend. Only true costs decide;
    points of the smooth form are not counted as samples.
    """

    covers_space = False
    takes_start = True
    extra = "learn"
    changing = "best", "scores", "waiting", "seen", "idle", "rng"

    def __init__(self, task: Task) -> None:
        require_extra("learn", "mapper", "gradient")
        from tilewright.search.descent import Descent  # noqa: PLC0415  (PyTorch loads late)

        self.space, self.rng = task.space, task.rng
        self.options = read_options(GradientOptions, task.options, "gradient")
        scorer = Scorer(task.objective or Objective.parse("edp"), task.space.operator, task.space.accelerator)
        self.descent = Descent(task.space, scorer, task.late)
        self.rounding = perfect_part(task.space)
        self.best = task.space.empty(0)
        self.scores = np.empty(0)
        self.waiting = task.space.empty(0) if task.start is None else task.start
        self.seen = np.zeros(self.options.remembered, dtype=np.uint64)
        self.idle = np.array([0 if len(self.waiting) else self.options.patience, 0], dtype=np.int64)
        """Rounds of corrections without improvement, and whether the mappings on their way are corrections."""

    def ask(self, most: int) -> MappingBatch:
        """Propose mappings that points came down to, or corrections of the best."""
        while not len(self.waiting):
            self.waiting = self._next_round()
        found = self.waiting.take(slice(0, most))
        self.waiting = self.waiting.take(slice(most, None))
        return found

    def _next_round(self) -> MappingBatch:
        correct = self.idle[0] < self.options.patience and len(self.best) > 0
        self.idle[1] = correct
        if not correct:
            self.idle[0] = 0
        points = self._corrections() if correct else self._descend()
        coarse = self.rng.random(len(points[0])) < (0.3 if correct else 0.0)
        parts = [to_mappings((points[0][which], points[1][which]), self.space, rounding)
                 for which, rounding in ((~coarse, None), (coarse, self.rounding)) if which.any()]
        found = self.space.fresh(MappingBatch.joined(parts), self.seen)
        if not len(found):
            self.idle[0] += 1
            drawn = self.space.sample(self.rng, self.options.corrections // 4 + 1, 0.5)
            found = fitted(drawn, self.space)
        return found

    def _descend(self) -> Points:
        count = self.options.starts
        shaken = min(int(count * (1 - self.options.newcomers)), count - 1) if len(self.best) else 0
        logs, orders = to_points(self.space.sample(self.rng, count - shaken, 0.5), self.space)
        if shaken:
            own, own_orders = to_points(self.best, self.space)
            chosen = self.rng.integers(0, len(own), shaken)
            logs = np.concatenate([logs, own[chosen] + self.rng.normal(0, 0.5, own[chosen].shape)])
            orders = np.concatenate([orders, own_orders[chosen] + self.rng.normal(0, 0.2, own_orders[chosen].shape)])
        low = self.descent.run((logs, orders), self.options.steps, self.options.rate)
        return self.descent.settle(low, self.rng, max(1, self.options.steps // 6), self.options.rate / 2)

    def _corrections(self) -> Points:
        parents = to_points(self.best, self.space)
        slopes = self.descent.slopes(parents)
        places = (len(self.best) * self.rng.random(self.options.corrections) ** 2).astype(np.int64)
        points = parents[0][places].copy(), parents[1][places].copy()
        slopes = slopes[0][places], slopes[1][places]
        left = np.ones(len(places), dtype=np.bool_)
        while left.any():
            order = left & (self.rng.random(len(left)) < 0.25)
            self._swap(points, slopes, np.flatnonzero(order))
            self._move(points, slopes, np.flatnonzero(left & ~order))
            left &= self.rng.random(len(left)) < 0.4
        return points

    def _move(self, points: Points, slopes: Points, which: NDArray[np.intp]) -> None:
        """Move a factor of one dimension from one slot to another, in place."""
        if not len(which):
            return
        logs, slope = points[0][which], slopes[0][which]
        gains = slope[:, :, None, :] - slope[:, None, :, :]  # (b, from, to, d)
        possible = (logs > 0.3)[:, :, None, :] & self.descent.free[None, None] & ~np.eye(logs.shape[1], dtype=bool)[
            None, :, :, None]
        source, target, d = self._chosen(gains, possible)
        rows = np.arange(len(which))
        whole = logs[rows, source, d]
        part = np.minimum(np.log(self.rng.choice([2, 3, 4, 7], len(which))), whole)
        if self.space.tiling != "perfect":
            part = np.where(self.rng.random(len(which)) < FREE_COUNT, whole * self.rng.random(len(which)), part)
        part = np.where(self.rng.random(len(which)) < 0.3, whole, part)
        some = possible.any((1, 2, 3))
        np.add.at(points[0], (which[some], target[some], d[some]), part[some])
        np.subtract.at(points[0], (which[some], source[some], d[some]), part[some])

    def _swap(self, points: Points, slopes: Points, which: NDArray[np.intp]) -> None:
        """Let two loops of one memory change places, in place."""
        if not len(which) or points[1].shape[2] < 2:
            return
        orders, slope = points[1][which], slopes[1][which]
        gains = (slope[..., :, None] - slope[..., None, :]) * (orders[..., :, None] - orders[..., None, :])
        runs = (points[0][which][:, self.descent.temporal] > 0.3) & (self.descent.sizes > 1)
        possible = runs[..., :, None] & runs[..., None, :] & ~np.eye(orders.shape[2], dtype=bool)
        memory, first, second = self._chosen(gains, possible)
        some = possible.any((1, 2, 3))
        rows, memory, first, second = which[some], memory[some], first[some], second[some]
        kept = points[1][rows, memory, first].copy()
        points[1][rows, memory, first] = points[1][rows, memory, second]
        points[1][rows, memory, second] = kept

    def _chosen(self, gains: NDArray[np.float64], possible: NDArray[np.bool_]) -> tuple[NDArray[np.intp], ...]:
        """Choose one entry of each row of ``gains`` ``(b, i, j, k)``, the likelier the larger."""
        spread = np.where(possible, np.abs(gains), 0.0).sum((1, 2, 3)) / np.maximum(possible.sum((1, 2, 3)), 1)
        keen = self.options.greed * gains / np.maximum(spread, 1e-12)[:, None, None, None]
        drawn = np.where(possible, np.clip(keen, -5, 5) + self.rng.gumbel(size=gains.shape), -np.inf)
        return np.unravel_index(drawn.reshape(len(gains), -1).argmax(1), gains.shape[1:])

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Keep the best mappings, and note whether corrections still improve on them."""
        before = self.scores[0] if len(self.scores) else np.inf
        whole = MappingBatch.joined([self.best, batch])
        every = np.concatenate([self.scores, scores])
        places = np.argsort(every, kind="stable")
        places = places[np.concatenate([[True], np.diff(every[places]) > 0])] if len(places) else places
        fine = places[every[places] < BREAKS_CONSTRAINT]
        places = (fine if len(fine) else places)[:self.options.elite]
        self.best, self.scores = whole.take(places), every[places]
        if self.idle[1] and not len(self.waiting):
            self.idle[0] = 0 if self.scores[0] < self.floor(before) else self.idle[0] + 1

    def floor(self, before: float) -> float:
        """Score below which a round of corrections counts as an improvement."""
        return before * (1 - 1e-4) if np.isfinite(before) else before


def perfect_part(space: MapSpace) -> MapSpace | None:
    """Return the part of a space whose tiles divide, where that is not all of it and is not empty."""
    if space.tiling == "perfect":
        return None
    try:
        part = MapSpace(space.operator, space.accelerator, "perfect", space.constraints)
        part.table  # noqa: B018  (raises where rules leave nothing)
    except InputError:
        return None
    return part
