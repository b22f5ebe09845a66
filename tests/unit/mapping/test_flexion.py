"""Sizes of the spaces C, A and W: by hand, by brute force, and as published (Flexion, figures 3.7 to 3.11)."""

from dataclasses import replace
from itertools import permutations, product
from math import comb

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import (
    Fanout,
    Flexibility,
    Memory,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
    preset,
)
from tilewright.mapping.flexibility import TileRule, flexion
from tilewright.mapping.tile_counts import (
    EstimatedCount,
    estimated_tiles,
    fitting_tiles,
    parted_buffer,
    parted_triples,
    shared_buffer,
    triples,
    workload_tiles,
)
from tilewright.workload import convolution, depthwise, matmul

BASE = preset("flexion")
THIRDS = TileFlexibility(partitions=(("GLB", (("inputs", 1.0), ("weights", 1.0), ("outputs", 1.0))),))
DIMS = ("K", "C", "P", "Q", "R", "S")
STATIONARY = (("P", "Q", "K", "C", "R", "S"), ("K", "C", "R", "S", "P", "Q"), ("C", "P", "Q", "K", "R", "S"))


def conv(k, c, y, x, r, s):
    return convolution("layer", in_channels=c, out_channels=k, in_size=(y + r - 1, x + s - 1), kernel=(r, s))


# Layers of MnasNet as the tables give them (K, C, Y, X, R, S).
LAYERS = {1: conv(32, 3, 224, 224, 3, 3), 10: conv(72, 24, 56, 56, 1, 1), 15: conv(40, 72, 28, 28, 1, 1),
          16: conv(120, 40, 28, 28, 1, 1), 21: conv(40, 120, 28, 28, 1, 1), 25: conv(480, 80, 14, 14, 1, 1),
          29: conv(1, 480, 14, 14, 5, 5)}


def machine(capacity_bytes=None, sides=None, **axes):
    """Return the base machine with another buffer or array, and other axes of flexibility."""
    levels = []
    for level in BASE.levels:
        if isinstance(level, Memory) and level.name == "GLB" and capacity_bytes:
            levels.append(replace(level, capacity_bytes=float(capacity_bytes)))
        elif isinstance(level, Fanout) and sides:
            levels.append(replace(level, shape=sides))
        else:
            levels.append(level)
    base = replace(BASE.flexibility, shape=ShapeFlexibility(fixed=sides)) if sides else BASE.flexibility
    return replace(BASE, levels=tuple(levels), flexibility=replace(base, **axes))


@pytest.mark.parametrize(("tile", "hardware", "workload"), [
    (BASE.flexibility.tile, 0.0, {1: 0.0001, 16: 0.0002, 29: 0.0007}),
    (THIRDS, 0.22, {1: 0.37, 16: 0.54, 29: 0.58}),
    (TileFlexibility(), 1.0, {1: 0.50, 16: 0.69, 29: 0.74}),
])
def test_tiles_as_in_figure_3_7(tile, hardware, workload):
    target = machine(4000, tile=tile)
    for layer, published in workload.items():
        found = flexion(LAYERS[layer], target, "T")
        assert found.hardware == pytest.approx(hardware, abs=0.005)
        assert found.workload == pytest.approx(published, abs=0.5 * 10 ** -(4 if published < 0.01 else 2))
        assert found.class_on_workload.exact


def test_thirds_hold_two_ninths_of_the_triples():
    found = flexion(LAYERS[16], machine(100_000, tile=THIRDS), "T")
    assert found.class_space.value == comb(50_000, 3)
    assert found.hardware == pytest.approx(2 / 9, rel=1e-3)


@pytest.mark.parametrize(("orders", "hardware", "workload"), [
    (STATIONARY[:1], 0.001, {16: 0.04, 21: 0.04, 29: 0.01}),
    (STATIONARY, 0.004, {16: 0.13, 21: 0.13, 29: 0.03}),
    ((), 1.0, {16: 1.0, 21: 1.0, 29: 1.0}),
])
def test_orders_as_in_figure_3_9(orders, hardware, workload):
    for layer, published in workload.items():
        found = flexion(LAYERS[layer], machine(order=OrderFlexibility(orders)), "O")
        assert found.class_space.value == 720
        assert found.hardware == pytest.approx(hardware, abs=0.0005)
        assert found.workload == pytest.approx(published, abs=0.0051)


@pytest.mark.parametrize(("pairs", "hardware", "workload"), [
    ((("C", "K"),), 0.03, {10: 0.08, 16: 0.08, 29: 0.0}),
    ((("C", "K"), ("P", "Q")), 0.07, {10: 0.17, 16: 0.17, 29: 0.05}),
    ((), 1.0, {10: 1.0, 16: 1.0, 29: 1.0}),
])
def test_pairs_as_in_figure_3_10(pairs, hardware, workload):
    """But for layer 29, where the paper counts the pair K-C (0.05 and 0.10) although K is 1."""
    for layer, published in workload.items():
        found = flexion(LAYERS[layer], machine(parallelism=ParallelismFlexibility(pairs)), "P")
        assert found.class_space.value == 30
        assert found.hardware == pytest.approx(hardware, abs=0.005)
        assert found.workload == pytest.approx(published, abs=0.005)


@pytest.mark.parametrize(("shape", "hardware", "workload"), [
    (ShapeFlexibility(fixed=(32, 32)), 0.001, {15: 0.01, 16: 0.03, 25: 0.01}),
    (ShapeFlexibility(blocks=(16, 16)), 0.004, {15: 0.06, 16: 0.08, 25: 0.05}),
    (ShapeFlexibility(blocks=(4, 4)), 0.06, {15: 0.25, 16: 0.25, 25: 0.25}),
    (ShapeFlexibility(), 1.0, {15: 1.0, 16: 1.0, 25: 1.0}),
])
def test_shapes_as_in_figure_3_11(shape, hardware, workload):
    for layer, published in workload.items():
        found = flexion(LAYERS[layer], machine(sides=(32, 32), shape=shape), "S")
        assert found.class_space.value == 1024
        assert found.hardware == pytest.approx(hardware, abs=0.003)
        assert found.workload == pytest.approx(published, abs=0.0051)


def test_a_fixed_tile_that_does_not_fit_supports_nothing():
    large = conv(64, 64, 28, 28, 3, 3)
    assert flexion(large, machine(4000), "T").target_on_workload.value == 0
    assert flexion(large, machine(100_000), "T").target_on_workload.value == 1


def test_a_tile_per_element_grows_with_the_array():
    large = conv(64, 64, 28, 28, 3, 3)
    each = TileFlexibility(per_element=(("GLB", tuple((d, 1 if d in "KC" else 3) for d in DIMS)),))
    # 64 x 16 x 9 weights, 144 inputs and 576 outputs
    assert flexion(large, machine(2 * 9936, tile=each), "T").target_on_workload.value == 1
    assert flexion(large, machine(2 * 9935, tile=each), "T").target_on_workload.value == 0
    assert flexion(large, machine(2 * 9935, sides=(4, 64), tile=each), "T").target_on_workload.value == 1


def test_pairs_and_shapes_together_by_hand():
    # K = 4, C = 2, P = Q = 1: pairs K-C and C-K; sides up to 4 and up to 2.
    layer = conv(4, 2, 1, 1, 1, 1)
    full = flexion(layer, machine(shape=ShapeFlexibility(), parallelism=ParallelismFlexibility()), "PS")
    assert (full.class_space.value, full.workload_space.value, full.target_on_workload.value) == (30 * 1024, 6, 6)
    one = flexion(layer, machine(shape=ShapeFlexibility()), "PS")
    assert (one.target_space.value, one.target_on_workload.value) == (1024, 2)
    # blocks of 4: sides of 4 or more come to 2 along C.
    blocks = flexion(layer, machine(shape=ShapeFlexibility(blocks=(4, 4))), "PS")
    assert (blocks.target_space.value, blocks.target_on_workload.value) == (64, 1)


def test_a_depthwise_layer_spreads_groups_in_the_place_of_channels():
    layer = depthwise("dw", channels=480, in_size=14, kernel=5, padding=2)
    assert flexion(layer, machine(), "P").workload_space.value == 20
    assert flexion(layer, machine(), "O").workload_space.value == 120
    assert flexion(layer, machine(parallelism=ParallelismFlexibility((("C", "P"),))), "P").target_on_workload.value == 1


def test_a_matrix_product_takes_part_by_what_its_dimensions_do():
    layer = matmul("gemm", m=8, n=4, k=2)
    pairs = ParallelismFlexibility((("C", "K"), ("P", "Q")))
    found = flexion(layer, machine(parallelism=pairs), "P")
    assert (found.workload_space.value, found.target_on_workload.value) == (6, 1)
    # tiles of M, N, K: 4 * 3 * 2 divisors, each fits 50,000 words
    tiles = flexion(layer, machine(tile=TileFlexibility()), "T")
    assert (tiles.workload_space.value, tiles.target_on_workload.value) == (24, 24)


@pytest.mark.parametrize(("pairs", "chosen"), [
    ((("C", "P"),), 1), ((("P", "C"),), 1), ((("K", "P"), ("P", "Q")), 0), ((), 1),
])
def test_one_dimension_alone_must_lie_along_a_side(pairs, chosen):
    layer = convolution("dot", in_channels=64, out_channels=1, in_size=(1, 1), kernel=1)
    target = machine(parallelism=ParallelismFlexibility(pairs))
    found = flexion(layer, target, "P")
    assert (found.workload_space.value, found.class_on_workload.value) == (1, 1)
    assert found.target_on_workload.value == chosen
    assert found.workload == chosen
    assert (flexion(layer, target, "PS").target_on_workload.value > 0) == bool(chosen)


def test_an_operator_without_loops_asks_for_no_pair():
    layer = convolution("one", in_channels=1, out_channels=1, in_size=(1, 1), kernel=1)
    assert flexion(layer, machine(parallelism=ParallelismFlexibility((("K", "P"),))), "P").workload == 1


def test_a_machine_for_matrix_products_names_its_own_dimensions():
    own = Flexibility("GLB", "PEs", dimensions=("M", "N", "K"), order=OrderFlexibility((("M", "N", "K"),)))
    target = replace(machine(60), flexibility=own)
    layer = matmul("gemm", m=8, n=4, k=2)
    assert flexion(layer, target, "O").class_space.value == 6
    assert flexion(layer, target, "P").class_space.value == 6
    found = flexion(layer, target, "T")
    by_hand = sum(m * k + k * n + m * n <= 30 for m, n, k in product((1, 2, 4, 8), (1, 2, 4), (1, 2)))
    assert found.target_on_workload.value == by_hand
    assert not flexion(layer, target, "T", TileRule(hardware="tiles")).class_space.exact
    with pytest.raises(InputError, match="must be dimensions of layer"):
        flexion(LAYERS[16], target, "O")


def test_products_multiply_and_errors_add_up():
    layer = LAYERS[16]
    loose = machine(4000, tile=TileFlexibility(), order=OrderFlexibility(), parallelism=ParallelismFlexibility(),
                    shape=ShapeFlexibility())
    whole, parts = flexion(layer, loose, "TOPS"), [flexion(layer, loose, axes) for axes in ("T", "O", "PS")]
    assert whole.workload_space.value == np.prod([part.workload_space.value for part in parts])
    assert whole.workload == pytest.approx(np.prod([part.workload for part in parts]))
    product_of = EstimatedCount(10, 1) * EstimatedCount(20, 0) * EstimatedCount(3, 0.3)
    assert product_of.value == 600
    assert product_of.error == pytest.approx(600 * np.hypot(0.1, 0.1))


def test_any_dimensions_per_side():
    loose = machine(parallelism=ParallelismFlexibility(dimensions_per_side=None))
    assert flexion(LAYERS[16], loose, "P").workload == 1.0


@pytest.mark.parametrize(("capacity", "words"), [(12, (1, 1, 1)), (11, (2, 1, 1)), (14, (1, 2, 3))])
def test_tiles_of_buffers_by_brute_force(capacity, words):
    weight, given, made = words
    k, c, y, x, r, s = np.ix_(*[np.arange(1, capacity)] * 6)
    sizes = weight * k * c * r * s, given * c * y * x, made * k * y * x
    thirds = (capacity // 3 + 1, capacity // 3, capacity // 3)
    assert shared_buffer(capacity, words) == (sum(sizes) <= capacity).sum() > 30
    fits = [size <= part for size, part in zip(sizes, thirds, strict=True)]
    assert parted_buffer(thirds, words) == (fits[0] & fits[1] & fits[2]).sum() > 10


def test_triples_by_brute_force():
    every = [t for t in product(range(1, 13), repeat=3) if sum(t) <= 12]
    assert triples(12) == len(every)
    assert parted_triples((4, 3, 5)) == sum(a <= 4 and b <= 3 and c <= 5 for a, b, c in every)


def test_tiles_of_a_workload_by_brute_force():
    layer, target = conv(6, 4, 5, 3, 2, 2), machine(80, tile=THIRDS)
    for every in (False, True):
        lists = workload_tiles([6, 4, 5, 3, 2, 2], divisors=not every)
        shared = parted = window = 0
        for k, c, y, x, r, s in product(*lists):
            sizes = k * c * r * s, c * y * x, k * y * x
            shared += sum(sizes) <= 40
            parted += max(sizes) <= 13  # 26 bytes each, twice
            window += sizes[0] + c * (y + r - 1) * (x + s - 1) + sizes[2] <= 40
        found = flexion(layer, target, "T", TileRule("all" if every else "divisors"))
        assert (found.class_on_workload.value, found.target_on_workload.value) == (shared, parted)
        touched = flexion(layer, target, "T", TileRule("all" if every else "divisors", "window"))
        assert touched.class_on_workload.value == window


def test_orders_by_brute_force():
    layer = conv(4, 3, 1, 1, 3, 1)
    useful = {tuple(d for d in order if d in "KCR") for order in permutations(DIMS)}
    chosen = {tuple(d for d in order if d in "KCR") for order in STATIONARY}
    found = flexion(layer, machine(order=OrderFlexibility(STATIONARY)), "O")
    assert (found.workload_space.value, found.target_on_workload.value) == (len(useful), len(chosen))


def test_estimates_meet_exact_counts_within_their_errors():
    rng = np.random.default_rng(0)

    def fits(e):
        return e["K"] * e["C"] * e["R"] * e["S"] + e["C"] * e["P"] * e["Q"] + e["K"] * e["P"] * e["Q"] <= 500

    found = estimated_tiles(dict.fromkeys(DIMS, 500), fits, rng)
    assert not found.exact
    assert abs(found.value - shared_buffer(500, (1, 1, 1))) < 4 * found.error < 0.1 * found.value
    extents = {d: np.arange(1, size + 1) for d, size in zip(DIMS, (20, 20, 20, 20, 8, 8), strict=True)}
    drawn = fitting_tiles(extents, fits, rng)
    exact = sum(int(fits({**{d: e[..., None] for d, e in zip("KCPQ", np.ix_(*[np.arange(1, 21)] * 4), strict=True)},
                          "R": np.arange(1, 9), "S": s}).sum()) for s in range(1, 9))
    assert not drawn.exact
    assert abs(drawn.value - exact) < 4 * drawn.error


@pytest.mark.parametrize(("call", "words"), [
    (lambda: flexion(LAYERS[16], preset("edge-s1")), "flexibility: must be stated"),
    (lambda: flexion(LAYERS[16], BASE, "TX"), "must be different letters of TOPS"),
    (lambda: flexion(LAYERS[16], BASE, ""), "must be different letters of TOPS"),
    (lambda: TileRule("any"), "must be divisors or all"),
    (lambda: flexion(LAYERS[16], replace(BASE, flexibility=Flexibility("DRAM", "PEs")), "T"), "must be limited"),
])
def test_what_cannot_be_measured_is_told(call, words):
    with pytest.raises(InputError, match=words):
        call()
