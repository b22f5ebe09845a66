"""Runs the searches of a study: in turns, timed fairly, kept as they end."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.base import InputError, digest
from tilewright.jobs import Job, Runner
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.bounding import Bounding
from tilewright.search.mapper import MAPPERS, Task
from tilewright.search.objective import Objective
from tilewright.search.records import Budget, Improvement, SearchResult
from tilewright.search.run import Watch, generator, search
from tilewright.search.studies.contest import Attempt, Contender, Contest, parse_contenders

MOST_SEEDS = 100
_WARM = 512


@dataclass(frozen=True)
class Terms:
    """What all searches of a study have in common."""

    objective: str | Objective = "edp"
    budget: Budget | str | int = 10_000
    seeds: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        object.__setattr__(self, "budget", Budget.parse(self.budget))
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise InputError("seeds", f"must be from 1 to {MOST_SEEDS}", self.seeds)

    @property
    def goal(self) -> Objective:
        """The objective, read."""
        return Objective.parse(self.objective)

    @property
    def allowed(self) -> Budget:
        """The budget, read."""
        return Budget.parse(self.budget)

    @property
    def turns(self) -> range:
        """The seeds."""
        return range(self.seed, self.seed + self.seeds)


@dataclass(frozen=True)
class Turn:
    """One search: a contender, a seed, the space to search and what to begin from."""

    contender: Contender
    seed: int
    space: MapSpace
    start: MappingBatch | None = None


def run_contest(space: MapSpace, contenders: "str | Iterable[str | Contender]", terms: Terms | None = None,
                runner: Runner | None = None) -> Contest:
    """Search one layer with every contender (see `parse_contenders`) and seed.

    Seeds take turns, contenders within them, so that what else the machine does hits all alike. No contender is timed
    before it has run once, for what it compiles. Ctrl-C ends early with the seeds that are complete.

    Parameters
    ----------
    runner
        Runs the searches, by default one at a time. Scores do not depend on it; seconds are only fair with one.

    Raises
    ------
    InputError
        If a mapper or option is unknown, or a number out of range.
    """
    terms, entrants = terms or Terms(), parse_contenders(contenders)
    if not entrants:
        raise InputError("mappers", "must name at least one", "none")
    rounds = [[Turn(contender, seed, space) for contender in entrants] for seed in terms.turns]
    return contest(space, rounds, terms, runner)


def contest(space: MapSpace, rounds: Sequence[Sequence[Turn]], terms: Terms, runner: Runner | None) -> Contest:
    """Make the searches of every round (one for each seed, of the same contenders) and return what was found.

    ``space`` is what bounds the scores; it contains those of the turns.

    Raises an `InputError` if a mapper or option is unknown or out of range; before anything is searched.
    """
    entrants = tuple(turn.contender for turn in rounds[0])
    samples, runner = terms.allowed.samples, runner or Runner(workers=1)
    for contender in entrants:  # a wrong option is told at once
        MAPPERS.get(contender.mapper)(Task(space, generator(0), samples, contender.options, 1, terms.goal))
    turns = [turn for turns in rounds for turn in turns]
    values = runner.part([_job(turn, terms, runner.side_by_side) for turn in turns])
    found = [None if value is None else _attempt(turn, value) for turn, value in zip(turns, values, strict=True)]
    count = len(entrants)
    whole = [found[place:place + count] for place in range(0, len(found), count)
             if None not in found[place:place + count]]
    attempts = tuple(attempt for turns in whole for attempt in turns if attempt is not None)
    bounds = [Bounding((space,), terms.goal).score]
    if all(turn.space is space for turn in rounds[0]):
        bounds += [attempt.proven for attempt in attempts]
    return Contest(space.operator.name, space.accelerator.name, str(terms.goal), terms.goal.unit, entrants,
                   tuple(dict.fromkeys(attempt.seed for attempt in attempts)), attempts,
                   max((bound for bound in bounds if bound is not None), default=None))


def _job(turn: Turn, terms: Terms, side_by_side: int) -> Job[dict[str, Any]]:
    space, start = turn.space, turn.start
    decides = (space.operator.signature, space.accelerator, space.tiling, space.constraints,
               None if start is None else (start.steps.tolist(), start.ranks.tolist()))
    key = {"space": digest(decides), "objective": str(terms.goal),
           "budget": [terms.allowed.samples, terms.allowed.seconds], "mapper": turn.contender.mapper,
           "options": dict(turn.contender.options), "seed": turn.seed, "side by side": side_by_side}
    return Job(key, _held, samples=lambda value: int(value["samples"]),
               inputs=(turn, terms, max(1, len(os.sched_getaffinity(0)) // side_by_side)))


_warm: set[object] = set()
"""Contenders and layers that this process has made a brief search with, so that all that it compiles is there."""


def _held(turn: Turn, terms: Terms, threads: int) -> dict[str, Any]:
    contender, space = turn.contender, turn.space

    def found(budget: Budget) -> SearchResult:
        return search(space.operator, space.accelerator, objective=terms.goal, mapper=contender.mapper, budget=budget,
                      seed=turn.seed, space=space, options=contender.options, start=turn.start,
                      watch=Watch(threads=threads))

    if (contender.name, space.operator.signature) not in _warm:
        found(Budget(min(terms.allowed.samples or _WARM, _WARM)))
        _warm.add((contender.name, space.operator.signature))
    result = found(terms.allowed)
    return {"history": [[step.samples, step.seconds, step.score] for step in result.history],
            "samples": result.samples, "legal_samples": result.legal_samples, "seconds": result.seconds,
            "proven": result.proven, "ended": result.stopped == "exhausted"}


def _attempt(turn: Turn, value: dict[str, Any]) -> Attempt:
    return Attempt(turn.contender.name, turn.seed, tuple(Improvement(*step) for step in value["history"]),
                   value["samples"], value["legal_samples"], value["seconds"], value["proven"], value["ended"])
