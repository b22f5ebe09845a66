"""Where results go."""

import os
import tempfile
from pathlib import Path

from tilewright.base import InputError


def ready_place(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` after making the folders that it needs; what cannot be written is an `InputError`."""
    place = Path(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.is_file():
            with tempfile.TemporaryFile(dir=place.parent):
                pass
    except OSError as error:
        raise InputError(str(place), "must be a place that can be written", error.strerror or str(error)) from None
    if place.is_dir():
        raise InputError(str(place), "must be a file that can be written", "a folder", "Add a file name")
    return place
