"""The benchmark problem of the dense model: a layer, a machine, random mappings, and the C loop beside it."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tilewright.cost import DenseModel
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import Layout, MappingBatch
from tilewright.workload import ROLES, Operator, convolution

SOURCE = Path(__file__).with_name("dense_loop.c")

ROWS = ("latency_cycles", "energy_pj", "excess", "steps", "steady_cycles", "ramp_cycles")
KINDS = ("reads", "fills", "updates", "drains")
DIMENSIONS = ("N", "K", "C", "P", "Q", "R", "S")

Floats = NDArray[np.float64]


class YardstickError(Exception):
    """Why the C loop cannot be measured here."""


def benchmark_layer(stride: int = 1) -> Operator:
    """Return the 3x3 layer of ResNet-50's third stage: 128 channels in and out, 28 x 28 outputs."""
    return convolution(f"resnet50 3x3 stride {stride}", batch=1, in_channels=128, out_channels=128, out_size=28,
                       kernel=3, stride=stride, padding=1)


def benchmark_machine() -> Accelerator:
    """Return three memories that keep everything, all ports limited, around 14 x 12 lanes in two rows of lanes."""
    outer, inner = Bandwidth(read=16.0, write=16.0), Bandwidth(read=4.0, write=4.0)
    return Accelerator("benchmark", (
        Memory("DRAM", ROLES, AccessEnergy(200.0, 200.0, 200.0, 200.0), bandwidth=outer),
        Memory("GLB", ROLES, AccessEnergy(6.0, 6.0, 6.0, 6.0), capacity_bytes=108e3, bandwidth=outer),
        Fanout("A", (14, 1)),
        Fanout("B", (12, 1)),
        Memory("RF", ROLES, AccessEnergy(1.0, 1.0, 1.0, 1.0), capacity_bytes=512.0, bandwidth=inner),
    ), Compute(energy_pj_per_mac=1.0))


def random_mappings(operator: Operator, accelerator: Accelerator, count: int, *, perfect: bool = False,
                    seed: int = 0) -> MappingBatch:
    """Draw ``count`` mappings, legal or not: log-uniform steps, or for ``perfect`` only steps that divide."""
    layout = Layout.of(operator, accelerator)
    slots, dimensions = layout.shape
    rng = np.random.default_rng(seed)
    steps = np.ones((slots, dimensions, count), dtype=np.int32)
    for d, name in enumerate(layout.dimensions):
        extent = np.full(count, operator.sizes[name], dtype=np.int64)
        for s in range(slots - 1):
            extent = _divisors(rng, extent) if perfect else _log_uniform(rng, extent)
            steps[s, d] = extent
    ranks = rng.random((slots, dimensions, count)).argsort(axis=1).astype(np.int8)
    return MappingBatch(layout, steps, np.ascontiguousarray(ranks))


def _log_uniform(rng: np.random.Generator, extent: NDArray[np.int64]) -> NDArray[np.int64]:
    drawn = np.exp(rng.random(len(extent)) * np.log(extent + 1.0)).astype(np.int64)
    capped: NDArray[np.int64] = np.minimum(drawn, extent)
    return capped


def _divisors(rng: np.random.Generator, extent: NDArray[np.int64]) -> NDArray[np.int64]:
    found = extent.copy()
    for value in np.unique(extent):
        divisors = np.array([step for step in range(1, value + 1) if value % step == 0])
        where = extent == value
        found[where] = rng.choice(divisors, int(where.sum()))
    return found


class _Machine(ctypes.Structure):
    """The `Machine` of dense_loop.c."""

    _fields_ = (
        ("sizes", ctypes.c_int32 * 7),
        ("read_bandwidth", ctypes.c_double * 3), ("write_bandwidth", ctypes.c_double * 3),
        ("energy", ctypes.c_double * 3), ("mac_energy", ctypes.c_double),
        ("capacity", ctypes.c_double * 2), ("lanes", ctypes.c_double * 2),
    )


class Yardstick:
    """The plain C loop, compiled for this machine and the stride of a layer.

    Raises
    ------
    YardstickError
        If there is no compiler or no source here, or it does not compile.
    """

    def __init__(self, operator: Operator, accelerator: Accelerator, source: Path = SOURCE) -> None:
        self.operator = operator
        stride = operator.tensor("I").axes[-1].terms[0][1]
        self._library = _compile(source, stride)
        dram, glb, registers = accelerator.memories
        memories, fanouts = (dram, glb, registers), accelerator.fanouts
        self._machine = _Machine(
            (ctypes.c_int32 * 7)(*(operator.sizes[name] for name in DIMENSIONS)),
            (ctypes.c_double * 3)(*(m.bandwidth.read or 0.0 for m in memories)),
            (ctypes.c_double * 3)(*(m.bandwidth.write or 0.0 for m in memories)),
            (ctypes.c_double * 3)(*(m.energy.read_pj for m in memories)), accelerator.compute.energy_pj_per_mac,
            (ctypes.c_double * 2)(glb.capacity_bytes or 0.0, registers.capacity_bytes or 0.0),
            (ctypes.c_double * 2)(*(f.instances for f in fanouts)))

    def score(self, batch: MappingBatch, threads: int = 1, counts: Floats | None = None,
              out: Floats | None = None) -> Floats:
        """Return rows (6, b) in the order of `ROWS`; ``counts`` (3, 3, 4, b) takes the words, if given."""
        if out is None:
            out = np.empty((6, len(batch)))
        self._library.dense_loop(
            ctypes.byref(self._machine), _pointer(batch.steps), _pointer(batch.ranks), ctypes.c_long(len(batch)),
            ctypes.c_int(threads), _pointer(out), None if counts is None else _pointer(counts))
        return out

    def check(self, model: DenseModel, batch: MappingBatch) -> None:
        """Raise AssertionError unless every count, cycle, energy and excess is the model's."""
        words = np.empty((3, 3, 4, len(batch)))
        found, expected = self.score(batch, counts=words), model.score(batch)
        for row, name in zip(found, ROWS, strict=True):
            np.testing.assert_allclose(row, getattr(expected, name), rtol=1e-12, err_msg=name)
        levels, tensors = ("DRAM", "GLB", "RF"), ("W", "I", "O")
        for (level, tensor), kinds in model.table(batch).words.items():
            for kind, row in kinds.items():
                own = words[levels.index(level), tensors.index(tensor), KINDS.index(kind)]
                np.testing.assert_array_equal(own, row, err_msg=f"{level}.{tensor}.{kind}")


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)


def _compile(source: Path, stride: int) -> ctypes.CDLL:
    if not source.exists():
        raise YardstickError(f"no {source.name} beside this installation; run from a clone of the repository")
    names = os.environ.get("CC", ""), "cc", "gcc", "clang"
    compiler = next((name for name in names if name and shutil.which(name)), None)
    if compiler is None:
        raise YardstickError("no C compiler (cc, gcc or clang) was found")
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        target = Path(folder) / "dense_loop.so"
        command = [compiler, "-O3", "-march=native", f"-DSTRIDE={stride}", "-shared", "-fPIC", "-pthread", str(source),
                   "-o", str(target), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise YardstickError(f"{compiler} failed: {done.stderr.strip()[-300:]}")
        return ctypes.CDLL(str(target))


@dataclass(frozen=True)
class Rates:
    """Mappings per second, medians of repeats, by what was measured; ``reason`` says why the C loop was not."""

    by_name: dict[str, float | None]
    reason: str | None


def measure_dense(count: int = 100_000, repeats: int = 15, threads: int = 2, stride: int = 1) -> Rates:
    """Measure the compiled model and the C loop in turns, on the same random mappings, warm."""
    operator, accelerator = benchmark_layer(stride), benchmark_machine()
    model = DenseModel(operator, accelerator, even_after=0)
    ragged = random_mappings(operator, accelerator, count)
    perfect = random_mappings(operator, accelerator, count, perfect=True)
    out = np.empty((6, count))
    runs: dict[str, Callable[[], object]] = {
        "dense_mappings_per_second": partial(model.score, ragged, threads=threads),
        "dense_mappings_per_second_one_thread": partial(model.score, ragged),
        "dense_perfect_mappings_per_second": partial(model.score, perfect, threads=threads),
        "dense_perfect_mappings_per_second_one_thread": partial(model.score, perfect),
    }
    reason = None
    try:
        yardstick = Yardstick(operator, accelerator)
        for batch in (ragged, perfect):
            yardstick.check(model, batch.take(slice(0, 4000)))
    except YardstickError as error:
        reason = str(error)
    else:
        runs |= {
            "dense_c_loop_mappings_per_second": partial(yardstick.score, ragged, threads, out=out),
            "dense_c_loop_mappings_per_second_one_thread": partial(yardstick.score, ragged, out=out),
            "dense_c_loop_perfect_mappings_per_second": partial(yardstick.score, perfect, threads, out=out),
            "dense_c_loop_perfect_mappings_per_second_one_thread": partial(yardstick.score, perfect, out=out),
        }
    seconds = _interleaved(runs, repeats)
    found: dict[str, float | None] = {name: count / taken for name, taken in seconds.items()}
    if reason:
        found |= {name.replace("dense_", "dense_c_loop_", 1): None for name in list(found)}
    return Rates(found, reason)


def _interleaved(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each run; they take turns, so that a slow spell of the machine slows all alike."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - start)
    return {name: median(times) for name, times in taken.items()}
