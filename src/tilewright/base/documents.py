"""The one reader of files that people write: text, YAML and JSON, within limits of size and depth.

A file that a user was sent must not take the memory or the day: it ends in an error that says which limit it breaks.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

from tilewright.base.errors import InputError

MOST_BYTES = 16 * 2**20
"""Bytes of a file that people write, at most."""
MOST_VALUES, MOST_DEEP = 10**6, 100
"""Values of a document once what its aliases stand for is written out, and collections within one another."""


def read_text(path: str | Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file, without the mark of its byte order.

    Raises an `InputError` if it cannot be read, is larger than ``most_bytes``, or is not UTF-8.
    """
    try:
        return _bytes(path, most_bytes).decode("utf-8-sig")
    except InputError:  # which is a ValueError, too
        raise
    except FileNotFoundError:
        mend = "YAML that is no file must have more than one line" if ": " in str(path) else ""
        raise InputError(str(path), "must be an existing file", mend=mend) from None
    except (OSError, TypeError, ValueError) as error:  # ValueError: not UTF-8, or a name with a null byte
        raise InputError(str(path), "must be a readable text file in UTF-8", str(error)) from None


def open_binary(path: str | Path) -> BinaryIO:
    """Open a file as `open` does to read its bytes; a pipe that nobody writes to is found empty, without a wait."""
    file = open(os.fspath(path), "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))
    if hasattr(os, "set_blocking"):
        os.set_blocking(file.fileno(), True)
    return file


def _bytes(path: str | Path, most_bytes: int) -> bytes:
    with open_binary(path) as file:
        pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
        found = file.read(most_bytes + 1)
    if pipe and not found:
        raise InputError(str(path), "must be a file, or a pipe that something is written to", "an empty pipe")
    if len(found) > most_bytes:
        raise InputError(str(path), f"must have at most {most_bytes // 2**20} MiB")
    return found


def read_yaml(text: str, label: str, kind: Literal["plain", "lines", "last"] = "plain") -> Any:
    """Return what one YAML document says: in plain collections or in ruamel's, which know their lines.

    With ``last`` it is as with ``lines``, and the last entry of a key that stands several times counts.

    Raises an `InputError` with ``label`` and line, if it is not YAML, or larger or deeper than any document that is
    meant once what its aliases stand for is written out.
    """
    from tilewright.base.composing import composed  # noqa: PLC0415  (ruamel.yaml loads late)

    return composed(text, label, kind, (MOST_VALUES, MOST_DEEP))


def shown(tree: Any) -> object:
    """Return what an error says of a part of a document: a number or a text itself, of all else what it is."""
    if isinstance(tree, dict | list):
        return "a list" if isinstance(tree, list) else "a mapping"
    return "nothing" if tree is None else tree


Record = TypeVar("Record")


class RecordFormat(NamedTuple):
    """How a JSON document of ours tells a record: a dataclass, whose fields are checked."""

    kind: str
    """What its field ``kind`` says."""
    called: str
    """What such a record is called, with its article."""
    verb: str
    """The verb of the command line that writes it."""
    derived: tuple[str, ...]
    """Fields of the document that follow from others, and are left out."""


def read_record(record: type[Record], form: RecordFormat, text: str, label: str) -> Record:
    """Return the record that a JSON document tells.

    Raises an `InputError` if the text is of no such record, or something in it is wrong.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  (loads late)

    tree = read_json(text, label)
    if not isinstance(tree, dict) or tree.get("kind") != form.kind:
        given = tree.get("kind") if isinstance(tree, dict) else shown(tree)
        raise InputError(label, f"must be {form.called}, of kind {form.kind!r}", given,
                         f"Written by: tilewright {form.verb} ... --json FILE")
    try:
        found: Record = TypeAdapter(record).validate_python(
            {name: value for name, value in tree.items() if name not in form.derived})
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise InputError(f"{label} {path}", first["msg"].replace("Input should", "must"), None) from None
    return found


def read_json(text: str | bytes, label: str, one_line: bool = False) -> Any:
    """Return what a JSON document says; ``one_line`` tells the column of an error, not the line.

    Raises an `InputError` with ``label`` and line, if it is not JSON, or too deep to be read.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place, column = (label, f" at column {error.colno}") if one_line else (f"{label}:{error.lineno}", "")
        raise InputError(place, "must be JSON", f"{error.msg}{column}") from None
    except RecursionError:
        raise InputError(label, "must be JSON whose brackets nest less deep") from None
    except ValueError as error:  # not UTF-8, or a number of thousands of digits
        raise InputError(label, "must be JSON in UTF-8", str(error)) from None
