"""Map spaces: how long counting takes.

Usage: python benchmarks/spaces.py [MACHINE ...]

For every machine and tiling, the layer of ResNet-50 that is counted most slowly: seconds, the most memory that counting
any layer took besides, and how many layers are counted exactly.
"""

import sys
import time
import tracemalloc
from typing import get_args

from tilewright.hardware import preset
from tilewright.mapping import MapSpace, Tiling
from tilewright.workload import Operator, unique_operators, zoo

MACHINES = ("eyeriss", "simba-like", "edge-s1", "edge-s2", "edge-s3", "cloud-s1", "cloud-s2", "cloud-s3")
TILINGS: tuple[Tiling, ...] = get_args(Tiling)


def layers() -> dict[str, Operator]:
    return {unique.operator.name: unique.operator for unique in unique_operators(zoo.load("resnet50"))}


def counting(names: tuple[str, ...]) -> None:
    print(f"{'machine':<12}{'tiling':<11}{'slowest':>22}{'size':>12}{'seconds':>9}{'MB':>6}{'exact':>9}")
    for name in names:
        for tiling in TILINGS:
            found = []
            for operator in layers().values():
                space = MapSpace(operator, preset(name), tiling)
                _ = space.arrays
                start = time.perf_counter()
                size = space.size()
                found.append((time.perf_counter() - start, operator.name, size))
            seconds, layer, size = max(found, key=lambda one: one[0])
            exact = sum(one[2].exact for one in found)
            print(f"{name:<12}{tiling:<11}{layer:>22}{size!s:>12}{seconds:>9.3f}{peak(name, tiling, layer):>6.0f}"
                  f"{exact:>5}/{len(found)}", flush=True)


def peak(name: str, tiling: Tiling, layer: str) -> float:
    """Return the most megabytes that counting held at a time."""
    space = MapSpace(layers()[layer], preset(name), tiling)
    tracemalloc.start()
    space.size()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


if __name__ == "__main__":
    counting(tuple(sys.argv[1:]) or MACHINES)
