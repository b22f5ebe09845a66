"""Sizes of NVDLA as published, and frames that no bound forbids."""

import json

import pytest

from tilewright.cost import layer_bounds
from tilewright.validation import validate
from tilewright.validation.nvdla import FILE, configured
from tilewright.workload import unique_operators, zoo

SIZES = json.loads(FILE.read_text())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["macs"]))
def test_a_size_has_its_array_buffer_and_bandwidth(size):
    machine = configured(size)
    assert machine.compute_instances == size["macs"]
    assert machine.level("CBUF").capacity_bytes == size["buffer_kib"] * 1024
    assert machine.level("DRAM").bandwidth.shared == size["gigabytes_per_second"]  # bytes a cycle at 1 GHz


def test_neither_side_is_above_the_bound():
    (outcome,) = validate(["nvdla"]).outcomes
    network = unique_operators(zoo.load("resnet50"))
    for size, figure in zip(SIZES, outcome.findings.figures, strict=True):
        machine = configured(size)
        least = sum(layer_bounds(unique.operator, machine).latency_cycles * len(unique.names) for unique in network)
        assert figure.reference == size["frames"]
        assert max(figure.ours, figure.reference) <= 1e9 / least
