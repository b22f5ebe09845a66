"""``tilewright compare``: tables, files, kept searches, ends before the end, what is refused."""

import csv
import json
import os
import re
import signal

import pytest

import tilewright as tw
from tilewright.codesign import with_flexibility
from tilewright.report import SearchBar
from tilewright.search.studies import compare

ONE = "conv:K=16,C=8,P=14,Q=14,R=3,S=3"


def test_mappers_are_compared_in_tables_json_and_a_page(tilewright, tmp_path):
    found = tilewright("compare", ONE, "-a", "edge-s1", "--mappers", "gamma,random:batch=50", "-b", "400",
                       "--seeds", "6", "--json", "c.json", "--html", "c.html")
    assert found.code == 0, found.err
    data = json.loads((tmp_path / "c.json").read_text())
    assert [one["name"] for one in data["mappers"]] == ["gamma", "random:batch=50"]
    for one in data["mappers"]:
        scores = sorted(each["score"] for each in one["searches"])
        assert one["final"]["median"] == (scores[2] + scores[3]) / 2
        assert (one["final"]["low"], one["final"]["high"]) == (scores[0], scores[-1])
        assert one["gap"] == pytest.approx(one["final"]["median"] / data["bound"] - 1)
        assert min(scores) >= data["bound"]
    pair, = data["pairs"]["samples"]
    one, two = ([each["score"] for each in mapper["searches"]] for mapper in data["mappers"])
    assert pair["wins"] == pytest.approx(sum(a < b for a in one for b in two) / 36)
    assert pair["p"] == pytest.approx(compare(one, two).p)
    assert "At 400 samples: gamma has the lowest median; it is better than random:batch=50" in found.out
    assert re.search(r"gamma +random:batch=50 .* 9\d\.\d % +0\.0\d+ +gamma", found.out)
    page = (tmp_path / "c.html").read_text()
    assert "Best score over samples" in page and "Best score over seconds" in page


def test_a_folder_has_all_files_and_keeps_searches(tilewright, tmp_path, kept_rows):
    words = ("compare", ONE, "-a", "edge-s1", "-m", "gamma,random", "-b", "200", "--seeds", "2", "--out", "kept")
    first = tilewright(*words)
    assert first.code == 0, first.err
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "compare.html", "compare.json", "curves.csv", "mappers.csv", "pairs-samples.csv", "pairs-seconds.csv",
        "results.sqlite"]
    kept = kept_rows(tmp_path / "kept/results.sqlite")
    assert len(kept) == 4
    again = tilewright(*words)
    assert again.out == first.out
    assert kept_rows(tmp_path / "kept/results.sqlite") == kept
    rows = list(csv.DictReader((tmp_path / "kept/curves.csv").read_text().splitlines()))
    assert {row["Mapper"] for row in rows} == {"gamma", "random"}
    assert {row["Clock"] for row in rows} == {"samples", "seconds"}


def test_one_mapper_and_one_seed_are_told_without_pairs(tilewright):
    found = tilewright("compare", ONE, "-a", "edge-s1", "-m", "gamma", "-b", "100", "--seeds", "1")
    assert found.code == 0, found.err
    assert "with a chance of 0.0 %" in found.out and "Every pair" not in found.out


def test_ctrl_c_shows_the_seeds_that_are_complete(tilewright, monkeypatch):
    plain = SearchBar.update

    def update(bar, standing):
        plain(bar, standing)
        if standing.done == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SearchBar, "update", update)
    found = tilewright("compare", ONE, "-a", "edge-s1", "-m", "gamma,random", "-b", "3000", "--seeds", "4")
    assert found.code == 130
    assert "1 seed" in found.out
    assert "With --out DIR a run can go on later." in found.err


@pytest.mark.parametrize("words", [
    ("compare", ONE, "-a", "edge-s1", "-m", "gamma,random", "-b", "3000"),
    ("sweep", ONE, "-a", "edge-s2", "--vary", "SG.capacity=8KB,16KB", "-b", "300"),
    ("fuse", "bert-base:sequence=512", "-a", "flat-edge"),
    ("fuse", "ncf", "-a", "edge-s2", "--space", "trees", "-b", "50")])
@pytest.mark.parametrize(("out", "told"), [
    ((), "With --out DIR a run can go on later."), (("--out", "kept"), "The same command goes on from there.")])
def test_ctrl_c_before_anything_is_complete_says_so_and_how_to_go_on(tilewright, monkeypatch, words, out, told):
    def update(bar, standing):
        raise KeyboardInterrupt  # as a Ctrl-C before the first job; one in the background gets no signal

    monkeypatch.setattr(SearchBar, "update", update)
    found = tilewright(*words, *out)
    assert (found.code, found.out) == (130, "")
    assert found.err == f"Stopped before the end; nothing is complete. {told}\n"


@pytest.mark.parametrize(("words", "message"), [
    (("-m", "nobody"), "mapper: must be a known mapper; Got 'nobody'"),
    (("-m", "gamma:crossover"), "mappers.gamma: must give options as NAME=VALUE"),
    (("-m", "gamma,gamma"), "mappers: must differ"),
    (("-b", "soon"), "budget: must be a number of samples or a time"),
    (("--seeds", "0"), "seeds: must be from 1 to 100; Got 0"),
    (("--json", "."), "must be"),
])
def test_what_cannot_be_is_refused_with_exit_code_2(tilewright, words, message):
    found = tilewright("compare", ONE, "-a", "edge-s1", *words)
    assert (found.code, found.out) == (2, "")
    assert message in found.err


def test_a_layer_must_be_chosen(tilewright):
    found = tilewright("compare", "resnet18", "-a", "eyeriss")
    assert found.code == 2
    assert "layer: must be given" in found.err


def test_machines_whose_flexibility_is_a_union_of_spaces_are_refused():
    machine = tw.load_accelerator("flexion")
    loose = with_flexibility(machine, machine.flexibility.of_class("0010"))
    with pytest.raises(tw.InputError, match=r"flexion.flexibility: must leave one map space to be studied; Got \d+"):
        tw.compare(ONE, loose, mappers="random", budget=10, seeds=1)
