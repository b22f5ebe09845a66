"""``tilewright explore``: which flexibility pays."""

import json
import shlex
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import csv_text
from tilewright.cli.options import Arch, Json, MapperName, console, write_text

if TYPE_CHECKING:
    from tilewright.report import Sheet

INTERRUPTED = 130


def explore(
    networks: Annotated[list[str], typer.Argument(
        metavar="NETWORK...", show_default=False, help="Networks, as for tilewright map.")],
    arch: Arch,
    choices: Annotated[str, typer.Option("--choices", metavar="CLASS,...", help=(
        "Classes to compare with the first: digits for tile, order, parallelism, shape, 1 is fully flexible, as in "
        "0000,1010; stated is what the machine's file says; or all 16."))] = "all",
    tune: Annotated[str | None, typer.Option("--tune", metavar="NETWORK", show_default=False, help=(
        "Fix the axes that are not flexible as suits this network best, in place of what the machine's file says."))
    ] = None,
    objective: Annotated[str, typer.Option("--objective", "-o", help="latency, energy or edp.")] = "latency",
    mapper: MapperName = "auto",
    budget: Annotated[int, typer.Option("--budget", "-b", help="Samples of each layer on each choice.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed, same result.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", help="Repetitions, of which the median counts.")] = 1,
    json_file: Json = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", show_default=False, help=(
        "Keep searches there as they end, to go on where a run was stopped, and write JSON, CSV and a page."))] = None,
    workers: Annotated[int | None, typer.Option(
        "--workers", min=1, show_default=False, help="Searches side by side. Default: one a core.")] = None,
) -> None:
    """Find which flexibility pays: what each choice is worth on networks, and the area that it adds.

    Every layer is searched on every choice at equal samples. Ctrl-C shows what is complete (exit code 130).
    """
    from tilewright.api import explore as explore_all
    from tilewright.api import ready_place
    from tilewright.cli.progress import SearchBar
    from tilewright.report import exploration_sheet, exploration_tree, print_sheet

    if json_file is not None and json_file != "-":
        ready_place(Path(json_file))
    stop = threading.Event()
    with SearchBar() as bar:
        found = explore_all(networks, arch, choices, tuned_for=tune, objective=objective, mapper=mapper, budget=budget,
                            seed=seed, seeds=seeds, out=out, told=bar.update, workers=workers, stop=stop)
    if found.outcomes:
        asked = (f"{budget:,} samples a layer and choice, mapper {mapper}, {seeds} seed{'s' if seeds > 1 else ''}"
                 + (f", fixed as suits {tune}" if tune else ""))
        sheet = exploration_sheet(found, asked, shlex.join(["tilewright", *sys.argv[1:]]))
        tree = json.dumps(exploration_tree(found, asked), indent=1, ensure_ascii=False) + "\n"
        print_sheet(sheet, console(json_file))
        if json_file is not None:
            write_text(json_file, tree)
        if out is not None:
            _write(out, sheet, tree)
    if stop.is_set():
        typer.echo("Stopped before the end" + ("; nothing is complete. " if not found.outcomes else ". ")
                   + ("The same command goes on from there." if out else "With --out DIR a run can go on later."),
                   err=True)
        raise typer.Exit(INTERRUPTED)


def _write(out: Path, sheet: "Sheet", tree: str) -> None:
    from tilewright.report import write_sheet

    write_text(str(out / "explore.json"), tree)
    for table in sheet.tables:
        write_text(str(out / f"{table.name}.csv"), csv_text([table.columns, *table.rows]))
    page = write_sheet(sheet, out / "explore.html")
    typer.echo(f"Written: {page}; beside it explore.json and {len(sheet.tables)} CSV files.", err=True)
