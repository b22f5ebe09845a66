"""The verbs: ``tilewright map``, ``evaluate``, ``explain``, ``bounds``, ``list``, ``show``, ``export``, ``bench``."""

from tilewright.cli.app import app, main

__all__ = ["app", "main"]
