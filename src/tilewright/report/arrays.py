"""Reconfigurable systolic arrays: the configurations of each product, the best first."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import Plot, Table
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
    plots = (_plot(found), *([_parts(found)] if _energies(found) else []))
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


def _plot(found: Mapping[str, Any]) -> Plot:
    data = [{"type": "bar", "name": _name(product), "x": [one["name"] for one in product["ranked"]],
             "y": [one["cycles"] for one in product["ranked"]]} for product in found["products"]]
    return Plot("cycles", "Cycles of the best configurations", data, {"yaxis": {"title": {"text": "cycles"}}})


def _parts(found: Mapping[str, Any]) -> Plot:
    """Return what takes the energy of the best configurations."""
    rows = [(f"{_name(product)}, {one['name']}", one["energy_parts_pj"]) for product in found["products"]
            for one in product["ranked"]]
    data = [{"type": "bar", "name": part, "x": [name for name, _ in rows],
             "y": [parts[part] * PICOJOULE for _, parts in rows]} for part in rows[0][1]]
    return Plot("energy", "Energy of the best configurations", data,
                {"barmode": "stack", "yaxis": {"title": {"text": "joules"}}})
