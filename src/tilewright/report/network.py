"""Where the energy of a whole network goes, vector work beside it; what limits it on machines side by side."""

from collections import defaultdict
from collections.abc import Sequence
from html import escape

from tilewright.base import Plot, Table
from tilewright.report.figures import VECTOR
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import measured, over, percent, shortened
from tilewright.store import RunRecord

PARTS = ("inputs", "weights", "outputs")
"""Roles of tensors, the columns of the table; what is spent on none of them stands in the last."""
OTHER = "other"
Parts = dict[str, dict[str, float]]


def energy_parts(record: RunRecord) -> Parts:
    """Return picojoules by component, largest first, and by role: layers times counts, and vector work."""
    found: Parts = defaultdict(lambda: defaultdict(float))
    for layer in record.layers:
        if layer.cost is None:
            continue
        roles = {tensor.name: tensor.role for tensor in layer.operator.tensors}
        left = dict(layer.cost.energy_by_component_pj)
        for count in layer.cost.counts:
            if count.energy_pj:
                found[count.memory][roles[count.tensor]] += layer.count * count.energy_pj
                left[count.memory] -= count.energy_pj
        for name, energy in left.items():
            if energy > 1e-9 * layer.cost.energy_pj:
                found[name][OTHER] += layer.count * energy
    if record.totals.vector_energy_pj:
        found[VECTOR][OTHER] += record.totals.vector_energy_pj
    return {name: dict(parts) for name, parts in sorted(found.items(), key=lambda item: -sum(item[1].values()))}


def energy_sentence(record: RunRecord) -> str:
    """Say in which component most of the energy goes, and on which tensors there; empty where nothing is spent."""
    parts = energy_parts(record)
    if not parts:
        return ""
    name, spent = next(iter(parts.items()))
    role = max(spent, key=lambda each: spent[each])
    total = record.totals.energy_pj
    there = "" if role == OTHER else f" ({percent(over(spent[role], total))} for {role})"
    return f"{percent(over(sum(spent.values()), total))} of the energy goes into {name}{there}."


def sides(runs: Sequence[RunRecord]) -> tuple[tuple[Table, ...], tuple[Plot, ...]]:
    """Return what limits a network on each of some machines, where its energy goes there, and its cycles by layer."""
    names = [run.accelerator.name for run in runs]
    limits = Table("limits", "What limits the network on each machine", ("Machine", "Limit", "Energy"), tuple(
        (name, run.diagnosis.sentence if run.diagnosis else "", energy_sentence(run))
        for name, run in zip(names, runs, strict=True)))
    parts = [energy_parts(run) for run in runs]
    energy = Table("energy", "Energy by component", ("Component", *names), tuple(
        (name, *("" if name not in one else f"{measured(sum(one[name].values()), 'pJ')} "
                 f"({percent(over(sum(one[name].values()), run.totals.energy_pj))})"
                 for one, run in zip(parts, runs, strict=True)))
        for name in dict.fromkeys(name for one in parts for name in one)))
    layers = [layer.name for layer in runs[0].layers]
    cycles = [{layer.name: layer.count * layer.cost.latency_cycles for layer in run.layers if layer.cost is not None}
              for run in runs]
    data = [{"type": "bar", "name": escape(run.accelerator.name), "x": list(range(len(layers))),
             "y": [cycles[index].get(name) for name in layers],
             "marker": {"color": f"@curve-{index % 8}"},
             "hovertemplate": "%{y:.4s} cycles<extra>%{fullData.name}</extra>"} for index, run in enumerate(runs)]
    shown = [escape(shortened(name, 21)) for name in layers]
    plot = Plot("layers", "Cycles of every layer, all repeats", data, {
        "barmode": "group", "xaxis": {"tickvals": list(range(len(layers))), "ticktext": shown, "tickangle": -50},
        "yaxis": {"title": {"text": "Cycles"}, "tickformat": "~s"}, "showlegend": True, "legend": LEGEND})
    return (limits, energy), (plot,)
