"""How often processes of our own look for garbage."""

import atexit
import gc


def collect_seldom() -> None:
    """Spare the collector what libraries load, which all stays: a quarter of a second, and as much at the end."""
    gc.set_threshold(500_000, 20)
    atexit.register(gc.freeze)
