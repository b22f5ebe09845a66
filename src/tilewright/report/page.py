"""One self-contained HTML page for a run: everything is inside, nothing is fetched."""

import os
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tilewright.base import together, write_whole
from tilewright.mapping import NestRoom, NestRow, NestTile
from tilewright.report import figures, quantities
from tilewright.report.fronts import (
    fronts_figure,
    layer_front_figure,
    network_front_choices,
    network_front_figure,
    network_front_lines,
)
from tilewright.report.network import PARTS, energy_parts, energy_sentence
from tilewright.report.terminal import search_time, vector_table
from tilewright.report.tokens import token_lines
from tilewright.store import (
    AcceleratorRecord,
    LayerRecord,
    RunRecord,
    accelerator_of,
)


@dataclass
class Box:
    """A level of a mapping with its loops and the level inside it, for drawing."""

    row: NestRow
    loops: list[NestRow] = field(default_factory=list)
    inner: "Box | None" = None
    bars: "list[_Bar]" = field(default_factory=list)


@dataclass(frozen=True)
class _Bar:
    """A room of a memory as a bar: ``parts`` are (tile, bytes with all copies, share of the bar's length)."""

    room: NestRoom
    parts: tuple[tuple[NestTile, float, float], ...]


def render_page(record: RunRecord) -> str:
    """Return the page of a run as HTML text."""
    cycles = [layer.count * layer.cost.latency_cycles for layer in record.layers if layer.cost is not None]
    return page_environment().get_template("page.html.j2").render(
        run=record, figures=run_figures(record), version=record.software.tilewright, busiest=max(cycles, default=1),
        colours=figures.component_colours(record) | {figures.VECTOR: "@curve-4"}, parts=energy_parts(record),
        about_energy=energy_sentence(record),
        rows=[(index, layer, _box(layer)) for index, layer in enumerate(record.layers)])


def nests_of(runs: Sequence[RunRecord]) -> dict[str, object]:
    """Return the mappings of runs on one machine as a template draws them: name, layer, boxes and run; the colours."""
    return {"colours": figures.component_colours(runs[0]) if runs else {}, "nests": [
        (layer.name if len(runs) == 1 else f"{run.network.name}/{layer.name}", layer, _box(layer), run)
        for run in runs for layer in run.layers if layer.mapping is not None]}


def write_page(record: RunRecord, path: str | os.PathLike[str]) -> Path:
    """Write the page of a run to ``path`` and return it.

    Raises an `InputError` if the place cannot be written.
    """
    return write_whole(Path(path), render_page(record))


@cache
def page_environment() -> Environment:
    """Return what renders the templates of pages."""
    environment = Environment(
        loader=PackageLoader("tilewright.report", "assets"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True)
    known = vars(quantities)
    environment.filters.update({name: known[name] for name in (
        "engineering", "significant", "percent", "byte_size", "joules", "measured", "shortened")}, whole="{:,}".format)
    environment.globals.update({name: known[name] for name in ("multiple", "over", "seconds_of", "padding_words",
                                                               "TIMES")},
                               search_time=search_time, source=_source, packed_plotly=_packed_plotly,
                               nest_data=_nest_data, PARTS=PARTS, together=together, vector_table=vector_table,
                               network_front_lines=network_front_lines, network_front_choices=network_front_choices,
                               token_lines=token_lines)
    return environment


def _source(name: str) -> str:
    """Return the text of a style sheet or script that the page takes in."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


@cache
def _packed_plotly() -> str:
    """Return the plotting library, packed: Plotly's own bundle of plots with axes, a third of the whole.

    ``npm pack plotly.js-cartesian-dist-min`` brings it, ``gzip -9n`` packs it; the page unpacks it by itself.
    """
    return b64encode((Path(__file__).parent / "assets" / "plotly-cartesian.min.js.gz").read_bytes()).decode()


def page_colours() -> dict[str, str]:
    """Return the colours of a light page by the names that figures have for them."""
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]+);", _source("style.css").split("@media")[0]))


def run_figures(record: RunRecord) -> dict[str, Any]:
    """Return the figures of a run by name; colours are names, see `page_colours`."""
    found = {
        "latency": figures.latency_figure(record),
        "energy": figures.energy_figure(record),
        "roofline": figures.roofline_figure(record),
        "convergence": figures.convergence_figure(record),
        "front": network_front_figure(record),
        "fronts": fronts_figure(record),
    }
    for index, layer in enumerate(record.layers):
        found[f"layer-{index}"] = figures.layer_convergence_figure(layer)
        found[f"front-{index}"] = layer_front_figure(layer)
    return {name: figure for name, figure in found.items() if figure["data"]}


def _nest_data(layer: LayerRecord, run: RunRecord) -> dict[str, Any]:
    """Return what stepping through the loops of a layer's mapping takes: sizes, tensors and levels."""
    assert layer.mapping is not None
    output = next(one for one in layer.operator.tensors if one.role == "outputs")
    reduces = _reduces(run.accelerator, output.name)
    rows = {row.level: row for row in layer.mapping.nest if row.kind in ("memory", "fanout")}
    return {
        "sizes": dict(layer.operator.dimensions),
        "tensors": [{"name": one.name, "role": one.role, "axes": one.axes} for one in layer.operator.tensors],
        "levels": [{"name": level.level, "kind": rows[level.level].kind, "loops": level.loops,
                    "keeps": [tile.tensor for tile in rows[level.level].tiles],
                    "instances": rows[level.level].instances, "reduces": reduces.get(level.level)}
                   for level in layer.mapping.levels]}


@lru_cache(maxsize=8)
def _reduces(machine: AcceleratorRecord, output: str) -> dict[str, tuple[bool, bool]]:
    """Return along which sides arrays of a machine add up the outputs of their instances."""
    return {fanout.name: fanout.merges(output, "outputs") for fanout in accelerator_of(machine).fanouts}


def _box(layer: LayerRecord) -> Box | None:
    """Return the mapping of a layer as boxes within boxes."""
    outer: Box | None = None
    here: Box | None = None
    for row in layer.mapping.nest if layer.mapping is not None else ():
        if row.kind in {"memory", "fanout", "compute"}:
            box = Box(row, bars=_bars(row))
            if here is None:
                outer = box
            else:
                here.inner = box
            here = box
        elif here is not None:
            here.loops.append(row)
    return outer


def _bars(row: NestRow) -> list[_Bar]:
    """Return a bar for each room, as long as its capacity, or as all that it holds where that is more or unlimited."""
    bars = []
    for room in row.rooms:
        length = max(room.used_bytes, room.capacity_bytes or 0.0) or 1.0
        held = [(tile, tile.bytes * room.copies) for tile in row.tiles if tile.partition == room.partition]
        bars.append(_Bar(room, tuple((tile, size, size / length) for tile, size in held)))
    return bars
