"""The command line: its verbs, and how errors reach a person."""

import errno
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer

from tilewright.base import InputError, collect_seldom
from tilewright.cli.options import INTERRUPTED

WRONG_INPUT = 2
INTERNAL_ERROR = 70
TERMINATED = 128 + signal.SIGTERM

_FULL = errno.ENOSPC, errno.EDQUOT

VERBS = {
    "map": "mapping.map_network", "pipeline": "mapping.pipeline", "evaluate": "evaluate.evaluate",
    "explain": "explain.explain", "replay": "replay.replay", "convert": "convert.convert",
    "systolic": "systolic.systolic", "array": "systolic.array", "bounds": "bounds.bounds", "space": "space.space",
    "flexibility": "machines.flexibility", "explore": "machines.explore", "design": "machines.design",
    "sweep": "machines.sweep", "schedule": "plans.schedule", "allocate": "plans.allocate", "verify": "plans.verify",
    "pack": "plans.pack", "fuse": "plans.fuse", "compare": "study.compare", "study": "study.app",
    "list": "listing.list_things", "show": "stored.show", "export": "stored.export", "prune": "stored.prune",
    "bench": "bench.bench", "train-surrogate": "training.train_surrogate", "train-fuser": "training.train_fuser",
    "recommend": "systolic.recommend", "train-recommender": "training.train_recommender",
    "reproduce": "reproduce.reproduce", "validate": "validate.validate",
}
"""The module of each verb in this room, which loads when the verb is wanted, and its function or group there."""


def app_of(*verbs: str) -> typer.Typer:
    """Return an app that has these verbs."""
    app = typer.Typer(
        name="tilewright", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Map networks onto DNN accelerators: the best mapping of every layer, what it costs, why, and how far "
             "from the optimum it can still be.")
    app.callback()(_settings)
    for verb in verbs:
        module, name = VERBS[verb].split(".")
        found = getattr(import_module(f"tilewright.cli.{module}"), name)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=verb)
        else:
            app.command(verb)(found)
    return app


def _settings(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")] = False,
) -> None:
    del debug  # `main` looks for it, wherever it stands


def main() -> None:
    """Run the command line; an error that the user can mend is one message on stderr and exit code 2."""
    if "--version" in sys.argv[1:2]:
        from importlib.metadata import version

        print(f"tilewright {version('tilewright')}")
        return
    collect_seldom()
    debug = bool(os.environ.get("TILEWRIGHT_DEBUG")) or "--debug" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--debug"]
    try:
        _check_digits(sys.argv[1:])
        with _terminated(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            _command(next((word for word in sys.argv[1:] if not word.startswith("-")), ""))()
    except Exception as error:
        if debug:
            raise
        with suppress(OSError):
            sys.stdout.flush()
        if isinstance(error, OSError) and error.errno in _FULL:
            error = InputError(str(error.filename or "standard output"), "must be a place with room", error.strerror,
                               "Make room, or write elsewhere")
        if isinstance(error, FileNotFoundError) and error.filename is None:  # as only `os.getcwd` says
            error = InputError("working folder", "must be there", None, "Go to a folder that is")
        print(_message(error), file=sys.stderr)
        sys.exit(WRONG_INPUT if isinstance(error, InputError) else INTERNAL_ERROR)


@cache
def _command(verb: str) -> Callable[..., Any]:
    """Return what runs a verb, or any where none is called so, made once where several commands run in one process.

    Not all verbs with all of their options, which takes longer than many a verb does.
    """
    made: Callable[..., Any] = typer.main.get_command(app_of(*([verb] if verb in VERBS else VERBS)))
    return made


@contextmanager
def _terminated() -> Iterator[None]:
    """Let SIGTERM end a verb as Ctrl-C does, with an exit code of its own."""
    told: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        told.append(number)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    except SystemExit as end:
        if told and end.code == INTERRUPTED:
            sys.exit(TERMINATED)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_digits(words: list[str]) -> None:
    """Refuse numbers in digits of other scripts (full-width ones among them), which Python would read in silence."""
    for word in words:
        option, _, value = word.rpartition("=")
        if re.fullmatch(r"[-+]?[\d.]+", value) and not value.isascii() and (not option or option.startswith("-")):
            raise InputError(option or "command line", "must have numbers written with the digits 0 to 9", value)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"Warning: {message}", file=sys.stderr)


def _message(error: Exception) -> str:
    if isinstance(error, InputError):
        return f"Error: {error}"
    return (f"Internal error: {type(error).__name__}: {error}\nThis is a fault of Tilewright, not yours: run again "
            "with --debug and report what it shows.")
