"""Load the compiled engine; where it is not compiled yet, do that in a process of its own."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Lock

from tilewright.base import standing_still

_STATE = Lock()
_WORKERS: list[subprocess.Popen[bytes]] = []


@cache
def compile_aside() -> None:
    """Start to compile the engine in another process, if this machine has it not on disk yet.

    Meanwhile this process can compile something else: the first search on a machine then takes half the time.
    `await_engine` waits for it. Where no process can be started, the engine is compiled at its first use as ever.
    """
    from tilewright.cost.dense.kernel import run  # noqa: PLC0415 - Numba takes long to import

    with _STATE:
        if _WORKERS or not sys.executable:
            return
        place = run.stats.cache_path
        if place is None or any(Path(place).glob(f"kernel.{run.py_func.__qualname__}-*.nbi")):
            return
        command = [sys.executable, "-c", "from tilewright.cost.dense.scoring import compile_here; compile_here()"]
        try:
            _WORKERS.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ))
        except OSError:
            return


def await_engine() -> None:
    """Wait until the process that compiles the engine has ended, well or not."""
    if any(worker.poll() is None for worker in _WORKERS):
        with standing_still(), _STATE:
            for worker in _WORKERS:
                worker.wait()
