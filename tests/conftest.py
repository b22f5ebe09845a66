"""What all tests share: byte code that is kept, how garbage is collected, and that stores on disk wait for no disk."""

import gc
import os
import sqlite3
import sys

import pytest

# Whatever the environment says: some hundred processes of these tests would each compile our modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_finish():
    """Leave out of every later collection what was imported until now, some millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def unsynced():
    """Let what is committed to SQLite outlive processes, but not a loss of power, which takes milliseconds a time."""
    import sqlalchemy as sa

    def configure(connection, _):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous=OFF")

    sa.event.listen(sa.Engine, "connect", configure)
    yield
    sa.event.remove(sa.Engine, "connect", configure)
