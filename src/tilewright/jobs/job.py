"""What a job is: a function, its inputs, and a key; and what may end the one that a thread works at."""

import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that goes on step by step: set up at the first one, it returns its value at the end."""


class Stop(Protocol):
    """What ends a run early when it is set."""

    def is_set(self) -> bool:
        """Return whether to end."""

    def set(self) -> None:
        """Ask for the end."""


class Keeper(Protocol):
    """Where values of jobs are kept, by plain data that decides them."""

    def take(self, keys: Sequence[Mapping[str, object]]) -> list[Any]:
        """Return what is kept for each key, None where nothing is."""

    def put(self, key: Mapping[str, object], value: Any) -> None:
        """Keep a value."""


@dataclass(frozen=True)
class Job(Generic[T]):
    """One part of a run, that any worker may do."""

    key: Mapping[str, object] | None
    """All that decides the value, in plain data (layer, machine, mapper, samples, seed ...); None is never kept."""
    function: Callable[..., Any]
    """Returns the value, or steps to it (see `Steps`). A value that is kept is plain data. What takes long looks at
    `present_stop`, as searches do by themselves."""
    samples: int | Callable[[T], int] = 0
    """Mappings that it scores, for the rate that is shown; or what tells them from the value."""
    inputs: tuple[Any, ...] = ()
    """What the function is called with; where it works in another process, copies of these."""
    after: tuple[int, ...] = ()
    """Places of jobs of the same run that must have ended; the list of their values is the function's last argument."""
    received: Callable[[Any], T] | None = None
    """Called with the value where it arrives, in the process and thread of the run; what it returns takes its place."""

    def scored(self, value: T) -> int:
        """Return the mappings that were scored for a value."""
        return self.samples if isinstance(self.samples, int) else self.samples(value)


@dataclass(frozen=True)
class RunnerProgress:
    """Where a run stands: jobs done and in all (of those known so far), samples scored, seconds, seconds left."""

    name: str
    done: int
    total: int
    samples: int
    seconds: float
    eta_seconds: float | None

    @classmethod
    def of(cls, name: str, spent: int, samples: int | None, used_seconds: float,
           seconds: float | None) -> "RunnerProgress":
        """Return where a run within a budget of samples or seconds stands: how much of it is spent."""
        timed = samples is None and seconds is not None
        done, total = (used_seconds, seconds) if timed else (spent, samples)
        left = used_seconds * (total / done - 1) if total and done else None
        return cls(name, int(done), int(total or done), spent, used_seconds, left)


Observer = Callable[[RunnerProgress], None]


class Spending:
    """A run within a budget: what it has spent in all its legs, and what is left.

    Parameters
    ----------
    samples, seconds
        What may be spent; None without a limit.
    stop
        Ends the run after the present step when set.
    """

    def __init__(self, samples: int | None, seconds: float | None, stop: Stop) -> None:
        self.samples, self.seconds, self.stop = samples, seconds, stop
        self.spent, self.earlier, self.began = 0, 0.0, time.perf_counter()

    @property
    def used_seconds(self) -> float:
        """Seconds since the run began, in all its legs."""
        return self.earlier + time.perf_counter() - self.began

    @property
    def left(self) -> float:
        """Samples left; infinite where only time is limited."""
        return inf if self.samples is None else self.samples - self.spent

    @property
    def spent_share(self) -> float:
        """The share of the samples or of the time that is spent, the larger one."""
        return max(self.spent / (self.samples or inf), self.used_seconds / (self.seconds or inf))

    @property
    def exhausted(self) -> bool:
        """Whether no samples or no time are left, or the run was stopped."""
        late = self.seconds is not None and self.used_seconds >= self.seconds
        return late or self.left <= 0 or self.stop.is_set()

    def standing(self, name: str) -> RunnerProgress:
        """Return where the run stands, under a name."""
        return RunnerProgress.of(name, self.spent, self.samples, self.used_seconds, self.seconds)


_present = threading.local()


def present_stop() -> Stop:
    """Return what ends the job that this thread works at, where it works at one; else a new event."""
    found: Stop | None = getattr(_present, "stop", None)
    return threading.Event() if found is None else found


@contextmanager
def stopped_by(stop: Stop) -> Iterator[None]:
    """Let `present_stop` be this one, on this thread."""
    before = getattr(_present, "stop", None)
    _present.stop = stop
    try:
        yield
    finally:
        _present.stop = before


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Let the first Ctrl-C set ``stop`` instead of raising; the second raises. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
