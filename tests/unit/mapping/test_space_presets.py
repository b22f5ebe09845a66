"""Dataflow presets of map spaces: what they restrict, and that the fixed mapping of the dataflow is among theirs."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, preset
from tilewright.mapping import (
    ANY,
    DATAFLOWS,
    Bounds,
    Constraints,
    MappingBatch,
    MapSpace,
    dataflow,
    dataflow_constraints,
    extents_at,
    full_keeps,
)
from tilewright.workload import convolution, matmul, zoo

CONV = convolution("conv", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1)
MACHINES = ("eyeriss", "nvdla-like", "shidiannao-like", "simba-like", "tpu-like", "edge-s1", "accel-a")


def broken(mapping, operator, accelerator, constraints: Constraints) -> list[str]:
    """Return the entries of ``constraints`` that a mapping breaks, by its own reading of what they mean."""
    found = [f"keeps {name}" for name, tensors in full_keeps(mapping, operator, accelerator).items()
             if set(tensors) != set(constraints.keeps.get(name, tensors))]
    at = extents_at(mapping, operator.sizes)
    for entry, outside in zip(mapping.levels, at, strict=False):
        found += [f"tiles {entry.level} {d}" for d, b in constraints.tiles.get(entry.level, {}).items()
                  if not min(b.least, operator.sizes[d]) <= outside[d] <= (b.most or outside[d])]
        extents, counts = dict(outside), {}
        for loop in entry.loops:
            place = f"{entry.level}.{loop.axis}" if loop.axis else entry.level
            counts[place, loop.dimension] = -(-extents[loop.dimension] // loop.step)
            extents[loop.dimension] = loop.step
        found += [f"loops {place} {d}" for (place, d), count in counts.items()
                  if count > 1 and d not in constraints.loops.get(place, (d,))]
        places = [place for place in constraints.factors if place.split(".")[0] == entry.level]
        found += [f"factors {place} {d}" for place in places for d, b in constraints.factors[place].items()
                  if not b.least <= counts.get((place, d), 1) <= (b.most or 2**31)]
        order = [loop.dimension for loop in entry.loops]
        patterns = constraints.orders.get(entry.level, ((ANY,),))
        if not any(follows(order, pattern) for pattern in patterns):
            found.append(f"orders {entry.level}")
    return found


def follows(order: list[str], pattern: tuple[str, ...]) -> bool:
    at = pattern.index(ANY)
    before, after = pattern[:at], pattern[at + 1:]
    kinds = [0 if d in before else 2 if d in after else 1 for d in order]
    named = [(pattern.index(d)) for d in order if d in pattern]
    return kinds == sorted(kinds) and named == sorted(named)


ROWS = ("eyeriss", "row-stationary")


@pytest.mark.parametrize("name", [name for name in DATAFLOWS if name not in ROWS])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_fixed_mapping_of_a_dataflow_is_one_of_the_preset(name, machine, layers):
    accelerator = preset(machine)
    for layer in (CONV, *layers.values()):
        constraints = dataflow_constraints(name, layer, accelerator)
        constraints.check(layer, accelerator)
        assert broken(dataflow(name, layer, accelerator), layer, accelerator, constraints) == [], layer.name


@pytest.mark.parametrize("name", [name for name in DATAFLOWS if name not in ROWS])
def test_the_space_of_a_preset_contains_the_fixed_mapping(name, layers):
    """The same by the spaces' own test of membership; with one tile a level nothing but imperfect steps is sure."""
    for machine in MACHINES:
        accelerator = preset(machine)
        for layer in (CONV, layers["stem"], layers["gemm"], layers["grouped"]):
            space = MapSpace(layer, accelerator, "imperfect", dataflow_constraints(name, layer, accelerator))
            batch = MappingBatch.from_mappings([dataflow(name, layer, accelerator)], layer, accelerator)
            assert space.contains(batch).all() and space.fits(batch).all(), (machine, layer.name)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_row_stationary_mapping_differs_only_within_the_elements(machine, layers):
    """Its tiles grow evenly: an element with room may hold several positions, and part of a filter row."""
    accelerator = preset(machine)
    inside = 0
    for layer in (CONV, *layers.values()):
        constraints = dataflow_constraints("eyeriss", layer, accelerator)
        constraints.check(layer, accelerator)
        wrong = broken(dataflow("eyeriss", layer, accelerator), layer, accelerator, constraints)
        assert {entry.split()[1] for entry in wrong} <= {accelerator.memories[-1].name}
        inside += not wrong
    assert inside >= 3


def test_the_reading_above_finds_mappings_that_do_not_follow():
    eyeriss = preset("eyeriss")
    mapping = dataflow("shidiannao", CONV, eyeriss)
    wrong = broken(mapping, CONV, eyeriss, dataflow_constraints("row-stationary", CONV, eyeriss))
    assert {"loops PEs.X Q", "loops PEs.Y P", "factors PEs.Y R"} <= set(wrong)
    assert broken(dataflow("nvdla", CONV, eyeriss), CONV, eyeriss,
                  dataflow_constraints("input-stationary", CONV, eyeriss))


def test_row_stationary_on_eyeriss_is_that_of_the_chip():
    """Output rows along X, filter rows along Y, a whole filter row in the scratchpad, no positions inside the array."""
    found = dataflow_constraints("row-stationary", CONV, preset("eyeriss"))
    assert found == Constraints(
        loops={"PEs.X": ("K", "N", "P"), "PEs.Y": ("C", "K", "R"), "Spads": ("C", "K", "R", "S")},
        orders={"GLB": ((ANY, "P", "Q"), (ANY, "Q", "P"))},
        factors={"PEs.Y": {"R": Bounds(3, 3)}},
        tiles={"Spads": {"S": Bounds(least=3)}})
    assert found == dataflow_constraints("eyeriss", CONV, preset("eyeriss"))


def test_filters_too_large_for_the_chip_need_not_be_whole():
    """15 rows have no place on a side of 12, and 15 columns no room in 12 words."""
    large = convolution("large", in_channels=4, out_channels=4, in_size=64, kernel=15)
    found = dataflow_constraints("row-stationary", large, preset("eyeriss"))
    assert found.factors == {} and found.tiles == {}


def test_arrays_of_several_levels_alternate():
    found = dataflow_constraints("nvdla", CONV, preset("simba-like"))
    sides = {place: dims for place, dims in found.loops.items()}
    assert {dims for dims in sides.values()} == {("K",), ("C",)}
    assert found.tiles == {} and found.factors == {}


def test_a_memory_without_room_for_a_word_lets_the_tensor_pass():
    eyeriss = preset("eyeriss")
    small = replace(eyeriss.levels[-1], partitions_bytes=(("inputs", 24.0), ("weights", 1.0), ("outputs", 48.0)))
    found = dataflow_constraints("output-stationary", CONV, Accelerator("small", (*eyeriss.levels[:-1], small),
                                                                        word_bits=eyeriss.word_bits))
    assert found.keeps == {"Spads": ("I", "O")}


def test_presets_of_products_name_their_dimensions():
    found = dataflow_constraints("weight-stationary", matmul("m", m=64, n=32, k=16), preset("tpu-like"))
    assert all(set(dims) <= {"K", "N"} for dims in found.loops.values()) and found.loops
    assert all(orders == ((ANY, "M"),) for orders in found.orders.values()) and found.orders


@pytest.mark.parametrize("name", list(DATAFLOWS))
def test_what_is_drawn_from_a_preset_follows_it(name):
    for network in ("resnet18", "bert-base:sequence=128"):
        operator = zoo.load(network).mac_nodes[1].operator
        constraints = dataflow_constraints(name, operator, preset("edge-s1"))
        drawn = MapSpace(operator, preset("edge-s1"), "ruby-s", constraints).sample(np.random.default_rng(1), 50)
        for index in range(len(drawn)):
            mapping = drawn.mapping(index, operator.sizes)
            assert broken(mapping, operator, preset("edge-s1"), constraints) == []


def test_an_unknown_dataflow_is_told():
    with pytest.raises(InputError, match=r"must be a known dataflow; .* Did you mean .*row-stationary"):
        dataflow_constraints("rowstationary", CONV, preset("eyeriss"))


@pytest.mark.parametrize(("name", "last"), [("inner-product", True), ("outer-product", False)])
def test_inner_and_outer_products_differ_in_where_sums_run(name, last):
    """Tiles and lanes stay free: every memory's sums run innermost, or outermost."""
    operator = matmul("m", m=24, n=18, k=20)
    machine = preset("accel-b")
    space = MapSpace(operator, machine, constraints=dataflow_constraints(name, operator, machine))
    batch = space.sample(np.random.default_rng(0), 60)
    seen = set()
    for index in range(len(batch)):
        mapping = batch.mapping(index, operator.sizes)
        for memory in machine.memories:
            dimensions = [loop.dimension for loop in mapping.at(memory.name).loops]
            if "K" in dimensions:
                assert dimensions.index("K") == (len(dimensions) - 1 if last else 0)
        seen |= {loop.dimension for array in machine.fanouts for loop in mapping.at(array.name).loops}
    assert seen == {"M", "N", "K"}
