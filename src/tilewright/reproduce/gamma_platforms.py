"""What Gamma's evaluation runs on: platforms, layers, fixed dataflows and methods (Kao 2022, section 4.4).

Gamma's released environment calls MAESTRO with a network of 81,920,000 words a cycle (github.com/maestro-project/gamma,
src/GAMMA/gamma_env.py), so that only compute and start-up count as latency. The platforms here are those of the zoo
(tables 4.2 and 4.3) with ports that never limit. Layers are those of its model files (data/modelfile): convolutions,
no dense layers. Those files give input sizes without padding and no strides, which changes the work of a layer; here
layers are as their networks have them.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Bandwidth, Memory, preset
from tilewright.mapping import Dataflow, MapSpace
from tilewright.reproduce.searching import Layer, bound_figures, network_layers
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
