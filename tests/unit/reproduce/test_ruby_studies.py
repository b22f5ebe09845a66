import json

import pytest

from tilewright.base import InputError
from tilewright.cost import layer_bounds
from tilewright.mapping import is_legal, padded
from tilewright.reproduce import Setting, run_study
from tilewright.reproduce.ruby_contest import FLOWS, PUBLISHED, RANDOM, Match, eyeriss_like, simba_like, toy
from tilewright.reproduce.ruby_fig9 import layer, strip_mined
from tilewright.reproduce.ruby_layers import never_worse
from tilewright.reproduce.searching import Layer, Tried, network_layers
from tilewright.workload import matmul


def test_figures_of_the_sweep_in_one_dimension(tmp_path):
    outcome = run_study("ruby-fig8", Setting("tiny", 1, {"step": 100, "last": 100}), out=tmp_path)
    rows = {row[0]: dict(zip(outcome.findings.tables[0].columns, row, strict=True))
            for row in outcome.findings.tables[0].rows}
    assert (rows[127]["Steps PFM"], rows[127]["Steps padding"], rows[127]["Steps Ruby-S"]) == (127, 8, 8)
    assert rows[113]["Padding / Ruby-S"] == pytest.approx(128 / 113, rel=0.01)
    assert all(row["PFM / Ruby-S"] >= 1 for row in rows.values())


def test_the_mapping_by_hand_is_legal_and_uses_what_two_strips_use():
    from tilewright.cost import DenseModel

    operator, machine = layer(), eyeriss_like()
    assert is_legal(strip_mined(), operator, machine)
    cost = DenseModel(operator, machine).cost(strip_mined())
    assert operator.macs / cost.steps == pytest.approx(135)


def test_machines_are_those_of_the_paper():
    assert eyeriss_like().compute_instances == 168
    assert eyeriss_like().level("GLB").capacity_bytes == 128 * 1024
    assert dict(eyeriss_like().level("Spads").partitions_bytes) == {"inputs": 24, "weights": 448, "outputs": 32}
    assert simba_like(15, 4, 4).compute_instances == 240
    assert simba_like(9, 3, 3).compute_instances == 81
    assert toy(16).level("Spad").capacity_bytes == 1024
    assert eyeriss_like(16, 16).area_um2 > eyeriss_like(2, 7).area_um2


def test_padding_rounds_one_dimension_up_for_each_side():
    operator, machine = matmul("m", m=13, n=127, k=50), eyeriss_like(4, 16)
    constraints = FLOWS["row-stationary"](operator, machine)
    grown = padded(operator, machine, constraints, to="side")
    for place, side in (("PEs.X", 4), ("PEs.Y", 16)):
        assert any(grown.sizes[d] % side == 0 for d in constraints.loops[place])
    assert all(0 <= grown.sizes[d] - size < 16 for d, size in operator.sizes.items())
    assert layer_bounds(grown, machine).macs > operator.macs


def test_padding_leaves_what_matches_alone():
    operator, machine = matmul("m", m=16, n=32, k=64), eyeriss_like(4, 16)
    assert padded(operator, machine, FLOWS["free"](operator, machine), to="side").sizes == operator.sizes


def entry(layer, edp, seeds=2):
    match = Match(Layer("net", layer, 1, matmul(layer, m=2, n=2, k=2)), toy(2), "perfect", "free", "gamma", 1)
    return Tried(match, ({"edp": edp},) * seeds, {"edp": edp})


def test_losses_are_told_worst_first_and_judged():
    even = [(entry(f"l{n}", 100), entry(f"l{n}", 100 - n)) for n in range(20)]
    assert never_worse({"gamma": even}).verdict == "holds"
    slight = [*even, (entry("up", 100), entry("up", 104))]
    assert "20 of 21 at or below, above: up +4.0 %" in never_worse({"gamma": slight}).ours
    some = [*even[:9], *((entry("up", 100), entry("up", 104)) for _ in range(4))]
    assert never_worse({"gamma": some}).verdict == "holds in direction"
    many = [(entry(f"l{n}", 100), entry(f"l{n}", 101 + n)) for n in range(7)]
    judged = never_worse({"gamma": many, "ours": even})
    assert judged.verdict == "does not hold"
    assert "above: l6 +7.0 %, l5 +6.0 %" in judged.ours and "and 2 more; ours: 20 of 20" in judged.ours


def test_the_papers_mapper_is_random_and_ends_by_itself_and_others_keep_to_the_samples(
        tmp_path, kept_rows, monkeypatch):
    assert PUBLISHED["stall"] == 3_000
    monkeypatch.setitem(PUBLISHED, "stall", 300)
    outcome = run_study("ruby-fig9", Setting("tiny", 1, {"mappers": (RANDOM, "gamma"), "samples": 500}), out=tmp_path)
    cells = [(json.loads(row["job"]), json.loads(row["value"]))
             for row in kept_rows(tmp_path / "ruby-fig9" / "results.sqlite")]
    spent = {(cell["mapper"], value["samples"]) for cell, value in cells if "mapper" in cell}
    assert {samples for mapper, samples in spent if mapper == "gamma"} == {500}
    assert all(24 * 300 < samples < 24 * 3_000 for mapper, samples in spent if mapper == RANDOM)
    assert "ruby-s, gamma" in outcome.findings.judgements[0].ours


def test_layers_of_a_network_are_distinct_and_counted():
    layers = network_layers("resnet50")
    assert len(layers) == 24
    assert sum(layer.count for layer in layers) == 54
    assert len(network_layers("resnet50", every=9)) == 3


def test_a_setting_must_be_known():
    with pytest.raises(InputError, match="quick or full"):
        run_study("ruby-fig8", "slow")
