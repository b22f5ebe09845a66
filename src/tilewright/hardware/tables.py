"""Read technology tables: those that ship, a user's rows on top of them, and scaling between nodes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path
from typing import Any

from tilewright.base import InputError, unknown_name
from tilewright.hardware.technology import Anchor, Curve, Storage, Technology

Row = Mapping[str, Any]
TABLES = Path(__file__).parent / "technologies"
_KINDS = ("sram", "registers")


def technology_names() -> tuple[str, ...]:
    """Return the names of the shipped technology tables."""
    return tuple(sorted(path.stem for path in TABLES.glob("*.json") if path.stem != "scaling"))


@cache
def technology(name: str) -> Technology:
    """Return the shipped technology table called ``name``; an unknown name is an `InputError`.

    >>> technology("45nm").read_pj("sram", 8192, 64)
    10.0
    """
    if name not in technology_names():
        raise unknown_name("technology", name, list(technology_names()))
    table = json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))
    return build_technology(table)


def build_technology(table: Mapping[str, Any]) -> Technology:
    """Return the technology that the rows of ``table`` describe.

    A table with a ``base`` starts from that shipped table, scaled where it says ``scale_to``: rows of ``dram`` and
    ``mac`` are added to those of the base or replace equal ones, other sections replace theirs.

    Raises an `InputError` if the base is unknown or rows are missing, repeated or not positive.
    """
    if "base" in table:
        base, target = technology(str(table["base"])), table.get("scale_to")
        if target:
            base = scale_technology(base, float(target["node_nm"]), float(target["voltage_v"]))
    else:
        base = Technology("", float(table["node_nm"]), float(table["voltage_v"]), {}, {}, {}, {}, (0.0, ""))
    name, macs, wire = str(table["name"]), table.get("mac") or [], table.get("wire")
    dram = {row["type"]: (float(row["energy_pj_per_bit"]), row["source"]) for row in table.get("dram") or ()}
    return replace(
        base, name=name, dram_pj_per_bit={**base.dram_pj_per_bit, **dram},
        storage={kind: _storage(name, kind, table, base.storage.get(kind)) for kind in _KINDS},
        mac_energy_pj=_macs(name, macs, base.mac_energy_pj, "energy_pj"),
        mac_area_um2=_macs(name, macs, base.mac_area_um2, "area_um2"),
        wire_pj_per_bit_mm=(float(wire["energy_pj_per_bit_mm"]), str(wire["source"])) if wire
        else base.wire_pj_per_bit_mm,
        about=str(table.get("about", base.about)))


def scale_technology(base: Technology, node_nm: float, voltage_v: float) -> Technology:
    """Return ``base`` scaled to another node and voltage.

    Energies and areas on chip scale by the ratio of Stillmaker and Baas (Integration 58, 2017). Wires keep their
    capacitance per millimetre. DRAM is off chip and stays. Leakage is dropped: the source has no factor for it. Below
    7 nm, where its tables end, figures are extrapolated from what a foundry published, which ``about`` tells.
    """
    rules = json.loads((TABLES / "scaling.json").read_text(encoding="utf-8"))
    energy = _energy_factor(rules, node_nm, voltage_v) / _energy_factor(rules, base.node_nm, base.voltage_v)
    areas = {float(node): float(ratio) for node, ratio in rules["area_relative_to_45nm"].items()}
    own = {float(node): float(ratio) for node, ratio in rules["sram_area_relative_to_45nm"].items()}
    area, sram = (_between(known, node_nm) / _between(known, base.node_nm) for known in (areas, areas | own))
    name = f"{base.name}@{node_nm:g}nm"
    storage = {
        kind: Storage(
            store.read_pj_per_bit.scaled(f"{name}.{kind}.read", energy),
            store.write_pj_per_bit.scaled(f"{name}.{kind}.write", energy),
            store.area_um2.scaled(f"{name}.{kind}.area", sram if kind == "sram" else area),
        )
        for kind, store in base.storage.items()
    }
    wire, wire_source = base.wire_pj_per_bit_mm
    return replace(
        base, name=name, node_nm=node_nm, voltage_v=voltage_v, storage=storage,
        about=rules["extrapolated_below_7nm"] if node_nm < 7 else "",
        mac_energy_pj={t: c.scaled(f"{name}.mac.{t}.energy", energy) for t, c in base.mac_energy_pj.items()},
        mac_area_um2={t: c.scaled(f"{name}.mac.{t}.area", area) for t, c in base.mac_area_um2.items()},
        wire_pj_per_bit_mm=(wire * (voltage_v / base.voltage_v) ** 2, f"{wire_source}; scaled with voltage squared"))


def _energy_factor(rules: Mapping[str, Any], node_nm: float, voltage_v: float) -> float:
    factors = {
        float(node): a2 * voltage_v**2 + a1 * voltage_v + a0
        for node, (a2, a1, a0) in rules["energy_a2_a1_a0"].items()
    }
    return _between(factors, node_nm)


def _between(values: Mapping[float, float], node_nm: float) -> float:
    """Return the value at ``node_nm``, interpolated on log-log axes; beyond the tabulated nodes is an error."""
    if node_nm in values:
        return values[node_nm]
    below = [node for node in values if node < node_nm]
    above = [node for node in values if node > node_nm]
    if not below or not above:
        raise InputError("technology.node_nm", f"must lie between {min(values):g} and {max(values):g}", node_nm)
    low, high = max(below), min(above)
    share = log(node_nm / low) / log(high / low)
    return float(values[low] * (values[high] / values[low]) ** share)


def _curve(name: str, rows: list[tuple[float, float, str]], limits: tuple[float, float], unit: str) -> Curve:
    return Curve(name, tuple(Anchor(*row) for row in sorted(rows)), *limits, unit)


def _storage(name: str, kind: str, table: Mapping[str, Any], base: Storage | None) -> Storage:
    """Return the storage of one kind from its rows, section by section on top of ``base``."""
    path, rows = f"{name}.{kind}", table.get(kind)
    limits = _limits(kind, table, base)

    def per_bit(port: str) -> Curve:
        found = [(r["capacity_bytes"], r[f"{port}_pj_per_access"] / r["width_bits"], r["source"]) for r in rows or ()]
        return _curve(f"{path}.{port}", found, limits, "bytes")

    def whole(section: str, column: str) -> Curve | None:
        found = [(r["capacity_bytes"], r[column], r["source"]) for r in table.get(section) or ()]
        return _curve(f"{path}.{column}", found, limits, "bytes") if found else None

    area = whole(f"{kind}_area", "area_um2") or (base.area_um2 if base else None)
    if area is None:
        raise InputError(f"technology.{name}.{kind}_area", "is required")
    low, high = limits
    return Storage(
        replace(base.read_pj_per_bit, low=low, high=high) if base and not rows else per_bit("read"),
        replace(base.write_pj_per_bit, low=low, high=high) if base and not rows else per_bit("write"),
        replace(area, low=low, high=high),
        whole(f"{kind}_leakage", "leakage_mw") or (base.leakage_mw if base else None))


def _limits(kind: str, table: Mapping[str, Any], base: Storage | None) -> tuple[float, float]:
    given = (table.get("range_bytes") or {}).get(kind)
    if given:
        return float(given[0]), float(given[1])
    if base is not None:
        return base.read_pj_per_bit.low, base.read_pj_per_bit.high
    capacities = [float(row["capacity_bytes"]) for row in table.get(kind) or ()]
    return (min(capacities), max(capacities)) if capacities else (0.0, 0.0)


def _macs(name: str, rows: list[Row], base: Mapping[str, Curve], column: str) -> dict[str, Curve]:
    found = {mac: {a.x: (a.x, a.y, a.source) for a in curve.anchors} for mac, curve in base.items()}
    for row in rows:
        width = float(row["width_bits"])
        found.setdefault(row["type"], {})[width] = (width, row[column], row["source"])
    return {
        mac: _curve(f"{name}.mac.{mac}.{column}", list(by_width.values()), (min(by_width), max(by_width)), "bits")
        for mac, by_width in found.items()
    }
