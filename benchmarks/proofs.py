"""Proofs: how near the optimum a network's layers are proved to be within a time, layer by layer.

Usage: python benchmarks/proofs.py [--network resnet50] [--machine eyeriss] [--objective edp] [--tiling perfect]
       [--mappers exact auto] [--budget 60s] [--layers PATTERN ...] [--keep-all]

Printed are, for every distinct layer and mapper, the best score, the gap that is proved, seconds and mappings scored;
at the end the shares of layers proven and within 5 %, counted by repeats, and the largest gap. Seconds, those of the
budget too, are of the processor, on one thread. With ``--keep-all`` memories keep all that they may.
"""

import argparse
import time
from fnmatch import fnmatch

from tilewright.hardware import preset
from tilewright.mapping import KeptSets, MapSpace
from tilewright.search import Watch, search_spaces
from tilewright.workload import unique_operators, zoo


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--machine", default="eyeriss")
    parser.add_argument("--objective", default="edp")
    parser.add_argument("--tiling", default="perfect")
    parser.add_argument("--mappers", nargs="+", default=["exact", "auto"])
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--layers", nargs="+", default=["*"])
    parser.add_argument("--keep-all", action="store_true")
    asked = parser.parse_args()
    gaps: dict[str, list[tuple[float, int]]] = {mapper: [] for mapper in asked.mappers}
    print(f"{'layer':<23}{'times':>6} {'mapper':<7}{'score':>14}{'gap':>9}{'seconds':>9}{'samples':>10}")
    for unique in unique_operators(zoo.load(asked.network)):
        operator = unique.operator
        if not any(fnmatch(operator.name, pattern) for pattern in asked.layers):
            continue
        space = MapSpace(operator, preset(asked.machine), asked.tiling)
        for mapper in asked.mappers:
            found = search_spaces([space] if asked.keep_all else KeptSets(space), mapper=mapper, budget=asked.budget,
                                  objective=asked.objective, watch=Watch(clock=time.process_time, threads=1))
            gap = float("inf") if found.gap is None else found.gap
            gaps[mapper].append((gap, unique.count))
            print(f"{operator.name:<23}{unique.count:>6} {mapper:<7}{found.score:>14.8g}{gap:>9.3%}"
                  f"{found.seconds:>9.1f}{found.samples:>10}", flush=True)
    for mapper, found_gaps in gaps.items():
        proven, near = (sum(count for gap, count in found_gaps if gap <= most) for most in (1e-9, 0.05))
        layers, largest = sum(count for _, count in found_gaps), max((gap for gap, _ in found_gaps), default=0.0)
        print(f"{mapper}: of {layers} layers {proven} proven, {near} within 5 %, at most {largest:.2%}")


if __name__ == "__main__":
    main()
