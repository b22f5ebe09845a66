"""``tilewright bench``: how fast this machine runs Tilewright, and the yardsticks beside it."""

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from tilewright.base import InputError


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
        print(_table(found, figures.LABELS))
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


def _table(found: dict[str, object], labels: dict[str, str]) -> str:
    width = max(map(len, labels.values()))
    lines = [f"{label:<{width}}  {_figure(found[name])}" for name, label in labels.items() if name in found]
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
