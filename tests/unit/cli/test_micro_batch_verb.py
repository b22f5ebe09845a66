"""``tilewright fuse --space micro-batch``: what they find, write and read, and what is refused."""

import json
import shlex

import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.workload import Graph, Unmodelled

SPACE = "micro-batch"
ASKED = ("fuse", "resnet18", "--arch", "dnnfuser:DRAM.bandwidth=0.3GB/s", "--space", "micro-batch", "--batch", "8",
         "--memory", "2MB", "--mapper", "exact")


def test_a_plan_is_found_written_and_read_again(tilewright, tmp_path):
    found = tilewright(*ASKED, "--report", "out.html", "--json", "out.json", "--save", "plan.yaml")
    assert found.code == 0, found.err
    tree = json.loads((tmp_path / "out.json").read_text())
    assert tree["gap"] == 0 and tree["speedup"] > 2 and tree["fits"]
    assert tree["cost"]["latency_cycles"] == pytest.approx(sum(one["latency_cycles"] for one in tree["groups"]))
    assert "No plan does better." in found.out and "Memory over time" in (tmp_path / "out.html").read_text()
    again = tilewright(*ASKED, "--plan", "plan.yaml", "--json", "again.json")
    assert again.code == 0 and json.loads((tmp_path / "again.json").read_text())["strategy"] == tree["strategy"]
    costed = tilewright("evaluate", "plan.yaml", "--network", "resnet18", "--arch", ASKED[3], "--json", "costed.json")
    assert costed.code == 0 and json.loads((tmp_path / "costed.json").read_text())["cost"] == tree["cost"]
    repeated = tilewright(*shlex.split(tree["command"])[1:], "--json", "repeated.json")
    assert repeated.code == 0
    assert json.loads((tmp_path / "repeated.json").read_text())["strategy"] == tree["strategy"]


@pytest.mark.parametrize(("given", "told"), [
    (("--batch", "0"), "batch: must be from 1"), (("--memory", "500B"), "one sample"), (("--memory", "x"), "memory"),
    (("--mapper", "nope"), "fusion mapper"), (("--space", "nope"), "space of fused plans"),
    (("--objective", "edp"), "objective"),
    (("--plan", "other.yaml"), "layers of resnet18"), (("--plan", "large.yaml"), "must be -1 or from 1"),
    (("--plan", "over.yaml"), "must fit the memory"), (("--plan", "sizes.yaml"), "layers have the same names"),
    (("--plan", "none.yaml"), "existing file"), (("--plan", "wrong.yaml"), "not a known field"),
    (("--option", "population=3"), "option"), (("--arch", "eyeriss"), "one machine")])
def test_what_is_wrong_is_one_error(tilewright, tmp_path, given, told):
    (tmp_path / "wrong.yaml").write_text("network: resnet18\nbatsh: 8\n")
    (tmp_path / "other.yaml").write_text("network: a\nbatch: 8\nmemory_bytes: 1\nstrategy: {input: -1, conv: 2}\n")
    plan = tw.fuse("resnet18", space=SPACE, arch="dnnfuser", batch=8).plan.yaml()
    (tmp_path / "large.yaml").write_text(plan.replace('"conv1": -1', '"conv1": 9'))
    (tmp_path / "over.yaml").write_text(plan.replace('"conv1": -1', '"conv1": 8'))
    sizes = tw.fuse("resnet18:size=192", space=SPACE, arch="dnnfuser", batch=8).plan.yaml()
    (tmp_path / "sizes.yaml").write_text(sizes)
    found = tilewright(*ASKED, *given)
    assert found.code == 2 and told in found.err and found.err.count("Error") == 1


def test_layers_that_nobody_knows_are_refused():
    graph = tw.load_network("alexnet")
    with pytest.raises(InputError, match="known kind"):
        tw.fuse(Graph("odd", (*graph.nodes, Unmodelled("x", "magic", "nobody knows it"))), space=SPACE, arch="dnnfuser")


def test_python_gives_plan_costs_bounds_and_gap():
    asked = {"space": SPACE, "batch": 8, "memory": "2MB"}
    slow = "dnnfuser:DRAM.bandwidth=0.3GB/s"
    run = tw.fuse("resnet18", slow, mapper="g-sampler", **asked)
    assert run.bounds.latency_cycles <= run.cost.latency_cycles <= run.unfused.latency_cycles
    assert run.gap >= 0 and run.cost.memory_bytes <= 2e6 and not run.interrupted
    assert run.plan.groups[-1].layers[-1] == "fc"
    assert tw.fuse("resnet18", slow, plan=run.plan.yaml(), **asked).plan.strategy == run.plan.strategy
    energy = tw.fuse("resnet18", "dnnfuser", objective="energy", **asked)
    assert energy.cost.energy_pj < energy.unfused.energy_pj and energy.gap == 0
    kept = tw.fuse("resnet18", "dnnfuser", objective="energy", weight_memory="20MB", **asked)
    assert kept.cost.energy_pj < energy.cost.energy_pj
