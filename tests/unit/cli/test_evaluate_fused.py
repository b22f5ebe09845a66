"""``tilewright evaluate`` of fused groups: what is shown, and what is wrong in one line."""

import json

import pytest

PLAN = """network: resnet18
groups:
  - held: {layer1.0.conv1: GLB, layer1.0.relu1: GLB}
    tree:
      levels: [{level: DRAM, loops: [P: 4]}]
      parts:
        - operator: layer1.0.conv1
          steps: {P: 1}
          levels: [{level: GLB, loops: [C: 1, K: 1, Q: 1]}, {level: Spads, loops: [R: 1, S: 1]}]
        - {operator: layer1.0.relu1, steps: {X2: 1}}
        - operator: layer1.0.conv2
          levels: [{level: GLB, loops: [C: 1, K: 1, Q: 1, P: 1]}, {level: Spads, loops: [R: 1, S: 1]}]
"""


@pytest.fixture
def run(tilewright, tmp_path):
    def evaluate(text, *options, network="resnet18"):
        path = tmp_path / "plan.yaml"
        path.write_text(text)
        return tilewright("evaluate", path, "--network", network, "--arch", "eyeriss", *options)

    return evaluate


def test_a_plan_is_shown_and_written_as_json(run, tmp_path):
    place = tmp_path / "plan.json"
    found = run(PLAN, "--json", str(place))
    assert found.code == 0, found.err
    for text in ("DRAM for layer1.0.conv2.P: 4", "layer1.0.relu1, X2: 1 -> GLB", "What lives in", "limited by"):
        assert text in found.out
    (group,) = json.loads(place.read_text())["groups"]
    assert group["legal"]
    counts = {(row["operator"], row["memory"], row["tensor"]): row for row in group["cost"]["counts"]}
    assert ("layer1.0.relu1", "DRAM", "0") not in counts
    assert counts["layer1.0.conv1", "DRAM", "I"]["reads"] == 64 * 58 * 58  # each word of the padded input once
    assert group["cost"]["made"] == {name: 1.0 for name in group["operators"]}


def test_a_plan_that_does_not_fit_is_illegal_and_says_what_would(run):
    found = run(PLAN.replace("P: 4", "P: 8"))
    assert found.code == 1
    assert "let the shared loop over layer1.0.conv2.P have a step of 4" in found.out


def test_a_count_of_an_operator_is_explained_as_it_is_evaluated(run, tilewright, tmp_path):
    run(PLAN, "--json", str(tmp_path / "plan.json"))
    (group,) = json.loads((tmp_path / "plan.json").read_text())["groups"]
    counts = {(row["operator"], row["memory"], row["tensor"]): row for row in group["cost"]["counts"]}
    where = tmp_path / "plan.yaml", "--network", "resnet18", "--arch", "eyeriss", "--layer"
    asked = ("layer1.0.conv1", "DRAM", "I", "reads"), ("layer1.0.conv2", "GLB", "I", "reads"), (
        "layer1.0.conv1", "GLB", "O", "updates")
    for name, memory, tensor, kind in asked:
        found = tilewright("explain", *where, name, "--count", f"{memory}.{tensor}.{kind}")
        words = counts[name, memory, tensor][kind]
        assert found.out.startswith(f"{memory}.{tensor}.{kind} = {words:,} words"), found.err
    for name in ("layer1.0.relu1", "conv1"):
        assert tilewright("explain", *where, name).code == 2


@pytest.mark.parametrize(("old", "new", "told"), [
    ("layer1.0.relu1, s", "layer1.0.relu9, s", "Did you mean"),
    ("level: DRAM", "level: DRUM", "must be a level of eyeriss"),
    ("loops: [P: 4]", "loops: [Z: 4]", "must give dimensions of layer1.0.conv2"),
    ("conv1: GLB", "conv7: GLB", "must be a known operator"),
    ("- operator: layer1.0.conv2", "- operator: layer1.0.conv1", "must have each operator once"),
    ("groups:", "groups: [", "must be YAML"),
])
def test_what_is_wrong_is_one_error(run, old, new, told):
    found = run(PLAN.replace(old, new))
    assert found.code == 2
    assert told in found.err
    assert len(found.err.splitlines()) == 1


def test_a_plan_of_another_network_and_options_that_it_cannot_have_are_errors(run):
    assert run(PLAN, network="vgg16").code == 2
    assert run(PLAN, "--layer", "layer1.0.conv1").code == 2


def test_counts_of_a_group_add_up_over_its_operators_and_are_derived(run, tilewright, tmp_path):
    run(PLAN, "--json", str(tmp_path / "evaluated.json"))
    (group,) = json.loads((tmp_path / "evaluated.json").read_text())["groups"]
    counts = {(row["operator"], row["memory"], row["tensor"]): row for row in group["cost"]["counts"]}
    where = "explain", tmp_path / "plan.yaml", "--network", "resnet18", "--arch", "eyeriss", "--group", "0"
    made, read = counts["layer1.0.relu1", "GLB", "O"]["reads"], counts["layer1.0.conv2", "GLB", "I"]["reads"]
    found = tilewright(*where, "--count", "GLB.relu1.reads")
    assert found.code == 0, found.err
    assert f"GLB.relu1.reads = {made + read:,} words, of 2 operators" in found.out and read > 0
    assert "layer1.0.relu1, its tensor O" in found.out and f"layer1.0.conv2, its tensor I: {read:,} words" in found.out
    assert f"GLB.I.reads = {read:,}" in found.out
    weights = counts["layer1.0.conv1", "DRAM", "W"]["reads"]
    assert f"= {weights:,} words" in tilewright(*where, "--count", "dram.layer1.0.conv1.W.reads").out
    listed = tilewright(*where).out
    assert "GLB.I.reads" in listed and f"{read:,}" in listed


@pytest.mark.parametrize(("options", "told"), [
    (("--group", "1"), "--group: must be one of the plan that has loops; Got 1"),
    (("--group", "0", "--count", "GLB.nothing.reads"), "must be MEMORY.TENSOR.KIND of a tensor of the group"),
    (("--group", "0", "--count", "reads"), "must be MEMORY.TENSOR.KIND of a tensor of the group"),
    (("--group", "0", "--layer", "layer1.0.conv1"), "--layer: must be left out with --group"),
])
def test_groups_and_counts_that_there_are_not_are_one_error(tilewright, tmp_path, options, told):
    (tmp_path / "plan.yaml").write_text(PLAN)
    found = tilewright("explain", tmp_path / "plan.yaml", "-n", "resnet18", "-a", "eyeriss", *options)
    assert found.code == 2 and told in found.err.replace("\n", " ")


def test_a_plan_that_fuse_wrote_as_json_needs_no_network_or_machine(tilewright, tmp_path):
    plan = tmp_path / "plan.json"
    made = tilewright("fuse", "minerva", "-a", "edge-s2", "--space", "trees", "-o", "energy", "--budget", "40",
                      "--layers", "2", "--json", plan)
    assert made.code == 0, made.err
    groups = json.loads(plan.read_text())["groups"]
    number, group = next((at, each) for at, each in enumerate(groups) if each["fused"])
    held = tilewright("explain", plan, "--group", str(number), "--count", f"DRAM.{group['operators'][0]}.fills")
    assert held.code == 2  # what passes between them never comes to the memory outside
    listed = tilewright("explain", plan, "--group", str(number))
    assert listed.code == 0 and all(name in listed.out for name in group["operators"])
    again = tilewright("evaluate", plan, "--network", "minerva", "--arch", "edge-s2", "--json", tmp_path / "e.json")
    assert again.code == 0, again.err
    whole = json.loads((tmp_path / "e.json").read_text())["groups"]
    fused = next(each for each in whole if set(each["operators"]) >= set(group["operators"]))
    assert fused["cost"]["latency_cycles"] == group["cost"]["latency_cycles"]
    assert tilewright("explain", plan, "--group", "0", "--count", "latency").code == 2
