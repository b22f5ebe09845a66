"""Technology tables: published rows come back exactly, figures between them are monotone, nothing is invented."""

import json
from itertools import pairwise

import pytest

from tilewright.base import InputError
from tilewright.hardware import Anchor, Curve, build_technology, scale_technology, technology, technology_names
from tilewright.hardware.tables import TABLES


def _raw(name):
    return json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))


def _rows(node):
    """Every row (a mapping with figures) of a table, however deep."""
    if isinstance(node, list):
        return [row for item in node for row in _rows(item)]
    if isinstance(node, dict):
        inner = [row for value in node.values() for row in _rows(value)]
        return inner + ([node] if any(isinstance(value, float | int) for value in node.values()) else [])
    return []


def test_at_least_two_nodes_ship():
    nodes = {technology(name).node_nm for name in technology_names()}
    assert nodes == {5, 7, 16, 28, 45, 65}


@pytest.mark.parametrize("name", technology_names())
def test_every_row_cites_its_source(name):
    table = _raw(name)
    table.pop("node_nm", None)
    rows = [row for key, section in table.items() for row in _rows(section) if key != "range_bytes"]
    assert rows
    for row in rows:
        assert len(row["source"]) > 20, row
        assert all(key.rsplit("_", 1)[-1] in {"bytes", "bits", "pj", "mw", "um2", "access", "bit", "mm", "nm", "v"}
                   for key, value in row.items() if isinstance(value, float | int)), row
    assert technology(name).sources


@pytest.mark.parametrize(("capacity", "bits", "published_pj"), [
    (448, 16, 0.499718), (8192, 64, 10.0), (32768, 64, 20.0), (1048576, 64, 100.0),
])
def test_published_sram_energies_come_back(capacity, bits, published_pj):
    assert technology("45nm").read_pj("sram", capacity, bits) == pytest.approx(published_pj, rel=1e-12)


def test_published_operations_come_back():
    table = technology("45nm")
    assert (table.mac_pj("int", 8), table.mac_pj("int", 32)) == (0.3, 3.2)
    assert (table.mac_pj("fp", 16), table.mac_pj("fp", 32)) == (1.5, 4.6)
    assert table.mac_pj("int", 16) == pytest.approx((0.3 * 3.2) ** 0.5)
    assert table.dram_pj("LPDDR4", 64) == 512
    assert table.leakage_mw("sram", 448) == 0.24371


@pytest.mark.parametrize("name", technology_names())
@pytest.mark.parametrize("kind", ["sram", "registers"])
def test_costs_do_not_fall_with_capacity(name, kind):
    store = technology(name).storage[kind]
    curves = [store.read_pj_per_bit, store.write_pj_per_bit, store.area_um2, store.leakage_mw]
    assert None not in curves[:2]
    for curve in filter(None, curves):
        steps = 200
        ratio = (curve.high / curve.low) ** (1 / steps)
        values = [curve.at(min(curve.low * ratio**i, curve.high)) for i in range(steps + 1)]
        assert min(values) > 0
        assert all(b >= a * (1 - 1e-9) for a, b in pairwise(values)), curve.name


def test_energy_is_linear_in_the_bits_moved():
    table = technology("28nm")
    assert table.read_pj("sram", 5000, 24) == pytest.approx(3 * table.read_pj("sram", 5000, 8))


def test_curve_interpolates_on_log_log_axes():
    curve = Curve("test", (Anchor(4, 2, "a"), Anchor(16, 8, "b"), Anchor(64, 16, "c")), 1, 256, "bytes")
    assert curve.at(8) == pytest.approx(4)
    assert curve.at(32) == pytest.approx(8 * 2**0.5)
    assert curve.at(1) == pytest.approx(0.5)
    assert curve.at(256) == pytest.approx(32)
    assert Curve("one", (Anchor(4, 2, "a"),), 1, 100, "bytes").at(10) == 5


@pytest.mark.parametrize(("build", "says"), [
    (lambda: technology("45nm").read_pj("sram", 32, 8), "45nm.sram.read: knows 64 to 6.71089e+07 bytes only; Got 32"),
    (lambda: technology("45nm").read_pj("registers", 8192, 8), "knows 1 to 4096 bytes only; Got 8192"),
    (lambda: technology("45nm").mac_pj("int", 4), "knows 8 to 32 bits only; Got 4"),
    (lambda: technology("45nm").dram_pj("LPDDR3", 8),
     "must be a known DRAM type; Got 'LPDDR3'; Did you mean DDR3, LPDDR2, LPDDR4?"),
    (lambda: technology("45mn"), "must be a known technology; Got '45mn'; Did you mean 45nm, 5nm, 65nm?"),
    (lambda: scale_technology(technology("45nm"), 3, 0.7), "must lie between 5 and 90; Got 3"),
    (lambda: Curve("x", (), 1, 2, "bytes"), "must have rows of distinct bytes, in order"),
    (lambda: Curve("x", (Anchor(1, 0, "s"),), 1, 2, "bytes"), "must have positive figures only; Got 0"),
])
def test_what_is_not_known_is_an_error(build, says):
    with pytest.raises(InputError) as caught:
        build()
    assert says in str(caught.value)


def test_scaling_follows_stillmaker_and_baas():
    base, scaled = technology("45nm"), technology("65nm")
    energy = (3.755 - 4.398 + 1.975) / (1.018 * 0.81 - 0.3107 * 0.9 + 0.1539)
    assert scaled.mac_pj("int", 8) / base.mac_pj("int", 8) == pytest.approx(energy)
    assert scaled.area_um2("sram", 8192) / base.area_um2("sram", 8192) == pytest.approx(1.5)
    assert scaled.dram_pj("DDR3", 1) == base.dram_pj("DDR3", 1) == 70
    assert scaled.leakage_mw("sram", 8192) is None
    assert scaled.wire_pj(1, 1) == pytest.approx(0.12 / 0.81)
    between = technology("28nm").mac_um2("int", 8) / base.mac_um2("int", 8)
    assert 0.21 < between < 0.46


def test_energy_falls_with_the_node():
    energies = [technology(name).mac_pj("int", 8) for name in ("65nm", "45nm", "28nm", "16nm", "7nm", "5nm")]
    assert energies == sorted(energies, reverse=True)


def test_eyeriss_keeps_its_published_ratios():
    table = technology("eyeriss-65nm")
    unit = table.mac_pj("int", 16)
    assert unit == pytest.approx(technology("65nm").mac_pj("int", 16), rel=1e-4)
    assert table.dram_pj("eyeriss", 16) == pytest.approx(200 * unit)
    assert table.read_pj("sram", 108 * 1024, 16) == pytest.approx(6 * unit)
    for capacity in (24, 48, 448, 512):
        assert table.read_pj("registers", capacity, 16) == pytest.approx(unit)


def test_own_rows_go_on_top_of_a_base():
    own = build_technology({
        "name": "mine", "base": "45nm",
        "dram": [{"type": "LPDDR5", "energy_pj_per_bit": 5.0, "source": "our board"}],
        "mac": [{"type": "int", "width_bits": 16, "energy_pj": 0.7, "area_um2": 900.0, "source": "our synthesis"}],
        "sram": [{"capacity_bytes": 1024, "width_bits": 32, "read_pj_per_access": 1.0, "write_pj_per_access": 2.0,
                  "source": "our compiler"}],
    })
    assert own.dram_pj("LPDDR5", 2) == 10
    assert own.dram_pj("LPDDR4", 1) == 8
    assert own.mac_pj("int", 16) == 0.7
    assert own.mac_pj("int", 8) == 0.3
    assert own.read_pj("sram", 1024, 32) == pytest.approx(1.0)
    assert own.write_pj("sram", 1024, 32) == pytest.approx(2.0)
    assert own.area_um2("sram", 8192) == technology("45nm").area_um2("sram", 8192)
    assert "our compiler" in own.sources


def test_below_the_tables_figures_follow_what_a_foundry_published_and_say_so():
    """At 0.7 V: 30 % less energy than at 7 nm, logic 1.84 times as dense, bit cells of SRAM 0.021 for 0.027 um2."""
    seven, five = technology("7nm"), technology("5nm")
    assert five.mac_pj("int", 8) / seven.mac_pj("int", 8) == pytest.approx(0.7)
    assert five.read_pj("sram", 8192, 64) / seven.read_pj("sram", 8192, 64) == pytest.approx(0.7)
    assert seven.mac_um2("int", 8) / five.mac_um2("int", 8) == pytest.approx(1.84, rel=0.002)
    assert five.area_um2("sram", 8192) / seven.area_um2("sram", 8192) == pytest.approx(21 / 27, rel=0.002)
    assert "extrapolated" in five.about and "extrapolated" not in seven.about
    assert "IEDM" in scale_technology(technology("45nm"), 6, 0.7).about
