"""``tilewright explain``: from a run or a mapping file, by the same derivation."""

import pytest

from tilewright.api import open_run
from tilewright.cost import explain
from tilewright.hardware import load_accelerator
from tilewright.mapping import load_mapping
from tilewright.workload import matmul

OPERATOR = "matmul:M=16,N=16,K=8"


def test_a_count_of_a_mapping_file_is_derived(tilewright, machine, mapping):
    operator, accelerator = matmul("matmul", m=16, n=16, k=8), load_accelerator(machine)
    found = tilewright("explain", mapping, "-n", OPERATOR, "-a", machine, "--count", "Buffer.O.reads")
    expected = explain(operator, accelerator, load_mapping(mapping, operator, accelerator), "Buffer.O.reads")
    assert (found.code, found.out) == (0, expected.text() + "\n")
    assert "1,792" in found.out and "counts 1,792 too" in found.out


def test_a_count_of_a_run_is_derived_and_agrees_with_its_record(tilewright, machine):
    tilewright("map", OPERATOR, "-a", machine, "-b", "300", "--json", "out.json")
    run = open_run("out.json")
    reads = next(count.reads for count in run.layers["matmul"].cost.counts if (count.memory, count.tensor) ==
                 ("Buffer", "W"))
    for place in ("out.json", "last", run.record.id):
        found = tilewright("explain", place, "--layer", "matmul", "--count", "buffer.weights.reads")
        assert found.code == 0 and f"{reads:,}" in found.out
    assert run.explain("matmul", "Buffer.W.reads").value == reads


def test_without_a_count_all_are_listed(tilewright, machine, mapping):
    out = tilewright("explain", mapping, "-n", OPERATOR, "-a", machine).out
    assert sum(line.startswith(("DRAM.", "Buffer.")) for line in out.splitlines()) == 24
    assert any(line.split() == ["Buffer.O.drains", "256"] for line in out.splitlines())


@pytest.mark.parametrize(("words", "message"), [
    (("mine.yaml",), "--network: must be given with a mapping file"),
    (("mine.yaml", "-n", OPERATOR, "-a", "small.yaml", "-c", "Cache.I.reads"), "count"),
    (("mine.yaml", "-n", OPERATOR, "-a", "small.yaml", "-c", "Buffer.I.writes"), "count"),
    (("last", "-n", OPERATOR), "must come with a mapping file; a run knows its own"),
])
def test_what_cannot_be_explained_is_one_message(tilewright, machine, mapping, words, message):
    found = tilewright("explain", *words)
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("Error: ") and message in found.err


def test_the_layer_of_a_run_must_be_told_and_known(tilewright, machine):
    tilewright("map", "ncf", "-a", machine, "-b", "300")
    assert "--layer: must be given, as the run has 4 layers" in tilewright("explain", "last").err
    assert "Did you mean mlp.1" in tilewright("explain", "last", "-l", "mlp.7").err


def test_what_sets_the_latency_and_the_energy_is_told(tilewright, machine, mapping):
    operator, accelerator = matmul("matmul", m=16, n=16, k=8), load_accelerator(machine)
    for figure in ("latency", "energy"):
        found = tilewright("explain", mapping, "-n", OPERATOR, "-a", machine, "--count", figure)
        expected = explain(operator, accelerator, load_mapping(mapping, operator, accelerator), figure)
        assert (found.code, found.out) == (0, expected.text() + "\n")
    assert tilewright("explain", mapping, "-n", OPERATOR, "-a", machine, "-c", "power").code == 2
