"""Machines side by side, as a person sees them: the front, the best, a heat map of what varies."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.codesign import SidedMachine, SidedMachines
from tilewright.report.fronts import LEGEND, ends_with_room
from tilewright.report.network import sides
from tilewright.report.quantities import engineering, finite, measured, percent, significant
from tilewright.report.search_plots import log_axis, shown_goal
from tilewright.report.sheet import Sheet
from tilewright.search import METRICS
from tilewright.store import RunRecord

MOST_ROWS = 24
"""Machines that a table shows beside those of the front."""
_NONE = "no mapping"


def sweep_sheet(found: SidedMachines, front: Sequence[SidedMachine], runs: Sequence[RunRecord] = ()) -> Sheet:
    """Return what is to be shown of machines side by side, of which some are the ``front``.

    ``runs`` are those of the machines, where each was mapped by itself.
    """
    known = sorted(found.machines, key=lambda one: one.score)
    lost = [one for one in known if one.unmapped]
    shown = [one for one in found.machines if one in front or one in known[:MOST_ROWS]]
    table = Table("machines", "Machines" if len(shown) == len(known) else
                  f"The front, and the {MOST_ROWS} best of {len(known):,} machines",
                  (*(name[0].upper() + name[1:] for name in found.varied), "Latency (cycles)", "Latency",
                   "Energy", "EDP", "Area (mm2)", "To the best", "Above the bound", "Front"),
                  tuple(_row(found, one, known[0].score, one in front) for one in shown),
                  (f"Front: no other machine is as good in all of {', '.join(found.front_metrics)}.",))
    facts = [_best(found, known[0]) if known and not known[0].unmapped else "No machine has a mapping of every layer."]
    facts.append(f"{len(known):,} machines, {found.samples:,} mappings of layers scored.")
    if lost:
        facts.append(f"{len(lost):,} machines have no mapping of some layer: {', '.join(lost[0].unmapped[:3])} ...")
    if found.interrupted:
        facts.append("Interrupted: what is there is not all that was asked for.")
    beside, drawn = sides(runs) if runs else ((), ())
    names = found.varied if len(found.varied) < 3 else (*found.varied[:2], "others")
    return Sheet(f"{found.network} on machines side by side",
                 f"{shown_goal(found.objective)} of the whole network, by {', '.join(names)}.", tuple(facts),
                 (table, *beside), (*_plots(found, front), *drawn), {}, found.command)


def _best(found: SidedMachines, one: SidedMachine) -> str:
    told = ", ".join(f"{name} {value}" for name, value in one.values.items())
    gap = "" if one.gap is None else f", at most {percent(max(one.gap, 0.0))} above what any mapping can do there"
    return (f"Best {shown_goal(found.objective)}: {told} with {engineering(one.latency_cycles)} cycles and "
            f"{measured(one.energy_pj, 'pJ')}{gap}.")


def _row(found: SidedMachines, one: SidedMachine, best: float, on_front: bool) -> tuple[Value, ...]:
    values = tuple(one.values[name] for name in found.varied)
    area = significant(one.machine.area_um2 / 1e6)
    if not isfinite(one.score):
        return (*values, _NONE, "", "", "", area, "", "", "")
    seconds = one.latency_cycles / one.machine.frequency_mhz * 1e-6
    return (*values, engineering(one.latency_cycles), engineering(seconds, "s"), measured(one.energy_pj, "pJ"),
            measured(one.figure("edp"), "pJ x cycles"), area, f"{one.score / best:.3f}",
            "" if one.gap is None else percent(max(one.gap, 0.0)), "front" if on_front else "")


def _plots(found: SidedMachines, front: Sequence[SidedMachine]) -> list[Plot]:
    points = [one for one in found.machines if isfinite(one.score)]
    if not points:
        return []
    plots = [_scatter(found, points, front)]
    if len(found.varied) >= 2:
        plots.insert(0, _heat(found, points))
    return plots


def _heat(found: SidedMachines, points: Sequence[SidedMachine]) -> Plot:
    """Return the best objective by the first two numbers that vary."""
    across, down = found.varied[:2]
    xs, ys = (list(dict.fromkeys(one.values[name] for one in found.machines)) for name in (across, down))
    best: dict[tuple[str, str], SidedMachine] = {}
    for one in points:
        place = one.values[across], one.values[down]
        if place not in best or one.score < best[place].score:
            best[place] = one
    least = min(one.score for one in points)
    cells = [[best[x, y].score / least if (x, y) in best else None for x in xs] for y in ys]
    others = f"; the best of {', '.join(found.varied[2:])}" if len(found.varied) > 2 else ""
    return Plot("heat", f"{shown_goal(found.objective)}, in multiples of the best{others}", [{
        "type": "heatmap", "x": xs, "y": ys, "z": cells, "xgap": 2, "ygap": 2,
        "text": [[None if cell is None else f"{cell:.2f}" for cell in row] for row in cells],
        "texttemplate": "%{text}", "hoverongaps": False,
        "colorscale": [[place / 4, f"@heat-{place}"] for place in range(5)],
        "hovertemplate": f"{across} %{{x}}<br>{down} %{{y}}<br>%{{z:.4g}} times the best<extra></extra>"}],
        {f"{axis}axis": {"title": {"text": name}, "type": "category"} for axis, name in (("x", across), ("y", down))})


def _scatter(found: SidedMachines, points: Sequence[SidedMachine], front: Sequence[SidedMachine]) -> Plot:
    """Return all machines by area and objective; where no area is known, by cycles and energy."""
    by_area = all(one.machine.area_um2 > 0 for one in points) and len({one.machine.area_um2 for one in points}) > 1
    unit = METRICS[found.objective].unit if found.objective in METRICS else found.objective

    def place(one: SidedMachine) -> tuple[float, float]:
        return (one.machine.area_um2 / 1e6, one.score) if by_area else (one.latency_cycles, one.energy_pj * 1e-12)

    data = []
    for name, some, colour, size in (("machines", points, "@faint", 7), ("front", list(front), "@curve-0", 10)):
        texts = ["<br>".join(f"{key} {value}" for key, value in one.values.items()) for one in some]
        data.append({"type": "scatter", "mode": "markers", "name": name, "x": [place(one)[0] for one in some],
                     "y": [place(one)[1] for one in some], "text": texts, "marker": {"size": size, "color": colour},
                     "hovertemplate": "%{text}<br>%{x:.4g}, %{y:.4g}<extra></extra>"})
    x, y = ("Area (mm2)", f"{shown_goal(found.objective)} ({unit})") if by_area else ("Latency (cycles)", "Energy (J)")
    up = [place(one)[1] for one in points]
    axis = log_axis(y, up)
    return Plot("machines", f"{y} over {x[0].lower()}{x[1:]}", data, {
        "xaxis": {"title": {"text": x}}, "yaxis": axis if "type" in axis else axis | {"range": ends_with_room(up)},
        "showlegend": True,
        "legend": LEGEND})


def sweep_tree(found: SidedMachines, front: Sequence[SidedMachine]) -> dict[str, Any]:
    """Return the same as plain data; what has no mapping is null."""
    return {
        "network": found.network, "objective": found.objective, "varied": list(found.varied),
        "front_metrics": list(found.front_metrics), "samples": found.samples, "interrupted": found.interrupted,
        "command": found.command,
        "machines": [{
            "values": dict(one.values), "name": one.machine.name, "latency_cycles": finite(one.latency_cycles),
            "seconds": finite(one.latency_cycles / one.machine.frequency_mhz * 1e-6),
            "energy_pj": finite(one.energy_pj), "edp": finite(one.figure("edp")), "score": finite(one.score),
            "area_um2": one.machine.area_um2, "bound": one.bound, "gap": one.gap, "front": one in front,
            "unmapped": list(one.unmapped)} for one in found.machines]}
