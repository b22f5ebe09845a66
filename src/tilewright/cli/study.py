"""``tilewright study``: what matters on one layer (crossover, axes, loop orders), and its space in two dimensions."""

import threading

import typer

from tilewright.api.options import AxesOptions, LandscapeOptions, OrdersOptions, StudyOptions
from tilewright.cli.compare import Html, command, deliver, end_early, times
from tilewright.cli.options import Asked, Json, Out, ready, verb

app = typer.Typer(no_args_is_help=True,
                  help="Study one layer: crossover, axes of mappings, loop orders, the map space.")


@app.command()
@verb(StudyOptions)
def crossover(asked: Asked, html: Html = None, json_file: Json = None) -> None:
    """Compare Gamma with and without crossover, with crossover alone, and with a standard genetic algorithm."""
    from tilewright.api import compare
    from tilewright.cli.progress import SearchBar
    from tilewright.report import contest_curves, contest_sheet, contest_tree
    from tilewright.search.studies import crossover_contenders

    ready(html, json_file)
    stop, out = threading.Event(), asked["out"]
    with SearchBar() as bar:
        found = compare(**asked, mappers=crossover_contenders(), told=bar.update, stop=stop)
    if found.seeds:
        says = f"Crossover ablation, {asked['budget']} a search, {times(len(found.seeds))}"
        if "standard GA" not in found.names:
            says += "; no standard GA, which needs the extra 'optimizers'"
        deliver(contest_sheet(found, says, command()), contest_tree(found, says), (html, json_file, out), "crossover",
                (contest_curves(found),))
    end_early(stop, bool(found.seeds), out is not None)


@app.command()
@verb(AxesOptions)
def axes(asked: Asked, html: Html = None, json_file: Json = None) -> None:
    """Explore tile sizes, loop orders and parallelism, alone and together: which axis of a mapping matters."""
    from tilewright.api import study_axes
    from tilewright.cli.progress import SearchBar
    from tilewright.report import axes_sheet, axes_tree, contest_curves

    ready(html, json_file)
    stop, out = threading.Event(), asked["out"]
    with SearchBar() as bar:
        found = study_axes(**asked, told=bar.update, stop=stop)
    if found.bases:
        says = (f"{found.mapper}, {asked['budget']} a search, {times(len(found.bases))}, from "
                f"{asked['mapping'] or 'a random mapping each'}")
        deliver(axes_sheet(found, says, command()), axes_tree(found, says), (html, json_file, out), "axes",
                (contest_curves(found.contest),))
    end_early(stop, bool(found.bases), out is not None)


@app.command()
@verb(OrdersOptions, leave="constraints dataflow")
def orders(asked: Asked, html: Html = None, json_file: Json = None, out: Out = None) -> None:
    """Score one mapping with every order of its loops, the same at all memories: how many costs are there."""
    from tilewright.api import study_orders
    from tilewright.report import orders_sheet, orders_tree

    ready(html, json_file)
    found = study_orders(**asked)
    says = str(asked["mapping"] or f"The best mapping of {asked['mapper']}, {asked['budget']}, seed {asked['seed']}")
    deliver(orders_sheet(found, says, command()), orders_tree(found, says), (html, json_file, out), "orders")


@app.command()
@verb(LandscapeOptions)
def landscape(asked: Asked, html: Html = None, json_file: Json = None, out: Out = None) -> None:
    """Draw the map space in two dimensions (principal components) with what mappers sample of it."""
    from tilewright.api import study_landscape
    from tilewright.report import landscape_points, landscape_sheet, landscape_tree

    ready(html, json_file)
    found = study_landscape(**asked)
    drawn = " drawn uniformly" if asked["uniform"] else ""
    says = (f"{len(found.background):,} random mappings{drawn}, {asked['budget']} samples of each mapper, "
            f"seed {asked['seed']}")
    deliver(landscape_sheet(found, says, command()), landscape_tree(found, says), (html, json_file, out), "landscape",
            (landscape_points(found),))
