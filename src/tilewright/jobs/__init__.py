"""Run many things: one runner for layers, explorations, studies and reproductions; on threads, processes, or Ray.

A `Job` is a function, its inputs, and a key; `Runner` does lists of them, and keeps their values by key (for example in
`tilewright.store.Results`).
"""

from tilewright.jobs.clock import Clock, load_seconds
from tilewright.jobs.executors import finished
from tilewright.jobs.job import (
    Job,
    Keeper,
    Observer,
    Spending,
    Standing,
    Steps,
    Stop,
    interruptible,
    present_stop,
    stopped_by,
)
from tilewright.jobs.runner import Runner

__all__ = [
    "Clock",
    "Job",
    "Keeper",
    "Observer",
    "Runner",
    "Spending",
    "Standing",
    "Steps",
    "Stop",
    "finished",
    "interruptible",
    "load_seconds",
    "present_stop",
    "stopped_by",
]
