"""Arguments and options that several verbs share, and how their texts are read."""

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import InputError, value_of, whole_of, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.hardware import Accelerator

Network = Annotated[str, typer.Argument(
    metavar="NETWORK", show_default=False,
    help="A name of the zoo (resnet50, bert-base:sequence=128), a file (ONNX, PyTorch's .pt2, a config.json of Hugging "
         "Face, a layer table), or one operator: conv:K=64,C=64,P=56,Q=56,R=3,S=3,stride=1 · matmul:M=512,N=512,K=64 · "
         "einsum:bik,bkj->bij:b=8,i=64,j=64,k=32.")]
Arch = Annotated[str, typer.Option(
    "--arch", "-a", metavar="ARCH", show_default=False, help="An accelerator: the name of a preset or a YAML file.")]
Bind = Annotated[list[str] | None, typer.Option(
    "--bind", metavar="NAME=SIZE", show_default=False,
    help="Size of a dynamic dimension of a network (batch=4), or an option of one of the zoo. Repeatable.")]
Json = Annotated[str | None, typer.Option(
    "--json", metavar="FILE", show_default=False, help="Write everything as JSON; - is standard output.")]
StorePlace = Annotated[str | None, typer.Option(
    "--store", metavar="PATH", show_default=False,
    help="The store of runs: a SQLite file or a database URL. Default: $TILEWRIGHT_STORE, or the platform's data "
         "directory.")]
SpaceFile = Annotated[str | None, typer.Option(
    "--constraints", metavar="FILE.yaml", show_default=False,
    help="What the map spaces leave out: loops, orders, factors, tiles, ... (docs/how-to.md). What it says of "
         "dimensions that a layer lacks means nothing to that layer.")]
Dataflow = Annotated[str | None, typer.Option(
    "--dataflow", show_default=False,
    help="Only mappings that follow this dataflow; see: tilewright list dataflows.")]


Density = Annotated[list[str] | None, typer.Option(
    "--density", metavar="TENSOR=SHARE", show_default=False,
    help="Share of a tensor's words that are not zero, by role or name: weights=0.5, W=2:4 (two of every four), "
         "I=even:0.5 (spread evenly). For machines with a sparsity section. Repeatable.")]


MapperName = Annotated[str, typer.Option("--mapper", "-m", help="How to search; see: tilewright list mappers.")]
MapperOptions = Annotated[list[str] | None, typer.Option(
    "--option", metavar="NAME=VALUE", show_default=False, help="An option of the mapper. Repeatable.")]
RunSeed = Annotated[int, typer.Option("--seed", help="Same seed, same result, on any number of workers.")]
SomeLayers = Annotated[str | None, typer.Option(
    "--layers", metavar="GLOB", show_default=False, help="Only layers with such names, e.g. 'layer1.*'.")]
Page = Annotated[Path | None, typer.Option(
    "--report", "-r", metavar="FILE.html", show_default=False, help="Write one self-contained HTML page.")]
LayerWorkers = Annotated[int | None, typer.Option(
    "--workers", min=1, show_default=False, help="Layers searched side by side. Default: one a core.")]


class Tiling(StrEnum):
    """How tiles may divide; the same as those of the map spaces, which load late."""

    perfect = "perfect"
    imperfect = "imperfect"
    ruby = "ruby"
    ruby_s = "ruby-s"
    ruby_t = "ruby-t"


TilingOption = Annotated[Tiling | None, typer.Option(
    "--tiling", show_default=False,
    help="imperfect (unless the constraints say otherwise): any tile; perfect: tiles divide; ruby: full tiles divide, "
         "the last one may be smaller; ruby-s, ruby-t: that of loops in space, in time alone.")]

class Footprints(StrEnum):
    """What tiles take of capacities; the same as those of the machines, which load late."""

    exact = "exact"
    box = "box"


FootprintOption = Annotated[Footprints | None, typer.Option(
    "--footprint", show_default=False,
    help="What tiles take of a memory's capacity: exact, the words that they touch; box, all of the smallest box "
         "around them, as Timeloop counts. Default: as the machine says (box where it is read from Timeloop's files).")]

Pad = Annotated[bool, typer.Option(
    "--pad", help="Round sizes up so that whole tiles fill the arrays; work on padding is paid for. Tiling is then "
                  "perfect unless given.")]


def limits(constraint: Iterable[str] | None, constraints: str | None) -> list[str | Path]:
    """Return the limits on layers, and the file of what map spaces leave out, as a run takes them."""
    return [*(constraint or ()), *([Path(constraints)] if constraints is not None else [])]


def ready(page: Path | None, json_file: str | None) -> None:
    """Make sure that files can be written before anything is computed."""
    from tilewright.api import ready_place

    for place in (page, Path(json_file) if json_file and json_file != "-" else None):
        if place is not None:
            ready_place(place)


def sizes(given: Iterable[str] | None, option: str) -> dict[str, int]:
    """Read ``NAME=SIZE`` texts; a size that is no positive integer is an `InputError`."""
    found = {}
    for name, text in _pairs(given, option):
        size = whole_of(text)
        if size is None:
            raise InputError(f"{option} {name}", "must be a positive integer", text, f"For example {option} {name}=1")
        found[name] = size
    return found


def shares(given: Iterable[str] | None) -> dict[str, str | float]:
    """Read ``TENSOR=SHARE`` texts; the shares are read with the network."""
    return dict(_pairs(given, "--density"))


def values(given: Iterable[str] | None, option: str) -> dict[str, str | int | float | bool]:
    """Read ``NAME=VALUE`` texts; values become integers, numbers, true and false where they look like them."""
    return {name: value_of(text) for name, text in _pairs(given, option)}


def _pairs(given: Iterable[str] | None, option: str) -> Iterable[tuple[str, str]]:
    known: set[str] = set()
    for part in given or ():
        name, sign, text = (word.strip() for word in part.partition("="))
        if not name or not sign or not text:
            raise InputError(option, "must be NAME=VALUE", part)
        if name in known:
            raise InputError(option, f"must give {name} once", part, "Leave all but one out")
        known.add(name)
        yield name, text


def console(place: str | None = None) -> "Console":
    """Return the console for what people read: stderr where ``place`` says that JSON goes to stdout."""
    from rich.console import Console

    return Console(stderr=place == "-", highlight=False)


def tell_lost(accelerator: "Accelerator", screen: "Console") -> None:
    """Say what of the files of a machine was lost when they were read."""
    from tilewright.report import lost_lines

    for line in lost_lines(accelerator.assumptions):
        screen.print(line, soft_wrap=True)


def write_text(place: str, text: str) -> None:
    """Write to a file, whose folders are made, or to stdout where ``place`` is ``-``.

    Raises
    ------
    InputError
        If the place cannot be written.
    """
    if place == "-":
        sys.stdout.write(text)
        return
    from tilewright.api import ready_place

    write_whole(ready_place(Path(place)), text)
