"""The studies of sparse map-space exploration, made tiny; and what their verdicts rest on."""

from tilewright.cost import SparseModel
from tilewright.mapping import MapSpace
from tilewright.reproduce import mse_sparse
from tilewright.reproduce.mse_sparse import LAYERS, PUBLISHED, TESTED, Asked, bound_edp, machine, steep_note


def test_no_mapping_falls_by_more_than_the_square_of_one_tensors_density():
    import numpy as np

    asked = Asked("conv4", ("weights",), (1.0,), ())
    batch = MapSpace(asked.operator(1.0), machine()).sample(np.random.default_rng(0), 300)
    edp = {}
    for density in (1.0, 0.1):
        costs = SparseModel(asked.operator(density), machine()).score(batch)
        edp[density] = costs.energy_pj * costs.latency_cycles
        assert (edp[density] / 1e6 >= bound_edp("conv4", density)).all()
    ours = [({1.0: one, 0.1: other}, 0.1) for one, other in zip(edp[1.0], edp[0.1], strict=True)]
    assert steep_note(ours).startswith("0 of 300 ")
    theirs = [(dict(zip(TESTED, column, strict=True)), 0.5) for column in PUBLISHED["conv3"][:2]]
    assert steep_note(theirs, [0.25]).startswith("1 of 2 ") and "ours at most 0.25" in steep_note(theirs, [0.25])


def test_the_layers_are_those_of_the_table():
    assert {name: layer.macs for name, layer in LAYERS.items()} == {
        "conv3": 16 * 128 * 128 * 28 * 28 * 9, "conv4": 16 * 256 * 256 * 14 * 14 * 9,
        "inception": 16 * 192 * 192 * 27 * 27 * 25, "kqv": 16 * 1024 * 1024 * 512, "attn": 16 * 512 * 1024 * 512,
        "fc": 16 * 4096 * 1024 * 512}


def test_what_is_published_below_the_bound_is_impossible():
    bound = bound_edp("conv4", 0.01)
    judged = [mse_sparse._below(mse_sparse.BELOW2, {"conv4": part * bound}, "{under}", "") for part in (0.9, 1.1)]
    assert [(each.verdict, each.ours) for each in judged] == [
        ("impossible as published", "1 of 1"), ("holds", "0 of 1")]
