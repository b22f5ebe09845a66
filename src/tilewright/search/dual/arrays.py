"""Ways of dimensions through arrays: which lanes, along which sides, and what these leave to be done in time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from math import exp

import numpy as np

from tilewright.hardware import Fanout
from tilewright.mapping import axis_sides
from tilewright.search.dual.ranges import Floats, Integers, Ranges, Unbound
from tilewright.search.mappers.exact.tables import CHILD, TENSOR, Tables

MOST_EDGES = 1_000_000
"""Ways of a group of dimensions through an array at most."""
Axis = tuple[int, int, int, int]
"""Two dimensions (the second -1 where the axis does not slide), stride and dilation."""
LaneWay = tuple[int, float, int, float]
"""Two limits of an array (-1: none), and the logarithms of the lanes that count there."""


@lru_cache(maxsize=1 << 16)  # narrower ranges of extents have the same
def parted_lanes(lanes: int, sides: tuple[tuple[int, float], ...], *, divide: bool) -> tuple[LaneWay, ...]:
    """Return the ways to part some lanes between sides, given by the places and the sizes of their limits."""
    if lanes == 1:
        return ((-1, 0.0, -1, 0.0),)
    if len(sides) == 1:
        return ((sides[0][0], float(np.log(lanes)), -1, 0.0),)
    (x, wide), (y, high) = sides
    one = np.unique(-(-lanes // np.arange(1, lanes + 1)))
    other = -(-lanes // one)
    fits = (one <= wide) & (other <= high) & ((one * other == lanes) | (not divide))
    return tuple((x, float(np.log(i)), y, float(np.log(j))) for i, j in zip(one[fits], other[fits], strict=True))


@dataclass(frozen=True)
class Array:
    """A fan-out by its number, the memory that it lies inside, and its slots."""

    fanout: int
    inside: int
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Ways:
    """Ways (w) of a dimension through an array.

    Ranges of extents outside and inside; fewest lanes, and most that leave as many steps; the row of the ways to part
    the fewest between sides; where what is left for a second array stands, outside and inside; and what is left.
    """

    outer: Integers
    inner: Integers
    fewest: Integers
    most: Integers
    row: Integers
    before: Integers
    after: Integers
    left: Integers

    def take(self, places: Integers) -> "Ways":
        """Return some of the ways."""
        return Ways(*(getattr(self, name)[places] for name in self.__dataclass_fields__))


@dataclass
class ArrayWays:
    """The arrays of a machine, as the dimensions of an operator pass them."""

    tables: Tables
    ranges: Sequence[Ranges]
    first: int
    """The place of steps among quantities; behind them come compute's reads, copies, and lanes by limit."""
    lane_ways: list[tuple[LaneWay, ...]] = field(default_factory=lambda: [((-1, 0.0, -1, 0.0),)])
    """By row, the ways to part some lanes between sides; first that of no dimension."""
    rows: dict[tuple[int, int, int], int] = field(default_factory=dict)

    @property
    def divide(self) -> bool:
        """Whether tiles and lanes divide."""
        return self.tables.space.tiling == "perfect"

    @cached_property
    def inside(self) -> list[Array | None]:
        """The array inside each memory."""
        levels, found, at = self.tables.accelerator.levels, list[Array | None](), -1
        for level in levels:
            if not isinstance(level, Fanout):
                found.append(None)
                at += 1
            elif at < 0 or found[at] is not None:
                raise Unbound
            else:
                number = self.tables.accelerator.fanouts.index(level)
                found[at] = Array(number, at, tuple(self.tables.slots[level.name]))
        if sum(array is not None for array in found) > 2:
            raise Unbound
        return found

    @cached_property
    def arrays(self) -> list[Array]:
        """All of them, outermost first."""
        return [array for array in self.inside if array is not None]

    @cached_property
    def feeding(self) -> list[int]:
        """The boundaries that feed compute."""
        edges = self.tables.arrays.edges
        return [b for b in range(len(edges)) if edges[b, CHILD] == len(self.tables.memories)]

    def around(self, child: int) -> Array | None:
        """Return the nearest array outside a memory."""
        return next((array for array in reversed(self.arrays) if array.inside < child), None)

    @cached_property
    def copies(self) -> list[tuple[int, int, bool]]:
        """Arrays whose lanes fill copies of a tensor, by fan-out, the tensor, and whether only of whole dimensions."""
        given, found = self.tables.arrays, dict[tuple[int, int, bool], None]()
        for t, _, child in given.edges.tolist():
            array = self.around(child)
            if array is not None and child < len(self.tables.memories) and given.unused[:, t].any():
                found |= dict.fromkeys([(array.fanout, t, False), (array.fanout, t, True)])
        return list(found)

    @property
    def first_copy(self) -> int:
        """Where copies stand among quantities."""
        return self.first + 1 + len(self.feeding)

    @property
    def first_side(self) -> int:
        """Where lanes by limit stand among quantities."""
        return self.first_copy + len(self.copies)

    def copied(self, child: int, t: int, *, whole: bool) -> int:
        """Return the place of how many lanes fill copies of a tensor in a memory (-1: it is one)."""
        array = self.around(child)
        key = (-1 if array is None else array.fanout, t, whole)
        return self.first_copy + self.copies.index(key) if key in self.copies else -1

    @cached_property
    def sizes(self) -> list[int]:
        """Those of the dimensions."""
        return [int(size) for size in self.tables.arrays.sizes]

    @cached_property
    def sides(self) -> tuple[list[float], dict[int, list[tuple[int, int]]]]:
        """Return the limits of arrays, and by fan-out the slots of each limit (-1: lanes of both sides together)."""
        limits, known = list[float](), dict[int, list[tuple[int, int]]]()
        for s, partner, x, y, most in self.tables.sides.tolist():
            for array in self.arrays:
                if s in array.slots:
                    known.setdefault(array.fanout, []).append((-1 if partner >= 0 else s, len(limits)))
            limits.append(float(most * max(1, x) * max(1, y)))
        return limits, known

    @cached_property
    def limit_starts(self) -> Integers:
        """Where limits of the array inside each memory begin, and all end."""
        known = self.sides[1]
        many = [0 if array is None else len(known.get(array.fanout, [])) for array in self.inside]
        return np.cumsum([0, *many])

    def axes_of(self, t: int) -> list[Axis]:
        """Return the axes of a tensor."""
        given = self.tables.arrays
        return [(int(p), int(r), int(stride), int(dilation))
                for p, r, stride, dilation in given.axes[given.spans[t]:given.spans[t + 1]]]

    def free(self, d: int, array: Array) -> tuple[int, ...]:
        """Return the slots of an array along which a dimension may be spread."""
        place = self.tables.chains[d].dims[0]
        return tuple(s for s in array.slots if self.tables.space.arrays.free[s, place])

    def most_lanes(self, d: int, array: Array) -> int:
        """Return how many lanes a dimension may have."""
        limits, known = self.sides
        slots = self.free(d, array)
        if not slots:
            return 1
        return min(self.sizes[d], int(np.prod([limits[at] for s, at in known[array.fanout] if s < 0 or s in slots])))

    def row(self, d: int, array: Array, lanes: int) -> int:
        """Return the row of the ways to part lanes of a dimension between the sides of an array."""
        slots, (limits, known) = self.free(d, array), self.sides
        key = (array.fanout, d, lanes)
        if key in self.rows:
            return self.rows[key]
        own = tuple((self.first_side + at, limits[at]) for s, at in known[array.fanout] if s < 0 or s in slots)
        self.rows[key] = len(self.lane_ways)
        self.lane_ways.append(parted_lanes(lanes, own, divide=self.divide))
        return self.rows[key]

    def fits(self, row: int, other: int, first: int) -> list[tuple[int, int]]:
        """Return lanes along the sides of an array that two rows take together, those that no others are below.

        They are in order of the first side, that of limit ``first``.
        """
        least: dict[int, int] = {}
        for ways in product(self.lane_ways[row], self.lane_ways[other]):
            lanes = [1, 1]
            for way in ways:
                for limit, many in (way[:2], way[2:]):
                    if limit >= 0:
                        lanes[int(limit) - first] *= round(exp(many))
            least[lanes[0]] = min(least.get(lanes[0], lanes[1]), lanes[1])
        found: list[tuple[int, int]] = []
        for pair in sorted(least.items()):
            if not found or pair[1] < found[-1][1]:
                found.append(pair)
        return found

    def left(self, d: int) -> Integers:
        """Return what the first of two arrays may leave of a dimension: how many steps, were there no second."""
        if len(self.arrays) < 2:
            return np.array([self.sizes[d]])
        left = np.unique(-(-self.sizes[d] // np.arange(1, self.most_lanes(d, self.arrays[0]) + 1)))
        return left[self.sizes[d] % left == 0] if self.divide else left

    def ways(self, d: int, array: Array) -> Ways:
        """Return the ways of a dimension through an array; of lanes that leave as many steps, those of the fewest."""
        own, size, lanes = self.ranges[d], self.sizes[d], Ranges.of(self.sizes[d], divide=self.divide)
        last = array.inside == len(self.inside) - 1
        low, high = (np.array([1]), np.array([1])) if last else (own.low, own.high)
        most = np.minimum(self.most_lanes(d, array), -(-own.high[:, None] // low))
        most = np.where(own.high[:, None] < low, 0, most)
        fewest = np.maximum(1, -(-own.low[:, None] // high))
        begin, end = np.searchsorted(lanes.high, fewest), np.searchsorted(lanes.low, most, "right")
        count = np.where((fewest <= most) & ((own.low[:, None] % low == 0) | (not self.divide)), end - begin, 0)
        outer, inner = (np.repeat(each, count.ravel()) for each in np.indices(count.shape).reshape(2, -1))
        k = np.arange(len(outer)) + np.repeat(begin.ravel() - np.cumsum(count) + count.ravel(), count.ravel())
        first, until = np.maximum(fewest[outer, inner], lanes.low[k]), np.minimum(most[outer, inner], lanes.high[k])
        row = np.zeros(size + 1, dtype=np.int64)
        different = np.flatnonzero(np.bincount(first))
        row[different] = [self.row(d, array, many) for many in different.tolist()]
        row = row[first]
        left, none = self.left(d), np.zeros_like(outer)
        if array is not self.arrays[-1]:
            return Ways(outer, inner, first, until, row, none, np.searchsorted(left, -(-size // until)), none)
        found = Ways(outer, inner, first, until, row, none, none, none)
        before = np.repeat(np.arange(len(left)), len(outer))
        return replace(found.take(np.tile(np.arange(len(outer)), len(left))), before=before, left=left[before])

    def steps(self, d: int, array: Array, ways: Ways) -> Floats:
        """Return the logarithm of how many steps of compute are left, by the last array."""
        found = -(-ways.left // ways.most)
        if len(self.arrays) == 1:
            inner = 1 if array.inside == len(self.inside) - 1 else self.ranges[d].low[ways.inner]
            found = np.maximum(found, (self.ranges[d].pieces[ways.outer] - 1) * inner + 1)
        logs: Floats = np.log(found)
        return logs

    def shared(self, b: int, d: int, array: Array, ways: Ways) -> Floats:
        """Return along how many lanes of a dimension compute's reads are shared at a boundary, at most."""
        share, found = self.tables.arrays.share[b], np.ones(len(ways.outer))
        if share[array.fanout]:
            found = found * ways.most
        if len(self.arrays) == 2 and share[self.arrays[0].fanout]:
            found = found * np.where(ways.left > 1, -(-self.sizes[d] // np.maximum(1, ways.left - 1)) - 1,
                                     self.sizes[d])
        return found

    def fed(self, b: int, group: tuple[int, ...], lanes: Sequence[Floats]) -> Floats:
        """Return what part (its logarithm) of compute's reads at a boundary is left where so many lanes share."""
        given, t = self.tables.arrays, int(self.tables.arrays.edges[b, TENSOR])
        found = np.zeros_like(lanes[0])
        for d, many in zip(group, lanes, strict=True):
            if given.unused[d, t]:
                found += np.log(np.ceil(self.sizes[d] / many - 1e-12) / self.sizes[d])
        for p, r, stride, dilation in self.axes_of(t):
            if r >= 0 and p in group:
                i, j = (np.minimum(lanes[group.index(d)], self.sizes[d]) for d in (p, r))
                found += np.log(axis_sides((stride, dilation), (i, j), box=False) / (i * j))
        return found

    def edges(self, group: tuple[int, ...], array: Array) -> tuple[Floats, Integers]:
        """Return quantities (e, 1 + b + o) and ends (e, 6) of a group's ways through an array (see `DualProblem`)."""
        each = [self.ways(d, array) for d in group]
        if np.prod([len(ways.outer) for ways in each], dtype=np.float64) > MOST_EDGES:
            raise Unbound
        grids = np.meshgrid(*(np.arange(len(ways.outer)) for ways in each), indexing="ij")
        each = [ways.take(grid.ravel()) for ways, grid in zip(each, grids, strict=True)]
        last, closes = array.inside == len(self.inside) - 1, array is self.arrays[-1]
        quantities = np.zeros((len(each[0].outer), self.first_side - self.first))
        begin, end, before, after = np.zeros((4, len(quantities)), dtype=np.int64)
        for d, ways in zip(group, each, strict=True):
            wide, states = len(self.ranges[d].low), len(self.left(d))
            begin, end = begin * wide + ways.outer, end * wide + (0 if last else ways.inner)
            before, after = before * (states if closes else 1) + ways.before, after * (1 if closes else states
                                                                                       ) + ways.after
            if closes:
                quantities[:, 0] += self.steps(d, array, ways)
        for k, (fanout, t, whole) in enumerate(self.copies, self.first_copy - self.first):
            for d, ways in zip(group, each, strict=True):
                if fanout == array.fanout and self.tables.arrays.unused[d, t]:
                    quantities[:, k] += np.where((self.ranges[d].pieces[ways.outer] == 1) | (not whole),
                                                 np.log(ways.fewest), 0.0)
        for k, b in enumerate(self.feeding if closes else ()):
            quantities[:, 1 + k] = self.fed(b, group, [self.shared(b, d, array, ways)
                                                       for d, ways in zip(group, each, strict=True)])
        cells = int(np.prod([len(self.ranges[d].low) for d in group]))
        return quantities, np.column_stack([
            before * cells + begin, after * cells + end, each[0].row, each[1].row if len(each) > 1 else 0 * begin,
            each[0].fewest, each[-1].fewest])
