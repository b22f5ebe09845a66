"""What repeated searches of one layer by several mappers tell, at equal samples and at equal time."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from statistics import median

from tilewright.base import InputError, has_extra, value_of
from tilewright.search.bounding import relative_gap
from tilewright.search.mapper import MAPPERS
from tilewright.search.records import Improvement
from tilewright.search.studies.statistics import Comparison, Interval, compare, holm, median_interval


@dataclass(frozen=True)
class Contender:
    """A mapper with its options, under a name of its own."""

    name: str
    mapper: str
    options: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Contender":
        """Read ``gamma`` or ``gamma:crossover=0,population=100``.

        Raises an `InputError` if it cannot be read or there is no such mapper.
        """
        mapper, _, rest = text.strip().partition(":")
        MAPPERS.get(mapper)
        options: dict[str, object] = {}
        for part in filter(None, rest.split(",")):
            name, sign, value = (word.strip() for word in part.partition("="))
            if not (name and sign and value):
                raise InputError(f"mappers.{mapper}", "must give options as NAME=VALUE", part,
                                 f"For example {mapper}:NAME=VALUE")
            options[name] = value_of(value)
        return cls(text.strip(), mapper, options)


def parse_contenders(text: "str | Iterable[str | Contender]") -> tuple[Contender, ...]:
    """Read ``gamma,gamma:crossover=0,tile=1,random``: commas part mappers, and the options of one.

    Raises an `InputError` if one cannot be read, or two are the same.
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
    """Score that the mapper has proved none to beat."""
    ended: bool = False
    """Whether it ended by itself, having nothing left to propose."""

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
        """The samples that all searches had, but for those that ended by themselves."""
        lasting = [attempt.samples for attempt in self.attempts if not attempt.ended]
        return max(1, min(lasting) if lasting else max(attempt.samples for attempt in self.attempts))

    @cached_property
    def equal_seconds(self) -> float:
        """The time that all contenders had: the least of their median times, but for those that ended by themselves."""
        lasting = [self.time(name).median for name in self.names if not all(a.ended for a in self.of(name))]
        return min(lasting) if lasting else max(self.time(name).median for name in self.names)

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
        return relative_gap(self.final(name).median, self.bound)

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
        scores = {name: tuple(attempt.after(at, clock) for attempt in self.of(name)) for name in self.names}
        pairs = list(combinations(self.names, 2))
        found = [_compare(scores[one], scores[other]) for one, other in pairs]
        corrected = holm([each.p for each in found])
        return [(*pair, replace(each, p=p)) for pair, each, p in zip(pairs, found, corrected, strict=True)]


_compare = cache(compare)
"""The same scores are compared for words, tables and files."""


def _spread(first: float, last: float, points: int, *, whole: bool) -> tuple[float, ...]:
    ratio = last / first
    found = [first * ratio ** (place / max(points - 1, 1)) for place in range(points)]
    found[-1] = last
    return tuple(sorted({float(round(x)) for x in found})) if whole else tuple(dict.fromkeys(found))


CROSSOVER_ONLY = dict.fromkeys(("tile", "parallel", "reorder", "growth", "aging", "move", "fill", "nudge", "expand",
                                "rebuild", "newcomer"), 0) | {"crossover": 1}


def crossover_contenders() -> tuple[Contender, ...]:
    """Return Gamma, Gamma without crossover, crossover alone, and a standard genetic algorithm where installed."""
    found = [Contender("gamma", "gamma"), Contender("gamma without crossover", "gamma", {"crossover": 0}),
             Contender("crossover only", "gamma", CROSSOVER_ONLY)]
    if has_extra("optimizers"):
        found.append(Contender("standard GA", "ga"))
    return tuple(found)
