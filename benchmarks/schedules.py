"""Schedules: plans simulated a second, beside the same simulator in plain Python.

Usage: python benchmarks/schedules.py [JOBS [CORES]]

Random jobs of which a fifth asks for more than its part of the bandwidth; for each way of sharing, seconds for 10,000
plans on one thread and on all, and how many times as fast as plain Python, which simulates a few, all threads are.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from tilewright.scheduling import SHARINGS, AnalysisTable, ScheduleProblem, simulate
from tilewright.scheduling.reference import walk_plan

PLANS, PLAIN, REPEATS = 10_000, 20, 5


def random_group(jobs: int, cores: int, sharing: str, seed: int = 0) -> ScheduleProblem:
    """Return a group of jobs, each with a front of up to four mappings, on cores of which the last is slow."""
    rng = np.random.default_rng(seed)
    cycles = np.exp(rng.uniform(6, 12, (jobs, 1, 1))) * np.array([1.0, 1.6, 2.5, 4.0]) * np.ones((1, cores, 1))
    cycles[:, -1] *= 20
    traffic = cycles[:, :1, :1] * np.exp(rng.uniform(-3, 2, (jobs, 1, 1))) / np.array([1.0, 2.0, 3.0, 4.0])
    table = AnalysisTable(cycles, traffic * np.ones((1, cores, 1)), np.ones(cycles.shape),
                          rng.integers(1, 5, (jobs, cores)))
    return ScheduleProblem(table, np.arange(jobs), cores / 2, sharing=sharing)  # type: ignore[arg-type]


def seconds(work: Callable[[], object]) -> float:
    """Return the least wall-clock seconds of some repeats."""
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def main(jobs: int = 100, cores: int = 8) -> None:
    threads = len(os.sched_getaffinity(0))
    print(f"{PLANS:,} plans of {jobs} jobs on {cores} cores\n")
    print(f"{'sharing':<16}{'1 thread':>10}{f'{threads} threads':>12}{'plain Python':>14}")
    for sharing in SHARINGS:
        problem = random_group(jobs, cores, sharing)
        plans = problem.drawn(np.random.default_rng(1), PLANS)
        simulate(problem, plans.take(slice(10)))
        one, all_ = (seconds(partial(simulate, problem, plans, count)) for count in (1, threads))
        few = [plans.take(slice(b, b + 1)) for b in range(PLAIN)]
        start = time.perf_counter()
        ends = [max(walk_plan(problem, plan, float)[1]) for plan in few]
        plain = (time.perf_counter() - start) / PLAIN * PLANS
        np.testing.assert_allclose(ends, simulate(problem, plans.take(slice(PLAIN))).makespan_cycles, rtol=1e-9)
        print(f"{sharing:<16}{one:>8.2f} s{all_:>10.2f} s{plain:>12.0f} s  {plain / all_:.0f} times", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
