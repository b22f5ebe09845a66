"""The page's plots as Plotly figures in plain data.

Colours are names such as ``@memory-0``, which the page replaces by those of its light or dark theme.
"""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from tilewright.report.fronts import LEGEND, curve_style, highlighted
from tilewright.report.quantities import TIMES, engineering, joules, multiple, over, percent, shortened, significant
from tilewright.store import CostRecord, LayerRecord, RunRecord

Figure = dict[str, Any]

VECTOR = "Vector work"
_CROWDED = 40
_SHOWN_MEMORIES = 5
_DASHES = ("solid", "dash", "dot", "dashdot")


def component_colours(record: RunRecord) -> dict[str, str]:
    """Return a colour for each component in the order shown: memories outer to inner, networks, compute, the rest."""
    rows = [row for layer in record.layers if layer.mapping is not None for row in layer.mapping.nest]
    found = {kind: dict.fromkeys(row.level for row in rows if row.kind == kind)
             for kind in ("memory", "fanout", "compute")}
    colours = {name: f"@memory-{min(index, _SHOWN_MEMORIES - 1)}" for index, name in enumerate(found["memory"])}
    colours |= dict.fromkeys(found["fanout"], "@network") | dict.fromkeys(found["compute"], "@compute")
    for layer in record.layers:
        for name in layer.cost.energy_by_component_pj if layer.cost is not None else ():
            colours.setdefault(name, "@other")
    return colours


def latency_figure(record: RunRecord) -> Figure:
    """Return cycles per layer, coloured by what limits it, with ramp on top and the bound marked."""
    colours = component_colours(record)
    mapped = list(_mapped(record))
    limits = dict.fromkeys(cost.bottleneck for _, _, cost in mapped)
    order = [name for name in ("compute", *colours) if name in limits]
    data: list[Figure] = []
    for limit in [*order, *(name for name in limits if name not in order)]:
        bars = [(index, layer, cost) for index, layer, cost in mapped if cost.bottleneck == limit]
        colour = "@compute" if limit == "compute" else colours.get(limit, "@other")
        data.append(_bars(f"limited by {limit}", colour,
                          [(index, layer.count * cost.steady_cycles) for index, layer, cost in bars],
                          [_latency_hover(layer, cost) for _, layer, cost in bars]))
    data.append(_bars("ramp", "@other", [(index, layer.count * cost.ramp_cycles) for index, layer, cost in mapped],
                      [_latency_hover(layer, cost) for _, layer, cost in mapped]))
    data += _vector_bars(record, "latency_cycles", 1, "cycles")
    data += _bound_marks([layer.count * layer.bounds.latency_cycles if layer.bounds else None
                          for layer in record.layers])
    return {"data": data + _missing_marks(record), "layout": _bar_layout(record, "Cycles, all repeats", "")}


def energy_figure(record: RunRecord) -> Figure:
    """Return energy per layer, stacked by component, with the bound marked."""
    mapped = list(_mapped(record))
    data: list[Figure] = []
    for name, colour in component_colours(record).items():
        values = [(index, layer, cost, cost.energy_by_component_pj.get(name, 0.0)) for index, layer, cost in mapped]
        if not any(energy for *_, energy in values):
            continue
        data.append(_bars(name, colour, [(index, layer.count * energy * 1e-12) for index, layer, _, energy in values],
                          [[*_who(layer), f"{escape(name)}: {engineering(joules(layer.count * energy), 'J')}, "
                                          f"{percent(over(energy, cost.energy_pj))} of the layer"]
                           for _, layer, cost, energy in values]))
    data += _vector_bars(record, "energy_pj", 1e-12, "J")
    data += _bound_marks([layer.count * layer.bounds.energy_pj * 1e-12 if layer.bounds else None
                          for layer in record.layers])
    return {"data": data + _missing_marks(record), "layout": _bar_layout(record, "Energy, all repeats", "J")}


def roofline_figure(record: RunRecord) -> Figure:
    """Return achieved throughput over intensity on logarithmic axes, under the roof of the machine."""
    points = [(layer, cost, layer.roofline) for _, layer, cost in _mapped(record)
              if layer.roofline is not None and layer.roofline.intensity_macs_per_byte > 0]
    if not points:
        return {"data": [], "layout": {}}
    x = [roofline.intensity_macs_per_byte for *_, roofline in points]
    y = [roofline.achieved_macs_per_cycle for *_, roofline in points]
    roofs = sorted({(roofline.peak_macs_per_cycle, roofline.bandwidth_bytes_per_cycle, roofline.memory)
                    for *_, roofline in points}, key=str)
    ridges = [peak / bandwidth for peak, bandwidth, _ in roofs if bandwidth]
    low, high = min([*x, *ridges]) / 2, max([*x, *ridges]) * 5
    data: list[Figure] = []
    for index, (peak, bandwidth, memory) in enumerate(roofs):
        corner = [low, peak / bandwidth, high] if bandwidth else [low, high]
        label = f"roof: {engineering(peak)} MACs/cycle"
        label += f", {engineering(bandwidth)} B/cycle ({escape(memory)})" if bandwidth else ", unlimited bandwidth"
        data.append({"type": "scatter", "mode": "lines", "name": label, "hoverinfo": "skip", "x": corner,
                     "y": [min(peak, bandwidth * at) if bandwidth else peak for at in corner],
                     "line": {"color": "@strong", "width": 2, "dash": _DASHES[index % len(_DASHES)]}})
    shares = [layer.count * cost.latency_cycles / max(record.totals.latency_cycles, 1) for layer, cost, _ in points]
    bottom, top = min(y) / 3, max(peak for peak, *_ in roofs) * 2
    labelled = _labels(x, y, (high / low, top / bottom), shares)
    colours = component_colours(record)
    for limit in dict.fromkeys(cost.bottleneck for _, cost, _ in points):
        chosen = [index for index, (_, cost, _) in enumerate(points) if cost.bottleneck == limit]
        data.append({
            "type": "scatter", "mode": "markers+text", "name": f"limited by {escape(limit)}",
            "x": [x[index] for index in chosen], "y": [y[index] for index in chosen],
            "text": [escape(shortened(points[index][0].name, 18)) if index in labelled else "" for index in chosen],
            "textposition": "bottom right", "textfont": {"size": 11, "color": "@muted"}, "cliponaxis": False,
            "marker": {"color": "@compute" if limit == "compute" else colours.get(limit, "@other"), "opacity": 0.85,
                       "size": [8 + 28 * math.sqrt(shares[index]) for index in chosen],
                       "line": {"color": "@surface", "width": 1.5}},
            "customdata": [[*_who(points[index][0]), f"{significant(x[index])} MACs/B, {significant(y[index])} "
                            f"MACs/cycle", f"{percent(shares[index])} of all cycles"] for index in chosen],
            "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<br>%{customdata[3]}"
                             "<extra></extra>"})
    return {"data": data, "layout": {
        "xaxis": {"type": "log", "title": {"text": "Operational intensity (MACs/byte)"}, **_decades(low, high)},
        "yaxis": {"type": "log", "title": {"text": "MACs/cycle"}, **_decades(bottom, top)},
        "legend": LEGEND, "hovermode": "closest"}}


def convergence_figure(record: RunRecord) -> Figure:
    """Return the best score over samples for every layer, relative to its bound or, without one, to its final score."""
    searched = [layer for layer in record.layers if _curve(layer, bounded=False)]
    bounded = bool(searched) and all(layer.bounds is not None and layer.bounds.score for layer in searched)
    data = [_curve_trace(layer, bounded=bounded) | style for layer, style in highlighted(searched)]
    return {"data": data, "layout": _curve_layout(data, bounded=bounded)}


def layer_convergence_figure(layer: LayerRecord) -> Figure:
    """Return the best score over samples for one layer."""
    bounded = layer.bounds is not None and bool(layer.bounds.score)
    if not _curve(layer, bounded=bounded):
        return {"data": [], "layout": {}}
    trace = _curve_trace(layer, bounded=bounded) | curve_style(layer, 0) | {"showlegend": False}
    return {"data": [trace], "layout": {**_curve_layout([trace], bounded=bounded), "height": 240}}


def _mapped(record: RunRecord) -> Iterator[tuple[int, LayerRecord, CostRecord]]:
    for index, layer in enumerate(record.layers):
        if layer.cost is not None:
            yield index, layer, layer.cost


def _who(layer: LayerRecord) -> list[str]:
    times = f" {TIMES}{layer.count}" if layer.count > 1 else ""
    return [escape(shortened(layer.name, 60)) + times, escape(layer.operator.short)]


def _latency_hover(layer: LayerRecord, cost: CostRecord) -> list[str]:
    gap = multiple(cost.latency_cycles, layer.bounds.latency_cycles if layer.bounds else None)
    return [*_who(layer), f"{cost.latency_cycles:,} cycles each ({cost.steady_cycles:,} steady, {cost.ramp_cycles:,} "
                          f"ramp)<br>{gap} its bound, limited by {escape(cost.bottleneck)}"]


def _bars(name: str, colour: str, values: Sequence[tuple[int, float]], hover: Sequence[list[str]]) -> Figure:
    return {"type": "bar", "name": escape(name), "x": [index for index, _ in values], "y": [y for _, y in values],
            "marker": {"color": colour}, "customdata": list(hover),
            "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>%{customdata[2]}<extra></extra>"}


def _vector_bars(record: RunRecord, figure: str, scale: float, unit: str) -> list[Figure]:
    """Return one bar of all vector work behind the layers, told by kind; nothing where there is none or it is free."""
    found = [(one, getattr(one, figure) * scale) for one in record.vector_nodes if getattr(one, figure)]
    if not found:
        return []
    told = "<br>".join(f"{escape(one.kind)} {TIMES}{one.count}: {engineering(value, unit)}"
                       for one, value in sorted(found, key=lambda pair: -pair[1])[:8])
    total = sum(value for _, value in found)
    return [_bars(VECTOR, "@curve-4", [(len(record.layers), total)], [[VECTOR, engineering(total, unit), told]])]


def _bound_marks(values: Sequence[float | None]) -> list[Figure]:
    """Return a line across each bar at its bound, with a halo that keeps it visible on any colour."""
    x: list[float | None] = []
    y: list[float | None] = []
    for index, value in enumerate(values):
        if value is not None:
            x += [index - 0.44, index + 0.44, None]
            y += [value, value, None]
    width = 2.5 if len(values) <= _CROWDED else 1.5
    line = {"type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip", "cliponaxis": False}
    return [{**line, "name": "bound (halo)", "showlegend": False, "line": {"width": width + 2, "color": "@surface"}},
            {**line, "name": "bound", "line": {"width": width, "color": "@strong"}}]


def _missing_marks(record: RunRecord) -> list[Figure]:
    missing = [(index, layer) for index, layer in enumerate(record.layers) if layer.cost is None]
    if not missing:
        return []
    return [{"type": "scatter", "mode": "markers", "name": "no legal mapping", "x": [index for index, _ in missing],
             "y": [0] * len(missing), "cliponaxis": False,
             "marker": {"symbol": "x", "size": 9, "color": "@alarm"},
             "customdata": [_who(layer) for _, layer in missing],
             "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<br>no legal mapping<extra></extra>"}]


def _bar_layout(record: RunRecord, title: str, unit: str) -> Figure:
    """Return axes with a tick per layer, which the page thins out where there is no room."""
    beside = [VECTOR] if record.totals.vector_cycles or record.totals.vector_energy_pj else []
    count = len(record.layers) + len(beside)
    spare = max(0.0, (6 - count) / 2)
    return {"barmode": "stack", "bargap": 0.25, "hovermode": "closest", "legend": LEGEND,
            "xaxis": {"tickvals": list(range(count)), "range": [-0.6 - spare, count - 0.4 + spare], "tickangle": -50,
                      "ticktext": [*(escape(shortened(layer.name, 21)) for layer in record.layers), *beside],
                      "showgrid": False, "zeroline": False},
            "yaxis": {"title": {"text": title}, "tickformat": "~s", "ticksuffix": unit, "rangemode": "tozero"}}


def _decades(low: float, high: float) -> Figure:
    """Return range and ticks of a logarithmic axis that do not crowd."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, -(-(last - first) // 6))
    values = [10.0**power for power in range(first, last + 1, every)]
    if last - first <= 2:
        values = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    return {"range": [math.log10(low), math.log10(high)], "tickvals": values,
            "ticktext": [engineering(value).replace(".00", "").replace(".0", "") if value >= 1 else f"{value:g}"
                         for value in values]}


def _labels(x: Sequence[float], y: Sequence[float], spans: tuple[float, float], shares: Sequence[float]) -> set[int]:
    """Return up to four of the largest points whose labels, below to their right, cover neither points nor labels.

    ``spans`` are the ratios of the axes' ends.
    """
    across = [math.log10(value) / math.log10(spans[0]) for value in x]
    up = [math.log10(value) / math.log10(spans[1]) for value in y]
    chosen: list[int] = []
    for index in sorted(range(len(x)), key=lambda index: -shares[index]):
        covers = any(0 < across[other] - across[index] < 0.27 and 0 < up[index] - up[other] < 0.13
                     for other in range(len(x)))
        crowds = any(abs(across[other] - across[index]) < 0.3 and abs(up[other] - up[index]) < 0.08 for other in chosen)
        if not covers and not crowds and len(chosen) < 4:
            chosen.append(index)
    return set(chosen)


def _curve(layer: LayerRecord, *, bounded: bool) -> list[tuple[int, float]]:
    """Return (samples, relative score) of a layer's search, drawn on to its last sample; empty where there is none."""
    if layer.search is None:
        return []
    points = [(samples, score) for samples, _, score in layer.search.history if math.isfinite(score) and score > 0]
    if not points:
        return []
    reference = points[-1][1]
    if bounded and layer.bounds is not None and layer.bounds.score:
        reference = layer.bounds.score
    if layer.search.samples > points[-1][0]:
        points.append((layer.search.samples, points[-1][1]))
    return [(max(samples, 1), score / reference) for samples, score in points]


def _curve_trace(layer: LayerRecord, *, bounded: bool) -> Figure:
    points = _curve(layer, bounded=bounded)
    return {"type": "scatter", "mode": "lines" if len(points) > 1 else "markers",
            "x": [x for x, _ in points], "y": [y for _, y in points], "meta": _who(layer),
            "hovertemplate": "<b>%{meta[0]}</b><br>%{meta[1]}<br>%{y:.3f} after %{x:,} samples<extra></extra>"}


def _curve_layout(data: Sequence[Figure], *, bounded: bool) -> Figure:
    """Return axes for curves that end at or above one; a dashed line marks the one."""
    x = [at for trace in data for at in trace["x"]] or [1]
    y = [at for trace in data for at in trace["y"]] or [1]
    high = max(*y, 1.2)
    axis: Figure = {"title": {"text": "Best score / bound" if bounded else "Best score / final score"}}
    if high > 10:
        axis |= {"type": "log", **_decades(0.9, high * 1.15)}
    else:
        axis |= {"range": [1 - 0.06 * (high - 1), high + 0.08 * (high - 1)]}
    one = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "layer": "below",
           "line": {"color": "@strong", "width": 1.5, "dash": "dash"}}
    return {"xaxis": {"type": "log", "title": {"text": "Samples"}, **_decades(max(min(x) * 0.9, 0.5), max(x) * 1.2)},
            "yaxis": axis, "shapes": [one], "legend": LEGEND, "hovermode": "closest"}
