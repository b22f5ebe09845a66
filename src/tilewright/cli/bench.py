"""``tilewright bench``: how fast this machine runs Tilewright, and the yardsticks beside it."""

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from tilewright.base import InputError

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


def bench(
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
    quick: Annotated[bool, typer.Option(
        "--quick", help="Measure next to nothing, only to see that everything runs; the figures mean little.")] = False,
) -> None:
    """Measure how fast Tilewright runs here, beside a plain C loop that computes the same (some minutes).

    Each part runs in a process of its own. Figures are medians; close other programs for figures that mean something.
    """
    figures = measuring("figures")
    begun: list[str] = []

    def started(part: str) -> None:
        begun.append(part)
        print(f"measuring {part} ({len(begun)} of {len(figures.PARTS)})", file=sys.stderr, flush=True)

    found = figures.measure(quick, started)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        print(_table(found))
    if "failed" in found:
        raise typer.Exit(1)


def measuring(name: str) -> ModuleType:
    """Load a module of the benchmarks, which stand beside the sources in a clone and inside an installed package.

    Where there are none, that is an `InputError`.
    """
    here = Path(__file__).resolve()
    folder = next((place for place in (here.parents[3] / "benchmarks", here.parents[1] / "benchmarks")
                   if (place / "yardstick.py").is_file()), None)
    if folder is None:
        raise InputError("bench", "must run where the benchmarks are", str(here.parents[3]), "Run it from a clone")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return import_module(name)


def _table(found: dict[str, object]) -> str:
    width = max(map(len, LABELS.values()))
    lines = [f"{label:<{width}}  {_figure(found[name])}" for name, label in LABELS.items() if name in found]
    if found.get("dense_c_loop_missing_because"):
        lines.append(f"The C loop was not measured: {found['dense_c_loop_missing_because']}.")
    failed, machine = found.get("failed"), found["machine"]
    if isinstance(failed, dict):
        lines += [f"Not measured: {part}, as {reason}" for part, reason in failed.items()]
    assert isinstance(machine, dict)
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    lines.append(f"On {machine['cpu']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
                 f"{versions}.")
    return "\n".join(lines)


def _figure(value: object) -> str:
    if not isinstance(value, int | float):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
