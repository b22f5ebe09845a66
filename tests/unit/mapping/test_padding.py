"""Sizes rounded up so that whole tiles fill the arrays."""

from dataclasses import replace
from itertools import product
from math import prod

import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import Bounds, Constraints, MapSpace, Padding, padded
from tilewright.workload import convolution, matmul

EYERISS = preset("eyeriss")
ARRAY = EYERISS.fanouts[0]


def machine(x, y, **form):
    levels = [replace(level, shape=(x, y), **form) if level is ARRAY else level for level in EYERISS.levels]
    return replace(EYERISS, levels=tuple(levels))


def sizes(operator, on, constraints=None, to="steps"):
    return {d: size for d, size in padded(operator, on, constraints, to=to).dimensions if size > 1}


@pytest.mark.parametrize(("size", "steps", "side"), [
    (113, 120, 128), (127, 128, 128), (128, 128, 128), (5, 5, 16), (17, 18, 32), (100, 105, 112)])
def test_a_line_of_sixteen(size, steps, side):
    operator = matmul("v", m=size, n=1, k=1)
    assert sizes(operator, machine(16, 1)) == {"M": steps}
    assert sizes(operator, machine(16, 1), to="side") == {"M": side}


def test_of_several_dimensions_that_may_fill_a_side_the_one_that_grows_least_does():
    assert sizes(matmul("v", m=17, n=31, k=20), machine(16, 1), to="side") == {"M": 17, "N": 32, "K": 20}


@pytest.mark.parametrize("size", [*range(1, 40), 113])
@pytest.mark.parametrize("places", [2, 7, 12])
def test_no_smaller_or_equal_work_takes_fewer_steps(size, places):
    operator = matmul("v", m=size, n=5, k=1)
    grown = padded(operator, machine(places, 1)).sizes
    lanes = range(1, places + 1)
    least = min((-(-size // m) * -(-5 // n), -(-size // m) * m * -(-5 // n) * n)
                for m, n in product(lanes, lanes) if m * n <= places)
    steps = min(grown["M"] // m * (grown["N"] // n) for m, n in product(lanes, lanes)
                if m * n <= places and grown["M"] % m == 0 and grown["N"] % n == 0)
    assert (steps, grown["M"] * grown["N"]) == least


def test_a_perfect_space_of_the_padded_operator_uses_the_array():
    operator, on = matmul("m", m=127, n=113, k=1), machine(14, 12)
    loops = Constraints(loops={f"{ARRAY.name}.X": ("M",), f"{ARRAY.name}.Y": ("N",)}, utilization={ARRAY.name: 0.9})
    assert MapSpace(operator, on, "perfect", loops).size().mappings == 0
    grown = padded(operator, on, loops)
    assert (grown.sizes["M"], grown.sizes["N"]) == (130, 120)
    assert MapSpace(grown, on, "perfect", loops).size().mappings > 0


def test_only_dimensions_that_may_lie_there_grow_and_fixed_factors_divide():
    operator, place = matmul("m", m=13, n=127, k=50), f"{ARRAY.name}.X"
    assert set(sizes(operator, machine(16, 1), Constraints(loops={place: ("N",)})).items()) == {
        ("M", 13), ("N", 128), ("K", 50)}
    held = Constraints(loops={place: ("M", "N")}, factors={place: {"M": Bounds(4, 4)}})
    assert sizes(operator, machine(16, 1), held) == {"M": 16, "N": 128, "K": 50}
    rows = Constraints(factors={place: {"R": Bounds(3, 3)}})
    conv = convolution("c", in_channels=5, out_channels=7, in_size=(9, 9), kernel=3)
    assert padded(conv, machine(16, 1), rows).sizes["R"] == 3


def test_arrays_that_reshape_take_the_arrangement_that_pads_least():
    operator = matmul("m", m=24, n=7, k=1)
    loops = Constraints(loops={f"{ARRAY.name}.X": ("M",), f"{ARRAY.name}.Y": ("N",)})
    stiff, free = (padded(operator, machine(14, 12, flexible=flexible), loops) for flexible in (False, True))
    assert stiff.sizes == operator.sizes
    assert padded(operator, machine(13, 6), loops).sizes != operator.sizes
    assert free.sizes == operator.sizes
    blocks = padded(matmul("m", m=30, n=3, k=1), machine(8, 8, blocks=(4, 4)), loops)
    assert (blocks.sizes["M"], blocks.sizes["N"]) == (30, 3)


def test_arrays_one_inside_the_other_share_a_dimension():
    inner = replace(ARRAY, name="Lanes", shape=(4, 1))
    levels = (*machine(5, 1).levels, inner)
    on = replace(EYERISS, levels=levels)
    assert sizes(matmul("v", m=19, n=1, k=1), on) == {"M": 20}
    assert sizes(matmul("v", m=39, n=1, k=1), on) == {"M": 40}


@pytest.mark.parametrize("name", ["flexion", "tpu-like", "simba-like", "edge-s1"])
def test_nothing_shrinks_on_known_machines(name):
    operator = convolution("c", in_channels=13, out_channels=61, in_size=(29, 29), kernel=3)
    found = Padding(operator, padded(operator, preset(name)))
    assert all(after > before for before, after in found.grown.values())
    assert found.padded.tensors == operator.tensors
    assert found.ineffectual_share == pytest.approx(
        1 - prod(before / after for before, after in found.grown.values()))


def test_what_it_pads_to_is_named():
    with pytest.raises(InputError, match=r"padding\.to: must be one of steps, side"):
        padded(matmul("m", m=2, n=2, k=2), EYERISS, to="row")
