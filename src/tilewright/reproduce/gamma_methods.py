"""The methods of Gamma's evaluation: Gamma, the baselines, and fixed dataflows (Kao 2022, section 4.4)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import Dataflow, MapSpace
from tilewright.search import MAPPERS, Objective, Task
from tilewright.workload import matmul

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
