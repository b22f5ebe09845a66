"""Schedules: plans simulated a second, beside the same simulator in plain Python; gaps of methods on MAGMA's systems.

Usage: python benchmarks/schedules.py [JOBS [CORES]]
       python benchmarks/schedules.py gaps [MAPPINGS [SAMPLES [SEEDS [METHOD ...]]]]
       python benchmarks/schedules.py warm [MAPPINGS [SAMPLES [GROUPS [SYSTEM ...]]]]

Random jobs of which a fifth asks for more than its part of the bandwidth; for each way of sharing, seconds for 10,000
plans on one thread and on all, and how many times as fast as plain Python, which simulates a few, all threads are.

With ``gaps``: how far the plans of methods are above their bounds, at the least and the greatest bandwidth of each
system and task, with max-min sharing, after so many samples each: medians over seeds, and on how many settings the
first method is above each other by more than 0.1 %. With ``warm``: how many times sooner `magma` comes to 99 % of what
it ends with where a group begins from the plan of another one of its task, at 1 and 16 GB/s.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.jobs import Runner
from tilewright.scheduling import (
    SHARINGS,
    AnalysisTable,
    KnownPlan,
    ScheduleBound,
    Scheduled,
    ScheduleProblem,
    adopted,
    analyse,
    load_system,
    schedule,
    schedule_bound,
    simulate,
    task_groups,
)

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "scheduling"))
from plan_walk import walk_plan  # the literal simulator stands with the tests

PLANS, PLAIN, REPEATS = 10_000, 20, 5
NOTHING = ScheduleBound(0.0)


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


class Memory:
    """Keeps what was analysed for as long as this runs."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def take(self, keys: Sequence[Mapping[str, object]]) -> list[Any]:
        return [self.values.get(repr(key)) for key in keys]

    def put(self, key: Mapping[str, object], value: Any) -> None:
        self.values[repr(key)] = value


def gaps(mappings: int = 240, samples: int = 10_000, seeds: int = 1,
         methods: Sequence[str] = ("auto", "magma")) -> None:
    runner, found = Runner("jobs", keeper=Memory()), {method: [] for method in methods}
    for task in ("vision", "lang", "recom", "mix"):
        for name, most in (("s1", 16), ("s2", 16), ("s3", 256), ("s4", 256), ("s5", 256), ("s6", 256)):
            system = load_system(name)
            analysis = analyse(task_groups(task)[0], system, samples=mappings, runner=runner)
            for width in (1, most):
                bandwidth = system.with_bandwidth(f"{width}GB/s").bandwidth
                problem = ScheduleProblem(analysis.table, analysis.rows, bandwidth, sharing="max-min")
                bound = schedule_bound(problem)
                for method in methods:
                    each = [schedule(problem, method, samples=samples, bound=bound, seed=seed).gap
                            for seed in range(seeds)]
                    found[method].append(float(np.median(each)))
                told = "".join(f"{method:>12} {found[method][-1]:>8.3%}" for method in methods)
                print(f"{task:<8}{name:<4}{width:>4} GB/s{told}", flush=True)
    first = np.array(found[methods[0]])
    for method, known in found.items():
        print(f"{method}: at most 1 % on {sum(gap <= 0.01 for gap in known)}, 3 % on "
              f"{sum(gap <= 0.03 for gap in known)} of {len(known)}; the most {max(known):.1%}; {methods[0]} is above "
              f"it on {sum(1 + first > 1.001 * (1 + np.array(known)))}")


def until(run: Scheduled, score: float) -> float:
    """Return the plans until 99 % of the throughput of a score was reached; infinite where it was not."""
    return float(run.trace[run.trace[:, 2] <= score / 0.99, 0].min(initial=np.inf))


def warm(mappings: int = 240, samples: int = 10_000, groups: int = 4, systems: Sequence[str] = ("s2", "s4")) -> None:
    runner, sooner = Runner("jobs", keeper=Memory()), []
    for task in ("vision", "lang", "recom", "mix"):
        for name in systems:
            system, drawn = load_system(name), task_groups(task, groups + 1, 5)
            analysis = analyse([job for group in drawn for job in group], system, samples=mappings, runner=runner)
            for width in (1, 16):
                bandwidth = system.with_bandwidth(f"{width}GB/s").bandwidth
                problems = [ScheduleProblem(analysis.table, rows, bandwidth, sharing="max-min")
                            for rows in np.split(analysis.rows, groups + 1)]
                known = KnownPlan.of(problems[0], schedule(problems[0], "magma", samples=samples).plan)
                for problem in problems[1:]:
                    cold = schedule(problem, "magma", samples=samples, bound=NOTHING)
                    begun = schedule(problem, "magma", samples=samples, bound=NOTHING, warm=adopted(problem, known))
                    sooner.append(until(cold, cold.score) / until(begun, cold.score))
                print(f"{task:<8}{name:<4}{width:>4} GB/s " + "".join(f"{times:>9.2f}" for times in sooner[-groups:]),
                      flush=True)
    print(f"median {np.median(sooner):.1f} times sooner; 5 times on {sum(each >= 5 for each in sooner)}, not sooner on "
          f"{sum(each <= 1 for each in sooner)} of {len(sooner)}")


if __name__ == "__main__":
    if sys.argv[1:2] in (["gaps"], ["warm"]):
        ask = gaps if sys.argv[1] == "gaps" else warm
        ask(*map(int, sys.argv[2:5]), *([tuple(sys.argv[5:])] if sys.argv[5:] else []))
    else:
        main(*map(int, sys.argv[1:]))
