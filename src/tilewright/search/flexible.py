"""Searches over several spaces at once: what a flexible machine can run is a union of them."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.mapping import Layout, MapSpace, Tiling, flexible_spaces
from tilewright.search.bounding import Bounding
from tilewright.search.front import joined, read_front
from tilewright.search.mapper import Options
from tilewright.search.objective import Constraint, Objective
from tilewright.search.records import Budget, SearchResult, Stopped
from tilewright.search.run import CostModel, Request, Run, Seed, Watch, interruptible, model_of, search
from tilewright.search.start import Start
from tilewright.search.sweep import Densities
from tilewright.workload import Operator

FEW = 4096
"""Largest member that is enumerated where the budget is time alone."""
LONG = 1e9


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
    spaces: Sequence[MapSpace],
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
    begins from ``start``, mended as its space asks. The ``front`` is that of all together.

    Raises
    ------
    InputError
        If there is no space, or spaces of different operators, or there are fewer samples than spaces, or a checkpoint
        is asked for of more than one.
    """
    whole = Budget.parse(budget)
    samples = whole.samples
    if not spaces or any(space.operator != spaces[0].operator for space in spaces):
        raise InputError("spaces", "must be one or more of one operator", len(spaces))
    if samples is not None and samples < len(spaces):
        raise InputError("budget.samples", f"must be at least 1 for each of the {len(spaces)} spaces", samples)
    watch = watch or Watch()
    parsed = Objective.parse(objective, constraints).over(densities)
    spaces = [parsed.widest(space) for space in spaces]
    if len(spaces) == 1 and watch.checkpoint is not None:
        return search(spaces[0].operator, spaces[0].accelerator, objective=parsed, mapper=mapper, budget=whole,
                      seed=seed, space=spaces[0], options=options, start=start, front=front, watch=watch)
    if watch.checkpoint is not None:
        raise InputError("checkpoint", "must be left out where several spaces are searched", str(watch.checkpoint))
    started = time.perf_counter()
    metrics = read_front(front)
    path = seed if isinstance(seed, tuple) else (seed,)
    inner = replace(watch, recorder=None)
    bounding = Bounding(tuple(spaces), parsed)
    models: dict[Layout, CostModel] = {}
    with interruptible(watch.stop):
        runs = []
        for index, space in enumerate(spaces):
            # Members that differ by constraints alone are scored by one model.
            alike = space.accelerator == spaces[0].accelerator
            model = _model(models, space, parsed) if alike else model_of(space, parsed)
            own = (*path, index) if len(spaces) > 1 else seed
            whole_request = Request(space, parsed, mapper, whole, own, options or {}, start, metrics)
            runs.append(_member(whole_request, (samples, len(spaces)), inner, model))
            runs[-1].bounding = bounding
        _halve(runs, _Left(samples, None if whole.seconds is None else started + whole.seconds), watch)
        # Stopped before the first batch, none has a sample.
        best = min((run for run in runs if run.samples), key=lambda run: run.best, default=runs[0]).result()
    complete = all(run.stopped == "exhausted" and run.mapper.covers_space for run in runs)
    found = replace(
        best, samples=sum(run.samples for run in runs), legal_samples=sum(run.legal_samples for run in runs),
        seconds=time.perf_counter() - started, seed=seed, budget=whole, mapper=mapper,
        space_size=best.space_size if len(spaces) == 1 else None, complete=complete,
        stopped=best.stopped if len(spaces) == 1 else "interrupted" if watch.stop.is_set() else
        _why_ended(runs, whole, started), proven=best.proven if len(spaces) == 1 else None,
        front=joined([run.archive.front() for run in runs if run.archive is not None]),
    )
    if watch.recorder is not None:
        watch.recorder(found)
    return found


def _why_ended(runs: Sequence[Run], budget: Budget, started: float) -> Stopped:
    """Return why the search of a union came to its end."""
    if all(run.stopped == "exhausted" for run in runs):
        return "exhausted"
    if budget.samples is not None and sum(run.samples for run in runs) >= budget.samples:
        return "samples"
    late = budget.seconds is not None and time.perf_counter() - started >= budget.seconds
    return "seconds" if late or budget.samples is None else "samples"


def _member(request: Request, share: tuple[int | None, int], watch: Watch, model: CostModel) -> Run:
    """Return the search of one member: of all its mappings where its share of the samples covers them."""
    samples, members = share
    if request.space.within(FEW if samples is None else samples // members):
        request = replace(request, mapper="exhaustive", options={}, start=None)
    # A mapper plans for the samples that a finalist gets.
    finalist = 1 if members == 1 else max(1, math.ceil(math.log2(members)))
    plan = Budget(seconds=LONG) if samples is None else Budget(max(1, samples // finalist))
    return Run(replace(request, budget=plan), watch, model)


@dataclass
class _Left:
    """What is left to spend: samples, and the time until a deadline (None: no limit)."""

    samples: int | None
    deadline: float | None

    def part(self, parts: int) -> "_Left":
        """Take one of ``parts`` equal parts out."""
        now = time.perf_counter()
        return _Left(None if self.samples is None else self.samples // parts,
                     None if self.deadline is None else now + (self.deadline - now) / parts)

    def spend(self, run: Run, parts: int = 1) -> int:
        """Let a run have one of ``parts`` equal parts; return the samples that it took."""
        samples = None if self.samples is None else -(-self.samples // parts)
        seconds = None if self.deadline is None else (self.deadline - time.perf_counter()) / parts
        taken = run.spend(samples, seconds)
        if self.samples is not None:
            self.samples -= taken
        return taken


def _halve(runs: list[Run], left: _Left, watch: Watch) -> None:
    """Run those that end by themselves, then the others round by round."""
    alive = [run for run in runs if run.request.mapper != "exhaustive"]
    for run in runs:
        if run.request.mapper == "exhaustive":
            left.spend(run)
    rounds = max(1, math.ceil(math.log2(len(alive)))) if alive else 0
    for index in range(rounds):
        share, taken = left.part(rounds - index), 0
        for place, run in enumerate(alive):
            if not watch.stop.is_set():
                taken += share.spend(run, len(alive) - place)
        if left.samples is not None:
            left.samples -= taken
        alive = sorted(alive, key=lambda run: run.best)[:max(1, math.ceil(len(alive) / 2))]
    if alive and left.samples and not watch.stop.is_set():
        left.spend(alive[0])


def _model(models: dict[Layout, CostModel], space: MapSpace, objective: Objective) -> CostModel:
    if space.layout not in models:
        models[space.layout] = model_of(space, objective)
    return models[space.layout]
