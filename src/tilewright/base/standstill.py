"""The clock of budgets, which stands still while anything is compiled."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter


class Standstill:
    """A clock that stands still, for all threads, while any of them compiles.

    What one thread compiles holds the others up too, and is done once on a machine: it is no part of any budget.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.under_way, self.since, self.stood = 0, 0.0, 0.0

    def seconds(self, more: int = 0) -> float:
        """Return its seconds; so many ``more`` compilations are under way from now on, or fewer."""
        with self.lock:
            now = perf_counter()
            self.stood += now - self.since if self.under_way else 0.0
            self.since, self.under_way = now, self.under_way + more
            return now - self.stood


COMPILING = Standstill()


@contextmanager
def standing_still() -> Iterator[None]:
    """Let `working_seconds` stand still meanwhile: something is compiled, here or where it is waited for."""
    COMPILING.seconds(1)
    try:
        yield
    finally:
        COMPILING.seconds(-1)


def working_seconds() -> float:
    """Return the seconds of the clock of budgets (see `Standstill`)."""
    return COMPILING.seconds()
