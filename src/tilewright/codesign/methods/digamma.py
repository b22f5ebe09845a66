"""DiGamma (Kao, dissertation, Georgia Tech 2022, chapter 6): one genetic search of hardware and mappings.

A design is a machine for the whole network and a genome of `Genomes` for every layer: for each side of the arrays the
dimension that is spread, and the tiles, in the order of loops. Buffers are no genes but what the mappings need (6.2.3).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.codesign.designs import DESIGNERS
from tilewright.codesign.limits import Floats, figures_of
from tilewright.codesign.methods.decoding import CAPACITY, Counts, NeededDesigns, evenly
from tilewright.codesign.problem import Nests
from tilewright.codesign.session import Scores, Session
from tilewright.hardware import Number
from tilewright.search import (
    Count,
    Decoding,
    GenomeBreeding,
    Genomes,
    MapperOptions,
    Natural,
    Options,
    Share,
    preset_options,
)

PRESETS = Path(__file__).with_name("digamma.json")


@dataclass(frozen=True)
class DigammaOptions(MapperOptions):
    """Options of ``digamma``; what is not given has the value of the preset."""

    preset: Annotated[str, "``release``: the rates of DiGamma's release. ``tuned``: rates found by Optuna, in small "
                           "generations, with what the release has not: ``ranked``, ``logarithmic``, "
                           "``exact``, ``trims``, ``layers``, ``exchange``."] = "tuned"
    population: Annotated[Count, "Designs of a generation."] = 100
    elite: Annotated[Share, "Share of it that lives on."] = 0.05
    parents: Annotated[Share, "Share of it that has children."] = 0.4
    crossover: Annotated[Share, "Chance of this operator, of each layer of a child that is changed."] = 0.57
    reorder: Annotated[Share, "Chance of this operator, likewise."] = 0.47
    tiles: Annotated[Share, "Chance of this operator, likewise."] = 0.53
    genes: Annotated[Count, "Tiles that a mutation changes."] = 3
    reach: Annotated[Share, "How far it changes them: the share of the dimension, or of its logarithm."] = 0.53
    logarithmic: Annotated[bool, "Whether tiles are drawn and changed evenly in their logarithm."] = False
    hardware: Annotated[Share, "Chance that the hardware of a child changes; all of the first generation does."] = 0.5
    parallel: Annotated[Share, "Chance of this operator, likewise."] = 0.1
    grow: Annotated[Share, "Chance of this operator, likewise."] = 0.57
    age: Annotated[Share, "Chance of this operator, likewise."] = 0.27
    layers: Annotated[Share, "Chance that a layer of a child is changed at all."] = 1.0
    exchange: Annotated[Share, "Chance that a child has a layer of that of its two parents which is better "
                               "there."] = 0.0
    exact: Annotated[bool, "Whether arrays, too, are no larger than the mappings need."] = False
    trims: Annotated[Natural, "Rounds in which children over the limits are trimmed (tiles of what takes most area are "
                              "halved, or arrays made smaller) before they are scored; in the release they are "
                              "not."] = 0
    ranked: Annotated[bool, "Whether designs that break a limit are ranked by how far, or all alike."] = False


def digamma_options(given: Options) -> DigammaOptions:
    """Return options, those that are not given from their preset; an `InputError` where one is wrong."""
    return preset_options(DigammaOptions, given, "digamma", json.loads(PRESETS.read_text()))


@dataclass(frozen=True)
class Generation:
    """Designs: hardware genes ``(p)`` each, and genomes of their layers (those of a design in a row)."""

    hardware: dict[Number, Floats]
    genomes: Genomes
    layers: int

    def __len__(self) -> int:
        return len(self.genomes) // self.layers

    def take(self, chosen: NDArray[np.intp]) -> "Generation":
        """Return copies of some designs."""
        rows = (chosen[:, None] * self.layers + np.arange(self.layers)).ravel()
        return Generation({key: column[chosen] for key, column in self.hardware.items()}, self.genomes.take(rows),
                          self.layers)

    def joined(self, other: "Generation") -> "Generation":
        """Return these and the others."""
        hardware = {key: np.concatenate([column, other.hardware[key]]) for key, column in self.hardware.items()}
        return Generation(hardware, self.genomes.joined(other.genomes), self.layers)


class DigammaBreeding(GenomeBreeding):
    """The operators of figure 6.4, each on all layers of all designs at once, in place."""

    def __init__(self, designs: NeededDesigns, options: DigammaOptions, rng: Generator) -> None:
        super().__init__(designs.sizes, designs.depth, 1, rng)
        self.designs, self.options, width = designs, options, designs.sizes.shape[1]
        decoding = Decoding(designs.spaces[0], np.arange(width), self.sizes[0], np.ones(self.most, np.int64))
        self.held = np.array([[_held(decoding.homes(depth), at) for at in range(len(decoding.memories))]
                              for depth in range(1, self.most + 1)])
        """For genomes of each number of mappers and each memory: the mapper whose tile it holds."""

    def first(self, count: int) -> Generation:
        """Return random designs: of each layer one mapper."""
        lows = {key: np.full(count, self.designs.problem.space.ranges[key].low) for key in self.designs.genes}
        made = Generation(lows, self.random(count * len(self.sizes)), len(self.sizes))
        self._hardware(made, 1.0)
        return made

    def children(self, parents: Generation, merits: Floats, count: int) -> Generation:
        """Return children of pairs of parents, whose layers have ``merits`` ``(n, p)``, the lower the better."""
        rng, options = self.rng, self.options
        mothers = rng.integers(len(parents), size=count)
        fathers = (mothers + rng.integers(1, max(2, len(parents)), size=count)) % len(parents)
        made, other = parents.take(mothers), parents.take(fathers).genomes
        genomes, rows = made.genomes, len(made.genomes)
        better = (merits[:, fathers] < merits[:, mothers]).T.ravel() & (rng.random(rows) < options.exchange)
        for part, theirs in zip(genomes.arrays, other.arrays, strict=True):
            part[better] = theirs[better]
        changed = rng.random(rows) < options.layers
        self._cross(genomes, other, self._who(changed, options.crossover))
        self.reorder(genomes, self._who(changed, options.reorder))
        self._mutate_tiles(genomes, self._who(changed, options.tiles))
        self._hardware(made, options.hardware)
        self.mutate_parallel(genomes, self._who(changed, options.parallel))
        self.grow(genomes, self._who(changed, options.grow))
        self.age(genomes, self._who(changed, options.age))
        self.mend(genomes)
        return made

    def trim(self, made: Generation) -> None:
        """Make designs over the limits smaller, in some rounds: what takes area, the likelier the more of it.

        Of a memory, one dimension of the tile is halved for all layers that need more than half of it; arrays lose up
        to half of their elements.
        """
        problem, rng, left = self.designs.problem, self.rng, np.arange(len(made))
        machine = problem.space.accelerator
        for _ in range(self.options.trims):
            numbers, batches = self.decoded(made.take(left))
            over = np.flatnonzero(np.broadcast_to(problem.budget.excess(numbers) > 0, len(left)))
            left = left[over]
            if not len(left):
                break
            parts = self._areas({key: column[over] for key, column in numbers.items()})
            drawn = (np.cumsum(parts, axis=0) < rng.random(len(left)) * parts.sum(axis=0)).sum(axis=0)
            for key in dict.fromkeys(side[2] for side in self.designs.sides if side[2] in made.hardware):
                values, who = problem.space.ranges[key], left[drawn == 0]
                fewer = made.hardware[key][who] * rng.uniform(0.5, 1.0, len(who))
                made.hardware[key][who] = values.value(values.first_places(fewer))
            needs = [problem.model(layer, layout).needs(nests.take(over).batch(layout)).numbers(machine)
                     for layer, (layout, nests) in enumerate(zip(problem.layouts, batches, strict=True))]
            for at, memory in enumerate(machine.memories):
                taken = np.array([sum((row for key, row in own.items() if key[0] == memory.name and key[1].startswith(
                    CAPACITY)), start=np.zeros(len(left))) for own in needs])
                layer, design = np.nonzero((drawn == at + 1) & (taken > taken.max(axis=0) / 2))
                self._halve(made.genomes, left[design] * made.layers + layer, at)

    def _areas(self, chosen: dict[Number, Floats]) -> Floats:
        """Return ``(1 + m, b)``: square micrometres of all compute units, and of all instances of each memory."""
        machine = self.designs.problem.space.accelerator
        numbers = self.designs.problem.budget.completed(chosen)
        rows = [numbers[machine.compute.name, "area_um2"] * figures_of(machine, numbers)["elements"], *(
            numbers[memory.name, "area_um2"] * machine.instances(memory.name, numbers) for memory in machine.memories)]
        return np.array([np.broadcast_to(row, len(next(iter(chosen.values())))) for row in rows]) + 1e-9

    def _halve(self, genomes: Genomes, rows: NDArray[np.intp], memory: int) -> None:
        """Halve one dimension of the tile that a memory holds, the likelier the larger; those inside with it."""
        level = self.held[genomes.depth[rows] - 1, memory]
        d = (np.log(genomes.tiles[rows, level]) * self.rng.random((len(rows), self.sizes.shape[1]))).argmax(axis=1)
        genomes.tiles[rows, level, d] = (genomes.tiles[rows, level, d] + 1) // 2
        np.minimum.accumulate(genomes.tiles, axis=1, out=genomes.tiles)

    def decoded(self, generation: Generation) -> tuple[dict[Number, Floats], list[Nests]]:
        """Return machines and mappings."""
        return self.designs.decoded(generation.hardware, generation.genomes.arrays, self.options.exact)

    def _who(self, changed: NDArray[np.bool_], rate: float) -> NDArray[np.intp]:
        return np.flatnonzero(changed & (self.rng.random(len(changed)) < rate))

    def dimension(self, who: NDArray[np.intp]) -> Counts:
        """Return a random dimension of each genome's layer, one that is larger than 1 if it has any."""
        layer = self.layers(who)
        found: Counts = self.designs.order[layer, self.rng.integers(0, self.designs.active[layer])]
        return found

    def drawn(self, most: Counts) -> Counts:
        """Return random numbers from 1 to each of ``most``, perhaps evenly in their logarithm."""
        return evenly(self.rng.random(most.shape), most) if self.options.logarithmic else super().drawn(most)

    def _cross(self, genomes: Genomes, other: Genomes, who: NDArray[np.intp]) -> None:
        """Take the tiles of one dimension from the other parent, at all mappers that both have."""
        d = self.dimension(who)
        for at in range(self.most):
            both = np.minimum(genomes.depth[who], other.depth[who]) > at
            genomes.tiles[who[both], at, d[both]] = other.tiles[who[both], at, d[both]]

    def _mutate_tiles(self, genomes: Genomes, who: NDArray[np.intp]) -> None:
        """Change some tiles."""
        reach = self.options.reach
        for _ in range(self.options.genes):
            at, d = self.level(genomes, who), self.dimension(who)
            size, tile = self.sizes[self.layers(who), d], genomes.tiles[who, at, d]
            by = self.rng.uniform(-reach, reach, len(who))
            wanted = tile * size ** by if self.options.logarithmic else tile + by * size
            genomes.tiles[who, at, d] = np.clip(np.rint(wanted), 1, size)

    def _hardware(self, made: Generation, rate: float) -> None:
        """Give arrays of some designs new sizes, at least half of what their mappings can use, and new shapes.

        Rates are drawn evenly in their logarithm.
        """
        designs, rng, count = self.designs, self.rng, len(made)
        who = np.flatnonzero(rng.random(count) < rate)
        rows = (who[:, None] * made.layers + np.arange(made.layers)).ravel()
        last = made.genomes.depth[rows] - 1
        again = rng.random(len(rows)) < self.options.layers
        made.genomes.units[rows[again], last[again]] = self.units(made.genomes, rows, last)[again]
        useful = self._useful(made, who)
        arrays = {key: useful[:, [at for at, side in enumerate(designs.sides) if side[2] == key]].prod(axis=1)
                  for _, _, key in designs.sides}
        for key in designs.genes:
            values, highest = designs.problem.space.ranges[key], designs.highest[key]
            if key in arrays:
                others = np.prod([made.hardware[other][who] for other in designs.genes
                                  if other in arrays and other != key] or [np.ones(len(who))], axis=0)
                most = np.clip(np.minimum(designs.elements // others, arrays[key]), values.low, highest)
                wanted = np.floor(np.maximum(most / 2, 1) + rng.random(len(who)) * (most - most / 2 + 1))
            else:
                most = np.full(len(who), highest)
                wanted = values.low * (highest / values.low) ** rng.random(len(who))
            made.hardware[key][who] = values.value(values.first_places(np.minimum(wanted, most)))

    def _useful(self, made: Generation, who: NDArray[np.intp]) -> Floats:
        """Return ``(w, l)``: the most lanes of each side that a mapping of any layer can use."""
        genomes, found = made.genomes, np.ones((len(who), max(1, len(self.designs.sides))))
        rows = (who[:, None] * made.layers + np.arange(made.layers)).ravel()
        for at in range(self.most):
            level = np.full(len(rows), at)
            along = genomes.parallel[rows, at][:, None]
            outer, inner = (np.take_along_axis(tiles, along, 1)[:, 0] for tiles in (
                self.outside(genomes, rows, level), genomes.tiles[rows, at]))
            counts = np.where(genomes.depth[rows] > at, -(-outer // np.minimum(inner, outer)), 1)
            found[:, at] = counts.reshape(len(who), made.layers).max(axis=1)
        return found


def _held(homes: dict[int, list[int]], memory: int) -> int:
    """Return the mapper just outside the first that runs at a memory or inside it; the outermost for the first one."""
    first = next((levels[0] for levels in list(homes.values())[memory:] if levels), 1)
    return max(0, first - 1)


@DESIGNERS.register("digamma", DigammaOptions)
class Digamma:
    """DiGamma: Gamma's operators on the mapping of every layer, and one on the hardware; buffers are what they need."""

    def __init__(self, session: Session, options: Options) -> None:
        self.session, self.options = session, digamma_options(options)
        self.breeding = DigammaBreeding(NeededDesigns(session.problem), self.options,
                                        np.random.default_rng(session.seed))
        self.elite = self.parents = self.breeding.first(0)
        self.ranks = np.empty((2, 0))
        """Of the elite: how far each design breaks limits, and its score."""
        self.merits = self.served = np.empty((len(session.problem.layers), 0))
        """Figures of each layer ``(n, p)`` of the elite, and of the parents."""

    def steps(self) -> Iterator[None]:
        """Breed generations until there are no samples left for one design more."""
        layers = len(self.session.problem.layers)
        made = self.breeding.first(self.options.population)
        while self.session.left >= layers:
            made = made.take(np.arange(min(len(made), self.session.left // layers), dtype=np.intp))
            self.breeding.trim(made)
            self._choose(made, self.session.score(*self.breeding.decoded(made)))
            yield
            made = self.breeding.children(self.parents, self.served, self.options.population)

    def _choose(self, made: Generation, scores: Scores) -> None:
        """Choose elite and parents among the generation and the elite before it; of equal ones the first."""
        options, sums = self.options, self.session.problem.sums
        merits = {"latency": scores.latency, "energy": scores.energy}.get(sums, scores.latency * scores.energy)
        excess = np.where(np.isfinite(scores.score), 0.0, scores.excess if options.ranked else 1.0)
        ranks = np.concatenate([self.ranks, [excess, np.where(excess > 0, np.inf, scores.score)]], axis=1)
        merits, every = np.concatenate([self.merits, merits], axis=1), self.elite.joined(made)
        order = np.lexsort(ranks[::-1])
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (ranks[:, order[1:]] != ranks[:, order[:-1]]).any(axis=0) | (ranks[0, order[1:]] > 0)
        order = order[new]
        chosen, kept = (order[:max(1, round(share * options.population))] for share in (options.parents, options.elite))
        self.parents, self.served = every.take(chosen), merits[:, chosen]
        self.elite, self.ranks, self.merits = every.take(kept), ranks[:, kept], merits[:, kept]
