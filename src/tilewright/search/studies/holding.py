"""Runs the searches of a study: in turns, timed fairly, kept as they end."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilewright.base import InputError
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.bounding import Bounding
from tilewright.search.mapper import MAPPERS, Task
from tilewright.search.objective import Objective
from tilewright.search.records import Budget, Improvement, SearchResult
from tilewright.search.run import Watch, generator, interruptible, search
from tilewright.search.studies.contest import Attempt, Contender, Contest, parse_contenders

MOST_SEEDS = 100
_WARM = 512


class Kept(Protocol):
    """Where searches that ended are kept, by plain data that decides them."""

    def get(self, cell: Mapping[str, object]) -> dict[str, Any] | None:
        """Return what was kept, None if nothing was."""

    def put(self, cell: Mapping[str, object], value: dict[str, Any]) -> None:
        """Keep a value."""


@dataclass(frozen=True)
class Terms:
    """What all searches of a study have in common.

    Parameters
    ----------
    workers
        Searches side by side. Scores do not depend on it; seconds are only fair with one.
    done
        Told each search as it ends.
    kept
        Searches that ended before are taken from there, others put there.
    stop
        Ends the study when set, as Ctrl-C does, with the seeds that are complete.
    """

    objective: str | Objective = "edp"
    budget: Budget | str | int = 10_000
    seeds: int = 10
    seed: int = 0
    workers: int = 1
    done: Callable[[Attempt], None] | None = None
    kept: Kept | None = None
    stop: threading.Event = field(default_factory=threading.Event)

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


def run_contest(space: MapSpace, contenders: "str | Iterable[str | Contender]", terms: Terms | None = None) -> Contest:
    """Search one layer with every contender (see `parse_contenders`) and seed.

    Seeds take turns, contenders within them, so that what else the machine does hits all alike. Nothing is timed
    before every contender has run once, for what it compiles. Ctrl-C ends early with the seeds that are complete.

    Raises
    ------
    InputError
        If a mapper or option is unknown, or a number out of range.
    """
    terms, entrants = terms or Terms(), parse_contenders(contenders)
    if not entrants:
        raise InputError("mappers", "must name at least one", "none")
    rounds = [[Turn(contender, seed, space) for contender in entrants] for seed in terms.turns]
    return contest(space, rounds, terms)


def contest(space: MapSpace, rounds: Sequence[Sequence[Turn]], terms: Terms) -> Contest:
    """Make the searches of every round (one for each seed, of the same contenders) and return what was found.

    ``space`` is what bounds the scores; it contains those of the turns.

    Raises
    ------
    InputError
        If a mapper or option is unknown or out of range; before anything is searched.
    """
    entrants = tuple(turn.contender for turn in rounds[0])
    samples = terms.allowed.samples
    for contender in entrants:  # a wrong option is told at once
        MAPPERS.get(contender.mapper)(Task(space, generator(0), samples, contender.options, 1, terms.goal))
    found = _hold([turn for turns in rounds for turn in turns], terms)
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


def _hold(turns: Sequence[Turn], terms: Terms) -> list[Attempt | None]:
    """Make all searches, in order; None stands for those that were not made as the study was stopped."""
    writing = threading.Lock()

    def attempt(turn: Turn) -> Attempt | None:
        if terms.stop.is_set():
            return None
        found = _taken(turn, terms)
        if found is None:
            result = _search(turn, terms, terms.allowed)
            found = Attempt(turn.contender.name, turn.seed, result.history, result.samples, result.legal_samples,
                            result.seconds, result.proven, result.stopped == "exhausted")
            if terms.stop.is_set():
                return None
            if terms.kept is not None:
                with writing:
                    terms.kept.put(_cell(turn, terms), _plain(found))
        if terms.done is not None:
            terms.done(found)
        return found

    with interruptible(terms.stop), ThreadPoolExecutor(max(1, terms.workers)) as pool:
        try:
            _warm(turns, terms)
            return list(pool.map(attempt, turns))
        except BaseException:
            terms.stop.set()
            raise


def _warm(turns: Sequence[Turn], terms: Terms) -> None:
    """Run every contender that has searches to come once, briefly, so that all that it compiles is there."""
    missing = {turn.contender.name: turn for turn in turns if _taken(turn, terms) is None}
    for turn in missing.values():
        if not terms.stop.is_set():
            _search(turn, terms, Budget(min(terms.allowed.samples or _WARM, _WARM)))


def _taken(turn: Turn, terms: Terms) -> Attempt | None:
    value = terms.kept.get(_cell(turn, terms)) if terms.kept is not None else None
    if value is None:
        return None
    return Attempt(turn.contender.name, turn.seed, tuple(Improvement(*step) for step in value["history"]),
                   value["samples"], value["legal_samples"], value["seconds"], value["proven"], value["ended"])


def _search(turn: Turn, terms: Terms, budget: Budget) -> SearchResult:
    cores = len(os.sched_getaffinity(0))
    watch = Watch(stop=terms.stop, threads=max(1, cores // max(1, terms.workers)))
    space, contender = turn.space, turn.contender
    return search(space.operator, space.accelerator, objective=terms.goal, mapper=contender.mapper, budget=budget,
                  seed=turn.seed, space=space, options=contender.options, start=turn.start, watch=watch)


def _cell(turn: Turn, terms: Terms) -> dict[str, object]:
    space, start = turn.space, turn.start
    decides = (space.operator.signature, space.accelerator, space.tiling, space.constraints,
               None if start is None else (start.steps.tolist(), start.ranks.tolist()))
    return {"space": hashlib.sha256(repr(decides).encode()).hexdigest()[:16], "objective": str(terms.goal),
            "budget": [terms.allowed.samples, terms.allowed.seconds], "mapper": turn.contender.mapper,
            "options": dict(turn.contender.options), "seed": turn.seed, "side by side": terms.workers}


def _plain(attempt: Attempt) -> dict[str, Any]:
    return {"history": [[step.samples, step.seconds, step.score] for step in attempt.history],
            "samples": attempt.samples, "legal_samples": attempt.legal_samples, "seconds": attempt.seconds,
            "proven": attempt.proven, "ended": attempt.ended}
