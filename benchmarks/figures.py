"""What ``tilewright bench`` measures: each part in a process of its own, so that peak memory is told honestly."""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

Figure = float | str | None
Figures = dict[str, Figure]

LABELS = {
    "dense_mappings_per_second": "Dense model, ragged mappings, all cores",
    "dense_mappings_per_second_one_thread": "  one thread",
    "dense_perfect_mappings_per_second": "Dense model, perfect factors, all cores",
    "dense_perfect_mappings_per_second_one_thread": "  one thread",
    "dense_stride2_mappings_per_second": "Dense model, stride 2, ragged, all cores",
    "dense_c_loop_mappings_per_second": "Plain C loop, ragged mappings, all cores",
    "dense_c_loop_mappings_per_second_one_thread": "  one thread",
    "dense_c_loop_perfect_mappings_per_second": "Plain C loop, perfect factors, all cores",
    "dense_c_loop_perfect_mappings_per_second_one_thread": "  one thread",
    "dense_stride2_c_loop_mappings_per_second": "Plain C loop, stride 2, ragged, all cores",
    "gamma_samples_per_second": "Gamma end to end, a million samples of a layer",
    "gamma_samples_per_second_one_thread": "  one thread",
    "gamma_10k_samples_per_second": "Gamma end to end, 10,000 samples of a layer",
    "gamma_10k_seconds": "  seconds for these",
    "resnet50_map_seconds": "ResNet-50 on Eyeriss, Gamma, a million samples a layer: seconds",
    "resnet50_layers": "  distinct layers",
    "resnet50_samples_per_second": "  samples per second",
    "first_compile_seconds": "First use of the dense model adds (compilation): seconds",
    "first_search_compile_seconds": "First search adds (compilation): seconds",
    "help_seconds": "tilewright --help: seconds",
    "evaluate_seconds": "tilewright evaluate, one mapping, fresh process: seconds",
    "import_seconds": "import tilewright: seconds",
    "peak_memory_mb": "Peak memory: MB",
}
"""What each figure is called in a table, in its order there."""
FRESH_STARTS = 5
"""Fresh processes whose median is told."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured; `QUICK` is enough to see that everything runs."""

    mappings: int = 100_000
    repeats: int = 15
    samples: int = 1_000_000
    few_samples: int = 10_000
    layer_samples: int = 1_000_000
    layers: int | None = None
    starts: int = FRESH_STARTS
    compiling: bool = True


FULL = Sizes()
QUICK = Sizes(mappings=2_000, repeats=1, samples=5_000, few_samples=1_000, layer_samples=1_000, layers=2, starts=1,
              compiling=False)


def cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def dense(sizes: Sizes) -> Figures:
    """Measure the mappings per second of the dense model and of the C loop, on the same mappings in turns."""
    from yardstick import measure_dense

    rates = measure_dense(sizes.mappings, sizes.repeats, cores())
    found: Figures = dict(rates.by_name)
    strided = measure_dense(sizes.mappings, max(1, sizes.repeats // 3), cores(), stride=2)
    found |= {name.replace("dense_", "dense_stride2_", 1): strided.by_name[name]
              for name in ("dense_mappings_per_second", "dense_c_loop_mappings_per_second")}
    found["dense_c_loop_missing_because"] = rates.reason
    return found


def gamma(sizes: Sizes) -> Figures:
    """Measure Gamma's samples per second on one layer on Eyeriss, the search's set-up and bookkeeping included."""
    from tilewright.hardware import preset
    from tilewright.search import Watch, search
    from yardstick import benchmark_layer

    operator, accelerator = benchmark_layer(), preset("eyeriss")

    def seconds(samples: int, threads: int) -> float:
        start = time.perf_counter()
        search(operator, accelerator, mapper="gamma", budget=samples, seed=1, watch=Watch(threads=threads))
        return time.perf_counter() - start

    seconds(sizes.few_samples, 1)
    few = [seconds(sizes.few_samples, cores()) for _ in range(sizes.starts)]
    seconds(sizes.samples // 10, cores())
    many = [seconds(sizes.samples, cores()) for _ in range(min(3, sizes.starts))]
    return {
        "gamma_samples_per_second": sizes.samples / median(many),
        "gamma_samples_per_second_one_thread": sizes.samples / seconds(sizes.samples, 1),
        "gamma_10k_samples_per_second": sizes.few_samples / median(few),
        "gamma_10k_seconds": median(few),
    }


def resnet50(sizes: Sizes) -> Figures:
    """Measure the seconds to map every distinct layer of ResNet-50 on Eyeriss with Gamma, on all cores, warm."""
    from tilewright.hardware import preset
    from tilewright.search import search_network
    from tilewright.workload import unique_operators, zoo

    layers = unique_operators(zoo.load("resnet50"))[:sizes.layers]
    accelerator = preset("eyeriss")
    search_network(layers[:2], accelerator, mapper="gamma", budget=min(1000, sizes.layer_samples))
    start = time.perf_counter()
    found = search_network(layers, accelerator, mapper="gamma", budget=sizes.layer_samples, seed=1)
    taken = time.perf_counter() - start
    return {"resnet50_map_seconds": taken, "resnet50_layers": len(found.layers),
            "resnet50_samples_per_second": len(found.layers) * sizes.layer_samples / taken}


def starts(sizes: Sizes) -> Figures:
    """Measure fresh processes: help, import, evaluating a mapping, and the first use with nothing compiled yet."""
    main = "from tilewright.cli import main; main()"
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        mapping = Path(folder) / "mapping.yaml"
        _write_mapping(mapping)
        evaluate = ("evaluate", str(mapping), "--network", "resnet50", "--layer", _LAYER, "--arch", "eyeriss")
        scoring, searching = (_compiling(Path(folder) / name, code) if sizes.compiling else None
                              for name, code in (("score", _SCORE_ONE), ("search", _SEARCH_ONE)))
        return {
            "help_seconds": _fresh(sizes.starts, main, "--help"),
            "import_seconds": median(float(_python(_IMPORT)) for _ in range(sizes.starts)),
            "evaluate_seconds": _fresh(sizes.starts, main, *evaluate),
            "first_compile_seconds": scoring,
            "first_search_compile_seconds": searching,
        }


PARTS: dict[str, Callable[[Sizes], Figures]] = {"dense": dense, "gamma": gamma, "resnet50": resnet50, "starts": starts}

_LAYER = "layer1.0.conv2"
_IMPORT = "import time; t = time.perf_counter(); import tilewright; print(time.perf_counter() - t)"
_SCORE_ONE = """
from yardstick import *
operator, accelerator = benchmark_layer(), benchmark_machine()
DenseModel(operator, accelerator).score(random_mappings(operator, accelerator, 256))
"""
_SEARCH_ONE = """
from yardstick import benchmark_layer
from tilewright.hardware import preset
from tilewright.search import search
search(benchmark_layer(), preset("eyeriss"), mapper="gamma", budget=1000)
"""


def _write_mapping(target: Path) -> None:
    from tilewright.hardware import preset
    from tilewright.mapping import dataflow, dump_mapping
    from tilewright.workload import zoo

    operator = next(node.operator for node in zoo.load("resnet50").mac_nodes if node.name == _LAYER)
    accelerator = preset("eyeriss")
    target.write_text(dump_mapping(dataflow("row-stationary", operator, accelerator), operator, accelerator))


def _python(code: str, *arguments: str, **environment: str) -> str:
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": path} | environment)
    if done.returncode:
        raise RuntimeError(f"a measured process ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _fresh(times: int, code: str, *arguments: str) -> float:
    """Return the median seconds of fresh processes; of several the first, which may fill caches, is not counted."""
    taken = []
    for _ in range(times + (times > 1)):
        start = time.perf_counter()
        _python(code, *arguments)
        taken.append(time.perf_counter() - start)
    return median(taken[-times:])


def _compiling(cache: Path, code: str) -> float:
    """Return by how many seconds a fresh process with nothing compiled yet takes longer than the next one."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        _python(code, NUMBA_CACHE_DIR=str(cache))
        taken.append(time.perf_counter() - start)
    return taken[0] - taken[1]


def child(part: str, quick: bool) -> None:
    """Measure one part and print its figures, with this process's peak memory, as the last line."""
    found = PARTS[part](QUICK if quick else FULL)
    used = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps(found | {"peak_memory_mb": used / 1024}))


def measure(quick: bool, started: Callable[[str], None]) -> dict[str, object]:
    """Measure everything; ``started`` is told which part begins. A part that fails says why under ``failed``."""
    found: dict[str, object] = {}
    failed: dict[str, str] = {}
    peak = 0.0
    for part in PARTS:
        started(part)
        try:
            figures = json.loads(_python(f"from figures import child; child({part!r}, {quick})")
                                 .splitlines()[-1])
        except RuntimeError as error:
            failed[part] = str(error)
            continue
        peak = max(peak, figures.pop("peak_memory_mb"))
        found |= figures
    found["peak_memory_mb"] = peak
    found["machine"] = machine()
    if failed:
        found["failed"] = failed
    return found


def machine() -> dict[str, object]:
    """Return what the figures were measured on."""
    return {"cpu": _cpu(), "cores": cores(), "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "versions": {name: version(name) for name in ("tilewright", "numpy", "numba", "llvmlite")}}


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
