"""A design as a person sees it: the machine, what it takes and costs, how near the best it is, and what was tried."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.codesign import Candidate, Designed, figures_of, figures_told
from tilewright.hardware import Accelerator, Memory
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import (
    JOULES,
    byte_size,
    engineering,
    finite,
    measured,
    percent,
    seconds_of,
    significant,
    titled,
)
from tilewright.report.search_plots import log_axis, shown_goal
from tilewright.report.sheet import Sheet
from tilewright.search import METRICS
from tilewright.store import RunRecord

LEFT_OUT = ("Areas are of memories and multiply-accumulate units: networks on chip, clocks and control logic are not "
            "in them.")
_MOST_ROWS, _MOST_DRAWN = 24, 3000
_PRODUCTS = {"cycles x um2": ("cycles·mm2", 1e-6), "pJ x um2": ("J·mm2", 1e-18),
             "pJ x cycles x um2": ("J·cycles·mm2", 1e-18)}
LIMITED: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "area": ("Area", lambda value: f"{significant(value / 1e6)} mm2"),
    "power": ("Power", lambda value: engineering(value * 1e-3, "W")),
    "elements": ("Elements", lambda value: f"{value:,.0f}"), "bytes": ("Bytes on chip", byte_size)}
"""Figures that may be limited: what they are called, and how they are shown."""
Networks = Sequence[tuple[str, float]]


def design_sheet(found: Designed, runs: Sequence[RunRecord], networks: Networks, front: Sequence[str] = (),
                 command: str = "") -> Sheet:
    """Return what is to be shown of a design; ``runs`` are those of the networks on the machine, if there is one."""
    problem = found.problem
    names = ", ".join(name + (f" x {weight:g}" if weight != 1 else "") for name, weight in networks)
    facts = (_verdict(found), f"Method {found.method}, seed {found.seed}: {found.samples:,} samples (mappings of a "
             f"layer) in {engineering(found.seconds, 's')}; machines tried: {len(found.machines):,}.", LEFT_OUT)
    points = found.front(front) if front else ()
    tables = [] if found.best is None else [_machine(found), _figures(found), _layers(runs, networks)]
    tables += [_rejected(found)] if found.best is None or found.rejected else []
    tables += [_front_table(found, points, front)] if points else []
    tables += [_convergence_table(found)] if found.history else []
    tables += [_structures(found)] if found.structures else []
    plots = [_front_plot(found, points, front), *([_convergence(found), _areas(found)] if found.history else [])]
    return Sheet(f"A machine for {names}, from {problem.space.accelerator.name}",
                 f"{_goal(found)} within {_limits(found)}: one machine for all layers, each with a mapping of its own.",
                 facts, tuple(tables), tuple(plot for plot in plots if plot.data), {}, command, tuple(runs))


def _goal(found: Designed) -> str:
    first, *others = found.problem.objective.split("-")
    goal = "-".join([shown_goal(first), *others])
    return goal[0].upper() + goal[1:]


def _limits(found: Designed) -> str:
    return ", ".join(map(str, found.problem.limits)) or "no limits"


def _shown(found: Designed, score: float) -> str:
    unit, scale = _unit(found.problem.objective)
    return measured(score * scale, unit)


def _unit(metric: str) -> tuple[str, float]:
    """Return the unit that a metric is shown in, and what brings it there."""
    unit = METRICS[metric].unit
    if unit in JOULES:
        return JOULES[unit], 1e-12
    return _PRODUCTS.get(unit, (unit, 1.0))


def _verdict(found: Designed) -> str:
    """Return how good the design is, in words."""
    nothing = f"No machine within {_limits(found)}, with any mappings, can do"
    if found.problem.space.alone:
        nothing = "No mappings on this machine can do"
    least = f"{nothing} with less than {_shown(found, found.bound)}"
    if found.best is None:
        return f"No machine within the limits was found. {least}."
    told = f"{_goal(found)} {_shown(found, found.score)}."
    if not found.gap:
        return f"{told} {nothing} better."
    return f"{told} {least}: the design is at most {percent(found.gap)} above the best of those."


def machines_sheet(found: Sequence[Designed], runs: Sequence[RunRecord], networks: Networks,
                   command: str = "") -> Sheet:
    """Return what is to be shown of machines for every layer by itself."""
    score, bound = sum(one.score for one in found), sum(one.bound for one in found)
    nothing = f"no machines within {_limits(found[0])}, one for each layer, can do with less than"
    said = f"{_goal(found[0])} {_shown(found[0], score)}" if isfinite(score) else "Not every layer has a machine"
    gap = f": at most {percent(score / bound - 1)} above the best of those" if isfinite(score) and bound > 0 else ""
    samples, seconds = sum(one.samples for one in found), sum(one.seconds for one in found)
    facts = (f"{said}; {nothing} {_shown(found[0], bound)}{gap}.", f"Method {found[0].method}, seed {found[0].seed}: "
             f"{samples:,} samples (mappings of a layer) in {engineering(seconds, 's')}.", LEFT_OUT)
    rows = tuple((one.problem.layers[0].name, f"{one.problem.weights[0]:g}", *_told(one)) for one in found)
    names, layers = ", ".join(name for name, _ in networks), [one.problem.layers[0].name for one in found]
    parts = [{name: area / 1e6 for name, _, area in machine_parts(one.machine) if area > 0}
             for one in found if isfinite(score)]
    areas = {name: [own.get(name, 0.0) for own in parts] for name in dict.fromkeys(chain(*parts))}
    plots = (layer_bars("areas", "Area by layer", layers, areas, "mm2", LEFT_OUT),) if areas else ()
    return Sheet(f"A machine for every layer of {names}, from {found[0].problem.space.accelerator.name}",
                 f"{_goal(found[0])} within {_limits(found[0])}: all of it for each layer by itself.", facts, (Table(
                     "machines", "Layers, each on its own machine", (
                         "Layer", "Runs", "Machine", "Area (um2)", "All its runs", "Above the bound"), rows),),
                 plots, {}, command, tuple(runs))


def layer_bars(name: str, title: str, layers: Sequence[str], values: Mapping[str, Sequence[float]],  # noqa: PLR0913, PLR0917
               unit: str, note: str = "") -> Plot:
    """Return bars over layers, whose parts are stacked."""
    data = [{"type": "bar", "name": part, "x": list(range(1, len(layers) + 1)), "y": list(column),
             "customdata": list(layers), "marker": {"color": f"@curve-{at % 8}"},
             "hovertemplate": f"%{{customdata}}<br>{part}: %{{y:.4g}}<extra></extra>"}
            for at, (part, column) in enumerate(values.items())]
    return Plot(name, title, data, {
        "barmode": "stack", "xaxis": {"title": {"text": "Layer"}}, "yaxis": {"title": {"text": unit}},
        "legend": LEGEND, "showlegend": True}, note)


def _told(one: Designed) -> tuple[Value, ...]:
    """Return the machine of one layer, its area, its score, and how far it can be above the best."""
    if one.best is None:
        return "; ".join(one.violations(one.rejected[0])) if one.rejected else "none was tried", None, "", ""
    return (_numbers(one, one.best), round(float(one.figures.area_um2)), _shown(one, one.score),
            "" if one.gap is None else percent(one.gap))


def machines_tree(found: Sequence[Designed], runs: Sequence[RunRecord], networks: Networks,
                  command: str = "") -> dict[str, Any]:
    """Return the same as plain data: of every layer what `design_tree` has."""
    score, bound = sum(one.score for one in found), sum(one.bound for one in found)
    own = {name: layer for run in runs for layer in run.layers for name in layer.names}
    return {"command": command, "networks": dict(networks), "score": finite(score), "bound": bound,
            "gap": score / bound - 1 if isfinite(score) and bound > 0 else None, "left_out": LEFT_OUT,
            "layers": {one.problem.layers[0].name: design_tree(one, (), ()) | {
                "mapping": layer.mapping.yaml if layer is not None and layer.mapping is not None else None}
                for one in found for layer in [own.get(one.problem.layers[0].name.rpartition("/")[2])]}}


def machine_parts(machine: Accelerator) -> Iterator[tuple[str, int, float]]:
    """Yield every part of a machine that takes area: its name, how many there are, and their area."""
    for memory in machine.memories:
        count = machine.instances(memory.name)
        yield memory.name, count, count * memory.area_um2
    yield machine.compute.name, machine.compute_instances, machine.compute_instances * machine.compute.area_um2


def _size(machine: Accelerator, name: str) -> str:
    """Return how large a level is."""
    if name == machine.compute.name:
        return "multiply-accumulate"
    level = machine.level(name)
    if not isinstance(level, Memory):
        return f"{level.instances} in any shape" if level.flexible else f"{level.shape[0]} x {level.shape[1]}"
    own = [f"{owner} {byte_size(size)}" for owner, size in level.partitions_bytes]
    rates = [f"{port} {rate:g}" for port, rate in vars(level.bandwidth).items() if rate is not None]
    return ", ".join(own or [byte_size(level.capacity_bytes)]) + (
        f"; {', '.join(rates)} words a cycle" if rates else "")


def _machine(found: Designed) -> Table:
    machine, ranges = found.machine, found.problem.space.ranges
    areas = {name: area for name, _, area in machine_parts(found.machine)}
    total = machine.area_um2
    rows: list[tuple[Value, ...]] = []
    for name in [*(level.name for level in machine.levels), machine.compute.name]:
        varied = [f"{what} {found.chosen[level, what]:,g} ({engineering(values.low)} to {engineering(values.high)})"
                  for (level, what), values in ranges.items() if level == name and len(values) > 1]
        inside = machine.compute_instances if name == machine.compute.name else machine.instances(name)
        area = areas.get(name)
        rows.append((name, inside, _size(machine, name), "; ".join(varied),
                     None if area is None else round(area), percent(area / total) if area and total else ""))
    rows.append(("All", None, "", "", round(total), ""))
    return Table("machine", f"The machine: {machine.name}",
                 ("Level", "Instances", "Size", "Varied (from, to)", "Area (um2)", "Share"), tuple(rows))


def limited_rows(taken: Mapping[str, float], limits: Mapping[str, float],
                 heads: Mapping[str, str] | None = None) -> Iterator[tuple[Value, ...]]:
    """Yield what is taken of each figure that may be limited, its limit, and the share that is left of that."""
    for name, (head, show) in LIMITED.items():
        limited = (show(limits[name]), percent(1 - taken[name] / limits[name])) if name in limits else ("", "")
        yield (heads or {}).get(name, head), show(taken[name]), *limited


def _figures(found: Designed) -> Table:
    problem, figures, clock = found.problem, found.figures, found.machine.frequency_mhz
    taken = {name: float(value) for name, value in figures_of(found.machine, found.machine.numbers | {
        ("area", "um2"): found.machine.area_um2}).items()} | {"power": found.power_mw}
    cycles = float(figures.latency_cycles)
    rows: list[tuple[Value, ...]] = [
        ("Latency", f"{engineering(cycles)} cycles = {engineering(seconds_of(cycles, clock), 's')}", "", ""),
        ("Energy", measured(figures.energy_pj, "pJ"), "", ""),
        ("EDP", measured(figures.latency_cycles * figures.energy_pj, "pJ x cycles"), "", "")]
    limits = {name: most for name in LIMITED if isfinite(most := problem.budget.most(name))}
    rows += limited_rows(taken, limits)
    return Table("figures", "What it takes", ("", "Found", "Limit", "Left"), tuple(rows))


def _layers(runs: Sequence[RunRecord], networks: Networks) -> Table:
    rows: list[tuple[Value, ...]] = []
    total = sum(weight * run.totals.latency_cycles for run, (_, weight) in zip(runs, networks, strict=True))
    for run, (_, weight) in zip(runs, networks, strict=True):
        for layer in run.layers:
            assert layer.cost is not None
            name = layer.name if len(runs) == 1 else f"{run.network.name}/{layer.name}"
            rows.append((name, layer.count, layer.operator.short, engineering(layer.cost.latency_cycles),
                         percent(weight * layer.count * layer.cost.latency_cycles / total),
                         measured(layer.cost.energy_pj, "pJ"), percent(layer.cost.utilisation),
                         layer.cost.limited_by))
    return Table("layers", "Layers, each figure of one run", (
        "Layer", "Runs", "Shape", "Latency (cycles)", "Share", "Energy", "Utilisation", "Bottleneck"), tuple(rows),
        (*(["Share: of the latency of all networks, each times its weight."] if len(runs) > 1 else []), *_vector(runs)))


def _vector(runs: Sequence[RunRecord]) -> list[str]:
    """Return what vector work takes of the networks' totals, where there is any."""
    return [f"Vector work of {run.network.name}: {engineering(run.totals.vector_cycles)} cycles, "
            f"{measured(run.totals.vector_energy_pj, 'pJ')}, in the totals."
            for run in runs if run.totals.vector_cycles or run.totals.vector_energy_pj]


def _numbers(found: Designed, one: Candidate) -> str:
    return ", ".join(f"{level}.{what} {value:g}" for (level, what), value in one.chosen.items()) or "as it is"


def _rejected(found: Designed) -> Table:
    rows = tuple((_numbers(found, one), "; ".join(found.violations(one))) for one in found.rejected[:_MOST_ROWS])
    return Table("rejected", "Machines tried, those that break the limits least first", ("Machine", "Why not"), rows,
                 () if rows else ("None was tried: give more samples.",))


def _structures(found: Designed) -> Table:
    """Return what was found with all levels, and without optional ones."""
    rows = tuple((one.problem.space.accelerator.name, _shown(one, one.score) if isfinite(one.score) else "",
                  _shown(one, one.bound), one.samples) for one in found.structures)
    return Table("structures", "With and without optional levels", ("Machine", "Best", "Bound", "Samples"), rows)


def _front_table(found: Designed, points: Sequence[Candidate], front: Sequence[str]) -> Table:
    units = [_unit(name) for name in front]
    every = [*dict.fromkeys((*(measured(value * scale, unit) for value, (unit, scale) in zip(
        _values(found, one, front), units, strict=True)), _numbers(found, one)) for one in points)]
    rows = tuple(every[::max(1, -(-len(every) // _MOST_ROWS))])
    heads = *(titled(name) for name in front), "Machine"
    return Table("front", "Pareto front of the machines tried", heads, rows, () if len(rows) == len(points) else (
        f"{len(rows)} of {len(points)} points, of which those that read alike are one; the JSON has all.",))


def _values(found: Designed, one: Candidate, front: Sequence[str]) -> list[float]:
    return [float(one.figures.of(name, found.problem.space.accelerator)) for name in front]


def _convergence_table(found: Designed) -> Table:
    steps = found.history
    kept = sorted({round(place * (len(steps) - 1) / 7) for place in range(8)})
    rows = tuple((steps[at].samples, engineering(steps[at].seconds, "s"), _shown(found, steps[at].score),
                  percent(steps[at].score / found.bound - 1) if found.bound else "") for at in kept)
    return Table("convergence", "How it was found", ("Samples", "After", "Best score", "Above the bound"), rows)


def _convergence(found: Designed) -> Plot:
    unit, scale = _unit(found.problem.objective)
    x = [*(step.samples for step in found.history), max(found.samples, found.history[-1].samples)]
    y = [*(step.score * scale for step in found.history), found.score * scale]
    data = falling(("best score", x, y), ("bound: nothing can be below", found.bound * scale))
    return Plot("convergence", "Best score over samples", data, {
        "xaxis": log_axis("Samples", x), "yaxis": log_axis(f"{_goal(found)} ({unit})", [
            value for trace in data for value in trace["y"]]), "legend": LEGEND, "hovermode": "closest"},
        "The bound holds for every machine within the limits and all its mappings, as far as it was proved.")


def falling(best: tuple[str, Sequence[float], Sequence[float]], least: tuple[str, float]) -> list[dict[str, Any]]:
    """Return the lines of the best so far and of what nothing is below, if that is known; each with its name."""
    name, x, y = best
    data: list[dict[str, Any]] = [{"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y,
                                   "line": {"color": "@curve-0", "width": 2.2, "shape": "hv"}}]
    if least[1] > 0:
        data.append({"type": "scatter", "mode": "lines", "name": least[0], "x": [x[0], x[-1]], "y": [least[1]] * 2,
                     "line": {"color": "@strong", "dash": "dash"}})
    return data


def _areas(found: Designed) -> Plot:
    parts = [(name, area) for name, _, area in machine_parts(found.machine) if area > 0]
    data = [{"type": "bar", "orientation": "h", "name": name, "x": [area / 1e6], "y": ["area"],
             "marker": {"color": f"@curve-{at % 8}"}, "hovertemplate": f"{name}: %{{x:.4g}} mm2<extra></extra>"}
            for at, (name, area) in enumerate(parts)]
    return Plot("areas", "Area by part", data, {
        "barmode": "stack", "height": 220, "xaxis": {"title": {"text": "mm2"}}, "yaxis": {"visible": False},
        "legend": LEGEND}, LEFT_OUT)


def _front_plot(found: Designed, points: Sequence[Candidate], front: Sequence[str]) -> Plot:
    """Return the machines tried by two metrics, those over a limit apart, with the front where one was asked for."""
    names = tuple(front[:2]) or ("area", found.problem.objective)
    tried = [one for one in found.tried if one.fronts is not None]
    tried = tried[::max(1, len(tried) // _MOST_DRAWN)]
    groups = [("machines tried", [one for one in tried if isfinite(one.score)], {"color": "@faint", "size": 6}),
              ("over a limit", [one for one in tried if not isfinite(one.score)],
               {"color": "@curve-2", "size": 8, "symbol": "x-thin-open", "line": {"width": 2}}),
              ("front", list(points), {"color": "@curve-0", "size": 7}),
              ("the design", [found.best] if found.best is not None else [],
               {"color": "@curve-1", "size": 14, "symbol": "circle-open", "line": {"width": 2.5}})]
    data: list[dict[str, Any]] = []
    for name, ones, marker in groups:
        values = [_values(found, one, names) for one in ones]
        data.append({"type": "scatter", "mode": "markers", "name": name, "marker": marker, "cliponaxis": False,
                     "x": [value * _unit(names[0])[1] for value, _ in values],
                     "y": [value * _unit(names[1])[1] for _, value in values],
                     "customdata": [_numbers(found, one) for one in ones],
                     "hovertemplate": "%{customdata}<br>%{x:.4g}, %{y:.4g}<extra></extra>"})
    axes = [log_axis(f"{titled(name)} ({_unit(name)[0]})", [
        value for trace in data for value in trace[axis]]) for name, axis in zip(names, "xy", strict=True)]
    return Plot("front", "Machines tried", [trace for trace in data if trace["x"]], {
        "xaxis": axes[0], "yaxis": axes[1], "legend": LEGEND, "showlegend": True, "hovermode": "closest"},
        "Each point is a machine with the best mappings found of all layers.")


def design_tree(found: Designed, runs: Sequence[RunRecord], networks: Networks, front: Sequence[str] = (),
                command: str = "") -> dict[str, Any]:
    """Return the same as plain data; what was not found is null."""
    problem = found.problem
    return {
        "command": command, "networks": dict(networks), "accelerator": problem.space.accelerator.name,
        "within": {limit.what: limit.most for limit in problem.limits}, "objective": problem.objective,
        "method": found.method, "seed": found.seed, "samples": found.samples, "seconds": found.seconds,
        "interrupted": found.interrupted, "machines": len(found.machines), "score": finite(found.score),
        "bound": found.bound, "gap": found.gap, "says": _verdict(found), "left_out": LEFT_OUT,
        "machine": None if found.best is None else _plain(found, found.best) | {
            "definition": runs[0].accelerator.definition if runs else "",
            "areas_um2": {name: area for name, _, area in machine_parts(found.machine)}},
        "history": [vars(step) for step in found.history],
        "front": {"metrics": list(front), "points": [_plain(found, one) | {"values": _values(found, one, front)}
                                                     for one in (found.front(front) if front else ())]},
        "rejected": [{"numbers": _plain(found, one)["numbers"], "why": found.violations(one)}
                     for one in found.rejected[:_MOST_ROWS]],
        "layers": [{"network": run.network.name, "names": list(layer.names), "count": layer.count,
                    "latency_cycles": layer.cost.latency_cycles, "energy_pj": layer.cost.energy_pj,
                    "utilisation": layer.cost.utilisation, "bottleneck": layer.cost.bottleneck,
                    "mapping": layer.mapping.yaml} for run in runs for layer in run.layers
                   if layer.cost is not None and layer.mapping is not None],
    }


def _plain(found: Designed, one: Candidate) -> dict[str, Any]:
    return {"numbers": {".".join(key): value for key, value in one.chosen.items()}, **figures_told(found.problem, one)}
