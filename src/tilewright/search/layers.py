"""Searches of many layers as jobs: near, step by step and in turns, or far, each in one go."""

import os
import tempfile
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass, field, replace
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from tilewright.base import replace_file
from tilewright.hardware import Accelerator
from tilewright.jobs import Clock, Job, Runner, Stop, finished
from tilewright.mapping import KeptSets, MapSpace, flexible_spaces
from tilewright.search.race import racing
from tilewright.search.records import Budget, Progress, SearchResult
from tilewright.search.run import Request, Searching, Watch, searching
from tilewright.search.warm import Beginning, WarmStart
from tilewright.workload import Operator

Spaces = Callable[[Operator], MapSpace | Sequence[MapSpace] | KeptSets]
"""Makes the space of an operator, or spaces whose union it is."""


def spaces_of(operator: Operator, accelerator: Accelerator, space: Spaces | None) -> tuple[MapSpace, ...] | KeptSets:
    """Return the spaces whose union is to be searched; by default what the accelerator's flexibility allows."""
    made = space(operator) if space else flexible_spaces(operator, accelerator)
    if isinstance(made, KeptSets):
        return made if len(made) > 1 else (made.space,)
    return (made,) if isinstance(made, MapSpace) else tuple(made)


def largest_first(operators: Sequence[Operator]) -> list[int]:
    """Return the places of the operators in the order in which they are searched where none waits for another."""
    return sorted(range(len(operators)), key=lambda index: -operators[index].macs)


MANY = 400
"""Layers from which on searches go to processes, whose start takes some two seconds: on threads the set-up of layers
takes turns, as Python runs on one core at a time."""


class Abreast:
    """How many searches there are side by side, where, and how many threads each has.

    ``auto`` is on threads, unless there are `MANY` layers, a budget of mappings (seconds are shared on threads alone),
    several cores, and leave to start processes, which workers of multiprocessing lack.
    """

    def __init__(self, workers: int | None, layers: int, on: str, budget: Budget) -> None:
        cores = len(os.sched_getaffinity(0))
        self.searches = max(1, min(workers or cores, layers))
        if on == "auto":
            far = layers >= MANY and self.searches > 1 and budget.seconds is None and not current_process().daemon
            on = "processes" if far else "threads"
        self.workers, self.on, self.near = workers, on, on == "threads"
        self.threads = max(1, cores // self.searches) if on in ("threads", "processes") else 1

    def runner(self, clock: Clock | None = None, stop: Stop | None = None) -> Runner:
        """Return what runs them."""
        return Runner(workers=self.workers, on=self.on, stop=stop, clock=clock)


@dataclass(frozen=True)
class LayerSearch:
    """The search of one layer."""

    spaces: tuple[MapSpace, ...] | KeptSets
    """Spaces whose union is searched; ``request`` is that of the first."""
    request: Request
    begin: Beginning = field(default_factory=Beginning)
    warm_start: WarmStart = "off"
    """What it begins from, where the request says nothing."""
    span: float | None = None
    """Seconds of all searches together, where they share them."""

    def steps(self, watch: Watch, found: Sequence[SearchResult] = ()) -> Searching:
        """Search step by step; ``found`` are the results of the lenders."""
        request = self.request
        if request.start is None:
            lent = {lender.place: result for lender, result in zip(self.begin.lenders, found, strict=True)}
            request = replace(request, start=self.begin.start(self.warm_start, lent))
        flexible = request.space.accelerator.flexibility is not None
        if len(self.spaces) > 1 or (flexible and watch.checkpoint is None):
            return racing(self.spaces, request, watch)
        if self.span is not None:
            request = replace(request, budget=Budget(request.budget.samples, self.span), plan=request.budget)
        return searching(request, watch)


Made = Callable[[int], LayerSearch | SearchResult]
"""Makes the search of a layer, by its place; or has its result already."""


def search_layers(operators: Sequence[Operator], made: Made, runner: Runner, watch: Watch,  # noqa: PLR0913, PLR0917
                  begin: Sequence[Beginning] = (), folder: Path | None = None,
                  ) -> tuple[Dictionary[int, SearchResult], Exception | None]:
    """Search layers, the largest first; return what was found by place, and the first error, which ended the others.

    Parameters
    ----------
    begin
        Those whose results a layer begins from are searched before it.
    folder
        Where each search is kept in a file of its own.
    """
    places = largest_first(operators)
    make = _near if runner.on == "threads" else _far
    jobs = [make(place, made, replace(watch, stop=runner.stop,
                                      checkpoint=folder / f"{place:04d}.npz" if folder else None)) for place in places]
    at = {place: position for position, place in enumerate(places)}
    jobs = [replace(job, after=tuple(at[lender.place] for lender in begin[place].lenders)) if begin else job
            for place, job in zip(places, jobs, strict=True)]
    values, error = runner.attempt(jobs)
    return {place: value for place, value in zip(places, values, strict=True) if value is not None}, error


def _near(place: int, made: Made, watch: Watch) -> Job[SearchResult]:
    """Return the job of one search on a thread; its space is made as it is set up."""
    def steps(found: Sequence[SearchResult] = ()) -> Searching:
        search = made(place)
        if isinstance(search, SearchResult):
            yield
            return search
        return (yield from search.steps(watch, found))

    return Job(None, steps)


def _far(place: int, made: Made, watch: Watch) -> Job[SearchResult]:
    """Return the job of one search elsewhere, from where what it has to keep comes back with its result."""
    search, file = made(place), watch.checkpoint
    if isinstance(search, SearchResult):
        return Job(None, _known, inputs=(search,))

    def received(value: Any) -> SearchResult:
        result, state = value
        if file is not None:
            with watch.keeping(file.parent):
                file.parent.mkdir(parents=True, exist_ok=True)
                for end, content in state.items():
                    replace_file(file.with_name(file.stem + end), content)
        found: SearchResult = result
        if watch.recorder is not None:
            watch.recorder(found)
        if watch.progress is not None:
            watch.progress.update(Progress(
                found.operator.name, found.samples, found.legal_samples, found.seconds,
                found.score if found.feasible else None, found.budget.samples, 0.0, found.bound,
                search.request.objective.unit))
        return found

    kept = {} if file is None else _files(file)
    return Job(None, _searched, inputs=(search, watch.threads, file is not None, kept), received=received)


def _known(result: SearchResult, _: Sequence[SearchResult] = ()) -> SearchResult:
    return result


def _files(file: Path) -> dict[str, bytes]:
    """Return the files that a search is kept in by the ends of their names: one, or one for each kept set."""
    return {path.name.removeprefix(file.stem): path.read_bytes() for path in file.parent.glob(f"{file.stem}*.npz")}


def _searched(search: LayerSearch, threads: int, keep: bool, kept: Dictionary[str, bytes],
              found: Sequence[SearchResult] = ()) -> tuple[SearchResult, dict[str, bytes]]:
    """Search a layer to the end; return the result, and the files that it is kept in."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "search.npz"
        for end, content in kept.items():
            file.with_name(file.stem + end).write_bytes(content)
        result = finished(search.steps(Watch(threads=threads, checkpoint=file if keep else None), found))
        return result, _files(file) if keep else {}
