"""Proofs: how near the optimum a network's layers are proved to be within a time, layer by layer.

Usage: python benchmarks/proofs.py [--network resnet50] [--machine eyeriss] [--objective edp] [--tiling perfect]
       [--mappers exact auto] [--budget 60s] [--layers PATTERN]

Printed are, for every distinct layer and mapper, the best score, the gap that is proved, seconds and mappings scored;
at the end the share of layers within 1 % and the largest gap. The threads are all that the process may use.
"""

import argparse
from fnmatch import fnmatch

from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import search
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
    parser.add_argument("--layers", default="*")
    asked = parser.parse_args()
    gaps: dict[str, list[float]] = {mapper: [] for mapper in asked.mappers}
    print(f"{'layer':<24}{'mapper':<8}{'score':>14}{'gap':>9}{'seconds':>9}{'samples':>10}")
    for unique in unique_operators(zoo.load(asked.network)):
        operator = unique.operator
        if not fnmatch(operator.name, asked.layers):
            continue
        for mapper in asked.mappers:
            space = MapSpace(operator, preset(asked.machine), asked.tiling)
            found = search(operator, space.accelerator, objective=asked.objective, mapper=mapper, budget=asked.budget,
                           space=space)
            gap = float("inf") if found.gap is None else found.gap
            gaps[mapper].append(gap)
            print(f"{operator.name:<24}{mapper:<8}{found.score:>14.8g}{gap:>9.3%}{found.seconds:>9.1f}"
                  f"{found.samples:>10}", flush=True)
    for mapper, found_gaps in gaps.items():
        near = sum(gap <= 0.01 for gap in found_gaps) / max(1, len(found_gaps))
        print(f"{mapper}: within 1 % proved on {near:.0%} of {len(found_gaps)} layers, at most "
              f"{max(found_gaps, default=0.0):.2%}")


if __name__ == "__main__":
    main()
