"""The time that the jobs of a run take together."""

import math
from contextlib import suppress
from pathlib import Path

from tilewright.base import replace_file
from tilewright.base import working_seconds as now

SECONDS = "seconds.txt"
"""File of a run's folder with the time that it has taken."""
KEEP_SECONDS = 10.0


class Clock:
    """The time of a run in all its legs, but what is compiled meanwhile: its steps, and before them its set-up.

    Parameters
    ----------
    folder
        Where the seconds are kept from leg to leg.
    span
        Seconds that there are, None without a limit.
    """

    def __init__(self, folder: Path | None = None, span: float | None = None) -> None:
        self.now = now
        self.folder, self.span = folder, span
        self.earlier = 0.0 if folder is None else load_seconds(folder)
        self.begun = self.working = self.latest = self.saved = now()
        self.started = False

    def start(self) -> None:
        """Take note that the first step begins: all jobs that wait for no other are set up."""
        if not self.started:
            self.started, self.working = True, self.now()

    def look(self) -> None:
        """Take note that a step has ended; what comes after the last one is no work."""
        self.latest = self.now()
        if self.latest - self.saved >= KEEP_SECONDS:
            self.keep()

    @property
    def setup_seconds(self) -> float:
        """Seconds before the first step."""
        return self.working - self.begun

    @property
    def seconds(self) -> float:
        """Seconds from then to the last step, and those of earlier legs."""
        return self.earlier + max(0.0, self.latest - self.working)

    def left(self) -> float:
        """Return the seconds left; the set-up of this leg has taken its part of them, half of all at most."""
        if self.span is None:
            return math.inf
        now = self.now()
        working = self.working if self.started else now
        return self.span - self.earlier - min(working - self.begun, self.span / 2) - (now - working)

    def keep(self) -> None:
        """Write down the seconds of all legs, where that can be written."""
        self.saved = self.now()
        if self.folder is not None:
            with suppress(OSError):
                replace_file(self.folder / SECONDS, f"{self.seconds:.3f}\n".encode())


def load_seconds(folder: Path) -> float:
    """Return the time that a run has taken in all its legs, 0 where none is kept."""
    with suppress(OSError, ValueError):
        return max(0.0, float((folder / SECONDS).read_text()))
    return 0.0
