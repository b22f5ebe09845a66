"""Stores of released schemas are lifted in place, whatever holds them, and keep all that they hold."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from tilewright.base import InputError
from tilewright.store import Library, Store, store_url
from tilewright.store.tables import METADATA

# What `sqlite3 .dump` says of a store with two runs that was written before there was a library.
OLD = (Path(__file__).parent / "store_of_schema_1.sql").read_text()
RUNS = ["20260102-000000-bbbbbb", "20260101-000000-aaaaaa"]


@pytest.fixture
def old(tmp_path):
    place = tmp_path / "old.sqlite"
    with sqlite3.connect(place) as connection:
        connection.executescript(OLD)
    connection.close()
    return place


@pytest.fixture
def old_postgres(postgres_url):
    """The same store on a server, as version 0.1.0 made it there."""
    statements = [part.strip() for part in OLD.split(";\n")]
    tables = [part for name in ("tilewright_meta", "runs", "layers") for part in statements
              if part.startswith(f"CREATE TABLE {name} ")]
    rest = [part for part in statements if part.startswith(("INSERT INTO", "CREATE INDEX"))]
    engine = sa.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for statement in [*tables, *sorted(rest, key=lambda part: part.startswith('INSERT INTO "layers"'))]:
            connection.exec_driver_sql(statement)
    engine.dispose()
    return postgres_url


def differences(url):
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        found = compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), METADATA)
        version = connection.exec_driver_sql("select version_num from alembic_version").fetchall()
        meta = connection.exec_driver_sql("select value from tilewright_meta where key = 'schema'").fetchall()
    engine.dispose()
    assert [tuple(row) for row in version] == [tuple(row) for row in meta] == [("3",)]
    return found


def test_an_old_store_is_lifted_with_its_runs(old):
    with Store(old) as store:
        assert [run.id for run in store.runs()] == RUNS
        assert store.get("last").network.name == "vgg"
    with Library(old) as library:
        assert library.entries() == ()
    assert differences(store_url(old)) == []


def test_a_fresh_store_has_the_tables_that_are_declared(tmp_path):
    place = tmp_path / "fresh.sqlite"
    assert Store(place).runs() == ()
    assert differences(store_url(place)) == []


def test_a_fresh_store_on_a_server_has_the_tables_that_are_declared(postgres_url):
    with Store(postgres_url) as store:
        assert store.runs() == ()
    assert differences(postgres_url) == []


def test_an_old_store_on_a_server_is_lifted(old_postgres):
    with Store(old_postgres) as store, Library(old_postgres) as library:
        assert [run.network for run in store.runs()] == ["vgg", "tiny"]
        assert store.get("last").layers[0].cost.edp == 112.5
        assert library.entries() == ()
    assert differences(old_postgres) == []


def test_many_processes_may_lift_a_store_at_once(old):
    program = "import sys; from tilewright.store import Store; print(len(Store(sys.argv[1]).runs()))"
    readers = [subprocess.Popen([sys.executable, "-c", program, str(old)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for _ in range(3)]
    assert [reader.communicate(timeout=60) for reader in readers] == [(b"2\n", b"")] * 3
    assert differences(store_url(old)) == []


def test_runs_of_an_old_store_that_cannot_be_written_can_still_be_read(old):
    place = f"sqlite:///file:{old}?mode=ro&uri=true"
    assert [run.id for run in Store(place).runs()] == RUNS
    with pytest.raises(InputError, match="library"):
        Library(place).entries()


def test_an_interrupted_lift_leaves_the_old_store(old, monkeypatch):
    def lift(connection, schema):
        connection.exec_driver_sql("create table half (x integer)")
        raise OSError("killed")

    monkeypatch.setattr("tilewright.store.migrations.lift", lift)
    with pytest.raises(InputError, match="killed"):
        Store(old).runs()
    monkeypatch.undo()
    assert len(Store(old).runs()) == 2
    assert differences(store_url(old)) == []
