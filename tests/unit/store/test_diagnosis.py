"""What limits a network, and what twice of it gives, in a run's record."""

from dataclasses import replace

import pytest

import tilewright as tw
from tilewright.cost import vector_work
from tilewright.hardware import Bandwidth
from tilewright.store import accelerator_of, mapping_of, operator_of, read_run, run_from_json
from tilewright.store.codec import record_to_json

NET = "distilbert:sequence=8"  # blocks that repeat


@pytest.fixture(scope="module")
def run():
    """Return a run on a machine whose memory outside is slow."""
    return tw.map(NET, "edge-s2:DRAM.bandwidth=0.5", mapper="random", budget=30, store=False).record


def test_the_cure_is_what_the_model_says_of_the_mappings_on_that_machine(run):
    told, machine = run.diagnosis, accelerator_of(run.accelerator)
    assert told.limit == "DRAM" and told.layers == sum(layer.cost.bottleneck == "DRAM" for layer in run.layers) > 0
    (rates,) = [memory.bandwidth for memory in machine.memories if memory.name == "DRAM"]
    doubled = Bandwidth(*(rate and 2 * rate for rate in (rates.read, rates.write, rates.shared)))
    wider = replace(machine, levels=(replace(machine.levels[0], bandwidth=doubled), *machine.levels[1:]))
    found = [tw.evaluate(mapping_of(layer), operator_of(layer), wider).cost.latency_cycles for layer in run.layers]
    graph = tw.load_network(NET)
    expected = sum(layer.count * cycles for layer, cycles in zip(run.layers, found, strict=True)) + sum(
        work.node.count * work.latency_cycles for work in vector_work(graph, wider))
    assert told.latency_cycles == expected < run.totals.latency_cycles
    saved = 100 * (1 - expected / run.totals.latency_cycles)
    assert told.sentence.startswith(f"DRAM-bound in {told.layers} of {len(run.layers)} layers")
    assert told.sentence.endswith(f"({100 * told.share:.0f} % of the cycles); twice its bandwidth saves {saved:.0f} %.")
    for layer, cycles in zip(run.layers, found, strict=True):
        if layer.cost.bottleneck == "DRAM":
            assert (layer.relief.of, layer.relief.latency_cycles) == ("DRAM", cycles)


def test_it_is_kept_with_the_run_and_older_runs_have_none(run, tmp_path):
    again = run_from_json(record_to_json(run))
    assert (again.diagnosis, again.layers[0].cost.limits) == (run.diagnosis, run.layers[0].cost.limits)
    assert again.layers[0].cost.limited_by.startswith(again.layers[0].cost.bottleneck)
    old = replace(run, diagnosis=None, layers=tuple(replace(layer, relief=None, cost=replace(layer.cost, limits=()))
                                                   for layer in run.layers))
    (tmp_path / "old.json").write_text(record_to_json(old))
    assert read_run(tmp_path / "old.json").layers[0].cost.limited_by == run.layers[0].cost.bottleneck
    count = run.layers[0].cost.counts[0]
    assert count.energy_pj > 0 and replace(count, energy_pj=None) == count  # older answers stay answers


def test_lanes_and_the_vector_unit_can_be_what_limits():
    fast = tw.map("matmul:M=64,N=64,K=64", "edge-s2:DRAM.bandwidth=99", mapper="random", budget=30, store=False).record
    assert fast.diagnosis.limit == "compute" and "; twice the lanes save" in fast.diagnosis.sentence
    assert fast.diagnosis.latency_cycles == fast.layers[0].relief.latency_cycles < fast.totals.latency_cycles
    slow = tw.load_accelerator("edge-s2")
    slow = replace(slow, vector=replace(slow.vector_unit, lanes=0.001, operations_per_cycle=()))
    found = tw.map("ncf", slow, mapper="random", budget=30, store=False).record
    assert found.diagnosis.limit == "vector unit" and found.diagnosis.layers == 0
    assert "Vector-unit-bound in vector work" in found.diagnosis.sentence
    assert found.diagnosis.latency_cycles == pytest.approx(
        found.totals.latency_cycles - found.totals.vector_cycles / 2, rel=1e-3)
