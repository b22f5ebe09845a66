"""What no mapping of a region scores below, by weak duality (see `ragged`).

The logarithm of a score is convex in the numbers of `ragged_space`, whichever port is the slowest; what limits hold is
priced. At any point its slope bounds it from below, and by that slope every group of dimensions has a cheapest chain.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tilewright.cost.reference.proof_space import Indices, Values
from tilewright.cost.reference.ragged_counts import again, ceil_div, longer
from tilewright.cost.reference.ragged_regions import FIRST, Region
from tilewright.cost.reference.ragged_space import Case, Content, RaggedSpace, Shared

STEEPEST, SHARPEST, LOOSER, SHARPER, NEARLY = 8.0, 4096.0, 16.0, 4.0, 3.0
"""The highest price of what is over a limit; how sharply the largest of several is told from others in the end, by how
much less after a first look at a region, and by how much more once a bound is nearly the highest."""
SHIFTS, TURNS = 8, 25
"""Steps of Newton's between two turns, and turns."""
MOST_CLASSES, MOST_RANGES = 64, 48
"""Ranges of extents of a dimension at first: those that fall into as many pieces, or so many where these are more."""


Costs = dict[int, Values]
"""By memory."""


class LanePassage(NamedTuple):
    """What leads through an array, from ranges outside (o) to ranges inside (i), by dimension of a group."""

    memory: int
    few: list[Indices]
    many: list[Indices]
    """``(o, i)``: lanes at least and at most."""
    floors: list[Values | None]
    """Logarithms of the share of steps that is left at least, by extents."""
    paid: list[list[int]]
    """Numbers that grow with the steps that lanes leave."""
    more: list[tuple[int, Values]]
    """Other numbers, and what they grow by."""


class ChainWalk(NamedTuple):
    """The cheapest chains of a group of dimensions up to each node, by the slope at a point."""

    costs: list[Values]
    """Of ranges of extents at each node."""
    steps: list[Values]
    """``(o, i)``: of ways from one node to the next."""
    before: list[Values]
    after: list[Values]
    """What chains up to a range cost at least, with it, and from there on, without it."""
    least: float


class Chain(NamedTuple):
    """The numbers of a chain, and what it is made of."""

    numbers: Values
    made: dict[tuple[str, int, int, int], float]
    """Logarithms of extents and lanes, by which of these, the group, the node, and the place in the group."""


class RegionBound(NamedTuple):
    """The highest bound found of a region, and what it is made of."""

    value: float
    """The logarithm of what no mapping of the region scores below."""
    base: float  # that without what chains cost
    slope: Values
    lanes: Costs
    """What so many lanes (less one) of a dimension inside a memory cost along the sides at least."""
    walks: list[ChainWalk]
    point: Values
    sharp: float
    chains: list[list[Chain]]
    shares: list[Values]
    """By group, the chains that the point is made of."""


NONE = RegionBound(inf, inf, np.zeros(0), {}, [], np.zeros(0), FIRST, [], [])
"""Where no chain is left of some group."""


class RegionBounds:
    """Bounds of regions of a space, at whose mappings a score is looked for that is below a claim."""

    def __init__(self, space: RaggedSpace) -> None:
        self.space, weights = space, space.space.weights
        self.parts = np.array([(log(weight), a, b) for weight, a, b in weights if weight > 0]).T
        """``(3, p)``: logarithms of weights, and powers of cycles and of energy."""

    @cached_property
    def ways(self) -> dict[int, tuple[Indices, Indices, Indices]]:
        """By memory, lanes along both sides of the array inside it that so many lanes of a dimension may take.

        Last where those of each number of lanes begin. Others take more on one side, and no fewer on the other.
        """
        found, space = {}, self.space
        for m in space.spread:
            sides, ways, starts = space.sides[m], list[NDArray[np.int64]](), [0]
            for lanes in range(1, min(max(space.sizes), space.array(m).instances) + 1):
                one = np.unique(ceil_div(lanes, np.arange(1, lanes + 1))) if len(sides) > 1 else np.array([lanes])
                pairs = np.column_stack([one, ceil_div(lanes, one)])
                pairs = pairs[(pairs[:, :len(sides)] <= sides).all(axis=1)]
                ways.append(pairs)
                starts.append(starts[-1] + len(pairs))
            both = np.concatenate(ways)
            found[m] = both[:, 0], both[:, 1], np.array(starts)
        return found

    def whole(self) -> Region:
        """Return the whole space as one region."""
        space, ranges, nodes = self.space, [], len(self.space.passages) + 1
        for group in space.groups:
            each = []
            for size in (space.sizes[d] for d in group):
                low = np.unique(ceil_div(size, np.arange(1, size + 1)))
                if len(low) > MOST_CLASSES:
                    low = np.unique(np.append(np.geomspace(1, size, MOST_RANGES).astype(np.int64), size))
                each.append(np.column_stack([low, np.append(low[1:] - 1, size)]))
            every = np.array([list(some) for some in product(*each)])
            first, last = every[-1:, :, 1:].repeat(2, 2), np.ones_like(every[:1])
            ranges.append([first, *[every] * (nodes - 2), last])
        return Region((None,) * (len(space.memories) - 1), ranges, {
            (m, k): (most, False) for m in space.spread for k, most in enumerate(space.sides[m])})

    # What ranges and passages add to numbers.

    def _at_node(self, g: int, ranges: Indices, content: Content) -> Any:
        """Return what ranges of extents at a node add to a number, at least."""
        space, group, (low, high) = self.space, self.space.groups[g], np.moveaxis(ranges, 2, 0)
        found: Any = 0.0
        if content.what == "pieces":
            for k, d in enumerate(group):
                if space.unused[d, content.of]:
                    found = found + np.log(ceil_div(space.sizes[d], high[:, k]))
        elif content.what == "window":
            window = space.windows[content.of]
            if (window.first, window.second) == group:
                found = again(space, window, (longer(space.sizes[group[0]], high[:, 0], window.dilation),
                                              longer(space.sizes[group[1]], high[:, 1], window.stride)))
        else:
            for window in space.slid(content.of, group):
                found = found + np.log(window.words(low[:, 0], low[:, 1]))
            for k, d in space.plain(content.of, group):
                found = found + np.log(low[:, k] if content.what == "words" else self._last(
                    space.sizes[d], low[:, k], high[:, k], first=content.node == 1))
        return found

    @staticmethod
    def _last(size: int, low: Indices, high: Indices, *, first: bool) -> Indices:
        """Return the fewest values of a dimension in the last tile, of what is cut there ``first``, or anywhere."""
        if not first:
            return np.where(low == size, size, 1)
        pieces = ceil_div(size, high)
        return np.where(ceil_div(size, low) == pieces, size - (pieces - 1) * high, 1)

    def _rows(self, g: int, ranges: list[Indices], contents: list[Content]) -> list[Values]:
        """Return what ranges of extents add to all numbers, by node."""
        found = [np.zeros((len(own), len(self.space.names))) for own in ranges]
        for content in contents:
            found[content.node][:, content.number] += self._at_node(g, ranges[content.node], content)
        return found

    def _loops(self, g: int, m: int, case: Case, outer: Indices, inner: Indices) -> Values:
        """Return 0 where loops at a memory lead from one range to another, else infinity."""
        fits = np.ones((len(outer), inner.shape[1]), dtype=np.bool_)
        for k, d in enumerate(self.space.groups[g]):
            fits &= inner[..., k, 0] <= outer[..., k, 1]
            if not self.space.loops(d, m, case):
                fits &= outer[..., k, 0] <= inner[..., k, 1]
        return np.where(fits, 0.0, inf)

    def _array(self, g: int, m: int, region: Region, outer: Indices, inner: Indices,  # noqa: PLR0913, PLR0917
               shared: list[Shared]) -> tuple[Values, LanePassage]:
        """Return 0 where lanes lead from one range to another, else infinity, and what these add to numbers.

        Pieces outside the array are as few as can be, and as uneven, where their steps are least: whole ones, and one.
        """
        space, fits = self.space, np.ones((len(outer), inner.shape[1]), dtype=np.bool_)
        few, many, floors = list[Indices](), list[Indices](), list[Values | None]()
        for k, d in enumerate(space.groups[g]):
            size = space.sizes[d]
            (low, high), (least, most) = np.moveaxis(outer[..., k, :], -1, 0), np.moveaxis(inner[..., k, :], -1, 0)
            fewest, top = region.lanes.get((d, m), (1, min(space.array(m).instances, size)))
            begin, end = np.maximum(fewest, ceil_div(low, most)), np.minimum(ceil_div(high, least), top)
            fits &= (least <= high) & (begin <= end)
            few.append(np.clip(begin, 1, top))
            many.append(np.maximum(few[-1], end))
            tile = np.minimum(least, high)
            steps = np.where((low == high) & (least == most), size // high * tile + np.minimum(size % high, tile),
                             (ceil_div(size, high) - 1) * least + 1)
            floors.append(np.log(np.maximum(steps, 1) / size) if len(space.spread) == 1 else None)
        paid, more = [[1] for _ in few], []
        for one in shared:
            grown: Any = 0.0
            for k, d in enumerate(space.groups[g]):
                if space.unused[d, one.tensor] and one.what == "reads":
                    paid[k].append(one.number)
                elif space.unused[d, one.tensor]:
                    uncut = (outer[..., k, 1] == space.sizes[d]) | (not one.whole)
                    grown = grown + np.where(uncut, np.log(few[k]), 0.0)
            for window in space.slid(one.tensor, space.groups[g]) if one.what == "reads" else []:
                # Lanes of several arrays share together: there no word by more than all that are along one dimension.
                grown = grown + np.log((window.words(many[0], many[1]) / many[0] if one.whole else 1) / many[1])
            if np.any(grown):
                more.append((one.number, grown))
        return np.where(fits, 0.0, inf), LanePassage(m, few, many, floors, paid, more)

    def made(self, region: Region) -> "RegionRows":
        """Return what chains of a region add to numbers."""
        contents, shared = self.space.contents(region.case)
        rows, passages = [], []
        for g, ranges in enumerate(region.ranges):
            rows.append(self._rows(g, ranges, contents))
            own: list[tuple[Values, LanePassage | None]] = []
            for v, (array, m) in enumerate(self.space.passages):
                outer, inner = ranges[v][:, None], ranges[v + 1][None]
                own.append(self._array(g, m, region, outer, inner, [one for one in shared if one.memory == m]) if array
                           else (self._loops(g, m, region.case, outer, inner), None))
            passages.append(own)
        return RegionRows(self, region, rows, passages)

    @cached_property
    def left(self) -> dict[tuple[int, int], Values]:
        """By dimension and memory, the share of steps (logarithms) that so many lanes (less one) leave at least."""
        found, spread = {}, self.space.spread
        for m, (d, size) in product(spread, enumerate(self.space.sizes)):
            lanes = np.arange(1, min(self.space.array(m).instances, size) + 1)
            found[d, m] = np.log(ceil_div(size, lanes) / size) if len(spread) == 1 else -np.log(lanes)
        return found

    @cached_property
    def sums(self) -> tuple[Values, int]:
        """``(r, y)``: by numbers, cycles of compute and ports, energy (at the place named), rooms taken, and lanes."""
        space, number = self.space, self.space.number
        rows = np.zeros((len(space.cycles) + 1 + len(space.rooms), len(space.names)))
        rows[:len(space.cycles) + 1, :space.terms] = np.vstack([space.cycles, space.energy])
        for row, (q, (_, shares)) in zip(rows[len(space.cycles) + 1:], enumerate(space.rooms), strict=True):
            row[[number["room", q, t] for t, _ in shares]] = [share for _, share in shares]
        sides = np.eye(len(space.names))[[name[0] == "side" for name in space.names]]
        return np.vstack([rows[rows.any(axis=1)], sides]), int(space.cycles.any(axis=1).sum())


class PricedScore:
    """The logarithm of a score at numbers ``y``, where what is over limits has its price.

    ``sides`` are logarithms of how many lanes there may be along sides of arrays. The larger ``sharp`` is, the nearer
    is what is ``smooth`` to it.
    """

    def __init__(self, bounds: RegionBounds, y: Values, sharp: float, sides: Values) -> None:
        self.sharp, self.weights = sharp, bounds.parts
        sums, self.ports = bounds.sums
        grown = sums * np.exp(y)
        whole = grown.sum(axis=1)
        self.of, logs = grown / whole[:, None], np.log(whole)
        """``(r, y)``: how much of each sum each number makes."""
        self.cycles, self.energy, self.over = logs[:self.ports], logs[self.ports], logs[self.ports + 1:]
        self.over[len(self.over) - len(sides):] -= sides
        most = self.cycles.max()
        grown = np.exp(sharp * (self.cycles - most))
        self.share = grown / grown.sum()
        """How much each sum of cycles is the largest."""
        self.steep = np.exp(-sharp * np.abs(self.over))
        self.smooth = float(np.logaddexp.reduce(self._each(most + np.log(grown.sum()) / sharp)) + STEEPEST * (
            np.maximum(self.over, 0.0).sum() + np.log1p(self.steep).sum() / sharp))

    def _each(self, cycles: float) -> Values:
        """Return the logarithms of the parts of the score, without prices."""
        weight, a, b = self.weights
        found: Values = weight + a * cycles + b * self.energy
        return found

    @cached_property
    def pulled(self) -> tuple[float, Values, Values]:
        """The score at the mean of cycles, shares of its parts, and how it grows by each sum; of limits the prices."""
        _, a, b = self.weights
        each = self._each(float(self.share @ self.cycles))
        shares = np.exp(each - (whole := np.logaddexp.reduce(each)))
        price = STEEPEST * np.where(self.over < 0.0, self.steep, 1.0) / (1.0 + self.steep)
        return float(whole), shares, np.concatenate([shares @ a * self.share, [shares @ b], price])

    @property
    def tangent(self) -> tuple[float, Values]:
        """A value and a slope by numbers that bound the score from below wherever limits hold (weak duality)."""
        whole, _, pull = self.pulled
        return whole + float(pull[self.ports + 1:] @ self.over), pull @ self.of

    def bends(self) -> Values:
        """Return second derivatives."""
        (_, a, b), (_, shares, pull), r = self.weights, self.pulled, self.ports
        longest, energy = self.share @ self.of[:r], self.of[r]
        curved = -pull
        curved[:r] += self.sharp * pull[:r]
        curved[r + 1:] += self.sharp * pull[r + 1:] * (1.0 - pull[r + 1:] / STEEPEST)
        pulls, whole = np.outer(a, longest) + np.outer(b, energy), pull[:r + 1] @ self.of[:r + 1]
        found: Values = np.diag(pull @ self.of) + (self.of.T * curved) @ self.of - self.sharp * float(
            shares @ a) * np.outer(longest, longest) + (pulls.T * shares) @ pulls - np.outer(whole, whole)
        return found


@dataclass(frozen=True, eq=False)
class RegionRows:
    """What chains of a region add to numbers, and its bound."""

    bounds: RegionBounds
    region: Region
    rows: list[list[Values]]
    passages: list[list[tuple[Values, LanePassage | None]]]

    def _lane_costs(self, slope: Values) -> tuple[Costs, Costs]:
        """Return by memory what so many lanes (less one) cost along the sides at least, and what each way costs."""
        least, ways, number = {}, {}, self.bounds.space.number
        for m, (one, other, starts) in self.bounds.ways.items():
            cost = np.zeros(len(one))
            for k, lanes in enumerate((one, other)[:len(self.bounds.space.sides[m])]):
                most, full = self.region.sides[m, k]
                cost += np.where((lanes > most) | (full & (most % lanes != 0)), inf,
                                 slope[number["side", m, k]] * np.log(lanes))
            least[m] = np.full(len(starts) - 1, inf)
            some = np.flatnonzero(np.diff(starts))
            least[m][some] = np.minimum.reduceat(cost, starts[some])
            ways[m] = cost
        return least, ways

    def walk(self, g: int, slope: Values, lanes: Costs) -> ChainWalk:
        """Return the cheapest chains of a group by a slope."""
        costs, steps = [rows @ slope for rows in self.rows[g]], []
        before = [costs[0]]
        for v, (free, passage) in enumerate(self.passages[g]):
            step = free
            if passage is not None:
                step = free + sum((slope[number] * grown for number, grown in passage.more), np.zeros(free.shape))
                for k, d in enumerate(self.bounds.space.groups[g]):
                    left, price = self.bounds.left[d, passage.memory], float(slope[passage.paid[k]].sum())
                    own = lanes[passage.memory][:len(left)]
                    cost, floor = _least_of(own + price * left, passage.few[k], passage.many[k]), passage.floors[k]
                    if floor is not None:
                        cost = np.maximum(cost, _least_of(own, passage.few[k], passage.many[k]) + price * floor)
                    step = step + cost
            steps.append(step)
            before.append((before[-1][:, None] + step).min(axis=0, initial=inf) + costs[v + 1])
        after = [np.zeros(len(costs[-1]))]
        for v in range(len(steps) - 1, -1, -1):
            after.insert(0, (steps[v] + (costs[v + 1] + after[0])[None]).min(axis=1, initial=inf))
        return ChainWalk(costs, steps, before, after, float(before[-1].min(initial=inf)))

    def _cheapest(self, g: int, walk: ChainWalk, slope: Values, lanes: tuple[Costs, Costs]) -> Chain:
        """Return the cheapest chain of a group."""
        space, path = self.bounds.space, [int(walk.before[-1].argmin())]
        for v in range(len(walk.steps) - 1, -1, -1):
            path.insert(0, int((walk.before[v] + walk.steps[v][:, path[0]]).argmin()))
        numbers, made = np.zeros(len(space.names)), dict[tuple[str, int, int, int], float]()
        for v, at in enumerate(path):
            numbers += self.rows[g][v][at]
            highs = self.region.ranges[g][v][at][:, 1].tolist()
            made |= {("extent", g, v, k): log(high) for k, high in enumerate(highs)}
        for v, (_, passage) in enumerate(self.passages[g]):
            if passage is None:
                continue
            way, m = (path[v], path[v + 1]), passage.memory
            for number, grown in passage.more:
                numbers[number] += grown[way]
            for k, d in enumerate(space.groups[g]):
                few, many = int(passage.few[k][way]), int(passage.many[k][way])
                floor, left = passage.floors[k], self.bounds.left[d, m][few - 1:many]
                left = left if floor is None else np.maximum(left, floor[way])
                at = int((lanes[0][m][few - 1:many] + float(slope[passage.paid[k]].sum()) * left).argmin())
                numbers[passage.paid[k]] += left[at]
                one, other, starts = self.bounds.ways[m]
                first = int(starts[few + at - 1])
                best = first + int(lanes[1][m][first:starts[few + at]].argmin())
                for side, along in enumerate((one, other)[:len(space.sides[m])]):
                    numbers[space.number["side", m, side]] += log(along[best])
                made["lanes", g, v, k] = log(few + at)
        return Chain(numbers, made)

    def bound(self, cut: float, turns: int = TURNS) -> RegionBound:
        """Return the highest bound found in some turns; any that is not below ``cut`` will do.

        By conditional gradients: a point is a mean of chains, at which those join that are the cheapest by the slope
        there; between them weight is shifted as it lowers the score.
        """
        space, sides = self.bounds.space, np.log([most for most, _ in self.region.sides.values()])
        y = space.always if self.region.point is None else self.region.point
        sharp, best, chains, shares = self.region.sharp, NONE._replace(value=-inf), list[list[Chain]](), list[Values]()
        for _ in range(turns):
            score = PricedScore(self.bounds, y, sharp, sides)
            parts, slope = score.tangent
            lanes = self._lane_costs(slope)
            walks = [self.walk(g, slope, lanes[0]) for g in range(len(space.groups))]
            if any(walk.least == inf for walk in walks):
                return NONE
            base = parts + float(slope @ (space.always - y))
            value = base + sum(walk.least for walk in walks)
            if value > best.value:
                best = RegionBound(value, base, slope, lanes[0], walks, y, sharp, [], [])
            if best.value >= cut:
                break
            new = [self._cheapest(g, walk, slope, lanes) for g, walk in enumerate(walks)]
            if not chains:
                sharp = max(FIRST, sharp / LOOSER)
                chains, shares = [[one] for one in new], [np.ones(1) for _ in new]
            joined = False
            for g, one in enumerate(new):
                if not any(np.abs(one.numbers - other.numbers).max() < 1e-12 for other in chains[g]):
                    chains[g].append(one)
                    shares[g], joined = np.append(shares[g], 0.0), True
            if parts - value < NEARLY / sharp or not joined:
                if sharp >= SHARPEST:
                    break
                sharp *= SHARPER
            y, chains, shares = self._shifted(chains, shares, sharp, sides)
        return best._replace(chains=chains, shares=shares)

    def _shifted(self, chains: list[list[Chain]], shares: list[Values], sharp: float, sides: Values,
                 ) -> tuple[Values, list[list[Chain]], list[Values]]:
        """Return a point where shares of chains make the score less, and those that have any."""
        always, each = self.bounds.space.always, np.vstack([chain.numbers for own in chains for chain in own])
        group = np.repeat(np.arange(len(chains)), [len(own) for own in chains])
        belongs, x = (group == np.arange(len(chains))[:, None]).astype(float), np.concatenate(shares)
        for _ in range(SHIFTS):
            score = PricedScore(self.bounds, always + x @ each, sharp, sides)
            along = each @ score.tangent[1]
            if x @ along - sum(along[group == g].min() for g in range(len(chains))) < 0.1 / sharp:
                break
            way = _newton(each @ score.bends() @ each.T, along, x, belongs) - x
            slant, step = float(along @ way), 1.0
            while step > 1e-4 and PricedScore(self.bounds, always + (x + step * way) @ each, sharp, sides).smooth > (
                    score.smooth + 0.1 * step * slant):
                step *= 0.4
            if slant >= 0.0 or step <= 1e-4:
                break
            x = x + step * way
        kept = x > 1e-9
        places = [np.flatnonzero(kept & (group == g)) for g in range(len(chains))]
        begins = np.searchsorted(group, np.arange(len(chains)))
        found = [x[own] / x[own].sum() for own in places]
        point = always + sum(share @ each[own] for share, own in zip(found, places, strict=True))
        return point, [[chains[g][at - begins[g]] for at in own] for g, own in enumerate(places)], found


def _newton(bends: Values, slope: Values, x: Values, belongs: Values) -> Values:
    """Return shares, of each group 1, that a quadratic around ``x`` is least at: non-negative least squares."""
    scale = float(np.trace(bends)) / len(x) + 1e-9
    bends[np.diag_indices(len(x))] += 1e-7 * scale + 1e-10
    try:
        lower = np.linalg.cholesky(bends)
        heavy = 1e3 * np.sqrt(scale)
        found, _ = nnls(np.vstack([lower.T, heavy * belongs]), np.concatenate(
            [np.linalg.solve(lower, bends @ x - slope), heavy * np.ones(len(belongs))]))
    except (np.linalg.LinAlgError, RuntimeError):
        return x
    total = belongs @ found
    return found / (total @ belongs) if (total > 0).all() else x


def _least_of(values: Values, first: Indices, last: Indices) -> Values:
    """Return the least of values from a place to another (both count from 1)."""
    rows = [values]
    while 1 << len(rows) <= len(values):
        half = 1 << (len(rows) - 1)
        rows.append(np.append(np.minimum(rows[-1][:-half], rows[-1][half:]), np.full(half, inf)))
    level = np.frexp(last - first + 1)[1] - 1
    table = np.array(rows)
    found: Values = np.minimum(table[level, first - 1], table[level, last - (1 << level)])
    return found
