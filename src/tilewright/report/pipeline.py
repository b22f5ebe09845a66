"""A pipeline of layers as a person sees it: what both searches reached, layer by layer and as a whole."""

from math import isfinite
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.report.quantities import engineering, finite, measured, percent, significant
from tilewright.report.sheet import Sheet
from tilewright.search import METRICS, PipelineFigures, PipelineResult, SearchResult

_NONE = "no mapping"
VECTOR_NOTE = ("Vector: softmax, pooling, additions and the like, all of an input, on the accelerator of the layer "
               "whose results they take; every total has them in it.")


def pipeline_sheet(found: PipelineResult, network: str, command: str = "") -> Sheet:
    """Return what is to be shown of a pipeline."""
    before, after = found.figures("first"), found.figures()
    stages = len(after.stage_cycles)
    facts = [f"{len(found.layers)} layers on {stages} accelerators {found.accelerator.name}, each on its own; first "
             f"latency, then {found.then}. {found.samples:,} samples"]
    if not found.feasible:
        facts.append(_why_not(found))
    return Sheet(
        f"{network} as a pipeline on {found.accelerator.name}",
        "The slowest accelerator sets the pace; the others save what they can within it.", tuple(facts),
        (_totals(found, before, after), _layers(found)), (_plot(found),) if isfinite(after.interval_cycles) else (), {},
        command)


def _why_not(found: PipelineResult) -> str:
    missing = [layer.name for layer in found.layers if layer.final.cost is None]
    if missing:
        return f"No pipeline: no legal mapping of {', '.join(missing)}"
    if found.limit_cycles is None:
        return "No pipeline: the search ended before every layer had a mapping"
    figures = found.figures()
    late = [layer.name for layer in found.layers if figures.stage_cycles[layer.stage] > found.limit_cycles]
    return (f"The limit of {found.limit_cycles:,} cycles is not kept: {', '.join(late)} take "
            f"{figures.interval_cycles:,.0f}; nothing can take less than {found.bound_cycles:,.0f}")


def _totals(found: PipelineResult, before: PipelineFigures, after: PipelineFigures) -> Table:
    def row(head: str, name: str, unit: str, scale: float = 1.0) -> tuple[Value, ...]:
        first, second = scale * getattr(before, name), scale * getattr(after, name)
        change = percent(second / first - 1) if isfinite(first) and isfinite(second) and first else ""
        return (head, _figure(first, unit), _figure(second, unit), change)

    rows = (
        row("Pipeline latency (cycles)", "interval_cycles", ""),
        row("Throughput (inputs/s)", "inputs_per_second", ""),
        row("Energy of an input", "energy_pj", "J", 1e-12),
        row("Power, all accelerators at that pace", "power_mw", "W", 1e-3),
        row("Power of a layer while it runs, mean", "layer_power_mw", "W", 1e-3),
        row("Power of a layer while it runs, largest", "peak_power_mw", "W", 1e-3),
        row("Cycles of an input through all", "fill_cycles", ""),
    )
    slow = ", ".join(layer.name for layer in found.layers if after.stage_cycles[layer.stage] == after.interval_cycles)
    notes = [f"The slowest: {slow}. Nothing can be below {found.bound_cycles:,.0f} cycles."] if slow else []
    return Table("totals", "The pipeline", ("", "First: latency", f"Then: {found.then}", "Change"), rows, tuple(notes))


def _layers(found: PipelineResult) -> Table:
    beside = any(layer.vector.latency_cycles or layer.vector.energy_pj for layer in found.layers)
    columns = ("Accelerator", "Layer", "Runs", "Cycles first", "May take", "Cycles then", "Bound (cycles)",
               "Energy first", "Energy then", "Power first (mW)", "Power then (mW)",
               *(["Vector (cycles)", "Vector (energy)"] if beside else []))
    rows: list[tuple[Value, ...]] = []
    for layer in found.layers:
        first, then = _of(layer.first, found), _of(layer.final, found)
        vector: tuple[Value, ...] = (layer.vector.latency_cycles, measured(layer.vector.energy_pj, "pJ"))
        rows.append((layer.stage + 1, layer.name, layer.count, first[0], layer.limit_cycles, then[0],
                     None if layer.first.bound is None else round(layer.first.bound),
                     first[1], then[1], first[2], then[2], *(vector if beside else ())))
    return Table("layers", "Layers, each figure of one run", columns, tuple(rows),
                 (VECTOR_NOTE,) if beside else ())


def _of(result: SearchResult, found: PipelineResult) -> tuple[Value, Value, Value]:
    cost = result.cost
    if cost is None:
        return _NONE, None, None
    power = METRICS["power"].of(float(cost.latency_cycles), cost.energy_pj, 0.0, found.accelerator.frequency_mhz)
    return int(cost.latency_cycles), measured(cost.energy_pj, "pJ"), significant(float(power))


def _figure(value: float, unit: str) -> str:
    return engineering(value, unit) if isfinite(value) else _NONE


def _plot(found: PipelineResult) -> Plot:
    names = [layer.name for layer in found.layers]
    stages = (("first: latency", [layer.first for layer in found.layers]),
              (f"then: {found.then}", [layer.final for layer in found.layers]))
    data: list[dict[str, Any]] = [
        {"type": "bar", "name": text, "x": names, "marker": {"color": f"@curve-{index}"},
         "y": [layer.count * int(result.cost.latency_cycles) + layer.vector.latency_cycles
               if result.cost is not None else 0
               for layer, result in zip(found.layers, results, strict=True)]}
        for index, (text, results) in enumerate(stages)]
    if found.limit_cycles is not None:
        data.append({"type": "scatter", "mode": "lines", "name": "the pipeline may take", "x": [names[0], names[-1]],
                     "y": [found.limit_cycles] * 2, "line": {"color": "@strong", "dash": "dash"}})
    return Plot("cycles", "Cycles of every layer", data, {
        "barmode": "group", "yaxis": {"title": {"text": "cycles"}, "rangemode": "tozero"}, "xaxis": {"tickangle": -50}})


def pipeline_tree(found: PipelineResult, network: str) -> dict[str, Any]:
    """Return the same as plain data; what has no mapping is null."""
    return {
        "network": network, "accelerator": found.accelerator.name, "then": found.then,
        "accelerators": len(found.figures().stage_cycles), "limit_cycles": found.limit_cycles,
        "bound_cycles": found.bound_cycles, "feasible": found.feasible, "unfinished": list(found.unfinished),
        "first": _figures_tree(found.figures("first")), "final": _figures_tree(found.figures()),
        "layers": [{"name": layer.name, "accelerator": layer.stage, "count": layer.count,
                    "vector_cycles": layer.vector.latency_cycles, "vector_energy_pj": layer.vector.energy_pj,
                    "limit_cycles": layer.limit_cycles, "first": _layer_tree(layer.first),
                    "final": _layer_tree(layer.final)} for layer in found.layers],
    }


def _figures_tree(figures: PipelineFigures) -> dict[str, Any]:
    names = ("interval_cycles", "inputs_per_second", "energy_pj", "power_mw", "layer_power_mw", "peak_power_mw",
             "fill_cycles")
    return {name: finite(float(getattr(figures, name))) for name in names} | {
        "stage_cycles": [finite(value) for value in figures.stage_cycles]}


def _layer_tree(result: SearchResult) -> dict[str, Any]:
    cost = result.cost
    return {"latency_cycles": None if cost is None else int(cost.latency_cycles),
            "energy_pj": None if cost is None else cost.energy_pj, "samples": result.samples,
            "feasible": result.feasible}
