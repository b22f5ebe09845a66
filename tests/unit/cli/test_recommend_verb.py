"""``tilewright recommend``: what it tells, and what it refuses with one message."""

import json

import pytest

import tilewright as tw
from tilewright.hardware import preset
from tilewright.mapping import KeptSets, MapSpace
from tilewright.search import search_spaces
from tilewright.workload import matmul

KNOWN, LIKE = matmul("known", m=96, n=64, k=80), matmul("like", m=112, n=48, k=160)


def test_a_network_is_advised_layer_by_layer(tilewright, tmp_path):
    done = tilewright("recommend", "alexnet", "--arch", "4096", "--json", "told.json", "--report", "page.html")
    assert done.code == 0, done.err
    assert "conv2" in done.out and "exact" in done.out
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["cost"] == told["best"] >= told["bound"] and told["regret"] == 0
    assert told["fixed_cost"] >= told["cost"] and told["whole_cost"] >= told["fixed_cost"]
    assert told["cost"] == sum(one["times"] * one["products"] * one["cost"] for one in told["layers"])
    assert (tmp_path / "page.html").stat().st_size > 100_000


@pytest.mark.parametrize(("objective", "unit"), [("energy", "J"), ("edp", "J·cycles")])
def test_a_network_is_advised_by_energy(tilewright, tmp_path, objective, unit):
    done = tilewright("recommend", "alexnet", "--arch", "4096", "--power", "3.3", "-o", objective,
                      "--json", "told.json")
    assert done.code == 0 and unit in done.out, done.err
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["objective"] == objective and told["bound"] <= told["cost"] == told["best"] <= told["fixed_cost"]
    figures = [one["times"] * one["products"] * one["energy_pj"] * (one["cycles"] if objective == "edp" else 1)
               for one in told["layers"]]
    assert told["cost"] == pytest.approx(sum(figures))


def test_energy_wants_a_power(tilewright):
    for words in (["-o", "energy"], ["-o", "edp", "--power", "-1"]):
        done = tilewright("recommend", "alexnet", "--arch", "4096", *words)
        assert done.code == 2 and "power" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(("words", "told"), [
    (["alexnet", "--arch", "nosuch"], "nosuch"), (["alexnet", "--arch", "5000"], "cell"),
    (["alexnet", "--arch", "saga"], "Did you mean sagar"),
    (["alexnet", "--model", "nosuch.pt"], "model"), (["alexnet", "--fallback"], "fallback"),
    (["matmul:M=0,N=4,K=4"], "M"), (["alexnet", "--space", "whole"], "space"),
    (["einsum:ij,jk,kl->il:i=4,j=4,k=4,l=4"], "two operands"), (["alexnet", "--objective", "area"], "objective"),
    (["alexnet", "--arch", "0"], "positive"), (["alexnet", "--within", "-0.1"], "within"),
    (["alexnet", "--ties", "os,os"], "ties"),
    (["alexnet", "--top", "0"], "top"), (["alexnet", "--layers", "nosuch"], "nosuch")])
def test_wrong_input_is_one_message(tilewright, words, told):
    done = tilewright("recommend", *words)
    assert done.code == 2 and told in done.err and "Traceback" not in done.err


def test_what_recommends_is_listed(tilewright):
    told = tilewright("list", "recommenders")
    assert told.code == 0
    for name in ("exact", "adaptnet", "terms", "mlp-d", "svc", "xgboost", "memory", "neighbours"):
        assert name in told.out


@pytest.mark.parametrize(("words", "told"), [
    (["--samples", "5"], "samples"), (["--network", "nosuch"], "nosuch"), (["--sampler", "nosuch"], "nosuch"),
    (["--arch", "nosuch"], "nosuch"), (["--space", "nosuch"], "nosuch"), (["--seed", "-1"], "seed")])
def test_wrong_training_is_one_message(tilewright, words, told):
    pytest.importorskip("torch")
    done = tilewright("train-recommender", "--out", "net.pt", "--samples", "40", "--arch", "256", "--epochs", "1",
                      *words)
    assert done.code == 2 and told in done.err and "Traceback" not in done.err


def test_a_training_is_shown_with_what_it_confuses_and_labels_by_the_ties_asked_for(tilewright, tmp_path):
    pytest.importorskip("torch")
    words = ["train-recommender", "--out", "net.pt", "--samples", "400", "--arch", "256", "--epochs", "1",
             "--network", "mlp-a"]
    done = tilewright(*words, "--ties", "is,reads", "--report", "page.html", "--json", "told.json")
    assert done.code == 0 and "What adds most cycles" in done.out, done.err
    told = json.loads((tmp_path / "told.json").read_text())
    wrong = sum(one["share"] for one in told["confusions"])
    assert wrong == pytest.approx(1 - told["scores"][1]["same_cycles"])
    shares = [share for _, share in told["beyond"]]
    assert shares == sorted(shares, reverse=True) and shares[0] <= wrong
    page = (tmp_path / "page.html").read_text()
    assert "by cost" in page and "Products that take longer than the best" in page
    refused = tilewright("recommend", "matmul:M=8,N=8,K=8", "--arch", "256", "--model", "net.pt")
    assert refused.code == 2 and "same rules" in refused.err
    asked = tilewright("recommend", "matmul:M=8,N=8,K=8", "--arch", "256", "--model", "net.pt", "--ties", "is,reads")
    assert asked.code == 0, asked.err


def test_the_verb_asks_the_library_and_searches_shortly_for_what_is_like_nothing(tilewright, tmp_path):
    tw.map(KNOWN, "edge-s2", budget=500, store="known.db")
    done = tilewright("recommend", "matmul:M=112,N=48,K=160", "-a", "edge-s2", "-o", "edp", "--model", "known.db",
                      "--json", "told.json")
    assert done.code == 0 and "nearest" in done.out, done.err
    (layer,) = json.loads((tmp_path / "told.json").read_text())["layers"]
    assert layer["search"]["mapper"] == "nearest" and layer["search"]["start"][0]["kind"] == "library"
    like, other = (tw.recommend(one, "edge-s2", objective="edp", model="known.db").record.layers[0].search
                   for one in (LIKE, "conv:K=8,C=8,P=8,Q=8,R=3,S=3"))
    assert (like.mapper, other.mapper, other.samples) == ("nearest", "auto", 1000)
    assert like.score <= 1.5 * search_spaces(KeptSets(MapSpace(LIKE, preset("edge-s2"))), budget=500).score


@pytest.mark.parametrize(("words", "told"), [
    (["--model", "nosuch.db"], "Fill one"), (["--power", "3"], "power"), (["--fallback"], "fallback")])
def test_wrong_input_for_an_accelerator_is_one_message(tilewright, words, told):
    done = tilewright("recommend", "alexnet", "--arch", "edge-s2", *words)
    assert done.code == 2 and told in done.err and "Traceback" not in done.err
