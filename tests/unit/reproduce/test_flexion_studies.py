"""The studies of flexibility: tiny runs, the arithmetic behind the verdicts, diagrams to scale."""

from math import pi

import pytest

from tilewright.hardware import preset
from tilewright.report.circles import apart, lens, nested, venn, venn_plot
from tilewright.reproduce.claims import printed, right
from tilewright.reproduce.flexion_axes import folds, shapes
from tilewright.reproduce.flexion_future import PUBLISHED as FUTURE
from tilewright.reproduce.flexion_future import partial
from tilewright.reproduce.flexion_isolation import conv, shown_layers
from tilewright.reproduce.flexion_tile import in_full


def test_folds_of_layer_15_by_hand():
    assert folds((72, 40), (32, 32)) == 6
    assert folds((72, 40), (48, 16)) == 6
    assert folds((72, 40), (24, 40)) == folds((72, 40), (24, 42)) == 3
    assert shapes(1024, (16, 16)) == [(16, 64), (32, 32), (48, 16), (64, 16)]
    assert len(shapes(1024, (4, 4))) == 64
    assert (24, 42) in shapes(1024, (1, 1))
    assert (24, 42) not in shapes(1024, (4, 4))


def test_the_figure_of_the_future_has_all_classes_and_contradicts_itself():
    assert len(FUTURE) == 18
    assert FUTURE["FullFlex-0101",] == FUTURE["FullFlex-0110",]
    assert FUTURE["FullFlex-1101",][2] > FUTURE["FullFlex-1001",][2]
    flexibility = partial(preset("flexion").flexibility)
    assert flexibility.name == "PartFlex-1111"
    assert len(flexibility.order.choices) == 4
    assert flexibility.parallelism.choices == (("C", "K"), ("P", "Q"))


def test_whole_tiles_round_sizes_up():
    operator = in_full(conv(120, 40, 28, 28, 1, 1), preset("flexion"))
    assert operator.sizes == {"N": 1, "K": 128, "C": 48, "P": 30, "Q": 30, "R": 3, "S": 3}


def test_layers_are_as_written_but_for_depthwise_ones():
    layers, written = shown_layers(16, 29)
    assert layers[0].operator == written["Layer 16"]
    assert layers[1].operator.sizes["G"] == written["Layer 29"].sizes["C"] == 480


def test_figures_are_compared_at_their_printed_digits():
    assert printed(0.125, 0.13) and printed(0.0002, 0.0002) and printed(0.00024, 0.0002)
    assert not printed(0.136, 0.13) and not printed(0.00026, 0.0002)
    assert right([(0.125, 0.13), (0.136, 0.13)]) == 0.5


def test_lenses():
    assert lens(1, 1, 2) == lens(2, 1, 3.5) == 0
    assert lens(2, 1, 0.5) == pytest.approx(pi)
    assert lens(1, 1, 1) == pytest.approx(2 * pi / 3 - 3**0.5 / 2)
    for share in (0.1, 1.0, 2.5):
        assert lens(1.5, 1, apart(1.5, 1, share)) == pytest.approx(share)


def test_diagrams_have_the_areas_asked_for():
    drawn = venn(100, 80, 20, 30, 12)
    w, c, a = drawn.circles
    assert [pi * circle.r**2 for circle in drawn.circles] == pytest.approx([100, 80, 20])
    assert lens(w.r, c.r, abs(w.x - c.x)) == pytest.approx(30)
    assert lens(w.r, a.r, abs(w.x - a.x)) == pytest.approx(12)
    assert abs(a.x - c.x) <= c.r - a.r + 1e-9
    assert drawn.error < 1e-6
    # A can't share 20 with W inside a C that shares 1: the error is told.
    assert venn(100, 80, 20, 1, 20).error > 0.1
    inside = nested(9 * pi, 4 * pi, pi)
    assert [circle.r for circle in inside.circles] == pytest.approx([3, 2, 1])
    assert [circle.x for circle in inside.circles] == pytest.approx([0, -1, -2])


def test_diagrams_become_plots():
    plot = venn_plot("venn", "title", [("one", venn(10, 8, 2, 3, 1), ("W", "C", "A"))] * 2, "note")
    assert len(plot.data) == 6
    assert all(len(trace["x"]) == len(trace["y"]) for trace in plot.data)
    assert plot.layout["yaxis"]["scaleanchor"] == "x"
