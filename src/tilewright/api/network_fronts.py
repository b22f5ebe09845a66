"""The front of a whole network: how it is made of a run's layers, and what Python hands out of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.api.answers import front_of
from tilewright.api.tasks import SUMMED, read_within
from tilewright.api.text import data_frame
from tilewright.base import InputError, text_html
from tilewright.mapping import Mapping as Nest
from tilewright.search import network_front
from tilewright.store import NetworkFrontRecord, NetworkPointRecord, RunRecord

if TYPE_CHECKING:
    from pandas import DataFrame

Nests = Mapping[str, tuple[tuple[int, Nest], ...]]


@dataclass(frozen=True)
class NetworkPoint:
    """A combination of mappings: what the network takes, and by layer how many of its runs have which mapping."""

    latency_cycles: float
    energy_pj: float
    mappings: Nests

    @property
    def edp(self) -> float:
        """Product of both, in picojoule-cycles."""
        return self.latency_cycles * self.energy_pj


@dataclass(frozen=True, repr=False)
class NetworkFront:
    """The front of latency and energy of a network.

    Examples
    --------
    >>> import tilewright as tw
    >>> run = tw.map("ncf", arch="eyeriss", front="latency,energy", budget=200, store=False)
    >>> front = run.front()
    >>> front.tolerance, front.points[0].latency_cycles <= run.latency_cycles
    (0.0, True)
    >>> front.within(energy=run.energy_pj).latency_cycles <= run.latency_cycles
    True
    """

    points: tuple[NetworkPoint, ...]
    """By rising latency; no combination of mappings on the layers' fronts beats one of them in both."""
    tolerance: float
    """By which share of cycles it is off the exact front at most; 0 where it is that."""
    bound: tuple[int | None, float | None]
    """Cycles and picojoules that no mappings of the network can beat, where known."""

    def within(self, *, latency: float | None = None, energy: float | None = None) -> NetworkPoint:
        """Return the point of the least energy within cycles, or of the fewest cycles within picojoules.

        Raises an `InputError` if not one of both is given, or no point is within.
        """
        if (latency is None) == (energy is None):
            raise InputError("within", "must be given a latency or an energy", None, "For example latency=1e6")
        place = _place(self.points, *(("energy", energy) if energy is not None else ("latency", latency or 0.0)))
        if place is None:
            raise InputError("within", "must leave at least one point of the front",
                             f"latency={latency}" if energy is None else f"energy={energy}",
                             f"The least is {self.points[0].latency_cycles:,.0f} cycles" if energy is None
                             else f"The least is {self.points[-1].energy_pj:.6g} pJ")
        return self.points[place]

    def to_pandas(self) -> "DataFrame":
        """Return a row for each point as a data frame of pandas, which must be installed."""
        return data_frame([(point.latency_cycles, point.energy_pj, point.edp) for point in self.points],
                          ("latency_cycles", "energy_pj", "edp"))

    def __repr__(self) -> str:
        return f"NetworkFront({len(self.points)} points, within {self.tolerance:.3%} of cycles)"

    def _repr_html_(self) -> str:
        lines = [f"{point.latency_cycles:>16,.0f}  {point.energy_pj:>12.6g}" for point in self.points]
        return text_html("\n".join([f"{self!r}\n", f"{'cycles':>16}  {'pJ':>12}", *lines]))


def network_front_of(run: RunRecord) -> NetworkFront | None:
    """Return the front of a run's network, None where none was asked for; that it has none is an `InputError`."""
    if run.front is None:
        return None
    if not run.front.points:
        raise InputError("front", "must be of a network that has one", run.network.name, run.front.reason)
    fronts = [front_of(layer) for layer in run.layers]
    nests = [[] if front is None else [point.mapping for point in front.points] for front in fronts]
    points = tuple(NetworkPoint(point.latency_cycles, point.energy_pj, {
        layer.name: tuple((times, known[place]) for place, times in chosen)
        for layer, known, chosen in zip(run.layers, nests, point.chosen, strict=True)}) for point in run.front.points)
    return NetworkFront(points, run.front.tolerance, (run.totals.bound_latency_cycles, run.totals.bound_energy_pj))


def network_front_record(run: RunRecord, within: str = "") -> NetworkFrontRecord | None:
    """Return the front of a run's network of the fronts of its layers; None where no fronts were asked for."""
    asked = run.request.front
    if not asked:
        return None
    fronts = [layer.front for layer in run.layers]
    if reason := _why_none(run):
        return NetworkFrontRecord(reason=reason, within=within)
    axes = [asked.index(name) for name in SUMMED]
    merged = network_front(
        [(layer.count, np.array([[point.values[axis] for axis in axes] for point in front.points]))
         for layer, front in zip(run.layers, fronts, strict=True) if front is not None],
        (run.totals.vector_cycles, run.totals.vector_energy_pj))
    points = tuple(NetworkPointRecord(cycles, energy, chosen)
                   for (cycles, energy), chosen in zip(merged.values.tolist(), merged.chosen, strict=True))
    place = _place(points, *read_within(within, run.accelerator.frequency_mhz)) if within else None
    return NetworkFrontRecord(points, merged.tolerance, within=within, place=place)


def _place(points: Sequence[NetworkPointRecord | NetworkPoint], what: str, most: float) -> int | None:
    """Return which point is best by the other figure among those within the ``most`` of one; None where none is.

    The energy of a run is summed in another order, so that the last digits may differ.
    """
    known = [place for place, point in enumerate(points)
             if (point.latency_cycles if what == "latency" else point.energy_pj) <= most * (1 + 1e-12)]
    return None if not known else known[-1] if what == "latency" else known[0]


def _why_none(run: RunRecord) -> str:
    """Return why a network has no front; empty where it has one."""
    missing = [name for name in SUMMED if name not in run.request.front]
    if missing:
        return f"it is of latency and energy, and fronts of layers without {' and '.join(missing)} do not tell it"
    if run.request.densities:
        return "fronts of layers are of sums over several densities"
    if run.unfinished:
        return "searches of layers have not ended"
    lost = [layer.name for layer in run.layers if layer.front is None or not layer.front.points]
    return f"{', '.join(lost)} has no mapping" if lost else ""
