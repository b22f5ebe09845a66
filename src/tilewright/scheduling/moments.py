"""A bound on schedules that knows what cores can do at one moment, all at once, with the bandwidth that they share."""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np

from tilewright.scheduling.bounds import SLACK, Relaxation
from tilewright.scheduling.problem import Floats, Ints, ScheduleProblem, Timeline

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
