"""What is asked of searches for plans, by objectives that are sums over transfers and by two that are none.

These are the product of latency and energy, and the least capacity that spills nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tilewright.allocation.network import stays_of_parts
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.records import PlanRecord, plan_record
from tilewright.allocation.search import SOLVERS, PlanSearch, standing_bounds
from tilewright.allocation.stays import Prices
from tilewright.base import InputError

TRIALS = 20
"""Capacities that the least one is sought among by halving: each has as large a share of the time."""


@dataclass(frozen=True)
class PlanTask:
    """What is asked of a search."""

    problem: ResidencyProblem
    solver: str
    """One of `SOLVERS`."""
    seconds: float
    """For all of it; ``stopped`` says whether it is to end early."""
    stopped: Callable[[], bool]
    told: dict[str, Any]
    """Fields of the record that searches do not know, among them its ``objective``."""
    channels: int = 1
    known: PlanRecord | None = None
    """A plan that holds, of an earlier run: where it is one of this task, the search goes on from it."""
    keep: Callable[[PlanRecord, PlanSearch], None] = lambda *_: None
    """Is given every plan that is better than those before it in its search."""

    def begin(self, problem: ResidencyProblem, metrics: tuple[str, ...]) -> PlanSearch:
        """Return a search, from the known plan on where that is of the same problem."""
        search = PlanSearch(problem, Prices(problem, metrics), self.seconds, self.stopped)
        if problem.whole is not None:
            search.whole = PlanSearch(problem.whole, Prices(problem.whole, metrics), self.seconds / 2, self.stopped)
        standing_bounds(search)
        if self.known is not None and self.known.problem == problem:
            search.take("the plan before", self.known.residency)
        return search

    def before(self) -> tuple[PlanRecord, ...]:
        """Return the known plan if it was found by the same objective."""
        return (self.known,) if self.known is not None and self.known.objective == self.told["objective"] else ()

    def record(self, search: PlanSearch) -> PlanRecord:
        """Return the record of the best plan of a search."""
        return plan_record(search, self.told, (), self.channels)


def summed_plan(task: PlanTask) -> PlanRecord:
    """Return a plan by objectives that are sums over transfers.

    No plan of parts is worse than what the same solver finds for the whole tensors in half of the time.
    """
    search = task.begin(task.problem, task.told["objective"])
    search.told = lambda found: task.keep(task.record(found), found)
    whole = search.whole
    if whole is not None and not search.closed:
        SOLVERS.get(task.solver)(whole)
        search.take("whole tensors", stays_of_parts(whole.problem, task.problem, whole.stays))
    SOLVERS.get(task.solver)(search)
    return task.record(search)


def product_plan(task: PlanTask) -> PlanRecord:
    """Return the plan of least latency, or of least energy, by their product; the bound is that of their bounds."""
    searches = [task.begin(task.problem, metrics) for metrics in (("latency", "energy"), ("energy", "latency"))]

    def made(search: PlanSearch) -> PlanRecord:
        found = task.record(search)
        score = found.tally.latency_cycles * found.tally.energy_pj
        return _bounded(found, score, prod(one.prices.first(one.bound) for one in searches), "latency x energy")

    for search, share in zip(searches, (2, 1), strict=True):
        search.seconds = task.seconds / share  # both have begun
        search.told = lambda found: task.keep(made(found), found)
        SOLVERS.get(task.solver)(search)
    found = [*map(made, searches), *(one for one in task.before() if one.problem == task.problem)]
    best = min(found, key=lambda one: one.score)
    return _bounded(best, best.score, max(one.bound for one in found), "latency x energy")


def _bounded(plan: PlanRecord, score: float, bound: float, name: str) -> PlanRecord:
    """Return a plan with the score and the bound of another objective."""
    bound = min(bound, score)
    return replace(plan, score=score, bound=bound, proven=bound >= score * (1 - 1e-9), bounds={name: bound}, trace=())


def peak_plan(task: PlanTask) -> PlanRecord:
    """Return the plan of the least capacity, the same of each scratchpad, that spills nothing.

    Found by halving, in words of the scratchpads, between the bound and the capacity of the known plan if there is one.

    Raises an `InputError` if even what all tensors take together does not do.
    """
    word = max(pad.word_bytes for pad in task.problem.pads)
    high, proven = sum(-(-one.size_bytes // word) for one in task.problem.tensors), 0

    def made(search: PlanSearch) -> PlanRecord:
        found, bound = task.record(search), (proven + 1) * word
        capacity = found.pads[0].capacity_bytes
        return replace(_bounded(found, capacity, bound, "peak"), assumptions=(
            *found.assumptions, f"The least capacity of each scratchpad that spills nothing: {capacity:,} bytes; less "
            f"than {bound:,} is proven not to do."))

    for known in task.before():
        if known.problem == _sized(task.problem, known.pads[0].capacity_bytes):
            high, proven = known.pads[0].capacity_bytes // word, int(known.bound) // word - 1
    low, best = proven + 1, _tried(task, high * word)
    if isinstance(best, int):
        raise InputError("--objective", "must be another where roles of scratchpads make tensors change place", "peak",
                         "Give a way between them with --across, or let all hold any role")
    task.keep(made(best), best)
    while low < high:
        middle = (low + high) // 2
        found = _tried(task, middle * word)
        if isinstance(found, int):
            low = middle + 1
            proven = max(proven, middle * found)
        else:
            best, high = found, middle
            task.keep(made(best), best)
    return made(best)


def _sized(problem: ResidencyProblem, capacity: int) -> ResidencyProblem:
    return replace(problem, pads=tuple(replace(pad, capacity_bytes=capacity) for pad in problem.pads), whole=None)


def _tried(task: PlanTask, capacity: int) -> PlanSearch | int:
    """Return a search that spills nothing with scratchpads of a size; 1 where there is none for certain, or 0."""
    try:
        search = task.begin(_sized(task.problem, capacity), ("bytes",))
    except InputError:
        return 1
    search.seconds = task.seconds / TRIALS
    if not search.closed:
        SOLVERS.get("exact")(search)
    least = search.prices.named(search.prices.compulsory)
    if search.score is not None and search.prices.named(search.score) == least:
        return search
    return int(search.prices.named(search.bound) > least)
