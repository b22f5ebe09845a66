"""``tilewright map`` and ``space`` with layers padded to the array."""

import json

import pytest

import tilewright as tw
from tilewright.api import map_space, open_run
from tilewright.mapping import is_legal, padded
from tilewright.store import accelerator_of, mapping_of, operator_of, read_run

OPERATOR = "matmul:M=13,N=11,K=7"


def test_a_padded_layer_is_searched_told_and_repeated(tilewright, machine, tmp_path):
    found = tilewright("map", OPERATOR, "-a", machine, "-b", "400", "--pad", "--json", "r.json", "-r", "r.html")
    assert found.code == 0, found.err
    run = open_run("last").record
    layer, small = run.layers[0], accelerator_of(run.accelerator)
    operator, real = operator_of(layer), 13 * 11 * 7
    assert operator.sizes == padded(tw.matmul("m", m=13, n=11, k=7), small).sizes
    assert dict(layer.padding.dimensions) == {"B": 1, "M": 13, "N": 11, "K": 7}
    lost = 1 - real / operator.macs
    assert lost > 0 and layer.cost.macs == operator.macs == layer.operator.macs
    assert layer.padding.ineffectual_share == pytest.approx(lost)
    assert run.totals.ineffectual_share == pytest.approx(lost)
    assert layer.macs == run.totals.macs == real
    assert layer.cost.utilisation == run.totals.utilisation == pytest.approx(real / (layer.cost.latency_cycles * 8))
    assert layer.roofline.achieved_macs_per_cycle == pytest.approx(real / layer.cost.latency_cycles)
    assert is_legal(mapping_of(layer), operator, small)
    assert (run.request.tiling, run.request.pad) == ("perfect", True)
    line = f"{100 * lost:.1f} % of the MACs done are ineffectual"
    assert line in found.out and "padded to the array" in found.out
    assert line in tilewright("show", "last", "--layer", "matmul").out
    assert line in (tmp_path / "r.html").read_text()
    assert read_run(tmp_path / "r.json") == run
    words = tilewright("show", "last", "--command").out.split()
    assert "--pad" in words
    assert tilewright(*words[1:]).code == 0
    again = open_run("last").record
    assert again.request == run.request and again.layers[0].mapping == run.layers[0].mapping


def test_layers_that_fit_are_not_padded_and_a_tiling_may_be_chosen(machine):
    run = tw.map("matmul:M=16,N=16,K=8", str(machine), budget=200, pad=True, tiling="ruby-s", store=False).record
    assert run.layers[0].padding is None and run.totals.ineffectual_share == 0
    assert run.request.tiling == "ruby-s" and "--tiling ruby-s --pad" in run.request.command


def test_layers_of_one_padded_shape_keep_their_own_work(machine, tmp_path):
    (tmp_path / "two.yaml").write_text("layers: [{matmul: {name: a, m: 13, n: 1, k: 1}}, "
                                       "{matmul: {name: b, m: 14, n: 1, k: 1}}]\n")
    run = tw.map(str(tmp_path / "two.yaml"), str(machine), budget=100, pad=True, store=False).record
    a, b = run.layers
    assert a.operator.dimensions == b.operator.dimensions
    assert (a.macs, b.macs, run.totals.macs) == (13, 14, 27)
    assert a.cost.utilisation == pytest.approx(b.cost.utilisation * 13 / 14)
    assert run.totals.ineffectual_share == pytest.approx(1 - 27 / 32)


def test_it_pads_under_a_dataflow_and_on_flexible_machines(tilewright):
    words = ("map", "conv:K=13,C=5,P=11,Q=11,R=3,S=3", "-b", "300", "--pad")
    assert tilewright(*words, "-a", "eyeriss", "--dataflow", "row-stationary").code == 0
    assert open_run("last").record.layers[0].padding is not None
    assert tilewright(*words, "-a", "flexion", "--tiling", "imperfect").code == 0
    refused = tilewright(*words, "-a", "flexion")
    assert refused.code == 2 and "tiles.GLB.Q = 3" in refused.err  # Its tiles are fixed, and not what is padded to.


def test_the_space_of_the_padded_layer_is_counted(tilewright, machine, tmp_path):
    found = tilewright("space", OPERATOR, "-a", machine, "--pad", "--json", "s.json", "--samples", "100", "--draw", "1")
    assert found.code == 0, found.err
    data = json.loads((tmp_path / "s.json").read_text())
    space = map_space(OPERATOR, str(machine), pad=True)
    assert space.tiling == "perfect"
    assert data["dimensions"] == space.operator.sizes
    assert data["unpadded"] == {"B": 1, "M": 13, "N": 11, "K": 7}
    assert data["sizes"][0]["mappings"] == space.size().mappings > map_space(
        OPERATOR, str(machine), tiling="perfect").size().mappings
    assert "Padded: " in found.out and "of MACs are ineffectual" in found.out
