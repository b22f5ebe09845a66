"""Constraints: what they check of themselves, how they read whatever their order, and how they intersect."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.mapping import ANY, Bounds, Constraints, MapSpace
from tilewright.workload import Axis, Operator, Tensor

UNIT = AccessEnergy(1.0, 1.0, 1.0, 1.0)
ALL = ("inputs", "weights", "outputs")
MACHINE = Accelerator("machine", (
    Memory("DRAM", ALL, UNIT), Memory("GLB", ("inputs", "outputs"), UNIT, capacity_bytes=64), Fanout("PE", (4, 2)),
    Memory("REG", ALL, UNIT, capacity_bytes=12)))
OPERATOR = Operator("matmul", "matmul", (("M", 8), ("N", 6), ("K", 5)), (
    Tensor("A", "inputs", (Axis((("M", 1),)), Axis((("K", 1),)))),
    Tensor("B", "weights", (Axis((("K", 1),)), Axis((("N", 1),)))),
    Tensor("C", "outputs", (Axis((("M", 1),)), Axis((("N", 1),)))),
))


@pytest.mark.parametrize(("wrong", "path", "rule"), [
    ({"keeps": {"PE": ("A",)}}, "space.keeps", "memories"),
    ({"keeps": {"GLB": ("A", "X")}}, "space.keeps.GLB", "A, C"),
    ({"keeps": {"GLB": ("B",)}}, "space.keeps.GLB", "A, C"),
    ({"keeps": {"DRAM": ("A", "B"), "GLB": ("A",)}}, "machine.REG.keeps", "sums of several instances"),
    ({"loops": {"PE": ("M",)}}, "space.loops", r"PE\.X, PE\.Y"),
    ({"loops": {"REG": ("M", "Z")}}, "space.loops.REG", "M, N, K"),
    ({"orders": {"PE.X": (("M", "N", "K"),)}}, "space.orders", "memories"),
    ({"orders": {"GLB": ()}}, "space.orders.GLB", "at least one"),
    ({"orders": {"GLB": (("M", "N"),)}}, "space.orders.GLB", "every dimension"),
    ({"orders": {"GLB": (("M", "M", ANY),)}}, "space.orders.GLB", "every dimension"),
    ({"factors": {"PE.Z": {"M": Bounds(2)}}}, "space.factors", "places"),
    ({"factors": {"GLB": {"Z": Bounds(2)}}}, "space.factors.GLB", "dimensions"),
    ({"factors": {"GLB": {"M": Bounds(0)}}}, "space.factors.GLB.M", "at least 1"),
    ({"factors": {"GLB": {"M": Bounds(2.5)}}}, "space.factors.GLB.M", "whole"),
    ({"factors": {"GLB": {"M": Bounds(4, 2)}}}, "space.factors.GLB.M", "least"),
    ({"factors": {"GLB": {"M": Bounds(9)}}}, "space.factors.GLB.M", "the size of M"),
    ({"factors": {"PE.X": {"M": Bounds(5)}}}, "space.factors.PE.X.M", "at most 4"),
    ({"factors": {"GLB": {"M": Bounds(2)}}, "loops": {"GLB": ("N",)}}, "space.factors.GLB.M", "may not loop"),
    ({"tiles": {"PE.X": {"M": Bounds(2)}}}, "space.tiles", "memories"),
    ({"tiles": {"GLB": {"M": Bounds(3, 2)}}}, "space.tiles.GLB.M", "least"),
    ({"tiles": {"DRAM": {"M": Bounds(1, 7)}}}, "space.tiles.DRAM.M", "holds everything"),
    ({"utilization": {"GLB": 0.5}}, "space.utilization", "fan-outs"),
    ({"utilization": {"PE": 0.0}}, "space.utilization.PE", "above 0"),
    ({"utilization": {"PE": 1.1}}, "space.utilization.PE", "at most 1"),
    ({"utilization": {"PE": float("nan")}}, "space.utilization.PE", "share"),
])
def test_what_is_wrong_is_named(wrong, path, rule):
    with pytest.raises(InputError, match=rule) as caught:
        MapSpace(OPERATOR, MACHINE, constraints=Constraints(**wrong))
    assert caught.value.field == path
    assert caught.value.given is not None


@pytest.mark.parametrize("name", ["keeps", "loops", "orders"])
def test_a_name_in_the_place_of_a_list_is_named(name):
    value = {"GLB": ("MNK",)} if name == "orders" else {"GLB": "MNK"}
    with pytest.raises(InputError) as caught:
        Constraints(**{name: value})
    assert caught.value.field == f"space.{name}.GLB"


@pytest.mark.parametrize(("name", "place"), [("factors", "PE.X"), ("tiles", "GLB")])
def test_a_number_in_the_place_of_bounds_is_named(name, place):
    with pytest.raises(InputError, match=rf"space\.{name}\.{place}\.M: must be Bounds; Got 4; For example Bounds"):
        Constraints(**{name: {place: {"M": 4}}})


def test_equal_constraints_have_equal_text_whatever_their_order():
    one = Constraints(
        keeps={"REG": ("B", "A"), "GLB": ("A",)}, loops={"PE.X": ("M", "K"), "GLB": ()},
        orders={"GLB": (("M", ANY), ("N", ANY)), "REG": ((ANY,),)},
        factors={"GLB": {"M": Bounds(2, 4), "N": Bounds()}, "REG": {"K": Bounds()}},
        tiles={"REG": {"M": Bounds(1, 2), "K": Bounds(2)}}, utilization={"PE": 0.5})
    other = Constraints(
        keeps={"GLB": ("A",), "REG": ("A", "B", "A")}, loops={"GLB": (), "PE.X": ("K", "M")},
        orders={"GLB": (("N", ANY), ("M", ANY))}, factors={"GLB": {"M": Bounds(2, 4)}},
        tiles={"REG": {"K": Bounds(2), "M": Bounds(1, 2)}}, utilization={"PE": 0.5})
    assert one == other
    assert repr(one) == repr(other)
    assert repr(Constraints(factors={"GLB": {}})) == repr(Constraints())
    assert repr(one) != repr(replace(one, utilization={"PE": 0.6}))


def test_what_both_allow_is_left():
    one = Constraints(loops={"GLB": ("M", "N"), "REG": ("K",)}, orders={"GLB": (("M", ANY), ("K", ANY))},
                      factors={"GLB": {"M": Bounds(2)}, "DRAM": {"N": Bounds(1, 3)}},
                      tiles={"GLB": {"M": Bounds(1, 100)}}, utilization={"PE": 0.25})
    other = Constraints(loops={"GLB": ("N", "K")}, orders={"GLB": ((ANY, "N"),)},
                        factors={"GLB": {"M": Bounds(1, 4)}}, tiles={"GLB": {"M": Bounds(200)}},
                        utilization={"PE": 0.5})
    both = one.intersect(other, OPERATOR)
    assert both == other.intersect(one, OPERATOR)
    assert both == Constraints(
        loops={"GLB": ("N",), "REG": ("K",)}, orders={"GLB": (("M", "K", "N"), ("K", "M", "N"))},
        factors={"GLB": {"M": Bounds(2, 4)}, "DRAM": {"N": Bounds(1, 3)}}, tiles={"GLB": {"M": Bounds(8, 8)}},
        utilization={"PE": 0.5})
    assert one.intersect(Constraints(), OPERATOR) == one


@pytest.mark.parametrize(("one", "other", "path"), [
    ({"orders": {"GLB": (("M", ANY),)}}, {"orders": {"GLB": (("N", ANY),)}}, "space.orders.GLB"),
    ({"factors": {"GLB": {"M": Bounds(4)}}}, {"factors": {"GLB": {"M": Bounds(1, 2)}}}, "space.factors.GLB.M"),
    ({"tiles": {"GLB": {"M": Bounds(4)}}}, {"tiles": {"GLB": {"M": Bounds(1, 2)}}}, "space.tiles.GLB.M"),
    ({"keeps": {"GLB": ("A",)}}, {"keeps": {"GLB": ()}}, "space.keeps.GLB"),
])
def test_contradictory_constraints_do_not_intersect(one, other, path):
    with pytest.raises(InputError) as caught:
        Constraints(**one).intersect(Constraints(**other), OPERATOR)
    assert caught.value.field == path


def test_what_is_kept_is_told_in_the_order_of_the_operator():
    space = MapSpace(OPERATOR, MACHINE, constraints=Constraints(keeps={"REG": ("C", "A")}))
    assert space.layout.keeps[-1] == ("A", "C")


def test_lanes_needed_are_whole():
    constraints = Constraints(utilization={"PE": 0.7})
    assert [constraints.lanes_needed("PE", n) for n in (10, 8, 1)] == [7, 6, 1]
    assert constraints.lanes_needed("other", 8) == 0
