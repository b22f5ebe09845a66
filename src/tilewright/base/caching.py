"""Compiled functions on disk, each file with its own checksum: what is damaged is compiled anew, never loaded.

Numba loads whatever its files hold. Of a file that was cut short or overwritten, unpickling fails, or LLVM ends the
whole process; so a file's checksum is looked at before anything in it is. Of several processes that want the same
function at once, as the first ones on a machine do, one compiles it and the others wait.
"""

import hashlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from llvmlite import binding as ll
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.event import Event, Listener, register
from numba.core.runtime.nrt import rtsys

from tilewright.base.standstill import COMPILING, standing_still

_LENGTH = hashlib.sha256().digest_size

PATIENCE_SECONDS = 60
"""How long a process waits for what another compiles, which takes seconds, before it compiles the same itself."""


class _Listener(Listener):
    """Stops the clock of budgets while Numba compiles; what is on disk already is loaded without such an event."""

    def on_start(self, event: Event) -> None:
        """Take note that a function begins to be compiled."""
        COMPILING.seconds(1)

    def on_end(self, event: Event) -> None:
        """Take note that it is compiled, or failed to be."""
        COMPILING.seconds(-1)


register("numba:compile", _Listener())


class CheckedCache(FunctionCache):
    """What Numba keeps of one function; ``before`` and ``alone`` are as of `kept`."""

    def __init__(self, function: Any, before: Callable[[], None] | None = None, alone: bool = False) -> None:
        super().__init__(function)
        self._before = before
        self._cache_file = _Files(self._cache_path, f"{self._impl.filename_base}.sum",
                                  self._impl.locator.get_source_stamp())
        self._cache_file.alone = alone
        self._turn: IO[bytes] | None = None
        """Held while this process compiles; Numba lets one of its threads compile at a time."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was kept, None where nothing sound is.

        Numba first loads all that it knows to compile, SciPy among it, which takes half a second. Compiled code asks
        for its memory manager alone; what is not kept is compiled by a compiler that loads the rest itself.
        """
        rtsys.initialize(target_context)
        self._end_turn()  # of what could not be compiled
        found = self._load_overload(sig, target_context)
        if found is None:
            self._take_turn()
            found = self._load_overload(sig, target_context)
            if found is not None:
                self._end_turn()
            elif self._before is not None:
                self._before()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; where that cannot be written, it serves this process alone."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            warnings.warn(f"The compiled engine cannot be kept in {self._cache_path} ({error.strerror or error}): the "
                          "next process compiles it anew", RuntimeWarning, stacklevel=2)
        self._end_turn()

    def _take_turn(self) -> None:
        """Wait until no other process compiles the function, for a while: one may have been stopped in the middle.

        Where files cannot be locked, none waits.
        """
        with suppress(ImportError, OSError):
            from fcntl import LOCK_EX, LOCK_NB, lockf  # noqa: PLC0415 - Windows has none

            self._impl.locator.ensure_cache_path()
            self._turn = Path(self._cache_path, f"{self._impl.filename_base}.lock").open("wb")
            until = time.monotonic() + PATIENCE_SECONDS
            with standing_still():
                while time.monotonic() < until:
                    with suppress(BlockingIOError):
                        lockf(self._turn, LOCK_EX | LOCK_NB)  # ends with the process, and forked ones do not inherit it
                        break
                    time.sleep(0.02)

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._turn.close()
            self._turn = None


class _Files(IndexDataCacheFile):
    """The index of a function's compiled forms, and a file for each; all end in the checksum of what is before it."""

    alone: bool

    def save(self, key: Any, data: Any) -> None:
        """Keep a compiled form, and in its file what it is a form of: another process may write the same file.

        Beside native code Numba keeps what it would link into other functions, and reads that first; of one that stands
        alone the names are enough, by which Numba knows what native code defines.
        """
        if self.alone:
            (name, kind, (code, linked)), *others = data
            data = (name, kind, (code, _names_in(linked))), *others
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """Return a compiled form, None where it was not kept or is damaged."""
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self) -> Any:
        if not self._sound(self._index_path):
            return {}
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # a record that the functions took has another name or place since
            return {}

    def _load_data(self, name: str) -> Any:
        return super()._load_data(name) if self._sound(self._data_path(name)) else None

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[IO[bytes]]:
        written = io.BytesIO()
        with super()._open_for_write(filepath) as file:
            yield written
            file.write(written.getvalue() + hashlib.sha256(written.getvalue()).digest())

    def _sound(self, path: str) -> bool:
        """Whether a file is there and whole."""
        try:
            content = Path(path).read_bytes()
        except OSError:
            return False
        if hashlib.sha256(content[:-_LENGTH]).digest() == content[-_LENGTH:]:
            return True
        warnings.warn(f"The compiled engine kept in {self._cache_path} is damaged: it is thrown away and compiled anew",
                      RuntimeWarning, stacklevel=2)
        return False


def _names_in(linked: bytes) -> bytes:
    """Return a module that defines functions of the names that another does, and nothing else."""
    names = [one.name for one in ll.parse_bitcode(linked).functions if not one.is_declaration]
    found: bytes = ll.parse_assembly("\n".join(
        f'define void @"{name}"() {{ unreachable }}' for name in names)).as_bitcode()
    return found
