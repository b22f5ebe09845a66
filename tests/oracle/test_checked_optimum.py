"""The checker of proofs: what it lets pass holds for every mapping of small spaces, and planted faults are found."""

import json
import os
import signal
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tilewright as tw
from random_variants import forwarding
from tilewright.api import evaluation, proving
from tilewright.base import InputError
from tilewright.cli import app
from tilewright.cost import DenseModel
from tilewright.cost.reference import ProofSpace, check_claim, proofs, walk
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import Constraints, KeptSets, MapSpace, full_keeps, is_legal
from tilewright.report import Bar
from tilewright.search import Objective
from tilewright.search.mappers.exact import ExactMapper
from tilewright.search.objective import Scorer
from tilewright.validation.random_nests import with_networks
from tilewright.workload import ROLES, convolution, depthwise, matmul, transposed_convolution

OBJECTIVES = ("edp", "latency", "energy", "0.3*latency + 0.7*energy")
LAYERS = (
    matmul("g", m=4, n=3, k=4), matmul("b", m=2, n=4, k=2, batch=2), depthwise("d", 2, in_size=4, kernel=2),
    convolution("c", in_channels=2, out_channels=2, in_size=(8,), kernel=3),
    convolution("s", in_channels=1, out_channels=2, in_size=(9,), kernel=3, stride=2, dilation=2),
    convolution("t", in_channels=1, out_channels=2, in_size=4, kernel=2), convolution(
        "p", in_channels=4, out_channels=2, in_size=2, kernel=1))


def drawn_machine(rng):
    """Return a machine of two or three memories, its arrays, ports and energies drawn."""
    def one(*choices):
        return choices[rng.integers(len(choices))]

    def array(name):
        return with_networks(rng, Fanout(
            name, one((2, 2), (3, 1), (2, 1)), multicast=one(True, True, False), flexible=one(True, False),
            reduce=one(True, True, False), network_energy_pj_per_word=one(0.0, 0.5)))

    def memory(name, scale, **more):
        energy = AccessEnergy(*(scale * one(0.0, 0.5, 1.0, 3.0) for _ in range(4)))
        ports = Bandwidth(*(one(None, 0.3, 1.0, 2.0) for _ in range(3)))
        return Memory(name, energy=energy, bandwidth=ports, leakage_mw=one(0.0, 1.0), **more)

    levels = [memory("M0", 20.0, keeps=ROLES, word_bits=one(8, 16))]
    for name in one(("M1",), ("M1", "M2")):
        levels += [array(f"F{name}")] if one(True, False) else []
        levels.append(memory(name, 1.0, keeps=one(ROLES, ROLES[:2], ROLES[1:], ROLES[2:]), always=one(True, False),
                             capacity_bytes=one(8, 24, None), buffering=one("single", "double", "buffet")))
    return Accelerator("drawn", (*levels, *([array("F")] if one(True, False) else [])), Compute("MAC", one(0.2, 1.0)))


def space_of(operator, machine, objective, ragged=False, **more):
    scorer = Scorer(Objective.parse(objective), operator, machine)
    weights = tuple((weight, metric.latency, metric.energy) for weight, metric in scorer.weights)

    def score(mapping):
        assert is_legal(mapping, operator, machine), mapping
        cost = walk(operator, machine, mapping)
        return float(scorer.values(float(cost.latency_cycles), cost.energy_pj, 0.0))

    return ProofSpace(operator, machine, weights, more, ragged), score, scorer


def checked_claim(space, claim, score, **asked):
    return check_claim(space, claim, lambda some: [score(mapping) for mapping in some], **asked)


def least_of_all(operator, machine, tiling="perfect", most=10_000):
    """Return the least score of all mappings, whatever memories keep, by objective; None where there are too many."""
    found = dict.fromkeys(OBJECTIVES, np.inf)
    union = KeptSets(MapSpace(operator, machine, tiling))
    if union.size().mappings > most:
        return None
    for member in union:
        model = DenseModel(operator, machine, member.layout)
        for batch in member.enumerate(1 << 15, distinct=True):
            costs = model.score(batch)
            for objective in OBJECTIVES if costs.legal.any() else ():
                values = space_of(operator, machine, objective)[2].values(costs.latency_cycles, costs.energy_pj, 0.0)
                found[objective] = min(found[objective], float(values[costs.legal].min()))
    return found


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(200))
def test_what_holds_and_what_does_not_is_what_enumeration_finds(seed):
    rng = np.random.default_rng([19, seed])
    operator, machine = LAYERS[seed % len(LAYERS)], drawn_machine(rng)
    least = least_of_all(operator, machine)
    for objective, best in least.items() if least else ():
        space, score, _ = space_of(operator, machine, objective)
        if np.isfinite(best) and best > 0:
            assert checked_claim(space, best, score).holds
            beaten = checked_claim(space, best * 1.001, score)
            assert beaten.holds is False
            assert best * (1 - 1e-9) <= beaten.score == score(beaten.better) < best * 1.001


def test_words_that_cross_cost_what_the_oracle_counts():
    """Where no arrays lie between memories, all energy follows from the words that come out of and into tiles."""
    deep = 0
    for seed in range(40):
        rng = np.random.default_rng([20, seed])
        operator, machine = LAYERS[seed % len(LAYERS)], drawn_machine(rng)
        machine = replace(machine, levels=tuple(replace(memory, leakage_mw=0.0) for memory in machine.memories))
        space, union = space_of(operator, machine, "energy")[0], KeptSets(MapSpace(operator, machine, "perfect"))
        drawn = union[int(rng.integers(len(union)))].sample(rng, 4)
        found = [drawn.mapping(at, operator.sizes) for at in range(len(drawn))]
        for mapping in (one for one in found if is_legal(one, operator, machine)):
            sums, cost = space.sums(full_keeps(mapping, operator, machine)), walk(operator, machine, mapping)
            names = [*(memory.name for memory in machine.memories), None]
            out, into = ([getattr(cost.counts[name, tensor.name], kinds[tensor.is_output]) if name else 0
                          for edge in sums.edges for tensor in [operator.tensors[edge.tensor]]
                          for name in [names[edge.parent if outer else edge.child]]]
                         for outer, kinds in ((True, ("reads", "updates")), (False, ("fills", "drains"))))
            assert sums.energy @ [1, *out, *into] == pytest.approx(cost.energy_pj)
            deep += sum(operator.tensors[edge.tensor].is_output for edge in sums.edges) == 3
    assert deep


def test_what_the_checker_does_not_know_is_refused():
    machine = tw.load_accelerator("eyeriss")
    with pytest.raises(InputError, match="an output that slides"):
        space_of(transposed_convolution("t", in_channels=2, out_channels=2, in_size=(4,), kernel=3, stride=2), machine,
                 "edp")
    with pytest.raises(InputError, match="footprints of boxes"):
        space_of(LAYERS[0], replace(machine, footprint="box"), "edp")
    with pytest.raises(InputError, match="forward words"):
        space_of(LAYERS[0], forwarding(machine), "edp")
    with pytest.raises(InputError, match="falls with more cycles"):
        space_of(LAYERS[0], machine, "power")
    for asked, rule in (
            ({"tiling": "ruby-s"}, "ruby-s tiling"), ({"tiling": "perfect", "constraints": "latency<=1e9"}, "limits"),
            ({"tiling": "perfect", "constraints": Constraints(loops={"DRAM": ("M",)})}, "what memories keep")):
        with pytest.raises(InputError, match=rule):
            tw.map(LAYERS[0], machine, certificate="never-written.json", store=False, **asked)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("proofs") / "run.json"
    tw.map("matmul:M=8,N=6,K=8", "edge-s1", mapper="exact", tiling="perfect", budget=100_000, store=False,
           certificate=place)
    return json.loads(place.read_text())


def test_what_takes_too_long_is_told_as_that(monkeypatch):
    space, score, _ = space_of(LAYERS[0], tw.load_accelerator("edge-s1"), "edp")
    monkeypatch.setattr(proofs, "MOST_PAIRS", 10)
    found = checked_claim(space, 1e9, score, most=3)
    assert found.holds is None
    assert found.reason.startswith("after 0 of 64 kept sets there are more than ")


def checked(record, folder):
    place = folder / "changed.json"
    place.write_text(json.dumps(record))
    return tw.verify(place)[0]


def test_a_certificate_holds_and_says_what_it_is_of(certificate, tmp_path):
    found = checked(certificate, tmp_path)
    assert found.holds and found.score == found.bound
    assert "the optimum: holds (64 kept sets" in str(found)


def test_small_proofs_need_neither_the_engine_nor_a_trace_of_the_search(certificate, tmp_path, monkeypatch):
    """The oracle walks them; of larger ones mappings are scored by the engine."""
    def refused(*_):
        raise AssertionError("the engine was asked")

    monkeypatch.setattr(evaluation, "cost_model", refused)
    monkeypatch.setattr(proving, "cost_model", refused)
    record = deepcopy(certificate)
    record["layers"][0]["search"] |= {"history": [], "samples": 1, "legal_samples": 1}
    assert checked(record, tmp_path).holds
    larger = tmp_path / "larger.json"
    with monkeypatch.context() as undone:
        undone.undo()
        tw.map("matmul:M=512,N=512,K=512", "edge-s1", budget=20, store=False).write_json(larger)
    with pytest.raises(AssertionError, match="the engine was asked"):
        tw.verify(larger)


@pytest.mark.parametrize(("bound", "holds"), [(float("nan"), False), (float("inf"), False), (-5.0, True)])
def test_bounds_that_are_no_scores_claim_no_optimum(certificate, bound, holds, tmp_path):
    record = deepcopy(certificate)
    record["layers"][0]["bounds"]["score"] = bound
    found = checked(record, tmp_path)
    assert found.holds is holds
    assert not (holds and "the optimum" in str(found))


def test_more_than_was_claimed_can_be_checked(certificate, tmp_path):
    record, place = deepcopy(certificate), tmp_path / "loose.json"
    record["layers"][0]["bounds"]["score"] *= 0.9
    assert checked(record, tmp_path).bound < checked(record, tmp_path).score
    place.write_text(json.dumps(record))
    assert tw.verify(place, optimum=True)[0].holds
    run = tw.map("matmul:M=8,N=6,K=8", "edge-s1", mapper="random", tiling="perfect", budget=20, store=False)
    assert tw.verify(run.write_json(place))[0].holds
    found = tw.verify(place, optimum=True)[0]
    assert found.holds is False and found.better is not None and found.bound == found.score


@pytest.mark.parametrize("fault", ["score", "bound", "mapping", "machine", "keeps"])
def test_changed_certificates_do_not_hold(certificate, fault, tmp_path):
    record = deepcopy(certificate)
    layer = record["layers"][0]
    if fault == "score":
        layer["search"]["score"] *= 0.999
    elif fault == "bound":
        layer["bounds"]["score"] *= 1.001
    elif fault == "mapping":
        worse = tw.map("matmul:M=8,N=6,K=8", "edge-s1", mapper="random", tiling="perfect", budget=20, store=False)
        layer["mapping"] = json.loads(worse.write_json(tmp_path / "worse.json").read_text())["layers"][0]["mapping"]
    elif fault == "machine":
        record["accelerator"]["definition"] = record["accelerator"]["definition"].replace("108000", "9000000")
        layer["search"]["score"] = layer["bounds"]["score"] = layer["bounds"]["score"] * 1.5
    else:
        layer["mapping"]["levels"][0]["keeps"] = ["I", "W"]
    assert checked(record, tmp_path).holds is False


def test_a_false_optimum_is_beaten_by_a_mapping_that_is_named(certificate, tmp_path, monkeypatch):
    """Partial mappings are left out 40 % too soon, so that the search ends with what is not the best."""
    cut = ExactMapper._cut.fget
    monkeypatch.setattr(ExactMapper, "_cut", property(lambda self: 0.6 * cut(self)))
    place = tmp_path / "false.json"
    tw.map("matmul:M=8,N=6,K=8", "edge-s1", mapper="exact", tiling="perfect", budget=100_000, store=False, seed=1,
           options={"start": 1}, certificate=place)
    best = certificate["layers"][0]["search"]["score"]
    found = tw.verify(place)[0]
    assert found.score == found.bound > best * 1.001
    assert found.holds is False and found.better is not None
    cost = tw.evaluate(found.better, "matmul:M=8,N=6,K=8", "edge-s1").cost
    assert best * (1 - 1e-9) <= cost.edp < found.bound


@pytest.mark.parametrize(("content", "code"), [("whole", 0), ("bound", 1), ("truncated", 2), ("empty", 3)])
def test_the_verb_tells_by_its_exit_code(certificate, content, code, tmp_path):
    record, place = deepcopy(certificate), tmp_path / "run.json"
    record["layers"][0]["bounds"]["score"] *= 1.001 if content == "bound" else 1
    record["layers"] = [] if content == "empty" else record["layers"]
    text = json.dumps(record)
    place.write_text(text[:len(text) // 2] if content == "truncated" else text)
    if code == 2:
        with pytest.raises(InputError, match="must be JSON"):
            tw.verify(place)
        return
    found = CliRunner().invoke(app, ["verify", str(place)])
    assert found.exit_code == code
    assert ("does not hold" in found.stdout) == (code == 1)
    assert ("no layer to check" in found.stdout) == (code == 3)


def test_claims_are_told_as_they_are_checked(certificate, tmp_path, monkeypatch):
    record, place, check = deepcopy(certificate), tmp_path / "run.json", iter([proving._checked])
    record["layers"] *= 2
    place.write_text(json.dumps(record))

    def stopped(*layer):
        for one in check:
            return one(*layer)
        raise KeyboardInterrupt

    monkeypatch.setattr(proving, "_checked", stopped)
    found = CliRunner().invoke(app, ["verify", str(place)])
    assert found.exit_code != 0 and ": holds (" in found.stdout


def test_a_check_that_is_ended_early_says_how_far_it_came(certificate, tmp_path, monkeypatch):
    record, place, told = deepcopy(certificate), tmp_path / "run.json", []
    record["layers"] *= 2
    place.write_text(json.dumps(record))
    late = tw.verify(place, seconds=1e-9)
    assert [claim.holds for claim in late] == [None, None]
    assert "could not be told (after 0 of 64 kept sets 1e-09 s were over)" in str(late[0])
    assert tw.verify(place, seconds=1000)[0].holds
    with pytest.raises(tw.InputError, match="seconds: must be positive"):
        tw.verify(place, seconds=0)

    def show(bar, name, done, total, about):
        told.append((name, about))
        if done == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Bar, "show", show)
    found = CliRunner().invoke(app, ["verify", str(place)])
    assert found.exit_code == 130 and "Stopped before the end." in found.stderr
    assert found.stdout.count("(after 3 of 64 kept sets it was stopped)") == found.stdout.count("\n") == 1
    assert told[0] == ("matmul", "0/64 kept sets") and told[-1] == ("matmul", "3/64 kept sets")
