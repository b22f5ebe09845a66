"""``tilewright map``, the main job, and ``pipeline``: layers side by side, each on an accelerator of its own."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import tilewright.api
import tilewright.report
import tilewright.store
from tilewright.api.options import PipelineOptions, RunOptions
from tilewright.base import InputError
from tilewright.cli.options import (
    INTERRUPTED,
    Asked,
    Json,
    Page,
    Strict,
    console,
    ready,
    say,
    verb,
    write_json,
    write_text,
)


@verb(RunOptions)
def map_network(
    asked: Asked,
    report: Page = None,
    json: Json = None,
    checkpoint: Annotated[Path | None, typer.Option(
        "--checkpoint", metavar="FOLDER", show_default=False,
        help="Keep the searches there at once and every few seconds, so that a run that ends early can go on.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help=(
        "Take up the run kept in --checkpoint, if one is; the budget may be larger, and counts all legs."))] = False,
    strict: Strict = False,
) -> None:
    """Find the best mapping of every layer of a network on an accelerator.

    Ends with a table, and with --report a page. Several machines (--arch A --arch B) are set side by side. Layers of
    equal shape are searched once, and a search that the store has made before, of a number of mappings, is answered
    from there. Ctrl-C ends the searches and keeps what they found (exit code 130), as does SIGTERM (143). Exit code 1:
    some layer has no legal mapping, or none within constraints, or --strict and not all of the network is modelled.
    """
    from tilewright.jobs import interruptible, load_seconds
    from tilewright.report import LayersBar

    ready(report, json)
    if isinstance(asked["arch"], tuple):
        _side_by_side(asked, report, json, checkpoint, strict)
    folder = _checkpoint(checkpoint, resume)
    with LayersBar(earlier_seconds=load_seconds(folder) if folder else 0.0) as shown:
        try:
            run, error = tilewright.api.map_network(**asked, progress=shown, checkpoint=folder), None
        except tilewright.api.Broken as broken:
            run, error = broken.run, broken.__cause__
    with interruptible(threading.Event()):
        deliver_run(run, report, json, folder)
    if error is not None:
        raise error
    raise typer.Exit(_exit_code(run, strict))


def _side_by_side(asked: Asked, report: Path | None, json: str | None, checkpoint: Path | None,
                  strict: bool) -> NoReturn:
    """Map the network on several machines, and show them side by side."""
    from tilewright.cli.conduct import deliver
    from tilewright.report import LayersBar

    for option, given, mend in (
            ("--checkpoint", checkpoint, "The store answers searches that were done before"),
            ("--certificate", asked["certificate"], "Each machine has one of its own: map one at a time")):
        if given is not None:
            raise InputError(option, "must be left out where several machines are mapped", str(given), mend)
    with LayersBar() as shown:
        found = tilewright.api.side_by_side(asked.pop("arch"), **asked, progress=shown)
    deliver("machines", found.sheet, found.plain, (report, json, None))
    if found.interrupted:
        typer.echo("Stopped before the end, in the last machine that is shown. The same command takes those before "
                   "it from the store where that keeps them.", err=True)
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(max(_exit_code(run, strict) for run in found.runs))


def _checkpoint(folder: Path | None, resume: bool) -> Path | None:
    if folder is None:
        if resume:
            raise InputError("--resume", "must come with --checkpoint FOLDER")
        return None
    if folder.exists() and not folder.is_dir():
        raise InputError("--checkpoint", "must be a folder", str(folder))
    tilewright.api.ready_place(folder / "0000.npz")
    kept = any(folder.glob("*.npz"))
    if kept and not resume:
        raise InputError("--checkpoint", "must be a new or empty folder, unless --resume is given", str(folder),
                         "Add --resume to take up the run that is kept there")
    return folder


def deliver_run(run: "tilewright.api.Run", report: Path | None, json: str | None, folder: Path | None = None) -> None:
    """Write the files that were asked for, then show the run, and say where everything is.

    What cannot be written does not cost the rest. Where the run is then nowhere, it goes to a file here or in the
    temporary directory.
    """
    screen = console("-")
    lines, errors = _written(run, report, json)
    tilewright.report.print_run(run.record, console(json))
    if run.kept is not None:
        say(screen, run.kept.warning or f"Stored in {run.kept.place}", style="yellow" if run.kept.warning else "dim")
    if run.library.warning:
        say(screen, run.library.warning, style="yellow")
    if run.interrupted:
        lines.append("To go on later, give --checkpoint FOLDER; then the same command with --resume takes it up."
                     if folder is None else "The same command with --resume takes it up.")
    for line in lines:
        say(screen, line)
    if errors:
        raise errors[0]


def _written(run: "tilewright.api.Run", report: Path | None, json: str | None) -> tuple[list[str], list[Exception]]:
    """Write the files that were asked for; return what to say of them, and what went wrong."""
    wanted: list[tuple[str, Callable[[], object]]] = []
    if json is not None:
        wanted.append(("", lambda: write_text(json, tilewright.store.record_to_json(run.record, indent=1) + "\n")))
    if report is not None:
        wanted.append((f"Report {report}", lambda: run.write_report(report)))
    lines, errors = [], []
    for line, write in wanted:
        try:
            write()
            lines += [line] if line else []
        except Exception as error:
            errors.append(error)
    if errors and (run.kept is None or not run.kept.stored):
        lines.append(f"The run was written to {tilewright.store.rescued(run.record)} instead.")
    return lines, errors


def _exit_code(run: "tilewright.api.Run", strict: bool) -> int:
    if run.interrupted:
        return INTERRUPTED
    covered = run.record.network.covered
    if strict and covered is not None and not covered.complete:
        return 1
    infeasible = any(layer.search is not None and not layer.search.feasible for layer in run.record.layers)
    return int(infeasible or run.record.totals.unmapped_layers > 0)


@verb(PipelineOptions)
def pipeline(asked: Asked, report: Page = None, json: Json = None) -> None:
    """Optimise a network as a pipeline: each layer on an accelerator of its own, which NAME in --arch describes.

    First every layer is searched for latency: the slowest sets the pace. Then every layer is searched for energy (or
    power) within it; none takes more than before. Exit code 1: a layer has no legal mapping, or the limit is not kept;
    130: Ctrl-C.
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
