"""Dual bounds: what no mapping of a space scores below, energy, latency and room at once.

The logarithms of energy (a sum), of latency (a largest of sums) and of what memories hold (sums) are convex in
logarithms that each dimension adds to: of the pieces that its loops cut it into, of its extents, its lanes, its steps.
Where they are put to the tangent at any point, and limits are given prices, the least score falls apart into one
shortest path for each dimension (or pair along which a window slides) over ranges of extents, pieces rounded up as
they are, or over divisors where tiles divide. Any point and any prices give a bound (weak duality), so that what looks
for the highest needs no trust.

Such a bound leaves open what the hull of all chains of extents allows and no single chain does. So the space is parted
where the bound is least, by what rests at a memory (see `problem.Case`), by whether a side of an array is as full as
whole lanes can make it, or by ranges of lanes or extents. What costs too much by the point where a bound was found is
left out of the part for good (see `ascent.fix`); where few chains are left so, all of them are tried together (see
`listing`), in the end with all pieces that remainders make (see `pieces`), and the mappings that they may stand for are
to be scored (see `leaves`). Static bounds of cycles and energy are floors.
"""

from bisect import insort
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import product, takewhile
from math import exp, inf, log
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilewright.cost import space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Memory
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.checkpoint import Resumable, State, part
from tilewright.search.dual.leaves import Leaves, Listed
from tilewright.search.dual.parts import EVERY, FEW, MERGED, OPEN, VARIED, RaisedPart, SpacePart, case_of
from tilewright.search.dual.problem import Builder
from tilewright.search.dual.ranges import Integers, Ranges, Unbound
from tilewright.search.dual.records import ATOMS, BOUND, LAYER, OWN_LANES, DualProblem, Marks, Work
from tilewright.search.objective import Objective
from tilewright.workload import matmul

if TYPE_CHECKING:
    from tilewright.search.dual.listing import ChainPool

__all__ = ["DualBound", "Unbound", "compile_once"]

TINY = 1e-300
SHARP, SHARPEST = 512.0, 2.0 ** 19
"""How sharply the largest of several cycles or sums is told from the others in the end, which takes off some 1 in so
many: of all parts, and of those that cannot be divided, for which there are four times the turns."""
NEAR, MOST_LISTED, MOST_TRIED, TRIED_A_TURN = 0.05, 600, 5000, 2000
MOST_OF_WHOLE, MORE_TRIED = (9_600, 150_000, 400_000), 16
"""How near to the best score (in logarithms) chains that are left are listed, how many beginnings of them there may be,
how often chains are tried together, and how many tries take about as long as a turn; for parts that cannot be divided
at any distance, so many beginnings by which chains are listed (see `parts`), and so many times the tries."""
SAMPLED, NEAR_ENOUGH, LISTED_A_TURN, MADE_A_TURN = 2000, 0.02, 500, 64
"""Chains that tell where to halve a part of which too much is left to be listed; how near to the best score (in
logarithms) it has to be; how many beginnings (or ways) to list, and mappings to make, take about as long as a turn."""
NOTHING, MOST_COMBINED, COMBINED_TRIES = inf, 50_000, 6_250_000
"""What stands for no list of mappings; of how many combinations of cells they may be; and tries to find these."""
TURNS, MOST_REFINED, REFINED_TURNS = 30, 12, 100
"""Turns for one part at most; how often ranges of extents are halved at most, and as how many turns that counts."""
LANE, LANES = 2, 10
"""How many layers of extents a memory has, and how much more a difference in lanes counts than one in extents where a
part is halved."""


class DualBound(Resumable):
    """What no mapping of a space scores below, the higher the longer it is worked on.

    Raises
    ------
    Unbound
        If the objective or the machine is one that these bounds do not know.
    """

    changing = ("turns", "refined", "stuck", "listed", "given")

    def __init__(self, space: MapSpace, objective: Objective) -> None:
        static = space_bounds(space)
        self.builder = Builder(space, objective, (float(static.latency_cycles), static.energy_pj))
        self.problem = self.builder.problem
        self.turns = self.refined = 0
        self.stuck = False
        """Whether ranges of extents cannot be refined any more, or have been often enough."""
        self.listed, self.given = NOTHING, 0
        """The best score (its logarithm) as the mappings of a part were listed, and how many of them were given out."""
        self.parts = self._all()
        """Parts that may hold a better mapping than is known, in order of their bounds."""

    def _all(self) -> list[SpacePart]:
        """Return the whole space as one part."""
        p, memories = self.problem, self.builder.memories
        cells, ways, sides = (np.packbits(np.ones(shape, dtype=np.uint8), -1)
                              for shape in ((2 * memories, len(p.cells)), len(p.ends), len(p.lane_sides)))
        most = np.array([values[-1] for values in self._products], dtype=np.int64)
        return [SpacePart(-inf, False, np.zeros(self.builder.first_side + len(p.sides)),
                      np.full((memories - 1, 3), OPEN), cells, ways, sides, most, np.zeros(len(most), np.uint8),
                      np.zeros(0, np.int16), np.zeros(0), np.zeros((0, 5 * memories), dtype=np.int32))]

    @property
    def size(self) -> int:
        """How many bytes the parts take, about."""
        return len(self.parts) * sum(np.asarray(own).nbytes for own in self.parts[-1]) if self.parts else 0

    def state(self) -> State:
        """Return all that changes, as arrays."""
        ranges = {f"ranges.{d}": np.array([own.low, own.high]) for d, own in enumerate(self.builder.ranges)}
        return {**super().state(), **ranges, "rows": np.array(list(self.builder.spread.rows)).reshape(-1, 3), **{
            f"parts.{name}": (np.concatenate if name in VARIED else np.array)(
                [getattr(each, name) for each in self.parts or self._all()]) for name in SpacePart._fields},
            "starts": np.cumsum([0, *(len(each.slots) for each in self.parts)]),
            "seen": np.array(sorted(self._maker.seen), dtype=np.int64)}

    def restore(self, state: State) -> None:
        """Set all that changes as it was when `state` was taken."""
        super().restore(state)
        ranges = part(state, "ranges")
        self._take(self.builder.over([Ranges(low, high, -(-int(high[-1]) // high)) for low, high in (
            ranges[str(d)] for d in range(len(ranges)))], [(f, d, lanes) for f, d, lanes in state["rows"].tolist()]))
        self._maker.seen = set(map(tuple, state["seen"].tolist()))
        rows, starts = part(state, "parts"), state["starts"]
        varied = {name: np.split(rows[name], starts[1:-1]) for name in VARIED}
        fields = (varied.get(name, rows[name]) for name in SpacePart._fields)
        parts = [SpacePart(*row) for row in zip(*fields, strict=True)]
        self.parts = sorted(parts[:len(starts) - 1], key=attrgetter("bound"))

    @property
    def bound(self) -> float:
        """What no mapping scores below."""
        return exp(self.parts[0].bound) if self.parts else inf

    def ended(self, score: float) -> bool:
        """Whether nothing is left to do: no mapping scores below ``score``, or nothing raises the bound any more."""
        if not self.parts or self.bound >= max(score, TINY):
            return True
        return self.stuck and self._held_up

    @property
    def _held_up(self) -> bool:
        """Whether the bound is that of a part which cannot be divided."""
        return any(each.whole for each in takewhile(lambda each: each.bound <= self.parts[0].bound, self.parts))

    def work(self, turns: int, score: float) -> None:
        """Work on for some turns, or until it has `ended`, or mappings are to be scored (see `take`)."""
        last, cut = self.turns + turns, log(max(score, TINY))
        while self.turns < last and not self.ended(score) and self.listed == NOTHING:
            if self._held_up:
                self.stuck = not (self._refine() or self._list(cut))
                continue
            part = self.parts.pop(0)
            for each in self._divided(part, cut):
                if each.bound < cut:
                    insort(self.parts, each, key=attrgetter("bound"))

    def take(self, most: int) -> MappingBatch:
        """Return the next of the mappings that are to be scored, up to so many; none where there are no such.

        When all are, the part that they are of is done with: no other mapping of it scores below what was the best.
        """
        space = self.builder.space
        if self.listed == NOTHING:
            return space.empty(0)
        ruled = space.arrays.ruled or space.constraints.orders
        while len(found := self._leaves.take(most)):
            self.given += len(found)
            found = found.take(np.flatnonzero(space.contains(found))) if ruled else found
            if len(found):
                return found
        self._maker.seen.update(self._leaves.keys)
        self.turns += self.given // MADE_A_TURN
        del self.parts[self._first_whole], self._leaves
        self.listed, self.given = NOTHING, 0
        return space.empty(0)

    @property
    def _first_whole(self) -> int:
        """The place of the first part that cannot be divided."""
        return next(at for at, each in enumerate(self.parts) if each.whole)

    @cached_property
    def _maker(self) -> Leaves:
        return Leaves(self.builder)

    @cached_property
    def _leaves(self) -> Listed:
        """The mappings of the first part that cannot be divided which may score below the best as it was."""
        found, *_ = self._mappings(self.parts[self._first_whole], self.listed)
        assert found is not None
        skipped = 0
        while skipped < self.given:  # a search that goes on has scored them
            skipped += len(found.take(self.given - skipped))
        return found

    def _list(self, cut: float) -> bool:
        """List the mappings of a part that cannot be divided which may score below the best, or halve it.

        It is halved where they are too many, and its bound is near to the best score. Return whether either is done.
        """
        place = self._first_whole
        found, taken, raised = self._mappings(self.parts[place], cut)
        self.turns += taken
        if found is not None:
            self.listed, self.given, self._leaves = cut, 0, found
            return True
        if raised.bound >= cut:
            del self.parts[place]
            return True
        parts = self._split(self.parts[place], raised.pool) if cut - raised.bound <= NEAR_ENOUGH else []
        if parts:
            self.parts[place:place + 1] = parts
        return bool(parts)

    def _mappings(self, part: SpacePart, cut: float) -> tuple[Listed | None, int, RaisedPart]:
        """Return the mappings of a part that may score below ``cut`` by all that bounds tell, and turns taken."""
        raised, cells, tried = self._raised(part, cut, MERGED, whole=True), None, 0
        if raised.above > -inf:
            cells, tried = raised.pool.combined(self._limited(part), raised.above, cut, COMBINED_TRIES, MOST_COMBINED)
        return (None if cells is None else self._maker.of(cells, case_of(part)), raised.turns + tried // TRIED_A_TURN,
                raised)

    def _split(self, part: SpacePart, pool: "ChainPool") -> list[SpacePart]:
        """Return halves of a part, at extents that about as many chains of the pool are above as not; none if all are.

        Of the group that has most chains, or was not listed to the end; some of them tell.
        """
        p, unended, found, most = self.problem, np.flatnonzero(pool.spans[:, 1] < 0), None, 0
        g = int(unended[0]) if len(unended) else int(np.diff(pool.spans).argmax())
        first, last = (pool.spans[:g, 1].max(initial=0), len(pool.cost)) if len(unended) else pool.spans[g]
        ends = np.arange(first, last)
        ends = ends[pool.came[ends, LAYER] == np.bincount(pool.came[ends, LAYER], minlength=1).argmax()]
        cells = pool.cells(ends[::1 + len(ends) // SAMPLED], p)
        for layer, (side, d) in product(range(cells.shape[1]), enumerate(self.builder.groups[g])):
            ranges = self.builder.ranges_in(cells[:, layer], d)
            middle = int(np.median(ranges)) if len(ranges) else 0
            above = int((ranges > middle).sum())
            if min(above, len(ranges) - above) > most:
                found, most = (g, layer, side, middle), min(above, len(ranges) - above)
        return [] if found is None else self._parted(part, *found)

    @cached_property
    def _work(self) -> Work:
        return Work.of(self.problem)

    def _ascend(self, part: SpacePart, cut: float, *, whole: bool = False) -> SpacePart:
        """Return a part with the highest bound found of it, and what that is made of.

        Of one that is looked at as a ``whole`` more chains are listed, until there is room for all, or it is closed.
        """
        made = self._tried(part, cut, FEW, whole=whole)
        for every in (EVERY, MERGED) if whole else ():
            if made.bound >= cut or (made.whole and every == MERGED):
                break
            other = self._tried(made, cut, every, whole=True)
            made = other if other.bound > made.bound else other._replace(bound=made.bound, point=made.point)
        return made

    def _tried(self, part: SpacePart, cut: float, every: int, *, whole: bool) -> SpacePart:
        """Return a part with a bound by the chains that are left of it; it is whole where all were tried together."""
        raised, work, least = self._raised(part, cut, every, whole=whole), self._work, -inf
        found = raised.bound
        self.turns += raised.turns
        if raised.above > -inf:
            least, tried = raised.pool.tried(self._limited(part), raised.above, cut,
                                             MOST_TRIED * (MORE_TRIED if whole else 1))
            self.turns += tried // TRIED_A_TURN
            found = max(found, least if least >= cut else least - BOUND)
        slots = np.flatnonzero(work.parts >= 0.0)
        return part._replace(bound=found, whole=least > -inf, point=raised.point,
                             cells=np.packbits(work.cells, 1), ways=np.packbits(work.ways_left),
                             sides=np.packbits(work.sides_left), slots=slots.astype(np.int16),
                             shares=work.parts.ravel()[slots],
                             chains=work.paths.reshape(-1, work.paths.shape[2])[slots].astype(np.int32))

    def _limited(self, part: SpacePart) -> DualProblem:
        return self.problem._replace(limits=np.log(part.most))

    def _raised(self, part: SpacePart, cut: float, every: int, *, whole: bool) -> RaisedPart:
        """Return the highest bound found of a part, and the chains left there (see `listing` of which)."""
        from tilewright.search.dual import ascent, listing  # noqa: PLC0415  (Numba loads late)

        best, work = part.point.copy(), self._work
        work.parts[:] = -1.0
        for into, given in ((work.parts, part.shares), (work.paths, part.chains)):
            into.reshape(-1, *into.shape[2:])[part.slots] = given
        work.cells[:], work.ways_left[:], work.sides_left[:] = self._left(part)
        most = MOST_OF_WHOLE[every] if whole else MOST_LISTED
        pool = listing.ChainPool.of(work, self.problem.rooms.shape[1], most, every)
        index, moves = self.builder.told(case_of(part))
        found, taken, above = ascent.ascend(self._limited(part), work, index, moves, cut, 4 * TURNS if whole else TURNS,
                                            SHARPEST if whole else SHARP, part.point.copy(), best,
                                            -inf if whole else cut - NEAR, pool)
        return RaisedPart(float(found), int(taken) + pool.listed // LISTED_A_TURN, best, float(above), pool)

    def _left(self, part: SpacePart) -> tuple[Marks, Marks, Marks]:
        """Return which cells by layer, ways through arrays, and ways to part lanes are left in a part."""
        p = self.problem
        return (np.unpackbits(part.cells, 1, len(p.cells)), np.unpackbits(part.ways, 0, len(p.ends)),
                np.unpackbits(part.sides, 0, len(p.lane_sides)))

    def _look(self, parts: Sequence[SpacePart], cut: float, *, whole: bool = False) -> list[SpacePart]:
        """Return parts with bounds of their own; they have that of what they are parts of.

        Those of which all chains that are left were tried together cannot be divided, if nothing is open.
        """
        found = []
        for each in parts:
            made = self._ascend(each, cut, whole=whole)
            found.append(made._replace(bound=max(each.bound, made.bound),
                                       whole=made.whole and not self.builder.parted(case_of(made)),
                                       point=made.point if made.bound > each.bound else each.point))
        return found

    def _cases(self, part: SpacePart) -> list[SpacePart]:
        """Return what a part falls into by what rests at a memory where that is open, if it is anywhere."""
        return [part._replace(case=np.array([(OPEN,) * 3 if rest is None else rest for rest in case]))
                for case in self.builder.parted(case_of(part))]

    def _divided(self, part: SpacePart, cut: float) -> list[SpacePart]:
        """Return what a part falls into, or itself, looked at for the first time or sharply.

        By whether a side of an array is full; where that is told, by what rests at a memory; where all of that is, in
        halves at the extents, or lanes, in which the chains differ most that make up its bound.
        """
        parts = (self._topped(part) or self._cases(part) or self._halved(part)) if len(part.slots) else [part]
        return self._look(parts, cut) or [each._replace(whole=True) for each in self._look([part], cut, whole=True)]

    @cached_property
    def _lanes(self) -> Integers:
        """``(w, 2)`` lanes of the ways to part them between sides."""
        return np.rint(np.exp(self.problem.lane_logs)).astype(np.int64)

    @cached_property
    def _products(self) -> list[Integers]:
        """``(s, .)``: how many lanes dimensions may have together by limit of an array, ascending."""
        p, found, rows = self.problem, [], self.builder.spread.rows
        for s, limit in zip(p.sides.tolist(), np.rint(np.exp(p.limits)).astype(int).tolist(), strict=True):
            reached = np.arange(limit + 1) == 1
            for d in range(len(self.builder.sizes)):
                own = [np.arange(*p.lane_spans[row:row + 2]) for (_, other, _), row in rows.items() if other == d]
                at = np.concatenate(own) if own else np.zeros(0, dtype=np.int64)
                before = np.flatnonzero(reached)
                for lanes in np.unique(self._lanes[at][p.lane_sides[at] == s]).tolist():
                    reached[before[before * lanes <= limit] * lanes] = True
            found.append(np.flatnonzero(reached))
        return found

    def _topped(self, part: SpacePart) -> list[SpacePart]:
        """Return a part where a side has as many lanes as it may, and one where it has fewer; none if all is told.

        Lanes of all dimensions along a side are whole numbers, and so is their product, which each of them divides. A
        side is told apart where the bound was found at more lanes than the next fewer.
        """
        p = self.problem
        for s in range(len(p.sides)):
            values = self._products[s]
            k = int(np.searchsorted(values, part.most[s]))
            if part.full[s] or k == 0 or part.point[p.sides[s]] <= log(values[k - 1]) + 1e-6:
                continue
            _, _, sides = self._left(part)
            fewer, full = part.most.copy(), part.full.copy()
            fewer[s], full[s] = values[k - 1], 1
            sides[((p.lane_sides == p.sides[s]) & (part.most[s] % self._lanes != 0)).any(axis=1)] = 0
            return [part._replace(full=full, sides=np.packbits(sides)), part._replace(most=fewer)]
        return []

    def _refine(self) -> bool:
        """Halve the ranges of extents that are left in parts which cannot be divided, if the first of them has any."""
        builder = self.builder
        kept = [(each, *self._left(each)[:2]) for each in self.parts]
        first = self._used(np.asarray(kept[self._first_whole][1].any(axis=0)))
        if self.refined == MOST_REFINED or not any((own.low < own.high)[used].any() for own, used in zip(
                builder.ranges, first, strict=True)):
            return False
        used = self._used(np.asarray(np.any([own.any(axis=0) for each, own, _ in kept if each.whole], axis=0)))
        ranges, of = zip(*(own.halved(some) for own, some in zip(builder.ranges, used, strict=True)), strict=True)
        finer = builder.over(ranges, list(builder.spread.rows))
        try:
            finer.problem  # noqa: B018
        except Unbound:
            return False
        cells, ways = self._origins(finer, of)
        self._take(finer)
        (whole,), parts = self._all(), dict[bytes, SpacePart]()
        for each, own, through in kept:
            # Over narrower ranges a mapping may take more lanes than it was taken to: of sides all is left again.
            made = each._replace(
                whole=False, cells=np.packbits(own[:, cells], 1), sides=whole.sides, most=whole.most, full=whole.full,
                ways=np.packbits(np.append(through, np.uint8(1))[ways]), slots=whole.slots, shares=whole.shares,
                chains=whole.chains)
            key = b"".join(given.tobytes() for given in (made.case, made.cells, made.ways))
            other = parts.setdefault(key, made)
            parts[key] = other._replace(bound=min(other.bound, made.bound))
        self.parts = sorted(parts.values(), key=attrgetter("bound"))
        self.refined += 1
        self.turns += REFINED_TURNS + len(self.problem.ends) // LISTED_A_TURN
        return True

    def _used(self, left: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
        """Return by dimension which of its ranges are in cells ``(c)`` that are left."""
        p, found = self.problem, dict[int, NDArray[np.bool_]]()
        for g, group in enumerate(self.builder.groups):
            own = left[slice(*p.cell_starts[g:g + 2])].reshape(p.shapes[g])
            found |= {d: np.asarray(own.any(axis=axis)) for d, axis in zip(group, (1, 0), strict=False)}
        return [found[d] for d in range(len(found))]

    def _origins(self, finer: Builder, of: Sequence[Integers]) -> tuple[Integers, Integers]:
        """Return of which cells those over finer ranges are parts, and of which ways through arrays, if of any."""
        p, q, builder = self.problem, finer.problem, self.builder
        cells, ways = [], np.full(len(q.ends), len(p.ends))
        for g, group in enumerate(builder.groups):
            own = of[group[0]] if len(group) == 1 else (of[group[0]][:, None] * p.shapes[g, 1] + of[group[1]]).ravel()
            cells.append(p.cell_starts[g] + own)
            many = int(np.diff(p.cell_starts)[g])
            for m in range(builder.memories):
                (first, end), (begin, last) = p.edge_starts[g, m], q.edge_starts[g, m]
                if first == end:
                    continue
                lanes = [Ranges.of(builder.sizes[d], divide=builder.spread.divide).low for d in (group[0], group[-1])]
                before, now = p.ends[first:end], q.ends[begin:last]
                nodes = [node // len(own) * many + own[node % len(own)] for node in now[:, :2].T]
                keys = [np.array([*two, *(np.searchsorted(low, fewest, "right") for low, fewest in zip(
                    lanes, one[:, OWN_LANES:].T, strict=True))])
                    for two, one in ((before[:, :2].T, before), (nodes, now))]
                sizes = 1 + np.maximum(keys[0].max(axis=1), keys[1].max(axis=1))
                flat = [np.ravel_multi_index(tuple(key), tuple(sizes)) for key in keys]
                order = np.argsort(flat[0])
                place = np.minimum(np.searchsorted(flat[0][order], flat[1]), len(order) - 1)
                ways[begin:last] = np.where(flat[0][order][place] == flat[1], first + order[place], len(p.ends))
        return np.concatenate(cells), ways

    def _take(self, builder: Builder) -> None:
        """Go on over other ranges of extents."""
        self.builder, self.problem = builder, builder.problem._replace(floors=self.problem.floors)
        for name in ("_work", "_lanes", "_products", "_maker"):
            self.__dict__.pop(name, None)

    def _halved(self, part: SpacePart) -> list[SpacePart]:
        """Return a part without what is above the middle of where its chains differ most, and without what is not."""
        widest = self._widest(part)
        return [] if widest is None else self._parted(part, *widest)

    def _parted(self, part: SpacePart, g: int, layer: int, side: int, last: int) -> list[SpacePart]:
        """Return a part without what is above a range of extents, or lanes (see `_widest`), and without what is not."""
        p, memories = self.problem, self.builder.memories
        found, (what, m) = [], divmod(layer, memories)
        first, end = p.edge_starts[g, m]
        for upper in (False, True):
            cells, ways, _ = self._left(part)
            if what < LANE:
                first, end = p.cell_starts[g:g + 2]
                k = self.builder.ranges_in(np.arange(end - first), self.builder.groups[g][side])
                cells[layer, first:end][(k > last) != upper] = 0
            else:
                ways[first:end][(p.ends[first:end, OWN_LANES + side] > last) != upper] = 0
            found.append(part._replace(cells=np.packbits(cells, 1), ways=np.packbits(ways)))
        return found

    def _widest(self, part: SpacePart) -> tuple[int, int, int, int] | None:
        """Return a group, a layer, which of its dimensions, and the last range (or lanes) of the lower half.

        Behind the layers come lanes by memory, which count more than extents: there are few of them, and half a lane
        more or less leaves most to be gained.
        """
        p, memories = self.problem, self.builder.memories
        layers, found, least = LANE * memories, None, 1e-6
        for g in range(len(p.dims)):
            some = (part.slots // ATOMS == g) & (part.shares > 1e-3)
            share, chains = part.shares[some] / part.shares[some].sum(), part.chains[some]
            arrays = np.flatnonzero(p.edge_starts[g, :, 0] < p.edge_starts[g, :, 1])
            places = np.concatenate([np.arange(layers), layers + arrays])
            for side in range(2 if p.shapes[g, 1] > 1 else 1):
                cells, ways = chains[:, :layers], chains[:, layers + arrays]
                low = self.builder.ranges[p.dims[g, side]].low
                extents = low[self.builder.ranges_in(cells, p.dims[g, side])]
                logs = np.hstack([np.log(extents), np.log(p.ends[ways, OWN_LANES + side])])
                mean = share @ logs
                spread = share @ np.abs(logs - mean)
                spread[layers:] *= LANES
                k = int(spread.argmax())
                if spread[k] > least:
                    least, middle = spread[k], exp(mean[k]) * (1 + 1e-9)
                    found = g, int(places[k]), side, int(
                        middle if k >= layers else np.searchsorted(low, middle, "right") - 1)
        return found


@cache
def compile_once() -> None:
    """Compile the ascent (or load it) on a tiny layer, so that no search loses its time to that."""
    one = AccessEnergy(1.0, 1.0, 1.0, 1.0)
    machine = Accelerator("one", (Memory("M", ("inputs", "weights", "outputs"), one),))
    space, goal, score = MapSpace(matmul("one", m=2, n=2, k=2), machine), Objective.parse("edp"), 1e300
    for _ in range(2):
        # Near to the bound the chains that are left are tried together.
        dual = DualBound(space, goal)
        dual.work(1, score)
        score = dual.bound * (1 + NEAR / 2)
