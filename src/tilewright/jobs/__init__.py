"""Run many things: one runner for layers, explorations, studies and reproductions; on threads, processes, or Ray.

A `Job` is a function, its inputs, and a key; `Runner` does lists of them, and keeps their values by key (for example in
`tilewright.store.Results`).
"""

from tilewright.base import offered
from tilewright.jobs.executors import finished as finished
from tilewright.jobs.job import Job as Job
from tilewright.jobs.job import Keeper as Keeper
from tilewright.jobs.job import Observer as Observer
from tilewright.jobs.job import RunnerProgress as RunnerProgress
from tilewright.jobs.job import Spending as Spending
from tilewright.jobs.job import Steps as Steps
from tilewright.jobs.job import Stop as Stop
from tilewright.jobs.job import interruptible as interruptible
from tilewright.jobs.job import present_stop as present_stop
from tilewright.jobs.job import stopped_by as stopped_by
from tilewright.jobs.runner import Clock as Clock
from tilewright.jobs.runner import Runner as Runner
from tilewright.jobs.runner import load_seconds as load_seconds

__all__ = list(offered(__name__))
