"""The literal simulator: one plan, in fractions, as the rules are told; shares no code with the compiled one."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

from tilewright.scheduling import PlanGenomes, ScheduleProblem

Numbers = dict[int, Any]


def walk_plan(problem: ScheduleProblem, plan: PlanGenomes, number: Any = Fraction) -> tuple[list[Any], list[Any]]:
    """Return when each job of the first of the plans begins, and when it ends.

    ``number`` is what is reckoned in; with `float` this is how one would write the simulator in plain Python.
    """
    jobs = range(len(problem.rows))
    core = {j: int(plan.core[0, j]) for j in jobs}
    place = {j: (int(problem.rows[j]), core[j], int(plan.option[0, j])) for j in jobs}
    cycles = {j: number(float(problem.table.cycles[place[j]])) for j in jobs}
    volume = {j: number(float(problem.table.traffic_bytes[place[j]])) for j in jobs}
    release = {j: number(float(problem.release[j])) for j in jobs}
    before: dict[int, list[int]] = {j: [] for j in jobs}
    for one, other in problem.before.tolist():
        before[other].append(one)
    bandwidth = number(float(problem.bandwidth))
    queues = _queues(core, {j: float(plan.priority[0, j]) for j in jobs}, before)
    chains = _chains(queues, before, cycles)
    part_left = {j: number(1) for j in jobs}
    start: Numbers = {}
    end: Numbers = {}
    running: dict[int, int] = {}
    now = number(0)
    while len(end) < len(core):
        for where, queue in queues.items():
            if where not in running and queue and release[queue[0]] <= now and all(i in end for i in before[queue[0]]):
                running[where] = queue.pop(0)
                start[running[where]] = now
        asked = {j: volume[j] / cycles[j] for j in running.values()}
        given = _given(problem.sharing, bandwidth, asked, {j: (-chains[j], core[j]) for j in asked})
        lasts = {j: part_left[j] * (volume[j] / given[j] if volume[j] else cycles[j])
                 for j in asked if given[j] or not volume[j]}
        ahead = [release[queue[0]] - now for where, queue in queues.items()
                 if where not in running and queue and all(i in end for i in before[queue[0]])]
        span = min([*lasts.values(), *ahead])
        now += span
        for j, last in lasts.items():
            part_left[j] -= part_left[j] * span / last
            if last == span:
                end[j] = now
                del running[core[j]]
    return [start[j] for j in jobs], [end[j] for j in jobs]


def _queues(core: dict[int, int], priority: Numbers, before: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the jobs of each core in their order."""
    def level(j: int) -> int:
        return max((level(i) + 1 for i in before[j]), default=0)

    def counted(j: int) -> float:
        return max([float(priority[j]), *(counted(i) for i in before[j])])

    order = sorted(core, key=lambda j: (counted(j), level(j), j))
    return {where: [j for j in order if core[j] == where] for where in sorted(set(core.values()))}


def _chains(queues: dict[int, list[int]], before: dict[int, list[int]], cycles: Numbers) -> Numbers:
    """Return the cycles of the longest chain that each job begins."""
    follows: dict[int, list[int]] = {j: [] for j in before}
    for j, earlier in before.items():
        for i in earlier:
            follows[i].append(j)
    for queue in queues.values():
        for i, j in pairwise(queue):
            follows[i].append(j)
    known: Numbers = {}

    def chain(j: int) -> Any:
        if j not in known:
            known[j] = cycles[j] + max((chain(k) for k in follows[j]), default=0)
        return known[j]

    return {j: chain(j) for j in before}


def _given(sharing: str, bandwidth: Any, asked: Numbers, rank: dict[int, Any]) -> Numbers:
    """Return the bytes a cycle that each running job gets."""
    total = sum(asked.values())
    if total <= bandwidth:
        return asked
    if sharing == "proportional":
        return {j: need * bandwidth / total for j, need in asked.items()}
    given, left = {}, bandwidth
    if sharing == "max-min":
        for served, (need, j) in enumerate(sorted((need, j) for j, need in asked.items())):
            given[j] = min(need, left / (len(asked) - served))
            left -= given[j]
    else:
        for j in sorted(asked, key=lambda j: rank[j]):
            given[j] = min(asked[j], left)
            left -= given[j]
    return given
