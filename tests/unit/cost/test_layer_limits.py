"""What sets the cycles of a mapping, what twice of it gives, and where the energy goes."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from tilewright.cost import cost_model, explain, limited_by, limits, limits_of, relief
from tilewright.cost.dense import kernel  # noqa: F401  (loads the engine)
from tilewright.cost.records import Cost, CycleLimit, MemoryTraffic
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, preset
from tilewright.mapping import KeptSets, LevelLoops, Loop, Mapping, MapSpace, dataflow
from tilewright.workload import ROLES, convolution, matmul, with_densities

OPERATOR = matmul("product", m=16, n=16, k=8)
ENERGY = AccessEnergy(2, 2, 2, 2)


def machine(bandwidth=4.0, buffering="buffet", shape=(4, 2)):
    """Eight units behind a buffer, and memory outside."""
    return Accelerator("small", (
        Memory("DRAM", ROLES, AccessEnergy(200, 200, 200, 200), bandwidth=Bandwidth(shared=bandwidth)),
        Memory("Buffer", ROLES, ENERGY, capacity_bytes=256, buffering=buffering, bandwidth=Bandwidth(32.0, 32.0)),
        Fanout("PEs", shape)), Compute("MAC", 1.0))


def mapping(inner=4, lanes=("M", "N")):
    """Tiles of 8 by 8 by 8 in the buffer, ``inner`` by 2 of it at once on the array."""
    return Mapping((LevelLoops("DRAM", (Loop("M", 8), Loop("N", 8))),
                    LevelLoops("Buffer", (Loop("M", inner), Loop("N", 2), Loop("K", 1))),
                    LevelLoops("PEs", tuple(Loop(name, 1, axis) for name, axis in zip(lanes, "XY", strict=True)))))


def cost(steps, ports, *, ramp=0, waits=0):
    """Return a cost with these steps, cycles of ports from the outermost memory inward, and waits for the last."""
    names = ("DRAM", "GLB", "Spads")[:len(ports)]
    traffic = {name: MemoryTraffic(0, 0, cycles, waits if name == names[-1] else 0)
               for name, cycles in zip(names, ports, strict=True)}
    return Cost(0, steps, max(steps + waits, *ports), ramp, 0.0, {}, {}, traffic, "", 0.5)


@pytest.mark.parametrize(("found", "words", "adds"), [
    (cost(1000, (10, 20, 30)), "compute", {"compute": 1000}),
    (cost(688_128, (686_080, 416_154, 704_854), ramp=29_070), "compute, Spads +2.4 %",
     {"compute": 688_128, "Spads": 16_726, "ramp": 29_070}),
    (cost(500, (1000, 900, 800)), "DRAM", {"DRAM": 1000}),
    (cost(1000, (1004, 0, 0)), "compute", {"compute": 1000, "DRAM": 4}),
    (cost(1000, (0, 0, 0), waits=300), "compute, Spads +30.0 %", {"compute": 1000, "Spads": 300}),
    (cost(100, (0, 0, 0), waits=300), "Spads, compute +33.3 %", {"Spads": 300, "compute": 100}),
    (cost(100, (200, 0, 0), ramp=90), "DRAM, ramp +45.0 %", {"DRAM": 200, "ramp": 90}),
    (cost(100, (0, 0, 0), ramp=9), "compute", {"compute": 100, "ramp": 9})])
def test_what_comes_near_is_named_and_all_adds_up(found, words, adds):
    limits = limits_of(found)
    assert limited_by(limits) == words
    assert {limit.name: limit.adds for limit in limits if limit.adds} == adds
    assert sum(adds.values()) == found.latency_cycles
    hidden = [limit.cycles for limit in limits if not limit.adds]
    assert hidden == sorted(hidden, reverse=True)


def test_the_next_limit_stands_first_among_the_hidden():
    assert limits_of(cost(500, (1000, 900, 800)))[1:] == (
        CycleLimit("GLB", "port", 900), CycleLimit("Spads", "port", 800), CycleLimit("compute", "compute", 500))


def test_twice_the_bandwidth_is_what_the_model_says_of_that_machine():
    slow, mapped = machine(0.5), mapping()
    assert limits_of(cost_model(OPERATOR, slow).cost(mapped))[0].name == "DRAM"
    found = relief(OPERATOR, slow, mapped, "DRAM")
    assert found.of == "DRAM" and found.spread == ""
    assert found.latency_cycles == cost_model(OPERATOR, machine(1.0)).cost(mapped).latency_cycles
    unlimited = replace(slow, levels=(replace(slow.levels[0], bandwidth=Bandwidth()), *slow.levels[1:]))
    assert relief(OPERATOR, unlimited, mapped, "DRAM") is None


def test_the_engine_tells_what_the_closed_forms_do(monkeypatch):
    """Twice of each limit, of drawn mappings with what memories let pass; more than one finds the lanes."""
    layer, spread = convolution("c", in_channels=6, out_channels=8, kernel=3, out_size=7, stride=2), 0
    for name in ("eyeriss", "simba-like"):
        structure = preset(name)
        kept = KeptSets(MapSpace(layer, structure))
        for number in (0, len(kept) - 1):
            member, rng = kept[number], np.random.default_rng(number)
            batch = member.fitting(rng, 6)
            for at in range(6):
                mapped = batch.mapping(at, layer.sizes)
                for of in ("compute", *(memory.name for memory in structure.memories)):
                    told = {}
                    for module in (limits.ENGINE, "no such module"):
                        monkeypatch.setattr(limits, "ENGINE", module)
                        told[module] = relief(layer, structure, mapped, of)
                        monkeypatch.undo()
                    assert len(told) == 2 and len(set(told.values())) == 1
                    spread += of == "compute" and told[limits.ENGINE] is not None
    assert limits.ENGINE in sys.modules and spread > 4


def test_sparse_machines_and_very_long_layers_have_relief_though_the_engine_is_loaded():
    assert limits.ENGINE in sys.modules
    layer, sparse = with_densities(matmul("m", m=16, n=8, k=8), {"I": "even:0.5"}), preset("accel-b-sparse")
    outermost = replace(sparse.levels[0], bandwidth=Bandwidth(shared=0.5))
    slow, name = replace(sparse, levels=(outermost, *sparse.levels[1:])), outermost.name
    mapped = dataflow("weight-stationary", layer, slow)
    once, twice = (cost_model(layer, each).cost(mapped).latency_cycles
                   for each in (slow, limits.with_twice(slow, name)))
    assert relief(layer, slow, mapped, name).latency_cycles == twice < once
    long, tiny = matmul("long", m=1 << 32, n=1, k=1), machine(0.5)
    turns = Mapping((LevelLoops("DRAM", (Loop("M", 1),)), LevelLoops("Buffer"), LevelLoops("PEs")))
    assert relief(long, tiny, turns, "DRAM").latency_cycles == cost_model(
        long, machine(1.0)).cost(turns).latency_cycles > 1 << 32


def test_arrays_are_made_twice_as_wide_and_twice_as_high():
    found = limits._machines_with_twice(machine())
    assert [(index, axis, made.levels[index].shape) for index, axis, made in found] == [
        (2, "X", (8, 2)), (2, "Y", (4, 4))]


def test_twice_the_lanes_halve_the_turns_of_the_loop_outside_the_array():
    """256 steps: 2 x 2 tiles of 2 x 4 x 8 turns; the array twice as wide takes M 8 instead of 4 a step."""
    found = relief(OPERATOR, machine(64.0), mapping(), "compute")
    wide = cost_model(OPERATOR, machine(64.0, shape=(8, 2))).cost(mapping(inner=8))
    assert cost_model(OPERATOR, machine(64.0)).cost(mapping()).steps == 256 and wide.steps == 128
    assert (found.of, found.spread, found.latency_cycles) == ("lanes", "M", wide.latency_cycles)
    outer, inner, _ = mapping().levels
    one_by_one = replace(inner, loops=(Loop("M", 1), Loop("N", 1), Loop("K", 1)))
    alone = Mapping((outer, one_by_one, LevelLoops("PEs")))
    assert relief(OPERATOR, machine(64.0, shape=(1, 1)), alone, "compute").spread in ("M", "N", "K")
    none = Mapping((LevelLoops("DRAM", ()), LevelLoops("Buffer", ()), LevelLoops("PEs", ())))
    assert relief(matmul("one", m=1, n=1, k=1), machine(), none, "compute") is None


def test_waits_for_a_single_buffer_are_told_apart_from_its_port():
    found = cost_model(OPERATOR, machine(64.0, "single")).cost(mapping())
    assert found.traffic["Buffer"].blocking_cycles == found.steady_cycles - found.steps > 0
    assert CycleLimit("Buffer", "waits", found.steady_cycles - 256, found.steady_cycles - 256) in limits_of(found)


def test_energy_of_tensors_adds_up_to_that_of_their_memory():
    layer = with_densities(matmul("m", m=16, n=8, k=8), {"I": "even:0.5"})
    for accelerator in (preset("accel-b-sparse"), preset("edge-s1")):
        found = cost_model(layer, accelerator).cost(dataflow("weight-stationary", layer, accelerator))
        for memory in accelerator.memories:
            parts = [pj for (name, _), pj in found.energy_by_tensor_pj.items() if name == memory.name]
            assert sum(parts) == pytest.approx(found.energy_by_component_pj[memory.name]) and len(parts) > 1
    found = cost_model(OPERATOR, machine()).cost(mapping())
    count = found.counts["DRAM", "I"]
    assert found.energy_by_tensor_pj["DRAM", "I"] == 200 * count.reads > 0


def test_latency_and_energy_are_explained_and_the_cycles_checked():
    mapped, slow = mapping(), machine(0.5)
    found = explain(OPERATOR, slow, mapped, " Latency ")
    text = found.text()
    assert found.value == cost_model(OPERATOR, slow).cost(mapped).latency_cycles == found.oracle
    assert "what sets them: DRAM" in text and "DRAM's port" in text and "counts" in found.check
    assert "DRAM M 2 x DRAM N 2 x Buffer M 2 x Buffer N 4 x Buffer K 8" in text and "8 of 8 lanes" in text
    half = relief(OPERATOR, slow, mapped, "DRAM").latency_cycles
    assert f"{half:,}" in text and f"{100 * (half / found.value - 1):+.1f} %" in text
    energy = explain(OPERATOR, slow, mapped, "energy")
    assert energy.value == cost_model(OPERATOR, slow).cost(mapped).energy_pj
    assert "most of it" in energy.title and "DRAM.I" in energy.text()
    near = explain(OPERATOR, machine(2.4), mapped, "latency", check=False)
    assert near.check == "" and "and the bandwidth of DRAM" in near.text()
