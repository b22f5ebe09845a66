"""What studies of MAGMA have in common: parts of its systems, groups scheduled by many methods, the oracle's word."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean
from typing import Any

from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.mapping import dump_mapping
from tilewright.reproduce.claims import Claim, Judgement, judge
from tilewright.reproduce.searching import oracle_cell
from tilewright.reproduce.study import Cell, Setting, Table, Value
from tilewright.scheduling import LayerJob, System, analyse, group_problem, load_system, schedule, task_groups

MAGMA = "magma"
HAND = ("herald-like", "ai-mt-like")
BLACK_BOX = ("ga", "de", "cma-es", "tbpsa", "pso")
"""Optimisers of table 7.3 that know numbers alone; A2C and PPO are left out."""
OURS = ("list", "auto")
METHODS = (MAGMA, *HAND, *BLACK_BOX, *OURS)
Place = tuple[str, str, str]
"""Task, system, bandwidth."""


def only(name: str, cores: Iterable[int]) -> System:
    """Return a known system with only some of its cores."""
    system = load_system(name)
    return replace(system, cores=tuple(system.cores[place] for place in cores))


def contest(places: Sequence[Place], setting: Setting, runner: Runner) -> tuple[dict[tuple[Place, int], Any], str]:
    """Return what all methods reach, by place and seed, and the oracle's word; two genomes, proportional sharing."""
    asked = [(place, seed) for place in places for seed in range(setting.seeds)]
    cells = [_cell(place, seed, setting) for place, seed in asked]
    found = dict(zip(asked, runner.run(cells), strict=True))
    first = [(cell, place) for cell, (place, seed) in zip(cells, asked, strict=True) if seed == 0]
    told = oracles(runner, [(cell, _group(place, 0, setting)[0], load_system(place[1]).cores[0].accelerator,
                             found[place, 0]) for cell, place in first])
    return found, told


def _group(place: Place, seed: int, setting: Setting) -> tuple[LayerJob, ...]:
    return task_groups(place[0], 1, seed, setting["jobs"])[0]


def _cell(place: Place, seed: int, setting: Setting) -> Cell:
    task, name, bandwidth = place

    def compute() -> dict[str, Any]:
        jobs, system = _group(place, seed, setting), load_system(name).with_bandwidth(bandwidth)
        analysis = analyse(jobs, system, samples=setting["mappings"], runner=Runner(workers=1))
        problem = group_problem(jobs, analysis.rows.tolist(), analysis, system.bandwidth, choose_mapping=False)
        rate = 2e-3 * system.clock_mhz * sum(job.macs for job in jobs)
        runs = {method: schedule(problem, method, samples=setting["samples"], seed=seed) for method in METHODS}
        return {"gflops": {method: rate / run.score for method, run in runs.items()},
                "bound_gflops": rate / runs[MAGMA].bound.value,
                "samples": sum(run.samples for run in runs.values()) + analysis.samples,
                "mapping": dump_mapping(analysis.mapping(0, 0, 0), jobs[0].operator, system.cores[0].accelerator)}

    key = {"task": task, "system": name, "bandwidth": bandwidth, "jobs": setting["jobs"], "plans": setting["samples"],
           "mappings": setting["mappings"], "seed": seed}
    return Cell(key, compute, lambda value: int(value["samples"]))


def oracles(runner: Runner, asked: Sequence[tuple[Cell, LayerJob, Accelerator, Mapping[str, Any]]]) -> str:
    """Return what the oracle says of a mapping of each cell."""
    told = runner.run([oracle_cell(cell.key or {}, job.operator, machine, value["mapping"])
                       for cell, job, machine, value in asked])
    right = sum(bool(one["agrees"]) for one in told)
    return f"The oracle confirms {right} of {len(told)} mappings." + (" It disagrees." if right < len(told) else "")


def lead(found: Mapping[tuple[Place, int], Any], places: Sequence[Place], seed: int, others: Sequence[str]) -> float:
    """Return how many times the throughput of others MAGMA has: the geometric mean over places and methods."""
    return geometric_mean(found[place, seed]["gflops"][MAGMA] / found[place, seed]["gflops"][other]
                          for place in places for other in others)


def beside(found: Mapping[tuple[Place, int], Any], places: Sequence[Place], setting: Setting) -> str:
    """Return how far MAGMA is ahead of a list schedule and of auto, which the paper does not have."""
    told = [f"of {other} {min(ours):.3g}x to {max(ours):.3g}x" for other in OURS
            for ours in [[lead(found, places, seed, (other,)) for seed in range(setting.seeds)]]]
    return f"MAGMA has the throughput {' and '.join(told)} (geometric means over places, by seed)."


def leads(claim: Claim, found: Mapping[tuple[Place, int], Any], places: Sequence[Place], setting: Setting,
          others: Sequence[str]) -> Judgement:
    """Judge a claim of how far MAGMA leads."""
    ours = [lead(found, places, seed, others) for seed in range(setting.seeds)]
    return judge(claim, ours, ", ".join(f"{one:.3g}x" for one in ours))


def throughput(found: Mapping[tuple[Place, int], Any], places: Sequence[Place],
               published: Mapping[Place, float]) -> Table:
    """Return the table of throughputs, of the first seed."""
    rows: list[tuple[Value, ...]] = []
    for place in places:
        value = found[place, 0]
        rows.append((*place, published.get(place), *(value["gflops"][method] for method in METHODS),
                     value["bound_gflops"]))
    return Table("throughput", "Throughput in GFLOP/s (first seed)", (
        "Task", "System", "Bandwidth", "published", *METHODS, "bound"), tuple(rows),
        ("Published: MAGMA's, on other jobs. Bound: no schedule of these jobs does better.",))
