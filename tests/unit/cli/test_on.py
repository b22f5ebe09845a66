"""``--on``: the same results in other processes as on threads, kept and taken up alike."""

import pytest

from tilewright.api import open_run


def found(place):
    return [(layer.name, layer.mapping, layer.search.score) for layer in open_run(place).record.layers]


def test_layers_are_mapped_alike_in_processes_and_taken_up_there(tilewright, machine, tmp_path):
    words = ("map", "ncf", "-a", machine, "--no-store", "-m", "gamma", "--workers", "1")
    for on in ("threads", "processes"):
        there = (*words, "--on", on, "--checkpoint", f"kept-{on}")
        assert tilewright(*there, "-b", "150", "--json", "first.json").code == 0
        assert len(list((tmp_path / f"kept-{on}").glob("*.npz"))) == 4
        assert tilewright(*there, "-b", "199", "--resume", "--json", f"{on}.json").code == 0
    assert found(tmp_path / "processes.json") == found(tmp_path / "threads.json")
    record = open_run(tmp_path / "processes.json").record
    assert [layer.search.samples for layer in record.layers] == [199] * 4
    assert "--on" not in record.request.command


def test_an_exploration_comes_out_alike(tilewright):
    words = ("explore", "conv:K=40,C=24,P=14,Q=14,R=3,S=3", "-a", "flexion", "--choices", "0000,1111", "-b", "100")
    near, far = (tilewright(*words, "--on", on, "--workers", "1") for on in ("threads", "processes"))
    assert (near.code, far.code, near.out) == (0, 0, far.out)


@pytest.mark.parametrize(("words", "message"), [
    (("map", "ncf", "-a", "edge-s2", "--no-store"), "--on: must be auto, threads, processes, ray, or ray://HOST:PORT"),
    (("reproduce", "ruby-fig4"), "--on: must be auto, threads, processes, ray, or ray://HOST:PORT"),
])
def test_a_place_that_is_none_is_one_message(tilewright, words, message):
    refused = tilewright(*words, "--on", "slurm")
    assert refused.code == 2 and message in refused.err


@pytest.mark.slow
def test_a_reproduction_comes_out_alike(tilewright, tmp_path):
    for on in ("threads", "processes"):
        assert tilewright("reproduce", "ruby-fig4", "--out", on, "--on", on).code == 0
    claims = [(tmp_path / on / "ruby-fig4" / "quick.claims.csv").read_text() for on in ("threads", "processes")]
    assert claims[0] == claims[1]
