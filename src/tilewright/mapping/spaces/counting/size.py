"""How many mappings a space holds, counted without enumerating them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, comb, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.spaces.counting.chains import ChainCounter, Splits, TooLarge
from tilewright.mapping.spaces.counting.lanes import DEAD, Codes, LaneStates
from tilewright.mapping.spaces.counting.orders import ROOTS, OrderTerm, Patterns, modular_nodes, order_terms, real_nodes
from tilewright.mapping.spaces.rules.arrays import KIND, SPATIAL, SpaceArrays

# Largest tables that a count may build, and most work that makes a count exact; beyond, it is an estimate.
MOST_PAIRS = 20_000_000
MOST_NODES = 65536
MOST_STEPS = 1_000_000_000
MOST_WORK = 60_000_000
CHUNK = 1 << 20

ROUNDING = 2.0**-40
"""Relative error of a count in floating point: terms are positive, and some thousand roundings follow each other."""

# Whole numbers modulo a prime, or real numbers.
Numbers = NDArray[Any]


@dataclass(frozen=True)
class SpaceSize:
    """How many mappings a space holds.

    Counted are the distinct encodings whose loops fit the arrays and the constraints: steps, and orders of the loops
    that run more than once. Whether tiles fit the memories is not looked at. Where ``exact`` is False, ``mappings`` is
    an unbiased estimate and ``error`` its relative standard error; or a count in floating point, and ``error`` (below
    1e-11) a bound on its rounding.
    """

    mappings: int
    exact: bool
    error: float = 0.0

    def __str__(self) -> str:
        if self.mappings < 10**9:
            number = f"{self.mappings:,}"
        else:
            number = f"{self.mappings:.3g}" if self.mappings < 10**300 else f"10^{len(str(self.mappings)) - 1}"
        if self.exact:
            return number
        if not self.mappings:
            return "none found"
        return f"about {number} +- {100 * self.error:.1g} %" if self.error >= 5e-4 else f"about {number}"


class Links(NamedTuple):
    """How the states before a dimension go on: pairs ``(n)`` of a row and a split, sorted by row.

    ``rows`` ``(r)`` are the states' codes, ``starts`` ``(r)`` where each begins among the pairs (all have some),
    ``targets`` the row of the next dimension; at the last dimension only legal ones are kept, and lead nowhere.
    """

    rows: Codes
    starts: NDArray[np.intp]
    row: NDArray[np.int32]
    split: NDArray[np.int32]
    target: NDArray[np.int32]


class Nodes(NamedTuple):
    """A sum of products instead of the numbers of orders.

    ``weights`` ``(x)`` are of the products. ``factors`` have by dimension and memory ``(x_t, 2)`` what it counts there
    where it does not loop and where it does: products take one row of each memory, those of the last memory change
    fastest. ``prime`` 0 stands for real numbers.
    """

    weights: Numbers
    factors: list[list[Numbers]]
    prime: int

    def of(self, place: int, nodes: NDArray[np.intp]) -> Numbers:
        """Return ``(n, m)`` the factors of products for the dimension at ``place``, by the mask of where it loops."""
        found, factors = np.ones((len(nodes), 1)), self.factors[place]
        for one, rows in zip(factors, np.unravel_index(nodes, [len(one) for one in factors]), strict=True):
            found = (one[rows][:, :, None] * found[:, None, :]).reshape(len(nodes), -1)
        return found


class SpaceTables:
    """What counts and draws the mappings of a space.

    ``patterns`` are those of the loop orders at every memory (`orders.patterns_of`); ``given`` are splits of
    dimensions that need not be counted.

    Raises `TooLarge` if they would not fit.
    """

    def __init__(self, space: SpaceArrays, patterns: list[Patterns], given: Mapping[int, Splits] | None = None) -> None:
        self.space, self.patterns = space, patterns
        try:
            self.lanes = LaneStates(space.slots)
        except OverflowError:
            raise TooLarge from None
        self.memories = [s for s in range(len(space.slots)) if s not in self.lanes.sides]
        active = np.flatnonzero(space.sizes > 1).tolist()
        given = given or {}
        self.counters = {d: ChainCounter(space, self.lanes, d) for d in active if d not in given}
        splits = {**given, **{d: counter.splits() for d, counter in self.counters.items()}}
        # The two dimensions that split in most ways stand where their pairs are fewest: first and last.
        falling = sorted(active, key=lambda d: -len(splits[d].codes))
        self.dims = [*falling[:1], *falling[2:], *falling[1:2]]
        self.splits: list[Splits] = [splits[d] for d in self.dims]
        self.whole = not given and all(counter.kind is np.int64 for counter in self.counters.values())
        self.links = self._links()

    @property
    def empty(self) -> bool:
        """Whether there is no mapping."""
        rest = self.space.sizes == 1
        if (self.space.bands.least[:, rest] > 1).any() or (self.space.bands.tile_most < 1).any():
            return True
        return any(len(link.row) == 0 for link in self.links) if self.dims else not self.lanes.legal(
            self.lanes.first).all()

    def _links(self) -> list[Links]:
        rows, links = self.lanes.first, []
        for place, split in enumerate(self.splits):
            if len(rows) * len(split.codes) > MOST_PAIRS:
                raise TooLarge
            last = place == len(self.splits) - 1
            row, chosen, codes = self._pairs(rows, split.codes, last)
            after = np.zeros(0, dtype=np.int64) if last else np.unique(codes)
            target = np.zeros_like(row) if last else np.searchsorted(after, codes).astype(np.int32)
            links.append(Links(rows, np.zeros(0, dtype=np.intp), row, chosen, target))
            rows = after
        return _pruned(links)

    def _pairs(self, rows: Codes, moves: Codes, last: bool) -> tuple[NDArray[np.int32], NDArray[np.int32], Codes]:
        """Return all pairs that fit (with ``last``: and use the lanes that they must), and their codes."""
        parts = []
        height = max(1, CHUNK // max(1, len(moves)))
        for start in range(0, max(1, len(rows)), height):
            codes = self.lanes.times(rows[start:start + height], moves)
            row, move = np.nonzero(codes != DEAD)
            found = codes[row, move]
            if last:
                good = self.lanes.legal(found)
                row, move, found = row[good], move[good], found[good]
            parts.append(((row + start).astype(np.int32), move.astype(np.int32), found))
        rows_, moves_, codes_ = zip(*parts, strict=True)
        return np.concatenate(rows_), np.concatenate(moves_), np.concatenate(codes_)

    @cached_property
    def terms(self) -> list[list[OrderTerm]]:
        """The terms of the number of orders at every memory, over all dimensions that count."""
        found = []
        for t, patterns in enumerate(self.patterns):
            loops = [split.ways[:, np.arange(split.ways.shape[1]) >> t & 1 == 1].any() for split in self.splits]
            dims = tuple(d for d, some in zip(self.dims, loops, strict=True) if some)
            here = []
            for term in order_terms(dims, patterns):
                at = {d: i for i, d in enumerate(dims)}
                off = tuple(term.off[at[d]] if d in at else 1 for d in self.dims)
                on = tuple(term.on[at[d]] if d in at else 1 for d in self.dims)
                free = frozenset(self.dims.index(dims[i]) for i in term.free)
                here.append(OrderTerm(off, on, free if len(free) + term.shift > 1 else frozenset(), term.shift))
            found.append(here)
        return found

    @cached_property
    def degree(self) -> int:
        """Nodes that the quadrature of a memory's orders needs."""
        return max((_degree(term) for terms in self.terms for term in terms if term.free), default=1)

    def nodes(self, prime: int = 0) -> Nodes:
        """Return the sum of products that stands for the numbers of orders, modulo ``prime`` if there is one."""
        slots: list[list[Any]] = []
        for terms in self.terms:
            slots.append([])
            for term in terms:
                found = modular_nodes(self.degree, prime) if prime else real_nodes(_degree(term))
                for x, weight in zip(*found, strict=True) if term.free else ((1, 1),):
                    on = tuple(x * value if i in term.free else value for i, value in enumerate(term.on))
                    slots[-1].append((_modulo(weight * x**term.shift, prime), term.off, on))
        if prod(map(len, slots)) > MOST_NODES or self.work > MOST_STEPS:
            raise TooLarge
        kind: Any = np.int64 if prime else np.float64
        total: Numbers = np.ones(1, dtype=kind)
        for some in slots:
            total = _modulo(np.outer(total, np.array([node[0] for node in some], dtype=kind)).reshape(-1), prime)
        factors = [[np.array([(node[1][i], node[2][i]) for node in some], dtype=kind) for some in slots]
                   for i in range(len(self.dims))]
        return Nodes(total, factors, prime)

    @staticmethod
    def weigh(place: int, ways: Numbers, nodes: Nodes) -> Numbers:
        """Return ``(n, x)``: ``ways`` ``(n, m)`` of the dimension at ``place``, weighed by every node."""
        found: Numbers = _modulo(ways, nodes.prime)[:, :, None]
        for factors in nodes.factors[place]:  # the lowest bit of masks is the first memory's
            rested, looped = (found[:, bit::2, :, None] * factors[:, bit] for bit in range(2))
            found = _modulo(_modulo(rested, nodes.prime) + _modulo(looped, nodes.prime), nodes.prime)
            found = found.reshape(*found.shape[:2], -1)
        return found[:, 0]

    def futures(self, nodes: Nodes) -> list[Numbers]:
        """Return for every dimension ``(r, x)``: the ways to go on from each state before it, by node."""
        if not self.links:
            return []
        last = self.links[-1]
        ways = np.add.reduceat(self.splits[-1].ways[last.split], last.starts, axis=0)
        found = [self.weigh(len(self.dims) - 1, ways, nodes)]
        for place in range(len(self.dims) - 2, -1, -1):
            found.append(self._step(place, found[-1], nodes))
        return found[::-1]

    def _step(self, place: int, after: Numbers, nodes: Nodes) -> Numbers:
        links, weighed = self.links[place], self.weigh(place, self.splits[place].ways, nodes)
        count = len(nodes.weights)
        found = np.empty((len(links.rows), count), dtype=after.dtype)
        width = max(1, CHUNK // len(links.row))
        for start in range(0, count, width):
            part = slice(start, start + width)
            ahead, here = np.ascontiguousarray(after[:, part]), np.ascontiguousarray(weighed[:, part])
            terms = here[links.split]
            terms *= ahead[links.target]
            terms = _modulo(terms, nodes.prime)
            found[:, part] = _modulo(np.add.reduceat(terms, links.starts, axis=0), nodes.prime)
        return found

    @property
    def work(self) -> int:
        """Multiplications of one pass."""
        return sum(len(link.row) for link in self.links[:-1]) * prod(
            sum(self.degree if term.free else 1 for term in terms) for terms in self.terms)


def _degree(term: OrderTerm) -> int:
    """Return the nodes that the quadrature of a term needs."""
    return max(1, ceil((len(term.free) + term.shift + 1) / 2))


def _pruned(links: list[Links]) -> list[Links]:
    """Return links without rows that lead nowhere, so that every row has pairs, and where these begin."""
    found: list[Links] = []
    rank: NDArray[np.int32] | None = None
    for link in reversed(links):
        if rank is not None:
            target = rank[link.target]
            good = target >= 0
            link = Links(link.rows, link.starts, link.row[good], link.split[good], target[good])  # noqa: PLW2901
        present, starts = np.unique(link.row, return_index=True)
        rank = np.full(len(link.rows), -1, dtype=np.int32)
        rank[present] = np.arange(len(present))
        found.append(Links(link.rows[present], starts, rank[link.row], link.split, link.target))
    return found[::-1]


def _modulo(values: Any, prime: int) -> Any:
    # numpy divides whole arrays by one number far faster than it takes remainders.
    return values - values // prime * prime if prime else values


def space_size(space: SpaceArrays, patterns: list[Patterns]) -> SpaceSize:
    """Count the mappings of a space.

    Raises `TooLarge` if that takes tables that do not fit.
    """
    return tables_size(SpaceTables(space, patterns))


def in_time_alone(space: SpaceArrays) -> int:
    """Return how many ways there are to split every dimension among memories alone: far fewer than mappings.

    In 1 up to ``n``, ``m - 1`` falling steps between ``m`` memories can be chosen in C(n + m - 2, m - 1) ways; if each
    divides the last, every prime of ``n`` that occurs ``e`` times is shared out in C(e + m - 1, m - 1). Returned is 0
    where there are more rules.
    """
    if space.ruled or (space.sizes > 1).sum() == 0:
        return 0
    memories = space.free[space.slots[:, KIND] != SPATIAL].astype(bool).sum(axis=0).tolist()
    return prod(
        prod(comb(times + m - 1, m - 1) for times in _exponents(n)) if space.perfect else comb(n + m - 2, m - 1)
        for n, m in zip(space.sizes.tolist(), memories, strict=True) if n > 1)


def _exponents(number: int) -> list[int]:
    """Return how often each prime divides a number."""
    found, prime = [], 2
    while number > 1:
        times = 0
        while number % prime == 0:
            number, times = number // prime, times + 1
        found += [times] if times else []
        prime = number if prime * prime > number else prime + 1
    return found


def tables_size(tables: SpaceTables) -> SpaceSize:
    """Count the mappings that tables stand for."""
    if tables.empty:
        return SpaceSize(0, exact=True)
    if not tables.dims:
        return SpaceSize(1, exact=True)
    nodes = tables.nodes()
    total = float(tables.futures(nodes)[0][0] @ nodes.weights)
    doubt = total * ROUNDING + 0.5
    residues: list[int] = []
    primes: list[int] = []
    candidates = [prime for prime, _ in ROOTS.get(tables.degree, ())]
    while prod(primes) < 2 * doubt + 1 and doubt > 0.75:
        if not tables.whole or len(primes) == len(candidates) or tables.work * (len(primes) + 1) > MOST_WORK:
            return SpaceSize(round(total), exact=False, error=ROUNDING)
        prime = candidates[len(primes)]
        nodes = tables.nodes(prime)
        values = tables.futures(nodes)[0][0].astype(np.int64)
        residues.append(sum((values * nodes.weights % prime).tolist()) % prime)
        primes.append(prime)
    return SpaceSize(_nearest(round(total), residues, primes), exact=True)


def _nearest(value: int, residues: list[int], primes: list[int]) -> int:
    """Return the number nearest ``value`` that leaves these residues."""
    modulus = prod(primes)
    return value if modulus == 1 else (
        value + (combined(residues, primes) - value + modulus // 2) % modulus - modulus // 2)


def combined(residues: list[int], primes: list[int]) -> int:
    """Return the least number that leaves these residues (Chinese remainder theorem)."""
    found, modulus = 0, 1
    for residue, prime in zip(residues, primes, strict=True):
        found += modulus * ((residue - found) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    return found
