"""Designs under way: what was tried, what it cost, and the best so far; all methods score mappings through it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from tilewright.base import digest
from tilewright.codesign.limits import Floats
from tilewright.codesign.problem import DesignProblem, Figures, LayerFront, Nests, composed
from tilewright.hardware import Accelerator, Number
from tilewright.jobs import Job, Runner, Spending
from tilewright.mapping import MappingBatch
from tilewright.search import Improvement, Options, Source, Watch, first_of_front, search

POPULATION, CLIMB = 8, 200
"""Options of ``auto`` where it has few samples for each layer of each of many machines."""


@dataclass(frozen=True)
class MachineSearch:
    """How the layers are mapped on a machine: the mapper with its options, samples of each layer, and the seed."""

    mapper: str = "auto"
    options: Options = field(default_factory=lambda: {"population": POPULATION, "climb": CLIMB, "prove": 0})
    samples: int = 0
    seed: int = 0


NOTHING = Figures(inf, inf, inf)
BRIEF = MachineSearch()


@dataclass(frozen=True)
class Candidate:
    """A machine of the space with the best mapping found of each layer."""

    chosen: Mapping[Number, float]
    """Its numbers, of those that vary."""
    fronts: tuple[LayerFront, ...] | None
    """Mappings found of each layer; None where a layer has none on this machine."""
    choice: tuple[int, ...] = ()
    """Which of each front makes the network."""
    figures: Figures = NOTHING
    score: float = inf
    """``figures`` and ``score``: what the networks take, and the objective: infinite where a layer has no mapping or a
    limit is broken."""
    unmapped: tuple[int, ...] = ()
    """The layers that have no mapping."""
    excess: float = inf
    """By which shares limits are exceeded, summed; infinite where a layer has no mapping."""

    @classmethod
    def of(cls, problem: DesignProblem, chosen: Mapping[Number, float],
           fronts: Sequence[LayerFront | None]) -> "Candidate":
        """Return a machine with the best choice among mappings found of each layer."""
        known = tuple(front for front in fronts if front is not None)
        if len(known) < len(problem.layers):
            return cls(chosen, None, unmapped=tuple(at for at, front in enumerate(fronts) if front is None))
        choice, figures, score = composed(problem, known, float(problem.area(chosen)), problem.rows(chosen))
        excess = float(problem.budget.excess(chosen)) + float(problem.overheated(figures))
        return cls(chosen, known, tuple(choice.tolist()), figures, score if excess <= 0 else inf, (), excess)

    def mapping(self, problem: DesignProblem, layer: int) -> MappingBatch:
        """Return the mapping of a layer, as a batch of one."""
        return self.nests(layer).parts(problem, layer)[0][1]

    def nests(self, layer: int) -> Nests:
        """Return the one mapping of a layer."""
        assert self.fronts is not None
        return self.fronts[layer].nests.take([self.choice[layer]])


@dataclass(frozen=True)
class Scores:
    """What ``b`` designs score."""

    score: Floats
    """``(b)``: the objective, infinite where a limit is broken or a mapping is illegal."""
    excess: Floats
    """``(b)``: by how much limits are broken: shares of the budget, and one and more for each illegal mapping."""
    figures: Figures
    """``(b)``: what all layers take."""
    latency: Floats
    energy: Floats
    """``(l, b)``: cycles and picojoules of each layer."""


class Session(Spending):
    """A design run: counts samples (mappings of one layer scored), and keeps the best.

    Parameters
    ----------
    runner
        Does the searches; what it keeps is taken over by a later run, which so comes to the same end.
    known
        Mappings to begin from, by the name of the layer.
    """

    def __init__(self, problem: DesignProblem, samples: int | None, seconds: float | None, seed: int,  # noqa: PLR0913, PLR0917
                 runner: Runner, known: Mapping[str, Sequence[Source]] | None = None) -> None:
        super().__init__(samples, seconds, runner.stop)
        self.known = known or {}
        self.problem, self.seed, self.runner = problem, seed, runner
        self.best: Candidate | None = None
        self.history, self.tried = list[Improvement](), list[Candidate]()
        self.machines = set[tuple[float, ...]]()
        """The numbers of all machines tried."""
        self.nearly = inf
        """The least excess of those tried that are over a limit."""
        self.bound = 0.0
        """What no design within the budget scores below, as far as is proved."""

    @property
    def over(self) -> bool:
        """Whether to end: nothing is left to spend, the run was stopped, or nothing better is to be found."""
        return self.exhausted or self.score_so_far <= self.bound * (1 + 1e-9)

    def bounded(self, bound: float) -> float:
        """Return a bound, at most the best score so far: what was proved before may lie above it by rounding alone.

        Raises `AssertionError` where it lies higher: a machine was found that was proved impossible.
        """
        score = self.score_so_far
        if bound > score * (1 + 1e-9):
            raise AssertionError(f"the bound of this budget is wrong: {bound!r} was proved to be the least of any "
                                 f"machine, but one scores {score!r}; please report this")
        return min(bound, score)

    @property
    def score_so_far(self) -> float:
        """The best score; infinite where nothing was found within the limits."""
        return inf if self.best is None else self.best.score

    @property
    def nearest(self) -> Candidate | None:
        """The best machine, or as long as none is within the limits the one that exceeds them least."""
        known = [candidate for candidate in self.tried if candidate.excess < inf] if self.best is None else []
        return min(known, key=lambda candidate: candidate.excess) if known else self.best

    def offer(self, candidate: Candidate) -> None:
        """Take note of a machine and its mappings."""
        self.tried.append(candidate)
        self.machines.add(tuple(candidate.chosen.values()))
        if candidate.score == inf:
            self.nearly = min(self.nearly, candidate.excess)
        if candidate.score < self.score_so_far:
            self.best = candidate
            self.history.append(Improvement(self.spent, self.used_seconds, candidate.score))

    def map(self, machines: Sequence[Mapping[Number, float]], samples: int,
            by: MachineSearch = BRIEF) -> list[Candidate]:
        """Search every layer on each machine, with so many samples a layer; return them in order, as far as it got.

        Memories keep what they do in the best design so far, or as `DesignProblem.drawn_set` has it; where the two
        differ each is searched by half. Both the machines as given and what their mappings need are offered.
        """
        layers = len(self.problem.layers)
        affordable = int(min(samples, self.left // (layers * max(1, len(machines)))))
        if affordable < 1:
            self.spent += int(min(self.left, layers))
            return []
        by = replace(by, samples=affordable, seed=self.seed)
        jobs = [_job(self.problem, chosen, self._sets(place), by) for place, chosen in enumerate(machines)]
        found = []
        values: list[dict[str, Any] | None] = self.runner.part(jobs)
        for chosen, value in zip(machines, values, strict=True):
            if value is None:
                continue
            self.spent += int(value["samples"])
            candidate = Candidate.of(self.problem, chosen, [None if one is None else _front(one)
                                                            for one in value["layers"]])
            self.offer(candidate)
            found.append(self.least(candidate))
        return found

    def _sets(self, place: int) -> list[list[int]]:
        """Return what memories keep of each layer in the searches on one of the next machines: one set, or two."""
        layers, best = range(len(self.problem.layers)), self.nearest
        known = [[0] if best is None or best.fronts is None else best.nests(layer).kept.tolist() for layer in layers]
        rng = np.random.default_rng((self.seed, self.spent, place, 0x5E75))
        return [[*dict.fromkeys((*known[layer], self.problem.drawn_set(layer, known, rng)))] for layer in layers]

    def score(self, chosen: Mapping[Number, Floats], batches: Sequence[Nests]) -> "Scores":
        """Score ``b`` designs: machines with a mapping of every layer each, whatever they cost or break.

        Parameters
        ----------
        chosen
            All numbers that vary, ``(b)`` each.
        batches
            For each layer its ``b`` mappings.
        """
        problem = self.problem
        rows = problem.rows(chosen)
        latency, energy, excesses = np.array([nests.costs(problem, layer, rows)
                                              for layer, nests in enumerate(batches)]).transpose(1, 0, 2)
        self.spent += sum(len(batch) for batch in batches)
        figures = problem.total(latency, energy, np.asarray(problem.area(chosen)), rows)
        excess = excesses.sum(axis=0) + problem.budget.excess(chosen) + problem.overheated(figures)
        found = Scores(np.where(excess > 0, inf, problem.scores(figures)), excess, figures, latency, energy)
        self.machines.update(zip(*(column.tolist() for column in chosen.values()), strict=True))
        for row in self._noted(found, np.where(excesses.any(axis=0), inf, excess)):
            self.offer(Candidate.of(problem, {key: float(column[row]) for key, column in chosen.items()}, [
                LayerFront(latency[at, [row]], energy[at, [row]], nests.take([row]))
                for at, nests in enumerate(batches)]))
        return found

    def _noted(self, found: Scores, over: Floats) -> list[int]:
        """Return which designs to take note of: the best if it is the best so far; for fronts all of theirs.

        Besides, of those that are ``over`` the limits by these shares ``(b)``, the nearest if none was nearer.
        """
        within = np.isfinite(found.score)
        over = np.where(within, inf, over)
        nearest, best = int(over.argmin()), int(found.score.argmin())
        nearly = [nearest] if over[nearest] < self.nearly else []
        if self.problem.spread:
            figures, legal = found.figures, np.flatnonzero(within)
            table = np.stack([figures.latency_cycles, figures.energy_pj, figures.area_um2], axis=1)
            return [*nearly, *(int(legal[at]) for at in first_of_front(table[legal]))]
        return nearly + [best] * bool(found.score[best] < self.score_so_far)

    def least(self, candidate: Candidate) -> Candidate:
        """Return, and offer, the smallest machine that runs the mappings of a candidate; they cost no more there."""
        if candidate.fronts is None:
            return candidate
        batches = [candidate.nests(layer) for layer in range(len(self.problem.layers))]
        needed = {**candidate.chosen, **{key: float(row[0]) for key, row in self.problem.needed(batches).items()}}
        if needed == dict(candidate.chosen):
            return candidate
        smaller = scored(self.problem, needed, candidate)
        if smaller.score < inf:
            self.offer(smaller)
        return smaller if smaller.score <= candidate.score else candidate


def scored(problem: DesignProblem, chosen: Mapping[Number, float], candidate: Candidate) -> Candidate:
    """Return a machine with the mappings that a candidate has chosen, costed there."""
    rows = problem.rows(chosen)
    fronts: list[LayerFront | None] = []
    for layer in range(len(problem.layers)):
        nests = candidate.nests(layer)
        latency, energy, excess = nests.costs(problem, layer, rows)
        fronts.append(None if excess[0] else LayerFront(latency, energy, nests))
    return Candidate.of(problem, chosen, fronts)


def _job(problem: DesignProblem, chosen: Mapping[Number, float], sets: Sequence[Sequence[int]],
         by: MachineSearch) -> Job[Any]:
    key = {"problem": problem.identity, "machine": {".".join(of): value for of, value in chosen.items()},
           "samples": by.samples, "seed": by.seed, "kept": sets} | (
               {} if (by.mapper, by.options) == (BRIEF.mapper, BRIEF.options) else {"by": digest(by)})
    return Job(key, mapped, samples=lambda value: int(value["samples"]), inputs=(problem, dict(chosen), sets, by))


def mapped(problem: DesignProblem, chosen: Mapping[Number, float], sets: Sequence[Sequence[int]],
           by: MachineSearch) -> dict[str, Any]:
    """Return the mappings found of each layer on a machine, in plain data, and the samples that they took."""
    machine = problem.machine(chosen)
    found: list[dict[str, Any] | None] = []
    spent = 0
    for layer in range(len(problem.layers)):
        kept = [*dict.fromkeys(problem.holding(layer, machine, number) for number in sets[layer])][:by.samples]
        fronts = []
        for number in kept:
            samples, front = _searched(problem, layer, machine, number, replace(by, samples=by.samples // len(kept)))
            spent += samples
            fronts += [] if front is None else [front]
        joined = LayerFront.joined(fronts)
        found.append(None if joined is None else {
            name: array.tolist() for name, array in (vars(joined) | vars(joined.nests)).items() if name != "nests"})
    return {"layers": found, "samples": spent}


def _searched(problem: DesignProblem, layer: int, machine: Accelerator, kept: int,
              by: MachineSearch) -> tuple[int, LayerFront | None]:
    """Return the samples that the search of a layer by one kept set took, and the mappings found."""
    operator = problem.layers[layer]
    result = search(operator, machine, objective=problem.sums, mapper=by.mapper, budget=by.samples,
                    seed=(by.seed, layer, *filter(None, [kept])), space=problem.map_space(layer, machine, kept),
                    options=by.options, front=("latency", "energy") if problem.spreads else (), watch=Watch(threads=1))
    if not result.feasible or result.mapping is None or result.cost is None:
        return result.samples, None
    points = [((float(result.cost.latency_cycles), result.cost.energy_pj), result.mapping)]
    if result.front is not None:
        points = [((point.values[0], point.values[1]), point.mapping) for point in result.front.points]
    batch = MappingBatch.from_mappings([mapping for _, mapping in points], operator, machine)
    latency, energy = np.array([values for values, _ in points]).T
    return result.samples, LayerFront(latency, energy, Nests.of(batch.relaid(problem.layout(layer, kept)), kept))


def _front(value: Mapping[str, Any]) -> LayerFront:
    return LayerFront(np.array(value["latency"]), np.array(value["energy"]), Nests(
        np.array(value["steps"], dtype=np.int32), np.array(value["ranks"], dtype=np.int8), np.array(value["kept"])))


def figures_told(problem: DesignProblem, candidate: Candidate) -> dict[str, float]:
    """Return the figures of a candidate by name, power among them."""
    figures = candidate.figures
    return {"latency_cycles": figures.latency_cycles, "energy_pj": figures.energy_pj, "area_um2": figures.area_um2,
            "power_mw": float(problem.power(figures))}
