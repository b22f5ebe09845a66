"""The progress of a run on the terminal: samples, rate, time left."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from tilewright.report import engineering, percent, shortened

if TYPE_CHECKING:
    from tilewright.jobs import Standing
    from tilewright.search import Budget
    from tilewright.search import Progress as Step

STARTING = "Starting the engine (compiled at first use, some 10 s)"


class _Rate(ProgressColumn):
    """Samples, samples per second, and the time left."""

    def render(self, task: Task) -> Text:
        """Return the column of a task."""
        if task.fields.get("samples") is None:
            return Text("")
        eta = task.fields["eta"]
        left = "" if eta is None else f" · {int(eta) // 60}:{int(eta) % 60:02d} left"
        return Text(f"{engineering(task.fields['samples'])} samples · {engineering(task.fields['rate'])}/s{left}"
                    f"{task.fields['stand']}")


class Progress:
    """A bar on stderr while searches run; shows nothing where stderr is no terminal.

    Time and rate count ``earlier_seconds``, those of a run that is taken up.
    """

    def __init__(self, screen: Console | None = None, earlier_seconds: float = 0.0) -> None:
        self.earlier_seconds = earlier_seconds
        self.screen = screen or Console(stderr=True)
        self.bars = Bars(TextColumn("{task.description}"), BarColumn(bar_width=24), _Rate(), console=self.screen,
                         transient=True, disable=not self.screen.is_terminal)
        self.task = self.bars.add_task(STARTING, total=None, samples=None)
        self.steps: dict[str, Step] = {}
        self.layers = 0
        self.budget: Budget | None = None
        self.started = 0.0

    def __enter__(self) -> "Progress":
        self.bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.bars.stop()

    def begin(self, layers: int, budget: "Budget") -> None:
        """Take note of how many layers there are and what each may spend; what was shown before is forgotten."""
        self.steps.clear()
        self.layers, self.budget, self.started = layers, budget, time.perf_counter() - self.earlier_seconds

    def update(self, progress: "Step") -> None:
        """Show where one search stands."""
        self.steps[progress.name] = progress
        steps = list(self.steps.values())
        samples = sum(step.samples for step in steps)
        ended = sum(step.eta_seconds == 0 for step in steps)
        elapsed = time.perf_counter() - self.started
        share = sum(step.fraction or 0.0 for step in steps) / max(self.layers, 1)
        eta = elapsed * (1 - share) / share if share > 0 else None
        self.bars.update(
            self.task, total=1.0, completed=share, description=f"{ended}/{self.layers} layers", samples=samples,
            rate=samples / elapsed if elapsed > 0 else 0.0, eta=eta, stand=self._stand(progress))

    def _stand(self, step: "Step") -> str:
        """Return how far the layer that was shown last is from its bound."""
        if step.best is None or step.bound is None:
            return ""
        name = f"{shortened(step.name, 16)}: " if self.layers > 1 else ""
        return f" · {name}best {engineering(step.best)}, bound {engineering(step.bound)}, gap {percent(step.gap)}"


class SearchBar:
    """A bar on stderr while the jobs of a run end: how many, samples a second, time left."""

    def __init__(self, unit: str = "searches") -> None:
        self.screen, self.unit = Console(stderr=True), unit
        self.bars = Bars(TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[about]}"),
                         console=self.screen, transient=True, disable=not self.screen.is_terminal)
        self.task = self.bars.add_task(STARTING, total=None, about="")

    def __enter__(self) -> "SearchBar":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def update(self, standing: "Standing") -> None:
        """Show where the run stands."""
        parts = [f"{engineering(standing.samples)} samples",
                 f"{engineering(standing.samples / max(standing.seconds, 1e-9))}/s"] if standing.samples else []
        if standing.eta_seconds is not None:
            left = int(standing.eta_seconds)
            parts.append(f"{left // 60}:{left % 60:02d} left")
        self.bars.update(self.task, description=f"{standing.name} {standing.done}/{standing.total} {self.unit}".strip(),
                         total=standing.total, completed=standing.done, about=" · ".join(parts))
