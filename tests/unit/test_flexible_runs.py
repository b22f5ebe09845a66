"""Runs on machines that state their flexibility: nothing that such a machine cannot do is proposed."""

from dataclasses import replace
from math import prod

import tilewright as tw
from tilewright.hardware import preset
from tilewright.mapping import flexible_spaces
from tilewright.search import search_flexible
from tilewright.workload import convolution

LAYER = convolution("c", in_channels=24, out_channels=40, in_size=14, kernel=3, padding=1)


def test_an_inflexible_machine_runs_its_one_mapping():
    run = tw.map(LAYER, arch="flexion", objective="latency", budget=500, store=False)
    (layer,) = run.record.layers
    (space,) = flexible_spaces(LAYER, preset("flexion"))
    assert layer.search.samples == 1
    assert layer.cost.latency_cycles == search_flexible(LAYER, preset("flexion"), budget=2).cost.latency_cycles
    assert space.size().mappings == 1


def test_a_flexible_machine_runs_what_its_flexibility_allows():
    base = preset("flexion")
    machine = replace(base, flexibility=base.flexibility.of_class("0011"))
    run = tw.map(LAYER, arch=machine, objective="latency", budget=400, seed=2, store=False)
    (layer,) = run.record.layers
    assert layer.search.samples == 400
    assert layer.cost.latency_cycles < search_flexible(LAYER, base, budget=2).cost.latency_cycles
    extents, lanes = dict(LAYER.sizes), {"X": [], "Y": []}
    for level in layer.mapping.levels:
        for dimension, step, axis in level.loops:
            if axis:
                lanes[axis].append(-(-extents[dimension] // step))
            extents[dimension] = min(step, extents[dimension])
    assert len(lanes["X"]) <= 1 and len(lanes["Y"]) <= 1
    assert prod(lanes["X"]) * prod(lanes["Y"]) <= 1024
    assert (prod(lanes["X"]), prod(lanes["Y"])) != (16, 64)
