"""Pareto fronts as plots and as lines of a table; of three metrics and more the plots show the first two."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from tilewright.base import Table
from tilewright.report.quantities import JOULES, PICOJOULE, TIMES, engineering, measured, multiple, shortened, titled
from tilewright.store import FrontRecord, LayerRecord, NetworkFrontRecord, NetworkPointRecord, RunRecord

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
        "xaxis": {**_axis(f"{titled(first)} / least", [x for trace in data for x in trace["x"]])},
        "yaxis": {**_axis(f"{titled(second)} / least", [y for trace in data for y in trace["y"]])},
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
    titles = [f"{titled(name)} ({JOULES.get(unit, unit)})"
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
    heads = ("Layer", "Mappings", *(titled(name) for name in fronts[0][1].metrics))
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


HOVER = "%{x:.4s} cycles, %{y:.4s}J<extra></extra>"
FEW = 9
"""Points that the terminal shows."""
MANY = 25
"""Points whose mappings the page tells."""


def network_front_lines(front: NetworkFrontRecord) -> tuple[str, str]:
    """Return what it is in a sentence, and how near to the exact front it is."""
    if not front.points:
        return "No front of the network", f"{front.reason}."
    near = "exact" if not front.tolerance else (
        f"each combination is matched within {100 * front.tolerance:.2g} % of its cycles at no more energy")
    if front.within and front.place is None:
        near += f". No combination is within {front.within}"
    return (f"Pareto front of the network: {len(front.points):,} combinations",
            f"Of mappings on its layers' fronts, any for each run; {near}.")


def network_front_table(run: RunRecord, front: NetworkFrontRecord) -> Table:
    """Return some points of the front from the fastest to the most frugal, the run's own mappings and the bounds."""
    places = sorted({*_some(front.points, FEW), *([] if front.place is None else [front.place])})
    best = min(range(len(front.points)), key=lambda place: front.points[place].edp)
    totals = run.totals
    rows = [(str(place + 1), *_figures(run, point.latency_cycles, point.energy_pj),
             f"best within {front.within}" if place == front.place else "least EDP" if place == best else "")
            for place in places for point in [front.points[place]]]
    rows.append(("as mapped", *_figures(run, totals.latency_cycles, totals.energy_pj),
                 "best of each layer"))
    if totals.bound_latency_cycles is not None and totals.bound_energy_pj is not None:
        rows.append(("bound", *_figures(run, totals.bound_latency_cycles, totals.bound_energy_pj),
                     "none beats either"))
    return Table("network-front", network_front_lines(front)[0], (
        "Point", "Latency\n(cycles)", "/ bound", "Energy", "/ bound", "EDP\n(x cycles)", ""), tuple(rows))


def network_front_choices(run: RunRecord, front: NetworkFrontRecord, most: int = MANY) -> list[tuple[str, ...]]:
    """Return for points their place, latency, energy and, layer by layer, which rows of its front they take.

    Of layers whose runs differ, each row comes with how many of them have it.
    """
    return [(str(place + 1), engineering(point.latency_cycles), measured(point.energy_pj, "pJ"), "; ".join(
        f"{layer.name}: " + ", ".join(
            f"{at + 1}" + (f" ({TIMES}{times})" if len(chosen) > 1 else "") for at, times in chosen)
        for layer, chosen in zip(run.layers, point.chosen, strict=True)))
        for place in sorted({*_some(front.points, most), *([] if front.place is None else [front.place])})
        for point in [front.points[place]]]


def network_front_figure(run: RunRecord) -> Figure:
    """Return the front, the run's own mappings, and the bounds as lines."""
    front, totals = run.front, run.totals
    if front is None or not front.points:
        return {"data": [], "layout": {}}
    x = [point.latency_cycles for point in front.points]
    y = [point.energy_pj * 1e-12 for point in front.points]
    own = totals.latency_cycles, totals.energy_pj * 1e-12
    data: list[Figure] = [
        {"type": "scatter", "mode": "lines+markers", "name": "front", "x": x, "y": y, "cliponaxis": False,
         "line": {"color": "@curve-0", "width": 2, "shape": "hv"},
         "marker": {"color": "@curve-0", "size": 6 if len(x) < 100 else 3},
         "hovertemplate": HOVER},
        {"type": "scatter", "mode": "markers", "name": f"least {escape(run.request.objective)} of each layer",
         "x": own[:1], "y": own[1:], "cliponaxis": False, "hovertemplate": HOVER,
         "marker": {"symbol": "circle-open", "size": 14, "color": "@curve-1", "line": {"width": 2.5}}}]
    across, up = [*x, own[0]], [*y, own[1]]
    if totals.bound_latency_cycles is not None and totals.bound_energy_pj is not None:
        least = totals.bound_latency_cycles, totals.bound_energy_pj * 1e-12
        across.append(least[0])
        up.append(least[1])
        data.append({"type": "scatter", "mode": "lines", "name": "bound", "hoverinfo": "skip",
                     "x": [least[0], least[0], max(across)], "y": [max(up), least[1], least[1]],
                     "line": {"color": "@strong", "width": 1.5, "dash": "dash"}})
    return {"data": data, "layout": {
        "xaxis": {"title": {"text": "Latency (cycles)"}, "tickformat": "~s", "nticks": 7,
                  "range": ends_with_room(across)},
        "yaxis": {"title": {"text": "Energy (J)"}, "tickformat": "~s", "nticks": 6, "range": ends_with_room(up)},
        "legend": LEGEND, "hovermode": "closest"}}


def _figures(run: RunRecord, cycles: float, energy_pj: float) -> tuple[str, ...]:
    totals = run.totals
    return (engineering(cycles), multiple(cycles, totals.bound_latency_cycles), measured(energy_pj, "pJ"),
            multiple(energy_pj, totals.bound_energy_pj), measured(cycles * energy_pj, "pJ"))


def _some(points: tuple[NetworkPointRecord, ...], most: int) -> list[int]:
    """Return places of at most ``most`` points, evenly from the first to the last, the least EDP among them."""
    last = len(points) - 1
    if last < most:
        return list(range(last + 1))
    best = min(range(last + 1), key=lambda place: points[place].edp)
    places = {round(last * place / (most - 1)) for place in range(most)}
    inner = sorted(places - {0, last}, key=lambda place: abs(place - best))
    return sorted(places if best in (0, last) else {*places - {inner[0]}, best})
