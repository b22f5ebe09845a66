"""Pareto fronts on the page and on the terminal."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from tilewright.base import together
from tilewright.report import print_run
from tilewright.report.fronts import front_rows, fronts_figure, layer_front_figure
from tilewright.report.page import render_page
from tilewright.store import FrontPointRecord, FrontRecord


def with_fronts(run, metrics=("latency", "energy"), units=("cycles", "pJ")):
    layers = []
    for layer in run.layers[:5]:
        cost = layer.cost
        points = tuple(FrontPointRecord((cost.latency_cycles * a, cost.energy_pj * b, *([a * b] * (len(metrics) - 2))),
                                        layer.mapping.levels)
                       for a, b in ((1.0, 1.5), (1.25, 1.25), (2.0, 1.0)))
        layers.append(replace(layer, front=FrontRecord(metrics, units, points)))
    return replace(run, layers=tuple(layers), request=replace(run.request, front=metrics))


def test_the_plot_of_all_layers_is_relative_to_the_least_of_each(run):
    shown = with_fronts(run)
    figure = fronts_figure(shown)
    assert len(figure["data"]) == 5
    for trace in figure["data"]:
        assert trace["x"] == pytest.approx([1.0, 1.25, 2.0])
        assert trace["y"] == pytest.approx([1.5, 1.25, 1.0])
    assert sum(trace["name"] != "other layers" for trace in figure["data"]) == 3
    assert fronts_figure(run)["data"] == []


def test_the_plot_of_a_layer_has_units_and_marks_the_layers_own_mapping(run):
    layer = with_fronts(run).layers[0]
    front, best = layer_front_figure(layer)["data"]
    assert front["x"] == pytest.approx([layer.cost.latency_cycles * a for a in (1.0, 1.25, 2.0)])
    assert front["y"] == pytest.approx([layer.cost.energy_pj * 1e-12 * b for b in (1.5, 1.25, 1.0)])
    assert (best["x"], best["y"]) == ([layer.cost.latency_cycles], [pytest.approx(layer.cost.energy_pj * 1e-12)])
    assert layer_front_figure(replace(layer, front=None))["data"] == []
    empty = replace(layer, front=replace(layer.front, points=()))
    assert layer_front_figure(empty)["data"] == []


def test_three_metrics_are_points_of_the_first_two(run):
    shown = with_fronts(run, ("latency", "energy", "power"), ("cycles", "pJ", "mW"))
    assert layer_front_figure(shown.layers[0])["data"][0]["mode"] == "markers"
    heads, rows = front_rows(shown)
    assert heads[2:] == ("Latency", "Energy", "Power")
    assert all(len(row) == 5 for row in rows)
    assert together(shown.request.front) == "latency, energy and power"


def test_the_terminal_tells_what_each_front_spans(run):
    shown, text = with_fronts(run), StringIO()
    print_run(shown, Console(file=text, width=200))
    assert "Pareto fronts of latency and energy" in text.getvalue()
    assert front_rows(shown)[1][0][1] == "3"
    thinned = replace(shown.layers[0], front=replace(shown.layers[0].front, thinned=True))
    assert front_rows(replace(shown, layers=(thinned,)))[1][0][1] == "3 (thinned)"
    none = replace(shown.layers[0], front=replace(shown.layers[0].front, points=()))
    assert front_rows(replace(shown, layers=(none,)))[1][0][1:] == ("0", "none", "none")


def test_the_page_holds_plots_and_tables_of_fronts(run):
    page = render_page(with_fronts(run))
    assert 'id="fronts"' in page and '"front-0"' in page and "Pareto front: 3 mappings" in page
    assert 'id="fronts"' not in render_page(run)
