"""What the verbs make of options, and arguments and options that several of them share."""

import inspect
import json
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import tilewright.api
import tilewright.report
from tilewright.api.flags import Flag
from tilewright.api.options import FLAGS, Footprints, VectorWays
from tilewright.base import InputError, value_of, whole_of, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.hardware import Accelerator

INTERRUPTED = 128 + signal.SIGINT
"""Exit code of a verb that Ctrl-C ended."""
Asked = dict[str, Any]
"""What a verb was asked for, as keywords of its function in Python."""
Verb = Callable[..., None]

_TYPES: dict[str, Any] = dict.fromkeys(("text", "names", "kilobytes", "argument"), str) | {
    "whole": int, "number": float, "yes": bool, "path": Path}


def verb(options: type, leave: str = "") -> Callable[[Verb], Verb]:
    """Give a verb the flags of its options: its function takes all of them as `Asked`, then what it has besides.

    Parameters
    ----------
    leave
        Fields whose flags it does not have, with spaces between. What is ``usual`` of a field, by its metadata, is a
        default on the command line alone.
    """
    known = {one.name: one for one in fields(options)
             if "flags" in one.metadata and one.name not in leave.split()}

    def decorate(function: Verb) -> Verb:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        made = [_parameter(flag, None if place and one.default is MISSING else one.metadata.get("usual", one.default))
                for one in known.values() for place, flag in enumerate(one.metadata["flags"])]
        order = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*made, *own)]

        def run(**given: Any) -> None:
            asked = {}
            for name, one in known.items():
                found = [_read(flag, given.pop(flag.word)) for flag in one.metadata["flags"]]
                asked[name] = one.metadata["join"](*found) if len(found) > 1 else found[0]
                if asked[name] is None and one.default is not MISSING:
                    asked[name] = one.default
            function(asked, **given)

        run.__dict__["__signature__"] = inspect.Signature(order)
        run.__annotations__ = {one.name: one.annotation for one in order}
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return run

    return decorate


def _parameter(flag: Flag, default: Any) -> inspect.Parameter:
    """Return what typer makes a flag of."""
    kind = Literal[flag.choices] if flag.choices else _TYPES.get(flag.kind, list[str])
    if flag.kind == "yes":
        default = False
    elif default is MISSING:
        default = inspect.Parameter.empty
    elif isinstance(default, bool) or not isinstance(default, str | int | float):
        default, kind = None, kind | None
    elif kind is str:
        default = str(default)
    return inspect.Parameter(flag.word, inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=Annotated[kind, _typer(flag, default)])


def _typer(flag: Flag, default: Any = None) -> Any:
    shown = flag.kind == "yes" or default not in (None, inspect.Parameter.empty)
    if flag.kind in ("argument", "arguments"):
        return typer.Argument(metavar=flag.metavar, show_default=False, help=flag.help)
    return typer.Option(*flag.names, metavar=flag.metavar, min=flag.least, show_default=shown, help=flag.help)


def _read(flag: Flag, given: Any) -> Any:
    """Return what Python takes for what typer gives."""
    readers: dict[str, Callable[[Any, str], Any]] = {
        "sizes": sizes, "shares": shares, "values": values, "kilobytes": _kilobytes,
        "names": lambda text, _: [name.strip() for name in text.split(",")] if text else None}
    return given if flag.kind not in readers or given is None else readers[flag.kind](given, flag.names[0])


Network = Annotated[str, _typer(FLAGS["network"])]
Arch = Annotated[str, _typer(FLAGS["arch"])]
Bind = Annotated[list[str] | None, _typer(FLAGS["bind"])]
StorePlace = Annotated[str | None, _typer(FLAGS["store"])]
Density = Annotated[list[str] | None, _typer(FLAGS["density"])]
Precision = Annotated[str, _typer(FLAGS["precision"], "auto")]
Vector = Annotated[VectorWays, _typer(FLAGS["vector"], "included")]
FootprintOption = Annotated[Footprints | None, _typer(FLAGS["footprint"])]
Json = Annotated[str | None, typer.Option(
    "--json", metavar="FILE", show_default=False, help="Write everything as JSON; - is standard output.")]
Strict = Annotated[bool, typer.Option(
    "--strict", help="Exit code 1 where not all of the network is modelled (its coverage is below 100 %).")]
Out = Annotated[Path | None, _typer(FLAGS["out"])]
On = Annotated[str, _typer(FLAGS["on"])]
Page = Annotated[Path | None, typer.Option(
    "--report", "-r", metavar="FILE.html", show_default=False, help="Write one self-contained HTML page.")]


def ready(page: Path | None, json_file: str | None, *others: Path | None) -> None:
    """Make sure that files can be written before anything is computed."""
    for place in (page, None if json_file in (None, "-") else Path(json_file), *others):
        if place is not None:
            tilewright.api.ready_place(place)


def sizes(given: Iterable[str] | None, option: str) -> dict[str, int | str]:
    """Read ``NAME=SIZE`` texts (``phase=WORD`` too); a size that is no positive integer is an `InputError`."""
    found: dict[str, int | str] = {}
    for name, text in _pairs(given, option):
        size = text if name == "phase" else whole_of(text)
        if size is None:
            raise InputError(f"{option} {name}", "must be a positive integer", text, f"For example {option} {name}=1")
        found[name] = size
    return found


def shares(given: Iterable[str] | None, option: str = "--density") -> dict[str, str | float]:
    """Read ``TENSOR=SHARE`` texts; the shares are read with the network."""
    return dict(_pairs(given, option))


def values(given: Iterable[str] | None, option: str) -> dict[str, str | int | float | bool]:
    """Read ``NAME=VALUE`` texts; values become integers, numbers, true and false where they look like them."""
    return {name: value_of(text) for name, text in _pairs(given, option)}


def _kilobytes(given: str, option: str) -> list[int]:
    sizes = [whole_of(part.strip(), 0) for part in given.split(",")]
    found = [size for size in sizes if size is not None]
    if len(found) != len(sizes):
        raise InputError(option, "must be three whole numbers of KiB", given, f"For example {option} 64,64,64")
    return found


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


def write_json(place: str | None, data: object, **how: Any) -> None:
    """Write data as JSON where a place is given, as `write_text` does; ``how`` is as of `json.dumps`."""
    if place is not None:
        write_text(place, json.dumps(data, indent=1, **how) + "\n")


def say(screen: "Console", text: object, style: str | None = None) -> None:
    """Print a line as it is: unbroken, and without a look for marks in it."""
    screen.print(str(text), style=style, markup=False, soft_wrap=True)


def tell_lost(accelerator: "Accelerator", screen: "Console") -> None:
    """Say what of the files of a machine was lost when they were read."""
    for line in tilewright.report.lost_lines(accelerator.assumptions):
        screen.print(line, soft_wrap=True)


def write_text(place: str, text: str) -> None:
    """Write to a file, whose folders are made, or to stdout where ``place`` is ``-``; else it is an `InputError`."""
    if place == "-":
        sys.stdout.write(text)
        return
    write_whole(tilewright.api.ready_place(Path(place)), text)
