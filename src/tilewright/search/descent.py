"""Projected gradient descent of many points on the relaxed model: of a layer, or of a network with its machine."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.hardware import AREA, Number
from tilewright.learn import one_thread
from tilewright.mapping import MapSpace
from tilewright.search.objective import Scorer
from tilewright.search.points import Points, onto_simplex, whole_chains
from tilewright.search.relaxed import RelaxedModel, Softness, largest

PENALTIES = (1.0, 8.0)
MAXIMA = (4.0, 32.0)
ORDERS = (0.4, 0.1)
"""Weight of what does not fit, power of the maximum, and softness of orders: at the first and at the last step."""
ROUNDINGS = 12
"""Ways to round a dimension that are compared."""
SIDES = "x", "y", "instances"
NUDGE = 0.01
"""By how much the logarithm of a number is raised to see what follows from it."""
EXCESS, POWER = ("excess", ""), ("power", "share per picojoule a cycle")
"""By what share machines are over their limits; and over the limit of power for each picojoule a cycle."""


class Descent:
    """Moves points of a space to where the relaxed model scores lower, until it is ``late``."""

    def __init__(self, space: MapSpace, scorer: Scorer, late: Callable[[], bool] = bool) -> None:
        self.late = late
        self.model, self.scorer = RelaxedModel(space), scorer
        self.free: NDArray[np.bool_] = space.arrays.free.astype(np.bool_)
        self.sizes: NDArray[np.float64] = space.arrays.sizes.astype(np.float64)
        self.temporal = space.layout.temporal
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
        walk = _Walk([(*points, self.free, np.log(self.sizes))], rate, loose)
        ((logs, orders),) = walk.parts
        for step in range(steps):
            if self.late():
                break
            walk.step(lambda along: self._scores(logs, orders, along),
                      span[0] + (span[1] - span[0]) * step / max(1, steps - 1))
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


class _Walk:
    """Steps by Adam of points, each with the slots that are free and the sums that its simplices hold fixed.

    Of them the dimensions move that are ``loose``, by default all.
    """

    def __init__(self, points: Sequence[tuple[NDArray[Any], ...]], rate: float,
                 loose: NDArray[np.bool_] | bool = True) -> None:
        self.parts = [tuple(torch.from_numpy(part.copy()).requires_grad_() for part in each[:2]) for each in points]
        self.fixed, self.rate, self.loose = [each[2:] for each in points], rate, loose
        self.adam = torch.optim.Adam([part for pair in self.parts for part in pair], lr=rate, betas=(0.8, 0.95))

    def step(self, scores: Callable[[float], torch.Tensor], along: float) -> None:
        """Go down where scores lead, so far ``along`` the whole descent: ever shorter steps."""
        self.adam.param_groups[0]["lr"] = self.rate * (1 - 0.9 * along)
        self.adam.zero_grad()
        scores(along).sum().backward()
        with torch.no_grad():
            for (logs, _), (free, _) in zip(self.parts, self.fixed, strict=True):
                logs.grad = _tangent(logs.grad, free) * torch.as_tensor(self.loose).to(logs.dtype)
            self.adam.step()
            for (logs, _), (free, totals) in zip(self.parts, self.fixed, strict=True):
                moved = onto_simplex(logs.numpy(), free, totals)
                logs.copy_(torch.from_numpy(np.where(self.loose, moved, logs.numpy())))


def _tangent(slope: torch.Tensor, free: NDArray[np.bool_]) -> torch.Tensor:
    """Take out of a gradient what would change the sums that the simplices hold fixed."""
    mask = torch.from_numpy(free).to(slope.dtype)
    mean = (slope * mask).sum(1, keepdim=True) / mask.sum(0).clamp(min=1)
    return (slope - mean) * mask


@dataclass(frozen=True)
class NeededNumbers:
    """The numbers of a machine that are what mappings need, and what follows from them."""

    needed: Mapping[Number, tuple[Number, float]]
    """The number that varies for each that mappings need, and how many times it that is."""
    low: Mapping[Number, float]
    high: Mapping[Number, float]
    """Logarithms of the least and the largest of every number that varies so."""
    figures: Callable[[Mapping[Number, NDArray[np.float64]]], Mapping[Number, NDArray[np.float64]]]
    """Tells from their logarithms ``(b)`` energies and leakage, area, and by what share limits are exceeded (`EXCESS`),
    ``(b)`` each; and `POWER` where power is limited."""


class NetworkDescent:
    """Moves points of all layers to where one machine for them scores lower; its numbers are what they need (DOSA).

    Layers that differ in their sizes alone are modelled together. What follows from the numbers is taken to be straight
    around each point, with slopes by differences.

    Parameters
    ----------
    spaces, weights
        The mappings of each layer on the largest machine, and how often it runs.
    objective
        A product of ``latency``, ``energy``, ``edp`` and ``area``, joined by ``-``.
    """

    def __init__(self, spaces: Sequence[MapSpace], weights: NDArray[np.float64], numbers: NeededNumbers,
                 objective: str, late: Callable[[], bool] = bool) -> None:
        self.spaces, self.weights, self.numbers, self.late = spaces, weights, numbers, late
        self.goals = objective.replace("edp", "latency-energy").split("-")
        alike: dict[str, list[int]] = {}
        for at, space in enumerate(spaces):
            arrays = space.arrays
            told = (arrays.axes.tolist(), arrays.free.tolist(), arrays.relevant.tolist(), arrays.groups[:, 2:].tolist(),
                    [(tensor.name, tensor.role) for tensor in space.operator.tensors])
            alike.setdefault(repr(told), []).append(at)
        self.alike = [(own, RelaxedModel(spaces[own[0]]), spaces[own[0]].arrays.free.astype(np.bool_))
                      for own in alike.values()]

    def run(self, points: Sequence[Points], steps: int, every: int, rate: float) -> Iterator[list[Points]]:
        """Descend, and yield the points of all layers after ``every`` so many steps."""
        count = len(points[0][0])
        walk = _Walk([(*(np.concatenate([points[at][kind] for at in own]) for kind in (0, 1)), free,
                       np.concatenate([np.tile(np.log(self.spaces[at].arrays.sizes), (count, 1, 1)) for at in own]))
                      for own, _, free in self.alike], rate)
        for step in range(1, steps + 1):
            if not self.late():
                with one_thread():
                    walk.step(lambda along: self.scores(walk.parts, count, along), (step - 1) / max(1, steps - 1))
            if step % every == 0 or step == steps or self.late():
                yield self._points(walk.parts, count)
            if self.late():
                return

    def _points(self, parts: Sequence[tuple[torch.Tensor, ...]], count: int) -> list[Points]:
        """Return the points of every layer by itself."""
        found: dict[int, Points] = {}
        for (own, _, _), (logs, orders) in zip(self.alike, parts, strict=True):
            for place, at in enumerate(own):
                rows = slice(place * count, (place + 1) * count)
                found[at] = logs.detach().numpy()[rows].copy(), orders.detach().numpy()[rows].copy()
        return [found[at] for at in range(len(self.spaces))]

    def scores(self, parts: Sequence[tuple[torch.Tensor, ...]], count: int, along: float) -> torch.Tensor:
        """Return ``(b)``: logarithms of the objective, with penalties for what is over ranges and limits."""
        softness, over = Softness(_between(ORDERS, along), _between(MAXIMA, along)), torch.zeros(count)
        wanted: dict[Number, list[torch.Tensor]] = {}
        for (own, model, _), (logs, _) in zip(self.alike, parts, strict=True):
            for key, taken, most in model.taken(logs):
                name, times = self.numbers.needed.get(key, (key, 1.0))
                need = taken.reshape(len(own), count)
                if name in self.numbers.low:
                    wanted.setdefault(name, []).append(need - log(times if key[1] in SIDES else 8 * times))
                else:
                    over = over + torch.relu(need - most).sum(0)
        chosen = {}
        for key, low in self.numbers.low.items():
            need = largest(torch.cat(wanted[key]), softness)
            over = over + torch.relu(need - self.numbers.high[key])
            chosen[key] = need.clamp(low, self.numbers.high[key])
        found = self._followed(chosen)
        cycles, energy = torch.zeros(count), torch.zeros(count)
        for (own, model, _), (logs, orders) in zip(self.alike, parts, strict=True):
            each = {key: figure.repeat(len(own)) for key, figure in found.items()}
            told, weights = model.estimate(logs, orders, softness, each), torch.from_numpy(self.weights[own])
            # The model takes all layers to have the first one's multiply-accumulates.
            more = np.array([[float(self.spaces[at].operator.macs - model.operator.macs)] for at in own])
            spent = torch.exp(told.log_energy).reshape(len(own), -1) + torch.from_numpy(
                more * model.accelerator.compute.energy_pj_per_mac * model.lanes.energy)
            cycles = cycles + weights @ torch.exp(told.log_cycles).reshape(len(own), -1)
            energy = energy + weights @ spent
        metrics = {"latency": cycles, "energy": energy, "area": found[AREA]}
        over = over + found[EXCESS]
        if POWER in found:
            over = over + torch.relu(torch.log(energy / cycles * found[POWER]))
        score = sum((torch.log(metrics[goal]) for goal in self.goals), start=torch.zeros(count))
        still = sum((0.0 * part.sum() for pair in parts for part in pair), start=torch.zeros(()))
        return score + _between(PENALTIES, along) * over + still

    def _followed(self, chosen: Mapping[Number, torch.Tensor]) -> dict[Number, torch.Tensor]:
        """Return what follows from logarithms of numbers ``(b)``."""
        count, width = len(chosen), len(next(iter(chosen.values())))
        rows, nudges = {}, []
        for place, (key, value) in enumerate(chosen.items()):
            here = value.detach().numpy()
            nudges.append(np.where(here + NUDGE > self.numbers.high[key], -NUDGE, NUDGE))
            rows[key] = np.tile(here, (count + 1, 1))
            rows[key][1 + place] += nudges[-1]
        found = {}
        for key, figure in self.numbers.figures({key: row.ravel() for key, row in rows.items()}).items():
            table = np.broadcast_to(figure, (count + 1) * width).reshape(count + 1, width)
            slopes = torch.from_numpy((table[1:] - table[0]) / np.array(nudges))
            found[key] = torch.from_numpy(table[0].copy()) + sum(
                (slope * (value - value.detach()) for slope, value in zip(slopes, chosen.values(), strict=True)),
                start=torch.zeros(()))
        return found


def _between(ends: tuple[float, float], along: float) -> float:
    """Return the value on the way from one end to the other, evenly in logarithms."""
    return float(ends[0] * (ends[1] / ends[0]) ** along)
