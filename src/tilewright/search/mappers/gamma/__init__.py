"""Gamma: a genetic mapper over tiles, orders, parallel dimensions and levels of parallelism.

The genome is the mapping itself, as the arrays of a `MappingBatch`. Where the paper (Kao, Krishna: GAMMA, ICCAD 2020;
chapter 4 of Kao's thesis) has a list of (dimension, tile) pairs in order for each level of mapper, there is a row of
steps and one of ranks for each memory here; where it has a parallel dimension and a size for each level, there is a row
of steps for each side of an array. So a level of parallelism is a side of an array with more than one lane: two at most
on one array (systems S1, S2), three where arrays are scaled out (S3).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.base import share
from tilewright.mapping import MappingBatch, random_state
from tilewright.search.checkpoint import Resumable
from tilewright.search.mapper import MAPPERS, Count, Limits, Mapper, MapperOptions, Natural, Share, Task, read_options
from tilewright.search.mappers.gamma.paper import PublishedGamma

MOST_ISLANDS = 8
SAMPLES_PER_ISLAND = 40_000
NOMINAL_RATE, LONG = 100_000, 3600.0
"""Samples a second for which time is taken; and seconds that are enough for everything."""
LINE_WORDS = 8
NOT_BEGUN = -1
Span = tuple[int, int]
RATES = ("crossover", "tile", "parallel", "reorder", "growth", "aging", "move", "fill", "nudge", "expand", "rebuild",
         "single", "chain", "newcomer", "repair", "distinct")
HALVES = 2
"""In two halves the children of an island are bred, each with random numbers of its own: on threads, or in turn."""


@dataclass(frozen=True)
class BreedingOptions(MapperOptions):
    """Options of those that breed as ``gamma`` does."""

    population: Annotated[Count, "Children per generation and island, and how many survive."] = 200
    islands: Annotated[Natural, "Populations that evolve apart; 0 takes one, and with large budgets up to eight."] = 0
    parents: Annotated[Share, "Share of the survivors that have children, the better the more."] = 0.5
    patience: Annotated[Natural, "Generations without improvement after which an island starts afresh; 0 for "
                                 "never."] = 15
    inherit: Annotated[Share, "Where the search begins from given mappings: share of the first population that are "
                              "changed copies of them."] = 0.5


@dataclass(frozen=True)
class GammaOptions(BreedingOptions):
    """Options of ``gamma``. Rates are chances per child."""

    paper: Annotated[bool, "The published algorithm, with `population` alone to choose: none of the others "
                           "holds."] = False
    crossover: Annotated[Share, "Take the tile sizes of some dimensions, or the order at one memory, from another "
                                "parent."] = 0.5
    tile: Annotated[Share, "Give one dimension a new tile size at one level."] = 0.2
    parallel: Annotated[Share, "Spread another dimension along one side of an array."] = 0.2
    reorder: Annotated[Share, "Swap two loops of one memory."] = 0.2
    growth: Annotated[Share, "Spread a dimension along a side that has none."] = 0.2
    aging: Annotated[Share, "Take all dimensions off one side."] = 0.2
    move: Annotated[Share, "Extension: move a factor of one dimension from one level to another."] = 0.2
    fill: Annotated[Share, "Extension: spread one more dimension along a side."] = 0.2
    nudge: Annotated[Share, "Extension: change one step by one, or to a more even or more divisible one."] = 0.2
    expand: Annotated[Share, "Extension: move as much of one dimension to an inner memory as fits there."] = 0.2
    rebuild: Annotated[Share, "Extension: take one or two dimensions off all levels, and give them new places as large "
                              "as fit."] = 1.0
    single: Annotated[Share, "Extension: share of children changed by one operator, chosen by the rates, instead of by "
                             "each at its rate."] = 1.0
    chain: Annotated[float, Limits(ge=0, lt=1), "Extension: chance that a child changed by one operator is changed by "
                                                "another."] = 0.3
    newcomer: Annotated[Share, "Extension: share of children drawn afresh."] = 0.02
    repair: Annotated[bool, "Extension: make tiles that do not fit smaller until they do."] = True
    distinct: Annotated[bool, "Extension: avoid children that are equal in cost to an earlier one by the counting "
                              "rules."] = True
    remembered: Annotated[Count, "Extension: places in each island's table of earlier children."] = 1 << 14

    def rates(self) -> NDArray[np.float64]:
        """Return what the compiled operators read, in the order that they name."""
        return np.array([getattr(self, name) for name in RATES])


class GammaMapper(Resumable):
    """A genetic algorithm over tiles, orders and levels of parallelism, with extensions; see `gamma`."""

    covers_space = False
    takes_start = True
    changing = "steps", "ranks", "places", "scores", "counts", "rng", "seen"

    def __init__(self, task: Task) -> None:
        self.space = task.space
        self.threads = task.threads
        self.options = read_options(GammaOptions, task.options, "gamma")
        self.rates = self.options.rates()
        self.start = None if task.start is None else task.start.take(slice(0, self.options.population))
        size = self.options.population
        affordable = min(task.samples or MOST_ISLANDS * SAMPLES_PER_ISLAND,
                         int((task.seconds or LONG) * NOMINAL_RATE)) // SAMPLES_PER_ISLAND
        islands = self.options.islands or max(1, min(MOST_ISLANDS, affordable))
        slots, dims = task.space.layout.shape
        self.steps = np.ones((islands, slots, dims, size), dtype=np.int32)
        self.ranks = np.zeros((islands, slots, dims, size), dtype=np.int8)
        # Where each island's survivors stand in the arrays, and their scores, best first.
        self.places = np.zeros((islands, size), dtype=np.int64)
        self.scores = np.full((islands, size), np.inf)
        # For each island: how many survivors, and generations without improvement.
        self.counts = np.zeros((islands, 2), dtype=np.int64)
        self.counts[:, 1] = 0 if self.start is None else NOT_BEGUN
        # What a half writes all the time is kept cache lines apart from what another writes.
        self.rng = np.zeros((HALVES, islands + 1, LINE_WORDS), dtype=np.uint64)
        self.rng[:, :islands, 0] = random_state(task.rng, islands * HALVES).reshape(islands, HALVES).T
        self.seen = np.zeros((islands, HALVES, self.options.remembered), dtype=np.uint64)
        room = task.space.scratch()
        self.work = np.zeros((HALVES, len(room) + 1, *room.shape[1:]), dtype=room.dtype)[:, :len(room)]
        self.bear: Callable[[MappingBatch, int, int, Span, int], None] = self._bear
        """Breeds children: given are the batch, the island, which half, their places and the number of parents."""

    def ask(self, most: int) -> MappingBatch:
        """Propose the next generation of every island, or its first ``most`` mappings."""
        batch = self.space.unwritten(self.options.population * len(self.steps))
        start = self.start if self.counts[0, 1] == NOT_BEGUN else None
        if start is not None:  # these are the parents of the first generation of every island
            self.steps[..., :len(start)], self.ranks[..., :len(start)] = start.steps, start.ranks
            self.places[:, :len(start)] = np.arange(len(start))
        share(partial(self._breed_all, batch, min(most, len(batch))), range(HALVES), min(self.threads, HALVES))
        if start is not None:  # and proposed in place of the first children
            batch.steps[:, :, :len(start)], batch.ranks[:, :, :len(start)] = start.steps, start.ranks
        return batch if most >= len(batch) else batch.take(slice(0, most))

    def _breed_all(self, batch: MappingBatch, wanted: int, half: int) -> None:
        for island in range(len(self.steps)):
            size = self.options.population
            first, last = (island * size + size * part // HALVES for part in (half, half + 1))
            if first < wanted:
                self._breed(island, half, batch, (first, min(last, wanted)))

    def _breed(self, island: int, half: int, batch: MappingBatch, span: Span) -> None:
        for part, parents in self._parts(island, span):
            self.bear(batch, island, half, part, parents)
        self.space.legalise(batch, self.rng[half, island], span, fitting=self.options.repair)

    def table(self, half: int) -> NDArray[np.int64]:
        """Return the table of the space that the operators of a half read."""
        return self.space.divisible if half % 2 else self.space.table

    def _bear(self, batch: MappingBatch, island: int, half: int, span: Span, parents: int) -> None:
        from tilewright.search.mappers.gamma import kernels as gamma_kernels  # noqa: PLC0415  (Numba loads late)

        gamma_kernels.breed(
            self.table(half), self.rng[half, island], self.rates, self.work[half],
            self.seen[island, half], self.steps[island], self.ranks[island], self.places[island], parents,
            batch.steps, batch.ranks, span,
        )

    def _parts(self, island: int, span: Span) -> list[tuple[Span, int]]:
        """Return the parts of ``span`` and how many parents the children of each have (none: they are drawn)."""
        if self.start is not None and self.counts[island, 1] == NOT_BEGUN:
            middle = span[0] + round((span[1] - span[0]) * self.options.inherit)
            return [((span[0], middle), len(self.start)), ((middle, span[1]), 0)]
        survivors = int(self.counts[island, 0])
        return [(span, min(survivors, max(2, int(self.options.population * self.options.parents))))]

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Let the best of parents and children survive, and start islands afresh that do not improve any more."""
        from tilewright.search.mappers.gamma import kernels as gamma_kernels  # noqa: PLC0415  (Numba loads late)

        for island in range(len(self.steps)):
            before = self.scores[island, 0]
            self.counts[island, 0] = gamma_kernels.survive(
                self.steps[island], self.ranks[island], self.places[island], self.scores[island],
                self.counts[island, 0], batch.steps, batch.ranks, scores, island * self.options.population,
            )
            self.counts[island, 1] = 0 if self.scores[island, 0] < before else self.counts[island, 1] + 1
            if 0 < self.options.patience <= self.counts[island, 1]:
                self.counts[island] = 0
                self.scores[island] = np.inf
                self.seen[island] = 0


def levels_in_use(task: Task) -> int:
    """Return how many levels of parallelism the paper's systems use at least (table 4.3).

    Two on an array of fixed shape (S1), one on a flexible one (S2), one more where arrays are scaled out (S3).
    """
    sides: dict[int, int] = {}
    for slot in task.space.layout.slots:
        if slot.axis != "T":
            sides[slot.level] = sides.get(slot.level, 0) + 1
    levels = task.space.accelerator.levels
    return sum(count - (count > 1 and bool(getattr(levels[level], "flexible", False)))
               for level, count in sides.items())


@MAPPERS.register("gamma", GammaOptions)
def gamma(task: Task) -> Mapper:
    """A genetic algorithm over tiles, orders and levels of parallelism (Kao and Krishna, ICCAD 2020), with extensions.

    Every generation each island's best mappings have as many children as there are survivors; of both, the best live
    on. The same seed gives the same children on any number of threads.

    With ``paper=true`` it is the published algorithm (chapter 4 of Kao's dissertation): genomes of one to three
    mappers, each with a parallel dimension, tiles and an order of its own; crossover, two mutations, reorder, growth
    and aging, each at a rate of 0.5; what does not fit is worth nothing. What the text leaves open, and what was chosen
    (the release is github.com/maestro-project/gamma):

    - *What a mapper is here*: one side of an array. Its loops run at the innermost memory outside that side, those of
      the first mapper at the outermost; memories between hold no more than what passes. Two mappers at one memory
      loop over a dimension together there.
    - *First generation*: of one mapper by the text, grown to the fewest of the system (two on S1 and S3), as in the
      release. Tiles are uniform up to the layer's, but all of size 1 in two genomes, as in the release: without them
      hardly anything fits the elements of 512 bytes.
    - *Which tile sizes crossover interchanges*: those of one random dimension, at all mappers that both parents have
      (the release's); both children live.
    - *How many units a mapper has*: a gene that the tile mutation draws too, where the array's shape is free (the text
      mutates the parallel dimension and tiles only).
    - *Mutated tiles* are uniform up to the layer's, then cut to the tile of the mapper outside (the release's); a
      mapper that grows is random, as the text says, where the release has tiles of size 1.
    - *Reorder* swaps two dimensions of one mapper; growth and aging stop at the systems' fewest and most mappers.
    - *Selection*: 5 % of the population live on, 40 % have children, equal genomes count once (the release's). Where
      nothing fits, a new first generation is drawn (the release's).
    - *Given mappings* (a warm start, the first stage of a pipeline) are scored as they are, and read as genomes of the
      first generation, as the release begins its second stage.
    """  # noqa: D401  (what the page on mappers says)
    options = read_options(GammaOptions, task.options, "gamma")
    return PublishedGamma(task, options.population, levels_in_use(task)) if options.paper else GammaMapper(task)
