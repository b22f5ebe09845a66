"""What comes from its home again, whatever memories keep: the least over kept sets, tiles and spreads of lanes at once.

Each tensor has a *chain*: its home, and the memories further in that keep it, of which the first is its *child*. Of
memories that may let a tensor pass, the first and the last that keep it matter here; what others add is left out. For
each choice of a chain for every tensor:

- every word crosses each boundary of its chain once, and compute asks for words as `compute` says, all tensors at once;
- at a memory m with no array outside the memory before it, E are the extents of what lies inside all loops in time
  outside m, on all instances together. What m keeps of E fits in all its instances. As in `refetch`, the words of a
  tensor come from home again for each piece of the dimensions that it does not use, unless the innermost loop in time
  outside m leaves it in place;
- a tensor that passes m is left in place only if no loop in time between m and its child is over a dimension that it
  uses: then the child, in all instances together, has room for its words in E. Compute stores nothing: what passes all
  memories comes again with each loop.

Of the last two and of what compute asks for, what holds for different tensors is summed; of the same the larger counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil, log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.compute import ComputeStage
from tilewright.cost.bounds.groups import Floats, Tiles
from tilewright.cost.bounds.passing import Chain, Passing
from tilewright.cost.bounds.refetch import ROOM, resting
from tilewright.hardware import ACCESSES
from tilewright.workload import Tensor

AXES, MOST_CHOICES = 3, 1 << 12
"""Groups of dimensions, and choices of chains, that are looked at together at most."""
EXACT, SHARES = 64, 16
"""Up to so many lanes, and else that many numbers of lanes for each doubling, have spreads of their own."""
ENERGY = ""
"""The sum of picojoules, beside those of words by port of the outermost memory."""


@dataclass(frozen=True)
class Again:
    """Lower bounds on sums over all tensors, on machines of `Passing`."""

    passing: Passing
    tiles: Tiles

    @property
    def known(self) -> bool:
        """Whether anything is bounded: there are few enough groups and chains."""
        return len(self.tiles.groups) <= AXES and prod(map(len, self._chains)) <= MOST_CHOICES

    def least(self, wanted: Sequence[str], floors: Floats) -> Floats:
        """Return (s, r) the least picojoules of memories and networks (`ENERGY`), or words at the outermost memory.

        Words are of its own width, and those that a port serves, by its name in `ACCESSES`. What is less than
        ``floors`` (s, r) is told as those.
        """
        return self._sums(wanted, floors, np.empty(0))

    def ranked(self) -> list[dict[str, Chain]]:
        """Return the chains of all tensors in each choice, on the last row, those of the least picojoules first."""
        choices = self._chained[1][2]
        energies = np.empty(len(choices))
        self._sums([ENERGY], np.zeros((1, self.passing.rows.count)), energies)
        names = [tensor.name for tensor in self.passing.operator.tensors]
        return [{name: chains[place] for name, chains, place in zip(names, self._chains, choices[n], strict=True)}
                for n in np.argsort(energies, kind="stable")]

    def _sums(self, wanted: Sequence[str], floors: Floats, each_sum: Floats) -> Floats:
        from tilewright.cost.bounds.again_kernels import least_sums  # noqa: PLC0415  (Numba takes long to import)

        rows, tensors = self.passing.rows, self.passing.operator.tensors
        count = max(map(len, self._chains))
        fixed, price, asked = np.zeros((3, len(wanted), rows.count, len(tensors), count))
        for t, (tensor, chains) in enumerate(zip(tensors, self._chains, strict=True)):
            for s, name in enumerate(wanted):
                told: Sequence[tuple[Any, ...]] = (
                    [self._energy(tensor, chain) for chain in chains] if name == ENERGY else
                    self._words(tensor, chains, name))
                for o, (own, again, asks) in enumerate(told):
                    fixed[s, :, t, o], price[s, :, t, o], asked[s, :, t, o] = own, again, asks
        out = np.empty((len(wanted), rows.count))
        words, pieces, own, kinds, total = self.tiles.once("cells", lambda: _cells_of(self.tiles))
        stages, chained, each, rooms = self._chained
        rules = 1 + len(tensors) * (1 + max(len(rows.machine.memories), len(tensors)))
        work = (np.empty(len(chained[2])), np.empty_like(pieces), np.empty((rules, len(tensors) + 1)),
                np.zeros(AXES, dtype=np.uint8), np.empty(1 << 2 * len(tensors), dtype=np.uint8),
                np.empty((len(tensors), count)))
        least_sums((words, pieces, own, kinds, total, stages), chained, (fixed, price, asked, each), rooms,
                   self._spreads, float(self.passing.operator.macs), work, floors, out, each_sum)
        return out

    @property
    def _chains(self) -> list[tuple[Chain, ...]]:
        return self.passing.alike.once("pairs", lambda: [
            self.passing.pairs(tensor.name) for tensor in self.passing.operator.tensors])

    def _energy(self, tensor: Tensor, chain: Chain) -> tuple[Floats, Floats, Floats]:
        """Return (r) each: picojoules that are fixed, of all words again, and of each word that compute asks for."""
        spent = np.asarray(sum(self.passing.passage(tensor, chain).spent.values()))
        home, last = (self.passing.prices(tensor, name) for name in (chain[0], chain[-1]))
        once = home["update"] + home["read"] if tensor.is_output else home["read"]
        if len(chain) == 1:
            asked = again = once
        else:
            child = self.passing.prices(tensor, chain[1])
            again = once + child["drain" if tensor.is_output else "fill"]
            asked = last["update"] + np.minimum(last["read"], last["drain"]) if tensor.is_output else last["read"]
        words = self.passing.asked(tensor, chain[-1]).astype(np.float64)
        return spent - asked * words, again * tensor.words(self.passing.operator.sizes), asked

    def _words(self, tensor: Tensor, chains: Sequence[Chain], port: str) -> list[tuple[float, float, float]]:
        """Return the words of a port of the outermost memory, by chain: fixed, of all again, and of each asked for."""
        outermost = self.passing.rows.machine.memories[0].name
        if chains[0][0] != outermost:
            return [(0.0, 0.0, 0.0)] * len(chains)
        words, scale = tensor.words(self.passing.operator.sizes), self.passing.rows.scale(tensor, outermost)
        read, updated = (float(kind in ACCESSES[port]) * scale for kind in ("read", "update"))
        once = read + updated if tensor.is_output else read
        first = -words * read if tensor.is_output else 0.0
        return [(first, 0.0, once) if len(chain) == 1 else (first + words * once, words * once, 0.0)
                for chain in chains]

    @property
    def _chained(self) -> tuple[Any, ...]:
        """What the kernel needs to know of memories and chains, whatever the sizes of the operator.

        The places of memories that are looked at; homes, children and choices; how many lanes may share a word
        (r, t, o); and `_rooms`.
        """
        return self.passing.alike.once("chained", self._chains_told)

    def _chains_told(self) -> tuple[Any, ...]:
        rows, tensors = self.passing.rows, self.passing.operator.tensors
        machine, outside = rows.machine, rows.outside
        places = {memory.name: place for place, memory in enumerate(machine.memories)}
        count, most = len(tensors), max(map(len, self._chains))
        child = np.full((count, most), len(places), dtype=np.int64)
        each = np.ones((rows.count, count, most))
        for t, (tensor, chains) in enumerate(zip(tensors, self._chains, strict=True)):
            child[t, :len(chains)] = [places[chain[1]] if len(chain) > 1 else len(places) for chain in chains]
            for o, chain in enumerate(chains):
                each[:, t, o] = self.passing.sharing(tensor, chain[-1])
        homes = np.array([places[chains[0][0]] for chains in self._chains])
        choices = np.array(list(product(*(range(len(chains)) for chains in self._chains))), dtype=np.int64)
        stages = np.array([place for place in range(1, len(places))
                           if outside[machine.memories[place - 1].name].max() == 1], dtype=np.int64)
        return stages, (homes, child, choices), each, self._rooms

    @property
    def _rooms(self) -> tuple[Floats, Floats]:
        """Bits of a word (m, q, t) in every room of a memory, all copies, and bits of all its instances (r, m, q)."""
        rows, tensors = self.passing.rows, self.passing.operator.tensors
        memories = rows.machine.memories
        bits = np.zeros((len(memories), len(tensors), len(tensors)))
        limits = np.full((rows.count, len(memories), len(tensors)), np.inf)
        for m, memory in enumerate(memories):
            kept = [t for t, chains in zip(tensors, self._chains, strict=True)
                    if any(memory.name in chain[1:] for chain in chains)]
            for q, (held, room) in enumerate(rows.rooms(memory.name, kept)):
                limits[:, m, q] = room * 8 * ROOM * rows.active[memory.name]
                bits[m, q] = [held.get(tensor.name, 0.0) for tensor in tensors]
        return bits, limits

    @cached_property
    def _spreads(self) -> tuple[Floats, NDArray[np.int64]]:
        """How many lanes may share words of each tensor (c, t), and the first and last way to spread them by row."""
        rows = self.passing.rows
        lanes = rows.once("lanes rounded", lambda: [_rounded(n) for n in rows.instances(rows.machine.fanouts).tolist()])
        stage = ComputeStage(self.tiles, rows, {})
        counts = sorted({*lanes})
        tables = self.tiles.each(counts, stage.shared)
        ends = np.cumsum([0, *map(len, tables)])
        spans = {count: (ends[at], ends[at + 1]) for at, count in enumerate(counts)}
        return np.concatenate(tables), np.array([spans[count] for count in lanes], dtype=np.int64)


def _rounded(lanes: int) -> int:
    """Return a number of lanes, no less, that others share."""
    return lanes if lanes <= EXACT else ceil(2 ** (ceil(log2(lanes) * SHARES - 1e-9) / SHARES) - 1e-9)


def _cells_of(tiles: Tiles) -> tuple[Any, ...]:
    """Return the words, pieces and groups of cells, and what rests (`again_kernels.least_sums`)."""
    tensors, groups = tiles.operator.tensors, tiles.groups
    shape = [len(group.least) for group in groups] + [1] * (AXES - len(groups))
    words = np.array([np.broadcast_to(tiles.by_tensor[t.name].reshape(
        *tiles.by_tensor[t.name].shape, *[1] * (AXES - len(groups))), shape) for t in tensors])
    pieces = np.ones((AXES, max(shape)))
    for place, group in enumerate(groups):
        pieces[place, :len(group.pieces)] = group.pieces
    names = [group.tensor for group in groups]
    own = np.array([names.index(t.name) if t.name in names else -1 for t in tensors])
    kinds = np.array(tiles.once("resting", lambda: resting(tiles.operator)), dtype=np.uint8)
    return words, pieces, own, kinds, np.array([float(t.words(tiles.operator.sizes)) for t in tensors])
