"""What the terminal shows: results as text, and who is shown the progress of a run."""

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.search import Budget, Progress


def shown(show: "Callable[[Console], object]") -> str:
    """Return what ``show`` prints on a console, without colours, in lines that are never broken; in a notebook too."""
    from rich.console import Console  # noqa: PLC0415  (rich loads late)

    text = StringIO()
    show(Console(file=text, color_system=None, force_terminal=False, force_jupyter=False,
                 legacy_windows=False))
    return text.getvalue().rstrip("\n")


class Watcher(Protocol):
    """Shown the progress of a run: how many distinct layers with what budget each, then where each search stands."""

    def begin(self, layers: int, budget: "Budget") -> None:
        """Take note of the number of distinct layers and of the budget of each."""

    def update(self, progress: "Progress") -> None:
        """Take note of where a search stands."""
