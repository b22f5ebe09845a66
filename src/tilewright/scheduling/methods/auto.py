"""The method of our own: lists and assignments that bounds suggest, then many small changes, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any

import numpy as np

from tilewright.base import share
from tilewright.scheduling.bounds import Relaxation
from tilewright.scheduling.methods.lists import ListOptions, as_plan, list_plans
from tilewright.scheduling.methods.magma import Breeding, magma_options
from tilewright.scheduling.moments import moment_bound
from tilewright.scheduling.problem import Floats, Ints, PlanGenomes, ScheduleProblem
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.scheduling.simulation import tables, timeline
from tilewright.search import Count, MapperOptions, Natural, Options, Resumable, Share, read_options

HUNGRY = 0.6
"""Of the bandwidth, what a mapping asks for at least that may run on the one core that takes what others leave."""
SCARCE = 0.1
"""What part of a bound the bandwidth holds at least for that to be tried."""
IDLE = (0.05, 0.1, 0.2)
"""What part of their time cores may wait in for the bandwidth, in assignments that are tried where it is scarce."""
LEVELS = (0.8, 0.9, 1.0, 1.1, 1.3, 2.0)
"""Times the bandwidth, what the cores of suggested plans ask for together."""
WORTH = 0.002
"""By what share a plan is above its bound at least for a better bound to be looked for."""
FEW, MANY, LONG, STEPS = 2, 8, 50_000, 10_000_000
"""Plans that are changed side by side where there is time for less than so many plans, and for more; and about how many
jobs of plans are simulated in a second."""
MOST_SECONDS = 60.0
"""For an integer program where only samples limit the run: its branches end it long before."""


@dataclass(frozen=True)
class ScheduleAutoOptions(MapperOptions):
    """Options of ``auto``."""

    chains: Annotated[Natural, "Plans that are changed side by side; of more than two the worst gives way to a child "
                               "of the best, each round. 0: 2, and 8 where there is time for 50,000 plans."] = 0
    round: Annotated[Count, "Changes of each before they are compared."] = 100
    branches: Annotated[Natural, "Of the integer program that suggests assignments; 0 leaves it out."] = 200
    patience: Annotated[Share, "By what share a change may make a plan worse, at the beginning; it falls to nothing "
                               "with the budget."] = 0.003


@SCHEDULERS.register("auto", ScheduleAutoOptions)
class ScheduleAuto(Resumable):
    """List schedules and integer assignments, then local search on some plans, which MAGMA's operators may cross."""

    changing = ("rng", "plans", "scores", "begun")

    def __init__(self, session: ScheduleSession, options: Options) -> None:
        self.options = read_options(ScheduleAutoOptions, options, "auto")
        self.session, self.rng = session, np.random.default_rng(session.seed)
        self.breeding = Breeding(session.problem, magma_options({"mutation": 0.01, "range": 0.5, "accelerator": 0.5}),
                                 self.rng)
        self.plans, self.scores, self.begun = session.problem.drawn(self.rng, 0), np.empty(0), False

    @property
    def chains(self) -> int:
        """How many plans are changed side by side."""
        time = inf if self.session.seconds is None else self.session.seconds * STEPS / self.session.problem.jobs
        plans = min(time, inf if self.session.samples is None else self.session.samples)
        return self.options.chains or (MANY if plans >= LONG else FEW)

    @property
    def _seconds(self) -> float:
        """For an integer program, or a bound."""
        return MOST_SECONDS if self.session.seconds is None else 0.15 * self.session.seconds

    def step(self) -> None:
        """Score what is suggested; from then on change the plans for a round."""
        if not self.begun:
            self._begin()
            self.begun = True
            return
        options, chains = self.options, len(self.plans)
        length = int(min(options.round, max(1.0, self.session.left / chains)))
        spent = min(1.0, self.session.spent_share)
        self._climb(length, 1.0 + options.patience * (1.0 - spent) ** 2)
        worst, best = int(self.scores.argmax()), np.argsort(self.scores, kind="stable")[:2]
        if chains > 2:
            child = self.breeding.bred(self.plans.take(best), 1)
            for name in ("core", "priority", "option"):
                getattr(self.plans, name)[worst] = getattr(child, name)[0]

    def _begin(self) -> None:
        """Score lists and assignments, and what the run begins from; keep the best of them."""
        session, problem = self.session, self.session.problem
        plans, scores = problem.drawn(self.rng, 0), np.empty(0)
        for more in self._suggested():
            plans, scores = plans.joined(more), np.concatenate([scores, session.score(more)])
        best = np.argsort(scores, kind="stable")[:self.chains]
        self.plans, self.scores = plans.take(best), scores[best]
        if problem.objective == "makespan" and self._above:
            floor = moment_bound(problem, timeline(problem, session.best), session.least, self._seconds)
            session.floor = max(session.floor, floor)

    @property
    def _above(self) -> bool:
        """Whether the best plan is far enough above its bound for more to be tried."""
        return self.session.least * (1 + WORTH) < self.session.value < inf

    def _suggested(self) -> Iterator[PlanGenomes]:
        """Yield plans to begin from; what is yielded has been scored when the next is asked for."""
        problem = self.session.problem
        if self.session.warm is not None:
            yield problem.mended(self.session.warm.take(slice(self.chains)))
        if self.options.branches:
            yield from self._assigned()
        yield from list_plans(problem, ListOptions())
        yield problem.drawn(self.rng, self.chains)

    def _assigned(self) -> Iterator[PlanGenomes]:
        """Yield plans of whole splits of the jobs, in some orders; what the first proves raises the bound.

        Where that is not near, and bandwidth scarce, there are others. In one of them one core takes what asks for most
        of the bandwidth, and gets what the others leave: those ask for no more than there is, so that it is always
        drawn and few of them wait for it. In the rest cores have time to wait.
        """
        session, problem = self.session, self.session.problem
        cycles, traffic, _ = problem.of_jobs
        need = np.divide(traffic, cycles * problem.bandwidth, out=np.zeros(cycles.shape), where=np.isfinite(cycles))
        filler = int(need[:, :, 0].sum(axis=0).argmax())
        filling = need <= 1.0
        filling[:, filler] = need[:, filler] >= HUNGRY
        scarce = session.bound.shares.get("bandwidth", 0.0) > SCARCE
        for usable, idle in ((None, 0.0), (filling, 0.0), *((None, part) for part in IDLE)):
            first = usable is None and not idle
            if not first and not (scarce and self._above):
                return
            if usable is not None and not filling[:, filler].any():
                continue
            relaxation = Relaxation(problem, apart=True, usable=usable, idle=idle)
            seconds = self._seconds if first else self._seconds / 4
            chosen, bound = relaxation.assign(seconds, nodes=1 if idle else self.options.branches)
            if problem.objective == "makespan" and first:
                session.floor = max(session.floor, bound)
            if len(chosen):
                yield from self._of_split(relaxation, chosen)

    def _of_split(self, relaxation: Relaxation, chosen: Ints) -> Iterator[PlanGenomes]:
        problem = relaxation.problem
        core, option = np.zeros(problem.jobs, dtype=np.int64), np.zeros(problem.jobs, dtype=np.int64)
        for each in range(len(relaxation.classes[0])):
            mine = np.flatnonzero(relaxation.columns[0] == each)
            columns = np.repeat(mine, chosen[mine])
            jobs = np.flatnonzero(relaxation.classes[1] == each)
            core[jobs], option[jobs] = relaxation.columns[1][columns], relaxation.columns[2][columns]
        yield from in_orders(problem, core, option)

    def _climb(self, length: int, patience: float) -> None:
        from tilewright.scheduling.kernels import climb  # noqa: PLC0415  (Numba loads late)

        run: Any = climb
        problem, plans = self.session.problem, self.plans
        draws, best = self.rng.random((len(plans), length, 4)), plans.take(slice(None))
        scores = np.empty((len(plans), length))

        def work(row: int) -> None:
            self.scores[row] = run(plans.core[row], plans.priority[row], plans.option[row], problem.counts, draws[row],
                                   patience, *tables(problem), best.core[row], best.priority[row], best.option[row],
                                   scores[row])

        share(work, range(len(plans)), self.session.threads)
        self.plans = best
        for row in range(len(plans)):
            self.session.note(scores[row][:int(min(self.session.left, length))], best.take(slice(row, row + 1)))


def in_orders(problem: ScheduleProblem, core: Ints, option: Ints) -> Iterator[PlanGenomes]:
    """Yield plans of one assignment ``(n)``: the longest jobs first, as they can begin, and those of level demand."""
    at = np.arange(problem.jobs), core, option
    cycles, moved = problem.of_jobs[0][at], problem.of_jobs[1][at]
    options = np.repeat(option[:, None], problem.cores, axis=1)
    orders = [np.argsort(-problem.durations[at], kind="stable"), np.argsort(problem.heads, kind="stable")]
    orders += [_level(core, cycles, moved / cycles, share * problem.bandwidth) for share in LEVELS]
    for order in orders:
        yield as_plan(problem, order, core, options)


def _level(core: Ints, cycles: Floats, need: Floats, wanted: float) -> Ints:
    """Return the jobs so that what the cores ask for together stays near ``wanted`` bytes a cycle.

    Whenever a core is free, it takes that of its jobs which brings the sum nearest; all run at full speed.
    """
    waiting = {int(each): np.flatnonzero(core == each).tolist() for each in np.unique(core)}
    ends = dict.fromkeys(waiting, 0.0)
    asked = dict.fromkeys(waiting, 0.0)
    order = []
    while waiting:
        free = min(waiting, key=lambda each: ends[each])
        others = sum(asked.values()) - asked[free]
        job = min(waiting[free], key=lambda j: (abs(others + need[j] - wanted), -cycles[j]))
        waiting[free].remove(job)
        order.append(job)
        ends[free], asked[free] = ends[free] + float(cycles[job]), float(need[job])
        if not waiting[free]:
            del waiting[free]
    return np.array(order)
