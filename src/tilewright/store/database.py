"""The store: an append-only database of runs and their layers, SQLite by default; a file for what it cannot take."""

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tilewright.base import InputError, csv_text, write_whole
from tilewright.store.codec import layer_from_json, record_to_json, run_from_json, write_run
from tilewright.store.opening import Database, shown_url
from tilewright.store.record import AnswerRecord, LayerRecord, RunRecord
from tilewright.store.tables import LAYERS, RUNS, RunSummary

_SUMMARY_COLUMNS = tuple(RUNS.c[name] for name in RunSummary.__dataclass_fields__)
_LAYER_COLUMNS = tuple(column for column in LAYERS.c if column.name not in {"run_id", "position", "record"})


class Store(Database):
    """Runs, appended and never changed.

    Parameters
    ----------
    place
        A file, or a SQLAlchemy URL; None takes ``TILEWRIGHT_STORE`` or the file in the platform's data directory.
    """

    def append(self, record: RunRecord) -> str:
        """Add a run with its layers in one transaction, and return its identity."""
        with self.transaction(write=True) as connection:
            if connection.execute(sa.select(RUNS.c.id).where(RUNS.c.id == record.id)).first():
                raise InputError("run.id", f"must be new, but {shown_url(self.url)} holds it already", record.id,
                                 "Runs are appended once and never changed")
            connection.execute(sa.insert(RUNS), _run_row(record))
            rows = [_layer_row(record.id, index, layer) for index, layer in enumerate(record.layers)]
            if rows:
                connection.execute(sa.insert(LAYERS), rows)
        return record.id

    def runs(self) -> tuple[RunSummary, ...]:
        """Return what is stored, newest first."""
        query = sa.select(*_SUMMARY_COLUMNS).order_by(RUNS.c.created.desc(), RUNS.c.id.desc())
        with self.transaction() as connection:
            return tuple(RunSummary(**row) for row in connection.execute(query).mappings())

    def get(self, run_id: str) -> RunRecord:
        """Return a run by its identity or an unambiguous beginning of it; ``last`` is the newest."""
        with self.transaction() as connection:
            return _read(connection, _resolve(connection, run_id, self.url))

    def answer(self, operator_sha256: str, key: str) -> tuple[AnswerRecord, LayerRecord] | None:
        """Return the newest layer whose search had this key, and the run that made it; None where there is none."""
        query = (sa.select(RUNS.c.id, RUNS.c.created, LAYERS.c.record).join(LAYERS, LAYERS.c.run_id == RUNS.c.id)
                 .where(LAYERS.c.operator_sha256 == operator_sha256,
                        LAYERS.c.record.contains(json.dumps({"key": key})[1:-1]))
                 .order_by(RUNS.c.created.desc(), RUNS.c.id.desc()).limit(1))
        with self.transaction() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        layer = layer_from_json(row.record, f"run {row.id}")
        told = layer.search and layer.search.answer
        return told or AnswerRecord(row.id, row.created), layer

    def export_json(self, path: str | os.PathLike[str], run_ids: tuple[str, ...] | None = None) -> int:
        """Write runs (all where None) as a JSON array, oldest first, and return how many."""
        with self.transaction() as connection:
            records = [_read(connection, found) for found in self._chosen(connection, run_ids)]
        write_whole(Path(path), "[" + ",\n".join(record_to_json(record) for record in records) + "]\n")
        return len(records)

    def export_csv(self, path: str | os.PathLike[str], run_ids: tuple[str, ...] | None = None) -> int:
        """Write one row per stored layer, with the columns of its run in front, and return how many rows."""
        columns = [*(column.label(f"run_{column.name}") for column in _SUMMARY_COLUMNS), *_LAYER_COLUMNS]
        query = (sa.select(*columns).join(LAYERS, LAYERS.c.run_id == RUNS.c.id)
                 .order_by(RUNS.c.created, RUNS.c.id, LAYERS.c.position))
        with self.transaction() as connection:
            if run_ids is not None:
                query = query.where(RUNS.c.id.in_(self._chosen(connection, run_ids)))
            result = connection.execute(query)
            rows = [tuple(row) for row in result]
        write_whole(Path(path), csv_text([result.keys(), *rows]))
        return len(rows)

    def _chosen(self, connection: Connection, run_ids: tuple[str, ...] | None) -> list[str]:
        if run_ids is not None:
            return [_resolve(connection, run_id, self.url) for run_id in run_ids]
        return list(connection.execute(sa.select(RUNS.c.id).order_by(RUNS.c.created, RUNS.c.id)).scalars())


def _resolve(connection: Connection, run_id: str, url: str) -> str:
    newest = sa.select(RUNS.c.id).order_by(RUNS.c.created.desc(), RUNS.c.id.desc())
    if run_id == "last":
        found = list(connection.execute(newest.limit(1)).scalars())
    else:
        exact = list(connection.execute(newest.where(RUNS.c.id == run_id)).scalars())
        found = exact or list(connection.execute(
            newest.where(RUNS.c.id.startswith(run_id, autoescape=True)).limit(4)).scalars())
    if len(found) == 1:
        return str(found[0])
    if found:
        raise InputError("run", "must be an unambiguous beginning of one identity", run_id,
                         f"It fits {', '.join(found)}")
    known = ", ".join(connection.execute(newest.limit(3)).scalars())
    raise InputError("run", f"must be stored in {shown_url(url)}", run_id,
                     f"The newest are {known}" if known else "It holds no runs yet")


def _run_row(record: RunRecord) -> dict[str, Any]:
    totals = record.totals
    return {
        "id": record.id, "created": record.created, "tilewright_version": record.software.tilewright,
        "network": record.network.name, "network_sha256": record.network.sha256,
        "accelerator": record.accelerator.name, "accelerator_sha256": record.accelerator.sha256,
        "objective": record.request.objective, "mapper": record.request.mapper, "seed": record.request.seed,
        "budget_samples": record.request.budget_samples, "budget_seconds": record.request.budget_seconds,
        "layers": len(record.layers), "search_seconds": totals.seconds,
        **{name: value for name, value in asdict(totals).items() if name in RUNS.c},
        "record": record_to_json(replace(record, layers=())),
    }


def _layer_row(run_id: str, position: int, layer: LayerRecord) -> dict[str, Any]:
    cost, bounds, search = layer.cost, layer.bounds, layer.search
    return {
        "run_id": run_id, "position": position, "name": layer.name, "count": layer.count,
        "kind": layer.operator.kind, "shape": layer.operator.short, "operator_sha256": layer.operator.sha256,
        "macs": layer.macs, "reason": layer.reason, "record": record_to_json(layer),
        **{name: getattr(cost, name, None)
           for name in ("latency_cycles", "energy_pj", "edp", "utilisation", "bottleneck")},
        "bound_latency_cycles": bounds and bounds.latency_cycles, "bound_energy_pj": bounds and bounds.energy_pj,
        **{name: getattr(search, name, None) for name in ("score", "samples", "legal_samples", "seconds")},
        "seed": None if search is None else str(search.seed),
    }


def _read(connection: Connection, run_id: str) -> RunRecord:
    where = f"run {run_id}"
    bare = _plain(connection.execute(sa.select(RUNS.c.record).where(RUNS.c.id == run_id)).scalar_one(), where)
    rows = connection.execute(
        sa.select(LAYERS.c.name, LAYERS.c.record).where(LAYERS.c.run_id == run_id).order_by(LAYERS.c.position))
    bare["layers"] = [_plain(row.record, f"{where}, layer {row.name}") for row in rows]
    return run_from_json(json.dumps(bare), where)


def _plain(text: str, where: str) -> dict[str, Any]:
    """Return the JSON object that was stored; a damaged one is named."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError) as error:
        found = error
    if not isinstance(found, dict):
        raise InputError(where, "must be whole in the store, but is damaged", str(found), "Others can still be read")
    return found


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
