"""The text of a foreign file."""

from pathlib import Path

from tilewright.base import InputError


def read_text(path: str | Path) -> str:
    """Return the text of a file, without the mark of its byte order.

    Raises
    ------
    InputError
        If it cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(str(path), "must be an existing file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), "must be a readable text file in UTF-8", str(error)) from None
