"""Lanes of arrays as states: products of counts that no further count can tell apart are one state.

What still fits a side of L lanes, once p are used, depends on floor(L / p) alone, and floor(L / (p q)) on floor(L / p)
and q: so the states of a limit are its about 2 sqrt(L) quotients, and they multiply. A floor on the lanes in use is
a limit of one less that must be passed. Only arrays of blocks, which round up, keep the counts themselves.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping.spaces.rules.arrays import (
    BLOCK,
    BLOCKS,
    FIXED,
    FLOOR,
    KIND,
    LIMIT,
    MODE,
    PARTNER,
    PARTNER_BLOCK,
    SPATIAL,
)

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
DEAD = np.int64(-1)
MOST_LISTED = 4096
"""Most states whose products are listed, pair by pair."""


@dataclass(frozen=True)
class Quotients:
    """The states ``floor(limit / p)`` of the product p of the lanes at some ``sides``, numbered from p = 1 up.

    Quotient 0 is dead, or, where lanes must ``pass`` the limit, what they must end at.
    """

    sides: tuple[int, ...]
    limit: int
    passing: bool = False

    @cached_property
    def values(self) -> Codes:
        """The quotients, falling."""
        products = np.arange(1, int(self.limit**0.5) + 1)
        found = np.unique(np.concatenate([self.limit // products, products]))
        return np.concatenate([found[::-1], [0]]) if self.passing else found[::-1]

    def __len__(self) -> int:
        return len(self.values)

    def number(self, products: Codes) -> Codes:
        """Return the states of products, `DEAD` where they do not fit."""
        quotients = self.limit // products
        places = len(self.values) - 1 - np.searchsorted(self.values[::-1], quotients)
        return np.asarray(np.where((quotients > 0) | self.passing, places, DEAD))

    @cached_property
    def least(self) -> Codes:
        """``(n,)``: the least product of each state."""
        return self.limit // (self.values + 1) + 1

    @cached_property
    def table(self) -> Codes:
        """``(n, n)``: the product of two states."""
        return self.number(self.least[:, None] * self.least[None, :])

    def times(self, first: Codes, second: Codes) -> Codes:
        """Return the products of states."""
        if len(self) > MOST_LISTED:
            return self.number(self.least[first] * self.least[second])
        return self.table[first, second]


@dataclass(frozen=True)
class Counts:
    """The states of an array of blocks' side: the lanes themselves, up to what ever fits."""

    sides: tuple[int, ...]
    limit: int

    def __len__(self) -> int:
        return self.limit

    def number(self, products: Codes) -> Codes:
        """Return the states of products, `DEAD` where they do not fit."""
        return np.asarray(np.where(products <= self.limit, products - 1, DEAD))

    def times(self, first: Codes, second: Codes) -> Codes:
        """Return the products of states."""
        return self.number((first + 1) * (second + 1))


class LaneStates:
    """The states of all arrays together; a code numbers one state of each part.

    ``slots`` ``(s, 10)`` are those of `SpaceArrays`, a limit below 0 standing for none; ``sides`` lists the spatial
    ones.
    """

    def __init__(self, slots: NDArray[np.int32]) -> None:
        self.sides = [s for s in range(len(slots)) if slots[s, KIND] == SPATIAL]
        self.parts: list[Quotients | Counts] = []
        self.blocks: list[tuple[int, int, int, NDArray[np.int32]]] = []
        for s in self.sides:
            row, partner = slots[s], int(slots[s, PARTNER])
            if 0 <= partner < s:
                continue
            pair = (s,) if partner < 0 else (s, partner)
            if row[MODE] == FIXED:
                self.parts += [Quotients((side,), int(slots[side, LIMIT])) for side in pair if slots[side, LIMIT] >= 0]
            elif row[MODE] == BLOCKS and row[LIMIT] >= 0:
                self._add_blocks(pair, row)
            elif row[LIMIT] >= 0:
                self.parts.append(Quotients(pair, int(row[LIMIT])))
            if row[FLOOR] > 1 and (row[MODE] != BLOCKS or row[LIMIT] < 0):
                self.parts.append(Quotients(pair, int(row[FLOOR]) - 1, passing=True))
        self.radices = np.cumprod([1] + [len(part) for part in self.parts], dtype=object)
        if self.radices[-1] >= 2**62:
            raise OverflowError
        self.first = np.zeros(1, dtype=np.int64)

    def _add_blocks(self, pair: tuple[int, ...], row: NDArray[np.int32]) -> None:
        at = len(self.parts)
        blocks = (int(row[BLOCK]), int(row[PARTNER_BLOCK]))
        self.parts += [Counts((side,), int(row[LIMIT]) * block) for side, block in zip(pair, blocks, strict=False)]
        self.blocks.append((at, at + len(pair) - 1, int(row[FLOOR]), row))

    def alone(self, side: int, counts: Codes) -> Codes:
        """Return the codes of counts along one side, `DEAD` where they do not fit; 1 has code 0."""
        if not self.parts:
            return np.zeros_like(counts)
        parts = [part.number(counts) if side in part.sides else np.zeros_like(counts) for part in self.parts]
        return self._fitting(parts)

    def times(self, first: Codes, second: Codes) -> Codes:
        """Return the products of codes ``(n)`` and ``(m)`` as ``(n, m)``."""
        pairs = zip(self.parts, self._digits(first), self._digits(second), strict=True)
        shape = (len(first), len(second))
        found = [np.broadcast_to(part.times(a[:, None], b[None, :]), shape) for part, a, b in pairs]
        return self._fitting(found) if found else np.zeros(shape, dtype=np.int64)

    def paired(self, first: Codes, second: Codes) -> Codes:
        """Return the products of codes ``(n)``, each of one with the other of the same place."""
        pairs = zip(self.parts, self._digits(first), self._digits(second), strict=True)
        found = [part.times(a, b) for part, a, b in pairs]
        return self._fitting(found) if found else np.zeros_like(first)

    def legal(self, codes: Codes) -> Mask:
        """Whether each code has all the lanes in use that arrays must."""
        digits = self._digits(codes)
        good = np.ones(len(codes), dtype=np.bool_)
        for part, digit in zip(self.parts, digits, strict=True):
            if isinstance(part, Quotients) and part.passing:
                good &= digit == len(part) - 1
        for x, y, floor, _ in self.blocks:
            good &= (digits[x] + 1) * (digits[y] + 1 if y != x else 1) >= floor
        return good

    def _digits(self, codes: Codes) -> list[Codes]:
        return [codes // int(radix) % len(part) for part, radix in zip(self.parts, self.radices, strict=False)]

    def _fitting(self, digits: list[Codes]) -> Codes:
        dead = digits[0] < 0
        codes = digits[0].copy()
        for digit, radix in zip(digits[1:], self.radices[1:], strict=False):
            dead |= digit < 0
            codes += digit * int(radix)
        for x, y, _, row in self.blocks:
            across = digits[x] // int(row[BLOCK]) + 1
            down = digits[y] // int(row[PARTNER_BLOCK]) + 1 if y != x else 1
            dead |= across * down > int(row[LIMIT])
        codes[dead] = DEAD
        return codes
