"""How regions of a space fall into parts (for `ragged`): where that has raised their bounds most so far."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.reference.proof_space import EQUAL, GivenUp
from tilewright.cost.reference.ragged_bounds import RegionBound, RegionBounds
from tilewright.cost.reference.ragged_regions import Key, PartOf, Region, finer

LITTLE = 1e-3
"""A part of what is missing to the claim that counts as gained at least, however little it is."""


class WayToPart(NamedTuple):
    """A way to part a region: by what key, how much that differs there, and where it is parted."""

    key: Key
    spread: float
    middle: float = 0.0


@dataclass(eq=False)
class RegionParts:
    """The parts of a proof's regions, and how much the bounds of parts have risen by each key."""

    bounds: RegionBounds

    def __post_init__(self) -> None:
        self.space = self.bounds.space
        self._risen = dict[tuple[Key | str, int], tuple[float, int]]()
        """By key, and by kind of keys, and which part it is: how much bounds rose over what differed, and how often."""

    def learn(self, region: Region, rise: float) -> None:
        """Take note of how much higher than the bound of what it is a part of that of a region is."""
        if region.part_of is not None:
            key, part, spread = region.part_of
            for name in ((key, part), (key[0], part)):
                risen, count = self._risen.get(name, (0.0, 0))
                self._risen[name] = risen + max(rise, 0.0) / spread, count + 1

    def of(self, region: Region, bound: RegionBound, cases: list[Region], slack: float) -> list[Region]:
        """Return what a region falls into: by what runs innermost, full sides, lanes or extents, or narrower ranges."""
        if cases:
            return cases
        for way in sorted([*self._halves(bound), *self._full(region, bound)], key=lambda way: self._growth(way, slack)):
            parts = self._by(region, way)
            if parts:
                return [replace(part, part_of=PartOf(way.key, k, way.spread)) for k, part in enumerate(parts)]
        fine = finer(region)
        found = [fine] if fine is not None else self._middle(region)
        if not found:
            raise GivenUp("a region is left of too many mappings")
        return found

    def _growth(self, way: WayToPart, slack: float) -> float:
        """Return how fast a tree of regions would grow that is always parted so.

        That is the logarithm of its size, where parts gain what they did in the mean: the rate t at which the sum of
        exp(-t x gain) over all parts is one, gains as shares of what is missing to the claim.
        """
        gains = []
        for part in range(2):
            risen = self._risen.get((way.key, part), self._risen.get((way.key[0], part)))
            if risen is None:
                first = {"side": 0.0, "lanes": 0.1 / way.spread, "extent": 1.0 / way.spread}
                return first[way.key[0]]
            gains.append(min(max(risen[0] / risen[1] * way.spread / slack, LITTLE), 1.0))
        each = np.array(gains)
        rate = log(2) / each.max()
        for _ in range(12):
            grown = np.exp(-rate * each)
            step = log(grown.sum()) * grown.sum() / (each @ grown)
            rate += step
            if step < 1e-3 * rate:
                break
        return float(rate)

    def _full(self, region: Region, bound: RegionBound) -> list[WayToPart]:
        """Return sides on which there are about as many lanes as there may be, and where that is not told yet.

        Lanes of dimensions along a side are whole numbers, and so is their product, which each of them divides.
        """
        found = []
        for (m, k), (most, full) in region.sides.items():
            values = self._values(m, k, most)
            lanes = bound.point[self.space.number["side", m, k]]
            if not full and len(values) > 1 and lanes > log(values[-2]) + 1e-6:
                found.append(WayToPart(("side", m, k, 0), 1.0))
        return found

    def _values(self, m: int, k: int, most: int) -> list[int]:
        return [value for value in self._products[m, k] if value <= most]

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

    @staticmethod
    def _halves(bound: RegionBound) -> list[WayToPart]:
        """Return lanes and extents in which chains that make up a bound differ."""
        found = []
        for chains, shares in zip(bound.chains, bound.shares, strict=True):
            for key in chains[0].made:
                values = np.array([chain.made[key] for chain in chains])
                mean = float(shares @ values)
                spread = float(shares @ np.abs(values - mean))
                if spread > 1e-6:
                    found.append(WayToPart(key, spread, mean))
        return found

    def _by(self, region: Region, way: WayToPart) -> list[Region]:
        """Return two parts of a region; none where there is nothing in one of them."""
        what, g, v, k = way.key
        if what == "side":
            values = self._values(g, v, region.sides[g, v][0])
            return [replace(region, sides={**region.sides, (g, v): told})
                    for told in ((values[-1], True), (values[-2], False))]
        last = int(exp(way.middle) * (1 + EQUAL))
        if what == "extent":
            return self._parted(region, g, v, region.ranges[g][v][:, k, 1] > exp(way.middle) * (1 + EQUAL))
        d, m = self.space.groups[g][k], self.space.passages[v][1]
        few, many = region.lanes.get((d, m), (1, min(self.space.array(m).instances, self.space.sizes[d])))
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

    def _middle(self, region: Region) -> list[Region]:
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
