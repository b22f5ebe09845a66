"""What the terminal and notebooks show: results as text, frames and figures; who is shown the progress of a run."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, Protocol

from tilewright.base import InputError

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure
    from rich.console import Console

    from tilewright.jobs import Observer
    from tilewright.search import Budget, Progress


def shown(show: "Callable[[Console], object]") -> str:
    """Return what ``show`` prints on a console, without colours, in lines that are never broken; in a notebook too."""
    from rich.console import Console  # noqa: PLC0415  (rich loads late)

    text = StringIO()
    show(Console(file=text, color_system=None, force_terminal=False, force_jupyter=False,
                 legacy_windows=False))
    return text.getvalue().rstrip("\n")


def data_frame(rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> "DataFrame":
    """Return rows as a data frame; without pandas it is an `InputError`."""
    try:
        from pandas import DataFrame  # noqa: PLC0415  (no part of the base install)
    except ImportError:
        raise InputError("to_pandas", "needs pandas", None, "pip install pandas") from None
    return DataFrame(list(rows), columns=list(columns))


def plotly_figure(figure: dict[str, Any]) -> "Figure":
    """Return a figure of a page as one of Plotly, in the page's light colours."""
    from plotly.graph_objects import Figure  # noqa: PLC0415  (Plotly loads late)

    from tilewright.report import page_colours  # noqa: PLC0415

    colours = page_colours()

    def coloured(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: coloured(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [coloured(one) for one in value]
        named = isinstance(value, str) and re.fullmatch(r"@[a-z]+(-[a-z0-9]+)?", value)
        return colours[value[1:]] if named else value

    return Figure(**coloured(figure), skip_invalid=True)


class Watcher(Protocol):
    """Shown the progress of a run: how many distinct layers with what budget each, then where each search stands."""

    def begin(self, layers: int, budget: "Budget") -> None:
        """Take note of the number of distinct layers and of the budget of each."""

    def update(self, progress: "Progress") -> None:
        """Take note of where a search stands."""


@contextmanager
def bar_below(told: "Observer | None") -> "Iterator[Observer | None]":
    """Give who is told where the jobs of a run stand: the one that was given, else a bar below a notebook's cell."""
    if told is None and "IPython" in sys.modules:
        from tilewright.report import SearchBar, in_notebook  # noqa: PLC0415  (rich loads late)

        if in_notebook():
            with SearchBar() as bar:
                yield bar.update
            return
    yield told


@contextmanager
def watched(progress: Watcher | None) -> Iterator[Watcher | None]:
    """Give who is shown the progress of a run: the one that was given, else a bar below the cell of a notebook."""
    from tilewright.report import LayersBar, in_notebook  # noqa: PLC0415  (rich loads late)

    if progress is not None or not in_notebook():
        yield progress
        return
    with LayersBar() as bar:
        yield bar
