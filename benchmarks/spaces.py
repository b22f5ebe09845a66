"""Map spaces: how long counting takes, and how drawing legal mappings compares with scoring them.

Usage: python benchmarks/spaces.py [MACHINE ...]

First, for every machine and tiling, the layer of ResNet-50 that is counted most slowly: seconds, the most memory that
counting any layer took besides, and how many layers are counted exactly. Then, on the Eyeriss-like machine in the
row-stationary Ruby-S spaces of all layers, the time to draw 100,000 legal mappings (tables ready) and to score them, in
turns.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from statistics import median

import numpy as np

from tilewright.cost import DenseModel
from tilewright.hardware import preset
from tilewright.mapping import MapSpace, dataflow_constraints
from tilewright.workload import Operator, unique_operators, zoo

MACHINES = ("eyeriss", "simba-like", "edge-s1", "edge-s2", "edge-s3", "cloud-s1", "cloud-s2", "cloud-s3")
TILINGS = ("perfect", "imperfect", "ruby", "ruby-s", "ruby-t")


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


def peak(name: str, tiling: str, layer: str) -> float:
    """Return the most megabytes that counting held at a time."""
    space = MapSpace(layers()[layer], preset(name), tiling)
    tracemalloc.start()
    space.size()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def seconds_of(actions: tuple[Callable[[], object], ...], repeats: int = 25) -> list[list[float]]:
    """Return the seconds of every repeat of each of ``actions``, which take turns."""
    found: list[list[float]] = [[] for _ in actions]
    for _ in range(repeats):
        for action, seconds in zip(actions, found, strict=True):
            start = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - start)
    return found


def drawing(count: int = 100_000) -> None:
    print(f"\n{'row-stationary, Ruby-S':<24}{'threads':>8}{'draw ms':>9}{'score ms':>10}{'ratio':>7}   (least of 25)"
          f"{'medians':>16}")
    accelerator = preset("eyeriss")
    ratios = []
    for name, operator in layers().items():
        space = MapSpace(operator, accelerator, "ruby-s", dataflow_constraints("row-stationary", operator, accelerator))
        rng, model = np.random.default_rng(0), DenseModel(operator, accelerator)
        batch = space.draw(rng, count, legal=True)
        for threads in (1, 2):
            model.score(batch, threads=threads)
            draw, score = seconds_of((lambda s=space, t=threads, r=rng: s.draw(r, count, legal=True, threads=t),
                                      lambda m=model, b=batch, t=threads: m.score(b, threads=t)))
            ratios.append(min(draw) / min(score))
            print(f"{name:<24}{threads:>8}{1e3 * min(draw):>9.1f}{1e3 * min(score):>10.1f}"
                  f"{ratios[-1]:>7.2f}{1e3 * median(draw):>22.1f}{1e3 * median(score):>8.1f}", flush=True)
    print(f"drawn in less time than scored: {sum(ratio < 1 for ratio in ratios)} of {len(ratios)}, "
          f"ratios {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1:] != ["draw"]:
        counting(tuple(sys.argv[1:]) or MACHINES)
    drawing()
