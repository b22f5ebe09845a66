"""Figure 5.3 of the map-space study in a tiny run: every claim judged, every mapping confirmed, cells taken up."""

import pytest

from tilewright.reproduce import Setting, run_study
from tilewright.reproduce.mse_fig5_3 import Panel
from tilewright.reproduce.searching import Tried

TINY = Setting("tiny", 1, {"samples": 200, "seconds": 0.02, "ours": 1, "learnt": 600, "layers": 3, "hidden": (16,),
                           "epochs": 2, "descent": {"starts": 8, "steps": 4}})


def test_without_pytorch_nothing_is_judged(tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.base.extras.find_spec", lambda name: None)
    found = run_study("mse-fig5.3", TINY, out=tmp_path).findings
    assert {judged.verdict for judged in found.judgements} == {"not judged"}
    assert "not installed" in found.judgements[0].because


def test_medians_of_a_panel_are_those_of_its_runs():
    runs = [{"edp": edp, "samples": 10, "seconds": 0.5, "history": [[1, 9.0], [5, edp]]} for edp in (3.0, 1.0, 2.0)]
    where = ("accel-a", "Resnet Conv_4")
    tried = {"gamma": Tried((where, None), runs, None)}
    panel = Panel(*where, tried, tried)
    assert panel.edp("gamma") == panel.edp_in_time("gamma") == 2.0
    assert panel.edp("gamma", 1) == 9.0 and panel.edp("gamma", 0) == float("inf")
    assert panel.pace("gamma") == pytest.approx(0.05)
    assert panel.at(0).edp("gamma") == 3.0 and panel.at(1).edp_in_time("gamma") == 1.0
