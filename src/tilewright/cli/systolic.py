"""``tilewright systolic``, ``array`` and ``recommend``: products on systolic arrays, and what to set one to."""

from typing import TYPE_CHECKING, Annotated

import typer

import tilewright.api
import tilewright.interop
from tilewright.api.array_options import ArrayOptions, RecommendOptions
from tilewright.api.options import SystolicOptions
from tilewright.cli.conduct import deliver
from tilewright.cli.mapping import deliver_run
from tilewright.cli.options import Asked, Json, Page, console, ready, say, verb, write_json

if TYPE_CHECKING:
    from rich.console import Console


@verb(SystolicOptions)
def systolic(
    asked: Asked,
    strict: Annotated[bool, typer.Option(
        "--strict", help="Refuse SCALE-Sim's files that cannot be honoured in full, instead of noting it.")] = False,
    json_file: Json = None,
) -> None:
    """Count cycles and accesses of a network on a systolic array, whose dataflow decides the mapping.

    The network may be a topology of SCALE-Sim (.csv). By our own rules partial tiles take only what they need; the
    cycles that SCALE-Sim reports stand beside ours, its other figures in the JSON.
    """
    run = tilewright.api.systolic(**asked)
    if strict:
        tilewright.interop.refuse_notes(run.notes)
    screen = console(json_file)
    write_json(json_file, run.tree())
    _print(run, screen)


def _print(run: "tilewright.api.SystolicRun", screen: "Console") -> None:
    from tilewright.report import engineering, print_listing

    flow = {"os": "output", "ws": "weight", "is": "input"}[run.array.dataflow]
    say(screen, f"{run.network} on {run.machine}: {run.array.rows} x {run.array.columns}, {flow}-stationary\n")
    others = [name for name in run.conventions if name != "tilewright"]
    ours = "tilewright" in run.conventions
    names = {"scale-sim": "SCALE-Sim", "scale-sim-paper": "SCALE-Sim's\npaper"}
    heads = ["Layer", "M", "N", "K", "Times", *(["Cycles"] if ours else []), *(names[name] for name in others), "Util",
             "Mapped", "SRAM reads\ninputs", "SRAM reads\nweights", "SRAM writes\noutputs", "DRAM words\nin",
             "DRAM words\nout",
             *(["Bound"] if ours else [])]
    energies = all(row.energy_pj is not None for row in run.rows)
    heads += ["Energy\n(J)"] if energies else []
    rows = [(*_cells(row, others, ours), *([engineering((row.spent_pj or 0.0) * 1e-12)] if energies else []))
            for row in run.rows]
    total = ["Total", "", "", "", "", *([f"{run.cycles():,.0f}"] if ours else []),
             *(f"{run.cycles(name):,}" for name in others), *[""] * (8 if ours else 7)]
    rows.append((*total, *([engineering(run.totals.energy_pj * 1e-12)] if energies else [])))
    right = tuple(index for index, head in enumerate(heads) if index and head != "Bound")
    print_listing(tuple(heads), rows, right, screen)
    if others and run.array.bandwidths != (None, None, None):
        say(screen, "\nSCALE-Sim's own waits for DRAM are not reproduced: its cycles are those without.")
    for name, parted in run.parted().items():
        say(screen, f"\n{' '.join(names[name].split())} counts otherwise:")
        for made, found in parted.items():
            if not found.more and not found.of_dram:
                continue
            more = ", ".join(f"{more:+,} {figure}" for figure, more in found.more.items())
            say(screen, f"  {made}: {found.text}{'; here ' if more else ''}{more}")
    for name, why in run.skipped:
        say(screen, f"Left out: {name}, which {why}")
    for note in run.notes:
        say(screen, str(note), style="yellow")


def _cells(row: "tilewright.api.SystolicRow", others: list[str], ours: bool) -> list[str]:
    from tilewright.report import engineering, percent

    layer = row.layer
    counts, count, words = layer.counts, layer.count, layer.words
    return [row.name, str(layer.m), str(layer.n), str(layer.k), str(row.times * count),
            *([f"{layer.cycles:,.0f}"] if ours else []), *(f"{row.figures[name].compute_cycles:,}" for name in others),
            percent(layer.utilization if ours else float(counts.utilization)),
            percent(float(counts.mapping_efficiency)),
            *(engineering(int(figure) * count) for figure in (counts.input_reads, counts.weight_reads,
                                                             counts.output_writes)),
            engineering(words.input_reads + words.weight_reads + words.output_reads), engineering(words.output_writes),
            *([layer.bound] if ours else [])]


@verb(ArrayOptions)
def array(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Rank the configurations of a reconfigurable systolic array for matrix products.

    A configuration is a layout of sub-arrays, their sides and a dataflow. All are counted exactly, ragged edges
    included; without switches nothing waits, as published for SAGAR.
    """
    ready(report, json)
    run = tilewright.api.array(**asked)
    deliver("array", run.sheet, run.plain, (report, json, None))


@verb(RecommendOptions)
def recommend(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Say which partitions, shape and dataflow of a reconfigurable array each layer of a network wants.

    Exact, as every configuration is looked at; with --model a network answers instead, and its regret is told. For an
    accelerator (--arch edge-s2): which mappings, from those of like layers that the library knows, without a search.
    """
    ready(report, json)
    run = tilewright.api.recommend(**asked)
    if isinstance(run, tilewright.api.Run):
        deliver_run(run, report, json)
    else:
        deliver("recommend", run.sheet, run.plain, (report, json, None))
