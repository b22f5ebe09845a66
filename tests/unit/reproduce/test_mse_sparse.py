"""The studies of sparse map-space exploration, made tiny; and what their verdicts rest on."""

import csv
import json

import pytest

from tilewright.cost import SparseModel
from tilewright.mapping import MapSpace
from tilewright.reproduce import REPRODUCTIONS, Setting, mse_sparse, run_study
from tilewright.reproduce.mse_sparse import LAYERS, Asked, bound_edp, machine, steeper
from tilewright.reproduce.mse_table5_4 import PUBLISHED, TESTED

TINY = {
    "mse-table5.2": Setting("tiny", 1, {"layers": ("conv4",), "samples": 600}),
    "mse-table5.3": Setting("tiny", 1, {"layers": ("attn",), "samples": 600}),
    "mse-table5.4": Setting("tiny", 1, {"layers": ("conv3",), "samples": 400}),
}


@pytest.mark.parametrize("name", TINY)
def test_a_tiny_run_judges_every_claim_and_writes_what_parses(name, tmp_path, monkeypatch):
    monkeypatch.setattr(mse_sparse, "LARGEST_TWIN", 2000)
    outcome = run_study(name, TINY[name], out=tmp_path)
    found = outcome.findings
    assert [judged.claim for judged in found.judgements] == list(outcome.study.claims)
    data = json.loads(outcome.file("json").read_text())
    assert data["reproduction"] == name
    for table in found.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        with outcome.file(f"{table.name}.csv").open(newline="") as file:
            assert len(list(csv.reader(file))) == len(table.rows) + 1
    told = json.dumps(data["tables"])
    assert "The oracle agrees with" in told and "disagrees" not in told
    again = run_study(name, TINY[name], out=tmp_path)
    assert again.computed_cells == 0 and again.findings == found


def test_every_sparse_study_has_a_tiny_run_here():
    assert set(TINY) == {name for name in REPRODUCTIONS if name.startswith("mse-table5.")} - {"mse-table5.1"}


def test_no_mapping_falls_by_more_than_the_square_of_one_tensors_density():
    import numpy as np

    asked = Asked("conv4", ("weights",), (1.0,), ())
    batch = MapSpace(asked.operator(1.0), machine()).sample(np.random.default_rng(0), 300)
    edp = {}
    for density in (1.0, 0.1):
        costs = SparseModel(asked.operator(density), machine()).score(batch)
        edp[density] = costs.energy_pj * costs.latency_cycles
        assert (edp[density] / 1e6 >= bound_edp(asked.operator(density))).all()
    assert not any(steeper({1.0: one, 0.1: other}, 0.1) for one, other in zip(edp[1.0], edp[0.1], strict=True))
    assert steeper(dict(zip(TESTED, PUBLISHED["conv3"][0], strict=True)), 0.5)
    assert not steeper(dict(zip(TESTED, PUBLISHED["conv3"][1], strict=True)), 0.5)


def test_the_layers_are_those_of_the_table():
    assert {name: layer.macs for name, layer in LAYERS.items()} == {
        "conv3": 16 * 128 * 128 * 28 * 28 * 9, "conv4": 16 * 256 * 256 * 14 * 14 * 9,
        "inception": 16 * 192 * 192 * 27 * 27 * 25, "kqv": 16 * 1024 * 1024 * 512, "attn": 16 * 512 * 1024 * 512,
        "fc": 16 * 4096 * 1024 * 512}
