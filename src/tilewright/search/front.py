"""Pareto fronts: of all mappings that a search has scored, those that none of the others beats in every metric."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, text_html, unknown_name
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping, MappingBatch, MapSpace
from tilewright.search.checkpoint import Resumable
from tilewright.search.objective import METRICS, Costs

MOST_POINTS = 1 << 14
"""Points that a front keeps; beyond, every other one is left out."""


@dataclass(frozen=True)
class FrontPoint:
    """A mapping of a front and its metrics, in their units."""

    values: tuple[float, ...]
    mapping: Mapping


@dataclass(frozen=True, repr=False)
class Front:
    """Mappings none of which beats another in every metric, by rising first metric.

    Of mappings that are equal in all metrics it holds the first one found. ``thinned`` says that there were more than
    `MOST_POINTS`, so that some are left out.
    """

    metrics: tuple[str, ...]
    points: tuple[FrontPoint, ...]
    thinned: bool = False

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each metric."""
        return tuple(METRICS[name].unit for name in self.metrics)

    def __repr__(self) -> str:
        return f"Front({', '.join(self.metrics)}: {len(self.points)} mappings)"

    def _repr_html_(self) -> str:
        heads = [f"{name} ({unit})" for name, unit in zip(self.metrics, self.units, strict=True)]
        lines = ["  ".join(f"{value:>{len(head)}.6g}" for value, head in zip(point.values, heads, strict=True))
                 for point in self.points]
        return text_html("\n".join(["  ".join(heads), *lines]))


def read_front(text: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the metrics of a front, given as names or as ``latency,energy``; none asks for no front.

    Raises an `InputError` if there is but one metric, or one is unknown or given twice.
    """
    if not text:
        return ()
    if not isinstance(text, Iterable):
        raise InputError("front", "must be names of metrics", text, "For example latency,energy")
    names = tuple(str(name).strip().lower() for name in (text.split(",") if isinstance(text, str) else text))
    for name in names:
        if name not in METRICS:
            raise unknown_name("metric", name, list(METRICS), "front")
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("front", "must be two or more different metrics", ",".join(names),
                         "For example latency,energy")
    return names


def metric_values(metrics: Sequence[str], costs: Costs, accelerator: Accelerator) -> NDArray[np.float64]:
    """Return ``(b, m)``: the metrics of scored mappings."""
    count = len(costs.legal)
    given = (costs.latency_cycles, costs.energy_pj, costs.area_um2, accelerator.frequency_mhz,
             costs.traffic_bytes if any(METRICS[name].traffic for name in metrics) else None)
    return np.stack([np.broadcast_to(METRICS[name].of(*given), count) for name in metrics], axis=1).astype(np.float64)


def first_of_front(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return which of ``(b, m)`` points no other dominates, by rising metrics; of equal points the first."""
    order = np.lexsort((np.arange(len(values)), *values.T[::-1]))
    if values.shape[1] == 2:
        second = values[order, 1]
        least = np.minimum.accumulate(np.concatenate([[np.inf], second[:-1]]))
        return np.asarray(order[second < least], dtype=np.intp)
    place = 0
    while place < len(order):
        better = (values[order] < values[order[place]]).any(axis=1)
        better[:place + 1] = True
        order = order[better]
        place += 1
    return np.asarray(order, dtype=np.intp)


class Archive(Resumable):
    """The front of what was scored so far, in the layout of one space.

    Raises an `InputError` if a metric needs the area of a machine whose area is unknown.
    """

    changing = "values", "batch", "thinned"

    def __init__(self, metrics: tuple[str, ...], space: MapSpace) -> None:
        machine = space.accelerator
        if machine.area_um2 <= 0 and any(METRICS[name].area for name in metrics):
            raise InputError(f"{machine.name}.area_um2", "must be known for a front of areas", machine.area_um2,
                             "Give area_um2 or a technology with areas")
        self.metrics, self.space = metrics, space
        self.values = np.empty((0, len(metrics)))
        self.batch = space.empty(0)
        self.thinned = False

    def add(self, batch: MappingBatch, costs: Costs, allowed: NDArray[np.bool_]) -> None:
        """Take in those of a batch that are ``allowed`` ``(b)`` and that nothing known dominates."""
        values = metric_values(self.metrics, costs, self.space.accelerator)
        fresh = np.flatnonzero(allowed & ~self._dominated(values))
        if not len(fresh):
            return
        fresh = fresh[np.sort(first_of_front(values[fresh]))]
        whole = np.concatenate([self.values, values[fresh]])
        kept = first_of_front(whole)
        while len(kept) > MOST_POINTS:
            kept, self.thinned = np.union1d(kept[::2], kept[-1:]), True
            kept = kept[np.lexsort(whole[kept].T[::-1])]
        self.values = whole[kept]
        self.batch = MappingBatch.joined([self.batch, batch.take(fresh)]).take(kept)

    def _dominated(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return ``(b)``: whether a point of the front is as good in every metric. Exact for two metrics."""
        if not len(self.values) or values.shape[1] != 2:
            return np.zeros(len(values), dtype=np.bool_)
        place = np.searchsorted(self.values[:, 0], values[:, 0], side="right") - 1
        return np.asarray((place >= 0) & (self.values[place, 1] <= values[:, 1]))

    def front(self) -> Front:
        """Return the front as mappings."""
        sizes = self.space.operator.sizes
        points = (FrontPoint(tuple(row), self.batch.mapping(index, sizes))
                  for index, row in enumerate(self.values.tolist()))
        return Front(self.metrics, tuple(points), self.thinned)


def joined(fronts: Sequence[Front | None]) -> Front | None:
    """Return the front of several fronts of the same metrics; None if there is none."""
    known = [front for front in fronts if front is not None]
    points = [point for front in known for point in front.points]
    if not known:
        return None
    values = np.array([point.values for point in points]).reshape(len(points), len(known[0].metrics))
    return Front(known[0].metrics, tuple(points[index] for index in first_of_front(values)),
                 any(front.thinned for front in known))
