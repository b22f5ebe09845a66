"""``tilewright convert``: foreign files to ours, and ours to foreign ones."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import InputError
from tilewright.cli.options import Bind, StorePlace, console
from tilewright.cli.sources import FileArch, FileNetwork, Layer, mapped

if TYPE_CHECKING:
    from tilewright.api import Converted


class Format(StrEnum):
    """What files are converted to."""

    tilewright = "tilewright"
    timeloop = "timeloop"


def convert(
    sources: Annotated[list[str], typer.Argument(
        metavar="FILE...|RUN", show_default=False,
        help="Timeloop's YAML files (architecture, problem, mapping, constraints, ERT, ART), all that belong together; "
             "or, with --to timeloop, a run or a mapping file with --network and --arch.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", show_default=False,
                                      help="Where the files are written.")],
    to: Annotated[Format, typer.Option("--to", help="What to make.")] = Format.tilewright,
    strict: Annotated[bool, typer.Option(
        "--strict", help="Refuse what cannot be honoured in full, instead of noting it.")] = False,
    layer: Layer = None,
    network: FileNetwork = None,
    arch: FileArch = None,
    bind: Bind = None,
    store: StorePlace = None,
) -> None:
    """Turn Timeloop's files into ours, or a mapping of ours with its layer and machine into Timeloop's.

    What is dropped or approximated is told, with file and line.
    """
    from tilewright.api import from_timeloop, to_timeloop

    if to is Format.timeloop:
        if len(sources) > 1:
            raise InputError("FILE", "must be one run or mapping file with --to timeloop", ", ".join(sources))
        made = to_timeloop(*mapped(sources[0], (network, layer, arch), bind, store), strict=strict)
    else:
        if any(given is not None for given in (layer, network, arch)):
            raise InputError("--layer, --network, --arch", "must come with --to timeloop")
        made = from_timeloop(sources, strict=strict)
    _tell(made, out)


def _tell(made: "Converted", out: Path) -> None:
    screen = console(None)
    for path in made.write(out):
        screen.print(f"Wrote {path}", markup=False, highlight=False, soft_wrap=True)
    for note in made.notes:
        screen.print(str(note), style="yellow", markup=False, highlight=False, soft_wrap=True)
