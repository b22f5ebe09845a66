"""Checks that nothing in a space of mappings whose tiles need not divide scores below a claim; a program of its own.

It shares no code with the searches, bounds and engine whose claims it checks. What memories keep is gone through set by
set. Each space is parted into regions (`ragged_parts`): by what runs innermost at each memory, by lanes, by extents.
What no mapping of a region scores below is found by weak duality (`ragged_bounds`); what by the slope of that bound
costs too much is left out of the region. Where few different chains of extents are left, all of them are tried
together, pieces and remainders counted one by one (`ragged_counts`); the few that still come below the claim are
written out as mappings, and scored by who asks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from math import log, prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.reference.proof_mappings import orders
from tilewright.cost.reference.proof_space import EQUAL, Indices, Values, laid_out, whole
from tilewright.cost.reference.ragged_bounds import (
    TURNS,
    ChainWalk,
    RegionBound,
    RegionBounds,
    RegionRows,
)
from tilewright.cost.reference.ragged_counts import ChainCounts, ceil_div, may_part
from tilewright.cost.reference.ragged_parts import RegionParts
from tilewright.cost.reference.ragged_regions import Region, finer
from tilewright.cost.reference.ragged_space import NO_LOOP, RaggedSpace
from tilewright.mapping import LevelLoops, Loop, Mapping

MOST_JOINED, MOST_LISTED, FEW = 500_000, 50_000, 300
"""Combinations of chains, chains of a group, and different ones of all groups that are few enough to be tried."""
MOST_TRIED_TOGETHER = 20_000
"""Combinations of chains of ranges that are tried together before these are taken apart."""
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

    def alike(self) -> tuple["LeftChains", list[Indices]]:
        """Return one chain for all that add the same numbers, at the least of their costs, and which they are."""
        _, kinds = np.unique(np.column_stack([self.numbers, self.lanes, self.parted]), axis=0, return_inverse=True)
        order = np.lexsort([self.costs, kinds])
        begins = np.flatnonzero(np.diff(kinds[order], prepend=-1))
        firsts, members = order[begins], np.split(order, begins)[1:]
        extents = self.extents[firsts] if self.extents.size else self.extents
        return LeftChains(self.costs[firsts], self.numbers[firsts], self.lanes[firsts], extents, self.parted[
            firsts]), members


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
        self.parts = RegionParts(self.bounds)
        self._written = set[tuple[Any, ...]]()
        self._spreads = dict[tuple[int, tuple[tuple[int, int, int, bool], ...]], list[tuple[Loop, ...]]]()
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
            rest = self._rest(rows, bound) if bound.value < self.cut else None
            cases = [] if rest is None else self._cases(rest)
            tried = None if rest is None or not rest.few or (cases and region.few) else self._tried(rest, bound)
            if tried is not None and not len(tried[1]):
                rest = None
            elif tried is not None and rest is not None:
                cases = cases or self._cases(rest, any_memory=True)
            self.parts.learn(region, (self.cut if rest is None else bound.value) - region.least)
            if rest is not None and (cases or tried is None):
                left += self.parts.of(rest, bound, cases, self.cut - bound.value)
            elif rest is not None and tried is not None:
                kinds = [one.kind for one in rest.case if one is not None]
                for row in tried[1]:
                    if self._new(tried[0], row, kinds):
                        yield from self._mappings(tried[0], row, kinds)

    def _cases(self, region: Region, *, any_memory: bool = False) -> list[Region]:
        """Return parts of a region by what runs innermost at a memory."""
        return [replace(region, case=case) for case in self.space.parted(region.case, any_memory=any_memory)]

    def _rest(self, rows: RegionRows, bound: RegionBound) -> Region | None:
        """Return what is left of a region by its bound; None if nothing is."""
        slack, few = self.cut - bound.value, False
        chains = [self._chains(g, walk, slack) for g, walk in enumerate(bound.walks)]
        listed = [own for own in chains if own is not None]
        if len(listed) == len(chains) and sum(map(len, listed)) <= MOST_LISTED:
            alike = [self._of_ranges(rows, g, own, walk).alike()[0] for g, (own, walk) in enumerate(
                zip(listed, bound.walks, strict=True))]
            few = sum(len(own.costs) for own in alike) <= FEW
            if prod(len(own.costs) for own in alike) <= MOST_TRIED_TOGETHER:
                joined = self._joined(rows.region, alike, slack)
                if joined is not None and not len(joined):
                    return None
        return replace(without(rows.region, bound.walks, slack), few=few, point=bound.point, sharp=bound.sharp,
                       least=bound.value, part_of=None)

    # Chains that are left.

    def _tried(self, region: Region, bound: RegionBound) -> tuple[list[LeftChains], Indices] | None:
        """Return chains of single extents of a region by group, and their combinations that may score below the claim.

        None where there are too many.
        """
        fine: Region | None = region
        while fine is not None:
            rows = self.bounds.made(fine)
            walks = [rows.walk(g, bound.slope, bound.lanes) for g in range(len(self.space.groups))]
            slack = self.cut - bound.base - sum(walk.least for walk in walks)
            if slack <= 0.0:
                return [], np.zeros((0, len(walks)), dtype=np.int64)
            if fine.single:
                break
            fine = finer(without(fine, walks, slack))
        if fine is None:
            return None
        groups = [self._of_extents(rows, g, walk, slack, bound.slope) for g, walk in enumerate(walks)]
        listed = [own for own in groups if own is not None]
        if len(listed) < len(groups):
            return None
        alike = [own.alike() for own in listed]
        joined = self._joined(fine, [own for own, _ in alike], slack)
        if joined is None:
            return None
        chains = [[members[at] for (_, members), at in zip(alike, row, strict=True)] for row in joined]
        if sum(prod(map(len, own)) for own in chains) > MOST_JOINED:
            return None
        every = [np.stack(np.meshgrid(*own, indexing="ij"), axis=-1).reshape(-1, len(own)) for own in chains]
        return listed, np.concatenate([joined[:0], *every])

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
        every = np.stack([own[paths[:, v], :, 0] for v, own in enumerate(region.ranges[g])], axis=1)
        sides, found = len(region.sides), list[LeftChains]()
        for parted in (False, True):
            some = np.arange(len(paths)) if not parted else np.flatnonzero(may_part(self.space, every))
            counts = ChainCounts(self.space, region.case, self.space.groups[g], every[some], parted)
            numbers = np.maximum(base.numbers[some], counts.numbers)
            rise = (numbers - base.numbers[some])[:, :len(slope) - sides] @ slope[:len(slope) - sides]
            kept = base.costs[some] + rise < slack
            some = some[kept]
            found.append(LeftChains(base.costs[some] + rise[kept], numbers[kept], base.lanes[some], every[some],
                                    np.full(len(some), parted)))
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
        passed = [{d: (int(own[v]), int(own[v + 1])) for d, own in enumerate(extents) if own[v] > own[v + 1]}
                  for v in range(len(space.passages))]
        levels, last = space.space.accelerator.levels, len(space.memories) - 1
        choices: list[list[tuple[Loop, ...]]] = [[] for _ in levels]
        for v, (array, m) in enumerate(space.passages):
            if array:
                continue
            inside = {names[d]: step for d, (_, step) in passed[v].items()}
            counts = {names[d]: ceil_div(*both) for d, both in passed[v].items()}
            choices[v] = [tuple(Loop(name, inside[name]) for name in order) for order in (
                [tuple(counts)] if m == last else orders(space.space, counts)) if m == last or kinds[m] == (
                    space.kind(names.index(order[-1])) if order else NO_LOOP.kind)]
            if not choices[v]:
                return
        for v, (array, m) in enumerate(space.passages):
            if array:
                choices[v] = self._spread(m, tuple((d, *both, parted[d]) for d, both in passed[v].items()))
        for chosen in product(*choices):
            yield Mapping(tuple(LevelLoops(level.name, loops, space.kept.get(level.name))
                                for level, loops in zip(levels, chosen, strict=True)))

    def _spread(self, m: int, passed: tuple[tuple[int, int, int, bool], ...]) -> list[tuple[Loop, ...]]:
        """Return the loops over lanes inside a memory, of dimensions whose extents outside and inside are given.

        Last is given of each whether extents between the sides of the array may be any.
        """
        if (m, passed) not in self._spreads:
            space, names = self.space, [group[0] for group in self.space.space.groups]
            laid = (tuple(Loop(names[d], step, along) for axis in "XY" for (d, *_), sides in zip(
                passed, chosen, strict=True) for step, along in sides if along == axis)
                for chosen in self._laid(m, [chain[1:] for chain in passed]))
            # Then it makes no difference along which side of the array lanes lie.
            alike = all(space.even(t, m) for t in space.tensors) and not any(
                parted or d in self._slid for d, _, _, parted in passed)
            self._spreads[m, passed] = list(islice(laid, 1 if alike else None))
        return self._spreads[m, passed]

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


def without(region: Region, walks: list[ChainWalk], slack: float) -> Region:
    """Return a region without ranges through which every chain costs too much by the slope of a bound."""
    return replace(region, ranges=[[own[before + after - walk.least < slack] for own, before, after in zip(
        row, walk.before, walk.after, strict=True)] for row, walk in zip(region.ranges, walks, strict=True)])
