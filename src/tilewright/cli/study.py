"""``tilewright study``: what matters on one layer (crossover, axes, loop orders), and its space in two dimensions."""

import shlex
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.compare import Html, Layer, Objective, Out, SearchBudget, Seed, Seeds, Workers, deliver, end_early
from tilewright.cli.options import Arch, Bind, Dataflow, Json, Network, SpaceFile, TilingOption, ready, sizes

app = typer.Typer(no_args_is_help=True,
                  help="Study one layer: crossover, axes of mappings, loop orders, the map space.")

Mapper = Annotated[str, typer.Option("--mapper", "-m", metavar="NAME[:OPTION=VALUE,...]", help=(
    "How to search; see: tilewright list mappers."))]


def _command() -> str:
    return shlex.join(["tilewright", *sys.argv[1:]])


def _times(seeds: int) -> str:
    return f"{seeds} seed{'s' if seeds > 1 else ''}"


@app.command()
def crossover(
    network: Network, arch: Arch, layer: Layer = None, objective: Objective = "edp", budget: SearchBudget = "10000",
    seeds: Seeds = 10, seed: Seed = 0, tiling: TilingOption = None, constraints: SpaceFile = None,
    dataflow: Dataflow = None, bind: Bind = None, html: Html = None, json_file: Json = None, out: Out = None,
    workers: Workers = 1,
) -> None:
    """Compare Gamma with and without crossover, with crossover alone, and with a standard genetic algorithm."""
    from tilewright.api import compare
    from tilewright.cli.progress import SearchBar
    from tilewright.report import contest_curves, contest_sheet, contest_tree
    from tilewright.search.studies import crossover_contenders

    ready(html, json_file)
    stop = threading.Event()
    with SearchBar() as bar:
        found = compare(network, arch, layer, crossover_contenders(), objective=objective, budget=budget, seeds=seeds,
                        seed=seed, tiling=tiling and tiling.value,
                        constraints=Path(constraints) if constraints is not None else None, dataflow=dataflow,
                        bind=sizes(bind, "--bind"), out=out, workers=workers, told=bar.update, stop=stop)
    if found.seeds:
        asked = f"Crossover ablation, {budget} a search, {_times(len(found.seeds))}"
        if "standard GA" not in found.names:
            asked += "; no standard GA, which needs the extra 'optimizers'"
        deliver(contest_sheet(found, asked, _command()), contest_tree(found, asked), (html, json_file, out),
                "crossover", (contest_curves(found),))
    end_early(stop, bool(found.seeds), out is not None)


@app.command()
def axes(
    network: Network, arch: Arch, layer: Layer = None, mapper: Mapper = "gamma",
    mapping: Annotated[Path | None, typer.Option("--mapping", metavar="FILE.yaml", show_default=False, help=(
        "What the other axes are fixed at. Default: a random mapping for each seed."))] = None,
    objective: Objective = "edp", budget: SearchBudget = "10000", seeds: Seeds = 10, seed: Seed = 0,
    tiling: TilingOption = None, constraints: SpaceFile = None, dataflow: Dataflow = None, bind: Bind = None,
    html: Html = None, json_file: Json = None, out: Out = None, workers: Workers = 1,
) -> None:
    """Explore tile sizes, loop orders and parallelism, alone and together: which axis of a mapping matters."""
    from tilewright.api import study_axes
    from tilewright.cli.progress import SearchBar
    from tilewright.report import axes_sheet, axes_tree, contest_curves

    ready(html, json_file)
    stop = threading.Event()
    with SearchBar() as bar:
        found = study_axes(network, arch, layer, mapper, mapping=mapping, objective=objective, budget=budget,
                           seeds=seeds, seed=seed, tiling=tiling and tiling.value,
                           constraints=Path(constraints) if constraints is not None else None, dataflow=dataflow,
                           bind=sizes(bind, "--bind"), out=out, workers=workers, told=bar.update, stop=stop)
    if found.bases:
        asked = (f"{found.mapper}, {budget} a search, {_times(len(found.bases))}, from "
                 + ("a random mapping each" if mapping is None else str(mapping)))
        deliver(axes_sheet(found, asked, _command()), axes_tree(found, asked), (html, json_file, out), "axes",
                (contest_curves(found.contest),))
    end_early(stop, bool(found.bases), out is not None)


@app.command()
def orders(
    network: Network, arch: Arch, layer: Layer = None,
    mapping: Annotated[Path | None, typer.Option("--mapping", metavar="FILE.yaml", show_default=False, help=(
        "The mapping. Default: the best that --mapper finds within --budget."))] = None,
    memories: Annotated[str | None, typer.Option("--memories", metavar="NAME,...", show_default=False, help=(
        "Where loops change their order, the same at all of them. Default: everywhere."))] = None,
    mapper: Annotated[str, typer.Option("--mapper", "-m", help="What finds the mapping.")] = "auto",
    objective: Objective = "edp", budget: SearchBudget = "10000", seed: Seed = 0, tiling: TilingOption = None,
    bind: Bind = None, html: Html = None, json_file: Json = None, out: Out = None,
) -> None:
    """Score one mapping with every order of its loops, the same at all memories: how many costs are there."""
    from tilewright.api import study_orders
    from tilewright.report import orders_sheet, orders_tree

    ready(html, json_file)
    found = study_orders(network, arch, layer, mapping, objective=objective,
                         memories=[name.strip() for name in memories.split(",")] if memories else None, mapper=mapper,
                         budget=budget, seed=seed, tiling=tiling and tiling.value, bind=sizes(bind, "--bind"))
    asked = str(mapping) if mapping is not None else f"The best mapping of {mapper}, {budget}, seed {seed}"
    deliver(orders_sheet(found, asked, _command()), orders_tree(found, asked), (html, json_file, out), "orders")


@app.command()
def landscape(
    network: Network, arch: Arch, layer: Layer = None,
    mappers: Annotated[str, typer.Option("--mappers", "-m", metavar="NAME[:OPTION=VALUE,...],...", help=(
        "Mappers whose samples are shown; see: tilewright list mappers."))] = "gamma,random-pruned",
    points: Annotated[int, typer.Option("--points", help="Random mappings that fit.")] = 20_000,
    uniform: Annotated[bool, typer.Option("--uniform", help=(
        "Draw every mapping of the space with the same chance, instead of spreading the draws over all scales of tiles."
    ))] = False,
    objective: Objective = "edp", budget: SearchBudget = "5000", seed: Seed = 0, tiling: TilingOption = None,
    constraints: SpaceFile = None, dataflow: Dataflow = None, bind: Bind = None, html: Html = None,
    json_file: Json = None, out: Out = None,
) -> None:
    """Draw the map space in two dimensions (principal components) with what mappers sample of it."""
    from tilewright.api import study_landscape
    from tilewright.report import landscape_points, landscape_sheet, landscape_tree

    ready(html, json_file)
    found = study_landscape(network, arch, layer, mappers, objective=objective, points=points, budget=budget, seed=seed,
                            uniform=uniform, tiling=tiling and tiling.value,
                            constraints=Path(constraints) if constraints is not None else None, dataflow=dataflow,
                            bind=sizes(bind, "--bind"))
    drawn = " drawn uniformly" if uniform else ""
    asked = f"{len(found.background):,} random mappings{drawn}, {budget} samples of each mapper, seed {seed}"
    deliver(landscape_sheet(found, asked, _command()), landscape_tree(found, asked), (html, json_file, out),
            "landscape", (landscape_points(found),))
