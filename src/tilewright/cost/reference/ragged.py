"""Checks that nothing in a space of mappings whose tiles need not divide scores below a claim; a program of its own.

It shares no code with the searches, bounds and engine whose claims it checks. What memories keep is gone through set by
set. Each space is parted into regions: by what runs innermost at each memory, by lanes, by extents. What no mapping of
a region scores below is found by weak duality (`ragged_bounds`); what by the slope of that bound costs too much is left
out of the region. Where few chains of extents are left, all of them are tried together, pieces and remainders counted
one by one (`ragged_counts`); the few that still come below the claim are written out as mappings, and scored by who
asks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from math import exp, log, prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.reference.proof_mappings import orders
from tilewright.cost.reference.proof_space import EQUAL, GivenUp, Indices, Values, laid_out, whole
from tilewright.cost.reference.ragged_bounds import (
    TURNS,
    ChainWalk,
    Region,
    RegionBound,
    RegionBounds,
    RegionRows,
)
from tilewright.cost.reference.ragged_counts import ChainCounts, ceil_div
from tilewright.cost.reference.ragged_space import NO_LOOP, RaggedSpace
from tilewright.mapping import LevelLoops, Loop, Mapping

MOST_JOINED, MOST_LISTED, FEW, MOST_SPLIT = 500_000, 30_000, 300, 500
"""Combinations of chains, chains of a group, and chains of all groups that are few enough to take extents one by one;
and ranges of extents at a node."""
MOST_TRIED_TOGETHER = 20_000
"""Combinations of chains of ranges that are tried together before these are taken apart."""
LANES = 10
"""How much more a difference in lanes counts than one in extents where a region is parted."""
AT_ONCE, FEW_TURNS = 100_000, 4
"""Combinations that are counted at once, and turns for the bound of a region of which few chains are left."""


Part = tuple[int, Literal["X", "Y"]]
"""A step along a side of an array."""


class LeftChains(NamedTuple):
    """Chains (n) of a group that are left of a region."""

    costs: Values
    """What they cost more than the cheapest of their group."""
    numbers: Values
    lanes: Values
    """``(n, a)``: logarithms of their lanes in each array."""
    extents: Indices
    """``(n, v, k)``, or none where these are ranges."""
    parted: NDArray[np.bool_]


@dataclass(eq=False)
class RaggedProof:
    """The proof for what memories keep: that no mapping which keeps it scores below ``claim``."""

    space: RaggedSpace
    claim: float
    look: Callable[[], None] = lambda: None
    """Called between steps of some seconds at most; may raise `GivenUp`."""

    def __post_init__(self) -> None:
        self.bounds = RegionBounds(self.space)
        self.cut = log(self.claim) + np.log1p(-EQUAL)
        self.count = 0
        """Regions that were looked at."""
        self._written = set[tuple[Any, ...]]()
        self._ways = dict[tuple[int, int, int, bool], list[tuple[tuple[Part, ...], int, int]]]()

    def mappings(self) -> Iterator[Mapping]:
        """Yield mappings of which it is not shown that they score no less than the claim."""
        left = [self.bounds.whole()]
        while left:
            self.look()
            region = left.pop()
            self.count += 1
            rows = self.bounds.made(region)
            bound = rows.bound(self.cut, FEW_TURNS if region.few else TURNS)
            if bound.value >= self.cut:
                continue
            slack = self.cut - bound.value
            chains = [self._chains(g, walk, slack) for g, walk in enumerate(bound.walks)]
            listed = [own for own in chains if own is not None]
            if len(listed) == len(chains) and prod(map(len, listed)) <= MOST_TRIED_TOGETHER:
                joined = self._joined(region, [self._of_ranges(rows, g, own, walk) for g, (own, walk) in enumerate(
                    zip(listed, bound.walks, strict=True))], slack)
                if joined is not None and not len(joined):
                    continue
            few = len(listed) == len(chains) and sum(map(len, listed)) <= FEW
            region = replace(without(region, bound, slack), few=few)
            cases = [replace(region, case=case) for case in self.space.parted(region.case)]
            found = self._tried(region, bound) if few and not cases else None
            if found is None:
                left += self._parts(region, bound, cases)
            else:
                yield from found

    def _parts(self, region: Region, bound: RegionBound, cases: list[Region]) -> list[Region]:
        """Return what a region falls into: by what runs innermost, full sides, lanes, extents, or narrower ranges."""
        found = cases or self._full(region, bound) or self._halved(region, bound)
        if not found:
            finer = self._finer(region)
            found = [finer] if finer is not None else self._cut(region)
        if not found:
            raise GivenUp(f"a region is left of more than {MOST_JOINED:,} mappings")
        return found

    def _full(self, region: Region, bound: RegionBound) -> list[Region]:
        """Return a region where a side has as many lanes as it may, and one where it has fewer; none if all is told.

        Lanes of dimensions along a side are whole numbers, and so is their product, which each of them divides.
        """
        for (m, k), (most, full) in region.sides.items():
            values = [value for value in self._products[m, k] if value <= most]
            lanes = bound.point[self.space.number["side", m, k]]
            if not full and len(values) > 1 and lanes > log(values[-2]) + 1e-6:
                return [replace(region, sides={**region.sides, (m, k): told})
                        for told in ((values[-1], True), (values[-2], False))]
        return []

    @cached_property
    def _products(self) -> dict[tuple[int, int], list[int]]:
        """How many lanes all dimensions may have together, by memory and side of the array inside it, ascending."""
        found = {}
        for m, (one, other, starts) in self.bounds.ways.items():
            for k, most in enumerate(self.space.sides[m]):
                reached = np.arange(most + 1) == 1
                for size in self.space.sizes:
                    before = np.flatnonzero(reached)
                    for lanes in np.unique((one, other)[k][:starts[min(size, len(starts) - 1)]]).tolist():
                        reached[before[before * lanes <= most] * lanes] = True
                found[m, k] = np.flatnonzero(reached).tolist()
        return found

    def _halved(self, region: Region, bound: RegionBound) -> list[Region]:
        """Return two parts of a region, at the lanes or extents in which chains that make up its bound differ most."""
        most, at, middle = 1e-6, None, 0.0
        for chains, shares in zip(bound.chains, bound.shares, strict=True):
            for key in chains[0].made:
                values = np.array([chain.made[key] for chain in chains])
                mean = float(shares @ values)
                spread = float(shares @ np.abs(values - mean)) * (LANES if key[0] == "lanes" else 1)
                if spread > most:
                    most, at, middle = spread, key, mean
        if at is None:
            return []
        what, g, v, k = at
        if what == "extent":
            return self._parted(region, g, v, region.ranges[g][v][:, k, 1] > exp(middle) * (1 + EQUAL))
        d, m = self.space.groups[g][k], self.space.passages[v][1]
        few, many = region.lanes.get((d, m), (1, min(self.space.array(m).instances, self.space.sizes[d])))
        last = int(exp(middle) * (1 + EQUAL))
        return [replace(region, lanes={**region.lanes, (d, m): told}) for told in (
            (few, last), (last + 1, many))] if few <= last < many else []

    @staticmethod
    def _parted(region: Region, g: int, v: int, upper: NDArray[np.bool_]) -> list[Region]:
        """Return a region without some ranges at a node, and without the others; none where there are no such."""
        found = []
        for some in (upper, ~upper) if 0 < upper.sum() < len(upper) else ():
            ranges = [list(row) for row in region.ranges]
            ranges[g][v] = ranges[g][v][some]
            found.append(replace(region, ranges=ranges))
        return found

    @staticmethod
    def _finer(region: Region) -> Region | None:
        """Return a region with its ranges of extents in halves; None where none can be."""
        ranges, finer = [], False
        for row in region.ranges:
            own = []
            for every in row:
                made = every
                for k in range(every.shape[1]):
                    wide = made[:, k, 0] < made[:, k, 1]
                    if not wide.any() or len(made) + wide.sum() > MOST_SPLIT:
                        continue
                    lower, upper, finer = made[wide].copy(), made[wide].copy(), True
                    lower[:, k, 1] = made[wide, k].sum(axis=1) // 2
                    upper[:, k, 0] = lower[:, k, 1] + 1
                    made = np.concatenate([made[~wide], lower, upper])
                own.append(made)
            ranges.append(own)
        return replace(region, ranges=ranges) if finer else None

    def _cut(self, region: Region) -> list[Region]:
        """Return two parts of a region, at the middle of where extents are most apart."""
        most, found = 0.0, list[Region]()
        for g, row in enumerate(region.ranges):
            for v, ranges in enumerate(row):
                for k in range(ranges.shape[1]):
                    logs = np.log(ranges[:, k, 1])
                    if len(logs) and logs.max() - logs.min() > most:
                        most = logs.max() - logs.min()
                        found = self._parted(region, g, v, logs > (logs.max() + logs.min()) / 2)
        return found

    # Chains that are left.

    def _tried(self, region: Region, bound: RegionBound) -> Iterator[Mapping] | None:
        """Return the mappings of a region that may score below the claim; None where there is too much to try."""
        fine: Region | None = region
        while fine is not None and not fine.single:
            fine = self._finer(fine)
        if fine is None:
            return None
        rows = self.bounds.made(fine)
        walks = [rows.walk(g, bound.slope, bound.lanes) for g in range(len(self.space.groups))]
        slack = self.cut - bound.base - sum(walk.least for walk in walks)
        if slack <= 0.0:
            return iter(())
        groups = [self._of_extents(rows, g, walk, slack, bound.slope) for g, walk in enumerate(walks)]
        listed = [own for own in groups if own is not None]
        joined = self._joined(fine, listed, slack) if len(listed) == len(groups) else None
        kinds = [-1 if rest is None else rest.kind for rest in region.case]
        return None if joined is None else (mapping for row in joined if self._new(listed, row, kinds)
                                            for mapping in self._mappings(listed, row, kinds))

    def _new(self, listed: list[LeftChains], row: Indices, kinds: list[int]) -> bool:
        """Whether a combination of chains was in no region before with the same kinds of loops innermost."""
        known, chains = len(self._written), zip(listed, row, strict=True)
        told = (*kinds, *((own.extents[at].tobytes(), bool(own.parted[at])) for own, at in chains))
        self._written.add(told)
        return len(self._written) > known

    def _chains(self, g: int, walk: ChainWalk, slack: float) -> Indices | None:
        """Return ``(n, v)`` the chains of a group that cost too little to be left out; None where they are too many."""
        paths, costs = np.arange(len(walk.costs[0]))[:, None], walk.costs[0] - walk.least
        for v, step in enumerate(walk.steps):
            further = costs[:, None] + step[paths[:, -1]] + walk.costs[v + 1]
            row, column = np.nonzero(further + walk.after[v + 1] < slack)
            if len(row) > MOST_LISTED:
                return None
            paths, costs = np.column_stack([paths[row], column]), further[row, column]
        return paths

    def _of_ranges(self, rows: RegionRows, g: int, paths: Indices, walk: ChainWalk) -> LeftChains:
        """Return chains of ranges of extents with what these add to numbers, at least."""
        space = self.space
        numbers, lanes = np.zeros((len(paths), len(space.names))), np.zeros((len(paths), len(space.spread)))
        costs = np.full(len(paths), -walk.least)
        for v, own in enumerate(rows.rows[g]):
            numbers += own[paths[:, v]]
            costs += walk.costs[v][paths[:, v]]
        for v, (_, passage) in enumerate(rows.passages[g]):
            way = paths[:, v], paths[:, v + 1]
            costs += walk.steps[v][way]
            if passage is None:
                continue
            for number, grown in passage.more:
                numbers[:, number] += grown[way]
            for k, d in enumerate(space.groups[g]):
                floor, left = passage.floors[k], self.bounds.left[d, passage.memory][passage.many[k][way] - 1]
                numbers[:, passage.paid[k]] += (left if floor is None else np.maximum(left, floor[way]))[:, None]
                lanes[:, space.spread.index(passage.memory)] += np.log(passage.few[k][way])
        none = np.zeros((0, 0, 0), dtype=np.int64)
        return LeftChains(costs, numbers, lanes, none, np.zeros(len(paths), dtype=np.bool_))

    def _of_extents(self, rows: RegionRows, g: int, walk: ChainWalk, slack: float, slope: Values) -> LeftChains | None:
        """Return chains of single extents with what these add to numbers, as far as it can be counted."""
        paths = self._chains(g, walk, slack)
        if paths is None:
            return None
        base, region = self._of_ranges(rows, g, paths, walk), rows.region
        extents = np.stack([own[paths[:, v], :, 0] for v, own in enumerate(region.ranges[g])], axis=1)
        sides, found = len(region.sides), list[LeftChains]()
        for parted in (False, True):
            counts = ChainCounts(self.space, region.case, self.space.groups[g], extents, parted)
            numbers = np.maximum(base.numbers, counts.numbers)
            rise = (numbers - base.numbers)[:, :len(slope) - sides] @ slope[:len(slope) - sides]
            kept = base.costs + rise < slack
            kept &= counts.may_part() if parted else True
            found.append(LeftChains((base.costs + rise)[kept], numbers[kept], base.lanes[kept], extents[kept],
                                np.full(int(kept.sum()), parted)))
        fields: Iterator[Any] = (np.concatenate(each) for each in zip(*found, strict=True))
        return LeftChains(*fields)

    def _joined(self, region: Region, listed: list[LeftChains], slack: float) -> Indices | None:
        """Return ``(n, g)`` combinations of chains that may score below the claim; None where they are too many."""
        groups = sorted(range(len(listed)), key=lambda g: len(listed[g].costs))
        joined, costs = np.zeros((1, 0), dtype=np.int64), np.zeros(1)
        ranked = [np.argsort(own.costs, kind="stable") for own in listed]
        for n, g in enumerate(groups):
            later = [listed[other] for other in groups[n + 1:]]
            if not all(len(own.costs) for own in listed):
                return np.zeros((0, len(listed)), dtype=np.int64)
            rest = sum(float(own.costs.min()) for own in later)
            own = listed[g].costs[ranked[g]]
            count = np.searchsorted(own, slack - rest - costs)
            if count.sum() > MOST_JOINED:
                return None
            before = np.repeat(np.arange(len(joined)), count)
            rank = np.arange(len(before)) - np.repeat(np.cumsum(count) - count, count)
            joined, costs = np.column_stack([joined[before], ranked[g][rank]]), costs[before] + own[rank]
            kept = self._below(region, [listed[other] for other in groups[:n + 1]], joined, later)
            joined, costs = joined[kept], costs[kept]
        found: Indices = joined[:, np.argsort(groups)]
        return found

    def _below(self, region: Region, listed: list[LeftChains], joined: Indices, later: list[LeftChains],
               ) -> NDArray[np.bool_]:
        """Whether combinations of chains fit, and may score below the claim, whichever come ``later``."""
        space, parts = self.space, list[NDArray[np.bool_]]()
        least = space.always + sum((own.numbers.min(axis=0) for own in later), np.zeros(len(space.names)))
        fewest = sum((own.lanes.min(axis=0) for own in later), np.zeros(len(space.spread)))
        single = not later and all(own.extents.size for own in listed)
        for rows in np.array_split(joined, len(joined) // AT_ONCE + 1):
            self.look()
            y, lanes = np.tile(least, (len(rows), 1)), np.tile(fewest, (len(rows), 1))
            for own, at in zip(listed, rows.T, strict=True):
                y += own.numbers[at]
                lanes += own.lanes[at]
            kept = np.ones(len(rows), dtype=np.bool_)
            for q, (_, shares) in enumerate(space.rooms):
                kept &= sum(share * np.exp(y[:, space.number["room", q, t]]) for t, share in shares) <= 1 + EQUAL
            for a, m in enumerate(space.spread):
                kept &= lanes[:, a] <= log(prod(space.sides[m])) + EQUAL
            parted = np.any([own.parted[at] for own, at in zip(listed, rows.T, strict=True)], axis=0)
            scores = self._scores(y, lanes, self._known(region) & ~parted) if single else self._least(y)
            parts.append(kept & (scores < self.claim * (1 - EQUAL)))
        return np.concatenate(parts)

    def _known(self, region: Region) -> bool:
        """Whether all that crosses of a result is known of chains of single extents."""
        space = self.space
        return all(space.even(space.output, m) for m in space.spread) and not any(
            rest is None or rest.mixed for rest in region.case)

    def _scored(self, cycles: Values, energy: Values) -> Values:
        found = np.zeros(len(cycles))
        for weight, a, b in self.space.space.weights:
            found += weight * (cycles if a else 1.0) * (energy if b else 1.0)
        return found

    def _least(self, y: Values) -> Values:
        """Return scores at least by numbers."""
        terms = np.exp(y[:, :self.space.terms])
        return self._scored((terms @ self.space.cycles.T).max(axis=1), terms @ self.space.energy)

    def _scores(self, y: Values, lanes: Values, known: NDArray[np.bool_]) -> Values:
        """Return scores at least by numbers and lanes of chains of single extents.

        What does not cross of a result, as it is new in a memory, is taken off where it is ``known``.
        """
        space, terms = self.space, np.exp(y[:, :self.space.terms])
        edges = len(space.edges)
        words = np.ones((len(y), 1 + 2 * edges))
        for e, edge in enumerate(space.edges):
            words[:, 1 + e] = terms[:, space.number["out", e, 0]]
            words[:, 1 + edges + e] = terms[:, space.number["in", e, 0]] if edge.child < len(space.memories) else float(
                space.space.operator.macs)

        def summed(row: Values) -> Values:
            return np.where(known, words @ row, terms @ space.least(row))

        def instances(m: int) -> Values:
            return np.exp(sum((lanes[:, a] for a, outer in enumerate(space.spread) if outer < m), np.zeros(len(y))))

        cycles = terms[:, 1] * space.space.pace
        for m, row in space.sums.waits:
            cycles = cycles + summed(row) / instances(m)
        cycles = whole(cycles)
        for m, row in space.sums.ports:
            cycles = np.maximum(cycles, whole(summed(row) / instances(m)))
        for key in dict.fromkeys(ramp.memory for ramp in space.ramps):
            cycles = cycles + whole(sum((ramp.cycles * terms[:, space.number["ramp", key, ramp.tensor]]
                                         for ramp in space.ramps if ramp.memory == key), np.zeros(len(y))))
        return self._scored(cycles, summed(space.sums.energy) + space.space.leak * cycles)

    # Mappings.

    def _mappings(self, listed: list[LeftChains], row: Indices, kinds: list[int]) -> Iterator[Mapping]:
        """Yield the mappings of a combination of chains, in every order of loops that may be best.

        Of these but the ones that have loops of such ``kinds`` innermost, as others are in other regions.
        """
        space, nodes, names = self.space, len(self.space.passages) + 1, [group[0] for group in self.space.space.groups]
        extents, parted = np.ones((len(names), nodes), dtype=np.int64), dict[int, bool]()
        for g, group in enumerate(space.groups):
            extents[list(group)] = listed[g].extents[row[g]].T
            parted |= dict.fromkeys(group, bool(listed[g].parted[row[g]]))
        choices: list[list[tuple[Loop, ...]]] = []
        for v, (array, m) in enumerate(space.passages):
            steps = {d: (int(own[v]), int(own[v + 1])) for d, own in enumerate(extents) if own[v] > own[v + 1]}
            if array:
                laid = (tuple(Loop(names[d], step, along) for axis in "XY" for d, sides in zip(
                    steps, chosen, strict=True) for step, along in sides if along == axis)
                    for chosen in self._laid(m, [(*steps[d], parted[d]) for d in steps]))
                # Then it makes no difference along which side of the array lanes lie.
                alike = all(space.even(t, m) for t in space.tensors) and not any(
                    parted[d] or d in self._slid for d in steps)
                choices.append(list(islice(laid, 1 if alike else None)))
                continue
            counts = {names[d]: ceil_div(*both) for d, both in steps.items()}
            inside = {names[d]: step for d, (_, step) in steps.items()}
            last = m == len(space.memories) - 1
            choices.append([tuple(Loop(name, inside[name]) for name in order) for order in (
                [tuple(counts)] if last else orders(space.space, counts)) if last or kinds[m] == (
                    space.kind(names.index(order[-1])) if order else NO_LOOP.kind)])
        levels = space.space.accelerator.levels
        for chosen in product(*choices):
            yield Mapping(tuple(LevelLoops(level.name, loops, space.kept.get(level.name))
                                for level, loops in zip(levels, chosen, strict=True)))

    @cached_property
    def _slid(self) -> set[int]:
        """Dimensions along which windows slide."""
        return {d for window in self.space.windows for d in (window.first, window.second)}

    def _laid(self, m: int, chains: list[tuple[int, int, bool]], across: int = 1, down: int = 1,
              ) -> Iterator[tuple[tuple[Part, ...], ...]]:
        """Yield ways to lay lanes of dimensions along the sides of the array inside a memory, where others lie there.

        Of each dimension its extents outside and inside are given, and whether those between may be any.
        """
        if not chains:
            yield ()
            return
        for sides, wide, high in self._sides(m, *chains[0]):
            if self._fits(m, across * wide, down * high):
                for more in self._laid(m, chains[1:], across * wide, down * high):
                    yield sides, *more

    def _sides(self, m: int, outside: int, inside: int, parted: bool) -> list[tuple[tuple[Part, ...], int, int]]:
        """Return the steps of a dimension along the sides of the array inside a memory, and its lanes there.

        Between them are extents that divide as their lanes do, or any for chains that are ``parted``.
        """
        if len(self.space.sides[m]) == 1 and not (parted and self.space.folds(m)):
            lanes = ceil_div(outside, inside)
            return [(((inside, "Y"),), 1, lanes)] if self.space.array(m).shape[0] == 1 else [
                (((inside, "X"),), lanes, 1)]
        if (chain := (m, outside, inside, parted)) not in self._ways:
            between = range(inside, outside + 1) if parted else range(inside, outside + inside, inside)
            ways = [(step, ceil_div(outside, step), ceil_div(step, inside)) for step in dict.fromkeys(
                min(step, outside) for step in between)]
            self._ways[chain] = [((*(((step, "X"),) if wide > 1 else ()), *(((inside, "Y"),) if high > 1 else ())),
                                  wide, high) for step, wide, high in ways if self._fits(m, wide, high)]
        return self._ways[chain]

    def _fits(self, m: int, across: int, down: int) -> bool:
        """Whether so many lanes fit along the sides of the array inside a memory."""
        return laid_out(self.space.array(m), across, down) and across * down <= prod(self.space.sides[m])


def without(region: Region, bound: RegionBound, slack: float) -> Region:
    """Return a region without ranges through which every chain costs too much by the slope of a bound."""
    kept = [[own[before + after - walk.least < slack] for own, before, after in zip(
        row, walk.before, walk.after, strict=True)] for row, walk in zip(region.ranges, bound.walks, strict=True)]
    return replace(region, ranges=kept, point=bound.point, sharp=bound.sharp)
