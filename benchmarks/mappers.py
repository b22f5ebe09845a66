"""Mappers at equal samples or time: for every distinct layer of networks, the median of the best scores over seeds.

Usage: python benchmarks/mappers.py [--mappers auto gamma gamma:paper=true ...] [--networks ...] [--machines ...]
       [--objectives edp latency] [--samples 10000 | --seconds 0.05] [--seeds 10] [--tiling imperfect] [--every 1]
       [--jobs 1]
       [--cache FILE] [--again MAPPER ...] [--layers]

A mapper may carry options, as in ``gamma:paper=true,population=100``. Every search is kept in the cache (a store) and
not done again, so that a run can be stopped, resumed and extended; ``--again`` does those of some mappers anew. Printed
is, for each machine, objective and mapper: on how many layers its median is the lowest of all (ties within a
billionth count for all), on what share it is within 0.2 % of that, by how much the geometric mean is above the lowest,
the worst of these, the median gap to the bound, searches that found nothing, microseconds a sample, and milliseconds of
setting up before time counts. ``--layers`` prints the medians by layer too. ``--seconds`` are of the processor, on one
thread; what is found later than a tenth of them after their end does not count.
"""

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from tilewright.hardware import preset
from tilewright.jobs import Job, Runner
from tilewright.mapping import MapSpace, Tiling
from tilewright.search import Budget, Watch, search
from tilewright.store import Results
from tilewright.workload import Operator, unique_operators, zoo

NETWORKS = ("resnet50", "mobilenet-v2", "mnasnet", "bert-base")
MACHINES = ("eyeriss", "edge-s2")
OBJECTIVES = ("edp", "latency")
MAPPERS = ("auto", "gamma", "gamma:paper=true", "exact", "exhaustive", "random", "random-pruned")
SAME, NEAR = 1 + 1e-9, 1.002
LATE = 1.1


@dataclass(frozen=True)
class Case:
    """One search: what decides its result."""

    mapper: str
    network: str
    layer: str
    machine: str
    objective: str
    tiling: str
    samples: int | None
    seed: int
    cpu_seconds: float | None = None


@dataclass(frozen=True)
class Found:
    """What it found; the score is infinite where that is nothing."""

    score: float
    bound: float | None
    seconds: float
    samples: int
    setup: float
    """Seconds before the first sample that the budget does not count."""


@lru_cache
def layers_of(networks: tuple[str, ...]) -> dict[tuple[str, str], Operator]:
    """Return the layers by network and name, each shape once over all networks."""
    found: dict[str, tuple[tuple[str, str], Operator]] = {}
    for network in networks:
        for unique in unique_operators(zoo.load(network)):
            found.setdefault(str(unique.operator.signature), ((network, unique.operator.name), unique.operator))
    return dict(found.values())


def options_of(text: str) -> dict[str, object]:
    """Read ``paper=true,population=100``."""
    return {name: json.loads(value) for name, _, value in (part.partition("=") for part in text.split(",") if part)}


def run(case: Case) -> dict[str, float | None]:
    """Search on one thread, after another search that loads all programs."""
    warm(case.mapper, case.machine, case.objective, case.tiling)
    return asdict(searched_once(case))


@lru_cache
def warm(mapper: str, machine: str, objective: str, tiling: str) -> None:
    """Search once for nothing."""
    network, layer = next(iter(layers_of(("resnet50",))))
    searched_once(Case(mapper, network, layer, machine, objective, tiling, None, 0, 0.3))


def searched_once(case: Case) -> Found:
    """Search, and tell what was found in time."""
    name, _, options = case.mapper.partition(":")
    operator = layers_of((case.network,))[case.network, case.layer]
    accelerator = preset(case.machine)
    tiling: Tiling = case.tiling  # type: ignore[assignment]
    begun = time.process_time()
    found = search(operator, accelerator, objective=case.objective, mapper=name, seed=case.seed,
                   budget=Budget(case.samples, case.cpu_seconds), options=options_of(options),
                   watch=Watch(threads=1, clock=time.process_time), space=MapSpace(operator, accelerator, tiling))
    setup = time.process_time() - begun - found.seconds
    score = found.score if found.feasible else math.inf
    if case.cpu_seconds is not None and found.seconds > LATE * case.cpu_seconds:
        score = min((step.score for step in found.history if step.seconds <= LATE * case.cpu_seconds),
                    default=math.inf)
    return Found(score, found.bound, found.seconds, found.samples, setup)


def searched(cases: list[Case], mapper: str, cache: Path, jobs: int, again: bool) -> dict[Case, Found]:
    """Do the searches of a mapper that are not kept in the cache, whatever the sources were then."""
    mine = [case for case in cases if case.mapper == mapper]
    with Results(cache, f"mappers {mapper}", fresh=again, keep_outdated=True) as kept:
        values: list[dict[str, Any]] = Runner(on="processes", workers=jobs, keeper=kept).run(
            [Job(asdict(case), run, inputs=(case,)) for case in mine])
    return {case: Found(**value) for case, value in zip(mine, values, strict=True)}


def table(results: dict[Case, Found], mappers: list[str], show_layers: bool) -> None:
    """Print how the mappers compare, for each machine and objective."""
    for machine, objective in sorted({(case.machine, case.objective) for case in results}):
        cells: dict[tuple[str, str], dict[str, list[Found]]] = {}
        for case, found in results.items():
            if (case.machine, case.objective) == (machine, objective):
                cells.setdefault((case.network, case.layer), {}).setdefault(case.mapper, []).append(found)
        medians = {cell: {mapper: median(one.score for one in found) for mapper, found in row.items()}
                   for cell, row in cells.items()}
        if show_layers:
            print_layers(medians, mappers)
        print(f"\n{machine}, {objective}, {len(cells)} layers")
        print(f"{'mapper':<28}{'lowest':>8}{'share':>7}{'near':>6}{'above':>9}{'worst':>9}{'gap':>8}{'none':>6}"
              f"{'us':>8}{'setup':>7}")
        for mapper in mappers:
            above = [row[mapper] / min(row.values()) for row in medians.values()]
            every = [one for row in cells.values() for one in row[mapper]]
            gaps = [one.score / one.bound - 1 for one in every if one.bound]
            wins = sum(ratio <= SAME for ratio in above)
            mean = math.exp(fmean(map(math.log, above))) - 1 if max(above) < math.inf else math.inf
            print(f"{mapper:<28}{wins:>8}{wins / len(above):>7.0%}"
                  f"{sum(ratio <= NEAR for ratio in above) / len(above):>6.0%}{mean:>9.3%}{max(above) - 1:>9.2%}"
                  f"{median(gaps) if gaps else math.nan:>8.2%}{sum(one.score == math.inf for one in every):>6}"
                  f"{1e6 * median(one.seconds / one.samples for one in every):>8.2f}"
                  f"{1e3 * median(one.setup for one in every):>7.0f}", flush=True)


def print_layers(medians: dict[tuple[str, str], dict[str, float]], mappers: list[str]) -> None:
    """Print every layer's lowest median, and how far above it each mapper's is."""
    print(f"\n{'layer':<44}{'lowest':>12}" + "".join(f"{mapper[:14]:>15}" for mapper in mappers))
    for (network, layer), row in medians.items():
        least = min(row.values())
        print(f"{network + ' ' + layer:<44}{least:>12.5g}" + "".join(f"{row[m] / least - 1:>15.3%}" for m in mappers))


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mappers", nargs="+", default=list(MAPPERS))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--machines", nargs="+", default=list(MACHINES))
    parser.add_argument("--objectives", nargs="+", default=list(OBJECTIVES))
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, help="time of each search, in place of samples")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tiling", default="imperfect")
    parser.add_argument("--every", type=int, default=1, help="take every so manieth layer")
    parser.add_argument("--jobs", type=int, default=1, help="searches side by side, on one thread each")
    parser.add_argument("--cache", type=Path, default=Path("out/mappers.sqlite"))
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--layers", action="store_true")
    asked = parser.parse_args()
    asked.cache.parent.mkdir(parents=True, exist_ok=True)
    cells = list(layers_of(tuple(asked.networks)))[::asked.every]
    samples = None if asked.seconds else asked.samples
    cases = [Case(mapper, *cell, machine, objective, asked.tiling, samples, seed, asked.seconds)
             for cell, machine, objective, mapper, seed in product(
                 cells, asked.machines, asked.objectives, asked.mappers, range(asked.seeds))]
    results: dict[Case, Found] = {}
    for mapper in asked.mappers:
        results |= searched(cases, mapper, asked.cache, asked.jobs, mapper in asked.again)
    table(results, asked.mappers, asked.layers)


if __name__ == "__main__":
    main()
