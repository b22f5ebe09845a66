"""Options as fields of a dataclass: what a field is called on the command line, and functions that take the fields."""

import inspect
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from keyword import iskeyword
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, TypeVar, cast

from tilewright.api.text import bar_below
from tilewright.base import InputError

P = ParamSpec("P")
Asked = TypeVar("Asked")
Found = TypeVar("Found")

Kind = Literal["text", "whole", "number", "yes", "path", "texts", "names", "sizes", "shares", "values", "kilobytes",
               "argument", "arguments"]


@dataclass(frozen=True)
class Flag:
    """What the command line calls an option, and how its text is read."""

    names: tuple[str, ...]
    """``--budget``, ``-b``; of an argument, none."""
    help: str
    kind: Kind = "text"
    """What its text is: ``yes`` is a switch, ``sizes``, ``shares`` and ``values`` are ``NAME=SOMETHING``,
    repeatable."""
    metavar: str | None = None
    least: int | None = None
    """The least number allowed."""
    choices: tuple[str, ...] = ()
    """The only texts allowed."""
    always: bool = False
    never: bool = False
    """``always`` and ``never``: whether the command that repeats a run names it even where it has its default, or does
    not at all."""

    @property
    def word(self) -> str:
        """What a function calls it: ``no_store`` for ``--no-store``, ``class_`` for ``--class``."""
        word = self.names[0].lstrip("-").replace("-", "_")
        return f"{word}_" if iskeyword(word) else word


def option(default: Any, *names: str, says: str, **more: Any) -> Any:
    """Return a field with a flag; ``more`` are further fields of `Flag`."""
    return field(default=default, metadata={"flags": (Flag(names, says, **more),)})


def several(default: Any, join: Callable[..., Any], *found: Flag) -> Any:
    """Return a field that several flags make up: ``join`` takes what was given of each, None for nothing."""
    return field(default=default, metadata={"flags": found, "join": join})


def again(options: type, name: str, default: Any, says: str = "", **more: Any) -> Any:
    """Return a field as another verb has it, with another default, or help of its last flag."""
    metadata = next(one.metadata for one in fields(options) if one.name == name)
    *others, flag = metadata["flags"]
    changed = replace(flag, help=says or flag.help, **more)
    return field(default=default, metadata={**metadata, "flags": (*others, changed)})


def flags(options: type) -> dict[str, tuple[Flag, ...]]:
    """Return the flags of the fields that have some, by the name of the field."""
    return {one.name: one.metadata["flags"] for one in fields(options) if "flags" in one.metadata}


def told(kind: type) -> dict[str, str]:
    """Return what is said of each field of a dataclass, on one line: beside its type, by a docstring, or its flag."""
    found = {name: of[-1].help.replace(" Repeatable.", "") for name, of in flags(kind).items()}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__dict__.get("__doc__") or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
        for part in re.finditer(r"^(\w[\w, ]*)\n((?:[ \t]+\S.*\n?|\n)+)", section.group(1) + "\n" if section else "",
                                re.MULTILINE):
            found |= dict.fromkeys(map(str.strip, part.group(1).split(",")), " ".join(part.group(2).split()))
        for name, hint in inspect.get_annotations(base).items():
            marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, str)]
            found |= dict.fromkeys([name] if marks else [], " ".join(marks))
    return {one.name: found[one.name] for one in fields(kind) if one.name in found}


def takes(options: Callable[P, Asked], raises: str = "") -> Callable[[Callable[[Asked], Found]], Callable[P, Found]]:
    """Let a function of what is asked be called with its fields as arguments, typed and documented as they are.

    ``raises`` goes on with the sentence on when an `InputError` is raised.
    """
    assert isinstance(options, type)
    listed = "\n".join(f"{name}\n    {about}" for name, about in told(options).items())
    sections = (f"\n\nParameters\n----------\n{listed}\n\nThey are fields of `{options.__name__}`.\n\nRaises\n------\n"
                f"InputError\n    If something that was given is wrong{raises}.")

    def decorate(function: Callable[[Asked], Found]) -> Callable[P, Found]:
        @wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> Found:
            asked = options(*args, **keywords)
            _check_numbers(asked)
            if "told" not in vars(asked):
                return function(asked)
            with bar_below(vars(asked)["told"]) as observer:
                return function(replace(cast(Any, asked), told=observer))

        found = inspect.signature(options)
        call.__dict__["__signature__"] = found.replace(
            return_annotation=inspect.signature(function).return_annotation)
        about, mark, others = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples\n")
        call.__doc__ = about + sections + mark + others
        return call

    return decorate


def _check_numbers(asked: Any) -> None:
    """Raise an `InputError` where a number is no whole one or below the least, though its flag takes no other."""
    for name, found in flags(type(asked)).items():
        given, flag = getattr(asked, name), found[-1]
        if isinstance(given, Real):
            if flag.kind == "whole" and not isinstance(given, Integral):
                raise InputError(name, "must be a whole number", given)
            if flag.least is not None and given < flag.least:
                raise InputError(name, f"must be at least {flag.least}", given)


def command_line(verb: str, asked: Any, **changed: Any) -> str:
    """Return the command of a verb that was asked for this; ``changed`` are values that it has otherwise.

    They go by the names of fields or, of fields with several flags, by those of the flags.
    """
    words, values = ["tilewright", verb], vars(asked) | changed
    for one in fields(asked):
        found = one.metadata.get("flags", ())
        for flag in found:
            value = values.get(one.name if len(found) == 1 else flag.word)
            nothing = value is False or value in (None, "", (), {}, [])
            if not nothing and not flag.never and (flag.always or value != one.default):
                words += _words(flag, value)
    return shlex.join(words)


def _words(flag: Flag, value: Any) -> list[str]:
    name = flag.names[0]
    if flag.kind in ("argument", "arguments"):
        return [str(one) for one in (value if flag.kind == "arguments" else (value,))]
    if flag.kind == "yes":
        return [name]
    if isinstance(value, Mapping):
        return [word for key, given in value.items() for word in (name, f"{key}={given}")]
    if isinstance(value, tuple):
        return [word for one in value for word in (name, str(one))] if flag.kind == "texts" else [name, ",".join(value)]
    return [name, str(value)]
