"""``tilewright design``: what it finds and writes, ends before the end, what is kept, and what is refused."""

import csv
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.codesign import DESIGNERS
from tilewright.cost.reference import walk
from tilewright.hardware.presets import ZOO
from tilewright.report import SearchBar, design_sheet
from tilewright.search import METRICS
from tilewright.store import Store

ONE = "conv:K=12,C=8,P=7,Q=7,R=3,S=3"
TWO = "matmul:M=24,N=16,K=20"
WORDS = ("design", ONE, "--arch", "edge-s2", "--within", "area=0.02mm2")
DESIGN = """
design:
  vary:
    SG.capacity_bytes: {from: 64, to: 8 kB}
    PEs.instances: {from: 1, to: 64}
    SL.capacity_bytes: [64, 128, 256]
"""


def plain(path):
    """Return what a run wrote, without what depends on the clock."""
    tree = json.loads(path.read_text())
    del tree["seconds"], tree["command"]
    return {**tree, "history": [(step["samples"], step["score"]) for step in tree["history"]]}


@pytest.fixture
def space(tmp_path):
    """Return a function that writes the file of a machine with another design section."""
    def write(section=DESIGN, machine=None):
        path = tmp_path / "space.yaml"
        path.write_text((machine or (ZOO / "edge-s2.yaml").read_text()) + section)
        return path

    return write


def test_the_machine_and_its_mappings_run_under_the_other_verbs(tilewright, tmp_path):
    found = tilewright(*WORDS, "-b", "100", "--write", "best.yaml", "--write-mappings", "maps", "--json", "d.json",
                       "--report", "d.html")
    assert found.code == 0, found.err
    tree = json.loads((tmp_path / "d.json").read_text())
    machine = tw.load_accelerator(tmp_path / "best.yaml")
    assert machine.area_um2 == pytest.approx(sum(tree["machine"]["areas_um2"].values()))
    assert machine.area_um2 <= 20_000
    assert tree["samples"] <= 100
    assert tree["bound"] <= tree["score"] == tree["machine"]["latency_cycles"]
    evaluated = tilewright("evaluate", "maps/conv.yaml", "--network", ONE, "--arch", "best.yaml", "--json", "e.json")
    assert evaluated.code == 0, evaluated.err
    layer, = tree["layers"]
    assert f"{layer['latency_cycles']:,} cycles" in evaluated.out
    walked = walk(tw.pick_operator(ONE), machine, tw.load_mapping(tmp_path / "maps/conv.yaml", tw.pick_operator(ONE),
                                                                  machine))
    assert (int(walked.latency_cycles), walked.energy_pj) == (layer["latency_cycles"], pytest.approx(
        layer["energy_pj"]))
    assert tilewright("map", ONE, "--arch", "best.yaml", "--budget", "50", "--no-store").code == 0
    for part in ("with any mappings, can do", "Areas are of memories and multiply-accumulate units", "0.0200 mm2",
                 "How it was found", "capacity_bytes"):
        assert part in found.out, part
    page = (tmp_path / "d.html").read_text()
    assert all(f'data-figure="{name}"' in page for name in ("front", "convergence", "areas"))
    assert "The mapping as YAML" in page


def test_designs_go_to_the_store_with_the_command_that_repeats_them(tilewright, tmp_path):
    first = tilewright(*WORDS, f"{TWO}*0.5", "-b", "100", "--front", "latency,energy", "--json", "d.json")
    assert first.code == 0, first.err
    with Store(tmp_path / "runs.sqlite") as store:
        runs = [store.get(run.id) for run in store.runs()]
    assert sorted(run.network.name for run in runs) == ["conv", "matmul"]
    shown = tilewright("show", runs[0].id, "--command").out
    shown = shlex.split(shown)
    assert shown[:4] == ["tilewright", "design", ONE, f"{TWO}*0.5"]
    again = tilewright(*shown[1:], "--json", "again.json", "--no-store")
    assert again.code == 0, again.err
    assert plain(tmp_path / "again.json") == plain(tmp_path / "d.json")
    machine = runs[0].accelerator
    assert tw.load_accelerator(machine.definition + "\n").area_um2 == pytest.approx(machine.area_um2)
    assert "edge-s2-designed" in tilewright("show", runs[0].id).out


def test_what_is_weighted_is_the_sum_of_networks(tmp_path):
    both = tw.design({ONE: 2.0, TWO: 0.5}, "edge-s2", "area=0.02mm2", samples=100, store=False)
    with pytest.raises(tw.InputError, match="samples: must be left out where there is a budget"):
        tw.design(ONE, "edge-s2", "area=0.02mm2", samples=400, budget=400)
    conv, product = (both.layers[name].cost for name in ("conv/conv", "matmul/matmul"))
    assert both.score == pytest.approx(2 * conv.latency_cycles + 0.5 * product.latency_cycles)
    assert both.figures.energy_pj == pytest.approx(2 * conv.energy_pj + 0.5 * product.energy_pj)
    same = tw.design([f"{ONE}*2", f"{TWO}*.5"], "edge-s2", "area=0.02mm2", budget=100, store=False)
    assert same.result.chosen == both.result.chosen
    files = {path.name for path in (both.write(tmp_path / "m.yaml", tmp_path / "maps"), *(tmp_path / "maps").iterdir())}
    assert files == {"m.yaml", "conv_conv.yaml", "matmul_matmul.yaml"}


def test_the_front_holds_what_no_other_machine_tried_beats():
    found = tw.design(ONE, "edge-s2", "area=0.02mm2,power=25mW", budget=200, front="latency,energy,area", store=False)
    assert found.result.problem.objective == "edp-area"
    points = found.points()
    values = np.array([[one.figures.of(name, found.machine) for name in found.front] for one in points])
    assert len(values) > 2
    for one in values:
        assert not ((values <= one).all(axis=1) & (values < one).any(axis=1)).any()
    assert (METRICS["power"].of(values[:, 0], values[:, 1], 0.0, 200.0) <= 25).all()
    assert values[:, 0].min() <= found.figures.latency_cycles
    tree = found.plain["front"]
    assert [point["values"] for point in tree["points"]] == values.tolist()
    one = points[0]  # its mappings cost what it says, on its machine
    machine = found.result.problem.machine(one.chosen)
    nest = one.mapping(found.result.problem, 0).mapping(0, found.result.problem.layers[0].sizes)
    assert walk(found.result.problem.layers[0], machine, nest).energy_pj == pytest.approx(one.figures.energy_pj)
    near = replace(found.result, tried=(*found.result.tried, *(replace(one, fronts=tuple(
        replace(front, latency=front.latency * (1 - 1e-9), energy=front.energy * (1 + 1e-9)) for front in one.fronts))
        for one in found.result.tried if one.fronts is not None)))
    (table,) = (table for table in replace(found, result=near).sheet.tables if table.name == "front")
    assert len(set(table.rows)) == len(table.rows) < len(near.front(found.front))  # what reads alike is one row
    with pytest.raises(tw.InputError, match="two or more"):
        tw.design(ONE, "edge-s2", "area=0.02mm2", budget=100, store=False).points()


@pytest.mark.parametrize("method", ["digamma", "random"])
def test_every_method_leaves_fixed_hardware_as_it_is(method):
    found = tw.design(TWO, "edge-s2", fix="hardware", method=method, budget=60, store=False)
    ours, theirs = found.machine, tw.load_accelerator("edge-s2")
    assert [(memory.capacity_bytes, memory.area_um2, memory.energy) for memory in ours.memories] == [
        (memory.capacity_bytes, memory.area_um2, memory.energy) for memory in theirs.memories]
    assert ours.compute_instances == theirs.compute_instances
    assert "No mappings on this machine can do" in found.verdict


def test_tensors_pass_memories_in_designs_unless_the_machine_keeps_them(tmp_path, space):
    """Mappings by which tensors pass take less energy than the bound of those by which they stay."""
    once, place = "matmul:M=1,N=256,K=256", tmp_path / "runs.sqlite"
    found = tw.design(once, "edge-s2", fix="hardware", objective="energy", budget=1_000, store=place)
    text = (ZOO / "edge-s2.yaml").read_text()
    kept = tw.design(once, space("", text.replace("kind: sram\n", "kind: sram\n    always: true\n")), fix="hardware",
                     objective="energy", budget=1_000, store=False)
    assert found.bound <= found.score < 0.95 * kept.bound < kept.score
    passing = tw.map(once, arch="edge-s2", objective="energy", budget=3_000, store=False)
    least = sum(layer.cost.energy_pj for layer in passing.layers.values())
    assert found.bound <= least and found.score <= 1.01 * least
    with Store(place) as store:
        (layer,) = store.get(store.runs()[0].id).layers
    assert 0 < layer.bounds.energy_pj <= least
    levels = {name: {level.level: level.keeps for level in one.layers["matmul"].mapping.levels if level.keeps}
              for name, one in (("found", found), ("kept", kept))}
    assert all(len(tensors) == 3 for tensors in levels["kept"].values())
    assert any(len(tensors) < 3 for tensors in levels["found"].values()) or len(levels["found"]) < 3


def test_fixed_hardware_is_searched_as_it_is_and_fixed_mappings_follow_the_dataflow():
    fixed = tw.design(TWO, "edge-s2", fix="hardware", budget=200, store=False)
    for layer in fixed.runs[0].record.layers:
        assert 0 < layer.bounds.energy_pj <= layer.cost.energy_pj
        assert 0 < layer.bounds.latency_cycles <= layer.cost.latency_cycles
    assert fixed.machine.area_um2 == tw.load_accelerator("edge-s2").area_um2
    assert fixed.result.samples > 100
    assert fixed.score <= tw.map(TWO, "edge-s2", objective="latency", budget=20, store=False).latency_cycles
    found = tw.design(ONE, "edge-s2", "area=0.03mm2", fix="mapping=nvdla", budget=200, store=False)
    record = found.layers["conv"]
    assert {dimension for level in record.mapping.levels if level.level == "PEs"
            for dimension, _, _ in level.loops} <= {"K", "C"}
    assert any(level.loops for level in record.mapping.levels if level.level == "PEs")


def test_a_run_that_is_killed_comes_to_the_same_end(tilewright, tmp_path, kept_rows):
    words = [*WORDS, TWO, "-b", "800", "--no-store", "--workers", "1"]
    started = subprocess.Popen([sys.executable, "-m", "tilewright", *words, "--out", "killed"], cwd=tmp_path,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    place, end = tmp_path / "killed/results.sqlite", time.monotonic() + 240
    with started:
        while started.poll() is None and time.monotonic() < end:
            with suppress(sqlite3.OperationalError):  # the table is not there yet
                if place.exists() and len(kept_rows(place)) >= 3:
                    break
            time.sleep(0.02)
        started.send_signal(signal.SIGKILL)
    assert started.returncode == -signal.SIGKILL
    kept = kept_rows(place)
    assert not (tmp_path / "killed/design.json").exists()
    for folder in ("killed", "whole"):
        found = tilewright(*words, "--out", folder)
        assert found.code == 0, found.err
    assert plain(tmp_path / "killed/design.json") == plain(tmp_path / "whole/design.json")
    after = kept_rows(place)
    assert len(kept) < len(after) == len(kept_rows(tmp_path / "whole/results.sqlite"))
    assert all(row in after for row in kept)
    heads = next(csv.reader((tmp_path / "whole/machine.csv").read_text().splitlines()))
    assert heads[0] == "Level"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_keep_what_was_found(tilewright, tmp_path, monkeypatch, number, code):
    update, told = SearchBar.update, []

    def end(bar, standing):
        update(bar, standing)
        if standing.samples >= 500 and not told:
            told.append(standing)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(SearchBar, "update", end)
    found = tilewright(*WORDS, "-b", "20000", "--write", "best.yaml", "--json", "d.json")
    assert found.code == code, found.err
    assert told
    tree = json.loads((tmp_path / "d.json").read_text())
    assert tree["interrupted"]
    assert tree["samples"] < 20_000
    assert tw.load_accelerator(tmp_path / "best.yaml").area_um2 <= 20_000
    assert "Stopped before the end" in found.err
    assert "Stored as run" in found.err


def test_where_nothing_is_within_the_limits_the_nearest_are_told_with_their_cures(tilewright, tmp_path):
    found = tilewright("design", ONE, "--arch", "edge-s2", "--within", "area=0.02mm2,power=0.1mW", "-b", "80",
                       "--json", "d.json", "--report", "d.html", "--write", "best.yaml")
    assert found.code == 1, found.err
    assert "No machine within the limits was found" in found.out
    assert "within it with a clock of" in found.out
    assert not (tmp_path / "best.yaml").exists()
    tree = json.loads((tmp_path / "d.json").read_text())
    assert (tree["machine"], tree["score"], tree["layers"]) == (None, None, [])
    over = [float(one["why"][0].split()[1].removesuffix("mW")) for one in tree["rejected"]]
    assert over == sorted(over) and over
    assert "over a limit" in (tmp_path / "d.html").read_text()


def test_a_slower_clock_cures_power():
    found = tw.design(ONE, "edge-s2", "area=0.02mm2,power=0.1mW", budget=100, store=False)
    with pytest.raises(tw.InputError, match="must have been found"):
        _ = found.machine
    one = found.result.rejected[0]
    told, = found.result.violations(one)
    clock = float(told.split("clock of ")[1].split()[0])
    assert METRICS["power"].of(one.figures.latency_cycles, one.figures.energy_pj, 0, clock) == pytest.approx(0.1, 1e-3)


def test_the_ranges_of_a_file_hold(tilewright, tmp_path, space):
    found = tilewright("design", ONE, "--arch", space(), "--within", "elements=9,bytes=6kB", "-b", "80", "--json",
                       "d.json", "-o", "edp")
    assert found.code == 0, found.err
    tree = json.loads((tmp_path / "d.json").read_text())
    numbers = tree["machine"]["numbers"]
    assert numbers["PEs.instances"] <= 9
    assert numbers["SL.capacity_bytes"] in (64, 128, 256)
    assert numbers["SG.capacity_bytes"] + numbers["PEs.instances"] * numbers["SL.capacity_bytes"] <= 6000
    assert tree["within"] == {"elements": 9, "bytes": 6000}
    assert tw.load_design_space(space()).ranges["PEs", "instances"].high == 64


def test_what_follows_from_a_number_follows_in_the_design(space):
    found = tw.design(TWO, space("""
design:
  vary:
    SG.bandwidth_words_per_cycle.read: [4, 8, 16]
    SL.capacity_bytes: [64, 128]
    PEs.instances: [4, 8]
  follow:
    SG.bandwidth_words_per_cycle.write: {of: SG.bandwidth_words_per_cycle.read, times: 0.5}
"""), "elements=8", budget=60, store=False)
    ports = found.machine.level("SG").bandwidth
    assert ports.read in (4, 8, 16)
    assert ports.write == ports.read / 2


def test_what_was_asked_is_told_in_the_sheet():
    found = tw.design(ONE, "edge-s2", "area=0.02mm2", budget=100, store=False)
    sheet = design_sheet(found.result, [run.record for run in found.runs], found.networks, (), "command")
    figures = {row[0]: row[1:] for row in sheet.tables[1].rows}
    assert figures["Area"][1] == "0.0200 mm2"
    assert figures["Power"][1:] == ("", "")
    assert sum(row[4] for row in sheet.tables[0].rows[:-1] if row[4]) == pytest.approx(sheet.tables[0].rows[-1][4],
                                                                                     abs=2)
    assert sheet.plots[1].data[1]["y"][0] == found.bound
    assert str(found).startswith("A machine for conv, from edge-s2")
    best = [trace for trace in sheet.plots[0].data if trace["name"] == "the design"]
    assert best[0]["y"] == [found.score]


def test_levels_are_searched_with_and_without_and_the_bound_holds_for_all(tilewright, space, tmp_path):
    words = ("design", ONE, "--within", "area=0.02mm2", "--no-store", "-b")
    found = tilewright(*words, "800", "--arch", space(DESIGN + "  optional: [SL, SG]\n"), "--json", "a.json",
                       "--write", "m.yaml", "--write-mappings", "maps")
    assert found.code == 0, found.err
    assert "With and without optional levels" in found.out
    tree, machine = json.loads((tmp_path / "a.json").read_text()), tw.load_accelerator(tmp_path / "m.yaml")
    assert tree["samples"] <= 800
    operator = tw.pick_operator(ONE)
    nest = tw.load_mapping(tmp_path / "maps/conv.yaml", operator, machine)
    assert walk(operator, machine, nest).latency_cycles == tree["score"]
    whole = (ZOO / "edge-s2.yaml").read_text()
    fewer = whole[:whole.index("  - memory: SL")] + whole[whole.index("compute:"):]
    vary = "\ndesign:\n  vary: {SG.capacity_bytes: {from: 64, to: 8 kB}, PEs.instances: {from: 1, to: 64}}\n"
    for section, text in ((DESIGN, whole), (vary, fewer)):
        alone = tw.design(ONE, space(section, text), "area=0.02mm2", budget=200, store=False)
        assert tree["bound"] <= alone.score * (1 + 1e-9)
        assert tree["score"] <= alone.score


def test_each_layer_by_itself_has_a_machine_of_its_own(tilewright, tmp_path):
    found = tilewright("design", ONE, f"{TWO}*2", "--arch", "edge-s2", "--within", "area=0.02mm2", "-b", "200",
                       "--per-layer", "--json", "a.json", "--report", "a.html", "--write", "stages")
    assert found.code == 0, found.err
    assert "one for each layer, can do with less" in found.out
    tree = json.loads((tmp_path / "a.json").read_text())
    total = 0.0
    for name, weight, words in (("conv/conv", 1, ONE), ("matmul/matmul", 2, TWO)):
        machine = tw.load_accelerator(tmp_path / f"stages/{name.replace('/', '_')}.yaml")
        assert machine.area_um2 <= 20_000
        layer = tree["layers"][name]
        alone = tw.design(words, "edge-s2", "area=0.02mm2", budget=100, store=False)
        assert layer["score"] == weight * alone.score
        operator = tw.pick_operator(words)
        (tmp_path / "nest.yaml").write_text(layer["mapping"])
        nest = tw.load_mapping(tmp_path / "nest.yaml", operator, machine)
        total += weight * walk(operator, machine, nest).latency_cycles
    assert tree["bound"] <= tree["score"] == total
    with Store(tmp_path / "runs.sqlite") as store:
        shown = store.get(store.runs()[0].id).request.command
    assert "--per-layer" in shown


def test_layers_that_were_not_reached_have_no_machine(tilewright, tmp_path, monkeypatch):
    update = SearchBar.update

    def end(bar, standing):
        update(bar, standing)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(SearchBar, "update", end)
        found = tilewright(*WORDS, TWO, "-b", "100", "--per-layer", "--out", "kept")
    assert found.code == 130, found.err
    tree = json.loads((tmp_path / "kept/design.json").read_text())
    assert tree["score"] is None and tree["layers"]["matmul/matmul"]["machine"] is None
    for folder in ("kept", "whole"):
        assert tilewright(*WORDS, TWO, "-b", "100", "--per-layer", "--out", folder, "--no-store").code == 0
    kept, whole = (json.loads((tmp_path / folder / "design.json").read_text()) for folder in ("kept", "whole"))
    assert (kept["score"], kept["bound"]) == (whole["score"], whole["bound"])


def test_methods_are_listed(tilewright):
    shown = tilewright("list", "methods").out
    assert "Branch and bound" in shown
    for name in DESIGNERS:
        assert re.search(rf"^{name} +\S", shown, re.MULTILINE), name


FLAT = (ZOO / "edge-s2.yaml").read_text().replace("    capacity_bytes: 512\n", "    capacity_bytes: 512\n"
                                                  "    area_um2: 3000\n")
VARY = "\ndesign:\n  vary: {%s}\n"
ORDINARY = ("--within", "area=0.02mm2")


@pytest.mark.parametrize(("words", "message"), [
    ((), "--within: must be given"),
    (("--within", "area=2"), "within.area: must have one of the units um2, mm2; Got '2'"),
    (("--within", "aera=2mm2"), "within: must be a known limit; Got 'aera'; Did you mean area?"),
    (("--within", "area"), "within.area: must be a positive number and its unit"),
    (("--within", "area=0mm2"), "within.area: must be positive"),
    (("--within", "area=-2mm2"), "within.area: must be a positive number"),
    (("--within", "area=200um2"), "within.area: must be at least "),
    (("--within", "area=2mm2,area=1mm2"), "each once"),
    (("--within", "elements=3PE"), "within.elements: must have no unit"),
    (("--within", "power=2"), "within.power: must have one of the units uW, mW, W"),
    (("--within", "bytes=4KB"), "within.bytes: must have one of the units"),
    (("--within", "elements=0"), "within.elements: must be positive"),
    ((*ORDINARY, "-o", "power"), "objective: must be one of latency, energy, edp"),
    ((*ORDINARY, "-o", "edp", "--per-layer"), "objective: must be latency or energy where each layer has a machine"),
    ((*ORDINARY, "--front", "latency,area", "--per-layer"), "--front: must be left out with --per-layer"),
    (("--within", "area=200um2", "--per-layer"), "within.area: must be at least "),
    ((*ORDINARY, "-o", "fast"), "objective: must be one of"),
    ((*ORDINARY, "-m", "magic"), "method: must be a known design method; Got 'magic'"),
    ((*ORDINARY, "--option", "speed=3"), "option"),
    ((*ORDINARY, "--option", "speed"), "--option: must be NAME=VALUE"),
    ((*ORDINARY, "-b", "0"), "budget.samples: must be positive"),
    ((*ORDINARY, "-b", "many"), "budget: must be a number of samples or a time"),
    ((*ORDINARY, "-b", "0s"), "budget.seconds: must be positive"),
    ((*ORDINARY, TWO, "-b", "1"), "samples: must be at least one for each of the 2 layers; Got 1"),
    ((*ORDINARY, "--seed", "-1"), "seed: must be a whole number from 0 to"),
    ((*ORDINARY, "--fix", "mapping=magic"), "dataflow: must be a known dataflow; Got 'magic'"),
    ((*ORDINARY, "--fix", "mapping"), "fix: must be mapping=DATAFLOW or hardware"),
    ((*ORDINARY, "--fix", "hardware=1"), "fix: must be mapping=DATAFLOW or hardware"),
    ((*ORDINARY, "--fix", "clock"), "fix: must be mapping=DATAFLOW or hardware"),
    ((*ORDINARY, "--fix", "hardware", "--fix", "hardware"), "each once; Got 'hardware'"),
    ((*ORDINARY, "--fix", "hardware"), "within.area: must be at least 1.10173e+06um2, which the machine takes"),
    ((*ORDINARY, "--front", "latency"), "front: must be two or more different metrics"),
    ((*ORDINARY, "--front", "latency,latency"), "front: must be two or more different metrics"),
    ((*ORDINARY, "--front", "latency,speed"), "front: must be a known metric; Got 'speed'"),
    ((*ORDINARY, "nowhere"), "network: must be a known network; Got 'nowhere'"),
    ((*ORDINARY, f"{TWO}*0"), "networks: must have a positive number as weight"),
    ((*ORDINARY, f"{TWO}*-2"), "networks: must have a positive number as weight"),
    ((*ORDINARY, f"{TWO}*nan"), "networks: must have a positive number as weight"),
    ((*ORDINARY, f"{TWO}*"), "networks: must have a positive number as weight"),
    ((*ORDINARY, f"{TWO}*\u0663"), "networks: must have a positive number as weight"),
    ((*ORDINARY, ONE), "networks: must differ in name"),
    ((*ORDINARY, "--arch", "nowhere"), "accelerator: must be a known accelerator; Got 'nowhere'"),
    ((*ORDINARY, "--arch", "flexion"), "flexion.flexibility: must be left out of designs"),
    ((*ORDINARY, "--arch", "accel-b-sparse"), "accel-b-sparse.sparsity: must be left out to be designed"),
    ((*ORDINARY, "--arch", "small.yaml"), "small.area_um2: must be known where area counts"),
    (("--arch", "small.yaml", "--within", "bytes=1MB", "-o", "edp-area"), "small.area_um2: must be known"),
    (("--arch", "small.yaml", "--within", "bytes=1MB", "--front", "latency,area"), "small.area_um2: must be known"),
    ((*ORDINARY, "--write-mappings", "maps"), "--write-mappings: must come with --write"),
    ((*ORDINARY, "--json", "."), "must be"),
    ((*ORDINARY, "--out", "file"), "--out: must be a folder that can be written"),
    ((*ORDINARY, "--on", "moon"), "on"),
])
def test_bad_input_is_one_message(tilewright, tmp_path, machine, words, message):
    (tmp_path / "file").write_text("")
    found = tilewright("design", ONE, *([] if "--arch" in words else ["--arch", "edge-s2"]), *words)
    assert (found.code, found.out) == (2, ""), found.err
    assert message in found.err and found.err.count("\n") == 1, found.err


@pytest.mark.parametrize(("section", "message"), [
    (VARY % "SX.capacity_bytes: [64]", "arch.design.vary.SX.capacity_bytes: must name one of the levels"),
    (VARY % "SG.colour: [1]", "arch.design.vary.SG.colour: must be a number that a design may choose"),
    (VARY % "SG.area_um2: [1]", "must be a number that a design may choose"),
    (VARY % "SG.capacity_bytes: {from: 128}", "must be a list of values, or give from and to"),
    (VARY % "SG.capacity_bytes: {from: 128, to: 64}", "must not end (64) before it begins (128)"),
    (VARY % "SG.capacity_bytes: {from: 64, to: 128, step: 0}", "step"),
    (VARY % "SG.capacity_bytes: [128, 64]", "must list its values in ascending order"),
    (VARY % "SG.capacity_bytes: []", "SG.capacity_bytes"),
    (VARY % "SG.capacity_bytes: [many]", "SG.capacity_bytes"),
    (VARY % "PEs.instances: [1.5, 2]", "must be whole numbers"),
    (VARY % "PEs.x: [1, 2]", "must be a number that a design may choose"),
    ("\ndesign:\n  vary: {}\n", "arch.design.vary"),
    ("\ndesign: 3\n", "arch.design"),
    ("\ndesign:\n  vari: {SG.capacity_bytes: [64]}\n", "arch.design.vari: is not a known field; Did you mean vary?"),
    (VARY % "SG.capacity_bytes: [64]" + "  follow: {SL.capacity_bytes: {of: PEs.instances}}\n",
     "must follow a number that varies"),
    (VARY % "SG.capacity_bytes: [64]" + "  follow: {SG.capacity_bytes: {of: SG.capacity_bytes}}\n",
     "must not be among the numbers that vary"),
    (VARY % "SG.capacity_bytes: [64]" + "  optional: [DRAM]\n", "must not name the outermost memory"),
])
def test_a_bad_design_section_is_one_message(tilewright, space, section, message):
    found = tilewright("design", ONE, "--arch", space(section), "--within", "area=2mm2")
    assert (found.code, found.out) == (2, ""), found.err
    assert message in found.err and found.err.count("\n") == 1, found.err


def test_areas_that_do_not_follow_from_what_varies_are_refused(tilewright, space):
    found = tilewright("design", ONE, "--arch", space(DESIGN, FLAT), "--within", "area=2mm2")
    assert (found.code, found.out) == (2, "")
    assert "edge-s2.SL.area_um2: must follow from the capacity, which varies, where area counts" in found.err
