"""Searches over what memories keep: a race of the few kept sets that promise most."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.mapping import KeptSets
from tilewright.search.bounding import KeptBounding
from tilewright.search.records import Budget, Improvement, Progress, SearchResult, Stopped
from tilewright.search.run import Request, Run, Searching, Watch, united
from tilewright.search.scoring import model_of
from tilewright.search.start import Start

FEW = 4096
"""Largest union, or member of one, that is enumerated where the budget is time alone."""
ENTRANTS, LEAST_SAMPLES = 3, 250
"""Members that race at most, and samples for each of them at least."""
LEGS = 0.25, 0.25
"""Shares of the budget after each of which the worse half of the members gets no more; the best one gets the rest."""


def searching_kept(kept: KeptSets, request: Request, watch: Watch) -> Searching:
    """Search a union of spaces that differ by what memories keep; ``request`` is that of the union.

    A few members race: that of the mapping to begin from, if any, those of the least bounds, and that in which memories
    keep what they can. All get a part of the samples (or seconds), the better half of them a second, and the best one
    the rest. Where its mapper comes to an end, the next one goes on. A union that the budget covers is enumerated,
    member by member. No member gets a sample whose bound is not below the best score.
    """
    race = _Race(kept, request, watch)
    alive = race.entrants()
    yield
    for share in LEGS if len(alive) > 1 else ():
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
    """A member under search, and what it was granted so far: shares of the budget as samples and seconds."""

    run: Run
    limit: float
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


class _Race:
    """The searches of members; each is set up when it first gets samples."""

    def __init__(self, kept: KeptSets, request: Request, watch: Watch) -> None:
        self.kept = KeptSets(request.objective.widest(kept.space))
        self.request, self.watch, self.budget = request, watch, request.budget
        self.bounding = KeptBounding(self.kept, request.objective)
        self.bounded = self.bounding.bounded
        self.entered: dict[int, _Entrant] = {}
        self.history: list[Improvement] = []
        samples = self.budget.samples
        self.covered = self.kept.space.within((FEW if samples is None else samples) // len(self.kept))

    @property
    def best(self) -> float:
        """Best score of all."""
        return min((entrant.run.best for entrant in self.entered.values()), default=math.inf)

    def entrants(self) -> list[_Entrant]:
        """Return the members that race, set up; none where all are enumerated."""
        samples, start = self.budget.samples, self.request.start
        most = ENTRANTS if samples is None else min(ENTRANTS, max(1, samples // LEAST_SAMPLES))
        given = [self.kept.number_of(source.mapping) for source in start.sources] if isinstance(start, Start) else []
        numbers = list(dict.fromkeys([*given[:1], *self.bounding.leading(most)]))[:most]
        found = [] if self.covered else [self.member(number) for number in numbers]
        for number in self._kept_numbers():
            self.member(number)
        for entrant in found:
            # Programs are written before time counts.
            getattr(entrant.run.model, "program", None)
        return found

    def member(self, number: int) -> _Entrant:
        """Return the search of a member, from where it was left."""
        if number in self.entered:
            return self.entered[number]
        samples, seconds = self.budget.samples, self.budget.seconds
        # A mapper plans for what the best one gets.
        share = 1.0 if self.covered else 1 - sum(LEGS) / 2
        plan = Budget(None if samples is None else max(1, int(samples * share)),
                      None if seconds is None else seconds * share)
        seed = self.request.seed if isinstance(self.request.seed, tuple) else (self.request.seed,)
        own = replace(self.request, space=self.kept[number], seed=(*seed, number), plan=plan)
        if self.covered:
            own = replace(own, mapper="exhaustive", options={}, start=None)
        watch = replace(self.watch, recorder=None, checkpoint=self._file(str(number)),
                        progress=self if self.watch.progress is not None else None)
        run = Run(own, watch, model_of(own.space, own.objective))
        if run.bounding is None:
            self.bounded = False
        else:
            run.bounding = self.bounding
        self.entered[number] = _Entrant(run, self._limit(number))
        return self.entered[number]

    def _file(self, number: str) -> Path | None:
        """Return the file that a member is kept in; one that is enumerated has another, as its mapper is another."""
        file = self.watch.checkpoint
        return file and file.with_name(f"{file.stem}-{number}{'-whole' if self.covered else ''}.npz")

    def _kept_numbers(self) -> list[int]:
        """Return the numbers of the members that were searched before, perhaps under a larger budget."""
        file = self._file("*")
        names = [path.stem.split("-")[1] for path in file.parent.glob(file.name)] if file else []
        return sorted(int(name) for name in names if name.isdigit())

    def grant(self, entrant: _Entrant, share: float) -> Iterator[None]:
        """Let a member go on for a share of the budget."""
        samples, seconds = self.budget.samples, self.budget.seconds
        entrant.samples += math.inf if samples is None else int(samples * share)
        entrant.seconds += math.inf if seconds is None else seconds * share
        yield from self._on(entrant)

    def better(self, alive: Sequence[_Entrant]) -> list[_Entrant]:
        """Return the better half of those that can still win."""
        best = min(entrant.best for entrant in alive)
        able = [entrant for entrant in alive if entrant.limit < best or entrant.best == best]
        return sorted(able, key=lambda entrant: entrant.best)[:math.ceil(len(alive) / 2)]

    def rest(self, alive: Sequence[_Entrant]) -> Iterator[None]:
        """Give what is left to the best member, then, where that ends by itself, to the one of the least bound."""
        numbers = iter(self.bounding.scores)
        following = iter(alive[:1])
        while not self.watch.stop.is_set():
            entrant = next(following, None)
            if entrant is None:
                number = next(numbers, None)
                if number is None or self._limit(number) >= self.best:
                    break
                entrant = self.member(number)
            samples, seconds = self.budget.samples, self.budget.seconds
            others = [other for other in self.entered.values() if other is not entrant]
            # Enumeration knows its end by one mapping more than there are.
            entrant.samples = math.inf if samples is None else (
                samples + self.covered - sum(other.run.samples for other in others))
            if self.watch.left is not None:  # time is shared with other layers: what they do not need is ours
                entrant.seconds = entrant.run.seconds + max(0.0, self.watch.left())
            else:
                entrant.seconds = math.inf if seconds is None else seconds - sum(other.run.seconds for other in others)
            yield from self._on(entrant)
            if not entrant.ended:
                break

    def _on(self, entrant: _Entrant) -> Iterator[None]:
        """Let a member use up what it was granted."""
        run, stop = entrant.run, self.watch.stop
        if not stop.is_set():
            yield from run.spend(None if entrant.samples == math.inf else int(entrant.samples) - run.samples,
                                 None if entrant.seconds == math.inf else entrant.seconds - run.seconds)
            run.keep()
        others = [other for other in self.entered.values() if other is not entrant]
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
        left = [seconds * (self.budget.samples / samples - 1)] if self.budget.samples and samples else []
        left += [] if self.budget.seconds is None else [self.budget.seconds - seconds]
        self.watch.progress.update(replace(
            progress, samples=samples, legal_samples=sum(run.legal_samples for run in runs), seconds=seconds,
            best=min(known, default=None), total_samples=self.budget.samples,
            eta_seconds=max(0.0, min(left)) if left else None, bound=self.bounding.score))

    def result(self) -> SearchResult:
        """Return what has been found."""
        runs = [entrant.run for entrant in self.entered.values()] or [self.member(0).run]
        floors = [self._floor(number) for number in self.bounding.scores]
        floor = min(floors) if len(floors) == len(self.kept) else -math.inf
        complete = floor >= self.best
        return replace(
            united(runs, self.request), history=tuple(self.history), complete=complete, stopped=self._why(complete),
            space_size=self.kept.size() if self.covered else None,
            proven=min(floor, self.best) if floor > -math.inf else None)

    def _limit(self, number: int) -> float:
        """Return a score that no mapping of a member beats, before any is searched."""
        return self.bounding.scores[number] if self.bounded else -math.inf

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
