"""The HTML page as text, and its plots as data."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from sample_run import MACHINE

from tilewright.base import InputError
from tilewright.mapping import NestRoom
from tilewright.report import figures, render_page, write_page
from tilewright.report.network import energy_parts, energy_sentence, sides
from tilewright.report.quantities import TIMES, engineering, measured, percent
from tilewright.store import RooflineRecord, VectorRecord, diagnosed
from tilewright.store.build import totals_of
from tilewright.workload import Graph


class Reader(HTMLParser):
    """Collects tags, texts and identities, and checks that elements close in order."""

    VOID = frozenset({"meta", "link", "input", "br", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.attributes, self.texts = [], [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.texts.append(data)


def without_library(page: str) -> str:
    """Return the page without the plotting library."""
    start = page.index('<script id="plotly"')
    return page[:start] + page[page.index("</script>", start):]


@pytest.fixture(scope="module")
def page(run):
    return render_page(run)


@pytest.mark.parametrize("name", ["run", "gappy", "hostile", "lonely"])
def test_every_element_closes_and_every_link_leads_somewhere(name, request):
    reader = Reader(render_page(request.getfixturevalue(name)))
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert {link[1:] for link in reader.links} <= set(reader.ids)
    assert all(link.startswith("#") for link in reader.links)


def test_nothing_comes_from_elsewhere(page):
    own = without_library(page)
    named = own.replace("http://www.w3.org/2000/svg", "")  # the name of a kind of element, not a place
    assert "http:" not in named and "https:" not in named
    for tag, name, value in Reader(page).attributes:
        assert (tag, name) != ("script", "src")
        if name in {"src", "href"}:
            assert value.startswith(("#", "data:"))
    assert "default-src 'none'" in own


def test_the_page_says_what_was_asked_and_what_came_of_it(page, run):
    text = " ".join(" ".join(Reader(page).texts).split())
    for expected in ("resnet50", "Eyeriss 14x12", "objective", run.network.coverage, run.id, run.request.command,
                     "9.61 M", "ArgMax top1", "relu0, relu1, relu2 and 46 more", "the batch dimension",
                     f"{engineering(run.totals.latency_cycles / 200e6, 's')} at 200 MHz", run.accelerator.sources[0],
                     "NumPy 2.4.6"):
        assert expected in text, expected
    assert f"{run.totals.latency_cycles / run.totals.bound_latency_cycles:.2f}x its bound" in text
    assert " ".join(run.accelerator.definition.split()) in text
    for layer in run.layers:
        assert layer.name in text
        assert " ".join(layer.mapping.yaml.split()) in text
        for count in layer.cost.counts:
            assert f"{count.reads:,}" in text


def test_names_cannot_become_markup(hostile):
    reader = Reader(render_page(hostile))
    assert "injected" not in reader.ids
    assert not any(tag == "img" for tag, _, _ in reader.attributes)
    assert any("<img src=x onerror=alert(1)></script>" in text for text in reader.texts)
    own = without_library(render_page(hostile))
    assert "<img" not in own and own.count("</script>") == 4


def test_layers_without_a_mapping_are_told(gappy, lonely):
    text = " ".join(" ".join(Reader(render_page(gappy)).texts).split())
    assert "7 layers have no legal mapping; the totals leave them out." in text
    assert "smallest tile tried needs 512" in text
    alone = " ".join(" ".join(Reader(render_page(lonely)).texts).split())
    assert "1 layer has no legal mapping; the totals leave it out." in alone
    assert "the constraints for" not in text + alone


def test_many_layers_without_a_mapping_are_listed_in_short(run):
    bare = replace(run, layers=tuple(replace(layer, cost=None, mapping=None, roofline=None, reason="no tile fits")
                                     for layer in run.layers),
                   totals=replace(run.totals, unmapped_layers=54))
    text = " ".join(" ".join(Reader(render_page(bare)).texts).split())
    assert "and 16 more, in the layer table" in text


def test_bars_show_partitions_double_buffers_and_overflow(run):
    layer = run.layers[2]
    rows = tuple(replace(row, rooms=(NestRoom(None, 2 * 51_712.0, 64 * 1024.0, 2),)) if row.level == "GLB" else row
                 for row in layer.mapping.nest)
    page = render_page(replace(run, layers=(replace(layer, mapping=replace(layer.mapping, nest=rows)),)))
    text = " ".join(" ".join(Reader(page).texts).split())
    assert f"Input 2{TIMES} 43.5 KiB Output 2{TIMES} 7 KiB 157.8 % of 64 KiB" in text
    assert "Weight 384 B 85.7 % of 448 B" in text
    assert 'class="bar over"' in page and 'class="bar open"' in page


def test_broken_constraints_proofs_and_interruptions_are_told(run):
    broken = replace(run.layers[0], search=replace(run.layers[0].search, feasible=False))
    proved = replace(run.layers[1], search=replace(run.layers[1].search, complete=True))
    never = replace(run.layers[2], search=broken.search, reason="No mapping can meet the constraints")
    text = " ".join(" ".join(Reader(render_page(replace(run, layers=(broken, proved, never), unfinished=("fc2",),
                                                       headline="Interrupted: of 2 <layers>."))).texts)
                    .split())
    assert "No mapping met the constraints for conv1 ." in text and "breaks a constraint" in text
    assert f"No mapping can meet the constraints for {never.name} ." in text
    assert "the whole space was scored, so this is its optimum" in text
    assert "Interrupted: of 2 <layers>." in text and "Not finished: fc2." in text


def test_the_page_is_written_or_the_place_is_named(tmp_path, run, page):
    assert write_page(run, tmp_path / "out.html").read_text(encoding="utf-8") == page
    with pytest.raises(InputError, match=r"absent.*out\.html: must be a file that can be written.*No such file"):
        write_page(run, tmp_path / "absent" / "out.html")


@pytest.mark.parametrize("name", ["run", "gappy", "hostile", "lonely"])
def test_figures_are_valid_plotly(name, request):
    import plotly.graph_objects

    record = request.getfixturevalue(name)
    made = [figures.latency_figure(record), figures.energy_figure(record), figures.roofline_figure(record),
            figures.convergence_figure(record), figures.layer_convergence_figure(record.layers[0])]
    for figure in made:
        plotly.graph_objects.Figure(json.loads(re.sub(r'"@[a-z0-9-]+"', '"#123456"', json.dumps(figure))))


def test_every_colour_of_a_figure_is_in_the_style_sheet(page, run):
    used = set(re.findall(r'"@([a-z0-9-]+)"', json.dumps(figures.latency_figure(run)) + without_library(page)))
    assert used >= {"compute", "memory-0", "strong", "surface", "curve-0"}
    assert all(f"--{name}:" in page for name in used)


def with_vectors(run):
    """Return the run with vector work in its totals: some on the unit, some folded."""
    nodes = (VectorRecord("add", ("a", "b"), 2, 100, 300.0, "", 5_000_000, 7e8, bottleneck="DRAM"),
             VectorRecord("relu", ("r<1>",), 1, 100, 200.0, "", 0, 1e6, folded=True))
    totals = totals_of(run.layers, run.accelerator, 0.4, nodes)
    return replace(run, vector_nodes=nodes, totals=totals, request=replace(run.request, vector="included"))


def test_vector_work_is_a_bar_a_row_and_a_table(run):
    more = with_vectors(run)
    assert more.totals.latency_cycles == run.totals.latency_cycles + 5_000_000
    assert more.totals.bound_energy_pj == pytest.approx(run.totals.bound_energy_pj + 7.01e8)
    for figure, scale, field in ((figures.latency_figure, 1, "latency_cycles"),
                                 (figures.energy_figure, 1e-12, "energy_pj")):
        bars = [trace for trace in figure(more)["data"] if trace["type"] == "bar"]
        assert sum(sum(trace["y"]) for trace in bars) == pytest.approx(getattr(more.totals, field) * scale)
        (bar,) = [trace for trace in bars if trace["name"] == "Vector work"]
        assert bar["x"] == [len(run.layers)] and figure(more)["layout"]["xaxis"]["ticktext"][-1] == "Vector work"
        assert "Vector work" not in json.dumps(figure(run))
    page = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", without_library(render_page(more))))
    assert "The totals above and their bounds have vector work in them, 5.00 M cycles and 701 µJ" in page
    assert "add 2 100 300 B 5.00 M" in page and "DRAM a, b" in page and "folded r&lt;1&gt;" in page
    assert "Vector work is free" not in page and "Vector work is free" in render_page(run)


def test_energy_by_memory_and_tensor_adds_up_to_the_totals(run):
    parts = energy_parts(with_vectors(run))
    assert sum(sum(spent.values()) for spent in parts.values()) == pytest.approx(with_vectors(run).totals.energy_pj)
    assert parts["Vector work"] == {"other": pytest.approx(7.01e8)} and set(parts["MAC"]) == {"other"}
    for memory in ("DRAM", "GLB", "Spad"):
        per_word = {"DRAM": 200, "GLB": 6, "Spad": 1}[memory]
        words = sum(layer.count * sum(getattr(count, kind) for kind in ("reads", "fills", "updates", "drains"))
                    for layer in run.layers for count in layer.cost.counts
                    if (count.memory, count.tensor) == (memory, "Output"))
        assert parts[memory]["outputs"] == pytest.approx(words * per_word)
    assert "weights" not in parts["GLB"]  # it does not keep them
    largest = next(iter(parts))
    assert sum(parts[largest].values()) == max(sum(spent.values()) for spent in parts.values())
    assert energy_sentence(run).startswith(percent(sum(energy_parts(run)[largest].values()) / run.totals.energy_pj))
    assert energy_sentence(replace(run, layers=())) == ""


def test_the_page_says_on_top_what_limits_the_network_and_what_would_cure_it(run):
    told = diagnosed(run, Graph("resnet50", ()), MACHINE)
    reader = Reader(render_page(told))
    text = " ".join(" ".join(reader.texts).split())
    assert text.index(told.diagnosis.sentence) < text.index("Energy-delay product") < text.index("Energy by memory and")
    assert f"{told.diagnosis.sentence} {energy_sentence(run)}" in text
    for layer in told.layers:
        assert layer.cost.limited_by in text and f"{layer.relief.latency_cycles:,} cycles" in text
    assert told.diagnosis.sentence not in render_page(run)


def test_machines_side_by_side_tell_what_limits_each_and_its_cycles_by_layer(run):
    told = diagnosed(replace(run, layers=run.layers[:3], totals=totals_of(run.layers[:3], run.accelerator, 0.4)),
                     Graph("resnet50", ()), MACHINE)
    less = replace(told, layers=told.layers[:2], diagnosis=None, accelerator=replace(run.accelerator, name="other"))
    (limits, energy), (plot,) = sides([told, less])
    assert limits.rows == ((run.accelerator.name, told.diagnosis.sentence, energy_sentence(told)),
                           ("other", "", energy_sentence(less)))
    assert energy.columns == ("Component", run.accelerator.name, "other")
    parts = energy_parts(told)
    assert [row[0] for row in energy.rows] == list(parts)
    for name, cell, _ in energy.rows:
        spent = sum(parts[name].values())
        assert cell == f"{measured(spent, 'pJ')} ({percent(spent / told.totals.energy_pj)})"
    cycles = [layer.count * layer.cost.latency_cycles for layer in told.layers]
    assert [trace["y"] for trace in plot.data] == [cycles, [*cycles[:2], None]]


def test_bars_add_up_to_the_totals(run):
    latency = figures.latency_figure(run)["data"]
    assert sum(sum(trace["y"]) for trace in latency if trace["type"] == "bar") == run.totals.latency_cycles
    energy = figures.energy_figure(run)["data"]
    bars = [trace for trace in energy if trace["type"] == "bar"]
    assert sum(sum(trace["y"]) for trace in bars) == pytest.approx(run.totals.energy_pj * 1e-12)
    assert [trace["name"] for trace in bars] == ["DRAM", "GLB", "Spad", "PE array", "MAC", "leakage"]


def test_bounds_are_drawn_across_their_bars(run):
    lines = {trace["name"]: trace for trace in figures.latency_figure(run)["data"] if trace["type"] == "scatter"}
    assert lines["bound"]["y"][:3] == [run.layers[0].bounds.latency_cycles] * 2 + [None]
    assert lines["bound"]["y"][6] == 3 * run.layers[2].bounds.latency_cycles
    energies = {trace["name"]: trace for trace in figures.energy_figure(run)["data"] if trace["type"] == "scatter"}
    assert energies["bound"]["y"][6] == pytest.approx(3 * run.layers[2].bounds.energy_pj * 1e-12)
    unbound = replace(run, layers=(replace(run.layers[0], bounds=None),))
    assert figures.latency_figure(unbound)["data"][-1]["y"] == []


def test_layers_without_a_mapping_are_marked(gappy):
    marks = figures.energy_figure(gappy)["data"][-1]
    assert (marks["name"], marks["x"]) == ("no legal mapping", [3, 9])


def test_every_point_lies_under_its_roof(run):
    figure = figures.roofline_figure(run)
    roof = figure["data"][0]
    assert roof["y"] == [pytest.approx(8 * roof["x"][0]), 168, 168]
    assert roof["x"][1] == 21.0
    points = [(x, y) for trace in figure["data"][1:] for x, y in zip(trace["x"], trace["y"], strict=True)]
    assert len(points) == len(run.layers)
    assert all(y <= min(168, 8 * x) * 1.0001 for x, y in points)


def test_labels_cover_no_other_point_and_no_other_label(run, hostile):
    for record in (run, hostile):
        figure = figures.roofline_figure(record)
        (left, right), (bottom, top) = (figure["layout"][axis]["range"] for axis in ("xaxis", "yaxis"))
        points = [((math.log10(x) - left) / (right - left), (math.log10(y) - bottom) / (top - bottom), text)
                  for trace in figure["data"] if "text" in trace
                  for x, y, text in zip(trace["x"], trace["y"], trace["text"], strict=True)]
        labels = [point for point in points if point[2]]
        assert 1 <= len(labels) <= 4
        for x, y, _ in labels:
            assert not any(0 < other - x < 0.25 and 0.01 < y - below < 0.12 for other, below, _ in points)


def test_a_machine_of_unlimited_bandwidth_has_a_flat_roof(run):
    flat = replace(run, layers=(replace(run.layers[0], roofline=RooflineRecord(2.0, 10.0, 168.0, None, "DRAM")),))
    roof = figures.roofline_figure(flat)["data"][0]
    assert roof["y"] == [168, 168] and "unlimited bandwidth" in roof["name"]
    assert figures.roofline_figure(replace(run, layers=()))["data"] == []


def test_curves_end_at_the_last_sample_relative_to_the_bound(run):
    figure = figures.convergence_figure(run)
    assert figure["layout"]["yaxis"]["title"]["text"] == "Best score / bound"
    assert len(figure["data"]) == len(run.layers)
    assert sum(trace["showlegend"] for trace in figure["data"]) == 4
    for trace in figure["data"]:
        assert trace["x"][-1] == 10_000
        assert trace["y"] == sorted(trace["y"], reverse=True) and trace["y"][-1] >= 1


def test_gaps_stand_in_the_layer_table_and_with_each_search(run):
    page = render_page(run)
    known = [layer for layer in run.layers if layer.gap is not None]
    assert known
    for layer in known:
        assert layer.gap == pytest.approx(layer.search.score / layer.bounds.score - 1)
        assert f'data-value="{layer.gap}">{percent(layer.gap)}</td>' in page
        assert f"the best is at most {percent(layer.gap)} above what is possible" in page


def test_curves_without_bounds_end_at_one(run):
    layers = tuple(replace(layer, bounds=replace(layer.bounds, score=None)) for layer in run.layers)
    figure = figures.convergence_figure(replace(run, layers=layers))
    assert figure["layout"]["yaxis"]["title"]["text"] == "Best score / final score"
    assert {trace["y"][-1] for trace in figure["data"]} == {1.0}
    text = " ".join(" ".join(Reader(render_page(replace(run, layers=layers))).texts).split())
    assert "relative to the final one. The dashed line is the final score" in text


def test_scores_before_the_first_legal_sample_are_left_out(run):
    layer = run.layers[0]
    search = replace(layer.search, history=((1, 0.0, float("inf")), *layer.search.history[3:]))
    trace = figures.layer_convergence_figure(replace(layer, search=search))["data"][0]
    assert trace["x"][0] == layer.search.history[3][0]
    assert figures.layer_convergence_figure(replace(layer, search=None))["data"] == []


def test_a_quick_search_has_a_linear_axis_and_a_dot(run):
    layer = run.layers[0]
    search = replace(layer.search, samples=1, history=((1, 0.0, layer.bounds.score * 1.5),))
    figure = figures.layer_convergence_figure(replace(layer, search=search))
    assert figure["data"][0]["mode"] == "markers"
    assert "type" not in figure["layout"]["yaxis"]
