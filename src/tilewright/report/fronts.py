"""Pareto fronts as plots and as lines of a table; of three metrics and more the plots show the first two."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from tilewright.report.quantities import JOULES, PICOJOULE, measured, shortened
from tilewright.store import FrontRecord, LayerRecord, RunRecord

Figure = dict[str, Any]

OTHERS = "other layers"
HIGHLIGHTS = 3
"""Layers that are drawn in colours of their own, those that take longest; the others are grey."""
LEGEND: Figure = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"}


def fronts_figure(record: RunRecord) -> Figure:
    """Return the fronts of all layers, each metric relative to the layer's least."""
    shown = [layer for layer in record.layers if layer.front is not None and layer.front.points]
    data: list[Figure] = []
    for layer, style in highlighted(shown):
        trace = _trace(layer, _relative(layer.front)) if layer.front is not None else {}
        size = 4 if style["name"] == OTHERS else 6
        data.append({**trace, **style, "marker": {**style["marker"], "size": size}})
    if not data:
        return {"data": [], "layout": {}}
    first, second = shown[0].front.metrics[:2] if shown[0].front is not None else ("", "")
    return {"data": data, "layout": {
        "xaxis": {**_axis(f"{first.capitalize()} / least", [x for trace in data for x in trace["x"]])},
        "yaxis": {**_axis(f"{second.capitalize()} / least", [y for trace in data for y in trace["y"]])},
        "legend": LEGEND, "hovermode": "closest"}}


def highlighted(layers: Sequence[LayerRecord]) -> Iterator[tuple[LayerRecord, Figure]]:
    """Yield layers with how each is drawn: those that take longest last and in colours, the others grey and as one."""
    cycles = {id(layer): layer.count * layer.cost.latency_cycles for layer in layers if layer.cost is not None}
    leading = sorted(layers, key=lambda layer: -cycles.get(id(layer), 0))[:HIGHLIGHTS]
    for index, layer in enumerate(sorted(layers, key=lambda layer: layer in leading)):
        place = leading.index(layer) if layer in leading else None
        yield layer, curve_style(layer, place) | {"showlegend": place is not None or index == 0}


def curve_style(layer: LayerRecord, place: int | None) -> Figure:
    """Return the name, group and colours of a layer's curve, from its place among those in colours."""
    line = {"color": "@faint", "width": 1} if place is None else {"color": f"@curve-{place}", "width": 2.5}
    return {"name": OTHERS if place is None else escape(shortened(layer.name, 24)),
            "legendgroup": "others" if place is None else f"layer {place}",
            "line": {**line, "shape": "hv"}, "marker": {"color": line["color"]}}


def layer_front_figure(layer: LayerRecord) -> Figure:
    """Return the front of one layer in its metrics' units, with the best mapping by the objective marked."""
    front = layer.front
    if front is None or not front.points:
        return {"data": [], "layout": {}}
    scales = [PICOJOULE if unit in JOULES else 1.0 for unit in front.units]
    points = [(point.values[0] * scales[0], point.values[1] * scales[1]) for point in front.points]
    data = [{**_trace(layer, points), "name": "front", "showlegend": False,
             "line": {"color": "@curve-0", "width": 2, "shape": "hv"}, "marker": {"color": "@curve-0", "size": 7}}]
    if (best := _best(layer, front)) is not None:
        data.append({"type": "scatter", "mode": "markers", "name": "best by the objective", "x": [best[0] * scales[0]],
                     "y": [best[1] * scales[1]], "cliponaxis": False, "hoverinfo": "skip",
                     "marker": {"symbol": "circle-open", "size": 14, "color": "@curve-1", "line": {"width": 2.5}}})
        points.append((best[0] * scales[0], best[1] * scales[1]))
    titles = [f"{name.capitalize()} ({JOULES.get(unit, unit)})"
              for name, unit in zip(front.metrics, front.units, strict=True)]
    x, y = ([point[axis] for point in points] for axis in (0, 1))
    return {"data": data, "layout": {
        "xaxis": {"title": {"text": titles[0]}, "tickformat": "~s", "range": ends_with_room(x), "nticks": 6},
        "yaxis": {"title": {"text": titles[1]}, "tickformat": "~s", "range": ends_with_room(y), "nticks": 6},
        "legend": LEGEND, "hovermode": "closest", "height": 270}}


def front_rows(record: RunRecord) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of a table: for each layer how many mappings its front has, and what each metric spans."""
    fronts = [(layer, layer.front) for layer in record.layers if layer.front is not None]
    if not fronts:
        return (), []
    heads = ("Layer", "Mappings", *(name.capitalize() for name in fronts[0][1].metrics))
    return heads, [(layer.name, f"{len(front.points):,}{' (thinned)' if front.thinned else ''}", *_spans(front))
                   for layer, front in fronts]


def _best(layer: LayerRecord, front: FrontRecord) -> tuple[float, float] | None:
    """Return the first two metrics of the layer's own mapping, where its cost tells them."""
    if layer.cost is None:
        return None
    known = {"latency": float(layer.cost.latency_cycles), "energy": layer.cost.energy_pj, "edp": layer.cost.edp}
    first, second = (known.get(name) for name in front.metrics[:2])
    return None if first is None or second is None else (first, second)


def _spans(front: FrontRecord) -> list[str]:
    found = []
    for place, unit in enumerate(front.units):
        values = [measured(point.values[place], unit) for point in front.points]
        ends = sorted(range(len(values)), key=lambda index: front.points[index].values[place])
        found.append("none" if not ends else values[ends[0]] if values[ends[0]] == values[ends[-1]] else
                     f"{values[ends[0]]} to {values[ends[-1]]}")
    return found


def _relative(front: FrontRecord) -> list[tuple[float, float]]:
    least = [min(point.values[axis] for point in front.points) or 1.0 for axis in (0, 1)]
    return [(point.values[0] / least[0], point.values[1] / least[1]) for point in front.points]


def _trace(layer: LayerRecord, points: list[tuple[float, float]]) -> Figure:
    front = layer.front
    told = [] if front is None else [
        ", ".join(f"{name} {measured(value, unit)}"
                  for name, value, unit in zip(front.metrics, point.values, front.units, strict=True))
        for point in front.points]
    plain = front is None or len(front.metrics) == 2
    return {"type": "scatter", "mode": "lines+markers" if plain else "markers",
            "x": [x for x, _ in points], "y": [y for _, y in points],
            "meta": [escape(shortened(layer.name, 60))], "customdata": told, "cliponaxis": False,
            "hovertemplate": "<b>%{meta[0]}</b><br>%{customdata}<extra></extra>"}


def ends_with_room(values: list[float]) -> list[float]:
    """Return the range of an axis that shows all of these values with some room."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 0.1 * high or 1.0
    return [low - room, high + room]


def _axis(title: str, values: list[float]) -> Figure:
    room = 0.04 * (max(values) - 1.0) or 0.1
    return {"title": {"text": title}, "range": [1.0 - room, max(values) + room], "nticks": 7}
