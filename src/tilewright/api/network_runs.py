"""The main job: search every distinct layer of a network, and keep all that is needed to show and repeat it."""

import math
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tilewright.api.answers import NO_ANSWERS, Answers, find_answers, front_record
from tilewright.api.evaluation import why_unmapped
from tilewright.api.flags import takes
from tilewright.api.network_fronts import network_front_record
from tilewright.api.options import RunOptions
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.runs import Run, kept_run
from tilewright.api.tasks import NetworkTask, prepare, warm_up
from tilewright.api.text import watched
from tilewright.api.warm import warm_budget, warmth
from tilewright.cost import KeptBounds, space_bounds
from tilewright.jobs import interruptible
from tilewright.mapping import KeptSets, Padding
from tilewright.search import KeptBounding, NetworkResult, SearchResult, search_network
from tilewright.store import (
    LayerRecord,
    RunRecord,
    SearchRecord,
    StartRecord,
    diagnosed,
    layer_record,
    new_run,
    new_run_id,
)
from tilewright.workload import UniqueOperator, unique_operators


class Broken(Exception):
    """What ended a run early, its cause, and the ``run`` with all that was found before: it is stored already."""

    def __init__(self, run: Run, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.run = run


@takes(RunOptions)
def map_network(asked: RunOptions) -> Run:
    """Find the best mapping of every distinct layer of a network on an accelerator.

    Layers of equal shape are searched once. A search that the store has made before is answered from there: same layer
    and machine, mappings to choose from, objective, mapper, budget of mappings, seed and code. Ctrl-C ends the
    searches; what was found so far is in the run. Where an error ended it, `Broken` is raised, which has the run.
    """
    task, checkpoint = prepare(asked), asked.checkpoint
    operators = task.operators
    if asked.certificate is not None:
        from tilewright.api.proving import provable  # noqa: PLC0415  (the checker loads SciPy)

        ready_place(asked.certificate)
        for operator in operators:
            provable(task.space(operator), task.request)
    warm = warmth(asked.warm_start, asked.store, {one.name: task.space(one) for one in operators}, task.objective,
                  checkpoint)
    share = warm_budget(task.budget, operators, warm.beginnings(operators), task.workers)
    task = replace(task.allotted(share), warmth=warm)
    answers = find_answers(task, asked.store, asked.again, checkpoint)
    stop, errors, run_id = threading.Event(), list[Exception](), new_run_id()
    # A signal that comes when the searches have ended must not cost their results.
    with interruptible(stop):
        searched, seconds = _searched(task, answers, stop, errors, run_id)
        results = {layer.result.operator.name: layer.result for layer in searched.layers}
        found = [(unique, results[unique.operator.name]) for unique in unique_operators(task.graph)
                 if unique.operator.name in results]
        record = run_record(task, found, searched.unfinished, seconds, answers=answers, errors=errors)
        if errors and not record.layers:
            warm.end()
            raise errors[0]
        run = replace(kept_run(replace(record, id=run_id), asked.store), library=warm.end())
        if asked.certificate is not None:
            run.write_json(asked.certificate)
    if errors:
        raise Broken(run, errors[0]) from errors[0]
    return run


class Seconds(NamedTuple):
    """Wall time of a run's parts."""

    search: float
    setup: float = 0.0
    loading: float = 0.0


def _searched(task: NetworkTask, answers: Answers, stop: threading.Event, errors: list[Exception],
              run_id: str) -> tuple[NetworkResult, Seconds]:
    """Search what is not answered; return all results, and the time in all.

    Operators whose search had not begun as the run was interrupted have no result, and are named as unfinished alone.
    """
    request, warm, asked, begun = task.request, task.warmth, task.asked, time.perf_counter()
    spaces = {operator.name: task.space(operator) for operator in task.operators}
    left = len(spaces) - len(answers.results)
    loading = loaded = time.perf_counter()
    if left:
        ready_cache()
        warm_up(task)
        loaded = time.perf_counter()
    with watched(asked.progress) as progress:
        if progress is not None:
            progress.begin(left, task.budget)
        found = search_network(
            task.graph, task.accelerator, objective=task.objective, mapper=request.mapper, budget=task.budget,
            seed=request.seed, space=task.spaces, options=request.options, warm_start=warm.kind, known=warm.known,
            answers=answers.results, front=request.front, workers=asked.workers, on=asked.on, progress=progress,
            checkpoint=None if asked.checkpoint is None else Path(asked.checkpoint),
            recorder=lambda found: warm.keep(spaces[found.operator.name], found, task.graph.name, run_id),
            stop=stop, failed=errors.append)
    return found, Seconds(found.seconds, found.setup_seconds + loading - begun, loaded - loading)


def run_record(  # noqa: PLR0913
    task: NetworkTask, found: Iterable[tuple[UniqueOperator, SearchResult]], unfinished: tuple[str, ...],
    seconds: Seconds, *, answers: Answers = NO_ANSWERS, errors: list[Exception] | None = None,
) -> RunRecord:
    """Return the record of what was found for layers; ``unfinished`` names those whose search had not ended.

    A layer whose record cannot be made is left out, where there are ``errors`` to add to.
    """
    layers = []
    for unique, result in found:
        try:
            layers.append(_layer_record(task, unique, result, answers))
        except Exception as error:
            if errors is None:
                raise
            errors.append(error)
            unfinished = tuple(dict.fromkeys([*unfinished, unique.operator.name]))
    cause = f"Ended by an error ({type(errors[0]).__name__}: {errors[0]})" if errors else "Interrupted"
    record = new_run(task.graph, task.accelerator, task.request, layers, unfinished=unfinished, seconds=seconds,
                     cause=cause)
    front = network_front_record(record, task.asked.within or "")
    return replace(diagnosed(record, task.graph, task.accelerator), front=front)


def _layer_record(task: NetworkTask, unique: UniqueOperator, result: SearchResult, answers: Answers) -> LayerRecord:
    accelerator, space = task.accelerator, task.space(unique.operator)
    operator = space.operator
    known = result.bounding
    if isinstance(known, KeptBounding):
        limits = known.bounds.union
    elif isinstance(spaces := task.spaces(unique.operator), KeptSets) and len(spaces) > 1:
        limits = KeptBounds(spaces).union
    else:
        limits = known.bounds[0] if known is not None and known.spaces == (space,) else space_bounds(space)
    mapped = None if result.mapping is None or result.cost is None else (result.mapping, result.cost)
    reason = "" if mapped else f"No legal mapping among {result.samples:,} samples: {why_unmapped(space)}"
    if mapped and result.impossible:
        reason = "No mapping can meet the constraints"
    return layer_record(
        operator, accelerator, mapped, limits, score=result.bound, padding=Padding(unique.operator, operator),
        names=unique.names, count=unique.count, search=answers.marked(operator.name, _search_record(result)),
        front=front_record(result.front), reason=reason)


def _search_record(result: SearchResult) -> SearchRecord:
    return SearchRecord(
        result.mapper, result.seed, result.samples, result.legal_samples, result.seconds, result.stopped,
        result.score if math.isfinite(result.score) else None,
        tuple((step.samples, step.seconds, step.score) for step in result.history), result.feasible, result.complete,
        tuple(StartRecord(origin.kind, origin.layer, origin.distance, origin.run) for origin in result.start))
