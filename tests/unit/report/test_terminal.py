"""Tables on the terminal."""

import io
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from rich.console import Console
from sample_run import RESNET50, sample_run, total_macs

from tilewright.report import engineering, print_layer, print_listing, print_run
from tilewright.report.terminal import cost_table


def printed(show, *args, width=None, encoding="utf-8", **kwargs) -> str:
    """Return what ``show`` prints on a terminal of ``width`` columns, or into a file where None."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline="")
    terminal = {"force_terminal": True, "width": width, "color_system": None} if width else {}
    show(*args, console=Console(file=file, **terminal), **kwargs)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200])
def test_the_table_fits_and_nothing_in_it_is_cut(run, width):
    text = printed(print_run, run, width=width)
    assert max(map(len, text.splitlines())) <= width
    table = text.split("\nLatency  ")[0]
    for layer in run.layers:
        line = next(line for line in table.splitlines() if line.startswith(layer.name))
        assert engineering(layer.cost.latency_cycles) in line
    assert "…" not in table


def test_columns_are_dropped_least_important_first(run):
    heads = {width: printed(print_run, run, width=width).split("───")[0] for width in (80, 100, 200)}
    assert all(word in heads[80] for word in ("(cycles)", "Energy", "Gap to", "Utili-"))
    assert "Shape" not in heads[80] and "(MACs/B)" not in heads[80]
    assert "Bottleneck" in heads[100] and "Shape" not in heads[100]
    assert all(word in heads[200] for word in ("Shape", "(MACs/B)", "Roofline", "(x cycles)"))


def test_a_narrow_terminal_shortens_names(run):
    table = printed(print_run, run, width=44).split("\nVector work, ")[0]
    assert max(map(len, table.splitlines())) <= 44


def test_totals_bounds_and_coverage_are_told(run):
    text = printed(print_run, run, width=200)
    totals = run.totals
    total_row = next(line for line in text.splitlines() if line.startswith("Total"))
    assert engineering(totals.latency_cycles) in total_row
    assert f"{totals.latency_cycles / totals.bound_latency_cycles:.2f}x" in total_row
    assert f"{engineering(total_macs())} MACs" in text
    assert f"= {engineering(totals.latency_cycles / 200e6, 's')} at 200 MHz" in text
    assert run.network.coverage in text
    assert "Vector work, in the totals" not in text and "Vector work, free, not in the totals" in text
    assert next(line for line in text.splitlines() if line.startswith("Relu ")).split()[1:3] == ["49", "9.61"]
    assert "not modelled: ArgMax" in text and "assumed: the batch" in text
    assert "area_um2 <= 4e6" in text and "seed 7" in text and run.id in text


def test_layers_without_a_mapping_are_shown_with_the_reason(gappy):
    text = printed(print_run, gappy, width=120)
    assert "7 layers have no legal mapping; the totals leave them out." in text
    assert next(line for line in text.splitlines() if line.startswith("layer1.0.conv3")).endswith("no mapping")
    assert "smallest tile tried needs 512" in text
    assert "1 layer has" in printed(print_run, sample_run(RESNET50[:1], without=(0,)), width=120)


def test_broken_constraints_and_interruptions_are_told(run):
    search = replace(run.layers[0].search, feasible=False)
    odd = replace(run, layers=(replace(run.layers[0], search=search), *run.layers[1:]), unfinished=("conv1", "late"),
                  headline="Interrupted: of some.")
    text = printed(print_run, odd, width=120)
    assert "No mapping met the constraints for conv1;" in text
    assert "\nInterrupted: of some." in text and "Partial: conv1." in text and "Not begun: late." in text
    assert "Of these" in text and "\nTotal " not in text


def test_a_file_gets_every_column_and_whole_lines(run):
    text = printed(print_run, run)
    assert "\x1b" not in text
    head = text.split("───")[0]
    assert all(word in head for word in ("Shape", "(MACs/B)", "Bottleneck"))
    assert run.network.coverage in text.splitlines()


def test_a_console_that_knows_ascii_only_is_served(run):
    text = printed(print_run, run, width=120, encoding="ascii")
    assert "layer1.0.conv2 x3" in text
    assert " uJ" in text


def test_names_are_no_markup(run):
    odd = replace(run, network=replace(run.network, name="[bold]net[/bold]"),
                  layers=(replace(run.layers[0], names=("[red]conv[/]",)),))
    text = printed(print_run, odd, width=120)
    assert "[bold]net[/bold]" in text and "[red]conv[/]" in text


def test_budgets_are_told(run):
    timed = replace(run, request=replace(run.request, budget_samples=None, budget_seconds=2.5))
    assert "2.5 s a layer" in printed(print_run, timed, width=120)
    free = replace(run, request=replace(run.request, budget_samples=None))
    assert "a layer" not in printed(print_run, free, width=120)  # as of a design, whose samples are of all layers


def test_one_layer_is_told_with_its_nest_energy_and_counts(run):
    layer = run.layers[2]
    text = printed(print_layer, layer, width=110, frequency_mhz=200.0)
    assert f"{layer.cost.latency_cycles:,} cycles = " in text
    assert "for P in 0..14" in text and "step 4" in text
    assert "50.5 KiB of 108.0 KiB, 47%" in text
    assert "limited by compute" in text
    for count in layer.cost.counts:
        assert f"{count.reads:,}" in text
    for name in layer.cost.energy_by_component_pj:
        assert name in text
    assert f"{layer.cost.edp / layer.bounds.edp:.2f}x its bound" in text


def test_one_layer_without_bounds_or_without_a_mapping(run, lonely):
    text = printed(print_layer, replace(run.layers[0], bounds=None), width=110)
    assert "its bound" not in text and " = " not in text.split("Latency")[1].split("\n")[0]
    assert "No mapping: No legal mapping in 10,000 samples" in printed(print_layer, lonely.layers[0], width=110)
    assert cost_table(lonely.layers[0]).row_count == 0


def test_listings_align_numbers_and_show_what_is_missing():
    text = printed(print_listing, ("Name", "MACs"), [("alexnet", 714), ("[x]", None)], right=(1,))
    assert text.splitlines()[0].split() == ["Name", "MACs"]
    assert text.splitlines()[2].endswith(" 714") and text.splitlines()[3].split() == ["[x]", "-"]


@pytest.mark.parametrize("width", [90, 100, 140])
def test_where_there_is_little_room_heads_are_broken_and_cells_are_not(width):
    heads = ("Machine", "Latency (cycles)", "Latency (s)", "Energy", "EDP", "Area (mm2)", "To the best",
             "Above the bound", "Front")
    row = ("edge-s1", "9.30 M", "46.5 m", "7.01 mJ", "65.2 kJ·cycles", "1.10", "1.074", "119.5 %", "front")
    text = printed(print_listing, heads, [row], range(1, 8), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert re.split(r"\s{2,}", text.splitlines()[-1].strip()) == list(row)
    assert all(word in text for head in heads for word in head.split())


def test_names_are_broken_between_words_before_heads_are_broken_within():
    heads = ("Layer", "Utilisation", "Bottleneck")
    rows = [("conv1", "44.0 %", "DRAM, ramp +42.9 %"), ("conv2", "9.0 %", "compute, DRAM +0.6 %")]
    text = printed(print_listing, heads, rows, (1,), width=30)
    assert max(map(len, text.splitlines())) <= 30 and text.splitlines()[0].split() == list(heads)
    text = printed(print_listing, ("Layer", "Of the bound"), [("features.conv1", "44.0 %")], (1,), width=16)
    assert [line.split() for line in text.splitlines()[:2]] == [["Of", "the"], ["Layer", "bound"]]
    assert [line.split()[0] for line in text.splitlines()[-2:]] == ["features", ".conv1"]


def test_the_room_loads_its_libraries_late():
    program = ("import sys, tilewright.report as r; print(sorted({'rich', 'jinja2', 'plotly'} & set(sys.modules)));"
               "r.engineering; print(sorted({'jinja2', 'plotly'} & set(sys.modules)))")
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["[]", "[]"]
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from tilewright.report import nothing  # noqa: F401


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_no_terminal_is_too_narrow_for_the_numbers_of_a_listing(width):
    heads = ("Layer", "Times", "MACs", "Compute\n(cycles)", "Data\n(cycles)", "Latency\nset by", "Energy",
             "Energy\nmost in", "EDP\n(x cycles)", "Intensity\n(MACs/B)", "Roof\n(MACs/cycle)")
    row = ("mlp.1", 1, "65.5 k", "407", "2.06 k", "DRAM", "4.28 µJ", "DRAM", "8.82 mJ", "0.992", "31.75")
    text = printed(print_listing, heads, [row], (1, 2, 3, 4, 6, 8, 9, 10), width=width)
    assert re.split(r"\s{2,}", text.splitlines()[-1]) == [str(cell) for cell in row]
    assert width < 80 or max(map(len, text.splitlines())) <= width
