"""Pipelines of layers: every layer as fast as can be, then as frugal as the slowest one leaves time for."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import tilewright.report
from tilewright.api.flags import takes
from tilewright.api.network_runs import Seconds, run_record
from tilewright.api.options import PipelineOptions, RunOptions
from tilewright.api.places import ready_cache
from tilewright.api.runs import Run, kept_run
from tilewright.api.sheets import OnSheet
from tilewright.api.tasks import NetworkTask, counts_vector, prepare, warm_up
from tilewright.api.text import watched
from tilewright.api.warm import OFF, warm_budget, warmth
from tilewright.cost import vector_shares
from tilewright.search import (
    Budget,
    Objective,
    Pace,
    PipelineLayer,
    PipelineResult,
    SearchResult,
    search_pipeline,
)
from tilewright.store import RequestRecord, record_to_json
from tilewright.workload import UniqueOperator


@dataclass(frozen=True, repr=False)
class Pipeline(OnSheet):
    """What came of a pipeline: the whole in ``result``, and each of its two searches as a run.

    ``then`` is None where the first search left a layer without a mapping, or was interrupted.

    Examples
    --------
    >>> import tilewright as tw
    >>> pipe = tw.pipeline("resnet18", arch="edge-s3", then="energy", layers="layer4.*", budget=500, store=False)
    >>> first, second = pipe.result.figures("first"), pipe.result.figures()
    >>> second.interval_cycles <= first.interval_cycles, second.energy_pj <= first.energy_pj
    (True, True)
    """

    result: PipelineResult
    network: str
    first: Run
    then: Run | None
    command: str

    @property
    def layers(self) -> dict[str, PipelineLayer]:
        """Every layer by its name."""
        return {layer.name: layer for layer in self.result.layers}

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.pipeline_sheet(self.result, self.network, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data: the pipeline, and the records of both runs."""
        from tilewright.report import pipeline_tree  # noqa: PLC0415

        return {"pipeline": pipeline_tree(self.result, self.network), "command": self.command,
                "first": json.loads(record_to_json(self.first.record)),
                "then": self.then and json.loads(record_to_json(self.then.record))}


@takes(PipelineOptions)
def pipeline(asked: PipelineOptions) -> Pipeline:
    """Optimise a network that runs as a pipeline of layers, each on an accelerator of its own.

    Two searches: every layer for latency, of which the slowest sets the pace; then every layer for ``then`` within that
    pace. No layer takes more of that than after the first (Kao 2022, section 4.4.5).

    The machine is one of the pipeline: all are alike, and share nothing; one that they share is to be described as the
    part that each of them has. Limits are for the second search. Both searches go to the store, the second one last.
    """
    shared = {one.name: getattr(asked, one.name) for one in fields(RunOptions) if hasattr(asked, one.name)}
    task = prepare(RunOptions(**shared, objective=asked.then))
    store = asked.store
    whole, goal = task.budget, task.objective
    half = whole if whole.seconds is None else Budget(whole.samples, whole.seconds / 2)
    task = task.allotted(warm_budget(half, task.operators, OFF.beginnings(task.operators), task.workers))
    request = replace(task.request, command=replace(task, budget=whole).command("pipeline", asked, task.request))
    warm = warmth("off", store, {}, goal)
    first = replace(task, objective=Objective.parse("latency"), warmth=warm,
                    request=replace(request, objective="latency", constraints=()))
    ready_cache()
    warm_up(first)
    with watched(asked.progress) as progress:
        result = search_pipeline(
            task.graph, task.accelerator, then=goal, accelerators=asked.accelerators,
            pace=Pace(asked.latency_limit, asked.throughput, asked.slack), mapper=asked.mapper, budget=task.budget,
            seed=asked.seed, space=first.spaces, options=request.options, workers=asked.workers, on=asked.on,
            progress=progress,
            vector=vector_shares(task.graph, task.accelerator) if counts_vector(asked.vector) else None,
            begin=None if progress is None else lambda _, count: progress.begin(count, task.budget))
    return _pipeline(result, first, request, store)


def _pipeline(result: PipelineResult, first: NetworkTask, request: RequestRecord,
              store: str | os.PathLike[str] | bool) -> Pipeline:
    """Keep both searches as runs."""
    found = _distinct(result.layers, second=False)
    early = run_record(first, found, () if result.limit_cycles else result.unfinished, Seconds(result.seconds / 2))
    for unique, searched in found:
        first.warmth.keep(first.space(unique.operator), searched, first.graph.name, early.id)
    kept = replace(kept_run(early, store), library=first.warmth.end())
    later = None
    if any(layer.then is not None for layer in result.layers):
        limits = {layer.limit_cycles for layer in result.layers}
        if len(limits) == 1:
            request = replace(request, constraints=(*request.constraints, f"latency<={limits.pop()}"))
        task = replace(first, request=request, objective=Objective.parse(result.then))
        later = kept_run(run_record(task, _distinct(result.layers, second=True), result.unfinished,
                                    Seconds(result.seconds / 2)), store)
    return Pipeline(result, first.graph.name, kept, later, request.command)


def _distinct(layers: Iterable[PipelineLayer], second: bool) -> list[tuple[UniqueOperator, SearchResult]]:
    groups: dict[int, list[tuple[PipelineLayer, SearchResult]]] = {}
    for layer in layers:
        found = layer.then if second else layer.first
        if found is not None:
            groups.setdefault(id(found), []).append((layer, found))
    return [(UniqueOperator(group[0][0].operator, sum(layer.count for layer, _ in group),
                            tuple(layer.name for layer, _ in group)), group[0][1]) for group in groups.values()]
