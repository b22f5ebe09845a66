"""The compiled simulator: algorithm 1 of Kao 2022 (7.1.5), event by event, for whole populations of plans.

All that is compiled stands in this file: what is kept of a kernel does not notice changes in another. Jobs ``n``, cores
``a``, mappings ``o``; tables are ``(n, a, o)``, plans ``(b, n)``.
"""
# ruff: noqa: PLR0913, PLR0917, PLR0912, C901  (arrays as arguments compile fastest; one event has many parts)

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tilewright.base import kept, part_options

PROPORTIONAL, MAX_MIN, CRITICAL = 0, 1, 2
MOST_EVENTS = 3
"""Of each job: events of a plan are no more."""
EQUAL = 1e-12
"""Relative difference below which two ends are one event."""
MAKESPAN, ENERGY, SLOWDOWN, LATE, LATENESS, SCORE = range(6)
"""What is told of a plan: makespan, energy, worst slowdown, late jobs, cycles by which the latest is, the objective."""
FIGURES = SCORE + 1
EDP, DEADLINES = 3, 4
"""Of the objectives those that are no figure, by their places; the others have those of their figures."""
WAYS = (0, 1, 2, 2, 2, 3, 4, 4)
"""How a plan is changed a little (`change`), each as often as it stands here."""
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions that only compiled functions call.
_part = njit(**_OPTIONS, **part_options())


class JobTables(NamedTuple):
    """What a problem is to compiled code."""

    cycles: np.ndarray
    traffic: np.ndarray
    energy: np.ndarray
    """``cycles``, ``traffic`` and ``energy``: ``(n, a, o)``; cycles are infinite where a job does not fit a core."""
    bandwidth: float
    sharing: int
    """`PROPORTIONAL`, `MAX_MIN` or `CRITICAL`."""
    objective: int
    release: np.ndarray
    deadline: np.ndarray
    alone: np.ndarray
    """``release``, ``deadline`` and ``alone``: ``(n)``: cycles; what a job takes alone at best."""
    topological: np.ndarray
    """``(n)``: the jobs in an order in which each comes after its predecessors."""
    starts: np.ndarray
    successors: np.ndarray
    """``starts`` and ``successors``: those of job ``j`` are ``successors[starts[j]:starts[j + 1]]``."""


class PlanArrays(NamedTuple):
    """Where and when each job runs, and with which of the mappings it has there: ``(n)`` each."""

    core: np.ndarray
    priority: np.ndarray
    option: np.ndarray


@_part
def share_bandwidth(rule, bandwidth, job, need, critical, speed):
    """Write into ``speed`` ``(a)`` at what part of full speed each core runs; those with no ``job`` (-1) at 0."""
    cores = len(job)
    asked = 0.0
    for a in range(cores):
        speed[a] = 0.0 if job[a] < 0 else 1.0
        if job[a] >= 0:
            asked += need[a]
    if asked <= bandwidth:
        return
    if rule == PROPORTIONAL:
        for a in range(cores):
            if job[a] >= 0 and need[a] > 0:
                speed[a] = bandwidth / asked
        return
    left = bandwidth
    for a in range(cores):
        if job[a] >= 0 and need[a] > 0:
            speed[a] = -1.0  # not served yet
    while True:
        # Max-min serves the least need first, each with its equal part of what is left; critical-first all there is.
        best, waiting = -1, 0
        for a in range(cores):
            if speed[a] == -1.0:
                waiting += 1
                if best < 0 or (need[a] < need[best] if rule == MAX_MIN else critical[job[a]] > critical[job[best]]):
                    best = a
        if best < 0:
            return
        given = min(need[best], left / waiting if rule == MAX_MIN else left)
        speed[best] = given / need[best]
        left = max(left - given, 0.0)


@_part
def run_order(plan, jobs, keys, first, queue):
    """Fill ``queue`` ``(n)`` with the jobs of each core in their order, from ``first`` ``(a + 1)`` on.

    Return all jobs in the order that this comes from: each after its predecessors, whose keys are no greater.
    """
    core, successors = plan.core, jobs.successors
    for j in range(len(core)):
        keys[j] = plan.priority[j]
    for j in jobs.topological:
        for s in range(jobs.starts[j], jobs.starts[j + 1]):
            keys[successors[s]] = max(keys[successors[s]], keys[j])
    whole = jobs.topological[np.argsort(keys[jobs.topological], kind="mergesort")]
    for a in range(len(first)):
        first[a] = 0
    for j in range(len(core)):
        first[core[j] + 1] += 1
    for a in range(len(first) - 1):
        first[a + 1] += first[a]
    for j in whole:
        queue[first[core[j]]] = j
        first[core[j]] += 1
    for a in range(len(first) - 1, 0, -1):
        first[a] = first[a - 1]
    first[0] = 0
    return whole


@kept
@njit(**_OPTIONS)
def run_plan(plan, tables, start, end, events, shares):
    """Fill ``start`` and ``end`` ``(n)`` with the times of one plan; return how many events it has.

    ``events`` and ``shares`` are filled where they have room. Ends are infinite where a job does not fit its core.

    Raises a `ValueError` if more happens than jobs can: each begins, ends, and is waited for once.
    """
    core, option, cycles, starts, successors = plan.core, plan.option, tables.cycles, tables.starts, tables.successors
    jobs, cores = len(core), cycles.shape[1]
    for j in range(jobs):
        start[j], end[j] = np.inf, np.inf
    for j in range(jobs):
        if not cycles[j, core[j], option[j]] < np.inf:
            return 0
    keys, critical, queue = np.empty(jobs), np.empty(jobs), np.empty(jobs, np.int64)
    first, waits = np.empty(cores + 1, np.int64), np.zeros(jobs, np.int64)
    whole = run_order(plan, tables, keys, first, queue)
    for s in successors:
        waits[s] += 1
    if tables.sharing == CRITICAL:
        behind = np.zeros(cores)
        for j in whole[::-1]:
            longest = behind[core[j]]
            for s in range(starts[j], starts[j + 1]):
                longest = max(longest, critical[successors[s]])
            critical[j] = behind[core[j]] = longest + cycles[j, core[j], option[j]]
    at, job = first[:-1].copy(), np.full(cores, -1)
    left, need, speed = np.zeros(cores), np.zeros(cores), np.zeros(cores)
    now, done, count = 0.0, 0, 0
    while done < jobs:
        if count > MOST_EVENTS * jobs:
            raise ValueError("a plan does not come to an end: some jobs wait for each other")
        next_release = np.inf
        for a in range(cores):
            if job[a] < 0 and at[a] < first[a + 1] and waits[queue[at[a]]] == 0:
                j = queue[at[a]]
                if tables.release[j] > now:
                    next_release = min(next_release, tables.release[j])
                    continue
                job[a], start[j], left[a] = j, now, cycles[j, a, option[j]]
                need[a] = tables.traffic[j, a, option[j]] / left[a]
                at[a] += 1
        share_bandwidth(tables.sharing, tables.bandwidth, job, need, critical, speed)
        span = np.inf
        for a in range(cores):
            if job[a] >= 0 and speed[a] > 0:
                span = min(span, left[a] / speed[a])
        if count < len(shares):
            events[count] = now
            for a in range(cores):
                shares[count, a] = need[a] * speed[a] if job[a] >= 0 else 0.0
        count += 1
        released = now + span > next_release
        span = next_release - now if released else span
        now = next_release if released else now + span
        for a in range(cores):
            if job[a] >= 0 and speed[a] > 0:
                if left[a] / speed[a] <= span * (1 + EQUAL):
                    j = job[a]
                    end[j], job[a], done = now, -1, done + 1
                    for s in range(starts[j], starts[j + 1]):
                        waits[successors[s]] -= 1
                else:
                    left[a] -= span * speed[a]
    if count < len(events):
        events[count] = now
    return count


@_part
def measure(plan, tables, start, end, told):
    """Fill ``told`` ``(FIGURES)`` of one plan; return which job ends last."""
    run_plan(plan, tables, start, end, np.empty(0), np.empty((0, 0)))
    for k in range(FIGURES):
        told[k] = 0.0
    last = 0
    for j in range(len(plan.core)):
        if end[j] > told[MAKESPAN]:
            told[MAKESPAN], last = end[j], j
        told[ENERGY] += tables.energy[j, plan.core[j], plan.option[j]]
        told[SLOWDOWN] = max(told[SLOWDOWN], (end[j] - tables.release[j]) / tables.alone[j])
        if end[j] > tables.deadline[j] * (1 + EQUAL):
            told[LATE] += 1
            told[LATENESS] = max(told[LATENESS], end[j] - tables.deadline[j])
    if told[MAKESPAN] == np.inf:
        told[SCORE] = np.inf
    elif tables.objective == DEADLINES:
        told[SCORE] = told[LATE] + told[LATENESS] / told[MAKESPAN]
    elif tables.objective == EDP:
        told[SCORE] = told[MAKESPAN] * told[ENERGY]
    else:
        told[SCORE] = told[tables.objective]
    return last


@kept
@njit(**_OPTIONS)
def run_plans(plans, tables, figures):
    """Fill ``figures`` ``(b, FIGURES)`` of plans; infinite where a job does not fit its core."""
    start, end = np.empty(plans.core.shape[1]), np.empty(plans.core.shape[1])
    for b in range(len(plans.core)):
        measure(PlanArrays(plans.core[b], plans.priority[b], plans.option[b]), tables, start, end, figures[b])


@_part
def change(plan, counts, draw, last):
    """Change a plan in one of the `WAYS`.

    A first number chooses the way, a second the job: every other time one of the core that ends last. What the others
    decide depends on the way.
    """
    core, priority, option = plan
    jobs, cores = counts.shape
    place = int(draw[0] * len(WAYS))
    way = WAYS[place]
    j = int(draw[1] * jobs)
    if draw[0] * len(WAYS) - place < 0.5:
        while core[j] != core[last]:
            j = (j + 1) % jobs
    k = int(draw[2] * jobs)
    if way == 0:  # to another core, with the mapping at the same place of its front
        a = int(draw[2] * cores)
        for _ in range(cores):
            if a != core[j] and counts[j, a] > 0:
                core[j], option[j] = a, min(option[j], counts[j, a] - 1)
                break
            a = (a + 1) % cores
    elif way == 1:  # two jobs change their cores
        for _ in range(jobs):
            if core[k] != core[j] and counts[j, core[k]] > 0 and counts[k, core[j]] > 0:
                core[j], core[k] = core[k], core[j]
                option[j], option[k] = min(option[j], counts[j, core[j]] - 1), min(option[k], counts[k, core[k]] - 1)
                break
            k = (k + 1) % jobs
    elif way == 2:  # another mapping
        option[j] = int(draw[3] * counts[j, core[j]])
    elif way == 3:  # another time
        priority[j] = draw[3]
    else:  # two jobs change their times
        priority[j], priority[k] = priority[k], priority[j]


@_part
def copy(plan, into):
    """Copy a plan: slices would take several times as long to compile."""
    for j in range(len(plan.core)):
        into.core[j], into.priority[j], into.option[j] = plan.core[j], plan.priority[j], plan.option[j]


@kept
@njit(**_OPTIONS)
def climb(plan, counts, draws, patience, tables, best_plan, scores):
    """Change a plan in place, one draw ``(4)`` after the other, and keep what is no worse than ``patience``.

    That is times the best score until then (record-to-record travel; Dueck, 1993). Fill ``scores`` with those of all
    that was tried (the first is that of the plan as it was given); return that of the best plan, which is kept besides.
    """
    start, end, told = np.empty(len(plan.core)), np.empty(len(plan.core)), np.empty(FIGURES)
    before = PlanArrays(plan.core.copy(), plan.priority.copy(), plan.option.copy())
    best, last = np.inf, 0
    for i in range(len(draws)):
        if i > 0:
            copy(plan, before)
            change(plan, counts, draws[i], last)
        found = measure(plan, tables, start, end, told)
        scores[i] = told[SCORE]
        if i == 0 or told[SCORE] <= best * patience:
            last = found
            if told[SCORE] < best:
                best = told[SCORE]
                copy(plan, best_plan)
        else:
            copy(before, plan)
    return best
