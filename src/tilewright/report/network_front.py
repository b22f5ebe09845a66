"""The front of a whole network as a person sees it: a few of its points, and all of them drawn beside the bounds."""

from html import escape
from typing import Any

from tilewright.base import Table
from tilewright.report.fronts import LEGEND, ends_with_room
from tilewright.report.quantities import TIMES, engineering, measured, multiple
from tilewright.store import NetworkFrontRecord, NetworkPointRecord, RunRecord

Figure = dict[str, Any]

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


def network_front_table(run: RunRecord, front: NetworkFrontRecord, most: int = FEW) -> Table:
    """Return some points of the front from the fastest to the most frugal, the run's own mappings and the bounds."""
    places = sorted({*_some(front.points, most), *([] if front.place is None else [front.place])})
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
