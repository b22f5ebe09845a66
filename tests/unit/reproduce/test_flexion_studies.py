"""The studies of flexibility: tiny runs, the arithmetic behind the verdicts, diagrams to scale."""

import csv
import json
from math import pi

import pytest

from tilewright.hardware import preset
from tilewright.reproduce import REPRODUCTIONS, Setting, run_study
from tilewright.reproduce.flexion_future import PUBLISHED as FUTURE
from tilewright.reproduce.flexion_future import partial
from tilewright.reproduce.flexion_isolation import conv, gain_verdict, ordered, printed, shown_layers
from tilewright.reproduce.flexion_parallelism import pair_verdict
from tilewright.reproduce.flexion_shape import folds, shapes
from tilewright.reproduce.flexion_tile import in_full
from tilewright.reproduce.flexion_venn import apart, lens, nested, venn, venn_plot
from tilewright.reproduce.study import reaches

TINY = {
    "flexion-tile": Setting("tiny", 1, {"samples": 64, "every": 12, "buffers": (1000, 6400, 25600)}),
    "flexion-order": Setting("tiny", 1, {"samples": 64, "every": 12}),
    "flexion-parallelism": Setting("tiny", 1, {"samples": 64, "every": 12}),
    "flexion-shape": Setting("tiny", 1, {"samples": 64, "every": 12, "sides": (8, 16, 32)}),
    "flexion-future": Setting("tiny", 1, {"samples": 64, "every": 20, "designs": 300, "rivals": 2, "dram": (32,)}),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all tests keep their cells, so that none is computed twice."""
    return tmp_path_factory.mktemp("studies")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow) if name == "flexion-future" else name for name in TINY])
def test_a_tiny_run_judges_every_claim_and_writes_what_parses(name, folder):
    outcome = run_study(name, TINY[name], out=folder)
    study, found = outcome.study, outcome.findings
    assert [judged.claim for judged in found.judgements] == list(study.claims)
    assert len(found.plots) >= 1
    json.loads(outcome.file("json").read_text())
    for table in found.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        with outcome.file(f"{table.name}.csv").open(newline="") as file:
            assert len(list(csv.reader(file))) == len(table.rows) + 1
    told = json.dumps([[list(table.rows), list(table.notes)] for table in found.tables])
    (confirmed, of), = [(words.split()[0], words.split(" of ")[1].split()[0])
                        for words in told.split("The oracle confirms ")[1:]]
    assert confirmed == of
    again = run_study(name, TINY[name], out=folder)
    assert again.computed_cells == 0
    assert again.findings == found


def test_every_study_of_flexibility_has_a_tiny_run_here():
    assert set(TINY) == {name for name in REPRODUCTIONS if name.startswith("flexion-")}


def test_what_does_not_depend_on_searches_comes_out_as_published(folder):
    verdicts = {}
    for name in ("flexion-tile", "flexion-order", "flexion-parallelism", "flexion-shape"):
        outcome = run_study(name, TINY[name], out=folder)
        verdicts[name] = [judged.verdict for judged in outcome.findings.judgements]
    assert verdicts["flexion-tile"][:3] == ["holds", "holds", "impossible as published"]
    assert verdicts["flexion-tile"][-1] == "impossible as published"
    assert verdicts["flexion-order"][0] == "holds"
    assert verdicts["flexion-order"][-1] == "impossible as published"
    assert verdicts["flexion-parallelism"][:2] == ["holds", "impossible as published"]
    assert verdicts["flexion-parallelism"][-1] == "impossible as published"
    assert any("below the compute bound" in note and "MnasNet FullFlex1111 0.0004" in note for note in
               run_study("flexion-parallelism", TINY["flexion-parallelism"], out=folder).findings.tables[0].notes)
    assert verdicts["flexion-shape"][:5] == ["holds", *["impossible as published"] * 3, "holds in direction"]


def test_an_effect_must_reach_a_quarter_of_what_is_published():
    assert reaches(0.5, 0.0625) and not reaches(0.51, 0.0625)
    assert reaches(2, 16) and not reaches(1.99, 16) and not reaches(0.5, 16)


def test_verdicts_on_gains():
    assert [gain_verdict(ours, 0.38) for ours in (0.37, 0.41, 0.5, 0.78, 0.79, 0.92, 1.1)] == [
        "holds", "holds", *["holds in direction"] * 2, *["does not hold"] * 3]
    assert gain_verdict(0.98, 0.9) == "does not hold"  # within 10 %, but hardly any gain
    for ours in (0.004, 0.163, 1.0):
        assert gain_verdict(ours, 0.004, bound=0.087) == "impossible as published"
    assert gain_verdict(0.163, 0.14, bound=0.087) == "holds in direction"


def test_the_pair_of_layer_29_is_impossible_only_where_the_layer_has_no_such_pair():
    usable = {"C", "P", "Q", "R", "S"}
    assert pair_verdict(0.0, 0.05, usable) == "impossible as published"
    assert pair_verdict(0.0, 0.05, usable | {"K"}) == "does not hold"
    assert pair_verdict(0.05, 0.10, usable | {"K"}) == "holds"


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
    assert FUTURE["FullFlex-0101"] == FUTURE["FullFlex-0110"]
    assert FUTURE["FullFlex-1101"][2] > FUTURE["FullFlex-1001"][2]
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
    assert ordered([3.0, 2.0, 2.01]) and not ordered([2.0, 3.0])


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
