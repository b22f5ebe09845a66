"""Where results go, and where the compiled engine is kept."""

import atexit
import os
import shutil
import sys
import tempfile
import warnings
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


PACKAGE = Path(__file__).parents[1]


def ready_cache() -> None:
    """Let Numba find a place for what it compiles, before it loads: beside the code, the user's cache, a passing one.

    Where neither of the first two can be written, Numba would refuse to compile at all; a `RuntimeWarning` then says
    how to keep the compiled engine for the next process.
    """
    if os.environ.get("NUMBA_CACHE_DIR") or "numba" in sys.modules:
        return
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
    beside = [PACKAGE / room / "__pycache__" for room in ("cost", "mapping", "search")]
    if all(_writable(place) for place in beside) or _writable(user):
        return
    passing = tempfile.mkdtemp(prefix="tilewright-")
    atexit.register(shutil.rmtree, passing, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = passing
    warnings.warn("The compiled engine cannot be kept, so that every process compiles it anew: set NUMBA_CACHE_DIR to "
                  "a folder that can be written", RuntimeWarning, stacklevel=2)


def _writable(place: Path) -> bool:
    """Whether a folder is there, or can be made, and files can be made in it."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return True
    except OSError:
        return False
