"""Gamma as published (Kao, dissertation, Georgia Tech 2022, chapter 4; Kao and Krishna, ICCAD 2020): whole genomes.

A genome is a list of one to three mappers, outermost first. Each has a dimension that is spread over units, how many
units there may be, and the tile of every dimension that one unit works on, in an order. Here a mapper stands for one
side of an array, outermost first; the sides beyond the last mapper have one lane. What the text leaves open, and what
was chosen, says `GammaMapper`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import Rows
from tilewright.hardware import Fanout
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.checkpoint import Resumable
from tilewright.search.mapper import Task
from tilewright.search.objective import BREAKS_CONSTRAINT

RATE = 0.5
"""Chance of crossover, mutation and each other operator (section 4.4.1)."""
ELITE, PARENTS = 0.05, 0.4
"""Shares of a generation that live on, and that have children (the release's; the text gives none)."""
UNITS = 2
"""Genomes of the first generation whose tiles are all of size 1 (the release's)."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Genomes(Rows):
    """``p`` genomes of up to ``l`` mappers over ``d`` dimensions."""

    depth: Numbers
    """``(p)``: how many mappers each has; what is beyond them counts for nothing."""
    parallel: Numbers
    units: Numbers
    """``parallel`` and ``units``: ``(p, l)``: the dimension that is spread, and over how many units at most."""
    tiles: Numbers
    ranks: Numbers
    """``tiles`` and ``ranks``: ``(p, l, d)``: tiles, none larger than that of the mapper outside; places in the order
    of loops."""


class GenomeBreeding:
    """Operators on genomes of layers, in place: that at place ``p`` is of layer ``p``, counted round and round.

    Parameters
    ----------
    sizes
        ``(l, d)``: extents of each layer's dimensions.
    most, least
        Mappers of a genome.
    """

    limits: Numbers = np.array(np.iinfo(np.int64).max)
    """The most units that each mapper may have."""

    def __init__(self, sizes: Numbers, most: int, least: int, rng: Generator) -> None:
        self.sizes, self.most, self.least, self.rng = sizes, most, least, rng

    def random(self, count: int) -> Genomes:
        """Return genomes of the fewest mappers, all of them random but for tiles of `UNITS` genomes of each layer."""
        mappers, dims = (count, self.most), self.sizes.shape[1]
        made = Genomes(np.zeros(count, dtype=np.int64), *(np.ones(mappers, dtype=np.int64) for _ in "pu"),
                       *(np.ones((*mappers, dims), dtype=np.int64) for _ in "tr"))
        for _ in range(self.least):
            self.grow(made, np.arange(count))
        made.tiles[:UNITS * len(self.sizes)] = 1
        return made

    def layers(self, who: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the layers of genomes."""
        return who % len(self.sizes)

    def dimension(self, who: NDArray[np.intp]) -> Numbers:
        """Return a random dimension of each genome's layer."""
        return self.rng.integers(0, self.sizes.shape[1], len(who))

    def drawn(self, most: Numbers) -> Numbers:
        """Return random numbers from 1 to each of ``most``."""
        return self.rng.integers(1, most + 1)

    def level(self, genomes: Genomes, who: NDArray[np.intp]) -> Numbers:
        """Return a random mapper of each genome."""
        return self.rng.integers(0, genomes.depth[who])

    def outside(self, genomes: Genomes, who: NDArray[np.intp], at: Numbers) -> Numbers:
        """Return ``(w, d)``: the tile of the mapper outside, or the layer."""
        return np.where((at == 0)[:, None], self.sizes[self.layers(who)], genomes.tiles[who, np.maximum(at - 1, 0)])

    def units(self, genomes: Genomes, who: NDArray[np.intp], at: Numbers) -> Numbers:
        """Return random numbers of units, up to what there is to spread and the most of each mapper."""
        spread = np.take_along_axis(self.outside(genomes, who, at), genomes.parallel[who, at][:, None], axis=1)[:, 0]
        return self.drawn(np.minimum(spread, np.broadcast_to(self.limits, self.most)[at]))

    def grow(self, genomes: Genomes, who: NDArray[np.intp]) -> None:
        """Append a random mapper at the tail, the innermost, where there is room for it."""
        who = who[genomes.depth[who] < self.most]
        at = genomes.depth[who]
        genomes.tiles[who, at] = self.drawn(self.outside(genomes, who, at))
        genomes.ranks[who, at] = self.rng.random((len(who), self.sizes.shape[1])).argsort(axis=1)
        genomes.parallel[who, at] = self.dimension(who)
        genomes.units[who, at] = self.units(genomes, who, at)
        genomes.depth[who] += 1

    def age(self, genomes: Genomes, who: NDArray[np.intp]) -> None:
        """Cut off the mapper at the tail, where there are more than must be."""
        genomes.depth[who[genomes.depth[who] > self.least]] -= 1

    def mutate_parallel(self, genomes: Genomes, who: NDArray[np.intp]) -> None:
        """Let one mapper spread a random dimension."""
        genomes.parallel[who, self.level(genomes, who)] = self.dimension(who)

    def reorder(self, genomes: Genomes, who: NDArray[np.intp]) -> None:
        """Let two dimensions of one mapper change places."""
        at, one, other = self.level(genomes, who), self.dimension(who), self.dimension(who)
        mine = genomes.ranks[who, at, one]
        genomes.ranks[who, at, one] = genomes.ranks[who, at, other]
        genomes.ranks[who, at, other] = mine

    def mend(self, genomes: Genomes) -> None:
        """Cut tiles to those of the mapper outside."""
        np.minimum(genomes.tiles[:, 0], self.sizes[self.layers(np.arange(len(genomes)))], out=genomes.tiles[:, 0])
        np.minimum.accumulate(genomes.tiles, axis=1, out=genomes.tiles)


class GammaBreeding(GenomeBreeding):
    """The operators of section 4.3.3 on genomes of a space, at the published rate."""

    def __init__(self, space: MapSpace, least: int, rng: Generator) -> None:
        sizes = np.array(list(space.operator.sizes.values()), dtype=np.int64)
        self.active = np.flatnonzero(sizes > 1) if (sizes > 1).any() else np.arange(len(sizes))
        sides, levels = [slot for slot in space.layout.slots if slot.axis != "T"], space.accelerator.levels
        most = max(1, len(sides))
        super().__init__(sizes[None, self.active], most, min(max(1, least), most), rng)
        self.limits = np.array([fanout.side(slot.axis) for slot in sides
                                if isinstance(fanout := levels[slot.level], Fanout)] or [1], dtype=np.int64)

    def chosen(self, count: int) -> NDArray[np.intp]:
        """Return which of so many an operator changes."""
        return np.flatnonzero(self.rng.random(count) < RATE)

    def cross(self, genomes: Genomes) -> None:
        """Exchange the tiles of one dimension between neighbours, at all mappers that both have."""
        who = 2 * self.chosen(len(genomes) // 2)
        d = self.dimension(who)
        for at in range(self.most):
            both = np.minimum(genomes.depth[who], genomes.depth[who + 1]) > at
            one, where = who[both], d[both]
            mine = genomes.tiles[one, at, where]
            genomes.tiles[one, at, where] = genomes.tiles[one + 1, at, where]
            genomes.tiles[one + 1, at, where] = mine

    def mutate_tile(self, genomes: Genomes, who: NDArray[np.intp]) -> None:
        """Give one pair of genes a random number: a tile, or how many units there are."""
        (sizes,) = self.sizes
        at, d = self.level(genomes, who), self.rng.integers(0, len(sizes) + 1, len(who))
        units = d == len(sizes)
        genomes.units[who[units], at[units]] = self.units(genomes, who[units], at[units])
        who, at, d = who[~units], at[~units], d[~units]
        genomes.tiles[who, at, d] = self.drawn(sizes[d])

    def children(self, parents: Genomes, count: int) -> Genomes:
        """Return children of pairs of different parents, where there are two."""
        pairs = self.rng.random(((count + 1) // 2, len(parents))).argsort(axis=1)[:, :2]
        if len(parents) == 1:
            pairs = np.repeat(pairs, 2, axis=1)
        made = parents.take(pairs.ravel()[:count])
        self.cross(made)
        for operator in (self.mutate_parallel, self.mutate_tile, self.reorder, self.grow, self.age):
            operator(made, self.chosen(len(made)))
        self.mend(made)
        return made


class Decoding:
    """What genomes mean on a machine.

    A mapper's temporal loops, in its order, run at the outermost memory for the first mapper, and for the others at the
    innermost memory outside the side it stands for; where two share a memory, those of the outer one stand outside. The
    innermost memory holds the tile of the last mapper. An array of free shape has all its elements on the side that is
    used alone; where both are, the inner mapper says how many it takes, and the outer one has the others.

    Parameters
    ----------
    space
        Any of the machine's.
    active
        The dimensions of which genomes tell.
    sizes, limits
        ``(d)`` or ``(p, d)``: extents of those; ``(l)`` or ``(p, l)``: the most lanes along each side.
    """

    def __init__(self, space: MapSpace, active: NDArray[np.intp], sizes: Numbers, limits: Numbers) -> None:
        self.space, self.active, self.sizes, self.limits = space, active, sizes, limits
        slots = space.layout.slots
        self.sides, self.memories = [s for s, slot in enumerate(slots) if slot.axis != "T"], space.layout.temporal
        levels = [space.accelerator.levels[slots[s].level] for s in self.sides]
        self.shared = [at + 1 < len(levels) and level is levels[at + 1] and isinstance(level, Fanout)
                       and level.one_piece for at, level in enumerate(levels)]
        """For each side, whether it shares the lanes of its array with the next one."""

    def batch(self, genomes: Genomes) -> MappingBatch:
        """Return the mappings that genomes stand for; the space makes legal what it has no room for."""
        steps, ranks = self.nests(genomes, len(self.space.operator.sizes))
        return self.space.repair(MappingBatch(self.space.layout, steps, ranks))

    def nests(self, genomes: Genomes, width: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        """Return steps and ranks ``(s, width, p)`` of the mappings, as of a `MappingBatch` of so many dimensions."""
        shape = (len(self.space.layout.slots), width, len(genomes))
        steps, ranks = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int8)
        for depth in np.unique(genomes.depth):
            who = np.flatnonzero(genomes.depth == depth)
            sizes, limits = (np.broadcast_to(each, (len(genomes), each.shape[-1]))[who]
                             for each in (self.sizes, self.limits))
            found = Decoding(self.space, self.active, sizes, limits)._decoded(genomes.take(who), int(depth), width)
            steps[:, :, who], ranks[:, :, who] = (part.transpose(0, 2, 1) for part in found)
        return steps, ranks

    def genomes(self, batch: MappingBatch) -> Genomes:
        """Return genomes of all mappers that there may be which stand for given mappings, or for some near them.

        Of each side the largest spread counts; a mapper that spreads nothing is given what has no room to spread.
        """
        count, dims, depth = len(batch), len(self.sizes), max(1, len(self.sides))
        sizes = np.broadcast_to(self.sizes, (count, dims))
        steps = [sizes, *batch.steps[:, self.active].transpose(0, 2, 1).astype(np.int64)]
        counts = [-(-steps[s] // steps[s + 1]) for s in self.sides] or [np.ones_like(sizes)]
        parallel, units = (np.stack([getattr(each, pick)(axis=1) for each in counts], axis=1)
                           for pick in ("argmax", "max"))
        homes, rows = self.homes(depth), np.arange(count)
        tiles, ranks = (np.ones((count, depth, dims), dtype=np.int64) for _ in "tr")
        for at in reversed(range(depth)):
            following = next((s for s, levels in homes.items() if at + 1 in levels), None)
            inner = tiles[:, at + 1] if at + 1 < depth else np.ones_like(sizes)
            if following is None:
                tile = inner.copy()
            elif homes[following][0] == at + 1:
                tile = steps[following].copy()
                for level, side in enumerate(self.sides[:at + 1]):
                    if side > following:
                        tile[rows, parallel[:, level]] = -(-tile[rows, parallel[:, level]] // units[:, level])
            else:
                tile = inner.copy()
                tile[rows, parallel[:, at + 1]] *= units[:, at + 1]
            tiles[:, at] = np.maximum(np.minimum(tile, sizes), inner)
            home = next(s for s, levels in homes.items() if at in levels)
            ranks[:, at] = batch.ranks[home, self.active].T.argsort(axis=1).argsort(axis=1)
        outside = np.concatenate([sizes[:, None], tiles[:, :-1]], axis=1)
        parallel = np.where(units > 1, parallel, (outside / tiles).argmin(axis=2))
        return Genomes(np.full(count, depth), parallel, units, tiles, ranks)

    def lanes(self, genomes: Genomes, depth: int) -> Numbers:
        """Return ``(p, l)``: over how many units each mapper may spread."""
        limits = np.broadcast_to(self.limits, (len(genomes), self.limits.shape[-1]))
        lanes = limits[:, :depth].copy()
        for at in range(depth - 1):
            if self.shared[at]:
                lanes[:, at + 1] = np.minimum(genomes.units[:, at + 1], limits[:, at + 1])
                lanes[:, at] = limits[:, at] // lanes[:, at + 1]
        return lanes

    def homes(self, depth: int) -> dict[int, list[int]]:
        """Return which mappers' loops run at each memory (slots); the last one stands for the words of a tile."""
        homes: dict[int, list[int]] = {s: [] for s in self.memories}
        inner = self.memories[-1]
        for at in range(depth):
            outside = [s for s in self.memories if at == 0 or s < self.sides[at]]
            homes[self.memories[0] if at == 0 else outside[-1]].append(at)
        if not self._inside(depth):
            homes[inner].append(depth)
        return homes

    def _inside(self, depth: int) -> bool:
        """Whether the last mapper's side is inside all memories, so that each unit takes single words."""
        return bool(self.sides) and self.sides[depth - 1] > self.memories[-1]

    def _decoded(self, genomes: Genomes, depth: int, width: int) -> tuple[Numbers, Numbers]:
        """Return steps and ranks ``(s, p, width)`` of genomes of one depth."""
        count, dims = len(genomes), self.sizes.shape[-1]
        lanes, homes = self.lanes(genomes, depth), self.homes(depth)
        tiles = [genomes.tiles[:, at] for at in range(depth)] + [np.ones((count, dims), dtype=np.int64)]
        if self._inside(depth):
            tiles[depth - 1] = tiles[depth]
        outer = [np.broadcast_to(self.sizes, (count, dims)), *tiles]
        """The tile outside each mapper."""

        def spread(extents: Numbers, at: int) -> Numbers:
            chosen = np.arange(dims) == genomes.parallel[:, at, None]
            wide = np.where(chosen, extents * lanes[:, at, None], extents)
            found: Numbers = np.minimum(wide, outer[at])
            return found

        shape = (len(self.space.layout.slots), count, width)
        steps, ranks = np.ones(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        current, last = np.ones((count, dims), dtype=np.int64), np.full((count, shape[2]), 2 * dims)
        for s in reversed(range(shape[0])):
            steps[s][:, self.active] = current
            if homes.get(s):
                first = homes[s][0]
                inner, current = current, outer[first]
                for at in reversed(range(first)):
                    if self.sides[at] > s:
                        current = spread(current, at)
                own = [genomes.ranks[:, min(at, depth - 1)] for at in (first, homes[s][-1])]
                loops = inner < current if len(homes[s]) == 1 else spread(tiles[first], first) < outer[first]
                last[:, self.active] = np.where(loops, own[0], dims + own[1])
            elif s in self.sides and self.sides.index(s) < depth:
                current = spread(current, self.sides.index(s))
            ranks[s] = last.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return np.minimum.accumulate(steps, axis=0), ranks


class PublishedGamma(Resumable):
    """Proposes generations of genomes and breeds the next from the best."""

    covers_space = False
    takes_start = True
    changing = "elite", "parents", "scores", "rng", "begun"

    def __init__(self, task: Task, population: int, least: int) -> None:
        self.rng, self.population = task.rng, population
        self.start = task.space.empty(0) if task.start is None else task.start.take(slice(0, population // 2))
        self.begun = False
        self.breeding = GammaBreeding(task.space, least, task.rng)
        self.decoding = Decoding(task.space, self.breeding.active, self.breeding.sizes[0], self.breeding.limits)
        self.elite, self.scores = self.breeding.random(0), np.empty(0)
        """Who lives on from the last generation, best first."""
        self.parents = self.breeding.random(0)
        self.asked = self.breeding.random(0)

    def ask(self, most: int) -> MappingBatch:
        """Propose the next generation, or its first ``most`` mappings."""
        fresh = not len(self.parents)
        self.asked = (self.breeding.random(self.population) if fresh
                      else self.breeding.children(self.parents, self.population))
        given = 0 if self.begun else len(self.start)
        if given:
            read = self.decoding.genomes(self.start)
            for part, other in zip(self.asked.arrays, read.arrays, strict=True):
                part[given:2 * given] = other
            self.breeding.mend(self.asked)
        batch = self.decoding.batch(self.asked)
        batch.steps[:, :, :given], batch.ranks[:, :, :given] = (
            self.start.steps[:, :, :given], self.start.ranks[:, :, :given])
        return batch.take(slice(0, most)) if most < len(batch) else batch

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Choose elite and parents among the generation and the elite before it, of those that fit."""
        scores = np.where(scores < BREAKS_CONSTRAINT, scores, np.inf)
        if not self.begun:
            scores[:len(self.start)], self.begun = np.inf, True
        every = self.elite.joined(self.asked.take(np.arange(len(scores))))
        values = np.concatenate([self.scores, scores])
        ranked = values.argsort(kind="stable")
        ranked = ranked[np.isfinite(values[ranked])]
        genes = np.concatenate([part.reshape(len(every), -1) for part in every.arrays], axis=1)[ranked]
        ranked = ranked[np.sort(np.unique(genes, axis=0, return_index=True)[1])]
        self.parents = every.take(ranked[:round(PARENTS * self.population) or 1])
        kept = ranked[:round(ELITE * self.population) or 1]
        self.elite, self.scores = every.take(kept), values[kept]
