"""The spaces of the formalism lie inside one another, whatever the layer and the machine."""

from dataclasses import replace
from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.hardware import (
    Fanout,
    Memory,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
    preset,
)
from tilewright.mapping import TileRule, flexion
from tilewright.workload import convolution, depthwise, matmul

BASE = preset("flexion")
DIMS = BASE.flexibility.dimensions
SMALL = st.integers(1, 8)
PARTS = st.integers(1, 4).map(float)


@st.composite
def layers(draw):
    kind = draw(st.sampled_from(["conv", "depthwise", "matmul"]))
    if kind == "matmul":
        return matmul("m", m=draw(SMALL), n=draw(SMALL), k=draw(SMALL), batch=draw(st.integers(1, 3)))
    window = {"in_size": draw(st.integers(5, 9)), "kernel": draw(st.integers(1, 5)), "stride": draw(st.integers(1, 2))}
    if kind == "depthwise":
        return depthwise("d", channels=draw(st.integers(2, 8)), **window)
    return convolution("c", in_channels=draw(SMALL), out_channels=draw(SMALL), **window)


@st.composite
def machines(draw):
    elements = draw(st.sampled_from([(1, 4), (4, 4), (3, 5), (16, 8)]))
    glb = replace(BASE.level("GLB"), capacity_bytes=float(draw(st.integers(8, 600))))
    levels = tuple(glb if isinstance(x, Memory) and x.name == "GLB" else
                   replace(x, shape=elements) if isinstance(x, Fanout) else x for x in BASE.levels)
    extents = tuple((d, draw(SMALL)) for d in DIMS)
    ratio = tuple((role, draw(PARTS)) for role in ("inputs", "weights", "outputs"))
    tile = draw(st.sampled_from([TileFlexibility(), TileFlexibility(fixed=(("GLB", extents),)),
                                 TileFlexibility(partitions=(("GLB", ratio),))]))
    orders = draw(st.lists(st.sampled_from(list(permutations(DIMS))), max_size=4, unique=True))
    pairs = draw(st.lists(st.sampled_from(list(permutations(DIMS, 2))), max_size=4, unique=True))
    shape = draw(st.sampled_from([ShapeFlexibility(), ShapeFlexibility(fixed=elements),
                                  ShapeFlexibility(blocks=(1, 2)), ShapeFlexibility(blocks=(2, 2))]))
    flexibility = replace(BASE.flexibility, tile=tile, order=OrderFlexibility(tuple(orders)),
                          parallelism=ParallelismFlexibility(tuple(pairs)), shape=shape)
    return replace(BASE, levels=levels, flexibility=flexibility)


@settings(max_examples=100, deadline=None)
@given(layers(), machines(), st.sampled_from(["T", "O", "P", "S", "TO", "PS", "TPS", "TOPS"]),
       st.sampled_from(["divisors", "all"]), st.sampled_from(["box", "window"]), st.sampled_from(["sizes", "tiles"]))
def test_spaces_lie_inside_one_another(layer, machine, axes, workload, inputs, hardware):
    rule = TileRule(workload, inputs, hardware)
    found = flexion(layer, machine, axes, rule)
    assert found.target_space.value <= found.class_space.value
    assert found.target_on_workload.value <= found.class_on_workload.value <= found.workload_space.value
    full = flexion(layer, replace(machine, flexibility=replace(
        machine.flexibility, tile=TileFlexibility(), order=OrderFlexibility(), parallelism=ParallelismFlexibility(),
        shape=ShapeFlexibility())), axes, rule)
    assert full.hardware == 1
    assert found.target_on_workload.value <= full.target_on_workload.value == full.class_on_workload.value
    # What a workload has depends on the machine only by the side along X, where one pair is fixed.
    if axes in ("T", "O", "P", "TO"):
        assert full.workload_space == found.workload_space
