"""Searches over several spaces at once: what a flexible machine can run is a union of them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.jobs import finished, interruptible
from tilewright.mapping import KeptSets, Layout, MapSpace, Tiling, flexible_spaces
from tilewright.search.bounding import Bounding
from tilewright.search.front import read_front
from tilewright.search.kept import FEW, searching_kept
from tilewright.search.mapper import Options
from tilewright.search.objective import Constraint, Objective
from tilewright.search.records import Budget, SearchResult, Stopped
from tilewright.search.run import Request, Run, Searching, Seed, Watch, search, united
from tilewright.search.scoring import CostModel, model_of
from tilewright.search.start import Start
from tilewright.search.sweep import Densities
from tilewright.workload import Operator


def search_flexible(  # noqa: PLR0913  (keywords of the one entry point)
    operator: Operator,
    accelerator: Accelerator,
    *,
    objective: str | Objective = "edp",
    mapper: str = "auto",
    budget: Budget | str | int = 10_000,
    seed: Seed = 0,
    constraints: Iterable[str | Constraint] = (),
    tiling: Tiling = "imperfect",
    options: Options | None = None,
    start: Start | None = None,
    front: str | Iterable[str] = (),
    watch: Watch | None = None,
) -> SearchResult:
    """Search the best mapping among those that the flexibility of ``accelerator`` allows.

    ``budget`` is that of all members of the feasible space together, so that machines of different flexibility compare
    at equal samples: see `search_spaces`.
    """
    return search_spaces(flexible_spaces(operator, accelerator, tiling), objective=objective, mapper=mapper,
                         budget=budget, seed=seed, constraints=constraints, options=options, start=start, front=front,
                         watch=watch)


def search_spaces(  # noqa: PLR0913
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
    """Search the best mapping of a union of spaces of one operator.

    Spaces that their share of the samples covers are enumerated; what they leave over goes to the others. Those are
    searched by successive halving: all get an equal part of the samples (or seconds), the better half goes on with the
    same populations, and so forth, in as many rounds as it takes to come down to one, each of equal samples. Each
    begins from ``start``, mended as its space asks. The ``front`` is that of all together. Of `KeptSets` a few are
    searched (see `searching_kept`).

    Raises
    ------
    InputError
        If there is no space, or spaces of different operators, or there are fewer samples than spaces, or a checkpoint
        is asked for of more than one.
    """
    whole = Budget.parse(budget)
    if isinstance(spaces, KeptSets):
        watch = watch or Watch()
        goal = Objective.parse(objective, constraints).over(densities)
        request = Request(spaces.space, goal, mapper, whole, seed, options or {}, start, read_front(front))
        with interruptible(watch.stop):
            return finished(searching_kept(spaces, request, watch))
    if not spaces or any(space.operator != spaces[0].operator for space in spaces):
        raise InputError("spaces", "must be one or more of one operator", len(spaces))
    watch = watch or Watch()
    parsed = Objective.parse(objective, constraints).over(densities)
    if len(spaces) == 1 and watch.checkpoint is not None:
        return search(spaces[0].operator, spaces[0].accelerator, objective=parsed, mapper=mapper, budget=whole,
                      seed=seed, space=spaces[0], options=options, start=start, front=front, watch=watch)
    request = Request(spaces[0], parsed, mapper, whole, seed, options or {}, start, read_front(front))
    with interruptible(watch.stop):
        return finished(searching_spaces(spaces, request, watch))


def searching_spaces(spaces: Sequence[MapSpace], request: Request, watch: Watch) -> Searching:
    """Search a union of spaces step by step, as `search_spaces` does in one go; ``request`` is that of the union.

    Raises
    ------
    InputError
        If there are fewer samples than spaces, or a checkpoint is asked for.
    """
    whole, parsed = request.budget, request.objective
    if whole.samples is not None and whole.samples < len(spaces):
        raise InputError("budget.samples", f"must be at least 1 for each of the {len(spaces)} spaces", whole.samples)
    if watch.checkpoint is not None:
        raise InputError("checkpoint", "must be left out where several spaces are searched", str(watch.checkpoint))
    spaces = [parsed.widest(space) for space in spaces]
    path = request.seed if isinstance(request.seed, tuple) else (request.seed,)
    inner = replace(watch, recorder=None)
    bounding = Bounding(tuple(spaces), parsed)
    models: dict[Layout, CostModel] = {}
    runs = []
    for index, space in enumerate(spaces):
        # Members that differ by constraints alone are scored by one model.
        alike = space.accelerator == spaces[0].accelerator
        model = _model(models, space, parsed) if alike else model_of(space, parsed)
        own = replace(request, space=space, seed=(*path, index) if len(spaces) > 1 else request.seed)
        runs.append(_member(own, len(spaces), inner, model))
        runs[-1].bounding = bounding
    yield
    yield from _halve(runs, _Left(whole.samples, whole.seconds), watch)
    best = united(runs, request)
    complete = all(run.stopped == "exhausted" and run.mapper.covers_space for run in runs)
    found = replace(
        best, space_size=best.space_size if len(spaces) == 1 else None, complete=complete,
        stopped=best.stopped if len(spaces) == 1 else "interrupted" if watch.stop.is_set() else
        _why_ended(runs, whole), proven=best.proven if len(spaces) == 1 else None)
    if watch.recorder is not None:
        watch.recorder(found)
    return found


def _why_ended(runs: Sequence[Run], budget: Budget) -> Stopped:
    """Return why the search of a union came to its end."""
    if all(run.stopped == "exhausted" for run in runs):
        return "exhausted"
    if budget.samples is not None and sum(run.samples for run in runs) >= budget.samples:
        return "samples"
    late = budget.seconds is not None and sum(run.seconds for run in runs) >= budget.seconds
    return "seconds" if late or budget.samples is None else "samples"


def _member(request: Request, members: int, watch: Watch, model: CostModel) -> Run:
    """Return the search of one member: of all its mappings where its share of the samples covers them."""
    samples, seconds = request.budget.samples, request.budget.seconds
    if request.space.within(FEW if samples is None else samples // members):
        request = replace(request, mapper="exhaustive", options={}, start=None)
    # A mapper plans for what a finalist gets.
    finalist = 1 if members == 1 else max(1, math.ceil(math.log2(members)))
    plan = Budget(None if samples is None else max(1, samples // finalist),
                  None if seconds is None else seconds / finalist)
    return Run(replace(request, plan=plan), watch, model)


@dataclass
class _Left:
    """What is left to spend: samples, and seconds (None: no limit)."""

    samples: int | None
    seconds: float | None

    def part(self, parts: int) -> "_Left":
        """Return one of ``parts`` equal parts."""
        return _Left(None if self.samples is None else self.samples // parts,
                     None if self.seconds is None else self.seconds / parts)

    def spend(self, run: Run, parts: int = 1) -> Iterator[None]:
        """Let a run have one of ``parts`` equal parts."""
        before = run.samples, run.seconds
        yield from run.spend(None if self.samples is None else -(-self.samples // parts),
                             None if self.seconds is None else self.seconds / parts)
        self.take(run.samples - before[0], run.seconds - before[1])

    def take(self, samples: int, seconds: float) -> None:
        """Count what was spent."""
        if self.samples is not None:
            self.samples -= samples
        if self.seconds is not None:
            self.seconds -= seconds


def _halve(runs: list[Run], left: _Left, watch: Watch) -> Iterator[None]:
    """Run those that end by themselves, then the others round by round."""
    alive = [run for run in runs if run.request.mapper != "exhaustive"]
    for run in runs:
        if run.request.mapper == "exhaustive":
            yield from left.spend(run)
    rounds = max(1, math.ceil(math.log2(len(alive)))) if alive else 0
    for index in range(rounds):
        share = left.part(rounds - index)
        before = sum(run.samples for run in runs), sum(run.seconds for run in runs)
        for place, run in enumerate(alive):
            if not watch.stop.is_set():
                yield from share.spend(run, len(alive) - place)
        left.take(sum(run.samples for run in runs) - before[0], sum(run.seconds for run in runs) - before[1])
        alive = sorted(alive, key=lambda run: run.best)[:max(1, math.ceil(len(alive) / 2))]
    if alive and left.samples and not watch.stop.is_set():
        yield from left.spend(alive[0])


def _model(models: dict[Layout, CostModel], space: MapSpace, objective: Objective) -> CostModel:
    if space.layout not in models:
        models[space.layout] = model_of(space, objective)
    return models[space.layout]
