"""Mappers side by side: repeated searches of one layer, and what they tell at equal samples and at equal time."""

import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any, Protocol

from tilewright.base import InputError
from tilewright.mapping import MapSpace
from tilewright.search.bounding import Bounding
from tilewright.search.mapper import MAPPERS, Task
from tilewright.search.objective import Objective
from tilewright.search.records import Budget, Improvement, SearchResult
from tilewright.search.run import Watch, generator, interruptible, search
from tilewright.search.studies.statistics import Comparison, Interval, compare, holm, median_interval, pairs

MOST_SEEDS = 200
_WARM = 512


class Kept(Protocol):
    """Where searches that ended are kept, by plain data that decides them."""

    def get(self, cell: Mapping[str, object]) -> dict[str, Any] | None:
        """Return what was kept, None if nothing was."""

    def put(self, cell: Mapping[str, object], value: dict[str, Any]) -> None:
        """Keep a value."""


@dataclass(frozen=True)
class Contender:
    """A mapper with its options, under a name of its own."""

    name: str
    mapper: str
    options: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Contender":
        """Read ``gamma`` or ``gamma:crossover=0,population=100``.

        Raises
        ------
        InputError
            If it cannot be read or there is no such mapper.
        """
        mapper, _, rest = text.strip().partition(":")
        MAPPERS.get(mapper)
        options: dict[str, object] = {}
        for part in filter(None, rest.split(",")):
            name, sign, value = (word.strip() for word in part.partition("="))
            if not (name and sign and value):
                raise InputError(f"mappers.{mapper}", "must give options as NAME=VALUE", part,
                                 f"For example {mapper}:NAME=VALUE")
            options[name] = _value(value)
        return cls(text.strip(), mapper, options)


def parse_contenders(text: "str | Iterable[str | Contender]") -> tuple[Contender, ...]:
    """Read ``gamma,gamma:crossover=0,tile=1,random``: commas part mappers, and the options of one.

    Raises
    ------
    InputError
        If one cannot be read, or two are the same.
    """
    found: list[str | Contender] = []
    for part in text.split(",") if isinstance(text, str) else text:
        if isinstance(part, str) and "=" in part.partition(":")[0] and found and isinstance(found[-1], str):
            found[-1] += f",{part.strip()}"  # an option more of the mapper before
        else:
            found.append(part.strip() if isinstance(part, str) else part)
    contenders = tuple(one if isinstance(one, Contender) else Contender.parse(one) for one in found)
    names = [one.name for one in contenders]
    if len(set(names)) < len(names):
        raise InputError("mappers", "must differ", ", ".join(names))
    return contenders


def _value(text: str) -> str | int | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True)
class Attempt:
    """One search of a contender: every improvement, and what it spent."""

    contender: str
    seed: int
    history: tuple[Improvement, ...]
    samples: int
    legal_samples: int
    seconds: float
    proven: float | None = None

    @property
    def score(self) -> float:
        """The best score; infinite if no mapping was found that meets all requirements."""
        return self.history[-1].score if self.history else math.inf

    def after(self, at: float, clock: str = "samples") -> float:
        """Return the best score after so many ``samples`` or ``seconds``; infinite before the first."""
        score = math.inf
        for step in self.history:
            if getattr(step, clock) > at:
                break
            score = step.score
        return score

    def needed(self, score: float, clock: str = "samples") -> float:
        """Return the ``samples`` or ``seconds`` until the best score was this or lower; infinite if it never was."""
        return next((float(getattr(step, clock)) for step in self.history if step.score <= score), math.inf)


@dataclass(frozen=True)
class Band:
    """The best score so far over samples or seconds: the median over seeds, and its interval at each point."""

    contender: str
    clock: str
    at: tuple[float, ...]
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class Contest:
    """All searches of a comparison of mappers on one layer.

    ``bound`` is the score that no mapping can beat (what a mapper proved included); None for objectives without one.
    """

    layer: str
    machine: str
    objective: str
    unit: str
    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    attempts: tuple[Attempt, ...]
    bound: float | None

    @property
    def names(self) -> tuple[str, ...]:
        """The contenders' names, in order."""
        return tuple(contender.name for contender in self.contenders)

    def of(self, name: str) -> list[Attempt]:
        """Return the searches of one contender, by seed."""
        found = [attempt for attempt in self.attempts if attempt.contender == name]
        if not found:
            raise InputError("mapper", f"must be one of {', '.join(self.names)}", name)
        return found

    @cached_property
    def best(self) -> float:
        """The best score that any search found; infinite if none found one."""
        return min(attempt.score for attempt in self.attempts)

    @cached_property
    def equal_samples(self) -> int:
        """The most samples that all searches had, but for those that ended by themselves, having nothing left."""
        return max(min(max(a.samples for a in self.of(name)) for name in self.names), 1)

    @cached_property
    def equal_seconds(self) -> float:
        """The time that all contenders had: the least of their median times."""
        return min(self.time(name).median for name in self.names)

    def final(self, name: str) -> Interval:
        """Return the best scores of a contender at the ends of its searches."""
        return median_interval([attempt.score for attempt in self.of(name)])

    def standing(self, name: str, at: float, clock: str = "samples") -> Interval:
        """Return the best scores of a contender after so many ``samples`` or ``seconds``."""
        return median_interval([attempt.after(at, clock) for attempt in self.of(name)])

    def time(self, name: str) -> Interval:
        """Return the seconds that a contender's searches took."""
        return median_interval([attempt.seconds for attempt in self.of(name)])

    def reach(self, name: str, tolerance: float, clock: str = "samples") -> Interval:
        """Return how many samples (or seconds) a contender takes to within ``tolerance`` of the best of all."""
        goal = self.best * (1.0 + tolerance)
        return median_interval([attempt.needed(goal, clock) for attempt in self.of(name)])

    def gap(self, name: str) -> float | None:
        """Return by how much of the bound the median of a contender is above it; None without a bound or a mapping."""
        score = self.final(name).median
        return None if not self.bound or score == math.inf else max(0.0, score / self.bound - 1.0)

    def band(self, name: str, clock: str = "samples", points: int = 80) -> Band:
        """Return a contender's convergence, at points that are evenly spread on a logarithmic scale."""
        attempts = self.of(name)
        last = median([float(getattr(attempt, clock)) for attempt in attempts])
        firsts = [getattr(attempt.history[0], clock) for attempt in attempts if attempt.history]
        first = max(min(firsts, default=last), 1e-6)
        at = _spread(first, max(last, first), points, whole=clock == "samples")
        return Band(name, clock, at, tuple(median_interval([a.after(x, clock) for a in attempts]) for x in at))

    def duels(self, clock: str = "samples") -> list[tuple[str, str, Comparison]]:
        """Compare every pair of contenders at `equal_samples` or `equal_seconds`; p-values are Holm's."""
        at = self.equal_samples if clock == "samples" else self.equal_seconds
        scores = [[attempt.after(at, clock) for attempt in self.of(name)] for name in self.names]
        places = pairs(len(scores))
        found = [compare(scores[one], scores[other]) for one, other in places]
        corrected = holm([each.p for each in found])
        return [(self.names[one], self.names[other], replace(each, p=p))
                for (one, other), each, p in zip(places, found, corrected, strict=True)]


def _spread(first: float, last: float, points: int, *, whole: bool) -> tuple[float, ...]:
    ratio = last / first
    found = [first * ratio ** (place / max(points - 1, 1)) for place in range(points)]
    found[-1] = last
    return tuple(sorted({float(round(x)) for x in found})) if whole else tuple(dict.fromkeys(found))


def run_contest(  # noqa: PLR0913  (keywords of an entry point)
    space: MapSpace,
    contenders: "str | Iterable[str | Contender]",
    *,
    objective: str | Objective = "edp",
    budget: Budget | str | int = 10_000,
    seeds: int = 10,
    seed: int = 0,
    workers: int = 1,
    done: Callable[[Attempt], None] | None = None,
    kept: Kept | None = None,
    stop: threading.Event | None = None,
) -> Contest:
    """Search one layer with every contender and seed.

    Seeds take turns, contenders within them, so that what else the machine does hits all alike. Nothing is timed
    before every contender has run once, for what it compiles. Ctrl-C (or ``stop``) ends early with the seeds that all
    contenders have run.

    Parameters
    ----------
    contenders
        Mappers with options, as in `parse_contenders`.
    budget
        Of each search: samples, seconds or both.
    workers
        Searches side by side. Scores do not depend on it; seconds are only fair with one.
    done
        Told each search as it ends.
    kept
        Searches that ended before are taken from there, others put there.

    Raises
    ------
    InputError
        If a mapper or option is unknown, or a number out of range.
    """
    entrants, goal, allowed = parse_contenders(contenders), Objective.parse(objective), Budget.parse(budget)
    if not entrants:
        raise InputError("mappers", "must name at least one", "none")
    if not 1 <= seeds <= MOST_SEEDS:
        raise InputError("seeds", f"must be from 1 to {MOST_SEEDS}", seeds)
    _try_options(entrants, space, goal, allowed)
    arena = _Arena(space, goal, allowed, kept, stop or threading.Event(), workers)
    turns = [(contender, turn) for turn in range(seed, seed + seeds) for contender in entrants]
    with interruptible(arena.stop), ThreadPoolExecutor(max(1, workers)) as pool:
        try:
            arena.warm(turns)
            found = list(pool.map(lambda turn: arena.attempt(turn[0], turn[1], done), turns))
        except BaseException:
            arena.stop.set()
            raise
    whole = [turn for place, turn in enumerate(range(seed, seed + seeds))
             if None not in found[place * len(entrants):(place + 1) * len(entrants)]]
    attempts = tuple(attempt for attempt in found if attempt is not None and attempt.seed in whole)
    known = [bound for bound in (Bounding((space,), goal).score, *(a.proven for a in attempts)) if bound is not None]
    return Contest(space.operator.name, space.accelerator.name, str(goal), goal.unit, entrants, tuple(whole),
                   attempts, max(known, default=None))


def _try_options(entrants: Sequence[Contender], space: MapSpace, objective: Objective, budget: Budget) -> None:
    """Build every mapper once, so that a wrong option is told before anything is searched."""
    for contender in entrants:
        MAPPERS.get(contender.mapper)(Task(space, generator(0), budget.samples, contender.options, 1, objective))


@dataclass(frozen=True)
class _Arena:
    """What all searches of a contest have in common."""

    space: MapSpace
    objective: Objective
    budget: Budget
    kept: Kept | None
    stop: threading.Event
    workers: int
    writing: threading.Lock = field(default_factory=threading.Lock)

    def warm(self, turns: Sequence[tuple[Contender, int]]) -> None:
        """Run every contender that has searches to come once, briefly, so that all that it compiles is there."""
        missing = {contender.name: contender for contender, turn in turns if self._taken(contender, turn) is None}
        for contender in missing.values():
            if not self.stop.is_set():
                self._search(contender, 0, Budget(min(self.budget.samples or _WARM, _WARM)))

    def attempt(self, contender: Contender, seed: int, done: Callable[[Attempt], None] | None) -> Attempt | None:
        """Return one search, as it was kept or made now; None if all are to stop."""
        if self.stop.is_set():
            return None
        found = self._taken(contender, seed)
        if found is None:
            found = _attempt(contender, seed, self._search(contender, seed, self.budget))
            if self.stop.is_set():
                return None
            if self.kept is not None:
                with self.writing:
                    self.kept.put(self._cell(contender, seed), _plain(found))
        if done is not None:
            done(found)
        return found

    def _taken(self, contender: Contender, seed: int) -> Attempt | None:
        value = self.kept.get(self._cell(contender, seed)) if self.kept is not None else None
        return None if value is None else _from_plain(contender, seed, value)

    def _search(self, contender: Contender, seed: int, budget: Budget) -> SearchResult:
        cores = len(os.sched_getaffinity(0))
        watch = Watch(stop=self.stop, threads=max(1, cores // max(1, self.workers)))
        return search(self.space.operator, self.space.accelerator, objective=self.objective, mapper=contender.mapper,
                      budget=budget, seed=seed, space=self.space, options=contender.options, watch=watch)

    def _cell(self, contender: Contender, seed: int) -> dict[str, object]:
        space = self.space
        digest = hashlib.sha256(repr((space.operator.signature, space.accelerator, space.tiling,
                                      space.constraints)).encode()).hexdigest()[:16]
        return {"space": digest, "objective": str(self.objective), "budget": [self.budget.samples, self.budget.seconds],
                "mapper": contender.mapper, "options": dict(contender.options), "seed": seed,
                "side by side": self.workers}


def _attempt(contender: Contender, seed: int, found: SearchResult) -> Attempt:
    return Attempt(contender.name, seed, found.history, found.samples, found.legal_samples, found.seconds, found.proven)


def _plain(attempt: Attempt) -> dict[str, Any]:
    return {"history": [[step.samples, step.seconds, step.score] for step in attempt.history],
            "samples": attempt.samples, "legal_samples": attempt.legal_samples, "seconds": attempt.seconds,
            "proven": attempt.proven}


def _from_plain(contender: Contender, seed: int, value: Mapping[str, Any]) -> Attempt:
    return Attempt(contender.name, seed, tuple(Improvement(*step) for step in value["history"]), value["samples"],
                   value["legal_samples"], value["seconds"], value["proven"])
