"""Reconfigurable systolic arrays: the configurations of each product, the best first."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import Plot, Table
from tilewright.report.quantities import engineering, percent
from tilewright.report.sheet import Sheet


def array_sheet(found: Mapping[str, Any], command: str) -> Sheet:
    """Return what is to be shown of products on an array, given as plain data."""
    array, effects = found["array"], found["effects"]
    made = [name if value is True else f"{name} {value}" for name, value in effects.items()
            if value not in (False, "free", "off")]
    counted = ", ".join(made) or "stall-free"
    facts = (f"{found['configurations']:,} configurations ({found['space']}); counted: {counted}.",
             *(_fact(product) for product in found["products"]))
    lead = f"{array['macs']:,} units in cells of {array['cell']} x {array['cell']}."
    return Sheet(f"Products on {array['name']}", lead, facts, (_table(found),), (_plot(found),), {}, command)


def _fact(product: Mapping[str, Any]) -> str:
    best, alone = product["ranked"][0], product["monolithic"]
    told = (f"{_name(product)}: {best['name']}, {best['cycles']:,} cycles; no configuration takes less than "
            f"{product['bound_cycles']:,}")
    if product["equals"] > 1:
        told += f"; {product['equals']} take as few"
    if alone is not None:
        told += f"; one array ({alone['name']}) takes {alone['cycles'] / best['cycles']:.3g} times as many"
    return told + "."


def _name(product: Mapping[str, Any]) -> str:
    return f"{product['m']}x{product['n']}x{product['k']}"


def _table(found: Mapping[str, Any]) -> Table:
    dram = found["effects"]["dram"] != "off"
    heads = ["Product", "Sub-arrays", "of", "Dataflow", "Cycles", "Over bound", "Use", "At work", "SRAM reads",
             *(["DRAM words"] if dram else []), "Energy"]
    rows = []
    for product in found["products"]:
        for one in product["ranked"]:
            held = one["configuration"]
            rows.append((_name(product), f"{held['down']}x{held['across']}", f"{held['rows']}x{held['columns']}",
                         held["dataflow"], one["cycles"], round(one["cycles"] / product["bound_cycles"], 3),
                         percent(one["utilization"]), one["active_partitions"], engineering(one["sram_reads"]),
                         *([engineering(one["dram_words"])] if dram else []),
                         "" if one["energy_pj"] is None else engineering(one["energy_pj"] * 1e-12, "J")))
    return Table("configurations", "Configurations, the best first", tuple(heads), tuple(rows), (
        "Energy is the array's power over its cycles: parts that idle are not switched off.",))


def _plot(found: Mapping[str, Any]) -> Plot:
    data = [{"type": "bar", "name": _name(product), "x": [one["name"] for one in product["ranked"]],
             "y": [one["cycles"] for one in product["ranked"]]} for product in found["products"]]
    return Plot("cycles", "Cycles of the best configurations", data, {"yaxis": {"title": {"text": "cycles"}}})
