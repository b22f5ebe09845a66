"""``tilewright pipeline``: layers side by side, each on an accelerator of its own."""

from typing import Annotated

import typer

from tilewright.cli.options import (
    Arch,
    Bind,
    Dataflow,
    Json,
    LayerWorkers,
    MapperName,
    MapperOptions,
    Network,
    Page,
    RunSeed,
    SomeLayers,
    SpaceFile,
    StorePlace,
    TilingOption,
    console,
    limits,
    ready,
    sizes,
    values,
    write_text,
)

INTERRUPTED = 130


def pipeline(
    network: Network,
    arch: Arch,
    then: Annotated[str, typer.Option("--then", help=(
        "What to minimise at that pace: energy, power, or another objective as for tilewright map."))] = "energy",
    accelerators: Annotated[int | None, typer.Option("--accelerators", metavar="N", show_default=False, help=(
        "How many accelerators there are. Default: one for each layer; fewer take consecutive layers each."))] = None,
    latency_limit: Annotated[float | None, typer.Option("--latency-limit", metavar="CYCLES", show_default=False, help=(
        "Cycles from one input to the next. Default: those of the slowest layer at its fastest."))] = None,
    throughput: Annotated[float | None, typer.Option(
        "--throughput", metavar="N", show_default=False, help="Inputs a second, instead of --latency-limit.")] = None,
    slack: Annotated[float | None, typer.Option("--slack", metavar="SHARE", show_default=False, help=(
        "By which share the pipeline may be slower than the fastest, for example 0.01, instead of a limit."))] = None,
    mapper: MapperName = "auto",
    budget: Annotated[str, typer.Option("--budget", "-b", metavar="N|TIME", help=(
        "Mappings scored for every distinct layer in each search (10000, 10k, 1M), or the time of both (10s, 5min)."))
    ] = "10000",
    seed: RunSeed = 0,
    tiling: TilingOption = None,
    constraints: SpaceFile = None,
    dataflow: Dataflow = None,
    constraint: Annotated[list[str] | None, typer.Option(
        "--constraint", "-c", metavar="METRIC<=NUMBER", show_default=False,
        help="A limit on every layer in the second search, for example 'power<=300' (mW). Repeatable.")] = None,
    option: MapperOptions = None,
    bind: Bind = None,
    layers: SomeLayers = None,
    report: Page = None,
    json: Json = None,
    store: StorePlace = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not append the two runs to the store.")] = False,
    workers: LayerWorkers = None,
) -> None:
    """Optimise a network as a pipeline: each layer on an accelerator of its own, which NAME in --arch describes.

    First every layer is searched for latency: the slowest sets the pace. Then every layer is searched for energy (or
    power) within it; none ends worse. Exit code 1: a layer has no legal mapping, or the limit is not kept; 130: Ctrl-C.
    """
    from tilewright.api import pipeline as search_both
    from tilewright.cli.progress import Progress
    from tilewright.report import print_sheet

    ready(report, json)
    with Progress() as shown:
        found = search_both(
            network, arch, then=then, accelerators=accelerators, latency_limit=latency_limit, throughput=throughput,
            slack=slack, mapper=mapper, budget=budget, seed=seed, tiling=tiling and tiling.value, dataflow=dataflow,
            constraints=limits(constraint, constraints),
            options=values(option, "--option"), bind=sizes(bind, "--bind"), layers=layers, workers=workers,
            progress=shown, store=False if no_store else store or True)
    print_sheet(found.sheet, console(json))
    for run in (found.first, found.then):
        if run is not None and run.kept is not None:
            typer.echo(run.kept.warning or f"Stored as run {run.record.id} in {run.kept.place}", err=True)
    if found.first.library.warning:
        typer.echo(found.first.library.warning, err=True)
    if json is not None:
        from json import dumps

        write_text(json, dumps(found.plain, indent=1, ensure_ascii=False) + "\n")
    if report is not None:
        typer.echo(f"Report {found.write_report(report)}", err=True)
    if found.result.unfinished:
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(int(not found.result.feasible or any(
        layer.then is not None and not layer.then.feasible for layer in found.result.layers)))
