"""The sparse model beside the dense one on the same mappings: mappings per second and core, and the ratio.

`python benchmarks/sparse.py [MAPPINGS [REPEATS]]`; both take turns, as machines are noisy.
"""

import sys
import time
from dataclasses import replace
from statistics import median

import numpy as np

from tilewright.cost import DenseModel, SparseModel
from tilewright.hardware import Sparsity, preset
from tilewright.mapping import MapSpace
from tilewright.workload import convolution, with_densities


def main() -> None:
    count, repeats = (int(word) for word in [*sys.argv[1:], "50000", "7"][:2])
    layer = convolution("layer", in_channels=128, out_channels=128, kernel=3, out_size=28, batch=16)
    sparse = with_densities(layer, {"inputs": 0.5, "weights": 0.5})
    machine = preset("accel-b-sparse")
    batch = MapSpace(layer, machine).sample(np.random.default_rng(0), count)
    models: dict[str, DenseModel | SparseModel] = {
        "dense": DenseModel(layer, machine),
        "sparse, no formats, density 1": SparseModel(layer, replace(machine, sparsity=Sparsity())),
        "sparse, accel-b-sparse, density 0.5": SparseModel(sparse, machine),
    }
    taken: dict[str, list[float]] = {name: [] for name in models}
    for turn in range(repeats + 1):
        for name, model in models.items():
            start = time.perf_counter()
            model.score(batch)
            if turn:
                taken[name].append(time.perf_counter() - start)
    first = median(taken["dense"])
    for name, times in taken.items():
        middle = median(times)
        print(f"{name:<40}{count / middle / 1e6:8.3f} M/s{middle / first:8.2f} times the time of dense")


if __name__ == "__main__":
    main()
