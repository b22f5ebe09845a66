"""Mappers at equal samples: for every distinct layer of some networks, the median of the best scores over seeds.

Usage: python benchmarks/mappers.py [--mappers auto gamma gamma:paper=true ...] [--networks ...] [--machines ...]
       [--objectives edp latency] [--samples 10000] [--seeds 10] [--tiling imperfect] [--every 1] [--jobs 1]
       [--cache FILE] [--again MAPPER ...] [--layers]

A mapper may carry options, as in ``gamma:paper=true,population=100``. Every search is kept in the cache (a store) and
not done again, so that a run can be stopped, resumed and extended; ``--again`` does those of some mappers anew. Printed
is, for each machine, objective and mapper: on how many layers its median is the lowest of all (ties within a
billionth count for all), by how much the geometric mean is above the lowest, the worst of these, the median gap to the
bound, searches that found nothing, and microseconds a sample. ``--layers`` prints the medians by layer too.
"""

import argparse
import json
import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import fmean, median

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
SAME = 1 + 1e-9


@dataclass(frozen=True)
class Case:
    """One search: what decides its result."""

    mapper: str
    network: str
    layer: str
    machine: str
    objective: str
    tiling: str
    samples: int
    seed: int


@dataclass(frozen=True)
class Found:
    """What it found; the score is infinite where that is nothing."""

    score: float
    bound: float | None
    seconds: float


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
    """Search on one thread."""
    name, _, options = case.mapper.partition(":")
    operator = layers_of((case.network,))[case.network, case.layer]
    accelerator = preset(case.machine)
    tiling: Tiling = case.tiling  # type: ignore[assignment]
    found = search(operator, accelerator, objective=case.objective, mapper=name, budget=Budget(case.samples),
                   seed=case.seed, options=options_of(options), watch=Watch(threads=1),
                   space=MapSpace(operator, accelerator, tiling))
    return asdict(Found(found.score if found.feasible else math.inf, found.bound, found.seconds))


def searched(cases: list[Case], mapper: str, cache: Path, jobs: int, again: bool) -> dict[Case, Found]:
    """Do the searches of a mapper that are not kept in the cache, whatever the sources were then."""
    mine = [case for case in cases if case.mapper == mapper]
    with Results(cache, f"mappers {mapper}", fresh=again, keep_outdated=True) as kept:
        values = Runner(on="processes", workers=jobs, keeper=kept).run(
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
        print(f"{'mapper':<28}{'lowest':>8}{'share':>7}{'above':>9}{'worst':>9}{'gap':>8}{'none':>6}{'us':>7}")
        for mapper in mappers:
            above = [row[mapper] / min(row.values()) for row in medians.values()]
            every = [one for row in cells.values() for one in row[mapper]]
            gaps = [one.score / one.bound - 1 for one in every if one.bound]
            wins = sum(ratio <= SAME for ratio in above)
            samples = next(case.samples for case in results)
            mean = math.exp(fmean(map(math.log, above))) - 1 if max(above) < math.inf else math.inf
            print(f"{mapper:<28}{wins:>8}{wins / len(above):>7.0%}{mean:>9.3%}{max(above) - 1:>9.2%}"
                  f"{median(gaps) if gaps else math.nan:>8.2%}{sum(one.score == math.inf for one in every):>6}"
                  f"{1e6 * median(one.seconds for one in every) / samples:>7.2f}", flush=True)


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
    cases = [Case(mapper, *cell, machine, objective, asked.tiling, asked.samples, seed)
             for cell, machine, objective, mapper, seed in product(
                 cells, asked.machines, asked.objectives, asked.mappers, range(asked.seeds))]
    results: dict[Case, Found] = {}
    for mapper in asked.mappers:
        results |= searched(cases, mapper, asked.cache, asked.jobs, mapper in asked.again)
    table(results, asked.mappers, asked.layers)


if __name__ == "__main__":
    main()
