"""The compiled simulator: algorithm 1 of Kao 2022 (7.1.5), event by event, for whole populations of plans.

All that is compiled stands in this file: what is kept of a kernel does not notice changes in another. Jobs ``n``, cores
``a``, mappings ``o``; tables are ``(n, a, o)``, plans ``(b, n)``.
"""
# ruff: noqa: PLR0913, PLR0917, PLR0912, C901  (arrays as arguments compile fastest; one event has many parts)

from typing import Any

import numpy as np
from numba import njit

from tilewright.base import kept, part_options

PROPORTIONAL, MAX_MIN, CRITICAL = 0, 1, 2
MOST_EVENTS = 3
"""Of each job: events of a plan are no more."""
EQUAL = 1e-12
"""Relative difference below which two ends are one event."""
FIGURES = 6
"""What is told of a plan: makespan, energy, worst slowdown, late jobs, cycles by which the latest is, the objective."""
EDP, DEADLINES = 3, 4
"""Of the objectives those that are no figure, by their places: makespan 0, energy 1, slowdown 2."""
WAYS = (0, 1, 2, 2, 2, 3, 4, 4)
"""How a plan is changed a little (`change`), each as often as it stands here."""
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions that only compiled functions call.
_part = njit(**_OPTIONS, **part_options())


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
def run_order(core, priority, topological, starts, successors, keys, first, queue):
    """Fill ``queue`` ``(n)`` with the jobs of each core in their order, from ``first`` ``(a + 1)`` on.

    Return all jobs in the order that this comes from: each after its predecessors, whose keys are no greater.
    """
    jobs = len(core)
    for j in range(jobs):
        keys[j] = priority[j]
    for j in topological:
        for s in range(starts[j], starts[j + 1]):
            keys[successors[s]] = max(keys[successors[s]], keys[j])
    whole = topological[np.argsort(keys[topological], kind="mergesort")]
    for a in range(len(first)):
        first[a] = 0
    for j in range(jobs):
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
def run_plan(core, priority, option, cycles, traffic, bandwidth, rule, release, topological, starts, successors, start,
             end, events, shares):
    """Fill ``start`` and ``end`` ``(n)`` with the times of one plan; return how many events it has.

    ``events`` and ``shares`` are filled where they have room. Ends are infinite where a job does not fit its core.

    Raises a `ValueError` if more happens than jobs can: each begins, ends, and is waited for once.
    """
    jobs, cores = len(core), cycles.shape[1]
    for j in range(jobs):
        start[j], end[j] = np.inf, np.inf
    for j in range(jobs):
        if not cycles[j, core[j], option[j]] < np.inf:
            return 0
    keys, critical, queue = np.empty(jobs), np.empty(jobs), np.empty(jobs, np.int64)
    first, waits = np.empty(cores + 1, np.int64), np.zeros(jobs, np.int64)
    whole = run_order(core, priority, topological, starts, successors, keys, first, queue)
    for s in successors:
        waits[s] += 1
    if rule == CRITICAL:
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
                if release[j] > now:
                    next_release = min(next_release, release[j])
                    continue
                job[a], start[j], left[a] = j, now, cycles[j, a, option[j]]
                need[a] = traffic[j, a, option[j]] / left[a]
                at[a] += 1
        share_bandwidth(rule, bandwidth, job, need, critical, speed)
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
def measure(core, priority, option, cycles, traffic, energy, bandwidth, rule, objective, release, deadline, alone,
            topological, starts, successors, start, end, told):
    """Fill ``told`` ``(FIGURES)`` of one plan; return which job ends last."""
    run_plan(core, priority, option, cycles, traffic, bandwidth, rule, release, topological, starts, successors, start,
             end, np.empty(0), np.empty((0, 0)))
    for k in range(FIGURES):
        told[k] = 0.0
    last = 0
    for j in range(len(core)):
        if end[j] > told[0]:
            told[0], last = end[j], j
        told[1] += energy[j, core[j], option[j]]
        told[2] = max(told[2], (end[j] - release[j]) / alone[j])
        if end[j] > deadline[j] * (1 + EQUAL):
            told[3] += 1
            told[4] = max(told[4], end[j] - deadline[j])
    if told[0] == np.inf:
        told[5] = np.inf
    elif objective == DEADLINES:
        told[5] = told[3] + told[4] / told[0]
    elif objective == EDP:
        told[5] = told[0] * told[1]
    else:
        told[5] = told[objective]
    return last


@kept
@njit(**_OPTIONS)
def run_plans(core, priority, option, cycles, traffic, energy, bandwidth, rule, objective, release, deadline, alone,
              topological, starts, successors, figures):
    """Fill ``figures`` ``(b, FIGURES)``; infinite where a job does not fit its core."""
    start, end = np.empty(core.shape[1]), np.empty(core.shape[1])
    for b in range(len(core)):
        measure(core[b], priority[b], option[b], cycles, traffic, energy, bandwidth, rule, objective, release, deadline,
                alone, topological, starts, successors, start, end, figures[b])


@_part
def change(core, priority, option, counts, draw, last):
    """Change a plan in one of the `WAYS`.

    A first number chooses the way, a second the job: every other time one of the core that ends last. What the others
    decide depends on the way.
    """
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
def copy(core, priority, option, into_core, into_priority, into_option):
    """Copy a plan: slices would take several times as long to compile."""
    for j in range(len(core)):
        into_core[j], into_priority[j], into_option[j] = core[j], priority[j], option[j]


@kept
@njit(**_OPTIONS)
def climb(core, priority, option, counts, draws, patience, cycles, traffic, energy, bandwidth, rule, objective, release,
          deadline, alone, topological, starts, successors, best_core, best_priority, best_option, scores):
    """Change a plan ``(n)`` in place, one draw ``(4)`` after the other, and keep what is no worse than ``patience``.

    That is times the best score until then (record-to-record travel; Dueck, 1993). Fill ``scores`` with those of all
    that was tried (the first is that of the plan as it was given); return that of the best plan, which is kept besides.
    """
    start, end, told = np.empty(len(core)), np.empty(len(core)), np.empty(FIGURES)
    kept_core, kept_priority, kept_option = core.copy(), priority.copy(), option.copy()
    best, last = np.inf, 0
    for i in range(len(draws)):
        if i > 0:
            copy(core, priority, option, kept_core, kept_priority, kept_option)
            change(core, priority, option, counts, draws[i], last)
        found = measure(core, priority, option, cycles, traffic, energy, bandwidth, rule, objective, release, deadline,
                        alone, topological, starts, successors, start, end, told)
        scores[i] = told[5]
        if i == 0 or told[5] <= best * patience:
            last = found
            if told[5] < best:
                best = told[5]
                copy(core, priority, option, best_core, best_priority, best_option)
        else:
            copy(kept_core, kept_priority, kept_option, core, priority, option)
    return best
