"""The cells that most studies are made of: one search, reported with its bounds and the oracle's word."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tilewright.cost import Cost, layer_bounds
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import MappingBatch, MapSpace, dump_mapping, load_mapping
from tilewright.reproduce.oracle import check
from tilewright.reproduce.study import Cell
from tilewright.search import Watch, search
from tilewright.workload import Operator


def search_cell(  # noqa: PLR0913  (a search is decided by this much)
    key: Mapping[str, object],
    space: MapSpace,
    *,
    mapper: str,
    samples: int,
    seed: int,
    objective: str = "edp",
    options: Mapping[str, Any] | None = None,
    start: MappingBatch | None = None,
) -> Cell:
    """Return the cell of one search: its value has the best mapping (YAML), what it costs, and how it came about.

    ``key`` tells apart what mapper, samples, seed and objective don't: the layer, the machine, the space, and what the
    search begins from.
    """
    def compute() -> dict[str, Any]:
        found = search(
            space.operator, space.accelerator, objective=objective, mapper=mapper, budget=samples, seed=seed,
            space=space, options=dict(options or {}), start=start, watch=Watch(threads=1))
        if found.mapping is None or found.cost is None or not found.feasible:
            return {"edp": None, "latency_cycles": None, "samples": found.samples, "legal_samples": found.legal_samples}
        return {
            **costs(found.cost), "samples": found.samples, "legal_samples": found.legal_samples,
            "complete": found.complete, "history": [[step.samples, step.score] for step in found.history],
            "mapping": dump_mapping(found.mapping, space.operator, space.accelerator),
        }

    whole = {**key, "mapper": mapper, "samples": samples, "seed": seed, "objective": objective,
             **({"options": dict(options)} if options else {})}
    return Cell(whole, compute, samples)


def oracle_cell(key: Mapping[str, object], operator: Operator, accelerator: Accelerator, mapping: str | Nest) -> Cell:
    """Return the cell in which the oracle counts one mapping (YAML as in the value of a search)."""
    text = mapping if isinstance(mapping, str) else dump_mapping(mapping, operator, accelerator)

    def compute() -> dict[str, Any]:
        return check(operator, accelerator, load_mapping(text, operator, accelerator)).plain

    return Cell({**key, "oracle": text}, compute)


def costs(cost: Cost) -> dict[str, Any]:
    """Return what studies compare: EDP, energy, cycles, steps of compute and utilisation, as plain data."""
    return {"edp": cost.edp, "energy_pj": cost.energy_pj, "latency_cycles": cost.latency_cycles,
            "steps": cost.steps, "utilisation": cost.utilisation, "bottleneck": cost.bottleneck}


def bound_figures(operator: Operator, accelerator: Accelerator,
                  keeps: Mapping[str, tuple[str, ...]] | None = None) -> dict[str, float]:
    """Return what nothing can beat: cycles of compute and of data movement, energy, EDP.

    ``keeps`` says what memories keep where that is less than they can, as in `Constraints`.
    """
    bounds = layer_bounds(operator, accelerator, dict(keeps or {}))
    return {"compute_cycles": bounds.compute_cycles, "data_cycles": bounds.data_movement_cycles,
            "energy_pj": bounds.energy_pj, "edp": bounds.edp}


def median_run(values: Sequence[Mapping[str, Any]], name: str = "edp") -> Mapping[str, Any] | None:
    """Return the run whose figure is the median (the lower one of two), None if half or more found nothing."""
    found = sorted((value for value in values if value[name] is not None), key=lambda value: value[name])
    if not found or 2 * len(found) <= len(values):
        return None
    return found[(len(values) - 1) // 2]


def best_run(values: Sequence[Mapping[str, Any]], name: str = "edp") -> Mapping[str, Any] | None:
    """Return the run with the least figure, None if none found anything."""
    return min((value for value in values if value[name] is not None), key=lambda value: value[name], default=None)


def best_so_far(history: Sequence[Sequence[float]], at: Sequence[float]) -> list[float | None]:
    """Return the best score after each number of samples (or seconds) in ``at`` (ascending); None before the first."""
    found: list[float | None] = []
    score, place = None, 0
    for samples in at:
        while place < len(history) and history[place][0] <= samples:
            score, place = history[place][1], place + 1
        found.append(score)
    return found


def median_curve(histories: Sequence[Sequence[Sequence[float]]], at: Sequence[float]) -> list[float | None]:
    """Return the median of the best scores after each number of samples; None while half have found nothing."""
    curves = [best_so_far(history, at) for history in histories]
    return [_median(column) for column in zip(*curves, strict=True)]


def _median(column: Sequence[float | None]) -> float | None:
    infinite = float("inf")
    middle = median(infinite if value is None else value for value in column)
    return None if middle == infinite else middle
