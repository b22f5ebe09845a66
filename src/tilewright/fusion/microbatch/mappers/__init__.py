"""The mappers of micro-batches: G-Sampler, the exact one, and the baselines of the paper's table 1.

G-Sampler (Kao, Huang and Krishna 2022, section 4.4.2) is Gamma's genetic search on micro-batches; the exact mapper is
dynamic programming that proves the best strategy; baselines are optimisers that know numbers alone, and A2C (extra
``rl``).
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.fusion.microbatch.costs import fill_groups, joined, know, repaired
from tilewright.fusion.microbatch.exact import SAME, GroupSearch
from tilewright.fusion.microbatch.problem import SYNC, Ints
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, SAMPLES, FusionSession
from tilewright.search import (
    AgentMethod,
    Count,
    MapperOptions,
    Options,
    Resumable,
    Share,
    State,
    read_options,
    register_points,
)

LEVEL = 6
"""Layers of a range that takes one micro-batch, on average."""
STEPS, ADDED, DROPPED = 8, 1, 0.15
"""Of micro-batches that are shared out anew: steps of a plan where all are new, and those added where old ones stay, on
average; the share of old ones that go."""
OPEN = 1 - 3e-6
"""Bounds of a proof under way are lowered to this share, as a run whose gap is as good as closed would be over."""


@dataclass(frozen=True)
class SamplerOptions(MapperOptions):
    """Options of ``g-sampler``; population and generations are the paper's, all else is ours, as it says nothing."""

    population: Annotated[Count, "Strategies of a generation; the paper runs 50 generations of them."] = 40
    parents: Annotated[Share, "Strategies that have children, over the population."] = 0.25
    crossover: Annotated[Share, "Chance that a child takes a range of layers from another parent."] = 0.8
    mutation: Annotated[Share, "Chance that each micro-batch of a child becomes another, mostly one near it."] = 0.01
    level: Annotated[Share, "Chance that a range of layers of a child takes one micro-batch, near that of one of them; "
                     "tried twice."] = 0.3
    split: Annotated[Share, "Chance that a group of a child is split after a random layer."] = 0.3
    merge: Annotated[Share, "Chance that two groups of a child become one."] = 0.5
    move: Annotated[Share, "Chance that a merged group is split again, up to three layers from there."] = 0.5
    grow: Annotated[Share, "Chance that micro-batches of a group of a child grow until the memory is full."] = 1.0
    share: Annotated[Share, "Chance that they are shared out anew, in steps, as the roots of weights over words."] = 0.9


@FUSION_MAPPERS.register("g-sampler", SamplerOptions)
class Sampler(Resumable):
    """G-Sampler: a genetic search with crossover, mutation, split, merge and growth of groups, repair, and joins.

    Groups cost what they cost by themselves. So of every group that was scored the best lives on, and parents are the
    best strategies that these make, each with a group of its own.
    """

    changing = ("rng", "plans", "costs", "rows")

    def __init__(self, session: FusionSession, options: Options) -> None:
        self.options = read_options(SamplerOptions, options, "g-sampler")
        self.session, self.rng = session, np.random.default_rng(session.seed)
        after = np.append(session.problem.weights[1:], 0.0)
        self.shares = np.sqrt((session.problem.weights + after + 1.0) / np.maximum(session.problem.tiles, 1.0))
        # The best group from each entry to each other, and which of the plans it is of.
        self.plans, (length,) = session.problem.unfused[:0], self.shares.shape
        self.costs, self.rows = np.full((length, length), np.inf), np.zeros((length, length), dtype=np.int64)

    def step(self) -> None:
        """Score one generation, children of the best that known groups make; and let its groups be known."""
        options, known = self.options, (self.costs, self.rows)
        parents = max(2, round(options.parents * options.population))
        born = self.bred(joined(self.plans, known, parents), options.population) if len(self.plans) else self.drawn()
        self.session.score(born)
        plans = np.concatenate([self.plans, born])
        know(self.session.problem, plans, len(self.plans), known)
        used = np.unique(self.rows[np.isfinite(self.costs)])
        self.plans, self.rows[:] = plans[used], np.searchsorted(used, self.rows)

    def drawn(self) -> Ints:
        """Return the first generation: layer by layer, and random groups, where all layers take alike or any."""
        size, problem = self.options.population, self.session.problem
        drawn, alike = problem.drawn(self.rng, size), np.arange(size) % 2 == 0
        even = np.floor(problem.memory_bytes / problem.tiles * self.rng.random((size, 1)) ** 2)
        drawn[alike] = np.clip(even, 1, problem.batch)[alike]
        shared = self.shares * problem.memory_bytes / (self.shares @ problem.tiles)
        drawn[1::4] = np.clip(shared / self.rng.random((size, 1)), 1, problem.batch)[1::4]
        drawn[self.rng.random(drawn.shape) < self.rng.random((size, 1)) ** 2] = SYNC
        return repaired(problem, np.concatenate([problem.unfused, drawn])[:size])

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
        self.level(born)
        self.level(born)
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

    def level(self, born: Ints) -> None:
        """Let a range of layers take one micro-batch, one or two steps from that of one of them: the least counts."""
        rng, choices, count = self.rng, self.session.problem.choices[::-1], len(born)
        begin, length = rng.integers(born.shape[1], size=count), rng.geometric(1 / LEVEL, size=count)
        model = born[np.arange(count), np.minimum(begin + rng.integers(length), born.shape[1] - 1)]
        near = np.searchsorted(choices, model) + rng.integers(-2, 3, count)
        size = np.where(model == SYNC, rng.choice(choices, count), choices[np.clip(near, 0, len(choices) - 1)])
        places = np.arange(born.shape[1])
        inside = (places >= begin[:, None]) & (places < (begin + length)[:, None]) & (born != SYNC)
        np.copyto(born, size[:, None], where=inside & self.some(count, self.options.level))

    def merge(self, born: Ints) -> None:
        """Let one end of a group stage what it makes, as many samples as a layer beside it; one in two moves so."""
        rng, problem, places = self.rng, self.session.problem, np.full(len(born), -1)
        for row in np.flatnonzero(rng.random(len(born)) < self.options.merge):
            ends = np.flatnonzero(born[row] == SYNC)
            if len(ends):
                end = int(rng.choice(ends))
                beside = born[row, max(0, end - 1):end + 2]
                beside = beside[beside != SYNC]
                born[row, end] = rng.choice(beside) if len(beside) else rng.choice(problem.choices)
                if rng.random() < self.options.move:
                    born[row, np.clip(end + rng.integers(-3, 4), 0, problem.length - 1)] = SYNC
                else:
                    places[row] = end
        self.fill(born, places)

    def grow(self, born: Ints) -> None:
        """Let the micro-batches of one group fill the memory."""
        places = self.rng.integers(born.shape[1], size=len(born))
        self.fill(born, np.where(self.some(len(born), self.options.grow)[:, 0], places, -1))

    def fill(self, born: Ints, places: Ints) -> None:
        """Let the micro-batches of the group at each place fill the memory, grown alike or shared out in steps.

        Layers between two steps take one micro-batch: the least of neighbours counts. Half of the plans keep most of
        the steps that they have, and may get one more; the others get new ones.
        """
        rng, (count, length) = self.rng, born.shape
        keeping = self.some(count, 0.5)
        steps = keeping & (rng.random(born.shape) > DROPPED) & (born != np.roll(born, 1, axis=1))
        steps |= rng.random(born.shape) < np.where(keeping, ADDED, STEPS) / length
        turns = rng.permuted(np.tile(np.arange(length), (count, 1)), axis=1)
        fill_groups(self.session.problem, born, (places, steps, self.some(count, self.options.share)[:, 0], turns))


@FUSION_MAPPERS.register("exact")
class Exact(Resumable):
    """Dynamic programming over groups, from where G-Sampler ends; what is stopped keeps the best strategy so far."""

    changing = ("search",)

    def __init__(self, session: FusionSession, options: Options) -> None:
        read_options(MapperOptions, options, "exact")
        self.session = session
        self.search: GroupSearch | None = None

    def step(self) -> None:
        """Run G-Sampler and look for plain micro-batches, powers of two runs; from then on solve group by group.

        Of plans that are as good, one of plain micro-batches is taken.
        """
        session, problem = self.session, self.session.problem
        if self.search is None:
            session.samples, sampler = None, Sampler(session, {})
            while session.spent < SAMPLES and not session.over:
                sampler.step()
            session.ended = (session.best == session.nothing).all() and session.value <= session.least * (1 + SAME)
            if session.ended:
                return
            plain = GroupSearch(problem, session.value * (1 + SAME), self._going, problem.choices[
                (problem.runs & (problem.runs - 1)) == 0])
            while not plain.ended and self._going():
                plain.step()
            self._take(plain.plan)
            session.ended = session.value <= session.least * (1 + SAME)
            self.search = GroupSearch(problem, session.value, self._going, problem.choices)
        else:
            self.search.step()
            self._take(self.search.plan)
            session.ended = self.search.ended
        session.floor = min(session.value, self.search.least * (1 if session.ended else OPEN))

    def _going(self) -> bool:
        session = self.session
        return not (session.stop.is_set() or session.used_seconds >= (session.seconds or inf))

    def _take(self, plan: Ints) -> None:
        session = self.session
        if len(plan) and (plan != session.best).any():
            score = float(session.score(plan)[0])
            if score <= session.value * (1 + SAME):
                session.value, session.best = score, plan

    def restore(self, state: State) -> None:
        """Undo `state`, in which a proof that has begun is."""
        session = self.session
        if any(name.startswith("search.") for name in state):
            session.samples = None
            self.search = GroupSearch(session.problem, session.value, self._going, session.problem.choices)
        super().restore(state)


def _episodes(session: FusionSession) -> Any:
    from tilewright.fusion.microbatch.mappers.environment import MicroBatchEnv  # noqa: PLC0415 - loads Gymnasium

    return MicroBatchEnv(session.problem, session)


# Each entry's number, from 0 to 1, is its place among all choices.
register_points(FUSION_MAPPERS, lambda session: session.problem.length,
                lambda session, points: session.problem.at(points))
FUSION_MAPPERS.register("a2c")(AgentMethod("a2c", _episodes))
