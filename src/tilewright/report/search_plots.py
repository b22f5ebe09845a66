"""Plots of studies of searches: convergence with bands, all orders of a mapping, a map space in two dimensions."""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.base import Plot
from tilewright.report.fronts import LEGEND

if TYPE_CHECKING:
    from tilewright.search.studies import Band, Contest, Landscape, OrderStudy, Points

_COLOURS = 8
_DASHES = ("solid", "dash", "dot")
CLOCKS = {"samples": "Samples", "seconds": "Seconds"}
_CLOSE, _SOME, _WIDE = 2.5, 12, 300
"""Ratios of the ends of an axis below which it is plain, and above which it has ticks at 1, 2, 5 alone, or at tens."""

_SHOWN_BACKGROUND, _SHOWN_TRAIL = 3000, 1000
_HEAT = [[place / 4, f"@heat-{4 - place}"] for place in range(5)]


def contest_plot(found: "Contest", clock: str, names: Sequence[str] = (), *, bands: bool = True,
                 title: tuple[str, str] | None = None) -> Plot:
    """Return the convergence of every mapper (or those named) over ``samples`` or ``seconds``, with its band.

    ``title`` is name and title of the plot.
    """
    scale = found.bound or 1.0
    data: list[dict[str, Any]] = []
    for index, mapper in enumerate(names or found.names):
        data += _curve(found.band(mapper, clock), index, scale)[0 if bands else -1:]
    head = "Best score / bound" if found.bound else f"Best score ({found.unit})"
    return Plot(*(title or (clock, f"Best score over {clock}")), data, {
        "xaxis": log_axis(CLOCKS[clock], [at for trace in data for at in trace["x"]]),
        "yaxis": log_axis(head, [score for trace in data for score in trace["y"]]),
        "legend": LEGEND, "hovermode": "closest"},
        "Lines: medians over seeds." + (" Bands: order statistics around them." if bands else ""))


def log_axis(title: str, values: Sequence[float]) -> dict[str, Any]:
    """Return a logarithmic axis (a plain one for values close together) whose ticks neither crowd nor lack."""
    ratio = max(values) / min(values) if values and min(values) > 0 else 1.0
    axis: dict[str, Any] = {"title": {"text": title}}
    if ratio < _CLOSE:
        return axis
    dtick: int | str = 1 if ratio > _WIDE else "D2" if ratio > _SOME else "D1"
    return axis | {"type": "log", "dtick": dtick, "exponentformat": "power"}


def _curve(band: "Band", index: int, scale: float) -> list[dict[str, Any]]:
    """Return the band and the line of one mapper, from where its median is finite."""
    colour = index % _COLOURS
    points = [(at, each) for at, each in zip(band.at, band.intervals, strict=True) if math.isfinite(each.median)]
    closed = [(at, each) for at, each in points if math.isfinite(each.high)]
    x = [at for at, _ in closed]
    label = escape(band.contender)
    edges = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0, "shape": "hv"}, "hoverinfo": "skip",
             "showlegend": False, "legendgroup": label}
    return [
        {**edges, "name": f"{label} (low)", "y": [each.low / scale for _, each in closed]},
        {**edges, "name": f"{label} (high)", "y": [each.high / scale for _, each in closed], "fill": "tonexty",
         "fillcolor": f"@band-{colour}"},
        {"type": "scatter", "mode": "lines" if len(points) > 1 else "markers", "name": label, "legendgroup": label,
         "x": [at for at, _ in points], "y": [each.median / scale for _, each in points],
         "line": {"color": f"@curve-{colour}", "width": 2.2, "shape": "hv", "dash": _DASHES[index // _COLOURS % 3]},
         "marker": {"color": f"@curve-{colour}"},
         "hovertemplate": f"<b>{label}</b><br>%{{y:.4g}} after %{{x:,.4~g}} {band.clock}<extra></extra>"},
    ]


def orders_plot(found: "OrderStudy", title: tuple[str, str] | None = None) -> Plot:
    """Return the score of every order, best first; ``title`` is name and title of the plot."""
    data, start = [], 0
    for index, group in enumerate(found.groups):
        data.append({"type": "scatter", "mode": "lines", "x": [start, start + group.count],
                     "y": [group.score, group.score], "line": {"color": f"@curve-{index % 2}", "width": 5},
                     "showlegend": False, "name": f"group {index + 1}",
                     "hovertemplate": f"<b>{group.count:,} orders</b><br>{group.score:.4g}<br>"
                                      f"{escape(group.pattern)}<extra></extra>"})
        start += group.count
    return Plot(*(title or ("orders", f"{shown_goal(found.objective)} of all {found.orders:,} orders")), data, {
        "xaxis": {"title": {"text": "Orders, best first"}, "range": [0, found.orders]},
        "yaxis": log_axis(f"{shown_goal(found.objective)} ({found.unit})", [group.score for group in found.groups]),
        "hovermode": "closest"}, f"{len(found.groups)} different scores; each line is a group of orders.")


def landscape_plots(found: "Landscape") -> tuple[Plot, Plot]:
    """Return the random mappings coloured by score, and the points that mappers sampled before them."""
    axes = {"xaxis": {"title": {"text": f"Axis 1 ({found.explained[0]:.1%} of the variance)"}},
            "yaxis": {"title": {"text": f"Axis 2 ({found.explained[1]:.1%})"}}, "hovermode": "closest",
            "height": 560, "legend": LEGEND}
    random = found.background.thinned(_SHOWN_BACKGROUND)
    random = random.take(np.argsort(-random.scores))  # the best are drawn last
    head = f"log10 {shown_goal(found.objective)}"
    heat = {"type": "scatter", "mode": "markers", "name": "random mappings", "x": _rounded(random.x),
            "y": _rounded(random.y), "marker": {
                "size": 5, "color": [round(math.log10(score), 3) for score in random.scores], "colorscale": _HEAT,
                "opacity": 0.9, "cmin": math.log10(random.scores.min()),
                "cmax": math.log10(np.quantile(random.scores, 0.95)),
                "colorbar": {"y": 0.45, "len": 0.9, "title": {"text": head}, "thickness": 12, "outlinewidth": 0}},
            "hovertemplate": f"{head} %{{marker.color:.2f}}<extra></extra>", "showlegend": False}
    data = [{**heat, "marker": {"size": 4, "color": "@faint", "opacity": 0.45},
             "hoverinfo": "skip", "hovertemplate": None, "showlegend": True}]
    data += [trace for index, (name, points) in enumerate(found.trails.items()) if len(points)
             for trace in _trail(name, points.thinned(_SHOWN_TRAIL), index, head)]
    return (Plot("random", f"Random mappings by {shown_goal(found.objective)}", [heat], axes,
                 f"{len(random):,} of {len(found.background):,} random mappings that fit; the best are drawn last."),
            Plot("sampled", "What mappers sampled", data, axes, "The star is the best mapping that each found."))


def _trail(name: str, points: "Points", index: int, head: str) -> list[dict[str, Any]]:
    best = int(points.scores.argmin())
    colour, text = f"@curve-{index % 8}", escape(name)
    hover = f"<b>{text}</b><br>{head} %{{customdata[0]:.2f}}, sample %{{customdata[1]}}<extra></extra>"
    shared = {"type": "scatter", "mode": "markers", "name": text, "legendgroup": text, "hovertemplate": hover}
    return [
        {**shared, "x": _rounded(points.x), "y": _rounded(points.y), "customdata": _told(points),
         "marker": {"size": 5, "color": colour, "opacity": 0.7}},
        {**shared, "x": _rounded(points.x[best:best + 1]), "y": _rounded(points.y[best:best + 1]), "showlegend": False,
         "customdata": _told(points.take(slice(best, best + 1))),
         "marker": {"size": 15, "symbol": "star", "color": colour, "line": {"color": "@strong", "width": 1.5}}}]


def _told(points: "Points") -> list[list[float]]:
    return [[round(math.log10(score), 3), int(sample)]
            for score, sample in zip(points.scores, points.samples, strict=True)]


def shown_goal(objective: str) -> str:
    """Return an objective as people write it."""
    return "EDP" if objective == "edp" else objective


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 3) for value in values]
