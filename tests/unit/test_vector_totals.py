"""Vector work in the totals of every verb that takes networks: by one rule, never below a bound, free on request."""

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.api import convert
from tilewright.cost import Totals, VectorShare, vector_shares
from tilewright.hardware import VectorUnit, dump_accelerator, preset
from tilewright.interop import Foreign
from tilewright.scheduling import LayerJob, analyse, load_system, network_jobs, task_groups
from tilewright.workload import DataMovement, Graph, MacNode, Unmodelled, VectorOperator, matmul
from tiny_system import TINY

MACHINE = replace(preset("flexion"), vector=VectorUnit(2, energy_pj_per_operation=3.0, folds=("relu",)))
QUICK = {"budget": 120, "store": False, "mapper": "random"}


def network(seed):
    """Three layers with vector work before, between and behind them, some of which runs several times."""
    rng = np.random.default_rng(seed)
    m, k, n = (int(size) for size in rng.integers(4, 24, 3))

    def work(name, kind, after, count=1):
        words = int(rng.integers(20, 4000))
        return VectorOperator(name, kind, 5 * words, words, words, after, count)

    return Graph(f"net{seed}", (
        DataMovement("table", "Gather", m * k, m * k), MacNode(matmul("a", m=m, n=n, k=k), ("table",)),
        VectorOperator("relu", "Relu", m * n, m * n, m * n, ("a",)),
        MacNode(matmul("b", m=m, n=n, k=n), ("relu",), count=2),
        Unmodelled("odd", "Odd", "nobody knows", inputs=("b",)), work("softmax", "Softmax", ("odd",), 2),
        work("norm", "LayerNormalization", ("softmax",)), MacNode(matmul("c", m=m, n=k, k=n), ("norm",)),
        work("last", "Add", ("c", "norm"))))


def test_each_work_belongs_to_the_last_layer_that_it_reads():
    graph = network(0)
    shares, every = vector_shares(graph, MACHINE), {one.node.name: one for one in tw.vector_work(graph, MACHINE)}

    def of(*names):
        return Totals.of((every[name].node.count, every[name]) for name in names)

    for layer, names in {"a": ("table", "relu"), "b": ("softmax", "norm"), "c": ("last",)}.items():
        assert shares[layer].latency_cycles == of(*names).latency_cycles
        assert shares[layer].energy_pj == pytest.approx(of(*names).energy_pj)
    moved = 2 * every["softmax"].traffic_bytes + every["norm"].traffic_bytes
    assert shares["b"].traffic_bytes == moved > 0 and every["relu"].traffic_bytes == 0
    assert every["softmax"].traffic_bytes == every["softmax"].node.bytes_moved() / 2
    assert Totals.of((1, share) for share in shares.values()).latency_cycles == Totals.beside(
        graph, MACHINE).latency_cycles
    towers = Graph("towers", (MacNode(matmul("a", m=2, n=2, k=2)), DataMovement("rows", "Gather", 9, 9),
                              DataMovement("far", "Gather", 8, 8), MacNode(matmul("b", m=2, n=2, k=2), ("rows",)),
                              MacNode(matmul("c", m=2, n=2, k=2), ("rows", "b"))))
    shares = vector_shares(towers, MACHINE)
    assert {*shares} == {"a", "b"} and shares["b"].traffic_bytes == 18  # it feeds b first; what feeds nothing is of a
    assert vector_shares(Graph("none", (DataMovement("rows", "Gather", 9, 9),)), MACHINE) == {}


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_totals_have_it_in_them_and_none_is_below_its_bound(seed):
    graph = network(seed)
    extra = Totals.beside(graph, MACHINE)
    assert extra.latency_cycles > 0

    run, free = (tw.map(graph, MACHINE, **QUICK, vector=vector).record.totals for vector in ("included", "free"))
    assert (run.latency_cycles - free.latency_cycles, run.energy_pj - free.energy_pj) == pytest.approx(
        (extra.latency_cycles, extra.energy_pj))
    assert run.latency_cycles >= run.bound_latency_cycles and run.energy_pj >= run.bound_energy_pj

    for accelerators in (1, 2, 3):
        both = [tw.pipeline(graph, MACHINE, accelerators=accelerators, then="edp", vector=vector, **QUICK).result
                for vector in ("included", "free")]
        whole, without = (found.figures("first") for found in both)
        assert sum(whole.stage_cycles) - sum(without.stage_cycles) == extra.latency_cycles
        assert whole.energy_pj - without.energy_pj == pytest.approx(extra.energy_pj)
        for found in both:
            for figures in (found.figures("first"), found.figures()):
                assert found.bound_cycles <= figures.interval_cycles
            assert found.feasible and found.figures().interval_cycles <= found.limit_cycles
    both = [tw.explore(graph, MACHINE, "0000,1111", budget=60, mapper="random", vector=vector)
            for vector in ("included", "free")]
    for whole, without in zip(*(found.outcomes for found in both), strict=True):
        assert whole.latency_cycles - without.latency_cycles == pytest.approx(extra.latency_cycles)
        assert whole.energy_pj - without.energy_pj == pytest.approx(extra.energy_pj)
        assert whole.latency_cycles >= run.bound_latency_cycles


def test_a_pipeline_leaves_searches_the_time_that_vector_work_does_not_take():
    graph = network(1)
    found = tw.pipeline(graph, MACHINE, accelerators=2, slack=0.5, **QUICK).result
    shares = vector_shares(graph, MACHINE)
    for layer in found.layers:
        together = [one for one in found.layers if one.stage == layer.stage]
        assert layer.vector == shares[layer.name]
        assert sum(one.count * one.limit_cycles + one.vector.latency_cycles for one in together) <= found.limit_cycles
    assert max(layer.limit_cycles / layer.first.cost.latency_cycles for layer in found.layers) > 1.2
    sheet = tw.pipeline(graph, MACHINE, **QUICK).sheet.tables[1]
    assert sheet.columns[-2:] == ("Vector (cycles)", "Vector (energy)")
    assert [row[-2] for row in sheet.rows] == [shares[name].latency_cycles for name in "abc"]


def test_jobs_do_the_vector_work_of_their_layers():
    graph, system = network(2), load_system(TINY)
    plain, whole = network_jobs([(graph, 2)]), network_jobs([(graph, 2)], system=system)
    assert [replace(job, vector=()) for job in whole] == list(plain) and all(len(job.vector) == 2 for job in whole)
    before, after = (analyse(jobs, system, samples=60) for jobs in (plain, whole))
    for kind, core in enumerate(system.kinds):
        shares = vector_shares(graph, core.accelerator)
        for job, row in zip(whole, after.rows, strict=True):
            share = shares.get(job.operator.name, VectorShare())
            assert job.vector[kind] == share
            points = before.fronts[before.rows[whole.index(job)]][kind]
            assert np.array(after.fronts[row][kind]) - np.array(points) == pytest.approx(np.tile(
                [share.latency_cycles, share.traffic_bytes, share.energy_pj], (len(points), 1)))
    drawn = task_groups("recom", 1, 0, 12, system)[0]
    assert [replace(job, vector=()) for job in drawn] == list(task_groups("recom", 1, 0, 12)[0])
    assert any(job.vector and job.vector[0].latency_cycles for job in drawn)
    assert LayerJob("x", matmul("x", m=2, n=2, k=2)).vector == ()


def test_schedules_say_what_became_of_vector_work():
    graph = network(0)
    asked = {"system": TINY, "method": "magma", "budget": 100, "mappings": 30, "store": False}
    whole, free = (tw.schedule(graph, vector=vector, **asked) for vector in ("included", "free"))
    assert whole.makespan_cycles > free.makespan_cycles and whole.record.energy_pj > free.record.energy_pj
    for plan in (whole, free):
        assert plan.makespan_cycles >= plan.bound_cycles
    assert whole.record.assumptions[-1].startswith("Vector work is done in the job")
    assert free.record.assumptions[-1] == "Vector work is left out."
    assert tw.schedule("matmul:M=4,N=4,K=4", **asked).record.assumptions[-1].startswith("No job has vector work")
    assert "--vector free" in free.record.command
    with pytest.raises(tw.InputError, match="vector: must be one of included, free"):
        tw.schedule(graph, vector="none", **asked)


@pytest.mark.parametrize("form", ["maestro", "scale-sim", "timeloop", "tilewright"])
def test_what_other_formats_have_no_place_for_is_told_in_a_line_each(form):
    machine, graph = preset("edge-s2"), network(0)
    if form == "timeloop":
        graph = Graph("one", graph.nodes[:3])
    made = convert(Foreign(graph, machine), form)
    others = [note.text for note in made.notes if "not multiply-accumulates" in note.text]
    unit = [note for note in made.notes if "vector unit" in note.text]
    assert machine.vector is not None and len(unit) == (form != "tilewright")
    assert len(others) == 1 and others[0].startswith(f"{len(graph.nodes) - len(graph.mac_nodes)} nodes")
    assert form == "tilewright" or [str(note) for note in unit] == [
        f"edge-s2.vector: dropped: the vector unit: {form} has none"]
    assert not convert(Foreign(graph, replace(machine, vector=None)), "tilewright").notes[1:]
    with pytest.raises(tw.InputError, match="honoured in full"):
        convert(Foreign(graph, machine), form, strict=True)


def test_a_vector_unit_that_no_node_would_use_is_no_reason_to_refuse():
    graph = Graph("one", (MacNode(matmul("a", m=4, n=6, k=8), ()),))
    made = convert(Foreign(graph, preset("edge-s2")), "maestro", strict=True)
    assert [note.text for note in made.notes] == ["the vector unit: maestro has none"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("objective", ["latency", "edp"])
def test_designs_and_sweeps_count_it_and_their_bounds_too(objective):
    """Two networks with weights: what a design takes is what its runs do, and no bound is above."""
    asked = {"within": "elements=64,bytes=64kB", "objective": objective, "budget": 150, "store": False,
             "method": "digamma"}
    nets = {network(0): 2.0, network(1): 0.5}
    whole, free = (tw.design(nets, "edge-s2", **asked, vector=vector) for vector in ("included", "free"))
    for found in (whole, free):
        figures, runs = found.result.figures, found.runs
        totals = [Totals(run.record.totals.latency_cycles, run.record.totals.energy_pj) for run in runs]
        taken = Totals.of(zip(nets.values(), totals, strict=True))
        assert (figures.latency_cycles, figures.energy_pj) == pytest.approx((taken.latency_cycles, taken.energy_pj))
        assert 0 < found.result.bound <= found.result.score
        for run in runs:
            assert (run.record.totals.vector_cycles > 0) == (found is whole)
            assert run.record.totals.latency_cycles >= run.record.totals.bound_latency_cycles
    machine = whole.result.machine
    least = sum(weight * Totals.beside(graph, machine).latency_cycles for graph, weight in nets.items())
    assert whole.result.figures.latency_cycles > least > 0
    if objective == "latency":
        assert whole.result.bound > free.result.bound

    graph, swept = network(2), []
    for vector in ("included", "free"):
        swept.append(tw.sweep(graph, "edge-s2", "PEs.shape=4x4,8x8", objective=objective, budget=20, vector=vector))
        for one in swept[-1].machines:
            assert one.bound is None or one.bound <= one.score * (1 + 1e-12)
    for one, without in zip(*(found.machines for found in swept), strict=True):
        extra = Totals.beside(graph, one.machine)
        if objective == "latency":
            assert one.latency_cycles == without.latency_cycles + extra.latency_cycles
        assert one.latency_cycles > extra.latency_cycles and one.energy_pj > extra.energy_pj


def test_layers_with_machines_of_their_own_have_no_vector_work():
    asked = {"within": "elements=64,bytes=64kB", "objective": "latency", "budget": 30, "store": False,
             "method": "digamma"}
    found, = tw.design(network(0), "edge-s2", per_layer=True, **asked).runs
    assert found.record.totals.vector_cycles == 0 and found.record.request.vector == "free"


def test_a_vector_unit_moves_where_its_memory_is_left_out_of_a_design():
    machine = replace(preset("edge-s2"), vector=VectorUnit(4, "SG"))
    section = "design:\n  vary:\n    PEs.instances: [16, 64]\n  optional: [SG]\n"
    kept, without = tw.load_design_space(f"{dump_accelerator(machine)}\n{section}").structures()
    assert (kept.accelerator.vector.memory, without.accelerator.vector.memory) == ("SG", None)
    assert [level.name for level in without.accelerator.levels] == ["DRAM", "PEs", "SL"]
