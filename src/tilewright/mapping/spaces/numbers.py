"""The mappings of a space by number: from 0 up to its size, each once."""

from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.mapping.spaces.arrays import ORDER_COUNT
from tilewright.mapping.spaces.lists import (
    MOST_CHAINS,
    Chains,
    chain_total,
    every_order,
    list_chains,
    listed_orders,
    ranked,
    still_keys,
)
from tilewright.mapping.spaces.orders import ROOTS
from tilewright.mapping.spaces.size import Nodes, SpaceTables, combined


class NumberedSpace:
    """Finds the mapping of a number: how each dimension splits, then its chain, then the orders of loops.

    Numbers of ways to go on are kept modulo primes, as many as tell all numbers up to ``size`` apart.

    Raises
    ------
    InputError
        If there are too many chains to list, or more mappings than the primes tell apart.
    """

    def __init__(self, tables: SpaceTables, size: int) -> None:
        self.tables, self.size = tables, size
        primes = [prime for prime, _ in ROOTS.get(tables.degree, ())]
        self.primes = [prime for i, prime in enumerate(primes) if not i or prod(primes[:i]) <= size]
        few = chain_total(tables) <= MOST_CHAINS
        if prod(self.primes) <= size or not tables.whole or not few or any(one is None for one in self._listed):
            raise InputError("space", "must be smaller, to number its mappings", f"{size:.3g} mappings",
                             "Use perfect or ruby-s tiling, or constraints")

    @cached_property
    def _listed(self) -> list[Chains | None]:
        tables = self.tables
        return [list_chains(tables.counters[d], split) for d, split in zip(tables.dims, tables.splits, strict=True)]

    @cached_property
    def _ahead(self) -> list[tuple[Nodes, list[NDArray[Any]]]]:
        found = [self.tables.nodes(prime) for prime in self.primes]
        return [(nodes, self.tables.futures(nodes)) for nodes in found]

    def write(self, number: int, steps: NDArray[np.int32], ranks: NDArray[np.int8]) -> None:
        """Write the mapping to ``steps`` and ``ranks`` ``(s, d)``."""
        tables, rest = self.tables, number
        so_far = [nodes.weights for nodes, _ in self._ahead]
        row, loops = 0, np.zeros((len(tables.memories), len(tables.space.sizes)), dtype=np.int64)
        steps[:] = 1
        for place, d in enumerate(tables.dims):
            links, split = tables.links[place], tables.splits[place]
            pairs = np.flatnonzero(links.row == row)
            counts = self._counts(place, pairs, so_far)
            totals = list(accumulate(counts))
            chosen = next(i for i, total in enumerate(totals) if total > rest)
            rest -= totals[chosen] - counts[chosen]
            pair, mask = pairs[chosen // split.ways.shape[1]], chosen % split.ways.shape[1]
            ways = int(split.ways[links.split[pair], mask])
            chain, rest = divmod(rest, counts[chosen] // ways)
            listed = self._listed[place]
            assert listed is not None
            first = np.flatnonzero((listed.split == links.split[pair]) & (listed.mask == mask))[0]
            steps[:, d] = listed.steps[first + chain]
            so_far = [have * nodes.factors[place][:, mask] % nodes.prime
                      for have, (nodes, _) in zip(so_far, self._ahead, strict=True)]
            loops[:, d] = mask >> np.arange(len(tables.memories)) & 1
            row = int(links.target[pair])
        self._orders(rest, loops, ranks)

    def _counts(self, place: int, pairs: NDArray[np.intp], so_far: list[NDArray[Any]]) -> list[int]:
        """Return how many mappings go on with each pair and mask, after what the dimensions before have."""
        links = self.tables.links[place]
        ways = self.tables.splits[place].ways[links.split[pairs]]
        residues = []
        for have, (nodes, futures) in zip(so_far, self._ahead, strict=True):
            found = np.zeros(ways.shape, dtype=np.int64)
            last = place + 1 == len(self.tables.dims)
            for x, weight in enumerate(have):
                here = nodes.factors[place][x] * weight % nodes.prime
                ahead = 1 if last else futures[place + 1][links.target[pairs], x, None]
                found = (found + here * ahead) % nodes.prime
            residues.append((found * (ways % nodes.prime) % nodes.prime).reshape(-1))
        return [combined([int(value) for value in values], self.primes) for values in zip(*residues, strict=True)]

    def _orders(self, rest: int, loops: NDArray[np.int64], ranks: NDArray[np.int8]) -> None:
        space = self.tables.space
        ranks[:] = ranked(still_keys(space)[:, None])[:, 0]
        for t, s in enumerate(self.tables.memories):
            mask = int((loops[t] << np.arange(loops.shape[1])).sum())
            orders = listed_orders(space, s, mask) if space.slots[s, ORDER_COUNT] else every_order(space, mask)
            rest, chosen = divmod(rest, len(orders))
            ranks[s] = orders[chosen]
