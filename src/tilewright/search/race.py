"""Searches over unions of spaces: what a flexible machine can run, and what memories keep."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.jobs import finished, interruptible
from tilewright.mapping import KeptSets, Layout, MapSpace, flexible_spaces
from tilewright.search.bounding import Bounding, KeptBounding
from tilewright.search.front import joined, read_front
from tilewright.search.mapper import Options
from tilewright.search.objective import Constraint, Objective
from tilewright.search.records import Budget, Improvement, Progress, SearchResult, Stopped
from tilewright.search.run import Request, Searching, SearchRun, Seed, Watch, searching
from tilewright.search.scoring import CostModel, model_of
from tilewright.search.start import Start
from tilewright.search.sweep import Densities
from tilewright.workload import Operator

FEW = 4096
"""Largest union of kept sets, or member of any, that is enumerated where the budget is time alone."""
ENTRANTS, LEAST_SAMPLES, LEAST_SECONDS = 3, 100, 0.05
"""Kept sets that race at most; and samples or seconds for each of them at least, though two race where only time is
short, as setting up a third takes more than it finds."""
LEGS = 0.25, 0.25
"""Shares of the budget of their first legs; the best one gets the rest. Of two, for time alone, the first leg has both:
in an eighth of it each, the worse set led too often. Of few samples an eighth more would be missed by the better."""


def search_flexible(operator: Operator, accelerator: Accelerator, **asked: Any) -> SearchResult:
    """Search the best mapping among those that the flexibility of ``accelerator`` allows: see `search_spaces`.

    The budget is that of all members of the feasible space together, so that machines of different flexibility compare
    at equal samples.
    """
    return search_spaces(flexible_spaces(operator, accelerator), **asked)


def search_spaces(  # noqa: PLR0913  (keywords of the one entry point)
    spaces: Sequence[MapSpace] | KeptSets,
    *,
    objective: str | Objective = "edp",
    mapper: str = "auto",
    budget: Budget | str | int = 10_000,
    seed: Seed = 0,
    constraints: Iterable[str | Constraint] = (),
    options: Options | None = None,
    start: Start | None = None,
    densities: Densities | None = None,
    front: str | Iterable[str] = (),
    watch: Watch | None = None,
) -> SearchResult:
    """Search the best mapping of a union of spaces of one operator, as `racing` does.

    Each member begins from ``start``, mended as its space asks. The ``front`` is that of all together.

    Raises an `InputError` if there is no space, or spaces of different operators, or there are fewer samples than
    spaces, or a checkpoint is asked for of more than one (but for kept sets).
    """
    if not isinstance(spaces, KeptSets) and (not spaces or any(one.operator != spaces[0].operator for one in spaces)):
        raise InputError("spaces", "must be one or more of one operator", len(spaces))
    watch, goal = watch or Watch(), Objective.parse(objective, constraints).over(densities)
    request = Request(goal.widest(spaces[0]), goal, mapper, Budget.parse(budget), seed, options or {}, start,
                      read_front(front))
    alone = len(spaces) == 1 and watch.checkpoint is not None
    with interruptible(watch.stop):
        return finished(searching(request, watch) if alone else racing(spaces, request, watch))


def racing(spaces: Sequence[MapSpace] | KeptSets, request: Request, watch: Watch) -> Searching:
    """Search a union of spaces step by step; ``request`` is that of the union.

    Members race by successive halving: all get an equal part of a share of the samples (or seconds), the better half
    goes on with the same populations, and so forth; the best one gets the rest. Where its mapper comes to an end, the
    next one goes on. Of spaces those that their part of the samples covers are enumerated first, all others race, in as
    many equal rounds as it takes to come down to one, but two at least. Of kept sets, a union that the budget covers is
    enumerated member by member; else a few race: that of the mapping to begin from, if any, those of the least bounds,
    and that in which memories keep what they can. None of them gets a sample whose bound is not below the best score.

    Raises an `InputError` if there are fewer samples than spaces, or a checkpoint is asked for of several that are no
    kept sets.
    """
    rules = (_Rules.of_kept(spaces, request) if isinstance(spaces, KeptSets) else
             _Rules.of_spaces(spaces, request, watch))
    race = _Race(rules, request, watch)
    alive = race.entrants()
    yield
    for number in rules.first:
        yield from race.give(race.member(number))
    race.begin()
    for share in rules.legs if len(alive) > 1 else ():
        for entrant in alive:
            yield from race.grant(entrant, share / len(alive))
        alive = race.better(alive)
    yield from race.rest(alive)
    found = race.result()
    if watch.recorder is not None:
        watch.recorder(found)
    return found


@dataclass
class _Entrant:
    """A member under search, and what it was granted so far: samples and seconds."""

    run: SearchRun
    limit: float
    more: int
    """Enumeration knows its end by one mapping more than there are."""
    samples: float = 0
    seconds: float = 0.0
    told: int = 0
    """Its improvements that are in the history of the race."""

    @property
    def ended(self) -> bool:
        """Whether its mapper has nothing more to propose."""
        return self.run.stopped == "exhausted"

    @property
    def best(self) -> float:
        """Best score within what was granted: a search that is taken up again may be further than that."""
        if self.run.samples <= self.samples:
            return self.run.best
        return min((step.score for step in self.within()), default=math.inf)

    def within(self) -> list[Improvement]:
        """Return its improvements within what was granted."""
        return [step for step in self.run.history if step.samples <= self.samples]


@dataclass(frozen=True)
class _Rules:
    """How members race."""

    members: Sequence[MapSpace] | KeptSets
    bounding: Bounding | KeptBounding
    covered: Collection[int]
    """The members that are enumerated."""
    entrants: Sequence[int]
    """The members that race."""
    legs: tuple[float, ...]
    """Shares of the budget of the rounds before the last."""
    plan: float
    """The share that each plans for, which the best one gets."""
    first: Collection[int] = ()
    """Those of the enumerated that are before all others."""
    whole: KeptSets | None = None
    """What is enumerated as one, whose size is told."""

    @classmethod
    def of_spaces(cls, spaces: Sequence[MapSpace], request: Request, watch: Watch) -> "_Rules":
        """Return the rules of a union of spaces; raises as `racing` does."""
        goal, samples = request.objective, request.budget.samples
        if samples is not None and samples < len(spaces):
            raise InputError("budget.samples", f"must be at least 1 for each of the {len(spaces)} spaces", samples)
        if watch.checkpoint is not None:
            raise InputError("checkpoint", "must be left out where several spaces are searched", str(watch.checkpoint))
        members, most = tuple(map(goal.widest, spaces)), FEW if samples is None else samples // len(spaces)
        covered = [number for number, space in enumerate(members) if space.within(most)]
        others = [number for number in range(len(members)) if number not in covered]
        rounds = max(2, math.ceil(math.log2(len(others)))) if len(others) > 1 else 1
        return cls(members, Bounding(members, goal), covered, others, (1 / rounds,) * (rounds - 1), 1 / rounds, covered)

    @classmethod
    def of_kept(cls, kept: KeptSets, request: Request) -> "_Rules":
        """Return the rules of a union of kept sets."""
        goal, samples, start = request.objective, request.budget.samples, request.start
        members = KeptSets(goal.widest(kept.space))
        most = ENTRANTS if samples is None else min(ENTRANTS, max(1, samples // LEAST_SAMPLES))
        if request.budget.seconds is not None:
            most = min(most, max(2, int(request.budget.seconds / LEAST_SECONDS)))
        bounding, plan = KeptBounding(members, goal, most), 1 - sum(LEGS) / 2 if most > 1 else 1.0
        if members.space.within((samples or FEW) // len(members)):
            return cls(members, bounding, range(len(members)), (), LEGS, plan, whole=members)
        given = [members.number_of(source.mapping) for source in start.sources] if isinstance(start, Start) else []
        entrants = list(dict.fromkeys([*given[:1], *bounding.leading(most)]))[:most]
        legs = (sum(LEGS),) if len(entrants) == 2 and samples is None else LEGS
        return cls(members, bounding, (), entrants, legs, plan)


def _between(entrant: _Entrant) -> int:
    """Return how many mappings a member breeds between proofs of others."""
    return int(getattr(entrant.run.mapper, "between", 0))


def _stuck(entrant: _Entrant) -> bool:
    """Whether a member's proof has begun, and nothing raises what it proves any more."""
    return bool(getattr(entrant.run.mapper, "stuck", False))


class _Race:
    """The searches of members; each is set up when it first gets samples."""

    def __init__(self, rules: _Rules, request: Request, watch: Watch) -> None:
        self.request, self.watch, self.budget = request, watch, request.budget
        self.rules, self.members, self.bounding = rules, rules.members, rules.bounding
        self.samples, self.seconds = self.budget.samples or math.inf, self.budget.seconds or math.inf
        """What those that race may spend together."""
        self.entered: dict[int, _Entrant] = {}
        self.models: dict[Layout, CostModel] = {}
        self.history: list[Improvement] = []
        self.bounded = self.bounding.bounded

    @property
    def best(self) -> float:
        """Best score of all."""
        return min((entrant.run.best for entrant in self.entered.values()), default=math.inf)

    def entrants(self) -> list[_Entrant]:
        """Return the members that race, set up."""
        found = [self.member(number) for number in self.rules.entrants]
        for number in (*self.rules.first, *self._kept_numbers()):
            self.member(number)
        for entrant in found:
            # Programs are written before time counts.
            getattr(entrant.run.model, "program", None)
        return found

    def begin(self) -> None:
        """Let the race be for what the enumeration of members has left over."""
        for number in self.rules.first:
            self.samples -= self.entered[number].run.samples
            self.seconds -= self.entered[number].run.seconds

    def member(self, number: int) -> _Entrant:
        """Return the search of a member, from where it was left."""
        if number in self.entered:
            return self.entered[number]
        samples, seconds, covered = self.budget.samples, self.budget.seconds, number in self.rules.covered
        share = 1.0 if covered else self.rules.plan
        plan = Budget(None if samples is None else max(1, int(samples * share)),
                      None if seconds is None else seconds * share)
        seed = self.request.seed if isinstance(self.request.seed, tuple) else (self.request.seed,)
        own = replace(self.request, space=self.members[number], plan=plan,
                      seed=(*seed, number) if len(self.members) > 1 else self.request.seed)
        if covered:
            own = replace(own, mapper="exhaustive", options={}, start=None)
        watch = replace(self.watch, recorder=None, checkpoint=self._file(str(number)),
                        progress=self if self.watch.progress is not None else None)
        run = SearchRun(own, watch, self._model(own.space))
        if run.bounding is None:
            self.bounded = False
        else:
            run.bounding = self.bounding
        self.entered[number] = _Entrant(run, self._limit(number), int(covered))
        return self.entered[number]

    def _model(self, space: MapSpace) -> CostModel:
        """Return what scores a member; those that differ by constraints alone are scored by one model."""
        if space.accelerator != self.request.space.accelerator:
            return model_of(space, self.request.objective)
        if space.layout not in self.models:
            self.models[space.layout] = model_of(space, self.request.objective)
        return self.models[space.layout]

    def _file(self, number: str) -> Path | None:
        """Return the file that a member is kept in; one that is enumerated has another, as its mapper is another."""
        file = self.watch.checkpoint
        return file and file.with_name(f"{file.stem}-{number}{'-whole' if self.rules.covered else ''}.npz")

    def _kept_numbers(self) -> list[int]:
        """Return the numbers of the members that were searched before, perhaps under a larger budget."""
        file = self._file("*")
        names = [path.stem.split("-")[1] for path in file.parent.glob(file.name)] if file else []
        return sorted(int(name) for name in names if name.isdigit())

    def grant(self, entrant: _Entrant, share: float) -> Iterator[None]:
        """Let a member go on for a share of what there is, one that does nothing but prove until it does."""
        entrant.samples += self.samples if self.samples == math.inf else max(1, int(self.samples * share))
        entrant.seconds += self.seconds if self.seconds == math.inf else self.seconds * share
        yield from self._on(entrant, math.inf if _between(entrant) else -math.inf)

    def better(self, alive: Sequence[_Entrant]) -> list[_Entrant]:
        """Return the better half of those that can still win."""
        best = min(entrant.best for entrant in alive)
        able = [entrant for entrant in alive if entrant.limit < best or entrant.best == best]
        return sorted(able, key=lambda entrant: entrant.best)[:math.ceil(len(alive) / 2)]

    def rest(self, alive: Sequence[_Entrant]) -> Iterator[None]:
        """Give what is left to the best member, and once that proves something, by turns to what may score lowest.

        After each turn the best one breeds on, unless that was over after a look at the bound, before any mapping.
        """
        lead = next(iter(alive), None)
        while not self.watch.stop.is_set():
            begins = lead is not None and not lead.ended and lead.run.proven is None
            waiting = self._waiting()
            if not begins and not waiting:
                break
            entrant = lead if begins else self._next_of(waiting)
            assert entrant is not None
            ahead = next((floor for floor, number in waiting if self.entered.get(number) is not entrant), math.inf)
            before = entrant.run.samples
            yield from self.give(entrant, ahead if self.bounded else math.inf,
                                 _between(entrant) if _stuck(entrant) else math.inf)
            looked = entrant.run.samples == before
            if looked and not entrant.ended:
                break
            lead = min(self.entered.values(), key=lambda each: each.run.best)
            if not looked and lead is not entrant and _between(lead) and not lead.ended:
                yield from self.give(lead, math.inf, _between(lead))

    def _next_of(self, waiting: Sequence[tuple[float, int]]) -> _Entrant:
        """Return who goes on of those that may beat the best: that of the least bound, unless nothing raises it more.

        Then only a better mapping helps: that goes on which has tried the fewest.
        """
        first = self.member(waiting[0][1])
        if not _stuck(first):
            return first
        return min((self.member(number) for _, number in waiting), key=lambda entrant: entrant.run.samples)

    def _waiting(self) -> list[tuple[float, int]]:
        """Return what members may still score, and their numbers, the least first, of those that may beat the best."""
        over = {number for number, entrant in self.entered.items() if entrant.ended}
        floors = ((self._floor(number), number) for number in self.bounding.scores if number not in over)
        return sorted((each for each in floors if each[0] < self.best), key=lambda each: each[0])

    def give(self, entrant: _Entrant, ahead: float = math.inf, most: float = math.inf) -> Iterator[None]:
        """Let a member have all that is left, up to ``most`` samples, until it is proved to score above ``ahead``."""
        samples, seconds = self.budget.samples, self.budget.seconds
        others = [other for other in self.entered.values() if other is not entrant]
        entrant.samples = math.inf if samples is None else (
            samples + entrant.more - sum(other.run.samples for other in others))
        entrant.samples = min(entrant.samples, entrant.run.samples + most)
        entrant.run.rival = min((other.run.best for other in others if other.run.feasible), default=math.inf)
        if self.watch.left is not None:  # time is shared with other layers: what they do not need is ours
            entrant.seconds = entrant.run.seconds + max(0.0, self.watch.left())
        else:
            entrant.seconds = math.inf if seconds is None else seconds - sum(other.run.seconds for other in others)
        if not any(each.run.samples for each in self.entered.values()):  # one batch at least, however short the time
            entrant.seconds = max(entrant.seconds, math.ulp(0.0))
        yield from self._on(entrant, ahead)

    def _on(self, entrant: _Entrant, ahead: float) -> Iterator[None]:
        """Let a member use up what it was granted, or until it is proved to score above ``ahead``."""
        run, stop = entrant.run, self.watch.stop
        others = [other for other in self.entered.values() if other is not entrant]
        if self.budget.samples is not None:
            entrant.samples = min(entrant.samples, self.budget.samples + entrant.more - sum(min(
                other.run.samples, other.samples) for other in others))
        # Where time is over, those that have tried nothing yet are of no more use: one member has.
        over = self.watch.left is not None and self.watch.left() <= 0 and any(other.run.samples for other in others)
        if not stop.is_set() and not over:
            for _ in run.spend(None if entrant.samples == math.inf else int(entrant.samples) - run.samples,
                               None if entrant.seconds == math.inf else entrant.seconds - run.seconds):
                yield
                if run.proven is not None and run.proven > ahead:
                    break
            run.keep()
        before = (sum(min(other.run.samples, int(min(other.samples, 1 << 62))) for other in others),
                  sum(min(other.run.seconds, other.seconds) for other in others))
        steps = entrant.within()
        for step in steps[entrant.told:]:
            if not self.history or step.score < self.history[-1].score:
                self.history.append(Improvement(step.samples + before[0], step.seconds + before[1], step.score))
        entrant.told = len(steps)

    def update(self, progress: Progress) -> None:
        """Show the progress of one member as that of the union."""
        assert self.watch.progress is not None
        runs = [entrant.run for entrant in self.entered.values()]
        samples, seconds = sum(run.samples for run in runs), sum(run.seconds for run in runs)
        known = [run.best for run in runs if run.feasible]
        bound = max(self._least, self.bounding.score or -math.inf)
        left = [seconds * (self.budget.samples / samples - 1)] if self.budget.samples and samples else []
        left += [] if self.budget.seconds is None else [self.budget.seconds - seconds]
        self.watch.progress.update(replace(
            progress, samples=samples, legal_samples=sum(run.legal_samples for run in runs), seconds=seconds,
            best=min(known, default=None), total_samples=self.budget.samples,
            eta_seconds=max(0.0, min(left)) if left else None, bound=bound if bound > -math.inf else None))

    def result(self) -> SearchResult:
        """Return the best that was found, with what all spent and found."""
        request, runs = self.request, [entrant.run for entrant in self.entered.values()] or [self.member(0).run]
        # Stopped before the first batch, none has a sample.
        best = min((run for run in runs if run.samples), key=lambda run: run.best, default=runs[0]).result()
        floor = self._least
        complete = floor >= self.best
        size = best.space_size if len(self.members) == 1 else None
        if self.rules.whole is not None:
            size = self.rules.whole.size()
        return replace(
            best, samples=sum(run.samples for run in runs), legal_samples=sum(run.legal_samples for run in runs),
            seconds=sum(run.seconds for run in runs), seed=request.seed, budget=request.budget, mapper=request.mapper,
            front=joined([run.archive.front() for run in runs if run.archive is not None]),
            history=tuple(self.history), complete=complete, stopped=self._why(complete), space_size=size,
            proven=min(floor, self.best) if floor > -math.inf else None)

    def _limit(self, number: int) -> float:
        """Return a score that no mapping of a member beats, before any is searched."""
        return self.bounding.limit(number) if self.bounded else -math.inf

    @property
    def _least(self) -> float:
        """What no mapping of any member is known to score below."""
        known = self.bounding.scores
        return min(map(self._floor, known)) if len(known) == len(self.members) else -math.inf

    def _floor(self, number: int) -> float:
        """Return what no mapping of a member is known to score below."""
        entrant = self.entered.get(number)
        if entrant is None:
            return self._limit(number)
        if entrant.ended and entrant.run.mapper.covers_space:
            return entrant.run.best
        return max(entrant.limit, -math.inf if entrant.run.proven is None else entrant.run.proven)

    def _why(self, complete: bool) -> Stopped:
        if self.watch.stop.is_set():
            return "interrupted"
        runs = [entrant.run for entrant in self.entered.values()]
        if complete or all(run.stopped == "exhausted" for run in runs):
            return "exhausted"
        late = self.budget.seconds is not None and sum(run.seconds for run in runs) >= self.budget.seconds
        return "seconds" if late or self.budget.samples is None else "samples"
