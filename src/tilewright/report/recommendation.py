"""Advice on reconfigurable arrays as a person sees it: what to set for each layer, and what that is worth."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import Plot, Table
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, percent
from tilewright.report.sheet import Sheet


def recommendation_sheet(plain: Mapping[str, Any]) -> Sheet:
    """Return what is to be shown of advice, given as plain data."""
    layers, cost = plain["layers"], plain["cost"]
    facts = [
        f"{cost:,} cycles as advised, {plain['regret']:.2%} above the best configuration of every layer "
        f"({plain['best']:,}); no configuration takes fewer than {plain['bound']:,}.",
        f"One configuration for all layers: {plain['fixed']}, {plain['fixed_cycles'] / cost:.2f} times the cycles; the "
        f"plane as one array, outputs resting: {plain['whole_cycles'] / cost:.2f} times.",
        f"Source: {plain['source']}; least confidence {percent(plain['confidence'])}; "
        f"{engineering(plain['seconds'], 's')} in all."]
    facts += [f"Left out: {one['name']}, which {one['why']}" for one in plain["skipped"]]
    rows = tuple((one["name"], one["times"] * one["products"], "x".join(map(str, one["product"])),
                  one["configuration"], one["cost_cycles"], one["best_cycles"], percent(one["regret"]),
                  percent(one["confidence"]), one["equals"]) for one in layers)
    table = Table("advice", "Advice", ("Layer", "Products", "MxNxK", "Configuration", "Cycles", "Best", "Regret",
                                       "Confidence", "Equally good"), rows,
                  ("A configuration is its layout of sub-arrays, their sides, and what rests. Cycles are of one "
                   "product, stall-free.",))
    return Sheet(f"{plain['network']} on {plain['array']['name']}",
                 f"{plain['array']['macs']:,} units in cells of {plain['array']['cell']} x {plain['array']['cell']}, "
                 f"space {plain['space']}.", tuple(facts), (table,), (_plot(layers),), {}, plain["command"])


def _plot(layers: list[dict[str, Any]]) -> Plot:
    """Return cycles over those that nothing can do with less of, by layer: as advised, and the best."""
    names = [one["name"] for one in layers]
    data = [{"type": "scatter", "mode": "markers", "name": told, "x": names, "marker": {"size": size, "symbol": symbol},
             "y": [one[field] / one["bound_cycles"] for one in layers],
             "hovertemplate": "%{x}: %{y:.3f}<extra></extra>"}
            for told, field, size, symbol in (("as advised", "cost_cycles", 10, "circle-open"),
                                              ("best", "best_cycles", 5, "circle"))]
    layout = {"legend": LEGEND, "height": 380, "xaxis": {"tickangle": -60, "automargin": True},
              "yaxis": {"title": {"text": "Cycles over the bound"}, "type": "log"}}
    return Plot("regret", "How near the bound each layer comes", data, layout,
                "The bound: every unit multiplies in every cycle.")
