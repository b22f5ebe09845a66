"""A budget shared among layers as a person sees it: what each layer has of it, and how near the best there is it is."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from tilewright.base import Plot, Table, Value, sizes_text
from tilewright.codesign.allocation import AllocatedLayer, AllocationResult
from tilewright.cost import Totals
from tilewright.report.design import LEFT_OUT, falling, layer_bars, limited_rows, machine_parts
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, finite, measured, percent, seconds_of
from tilewright.report.search_plots import log_axis, shown_goal
from tilewright.report.sheet import Sheet
from tilewright.store import RunRecord

_UNITS = {"latency": "cycles", "pace": "cycles", "energy": "J", "edp": "J·cycles"}
_SCALES = {"energy": 1e-12, "edp": 1e-12}
_ALL = {"pipelined": "Area, power, elements and bytes of one element's buffer are sums over the layers, which all run "
                     "at once.",
        "sequential": "One pair of elements and buffer serves all layers in turn: what the largest layer takes counts."}
_STEPS = 8
Told = Mapping[str, Any]


def allocation_sheet(found: AllocationResult, told: Told, runs: Sequence[RunRecord]) -> Sheet:
    """Return what is to be shown; ``told`` has the network, seconds, the proven bound and the gap, and the command."""
    problem = found.problem
    spent = f"seed {found.seed}, {len(found.curve):,} allocations" if found.method != "exact" else "dynamic programming"
    facts = (_verdict(found, told), f"Method {found.method}: {spent}, {len(problem.table.stages)} layers, "
             f"{engineering(told['seconds'], 's')}.", _ALL[problem.deployment], LEFT_OUT)
    tables = [_figures(found), _layers(found)] if found.layers else [_closest(found)]
    plots = _plots(found) if found.layers else []
    improved = np.flatnonzero(found.curve < np.concatenate([[np.inf], found.curve[:-1]]))
    if len(improved) > 1:
        tables.append(_convergence_table(found, told, improved))
        plots.append(_convergence(found, told, improved))
    each = "one machine for all layers" if problem.table.stages.together else "each layer has a machine of its own"
    limits = ", ".join(f"{one.what}={one.shown()}" for one in problem.budget.each) or "no limits"
    return Sheet(f"Elements and buffers for {told['network']}, from {problem.table.stages.machine.name}",
                 f"{_goal(found)} within {limits}: {each}, mapped by {', '.join(problem.table.stages.styles)}.",
                 facts, tuple(tables), tuple(plots), {}, told["command"], tuple(runs))


def _goal(found: AllocationResult) -> str:
    goal = shown_goal(found.problem.objective)
    return goal[0].upper() + goal[1:]


def _shown(found: AllocationResult, value: float) -> str:
    return measured(value * _SCALES.get(found.problem.objective, 1.0), _UNITS[found.problem.objective])


def _verdict(found: AllocationResult, told: Told) -> str:
    """Return how good the allocation is, in words."""
    best = f"{_shown(found, told['bound'])}, the proven least of all choices" if told["bound"] else ""
    if not found.layers:
        return "No allocation within the limits was found" + (f"; there is one with {best}." if best else ".")
    value = f"{_goal(found)} {_shown(found, found.value)}"
    if not best:
        return f"{value}; the least there is was not proven."
    if told["gap"] <= 1e-12:
        return f"{value}: proven the least of all choices of elements, buffers and styles within the limits."
    return f"{value}: {percent(told['gap'])} above {best}."


def _figures(found: AllocationResult) -> Table:
    problem = found.problem
    taken, clock = problem.taken(found.closest), problem.table.stages.machine.frequency_mhz
    total = Totals.of((layer.runs, layer.cost) for layer in found.layers)
    slowest = max(layer.runs * layer.cost.latency_cycles for layer in found.layers)
    rows: list[tuple[Value, ...]] = [
        (name, f"{engineering(value)} cycles = {engineering(seconds_of(value, clock), 's')}", "", "")
        for name, value in (("Latency", float(total.latency_cycles)), ("Slowest layer", float(slowest)))]
    rows.append(("Energy", engineering(total.energy_pj * 1e-12, "J"), "", ""))
    limits = dict(zip(problem.budget.measures, problem.budget.limits, strict=True))
    rows += limited_rows(taken, limits, {"bytes": "Bytes of one buffer"})
    return Table("figures", "What it takes", ("", "Found", "Limit", "Left"), tuple(rows))


def _layers(found: AllocationResult) -> Table:
    stages = found.problem.table.stages
    total = Totals.of((layer.runs, layer.cost) for layer in found.layers).latency_cycles
    rows = tuple((layer.name, layer.runs, sizes_text(layer.operator.dimensions), stages.styles[layer.place[0]],
                  stages.elements[layer.place[1]], stages.buffers[layer.place[2]],
                  engineering(layer.runs * layer.cost.latency_cycles),
                  percent(layer.runs * layer.cost.latency_cycles / total),
                  measured(layer.runs * layer.cost.energy_pj, "pJ"), round(layer.machine.area_um2),
                  percent(layer.cost.utilisation)) for layer in found.layers)
    return Table("layers", "Layers, each figure of all its runs", (
        "Layer", "Runs", "Shape", "Style", "Elements", "Buffer (B)", "Latency (cycles)", "Share", "Energy",
        "Area (um2)", "Utilisation"), rows)


def _closest(found: AllocationResult) -> Table:
    rows = tuple((why,) for why in found.problem.violations(found.closest))
    return Table("closest", "The allocation that breaks the limits least", ("Why not",), rows)


def _convergence_table(found: AllocationResult, told: Told, improved: "np.ndarray[Any, Any]") -> Table:
    kept = sorted({round(place * (len(improved) - 1) / (_STEPS - 1)) for place in range(_STEPS)})
    rows = tuple((int(at) + 1, _shown(found, float(found.curve[at])),
                  percent(found.curve[at] / told["bound"] - 1) if told["bound"] else "") for at in improved[kept])
    return Table("convergence", "How it was found", ("Allocations", "Best", "Above the proven least"), rows)


def _areas(layers: Sequence[AllocatedLayer]) -> Plot:
    """Return the area of each layer's machine as bars, by part."""
    parts: dict[str, list[float]] = {}
    for layer in layers:
        for name, _, area in machine_parts(layer.machine):
            parts.setdefault(name, []).append(area / 1e6)
    shown = {name: areas for name, areas in parts.items() if max(areas) > 0}
    return layer_bars("areas", "Area by layer", [layer.name for layer in layers], shown, "mm2", LEFT_OUT)


def _plots(found: AllocationResult) -> list[Plot]:
    """Return bars by layer, whose colours are the styles: latency, and of a pipeline elements and area."""
    stages, layers = found.problem.table.stages, found.layers

    def by_style(name: str, unit: str, values: Sequence[float]) -> Plot:
        shown = {style: [value if layer.place[0] == at else 0 for layer, value in zip(layers, values, strict=True)]
                 for at, style in enumerate(stages.styles) if any(layer.place[0] == at for layer in layers)}
        return layer_bars(name.lower(), f"{name} and style by layer", [layer.name for layer in layers], shown, unit)

    latency = by_style("Latency", "cycles", [float(layer.runs * layer.cost.latency_cycles) for layer in layers])
    if stages.together:
        return [latency]
    return [_areas(layers), by_style("Elements", "elements", [stages.elements[layer.place[1]] for layer in layers]),
            latency]


def _convergence(found: AllocationResult, told: Told, improved: "np.ndarray[Any, Any]") -> Plot:
    scale = _SCALES.get(found.problem.objective, 1.0)
    x = [*(int(at) + 1 for at in improved), len(found.curve)]
    y = [*(float(found.curve[at]) * scale for at in improved), found.value * scale]
    data = falling(("best so far", x, y), ("proven least", told["bound"] * scale))
    return Plot("convergence", "Best allocation so far", data, {
        "xaxis": {"title": {"text": "Allocations"}},
        "yaxis": log_axis(f"{_goal(found)} ({_UNITS[found.problem.objective]})", [
            value for trace in data for value in trace["y"]]), "legend": LEGEND, "hovermode": "closest"})


def allocation_tree(found: AllocationResult, told: Told, runs: Sequence[RunRecord]) -> dict[str, Any]:
    """Return the same as plain data; what was not found or proven is null."""
    problem, stages = found.problem, found.problem.table.stages
    nests = {name: layer.mapping.yaml for run in runs for layer in run.layers if layer.mapping for name in layer.names}
    return {
        **told, "accelerator": stages.machine.name, "deployment": problem.deployment, "objective": problem.objective,
        "within": dict(zip(problem.budget.measures, problem.budget.limits, strict=True)), "method": found.method,
        "seed": found.seed, "allocations": len(found.curve), "score": finite(found.value),
        "bound": told["bound"] or None, "says": _verdict(found, told), "left_out": LEFT_OUT,
        "taken": problem.taken(found.closest) if found.layers else None,
        "curve": [value if isfinite(value) else None for value in found.curve.tolist()],
        "violations": [] if found.layers else list(problem.violations(found.closest)),
        "layers": [{"name": layer.name, "runs": layer.runs, "style": stages.styles[layer.place[0]],
                    "elements": stages.elements[layer.place[1]], "buffer_bytes": stages.buffers[layer.place[2]],
                    "latency_cycles": layer.cost.latency_cycles, "energy_pj": layer.cost.energy_pj,
                    "area_um2": layer.machine.area_um2, "mapping": nests.get(layer.name, "")}
                   for layer in found.layers],
    }
