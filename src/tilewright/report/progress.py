"""The progress of a run, on the terminal or below the cell of a notebook: samples, rate, time left."""

import sys
import time
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from tilewright.report.quantities import engineering, measured, percent, shortened

if TYPE_CHECKING:
    from tilewright.jobs import RunnerProgress
    from tilewright.search import Budget, Progress

STARTING = "Starting the engine (compiled at first use, some 20 s)"


_EVERY_SECONDS = 0.2


def in_notebook() -> bool:
    """Return whether a notebook runs this."""
    return "IPython" in sys.modules and Console().is_jupyter


class Bar:
    """A bar on stderr, or below a notebook's cell, with text before and behind it; nothing elsewhere than there."""

    def __init__(self, starting: str = STARTING, screen: Console | None = None) -> None:
        self.screen = screen or Console(stderr=True)
        self.bars = Bars(TextColumn("{task.description}"), BarColumn(bar_width=24),
                         TextColumn("{task.fields[about]}", markup=False), console=self.screen,
                         transient=True, disable=not self.screen.is_terminal)
        self.task = self.bars.add_task(starting, total=None, about="")
        self.notebook: Any = None
        self.cell: Any = None
        self._last = 0.0

    def __enter__(self) -> Self:
        self.bars.start()
        if in_notebook():
            self.notebook = import_module("IPython.display")
            self.cell = self.notebook.display(self.notebook.HTML(""), display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()
        self._below("")

    def show(self, description: str, done: float, total: float, about: str) -> None:
        """Show how much is done, of how much in all."""
        self.bars.update(self.task, description=description, completed=done, total=total, about=about)
        if time.monotonic() - self._last > _EVERY_SECONDS:
            self._last = time.monotonic()
            self._below(f"{escape(description)} <progress value='{done:g}' max='{total:g}'></progress> {escape(about)}")

    def _below(self, shown: str) -> None:
        """Show HTML below the cell in place of what was there."""
        if self.cell is not None:
            self.cell.update(self.notebook.HTML(shown))


def _pace(samples: int, seconds: float, left: float | None) -> str:
    """Return samples, samples per second, and the seconds left as a time, where they are known."""
    told = [f"{engineering(samples)} samples", f"{engineering(samples / max(seconds, 1e-9))}/s"] if samples else []
    return " · ".join([*told, *([f"{int(left) // 60}:{int(left) % 60:02d} left"] if left is not None else [])])


class LayersBar(Bar):
    """A bar while layers are searched; time and rate include ``earlier_seconds``, those of a run that is continued."""

    def __init__(self, screen: Console | None = None, earlier_seconds: float = 0.0) -> None:
        super().__init__(screen=screen)
        self.earlier_seconds = earlier_seconds
        self.steps: dict[str, Progress] = {}
        self.layers = 0
        self.started = 0.0

    def begin(self, layers: int, budget: "Budget") -> None:
        """Start anew with so many layers."""
        self.steps.clear()
        self.layers, self.started = layers, time.perf_counter() - self.earlier_seconds

    def update(self, progress: "Progress") -> None:
        """Show where one search stands."""
        self.steps[progress.name] = progress
        steps = list(self.steps.values())
        ended = sum(step.eta_seconds == 0 for step in steps)
        elapsed = time.perf_counter() - self.started
        share = sum(step.fraction or 0.0 for step in steps) / max(self.layers, 1)
        pace = _pace(sum(step.samples for step in steps), elapsed,
                     elapsed * (1 - share) / share if share > 0 else None)
        self.show(f"{ended}/{self.layers} layers", share, 1.0, pace + self._stand(progress))

    def _stand(self, step: "Progress") -> str:
        """Return how far the layer that was shown last is from its bound."""
        if step.best is None or step.bound is None:
            return ""
        best, bound = (measured(value, step.unit).rstrip() for value in (step.best, step.bound))
        name = f"{shortened(step.name, 16)}: " if self.layers > 1 else ""
        return f" · {name}best {best}, bound {bound}, gap {percent(step.gap)}"


class SearchBar(Bar):
    """A bar while the jobs of a run end: how many, samples a second, time left."""

    def __init__(self, unit: str = "searches") -> None:
        super().__init__()
        self.unit = unit

    def update(self, standing: "RunnerProgress") -> None:
        """Show where the run stands."""
        self.show(f"{standing.name} {standing.done}/{standing.total} {self.unit}".strip(), standing.done,
                  standing.total, _pace(standing.samples, standing.seconds, standing.eta_seconds))
