"""The page as a person meets it, in headless Chromium."""

import os
import shutil
import time
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.report import write_page

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


def test_every_plot_is_drawn(visit, run):
    page = visit(run)
    found = {name: marks(page, name) for name in MAIN_PLOTS}
    assert page.locator(".plot:visible").count() == len(MAIN_PLOTS)
    assert found["latency"] >= 2 * len(run.layers)
    assert found["energy"] >= 5 * len(run.layers)
    assert found["roofline"] == len(run.layers) + 1
    assert found["convergence"] == len(run.layers)


def test_every_layer_opens_and_shows_its_mapping(visit, run):
    page = visit(run)
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


def test_a_link_leads_to_a_layer_and_opens_it(visit, run):
    page = visit(run, anchor="#layer-5")
    assert page.locator("#layer-5[open]").count() == 1
    page.locator("#layers-table").get_by_role("link", name="fc", exact=True).click()
    page.locator(f"#layer-{len(run.layers) - 1}[open] h4").first.wait_for()


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


def test_plots_follow_the_window_and_the_theme(visit, run):
    page = visit(run, 1400)
    marks(page, "latency")
    shade = "getComputedStyle(document.querySelector('[data-figure=latency] .point path')).fill"
    size = "document.querySelector('[data-figure=latency] svg').clientWidth"
    light, wide = page.evaluate(shade), page.evaluate(size)
    page.emulate_media(color_scheme="dark")
    eventually(page, f"{shade} !== '{light}'")
    page.set_viewport_size({"width": 700, "height": 900})
    eventually(page, f"{size} < {wide} && {size} <= 700")


def test_a_dark_page_prints_light(visit, run):
    page = visit(run, scheme="dark")
    marks(page, "latency")
    shade = "getComputedStyle(document.querySelector('[data-figure=latency] .point path')).fill"
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


def test_the_page_of_a_design_draws_what_was_tried_and_every_mapping(visit, tmp_path):
    found = tw.design("ncf", "edge-s2", "area=0.1mm2", budget=1200, front="latency,energy,area", store=False)
    page = visit(found.write_report(tmp_path / "design.html"))
    assert marks(page, "front") == len([one for one in found.result.tried if one.fronts]) + len(found.points()) + 1
    assert marks(page, "convergence") == 2
    assert marks(page, "areas") == 3
    page.get_by_role("button", name="Open all").click()
    assert page.locator(".nest > .box").count() == len(found.layers)
    assert page.locator(".nest .loop:visible").count() > len(found.layers)
    assert "memories keep all they may, can do with less than" in page.locator(".asked").inner_text()
