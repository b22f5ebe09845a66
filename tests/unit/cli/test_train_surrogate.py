"""``tilewright train-surrogate``: a network from the command line, and what it refuses."""

import json

import pytest

pytest.importorskip("torch")


def test_a_network_is_trained_told_about_written_and_used(tilewright, tmp_path):
    done = tilewright("train-surrogate", "--arch", "accel-a", "--samples", "2k", "--layers", "5", "--hidden", "32",
                       "--epochs", "2", "--test-arch", "accel-b", "--out", "net.pt", "--json", "told.json")
    assert done.code == 0
    assert "2,000 mappings of 5 layers on accel-a" in done.out and "epoch   2" in done.out
    assert "accel-b, other layers" in done.out
    told = json.loads((tmp_path / "told.json").read_text())
    assert len(told["curve"]) == 2 and told["samples"] == 2000
    done = tilewright("map", "conv:K=32,C=32,P=14,Q=14,R=3,S=3", "--arch", "accel-a", "--mapper", "mind-mappings",
                   "--option", "surrogate=net.pt", "--budget", "100", "--no-store")
    assert done.code == 0, done.err


@pytest.mark.parametrize(("words", "told"), [
    (["--samples", "many"], "--samples"), (["--samples", "0"], "--samples"), (["--hidden", "a,b"], "--hidden"),
    (["--hidden", "0"], "hidden"), (["--network", "nosuch"], "nosuch"), (["--test-arch", "nosuch"], "nosuch"),
])
def test_wrong_input_is_one_message(tilewright, words, told):
    done = tilewright("train-surrogate", "--arch", "accel-a", "--out", "net.pt", "--layers", "2", *words)
    assert done.code == 2
    assert told in done.err and "Traceback" not in done.err


def test_without_pytorch_it_says_how_to_install_it(tilewright, monkeypatch):
    monkeypatch.setattr("tilewright.base.extras.find_spec", lambda name: None)
    done = tilewright("train-surrogate", "--arch", "accel-a", "--out", "net.pt")
    assert done.code == 2 and "pip install torch==" in done.err
