"""G-Sampler (Kao, Huang and Krishna 2022, section 4.4.2): Gamma's genetic search on micro-batches."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.fusion.microbatch.costs import repaired
from tilewright.fusion.microbatch.problem import SYNC, Ints
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, FusionSession
from tilewright.search import Count, MapperOptions, Options, Resumable, Share, read_options


@dataclass(frozen=True)
class SamplerOptions(MapperOptions):
    """Options of ``g-sampler``; population and generations are the paper's, all else is ours, as it says nothing."""

    population: Annotated[Count, "Strategies of a generation; the paper runs 50 generations of them."] = 40
    elite: Annotated[Share, "Share of a generation that lives on."] = 0.1
    parents: Annotated[Share, "Share of a generation that has children."] = 0.5
    crossover: Annotated[Share, "Chance that a child takes a range of layers from another parent."] = 0.8
    mutation: Annotated[Share, "Chance that each micro-batch of a child becomes another one, mostly one near it."] = 0.1
    split: Annotated[Share, "Chance that a group of a child is split after a random layer."] = 0.3
    merge: Annotated[Share, "Chance that two groups of a child become one."] = 0.5
    grow: Annotated[Share, "Chance that micro-batches of a group of a child grow alike until the memory is full."] = 0.6


@FUSION_MAPPERS.register("g-sampler")
class Sampler(Resumable):
    """G-Sampler: a genetic search with crossover, mutation, split, merge and growth of groups, and repair."""

    changing = ("rng", "plans", "scores", "begun")

    def __init__(self, session: FusionSession, options: Options) -> None:
        self.options = read_options(SamplerOptions, options, "g-sampler")
        self.session, self.rng = session, np.random.default_rng(session.seed)
        self.plans, self.scores, self.begun = session.problem.unfused[:0], np.empty(0), False

    def step(self) -> None:
        """Score one generation; the first is layer by layer and random groups, where all layers take alike or any."""
        size, problem = self.options.population, self.session.problem
        if not self.begun:
            drawn, alike = problem.drawn(self.rng, size), np.arange(size) % 2 == 0
            even = np.floor(problem.memory_bytes / problem.tiles * self.rng.random((size, 1)) ** 2)
            drawn[alike] = np.clip(even, 1, problem.batch)[alike]
            drawn[self.rng.random(drawn.shape) < self.rng.random((size, 1)) ** 2] = SYNC
            self.plans = repaired(problem, np.concatenate([problem.unfused, drawn])[:size])
            self.scores, self.begun = self.session.score(self.plans), True
            return
        order = np.argsort(self.scores, kind="stable")
        elite = order[:max(1, round(self.options.elite * size))]
        parents = self.plans[order[:max(2, round(self.options.parents * size))]]
        born = self.bred(parents, max(1, size - len(elite)))
        self.plans = np.concatenate([self.plans[elite], born])
        self.scores = np.concatenate([self.scores[elite], self.session.score(born)])

    def bred(self, parents: Ints, count: int) -> Ints:
        """Return children, each changed by every operator at its chance, and made to fit."""
        rng, options = self.rng, self.options
        # Of two parents drawn the better has the child.
        sons = rng.integers(len(parents), size=(2, count)).min(axis=0)
        born, other = parents[sons].copy(), parents[rng.integers(len(parents), size=count)]
        ends = np.sort(rng.integers(born.shape[1] + 1, size=(2, count, 1)), axis=0)
        places = np.arange(born.shape[1])
        inside = (places >= ends[0]) & (places < ends[1]) & self.some(count, options.crossover)
        np.copyto(born, other, where=inside)
        self.mutate(born)
        split = self.some(count, options.split) & (places == rng.integers(born.shape[1], size=(count, 1)))
        born[split] = SYNC
        self.merge(born)
        self.grow(born)
        return repaired(self.session.problem, born)

    def some(self, count: int, chance: float) -> NDArray[np.bool_]:
        """Return ``(b, 1)``: which children an operator changes."""
        return np.asarray(self.rng.random((count, 1)) < chance)

    def mutate(self, born: Ints) -> None:
        """Change micro-batches: three in four to one or two steps more or fewer runs, the rest to any."""
        problem, rng = self.session.problem, self.rng
        choices = problem.choices[::-1]
        near = np.searchsorted(choices, born) + rng.integers(-2, 3, born.shape)
        drawn = np.where(rng.random(born.shape) < 0.75, choices[np.clip(near, 0, len(choices) - 1)],
                         rng.choice(choices, born.shape))
        np.copyto(born, drawn, where=(rng.random(born.shape) < self.options.mutation) & (born != SYNC))

    def merge(self, born: Ints) -> None:
        """Let one end of a group stage what it makes: as many samples as the layer before it, or as any may."""
        rng, problem = self.rng, self.session.problem
        for row in np.flatnonzero(rng.random(len(born)) < self.options.merge):
            ends = np.flatnonzero(born[row] == SYNC)
            if len(ends):
                end = int(rng.choice(ends))
                before = born[row, end - 1] if end else SYNC
                born[row, end] = before if before != SYNC and rng.random() < 0.5 else rng.choice(problem.choices)

    def grow(self, born: Ints) -> None:
        """Let the micro-batches of one group grow alike, so that they fill the memory."""
        rng, problem = self.rng, self.session.problem
        for row in np.flatnonzero(rng.random(len(born)) < self.options.grow):
            groups = np.cumsum(born[row] == SYNC) - (born[row] == SYNC)
            inside = (groups == rng.choice(groups)) & (born[row] != SYNC)
            used = float((born[row] * problem.tiles)[inside].sum())
            if used:
                grown = np.ceil(born[row, inside] * problem.memory_bytes / used)
                born[row, inside] = np.minimum(grown, problem.batch)
