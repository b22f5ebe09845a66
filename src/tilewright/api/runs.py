"""What came of mapping a network: layers, totals, pages, plots."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

import tilewright.cost
import tilewright.report
import tilewright.store
from tilewright.api.answers import front_of
from tilewright.api.network_fronts import NetworkFront, network_front_of
from tilewright.api.places import ready_place
from tilewright.api.text import data_frame, plotly_figure, shown
from tilewright.api.warm import UNUSED, LibraryUse
from tilewright.base import text_html, unknown_name
from tilewright.search import Front
from tilewright.store import LayerRecord, RunRecord, accelerator_of, mapping_of, operator_of, read_run, write_run

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
            raise unknown_name("layer of this run", name, list(self.layers), "layer")
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


def kept_run(record: RunRecord, store: str | os.PathLike[str] | bool) -> Run:
    """Return the run of a record, appended to the store unless that is False."""
    if store is False:
        return Run(record)
    return Run(record, tilewright.store.keep(record, None if store is True else store))
