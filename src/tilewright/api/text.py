"""What the terminal shows, as text."""

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def shown(show: "Callable[[Console], object]") -> str:
    """Return what ``show`` prints on a console, without colours, in lines that are never broken; in a notebook too."""
    from rich.console import Console  # noqa: PLC0415  (rich loads late)

    text = StringIO()
    show(Console(file=text, color_system=None, force_terminal=False, force_jupyter=False,
                 legacy_windows=False))
    return text.getvalue().rstrip("\n")
