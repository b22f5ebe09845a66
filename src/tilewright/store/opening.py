"""Where the store is, and how its database is opened, locked and lifted to the present schema."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from tilewright.base import InputError
from tilewright.store.tables import META, SCHEMA

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

BUSY_SECONDS = 30.0
"""How long a writer waits for another one, and a client for a server."""
_LOCK = 7_245_301_118
"""Number of the PostgreSQL lock under which a schema is lifted."""
_READABLE = 1
"""Oldest schema whose runs can be read where it cannot be lifted."""
Insert: TypeAlias = "sqlite.Insert | postgresql.Insert"
_DIALECTS = "sqlite", "postgresql"


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


class Database:
    """A database at the present schema (a context), opened when first used.

    Parameters
    ----------
    place
        See `store_url`.
    busy_seconds
        How long to wait for another writer, and for a server to answer.

    Raises
    ------
    InputError
        By any method, if the database cannot be opened, read or written, or is of a newer schema.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None, busy_seconds: float | None = None) -> None:
        self.url = store_url(place)
        self.busy_seconds = BUSY_SECONDS if busy_seconds is None else busy_seconds
        self._engine: Engine | None = None

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return shown_url(self.url)

    @property
    def missing(self) -> bool:
        """Whether it is a file that is not there yet."""
        try:
            parsed = sa.make_url(self.url)
        except sa.exc.ArgumentError:
            return False
        file = parsed.database if parsed.get_backend_name() == "sqlite" else None
        return bool(file) and not str(file).startswith((":memory:", "file:")) and not Path(str(file)).exists()

    def there(self) -> Self:
        """Return it, to be read; a file that is not there is an `InputError`, and is not made."""
        if self.missing:
            raise InputError(f"store {self.shown}", "must be there", None,
                             "Fill one: tilewright map NETWORK --arch ARCH --store FILE")
        return self

    def close(self) -> None:
        """Let go of the database; the next call opens it again."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Connection]:
        """Open a transaction on the database, made or lifted to the present schema where needed."""
        try:
            if self._engine is None:
                self._engine = _open(self.url, self.busy_seconds)
            with self._engine.connect() as connection:
                _begin(connection, write=write)
                yield connection
                connection.commit()
        except (sa.exc.SQLAlchemyError, OSError, ImportError, OverflowError) as error:
            self.close()
            raise _failure(self.url, error, self.busy_seconds) from None


def _open(url: str, busy_seconds: float) -> Engine:
    """Return an engine whose database has the present schema."""
    parsed = sa.make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    backend = parsed.get_backend_name()
    options: dict[str, Any] = {}
    if backend == "sqlite":
        options["connect_args"] = {"timeout": busy_seconds}
        if parsed.database and not parsed.database.startswith((":memory:", "file:")):
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            parsed = _as_far_as_allowed(parsed)
    elif backend == "postgresql":
        # Connections that a server has closed meanwhile are replaced; waiting for locks ends as for files.
        options["pool_pre_ping"] = True
        if "connect_timeout" not in parsed.query:
            options["connect_args"] = {"connect_timeout": max(2, round(busy_seconds)),
                                       "options": f"-c lock_timeout={round(1000 * busy_seconds)}"}
    engine = sa.create_engine(parsed, **options)
    if backend == "sqlite":
        sa.event.listen(engine, "connect", _configure_sqlite)
    try:
        _lift(engine, url)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _as_far_as_allowed(url: sa.URL) -> sa.URL:
    """Return the URL of a SQLite file, for reading alone where neither it nor files beside it can be written."""
    path = Path(str(url.database))
    if not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return url
    # SQLite keeps a journal beside a file that may change; one that cannot has none that matters.
    journal = path.with_name(f"{path.name}-wal")
    still = {} if journal.exists() and journal.stat().st_size else {"immutable": "1"}
    return url.set(database=path.absolute().as_uri(), query={"mode": "ro", **still, "uri": "true"})


def _configure_sqlite(connection: Any, _: object) -> None:
    """Let SQLAlchemy alone begin transactions; check foreign keys."""
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: Connection, *, write: bool) -> None:
    """Begin a transaction; on SQLite a writer takes its lock at once, so that it waits for others and never fails."""
    connection.begin()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _lift(engine: Engine, url: str) -> None:
    with engine.connect() as connection:
        found = _schema(connection)
    if found == SCHEMA:
        return
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                connection.rollback()
            _begin(connection, write=True)
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("select pg_advisory_xact_lock(:number)"), {"number": _LOCK})
            _lift_locked(connection, url)
            connection.commit()
    except sa.exc.OperationalError as error:
        if found < _READABLE or "readonly" not in str(error):
            raise


def _lift_locked(connection: Connection, url: str) -> None:
    """Lift the schema, which another process may just have done."""
    found = _schema(connection)
    if found > SCHEMA:
        raise InputError(f"store {shown_url(url)}", f"must be a store of schema {SCHEMA} or older", found,
                         "Upgrade Tilewright, or choose another store with TILEWRIGHT_STORE")
    if found < SCHEMA:
        from tilewright.store.migrations import lift  # noqa: PLC0415  (Alembic loads only where there is work for it)

        lift(connection, found)
        connection.execute(sa.delete(META).where(META.c.key == "schema"))
        connection.execute(sa.insert(META), {"key": "schema", "value": str(SCHEMA)})


def _schema(connection: Connection) -> int:
    if not sa.inspect(connection).has_table(META.name):
        return 0
    return int(connection.execute(sa.select(META.c.value).where(META.c.key == "schema")).scalar() or 0)


def insert_into(connection: Connection, table: sa.Table) -> Insert:
    """Return what inserts into a table, and can be told what to do where such a row is there already."""
    if connection.dialect.name not in _DIALECTS:
        raise InputError(f"store {connection.engine.url.render_as_string()}",
                         "must be SQLite or PostgreSQL to keep a library or results", connection.dialect.name)
    dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")  # the other one takes long to load
    made: Insert = dialect.insert(table)
    return made


def shown_url(url: str) -> str:
    """Return a URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return url


def _failure(url: str, error: Exception, busy_seconds: float) -> InputError:
    """Return one clear error for whatever the database said."""
    original = getattr(error, "orig", None) or error
    detail = str(original).splitlines()[0] if str(original) else type(original).__name__
    if "not a database" in detail or "malformed" in detail:
        mend = "The file is damaged or something else: move it away, or choose another with TILEWRIGHT_STORE"
    elif "locked" in detail or "busy" in detail or "lock timeout" in detail:
        mend = f"Another process has held it for {busy_seconds:.0f} s: try again when it has ended"
    elif isinstance(error, ImportError) and "psycopg" in detail:
        mend = "pip install 'tilewright[postgres]'"
    elif isinstance(error, ImportError | sa.exc.NoSuchModuleError):
        mend = "Install the database's driver, or use a SQLite file"
    else:
        mend = "Check the place and its permissions, or choose another with TILEWRIGHT_STORE"
    return InputError(f"store {shown_url(url)}", "must be a database that can be read and written", detail, mend)
