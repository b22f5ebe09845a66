"""Machines of every build, made by hand, and layers of every kind."""

import pytest

from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.workload import ROLES, Operator, convolution, depthwise, einsum, linear, matmul, transposed_convolution

ENERGY = AccessEnergy(read_pj=1.0, fill_pj=1.5, update_pj=1.5, drain_pj=1.0)


def dram(**more: object) -> Memory:
    return Memory("DRAM", ROLES, ENERGY, **more)  # type: ignore[arg-type]


def _machines() -> dict[str, Accelerator]:
    spads = Memory("RF", ROLES, ENERGY, buffering="single",
                   partitions_bytes=(("inputs", 12.0), ("weights", 224.0), ("outputs", 24.0)))
    glb = Memory("GLB", ("inputs", "outputs"), ENERGY, capacity_bytes=110592.0)
    small = Memory("L1", ROLES, ENERGY, capacity_bytes=64.0, buffering="buffet")
    buffer = Memory("L2", ROLES, ENERGY, capacity_bytes=8192.0, bandwidth=Bandwidth(shared=16))
    found = [
        Accelerator("spads", (dram(), glb, Fanout("PEs", (14, 12)), spads)),
        Accelerator("plain", (dram(), buffer)),
        Accelerator("scalar", (dram(),)),
        Accelerator("flexible", (dram(), buffer, Fanout("PEs", (168, 1), flexible=True), small), Compute("MAC", 1.0)),
        Accelerator("blocks", (dram(), buffer, Fanout("PEs", (16, 16), blocks=(4, 4)), small)),
        Accelerator("systolic", (dram(), buffer, Fanout("array", (32, 32)))),
        Accelerator("chiplets", (dram(), buffer, Fanout("chips", (4, 2), multicast=False, reduce=False),
                                 Memory("PE", ("weights",), ENERGY, capacity_bytes=4096.0, word_bits=8),
                                 Fanout("lanes", (8, 1)), Fanout("ways", (1, 8)),
                                 Memory("reg", ("outputs",), ENERGY, capacity_bytes=8.0)),
                    word_bits=(("inputs", 8), ("weights", 4), ("outputs", 24))),
    ]
    return {machine.name: machine for machine in found}


def _layers() -> dict[str, Operator]:
    found = [
        convolution("conv3x3", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1),
        convolution("stem", in_channels=3, out_channels=64, in_size=224, kernel=7, stride=2, padding=3),
        convolution("dilated", in_channels=16, out_channels=24, in_size=33, kernel=3, dilation=2),
        convolution("pointwise", in_channels=96, out_channels=17, in_size=(13, 11), kernel=1),
        convolution("holes", in_channels=5, out_channels=7, in_size=19, kernel=2, stride=3),
        convolution("grouped", in_channels=12, out_channels=18, in_size=9, kernel=3, groups=3),
        convolution("line", in_channels=8, out_channels=8, in_size=(100,), kernel=5),
        depthwise("depthwise", 32, in_size=28, kernel=3, padding=1),
        transposed_convolution("transposed", in_channels=8, out_channels=6, in_size=10, kernel=4, stride=2),
        linear("fc", rows=1, in_features=1000, out_features=37),
        matmul("gemm", m=50, n=60, k=70),
        matmul("attention", m=32, n=48, k=16, batch=12),
        einsum("ab,bc,cd->ad", {"a": 6, "b": 7, "c": 8, "d": 9}, "chain"),
        matmul("one", m=1, n=1, k=1),
    ]
    return {layer.name: layer for layer in found}


@pytest.fixture(scope="session")
def machines() -> dict[str, Accelerator]:
    return _machines()


@pytest.fixture(scope="session")
def layers() -> dict[str, Operator]:
    return _layers()
