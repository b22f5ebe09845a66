"""``tilewright pipeline``: layers side by side, each on an accelerator of its own."""

import typer

from tilewright.api.options import PipelineOptions
from tilewright.cli.options import INTERRUPTED, Asked, Json, Page, console, ready, verb, write_json


@verb(PipelineOptions)
def pipeline(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Optimise a network as a pipeline: each layer on an accelerator of its own, which NAME in --arch describes.

    First every layer is searched for latency: the slowest sets the pace. Then every layer is searched for energy (or
    power) within it; none ends worse. Exit code 1: a layer has no legal mapping, or the limit is not kept; 130: Ctrl-C.
    """
    from tilewright.api import pipeline as search_both
    from tilewright.report import LayersBar, print_sheet

    ready(report, json)
    with LayersBar() as shown:
        found = search_both(**asked, progress=shown)
    print_sheet(found.sheet, console(json))
    for run in (found.first, found.then):
        if run is not None and run.kept is not None:
            typer.echo(run.kept.warning or f"Stored as run {run.record.id} in {run.kept.place}", err=True)
    if found.first.library.warning:
        typer.echo(found.first.library.warning, err=True)
    write_json(json, found.plain, ensure_ascii=False)
    if report is not None:
        typer.echo(f"Report {found.write_report(report)}", err=True)
    if found.result.unfinished:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(int(not found.result.feasible or any(
        layer.then is not None and not layer.then.feasible for layer in found.result.layers)))
