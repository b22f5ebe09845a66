"""``tilewright space``: how many mappings there are to choose from."""

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Annotated, get_args

import typer

import tilewright.api
import tilewright.mapping
from tilewright.api.options import MapSpaceOptions
from tilewright.base import InputError, sizes_text
from tilewright.cli.options import Asked, FootprintOption, Json, console, say, tell_lost, verb, write_json, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.api import SpaceChoice, SpaceFigures
    from tilewright.mapping import Mapping, MapSpace, Padding, SpaceSize


@verb(MapSpaceOptions, leave="layer")
def space(
    asked: Asked,
    layer: Annotated[str | None, typer.Option(
        "--layer", "-l", show_default=False, help="Its layer; may be left out where there is only one.")] = None,
    footprint: FootprintOption = None,
    samples: Annotated[int, typer.Option(
        "--samples", min=0, help="Mappings drawn to estimate how many fit the memories; 0 leaves that out.")] = 20_000,
    draw: Annotated[int, typer.Option(
        "--draw", min=0, help="Show this many mappings, drawn uniformly from those that fit.")] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same draws.")] = 0,
    json_file: Json = None,
    export: Annotated[str | None, typer.Option(
        "--export", metavar="FILE.yaml", show_default=False,
        help="Write the space with all its constraints, for --constraints; - is stdout.")] = None,
) -> None:
    """Show how many mappings of a layer there are to choose from, how many of them fit, and what the space leaves out.

    Without a tiling all are counted; --draw and --export then speak of imperfect (with --pad: perfect). Sizes are those
    before the memories are looked at. An empty space names the smallest set of constraints that conflict (exit code 2).
    """
    if "-" in (json_file, export) and json_file == export:
        raise InputError("--json, --export", "must not both go to standard output")
    tiling, pad = asked["tiling"], asked["pad"]
    accelerator, own = tilewright.api.load_target(asked["arch"], asked["network"], footprint)
    operator = tilewright.api.pick_operator(asked["network"], layer, asked["bind"], arch=accelerator,
                                            precision=asked["precision"])
    choice = replace(tilewright.api.choose_space(tiling, asked["constraints"], asked["dataflow"], (), pad), own=own)
    choice.refuse_empty([operator], accelerator)
    chosen = choice.space(operator, accelerator)
    stated = tiling is not None or (choice.file is not None and choice.file.tiling is not None)
    shown = (choice.tiling,) if stated else get_args(tilewright.mapping.Tiling)
    spaces = [tilewright.mapping.MapSpace(chosen.operator, accelerator, name, chosen.constraints) for name in shown]
    figures = [tilewright.api.space_figures(one, samples, seed) for one in spaces]
    screen = console("-" if "-" in (json_file, export) else None)
    drawn = tilewright.api.drawn_mappings(chosen, draw, seed) if draw else []
    padding = choice.padding(operator, accelerator)
    _print(chosen, figures, choice, screen)
    if pad:
        from tilewright.report import padding_words

        say(screen, f"\nPadded: {padding_words(operator.dimensions, chosen.operator.dimensions)}; "
                    f"{100 * padding.ineffectual_share:.3g} % of MACs are ineffectual")
    _print_drawn(chosen, drawn, screen)
    tell_lost(accelerator, screen)
    if json_file is not None:
        write_json(json_file, _plain(chosen, figures, drawn, padding), ensure_ascii=False)
    if export is not None:
        write_text(export, tilewright.mapping.dump_space(chosen))


def _print(space: "MapSpace", figures: "list[SpaceFigures]", choice: "SpaceChoice", screen: "Console") -> None:
    from tilewright.report import print_listing

    operator, accelerator = space.operator, space.accelerator
    shape = sizes_text(operator.dimensions) or "scalar"
    say(screen, f"{operator.name} on {accelerator.name}: {shape}\n")
    rows = [(one.tiling, "none" if one.conflict else str(one.size), *_fitting(one)) for one in figures]
    print_listing(("Tiling", "Mappings", "Fit the memories", "Share"), rows, (1, 2, 3), screen)
    for one in figures:
        if one.conflict:
            say(screen, f"\n{one.tiling}: {one.conflict}")
    if len(kept := tilewright.mapping.KeptSets(space)) > 1:
        say(screen, f"\nMemories may keep or let pass {len(kept.open)} tensors more: so many mappings for each of "
                    f"{len(kept):,} kept sets.")
    entries = _entries(space, choice)
    if entries:
        screen.print()
        print_listing(("Constraint", "Where", "What", "From"), entries, (), screen)


def _fitting(figures: "SpaceFigures") -> tuple[str, str]:
    """Return how many mappings fit the memories, and the share of them."""
    if figures.fitting is None or figures.fitting_share is None:
        return "", ""
    if not figures.fitting.mappings:
        return "none that was drawn", ""
    return str(figures.fitting), f"{100 * figures.fitting_share:.3g} %"


def _entries(space: "MapSpace", choice: "SpaceChoice") -> list[tuple[str, str, str, str]]:
    """Return a row for every constraint in force, with the line that it comes from."""
    constraints = space.constraints
    rows = [("keeps", place, " ".join(names) or "nothing") for place, names in constraints.keeps.items()]
    rows += [("loops", place, " ".join(dims) or "none") for place, dims in constraints.loops.items()]
    rows += [("order", place, _orders(orders)) for place, orders in constraints.orders.items()]
    for kind, limits in (("factors", constraints.factors), ("tiles", constraints.tiles)):
        rows += [(kind, f"{place}.{dim}", str(bounds)) for place, found in limits.items()
                 for dim, bounds in found.items()]
    rows += [("utilization", place, f"at least {100 * share:g} %") for place, share in constraints.utilization.items()]
    found = []
    for kind, place, says in rows:
        line = choice.file.where(f"{kind.replace('order', 'orders')}.{place}") if choice.file else None
        found.append((kind, place, says, line or choice.dataflow or ("the machine's files" if choice.own else "")))
    return found


def _orders(orders: tuple[tuple[str, ...], ...]) -> str:
    shown = ", ".join(" ".join(order) for order in orders[:3])
    return shown + (f", ... ({len(orders)} in all)" if len(orders) > 3 else "")


def _print_drawn(space: "MapSpace", drawn: "list[Mapping]", screen: "Console") -> None:
    for index, mapping in enumerate(drawn, start=1):
        screen.print(f"\nDrawn {index} of {len(drawn)}\n", style="bold", markup=False)
        say(screen, tilewright.mapping.render(mapping, space.operator, space.accelerator))


def _plain(space: "MapSpace", figures: "list[SpaceFigures]", drawn: "list[Mapping]",
           padding: "Padding") -> dict[str, object]:
    return {
        "operator": space.operator.name, "accelerator": space.accelerator.name,
        "dimensions": dict(space.operator.dimensions), "unpadded": dict(padding.original.dimensions),
        "ineffectual_share": padding.ineffectual_share, "space": tilewright.mapping.dump_space(space),
        "sizes": [{"tiling": one.tiling, **_size(one.size), "fitting": one.fitting and _size(one.fitting),
                   "fitting_share": one.fitting_share, "conflict": one.conflict} for one in figures],
        "drawn": [tilewright.mapping.dump_mapping(mapping, space.operator, space.accelerator) for mapping in drawn],
    }


def _size(size: "SpaceSize") -> dict[str, int | float | bool]:
    return {"mappings": size.mappings, "exact": size.exact, "error": size.error if isfinite(size.error) else 1.0}
