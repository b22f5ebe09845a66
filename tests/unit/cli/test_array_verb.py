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
    product = tw.array("sagar", ["784x256x1152"]).products[0]
    assert product.best.energy_pj == pytest.approx(product.best.cycles * 13_010)
    assert product.monolithic.configuration.partitions == 1
    assert product.monolithic.cycles > product.best.cycles


@pytest.mark.parametrize(("words", "message"), [
    (["sagra", "-p", "1x1x1"], "sagar"),
    (["100", "-p", "1x1x1"], "power of two"),
    (["sagar"], "--product"),
    (["sagar", "-p", "1x0x1"], "positive integers"),
    (["sagar", "-p", "1x2x3", "--space", "flat"], "realisable"),
    (["sagar", "-p", "1x2x3", "--dram", "half"], "replicated"),
])
def test_what_cannot_be_asked_is_refused_in_one_line(tilewright, words, message):
    done = tilewright("array", *words)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
