import math

import numpy as np
import pytest

from tilewright.cost import DenseModel
from tilewright.hardware import Memory, preset
from tilewright.mapping import MapSpace, dataflow, is_legal
from tilewright.reproduce import Setting, gamma_fig4_4, run_study
from tilewright.reproduce.gamma_contest import (
    BASELINES,
    FIXED,
    GAMMA,
    OWN,
    PAPER,
    ByMethod,
    Method,
    baselines,
    convolutions,
    least,
    machine,
    over,
    ratios,
    span,
    summary_table,
    unmapped,
)
from tilewright.reproduce.gamma_release import NUMBERS, ReleaseEncoding, release_methods, release_search
from tilewright.reproduce.gamma_table4_5 import PUBLISHED, bound_of, curve
from tilewright.reproduce.gamma_table4_6 import FIRST, TwoStages, left, network, published_below
from tilewright.reproduce.searching import Tried, by_seed, figure_of, median_run, total
from tilewright.search import MAPPERS
from tilewright.workload import convolution


def test_platforms_are_those_of_table_4_2_with_ports_that_never_limit():
    for system in ("s1", "s2", "s3"):
        assert machine("edge", system).compute_instances == 168
        assert machine("cloud", system).compute_instances == 65_536
        given = preset(f"edge-{system}")
        for level, own in zip(machine("edge", system).levels, given.levels, strict=True):
            if isinstance(level, Memory):
                assert (level.capacity_bytes, level.energy) == (own.capacity_bytes, own.energy)
                assert level.bandwidth.read is level.bandwidth.write is level.bandwidth.shared is None


def test_layers_are_those_of_the_released_model_files():
    counts = {name: (len(convolutions(name)), sum(layer.count for layer in convolutions(name)))
              for name in ("resnet18", "vgg16", "mobilenet-v2", "shufflenet-v2")}
    assert counts == {"resnet18": (11, 20), "vgg16": (9, 13), "mobilenet-v2": (30, 52), "shufflenet-v2": (16, 56)}


@pytest.mark.parametrize(("method", "spread"), [
    (FIXED[0], {"K", "C"}), (FIXED[1], {"P", "R"}), (FIXED[2], {"P", "Q"})])
def test_fixed_dataflows_spread_the_two_dimensions_that_the_paper_names(method, spread):
    for platform in ("edge", "cloud"):
        spread_by = []
        for layer in convolutions("resnet18"):
            mapping = dataflow(method.flow, layer.operator, machine(platform, "s3"))
            spread_by.append({loop.dimension for level in mapping.levels for loop in level.loops if loop.axis})
        assert set.union(*spread_by) == spread


def made(label, *figures):
    """Return what a method found on copies of a layer: for each, figures by seed."""
    layer = convolutions("resnet18")[1]
    found = []
    for values in figures:
        runs = tuple({"edp": value, "latency_cycles": value, "samples": 10, "legal_samples": 5 if value else 0}
                     for value in (values if isinstance(values, tuple) else (values,)))
        median = runs[0] if runs[0]["edp"] else None
        found.append(Tried(ByMethod(layer, Method(label, "gamma")), runs, median, [{"agrees": True, "scale": 1}],
                           "latency_cycles"))
    return found


def test_methods_that_fail_are_compared_where_both_succeed_and_their_share_is_told():
    gamma, other = made(PAPER, 10, 20, 30), made("DE", 40, None, 90)
    times = convolutions("resnet18")[1].count
    assert total(gamma) == 60 * times
    assert total(other) == math.inf
    assert over(other, gamma) == pytest.approx(130 / 40)
    assert over(made("none", None, None, None), gamma) is None
    assert unmapped(other) == (1, 3)
    table = summary_table("t", "title", {PAPER: gamma, "DE": other}, 30.0 * times)
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["DE"]["Network (cycles)"] == "NAN"
    assert rows["DE"]["Layers without a mapping"] == "1 of 3"
    assert rows["DE"]["Runs without (%)"] == pytest.approx(100 / 3)
    assert rows["DE"]["Legal samples (%)"] == pytest.approx(100 / 3)
    assert rows[PAPER]["Over the bound"] == 2


def test_the_closest_method_decides_seed_by_seed():
    tries = {PAPER: made(PAPER, (10, 10), (10, 10)), "near": made("near", (30, 20), (10, 20)),
             "far": made("far", 500, 500)}
    others = ("near", "far")
    assert ratios(tries, others) == {"near": 2.0, "far": 50.0}
    assert span(ratios(tries, others)) == "2x (near) to 50x (far)"
    assert [least(ratios(one, others)) for one in by_seed(tries)] == [2.0, 2.0]
    assert math.isnan(least({}))


def test_baselines_that_cannot_be_built_are_named_and_the_rest_compete(tmp_path, monkeypatch):
    ready, missing = baselines()
    assert {method.label for method in ready} | set(missing) == set(BASELINES)
    assert all(method.mapper in MAPPERS for method in ready)
    monkeypatch.setitem(BASELINES, "unheard of", "no-such-mapper")
    assert "unheard of" in baselines()[1]
    outcome = run_study("gamma-fig4.5", Setting("tiny", 1, {"samples": 40, "every": 25}), out=tmp_path)
    assert "unheard of" in outcome.findings.notes[0]
    assert {row[0] for row in outcome.findings.tables[0].rows} == {
        GAMMA.label, OWN.label, *(method.label for method in (*FIXED, *baselines()[0])), "Nothing can beat"}


def test_claims_on_baselines_are_judged_by_layers_without_a_mapping():
    good, bad = made("DE", (40, 40), (50, 50), (60, 60)), made("DE", (None, None), (None, None), (60, 60))

    def verdicts(edge, cloud, drawn):
        judged = gamma_fig4_4._release_claims({"edge": {"DE": edge, "random, as released": drawn},
                                               "cloud": {"DE": cloud, "random, as released": drawn}})
        return [each.verdict for each in judged]

    assert verdicts(bad, good, bad) == ["holds"] * 3
    assert verdicts(good, bad, good) == ["does not hold"] * 3
    assert {each.verdict for each in gamma_fig4_4._release_claims({"edge": {}, "cloud": {}})} == {"not judged"}

    def found(s1, s3):
        return {(system, platform): {PAPER: made(PAPER, (1, 1), (2, 2), (3, 3)),
                                     "DE": {"s1": s1, "s3": s3}.get(system, good)}
                for system in ("s1", "s2", "s3") for platform in ("edge", "cloud")}

    assert gamma_fig4_4._grows(found(good, bad)).verdict == "holds"
    assert gamma_fig4_4._grows(found(bad, good)).verdict == "does not hold"
    assert gamma_fig4_4._grows(found(good, good)).verdict == "does not hold"


def test_the_releases_numbers_are_mappings_of_its_meaning():
    operator = convolution("c", in_channels=16, out_channels=24, in_size=12, kernel=3, padding=1)
    space = MapSpace(operator, machine("edge", "s1"))
    encoding = ReleaseEncoding(space)
    points = np.full((3, NUMBERS), 0.999)
    points[0, 2:8], points[0, 10:] = 0.0, 0.0  # tiles of one word
    points[0, 0], points[0, 8] = 0.0, 0.3  # columns spread K; elements C, of which a column has one
    points[1, 0], points[1, 8] = 0.0, 0.0  # K twice
    points[1, 2], points[1, 10] = 5.5 / 24, 1.5 / 24  # six K a column, of which two an element
    batch = encoding.decode(points)
    steps = {name: batch.steps[:, index] for index, name in enumerate(space.layout.dimensions)}
    assert steps["K"][:, 0].tolist() == [14, 14, 1, 1, 1]
    assert steps["C"][:, 0].tolist() == [1, 1, 1, 1, 1]
    assert steps["K"][:, 1].tolist() == [24, 24, 6, 2, 1]
    assert [steps[name][3, 2] for name in ("K", "C", "P", "Q", "R", "S")] == [24, 16, 12, 12, 3, 3]
    drawn = encoding.decode(np.random.default_rng(1).random((400, NUMBERS)))
    assert np.array_equal(np.sort(drawn.ranks, axis=1)[0, :, 0], np.arange(len(space.layout.dimensions)))
    assert np.all(np.diff(drawn.steps, axis=0) <= 0) and np.all(drawn.steps[-1] == 1)
    legal = DenseModel(operator, machine("edge", "s1"), space.layout).score(drawn).legal
    assert legal.any() and not legal.all()
    for index in range(0, 400, 20):
        assert is_legal(drawn.mapping(index, operator.sizes), operator, machine("edge", "s1")) == legal[index]


@pytest.mark.parametrize("method", release_methods(), ids=lambda method: method.mapper)
def test_baselines_as_released_keep_to_their_samples_and_repeat(method):
    layer = convolutions("resnet18")[0]
    first, again = (release_search(layer, machine("edge", "s1"), method, 130, 3) for _ in range(2))
    assert first == again
    assert first["samples"] == 130 >= first["legal_samples"]
    if first["edp"] is not None:
        assert first["history"][-1][1] == first["latency_cycles"]
        assert first["history"][-1][0] <= 130


def test_published_sums_below_the_bound_are_told():
    below = {row for row in PUBLISHED if row[1] == "latency" and PUBLISHED[row][0] < bound_of(row)}
    assert below == {(name, "latency", "edge") for name in ("mobilenet-v2", "mnasnet", "shufflenet-v2", "resnet50")} | {
        ("resnet50", "latency", "cloud")}
    assert published_below()["cloud"] == {"power": 0, "energy": 2}
    assert published_below()["edge"]["power"] > 5


def test_curves_sum_the_medians_of_layers_and_wait_for_all():
    tries = made(PAPER, 10, 20)
    times = tries[0].of.layer.count
    histories = ([[1, 50.0], [250, 10.0]], [[300, 20.0]])
    tries = [Tried(each.of, ({**each.runs[0], "history": history},), each.median)
             for each, history in zip(tries, histories, strict=True)]
    assert curve(tries, range(1, 4)) == [None, 30 * times, 30 * times]


def test_the_layers_of_table_4_6_are_those_of_the_network():
    names = {node.name for node in network("resnet18", 1).mac_nodes}
    assert set(FIRST) <= names
    assert len(network("resnet18", 1).mac_nodes) == 20


def test_what_a_second_stage_leaves_is_told_by_seed_where_every_layer_is_mapped():
    runs = [{"first": {"energy_pj": 10.0, "layer_power_mw": 1.0}, "then": {"energy_pj": value, "layer_power_mw": 1.0},
             "missing": []} for value in (2.0, 4.0, 9.0)]
    runs.append({"layers": [], "missing": ["conv1"]})
    stages = TwoStages("resnet18", "edge", GAMMA, "energy", Setting("tiny", 4))
    assert left(Tried(stages, runs, None)) == pytest.approx([0.2, 0.4, 0.9])
    assert [figure_of(run, "then.energy_pj") for run in runs] == [2.0, 4.0, 9.0, None]
    assert median_run(runs, "then.energy_pj") == runs[1] and median_run(runs[2:], "then.energy_pj") is None
