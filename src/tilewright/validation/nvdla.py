"""ResNet-50 on five sizes of NVDLA, beside the frames per second that its makers estimate.

``data/nvdla.json``: multiply-accumulators, convolution buffer, memory bandwidth and frames per second of int8 ResNet-50
(NVDLA Primer, table of area and performance); channels by kernels of the array as in the configurations of
github.com/nvdla/hw (``spec/defs``: nv_large, nv_medium_1024_full, nv_medium_512, nv_small_256, nv_small).
"""

import json
from dataclasses import replace
from typing import Any

from tilewright.cost import DenseModel, Totals, layer_bounds
from tilewright.hardware import Accelerator, Bandwidth, Fanout, Memory, preset
from tilewright.mapping import dataflow
from tilewright.validation.records import DATA, Figure, Quantity, SetFigures, ValidationWatch, add_own
from tilewright.workload import unique_operators, zoo

FILE = DATA / "nvdla.json"
FRAMES = Quantity("frames per second", "1/s", "the dense model, every layer mapped by the fixed dataflow `nvdla`",
                  ordered=True)


def configured(size: dict[str, Any]) -> Accelerator:
    """Return the preset ``nvdla-like`` at another size, with words of one byte throughout (int8, sums requantised)."""
    base = preset("nvdla-like")
    channels, per_cycle = size["channels"], size["gigabytes_per_second"] * 1000 / base.frequency_mhz
    memories: dict[str, dict[str, Any]] = {
        "DRAM": {"bandwidth": Bandwidth(shared=per_cycle)},
        "CBUF": {"capacity_bytes": size["buffer_kib"] * 1024, "bandwidth": Bandwidth(2 * channels, 2 * channels)},
        "CellRegisters": {"partitions_bytes": (("weights", 2 * channels), ("outputs", 64)),
                          "bandwidth": Bandwidth(channels + 1, channels + 1)},
    }
    sides = {"Cells": (size["kernels"], 1), "Lanes": (channels, 1)}
    levels = tuple(replace(level, **memories[level.name]) if isinstance(level, Memory)
                   else replace(level, shape=sides[level.name]) for level in base.levels
                   if isinstance(level, Memory | Fanout))
    return replace(base, name=f"nvdla-{size['macs']}", levels=levels,
                   word_bits=(("inputs", 8), ("weights", 8), ("outputs", 8)))


def run(watch: ValidationWatch) -> SetFigures:
    """Count the network on every size."""
    sizes = json.loads(FILE.read_text(encoding="utf-8"))
    network = unique_operators(zoo.load("resnet50"))
    figures: list[Figure] = []
    most: list[str] = []
    for done, size in enumerate(sizes):
        watch.tell(done, len(sizes))
        machine = configured(size)
        costs = [DenseModel(unique.operator, machine).cost(dataflow("nvdla", unique.operator, machine))
                 for unique in network]
        bounds = [layer_bounds(unique.operator, machine) for unique in network]
        runs = [len(unique.names) for unique in network]
        cycles, least = (Totals.of(zip(runs, found, strict=True)).latency_cycles for found in (costs, bounds))
        per_second = machine.frequency_mhz * 1e6
        figures.append(Figure(f"{size['macs']} MACs", FRAMES.name, per_second / cycles, size["frames"]))
        most.append(f"{per_second / least:.1f}")
    return SetFigures(tuple(figures), (
        f"No mapping makes more than {', '.join(most)} frames per second by our bounds, in the order of the table.",))


add_own("nvdla", (FRAMES,), run)
