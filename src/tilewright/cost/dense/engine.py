"""Load the compiled engine; where it is not compiled yet, do that in processes of their own."""

import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from tilewright.base import standing_still

_STATE = Lock()
_WORKERS: list[subprocess.Popen[bytes]] = []


@cache
def compile_aside() -> None:
    """Start to compile the engine in two other processes, if this machine has it not on disk yet.

    Meanwhile this process can compile something else: the first search on a machine then takes half the time.
    `await_engine` waits for them. Where no process can be started, the engine is compiled at its first use as ever.
    """
    from tilewright.cost.dense.kernel import run  # noqa: PLC0415 - Numba takes long to import

    with _STATE:
        if _WORKERS or not sys.executable:
            return
        place = run.stats.cache_path
        if place is None or any(Path(place).glob(f"kernel.{run.py_func.__qualname__}-*.nbi")):
            return
        for part in ("kernel", "walks"):
            code = f"from tilewright.cost.dense.scoring import compile_{part}; compile_{part}()"
            with suppress(OSError):
                _WORKERS.append(subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                ))


def await_engine() -> None:
    """Wait until the processes that compile the engine have ended, well or not."""
    if any(worker.poll() is None for worker in _WORKERS):
        with standing_still(), _STATE:
            for worker in _WORKERS:
                worker.wait()
