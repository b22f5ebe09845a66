"""Tilewright from Python."""

import doctest
import importlib
import inspect
import os
import pickle
import shutil
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.api import places
from tilewright.api.tasks import read_budget
from tilewright.api.warm import OFF, warm_budget
from tilewright.cost import kept_bounds, layer_bounds
from tilewright.hardware import Memory
from tilewright.mapping import KeptSets
from tilewright.search import Progress, search_spaces
from tilewright.store import RunRecord, keep, mapping_of, operator_of
from tilewright.workload import MacNode, Unmodelled, zoo

SMALL = "matmul:M=64,N=64,K=32"


@pytest.fixture(autouse=True)
def own_store(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_STORE", str(tmp_path / "runs.sqlite"))


@pytest.mark.parametrize("name", sorted(name for name in tw.__all__ if name.islower() and name[0] != "_"))
@pytest.mark.parametrize("wrong", [None, 3.5, object()], ids=["None", "a number", "an object"])
def test_arguments_of_wrong_types_are_one_clear_error(name, wrong):
    function = getattr(tw, name)
    needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty
              and one.kind is one.POSITIONAL_OR_KEYWORD]
    if needed:
        with pytest.raises(tw.InputError):
            function(*(wrong for _ in needed))


@pytest.mark.parametrize(("call", "told"), [
    (lambda: tw.map("ncf", "edge-s1", mapper=3), "mapper: must be a name; Got 3"),
    (lambda: tw.map("ncf", "edge-s1", layers=[]), "layers: must be str, not list"),
    (lambda: tw.bounds("ncf", "edge-s1", bind="batch"), "bind: must be Mapping, not str"),
    (lambda: tw.compare(SMALL, "edge-s1", seed=-1), "seed: must be at least 0; Got -1"),
    (lambda: tw.allocate("ncf", pads=[]), "pads: must be one or more"),
    (lambda: tw.allocate("ncf", pads="2x64KB", word=3.5), "word: must be a whole number; Got 3.5"),
    (lambda: tw.recommend(SMALL, objective=3.5), "must be a known"),
    *((partial(tw.map, SMALL, "edge-s1", constraints=wrong), f"constraints: must be limits on layers, or {told}")
      for wrong, told in ((3.5, "constraints of map spaces; Got '3.5'"), (b"x", ""), ([b"x"], ""), (None, ""))),
    (lambda: tw.map(SMALL, "edge-s1", workers=1.5), "workers: must be a whole number; Got 1.5"),
    (lambda: tw.sweep(SMALL, "edge-s1", vary=b"PEs.shape=8x8"), "vary: must be str or Iterable, not bytes"),
    (lambda: tw.load_constraints(3.5, None, None), "must be a readable text file")])
def test_options_of_wrong_types_are_one_clear_error_too(call, told):
    with pytest.raises(tw.InputError) as error:
        call()
    assert told in str(error.value)


def test_the_first_argument_of_a_wrong_type_is_named_and_functions_stay_what_they_are():
    with pytest.raises(tw.InputError, match=r"^mapping: must be str, Path, Mapping or MappingRecord, not None"):
        tw.evaluate(None)
    with pytest.raises(tw.InputError, match=r"^channels: must be int, not dict"):
        tw.depthwise("a", {}, kernel=3, in_size=8)
    with pytest.raises(tw.InputError, match=r"^a\.dimensions\.M: must be a positive integer; Got 3\.5"):
        tw.matmul("a", 3.5, 4, 5)
    with pytest.raises(tw.InputError, match=r"^a\.kernel: must be given"):
        tw.convolution("a", in_channels=4, out_channels=4)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'arch'"):
        tw.evaluate("x.yaml", SMALL)
    with pytest.raises(AttributeError, match="within"):
        tw.validate(["gemmini"], observer=lambda *_: tw.within)
    assert pickle.loads(pickle.dumps(tw.evaluate)) is tw.evaluate
    assert tw.matmul("a", np.int64(3), 4, 5).macs == 60


def test_five_lines_do_the_main_job(tmp_path):
    run = tw.map("ncf", arch="eyeriss", objective="edp", budget=1000)
    layer = run.layers["mlp.1"]
    assert str(layer.mapping).startswith("mlp.1 on eyeriss")
    assert layer.cost.edp >= layer.bounds.edp > 0
    assert tw.evaluate(layer.mapping, "ncf", "eyeriss", "mlp.1").cost.edp == layer.cost.edp
    assert run.write_report(tmp_path / "out" / "ncf.html").stat().st_size > 500_000
    totals = run.record.totals
    assert run.latency_cycles == totals.vector_cycles + sum(
        one.count * one.cost.latency_cycles for one in run.record.layers)
    assert run.energy_pj == pytest.approx(
        totals.vector_energy_pj + sum(one.count * one.cost.energy_pj for one in run.record.layers))
    assert run.kept.stored and tw.open_run("last").record == run.record
    assert not run.interrupted and "ncf on eyeriss" in str(run)


def test_every_name_of_the_package_is_there():
    for name in tw.__all__:
        assert getattr(tw, name) is not None
    assert set(tw.__all__) <= set(dir(tw))
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = tw.nothing_like_this


@pytest.mark.parametrize("module", [
    "tilewright", *(f"tilewright.api.{name}" for name in (
        "evaluation", "fusing", "network_fronts", "packing", "recommending", "runs"))])
def test_examples_in_docstrings_run(module):
    assert all(hasattr(tw, name) for name in tw.__all__)  # so that all are loaded, and their examples with them
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0 and found.attempted > 0


def conv_file(path, batch="batch"):
    from onnx import TensorProto, helper, save

    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 8, 8])
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, [batch, 4, 8, 8])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 3, 3], [0.0] * 108)
    nodes = [helper.make_node("Conv", ["image", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
             helper.make_node("Sorcery", ["c"], ["result"], "spell", domain="elsewhere")]
    graph = helper.make_graph(nodes, "net", [image], [result], [weights])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("elsewhere", 1)]),
         path)


def test_an_onnx_file_is_mapped_and_nothing_is_left_out_in_silence(tmp_path):
    conv_file(tmp_path / "net.onnx")
    with pytest.raises(tw.InputError, match="must be bound"):
        tw.load_network(tmp_path / "net.onnx")
    run = tw.map(tmp_path / "net.onnx", "edge-s1", budget=300, bind={"batch": 2}, store=False)
    assert run.record.totals.macs == 2 * 4 * 3 * 64 * 9
    assert "Sorcery" in run.record.not_modelled[0]
    assert "an unknown share: 13,824 MACs and" in run.record.network.coverage and "not modelled" in str(run)
    covered = run.record.network.covered
    assert (covered.macs, covered.lost_macs, covered.unknown_nodes, covered.complete) == (13_824, 0, 1, False)
    assert "--bind batch=2" in run.record.request.command
    assert run.kept is None


def test_a_network_is_whatever_names_one(tmp_path):
    operator = tw.matmul("mine", m=4, n=4, k=4)
    graph = tw.load_network("resnet18")
    assert graph.macs == zoo.load("resnet18").macs
    assert tw.load_network(graph) is graph
    assert tw.load_network("resnet18", bind={"batch": 2}).macs == 2 * graph.macs
    assert [node.name for node in tw.load_network(operator).mac_nodes] == ["mine"]
    assert tw.load_network([operator, tw.matmul("other", m=2, n=2, k=2)]).macs == 64 + 8
    shutil.copy(zoo.__file__.replace("__init__.py", "data/ncf.yaml"), tmp_path / "own.yaml")
    assert tw.load_network(tmp_path / "own.yaml").macs == zoo.load("ncf").macs


@pytest.mark.parametrize(("short", "macs", "sizes"), [
    ("conv:K=8,C=4,P=5,Q=6,R=3,S=3,stride=2", 8 * 4 * 30 * 9, {"N": 1, "K": 8, "C": 4, "P": 5, "Q": 6, "R": 3, "S": 3}),
    ("conv:N=2,G=4,K=1,C=1,P=5,Q=5,R=3,S=3", 2 * 4 * 25 * 9, {"N": 2, "G": 4, "K": 1, "C": 1}),
    ("matmul:M=3,N=4,K=5,B=2", 120, {"B": 2, "M": 3, "N": 4, "K": 5}),
    ("einsum:bik,bkj->bij:b=2,i=3,j=4,k=5", 120, {"b": 2, "i": 3, "j": 4, "k": 5}),
])
def test_one_operator_can_be_written_in_short(short, macs, sizes):
    operator = tw.pick_operator(short)
    assert operator.macs == macs
    assert sizes.items() <= operator.sizes.items()


def test_strides_of_an_operator_in_short_are_kept():
    operator = tw.pick_operator("conv:K=8,C=4,P=5,Q=6,R=3,S=3,stride=2,dilation=3")
    assert {("P", 2), ("R", 3)} == set(operator.tensor("I").axes[2].terms)


def test_a_run_of_one_layer_finds_what_the_search_finds():
    run = tw.map(SMALL, "edge-s1", budget=2000, seed=4, store=False)
    layer = run.layers["matmul"]
    kept = KeptSets(tw.map_space(operator_of(layer), "edge-s1"))
    alone = search_spaces(kept, budget=2000, seed=(4, 0))
    assert mapping_of(layer) == alone.mapping
    assert layer.cost.energy_pj == alone.cost.energy_pj
    assert layer.search.score == alone.score == pytest.approx(layer.search.history[-1][2], rel=1e-12)


def test_progress_is_told_from_beginning_to_end():
    class Watcher:
        def __init__(self):
            self.began, self.steps = None, []

        def begin(self, layers, budget):
            self.began = (layers, budget)

        def update(self, progress):
            self.steps.append(progress)

    watcher = Watcher()
    tw.map("ncf", "edge-s1", budget=1000, progress=watcher, store=False)
    assert watcher.began == (4, tw.Budget(1000))
    ends = [step for step in watcher.steps if isinstance(step, Progress) and step.samples == 1000]
    assert len({step.name for step in ends}) == 4


@pytest.mark.parametrize(("text", "samples", "seconds"), [
    ("10k", 10_000, None), ("1M", 1_000_000, None), ("2.5k,3s", 2500, 0.75), ("1m", None, 15.0), (500, 500, None),
])
def test_budgets_are_read_and_seconds_shared(text, samples, seconds):
    operators = [tw.matmul(f"m{size}", m=size, n=2, k=2) for size in range(1, 9)]
    share = warm_budget(read_budget(text), operators, OFF.beginnings(operators), workers=2)
    assert (share.samples, share.seconds) == (samples, seconds)


def test_bounds_hold_for_every_name_of_a_layer():
    found = tw.bounds("resnet18", "eyeriss")
    graph = zoo.load("resnet18")
    assert list(found) and set(found) == {node.name for node in graph.mac_nodes}
    node = graph.node("layer3.1.conv2")
    assert isinstance(node, MacNode)
    assert found["layer3.1.conv2"] == kept_bounds(node.operator, tw.load_accelerator("eyeriss"))


def test_bounds_of_a_mapping_hold_whatever_memories_keep():
    operator, machine = tw.matmul("m", m=8, n=8, k=8), tw.load_accelerator("accel-a")
    every = tw.evaluate(tw.dataflow("weight-stationary", operator, machine), operator, machine)
    assert every.bounds == kept_bounds(operator, machine)
    assert every.bounds.energy_pj <= layer_bounds(operator, machine).energy_pj
    text = ("levels:\n- level: DRAM\n  loops: [M: 1, N: 1, K: 1]\n- level: Shared\n  keeps: [I]\n"
            "- level: Private\n  keeps: []\n")
    bare = tw.evaluate(text, operator, machine)
    assert bare.legal and bare.bounds == every.bounds
    fixed = replace(machine, levels=tuple(
        replace(level, always=True) if isinstance(level, Memory) else level for level in machine.levels))
    assert kept_bounds(operator, fixed) == layer_bounds(operator, fixed)
    assert tw.evaluate(text, operator, fixed).bounds == layer_bounds(operator, fixed, bypass=True)
    assert bare.cost.energy_pj >= bare.bounds.energy_pj
    assert "its bound" in str(bare)


def test_a_network_without_layers_to_map_is_refused():
    graph = tw.Graph("odd", (Unmodelled("x", "Sorcery", "unknown"),))
    with pytest.raises(tw.InputError, match="must have at least one layer of multiply-accumulates"):
        tw.map(graph, "edge-s1")


def test_tilings_are_perfect_or_not():
    with pytest.raises(tw.InputError, match="must be one of perfect, imperfect, ruby"):
        tw.map(SMALL, "edge-s1", tiling="perfectly", store=False)
    steps = mapping_of(tw.map("matmul:M=60,N=35,K=12", "edge-s1", tiling="perfect", budget=500,
                              store=False).layers["matmul"]).levels
    extents = {"B": 1, "M": 60, "N": 35, "K": 12}
    for level in steps:
        for loop in level.loops:
            assert extents[loop.dimension] % loop.step == 0
            extents[loop.dimension] = loop.step


def test_a_record_survives_its_file(tmp_path):
    run = tw.map(SMALL, "edge-s1", budget=300, store=False)
    assert isinstance(run.record, RunRecord)
    assert tw.open_run(run.write_json(tmp_path / "deep" / "run.json")).record == run.record


def test_figures_that_no_database_holds_are_kept_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = tw.map(SMALL, "edge-s1", budget=300, store=False).record
    huge = replace(record, totals=replace(record.totals, macs=2**63))
    kept = keep(huge)
    assert not kept.stored and "The run was not stored" in kept.warning
    assert tw.open_run(kept.place).record == huge


def test_the_engine_compiles_where_nothing_can_be_written(tmp_path, monkeypatch):
    """No place beside the code and none in the home: a passing folder, and a word about it."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").write_text("no folder can be made here")
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR to a folder"):
        places.ready_cache()
    assert Path(os.environ["NUMBA_CACHE_DIR"]).is_dir()
    with warnings.catch_warnings():
        places.ready_cache()
    os.environ["NUMBA_CACHE_DIR"] = ""
    (tmp_path / "file").unlink()
    places.ready_cache()
    assert os.environ["NUMBA_CACHE_DIR"] == ""


def test_a_machine_may_be_yaml_text_and_no_name_is_too_long_to_be_told_wrong():
    machine = tw.load_accelerator("edge-s1")
    assert tw.load_accelerator(tw.dump_accelerator(machine)) == machine
    flow = "{name: one, note: " + "x" * 300 + ".5}"
    with pytest.raises(tw.InputError, match="must be a known accelerator"):
        tw.load_accelerator(flow)
    with pytest.raises(tw.InputError, match="must be"):
        tw.load_network(flow)


@pytest.mark.parametrize("network", [None, 3, b"resnet50", ["ncf"]])
def test_what_is_no_network_is_refused(network):
    with pytest.raises(tw.InputError, match="network: must be a name, a file, a graph, or operators"):
        tw.load_network(network)


@pytest.mark.parametrize("seed", [1.5, float("nan"), "1", None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(tw.InputError, match="seed: must be a whole number"):
        tw.map("ncf", arch="edge-s1", budget=10, seed=seed, store=False)
