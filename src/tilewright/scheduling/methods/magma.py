"""MAGMA (Kao 2022, 7.2.2; Kao and Krishna, HPCA 2022): a genetic search whose operators know cores and jobs."""

import json
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.scheduling.problem import Floats, PlanGenomes, ScheduleProblem
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import MapperOptions, Natural, Options, Resumable, Share, preset_options


@dataclass(frozen=True)
class MagmaOptions(MapperOptions):
    """Options of ``magma``; what is not given has the value of the preset."""

    preset: Annotated[str, "``text``: the rates of 7.2.2, with the release's elites and parents, which the text does "
                           "not give. ``release``: those of the authors' program, where elites are scored again; its "
                           "crossovers, some of which leave a child like a parent by mistake, are not. ``tuned``: "
                           "rates found by Optuna."] = "text"
    population: Annotated[Natural, "Plans of a generation; 0 takes as many as there are jobs."] = 0
    mutation: Annotated[Share, "Chance that a gene becomes a random one."] = 0.05
    genome: Annotated[Share, "Chance of the crossover of one genome."] = 0.9
    range: Annotated[Share, "Chance of that of a range of jobs."] = 0.05
    accelerator: Annotated[Share, "Chance of that of one core."] = 0.05
    elite: Annotated[Share, "Share of a generation that lives on."] = 0.05
    parents: Annotated[Share, "Share of a generation that has children."] = 0.1
    weighted: Annotated[bool, "Whether fitter parents have more children."] = False
    again: Annotated[bool, "Whether elites are scored again."] = False


PRESETS: dict[str, Options] = json.loads(Path(__file__).with_name("magma.json").read_text())


def magma_options(given: Options) -> MagmaOptions:
    """Return options, those that are not given from their preset; an `InputError` where one is wrong."""
    return preset_options(MagmaOptions, given, "magma", PRESETS)


class Breeding:
    """The operators of figure 7.4 on all children at once, in place; mappings are a third genome."""

    def __init__(self, problem: ScheduleProblem, options: MagmaOptions, rng: Generator) -> None:
        self.problem, self.options, self.rng = problem, options, rng
        self.genomes = 3 if problem.counts.max() > 1 else 2

    def bred(self, parents: PlanGenomes, count: int, weights: Floats | None = None) -> PlanGenomes:
        """Return children of parents, drawn evenly or by weights."""
        sons, mothers = self.rng.choice(len(parents), (2, count), p=weights)
        born, other = parents.take(sons), parents.take(mothers)
        self.exchange_genome(born, other)
        self.exchange_range(born, other)
        self.inherit_core(born, other)
        self.mutate(born)
        return self.problem.mended(born)

    def exchange_genome(self, born: PlanGenomes, other: PlanGenomes) -> None:
        """Crossover-gen: take one genome of the other parent from a pivot on."""
        count, jobs = born.core.shape
        drawn = self.rng.integers(self.genomes, size=(count, 1))
        chosen = np.where(self.rng.random((count, 1)) < self.options.genome, drawn, -1)
        after = np.arange(jobs) >= self.rng.integers(jobs, size=(count, 1))
        for genome, name in enumerate(("core", "priority", "option")):
            self._copy(born, other, after & (chosen == genome), (name,))

    def exchange_range(self, born: PlanGenomes, other: PlanGenomes) -> None:
        """Crossover-rg: take all genes of the other parent for a range of jobs."""
        count, jobs = born.core.shape
        ends = np.sort(self.rng.integers(jobs + 1, size=(2, count, 1)), axis=0)
        inside = (np.arange(jobs) >= ends[0]) & (np.arange(jobs) < ends[1])
        self._copy(born, other, inside & (self.rng.random((count, 1)) < self.options.range))

    def inherit_core(self, born: PlanGenomes, other: PlanGenomes) -> None:
        """Crossover-accel: take all jobs that the other parent runs on a core; send those that were there elsewhere."""
        count = len(born)
        core = np.where(self.rng.random((count, 1)) < self.options.accelerator,
                        self.rng.integers(self.problem.cores, size=(count, 1)), -1)
        theirs = other.core == core
        lost = (born.core == core) & ~theirs
        born.core[lost] = self.problem.cores_at(self.rng.random(born.core.shape))[lost]
        self._copy(born, other, theirs)

    def mutate(self, born: PlanGenomes) -> None:
        """Give some genes random values."""
        drawn = self.problem.drawn(self.rng, len(born))
        for name in ("core", "priority", "option")[:self.genomes]:
            self._copy(born, drawn, self.rng.random(born.core.shape) < self.options.mutation, (name,))

    @staticmethod
    def _copy(born: PlanGenomes, other: PlanGenomes, where: NDArray[np.bool_],
              names: tuple[str, ...] = ("core", "priority", "option")) -> None:
        for name in names:
            np.copyto(getattr(born, name), getattr(other, name), where=where)


@SCHEDULERS.register("magma", MagmaOptions)
class Magma(Resumable):
    """MAGMA (7.2.2): populations of plans, with crossovers of a genome, of a range of jobs, and of a core."""

    changing = ("rng", "plans", "scores", "begun")

    def __init__(self, session: ScheduleSession, options: Options) -> None:
        given = magma_options(options)
        self.session, self.rng = session, np.random.default_rng(session.seed)
        self.options = replace(given, population=given.population or max(2, session.problem.jobs))
        self.breeding = Breeding(session.problem, self.options, self.rng)
        self.plans, self.scores, self.begun = session.problem.drawn(self.rng, 0), np.empty(0), False

    def step(self) -> None:
        """Score one generation; the first is random, but for what the run begins from."""
        size = self.options.population
        if not self.begun:
            born = self._first(size)
            self.plans, self.scores, self.begun = born, self.session.score(born), True
            return
        order = np.argsort(self.scores, kind="stable")
        elite = self.plans.take(order[:max(1, round(self.options.elite * size))])
        known = self.scores[order[:len(elite)]]
        parents = order[:max(2, round(self.options.parents * size))]
        weights = None
        if self.options.weighted:
            fitness = 1.0 / np.maximum(self.scores[parents], 1e-300)
            weights = fitness / fitness.sum() if 0 < fitness.sum() < inf else None
        born = self.breeding.bred(self.plans.take(parents), size, weights)
        if self.options.again:
            self.plans = elite.joined(born)
            self.scores = self.session.score(self.plans)
        else:
            self.plans, self.scores = elite.joined(born), np.concatenate([known, self.session.score(born)])

    def _first(self, size: int) -> PlanGenomes:
        drawn = self.session.problem.drawn(self.rng, size)
        if self.session.warm is None:
            return drawn
        return self.session.problem.mended(self.session.warm).joined(drawn).take(slice(size))
