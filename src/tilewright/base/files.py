"""Files that appear whole or not at all, and tables as CSV."""

import csv
import io
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tilewright.base.errors import InputError


def write_whole(path: Path, text: str | bytes) -> Path:
    """Write a file so that it is either the old or the new one, never half; see `replace_file`.

    Raises an `InputError` if the place cannot be written.
    """
    try:
        replace_file(path, text if isinstance(text, bytes) else text.encode())
    except OSError as error:
        raise InputError(str(path), "must be a file that can be written", error.strerror or str(error),
                         "Choose another place") from None
    return path


def replace_file(path: Path, content: bytes, *, lasts: bool = True) -> None:
    """Write a file through a temporary neighbour; what is no plain file (a pipe, a device) is written as it is.

    Unless it ``lasts`` it is not waited for until it is on the disk: whoever reads it has to see if it is whole.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb", buffering=0) as file:
            file.write(content)
        return
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            if lasts:
                file.flush()
                os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV; texts that a spreadsheet would take for formulas begin with an apostrophe."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def _harmless(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    with suppress(ValueError):
        float(cell)
        return cell
    # The writer does not quote a carriage return.
    text = cell.replace("\r", "\n")
    return f"'{text}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else text
