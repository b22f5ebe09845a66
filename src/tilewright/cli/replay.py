"""``tilewright replay``: one mapping under the conventions of several tools."""

from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import InputError
from tilewright.cli.options import Bind, Json, StorePlace, console, say, write_json
from tilewright.cli.sources import FileArch, FileNetwork, Layer, mapped, run_cases

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.api import Replayed


def replay(
    source: Annotated[str | None, typer.Argument(
        metavar="[RUN|MAPPING.yaml]", show_default=False,
        help="A run (its JSON file, its identity, last), or a mapping file with --network and --arch.")] = None,
    conventions: Annotated[list[str] | None, typer.Option(
        "--as", metavar="TOOL", show_default=False,
        help="Count as this tool does: tilewright, timeloop, maestro. Repeatable; the first two unless given.")] = None,
    layer: Layer = None,
    network: FileNetwork = None,
    arch: FileArch = None,
    cases: Annotated[str | None, typer.Option(
        "--cases", metavar="FILE.jsonl", show_default=False,
        help="Instead of one mapping: operators, machines and mappings, one JSON object a line, as for tilewright "
             "evaluate --cases; prints one line of figures for each. - is standard input.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Show the figures that agree, too.")] = False,
    reasons: Annotated[bool, typer.Option(
        " /--no-reasons", help="Do not find out which assumptions part the figures (some thirty walks).")] = True,
    json_file: Json = None,
    bind: Bind = None,
    store: StorePlace = None,
) -> None:
    """Count one mapping as other tools do, and name the assumption behind every figure that differs from ours."""
    from tilewright.api import replay as replay_as
    from tilewright.api import replay_effort

    names = tuple(conventions or ("tilewright", "timeloop"))
    if cases is not None:
        if any(given is not None for given in (source, layer, network, arch, json_file)):
            raise InputError("--cases", "must stand alone (or with --as, --no-reasons)")
        run_cases(cases, lambda case: {"id": case.id, **replay_as(
            case.operator, case.accelerator, case.mapping, names, reasons=reasons).record()})
        return
    if source is None:
        raise InputError("MAPPING", "must be given, or --cases in its place", None,
                         "For example tilewright replay last --layer conv1")
    nest = mapped(source, (network, layer, arch), bind, store)
    for text in replay_effort(*nest, names, reasons):
        typer.echo(text, err=True)
    found = replay_as(*nest, names, reasons=reasons)
    write_json(json_file, found.record())
    _print(found, every, console(json_file))


def _print(found: "Replayed", every: bool, screen: "Console") -> None:
    from tilewright.report import print_listing

    compared = len(found.conventions) > 1
    shown = [line for line in found.lines if every or line.differs or not compared]
    if shown:
        rows = [(line.name, *(f"{figure:,.12g}" for figure in line.figures), *[", ".join(line.because)] * compared)
                for line in shown]
        print_listing(("", *found.conventions, *["because of"] * compared), rows, range(1, 1 + len(found.conventions)),
                      screen)
    agreeing = len(found.lines) - sum(line.differs for line in found.lines)
    if compared:
        say(screen, f"\n{agreeing} of {len(found.lines)} figures agree; words are those of all instances, cycles "
                    "without start-up and tail.")
    for name, text in found.assumptions.items():
        say(screen, f"{name}: {text}.")
    if found.unexplained:
        say(screen, f"The nest is {found.unexplained}", style="yellow")
