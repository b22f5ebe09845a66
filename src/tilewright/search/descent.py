"""Projected gradient descent of many points on the relaxed model."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.learn import one_thread
from tilewright.mapping import MapSpace
from tilewright.search.objective import Scorer
from tilewright.search.points import Points, onto_simplex, temporal_slots, whole_chains
from tilewright.search.relaxed import RelaxedModel, Softness

PENALTIES = (1.0, 8.0)
MAXIMA = (4.0, 32.0)
ORDERS = (0.4, 0.1)
"""Weight of what does not fit, power of the maximum, and softness of orders: at the first and at the last step."""
ROUNDINGS = 12
"""Ways to round a dimension that are compared."""


class Descent:
    """Moves points of a space to where the relaxed model scores lower, until it is ``late``."""

    def __init__(self, space: MapSpace, scorer: Scorer, late: Callable[[], bool] = bool) -> None:
        self.late = late
        self.model, self.scorer = RelaxedModel(space), scorer
        self.free: NDArray[np.bool_] = space.arrays.free.astype(np.bool_)
        self.sizes: NDArray[np.float64] = space.arrays.sizes.astype(np.float64)
        self.temporal = temporal_slots(space)
        self.ragged = space.tiling != "perfect"

    def run(self, points: Points, steps: int, rate: float) -> Points:
        """Return where points ``(b, s, d)`` come down to; shaken ones are first put back onto their simplices."""
        moved = onto_simplex(points[0], self.free, np.log(self.sizes)), points[1]
        with one_thread():
            return self._descend(moved, (steps, rate), (0.0, 1.0), np.ones(len(self.sizes), dtype=np.bool_))

    def settle(self, points: Points, rng: Generator, steps: int, rate: float) -> Points:
        """Return points of whole counts near others: one dimension after the other is rounded and held.

        Of some roundings the one that the relaxed model scores lowest is taken; the dimensions that are left then
        descend on for ``steps`` steps.
        """
        loose = self.sizes > 1
        perfect = np.arange(ROUNDINGS) % 2 == 0 if self.ragged else np.ones(ROUNDINGS, dtype=np.bool_)
        with one_thread():
            for d in rng.permutation(np.flatnonzero(loose)):
                chains = whole_chains(points[0][:, :, d], int(self.sizes[d]), self.free[:, d], rng, perfect)
                logs = np.repeat(points[0][None], ROUNDINGS, axis=0)
                logs[..., d] = chains
                flat = logs.reshape(-1, *logs.shape[2:]), np.tile(points[1], (ROUNDINGS, 1, 1))
                with torch.no_grad():
                    logs_of, orders_of = (torch.from_numpy(part) for part in flat)
                    scores = self._scores(logs_of, orders_of, 1.0).numpy().reshape(ROUNDINGS, -1)
                best = scores.argmin(0)
                points = logs[best, np.arange(len(best))], points[1]
                loose[d] = False
                if loose.any():
                    points = self._descend(points, (steps, rate), (0.7, 1.0), loose)
        return points

    def _descend(self, points: Points, pace: tuple[int, float], span: tuple[float, float],
                 loose: NDArray[np.bool_]) -> Points:
        """Move the dimensions that are ``loose`` ``(d)``, and orders, as in the part ``span`` of a whole descent."""
        steps, rate = pace
        totals = np.log(self.sizes)
        logs, orders = (torch.from_numpy(part.copy()).requires_grad_() for part in points)
        held = torch.from_numpy(loose).to(logs.dtype)
        adam = torch.optim.Adam([logs, orders], lr=rate, betas=(0.8, 0.95))
        for step in range(steps):
            if self.late():
                break
            along = span[0] + (span[1] - span[0]) * step / max(1, steps - 1)
            adam.param_groups[0]["lr"] = rate * (1 - 0.9 * along)
            adam.zero_grad()
            self._scores(logs, orders, along).sum().backward()
            with torch.no_grad():
                logs.grad = self._tangent(logs.grad) * held
                adam.step()
                moved = onto_simplex(logs.numpy(), self.free, totals)
                logs.copy_(torch.from_numpy(np.where(loose, moved, logs.numpy())))
        return logs.detach().numpy().copy(), orders.detach().numpy().copy()

    def slopes(self, points: Points) -> Points:
        """Return the gradients of the score at points."""
        with one_thread():
            logs, orders = (torch.from_numpy(part.copy()).requires_grad_() for part in points)
            self._scores(logs, orders, 0.7).sum().backward()
            return logs.grad.numpy(), orders.grad.numpy()

    def _scores(self, logs: torch.Tensor, orders: torch.Tensor, along: float) -> torch.Tensor:
        softness = Softness(_between(ORDERS, along), _between(MAXIMA, along))
        found = self.model.estimate(logs, orders, softness)
        still = 0.0 * (logs.sum() + orders.sum())  # a machine may charge for neither; their slopes are then 0
        return self.model.scores(self.scorer, found, _between(PENALTIES, along)) + still

    def _tangent(self, slope: torch.Tensor) -> torch.Tensor:
        """Take out of a gradient what would change the sums that the simplices hold fixed."""
        free = torch.from_numpy(self.free).to(slope.dtype)
        mean = (slope * free).sum(1, keepdim=True) / free.sum(0).clamp(min=1)
        return (slope - mean) * free


def _between(ends: tuple[float, float], along: float) -> float:
    """Return the value on the way from one end to the other, evenly in logarithms."""
    return float(ends[0] * (ends[1] / ends[0]) ** along)
