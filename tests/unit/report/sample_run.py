"""A run of ResNet-50 on a small machine: real costs of a plain mapping, an invented search."""

from dataclasses import replace
from math import prod

import numpy as np

from tilewright.cost import layer_bounds
from tilewright.cost.dense.single import single_cost
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.store import (
    LayerRecord,
    NetworkRecord,
    RequestRecord,
    RunRecord,
    SearchRecord,
    SoftwareRecord,
    VectorRecord,
    cost_record,
    fingerprint,
)
from tilewright.store.build import accelerator_record, bounds_record, operator_record, roofline_record, totals_of
from tilewright.store.layer_records import mapping_record
from tilewright.workload import Axis, Operator, Tensor

MACHINE = Accelerator(
    "Eyeriss 14x12",
    (
        Memory("DRAM", ("inputs", "weights", "outputs"), AccessEnergy(200, 200, 200, 200), word_bits=16,
               bandwidth=Bandwidth(shared=4.0)),
        Memory("GLB", ("inputs", "outputs"), AccessEnergy(6, 6, 6, 6), capacity_bytes=108 * 1024, word_bits=16,
               bandwidth=Bandwidth(read=16.0, write=16.0), buffering="buffet", area_um2=1.1e6,
               leakage_mw=2.0),
        Fanout("PE array", (14, 12), network_energy_pj_per_word=2.0),
        Memory("Spad", ("inputs", "weights", "outputs"), AccessEnergy(1.0, 1.0, 1.0, 1.0), word_bits=16,
               partitions_bytes=(("inputs", 24), ("weights", 448), ("outputs", 48)), buffering="single",
               area_um2=9.0e3),
    ),
    Compute("MAC", 2.0, area_um2=5.0e3),
    frequency_mhz=200.0,
    word_bits=(("inputs", 16), ("weights", 16), ("outputs", 16)),
    technology="sample figures",
    sources=("Y.-H. Chen et al., JSSC 52(1), 2017: array, buffer and scratchpad sizes",),
)
# (name, count, K, C, output side, kernel, stride), the shapes of He et al., CVPR 2016, table 1
RESNET50 = (
    ("conv1", 1, 64, 3, 112, 7, 2),
    ("layer1.0.conv1", 1, 64, 64, 56, 1, 1),
    ("layer1.0.conv2", 3, 64, 64, 56, 3, 1),
    ("layer1.0.conv3", 4, 256, 64, 56, 1, 1),
    ("layer1.1.conv1", 2, 64, 256, 56, 1, 1),
    ("layer2.0.conv1", 1, 128, 256, 56, 1, 1),
    ("layer2.0.conv2", 1, 128, 128, 28, 3, 2),
    ("layer2.0.conv3", 4, 512, 128, 28, 1, 1),
    ("layer2.0.downsample.0", 1, 512, 256, 28, 1, 2),
    ("layer2.1.conv1", 3, 128, 512, 28, 1, 1),
    ("layer2.1.conv2", 3, 128, 128, 28, 3, 1),
    ("layer3.0.conv1", 1, 256, 512, 28, 1, 1),
    ("layer3.0.conv2", 1, 256, 256, 14, 3, 2),
    ("layer3.0.conv3", 6, 1024, 256, 14, 1, 1),
    ("layer3.0.downsample.0", 1, 1024, 512, 14, 1, 2),
    ("layer3.1.conv1", 5, 256, 1024, 14, 1, 1),
    ("layer3.1.conv2", 5, 256, 256, 14, 3, 1),
    ("layer4.0.conv1", 1, 512, 1024, 14, 1, 1),
    ("layer4.0.conv2", 1, 512, 512, 7, 3, 2),
    ("layer4.0.conv3", 3, 2048, 512, 7, 1, 1),
    ("layer4.0.downsample.0", 1, 2048, 1024, 7, 1, 2),
    ("layer4.1.conv1", 2, 512, 2048, 7, 1, 1),
    ("layer4.1.conv2", 2, 512, 512, 7, 3, 1),
    ("fc", 1, 1000, 2048, 1, 1, 1),
)


def convolution(name: str, k: int, c: int, side: int, kernel: int, stride: int) -> Operator:
    """Return a 2-D convolution of batch one."""

    def plain(*names: str) -> tuple[Axis, ...]:
        return tuple(Axis(((dimension, 1),)) for dimension in names)

    slide = (Axis((("P", stride), ("R", 1))), Axis((("Q", stride), ("S", 1))))
    return Operator(
        name, "conv", (("N", 1), ("K", k), ("C", c), ("P", side), ("Q", side), ("R", kernel), ("S", kernel)),
        (Tensor("Input", "inputs", plain("N", "C") + slide), Tensor("Weight", "weights", plain("K", "C", "R", "S")),
         Tensor("Output", "outputs", plain("N", "K", "P", "Q"))))


def row_stationary(operator: Operator) -> Mapping:
    """Return a mapping that keeps filter rows in the scratchpads and fits the sample machine."""
    size = operator.sizes
    row = size["R"]
    wide = min(size["Q"], 14)
    lanes = max(1, 12 // row)
    deep = 4 if row < 7 else 1
    return Mapping((
        LevelLoops("DRAM", (Loop("P", min(4, size["P"])), Loop("K", min(16, size["K"])), Loop("C", min(64, size["C"]))),
                   ("Input", "Weight", "Output")),
        LevelLoops("GLB", (Loop("C", min(deep * lanes, size["C"])), Loop("Q", wide), Loop("P", 1)),
                   ("Input", "Output")),
        LevelLoops("PE array", (Loop("Q", 1, "X"), Loop("C", min(deep, size["C"]), "Y"), Loop("R", 1, "Y"))),
        LevelLoops("Spad", (Loop("C", 1), Loop("K", 1), Loop("S", 1)), ("Input", "Weight", "Output")),
    ))


def sample_layer(name: str, count: int, operator: Operator, rng: np.random.Generator) -> LayerRecord:
    """Return one mapped layer with its cost and bounds, and an invented history of improvements."""
    mapping = row_stationary(operator)
    cost = single_cost(operator, MACHINE, mapping)
    bounds = layer_bounds(operator, MACHINE)
    samples = np.unique(np.geomspace(1, 9000, 25).astype(int))
    worse = np.sort(rng.uniform(0, 1, len(samples)))[::-1] ** 3 * float(rng.uniform(3, 40))
    worse[-1] = 0.0
    history = tuple((int(n), float(n) * 1e-6, float(cost.edp * (1 + w)))
                    for n, w in zip(samples, worse, strict=True))
    search = SearchRecord("gamma", (7, int(rng.integers(99))), 10_000, int(rng.integers(4000, 9900)), 0.0104, "samples",
                          cost.edp, history)
    names = tuple([name, *(f"{name}#{index}" for index in range(2, count + 1))])
    return LayerRecord(
        names, count, operator_record(operator, MACHINE), mapping_record(operator, MACHINE, mapping),
        cost_record(cost), bounds_record(bounds, bounds.edp), roofline_record(operator, MACHINE, cost), search)


def unmapped(layer: LayerRecord) -> LayerRecord:
    """Return the layer as it looks when no legal mapping was found."""
    search = replace(layer.search, legal_samples=0, score=None, history=(), feasible=False)
    return replace(layer, mapping=None, cost=None, roofline=None, search=search,
                   reason="No legal mapping in 10,000 samples: Spad.weights holds 448 bytes, the smallest tile tried "
                          "needs 512; raise Spad.partitions_bytes.weights to 512.")


def sample_run(shapes=RESNET50, name: str = "resnet50", seed: int = 3, without: tuple[int, ...] = ()) -> RunRecord:
    """Return a run over ``shapes``; the layers at the positions ``without`` have no mapping."""
    rng = np.random.default_rng(seed)
    layers = []
    for position, (label, count, *shape) in enumerate(shapes):
        layer = sample_layer(label, count, convolution(label, *shape), rng)
        layers.append(unmapped(layer) if position in without else layer)
    machine = accelerator_record(MACHINE)
    return RunRecord(
        "20260314-101530-9f2c41", "2026-03-14T10:15:30+00:00",
        SoftwareRecord("0.1.0", "3.11.2", "2.4.6", "0.68.1", "Linux x86_64"),
        NetworkRecord(name, "zoo: He et al., CVPR 2016, table 1", fingerprint(shapes),
                      "99.7 % of MACs and 91.2 % of bytes modelled; 53 nodes approximated as vector or data-movement "
                      "operators.", ("the batch dimension was bound to 1",)),
        machine,
        RequestRecord("edp", "gamma", 7, "imperfect", ("area_um2 <= 4e6",),
                      {"population": 200, "crossover": 0.5, "aging": True}, 10_000, None,
                      f"tilewright map {name} --arch eyeriss --objective edp --mapper gamma --budget 10000"),
        totals_of(layers, machine, 0.41), tuple(layers),
        (VectorRecord("Relu", tuple(f"relu{index}" for index in range(49)), 49, 9_608_704, 38_434_816.0,
                      "one operation per word, streamed once"),
         VectorRecord("MaxPool", ("maxpool",), 1, 1_806_336, 2_007_040.0, "kernel-size operations per output word"),
         VectorRecord("Reshape", ("flatten",), 1, 0, 0.0, "")),
        ("ArgMax top1: no model for this kind of node",))


def total_macs(shapes=RESNET50) -> int:
    """Return the multiply-accumulates of ``shapes`` times their counts."""
    return sum(count * prod((k, c, side, side, kernel, kernel)) for _, count, k, c, side, kernel, _ in shapes)
