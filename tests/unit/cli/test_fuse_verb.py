"""``tilewright fuse --space flat``: the table, the page, the JSON, and what cannot be planned."""

import json

import pytest

import tilewright as tw
from tilewright.api import FUSION_SPACES, FusedAttention


def test_attention_of_bert_is_planned_with_its_bound(tilewright, tmp_path):
    done = tilewright("fuse", "bert-base:sequence=4096", "--arch", "flat-edge", "--objective", "latency",
                      "--report", "out/bert.html", "--json", "bert.json")
    assert done.code == 0 and "fused, online softmax" in done.out and "Bound (cycles)" in done.out
    assert "Written" not in done.err and "Page out/bert.html" in done.err
    page = (tmp_path / "out/bert.html").read_text()
    assert "Least cycles within a footprint" in page and "tilewright fuse bert-base:sequence=4096" in page
    tree = json.loads((tmp_path / "bert.json").read_text())
    (one,) = tree["attentions"]
    assert one["count"] == 12 and one["instances"] == 12 and 0 <= one["plan"]["gap"] < 0.01
    assert one["plan"]["latency_cycles"] <= one["unfused"]["latency_cycles"]
    assert sum(one["plan"]["words"].values()) == one["plan"]["dram_words"] >= one["plan"]["bound"]["dram_words"]


def test_decoding_with_masks_reads_its_cache_once(tilewright):
    done = tilewright("fuse", "llama-3-8b:context=512,batch=2", "--arch", "flat-cloud", "--causal", "--phase", "decode",
                      "--json", "-")
    tree = json.loads(done.out)
    (one,) = tree["attentions"]
    assert (one["rows"], one["group"], one["causal"]) == (4, 4, True)
    assert one["plan"]["words"]["K"] == one["instances"] * one["keys"] * one["depth"]
    assert "--bind phase=decode" in tree["command"] and "--causal" in tree["command"]


def test_what_plans_may_be_is_chosen(tilewright):
    cycles = {}
    for within in ("flex", "flat", "online"):
        run = tw.fuse("bert-base:sequence=16384", "flat-cloud", within=within, objective="dram")
        cycles[within] = run.found.plans[0].cost.dram_words
        assert run.found.plans[0].fused or within == "flex"
    assert cycles["online"] <= cycles["flat"] < cycles["flex"]
    slow = tw.fuse("bert-base", "flat-edge", softmax="vector", clock=470, word_bits=8, memory="64KiB")
    assert slow.found.machine.capacity_words == 65536
    assert slow.found.machine.dram_rate == pytest.approx(28.557 * 4)
    assert slow.found.plans[0].cost.vector_cycles > 0
    for words in ("--softmax vector", "--clock 470", "--word-bits 8", "--memory 64KiB", "--space flat"):
        assert words in slow.command


@pytest.mark.parametrize(("space", "network", "arch", "search"), [
    ("flat", "bert-base:sequence=256", "flat-edge", "tilewright.fusion.flat.networks._parts"),
    ("micro-batch", "alexnet", "dnnfuser:DRAM.bandwidth=4GB/s", "tilewright.fusion.microbatch.session.scores")])
def test_what_was_found_is_kept(space, network, arch, search, tmp_path, monkeypatch):
    """Another run into the same folder looks for nothing, and comes to the same plan; another network goes beside."""
    asked = {"space": space, "out": tmp_path / "kept"} | ({"batch": 8} if space == "micro-batch" else {})
    found = tw.fuse(network, arch, **asked).plain
    monkeypatch.setattr(search, None)  # what scores plans
    again = tw.fuse(network, arch, **asked).plain
    if found.get("search"):
        found["search"]["seconds"] = again["search"]["seconds"]
    assert again == found and "--out" not in found["command"]


def test_its_command_repeats_a_run(tilewright):
    run = tw.fuse("bert-base:sequence=256", "flat-edge", objective="edp", within="flat", causal=True)
    assert isinstance(run, FusedAttention)
    done = tilewright(*run.command.split()[1:], "--json", "-")
    again = json.loads(done.out)
    assert again["command"] == run.command
    assert again["attentions"][0]["plan"]["latency_cycles"] == run.found.plans[0].cost.latency_cycles
    assert "flat" in FUSION_SPACES
    assert run.to_pandas("words").shape == (2, 9)


@pytest.mark.parametrize(("words", "told"), [
    (("resnet18",), "must have an attention"),
    (("bert-base", "--memory", "100B"), "Give a larger buffer"),
    (("bert-base", "--memory", "much"), "such as '108 KiB'"),
    (("bert-base", "--space", "none"), "must be a known space"),
    (("bert-base:batch=0",), "must be a positive integer"),
    (("bert-base", "--clock", "-1"), "must be positive"),
    (("bert-base", "--clock", "0"), "must be positive"),
    (("bert-base", "--clock", "inf"), "must be positive and finite"),
    (("bert-base", "--batch", "8"), "--batch: must be given with --space micro-batch alone"),
    (("bert-base", "--mapper", "g-sampler"), "--mapper: must be given with --space micro-batch alone"),
    (("alexnet", "--space", "micro-batch", "--clock", "100"), "or --set clock=1GHz"),
    (("alexnet", "--space", "micro-batch", "--causal"), "--causal: must be given with --space flat alone"),
    (("bert-base", "--phase", "decode"), "must be a known option"),
])
def test_what_cannot_be_planned_is_one_error(tilewright, words, told):
    done = tilewright("fuse", *words, "--arch", "flat-edge")
    assert done.code == 2 and told in done.err and "Traceback" not in done.err


def test_a_machine_without_a_shared_buffer_is_refused(tilewright):
    done = tilewright("fuse", "bert-base", "--arch", "nvdla-like")
    assert done.code == 2 and "keeps inputs and outputs" in done.err
    assert tilewright("fuse", "bert-base", "--arch", "flat-edge", "--arch", "flat-cloud").code == 2


def test_a_plan_is_written_and_looked_at_again(tilewright, tmp_path):
    words = ("fuse", "bert-base:sequence=1024", "--arch", "flat-edge")
    first = tilewright(*words, "--save", "plan.yaml", "--json", "a.json")
    assert first.code == 0 and "Plan plan.yaml" in first.err
    again = tilewright(*words, "--plan", "plan.yaml", "--json", "b.json")
    one, other = (json.loads((tmp_path / name).read_text())["attentions"] for name in ("a.json", "b.json"))
    assert again.code == 0 and one == other
    longer = tilewright("fuse", "bert-base:sequence=2048", "--arch", "flat-edge", "--plan", "plan.yaml")
    assert longer.code == 2 and "attentions have the same names" in longer.err
    apart = tw.fuse("bert-base:sequence=1024", "flat-edge", within="flex")
    apart.write_plan(tmp_path / "flex.yaml")
    kept = tw.fuse("bert-base:sequence=1024", "flat-edge", plan=tmp_path / "flex.yaml")
    assert kept.found.plans == apart.found.plans and len(kept.found.plans[0].parts) == 2


def test_a_saved_plan_costs_what_it_did(tilewright, tmp_path):
    network = "bert-base:sequence=256"
    run = tw.fuse(network, "flat-edge", objective="edp", causal=True, softmax="vector", clock=470, memory="64KiB",
                  word_bits=8)
    run.write_plan(tmp_path / "plan.yaml")
    words = ("evaluate", "plan.yaml", "--network", network, "--arch", "flat-edge")
    again = tilewright(*words, "--json", "-")
    assert again.code == 0 and json.loads(again.out)["attentions"] == run.plain["attentions"]
    assert tilewright(*words[:-2]).code == 2 and tilewright(*words, "--layer", "x").code == 2



def test_counts_of_a_plan_of_attention_are_derived(tilewright, tmp_path):
    tilewright("fuse", "bert-base:sequence=256", "--arch", "flat-edge", "--memory", "64KiB", "-o", "dram",
               "--json", "plan.json", "--save", "plan.yaml")
    words = json.loads((tmp_path / "plan.json").read_text())["attentions"][0]["plan"]["words"]
    found = tilewright("explain", "plan.json", "--group", "0", "--count", "Buffer.K.fills")
    assert found.code == 0 and f"Buffer.K.fills = {words['K']:,} words" in found.out, found.err
    assert "one instance:" in found.out and f"the cost of the plan has {words['K']:,}" in found.out
    assert tilewright("explain", "plan.yaml", "--group", "0", "-n", "bert-base:sequence=256", "-a", "flat-edge",
                      "--count", "buffer.k.fills").out == found.out
    assert "DRAM.O.updates" in tilewright("explain", "plan.json", "--group", "0").out
    for wrong in (("--group", "3"), ("--group", "0", "--count", "Buffer.X.fills"), ("--group", "0", "-n", "vgg16")):
        assert tilewright("explain", "plan.json", *wrong).code == 2


def test_bytes_of_micro_batches_are_derived(tilewright, tmp_path):
    asked = ("alexnet", "--arch", "dnnfuser:DRAM.bandwidth=0.9GB/s")
    tilewright("fuse", *asked, "--space", "micro-batch", "--batch", "8", "--memory", "2MB", "--json", "plan.json",
               "--save", "plan.yaml")
    groups = json.loads((tmp_path / "plan.json").read_text())["groups"]
    found = tilewright("explain", "plan.json", "--group", "0", "--count", "dram.conv2.weights.reads")
    assert found.code == 0 and f"the cost of the plan has {groups[0]['offchip_bytes']:,.0f}" in found.out, found.err
    assert tilewright("explain", "plan.yaml", "--group", "0", "--network", *asked, "--count",
                      "DRAM.conv2.weights.reads").out == found.out
    assert "conv1.held" in tilewright("explain", "plan.json", "--group", "0").out
    for wrong in (("--group", "30"), ("--group", "0", "--count", "DRAM.conv9.reads")):
        assert tilewright("explain", "plan.json", *wrong).code == 2


GIVEN = """\
network: bert-base
attentions:
  layer.0.attention:
  - {operators: L-A, rows: 64, keys: 512}
"""
WRONG = {
    "other network": (("layer.0.attention", "encoder"), "must name the attentions of the network"),
    "too many rows": (("rows: 64", "rows: 640"), "must be at most 512"),
    "no rows": (("rows: 64", "rows: 0"), "rows"),
    "A alone": (("L-A", "A"), "must have one part L-A, or L and then A"),
    "unknown part": (("L-A", "B"), "operators"),
    "unknown field": (("keys:", "columns:"), "columns"),
    "three tiles": (("keys: 512", "keys: 512, buffers: 3"), "buffers"),
}


@pytest.mark.parametrize(("change", "told"), WRONG.values(), ids=list(WRONG))
def test_a_wrong_plan_is_one_error(tilewright, tmp_path, change, told):
    (tmp_path / "plan.yaml").write_text(GIVEN.replace(*change))
    done = tilewright("fuse", "bert-base", "--arch", "flat-edge", "--plan", "plan.yaml")
    assert done.code == 2 and told in done.err and "Traceback" not in done.err


def test_a_plan_that_does_not_fit_tells_how_many_rows_do():
    given = GIVEN.replace("keys: 512", "keys: 256")
    with pytest.raises(tw.InputError, match="Take 18 rows at most"):  # 65,536 words of K and V, 514 a row
        tw.fuse("bert-base", "flat-edge", plan=given, memory="147KiB")
    tw.fuse("bert-base", "flat-edge", plan=given.replace("rows: 64", "rows: 18"), memory="147KiB")
    with pytest.raises(tw.InputError, match="Take 19 rows at most"):
        tw.fuse("bert-base", "flat-edge", plan=given.replace("rows: 64", "rows: 20"), memory="148KiB")
