"""``tilewright validate``: the table, its files, and what ends with which code."""

import json

import pytest

from tilewright.validation import Summary, running


def test_a_set_is_run_and_shown(tilewright):
    done = tilewright("validate", "gemmini")
    assert done.code == 0
    row = next(line for line in done.out.splitlines() if "cycles in rounds" in line)
    assert row.split()[:2] == ["gemmini", "RTL"]
    assert row.endswith("as accepted")
    assert "gemmini-149" not in done.out


def test_every_case_is_shown_where_asked_for(tilewright):
    done = tilewright("validate", "gemmini", "--cases")
    line = next(line for line in done.out.splitlines() if line.startswith("gemmini-149"))
    assert "6,597" in line


def test_sets_are_listed(tilewright):
    done = tilewright("validate", "--list")
    assert done.code == 0
    assert "timeloop-random" in done.out and "FireSim" in done.out


def test_an_error_that_has_grown_ends_with_1(tilewright, monkeypatch):
    strict = {"gemmini": {name: Summary(74, 0.01, 0.01, 1.0) for name in ("cycles in rounds", "cycles, dense model")}}
    monkeypatch.setattr(running, "read_accepted", lambda: strict)
    done = tilewright("validate", "gemmini")
    assert done.code == 1
    assert "Errors that have grown: gemmini (cycles in rounds); gemmini (cycles, dense model)." in done.out


def test_a_new_set_ends_with_1_until_its_errors_are_accepted(tilewright, monkeypatch, tmp_path):
    monkeypatch.setattr(running, "read_accepted", dict)
    assert tilewright("validate", "gemmini").code == 1
    assert tilewright("validate", "gemmini", "--accept", tmp_path / "accepted.json").code == 0
    assert json.loads((tmp_path / "accepted.json").read_text())["gemmini"]["cycles in rounds"]["cases"] == 74


def test_json_alone_on_standard_output(tilewright):
    done = tilewright("validate", "gemmini", "--json", "-")
    tree = json.loads(done.out)
    assert tree["sets"][0]["name"] == "gemmini"
    assert "Verdict" in done.err


@pytest.mark.parametrize(("words", "message"), [
    (["gemini"], "reference set: must be a known reference set; Got 'gemini'; Did you mean gemmini?"),
    (["gemmini", "gemmini"], "SET: must be named once; Got 'gemmini'"),
    (["gemmini", "--page", "page.md"], "--page: must come without sets and --full"),
    (["--full", "--page", "page.md"], "--page: must come without sets and --full"),
    (["gemmini", "--json", "/proc/none/x.json"], "/proc/none"),
])
def test_wrong_words_end_with_2(tilewright, words, message):
    done = tilewright("validate", *words)
    assert done.code == 2
    assert message in done.err
