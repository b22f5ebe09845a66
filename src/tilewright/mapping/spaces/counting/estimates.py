"""The size of spaces whose chains are too many to count: from chains drawn at random, each weighed by its odds.

What is drawn of one dimension does not depend on the others, and the size is linear in each: so the size that drawn
chains come to is unbiased, and runs that differ tell its error.
"""

from functools import cached_property
from itertools import product
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.mapping.spaces.counting.chains import ChainCounter, Splits, TooLarge, all_divisors, count_bounds
from tilewright.mapping.spaces.counting.lanes import DEAD, LaneStates
from tilewright.mapping.spaces.counting.orders import Patterns
from tilewright.mapping.spaces.counting.size import SpaceSize, SpaceTables
from tilewright.mapping.spaces.rules.arrays import EXACT, SpaceArrays

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

RUNS = 8
DRAWS = 1 << 17
"""Chains drawn of one dimension in one run, of all kinds of sets of slots where it may loop; and of each at least."""
LEAST_DRAWS = 512
FEW_COUNTS = 4096
"""Most counts of a slot without remainders that are drawn blindly, those that leave one weighing nothing."""


class Walk(NamedTuple):
    """Chains on their way outward: ``(n)`` extents reached, weights (0: given up), states of the lanes."""

    extents: Ints
    weights: Reals
    codes: Ints


def estimated_size(space: SpaceArrays, patterns: list[Patterns]) -> SpaceSize:
    """Return an unbiased estimate of how many mappings a space has, with its error.

    Raises `TooLarge` if it is not the chains of single dimensions that are too many.
    """
    try:
        lanes = LaneStates(space.slots)
    except OverflowError:
        raise TooLarge from None
    rng, counted, drawn = np.random.default_rng(0), {}, []
    for d in np.flatnonzero(space.sizes > 1).tolist():
        try:
            counted[d] = ChainCounter(space, lanes, d).splits()
        except TooLarge:
            drawn.append(d)
    found, samplers = [], {d: ChainSampler(space, lanes, d) for d in drawn}
    for _ in range(RUNS):
        splits = {d: sampler.splits(rng) for d, sampler in samplers.items()}
        tables = SpaceTables(space, patterns, counted | splits)
        nodes = None if tables.empty else tables.nodes()
        found.append(0.0 if nodes is None else float(tables.futures(nodes)[0][0] @ nodes.weights))
    mean = float(np.mean(found))
    error = float(np.std(np.array(found) / mean, ddof=1)) / sqrt(RUNS) if mean else 0.0
    return SpaceSize(round(mean), exact=False, error=error)


class ChainSampler:
    """Draws chains of dimension ``d`` of a space from inside to outside."""

    def __init__(self, space: SpaceArrays, lanes: LaneStates, d: int) -> None:
        self.space, self.lanes, self.d = space, lanes, d
        self.size, self.slots = int(space.sizes[d]), len(space.slots)
        self.memories = [s for s in range(self.slots) if s not in lanes.sides]
        self.bounds = [count_bounds(space, s, d) for s in range(self.slots)]
        self.equal = [s > 0 and self._equal(s) for s in range(self.slots)]

    @cached_property
    def _patterns(self) -> list[tuple[tuple[bool, ...], Ints]]:
        """Sets of slots that loop, one of those with as many chains, and the masks of all of these."""
        able = [((True,) if least > 1 else (False,)) if least > 1 or most < 2 else (False, True)
                for least, most in self.bounds]
        found: dict[tuple[int, ...], tuple[tuple[bool, ...], list[int]]] = {}
        for loops in product(*able):
            if any(loops):
                _, masks = found.setdefault(self._alike(loops), (loops, []))
                masks.append(sum(1 << t for t, s in enumerate(self.memories) if loops[s]))
        return [(loops, np.array(masks)) for loops, masks in found.values()]

    def splits(self, rng: Generator) -> Splits:
        """Return estimates of how often the dimension splits in which way."""
        count = max(LEAST_DRAWS, DRAWS // max(1, len(self._patterns)))
        codes, masks, weights = [], [], []
        for loops, alike in self._patterns:
            walk = self._walk(rng, loops, count)
            good = walk.weights > 0
            known, place = np.unique(walk.codes[good], return_inverse=True)
            found = np.bincount(place, walk.weights[good], len(known)) / count
            codes.append(np.tile(known, len(alike)))
            weights.append(np.tile(found, len(alike)))
            masks.append(np.repeat(alike, len(known)))
        known, place = np.unique(np.concatenate([self.lanes.first[:0], *codes]), return_inverse=True)
        ways = np.zeros((len(known), 1 << len(self.memories)))
        if codes:
            np.add.at(ways, (place, np.concatenate(masks)), np.concatenate(weights))
        return Splits(known, ways)

    def _alike(self, loops: tuple[bool, ...]) -> tuple[int, ...]:
        """Return what sets of slots with as many chains have in common: how many loop in each run of equal memories."""
        found = [0]
        for s, some in enumerate(loops):
            if s and not self.equal[s]:
                found.append(0)
            found[-1] += some
        return tuple(found)

    def _equal(self, s: int) -> bool:
        """Whether loops at slot ``s`` may as well be at the one outside it: both memories whose rules are the same."""
        both, bands = [s - 1, s], self.space.bands
        free = bands.tile_least[both, self.d].max() <= 1 and bands.tile_most[both, self.d].min() >= self.size
        return bool(free) and {*both} <= {*self.memories} and self.bounds[s - 1] == self.bounds[s] and (
            self.space.slots[s - 1, EXACT] == self.space.slots[s, EXACT])

    def _walk(self, rng: Generator, loops: tuple[bool, ...], count: int) -> Walk:
        """Return chains that loop at exactly these slots."""
        walk = Walk(np.ones(count, dtype=np.int64), np.ones(count), np.zeros(count, dtype=np.int64))
        outermost = loops.index(True)
        for s in range(self.slots - 1, -1, -1):
            if loops[s]:
                # Extents further out are chosen freely at the memories between; the outermost reaches the size.
                later = sum(loops[other] and other in self.memories for other in range(outermost + 1, s))
                outside, odds = self._last(s, walk) if s == outermost else (
                    self._counted(rng, s, walk) if self.space.whole else self._loose(rng, s, walk, later))
                walk = self._moved(s, walk, outside, odds)
            if s in self.memories:
                bands = self.space.bands
                fits = (walk.extents >= bands.tile_least[s, self.d]) & (walk.extents <= bands.tile_most[s, self.d])
                walk = walk._replace(weights=walk.weights * fits)
        return walk

    def _moved(self, s: int, walk: Walk, outside: Ints, weights: Reals) -> Walk:
        codes = walk.codes
        if s in self.lanes.sides:
            counts = -(-outside // walk.extents)
            more = self.lanes.alone(s, counts)
            alive = (more != DEAD) & (weights > 0)
            codes = np.where(alive, self.lanes.paired(np.where(alive, codes, 0), np.where(alive, more, 0)), DEAD)
            weights = weights * (codes != DEAD)
            codes = np.where(codes == DEAD, 0, codes)
        return Walk(outside, walk.weights * weights, codes)

    def _last(self, s: int, walk: Walk) -> tuple[Ints, Reals]:
        """Return the size as the extents outside slot ``s``, and 1 where its count may be what that takes."""
        least, most = self.bounds[s]
        left = -(-self.size // walk.extents)
        good = (left >= max(least, 2)) & (left <= most)
        return np.full(len(left), self.size), good.astype(np.float64)

    def _counted(self, rng: Generator, s: int, walk: Walk) -> tuple[Ints, Reals]:
        """Return whole multiples as the extents outside slot ``s``, below the size, and 1 over their odds."""
        least, most = self.bounds[s]
        left = -(-self.size // walk.extents)
        low, high = max(least, 2), np.minimum(most, left - 1)
        good = (high >= low) & (walk.weights > 0)
        high = np.where(good, high, low)
        exact = bool(self.space.slots[s, EXACT])
        if exact and most > FEW_COUNTS:
            counts, weights = _divisors(rng, np.where(good, left, 1), low, high)
        elif exact:
            counts = rng.integers(low, high + 1)
            weights = np.where(left % counts == 0, high - low + 1.0, 0.0)
        else:
            # About as many chains go on from each, by ratio: odds fall with the count.
            span = np.log((high + 1) / low)
            counts = np.minimum((low * np.exp(span * rng.random(len(left)))).astype(np.int64), high)
            weights = span / np.log1p(1 / counts)
        return np.where(good, walk.extents * counts, walk.extents), weights * good

    def _loose(self, rng: Generator, s: int, walk: Walk, later: int) -> tuple[Ints, Reals]:
        """Return extents outside slot ``s``, below the size, and 1 over their odds; ``later`` more are to be chosen."""
        least, most = self.bounds[s]
        bottom = walk.extents * (max(least, 2) - 1)
        top = np.minimum(walk.extents * min(most, self.size), self.size - 1)
        good = (top > bottom) & (walk.weights > 0)
        room = np.where(good, top - bottom, 1)
        power = later + 1
        above = np.minimum((room * rng.random(len(room))**(1 / power)).astype(np.int64), room - 1)
        odds = ((above + 1) / room)**power - (above / room)**power
        return np.where(good, top - above, walk.extents), good / odds


def _divisors(rng: Generator, numbers: Ints, low: int, high: Ints) -> tuple[Ints, Reals]:
    """Return a divisor of each number from ``low`` to ``high``, all alike, and how many there are (0: given is 2)."""
    counts, weights = np.full(len(numbers), 2, dtype=np.int64), np.zeros(len(numbers))
    known = all_divisors(numbers)
    order = np.argsort(numbers, kind="stable")
    different, starts = np.unique(numbers[order], return_index=True)
    for number, draws in zip(different.tolist(), np.split(order, starts[1:]), strict=True):
        divisors = known[number]
        first = int(np.searchsorted(divisors, low))
        some = np.searchsorted(divisors, high[draws], side="right") - first
        able = some > 0
        chosen = first + (rng.random(len(draws)) * some).astype(np.int64)
        counts[draws[able]], weights[draws] = divisors[chosen[able]], np.maximum(some, 0)
    return counts, weights
