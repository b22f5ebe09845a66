"""The main job: search every distinct layer of a network, and keep all that is needed to show and repeat it."""

import math
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

import tilewright.cost
import tilewright.report
import tilewright.store
from tilewright.api.answers import NO_ANSWERS, Answers, find_answers, front_of, front_record
from tilewright.api.evaluation import why_unmapped
from tilewright.api.flags import takes
from tilewright.api.network_fronts import NetworkFront, network_front_of, network_front_record
from tilewright.api.options import RunOptions
from tilewright.api.places import ready_cache, ready_place
from tilewright.api.tasks import NetworkTask, prepare, warm_up
from tilewright.api.text import data_frame, plotly_figure, shown, watched
from tilewright.api.warm import UNUSED, LibraryUse, warm_budget, warmth
from tilewright.base import text_html, unknown_name
from tilewright.cost import KeptBounds, space_bounds
from tilewright.jobs import interruptible
from tilewright.mapping import KeptSets, Padding
from tilewright.search import (
    Front,
    KeptBounding,
    NetworkResult,
    SearchResult,
    search_network,
)
from tilewright.store import (
    LayerRecord,
    RunRecord,
    SearchRecord,
    StartRecord,
    accelerator_of,
    diagnosed,
    layer_record,
    mapping_of,
    new_run,
    new_run_id,
    operator_of,
    read_run,
    write_run,
)
from tilewright.workload import UniqueOperator, unique_operators

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure


@dataclass(frozen=True, repr=False)
class Run:
    """What came of mapping a network, fresh or read back from the store.

    ``kept`` says where it was stored; None where it was not to be, or was read. ``library`` says what became of the
    library of best mappings.

    Examples
    --------
    >>> import tilewright as tw
    >>> run = tw.map("matmul:M=64,N=64,K=64", arch="tpu-like", budget=1000, store=False)
    >>> run.layers["matmul"].cost.latency_cycles >= run.layers["matmul"].bounds.latency_cycles
    True
    """

    record: RunRecord
    kept: "tilewright.store.Kept | None" = None
    library: LibraryUse = UNUSED

    @cached_property
    def layers(self) -> dict[str, LayerRecord]:
        """Every layer by its name; equal layers share one record."""
        return {name: layer for layer in self.record.layers for name in layer.names}

    @property
    def latency_cycles(self) -> int:
        """Cycles of all layers that have a mapping, one after another."""
        return self.record.totals.latency_cycles

    @property
    def energy_pj(self) -> float:
        """Picojoules of all layers that have a mapping."""
        return self.record.totals.energy_pj

    @property
    def interrupted(self) -> bool:
        """Whether some searches had not ended."""
        return bool(self.record.unfinished)

    def layer(self, name: str) -> LayerRecord:
        """Return the layer of this name; an unknown one is an `InputError`."""
        if name not in self.layers:
            raise unknown_name("layer of this run", name, list(self.layers))
        return self.layers[name]

    def explain(self, layer: str, count: str) -> "tilewright.cost.Explanation | tilewright.cost.FigureExplanation":
        """Derive one count of a layer's mapping, such as ``GLB.I.reads``; or say what sets its latency or energy.

        Raises an `InputError` if the run has no such layer, the layer no mapping, or the mapping no such count.
        """
        found = self.layer(layer)
        machine = accelerator_of(self.record.accelerator)
        return tilewright.cost.explain(operator_of(found), machine, mapping_of(found), count)

    @overload
    def front(self, layer: str) -> Front | None: ...

    @overload
    def front(self, layer: None = None) -> NetworkFront | None: ...

    def front(self, layer: str | None = None) -> Front | NetworkFront | None:
        """Return the Pareto front of a layer, or of the whole network; None where none was asked for.

        Raises an `InputError` if the layer is unknown, or the network has no front: with the reason.
        """
        return network_front_of(self.record) if layer is None else front_of(self.layer(layer))

    def write_report(self, path: str | os.PathLike[str]) -> Path:
        """Write the page of the run: one HTML file that needs nothing else; folders are made."""
        return tilewright.report.write_page(self.record, ready_place(path))

    def write_json(self, path: str | os.PathLike[str]) -> Path:
        """Write the run as JSON, which `open_run` reads back; folders are made."""
        return write_run(self.record, ready_place(path))

    def to_pandas(self) -> "DataFrame":
        """Return a row for each distinct layer as a data frame of pandas, which must be installed."""
        rows = [(layer.name, layer.count, layer.macs, *(
            (None,) * 5 if layer.cost is None else (
                layer.cost.latency_cycles, layer.cost.energy_pj, layer.cost.utilisation, layer.cost.limited_by,
                layer.gap))) for layer in self.record.layers]
        return data_frame(rows, ("layer", "count", "macs", "latency_cycles", "energy_pj", "utilisation", "bottleneck",
                                 "gap"))

    def plot(self, name: str = "latency") -> "Figure":
        """Return a plot of the page as a Plotly figure: ``latency``, ``energy``, ``roofline``, ``convergence``, ..."""
        figures = tilewright.report.run_figures(self.record)
        if name not in figures:
            raise unknown_name("plot", name, list(figures))
        return plotly_figure(figures[name])

    def plot_latency(self) -> "Figure":
        """Return cycles by layer beside their bounds."""
        return self.plot("latency")

    def plot_energy(self) -> "Figure":
        """Return energy by layer and component."""
        return self.plot("energy")

    def plot_roofline(self) -> "Figure":
        """Return the layers below the roofs of the machine."""
        return self.plot("roofline")

    def plot_front(self) -> "Figure":
        """Return the front of the network, of latency and energy, beside what no mappings can beat."""
        return self.plot("front")

    def plot_convergence(self) -> "Figure":
        """Return the best score of each layer over the mappings scored."""
        return self.plot("convergence")

    def __repr__(self) -> str:
        record, totals = self.record, self.record.totals
        return (f"Run({record.network.name} on {record.accelerator.name}: {len(self.layers)} layers, "
                f"{totals.latency_cycles:,} cycles, {totals.energy_pj * 1e-12:.4g} J)")

    def _repr_html_(self) -> str:
        return text_html(self)

    def __str__(self) -> str:
        return shown(lambda console: tilewright.report.print_run(self.record, console))


def open_run(place: str | os.PathLike[str], store: str | os.PathLike[str] | None = None) -> Run:
    """Return a run from the store by its identity (or the beginning of it, or ``last``), or from a JSON file.

    Raises an `InputError` if there is no such run, or the file is none.
    """
    if Path(place).suffix == ".json" or Path(place).is_file():
        return Run(read_run(place))
    with tilewright.store.Store(store).there() as found:
        return Run(found.get(str(place)))


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
        from tilewright.api.proving import provable  # noqa: PLC0415  (it reads runs)

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


def kept_run(record: RunRecord, store: str | os.PathLike[str] | bool) -> Run:
    """Return the run of a record, appended to the store unless that is False."""
    if store is False:
        return Run(record)
    return Run(record, tilewright.store.keep(record, None if store is True else store))


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
