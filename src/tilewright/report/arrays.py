"""Reconfigurable systolic arrays as a person sees them: configurations, advice, and networks that learn to give it."""

import math
from collections.abc import Mapping
from typing import Any

from tilewright.base import Plot, Table
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import PICOJOULE, engineering, figure_of, percent
from tilewright.report.sheet import Sheet


def array_sheet(found: Mapping[str, Any], command: str) -> Sheet:
    """Return what is to be shown of products on an array, given as plain data."""
    array, effects = found["array"], found["effects"]
    made = [name if value is True else f"{name} {value}" for name, value in effects.items()
            if value not in (False, "free", "off")]
    counted = ", ".join(made) or "stall-free"
    facts = (f"{found['configurations']:,} configurations ({found['space']}); counted: {counted}.",
             *(_fact(product, found["objective"]) for product in found["products"]))
    lead = f"{array['macs']:,} units in cells of {array['cell']} x {array['cell']}; least {_WORDS[found['objective']]}."
    plots = (_cycles_plot(found), *([_energy_plot(found)] if _energies(found) else []))
    return Sheet(f"Products on {array['name']}", lead, facts, (_table(found),), plots, {}, command)


_WORDS = {"latency": "cycles", "energy": "energy", "edp": "EDP"}


def _energies(found: Mapping[str, Any]) -> bool:
    return found["array"]["power_w"] is not None


def _figure(one: Mapping[str, Any], objective: str) -> float:
    spent = 1 if objective == "latency" else one["energy_pj"]
    return float(spent if objective == "energy" else spent * one["cycles"])


def _fact(product: Mapping[str, Any], objective: str) -> str:
    best, alone = product["ranked"][0], product["monolithic"]
    least = _figure(best, objective)
    told = (f"{_name(product)}: {best['name']}, {figure_of(least, objective)}; no configuration takes less than "
            f"{figure_of(product['bound'], objective)}")
    if product["equals"] > 1:
        told += f"; {product['equals']} are as good"
    if alone is not None:
        told += f"; one array ({alone['name']}) takes {_figure(alone, objective) / least:.3g} times as much"
    return told + "."


def _name(product: Mapping[str, Any]) -> str:
    return f"{product['m']}x{product['n']}x{product['k']}"


def _table(found: Mapping[str, Any]) -> Table:
    dram = found["effects"]["dram"] != "off"
    heads = ["Product", "Sub-arrays", "of", "Dataflow", "Cycles", "Over bound", "Use", "At work", "SRAM reads",
             *(["DRAM words"] if dram else []), *(["Energy", "of it standing"] if _energies(found) else [])]
    rows = []
    for product in found["products"]:
        for one in product["ranked"]:
            held = one["configuration"]
            rows.append((_name(product), f"{held['down']}x{held['across']}", f"{held['rows']}x{held['columns']}",
                         held["dataflow"], one["cycles"], round(one["cycles"] / product["bound_cycles"], 3),
                         percent(one["utilization"]), one["active_partitions"], engineering(one["sram_reads"]),
                         *([engineering(one["dram_words"])] if dram else []),
                         *([engineering(one["energy_pj"] * PICOJOULE, "J"),
                            percent(one["energy_parts_pj"]["standing"] / one["energy_pj"])]
                           if _energies(found) else [])))
    return Table("configurations", "Configurations, the best first", tuple(heads), tuple(rows), (
        "Standing is what the array takes in every cycle, whatever works in it: its power at full use, less what units "
        "and banks take then.",) if _energies(found) else ())


def _cycles_plot(found: Mapping[str, Any]) -> Plot:
    data = [{"type": "bar", "name": _name(product), "x": [one["name"] for one in product["ranked"]],
             "y": [one["cycles"] for one in product["ranked"]]} for product in found["products"]]
    return Plot("cycles", "Cycles of the best configurations", data, {"yaxis": {"title": {"text": "cycles"}}})


def _energy_plot(found: Mapping[str, Any]) -> Plot:
    """Return what takes the energy of the best configurations."""
    rows = [(f"{_name(product)}, {one['name']}", one["energy_parts_pj"]) for product in found["products"]
            for one in product["ranked"]]
    data = [{"type": "bar", "name": part, "x": [name for name, _ in rows],
             "y": [parts[part] * PICOJOULE for _, parts in rows]} for part in rows[0][1]]
    return Plot("energy", "Energy of the best configurations", data,
                {"barmode": "stack", "yaxis": {"title": {"text": "joules"}}})


MOST = 12
"""Confusions in a table."""
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
                 f"space {plain['space']}.", tuple(facts), (table,), (_advice_plot(layers),), {}, plain["command"])


def _advice_plot(layers: list[dict[str, Any]]) -> Plot:
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


def training_sheet(plain: Mapping[str, Any]) -> Sheet:
    """Return what is to be shown of a trained recommender, given as plain data."""
    wrong = plain["confusions"]
    facts = (
        f"{plain['samples']:,} products ({plain['sampler']}), labelled in "
        f"{engineering(plain['labelling_seconds'], 's')}: {plain['live']} of {plain['configurations']} configurations "
        f"are the best of any, {percent(plain['ties'])} of products have several.",
        f"{plain['network']}, {plain['weights']:,} weights, learnt in {engineering(plain['training_seconds'], 's')} "
        f"({len(plain['curve'])} epochs); calibration error {plain['calibration_error']:.2%}.")
    scores = Table("scores", "On products unseen", (
        "Adviser", "Same configuration", "Same cycles as the best", "Of the best (mean)", "Of the best (worst)", "Told",
        "All looked at", "CPU (us)"), tuple((
            one["adviser"], f"{one['same_class']:.2%}", f"{one['same_cycles']:.2%}", f"{one['mean_share']:.3%}",
            f"{one['worst_share']:.2%}", one["live"], f"{one['searched']:.2%}", f"{one['microseconds']:.1f}")
            for one in plain["scores"]))
    costly = Table("confusions", "What adds most cycles", (
        "Best", "Told", "Of products", "Extra cycles of these"), tuple(
            (one["label"], one["told"], f"{one['share']:.3%}", f"{one['extra']:.3%}") for one in wrong[:MOST]))
    return Sheet(f"A recommender for {plain['array']}", f"Space {plain['space']}.", facts,
                 (scores, *((costly,) if wrong else ())), (_confusion(wrong), _beyond(plain)) if wrong else ())


def _confusion(wrong: list[dict[str, Any]]) -> Plot:
    """Return what each confusion adds to the cycles of all products."""
    labels, told = (sorted({one[side] for one in wrong}) for side in ("label", "told"))
    added = {(one["label"], one["told"]): one for one in wrong}
    cells = [[added.get((label, each)) for each in told] for label in labels]
    data = [{"type": "heatmap", "x": told, "y": labels, "hoverongaps": False,
             "z": [[one and math.log10(one["share"] * one["extra"]) for one in row] for row in cells],
             "text": [[one and f"{one['share']:.3%} of products, {one['extra']:.3%} extra" for one in row]
                      for row in cells],
             "colorscale": [[place / 4, f"@heat-{place}"] for place in range(5)],
             "hovertemplate": "best %{y}<br>told %{x}<br>%{text}<extra></extra>"}]
    return Plot("confusion", "Which configurations it takes for others, by cost", data, {
        "height": 640, "xaxis": {"title": {"text": "Told"}, "type": "category", "automargin": True},
        "yaxis": {"title": {"text": "Best"}, "type": "category", "automargin": True}},
                "Power of ten of the extra cycles over those of all products; what costs nothing is left out.")


def _beyond(plain: Mapping[str, Any]) -> Plot:
    """Return how many products take at least so much more than the best."""
    points = [point for point in plain["beyond"] if point[1] > 0]
    return Plot("regrets", "Products that take longer than the best", [{
        "type": "scatter", "mode": "lines", "name": plain["network"], "x": [point[0] for point in points],
        "y": [point[1] for point in points], "hovertemplate": "%{y:.3%} take %{x:.2g} more<extra></extra>"}], {
            "xaxis": {"title": {"text": "Extra cycles, as a part of the best"}, "type": "log"},
            "yaxis": {"title": {"text": "Share of products with as much or more"}, "type": "log"}})
