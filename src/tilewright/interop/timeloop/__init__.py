"""Timeloop's YAML (versions 0.3 and 0.4), both ways; Timeloop itself is not needed."""

from tilewright.interop.timeloop.design import TimeloopDesign, load_timeloop
from tilewright.interop.timeloop.source import Note, refuse_notes
from tilewright.interop.timeloop.writing import TimeloopText, dump_problem, dump_timeloop

__all__ = [
    "Note",
    "TimeloopDesign",
    "TimeloopText",
    "dump_problem",
    "dump_timeloop",
    "load_timeloop",
    "refuse_notes",
]
