"""``tilewright sweep``, and machines side by side by ``tilewright map``."""

import json

import pytest

LAYER = "conv:K=32,C=16,P=14,Q=14,R=3,S=3"


def test_a_sweep_ends_with_a_table_a_page_and_json(tilewright, tmp_path):
    shown = tilewright("sweep", LAYER, "-a", "edge-s2", "--vary", "SG.capacity=8KB..32KB*2",
                       "--vary", "PEs.shape=4x4,8x8", "--budget", "200",
                       "--report", str(tmp_path / "s.html"), "--json", str(tmp_path / "s.json"))
    assert shown.code == 0
    assert "Best EDP" in shown.out
    tree = json.loads((tmp_path / "s.json").read_text())
    assert [one["values"]["SG.capacity"] for one in tree["machines"]] == ["8KB", "8KB", "16KB", "16KB", "32KB", "32KB"]
    assert "heatmap" in (tmp_path / "s.html").read_text()


def test_what_is_set_holds_for_all_machines_of_a_sweep(tilewright, tmp_path):
    words = ("sweep", LAYER, "-a", "edge-s2", "--vary", "PEs.shape=4x4,8x8", "--budget", "100", "--json", "-")
    plain, small = (json.loads(tilewright(*words, *more).out) for more in ((), ("--set", "SG.capacity=8KB")))
    assert all(a["area_um2"] > b["area_um2"] for a, b in zip(plain["machines"], small["machines"], strict=True))
    assert "SG.capacity=8KB" in small["command"]


def test_two_machines_are_set_side_by_side_as_each_is_mapped_alone(tilewright, tmp_path):
    words = ("map", LAYER, "--budget", "200", "--no-store", "--json", "-")
    both = json.loads(tilewright(*words, "-a", "edge-s2", "-a", "eyeriss").out)
    assert [one["name"] for one in both["machines"]] == ["edge-s2", "eyeriss"]
    for one in both["machines"]:
        alone = json.loads(tilewright(*words, "-a", one["name"]).out)["totals"]
        assert (one["latency_cycles"], one["energy_pj"]) == (alone["latency_cycles"], alone["energy_pj"])
    assert both["command"].count("tilewright map") == 2


@pytest.mark.parametrize(("objective", "compared"), [
    ("latency", "latency"), ("power", "power"), ("traffic", "edp"), ("0.7*latency+0.3*energy", "edp")])
def test_machines_are_compared_by_the_objective_or_by_edp(tilewright, objective, compared):
    found = json.loads(tilewright("map", LAYER, "-a", "edge-s2", "-a", "eyeriss", "-o", objective, "--budget", "60",
                                  "--no-store", "--json", "-").out)
    assert found["objective"] == compared
    for one in found["machines"]:
        edp, cycles = one["edp"], one["latency_cycles"]
        wanted = {"edp": edp, "latency": cycles, "power": 1e-3 * 200 * one["energy_pj"] / cycles}[compared]
        assert one["score"] == pytest.approx(wanted)
        assert one["gap"] is None or one["gap"] >= -1e-12


@pytest.mark.parametrize(("words", "said"), [
    (("bounds", LAYER, "-a", "edge-s2:SG.size=3"), "must be a number of the machine"),
    (("pipeline", LAYER, "-a", "edge-s2", "-a", "eyeriss"), "must be one machine here"),
    (("map", LAYER, "-a", "edge-s2", "-a", "eyeriss", "--checkpoint", "x"), "must be left out where several machines"),
    (("map", LAYER, "-a", "edge-s2", "-a", "eyeriss", "--certificate", "x.json"), "must be left out where several"),
    (("map", LAYER, "-a", "edge-s2", "--set", "SG.capacity"), "must be LEVEL.NUMBER=VALUE"),
    (("sweep", LAYER, "-a", "edge-s2"), "--vary: must be given"),
    (("sweep", LAYER, "-a", "edge-s2", "-a", "eyeriss", "--vary", "PEs.x=3"), "must be one machine here")])
def test_bad_input_is_one_message(tilewright, words, said):
    shown = tilewright(*words)
    assert shown.code == 2
    assert said in shown.err
