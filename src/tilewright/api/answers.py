"""Equal searches are answered from the store."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import tilewright.store
from tilewright.api.tasks import NetworkTask
from tilewright.base import InputError, model_sources
from tilewright.cost import cost_model
from tilewright.mapping import MapSpace, is_legal
from tilewright.search import MAPPERS, Front, FrontPoint, Improvement, SearchResult
from tilewright.store import (
    SCHEMA_VERSION,
    AnswerRecord,
    FrontPointRecord,
    FrontRecord,
    LayerRecord,
    SearchRecord,
    cost_record,
    fingerprint,
    level_records,
    mapping_from,
    mapping_of,
    operator_fingerprint,
)


@dataclass(frozen=True)
class Answers:
    """By the name of the layer's operator what its search is known by, and the results that the store had of it."""

    keys: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, SearchResult] = field(default_factory=dict)
    origins: Mapping[str, AnswerRecord] = field(default_factory=dict)

    def marked(self, name: str, record: SearchRecord) -> SearchRecord:
        """Return the record of a search with what it is known by, and of one from the store where it was made."""
        return replace(record, key=self.keys.get(name, ""), answer=self.origins.get(name))


NO_ANSWERS = Answers()


def find_answers(task: NetworkTask, store: str | os.PathLike[str] | bool, again: bool,
                 checkpoint: str | os.PathLike[str] | None) -> Answers:
    """Return what the store knows of equal searches; nothing where it cannot be read, or they are to be made ``again``.

    Answered are only searches that would find the same once more: of a budget of samples alone, by a mapper of ours,
    that begin from nothing, nor where another run of perhaps another budget ended.
    """
    mapper = getattr(MAPPERS.get(task.request.mapper), "__module__", "")
    taken_up = checkpoint is not None and any(Path(checkpoint).glob("*.npz"))
    if (store is False or task.budget.seconds is not None or task.warmth.kind != "off" or taken_up
            or not mapper.startswith("tilewright.")):
        return NO_ANSWERS
    spaces = {operator.name: task.space(operator) for operator in task.operators}
    keys = {name: _key(task, space, place) for place, (name, space) in enumerate(spaces.items())}
    results, origins = {}, {}
    kept = tilewright.store.Store(None if store is True else store)
    try:
        with kept:
            for name, key in keys.items() if not again and not kept.missing else ():
                found = kept.answer(operator_fingerprint(spaces[name].operator), key)
                result = found and _result(found[1], task, spaces[name])
                if found and result:
                    results[name], origins[name] = result, found[0]
    except InputError:  # Of a store that cannot be read the end of the run tells.
        pass
    return Answers(keys, results, origins)


def _key(task: NetworkTask, space: MapSpace, place: int) -> str:
    """Return the fingerprint of all that decides what a search finds."""
    request = task.request
    return fingerprint(
        SCHEMA_VERSION, model_sources(), tilewright.store.problem(space, ""), space.operator.kind,
        asdict(task.objective), request.mapper,
        {name: [value, _content(value)] for name, value in request.options.items()},
        task.budget.samples, [request.seed, place], request.front)


def _content(value: object) -> str:
    """Return a hash of the file that an option names, empty where it names none."""
    file = Path(value) if isinstance(value, str) else None
    return sha256(file.read_bytes()).hexdigest() if file is not None and file.is_file() else ""


def _result(layer: LayerRecord, task: NetworkTask, space: MapSpace) -> SearchResult | None:
    """Return the result that a record tells; None where it is of an interrupted search, or not what it says."""
    found, bounds = layer.search, layer.bounds
    if found is None or bounds is None or found.stopped not in ("samples", "exhausted"):
        return None
    mapping = cost = None
    if layer.mapping is not None:
        mapping = mapping_of(layer)
        if not is_legal(mapping, space.operator, space.accelerator):
            return None
        cost = cost_model(space.operator, space.accelerator, space.layout).cost(mapping)
        told = layer.cost and (layer.cost.latency_cycles, layer.cost.energy_pj, layer.cost.counts)
        ours = cost_record(cost)
        if told != (ours.latency_cycles, ours.energy_pj, ours.counts):
            return None
    objective = task.objective
    return SearchResult(
        operator=space.operator, mapping=mapping, cost=cost,
        score=float("inf") if found.score is None else found.score, feasible=found.feasible, samples=found.samples,
        legal_samples=found.legal_samples, seconds=found.seconds, mapper=found.mapper, seed=found.seed,
        history=tuple(Improvement(*step) for step in found.history), budget=task.budget, space_size=None,
        objective="; ".join([str(objective), *map(str, objective.constraints)]), complete=found.complete,
        stopped="samples" if found.stopped == "samples" else "exhausted", proven=bounds.score, front=front_of(layer))


def front_record(front: Front | None) -> FrontRecord | None:
    """Return the record of a front."""
    if front is None:
        return None
    points = (FrontPointRecord(point.values, level_records(point.mapping)) for point in front.points)
    return FrontRecord(front.metrics, front.units, tuple(points), front.thinned)


def front_of(layer: LayerRecord) -> Front | None:
    """Return the front of a layer with its mappings, None where none was asked for."""
    if layer.front is None:
        return None
    points = (FrontPoint(point.values, mapping_from(point.levels)) for point in layer.front.points)
    return Front(layer.front.metrics, tuple(points), layer.front.thinned)
