"""How often processes of our own look for garbage."""

import atexit
import gc


def collect_seldom() -> None:
    """Spare the collector what libraries load, which all stays: an eighth of a second, and thrice that at the end."""
    gc.set_threshold(50_000, 20)
    atexit.register(gc.freeze)
