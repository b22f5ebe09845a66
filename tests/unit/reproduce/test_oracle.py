import dataclasses

import numpy as np
import pytest

from tilewright.cost import DenseModel
from tilewright.cost.reference import walk
from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.reproduce import check, same, twin
from tilewright.workload import convolution, matmul

MACHINE = preset("eyeriss")
LARGE = convolution("large", in_channels=48, out_channels=96, out_size=(27, 27), kernel=5)


def mappings(operator, tiling, count=4, seed=0):
    space = MapSpace(operator, MACHINE, tiling)
    batch = space.sample(np.random.default_rng(seed), count)
    return [batch.mapping(index, operator.sizes) for index in range(count)]


def counts(mapping, operator):
    """Return, by loop, its nominal count and whether it divides."""
    extents, found = dict(operator.sizes), []
    for entry in mapping.levels:
        for loop in entry.loops:
            outside = extents[loop.dimension]
            found.append((entry.level, loop.dimension, loop.axis, -(-outside // loop.step), outside % loop.step == 0))
            extents[loop.dimension] = loop.step
    return found


@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
def test_a_twin_has_the_same_loops_run_less_often(tiling):
    for mapping in mappings(LARGE, tiling):
        small, nest = twin(LARGE, mapping, 3)
        whole, reduced = counts(mapping, LARGE), counts(nest, small)
        assert small.macs < LARGE.macs
        assert [row[:3] for row in whole] == [row[:3] for row in reduced]
        for (*_, before, divides), (*_, after, still) in zip(whole, reduced, strict=True):
            assert after == min(before, 3)
            assert still or not divides


def test_the_oracle_confirms_mappings_whole_and_by_twin():
    for operator in (matmul("small", m=6, n=10, k=7), LARGE):
        for mapping in mappings(operator, "imperfect"):
            told = check(operator, MACHINE, mapping)
            assert told.agrees
            assert (told.scale == 1) == (operator.name == "small")


def test_a_cost_that_differs_in_one_count_is_not_the_same():
    operator = matmul("small", m=6, n=10, k=7)
    (mapping,) = mappings(operator, "imperfect", 1)
    mine, oracle = DenseModel(operator, MACHINE).cost(mapping), walk(operator, MACHINE, mapping)
    assert same(mine, oracle)
    key = next(iter(mine.counts))
    wrong = {**mine.counts, key: dataclasses.replace(mine.counts[key], reads=mine.counts[key].reads + 1)}
    assert not same(dataclasses.replace(mine, counts=wrong), oracle)
    assert not same(dataclasses.replace(mine, energy_pj=mine.energy_pj * 1.001), oracle)
