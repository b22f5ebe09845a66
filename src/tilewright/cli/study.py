"""``tilewright compare``, which mapper is better, and ``study``: what matters on one layer, and its map space."""

from functools import partial
from typing import Any

import typer

import tilewright.api
import tilewright.report
from tilewright.api.options import AxesOptions, CompareOptions, LandscapeOptions, OrdersOptions, StudyOptions
from tilewright.cli.conduct import Html, conduct, contest_tables, times
from tilewright.cli.options import Asked, Json, Out, verb

app = typer.Typer(no_args_is_help=True,
                  help="Study one layer: crossover, axes of mappings, loop orders, the map space.")


@verb(CompareOptions)
def compare(asked: Asked, html: Html = None, json_file: Json = None) -> None:
    """Compare mappers on one layer: convergence over samples and over time, and who is better, how surely.

    Curves are medians over seeds with intervals of order statistics. Ctrl-C shows the seeds that are complete (exit
    code 130).
    """
    def says(found: Any) -> str:
        side_by_side = (f", {asked['workers']} searches side by side: their seconds are not to be compared with others"
                        if asked["workers"] > 1 else "")
        return f"{asked['budget']} a search, {times(found.seeds)}{side_by_side}" if found.seeds else ""

    conduct("compare", tilewright.api.compare, asked, says, (html, json_file, asked["out"]), "contest", contest_tables)


@app.command()
@verb(StudyOptions)
def crossover(asked: Asked, html: Html = None, json_file: Json = None) -> None:
    """Compare Gamma with and without crossover, with crossover alone, and with a standard genetic algorithm."""
    from tilewright.search.studies import crossover_contenders

    def says(found: Any) -> str:
        lacks = "" if "standard GA" in found.names else "; no standard GA, which needs the extra 'optimizers'"
        return f"Crossover ablation, {asked['budget']} a search, {times(found.seeds)}{lacks}" if found.seeds else ""

    conduct("crossover", partial(tilewright.api.compare, mappers=crossover_contenders()), asked, says,
            (html, json_file, asked["out"]), "contest", contest_tables)


@app.command()
@verb(AxesOptions)
def axes(asked: Asked, html: Html = None, json_file: Json = None) -> None:
    """Explore tile sizes, loop orders and parallelism, alone and together: which axis of a mapping matters."""
    def says(found: Any) -> str:
        return (f"{found.mapper}, {asked['budget']} a search, {times(found.bases)}, from "
                f"{asked['mapping'] or 'a random mapping each'}") if found.bases else ""

    conduct("axes", tilewright.api.study_axes, asked, says, (html, json_file, asked["out"]), "axes",
            lambda found: contest_tables(found.contest))


@app.command()
@verb(OrdersOptions, leave="constraints dataflow")
def orders(asked: Asked, html: Html = None, json_file: Json = None, out: Out = None) -> None:
    """Score one mapping with every order of its loops, the same at all memories: how many costs are there."""
    says = str(asked["mapping"] or f"The best mapping of {asked['mapper']}, {asked['budget']}, seed {asked['seed']}")
    conduct("orders", tilewright.api.study_orders, asked, lambda found: says, (html, json_file, out), "orders")


@app.command()
@verb(LandscapeOptions)
def landscape(asked: Asked, html: Html = None, json_file: Json = None, out: Out = None) -> None:
    """Draw the map space in two dimensions (principal components) with what mappers sample of it."""
    drawn = " drawn uniformly" if asked["uniform"] else ""
    conduct("landscape", tilewright.api.study_landscape, asked, lambda found: (
        f"{len(found.background):,} random mappings{drawn}, {asked['budget']} samples of each mapper, "
        f"seed {asked['seed']}"), (html, json_file, out), "landscape",
        lambda found: (tilewright.report.landscape_points(found),))
