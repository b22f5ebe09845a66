"""``tilewright export``: the store as JSON or CSV."""

from pathlib import Path
from typing import Annotated

import typer

from tilewright.base import InputError
from tilewright.cli.options import StorePlace, console, say


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
