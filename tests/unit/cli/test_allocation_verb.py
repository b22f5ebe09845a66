"""``tilewright design --deployment``: a budget shared among layers; what is told, written, kept, and refused."""

import json
import os
import shlex
import signal

import numpy as np
import pytest

import tilewright as tw
from tilewright.codesign.allocation import METHODS, AllocationProblem, solve
from tilewright.cost.reference import walk
from tilewright.hardware import preset
from tilewright.hardware.presets import ZOO
from tilewright.report import SearchBar
from tilewright.search import plans
from tilewright.store import Store

MIX = "nvdla,eyeriss,shidiannao"
WORDS = ("design", "ncf", "--arch", "confuciux", "--deployment", "pipelined", "--within", "area=iot", "--styles", MIX)
VARY = "\ndesign:\n  vary: {%s}\n"


def plain(path):
    """Return what a run wrote, without what depends on the clock."""
    tree = json.loads(path.read_text())
    return {name: value for name, value in tree.items() if name not in ("seconds", "command")}


def test_the_proven_optimum_and_the_machines_and_mappings_of_its_layers(tilewright, tmp_path):
    found = tilewright(*WORDS, "--json", "a.json", "--report", "a.html", "--write", "stages", "--write-mappings",
                       "maps")
    assert found.code == 0, found.err
    assert "proven the least of all choices" in found.out
    assert "networks on chip, clocks and control logic are not in them" in found.out
    assert tilewright(*WORDS, "--write", "stages", "--no-store").code == 0  # into the same folder
    tree = json.loads((tmp_path / "a.json").read_text())
    problem = AllocationProblem.of(tw.load_network("ncf"), preset("confuciux"), "area=iot", styles=MIX.split(","),
                                   elements=range(1, 129))
    assert (tree["score"], tree["gap"]) == (solve(problem).value, 0.0)
    assert tree["taken"]["area"] <= tree["within"]["area"]
    operators = dict(zip(problem.table.stages.names, problem.table.stages.operators, strict=True))
    latency, area = 0.0, 0.0
    for layer in tree["layers"]:
        machine, operator = tw.load_accelerator(tmp_path / f"stages/{layer['name']}.yaml"), operators[layer["name"]]
        nest = tw.load_mapping(tmp_path / f"maps/{layer['name']}.yaml", operator, machine)
        latency += layer["runs"] * walk(operator, machine, nest).latency_cycles
        area += machine.area_um2
        assert (machine.compute_instances, machine.level("L1").capacity_bytes) == (
            layer["elements"], layer["buffer_bytes"])
    assert latency == tree["score"]
    assert area == pytest.approx(tree["taken"]["area"])
    page = (tmp_path / "a.html").read_text()
    assert all(f'data-figure="{name}"' in page for name in ("areas", "elements", "latency"))


@pytest.mark.parametrize("method", ["random", "annealing", "ga", "grid"])
def test_every_method_tells_its_gap_to_the_proven_optimum(tilewright, tmp_path, method):
    found = tilewright(*WORDS[:-4], "--within", "area=cloud", "--method", method, "-b", "400", "--json", "a.json")
    tree = json.loads((tmp_path / "a.json").read_text())
    assert found.code == (tree["score"] is None), found.err
    assert "proven least of all choices" in found.out
    if tree["score"] is not None:
        assert tree["gap"] == pytest.approx(tree["score"] / tree["bound"] - 1) and tree["gap"] > 0
        assert len(tree["curve"]) == 400
        assert "How it was found" in found.out
    else:
        assert tree["violations"] and tree["violations"][0] in found.out


def test_layers_in_turn_share_one_machine(tilewright, tmp_path):
    found = tilewright(*WORDS[:4], "--deployment", "sequential", "--within", "area=iot,power=150mW", "--styles", MIX,
                       "-o", "energy", "--write", "one.yaml", "--write-mappings", "maps", "--json", "a.json")
    assert found.code == 0, found.err
    tree, machine = json.loads((tmp_path / "a.json").read_text()), tw.load_accelerator(tmp_path / "one.yaml")
    energy = 0.0
    for node in tw.load_network("ncf").mac_nodes:
        nest = tw.load_mapping(tmp_path / f"maps/{node.name}.yaml", node.operator, machine)
        energy += node.count * walk(node.operator, machine, nest).energy_pj
    assert energy == pytest.approx(tree["score"])
    assert machine.area_um2 == pytest.approx(tree["taken"]["area"])
    assert len({(layer["elements"], layer["buffer_bytes"]) for layer in tree["layers"]}) == 1


def test_the_run_is_stored_with_the_command_that_repeats_it(tilewright, tmp_path):
    first = tilewright(*WORDS, "-m", "annealing", "-b", "300", "--seed", "4", "--within", "fpga-edge", "--json",
                       "a.json")
    assert first.code == 0, first.err
    with Store(tmp_path / "runs.sqlite") as store:
        run, = (store.get(one.id) for one in store.runs())
    tree = json.loads((tmp_path / "a.json").read_text())
    assert run.totals.latency_cycles == tree["score"]
    assert run.totals.area_um2 == pytest.approx(tree["taken"]["area"])
    assert run.accelerator.compute_instances == tree["taken"]["elements"] <= 256
    shown = shlex.split(tilewright("show", run.id, "--command").out)
    again = tilewright(*shown[1:], "--json", "again.json", "--no-store")
    assert again.code == 0, again.err
    assert plain(tmp_path / "again.json") == plain(tmp_path / "a.json")
    assert "allocate annealing" in tilewright("show", run.id).out


def test_what_a_run_kept_before_it_was_killed_is_taken_up(tilewright, tmp_path, monkeypatch):
    words = (*WORDS, "-m", "annealing", "-b", "3000", "--no-store")
    saved, written = [], plans.save_checkpoint

    def killed(path, identity, state):
        written(path, identity, state)
        saved.append(int(state["session.spent"]))
        if len(saved) == 40:
            raise MemoryError  # what ends the process at once, as far as files tell

    with monkeypatch.context() as patched:
        patched.setattr(plans, "KEEP_SECONDS", 0.0)
        patched.setattr(plans, "save_checkpoint", killed)
        assert tilewright(*words, "--out", "killed").code not in (0, 1)
    assert not (tmp_path / "killed/design.json").exists()
    for folder in ("killed", "whole"):
        assert tilewright(*words, "--out", folder).code == 0
    assert plain(tmp_path / "killed/design.json") == plain(tmp_path / "whole/design.json")
    assert len(saved) == 40 <= saved[-1] < 3000
    again = tw.design("ncf", "confuciux", "area=iot", deployment="pipelined", styles=MIX, method="annealing",
                      budget=3000, store=False, out=tmp_path / "whole", told=saved.append)
    assert len(saved) == 40  # nothing was searched anew
    assert again.score == json.loads((tmp_path / "whole/design.json").read_text())["score"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_keep_what_was_found(tilewright, tmp_path, monkeypatch, number, code):
    update, told = SearchBar.update, []

    def end(bar, standing):
        update(bar, standing)
        if standing.samples >= 300 and not told:
            told.append(standing)
            os.kill(os.getpid(), number)

    monkeypatch.setattr(SearchBar, "update", end)
    words = (*WORDS, "-m", "ga", "-b", "5000", "--out", "kept")
    found = tilewright(*words)
    assert found.code == code, found.err
    tree = json.loads((tmp_path / "kept/design.json").read_text())
    assert tree["interrupted"] and tree["allocations"] < 5000
    assert "Stopped before the end" in found.err
    for folder in ("kept", "whole"):
        assert tilewright(*words[:-1], folder).code == 0
    assert plain(tmp_path / "kept/design.json") == plain(tmp_path / "whole/design.json")


def test_choices_are_those_of_the_design_section(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text((ZOO / "confuciux.yaml").read_text() + VARY % (
        "PEs.instances: [2, 6, 50], L1.capacity_bytes: [19, 49]"))
    found = tw.design("ncf", path, "elements=40", deployment="pipelined", store=False)
    stages = found.result.problem.table.stages
    assert (stages.elements, stages.filters) == ((2, 6, 50), (1, 4))
    assert found.gap == 0 and found.result.problem.taken(found.result.cells)["elements"] <= 40
    whole = tw.design("ncf", "confuciux", "elements=40", deployment="pipelined", store=False)
    assert whole.result.problem.table.stages.elements == tuple(range(1, 129))
    assert whole.score <= found.score
    assert np.isclose(sum(layer.cost.latency_cycles * layer.count for layer in whole.layers.values()), whole.score)


def test_time_ends_a_search_which_is_no_interruption():
    found = tw.design("ncf", "confuciux", "area=cloud", deployment="pipelined", method="annealing", budget="200k,0.2s",
                      store=False)
    assert 0 < len(found.result.curve) < 200_000
    assert not found.interrupted


def test_methods_and_styles_are_listed(tilewright):
    shown = tilewright("list", "methods").out
    assert all(f"\n{name} " in shown for name in METHODS)
    assert "outputs stay" in tilewright("list", "styles").out


@pytest.mark.parametrize(("words", "message"), [
    (("--within", ""), "--within: must be given"),
    (("--deployment", "both"), "deployment: must be a known deployment"),
    (("--styles", "dla"), "known style; Got 'dla'"),
    (("--styles", "nvdla,nvdla"), "--styles: must be named once each"),
    (("-m", "digamma"), "known allocation method; Got 'digamma'"),
    (("-o", "latency-area"), "objective: must be a known objective"),
    (("--front", "latency,energy"), "--front: must be left out with --deployment"),
    (("--fix", "hardware"), "--fix: must be left out with --deployment"),
    (("--per-layer",), "--per-layer: must be left out with --deployment"),
    (("--tiling", "perfect"), "--tiling: must be left out with --deployment"),
    (("--option", "population=3"), "--option: must be left out with --deployment"),
    (("--arch", "edge-s2", "--arch", "eyeriss"), "levels: must be a memory, a shared memory of limited capacity"),
    (("--within", "area=1um2"), "The least that works is"),
    (("--within", "area=5"), "within.area: must have one of the units um2, mm2"),
    (("--within", "area=huge"), "or of area and power cloud, iot, iotx"),
    (("--within", "fpga-moon"), "within: must be a known limit"),
    (("--within", "elements=iot"), "within.elements: must be a positive number"),
    (("--within", "area=iot,area=iotx"), "each once"),
    (("--budget", "0"), "budget.samples: must be positive"),
    (("--write-mappings", "maps"), "--write-mappings: must come with --write"),
    (("--write", "best.yaml"), "--write: must be a folder where each layer has a machine of its own"),
    (("--write", "file"), "must be a place that can be written"),
    (("--within", "area=cloud,power=cloud,elements=300"), "must be two limits at most for a proof"),
    (("--seed", "-1"), "seed"),
    (("--out", "file"), "--out: must be a folder that can be written"),
])
def test_bad_input_is_one_message(tilewright, tmp_path, words, message):
    (tmp_path / "file").write_text("")
    found = tilewright(*WORDS, *words)
    assert (found.code, found.out) == (2, ""), found.err
    assert message in found.err and found.err.count("\n") == 1, found.err


@pytest.mark.parametrize(("words", "message"), [
    (("design", "ncf", "dlrm", *WORDS[2:]), "networks: must be one"),
    (("design", "ncf*2", *WORDS[2:]), "networks: must be one, without a weight"),
    (("design", "ncf", *WORDS[2:4], *WORDS[6:]), "--styles: must come with --deployment")])
def test_what_goes_with_a_deployment_and_what_does_not(tilewright, words, message):
    found = tilewright(*words)
    assert (found.code, found.out) == (2, ""), found.err
    assert message in found.err and found.err.count("\n") == 1, found.err


@pytest.mark.parametrize(("section", "message"), [
    ("L1.capacity_bytes: [19, 30]", "must be room for whole filters"),
    ("L1.capacity_bytes: [9]", "must be room for whole filters"),
    ("PEs.instances: {from: 1, to: 9999}", "must have at most 1024 values"),
])
def test_choices_that_no_layer_can_have_are_one_message(tilewright, tmp_path, section, message):
    (tmp_path / "space.yaml").write_text((ZOO / "confuciux.yaml").read_text() + VARY % section)
    found = tilewright(*WORDS, "--arch", "space.yaml")
    assert (found.code, found.out) == (2, ""), found.err
    assert message in found.err and found.err.count("\n") == 1, found.err
