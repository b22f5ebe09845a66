"""Schedules under way: plans counted alike for all methods, the best so far and its bound, kept to be taken up."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np

from tilewright.base import Registry
from tilewright.jobs import Observer, Stop
from tilewright.scheduling.bounds import ScheduleBound, schedule_bound
from tilewright.scheduling.problem import Floats, PlanGenomes, ScheduleProblem, Timeline
from tilewright.scheduling.simulation import Simulated, simulate, timeline
from tilewright.search import Options, PlanMethod, PlanSession


class ScheduleSession(PlanSession):
    """Simulates plans within a budget, and keeps the best. A sample is a plan that is simulated.

    Parameters
    ----------
    warm
        Plans to begin from, if any.
    """

    def __init__(self, problem: ScheduleProblem, samples: int | None, seconds: float | None, seed: int = 0, *,  # noqa: PLR0913
                 bound: ScheduleBound | None = None, warm: PlanGenomes | None = None, threads: int = 1,
                 stop: Stop | None = None) -> None:
        nothing = np.zeros((1, problem.jobs), dtype=np.int64)
        super().__init__(PlanGenomes(nothing, nothing.astype(np.float64), nothing), samples, seconds, seed, stop)
        self.problem, self.warm, self.threads = problem, warm, threads
        self.bound = schedule_bound(problem) if bound is None else bound
        self.known = self.bound.value

    @property
    def proven(self) -> ScheduleBound:
        """The bound, or what the method has proved besides (its ``floor``), where that is more."""
        return replace(self.bound, value=self.least)

    def cost(self, plans: PlanGenomes) -> Floats:
        """Simulate plans; return their objective ``(b)``."""
        return simulate(self.problem, plans, self.threads).score


SCHEDULERS: Registry[Callable[[ScheduleSession, Options], PlanMethod]] = Registry("schedule method")
"""Every method by name. One module and one line ``@SCHEDULERS.register(name)`` add one."""


@dataclass(frozen=True)
class Scheduled:
    """What a run of a method found."""

    problem: ScheduleProblem
    method: str
    seed: int
    plan: PlanGenomes
    score: float
    """``plan`` and ``score``: the best plan, and the objective; infinite where none was found."""
    bound: ScheduleBound
    """What no schedule is below."""
    samples: int
    seconds: float
    """``samples`` and ``seconds``: plans simulated, and time spent."""
    trace: Floats
    """Every improvement: samples and seconds by then, and the objective ``(i, 3)``."""
    interrupted: bool = False
    """Whether it was stopped early."""

    @property
    def gap(self) -> float:
        """By what share the score is above the bound, at most so far from the optimum."""
        if self.score <= self.bound.value:
            return 0.0
        return self.score / self.bound.value - 1 if self.bound.value > 0 else inf

    @cached_property
    def figures(self) -> Simulated:
        """What the plan takes, each of one."""
        return simulate(self.problem, self.plan)

    @cached_property
    def timeline(self) -> Timeline:
        """What happens in the plan."""
        return timeline(self.problem, self.plan)


def schedule(problem: ScheduleProblem, method: str = "auto", *, samples: int | None = None,  # noqa: PLR0913
             seconds: float | None = None, seed: int = 0, options: Options | None = None,
             warm: PlanGenomes | None = None, bound: ScheduleBound | None = None, threads: int = 1,
             checkpoint: Path | None = None, told: Observer | None = None, stop: Stop | None = None) -> Scheduled:
    """Look for a good schedule; the same seed and samples find the same one, on any number of threads.

    Parameters
    ----------
    samples, seconds
        Plans simulated, and time, at most; 10,000 plans where neither is given. Ends sooner at a proven optimum.
    options
        The method's own.
    warm
        Plans to begin from (see `tilewright.scheduling.adopted`).
    bound
        A bound that is known, else `schedule_bound` is asked.
    checkpoint
        File that keeps the run, every few seconds and at its end, and takes it up.
    told
        Shown after each step where it stands.

    Raises
    ------
    InputError
        If the method or an option is unknown, its extra is not installed, a budget is not positive, or the checkpoint
        is of another run.
    """
    if samples is None and seconds is None:
        samples = 10_000
    make = SCHEDULERS.get(method)
    session = ScheduleSession(problem, samples, seconds, seed, bound=bound, warm=warm, threads=threads, stop=stop)
    scheduler = make(session, options or {})
    identity = {"problem": _digest(problem), "method": method, "seed": str(seed), "warm": _digest(warm),
                "options": repr(sorted((options or {}).items())), "plan": repr((samples, seconds))}
    session.run(scheduler, told, checkpoint, identity)
    return Scheduled(problem, method, seed, session.best, session.value, session.proven, session.spent,
                     session.used_seconds, session.steps, session.stop.is_set())


def _digest(thing: object) -> str:
    """Return a hash of a record of arrays, numbers, names and such records."""
    found = hashlib.sha256()
    for entry in () if thing is None else fields(thing):  # type: ignore[arg-type]
        value = getattr(thing, entry.name)
        told = value.tobytes() if isinstance(value, np.ndarray) else (
            _digest(value) if hasattr(value, "__dataclass_fields__") else repr(value)).encode()
        found.update(entry.name.encode() + told)
    return found.hexdigest()[:16]
