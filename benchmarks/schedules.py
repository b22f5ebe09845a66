"""Schedules: plans simulated a second, beside the same simulator in plain Python; gaps of methods on MAGMA's systems.

Usage: python benchmarks/schedules.py [JOBS [CORES]]
       python benchmarks/schedules.py gaps [--mappings N] [--samples N | --seconds N] [--seeds N] [--lists FOLDER]
                                           [--rows FILE] [--store FILE] [METHOD ...]
       python benchmarks/schedules.py warm [MAPPINGS [SAMPLES [GROUPS [SYSTEM ...]]]]
       python benchmarks/schedules.py tune [--mappings N] [--samples N] [--trials N] [--store FILE]

Random jobs of which a fifth asks for more than its part of the bandwidth; for each way of sharing, seconds for 10,000
plans on one thread and on all, and how many times as fast as plain Python, which simulates a few, all threads are.

With ``gaps``: how far the plans of methods are above their bounds, at the least and the greatest bandwidth of each
system and task, with max-min sharing, after so many plans or seconds each: medians over seeds; on how many of the 48
settings each is within 0.1, 1 and 3 %; and on how many `auto` and `magma` are above each other method by more than
0.1 %. With ``--lists``, the jobs are those of MAGMA's own lists, ``FOLDER/conv/insts0.csv`` and so on. ``--rows`` keeps
what was measured, a line in JSON for each plan, and takes it up; ``--store`` keeps what jobs take on their cores.
With ``warm``: how many times sooner `magma` comes to 99 % of what it ends with where a group begins from the plan of
another one of its task, at 1 and 16 GB/s. With ``tune``: rates for `magma` that Optuna finds (tree-structured Parzen
estimators), by the geometric mean of gaps and 0.1 %, on the 48 settings with the second group of each task, which
``gaps`` does not measure; that of the presets first. The best stand in ``scheduling/methods/magma.json``.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.jobs import Runner
from tilewright.scheduling import (
    SHARINGS,
    AnalysisTable,
    KnownPlan,
    LayerJob,
    ScheduleBound,
    Scheduled,
    ScheduleProblem,
    adopted,
    analyse,
    load_system,
    network_jobs,
    schedule,
    schedule_bound,
    simulate,
    task_groups,
)
from tilewright.scheduling.methods.magma import PRESETS
from tilewright.store import Results

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


TASKS = ("vision", "lang", "recom", "mix")
LISTS = {"vision": "conv"}
"""Under which name MAGMA's release has a task's lists, where it is another."""
GREATEST = {"s1": 16, "s2": 16, "s3": 256, "s4": 256, "s5": 256, "s6": 256}
"""Of each system the greatest bandwidth that is looked at, in GB/s."""


def group_of(task: str, lists: Path | None) -> Sequence[LayerJob]:
    """Return the jobs of a task: drawn, or of the first of MAGMA's own lists."""
    if lists is None:
        return task_groups(task)[0]
    return network_jobs([(tw.load_network(lists / LISTS.get(task, task) / "insts0.csv"), 1)])


def kept_runner(asked: argparse.Namespace) -> Runner:
    """Return what analyses jobs, and keeps what they take on their cores in the store, if one is asked for."""
    return Runner("jobs", keeper=Results(asked.store, "gaps", keep_outdated=True) if asked.store else Memory())


def gaps(asked: argparse.Namespace) -> None:
    runner, kept = kept_runner(asked), asked.rows
    known = {tuple(row[:5]): row[5] for row in map(json.loads, kept.read_text().splitlines())} if (
        kept and kept.exists()) else {}
    found: dict[str, list[float]] = {method: [] for method in asked.methods}
    for task in TASKS:
        jobs = group_of(task, asked.lists)
        for name, most in GREATEST.items():
            system, analysis = load_system(name), None
            for width in (1, most):
                keys = {method: [(task, name, width, method, seed) for seed in range(asked.seeds)]
                        for method in asked.methods}
                missing = [key for each in keys.values() for key in each if key not in known]
                if missing:
                    analysis = analysis or analyse(jobs, system, samples=asked.mappings, runner=runner)
                    problem = ScheduleProblem(analysis.table, analysis.rows,
                                              system.with_bandwidth(f"{width}GB/s").bandwidth, sharing="max-min")
                    bound = schedule_bound(problem)
                for key in missing:
                    known[key] = schedule(problem, key[3], samples=None if asked.seconds else asked.samples,
                                          seconds=asked.seconds, bound=bound, seed=key[4]).gap
                    if kept:
                        with kept.open("a") as file:
                            file.write(json.dumps([*key, known[key]]) + "\n")
                for method, tried in keys.items():
                    found[method].append(float(np.median([known[key] for key in tried])))
                told = "".join(f"{method:>12} {found[method][-1]:>8.3%}" for method in asked.methods)
                print(f"{task:<8}{name:<4}{width:>4} GB/s{told}", flush=True)
    for method, each in found.items():
        within = ", ".join(f"{share:.1%} on {sum(gap <= share for gap in each)}" for share in (0.001, 0.01, 0.03))
        above = "".join(f"; {one} is above it on {sum(_above(found[one], each))}" for one in ("auto", "magma")
                        if one in found and one != method)
        print(f"{method}: at most {within} of {len(each)}; the most {max(each):.1%}{above}")


def _above(gaps: Sequence[float], others: Sequence[float]) -> list[bool]:
    return [1 + gap > 1.001 * (1 + other) for gap, other in zip(gaps, others, strict=True)]


def until(run: Scheduled, score: float) -> float:
    """Return the plans until 99 % of the throughput of a score was reached; infinite where it was not."""
    return float(run.trace[run.trace[:, 2] <= score / 0.99, 0].min(initial=np.inf))


def warm(systems: Sequence[str], mappings: int = 240, samples: int = 10_000, groups: int = 4) -> None:
    runner, sooner = Runner("jobs", keeper=Memory()), []
    for task in TASKS:
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


RATES = {"mutation": (0.001, 0.5), "range": (0.02, 1.0), "accelerator": (0.02, 1.0), "genome": (0.02, 1.0),
         "elite": (0.01, 0.5), "parents": (0.02, 0.8)}
"""Of `magma`, between what bounds Optuna looks for each."""


def second_groups(asked: argparse.Namespace) -> list[tuple[ScheduleProblem, ScheduleBound]]:
    """Return the 48 settings with the second group of each task, and their bounds."""
    runner, problems = kept_runner(asked), []
    for task in TASKS:
        for name, most in GREATEST.items():
            system = load_system(name)
            analysis = analyse(task_groups(task, 2)[1], system, samples=asked.mappings, runner=runner)
            problems += [ScheduleProblem(analysis.table, analysis.rows, system.with_bandwidth(f"{width}GB/s").bandwidth,
                                         sharing="max-min") for width in (1, most)]
    return [(problem, schedule_bound(problem)) for problem in problems]


def gap_with(options: Mapping[str, object], samples: int, place: int) -> float:
    """Return the gap of `magma` with some options on one of the `PROBLEMS` of this process."""
    problem, bound = PROBLEMS[place]
    return schedule(problem, "magma", samples=samples, options=options, bound=bound).gap


PROBLEMS: list[tuple[ScheduleProblem, ScheduleBound]] = []


def tune(asked: argparse.Namespace) -> None:
    import optuna

    PROBLEMS.extend(second_groups(asked))
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:  # so that all have the problems
        def mean(options: Mapping[str, object]) -> float:
            gaps = pool.map(partial(gap_with, options, asked.samples), range(len(PROBLEMS)))
            return float(np.mean(np.log(np.fromiter(gaps, float) + 0.001)))

        def of_trial(trial: Any) -> float:
            rates = {name: trial.suggest_float(name, *bounds, log=True) for name, bounds in RATES.items()}
            return mean(rates | {"population": trial.suggest_categorical("population", [25, 50, 100, 200]),
                                 "weighted": trial.suggest_categorical("weighted", [False, True])})

        for preset in PRESETS:
            print(f"{preset:<10}{np.exp(mean({'preset': preset})):.3%}", flush=True)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0, multivariate=True))
        study.optimize(of_trial, asked.trials, callbacks=[lambda study, trial: print(
            f"{trial.number:<10}{np.exp(trial.value or 0.0):.3%}  {json.dumps(trial.params)}", flush=True)])
    print(f"{'best':<10}{np.exp(study.best_value):.3%}  {json.dumps(study.best_params)}")


def read_words(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="schedules.py gaps|tune")
    parser.add_argument("methods", nargs="*", default=["auto", "magma"], metavar="METHOD")
    for name, default in (("mappings", 240), ("samples", 10_000), ("seeds", 1), ("trials", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, help="in place of samples")
    parser.add_argument("--lists", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--store", type=Path)
    return parser.parse_args(words)


if __name__ == "__main__":
    if sys.argv[1:2] == ["gaps"]:
        gaps(read_words(sys.argv[2:]))
    elif sys.argv[1:2] == ["tune"]:
        tune(read_words(sys.argv[2:]))
    elif sys.argv[1:2] == ["warm"]:
        warm(sys.argv[5:] or ("s2", "s4"), *map(int, sys.argv[2:5]))
    else:
        main(*map(int, sys.argv[1:]))
