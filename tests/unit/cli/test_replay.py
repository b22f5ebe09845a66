"""``tilewright replay``: figures side by side, reasons, and files of cases."""

import json
import re

import pytest

from tilewright.api import replay_effort
from tilewright.hardware import preset
from tilewright.mapping import dataflow
from tilewright.validation.timeloop_random import FILE as CASES
from tilewright.workload import matmul

LAYER = "conv:K=2,C=2,P=4,Q=3,R=3,S=1"
LARGE = "matmul:M=512,N=512,K=512"


@pytest.fixture
def mapping(tilewright, tmp_path):
    file = tmp_path / "mine.yaml"
    tilewright("evaluate", "--dataflow", "row-stationary", "-n", LAYER, "-a", "eyeriss", "--write", file)
    return str(file)


def test_differing_figures_are_shown_with_the_assumption_behind_them(tilewright, mapping):
    done = tilewright("replay", mapping, "--network", LAYER, "--arch", "eyeriss")
    row = next(line for line in done.out.splitlines() if line.startswith("GLB.O.drains"))
    assert row.split()[2:] == ["0", "no_drain_reads"]
    assert "a tile sent back to its parent costs the memory that held it no read" in done.out
    assert "GLB.I.reads" not in done.out
    assert "GLB.I.reads" in tilewright("replay", mapping, "--network", LAYER, "--arch", "eyeriss", "--all").out


def test_three_conventions_side_by_side(tilewright, mapping):
    done = tilewright("replay", mapping, "-n", LAYER, "-a", "eyeriss", "--as", "timeloop", "--as", "maestro", "--as",
                      "tilewright")
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines() if "." in line.split(" ")[0]}
    assert rows["GLB.O.drains"][:2] == ["0", "0"]
    assert "no_drain_reads" in rows["GLB.O.drains"][3]
    assert "psum_read_every_mac" in rows["Spads.O.reads"]
    assert "psum_read_every_mac: the innermost memory reads a partial sum for every multiply-accumulate" in done.out


def test_large_nests_are_replayed_without_reasons_and_say_so(tilewright, monkeypatch):
    monkeypatch.setattr("tilewright.api.replaying.QUICK", 10_000)
    layer = ("--network", "matmul:M=64,N=64,K=64", "--arch", "tpu-like")
    assert tilewright("evaluate", "--dataflow", "weight-stationary", *layer, "--write", "large.yaml").code == 0
    done = tilewright("replay", "large.yaml", *layer)
    assert done.code == 0, done.err
    assert "too large to tell why: it must have at most 50,000 multiply-accumulates, not 262,144" in done.out
    assert re.fullmatch(r"Walking [\d,]{6,} tiles as timeloop does: some \d+ s\.\n", done.err)


def test_one_convention_alone_shows_all_its_figures(tilewright):
    layer = ("--network", "matmul:M=64,N=64,K=64", "--arch", "tpu-like")
    tilewright("evaluate", "--dataflow", "weight-stationary", *layer, "--write", "large.yaml")
    done = tilewright("replay", "large.yaml", *layer, "--as", "tilewright")
    head, _, *rows = done.out.splitlines()
    assert head.split() == ["tilewright"] and {"DRAM.I.reads", "energy_pj"} <= {row.split()[0] for row in rows}
    assert "why" not in done.out and all(len(row.split()) == 2 for row in rows)


def test_a_long_replay_says_first_how_much_it_walks():
    machine = preset("tpu-like")
    for size, most in ((64, 0), (160, 100_000)):
        layer = matmul("product", m=size, n=size, k=size)
        told = list(replay_effort(layer, machine, dataflow("weight-stationary", layer, machine), ("timeloop",)))
        assert len(told) == (most > 0)
        assert all(40_000 < int(text.split()[1].replace(",", "")) < most for text in told)


def test_the_same_as_json(tilewright, mapping, tmp_path):
    file = tmp_path / "out.json"
    tilewright("replay", mapping, "--network", LAYER, "--arch", "eyeriss", "--json", str(file))
    record = json.loads(file.read_text())
    assert record["conventions"] == ["tilewright", "timeloop"]
    lines = {line["name"]: line for line in record["lines"]}
    assert lines["Spads.O.drains"]["because"] == ["no_drain_reads"]
    assert set(lines["energy_pj"]["because"]) == {"no_drain_reads", "no_network_energy"}
    assert record["replays"]["timeloop"]["counts"]["GLB.O"]["drains"] == 0


def test_cases_are_replayed_line_by_line(tilewright, tmp_path):
    first = CASES.read_text().splitlines()[0]
    file = tmp_path / "cases.jsonl"
    file.write_text(first + "\n")
    record = json.loads(tilewright("replay", "--cases", str(file), "--as", "timeloop", "--as", "tilewright").out)
    theirs = json.loads(first)["timeloop"]
    assert record["id"] == "perfect-2"
    assert record["replays"]["timeloop"]["energy_pj"] == pytest.approx(theirs["energy_pj"])
    reads = next(line for line in record["lines"] if line["name"] == "Glb.W.reads")
    assert reads["figures"] == [48, 192]
    assert "neighbour_links" in reads["because"]


@pytest.mark.parametrize(("words", "message"), [
    (["replay"], "MAPPING: must be given, or --cases in its place"),
    (["replay", "--cases", "x.jsonl", "--arch", "eyeriss"], "--cases: must stand alone"),
    (["replay", "--cases", str(CASES), "--as", "zigzag"],
     "--as: must be one of tilewright, timeloop, maestro; Got 'zigzag'"),
    (["replay", "last", "--arch", "eyeriss"], "must come with a mapping file"),
])
def test_wrong_words_are_named(tilewright, words, message):
    done = tilewright(*words)
    assert done.code == 2
    assert message in done.err


def test_a_nest_too_large_to_walk_is_refused_in_one_message(tilewright, tmp_path):
    file = tmp_path / "large.yaml"
    tilewright("evaluate", "--dataflow", "weight-stationary", "-n", LARGE, "-a", "tpu-like", "--write", file)
    done = tilewright("replay", file, "-n", LARGE, "-a", "tpu-like", "--as", "maestro")
    assert done.code == 2
    assert "words to be replayed" in done.err
    assert "Walking" not in done.err
