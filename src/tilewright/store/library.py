"""The library: the best mapping known of every operator, machine, objective and map space, to begin searches from."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from datetime import datetime
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tilewright.base import InputError, write_whole
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping, MapSpace
from tilewright.store.build import operator_fingerprint, software_record, timestamp
from tilewright.store.codec import fingerprint
from tilewright.store.layer_records import level_records
from tilewright.store.opening import Database, Insert, insert_into
from tilewright.store.tables import KEY, LIBRARY, Entry
from tilewright.workload import edit_distance, form

MODEL = "tilewright 1"
"""Whose models scored an entry, and the version of their rules: scores of others do not compare."""
WAIT_SECONDS = 5.0
"""How long to wait for other writers before going on without the library."""
WRITE_SECONDS = 1.0
"""How long a run waits at least from writing mappings to writing more."""
READ_AT_ONCE = 100
"""Entries that one query asks for, as databases limit how many values it may hold."""

T = TypeVar("T")


@dataclass(frozen=True)
class Provenance:
    """The search that found a mapping."""

    network: str
    run_id: str
    mapper: str
    seed: str
    samples: int
    found: datetime | None = None


def entry(space: MapSpace, objective: str, mapping: Mapping, cost: tuple[float, int, float],
          provenance: Provenance) -> Entry:
    """Return the entry of the best mapping of a space; ``cost`` is its score, latency (cycles) and energy (pJ)."""
    operator, machine = space.operator, space.accelerator
    levels = [astuple(level) for level in level_records(mapping)]
    score, latency_cycles, energy_pj = cost
    return Entry(
        **problem(space, objective), form=form(operator), structure=structure(space),
        dimensions=json.dumps(operator.dimensions), score=float(score), latency_cycles=int(latency_cycles),
        energy_pj=float(energy_pj), mapping=json.dumps(levels), layer=operator.name, network=provenance.network,
        accelerator=machine.name, run_id=provenance.run_id, mapper=provenance.mapper, seed=provenance.seed,
        samples=provenance.samples, found=timestamp(provenance.found),
        tilewright_version=software_record().tilewright)


def problem(space: MapSpace, objective: str) -> dict[str, str]:
    """Return what a best mapping is the best of."""
    return {
        "operator_sha256": operator_fingerprint(space.operator),
        "accelerator_sha256": machine_fingerprint(space.accelerator), "objective": objective,
        "space_sha256": fingerprint(space.tiling, asdict(space.constraints)), "model": MODEL,
    }


@lru_cache(maxsize=64)
def machine_fingerprint(accelerator: Accelerator) -> str:
    """Return the fingerprint of all of a machine that decides costs of mappings, whatever it is called and cites."""
    plain = asdict(accelerator)
    for name in ("name", "technology", "sources", "assumptions", "vector"):
        del plain[name]
    if accelerator.footprint == "exact":  # what it was before there was another: fingerprints stay
        del plain["footprint"]
    return fingerprint(plain)


def structure(space: MapSpace) -> str:
    """Return where loops may stand, level by level from the outermost: machines alike in it lend mappings."""
    axes = [""] * len(space.layout.levels)
    for slot in space.layout.slots:
        axes[slot.level] += slot.axis
    return " ".join(axes)


class Library(Database):
    """The best mappings in a store.

    Parameters
    ----------
    place, busy_seconds
        See `tilewright.store.Store`; and how long to wait for other writers.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None, busy_seconds: float | None = None) -> None:
        super().__init__(place, WAIT_SECONDS if busy_seconds is None else busy_seconds)

    def add(self, found: Iterable[Entry]) -> int:
        """Keep those entries that are better than what is known, in one transaction; return how many."""
        # Always in one order, so that writers who hold several at a time cannot wait for each other in a circle.
        entries = sorted(found, key=lambda one: tuple(getattr(one, name) for name in KEY))
        changed = 0
        with self.transaction(write=True) as connection:
            upsert = _upsert(connection).returning(LIBRARY.c.model)  # made once: that takes longer than to run it
            for one in entries:
                changed += len(connection.execute(upsert, asdict(one)).all())
        return changed

    def entries(self) -> tuple[Entry, ...]:
        """Return what is kept, newest first."""
        query = sa.select(LIBRARY).order_by(LIBRARY.c.found.desc(), *(LIBRARY.c[name] for name in KEY))
        with self.transaction() as connection:
            return tuple(Entry(**row) for row in connection.execute(query).mappings())

    def get(self, identity: str) -> Entry:
        """Return an entry by its identity or an unambiguous beginning of it."""
        found = [one for one in self.entries() if one.id.startswith(identity)]
        if len(found) != 1:
            rule = f"must be in the library of {self.shown}" if not found else (
                "must be an unambiguous beginning of one identity")
            raise InputError("entry", rule, identity, "List them with: tilewright list library")
        return found[0]

    def nearest(self, spaces: Sequence[MapSpace], objective: str, count: int) -> list[tuple[Entry, ...]]:
        """Return for each space the entries of its form that are best to begin from, at most ``count``.

        Those of which the fewest sizes differ come first; of those the ones of the same machine rather than another of
        the same structure, then of the same objective; then by the ratios of the sizes, then those of an equal operator
        and space; then the newest.
        """
        columns = [LIBRARY.c[name] for name in (*KEY, "dimensions")]
        newest = LIBRARY.c.found.desc(), *(LIBRARY.c[name].desc() for name in KEY)
        wanted = [(form(space.operator), structure(space)) for space in spaces]
        with self.transaction() as connection:
            known = {pair: [dict(row) | {"sizes": dict(json.loads(row["dimensions"]))} for row in connection.execute(
                sa.select(*columns).where(LIBRARY.c.form == pair[0], LIBRARY.c.structure == pair[1])
                .order_by(*newest)).mappings()] for pair in set(wanted)}
            keys = [[tuple(row[name] for name in KEY) for row in _nearest(known[pair], space, objective)[:count]]
                    for pair, space in zip(wanted, spaces, strict=True)]
            found = _read(connection, sorted({key for each in keys for key in each}))
        return [tuple(found[key] for key in each) for each in keys]

    def prune(self, before: datetime | None = None, accelerator: str | None = None) -> int:
        """Remove the entries found before a moment, of one accelerator, or both (not neither); return how many."""
        if before is None and accelerator is None:
            raise InputError("prune", "must be told which entries", None, "Give a moment or an accelerator")
        query = sa.delete(LIBRARY)
        if before is not None:
            query = query.where(LIBRARY.c.found < timestamp(before))
        if accelerator is not None:
            query = query.where(LIBRARY.c.accelerator == accelerator)
        with self.transaction(write=True) as connection:
            return int(connection.execute(query).rowcount)

    def export_json(self, path: str | os.PathLike[str]) -> int:
        """Write all entries as a JSON array, newest first; return how many."""
        plain = [{"id": one.id} | asdict(one) | {
            "dimensions": json.loads(one.dimensions), "mapping": json.loads(one.mapping)} for one in self.entries()]
        write_whole(Path(path), json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
        return len(plain)


def _upsert(connection: Connection) -> Insert:
    """Return what inserts a row, or puts it in place of one of the same key with a worse score."""
    insert = insert_into(connection, LIBRARY)
    better = {column.name: column for column in insert.excluded if column.name not in KEY}
    return insert.on_conflict_do_update(index_elements=list(KEY), set_=better,
                                        where=LIBRARY.c.score > insert.excluded.score)


def _read(connection: Connection, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Entry]:
    columns = [LIBRARY.c[name] for name in KEY]
    found = [Entry(**row) for first in range(0, len(keys), READ_AT_ONCE) for row in connection.execute(
        sa.select(LIBRARY).where(sa.tuple_(*columns).in_(keys[first:first + READ_AT_ONCE]))).mappings()]
    return {tuple(getattr(one, name) for name in KEY): one for one in found}


def _nearest(known: list[dict[str, Any]], space: MapSpace, objective: str) -> list[dict[str, Any]]:
    """Return the rows, given newest first, in the order of how good they are to begin from."""
    wanted = problem(space, objective)

    def rank(row: dict[str, Any]) -> tuple[object, ...]:
        distance, ratio = edit_distance(space.operator.sizes, row["sizes"])
        other = {name: row[name] != wanted[name] for name in KEY}
        return (distance, other["accelerator_sha256"], other["objective"], ratio, other["operator_sha256"],
                other["space_sha256"], other["model"])

    return sorted(known, key=rank)


class RunLibrary:
    """The library during a run: where it cannot be reached, that is said once, and the run goes on without it.

    ``added`` counts the mappings that were better than what was known; ``warning`` says what went wrong, empty if
    nothing did. May be used from several threads.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None, busy_seconds: float | None = None) -> None:
        self.library = Library(place, busy_seconds)
        self.added = 0
        self.warning = ""
        self.waiting: list[Entry] = []
        self.written = -inf
        self._lock = threading.Lock()

    def nearest(self, spaces: Sequence[MapSpace], objective: str, count: int) -> list[tuple[Entry, ...]]:
        """Return what `Library.nearest` does, nothing where the library cannot be reached."""
        return self._tried(lambda: self.library.nearest(spaces, objective, count), [()] * len(spaces))

    def add(self, found: Entry) -> None:
        """Keep an entry if it is better than what is known and the library can be reached.

        What comes within a second of what was written waits for the next entry after that, or for `close`; a process
        that is killed before loses it.
        """
        with self._lock:
            self.waiting.append(found)
            due = time.monotonic() - self.written >= WRITE_SECONDS
        if due:
            self._write()

    def close(self) -> None:
        """Keep what is left, and let go of the database."""
        self._write()
        self.library.close()

    def _write(self) -> None:
        with self._lock:
            entries, self.waiting, self.written = self.waiting, [], time.monotonic()
        changed = self._tried(lambda: self.library.add(entries), 0) if entries else 0
        with self._lock:
            self.added += changed

    def _tried(self, action: Callable[[], T], otherwise: T) -> T:
        with self._lock:
            if self.warning:
                return otherwise
            try:
                return action()
            # Whatever a damaged row or a driver raises must not cost the search its result.
            except Exception as error:
                self.warning = f"The library of mappings is left out: {error}"
                self.library.close()
                return otherwise
