"""``tilewright explore``: what choices are worth, kept searches, ends before the end, and what is refused."""

import csv
import json
import os
import re
import signal
import threading

import pytest

import tilewright as tw
from tilewright.api import explore
from tilewright.codesign import Exploration, Outcome, pareto, with_flexibility
from tilewright.hardware import flexibility_overhead, preset
from tilewright.report import SearchBar, exploration_sheet, exploration_tree
from tilewright.search import search_flexible
from tilewright.workload import zoo

ONE = "conv:K=40,C=24,P=14,Q=14,R=3,S=3"


def test_choices_are_compared_with_the_first_at_equal_samples(tilewright, tmp_path):
    found = tilewright("explore", ONE, "ncf", "-a", "flexion", "--choices", "0000,FullFlex-1000,1111", "-b", "100",
                       "--json", "e.json")
    assert found.code == 0, found.err
    data = json.loads((tmp_path / "e.json").read_text())
    assert [choice["name"] for choice in data["choices"]] == ["InFlex-0000", "FullFlex-1000", "FullFlex-1111"]
    assert data["base"] == "0000" and data["pareto"][0] == "0000"
    first, *_, last = data["choices"]
    assert (first["worth"], first["added_um2"]) == (1, 0)
    machine = preset("flexion")
    whole = tw.load_accelerator("flexion").flexibility.of_class("1111")
    assert last["added_um2"] == pytest.approx(flexibility_overhead(with_flexibility(machine, whole)).total_um2)
    outcome = next(one for one in data["outcomes"] if one["choice"] == "0000" and one["network"] == "conv")
    assert outcome["latency_cycles"] == search_flexible(tw.pick_operator(ONE), machine, budget=2).cost.latency_cycles
    for one in data["outcomes"]:
        base = next(o for o in data["outcomes"] if (o["network"], o["choice"]) == (one["network"], "0000"))
        assert one["over_base"] == one["latency_cycles"] / base["latency_cycles"]
    assert "Runtime over that of InFlex-0000" in found.out
    assert re.search(r"FullFlex-1111 .* \+1\.529%", found.out)


def test_a_second_run_takes_over_what_the_first_kept(tilewright, tmp_path, kept_rows):
    words = ("explore", ONE, "-a", "flexion", "--choices", "0000,0010", "-b", "100", "--out", "kept", "--seeds", "2")
    first = tilewright(*words)
    assert first.code == 0, first.err
    files = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert files == ["choices.csv", "explore.html", "explore.json", "figures.csv", "results.sqlite"]
    kept = kept_rows(tmp_path / "kept/results.sqlite")
    assert len(kept) == 4
    again = tilewright(*words)
    assert again.out == first.out
    assert kept_rows(tmp_path / "kept/results.sqlite") == kept
    rows = list(csv.DictReader((tmp_path / "kept/choices.csv").read_text().splitlines()))
    assert [row["Choice"] for row in rows] == ["InFlex-0000", "FullFlex-0010"]
    assert "tilewright explore" in (tmp_path / "kept/explore.html").read_text()
    tilewright(*words[:-1], "3")
    assert len(kept_rows(tmp_path / "kept/results.sqlite")) == 6


def test_what_is_complete_is_told_where_a_run_ends_early(tmp_path):
    stop, ended = threading.Event(), []

    def told(standing):
        ended.append((standing.done, standing.total))
        if standing.done == 2:
            stop.set()

    whole = explore([ONE], "flexion", "0000,0010,1111", budget=100, workers=1, out=tmp_path)
    assert whole.choices == ("0000", "0010", "1111")
    part = explore([ONE], "flexion", "0000,0010,1111", budget=100, workers=1, stop=stop, told=told)
    assert ended == [(0, 3), (1, 3), (2, 3)]
    assert part.choices == ("0000", "0010")
    assert part.outcomes == whole.outcomes[:2]
    stop.set()
    assert explore([ONE], "flexion", "0000,0010", budget=100, stop=stop).outcomes == ()


def test_ctrl_c_shows_what_is_complete(tilewright, tmp_path, monkeypatch):
    plain = SearchBar.update

    def update(bar, standing):
        plain(bar, standing)
        if standing.done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SearchBar, "update", update)
    words = ("explore", ONE, "-a", "flexion", "--choices", "0000,1111", "-b", "20000", "--workers", "1",
             "--out", "kept")
    found = tilewright(*words)
    assert found.code == 130
    assert "InFlex-0000" in found.out and "FullFlex-1111" not in found.out
    assert "The same command goes on from there" in found.err
    monkeypatch.setattr(SearchBar, "update", plain)
    assert "FullFlex-1111" in tilewright(*words).out


def test_the_median_seed_counts():
    each = [explore(ONE, "flexion", "0000,1111", budget=30, seed=seed).of("conv", "1111").latency_cycles
            for seed in range(3)]
    found = explore(ONE, "flexion", "0000,1111", budget=30, seeds=3)
    assert found.of("conv", "1111").latency_cycles == sorted(each)[1]


def test_machines_that_say_nothing_are_fixed_as_suits_a_network(tilewright):
    bare = tilewright("explore", ONE, "-a", "eyeriss")
    assert (bare.code, bare.out) == (2, "")
    assert "eyeriss.flexibility: must be stated" in bare.err and "--tune NETWORK" in bare.err
    tuned = explore(ONE, "eyeriss", "0000,0100", tuned_for=ONE, budget=64)
    assert tuned.of("conv", "0000").flexibility.class_bits == "0000"
    rigid = explore(ONE, "flexion", "0000", budget=64).of("conv", "0000").latency_cycles
    assert explore(ONE, "flexion", "0000", tuned_for=ONE, budget=64).of("conv", "0000").latency_cycles <= rigid


def test_what_the_file_states_is_a_choice_and_all_are_sixteen():
    found = explore(ONE, "flexion", ["stated", "0000"], budget=64)
    stated, fixed = found.outcomes
    assert (stated.choice, fixed.choice) == ("stated", "0000")
    assert (stated.flexibility, stated.latency_cycles) == (fixed.flexibility, fixed.latency_cycles)
    assert len(explore("matmul:M=4,N=4,K=4", "flexion", budget=64).choices) == 16


def test_what_has_no_mapping_is_told_and_does_not_pay():
    def outcome(choice, latency, added):
        flexibility = preset("flexion").flexibility.of_class(choice)
        return Outcome("net", choice, flexibility, latency, latency, 100.0 + added, added, 1)

    found = Exploration((outcome("0000", 8.0, 0.0), outcome("0001", float("inf"), 1.0), outcome("0010", 4.0, 2.0)),
                        "0000", "latency")
    assert pareto(found) == ("0000", "0010")
    rows = exploration_sheet(found, "asked").tables[0].rows
    assert [row[1] for row in rows] == ["1.00", "no mapping", "0.500"]
    assert [choice["worth"] for choice in exploration_tree(found, "asked")["choices"]] == [1.0, None, 0.5]
    json.dumps(exploration_tree(found, "asked"), allow_nan=False)


@pytest.mark.parametrize(("words", "message"), [
    (("--choices", "0000,12"), "class: must be one of 0000, 0001"),
    (("--choices", "0000,InFlex-0000"), "choices: must differ; Got 'InFlex-0000'"),
    (("--choices", ""), "class: must be one of 0000, 0001"),
    (("--objective", "area"), "objective: must be one of latency, energy, edp; Got 'area'"),
    (("--mapper", "none"), "mapper: must be a known mapper; Got 'none'"),
    (("--budget", "0"), "budget: must be a positive integer; Got 0"),
    (("--seeds", "0"), "seeds: must be a positive integer; Got 0"),
    (("--tune", "nowhere"), "network: must be a known network; Got 'nowhere'"),
    ((ONE,), "networks: must differ in name"),
    (("--json", "."), "must be"),
    (("--out", "file"), "--out: must be a folder that can be written"),
])
def test_bad_input_is_one_message(tilewright, tmp_path, words, message):
    (tmp_path / "file").write_text("")
    found = tilewright("explore", ONE, "-a", "flexion", *words)
    assert (found.code, found.out) == (2, "")
    assert message in found.err and found.err.count("\n") == 1


def test_several_networks_have_a_mean():
    found = explore([ONE, zoo.load("ncf")], "flexion", "0000,1000", budget=64)
    sheet = exploration_sheet(found, "asked")
    assert sheet.tables[0].columns[1:4] == ("runtime conv", "runtime ncf", "runtime mean")
    assert sheet.plots[0].data[1]["y"] == [1.0, found.worth("1000")]
