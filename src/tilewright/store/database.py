"""The store: an append-only database of runs and their layers, SQLite by default."""

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from tilewright.base import InputError
from tilewright.store.codec import record_to_json, run_from_json, write_whole
from tilewright.store.record import LayerRecord, RunRecord

BUSY_SECONDS = 30.0
"""How long a writer waits for another one."""

_METADATA = sa.MetaData()
_META = sa.Table("tilewright_meta", _METADATA, sa.Column("key", sa.String(32), primary_key=True),
                 sa.Column("value", sa.String(64), nullable=False))
_RUNS = sa.Table(
    "runs", _METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("created", sa.String(40), nullable=False, index=True),
    sa.Column("tilewright_version", sa.String(32), nullable=False),
    sa.Column("network", sa.Text, nullable=False, index=True),
    sa.Column("network_sha256", sa.String(64), nullable=False),
    sa.Column("accelerator", sa.Text, nullable=False, index=True),
    sa.Column("accelerator_sha256", sa.String(64), nullable=False),
    sa.Column("objective", sa.Text, nullable=False),
    sa.Column("mapper", sa.Text, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("budget_samples", sa.BigInteger),
    sa.Column("budget_seconds", sa.Float),
    sa.Column("layers", sa.Integer, nullable=False),
    sa.Column("unmapped_layers", sa.Integer, nullable=False),
    sa.Column("latency_cycles", sa.BigInteger, nullable=False),
    sa.Column("energy_pj", sa.Float, nullable=False),
    sa.Column("edp", sa.Float, nullable=False),
    sa.Column("macs", sa.BigInteger, nullable=False),
    sa.Column("utilisation", sa.Float, nullable=False),
    sa.Column("area_um2", sa.Float, nullable=False),
    sa.Column("search_seconds", sa.Float, nullable=False),
    sa.Column("samples", sa.BigInteger, nullable=False),
    sa.Column("record", sa.Text, nullable=False),
)
_LAYERS = sa.Table(
    "layers", _METADATA,
    sa.Column("run_id", sa.String(64), sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("shape", sa.Text, nullable=False),
    sa.Column("operator_sha256", sa.String(64), nullable=False, index=True),
    sa.Column("macs", sa.BigInteger, nullable=False),
    sa.Column("latency_cycles", sa.BigInteger),
    sa.Column("energy_pj", sa.Float),
    sa.Column("edp", sa.Float),
    sa.Column("utilisation", sa.Float),
    sa.Column("bottleneck", sa.Text),
    sa.Column("bound_latency_cycles", sa.BigInteger),
    sa.Column("bound_energy_pj", sa.Float),
    sa.Column("score", sa.Float),
    sa.Column("samples", sa.BigInteger),
    sa.Column("legal_samples", sa.BigInteger),
    sa.Column("seconds", sa.Float),
    sa.Column("seed", sa.Text),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("record", sa.Text, nullable=False),
)


def _create_tables(connection: Connection) -> None:
    _METADATA.create_all(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create_tables,)
"""Step i lifts a database from schema i to i + 1; a fresh one is at 0."""


@dataclass(frozen=True)
class RunSummary:
    """The columns of a stored run that can be asked for without reading it whole."""

    id: str
    created: str
    tilewright_version: str
    network: str
    network_sha256: str
    accelerator: str
    accelerator_sha256: str
    objective: str
    mapper: str
    seed: int
    budget_samples: int | None
    budget_seconds: float | None
    layers: int
    unmapped_layers: int
    latency_cycles: int
    energy_pj: float
    edp: float
    macs: int
    utilisation: float
    area_um2: float
    search_seconds: float
    samples: int


_SUMMARY_COLUMNS = tuple(_RUNS.c[name] for name in RunSummary.__dataclass_fields__)
_LAYER_COLUMNS = tuple(column for column in _LAYERS.c if column.name not in {"run_id", "position", "record"})


def default_path() -> Path:
    """Return the store's file in the platform's data directory."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return base / "tilewright" / "runs.sqlite"


def store_url(place: str | os.PathLike[str] | None = None) -> str:
    """Return the database URL for a path or URL; where None, for ``TILEWRIGHT_STORE`` or the default file."""
    chosen = os.fspath(place) if place is not None else os.environ.get("TILEWRIGHT_STORE", "") or str(default_path())
    if "://" in chosen:
        return chosen
    url = sa.URL.create("sqlite", database=str(Path(chosen).expanduser().absolute()))
    return url.render_as_string(hide_password=False)


class Store:
    """Runs, appended and never changed.

    Parameters
    ----------
    place
        A file, or a SQLAlchemy URL; None takes ``TILEWRIGHT_STORE`` or the file in the platform's data directory.

    Raises
    ------
    InputError
        By any method, if the database cannot be opened, read or written, or is of a newer schema.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self.url = store_url(place)
        self._engine: Engine | None = None

    def append(self, record: RunRecord) -> str:
        """Add a run with its layers in one transaction, and return its identity."""
        with self._connection(write=True) as connection:
            if connection.execute(sa.select(_RUNS.c.id).where(_RUNS.c.id == record.id)).first():
                raise InputError("run.id", f"must be new, but {_shown(self.url)} holds it already", record.id,
                                 "Runs are appended once and never changed")
            connection.execute(sa.insert(_RUNS), _run_row(record))
            rows = [_layer_row(record.id, index, layer) for index, layer in enumerate(record.layers)]
            if rows:
                connection.execute(sa.insert(_LAYERS), rows)
        return record.id

    def runs(self, network: str | None = None, accelerator: str | None = None,
             limit: int | None = None) -> tuple[RunSummary, ...]:
        """Return what is stored, newest first."""
        query = sa.select(*_SUMMARY_COLUMNS).order_by(_RUNS.c.created.desc(), _RUNS.c.id.desc()).limit(limit)
        if network is not None:
            query = query.where(_RUNS.c.network == network)
        if accelerator is not None:
            query = query.where(_RUNS.c.accelerator == accelerator)
        with self._connection() as connection:
            return tuple(RunSummary(**row) for row in connection.execute(query).mappings())

    def get(self, run_id: str) -> RunRecord:
        """Return a run by its identity or an unambiguous beginning of it; ``last`` is the newest."""
        with self._connection() as connection:
            return _read(connection, _resolve(connection, run_id, self.url))

    def export_json(self, path: str | os.PathLike[str], run_ids: tuple[str, ...] | None = None) -> int:
        """Write runs (all where None) as a JSON array, oldest first, and return how many."""
        with self._connection() as connection:
            records = [_read(connection, found) for found in self._chosen(connection, run_ids)]
        write_whole(Path(path), "[" + ",\n".join(record_to_json(record) for record in records) + "]\n")
        return len(records)

    def export_csv(self, path: str | os.PathLike[str], run_ids: tuple[str, ...] | None = None) -> int:
        """Write one row per stored layer, with the columns of its run in front, and return how many rows."""
        columns = [*(column.label(f"run_{column.name}") for column in _SUMMARY_COLUMNS), *_LAYER_COLUMNS]
        query = (sa.select(*columns).join(_LAYERS, _LAYERS.c.run_id == _RUNS.c.id)
                 .order_by(_RUNS.c.created, _RUNS.c.id, _LAYERS.c.position))
        with self._connection() as connection:
            if run_ids is not None:
                query = query.where(_RUNS.c.id.in_(self._chosen(connection, run_ids)))
            result = connection.execute(query)
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(result.keys())
            rows = [tuple(row) for row in result]
            writer.writerows(rows)
        write_whole(Path(path), text.getvalue())
        return len(rows)

    def close(self) -> None:
        """Let go of the database; the next call opens it again."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chosen(self, connection: Connection, run_ids: tuple[str, ...] | None) -> list[str]:
        if run_ids is not None:
            return [_resolve(connection, run_id, self.url) for run_id in run_ids]
        return list(connection.execute(sa.select(_RUNS.c.id).order_by(_RUNS.c.created, _RUNS.c.id)).scalars())

    @contextmanager
    def _connection(self, *, write: bool = False) -> Iterator[Connection]:
        """Open a transaction on the database, made or lifted to the present schema where needed."""
        try:
            if self._engine is None:
                self._engine = _open(self.url)
            with self._engine.connect() as connection:
                _begin(connection, write=write)
                yield connection
                connection.commit()
        except (sa.exc.SQLAlchemyError, OSError, ImportError, OverflowError) as error:
            self.close()
            raise _failure(self.url, error) from None


def _open(url: str) -> Engine:
    """Return an engine whose database has the present schema."""
    parsed = sa.make_url(url)
    sqlite = parsed.get_backend_name() == "sqlite"
    if sqlite and parsed.database and not parsed.database.startswith((":memory:", "file:")):
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"connect_args": {"timeout": BUSY_SECONDS}} if sqlite else {}
    engine = sa.create_engine(parsed, **options)
    if sqlite:
        sa.event.listen(engine, "connect", _configure_sqlite)
    try:
        _migrate(engine, url)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _configure_sqlite(connection: Any, _: object) -> None:
    """Let SQLAlchemy alone begin transactions; check foreign keys."""
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: Connection, *, write: bool) -> None:
    """Begin a transaction; on SQLite a writer takes its lock at once, so that it waits for others and never fails."""
    connection.begin()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _migrate(engine: Engine, url: str) -> None:
    with engine.connect() as connection:
        if _schema(connection) == len(MIGRATIONS):
            return
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            connection.rollback()
        _begin(connection, write=True)
        found = _schema(connection)
        if found > len(MIGRATIONS):
            raise InputError(f"store {_shown(url)}", f"must be a store of schema {len(MIGRATIONS)} or older", found,
                             "Upgrade Tilewright, or choose another store with TILEWRIGHT_STORE")
        for step in MIGRATIONS[found:]:
            step(connection)
        connection.execute(sa.delete(_META).where(_META.c.key == "schema"))
        connection.execute(sa.insert(_META), {"key": "schema", "value": str(len(MIGRATIONS))})
        connection.commit()


def _schema(connection: Connection) -> int:
    if not sa.inspect(connection).has_table(_META.name):
        return 0
    return int(connection.execute(sa.select(_META.c.value).where(_META.c.key == "schema")).scalar() or 0)


def _shown(url: str) -> str:
    """Return a URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return url


def _failure(url: str, error: Exception) -> InputError:
    """Return one clear error for whatever the database said."""
    original = getattr(error, "orig", None) or error
    detail = str(original).splitlines()[0] if str(original) else type(original).__name__
    if "not a database" in detail or "malformed" in detail:
        mend = "The file is damaged or something else: move it away, or choose another with TILEWRIGHT_STORE"
    elif "locked" in detail or "busy" in detail:
        mend = f"Another process has held it for {BUSY_SECONDS:.0f} s: try again when it has ended"
    elif isinstance(error, ImportError | sa.exc.NoSuchModuleError):
        mend = "Install the database's driver, or use a SQLite file"
    else:
        mend = "Check the place and its permissions, or choose another with TILEWRIGHT_STORE"
    return InputError(f"store {_shown(url)}", "must be a database that can be read and written", detail, mend)


def _resolve(connection: Connection, run_id: str, url: str) -> str:
    newest = sa.select(_RUNS.c.id).order_by(_RUNS.c.created.desc(), _RUNS.c.id.desc())
    if run_id == "last":
        found = list(connection.execute(newest.limit(1)).scalars())
    else:
        exact = list(connection.execute(newest.where(_RUNS.c.id == run_id)).scalars())
        found = exact or list(connection.execute(
            newest.where(_RUNS.c.id.startswith(run_id, autoescape=True)).limit(4)).scalars())
    if len(found) == 1:
        return str(found[0])
    if found:
        raise InputError("run", "must be an unambiguous beginning of one identity", run_id,
                         f"It fits {', '.join(found)}")
    known = ", ".join(connection.execute(newest.limit(3)).scalars())
    raise InputError("run", f"must be stored in {_shown(url)}", run_id,
                     f"The newest are {known}" if known else "It holds no runs yet")


def _run_row(record: RunRecord) -> dict[str, Any]:
    bare = json.loads(record_to_json(record))
    bare["layers"] = []
    totals = record.totals
    return {
        "id": record.id, "created": record.created, "tilewright_version": record.software.tilewright,
        "network": record.network.name, "network_sha256": record.network.sha256,
        "accelerator": record.accelerator.name, "accelerator_sha256": record.accelerator.sha256,
        "objective": record.request.objective, "mapper": record.request.mapper, "seed": record.request.seed,
        "budget_samples": record.request.budget_samples, "budget_seconds": record.request.budget_seconds,
        "layers": len(record.layers), "search_seconds": totals.seconds,
        **{name: value for name, value in asdict(totals).items() if name in _RUNS.c},
        "record": json.dumps(bare, ensure_ascii=False),
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
    bare = json.loads(connection.execute(sa.select(_RUNS.c.record).where(_RUNS.c.id == run_id)).scalar_one())
    texts = connection.execute(
        sa.select(_LAYERS.c.record).where(_LAYERS.c.run_id == run_id).order_by(_LAYERS.c.position)).scalars()
    bare["layers"] = [json.loads(text) for text in texts]
    return run_from_json(json.dumps(bare), f"run {run_id}")
