"""Where jobs are done: on threads of this process, in other processes, or on a Ray cluster."""

import logging
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor as Pool
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import isgenerator
from multiprocessing import current_process, resource_tracker
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import cloudpickle

from tilewright.base import InputError, collect_seldom, require_extra
from tilewright.jobs.job import Steps, Stop, present_stop, stopped_by

RETRIES = 3
"""How often a job is done again whose worker was lost."""
LOOK_SECONDS, LONGEST_SECONDS = 0.2, 10.0
"""How soon a run takes note that it is to stop, while others work for it; and how long a cluster may take to answer."""
Call = Callable[[], Any]
Errors = tuple[type[BaseException], ...]
T = TypeVar("T")


class Stopped(Exception):
    """A job ended early, as it was asked to: its value is none."""


class Executor:
    """Does calls side by side, ``width`` at most; ``near`` ones in this process, others on copies of what they need.

    ``lost`` are the errors that say that all who were at work are gone.
    """

    near = False
    width: int
    lost: Errors = ()
    pool: Pool

    def submit(self, call: Call) -> "Future[Any]":
        """Begin a call."""
        return self.pool.submit(call)

    def renew(self) -> None:
        """Begin anew with other workers, where those before were lost."""

    def stop(self) -> None:
        """Ask those at work to end, who do not look at the run's own event."""

    def close(self) -> None:
        """Wait for those at work, and let them go."""
        self.pool.shutdown()


class Threads(Executor):
    """Threads of this process."""

    near = True

    def __init__(self, workers: int) -> None:
        self.width, self.pool = workers, ThreadPoolExecutor(workers, thread_name_prefix="tilewright-job")


class Processes(Executor):
    """Processes on this machine, each of which loads the engine for itself, and none the user's main module again."""

    lost = (BrokenProcessPool,)

    def __init__(self, workers: int) -> None:
        import loky  # noqa: PLC0415  (slow to load)

        self.loky, self.width, self.context = loky, workers, loky.backend.get_context("loky")
        self.flag = self.context.Event()
        resource_tracker.ensure_running()  # whose start lets Ctrl-C through, which `submit` holds back
        self.renew()

    def submit(self, call: Call) -> "Future[Any]":
        """Begin a call in a process; Ctrl-C waits while one starts, which has it held back from its first moment."""
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self.pool.submit(whole, cloudpickle.dumps(call))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def renew(self) -> None:
        """Start other processes."""
        self.pool = self.loky.ProcessPoolExecutor(self.width, context=self.context, initializer=_obey,
                                                  initargs=(self.flag, os.getpid()))

    def stop(self) -> None:
        """Set the event that they look at."""
        self.flag.set()


_flag: Stop | None = None


def _obey(flag: Stop, parent: int) -> None:
    """Let this process end its jobs by an event of the run's own, not by Ctrl-C, which reaches it too, or with it."""
    global _flag  # noqa: PLW0603  (set once, as the process begins)
    _flag = flag
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    collect_seldom()


def _end_with(parent: int) -> None:
    """End this process soon after its parent, which may be killed; nothing else would tell it."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


@dataclass(frozen=True)
class Failed:
    """An error in place of a value, as it comes back from another process."""

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> "Failed":
        """Return an error that gets through, the same where it does."""
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return cls(RuntimeError(f"{type(error).__name__}: {error}"))
        return cls(error)


def whole(packed: bytes) -> Any:
    """Do a call from beginning to end, and return its value."""
    stop = _flag or present_stop()
    try:
        with stopped_by(stop):
            made = cloudpickle.loads(packed)()
            if isgenerator(made):
                return finished(cast(Steps[Any], made))
        if stop.is_set():
            raise Stopped
    except Exception as error:
        return Failed.of(error)
    return made


def finished(steps: Steps[T]) -> T:
    """Take all steps, and return what they return."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


class Ray(Executor):
    """A Ray cluster: one that is there (``ray://HOST:PORT``, or of ``RAY_ADDRESS``), or one begun on this machine.

    Ray itself does again what a lost worker or node was at.
    """

    def __init__(self, workers: int | None, address: str | None) -> None:
        require_extra("ray", "--on", address or "ray")
        import ray  # noqa: PLC0415  (an extra, and slow to load)

        self.ray, self.mine = ray, not ray.is_initialized()
        if self.mine:
            found = os.environ.get("RAY_ADDRESS")
            here: dict[str, Any] = {} if address or found else {
                "num_cpus": workers or len(os.sched_getaffinity(0)), "include_dashboard": False}
            try:
                if address:  # which Ray itself would try for half a minute
                    parts = urlsplit(address)
                    socket.create_connection((parts.hostname or "", parts.port or 10001), LONGEST_SECONDS).close()
                _begin(partial(ray.init, address or found or "local", log_to_driver=False,
                               logging_level=logging.ERROR, **here))
            except (OSError, RuntimeError, ValueError) as error:
                raise InputError("--on", "must be a Ray cluster that answers", address or found,
                                 " ".join(str(error).split())[-300:]) from None
        cores = int(ray.cluster_resources().get("CPU", 1))
        self.width = workers or 2 * cores  # so that none waits for the next
        self.remote = ray.remote(num_cpus=1, max_retries=RETRIES)(whole)
        self.asked: dict[Future[Any], Any] = {}

    def submit(self, call: Call) -> "Future[Any]":
        """Begin a call somewhere in the cluster."""
        asked = self.remote.remote(cloudpickle.dumps(call))
        future: Future[Any] = asked.future()
        self.asked[future] = asked
        future.add_done_callback(lambda done: self.asked.pop(done, None))
        return future

    def stop(self) -> None:
        """Cancel what is under way."""
        for asked in list(self.asked.values()):
            self.ray.cancel(asked)

    def close(self) -> None:
        """Let go of the cluster, where it was begun for this run."""
        self.stop()
        if self.mine:
            self.ray.shutdown()


def _begin(connect: Call) -> None:
    """Connect; again where the process that the cluster begins for each client has died at its start, as some do."""
    for _ in range(RETRIES):
        with suppress(ConnectionAbortedError):
            connect()
            return
    connect()


def executor(on: str, workers: int | None, jobs: int) -> Executor:
    """Return the executor of a name: ``threads`` (or ``auto``), ``processes``, ``ray``, ``ray://HOST:PORT``.

    That there is none of this name, or no cluster answers, is an `InputError`.
    """
    width = max(1, workers or len(os.sched_getaffinity(0)))
    if on in ("threads", "auto"):
        return Threads(width)
    if on == "processes":
        if current_process().daemon:
            raise InputError("--on", "must be threads in a worker of multiprocessing, which may start no processes", on)
        return Processes(max(1, min(width, jobs)))
    if on == "ray" or on.startswith("ray://"):
        return Ray(workers, None if on == "ray" else on)
    raise InputError("--on", "must be auto, threads, processes, ray, or ray://HOST:PORT", on)
