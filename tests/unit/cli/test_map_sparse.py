"""``tilewright map`` and ``evaluate`` where operands have zeros."""

import json
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.cost import SparseModel
from tilewright.store import mapping_of, operator_of

LAYER = "matmul:M=16,N=16,K=16"
SPARSE = ("-a", "accel-b-sparse", "-b", "300", "--no-store")


def test_a_sparse_layer_is_searched_told_and_repeated(tilewright):
    found = tilewright("map", LAYER, *SPARSE, "--density", "weights=2:4", "--density", "I=0.25", "--json", "r.json",
                       "-r", "r.html")
    assert found.code == 0
    run = tw.open_run("r.json")
    layer = run.layers["matmul"]
    operator = operator_of(layer)
    assert [(t.density, t.structure) for t in operator.tensors] == [(0.25, None), (0.5, (2, 4)), (1.0, None)]
    cost = SparseModel(operator, tw.load_accelerator("accel-b-sparse")).cost(mapping_of(layer))
    assert layer.cost.energy_pj == cost.energy_pj and layer.cost.latency_cycles == cost.latency_cycles
    assert layer.cost.latency_cycles >= layer.bounds.latency_cycles and layer.cost.energy_pj >= layer.bounds.energy_pj
    mean = {(c.memory, c.tensor): c.mean for c in layer.cost.counts}
    assert mean["DRAM", "W"].reads == cost.expected["DRAM", "W"].reads < cost.counts["DRAM", "W"].reads
    roof = layer.roofline
    assert roof.achieved_macs_per_cycle <= roof.roof_macs_per_cycle and run.record.totals.utilisation <= 1
    assert run.record.request.density == {"weights": "2:4", "I": "0.25"}
    assert "densities: weights 2:4, I 0.25" in json.dumps(run.record.network.notes)
    words = run.record.request.command.split()
    again = tilewright(*words[1:], "--no-store", "--json", "again.json")
    assert again.code == 0
    assert tw.open_run("again.json").layers["matmul"].cost == layer.cost


def test_mappings_are_scored_over_densities(tilewright):
    found = tilewright("map", LAYER, *SPARSE, "--densities", "inputs=1,0.5,0.1", "--json", "r.json")
    assert found.code == 0
    run = tw.open_run("r.json")
    assert run.record.request.densities == "inputs=1,0.5,0.1" and run.record.request.objective == "edp"
    layer = run.layers["matmul"]
    assert layer.search.score > layer.cost.edp
    assert "--densities inputs=1,0.5,0.1" in run.record.request.command


def test_a_mapping_is_evaluated_with_its_zeros(tilewright):
    dense = tilewright("evaluate", "--dataflow", "nvdla", "-n", LAYER, "-a", "accel-b-sparse", "--json", "dense.json")
    sparse = tilewright("evaluate", "--dataflow", "nvdla", "-n", LAYER, "-a", "accel-b-sparse", "--density",
                        "weights=0.1", "--json", "sparse.json")
    assert dense.code == sparse.code == 0 and "in the mean" in sparse.out
    energies = [json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))["layer"]["cost"]["energy_pj"]
                for name in ("dense", "sparse")]
    assert energies[1] < energies[0]


def test_wrong_densities_are_refused_with_exit_code_2(tilewright):
    for words, told in (
        (("--density", "weights=1.5"), "density weights: must be above 0 and at most 1"),
        (("--density", "filters=0.5"), "density filters: must name a role or a tensor"),
        (("--density", "weights"), "--density: must be NAME=VALUE"),
        (("--density", "weights=0.5", "--density", "weights=0.2"), "--density: must give weights once"),
        (("--densities", "2"), "must be above 0 and at most 1"),
        (("--densities", "1:0"), "densities: must have positive weights"),
        (("--densities", "inputs+I=1,0.5"), "densities: must name every tensor once"),
        (("--densities", "inputs+inputs=1,0.5"), "densities: must name every tensor once"),
        (("--densities", "1,0.5", "--density", "I=0.3"), "densities: must not be of a tensor that density names too"),
    ):
        found = tilewright("map", LAYER, *SPARSE, *words)
        assert found.code == 2 and told in found.err
    for words in (("map", LAYER, "-b", "100"), ("evaluate", "--dataflow", "nvdla", "-n", LAYER)):
        found = tilewright(*words, "-a", "accel-b", "--density", "weights=0.5")
        assert found.code == 2 and "accel-b-sparse" in found.err


def test_what_knows_only_dense_counts_refuses_such_machines(tilewright):
    found = tilewright("explore", LAYER, "--arch", "accel-b-sparse", "-b", "100")
    assert found.code == 2 and "accel-b-sparse.sparsity: must be left out to be explored" in found.err
    operator, machine = tw.matmul("m", m=4, n=4, k=4), tw.load_accelerator("accel-b-sparse")
    with pytest.raises(tw.InputError, match=r"sparsity: must be left out to be counted by other rules"):
        tw.replay(operator, machine, tw.dataflow("nvdla", operator, machine))


def test_bounds_and_explain_take_densities(tilewright):
    arch = ("-a", "accel-b-sparse")
    dense, sparse = (tilewright("bounds", LAYER, *arch, *given, "--json", "-") for given in (
        (), ("--density", "inputs=even:0.1", "--density", "W=0.1")))
    least = [json.loads(found.out)["layers"][0] for found in (dense, sparse)]
    assert least[1]["energy_pj"] < 0.5 * least[0]["energy_pj"]
    assert (least[0]["compute_cycles"], least[1]["compute_cycles"]) == (4, 1)
    tilewright("evaluate", "--dataflow", "weight-stationary", "-n", LAYER, *arch, "--write", "mine.yaml")
    told = tilewright("explain", "mine.yaml", "-n", LAYER, *arch, "--density", "I=even:0.5", "-c", "DRAM.I.reads")
    assert told.code == 0 and told.out.startswith("DRAM.I.reads = 256 words") and "bits of metadata" in told.out
    assert "At densities I even:0.5, 128 of these words are moved in the mean" in told.out
    listed = tilewright("explain", "mine.yaml", "-n", LAYER, *arch, "--density", "I=even:0.5")
    row = next(line.split() for line in listed.out.splitlines() if line.startswith("DRAM.I.reads"))
    assert row == ["DRAM.I.reads", "256", "128"]
    for wrong in (("bounds", LAYER, "-a", "eyeriss", "--density", "I=0.5"),
                  ("explain", "mine.yaml", "-n", LAYER, "-a", "accel-b", "--density", "I=0.5"),
                  ("explain", "mine.yaml", "-n", LAYER, *arch, "--density", "Q=0.5"),
                  ("explain", "last", "--density", "I=0.5"),
                  ("bounds", LAYER, *arch, "--density", "I=even:3")):
        assert tilewright(*wrong).code == 2, wrong
