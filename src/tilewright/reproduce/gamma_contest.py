"""Methods against Gamma on the layers of networks, at equal samples: what each found, and where it found nothing."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.cost import DenseModel, network_sum
from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.mapping import MapSpace, dataflow, dump_mapping
from tilewright.reproduce.gamma_platforms import Method, layer_bound
from tilewright.reproduce.ruby_contest import Layer
from tilewright.reproduce.searching import costs, median_run, oracle_cell, search_cell
from tilewright.reproduce.study import Cell, Plot, Table, Value

FIGURES = {"latency": "latency_cycles", "energy": "energy_pj"}


@dataclass(frozen=True)
class Try:
    """What came of one method on one layer: the median run (None where most found nothing), checked by the oracle."""

    layer: Layer
    method: Method
    runs: tuple[Mapping[str, Any], ...]
    median: Mapping[str, Any] | None
    oracle: Mapping[str, Any] | None

    def at(self, seed: int) -> "Try":
        """Return what came of one seed (of the one there is, for a fixed dataflow)."""
        run = self.runs[seed % len(self.runs)]
        return replace(self, runs=(run,), median=run if run["edp"] is not None else None)

    @property
    def failed(self) -> int:
        """Runs that found no legal mapping."""
        return sum(run["edp"] is None for run in self.runs)


Tries = dict[str, list[Try]]
"""By label of the method, in the order of the layers."""


def by_seed(tries: Tries) -> list[Tries]:
    """Return the same for every seed alone."""
    seeds = max((len(each.runs) for found in tries.values() for each in found), default=0)
    return [{label: [each.at(seed) for each in found] for label, found in tries.items()} for seed in range(seeds)]


def contest(runner: Runner, layers: Sequence[Layer], machine: Accelerator, methods: Sequence[Method],  # noqa: PLR0913
            *, seeds: int, samples: int, objective: str) -> Tries:
    """Let every method map every layer for an objective; fixed dataflows have one mapping each."""
    def cells(method: Method, layer: Layer) -> list[Cell]:
        if method.fixed:
            return [_fixed_cell(layer, machine, method)]
        return [search_cell(_key(layer, machine), MapSpace(layer.operator, machine), mapper=method.mapper,
                            samples=samples, seed=seed, objective=objective, options=method.options)
                for seed in range(seeds)]

    return gather(runner, [(method, layer) for method in methods for layer in layers], cells, machine,
                  FIGURES[objective])


def gather(runner: Runner, asked: Sequence[tuple[Method, Layer]], cells: Callable[[Method, Layer], list[Cell]],
           machine: Accelerator, figure: str) -> Tries:
    """Run the cells of methods and layers, one a seed; have the oracle count the runs of median ``figure``."""
    made = [cells(method, layer) for method, layer in asked]
    values = iter([{figure: None, **value} for value in runner.run([cell for some in made for cell in some])])
    runs = [[next(values) for _ in some] for some in made]
    medians = [median_run(some, figure) for some in runs]
    checks = {index: oracle_cell(_key(asked[index][1], machine), asked[index][1].operator, machine, median["mapping"])
              for index, median in enumerate(medians) if median is not None}
    told = dict(zip(checks, runner.run(list(checks.values())), strict=True))
    tries: Tries = {method.label: [] for method, _ in asked}
    for index, (method, layer) in enumerate(asked):
        tries[method.label].append(Try(layer, method, tuple(runs[index]), medians[index], told.get(index)))
    return tries


def _key(layer: Layer, machine: Accelerator) -> dict[str, object]:
    return {"network": layer.network, "layer": layer.name, "machine": machine.name}


def _fixed_cell(layer: Layer, machine: Accelerator, method: Method) -> Cell:
    flow = method.flow
    assert flow is not None

    def compute() -> dict[str, Any]:
        mapping = dataflow(flow, layer.operator, machine)
        cost = DenseModel(layer.operator, machine).cost(mapping)
        return {**costs(cost), "samples": 1, "legal_samples": 1,
                "mapping": dump_mapping(mapping, layer.operator, machine)}

    return Cell({**_key(layer, machine), "flow": flow.about}, compute)


def total(tries: Iterable[Try], figure: str) -> float:
    """Return a figure of the whole network; infinite where a layer has no mapping."""
    found: float = network_sum(
        (each.layer.count, float(each.median[figure]) if each.median else None) for each in tries)
    return found


def over(tries: Sequence[Try], base: Sequence[Try], figure: str) -> float | None:
    """Return a method's sum over that of another, of the layers that both mapped; None where there is none."""
    pairs = [(one, other) for one, other in zip(tries, base, strict=True) if one.median and other.median]
    if not pairs:
        return None
    return total((one for one, _ in pairs), figure) / total((other for _, other in pairs), figure)


def unmapped(tries: Iterable[Try]) -> tuple[int, int]:
    """Return the layers without a mapping (in most runs), and all layers."""
    tries = list(tries)
    return sum(each.median is None for each in tries), len(tries)


def ratios(tries: Tries, base: str, figure: str, others: Iterable[str]) -> dict[str, float]:
    """Return how many times the figure of ``base`` each other method has, of the layers that both mapped."""
    found = {label: over(tries[label], tries[base], figure) for label in others}
    return {label: ratio for label, ratio in found.items() if ratio is not None}


def least(found: Mapping[str, float]) -> float:
    """Return the least of some ratios; NaN where there is none."""
    return min(found.values(), default=math.nan)


def span(found: Mapping[str, float]) -> str:
    """Tell the least and the largest of some ratios."""
    if not found:
        return "no other method found a mapping"
    low, high = (pick(found, key=lambda label: found[label]) for pick in (min, max))
    return f"{times(found[low])} ({low}) to {times(found[high])} ({high})"


def times(ratio: float) -> str:
    """Return a ratio as people read it."""
    return f"{ratio:.3g}x" if ratio < 10 else f"{ratio:,.0f}x" if ratio < 1e5 else f"{ratio:.1e}x"


def summary_table(name: str, title: str, tries: Tries, base: str, figure: str, bound: float,  # noqa: PLR0913, PLR0917
                  notes: tuple[str, ...] = ()) -> Table:
    """Return one row a method: the whole network, over the base and over the bound, and what was not mapped."""
    unit = "cycles" if figure == "latency_cycles" else "pJ"
    columns = ("Method", f"Network ({unit})", f"Over {base}", "Over the bound", "Layers without a mapping",
               "Runs without (%)", "Legal samples (%)", "Oracle")
    rows: list[tuple[Value, ...]] = []
    for label, found in tries.items():
        whole, ratio = total(found, figure), over(found, tries[base], figure)
        missing, layers = unmapped(found)
        runs = sum(len(each.runs) for each in found)
        rows.append((label, whole if math.isfinite(whole) else "NAN", ratio,
                     whole / bound if math.isfinite(whole) and bound else None, f"{missing} of {layers}",
                     100 * sum(each.failed for each in found) / runs, _legal(found), oracle_word(found)))
    rows.append(("Nothing can beat", bound, None, 1.0, "", None, None, ""))
    return Table(name, title, columns, tuple(rows), notes)


def _legal(tries: Iterable[Try]) -> float | None:
    """Return the percentage of all samples that were legal; None for fixed dataflows."""
    runs = [run for each in tries if not each.method.fixed for run in each.runs]
    return 100 * sum(run["legal_samples"] for run in runs) / sum(run["samples"] for run in runs) if runs else None


def oracle_word(tries: Iterable[Try]) -> str:
    """Return how many of the mappings the oracle confirms."""
    told = [each.oracle for each in tries if each.oracle is not None]
    agree = sum(bool(check["agrees"]) for check in told)
    return f"{agree} of {len(told)} agrees" if agree == len(told) else f"{len(told) - agree} of {len(told)} disagrees"


def network_bound(layers: Iterable[Layer], machine: Accelerator, name: str) -> float:
    """Return what the whole network can't be below: ``compute_cycles`` or ``energy_pj``."""
    found: float = network_sum((layer.count, layer_bound(layer.network, layer.name, machine, name)) for layer in layers)
    return found


def layers_plot(name: str, title: str, tries: Tries, figure: str) -> Plot:
    """Return a point a layer and method, on a logarithmic scale."""
    names = [each.layer.name for each in next(iter(tries.values()))]
    data = [{"type": "scatter", "mode": "markers", "name": label, "x": names, "marker": {"size": 9},
             "y": [each.median[figure] if each.median else None for each in found]} for label, found in tries.items()]
    unit = "cycles" if figure == "latency_cycles" else "pJ"
    return Plot(name, title, data, {"yaxis": {"title": {"text": unit}, "type": "log"}, "xaxis": {"tickangle": -50}},
                "Methods without a point found no legal mapping of the layer in most runs.")
