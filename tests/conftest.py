"""What all tests share: byte code, threads, what is compiled beside them, which cases run, how garbage is collected.

And files and stores that wait for no disk.
"""

import gc
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

# Whatever the environment says: some hundred processes of these tests would each compile our modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tests run side by side: threads of PyTorch and of linear algebra that wait for one another take several times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What is collected stays.
gc.disable()
HERE = Path(__file__).parent


def pytest_sessionstart(session):
    """Where two workers are to run all tests, let a third process compile from now on what both want at once.

    Else one of them waits where the other compiles, and each compiles again what several engines share.
    """
    config, kept = session.config, os.environ.get("NUMBA_CACHE_DIR") or HERE.parent / "src"
    everything = config.args_source is config.ArgsSource.TESTPATHS and not (
        config.option.keyword or config.option.collectonly)
    if (config.getoption("numprocesses", None) and everything
            and not any(Path(kept).rglob("kernel.run_*.nbi"))):
        session.compiling = subprocess.Popen([sys.executable, "-m", "pytest", f"@{HERE / 'compiling.txt'}"],
                                             cwd=HERE.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def pytest_sessionfinish(session):
    """End what compiles for tests that are over."""
    if compiling := getattr(session, "compiling", None):
        compiling.terminate()
        compiling.wait()


def pytest_collection(session):
    """Let every second worker begin with the last modules, so that each reads from disk what the other made of a half.

    To write the assertions of a module anew takes ten times as long as to compile it.
    """
    worker = getattr(session.config, "workerinput", {"workerid": "gw0"})["workerid"]
    asked = [Path(name.partition("::")[0]).resolve() for name in session.config.args]
    for path in sorted(HERE.rglob("test_*.py"), reverse=True) if int(worker[2:]) % 2 else ():
        if not any(path.is_relative_to(place) for place in asked):
            continue
        sys.path.insert(0, str(path.parent))
        with suppress(Exception, pytest.skip.Exception):  # which collecting it tells
            import_module(path.stem)
        sys.path.remove(str(path.parent))


def values(case):
    return [(name, id(value)) for name, value in case.callspec.params.items()]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave to the slow tests all but n cases of what is marked ``sample(n)``, so that each value is met as often."""
    alike = {}
    for item in items:
        if (mark := item.get_closest_marker("sample")) and not item.get_closest_marker("slow"):
            alike.setdefault((item.path, item.originalname, *mark.args), []).append(item)
    for (_, _, most), cases in alike.items():
        met = Counter()
        for _ in range(min(most, len(cases))):
            chosen = min(cases, key=lambda case: sum(met[value] for value in values(case)))
            met.update(values(chosen))
            cases.remove(chosen)
        for case in cases:
            case.add_marker("slow")


def pytest_collection_finish():
    """Leave out of every later collection what was imported until now, some millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def unsynced():
    """Let files, and what is committed to SQLite, outlive processes, but no loss of power, which takes milliseconds."""
    import sqlalchemy as sa

    def configure(connection, _):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous=OFF")

    sa.event.listen(sa.Engine, "connect", configure)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
    sa.event.remove(sa.Engine, "connect", configure)
