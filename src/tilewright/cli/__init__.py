"""The verbs: ``tilewright map``, ``evaluate``, ``explain``, ``bounds``, ``list``, ``show``, ``export``, ``bench``."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.cli.all_verbs import app as app
    from tilewright.cli.verbs import main as main

__getattr__, __all__ = late_names(__name__)
