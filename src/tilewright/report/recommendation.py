"""Advice on reconfigurable arrays as a person sees it: what to set for each layer, and what that is worth."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import Plot, Table
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, figure_of, percent
from tilewright.report.sheet import Sheet

OBJECTIVES = {"latency": "Latency", "energy": "Energy", "edp": "EDP"}


def recommendation_sheet(plain: Mapping[str, Any]) -> Sheet:
    """Return what is to be shown of advice, given as plain data."""
    layers, cost, objective = plain["layers"], plain["cost"], plain["objective"]
    facts = [
        f"{figure_of(cost, objective)} as advised, {plain['regret']:.2%} above the best configuration of every layer "
        f"({figure_of(plain['best'], objective)}); no configuration takes less than "
        f"{figure_of(plain['bound'], objective)}.",
        f"One configuration for all layers: {plain['fixed']}, {plain['fixed_cost'] / cost:.2f} times as much; the "
        f"plane as one array, outputs resting: {plain['whole_cost'] / cost:.2f} times.",
        f"Source: {plain['source']}; least confidence {percent(plain['confidence'])}; "
        f"{engineering(plain['seconds'], 's')} in all."]
    if plain["energy_pj"] is not None:
        facts.insert(1, f"The network takes {plain['cycles']:,} cycles and {figure_of(plain['energy_pj'], 'energy')}, "
                        f"DRAM apart: {figure_of(plain['cycles'] * plain['energy_pj'], 'edp')}.")
    facts += [f"Left out: {one['name']}, which {one['why']}" for one in plain["skipped"]]
    rows = tuple((one["name"] + (f" \N{MULTIPLICATION SIGN}{one['times']}" if one["times"] > 1 else ""),
                  one["times"] * one["products"], "x".join(map(str, one["product"])), one["configuration"],
                  one["cycles"], figure_of(one["cost"], objective), figure_of(one["best_cost"], objective),
                  percent(one["regret"]), percent(one["confidence"]), one["equals"]) for one in layers)
    heads = ("Layer", "Products", "MxNxK", "Configuration", "Cycles", OBJECTIVES[objective], "Best", "Regret",
             "Confidence", "Equally good")
    table = Table("advice", "Advice", heads, rows,
                  ("A configuration is its layout of sub-arrays, their sides, and what rests. Figures are of one "
                   "product, stall-free.",))
    return Sheet(f"{plain['network']} on {plain['array']['name']}",
                 f"{plain['array']['macs']:,} units in cells of {plain['array']['cell']} x {plain['array']['cell']}, "
                 f"space {plain['space']}.", tuple(facts), (table,), (_plot(layers),), {}, plain["command"])


def _plot(layers: list[dict[str, Any]]) -> Plot:
    """Return what is to be least over what nothing can do with less of, by layer: as advised, and the best."""
    names = [one["name"] for one in layers]
    data = [{"type": "scatter", "mode": "markers", "name": told, "x": names, "marker": {"size": size, "symbol": symbol},
             "y": [one[field] / one["bound"] for one in layers],
             "hovertemplate": "%{x}: %{y:.3f}<extra></extra>"}
            for told, field, size, symbol in (("as advised", "cost", 10, "circle-open"),
                                              ("best", "best_cost", 5, "circle"))]
    layout = {"legend": LEGEND, "height": 380, "xaxis": {"tickangle": -60, "automargin": True},
              "yaxis": {"title": {"text": "Over the bound"}, "type": "log"}}
    return Plot("regret", "How near the bound each layer comes", data, layout,
                "The bound: every unit multiplies in every cycle, and every word moves once.")
