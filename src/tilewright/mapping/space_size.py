"""How many mappings a space holds, counted without enumerating them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb, factorial, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.space_arrays import (
    BLOCK,
    BLOCKS,
    FIXED,
    KIND,
    LIMIT,
    MODE,
    ORDER_COUNT,
    ORDER_START,
    PARTNER,
    PARTNER_BLOCK,
    SPATIAL,
    SpaceArrays,
    divisors_of,
)

# Largest tables that an exact count may build; beyond, an upper bound is given.
MOST_LANES = 4000
MOST_STATES = 4_000_000
MOST_PAIRS = 200_000
MOST_CHAINS = 1_000_000
MOST_WORK = 200_000_000

# How often a dimension splits in a given way: (lanes at each side, mask of temporal slots where it loops) -> ways.
Splits: TypeAlias = Counter[tuple[tuple[int, ...], int]]
# Ways to split a dimension into a number of non-trivial loops.
Ways: TypeAlias = Callable[[int], int]
# Products of lanes, numbered; the temporal slots; how many values the order bookkeeping of each takes.
Tables: TypeAlias = tuple[dict[tuple[int, ...], int], list[int], tuple[int, ...]]


@dataclass(frozen=True)
class SpaceSize:
    """How many mappings a space holds.

    Counted are the distinct encodings whose loops fit the arrays: steps, and orders of the loops that run more than
    once. Whether tiles fit the memories is not looked at. ``exact`` is False where ``mappings`` is only an upper bound
    (the arrays' limits left aside), because an exact count would need too much memory.
    """

    mappings: int
    exact: bool

    def __str__(self) -> str:
        number = f"{self.mappings:,}" if self.mappings < 10**9 else f"{self.mappings:.3g}"
        return number if self.exact else f"at most {number}"


class _TooLarge(Exception):
    """An exact count would need too much memory."""


def space_size(sp: SpaceArrays) -> SpaceSize:
    """Count the mappings of a space."""
    try:
        return SpaceSize(_count(sp, bounded=True), exact=True)
    except _TooLarge:
        return SpaceSize(_count(sp, bounded=False), exact=False)


def _count(sp: SpaceArrays, bounded: bool) -> int:
    sides = [s for s in range(len(sp.slots)) if sp.slots[s, KIND] == SPATIAL] if bounded else []
    splits = [_splits(sp, d, sides, bounded) for d in range(len(sp.sizes))]
    lanes = _reachable(sp, sides, splits)
    slots = [s for s in range(len(sp.slots)) if sp.slots[s, KIND] != SPATIAL]
    shape = tuple(_order_states(sp, s) for s in slots)
    if len(lanes) * prod(shape) > MOST_STATES:
        raise _TooLarge
    work = len(lanes) * prod(shape) * sum(len(split) for split in splits)
    primes = _primes(1 + _bits_needed(sp, splits, slots) // 30)
    if bounded and work * len(primes) > MOST_WORK:
        raise _TooLarge
    weights = _order_weights(sp, slots, shape)
    residues = [_count_modulo(sp, splits, (lanes, slots, shape), weights, prime) for prime in primes]
    return _chinese_remainder(residues, primes)


def _splits(sp: SpaceArrays, d: int, sides: list[int], bounded: bool) -> Splits:
    size = int(sp.sizes[d])
    if size == 1:
        return Counter({((1,) * len(sides), 0): 1})
    if sp.perfect:
        return _perfect_splits(sp, d, sides, bounded)
    if bounded:
        return _chains(sp, d, sides)
    return _ordered_splits(sp, d, lambda count: comb(size - 2, count - 1))


def _perfect_splits(sp: SpaceArrays, d: int, sides: list[int], bounded: bool) -> Splits:
    size = int(sp.sizes[d])
    if not bounded:
        return _ordered_splits(sp, d, lambda count: ordered_factorisations(size, count))
    temporal = [s for s in range(len(sp.slots)) if sp.slots[s, KIND] != SPATIAL and sp.free[s, d]]
    choices = [[f for f in divisors_of(size) if _alone(sp, s, f)] if sp.free[s, d] else [1] for s in sides]
    found: Splits = Counter()
    for lanes in product(*choices):
        rest, spare = divmod(size, prod(lanes))
        if spare:
            continue
        for mask, slots in _subsets(temporal):
            ways = ordered_factorisations(rest, slots)
            if ways:
                found[lanes, mask] += ways
    return found


def _ordered_splits(sp: SpaceArrays, d: int, ways_in: Ways) -> Splits:
    """Return the splits without the lanes' sizes; ``ways_in(n)`` splits the dimension into n non-trivial loops."""
    temporal = [s for s in range(len(sp.slots)) if sp.slots[s, KIND] != SPATIAL and sp.free[s, d]]
    spatial = sum(int(sp.free[s, d]) for s in range(len(sp.slots)) if sp.slots[s, KIND] == SPATIAL)
    found: Splits = Counter()
    for mask, slots in _subsets(temporal):
        ways = sum(comb(spatial, extra) * ways_in(slots + extra) for extra in range(spatial + 1) if slots + extra)
        if ways:
            found[(), mask] += ways
    return found


def _chains(sp: SpaceArrays, d: int, sides: list[int]) -> Splits:
    """Count the step chains of a dimension whose steps need not divide, slot by slot from outside."""
    states: Counter[tuple[int, tuple[int, ...], int]] = Counter({(int(sp.sizes[d]), (1,) * len(sides), 0): 1})
    last, looked_at = len(sp.slots) - 1, 0
    for s in range(last + 1):
        after: Counter[tuple[int, tuple[int, ...], int]] = Counter()
        for (extent, lanes, mask), ways in states.items():
            steps = [extent] if s < last or extent == 1 else []
            if sp.free[s, d]:
                steps += [1] if s == last and extent > 1 else range(1, extent) if s < last else []
            looked_at += len(steps)
            if looked_at > MOST_CHAINS:
                raise _TooLarge
            for step in steps:
                count = -(-extent // step)
                if sp.slots[s, KIND] != SPATIAL:
                    after[step, lanes, mask | (1 << s if count > 1 else 0)] += ways
                elif _alone(sp, s, count):
                    at = sides.index(s)
                    after[step, (*lanes[:at], count, *lanes[at + 1:]), mask] += ways
        states = after
    found: Splits = Counter()
    for (_, lanes, mask), ways in states.items():
        found[lanes, mask] += ways
    return found


def _subsets(slots: list[int]) -> list[tuple[int, int]]:
    """Return every subset of ``slots`` as a bit mask, with its size."""
    masks = [sum(1 << s for s, taken in zip(slots, bits, strict=True) if taken)
             for bits in product((False, True), repeat=len(slots))]
    return [(mask, mask.bit_count()) for mask in masks]


@lru_cache(maxsize=4096)
def ordered_factorisations(number: int, count: int) -> int:
    """Return in how many ways ``number`` is an ordered product of exactly ``count`` factors above 1."""
    exponents = list(_exponents(number).values())
    return sum((-1) ** (count - i) * comb(count, i) * prod(comb(e + i - 1, e) for e in exponents)
               for i in range(count + 1))


def _exponents(number: int) -> Counter[int]:
    found: Counter[int] = Counter()
    factor = 2
    while factor * factor <= number:
        while number % factor == 0:
            found[factor] += 1
            number //= factor
        factor += 1
    if number > 1:
        found[number] += 1
    return found


def _alone(sp: SpaceArrays, s: int, count: int) -> bool:
    """Whether ``count`` lanes fit side ``s`` when the other side has one."""
    return _fits(sp, {s: count})


def _fits(sp: SpaceArrays, lanes: dict[int, int]) -> bool:
    """Whether the products of lanes by slot fit the arrays."""
    for s, used in lanes.items():
        row = sp.slots[s]
        other = lanes.get(int(row[PARTNER]), 1)
        if row[MODE] == FIXED:
            legal = used <= row[LIMIT]
        elif row[MODE] == BLOCKS:
            legal = -(-used // int(row[BLOCK])) * -(-other // int(row[PARTNER_BLOCK])) <= row[LIMIT]
        else:
            legal = used * other <= row[LIMIT]
        if not legal:
            return False
    return True


def _reachable(sp: SpaceArrays, sides: list[int], splits: list[Splits]) -> dict[tuple[int, ...], int]:
    """Return the products of lanes that whole mappings reach and that fit, numbered."""
    known = {(1,) * len(sides)}
    for split in splits:
        steps = {lanes for lanes, _ in split}
        if len(known) * len(steps) > MOST_PAIRS:
            raise _TooLarge
        grown = {tuple(a * b for a, b in zip(have, more, strict=True)) for have in known for more in steps}
        known = {lanes for lanes in grown if _fits(sp, dict(zip(sides, lanes, strict=True)))} | known
        if len(known) > MOST_LANES:
            raise _TooLarge
    return {lanes: index for index, lanes in enumerate(sorted(known))}


def _order_states(sp: SpaceArrays, s: int) -> int:
    """Return how many values the order bookkeeping of a temporal slot takes."""
    rows = int(sp.slots[s, ORDER_COUNT])
    if rows == 1:
        return 1
    looping = int(np.sum((sp.sizes > 1) & (sp.free[s] != 0)))
    return 1 << len(sp.sizes) if rows > 1 else looping + 1


def _order_weights(sp: SpaceArrays, slots: list[int], shape: tuple[int, ...]) -> list[list[int]]:
    """Return for each temporal slot and value of its bookkeeping the number of distinct orders."""
    weights = []
    for s, states in zip(slots, shape, strict=True):
        rows = int(sp.slots[s, ORDER_COUNT])
        if rows > 1:
            start = int(sp.slots[s, ORDER_START])
            table = sp.orders[start:start + rows]
            weights.append([len({_induced(row, mask) for row in table}) for mask in range(states)])
        else:
            weights.append([factorial(k) if rows == 0 else 1 for k in range(states)])
    return weights


def _induced(row: NDArray[np.int8], mask: int) -> tuple[int, ...]:
    return tuple(sorted((d for d in range(len(row)) if mask >> d & 1), key=lambda d: int(row[d])))


def _bits_needed(sp: SpaceArrays, splits: list[Splits], slots: list[int]) -> int:
    """Return a bound on the bits of the count."""
    tilings: int = prod(max(1, split.total()) for split in splits)
    bound: int = tilings * factorial(len(sp.sizes)) ** len(slots)
    return bound.bit_length()


def _count_modulo(sp: SpaceArrays, splits: list[Splits], tables: Tables, weights: list[list[int]],
                  prime: int) -> int:
    """Count by dynamic programming over the dimensions, modulo ``prime``."""
    lanes, slots, shape = tables
    known = list(lanes)
    ways = np.zeros((len(known), *shape), dtype=np.int64)
    ways[lanes[(1,) * len(known[0])]][(0,) * len(shape)] = 1
    for d, split in enumerate(splits):
        after = np.zeros_like(ways)
        for (more, mask), count in split.items():
            pairs = [(i, lanes.get(tuple(a * b for a, b in zip(have, more, strict=True)), -1))
                     for have, i in lanes.items()]
            taken = [pair for pair in pairs if pair[1] >= 0]
            shifts = [_shift(sp, s, states, mask >> s & 1, d) for s, states in zip(slots, shape, strict=True)]
            into = (slice(None), *(slice(shift, None) for shift in shifts))
            out_of = (slice(None), *(slice(None, states - shift) for states, shift in zip(shape, shifts, strict=True)))
            part = ways[[i for i, _ in taken]][out_of] * (count % prime) % prime
            target = after[into]
            target[[j for _, j in taken]] = (target[[j for _, j in taken]] + part) % prime
        ways = after
    for axis, row in reversed(list(enumerate(weights, start=1))):
        factors = np.array([value % prime for value in row], dtype=np.int64)
        ways = (np.moveaxis(ways, axis, -1) * factors % prime).sum(axis=-1) % prime
    return int(ways.sum() % prime)


def _shift(sp: SpaceArrays, s: int, states: int, loops: int, d: int) -> int:
    """Return by how much a loop over dimension ``d`` moves the bookkeeping of slot ``s``."""
    if not loops or states == 1:
        return 0
    return 1 << d if sp.slots[s, ORDER_COUNT] > 1 else 1


@lru_cache(maxsize=64)
def _primes(count: int) -> tuple[int, ...]:
    """Return the ``count`` largest primes below 2^31 (products of two residues fit 64 bits)."""
    found: list[int] = []
    candidate = 2**31 - 1
    trial = np.arange(3, 46342, 2)
    while len(found) < count:
        if np.all(candidate % trial):
            found.append(candidate)
        candidate -= 2
    return tuple(found)


def _chinese_remainder(residues: list[int], primes: tuple[int, ...]) -> int:
    value, modulus = 0, 1
    for residue, prime in zip(residues, primes, strict=True):
        value += modulus * ((residue - value) * pow(modulus, -1, prime) % prime)
        modulus *= prime
    return value
