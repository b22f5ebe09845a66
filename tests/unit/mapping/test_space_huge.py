"""Spaces of operators with sizes up to what steps can hold."""

import time
import tracemalloc
from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, preset
from tilewright.mapping import Bounds, Constraints, MapSpace
from tilewright.mapping.spaces.counting import chains, estimates
from tilewright.workload import matmul


def _space(tiling, *sizes):
    return MapSpace(matmul("big", *sizes), preset("eyeriss"), tiling)


@pytest.mark.parametrize(("sizes", "mappings"), [((2**31 - 1, 1, 1), 3049), ((1_000_000, 1, 1), 38_504)])
def test_huge_sizes_of_ruby_s_are_counted(sizes, mappings):
    size = _space("ruby-s", *sizes).size()
    assert (size.mappings, size.exact) == (mappings, True)


def test_a_huge_prime_loops_whole_at_one_memory():
    space = _space("perfect", 2**31 - 1, 1, 1)
    assert space.size().mappings == sum(slot.axis == "T" for slot in space.layout.slots)


@pytest.mark.sample(4)
@pytest.mark.parametrize("tiling", ["perfect", "imperfect", "ruby", "ruby-s", "ruby-t"])
@pytest.mark.parametrize("sizes", [(2**31 - 1, 1, 1), (2_095_133_040, 999_979, 7)])
def test_any_size_is_counted_or_estimated_at_once(tiling, sizes):
    space, start = _space(tiling, *sizes), time.process_time()
    size = space.size()
    assert size.mappings > 0
    assert size.error < 0.05
    assert time.process_time() - start < 10  # measured: below 2


@pytest.mark.parametrize(("memories", "extent", "power"), [
    (12, 10**9, 283), pytest.param(8, 200_000, 106, marks=pytest.mark.slow)])
def test_spaces_of_many_memories_are_estimated_in_little_room(memories, extent, power):
    dram, *_ = preset("eyeriss").memories
    machine = Accelerator("deep", tuple(replace(dram, name=f"L{place}") for place in range(memories)))
    space = MapSpace(matmul("big", extent, extent, extent), machine)
    tracemalloc.start()
    size, (_, most) = space.size(), tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not size.exact and 10**power < size.mappings < 10**(power + 1)
    assert size.error < 0.05
    assert most < 500e6  # measured: 50e6; tables by extent would take 1,500e6 of 8 memories


@pytest.mark.parametrize("tiling", ["imperfect", "ruby", "ruby-t", "ruby-s"])
def test_drawn_chains_estimate_what_is_counted(tiling, monkeypatch):
    space = _space(tiling, 1000, 60, 1)
    counted = space.size()

    monkeypatch.setattr(estimates.ChainCounter, "splits", _refuse)
    estimate = estimates.estimated_size(space.arrays, space._uniform.patterns)
    assert not estimate.exact
    assert estimate.error < 0.1
    assert estimate.mappings == pytest.approx(counted.mappings, rel=4 * estimate.error)


def test_tile_bounds_hold_in_estimates(monkeypatch):
    free = _space("ruby", 3000, 1, 1)
    name = free.layout.levels[1]
    space = MapSpace(free.operator, free.accelerator, "ruby", Constraints(tiles={name: {"M": Bounds(100, 700)}}))
    counted = space.size()
    assert counted.mappings < free.size().mappings
    monkeypatch.setattr(estimates.ChainCounter, "splits", _refuse)
    estimate = estimates.estimated_size(space.arrays, space._uniform.patterns)
    assert estimate.mappings == pytest.approx(counted.mappings, rel=4 * estimate.error)


def _refuse(self):
    raise chains.TooLarge


def test_rules_of_huge_sizes_are_refused_before_they_are_written_out():
    space = _space("ruby-s", 2**31 - 1, 1, 1)
    with pytest.raises(InputError, match=r"sizes up to 4194304.*2147483647"):
        space.fits(space.empty(1))


def test_constrained_huge_sizes_are_estimated():
    name = _space("ruby", 2**31 - 1, 1, 1).layout.levels[1]
    free = _space("ruby", 2**31 - 1, 1, 1)
    space = MapSpace(free.operator, free.accelerator, "ruby", Constraints(tiles={name: {"M": Bounds(1, 1000)}}))
    assert 0 < space.size().mappings < free.size().mappings


def test_sizes_that_steps_cannot_hold_are_refused():
    with pytest.raises(InputError, match=r"M.*2147483647.*2147483648"):
        _space("ruby-s", 2**31, 1, 1)


@pytest.mark.parametrize("given", [5, "A", [5], None])
@pytest.mark.parametrize("field", ["keeps", "loops", "orders"])
def test_what_is_no_list_of_names_is_refused(field, given):
    with pytest.raises(InputError, match=rf"space\.{field}\.GLB.*must"):
        Constraints(**{field: {"GLB": given}})


@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
def test_lanes_beyond_what_any_mapping_uses_change_no_count(tiling):
    machine, layer = preset("edge-s1"), matmul("small", 4, 6, 3)
    sizes = []
    for shape in ((72, 1), (2**31 - 1, 1)):
        levels = tuple(replace(one, shape=shape) if isinstance(one, Fanout) else one for one in machine.levels)
        sizes.append(MapSpace(layer, replace(machine, levels=levels), tiling).size())
    assert sizes[0].exact
    assert sizes[0] == sizes[1]
