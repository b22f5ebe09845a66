"""``tilewright array``: configurations of a reconfigurable array, ranked, and what it refuses."""

import json

import pytest

import tilewright as tw
from tilewright.cost import ArrayConfiguration, ReconfigurableArray, partitioned_counts


def test_products_are_ranked_in_json_and_on_a_page(tilewright, tmp_path):
    words = ["array", "256", "-p", "30x20x64", "-p", "5x5x5", "--top", "3", "--summation", "tree", "--ports",
             "--dram", "whole"]
    done = tilewright(*words, "--json", "o.json", "--report", "o.html")
    assert done.code == 0, done.err
    assert "no configuration takes less than 150" in done.out
    found = json.loads((tmp_path / "o.json").read_text())
    first = found["products"][0]
    cycles = [one["cycles"] for one in first["ranked"]]
    assert cycles == sorted(cycles)
    assert len(cycles) == 3
    assert cycles[0] >= first["bound_cycles"] == 150
    held = ArrayConfiguration(**first["ranked"][0]["configuration"])
    again = partitioned_counts([(30, 20, 64)], [held], ReconfigurableArray(256), tw.array(
        256, ["1x1x1"], summation="tree", ports=True, dram="whole").effects)
    assert again.cycles == cycles[0]
    assert (tmp_path / "o.html").stat().st_size > 10_000


def test_the_preset_tells_energy_and_one_array_beside_it():
    found = {objective: tw.array("sagar", ["784x256x1152"], objective=objective).products[0]
             for objective in ("latency", "energy", "edp")}
    product = found["latency"]
    assert sum(product.best.energy_parts_pj.values()) == pytest.approx(product.best.energy_pj)
    assert product.best.energy_parts_pj["standing"] < product.best.cycles * 13_010 < 2 * product.best.energy_pj
    assert product.monolithic.configuration.partitions == 1
    assert product.monolithic.cycles > product.best.cycles
    assert found["energy"].best.energy_pj < product.best.energy_pj
    for objective, ranking in found.items():
        assert ranking.bound <= ranking.best.figure(objective) == min(
            other.best.figure(objective) for other in found.values())


def test_arrays_that_are_as_they_are_have_layouts_alone_and_power_can_be_told(tilewright):
    done = tilewright("array", "distributed-4x4", "-p", "64x64x64", "--dram", "replicated", "-o", "edp")
    assert done.code == 0, done.err
    assert "33 configurations (units)" in done.out
    done = tilewright("array", "256", "-p", "64x64x64", "-o", "energy", "--power", "0.7", "--top", "2")
    assert "standing" in done.out
    assert "pJ" in done.out or "nJ" in done.out


@pytest.mark.parametrize(("words", "message"), [
    (["sagra", "-p", "1x1x1"], "sagar"),
    (["100", "-p", "1x1x1"], "power of two"),
    (["sagar"], "--product"),
    (["sagar", "-p", "1x0x1"], "positive integers"),
    (["sagar", "-p", "1x2x3", "--space", "flat"], "realisable"),
    (["sagar", "-p", "1x2x3", "--dram", "half"], "replicated"),
    (["sagar", "-p", "1x2x3", "-o", "area"], "latency"),
    (["256", "-p", "1x2x3", "-o", "energy"], "--power"),
    (["sagar", "-p", "1x2x3", "--power", "1"], "Give 2.964 W or more"),
    (["monolithic", "-p", "1x2x3", "--cell", "4"], "left out"),
])
def test_what_cannot_be_asked_is_refused_in_one_line(tilewright, words, message):
    done = tilewright("array", *words)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
