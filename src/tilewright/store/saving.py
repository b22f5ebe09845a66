"""Nothing that was computed is lost: a run goes to the store, or else to a file, and never raises."""

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilewright.base import InputError
from tilewright.store.codec import write_run
from tilewright.store.database import Store
from tilewright.store.record import RunRecord


@dataclass(frozen=True)
class Kept:
    """Where a run went: ``place`` is the store's URL or a file, ``warning`` is empty when all went well."""

    place: str
    stored: bool
    warning: str = ""


def keep(record: RunRecord, place: str | os.PathLike[str] | None = None) -> Kept:
    """Append a run to the store; if that fails, write it as JSON here or to the temporary directory.

    A failure is told in ``warning`` in one line, for the caller to print; results stay with the caller in any case.
    """
    store = Store(place)
    try:
        with store:
            store.append(record)
        return Kept(store.url, stored=True)
    # Whatever a database or its driver raises must not cost the result.
    except Exception as error:
        problem = f"The run was not stored: {error}"
    path = rescued(record)
    if path is None:
        return Kept("", stored=False, warning=f"{problem} No file could be written instead.")
    return Kept(str(path), stored=False, warning=f"{problem} It was written to {path} instead.")


def rescued(record: RunRecord) -> Path | None:
    """Write a run as JSON here or to the temporary directory; return where, None where nothing can be."""
    for directory in (Path.cwd(), Path(tempfile.gettempdir())):
        with suppress(InputError):
            return write_run(record, directory / f"tilewright-run-{record.id}.json")
    return None
