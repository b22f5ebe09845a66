"""The method of our own: lists and assignments that bounds suggest, then many small changes, side by side.

Its bound on schedules knows what cores can do at one moment, all at once, with the bandwidth that they share.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Annotated

import numpy as np

from tilewright.base import share
from tilewright.scheduling.bounds import SLACK, Relaxation
from tilewright.scheduling.methods.lists import ListOptions, as_plan, list_plans
from tilewright.scheduling.methods.magma import Breeding, magma_options
from tilewright.scheduling.problem import Floats, Ints, PlanGenomes, ScheduleProblem, Timeline
from tilewright.scheduling.session import SCHEDULERS, ScheduleSession
from tilewright.scheduling.simulation import compiled_plan, kernels, tables, timeline
from tilewright.search import Count, MapperOptions, Natural, Options, Resumable, Share, read_options

ROUNDS = 120
"""Times that prices are set anew, at most."""
CLOSE, SMALL = 2e-4, 2e-3
"""How near the bound and the mixture of moments come before it ends, and what is too little to go on for."""
EFFORT = 10_000_000
"""Partial moments that are looked at, some more than at most."""
STATES = 1000
"""Of the partial moments that none beats, how many are told apart; those of like needs then count as one, better."""
FULL = 1 + 1e-12
"""Times the bandwidth, what still counts as all of it."""
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


def moment_bound(problem: ScheduleProblem, plan: Timeline, least: float = 0.0, seconds: float = inf) -> float:
    """Return what no schedule's makespan is below, in cycles, however the bandwidth is shared.

    At any moment a core runs at most one job, with one mapping, at some part of its full speed, and what they draw
    together is no more than the bandwidth. A schedule is a mixture of such moments in which all jobs get their work,
    and no job runs for longer than all takes. The shortest mixture (a job may stop, move and change its mapping) is
    found moment by moment: prices of work and of running come from a linear program, and the moment that is worth most
    by them is worked out (Gilmore and Gomory, 1961); any prices give a bound. Prices lie between the last and the best
    ones (Wentges, 1997). Releases and precedence play no role.

    Parameters
    ----------
    plan
        Of all jobs: its moments are the first.
    least
        A bound that is known. It ends where little more than that can come out.
    seconds
        Before it ends with what it has.
    """
    free = replace(problem, before=np.empty((0, 2), dtype=np.int64), release=np.zeros(0))
    moments, until = _Moments(Relaxation(free)), time.perf_counter() + seconds
    size, unit = moments.size, moments.relaxation.unit
    rates, runs = (list(rows) for rows in moments.of_plan(plan))
    best, known = 0.0, (size, 0.0 * size)
    for _ in range(ROUNDS):
        length, prices = _mixture(np.array(rates), np.array(runs), size)
        if length <= 0:
            break
        scale = (prices[0] @ size) / (known[0] @ size)
        between = tuple(0.5 * (new + old * scale) for new, old in zip(prices, known, strict=True))
        for work, running in (between, prices):
            worth, columns = moments.best(work, running)
            rate, run = moments.filled(columns, work)
            rates.append(rate)
            runs.append(run)
            value = float(work @ size) / (worth + float(running @ size))
            if value > best:
                best, known = value, (work, running)
        if length <= max(best * (1 + CLOSE), least / unit * (1 + SMALL)) or moments.seen[0] > EFFORT \
                or time.perf_counter() > until:
            break
    return best * unit * (1 - SLACK)


def _mixture(rates: Floats, runs: Floats, size: Floats) -> tuple[float, tuple[Floats, Floats]]:
    """Return how long the shortest mixture of moments ``m`` takes, and prices ``(q)`` of work and of running.

    ``rates`` are how many jobs of a class a moment does in a unit of time, ``runs`` how many run, both ``(m, q)``. All
    are 0 where the solver fails.
    """
    from scipy.optimize import linprog  # noqa: PLC0415  (takes part of a second to load)

    found = linprog(np.ones(len(rates)), np.concatenate([-rates, runs - size], axis=1).T,
                    np.concatenate([-size, np.zeros(len(size))]), method="highs-ds")
    if found.status != 0:
        return 0.0, (0.0 * size, 0.0 * size)
    work, running = np.split(np.maximum(-found.ineqlin.marginals, 0.0), 2)
    return float(found.fun), (work, running)


@dataclass(frozen=True)
class _Moments:
    """What cores can run together. Columns are those of a `Relaxation`: a class on a kind of core with a mapping."""

    relaxation: Relaxation
    seen: list[int] = field(default_factory=lambda: [0])
    """How many partial moments were looked at."""

    @cached_property
    def size(self) -> Floats:
        """``(q)``: jobs of each class."""
        return np.bincount(self.relaxation.classes[1]).astype(np.float64)

    @cached_property
    def cycles(self) -> Floats:
        """``(v)``: at full speed, in units."""
        return self.relaxation.of_columns(self.relaxation.problem.of_jobs[0]) / self.relaxation.unit

    @cached_property
    def need(self) -> Floats:
        """``(v)``: share of the bandwidth that each asks for at full speed; may be more than one."""
        problem, unit = self.relaxation.problem, self.relaxation.unit
        return np.asarray(self.relaxation.of_columns(problem.of_jobs[1]) / (problem.bandwidth * unit) / self.cycles)

    @cached_property
    def kinds(self) -> list[tuple[Ints, int]]:
        """Columns of each kind of core, and how many cores there are of it."""
        return [(np.flatnonzero(self.relaxation.columns[1] == kind), int(count))
                for kind, count in enumerate(np.bincount(self.relaxation.kinds[1]))]

    def of_plan(self, plan: Timeline) -> tuple[Floats, Floats]:
        """Return rates and runs ``(e, q)`` of the moments of a plan."""
        middle = (plan.events[1:] + plan.events[:-1])[:, None] / 2
        inside = ((plan.start <= middle) & (middle < plan.end)).astype(np.float64)
        at = np.arange(len(plan.core)), plan.core, plan.option
        cycles, moved = (rows[at] for rows in self.relaxation.problem.of_jobs[:2])
        speed = np.where(moved > 0, plan.share[:, plan.core] / np.maximum(moved, 1e-300), 1.0 / cycles)
        member = np.eye(len(self.size))[self.relaxation.classes[1]]
        return inside * speed @ member * self.relaxation.unit, inside @ member

    def filled(self, columns: Ints, work: Floats) -> tuple[Floats, Floats]:
        """Return rates and runs ``(q)`` of some columns that run together, the most worth of a byte served first."""
        classes = self.relaxation.columns[0][columns]
        cycles, need = self.cycles[columns], self.need[columns]
        rate, run, left = np.zeros(len(self.size)), np.zeros(len(self.size)), 1.0
        for at in np.argsort(need * cycles / np.maximum(work[classes], 1e-300), kind="stable"):
            speed = 1.0 if need[at] <= 0 else min(1.0, left / need[at])
            left = max(0.0, left - speed * need[at])
            rate[classes[at]] += speed / cycles[at]
            run[classes[at]] += 1
        return rate, run

    def best(self, work: Floats, running: Floats) -> tuple[float, Ints]:
        """Return what a unit of time can be worth at most, and the columns that run then.

        In a best moment all cores but one run at full speed or not at all; that one takes what is left.
        """
        classes = self.relaxation.columns[0]
        gain, cost = work[classes] / self.cycles, running[classes]
        whole = [self._choices(columns, gain - cost) for columns, _ in self.kinds]
        most, chosen = -inf, np.empty(0, dtype=np.int64)
        for last, (columns, _) in enumerate(self.kinds):
            states = np.zeros(1), np.zeros(1), np.zeros((1, 0), dtype=np.int64)
            for kind, (_, count) in enumerate(self.kinds):
                for _ in range(count - (kind == last)):
                    self.seen[0] += len(states[0]) * len(whole[kind][0])
                    states = _joined(states, whole[kind])
            left = np.maximum(1.0 - states[0], 0.0)[:, None]
            part = np.minimum(1.0, left / np.maximum(self.need[columns], 1e-300)) * gain[columns] - cost[columns]
            part = np.concatenate([part, np.zeros((len(left), 1))], axis=1)  # or it rests
            found = states[1] + part.max(axis=1)
            row = int(found.argmax())
            if found[row] > most:
                most = float(found[row])
                chosen = np.append(states[2][row], np.append(columns, -1)[part[row].argmax()])
        return most, chosen[chosen >= 0]

    def _choices(self, columns: Ints, worth: Floats) -> tuple[Floats, Floats, Ints]:
        """Return states of one core at full speed, or at rest (-1)."""
        fits = columns[self.need[columns] <= FULL]
        return _unbeaten(np.append(self.need[fits], 0.0), np.append(worth[fits], 0.0), np.append(fits, -1)[:, None])


def _joined(states: tuple[Floats, Floats, Ints], more: tuple[Floats, Floats, Ints]) -> tuple[Floats, Floats, Ints]:
    """Return the states of some cores, needs, worths and columns, with those of one more."""
    need, worth = (np.add.outer(one, other).reshape(-1) for one, other in zip(states[:2], more[:2], strict=True))
    fits = np.flatnonzero(need <= FULL)
    one, other = np.divmod(fits, len(more[0]))
    return _unbeaten(need[fits], worth[fits], np.concatenate([states[2][one], more[2][other]], axis=1))


def _unbeaten(need: Floats, worth: Floats, columns: Ints) -> tuple[Floats, Floats, Ints]:
    """Return the states that are worth more than all of less need; of too many some are made better than they are."""
    order = np.lexsort((-worth, need))
    ordered = worth[order]
    kept = order[np.append(True, ordered[1:] > np.maximum.accumulate(ordered)[:-1])]
    need, worth, columns = need[kept], worth[kept], columns[kept]
    if len(need) > STATES:
        cell = np.floor(need * STATES)
        ends = cell[1:] != cell[:-1]
        first, last = np.append(True, ends), np.append(ends, True)
        need, worth, columns = need[first], worth[last], columns[last]
    return need, worth, columns


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
        problem, plans = self.session.problem, self.plans
        draws, best = self.rng.random((len(plans), length, 4)), plans.take(slice(None))
        scores = np.empty((len(plans), length))

        def work(row: int) -> None:
            self.scores[row] = kernels.climb(compiled_plan(plans, row), problem.counts, draws[row], patience,
                                             tables(problem), compiled_plan(best, row), scores[row])

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
