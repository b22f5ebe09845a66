"""``tilewright train-fuser``: a model that fuses layers, from the command line, and what it refuses."""

import json

import pytest

pytest.importorskip("torch")

SLOW = "dnnfuser:DRAM.bandwidth=900MB/s"


def test_from_the_command_line(tilewright, tmp_path):
    words = ("train-fuser", "alexnet", "--arch", SLOW, "--batch", "8", "--memory", "1MB,2MB", "--steps", "3",
             "--out", "one.pt")
    done = tilewright(*words, "--test-memory", "1.5MB", "--kind", "lstm", "--json", "told.json")
    assert done.code == 0, done.err
    assert "2 strategies of exact on dnnfuser" in done.out and "1.5 MB" in done.out
    told = json.loads((tmp_path / "told.json").read_text())
    assert [test["seen"] for test in told["tests"]] == [True, True, False] and len(told["losses"]) == 3
    assert all(test["speedup"] <= test["best_speedup"] * (1 + 1e-9) for test in told["tests"])
    again = tilewright(*words, "--kind", "lstm", "--begin", "one.pt", "--teacher", "g-sampler", "--demonstrations", "2")
    assert again.code == 0, again.err


@pytest.mark.parametrize(("words", "told"), [
    (["--memory", "some"], "memory"), (["--steps", "0"], "steps"), (["--kind", "rnn"], "kind"),
    (["--teacher", "nosuch"], "nosuch"), (["--begin", "nosuch.pt"], "begin"), (["--memory", "1B"], "memory"),
    (["--batch", "0"], "batch"), (["--memory", ""], "memory: must be one size"), (["--seed", "-1"], "seed")])
def test_wrong_input_is_one_message(tilewright, words, told):
    done = tilewright("train-fuser", "alexnet", "--arch", SLOW, "--batch", "8", "--out", "net.pt", "--steps", "1",
                      *words)
    assert done.code == 2 and told in done.err and "Traceback" not in done.err
