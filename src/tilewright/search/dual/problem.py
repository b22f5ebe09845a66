"""A space as a problem of shortest paths: what chains of extents add to the logarithms that a score is made of."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property

import numpy as np

from tilewright.mapping import MapSpace, axis_sides
from tilewright.search.dual.arrays import ArrayWays
from tilewright.search.dual.ranges import Floats, Integers, Ranges, Unbound, hinge
from tilewright.search.dual.records import NEVER, DualProblem
from tilewright.search.mappers.exact.tables import CHILD, CYCLES, KEY, MEMORY, OUTSIDE, TENSOR, Tables
from tilewright.search.objective import Objective

MOST_CASES = 3000
"""Cases of what rests at memories at most."""
Rest = tuple[int, bool, int]
"""Which class of dimensions runs innermost at a memory (-1: no loop is there), whether others loop there too, and
along which of several windows loops there bring in only what is new (-1: along all)."""
Case = tuple[Rest | None, ...]
"""That of each memory but the innermost; None where it is open."""


class Builder:
    """Makes the `DualProblem` of a space."""

    def __init__(self, space: MapSpace, objective: Objective, floors: Sequence[float]) -> None:
        self.space, self.objective, self.tables = space, objective, Tables.unlisted(space, objective)
        self.a = self.tables.arrays
        terms = self.a.terms
        if len(terms) != 1 or not (self.a.sizes > 1).all() or (
                2 * len(self.a.classes) + 1) ** (len(self.tables.memories) - 1) > MOST_CASES:
            raise Unbound
        self.sizes = [int(size) for size in self.a.sizes]
        self.ranges = [Ranges.of(size, divide=space.tiling == "perfect") for size in self.sizes]
        self.tensors, self.memories = len(space.operator.tensors), len(self.tables.memories)
        self.outputs = [t for t, tensor in enumerate(space.operator.tensors) if tensor.is_output]
        self.windows = [(t, int(p)) for t in np.flatnonzero(self.a.slides).tolist()
                        for p, r in self.a.axes[self.a.spans[t]:self.a.spans[t + 1], :2] if r >= 0]
        """The tensor and the first dimension of all axes along which windows slide."""
        self.first_window = 2 * self.tensors + 2 * len(self.outputs)
        self.width = self.first_window + len(self.windows)
        self.steps = 2 * self.memories * self.width
        self.floors = floors
        self.feeding = [b for b in range(len(self.a.edges)) if self.a.edges[b, CHILD] == self.memories]
        self.groups = self._groups()
        self._known: dict[Case, tuple[Integers, Integers]] = {}
        self.spread = ArrayWays(self.tables, self.ranges, self.steps)
        self.first_side = self.spread.first_side

    def over(self, ranges: Sequence[Ranges], rows: Sequence[tuple[int, int, int]]) -> "Builder":
        """Return one over other ranges of extents, with the same ``rows`` of lanes (see `ArrayWays`) first."""
        made = copy(self)
        made.ranges = list(ranges)
        made.spread = ArrayWays(self.tables, made.ranges, self.steps)
        made.__dict__.pop("problem", None)
        for fanout, d, lanes in rows:
            made.spread.row(d, next(array for array in made.spread.arrays if array.fanout == fanout), lanes)
        return made

    def _groups(self) -> list[tuple[int, ...]]:
        """Return the dimensions, those together along which windows slide."""
        pairs = {(int(p), int(r)) for p, r in self.a.axes[:, :2] if r >= 0}
        paired = [d for pair in {tuple(sorted(pair)) for pair in pairs} for d in pair]
        if len(set(paired)) < len(paired):
            raise Unbound
        return [*{tuple(sorted(pair)) for pair in pairs}, *((d,) for d in range(len(self.sizes)) if d not in paired)]

    def group_of(self, d: int) -> int:
        """Return the place of a dimension's group."""
        return next(g for g, group in enumerate(self.groups) if d in group)

    def ranges_in(self, cells: Integers, d: int) -> Integers:
        """Return the ranges of a dimension that are in cells of its group."""
        group = self.groups[self.group_of(d)]
        wide = len(self.ranges[group[-1]].low) if len(group) > 1 else 1
        return cells // wide if d == group[0] else cells % wide

    def cells(self, group: tuple[int, ...]) -> Floats:
        """Return (c, w) what pairs of ranges make of pieces, words and windows, and of last tiles at least."""
        low, high, pieces = ([np.meshgrid(*(getattr(self.ranges[d], name) for d in group), indexing="ij")[k].ravel()
                              .astype(np.float64) for k in range(len(group))] for name in ("low", "high", "pieces"))
        found = np.zeros((len(low[0]), 2, self.tensors))
        slid = np.zeros((len(low[0]), len(self.windows)))
        for t in range(self.tensors):
            for k, d in enumerate(group):
                if self.a.unused[d, t]:
                    found[:, 0, t] += np.log(pieces[k])
            for p, r, stride, dilation in self.spread.axes_of(t):
                if p not in group:
                    continue
                i = group.index(p)
                if r < 0:
                    found[:, 1, t] += np.log(low[i])
                    continue
                j = group.index(r)
                found[:, 1, t] += np.log(axis_sides((stride, dilation), (low[i], low[j]), box=False))
                if self.a.slides[t]:
                    first, second = float(self.sizes[p]), float(self.sizes[r])
                    again = first * second - hinge(first, high[i], dilation) * hinge(second, high[j], stride)
                    once = axis_sides((stride, dilation), (np.asarray(first), np.asarray(second)), box=False)
                    slid[:, self.windows.index((t, p))] = np.log(np.maximum(again / once, 1.0))
        last = [self._last(d, low[k], high[k]) for k, d in enumerate(group)]
        left = [sum((np.log(last[group.index(p)][first]) for p, r, _, _ in self.spread.axes_of(t)
                     if r < 0 and p in group), np.zeros(len(found))) for first in (0, 1) for t in self.outputs]
        return np.column_stack([found.reshape(len(found), -1), *left, slid])

    def _last(self, d: int, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the fewest values of a dimension in the last tile, wherever it is cut, and where it is cut first.

        Of what was cut before the last tile may have one value alone, unless it is as large as all.
        """
        size = float(self.sizes[d])
        cut = np.where(np.ceil(size / low) == np.ceil(size / high), size - (np.ceil(size / high) - 1) * high, 1.0)
        return np.where(low == size, size, 1.0), cut

    @cached_property
    def problem(self) -> DualProblem:
        """All arrays."""
        groups, layers = self.groups, 2 * self.memories
        cells = [self.cells(group) for group in groups]
        states = np.ones((len(groups), layers + 2), dtype=np.int64)
        edges, ends, starts, at = [], [], np.zeros((len(groups), self.memories, 2), dtype=np.int64), 0
        arrays = self.spread.arrays
        for g, group in enumerate(groups):
            for array in arrays:
                found, points = self.spread.edges(group, array)
                edges.append(found)
                ends.append(points)
                starts[g, array.inside] = at, at + len(found)
                at += len(found)
            if len(arrays) == 2:
                states[g, 2 * arrays[0].inside + 2:2 * arrays[1].inside + 2] = np.prod(
                    [len(self.spread.left(d)) for d in group])
        ways = self.spread.lane_ways
        flat = [way for own in ways for way in own]
        limits, _ = self.spread.sides
        groups_at = self.a.groups
        held = np.array([[[2 * int(m) * self.width + self.tensors + t] for t in range(self.tensors)]
                         for m, _ in groups_at], dtype=np.int64).reshape(len(groups_at), self.tensors, 1)
        with np.errstate(divide="ignore"):
            rooms = np.maximum(np.log(self.a.bits / groups_at[:, 1:2]), NEVER)
            floors = np.maximum(np.log(np.array(self.floors)), NEVER)
        return DualProblem(
            float(np.log(self.a.terms[0, 0])), (self.a.terms[0, 1:] > 0).astype(np.int64), floors, self.steps,
            np.ascontiguousarray(self.weights), self.stages, self.others, rooms.reshape(-1, self.tensors), held,
            self.first_side + np.arange(len(limits)), np.log(np.array(limits, dtype=np.float64)),
            np.array([(group[0], group[-1]) for group in groups], dtype=np.int64),
            np.array([(len(self.ranges[group[0]].low), len(self.ranges[group[1]].low) if len(group) > 1 else 1)
                      for group in groups], dtype=np.int64),
            np.vstack(cells), np.cumsum([0, *map(len, cells)]), *self._pieces(), states,
            np.vstack([np.zeros((0, self.first_side - self.steps)), *edges]),
            np.vstack([np.zeros((0, 6), dtype=np.int64), *ends]), starts, np.cumsum([0, *map(len, ways)]),
            np.array([(a, c) for a, _, c, _ in flat], dtype=np.int64).reshape(-1, 2),
            np.array([(b, d) for _, b, _, d in flat], dtype=np.float64).reshape(-1, 2), *self._loads(ends, starts),
            self.spread.limit_starts, np.array([*limits, 1.0]))

    def _pieces(self) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        """Return what `DualProblem` tells for `pieces`: from sizes up to how many sides of arrays there are."""
        pairs = [(group[0], group[-1]) for group in self.groups]
        starts = np.cumsum([0, *(len(own.low) for own in self.ranges)])
        sides = [[[0 if array is None else max(1, len(self.spread.free(d, array))) for array in self.spread.inside]
                  for d in pair] for pair in pairs]
        return (self.a.sizes[pairs].astype(np.int64), self.a.unused[pairs].astype(np.int64),
                np.vstack([np.column_stack([own.low, own.high]) for own in self.ranges]), starts[pairs],
                np.array(sides, dtype=np.int64))

    def _loads(self, ends: Sequence[Integers], starts: Integers) -> tuple[Integers, Integers, Integers, Floats,
                                                                         Integers]:
        """Return what `DualProblem` tells of loads, up to where their lanes begin."""
        numbers, rows = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 2), dtype=np.int64)]
        begin, at, fits, own = np.zeros((len(starts), self.memories + 1), dtype=np.int64), 0, [], iter(ends)
        for g, m in np.ndindex(starts.shape[:2]):
            begin[g, m] = at
            if starts[g, m, 0] < starts[g, m, 1]:
                found, inverse = np.unique(next(own)[:, 2:4], axis=0, return_inverse=True)
                numbers.append(at + inverse.ravel())
                rows.append(found)
                first = self.first_side + int(self.spread.limit_starts[m])
                fits += [self.spread.fits(one, other, first) for one, other in found.tolist()]
                at += len(found)
            begin[g, m + 1] = at
        return (np.concatenate(numbers), np.vstack(rows), begin, np.array([pair for each in fits for pair in each],
                dtype=np.float64).reshape(-1, 2), np.cumsum([0, *map(len, fits)]))

    @property
    def pace(self) -> float:
        """The logarithm of the cycles of a step, of all steps where there is no array."""
        steps = 0.0 if self.spread.arrays else float(np.log(np.array(self.sizes, dtype=np.float64)).sum())
        return float(np.log(self.a.pace)) + steps

    @cached_property
    def crossings(self) -> list[tuple[int, int]]:
        """Boundaries between memories, and whether of the parent (0) or the children (1), one each term."""
        outer = np.flatnonzero(self.a.edges[:, CHILD] < self.memories).tolist()
        return [(b, side) for b in outer for side in (0, 1)]

    @cached_property
    def coming(self) -> list[tuple[float, int, int]]:
        """Cycles of a word that comes in before compute begins or goes out after, the place of such words, and when.

        Stages count from 1 on: what comes into, and what leaves, one memory while nothing else goes on.

        Of ports that these words of one memory pass at once, that which takes longest for all words, spread over the
        whole array where it is one of many.
        """
        found, ramp = [], self.tables.ramp
        for stage, key in enumerate(np.unique(ramp[:, KEY]), 1):
            rows = ramp[ramp[:, KEY] == key]
            array = self.spread.inside[int(rows[0, MEMORY]) - 1]
            lanes = 1.0 if array is None else self.a.instances[array.fanout]
            row = rows[(rows[:, CYCLES:] @ self.a.words / np.where(rows[:, OUTSIDE] > 0, 1.0, lanes)).argmax()]
            layer = 2 * int(row[MEMORY]) - int(row[OUTSIDE])
            cut_first = layer == 1 or (layer == 2 and self.spread.inside[0] is None)
            first = layer * self.width + (self.tensors if int(key) % 2 == 0 else
                                          2 * self.tensors + len(self.outputs) * cut_first)
            tensors = range(self.tensors) if int(key) % 2 == 0 else self.outputs
            found += [(row[CYCLES + t], first + place, stage) for place, t in enumerate(tensors) if row[CYCLES + t] > 0]
        return found

    @property
    def first_coming(self) -> int:
        """The place of what comes in first among terms."""
        return 2 + len(self.feeding) + len(self.crossings)

    @property
    def stages(self) -> Integers:
        """Stages (i) of the terms, 0 of those that pass while others do."""
        found = np.zeros(len(self.weights), dtype=np.int64)
        found[self.first_coming:self.first_coming + len(self.coming)] = [stage for *_, stage in self.coming]
        return found

    @property
    def others(self) -> Integers:
        """What children fill at least (i) however often words cross, by the places of terms (-1: nothing)."""
        found = np.full(len(self.weights), -1)
        first = self.first_coming - len(self.crossings)
        fills = [k for k, (_, side) in enumerate(self.crossings, first) if side == 1]
        found[fills] = self.first_coming + len(self.coming) + np.arange(len(fills))
        return found

    @cached_property
    def weights(self) -> Floats:
        """Weights (i, 2 + r) of what is always there, steps, compute's reads, and what crosses."""
        given, n = self.a.weights.copy(), len(self.a.edges)
        given[-1] += sum((given[n + b] for b in self.feeding), np.zeros(given.shape[1])) * self.a.macs
        for column in np.flatnonzero(given[-1] < 0):
            self._settle(given, int(column))
        rows = [given[-1], 0.0 * given[-1], *(given[b] * self.a.macs for b in self.feeding)]
        rows += [given[b + n * side] * self.a.words[self.a.edges[b, TENSOR]] for b, side in self.crossings]
        others = len(self.coming) + sum(side for _, side in self.crossings)
        found = np.array(rows + [0.0 * given[-1]] * others)
        ports = found[:, 1:][:, (found[:, 1:] > 0).any(axis=0)]
        found = np.column_stack([found[:, 0], np.zeros(len(found)), ports])
        found[1, 1] = np.exp(self.pace)
        for row, (cycles, _, _) in enumerate(self.coming, self.first_coming):
            found[row, 1:] = cycles
        found[:, 0] += self.a.leakage_pj_per_cycle * found[:, 1]
        weights: Floats = np.maximum(found, 0.0)
        return weights

    def _settle(self, given: Floats, column: int) -> None:
        """Take what is negative off what crosses with the output, of which every word crosses once at least."""
        constant = -given[-1, column]
        left = constant
        for b, (t, _, _) in enumerate(self.a.edges.tolist()):
            if self.space.operator.tensors[t].is_output and left > 0:
                taken = min(given[b, column] * self.a.words[t], left)
                given[b, column] -= taken / self.a.words[t]
                left -= taken
        given[-1, column] = 0.0
        if left > 1e-12 * constant:
            given[:, column] = 0.0

    @property
    def rests(self) -> list[Rest]:
        """What a memory may be told apart by."""
        return [(-1, False, -1), *((c, mixed, -1) for c in range(len(self.a.classes)) for mixed in (False, True))]

    def parted(self, case: Case) -> list[Case]:
        """Return what a case falls into, at the innermost memory where that is open, or told more of: all, if any."""
        for m in range(len(case) - 1, -1, -1):
            if case[m] is None:
                return [(*case[:m], rest, *case[m + 1:]) for rest in self.rests]
        for m, rest in enumerate(case):
            if rest is not None and rest[0] >= 0 > rest[2] and len({t for t, _ in self.windows}) == 1:
                found = [(*case[:m], (*rest[:2], k), *case[m + 1:]) for k in range(len(self.windows))]
                if len(found) > 1 and not np.array_equal(self.told(found[0])[0], self.told(case)[0]):
                    return found
        return []

    @cached_property
    def _free(self) -> Integers:
        """Whether (m, d) constraints let a dimension loop at a memory."""
        places = [chains.dims[0] for chains in self.tables.chains]
        slots = [self.tables.slots[memory.name][0] for memory in self.tables.memories]
        return self.space.arrays.free[np.ix_(slots, places)].astype(np.int64)

    @cached_property
    def _beside(self) -> Integers:
        """Whether (c, m, d) a dimension may loop at a memory where one of a class runs innermost, by all orders.

        Or one that all tensors use, which is of no class and stands for the worst of any.
        """
        found = np.repeat(self._free[None], len(self.a.classes), axis=0)
        names, places = self.tables.names, [memory.name for memory in self.tables.memories]
        for c, m in np.ndindex(found.shape[:2]):
            mine = (self.a.unused == self.a.classes[c]).all(axis=1) | (self.a.unused == 0).all(axis=1)
            own = mine & (self._free[m] > 0)
            barred = [self.space.constraints.further_in(places[m], name, names)
                      for name, innermost in zip(names, own, strict=True) if innermost]
            found[c, m, [name in set.intersection(*barred) if barred else True for name in names]] = 0
        return found

    def told(self, case: Case) -> tuple[Integers, Integers]:
        """Return `index` and `moves` of a case."""
        if case not in self._known:
            self._known[case] = self.index(case), self.moves(case)
        return self._known[case]

    def moves(self, case: Case) -> Integers:
        """Return (m, d) whether a dimension may loop at a memory."""
        found = self._free.copy()
        for m, rest in enumerate(case):
            if rest is not None:
                c, mixed, _ = rest
                mine = (self.a.unused == self.a.classes[c]).all(axis=1)
                found[m] = 0 if c < 0 else self._beside[c, m] if mixed else found[m] * mine
        return found

    def index(self, case: Case) -> Integers:
        """Return (i, 2 + w) what each term is made of among quantities (-1: nothing)."""
        alone = [-1, self.steps, *(self.steps + 1 + k for k in range(len(self.feeding)))]
        crossing = [self._crossing(case, b, side) for b, side in self.crossings]
        none = (-1,) * (len(self.windows) + 1)
        once = [self._crossing((None,) * len(case), b, side) for b, side in self.crossings if side == 1]
        return np.array([*((place, *none) for place in alone), *crossing,
                         *((place, *none) for _, place, _ in self.coming), *once], dtype=np.int64)

    def _crossing(self, case: Case, b: int, side: int) -> tuple[int, ...]:
        """Return the quantities that tell how often words cross a boundary, in pieces, for windows, and by copies.

        Along dimensions that a tensor does not use each lane of a tile fills a copy. In the first tile there are as
        many lanes as in any; in all, as many times more where a dimension is whole, so that no piece has fewer.
        """
        t, parent, child = self.a.edges[b].tolist()
        at, layer, slide = child - 1, -1, -1
        once = (-1,) * (1 + len(self.windows)) + (self.spread.copied(child, t, whole=False) if side == 1 else -1,)
        while at >= 0:
            rest = case[at]
            if rest is None:
                return once
            c, mixed, slide = rest
            rests = c >= 0 and self.a.classes[c, t] != 0
            # Where other classes leave the tensor in place as well, they may be all that loops there.
            still = rests and (not mixed or (self.a.classes[:, t] != 0).sum() > 1)
            if c < 0 or still:
                at -= 1
                continue
            layer = 2 * at if rests else 2 * at + 1
            break
        if at < 0:
            return once
        window, array = 2 * at, self.spread.inside[at]
        gathered = array is None or (side == 0 and at >= parent and bool(self.a.share[b, array.fanout]))
        # Along other windows than that which loops slide along, all comes anew that they cut, and lanes.
        again = 2 * at + (1 if gathered else 2) if slide >= 0 else window
        if layer % 2 == 1 and not gathered:
            layer += 1
        if side == 0:
            for m in range(at - 1, parent - 1, -1):
                outer = self.spread.inside[m]
                if outer is not None and self.a.share[b, outer.fanout]:
                    # Lanes that share a word are no pieces; how many more loops further in there are is left open.
                    layer = window = again = 2 * m + 1
        own = [(window if k == slide else again) * self.width + self.first_window + k if at_t == t else -1
               for k, (at_t, _) in enumerate(self.windows)]
        around = self.spread.around(child)
        further = side == 1 and around is not None and layer < 2 * around.inside + 2
        return layer * self.width + t, *own, self.spread.copied(child, t, whole=True) if further else -1
