"""What a study has computed so far: one line of JSON for each cell, written as it ends."""

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from tilewright.base import InputError
from tilewright.store import model_sources

FILE = "cells.jsonl"


class CellFile:
    """The cells of one study in one folder, open for one run at a time (a context).

    A line that is broken off (the machine went down) is passed over. Cells belong to a version of Tilewright and of the
    study; those of others stay in the file and are not used. Nor are those that other sources of the model computed.

    Parameters
    ----------
    fresh
        Forget all cells.
    keep_outdated
        Use cells of other sources too, and tell how many.

    Raises
    ------
    InputError
        If the folder cannot be written, or another run has it open.
    """

    def __init__(self, folder: Path, study: str, study_version: int, *, fresh: bool = False,
                 keep_outdated: bool = False) -> None:
        self.path = folder / FILE
        self.belongs = {"study": study, "version": f"{version('tilewright')}/{study_version}"}
        self.fresh, self.keep_outdated = fresh, keep_outdated
        self.found: dict[str, dict[str, Any]] = {}
        self.taken: set[str] = set()
        """Cells used that an earlier run computed."""
        self.outdated: set[str] = set()
        """Those of them that other sources than the present ones computed."""
        self._put: set[str] = set()

    def __enter__(self) -> "CellFile":
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("a+", encoding="utf-8")
        except OSError as error:
            raise InputError("--out", "must be a folder that can be written", str(self.path.parent),
                             error.strerror or str(error)) from None
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.close()
            raise InputError("--out", "must not be in use by another run", str(self.path.parent),
                             "Wait for it, or give another folder") from None
        if self.fresh:
            self.file.truncate(0)
        self._read()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.file.close()

    def get(self, cell: Mapping[str, object]) -> dict[str, Any] | None:
        """Return the value kept for a cell, None if there is none that may be used."""
        key = self.key(cell)
        line = self.found.get(key)
        if line is None:
            return None
        if line["sources"] != model_sources():
            if not self.keep_outdated:
                return None
            self.outdated.add(key)
        if key not in self._put:
            self.taken.add(key)
        value: dict[str, Any] = line["value"]
        return value

    def put(self, cell: Mapping[str, object], value: dict[str, Any]) -> None:
        """Keep the value of a cell; it is on the disk when this returns."""
        line = {"key": self.key(cell), "cell": dict(cell), "value": value, "sources": model_sources(),
                "when": datetime.now(UTC).isoformat(timespec="seconds")}
        self.found[line["key"]] = line  # type: ignore[index]
        self._put.add(line["key"])  # type: ignore[arg-type]
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def key(self, cell: Mapping[str, object]) -> str:
        """Return what a cell is kept under: a hash of all that decides its value."""
        text = json.dumps({**self.belongs, "cell": dict(cell)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _read(self) -> None:
        self.file.seek(0)
        text = self.file.read()
        for text_line in text.splitlines():
            try:
                line = json.loads(text_line)
                if self.found.get(line["key"], {}).get("sources") != model_sources():  # those of the present ones stay
                    self.found[line["key"]] = {"value": line["value"], "sources": line["sources"]}
            except (ValueError, KeyError, TypeError):
                continue
        if text and not text.endswith("\n"):
            self.file.write("\n")
