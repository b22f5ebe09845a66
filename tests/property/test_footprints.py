"""What tiles take of capacities, the words that they touch or the smallest boxes around them: alike everywhere."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tilewright.cost import cost_model, layer_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Compression, Compute, Fanout, Memory, Sparsity
from tilewright.mapping import Layout, MappingBatch, MapSpace, is_legal, repair, violations
from tilewright.search import search
from tilewright.validation.random_nests import random_operator
from tilewright.workload import Axis, Operator, Tensor, convolution

ROLES = ("inputs", "weights", "outputs")
CASES = 8


def machine(rng, footprint="box", sparsity=None):
    """Return a machine of small memories, some in parts, some kept twice."""
    parts = tuple((role, float(rng.integers(3, 60))) for role in ROLES[:2]) if rng.random() < 0.4 else ()
    return Accelerator("small", (
        Memory("DRAM", ROLES, AccessEnergy(*[100.0] * 4)),
        Memory("GLB", ROLES, AccessEnergy(*[6.0] * 4), float(rng.integers(20, 300)),
               buffering="double" if rng.random() < 0.5 else "buffet"),
        Fanout("PE", (4, 2)),
        Memory("RF", ROLES, AccessEnergy(*[1.0] * 4), float(rng.integers(8, 60)), partitions_bytes=parts)),
        Compute("MAC", 1.0), footprint=footprint, sparsity=sparsity)


def strided(rng):
    """Return an operator with holes in its input: strides and dilations, with common divisors too."""
    if rng.random() < 0.4:
        return random_operator(rng, 3000)
    stride, dilation = (int(n) for n in rng.integers(1, 5, 2))
    sizes = tuple(zip("KCPR", (int(n) for n in rng.integers(1, 7, 4)), strict=True))
    axes = Axis((("P", stride), ("R", dilation))) if rng.random() < 0.7 else Axis((("P", stride),))
    return Operator("strided", "given", sizes, (
        Tensor("I", "inputs", (Axis((("C", 1),)), axes)), Tensor("W", "weights", (Axis((("K", 1),)), Axis((("C", 2),)),
                                                                                  Axis((("R", 1),)))),
        Tensor("O", "outputs", (Axis((("K", 1),)), Axis((("P", 1),))))))


@pytest.mark.parametrize("seed", range(4))
def test_a_box_is_all_from_the_first_to_the_last_word(seed):
    rng = np.random.default_rng(seed)
    for _ in range(CASES):
        operator = strided(rng)
        extents = {name: int(rng.integers(1, size + 1)) for name, size in operator.sizes.items()}
        for tensor in operator.tensors:
            for axis in tensor.axes:
                reached = {sum(times * at for (_, times), at in zip(axis.terms, spots, strict=True))
                           for spots in product(*(range(extents[d]) for d in axis.dimensions))}
                assert axis.words(extents) == len(reached)
                assert axis.words(extents, box=True) == max(reached) - min(reached) + 1
            assert tensor.words(extents, box=True) >= tensor.words(extents)


@pytest.mark.parametrize("sparsity", [None, Sparsity((Compression("GLB", "inputs", "bitmask"),), capacity="dense")])
def test_all_that_decides_legality_agrees(sparsity):
    rng = np.random.default_rng(7)
    seen = {"exact": 0, "box": 0, "mappings": 0}
    for _ in range(CASES):
        operator, made = strided(rng), machine(rng, sparsity=sparsity)
        if not is_legal(smallest(operator, made), operator, made):
            continue
        space = MapSpace(operator, made)
        batch = space.sample(rng, 60)
        for footprint in ("exact", "box"):
            other = replace(made, footprint=footprint)
            legal = [is_legal(batch.mapping(i, operator.sizes), operator, other) for i in range(len(batch))]
            fits = MapSpace(operator, other).fits(batch)
            assert cost_model(operator, other).score(batch).legal.tolist() == legal
            if sparsity is None:
                assert fits.tolist() == legal
            else:
                assert (fits >= legal).all()
            seen[footprint] += sum(legal)
        seen["mappings"] += len(batch)
    assert seen["mappings"] > seen["exact"] > seen["box"] > 0


def smallest(operator, made):
    """Return the mapping with all loops at the outermost memory."""
    layout = Layout.of(operator, made)
    steps = np.ones((len(layout.slots), len(operator.sizes), 1), dtype=np.int32)
    ranks = np.broadcast_to(np.arange(len(operator.sizes), dtype=np.int8)[None, :, None], steps.shape)
    return MappingBatch(layout, steps, ranks.copy()).mapping(0, operator.sizes)


def test_what_spaces_draw_and_repair_fits_as_boxes():
    rng = np.random.default_rng(3)
    drawn = 0
    for _ in range(CASES):
        operator, made = strided(rng), machine(rng)
        if not is_legal(smallest(operator, made), operator, made):
            continue
        space = MapSpace(operator, made, "perfect")
        wild = MapSpace(operator, replace(made, footprint="exact"), "perfect").sample(rng, 20)
        for batch in (space.draw(rng, 30, legal=True), space.fitting(rng, 30), space.refit(wild)):
            for index in range(len(batch)):
                assert is_legal(batch.mapping(index, operator.sizes), operator, made)
                drawn += 1
        listed = [batch for batch in space.enumerate(256)][:1]
        for batch in listed:
            assert space.fits(batch).tolist() == [is_legal(batch.mapping(i, operator.sizes), operator, made)
                                                  for i in range(len(batch))]
        cured = repair(wild.mapping(0, operator.sizes), operator, made)
        assert cured is None or not violations(cured, operator, made)
    assert drawn > 200


def test_the_best_of_all_boxes_is_found_and_no_bound_is_above_it():
    rng = np.random.default_rng(11)
    tried = 0
    for _ in range(8):
        operator = convolution("c", in_channels=2, out_channels=2, kernel=(1, int(rng.integers(1, 3))),
                               out_size=(1, 4), stride=int(rng.integers(2, 4)), dilation=int(rng.integers(1, 3)))
        made = machine(rng)
        if not is_legal(smallest(operator, made), operator, made):
            continue
        space = MapSpace(operator, made, "perfect")
        best = search(operator, made, mapper="exhaustive", budget=200_000, space=space)
        proven = search(operator, made, mapper="exact", budget=200_000, space=space)
        assert best.complete
        assert proven.score == pytest.approx(best.score, rel=1e-9)
        assert is_legal(proven.mapping, operator, made)
        assert layer_bounds(operator, made).edp <= best.score * (1 + 1e-9)
        assert search(operator, replace(made, footprint="exact"), mapper="exact", budget=200_000,
                      space=MapSpace(operator, replace(made, footprint="exact"), "perfect")).score <= best.score
        tried += 1
    assert tried >= 4
