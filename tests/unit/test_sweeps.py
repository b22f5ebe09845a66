"""Machines side by side: what is searched on each, the front, the bound, files and pages; and what is refused."""

import json
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.cost import DenseModel
from tilewright.search import search
from tilewright.workload import unique_operators

LAYERS = "conv:K=32,C=16,P=14,Q=14,R=3,S=3"
VARY = ["SG.capacity=8KiB..64KiB*2", "PEs.shape=4x4,8x8", "DRAM.bandwidth=400MB/s,3.2GB/s"]


@pytest.fixture(scope="module")
def swept() -> tw.MachineSweep:
    return tw.sweep(LAYERS, "edge-s2", VARY, objective="edp", budget=400, workers=1)


def test_all_combinations_are_there_in_order(swept: tw.MachineSweep) -> None:
    assert [tuple(one.values.values()) for one in swept.machines[:3]] == [
        ("8KiB", "4x4", "400MB/s"), ("8KiB", "4x4", "3.2GB/s"), ("8KiB", "8x8", "400MB/s")]
    assert len(swept.machines) == 16
    assert swept.samples >= 2 * 400  # of both bandwidths
    machine = swept.machines[-1].machine
    named = tw.load_accelerator("edge-s2:SG.capacity=64KiB,PEs.shape=8x8,DRAM.bandwidth=3.2GB/s")
    assert machine.area_um2 == named.area_um2
    assert machine.memories == named.memories
    assert prod(machine.fanouts[0].shape) == 64


def test_figures_are_those_of_the_mappings_on_the_machine(swept: tw.MachineSweep) -> None:
    operator = tw.pick_operator(LAYERS)
    for one in swept.machines:
        mapping, = swept.mappings(one).values()
        assert tw.is_legal(mapping, operator, one.machine)
        cost = DenseModel(operator, one.machine).cost(mapping)
        assert (cost.latency_cycles, cost.energy_pj) == (one.latency_cycles, pytest.approx(one.energy_pj))
        assert one.score == pytest.approx(cost.edp)


def test_no_machine_is_far_from_a_search_of_its_own(swept: tw.MachineSweep) -> None:
    operator = tw.pick_operator(LAYERS)
    for one in swept.machines[::5]:
        alone = search(operator, one.machine, objective="edp", budget=400, seed=0)
        assert one.score < alone.score * 1.1


def test_the_front_and_the_bounds(swept: tw.MachineSweep) -> None:
    front = swept.front()
    assert swept.best in front
    for one in swept.machines:
        beaten = any(all(other.figure(name) <= one.figure(name) for name in swept.front_metrics)
                     and any(other.figure(name) < one.figure(name) for name in swept.front_metrics)
                     for other in swept.machines)
        assert beaten or one in front
        assert (one.bound is not None) == (one in front)
        assert one.gap is None or one.gap >= -1e-12


def test_same_seed_same_sweep_on_any_workers(swept: tw.MachineSweep) -> None:
    again = tw.sweep(LAYERS, "edge-s2", VARY, objective="edp", budget=400, workers=2)
    assert [one.score for one in again.machines] == [one.score for one in swept.machines]


@pytest.mark.parametrize("objective", ["energy", "latency-area"])
def test_every_objective(objective: str) -> None:
    found = tw.sweep("ncf", "eyeriss", "GLB.capacity=32KiB,128KiB", objective=objective, budget=60, workers=1)
    assert found.best.score == min(one.figure(objective) for one in found.machines)
    assert len(found.mappings(found.best)) == len(unique_operators(tw.load_network("ncf")))


def test_vector_work_is_in_the_figures_unless_it_is_free() -> None:
    whole, free = (tw.sweep("ncf", "eyeriss", "GLB.capacity=32KiB,128KiB", budget=60, workers=1, vector=vector)
                   for vector in ("included", "free"))
    totals = tw.map("ncf", "eyeriss:GLB.capacity=128KiB", budget=20, store=False).record.totals
    assert totals.vector_cycles > 0
    for one, other in zip(whole.machines, free.machines, strict=True):
        assert one.latency_cycles == other.latency_cycles + totals.vector_cycles
    added = whole.machines[1].energy_pj - free.machines[1].energy_pj
    assert added == pytest.approx(totals.vector_energy_pj)
    for one in (*whole.front(), *free.front()):
        assert one.bound is not None
        assert one.bound <= one.score


def test_machines_too_small_are_told_and_lose_nothing() -> None:
    free = tw.load_accelerator("tpu-like")
    machine = replace(free, levels=tuple(replace(level, always=True) if level.name == "PERegisters" else level
                                         for level in free.levels))
    found = tw.sweep(LAYERS, machine, "PERegisters.capacity=1,2", budget=100, workers=1)
    assert [bool(one.unmapped) for one in found.machines] == [True, False]
    assert found.best is found.machines[1]
    assert "no mapping" in str(found)
    passing = tw.sweep(LAYERS, free, "PERegisters.capacity=1,2", budget=100, workers=1)  # whose weights may pass
    assert not any(one.unmapped for one in passing.machines)


def test_a_sweep_goes_on_where_it_was_kept(tmp_path: Path) -> None:
    first = tw.sweep(LAYERS, "edge-s2", VARY[1], budget=200, out=tmp_path, workers=1)
    again = tw.sweep(LAYERS, "edge-s2", VARY[1], budget=200, out=tmp_path, workers=1)
    assert [one.score for one in again.machines] == [one.score for one in first.machines]


def test_page_and_json(swept: tw.MachineSweep, tmp_path: Path) -> None:
    page = swept.write_report(tmp_path / "page.html").read_text()
    assert "heatmap" in page
    tree = json.loads(swept.write_json(tmp_path / "sweep.json").read_text())
    assert [one["score"] for one in tree["machines"]] == [one.score for one in swept.machines]
    assert tree["command"].startswith("tilewright sweep conv:K=32")
    assert "--vary 'DRAM.bandwidth=400MB/s,3.2GB/s'" in tree["command"] or "--vary DRAM.bandwidth" in tree["command"]


@pytest.mark.parametrize(("vary", "more", "said"), [
    ((), {}, "must be given"), ("SG.size=3,4", {}, "must be a number of the machine"),
    (["SG.capacity=4KiB,8KiB", "SG.capacity=16KiB"], {}, "must name each number once"),
    (["PEs.shape=4x4", "PEs.x=4"], {}, "must name each number once"),
    ("clock=1GHz,2GHz", {}, "clock: must be set, not varied"),
    ("MAC.energy=1,2", {}, "must be a capacity, a bandwidth or sides"),
    (["PEs.x=1..1000+1", "PEs.y=1..1000+1"], {}, "at most 10,000 machines"),
    ("SG.capacity=1,64", {}, "knows 64 to"), ("SG.capacity=64KiB", {"objective": "speed"}, "must be one of latency"),
    ("SG.capacity=64KiB", {"budget": "10s"}, "must be a number of mappings"),
    ("SG.capacity=64KiB", {"seed": -1}, "must be a whole number"), ("SG.capacity=64KiB", {"tiling": "odd"}, "tiling"),
    ("SG.capacity=64KiB", {"front": "latency"}, "front"), ("SG.capacity=64KiB", {"layers": "x"}, "must match")])
def test_what_is_refused(vary: object, more: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        tw.sweep(LAYERS, "edge-s2", vary, **more)  # type: ignore[arg-type]


def test_machines_that_state_zeros_or_flexibility_are_refused() -> None:
    with pytest.raises(InputError, match="sparsity"):
        tw.sweep(LAYERS, "accel-b-sparse", "SG.capacity=64KiB")
    with pytest.raises(InputError, match="flexibility"):
        tw.sweep(LAYERS, "flexion", "GB.capacity=64KiB")
