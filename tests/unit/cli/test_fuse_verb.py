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
    (("bert-base", "--memory", "much"), "For example 512KiB"),
    (("bert-base", "--space", "none"), "must be a known space"),
    (("bert-base:batch=0",), "must be a positive integer"),
    (("bert-base", "--clock", "-1"), "must be positive"),
    (("bert-base", "--phase", "decode"), "must be a known option"),
])
def test_what_cannot_be_planned_is_one_error(tilewright, words, told):
    done = tilewright("fuse", *words, "--arch", "flat-edge")
    assert done.code == 2 and told in done.err and "Traceback" not in done.err


def test_a_machine_without_a_shared_buffer_is_refused(tilewright):
    done = tilewright("fuse", "bert-base", "--arch", "tpu-like")
    assert done.code == 2 and "keeps inputs, weights and outputs" in done.err
    assert tilewright("fuse", "bert-base", "--arch", "flat-edge", "--arch", "flat-cloud").code == 2
