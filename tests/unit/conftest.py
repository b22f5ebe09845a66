"""A throw-away PostgreSQL server of Debian's package, on loopback, under an unprivileged user."""

import itertools
import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

_NUMBERS = itertools.count()
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")) if Path("/usr/lib/postgresql").is_dir() else []


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, folder):
        self.folder, self.bin = folder, BINARIES[-1].parent
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", str(folder / "data"), "-U", "tester", "-A", "trust", "-N", "-E", "UTF8",
                  "--locale=C")

    @property
    def url(self):
        return f"postgresql://tester@127.0.0.1:{self.port}/postgres"

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l", str(self.folder / "log"), "-w",
                  "start")

    def stop(self):
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def _run(self, name, *arguments):
        command = [str(self.bin / name), *arguments]
        if os.geteuid() == 0:
            user = next(user for user in pwd.getpwall() if user.pw_name in ("postgres", "nobody"))
            command = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *command]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def postgres_server():
    """Yield a running server; skip where the package is not installed."""
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="pip install 'tilewright[postgres]'")
    folder = Path(tempfile.mkdtemp(prefix="tilewright-postgres-"))
    if os.geteuid() == 0:
        folder.chmod(0o777)
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        with suppress(AssertionError):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres():
    """A running server, the same for all tests of a process; whoever stops it starts it again."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres):
    """The URL of an empty database."""
    import sqlalchemy as sa

    name = f"test_{next(_NUMBERS)}"
    engine = sa.create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"create database {name}")
    engine.dispose()
    return postgres.url.replace("/postgres", f"/{name}")


@pytest.fixture
def kept_rows():
    """What reads the values of jobs in a store: a list of rows by column."""
    def read(place):
        with closing(sqlite3.connect(place)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute("select * from results order by key")]

    return read
