"""Optimisers that know numbers alone, as schedule methods: the baselines of table 7.3, and others of `MAPPERS`."""

from dataclasses import dataclass

import numpy as np

from tilewright.scheduling.problem import Floats, PlanGenomes, ScheduleProblem
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.search import MAPPERS, BlackBox, Options, PointSearch, Problem, Resumable


def decoded(problem: ScheduleProblem, points: Floats) -> PlanGenomes:
    """Return the plans of points ``(b, 3 n)`` of the unit cube, or ``(b, 2 n)``: cores, priorities, mappings.

    A core, and a mapping, is the one at that share of those that the job may use.
    """
    cores, priority, options = np.split(np.pad(points, ((0, 0), (0, 3 * problem.jobs - points.shape[1]))), 3, axis=1)
    core = problem.cores_at(np.clip(cores, 0.0, 1.0))
    return PlanGenomes(core, np.clip(priority, 0.0, 1.0), problem.options_at(core, np.clip(options, 0.0, 1.0)))


class PointScheduler(Resumable):
    """Lets an optimiser search plans by way of `decoded`."""

    changing = ("search",)

    def __init__(self, session: ScheduleSession, box: BlackBox, options: Options) -> None:
        self.session = session
        genomes = 3 if session.problem.counts.max() > 1 else 2
        samples = None if session.samples is None else session.samples
        self.search = PointSearch(box, options, Problem(genomes * session.problem.jobs, session.seed % 2**32, samples))

    def step(self) -> None:
        """Score what it proposes."""
        self.search.advance(lambda points: self.session.score(decoded(self.session.problem, points)))


@dataclass(frozen=True)
class BoxScheduler:
    """A `BlackBox` as a member of `SCHEDULERS`, with the options of the mapper."""

    box: BlackBox

    @property
    def extra(self) -> str:
        """The extra of the package that it cannot do without, if any."""
        return self.box.extra

    def __call__(self, session: ScheduleSession, options: Options) -> PointScheduler:
        """Return a scheduler; an `InputError` if an option is wrong or the extra is not installed."""
        return PointScheduler(session, self.box, options)


for _box in (MAPPERS.get(name) for name in MAPPERS):
    if isinstance(_box, BlackBox) and not _box.metrics:
        SCHEDULERS.register(_box.name, _box.options_type)(BoxScheduler(_box))
