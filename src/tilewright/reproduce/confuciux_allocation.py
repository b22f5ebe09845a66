"""What ConfuciuX's evaluation allocates (Kao 2022, section 8.2): networks, styles, budgets, and the methods by name.

Layers are the convolutions of the zoo's networks with their strides. The styles are those of the text: NVDLA's spreads
filters, k for each element. Traffic is free, as in the release; areas are MAESTRO's, energies ours (28 nm). Budgets are
shares of the largest pair everywhere (table 8.2).
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tilewright.codesign.allocation import GLOBAL, PE_LEVELS, AllocationProblem, allocate, solve
from tilewright.hardware import preset
from tilewright.jobs import Runner
from tilewright.reproduce.searching import oracle_cell
from tilewright.reproduce.study import Cell
from tilewright.workload import zoo

STYLES = {"dla": ("nvdla",), "eye": ("eyeriss",), "shi": ("shidiannao",), "MIX": ("nvdla", "eyeriss", "shidiannao")}
FINE = tuple(range(1, 129))
CONX = "Con'X"


@cache
def problem(network: str, style: str, within: str, objective: str = "latency", fine: bool = False) -> AllocationProblem:
    """Return what is allocated; ``fine``: from 1 to 128 elements, not the levels of table 8.1. Methods are blind."""
    return AllocationProblem.of(
        zoo.load(network), preset("confuciux"), within, objective=objective,  # type: ignore[arg-type]
        convolutions=True, blind=True, styles=STYLES[style], elements=FINE if fine else PE_LEVELS)


def method_cell(of: Sequence[Any], method: str, epochs: int, seed: int) -> Cell:
    """Return the cell of one search of the `problem` ``of``.

    ``first`` and ``last`` are the objective after a ninth of the epochs, which is the first stage where there are two,
    and at the end; ``taken`` is the largest share of a limit, above 1 where nothing within was found (the figures are
    then those of what is closest).
    """
    def compute() -> dict[str, Any]:
        asked = problem(*of)
        found = allocate(asked, method, epochs=epochs, seed=seed)
        cells = found.state["trial.closest"] if found.cells is None else found.cells
        (value,), _ = asked.score(cells[None])
        totals = asked.taken(cells)
        limits = zip(asked.budget.measures, asked.budget.limits, strict=True)
        taken = [totals[measure] / limit for measure, limit in limits]
        first = float(found.curve[min(len(found.curve), int(GLOBAL * epochs)) - 1])
        return {"first": first if np.isfinite(first) else float(value), "last": float(value),
                "taken": max(taken, default=0.0), **totals}

    return Cell({"of": list(of), "method": method, "epochs": epochs, "seed": seed}, compute, epochs)


def optimum_cell(of: Sequence[Any]) -> Cell:
    """Return the cell of the proven optimum, the best pair for all layers, and the bound on so many elements."""
    def compute() -> dict[str, Any]:
        asked = problem(*of)
        found, stages = solve(asked), asked.table.stages
        figures, costs = asked.figures.sum(axis=1), asked.costs.sum(axis=1)
        fits = (costs <= asked.limits[:, None]).all(axis=0)
        limits = dict(zip(asked.budget.measures, asked.budget.limits, strict=True))
        elements = limits.get("elements", sum((max(stages.elements),) * len(stages)))
        return {"optimum": found.value, **asked.taken(found.cells),
                "uniform": float(np.where(fits, figures[0], np.inf).min()) if fits.any() else None,
                "bound": float(np.sqrt(stages.macs).sum() ** 2 / elements)}

    return Cell({"of": list(of), "what": "optimum"}, compute)


def confirmed_note(runner: Runner, network: str, style: str) -> str:
    """Have the oracle count cells of the table: three layers, in each style, with a small, a middle, a large pair."""
    stages = problem(network, style, "unlimited").table.stages
    cells = []
    for layer in (1, len(stages) // 2, len(stages) - 1):
        for s, name in enumerate(stages.styles):
            for place in ((0, 0), (5, 5), (11, 11)):
                mapping, machine = stages.built(layer, (s, *place))
                key = {"table": network, "layer": stages.names[layer], "style": name, "pair": list(place)}
                cells.append(oracle_cell(key, stages.operators[layer], machine, mapping))
    told = runner.run(cells)
    return f"The oracle confirms {sum(each['agrees'] for each in told)} of {len(told)} cells of the table of {network}."


def shown(value: float) -> str:
    """Return a figure as the tables print it."""
    return f"{value:.1E}".upper()
