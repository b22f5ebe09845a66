"""The table of a network's costs: words, bytes and lanes of each layer, and the sums over all."""

from math import inf

import numpy as np
import pytest

from tilewright.cost import Cost, DenseModel, HardwareBatch, NetworkModel, Totals, cost_model, network_sum
from tilewright.hardware import preset, with_numbers
from tilewright.mapping import MapSpace, tensor_bits
from tilewright.workload import UniqueOperator, convolution, depthwise, matmul, with_densities

LAYERS = (
    UniqueOperator(convolution("a", in_channels=12, out_channels=10, in_size=(11, 9), kernel=3, stride=2), 3,
                   ("a", "d")),
    UniqueOperator(depthwise("b", 16, in_size=9, kernel=3), 1, ("b",)),
    UniqueOperator(matmul("c", m=17, n=12, k=33), 2, ("c",)),
)


def batches(machine, count):
    rng = np.random.default_rng(3)
    return [MapSpace(layer.operator, machine).sample(rng, count) for layer in LAYERS]


@pytest.mark.parametrize("name", ["eyeriss", "simba-like"])
def test_every_layer_s_row_is_what_its_mappings_cost(name):
    machine = preset(name)
    model = NetworkModel(LAYERS, machine)
    for index, (layer, batch) in enumerate(zip(LAYERS, batches(machine, 20), strict=True)):
        found = model.score(index, batch)
        for at in range(20):
            mapping = batch.mapping(at, layer.operator.sizes)
            cost: Cost = DenseModel(layer.operator, machine, batch.layout).cost(mapping)
            assert found.costs.latency_cycles[at] == cost.latency_cycles
            assert found.costs.energy_pj[at] == pytest.approx(cost.energy_pj, rel=1e-9)
            for (memory, tensor), count in cost.counts.items():
                bits = tensor_bits(layer.operator.tensor(tensor), machine)
                assert found.words[memory, tensor]["reads"][at] == count.reads
                assert found.bytes[memory, tensor]["updates"][at] == count.updates * bits / 8
            extents = dict(layer.operator.sizes)
            for level in mapping.levels:
                lanes = 1
                for loop in level.loops:
                    lanes *= -(-extents[loop.dimension] // loop.step)
                    extents[loop.dimension] = loop.step
                if level.level in found.needs.arrays:
                    assert found.needs.lanes[found.needs.arrays.index(level.level), :, at].prod() == lanes


@pytest.mark.parametrize("name", ["edge-s2", "accel-b-sparse"])
def test_totals_sum_layers_on_each_machine(name):
    machine, count = preset(name), 30
    layers = [UniqueOperator(with_densities(layer.operator, {"weights": 0.5}), layer.count, layer.names)
              for layer in LAYERS]
    rng = np.random.default_rng(1)
    sides = rng.integers(8, 30, count).astype(float)
    hardware = HardwareBatch({(machine.fanouts[0].name, "x"): sides})
    model, mappings = NetworkModel(layers, machine), batches(machine, count)
    scored = [model.score(index, batch, hardware) for index, batch in enumerate(mappings)]
    totals = model.totals([each.costs for each in scored])
    for at in range(count):
        own = with_numbers(machine, {(machine.fanouts[0].name, "x"): sides[at]})
        rows = [cost_model(layer.operator, own, batch.layout).score(batch.take(slice(at, at + 1)))
                for layer, batch in zip(layers, mappings, strict=True)]
        legal = all(row.legal[0] for row in rows)
        assert totals.latency_cycles[at] == (
            sum(layer.count * row.latency_cycles[0] for layer, row in zip(layers, rows, strict=True)) if legal else inf)
        assert totals.edp[at] == totals.latency_cycles[at] * totals.energy_pj[at]
    assert np.isfinite(totals.latency_cycles).any()


def test_a_layer_without_a_mapping_makes_sums_infinite():
    assert network_sum([(2, 3), (1, 4)]) == 10
    assert network_sum([(2, 3), (1, None)]) == inf
    assert (Totals.of([(1, None)]).latency_cycles, Totals.of([]).energy_pj) == (inf, 0)
