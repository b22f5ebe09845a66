"""A sweep of 100 machines beside a process of ``tilewright map`` for each: CPU seconds, and what comes of both.

Run with ``python benchmarks/sweeps.py [--alone N]``: as 100 processes take long, N of the machines, evenly spread, are
mapped alone, and their CPU seconds taken a hundredfold. Both choose mappings for the least EDP: ``sweep`` that of the
whole network, ``map`` that of each layer.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

VARY = ["SG.capacity=64KB..1MB*2", "PEs.shape=8x8,8x16,16x16,16x32,32x32", "SL.capacity=128B..1024B*2"]


def cpu_seconds() -> float:
    """Return the CPU seconds of all processes that ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def timed(words: list[str], out: Path) -> tuple[float, dict[str, Any]]:
    """Return the CPU seconds of a whole process of the command line, and its JSON."""
    before = cpu_seconds()
    subprocess.run([sys.executable, "-m", "tilewright", *words, "--json", str(out)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cpu_seconds() - before, json.loads(out.read_text())


def main() -> None:
    """Print CPU seconds of both, their ratio, and EDP of the sweep in that of single runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--budget", default="2000")
    parser.add_argument("--alone", type=int, default=10)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [asked.network, "--arch", "edge-s2", "--budget", asked.budget]
        timed(["map", *words[:-1], "10", "--no-store"], out)  # compiles what is not
        timed(["sweep", *words[:-1], "10", "--vary", "SG.capacity=64KB,128KB"], out)
        sweep, found = timed(["sweep", *words, *(part for one in VARY for part in ("--vary", one))], out)
        machines = found["machines"]
        spent, ratios = [], []
        for one in machines[len(machines) // asked.alone // 2::len(machines) // asked.alone]:
            arch = one["name"]
            seconds, run = timed(["map", asked.network, "--arch", arch, "--budget", asked.budget, "--no-store"], out)
            spent.append(seconds)
            ratios.append(one["edp"] / run["totals"]["edp"])
    alone = statistics.mean(spent) * len(machines)
    print(f"{asked.network}, {len(machines)} machines, budget {asked.budget}: sweep {sweep:.1f} CPU s; "
          f"{len(spent)} processes of map {statistics.mean(spent):.2f} CPU s each, {alone:.0f} for all: "
          f"{alone / sweep:.1f} times as much")
    print(f"EDP of the sweep in that of map: median {statistics.median(ratios):.3f}, "
          f"from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
