"""The oracle: walks the loop nest literally; shares no code with the fast model."""

from tilewright.cost.reference.walker import TOUCH_BUDGET, walk

__all__ = ["TOUCH_BUDGET", "walk"]
