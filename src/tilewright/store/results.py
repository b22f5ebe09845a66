"""Values of jobs, by all that decides them: what has been computed once is there for the next run, and for others."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from tilewright.base import InputError, model_sources
from tilewright.store.build import timestamp
from tilewright.store.opening import Database, insert_into
from tilewright.store.tables import RESULTS

FILE = "results.sqlite"
STUDIED = "allocation", "codesign", "fusion", "learn", "packing", "recommendation", "scheduling"
"""Rooms that a value may come from, other than those of the model."""
_AT_ONCE = 500


class Results(Database):
    """The values of one study's jobs in a store (a context); several runs may share it.

    Values belong to a version of Tilewright and of the study; those of others stay and are not used. Nor are those that
    other sources of the model computed.

    Parameters
    ----------
    place
        As of `Store`.
    fresh
        Forget all values of the study.
    keep_outdated
        Use values of other sources too, and tell how many.
    """

    def __init__(self, place: str | os.PathLike[str] | None, study: str, study_version: int = 1, *,
                 fresh: bool = False, keep_outdated: bool = False) -> None:
        super().__init__(place)
        self.study, self.fresh, self.keep_outdated = study, fresh, keep_outdated
        self.sources = model_sources(*STUDIED)
        self.belongs = {"study": study, "version": f"{version('tilewright')}/{study_version}"}
        self.taken: set[str] = set()
        """Values used that another run computed."""
        self.outdated: set[str] = set()
        """Those of them that other sources than the present ones computed."""
        self._put: set[str] = set()

    def __enter__(self) -> Self:
        with self.transaction(write=self.fresh) as connection:
            if self.fresh:
                connection.execute(sa.delete(RESULTS).where(RESULTS.c.study == self.study))
        return self

    def take(self, jobs: Sequence[Mapping[str, object]]) -> list[Any]:
        """Return the value kept for each job, None where there is none that may be used."""
        keys = [self.key(job) for job in jobs]
        found = dict(self._read(keys))
        for key in found:
            if key not in self._put:
                self.taken.add(key)
        return [json.loads(found[key]) if key in found else None for key in keys]

    def put(self, job: Mapping[str, object], value: Any) -> None:
        """Keep the value of a job, unless another run has kept one; it is on the disk when this returns."""
        row = {"key": self.key(job), "sources": self.sources, "study": self.study, "job": json.dumps(dict(job)),
               "value": json.dumps(value), "computed": timestamp()}
        self._put.add(row["key"])
        with self.transaction(write=True) as connection:
            connection.execute(insert_into(connection, RESULTS).values(row).on_conflict_do_nothing())

    def key(self, job: Mapping[str, object]) -> str:
        """Return what a job is kept under: a hash of all that decides its value."""
        text = json.dumps({**self.belongs, "cell": dict(job)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _read(self, keys: Sequence[str]) -> Iterator[tuple[str, str]]:
        columns = RESULTS.c.key, RESULTS.c.sources, RESULTS.c.value
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first:first + _AT_ONCE]
            query = sa.select(*columns).where(RESULTS.c.key.in_(some)).order_by(RESULTS.c.computed)
            if not self.keep_outdated:
                query = query.where(RESULTS.c.sources == self.sources)
            with self.transaction() as connection:
                rows = connection.execute(query).all()
            present = {row.key for row in rows if row.sources == self.sources}
            self.outdated |= {row.key for row in rows} - present
            yield from ((row.key, row.value) for row in rows if row.sources == self.sources or row.key not in present)


def kept_in(folder: str | os.PathLike[str] | None, study: str) -> AbstractContextManager[Results | None]:
    """Return `results_in` for a study of the user's own; without a folder, nothing is kept."""
    return nullcontext() if folder is None else results_in(folder, study)


def results_in(folder: str | os.PathLike[str], study: str, study_version: int = 1, *, fresh: bool = False,
               keep_outdated: bool = False) -> Results:
    """Return where the values of a study are kept: in its folder, or in the database that ``TILEWRIGHT_STORE`` names.

    A file that is named there holds runs alone. A folder that cannot be written is an `InputError`.
    """
    path, shared = Path(folder), os.environ.get("TILEWRIGHT_STORE", "")
    try:
        path.mkdir(parents=True, exist_ok=True)
        writable = os.access(path, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise InputError("--out", "must be a folder that can be written", str(path))
    place = shared if "://" in shared and not shared.startswith("sqlite") else path / FILE
    return Results(place, study, study_version, fresh=fresh, keep_outdated=keep_outdated)
