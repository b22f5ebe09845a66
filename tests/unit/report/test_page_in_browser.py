"""The page as a person meets it, in headless Chromium."""

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sample_run import RESNET50, sample_run

import tilewright as tw
from tilewright.api import side_by_side
from tilewright.cost.dense.single import single_cost
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.report import contest_sheet, exploration_sheet, flexibility_sheet, write_page, write_sheet
from tilewright.store import layer_record
from tilewright.store.build import accelerator_record
from tilewright.workload import ROLES, convolution

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
MAIN_PLOTS = ["latency", "energy", "roofline", "convergence"]
MARKS = ".cartesianlayer :is(.point path, path.point, path.js-line)"

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail("Chromium is missing, and in CI the page must be opened: apt-get install chromium")
        pytest.skip("no chromium on the path; install Debian's package to open the page")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def run():
    """A run of four layers: each has a plot of its own."""
    return sample_run((*RESNET50[:3], RESNET50[-1]))


@pytest.fixture
def visit(chromium, tmp_path):
    """Return a function that opens the page of a run, or one written; afterwards nothing may be wrong or fetched."""
    troubles, opened = [], []

    def go(record, width=1400, scheme="light", anchor=""):
        page = record if isinstance(record, Path) else write_page(record, tmp_path / "page.html")
        address = page.as_uri()
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: troubles.append(f"request: {request.url[:80]}")
                if request.url.split("#")[0] != address and not request.url.startswith("data:") else None)
        page.goto(address + anchor)
        return page

    yield go
    for context in opened:
        context.close()
    assert troubles == []


def marks(page, name):
    """Return how many marks a plot shows, waiting for the first."""
    plot = page.locator(f'.plot[data-figure="{name}"]')
    plot.locator("svg.main-svg").first.wait_for()
    plot.locator(MARKS).first.wait_for(state="attached")
    return plot.locator(MARKS).count()


def eventually(page, condition):
    """Wait until a JavaScript condition holds (the page forbids the `eval` that Playwright's own wait needs)."""
    end = time.monotonic() + 10
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


def test_every_plot_is_drawn_and_every_layer_opens_and_shows_its_mapping(visit, run):
    page = visit(run, anchor="#layer-1")
    found = {name: marks(page, name) for name in MAIN_PLOTS}
    assert page.locator(".plot:visible").count() == len(MAIN_PLOTS) + 1
    assert found["latency"] >= 2 * len(run.layers)
    assert found["energy"] >= 5 * len(run.layers)
    assert found["roofline"] == len(run.layers) + 1
    assert found["convergence"] == len(run.layers)
    assert page.locator("#layer-1[open]").count() == 1
    page.locator("#layers-table").get_by_role("link", name="fc", exact=True).click()
    page.locator(f"#layer-{len(run.layers) - 1}[open] h4").first.wait_for()
    page.get_by_role("button", name="Open all").click()
    for index, layer in enumerate(run.layers):
        assert marks(page, f"layer-{index}") == 1
        details = page.locator(f"#layer-{index}")
        levels = {row.level for row in layer.mapping.nest if row.kind in {"memory", "fanout", "compute"}}
        assert details.locator(".box").count() == len(levels)
        loops = [row for row in layer.mapping.nest if row.kind in {"for", "par-for"}]
        assert details.locator(".loop").count() == len(loops)
    widths = page.locator("#layer-2 .occupancy .bar").evaluate_all(
        "bars => bars.map(bar => bar.firstElementChild.getBoundingClientRect().width"
        " / bar.getBoundingClientRect().width)")
    assert widths[2:] == pytest.approx([1.0, 384 / 448, 32 / 48], abs=0.01)
    page.get_by_role("button", name="Close all").click()
    assert page.locator("details.layer[open]").count() == 0


def test_the_layer_table_sorts_and_filters(visit, gappy):
    page = visit(gappy)
    names = page.locator("#layers-table tbody tr:visible th")
    first = gappy.layers[0].name
    assert names.first.inner_text() == first
    latency = page.locator("#layers-table th button", has_text="Latency").first
    latency.click()
    slowest = max((layer for layer in gappy.layers if layer.cost), key=lambda layer: layer.cost.latency_cycles)
    assert names.first.inner_text().split()[0] == slowest.name
    assert names.last.inner_text().split()[0] == "layer2.1.conv1"
    assert page.locator("th[aria-sort=descending]").count() == 1
    latency.click()
    quickest = min((layer for layer in gappy.layers if layer.cost), key=lambda layer: layer.cost.latency_cycles)
    assert names.first.inner_text().split()[0] == quickest.name
    latency.click()
    assert names.first.inner_text() == first
    page.locator("#filter").fill("layer4 R3")
    assert [text.split()[0] for text in names.all_inner_texts()] == ["layer4.0.conv2", "layer4.1.conv2"]
    assert page.locator("#shown").inner_text() == "2 of 24 layers"
    page.locator("#filter").fill("no mapping")
    assert names.count() == 2


def test_many_layers_with_hostile_names_fit_any_window(visit, hostile):
    page = visit(hostile)
    assert marks(page, "convergence") == len(hostile.layers)
    assert page.locator("#injected").count() == 0
    page.locator("#layer-0 summary").first.click()
    assert marks(page, "layer-0") == 1
    for width in (1400, 600, 360):
        page.set_viewport_size({"width": width, "height": 900})
        eventually(page, "document.querySelector('[data-figure=latency] svg').clientWidth < innerWidth")
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_plots_follow_the_window_and_the_theme_and_a_dark_page_prints_light(visit, run):
    page = visit(run, 1400)
    marks(page, "latency")
    shade = "getComputedStyle(document.querySelector('[data-figure=latency] .point path')).fill"
    size = "document.querySelector('[data-figure=latency] svg').clientWidth"
    light, wide = page.evaluate(shade), page.evaluate(size)
    page.emulate_media(color_scheme="dark")
    eventually(page, f"{shade} !== '{light}'")
    page.set_viewport_size({"width": 700, "height": 900})
    eventually(page, f"{size} < {wide} && {size} <= 700")
    dark = page.evaluate(shade)
    printed = page.evaluate(f"(dispatchEvent(new Event('beforeprint')), {shade})")
    assert printed == "rgb(217, 119, 43)" != dark
    assert page.evaluate(f"(dispatchEvent(new Event('afterprint')), {shade})") == dark
    assert len(page.pdf()) > 50_000


def test_a_run_without_any_mapping_is_still_a_page(visit, lonely):
    page = visit(lonely)
    assert marks(page, "latency") >= 1
    assert page.get_by_role("alert").inner_text().startswith("1 layer has no legal mapping")
    page.locator("#layer-0 summary").click()
    assert "smallest tile tried needs 512" in page.locator("#layer-0").inner_text()


def notebook(path):
    """Write what a notebook shows of results, one after the other, into a page."""
    run, machine = tw.map(ONE, "edge-s2", **QUICK), tw.load_accelerator("edge-s2")
    shown = (run, run.record.layers[0], machine, tw.dataflow("weight-stationary", tw.pick_operator(ONE), machine))
    path.write_text(f"<!DOCTYPE html><main>{''.join(one._repr_html_() for one in shown)}</main>", encoding="utf-8")
    return path


ONE, QUICK = "matmul:M=16,N=24,K=8", {"budget": 60, "store": False}
PAGES = {
    "map": lambda path: tw.map("ncf", "edge-s2", mapper="random", **QUICK).write_report(path),
    "machines": lambda path: side_by_side(("edge-s1", "edge-s2"), network=ONE, **QUICK).write_report(path),
    "sweep": lambda path: tw.sweep(ONE, "edge-s2", ("SG.capacity=64KB,128KB", "PEs.shape=8x8,16x16"), budget=60,
                                   workers=1).write_report(path),
    "pipeline": lambda path: tw.pipeline(ONE, "edge-s3", **QUICK).write_report(path),
    "design": lambda path: tw.design(ONE, "edge-s2", "area=0.1mm2", front="latency,energy,area",
                                     **QUICK).write_report(path),
    "deployment": lambda path: tw.design(ONE, "confuciux", "elements=40", deployment="pipelined",
                                         store=False).write_report(path),
    "schedule": lambda path: tw.schedule({tw.pick_operator(ONE): 2}, "s1", method="magma", budget=30, mappings=10,
                                         store=False).write_report(path),
    "flexibility": lambda path: write_sheet(flexibility_sheet(tw.flexibility(ONE, "flexion")), path),
    "explore": lambda path: write_sheet(exploration_sheet(tw.explore(ONE, "flexion", "0000,1111", budget=64), ""),
                                        path),
    "compare": lambda path: write_sheet(contest_sheet(tw.compare(
        ONE, "edge-s2", mappers="random,ga", budget=60, seeds=2, workers=1), ""), path),
    "notebook": notebook,
}
LIKE = "deployment", "sweep", "flexibility", "explore", "compare"
"""Pages of parts that others have too: the last four are tables and plots, as that of machines."""


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in LIKE else [])
                                  for kind in PAGES])
def test_nothing_on_any_page_is_cut_off_or_over_another(visit, tmp_path, kind):
    file = PAGES[kind](tmp_path / "page.html")
    assert file.stat().st_size < 1_000_000
    page = visit(file, 1280)
    page.evaluate("document.querySelectorAll('details.layer').forEach((layer, place) => { layer.open = place < 2; })")
    boxes = (Path(__file__).parent / "boxes.js").read_text(encoding="utf-8")
    for width in (1280, *((1920,) if kind in ("map", "design") else ())):
        page.set_viewport_size({"width": width, "height": 900})
        eventually(page, "[...document.querySelectorAll('.plot')].every(box => !box.checkVisibility() || "
                         "Math.abs((box.querySelector('svg') || box).clientWidth - box.clientWidth) < 4"
                         " && box.querySelector('svg'))")
        assert page.evaluate(f"({boxes})()") == []
    if kind == "design":
        assert page.locator(".nest > .box").count() == page.locator(".walk").count() == 1


def test_what_is_cut_off_or_over_another_is_found(visit, run):
    """The net itself: a table too wide, words that leave their card, a legend over its plot."""
    page = visit(run, 1280)
    marks(page, "latency")
    boxes = (Path(__file__).parent / "boxes.js").read_text(encoding="utf-8")
    assert page.evaluate(f"({boxes})()") == []
    for change, told in (
            ("document.querySelector('#layers-table td.n').textContent = 'wide '.repeat(90)", "is cut off"),
            ("document.querySelector('.card .note').style = 'position: relative; left: 600px'", "leaves div.card"),
            ("document.querySelector('[data-figure=energy] .modebar').style.top = '22px'",
             "energy: the buttons lie over text.legendtext"),
            ("document.querySelector('[data-figure=energy] .legend').setAttribute('transform', 'translate(200,100)')",
             "the legend of energy lies over the plot")):
        page.evaluate(f"(() => {{ {change} }})()")
        assert any(told in one for one in page.evaluate(f"({boxes})()")), told


def one_by_one():
    """Return a run of a strided convolution on one unit, with tiles that leave rests along every axis."""
    machine = Accelerator("one", (
        Memory("DRAM", ROLES, AccessEnergy(1, 1, 1, 1)), Memory("Buffer", ROLES, AccessEnergy(1, 1, 1, 1)),
        Fanout("PEs", (1, 1)), Memory("Regs", ROLES, AccessEnergy(1, 1, 1, 1))))
    operator = convolution("odd", batch=1, in_channels=5, out_channels=3, in_size=(13, 6), kernel=(3, 2), stride=(2, 1))
    mapping = Mapping((
        LevelLoops("DRAM", (Loop("C", 3), Loop("P", 4), Loop("K", 2))),
        LevelLoops("Buffer", (Loop("Q", 2), Loop("C", 2), Loop("R", 2), Loop("P", 1))), LevelLoops("PEs"),
        LevelLoops("Regs", tuple(Loop(name, 1) for name in operator.sizes))))
    cost = single_cost(operator, machine, mapping)
    layer = layer_record(operator, machine, (mapping, cost), None)
    run = sample_run(RESNET50[:1])
    return replace(run, layers=(layer,), accelerator=accelerator_record(machine)), cost


def test_the_turns_of_a_nest_move_the_words_that_the_model_counts(visit):
    run, cost = one_by_one()
    page = visit(run)
    page.locator("#layer-0 summary").first.click()
    walk = page.locator("#layer-0 .walk")
    assert walk.locator(".turn").inner_text().startswith("Turn 1 of ")
    assert walk.locator("[data-move='Buffer.I.in']").count() == walk.locator("[data-move='Buffer.W.in']").count() == 1
    assert walk.locator("svg .move").count() == walk.locator("li").count()
    total = int(walk.locator(".turn").inner_text().split()[3].rstrip(":").replace(",", ""))
    following = walk.get_by_role("button", name="Next turn")
    following.click()
    second = walk.inner_text()
    following.click()
    assert walk.locator(".turn").inner_text().startswith("Turn 3 of ") and walk.inner_text() != second
    walk.get_by_role("button", name="Back").click()
    assert walk.inner_text() == second
    walk.get_by_role("button", name="To the beginning").click()
    found = page.evaluate("""() => {
      const walk = document.querySelector("#layer-0 .walk");
      const next = walk.querySelector("[aria-label='Next turn']");
      const sums = { turns: 0 };
      for (;;) {
        walk.querySelectorAll("li").forEach(({ dataset }) => {
          sums[dataset.move] = (sums[dataset.move] || 0) + Number(dataset.words);
        });
        if (next.disabled) return sums;
        sums.turns += 1;
        next.click();
      }
    }""")
    assert found.pop("turns") == total > 100
    expected = {f"{memory}.{tensor}.{way}": words for (memory, tensor), count in cost.counts.items() if memory != "DRAM"
                for way, words in (("in", count.fills), ("out", count.drains)) if words}
    assert found == expected and len(expected) == 8
    walk.get_by_role("combobox").select_option(label="every turn of C at DRAM")
    assert walk.locator(".turn").inner_text() == "Turn 1 of 2: DRAM C 1/2"
