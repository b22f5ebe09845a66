"""Dual bounds: what no mapping of a space scores below, energy, latency and room at once, with imperfect tiling.

The logarithms of energy (a sum), of latency (a largest of sums) and of what memories hold (sums) are convex in
logarithms that each dimension adds to: of the pieces that its loops cut it into, of its extents, its lanes, its steps.
Where they are put to the tangent at any point, and limits are given prices, the least score falls apart into one
shortest path for each dimension (or pair along which a window slides) over ranges of extents, pieces rounded up as
they are. Any point and any prices give a bound (weak duality), so that what looks for the highest needs no trust.

Such a bound leaves open what the hull of all chains of extents allows and no single chain does. So the space is parted
where the bound is least: by what rests at a memory (see `problem.Case`) if that raises it, else by ranges of lanes or
extents.
"""

from functools import cache, cached_property
from math import exp, inf, log
from typing import Any, NamedTuple

import numpy as np

from tilewright.cost import space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Memory
from tilewright.mapping import MapSpace
from tilewright.search.checkpoint import Resumable
from tilewright.search.dual.problem import Builder
from tilewright.search.dual.ranges import Floats, Integers, Unbound
from tilewright.search.objective import Objective
from tilewright.workload import matmul

__all__ = ["DualBound", "Unbound", "compile_once"]

TINY = 1e-300
ATOMS, TURNS, GLANCE = 40, 60, 4
"""Chains of a group that are kept; turns for one part of the space at most, and at first sight."""
RISE = 0.05
"""By how much of what is left to the best score telling apart has to raise a bound."""
LANES = 10
"""How much more a difference in lanes counts than one in extents where a part is halved."""
ROUGH, SETTLED, WHOLE = range(3)
"""A part with a bound from few turns; with one as high as turns make it; and one that cannot be divided."""


class _Part(NamedTuple):
    """A part of the space: its bound, where that was found, what rests at memories, and a box of extents and lanes."""

    bound: float
    point: Floats
    case: Integers
    box: Integers


class DualBound(Resumable):
    """What no mapping of a space scores below, the higher the longer it is worked on.

    Raises
    ------
    Unbound
        If the objective or the machine is one that these bounds do not know.
    """

    changing = "bounds", "stages", "cases", "boxes", "points", "turns"

    def __init__(self, space: MapSpace, objective: Objective) -> None:
        static = space_bounds(space)
        self.builder = Builder(space, objective, (float(static.latency_cycles), static.energy_pj))
        self.problem = self.builder.problem
        self.turns = 0
        p, memories = self.problem, self.builder.memories
        box = np.zeros((1, len(p.dims), 3 * memories, 4), dtype=np.int64)
        box[..., 1], box[..., 3] = p.shapes[:, None, 0] - 1, p.shapes[:, None, 1] - 1
        box[:, :, 2 * memories:, 1::2] = np.iinfo(np.int64).max
        self.bounds = np.full(1, -inf)
        """``(n)``: by part of the space the logarithm of what no mapping of it scores below."""
        self.stages = np.full(1, ROUGH)
        self.cases = np.full((1, memories - 1), -1)
        """``(n, m - 1)``: what rests at each memory, a place among `Builder.rests`, -1 where it is open."""
        self.boxes = box
        """``(n, g, l + m, 4)``: the first and last range of extents of both dimensions of a group, by layer, and the
        fewest and most lanes of the array inside each memory."""
        self.points = np.zeros((1, self.builder.first_side + len(p.sides)))
        """``(n, q)``: where bounds were found."""

    @property
    def bound(self) -> float:
        """What no mapping scores below."""
        return exp(self.bounds.min()) if len(self.bounds) else inf

    def ended(self, score: float) -> bool:
        """Whether nothing is left to do: no mapping scores below ``score``, or nothing raises the bound any more."""
        return not len(self.bounds) or self.bound >= max(score, TINY) or self.stages[self.bounds.argmin()] == WHOLE

    def work(self, turns: int, score: float) -> None:
        """Work on for some turns, or until it has `ended`."""
        last, cut = self.turns + turns, log(max(score, TINY))
        while self.turns < last and not self.ended(score):
            at = int(self.bounds.argmin())
            if self.stages[at] == ROUGH:
                same = self._look(at, self.cases[at:at + 1], self.boxes[at:at + 1], TURNS, cut)
                self._replace(at, same, SETTLED, cut)
            else:
                self._divide(at, cut)

    @cached_property
    def _work(self) -> tuple[Any, ...]:
        p, memories = self.problem, self.builder.memories
        groups, n = len(p.dims), self.points.shape[1]
        nodes = max(int(p.states[g].max()) * int(p.cell_starts[g + 1] - p.cell_starts[g]) for g in range(groups))
        wide = max(*p.weights.shape, p.rooms.shape[1], 2)
        return (np.zeros((6, n)), np.zeros((4, wide)), np.zeros(len(p.lane_spans)),
                np.zeros(len(p.lane_spans), dtype=np.int64), np.zeros((2, nodes)),
                np.zeros((2 * memories, nodes), dtype=np.int64), np.zeros((groups, ATOMS, n)),
                np.zeros((groups, ATOMS)), np.zeros((groups, ATOMS, 3 * memories), dtype=np.int64),
                np.zeros(3 * memories, dtype=np.int64))

    def _ascend(self, point: Floats, case: Integers, box: Integers, cut: float, turns: int) -> tuple[float, Floats]:
        """Return the highest bound found of a part, and where."""
        from tilewright.search.dual import kernels  # noqa: PLC0415  (Numba loads late)

        best, told = point.copy(), self.builder.case(case)
        found, taken = kernels.ascend(self.problem, self.builder.index(told), self.builder.moves(told), box, cut,
                                      turns, point.copy(), best, *self._work)
        self.turns += taken
        return found, best

    def _replace(self, at: int, parts: list[_Part], stage: int, cut: float) -> None:
        """Put parts in the place of one; those that hold nothing below the best score are left out."""
        bound, point = self.bounds[at], self.points[at]
        left = [part for part in parts if part.bound < cut]

        def joined(before: Any, rows: list[Any]) -> Any:
            return np.concatenate([np.delete(before, at, axis=0), np.array(
                rows, dtype=before.dtype).reshape(len(left), *before.shape[1:])])

        self.points = joined(self.points, [part.point if part.bound > bound else point for part in left])
        self.bounds = joined(self.bounds, [max(bound, part.bound) for part in left])
        self.stages = joined(self.stages, [stage] * len(left))
        self.cases = joined(self.cases, [part.case for part in left])
        self.boxes = joined(self.boxes, [part.box for part in left])

    def _look(self, at: int, cases: Integers, boxes: Integers, turns: int, cut: float) -> list[_Part]:
        """Return what a part falls into, with their bounds."""
        return [_Part(*self._ascend(self.points[at], case, box, cut, turns), case, box)
                for case, box in zip(cases, boxes, strict=True)]

    def _divide(self, at: int, cut: float) -> None:
        """Divide a part by what rests at a memory, if that is open and raises the bound, or else halve it.

        It is halved at the extents, or lanes, in which the chains differ most that make up its bound.
        """
        box, case, bound = self.boxes[at], self.cases[at], self.bounds[at]
        told = []
        if case.min(initial=0) < 0:
            cases = np.repeat(case[None], len(self.builder.rests), axis=0)
            cases[:, np.flatnonzero(case < 0)[-1]] = np.arange(len(cases))
            told = self._look(at, cases, np.repeat(box[None], len(cases), axis=0), GLANCE, cut)
            if min(part.bound for part in told) > bound + RISE * (cut - bound):
                self._replace(at, told, ROUGH, cut)
                return
        self._ascend(self.points[at], case, box, inf, TURNS)
        found = self._widest()
        if found is None:
            if told:
                self._replace(at, told, ROUGH, cut)
            else:
                self.stages[at] = WHOLE
            return
        g, layer, side, last = found
        halves = np.repeat(box[None], 2, axis=0)
        halves[0, g, layer, 2 * side + 1], halves[1, g, layer, 2 * side] = last, last + 1
        self._replace(at, self._look(at, np.repeat(case[None], 2, axis=0), halves, TURNS, cut), SETTLED, cut)

    def _widest(self) -> tuple[int, int, int, int] | None:
        """Return a group, a layer, which of its dimensions, and the last range (or lanes) of the lower half.

        Lanes count more than extents: there are few of them, and half a lane more or less leaves most to be gained.
        """
        p, (*_, parts, paths, _) = self.problem, self._work
        least, found, layers = 1e-6, None, 2 * self.builder.memories
        for g in range(len(p.dims)):
            some = parts[g] > 1e-3
            share = parts[g, some] / parts[g, some].sum()
            arrays = np.flatnonzero(p.edge_starts[g, :, 0] < p.edge_starts[g, :, 1])
            for side in range(2 if p.shapes[g, 1] > 1 else 1):
                cells, ways = paths[g, some, :layers], paths[g, some][:, layers + arrays]
                low = self.builder.ranges[p.dims[g, side]].low
                extents = low[cells % p.shapes[g, 1] if side else cells // p.shapes[g, 1]]
                logs = np.log(np.hstack([extents, p.ends[ways, 4 + side]]))
                mean = share @ logs
                spread = share @ np.abs(logs - mean)
                spread[layers:] *= LANES
                k = int(spread.argmax())
                if spread[k] > least:
                    middle = exp(mean[k]) * (1 + 1e-9)
                    least, layer = float(spread[k]), k if k < layers else layers + int(arrays[k - layers])
                    found = g, layer, side, int(middle if k >= layers else np.searchsorted(low, middle, "right") - 1)
        return found


@cache
def compile_once() -> None:
    """Compile the ascent (or load it) on a tiny layer, so that no search loses its time to that."""
    one = AccessEnergy(1.0, 1.0, 1.0, 1.0)
    machine = Accelerator("one", (Memory("M", ("inputs", "weights", "outputs"), one),))
    DualBound(MapSpace(matmul("one", m=2, n=2, k=2), machine), Objective.parse("edp")).work(1, 2.0)
