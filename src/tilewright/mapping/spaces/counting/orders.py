"""Loop orders of a space: how many a memory has for the loops that run there, and which.

The number of orders is no product over dimensions, which are counted one after the other; but it is a sum of a few
products, by the integral of x^k exp(-x) over x > 0, which is k!. A quadrature of Laguerre's with n nodes is exact for
all k < 2 n (Abramowitz and Stegun, 25.4.45). It holds in any field where Laguerre's polynomial has all its roots: with
real roots, or in whole numbers modulo certain primes.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np

from tilewright.mapping.batch import Layout
from tilewright.mapping.spaces.rules.constraints import ANY, Orders

# Patterns of orders, by dimension: what stands first, what stands last; between them all others in any order.
Pattern = tuple[tuple[int, ...], tuple[int, ...]]
Patterns = frozenset[Pattern]
EVERY: Patterns = frozenset({((), ())})

# Primes below 2^31 modulo which Laguerre's polynomial of degree n has n roots, and these.
ROOTS: dict[int, tuple[tuple[int, tuple[int, ...]], ...]] = {
    1: ((2147483647, (1,)),
        (2147483629, (1,)),
        (2147483587, (1,)),
        (2147483579, (1,)),
        (2147483563, (1,))),
    2: ((2147483647, (65538, 2147418113)),
        (2147483543, (678942340, 1468541207)),
        (2147483497, (974023844, 1173459657)),
        (2147483489, (498740705, 1648742788)),
        (2147483423, (286326756, 1861156671))),
    3: ((2147483587, (752693503, 1395122696, 2147150984)),
        (2147483543, (219180811, 1956924366, 2118861918)),
        (2147483497, (168767021, 265296999, 1713419486)),
        (2147483323, (345296134, 842376315, 959810883)),
        (2147483179, (220870065, 223474577, 1703138546))),
    4: ((2147483323, (327795727, 1071870726, 1392483629, 1502816580)),
        (2147481937, (482367784, 698941779, 1083313423, 2030340904)),
        (2147481359, (161718466, 222200144, 639006937, 1124555828)),
        (2147479823, (748468501, 790598097, 1352231021, 1403662043)),
        (2147479517, (804080256, 936581039, 1219362556, 1334935199))),
    5: ((2147479489, (614654547, 686600502, 1314801391, 1816123672, 2010258380)),
        (2147475563, (1449382769, 1474191507, 1585272666, 1982938833, 2098116502)),
        (2147474627, (425175957, 992397928, 1071159595, 1926885864, 2026804562)),
        (2147471741, (283243327, 363484659, 1135072586, 1194685405, 1318457530)),
        (2147468881, (602351063, 915052765, 1638428217, 1642007812, 1644566811))),
    6: ((2147469659, (400656207, 754562062, 971010197, 1059795022, 1359299704, 1897085821)),
        (2147447669, (274339391, 656110305, 731353395, 1301928127, 1459969880, 2018641945)),
        (2147418349, (384467516, 555994500, 959895239, 994872093, 1714204833, 1832820902)),
        (2147401661, (28292105, 488711837, 1129081235, 1338741880, 1522803337, 1934574625)),
        (2147391121, (139381724, 639179614, 829554162, 912544402, 1907539010, 2013974487))),
}


def patterns_of(layout: Layout, orders: Orders) -> list[Patterns]:
    """Return for every memory, outermost first, the patterns that its loop orders must follow."""
    found = []
    for slot in layout.slots:
        if slot.axis == "T":
            choices = orders.get(layout.levels[slot.level], ())
            found.append(frozenset(_pattern(layout, choice) for choice in choices) or EVERY)
    return found


def _pattern(layout: Layout, choice: tuple[str, ...]) -> Pattern:
    at = choice.index(ANY) if ANY in choice else len(choice)
    first, last = (tuple(layout.dimensions.index(name) for name in part) for part in (choice[:at], choice[at + 1:]))
    return first, last


@lru_cache(maxsize=65536)
def order_count(loops: int, patterns: Patterns) -> int:
    """Return how many orders of the dimensions in the bit mask ``loops`` follow one of the patterns."""
    patterns = _among(loops, patterns)
    if ((), ()) in patterns:
        return factorial(loops.bit_count())
    total = 0
    for d in range(loops.bit_length()):
        if loops >> d & 1:
            rest = _after(d, loops, patterns)
            total += order_count(loops & ~(1 << d), rest) if rest else 0
    return total


def _among(loops: int, patterns: Patterns) -> Patterns:
    """Return the patterns with only the dimensions in ``loops``."""
    return frozenset((tuple(d for d in first if loops >> d & 1), tuple(d for d in last if loops >> d & 1))
                     for first, last in patterns)


def _after(d: int, loops: int, patterns: Patterns) -> Patterns:
    """Return what is left of the patterns that let ``d`` stand outermost; those name only dimensions in ``loops``."""
    found = set()
    for first, last in patterns:
        if first:
            if first[0] == d:
                found.add((first[1:], last))
        elif d not in last:
            found.add((first, last))
        elif last[0] == d and len(last) == loops.bit_count():
            found.add((first, last[1:]))
    return frozenset(found)


@dataclass(frozen=True)
class OrderTerm:
    """A product: of ``off`` for each dimension that does not loop, ``on`` for each that does, and (k + ``shift``)!.

    k is how many of the dimensions in ``free`` loop.
    """

    off: tuple[int, ...]
    on: tuple[int, ...]
    free: frozenset[int]
    shift: int


def order_terms(dims: tuple[int, ...], patterns: Patterns) -> list[OrderTerm]:
    """Return terms whose sum is, for every subset of ``dims``, the number of its orders."""
    counts = []
    for index in range(1 << len(dims)):
        counts.append(order_count(sum(1 << d for i, d in enumerate(dims) if index >> i & 1), patterns))
    named = frozenset(d for first, last in patterns for d in (*first, *last))
    found = _split(tuple(counts), dims, named)
    return [OrderTerm(tuple(part[d][0] for d in dims), tuple(part[d][1] for d in dims),
                      frozenset(i for i, d in enumerate(dims) if part[d][2]), shift) for part, shift in found]


# By dimension: its factors where it does not loop and where it does, and whether it is free; then the shift.
_Part = tuple[dict[int, tuple[int, int, bool]], int]


@lru_cache(maxsize=16384)
def _split(table: tuple[int, ...], dims: tuple[int, ...], named: frozenset[int]) -> tuple[_Part, ...]:
    """Return terms whose sum is ``table`` ``(2^d)``, taking dimensions apart that are no factors nor free."""
    if not any(table):
        return ()
    for shift in range(8):
        times, left = divmod(table[0], factorial(shift))
        if not left and all(value == times * factorial(index.bit_count() + shift) for index, value in enumerate(table)):
            return (({d: (1, 1, True) for d in dims}, shift),) * times
    for i, d in enumerate(dims):
        off, on = _halves(table, i)
        rest = tuple(other for other in dims if other != d)
        times = on[0] // off[0] if off[0] else 0
        if times and all(b == times * a for a, b in zip(off, on, strict=True)):
            return _with(d, (1, times, False), _split(off, rest, named))
    tries = []
    # What no pattern names is alike.
    for d in [d for d in dims if d in named] or dims[:1]:
        off, on = _halves(table, dims.index(d))
        rest = tuple(other for other in dims if other != d)
        tries.append((*_with(d, (1, 0, False), _split(off, rest, named)),
                      *_with(d, (0, 1, False), _split(on, rest, named))))
    return min(tries, key=len)


def _with(d: int, factors: tuple[int, int, bool], parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
    return tuple(({**part, d: factors}, shift) for part, shift in parts)


def _halves(table: tuple[int, ...], i: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the values of ``table`` without and with the i-th dimension."""
    off, on = (tuple(value for index, value in enumerate(table) if index >> i & 1 == bit) for bit in (0, 1))
    return off, on


@lru_cache(maxsize=64)
def real_nodes(count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return nodes and weights of the quadrature with ``count`` nodes."""
    nodes, weights = np.polynomial.laguerre.laggauss(count)
    return tuple(nodes.tolist()), tuple(weights.tolist())


@lru_cache(maxsize=64)
def modular_nodes(count: int, prime: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return nodes and weights of the quadrature modulo one of the primes of `ROOTS`."""
    roots = next(found for p, found in ROOTS[count] if p == prime)
    weights = []
    for x in roots:
        ahead = _laguerre(count + 1, x, prime)
        weights.append(x * pow((count + 1) ** 2 * ahead * ahead, -1, prime) % prime)
    return roots, tuple(weights)


def _laguerre(degree: int, x: int, prime: int) -> int:
    """Return Laguerre's polynomial at ``x`` modulo ``prime``, by its recurrence."""
    before, value = 0, 1
    for k in range(degree):
        before, value = value, ((2 * k + 1 - x) * value - k * before) * pow(k + 1, -1, prime) % prime
    return value
