"""Values on disk that the next process need not work out: each file has its checksum, and goes with its sources."""

import hashlib
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from tilewright.base.files import replace_file

T = TypeVar("T")
_LENGTH = hashlib.sha256().digest_size


@cache
def model_sources(*more: str) -> str:
    """Return a hash of the code that decides what a mapping costs and which are found, and of ``more`` rooms."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for room in ("hardware", "workload", "mapping", "cost", "search", *more):
        for folder, folders, names in os.walk(root / room):
            folders[:] = sorted({*folders} - {"__pycache__"})  # in which most files are
            for name in sorted(names):
                if name.endswith((".py", ".yaml", ".json")):
                    digest.update(Path(folder, name).read_bytes())
    return digest.hexdigest()[:16]


class KeptValues:
    """Values of one kind, each by a text of all that decides it but for `model_sources`.

    What is damaged is worked out anew, never loaded; where nothing can be written, each process works out its own.

    Parameters
    ----------
    folder, kind
        Where the files are, and what their names begin with; others that are there are left alone.
    most
        How many there may be: then the older half goes. Those of other sources go as soon as one of these is written.
    """

    def __init__(self, folder: Path, kind: str, most: int) -> None:
        self.folder, self.kind, self.most = folder, kind, most
        self.files = most

    def value(self, key: str, make: Callable[[], T]) -> T:
        """Return what is kept under a key, or make it and keep it."""
        path = self.folder / f"{self.kind}-{model_sources()}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        if hashlib.sha256(content[_LENGTH:]).digest() == content[:_LENGTH]:
            found: T = pickle.loads(content[_LENGTH:])
            return found
        made = make()
        with suppress(OSError):
            self._keep(path, pickle.dumps(made))
        return made

    def _keep(self, path: Path, content: bytes) -> None:
        if self.files >= self.most:
            self._tidy()
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, hashlib.sha256(content).digest() + content, lasts=False)
        self.files += 1

    def _tidy(self) -> None:
        """Throw away files of other sources and, where there are too many, the older half of the others; count them."""
        every = list(self.folder.glob(f"{self.kind}-*"))
        own = sorted((path for path in every if path.name.startswith(f"{self.kind}-{model_sources()}-")),
                     key=lambda path: path.stat().st_mtime)
        left = own if len(own) < self.most else own[len(own) // 2:]
        for path in {*every} - {*left}:
            path.unlink(missing_ok=True)
        self.files = len(left)
