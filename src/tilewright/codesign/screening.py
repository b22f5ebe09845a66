"""What no design within a budget can beat: bounds of machines, of boxes of machines, and of the whole budget."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.limits import Floats, figures_of
from tilewright.codesign.problem import DesignProblem, Figures
from tilewright.cost import BoundBatch, HardwareBatch, best_of_box
from tilewright.hardware import AREA, Fanout, Memory, Number

Places = NDArray[np.int64]


def values_at(problem: DesignProblem, places: Places) -> dict[Number, Floats]:
    """Return the numbers of machines, ``(b)`` each, from their places ``(b, n)`` in the ranges of the space."""
    return {key: np.asarray(one.value(places[:, at]), dtype=np.float64)
            for at, (key, one) in enumerate(problem.space.ranges.items())}


@dataclass(frozen=True)
class Elements:
    """Elements of machines between two, ``(b)`` each: the most within the limits, and areas that go with them."""

    most: Floats
    """Elements."""
    each_um2: Floats
    others_um2: Floats
    """Area of an element with what lies inside of all arrays, and of all else; both at least so much."""


def bounds_of(problem: DesignProblem, found: BoundBatch, hardware: HardwareBatch, area_um2: Floats,
              elements: Elements | None = None) -> Floats:
    """Return ``(b)``: what the objective is at least on each row, from what was ``found`` of its layers.

    With ``elements`` rows stand for boxes of machines with up to so many. A product of sums over layers is at least the
    product of the sums' bounds, and at least the square of the sum of the roots of each layer's product (by Cauchy and
    Schwarz). A product of latency and area is at least that with the fewest elements that come to the bound of the
    latency: fewer take longer in the same proportion, but have other area beside them. Where the power is limited, the
    time is at least what the least energy takes at that power.
    """
    latency, energy, edp = found.latency_cycles, found.energy_pj, found.edp
    if elements is not None:
        macs = np.array([[layer.macs] for layer in problem.layers])
        latency = np.maximum(latency, macs / elements.most)
        edp = np.maximum(edp, latency * energy)
    figures = problem.total(latency, energy, area_um2, hardware)
    most = problem.budget.most("power")
    if most < np.inf:
        slowest = figures.energy_pj * problem.space.accelerator.frequency_mhz * 1e-3 / most
        figures = Figures(np.maximum(figures.latency_cycles, slowest), figures.energy_pj, area_um2)
    if elements is not None and problem.objective in ("latency-area", "edp-area"):
        fewest = np.minimum((problem.weights @ macs) / np.maximum(figures.latency_cycles, 1e-300), elements.most)
        figures = replace(figures, area_um2=np.maximum(area_um2, fewest * elements.each_um2 + elements.others_um2))
    return value_bound(problem, figures, edp, area_um2)


def value_bound(problem: DesignProblem, figures: Figures, edp: Floats, area_um2: Floats) -> Floats:
    """Return ``(b)``: what the objective is at least, from bounds of the sums and ``(l, b)`` of the layers' EDP."""
    least = np.asarray(problem.value(figures), dtype=np.float64)
    if problem.objective.startswith("edp"):
        together = np.tensordot(problem.weights, np.sqrt(edp), 1) ** 2
        least = np.maximum(least, together * (area_um2 if problem.objective == "edp-area" else 1.0))
    return least


def elements_between(problem: DesignProblem, low: Mapping[Number, Any], high: Mapping[Number, Any]) -> Elements:
    """Return the elements of machines within the limits between two, of these `completed` numbers.

    Their sides are at most those of ``high``. Each element takes the area and bytes of what lies inside of all arrays,
    and all else at least those of the machine at ``low``.
    """
    machine, budget = problem.space.accelerator, problem.budget
    inside = [level for level in machine.levels[max((at for at, level in enumerate(machine.levels) if isinstance(
        level, Fanout)), default=-1) + 1:] if isinstance(level, Memory)]
    each = {"area": low[machine.compute.name, "area_um2"] + sum(low[level.name, "area_um2"] for level in inside),
            "bytes": sum((sum(level.arrays_of({what: low[level.name, what] for what in level.numbers}), start=0.0)
                          for level in inside), start=0.0), "elements": 1.0}
    taken, most = figures_of(machine, low), figures_of(machine, high)["elements"]
    for what, one in each.items():
        if budget.most(what) < np.inf:
            outside = taken[what] - one * taken["elements"]
            with np.errstate(divide="ignore"):
                most = np.minimum(most, (budget.most(what) - outside) / np.asarray(one, dtype=np.float64))
    count = np.shape(most)
    return Elements(np.asarray(most, dtype=np.float64) * (1 + 1e-9), np.broadcast_to(each["area"], count) * (1 - 1e-9),
                    np.broadcast_to(taken["area"] - each["area"] * taken["elements"], count) * (1 - 1e-9))


@dataclass
class HardwareBoxes:
    """Boxes that together hold every machine of the space that is within the limits and can run all layers."""

    problem: DesignProblem
    low: Places
    high: Places
    """``(b, n)``: places in the ranges, both ends within. The machine at ``low`` is within the limits."""
    bound: Floats
    """``(b)``: what the objective is at least on any machine of the box."""

    @classmethod
    def whole(cls, problem: DesignProblem, count: int = 1) -> "HardwareBoxes":
        """Return the space as so many boxes at least, if it has as many machines within the limits."""
        low = np.array([[one.place(problem.smallest[key]) for key, one in problem.space.ranges.items()]])
        high = np.array([[len(one) - 1 for one in problem.space.ranges.values()]])
        boxes = _cut(problem, low, high, np.zeros(1))
        while len(boxes) < count and (boxes.low != boxes.high).any():
            boxes = _cut(problem, *boxes.halves(np.arange(len(boxes))))
        return boxes.bounded

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def least(self) -> float:
        """What the objective is at least on any machine of any box."""
        return float(self.bound.min()) if len(self) else np.inf

    def split(self, count: int, below: float) -> None:
        """Split the ``count`` boxes of the least bounds in four; leave out those with bounds not ``below`` a score.

        In two and in two again: what lies between is not worth bounding.
        """
        order = np.argsort(self.bound, kind="stable")
        order = order[self.bound[order] < below]
        first, rest = order[:count], order[count:]
        made = _cut(self.problem, *self.halves(first))
        made = _cut(self.problem, *made.halves(np.arange(len(made)))).bounded
        new = made.bound < below
        for name in ("low", "high", "bound"):
            setattr(self, name, np.concatenate([getattr(self, name)[rest], getattr(made, name)[new]]))

    def halves(self, chosen: NDArray[np.intp]) -> tuple[Places, Places, Floats]:
        """Return both halves of some boxes, of a single machine itself: low and high ends, and known bounds."""
        parts = [_halves(self.problem, self.low[at], self.high[at]) for at in chosen]
        low, high = (np.array([half[end] for halves in parts for half in halves], dtype=np.int64).reshape(
            -1, self.low.shape[1]) for end in (0, 1))
        return low, high, np.repeat(self.bound[chosen], [len(halves) for halves in parts])

    @property
    def bounded(self) -> "HardwareBoxes":
        """The same, with bounds no lower than those."""
        if not len(self):
            return self
        problem, ends = self.problem, [self.problem.rows(values_at(self.problem, end)) for end in (self.low, self.high)]
        best = best_of_box(ends[0], ends[1], problem.space.accelerator)
        numbers = (end.on(problem.space.accelerator).numbers for end in ends)
        found = bounds_of(problem, problem.bounds(best), best, best.values[AREA], elements_between(problem, *numbers))
        return replace(self, bound=np.maximum(self.bound, found))


def _halves(problem: DesignProblem, low: Places, high: Places) -> list[tuple[Places, Places]]:
    """Return both halves of a box along the number that varies by the largest factor; the box if it is a machine."""
    if (low == high).all():
        return [(low, high)]
    ranges = list(problem.space.ranges.values())
    ends = [(one.value(int(a)), one.value(int(b))) for one, a, b in zip(ranges, low, high, strict=True)]
    at = max(range(len(ranges)), key=lambda n: (high[n] > low[n]) * (ends[n][1] / ends[n][0]))
    middle = min(max(ranges[at].place((ends[at][0] * ends[at][1]) ** 0.5), int(low[at])), int(high[at]) - 1)
    upper, lower = low.copy(), high.copy()
    lower[at], upper[at] = middle, middle + 1
    return [(low, lower), (upper, high)]


def _cut(problem: DesignProblem, low: Places, high: Places, known: Floats) -> HardwareBoxes:
    """Return the boxes that hold a machine within the limits, cut to those, with the bounds that are ``known``."""
    below = taken(problem, low)
    fits = below <= 1
    low, high, known, below = low[fits], high[fits], known[fits], below[fits]
    count, numbers = low.shape
    at = np.tile(np.arange(numbers), count)
    most = grown(problem, np.repeat(low, numbers, axis=0), high.ravel(), at, np.repeat(below, numbers))
    return HardwareBoxes(problem, low, most[np.arange(len(at)), at].reshape(count, numbers), known)


def taken(problem: DesignProblem, places: Places) -> Floats:
    """Return ``(b)``: what machines take of the limit of which they take most; up to 1 is within."""
    budget, found = problem.budget, np.zeros(len(places))
    for what, figure in budget.figures(values_at(problem, places)).items():
        found = np.maximum(found, figure / budget.most(what))
    return found


def grown(problem: DesignProblem, low: Places, high: NDArray[np.int64], at: NDArray[np.int64],
          below: Floats | None = None) -> Places:
    """Return the machines ``low`` ``(b, n)``, which are within the limits, with one number as large as these allow.

    It is number ``at`` ``(b)`` of each, up to ``high`` ``(b)``. What is taken of a limit grows about evenly, so that
    few steps find it. ``below`` is what is ``taken`` at ``low``, where that is known.
    """
    every = np.arange(len(low))
    least: Places = low.copy()
    most = high.copy()
    below, largest = taken(problem, least) if below is None else below.copy(), least.copy()
    largest[every, at] = most
    above = taken(problem, largest)
    least[above <= 1] = largest[above <= 1]
    most = np.where(above <= 1, most + 1, most)
    turn, left = 0, np.flatnonzero(most - least[every, at] > 1)
    while len(left):
        turn += 1
        own, first, last = at[left], least[left, at[left]], most[left]
        share = (1 - below[left]) / np.maximum(above[left] - below[left], 1e-300) if turn % 3 else 0.5
        step = np.clip(np.rint((last - first) * share), 1, np.maximum(last - first - 1, 1)).astype(np.int64)
        middle = least[left]
        middle[np.arange(len(left)), own] += step
        there = taken(problem, middle)
        holds, over = there <= 1, there > 1
        least[left[holds]], below[left[holds]] = middle[holds], there[holds]
        most[left[over]], above[left[over]] = (first + step)[over], there[over]
        left = left[most[left] - least[left, own] > 1]
    return least


def reaching(problem: DesignProblem, low: Places, high: Places) -> Places:
    """Return the last machine within the limits on the way from each ``low``, which is, to ``high`` ``(b, n)``.

    The way is even in the logarithm of the numbers.
    """
    if not len(low):
        return low
    ranges = list(problem.space.ranges.values())
    start, end = (np.stack(list(values_at(problem, places).values()), axis=1) for places in (low, high))
    near, far = np.zeros(len(low)), np.ones(len(low))

    def at(share: Floats) -> Places:
        wanted = start * (end / start) ** share[:, None]
        found = np.stack([one.places(wanted[:, at] * (1 + 1e-12)) for at, one in enumerate(ranges)], axis=1)
        return np.asarray(np.clip(found, low, high))

    whole = np.asarray(problem.budget.excess(values_at(problem, high)) <= 0)
    near[whole] = 1.0
    for _ in range(40):
        if whole.all():
            break
        middle = np.where(whole, 1.0, (near + far) / 2)
        holds = np.asarray(problem.budget.excess(values_at(problem, at(middle))) <= 0)
        near, far = np.where(holds, middle, near), np.where(holds, far, middle)
    return at(near)


def bounds_at(problem: DesignProblem, places: Places) -> tuple[Floats, BoundBatch]:
    """Return what the objective ``(b)``, and what each layer takes, are at least on each machine."""
    numbers = values_at(problem, places)
    rows = problem.rows(numbers)
    found = problem.bounds(rows)
    return bounds_of(problem, found, rows, np.asarray(problem.area(numbers))), found
