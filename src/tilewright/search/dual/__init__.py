"""Dual bounds: what no mapping of a space scores below, energy, latency and room at once, with imperfect tiling.

The logarithms of energy (a sum), of latency (a largest of sums) and of what memories hold (sums) are convex in
logarithms that each dimension adds to: of the pieces that its loops cut it into, of its extents, its lanes, its steps.
Where they are put to the tangent at any point, and limits are given prices, the least score falls apart into one
shortest path for each dimension (or pair along which a window slides) over ranges of extents, pieces rounded up as
they are. Any point and any prices give a bound (weak duality), so that what looks for the highest needs no trust.

Such a bound leaves open what the hull of all chains of extents allows and no single chain does. So the space is parted
where the bound is least, by what rests at a memory (see `problem.Case`) or by ranges of lanes or extents. Static bounds
of cycles and energy are floors: as long as only they tell, parts are compared by what is bounded without them.
"""

from collections.abc import Sequence
from functools import cache, cached_property
from math import exp, inf, log
from typing import Any, NamedTuple

import numpy as np

from tilewright.cost import space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Memory
from tilewright.mapping import MapSpace
from tilewright.search.checkpoint import Resumable
from tilewright.search.dual.problem import NEVER, Builder, DualProblem
from tilewright.search.dual.ranges import Floats, Integers, Unbound
from tilewright.search.objective import Objective
from tilewright.workload import matmul

__all__ = ["DualBound", "Unbound", "compile_once"]

TINY = 1e-300
ATOMS, TURNS, GLANCE = 40, 60, 12
"""Chains of a group that are kept; turns for one part of the space at most, and at first sight."""
LEAST, RISE, TELLING = 1e-3, 0.05, 1200
"""What counts as gained of what is left to the best score, at least; what telling all parts apart by what rests has to
gain of it, and in how many turns."""
LANES, CLOSE = 10, 1e-4
"""How much more a difference in lanes counts than one in extents where a part is halved; and how near to the static
bounds a bound counts as these (in logarithms)."""
ROUGH, SETTLED, WHOLE = range(3)
"""A part with a bound from few turns; with one as high as turns make it; and one that cannot be divided."""


class _Part(NamedTuple):
    """A part of the space: its bound, that without the floors, where it was found, what rests, extents and lanes."""

    bound: float
    bare: float
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

    changing = "telling", "first", "bounds", "bare", "stages", "cases", "boxes", "points", "turns"

    def __init__(self, space: MapSpace, objective: Objective) -> None:
        static = space_bounds(space)
        self.builder = Builder(space, objective, (float(static.latency_cycles), static.energy_pj))
        self.problem = self.builder.problem
        self.turns = 0
        self.telling, self.first = self.builder.memories > 1, -inf
        """Whether parts are told apart by what rests until all is told, and what was bounded before."""
        self._begin()

    def _begin(self) -> None:
        """Begin with the whole space."""
        p, memories = self.problem, self.builder.memories
        box = np.zeros((1, len(p.dims), 3 * memories, 4), dtype=np.int64)
        box[..., 1], box[..., 3] = p.shapes[:, None, 0] - 1, p.shapes[:, None, 1] - 1
        box[:, :, 2 * memories:, 1::2] = np.iinfo(np.int64).max
        self.bounds = np.full(1, -inf)
        """``(n)``: by part of the space the logarithm of what no mapping of it scores below."""
        self.bare = np.full(1, -inf)
        """``(n)``: the same without the static bounds of cycles and energy, where those are all that tells."""
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
        if not len(self.bounds) or self.bound >= max(score, TINY):
            return True
        levels = self._levels
        return bool((self.stages[levels <= levels.min()] == WHOLE).any())

    def work(self, turns: int, score: float) -> None:
        """Work on for some turns, or until it has `ended`."""
        last, cut = self.turns + turns, log(max(score, TINY))
        while self.turns < last and not self.ended(score):
            at = int(np.lexsort((self.bare, self._levels))[0])
            if self.telling and self.turns >= TELLING:
                self._stop_telling(at, cut)
            elif self.stages[at] == ROUGH:
                self._replace(at, self._look([self._part(at)], cut, TURNS), SETTLED, cut)
            elif self.telling:
                self._tell(at, cut)
            else:
                self._divide(at, cut)

    @property
    def _floor(self) -> float:
        """What a bound is above (its logarithm) that tells more than the static bounds."""
        return self.problem.scale + float(self.problem.floors[::-1] @ self.problem.factors) + CLOSE

    @property
    def _levels(self) -> Floats:
        """``(n)``: the bounds of parts; where static bounds are all that tells, they are alike."""
        levels: Floats = np.maximum(self.bounds, self._floor)
        return levels

    @cached_property
    def _bare(self) -> DualProblem:
        return self.problem._replace(floors=np.full(2, NEVER))

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

    def _part(self, at: int) -> _Part:
        return _Part(self.bounds[at], self.bare[at], self.points[at], self.cases[at], self.boxes[at])

    def _ascend(self, problem: DualProblem, part: _Part, cut: float, turns: int) -> tuple[float, Floats]:
        """Return the highest bound found of a part, and where."""
        from tilewright.search.dual import kernels  # noqa: PLC0415  (Numba loads late)

        best, told = part.point.copy(), self.builder.case(part.case)
        found, taken = kernels.ascend(problem, self.builder.index(told), self.builder.moves(told), part.box, cut, turns,
                                      part.point.copy(), best, *self._work)
        self.turns += taken
        return found, best

    def _look(self, parts: Sequence[_Part], cut: float, turns: int) -> list[_Part]:
        """Return parts with bounds of their own; they have that of what they are parts of."""
        found = []
        for part in parts:
            bound, point = self._ascend(self.problem, part, cut, turns)
            bare = bound
            if bound <= self._floor:
                bare, point = self._ascend(self._bare, part, cut, turns)
            found.append(part._replace(bound=max(part.bound, bound, bare), bare=max(part.bare, bare),
                                       point=point if bare > part.bare else part.point))
        return found

    def _replace(self, at: int, parts: Sequence[_Part], stage: int, cut: float) -> None:
        """Put parts in the place of one; those that hold nothing below the best score are left out."""
        left = [part for part in parts if part.bound < cut]

        def joined(before: Any, rows: list[Any]) -> Any:
            return np.concatenate([np.delete(before, at, axis=0), np.array(
                rows, dtype=before.dtype).reshape(len(left), *before.shape[1:])])

        self.bounds = joined(self.bounds, [part.bound for part in left])
        self.bare = joined(self.bare, [part.bare for part in left])
        self.points = joined(self.points, [part.point for part in left])
        self.cases = joined(self.cases, [part.case for part in left])
        self.boxes = joined(self.boxes, [part.box for part in left])
        self.stages = joined(self.stages, [stage] * len(left))

    def _told(self, part: _Part, cut: float) -> list[_Part]:
        """Return what a part falls into by what rests at the innermost memory where that is open, if it is anywhere."""
        if part.case.min(initial=0) >= 0:
            return []
        cases = np.repeat(part.case[None], len(self.builder.rests), axis=0)
        cases[:, np.flatnonzero(part.case < 0)[-1]] = np.arange(len(cases))
        return self._look([part._replace(case=case) for case in cases], cut, GLANCE)

    def _tell(self, at: int, cut: float) -> None:
        """Divide a part by what rests, as long as static bounds are all that tells."""
        part = self._part(at)
        if self.first == -inf:
            self.first = part.bare
        told = self._told(part, cut) if part.bound <= self._floor else []
        if told:
            self._replace(at, told, ROUGH, cut)
        else:
            self._stop_telling(at, cut)

    def _stop_telling(self, at: int, cut: float) -> None:
        """Go on by what promises less work, and from the whole space if what was told has gained little."""
        self.telling = False
        if self.bare[at] < self.first + RISE * (cut - self.first):
            self._begin()

    def _divide(self, at: int, cut: float) -> None:
        """Divide a part by what rests at a memory where that is open, or halve it, whichever promises less work.

        It is halved at the extents, or lanes, in which the chains differ most that make up its bound.
        """
        part = self._part(at)
        told = self._told(part, cut)
        if told and growth(told, part.bare, cut) == 0.0:
            self._replace(at, told, ROUGH, cut)
            return
        self._ascend(self.problem if part.bound > self._floor else self._bare, part, inf, TURNS)
        found = self._widest()
        halves = [] if found is None else self._look(self._halves(part, *found), cut, TURNS)
        if halves and (not told or growth(halves, part.bare, cut) < growth(told, part.bare, cut)):
            self._replace(at, halves, SETTLED, cut)
        elif told:
            self._replace(at, told, ROUGH, cut)
        else:
            self.stages[at] = WHOLE

    @staticmethod
    def _halves(part: _Part, g: int, layer: int, side: int, last: int) -> list[_Part]:
        boxes = np.repeat(part.box[None], 2, axis=0)
        boxes[0, g, layer, 2 * side + 1], boxes[1, g, layer, 2 * side] = last, last + 1
        return [part._replace(box=box) for box in boxes]

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


def growth(parts: Sequence[_Part], bare: float, cut: float) -> float:
    """Return how fast parts grow in number with what is gained, were all divided alike: ``y`` of sum exp(-y g) = 1.

    ``g`` is by how much the bound of a part is above ``bare``; those at the ``cut`` are done with.
    """
    gains = np.array([max(part.bare - bare, 0.0) for part in parts if part.bound < cut]) + LEAST * (cut - bare)
    if len(gains) < 2:
        return 0.0
    low, high = 0.0, log(len(gains)) / float(gains.min())
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.exp(-middle * gains).sum() > 1 else (low, middle)
    return high


@cache
def compile_once() -> None:
    """Compile the ascent (or load it) on a tiny layer, so that no search loses its time to that."""
    one = AccessEnergy(1.0, 1.0, 1.0, 1.0)
    machine = Accelerator("one", (Memory("M", ("inputs", "weights", "outputs"), one),))
    DualBound(MapSpace(matmul("one", m=2, n=2, k=2), machine), Objective.parse("edp")).work(1, 2.0)
