"""``tilewright show``: a stored run once more."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

import tilewright.api
import tilewright.report
import tilewright.store
from tilewright.base import InputError, unknown_name
from tilewright.cli.options import Json, StorePlace, console, say, write_text


def show(
    run: Annotated[str, typer.Argument(
        metavar="RUN", show_default=False,
        help="The identity of a stored run or the beginning of it, last, or a JSON file that map wrote.")],
    layer: Annotated[str | None, typer.Option(
        "--layer", "-l", metavar="NAME", show_default=False,
        help="Show this layer closely: its loop nest, energy and counts (a pattern shows several).")] = None,
    report: Annotated[Path | None, typer.Option(
        "--report", "-r", metavar="FILE.html", show_default=False, help="Write the page of the run.")] = None,
    json: Json = None,
    mapping: Annotated[str | None, typer.Option(
        "--mapping", metavar="FILE.yaml", show_default=False,
        help="With --layer: write its mapping as a file for tilewright evaluate; - is stdout.")] = None,
    constraints: Annotated[str | None, typer.Option(
        "--constraints", metavar="FILE.yaml", show_default=False,
        help="Write the constraints of the map spaces as a file for tilewright map; - is stdout.")] = None,
    command: Annotated[bool, typer.Option("--command", help="Print only the command that repeats the run.")] = False,
    store: StorePlace = None,
) -> None:
    """Show a stored run again: as a table, a page, JSON, one of its layers, or the command that repeats it."""
    found = tilewright.api.open_run(run, store)
    screen = console("-" if "-" in (json, mapping, constraints) else None)
    if command:
        print(found.record.request.command)
        return
    chosen = _chosen(found.record, layer) if layer is not None else ()
    for one in chosen:
        tilewright.report.print_layer(one, screen, found.record.accelerator.frequency_mhz)
    if layer is None:
        tilewright.report.print_run(found.record, screen)
    if mapping is not None:
        write_text(mapping, _mapping_text(chosen))
    if constraints is not None:
        write_text(constraints, found.record.request.space or "{}\n")
    if json is not None:
        write_text(json, tilewright.store.record_to_json(found.record, indent=1) + "\n")
    if report is not None:
        say(console("-"), f"Report {found.write_report(report)}")


def _chosen(record: "tilewright.store.RunRecord", pattern: str) -> "tuple[tilewright.store.LayerRecord, ...]":
    """Return the distinct layers with a name that matches."""
    found = tuple(layer for layer in record.layers if any(fnmatchcase(name, pattern) for name in layer.names))
    if not found:
        raise unknown_name("layer of this run", pattern, [layer.name for layer in record.layers])
    return found


def _mapping_text(layers: "tuple[tilewright.store.LayerRecord, ...]") -> str:
    if len(layers) != 1 or layers[0].mapping is None:
        raise InputError("--mapping", "must come with a --layer that names one mapped layer", f"{len(layers)} layers")
    return layers[0].mapping.yaml
