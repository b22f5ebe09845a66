"""Many machines of one structure: what a new one costs to set up, scoring with one for each mapping, and bounds.

Last, how many pairs of a machine and a known mapping of a layer are looked up, beside scoring each.

`python benchmarks/hardware.py [MAPPINGS [REPEATS]]`; what is compared takes turns, as computers are noisy.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np

from tilewright.base import KeptValues
from tilewright.codesign import DesignProblem, Nests, read_limits
from tilewright.codesign.pools import Pooling
from tilewright.cost import DenseModel, HardwareBatch, hardware_bounds, layer_bounds
from tilewright.cost.dense import scoring
from tilewright.hardware import Accelerator, DesignSpace, preset
from tilewright.mapping import MapSpace
from tilewright.workload import convolution, unique_operators, zoo

MACHINE = "edge-s2"

LAYERS = unique_operators(zoo.load("resnet50"))


def set_up(machine: Accelerator) -> None:
    """Make the models of all distinct layers of ResNet-50 ready."""
    for layer in LAYERS:
        assert DenseModel(layer.operator, machine).program


def written_anew(machine: Accelerator) -> None:
    """Do so with nothing known of the machine's structure, neither here nor on disk."""
    with TemporaryDirectory() as folder, patch.object(
            scoring, "_programs", lambda: KeptValues(Path(folder), "program", scoring.MOST_PROGRAMS)):
        read_anew(machine)


def read_anew(machine: Accelerator) -> None:
    """Do so with what another process kept on disk."""
    scoring._written.cache_clear()
    set_up(machine)


def many(count: int, rng: np.random.Generator) -> HardwareBatch:
    """Return machines with other buffers, arrays and bandwidths."""
    machine = preset(MACHINE)
    values = {key: rng.choice([0.5, 1.0, 2.0, 4.0, 8.0, 16.0], count) for key in machine.numbers
              if key[1].startswith("bandwidth")}
    values["SG", "capacity_bytes"] = rng.uniform(5e4, 5e5, count)
    values["SL", "capacity_bytes"] = rng.choice([128.0, 256.0, 512.0, 1024.0], count)
    values["PEs", "x"] = rng.integers(4, 30, count).astype(np.float64)
    return HardwareBatch(values)


def seconds(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return medians of warm repeats that take turns."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(repeats + 1):
        for name, run in work.items():
            start = time.process_time()
            run()
            if turn:
                taken[name].append(time.process_time() - start)
    return {name: median(times) for name, times in taken.items()}


def screen(machines: int, mappings: int, repeats: int) -> None:
    """Look machines up in pools of mappings of all distinct layers, beside scoring as many with the engine."""
    rng = np.random.default_rng(0)
    problem = DesignProblem.of([(LAYERS, 1.0)], DesignSpace.of(preset(MACHINE)), read_limits("bytes=1MiB"))
    pooling, sizes = Pooling(problem), {("SG", "capacity_bytes"): 2.0**18, ("PEs", "instances"): 1024.0,
                                        ("SL", "capacity_bytes"): 512.0}
    widest, prices = problem.machine(sizes), np.zeros((1, 1))
    hardware = HardwareBatch(base=widest)
    pools, batches = [], []
    for layer in range(len(LAYERS)):
        batch = problem.map_space(layer, widest).fitting(rng, mappings).relaid(problem.layouts[layer])
        pools.append(pooling.pool(layer, Nests.of(batch), hardware, prices))
        batches.append(batch.take(np.arange(2_000) % mappings))
    chosen = {key: np.floor(most ** rng.uniform(0.67, 1.0, machines)) for key, most in sizes.items()}
    parts = [{key: column[first:first + 1000] for key, column in chosen.items()} for first in range(0, machines, 1000)]
    found = seconds({
        "looked up": lambda: [pooling.look_up(pools, part, [(1.0, 0.0)]) for part in parts],
        "scored": lambda: [problem.model(layer, batch.layout).score(batch)
                           for layer, batch in enumerate(batches)]}, repeats)
    rate = machines * sum(map(len, pools)) / found["looked up"]
    plain = sum(map(len, batches)) / found["scored"]
    print(f"{machines:,} machines x {len(pools)} layers x {mappings} mappings looked up at {rate / 1e6:.1f} M/s in "
          f"{found['looked up']:.2f} s, the engine scores at {plain / 1e6:.2f} M/s: {rate / plain:.1f} times that")


def main() -> None:
    count, repeats = (int(word) for word in [*sys.argv[1:], "100000", "9"][:2])
    machine, rng = preset(MACHINE), np.random.default_rng(0)
    read_anew(machine)  # which keeps on disk what no other process has
    found = seconds({"anew": lambda: written_anew(machine), "read": lambda: read_anew(machine),
                     "other": lambda: set_up(replace(machine, name=str(rng.random()), frequency_mhz=300.0))}, repeats)
    print(f"ResNet-50 ready on a machine of another structure {found['anew'] * 1e3:8.2f} ms, of one known on disk "
          f"{found['read'] * 1e3:8.2f} ms, with other numbers alone {found['other'] * 1e3:8.2f} ms: "
          f"{found['anew'] / found['other']:.1f} times less than anew")

    layer = convolution("layer", in_channels=128, out_channels=128, kernel=3, out_size=28, batch=16)
    batch, model = MapSpace(layer, machine).sample(rng, count), DenseModel(layer, machine)
    hardware = many(count, rng)
    found = seconds({
        "one machine for all": lambda: model.score(batch),
        "one for each mapping": lambda: model.score(batch, hardware),
        "one for each, curves read anew": lambda: model.score(batch, HardwareBatch(hardware.values)),
        "one for each, words and needs too": lambda: model.table(batch, hardware),
        "needs alone": lambda: model.needs(batch),
    }, repeats)
    first = found["one machine for all"]
    for name, taken in found.items():
        print(f"{name:<34}{count / taken / 1e6:8.3f} M/s{first / taken:8.1%} of the plain rate")

    few, rows = [hardware.machine(index, machine) for index in range(20)], hardware.take(slice(0, 1000))
    rows.on(machine)
    found = seconds({"alone": lambda: [layer_bounds(layer, each) for each in few],
                     "together": lambda: hardware_bounds(layer, rows, machine)}, repeats)
    alone, together = found["alone"] / len(few), found["together"] / len(rows)
    print(f"Bounds of the layer on a machine {alone * 1e3:.2f} ms, on each of {len(rows):,} together "
          f"{together * 1e3:.2f} ms: {alone / together:.0f} times less")
    screen(10_000, 100, repeats)


if __name__ == "__main__":
    main()
