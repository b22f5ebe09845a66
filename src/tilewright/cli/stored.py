"""``tilewright show``, ``export`` and ``prune``: what the store has, once more, in files, or no longer."""

from datetime import UTC, datetime, timedelta
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
        raise unknown_name("layer of this run", pattern, [layer.name for layer in record.layers], "layer")
    return found


def _mapping_text(layers: "tuple[tilewright.store.LayerRecord, ...]") -> str:
    if len(layers) != 1 or layers[0].mapping is None:
        raise InputError("--mapping", "must come with a --layer that names one mapped layer", f"{len(layers)} layers")
    return layers[0].mapping.yaml


def export(
    runs: Annotated[list[str] | None, typer.Argument(
        metavar="[RUN]...", show_default=False, help="Which runs: identities, beginnings of them, last. Default: all.",
    )] = None,
    json: Annotated[Path | None, typer.Option(
        "--json", metavar="FILE", show_default=False, help="Write whole runs as a JSON array.")] = None,
    csv: Annotated[Path | None, typer.Option(
        "--csv", metavar="FILE", show_default=False, help="Write one row for each layer of each run.")] = None,
    library: Annotated[Path | None, typer.Option(
        "--library", metavar="FILE", show_default=False, help="Write the library of best mappings as a JSON array.",
    )] = None,
    store: StorePlace = None,
) -> None:
    """Write stored runs as JSON (everything) or CSV (a row for each layer), or the library of best mappings."""
    from tilewright.api import ready_place
    from tilewright.store import Library, Store

    if json is None and csv is None and library is None:
        raise InputError("export", "must be told where to", None, "Give --json FILE, --csv FILE or --library FILE")
    if library is not None:
        with Library(store).there() as known:
            say(console(), f"{known.export_json(ready_place(library))} mappings in {library}")
    chosen = tuple(runs) if runs else None
    with Store(store).there() as found:
        if json is not None:
            count = found.export_json(ready_place(json), chosen)
            say(console(), f"{count} runs in {json}")
        if csv is not None:
            count = found.export_csv(ready_place(csv), chosen)
            say(console(), f"{count} layers in {csv}")


MOST_DAYS = 100_000


def prune(
    older_than: Annotated[int | None, typer.Option(
        "--older-than", metavar="DAYS", show_default=False, help="Those found more than so many days ago.")] = None,
    arch: Annotated[str | None, typer.Option(
        "--arch", "-a", metavar="NAME", show_default=False, help="Those for the accelerator of this name.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    store: StorePlace = None,
) -> None:
    """Remove best mappings from the library; runs stay in the store. With both options, what both name."""
    if everything == (older_than is not None or arch is not None):
        raise InputError("prune", "must be told which mappings", None, "Give --older-than DAYS, --arch NAME, or --all")
    if older_than is not None and not 0 <= older_than <= MOST_DAYS:
        raise InputError("--older-than", f"must be from 0 to {MOST_DAYS} days", older_than)
    now = datetime.now(UTC)
    before = now + timedelta(days=1) if everything else None
    if older_than is not None:
        before = now - timedelta(days=older_than)
    with tilewright.store.Library(store).there() as found:
        count = found.prune(before, arch)
    say(console(), f"{count} mappings removed from {found.shown}")
