"""Methods against Gamma on the layers of networks, at equal samples: what each found, and where it found nothing.

Gamma's released environment calls MAESTRO with a network of 81,920,000 words a cycle (github.com/maestro-project/gamma,
src/GAMMA/gamma_env.py), so that only compute and start-up count as latency. The platforms here are those of the zoo
(tables 4.2 and 4.3) with ports that never limit. Layers are those of its model files (data/modelfile): convolutions,
no dense layers. Those files give input sizes without padding and no strides, which changes the work of a layer; here
layers are as their networks have them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from tilewright.base import InputError
from tilewright.cost import DenseModel, network_sum
from tilewright.hardware import Accelerator, Bandwidth, Memory, preset
from tilewright.jobs import Runner
from tilewright.mapping import Dataflow, MapSpace, dataflow, dump_mapping
from tilewright.reproduce.searching import (
    Layer,
    SeededSearch,
    Tried,
    bound_figures,
    confirmed,
    costs,
    mapping_counted,
    network_layers,
    play,
    searched,
    total,
)
from tilewright.reproduce.study import Cell, Plot, Table, Value
from tilewright.search import MAPPERS, Objective, Task
from tilewright.workload import matmul

PLATFORMS, SYSTEMS = ("edge", "cloud"), ("s1", "s2", "s3")


@cache
def machine(platform: str, system: str) -> Accelerator:
    """Return a platform of table 4.2 as a system of table 4.3, with ports that never limit."""
    given = preset(f"{platform}-{system}")
    levels = tuple(replace(level, bandwidth=Bandwidth()) if isinstance(level, Memory) else level
                   for level in given.levels)
    return replace(given, name=f"{given.name}-open", levels=levels)


@cache
def convolutions(network: str, every: int = 1) -> tuple[Layer, ...]:
    """Return the distinct convolutions of a zoo network, or every so manieth; dense layers are left out."""
    return tuple(layer for layer in network_layers(network) if "P" in layer.operator.sizes)[::every]


def layer_bound(network: str, layer: str, accelerator: Accelerator, name: str) -> float:
    """Return what a layer can't be below on a machine: ``compute_cycles`` or ``energy_pj``."""
    operator = next(each.operator for each in convolutions(network) if each.name == layer)
    return bound_figures(operator, accelerator)[name]


PAPER, OURS = "Gamma as published", "Gamma, ours"

_NVDLA = Dataflow("NVDLA-like: K and C in parallel", (("filters", "groups"), ("channels",)), "weights",
                  ("window", "channels", "filters", "groups", "columns", "rows", "batch", "other"))
_EYERISS = Dataflow("Eyeriss-like: Y and R in parallel", (("rows",), ("window rows",)), "weights",
                    ("window", "channels", "filters", "columns", "rows", "batch", "groups", "other"))
_SHIDIANNAO = Dataflow("ShiDianNao-like: Y and X in parallel", (("columns",), ("rows",)), "outputs",
                       ("window", "columns", "rows", "filters", "channels", "batch", "groups", "other"))


@dataclass(frozen=True)
class Method:
    """How a mapping is found: by a mapper with options, or by a fixed dataflow."""

    label: str
    mapper: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    flow: Dataflow | None = None


FIXED = (Method("NVDLA-like", flow=_NVDLA), Method("Eyeriss-like", flow=_EYERISS),
         Method("ShiDianNao-like", flow=_SHIDIANNAO))
GAMMA = Method(PAPER, "gamma", {"paper": True})
OWN = Method(OURS, "gamma")
BASELINES = {
    "standard GA": "ga", "portfolio": "portfolio", "CMA-ES": "cma-es", "TBPSA": "tbpsa", "PSO": "pso", "DE": "de",
    "(1+1)-ES": "one-plus-one", "random": "random",
}
"""The published baselines by label, and what they are called here; figures 4.4 and 4.5 leave random search out."""


def baselines() -> tuple[tuple[Method, ...], tuple[str, ...]]:
    """Return the baselines that can be built here, and the labels of those that can't."""
    ready = {label: _builds(name) for label, name in BASELINES.items()}
    return (tuple(Method(label, BASELINES[label]) for label, builds in ready.items() if builds),
            tuple(label for label, builds in ready.items() if not builds))


def _builds(name: str) -> bool:
    """Whether there is a mapper of that name, and what it needs is installed."""
    if name not in MAPPERS:
        return False
    space = MapSpace(matmul("small", m=4, n=4, k=4), preset("edge-s1"))
    try:
        MAPPERS.get(name)(Task(space, np.random.default_rng(0), 10, objective=Objective.parse("latency")))
    except InputError:
        return False
    return True


FIGURES = {"latency": "latency_cycles", "energy": "energy_pj"}


@dataclass(frozen=True)
class ByMethod:
    """A layer that a method is to map."""

    layer: Layer
    method: Method


Try = Tried[ByMethod]
Tries = dict[str, list[Try]]
"""By label of the method, in the order of the layers."""


def contest(runner: Runner, layers: Sequence[Layer], machine: Accelerator, methods: Sequence[Method],  # noqa: PLR0913
            *, seeds: int, samples: int, objective: str) -> Tries:
    """Let every method map every layer for an objective; fixed dataflows have one mapping each."""
    def case(asked: ByMethod) -> SeededSearch:
        layer, method, key = asked.layer, asked.method, key_of(asked.layer, machine)
        if method.flow is not None:
            alone = Cell({**key, "flow": method.flow.about}, lambda: _fixed(asked, machine))
            return SeededSearch([alone], mapping_counted(key, layer.operator, machine))
        return searched(key, MapSpace(layer.operator, machine), seeds, mapper=method.mapper, samples=samples,
                        objective=objective, options=method.options)

    return gather(runner, layers, methods, case, objective)


def gather(runner: Runner, layers: Sequence[Layer], methods: Sequence[Method], case: Callable[[ByMethod], SeededSearch],
           objective: str) -> Tries:
    """Run the cases of all methods on all layers; have the oracle count the runs of median latency or energy."""
    found = iter(play(runner, [ByMethod(layer, method) for method in methods for layer in layers], case,
                      FIGURES[objective]))
    return {method.label: [next(found) for _ in layers] for method in methods}


def key_of(layer: Layer, machine: Accelerator) -> dict[str, object]:
    """Return what tells a layer on a machine apart."""
    return {"network": layer.network, "layer": layer.name, "machine": machine.name}


def _fixed(asked: ByMethod, machine: Accelerator) -> dict[str, Any]:
    """Return the one mapping of a fixed dataflow, as `search_cell` does."""
    assert asked.method.flow is not None
    operator = asked.layer.operator
    mapping = dataflow(asked.method.flow, operator, machine)
    return {**costs(DenseModel(operator, machine).cost(mapping)), "samples": 1, "legal_samples": 1,
            "mapping": dump_mapping(mapping, operator, machine)}


def over(tries: Sequence[Try], base: Sequence[Try]) -> float | None:
    """Return a method's sum over that of another, of the layers that both mapped; None where there is none."""
    pairs = [(one, other) for one, other in zip(tries, base, strict=True) if one.median and other.median]
    if not pairs:
        return None
    return total(one for one, _ in pairs) / total(other for _, other in pairs)


def failed(tries: Iterable[Try]) -> int:
    """Return how many runs found no legal mapping."""
    return sum(run["edp"] is None for each in tries for run in each.runs)


def unmapped(tries: Iterable[Try]) -> tuple[int, int]:
    """Return the layers without a mapping (in most runs), and all layers."""
    tries = list(tries)
    return sum(each.median is None for each in tries), len(tries)


def ratios(tries: Tries, others: Iterable[str]) -> dict[str, float]:
    """Return how many times the figure of Gamma as published each other method has, of the layers that both mapped."""
    found = {label: over(tries[label], tries[PAPER]) for label in others}
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


def summary_table(name: str, title: str, tries: Tries, bound: float) -> Table:
    """Return one row a method: the whole network, over Gamma as published and the bound, and what was not mapped."""
    columns = ("Method", f"Network ({unit_of(tries)})", f"Over {PAPER}", "Over the bound", "Layers without a mapping",
               "Runs without (%)", "Legal samples (%)", "Oracle")
    rows: list[tuple[Value, ...]] = []
    for label, found in tries.items():
        whole, ratio = total(found), over(found, tries[PAPER])
        missing, layers = unmapped(found)
        runs = [run for each in found for run in each.runs]
        legal, drawn = (sum(run[name] for run in runs) for name in ("legal_samples", "samples"))
        rows.append((label, whole if math.isfinite(whole) else "NAN", ratio,
                     whole / bound if math.isfinite(whole) and bound else None, f"{missing} of {layers}",
                     100 * failed(found) / len(runs), None if found[0].of.method.flow else 100 * legal / drawn,
                     oracle_word(found)))
    rows.append(("Nothing can beat", bound, None, 1.0, "", None, None, ""))
    return Table(name, title, columns, tuple(rows))


def unit_of(tries: Tries) -> str:
    """Return the unit of what the methods were compared by."""
    return "cycles" if next(iter(tries.values()))[0].figure == "latency_cycles" else "pJ"


def oracle_word(tries: Iterable[Try]) -> str:
    """Return how many of the mappings the oracle confirms."""
    agree, count, _ = confirmed(tries)
    return f"{agree} of {count} agrees" if agree == count else f"{count - agree} of {count} disagrees"


def bound_total(layers: Iterable[Layer], machine: Accelerator, name: str) -> float:
    """Return what the whole network can't be below: ``compute_cycles`` or ``energy_pj``."""
    found: float = network_sum((layer.count, bound_figures(layer.operator, machine)[name]) for layer in layers)
    return found


def layers_plot(name: str, title: str, tries: Tries) -> Plot:
    """Return a point a layer and method, on a logarithmic scale."""
    names = [each.of.layer.name for each in next(iter(tries.values()))]
    data = [{"type": "scatter", "mode": "markers", "name": label, "x": names, "marker": {"size": 9},
             "y": [each.median[each.figure] if each.median else None for each in found]}
            for label, found in tries.items()]
    yaxis = {"title": {"text": unit_of(tries)}, "type": "log"}
    return Plot(name, title, data, {"yaxis": yaxis, "xaxis": {"tickangle": -50}},
                "Methods without a point found no legal mapping of the layer in most runs.")
