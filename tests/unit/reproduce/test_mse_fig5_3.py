"""Figure 5.3 of the map-space study in a tiny run: every claim judged, every mapping confirmed, cells taken up."""

import csv
import json

import pytest

from tilewright.reproduce import Setting, run_study
from tilewright.reproduce.mse_fig5_3 import CLAIMS, PANELS, RECOVERS, RETRAINED, Panel

TINY = Setting("tiny", 1, {"samples": 200, "seconds": 0.02, "ours": 1, "learnt": 600, "layers": 3, "hidden": (16,),
                           "epochs": 2, "descent": {"starts": 8, "steps": 4}})


def test_a_tiny_run_judges_every_claim_and_is_taken_up_again(tmp_path):
    pytest.importorskip("torch")
    from tilewright.report import write_reproduction

    outcome = run_study("mse-fig5.3", TINY, out=tmp_path)
    found = outcome.findings
    assert [judged.claim for judged in found.judgements] == list(CLAIMS)
    # So few mappings are too few to say whether training again recovers anything.
    assert [judged.claim for judged in found.judgements if judged.verdict == "not judged"] == [RECOVERS]
    assert [table.name for table in found.tables] == ["samples", "time", "networks"]
    rows = [dict(zip(found.tables[0].columns, row, strict=True)) for row in found.tables[0].rows]
    assert len(rows) == 4 * len(PANELS) + 2 and sum(row["Mapper"] == RETRAINED for row in rows) == 2
    assert all(row["Oracle"].startswith("agrees") for row in rows)
    assert all(row["after all"] >= row["EDP bound"] and row["Cycles"] >= row["Compute bound (cycles)"] for row in rows)
    assert len(found.plots) == 2 * len(PANELS)
    for table in found.tables:
        with outcome.file(f"{table.name}.csv").open(newline="") as file:
            assert len(list(csv.reader(file))) == len(table.rows) + 1
    assert json.loads(outcome.file("json").read_text())["reproduction"] == "mse-fig5.3"
    assert write_reproduction(outcome).stat().st_size > 1_000_000
    again = run_study("mse-fig5.3", TINY, out=tmp_path)
    assert again.computed_cells == 0
    assert again.findings == found


def test_without_pytorch_nothing_is_judged(tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.base.extras.find_spec", lambda name: None)
    found = run_study("mse-fig5.3", TINY, out=tmp_path).findings
    assert {judged.verdict for judged in found.judgements} == {"not judged"}
    assert "not installed" in found.judgements[0].because


def test_medians_of_a_panel_are_those_of_its_runs():
    run = [{"edp": edp, "samples": 10, "seconds": 0.5, "history": [[1, 9.0], [5, edp]]} for edp in (3.0, 1.0, 2.0)]
    panel = Panel("accel-a", "Resnet Conv_4", {"gamma": run}, {"gamma": run})
    assert panel.edp("gamma") == panel.edp_in_time("gamma") == 2.0
    assert panel.edp("gamma", 1) == 9.0 and panel.edp("gamma", 0) == float("inf")
    assert panel.pace("gamma") == pytest.approx(0.05)
