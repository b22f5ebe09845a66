"""What ConfuciuX's evaluation allocates (Kao 2022, section 8.2): networks, styles, budgets, and the methods by name.

Layers are the convolutions of the zoo's networks with their strides, or the products of GNMT, NCF and T5 small, which
has the sizes of the transformer. The styles are those of the text: NVDLA's spreads filters, k for each element. Areas
are MAESTRO's, energies ours (28 nm). Budgets are shares of the largest pair of table 8.1 everywhere (table 8.2).
Traffic is free, as in the release; beside it stands a DRAM of one 16-bit channel of LPDDR4-3200 (JESD209-4).
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.base import InputError
from tilewright.codesign.allocation import (
    GLOBAL,
    PE_LEVELS,
    AllocationProblem,
    AllocationTable,
    PipelineStages,
    allocate,
    allocation_table,
    read_budget,
    solve,
)
from tilewright.hardware import Bandwidth, Memory, preset
from tilewright.jobs import Runner
from tilewright.reproduce.searching import oracle_cell
from tilewright.reproduce.study import Cell
from tilewright.workload import zoo

STYLES = {"dla": ("nvdla",), "eye": ("eyeriss",), "shi": ("shidiannao",), "MIX": ("nvdla", "eyeriss", "shidiannao")}
LEVELS: Mapping[int, tuple[int, ...]] = {
    10: tuple(level for level in PE_LEVELS if level not in (12, 48)), 12: PE_LEVELS,
    14: tuple(sorted({*PE_LEVELS, 40, 80})), 128: tuple(range(1, 129))}
"""Numbers of elements by how many there are; of the tables only that of 12 is printed."""
DRAM = 6.4
"""Words a cycle, at 1 GHz."""
CONX = "Con'X"
ONE_STAGE, TWO_STAGES = "reinforce-published", "confuciux-published"
"""The methods that claims are judged on."""
OWNER = "confuciux-table8.4"
"""The study whose cells all of them share."""


class Query(NamedTuple):
    """What is allocated: ``levels`` numbers of elements; with ``free`` traffic or through the DRAM."""

    network: str
    style: str = "dla"
    within: str = "area=iot"
    objective: str = "latency"
    levels: int = 12
    free: bool = True


@cache
def table(network: str, style: str, levels: int, free: bool) -> AllocationTable:
    """Return what every layer costs by its style, elements and buffer."""
    graph, machine = zoo.load(network), preset("confuciux")
    if not free:
        outer = machine.levels[0]
        assert isinstance(outer, Memory)
        machine = replace(machine, levels=(replace(outer, bandwidth=Bandwidth(shared=DRAM)), *machine.levels[1:]))
    buffers = tuple(range(1, min(levels, 14 if levels == 14 else 12) + 1))
    return allocation_table(PipelineStages.of(
        graph, machine, convolutions=any("R" in node.operator.sizes for node in graph.mac_nodes), styles=STYLES[style],
        elements=LEVELS[levels], filters=buffers))


def problem(asked: Query) -> AllocationProblem:
    """Return what is allocated; all that is over the budget is equally bad to a method."""
    network, style, within, objective, levels, free = asked
    return AllocationProblem(table(network, style, levels, free), read_budget(within, table(network, style, 12, free)),
                             objective, blind=True)  # type: ignore[arg-type]


def method_cell(asked: Query, method: str, epochs: int, seed: int) -> Cell:
    """Return the cell of one search.

    ``first`` and ``last`` are the objective after a ninth of the epochs, which is the first stage where there are two,
    and at the end; ``taken`` is the largest share of a limit, above 1 where nothing within was found (the figures are
    then those of what is closest). ``history`` has the epochs at which a better one within was found, and
    ``layers`` style, elements and filters of each layer.
    """
    def compute() -> dict[str, Any]:
        of, began = problem(asked), time.thread_time()
        found = allocate(of, method, epochs=epochs, seed=seed)
        minutes = (time.thread_time() - began) / 60
        cells = found.closest if found.cells is None else found.cells
        (value,), _ = of.score(cells[None])
        totals = of.taken(cells)
        taken = [totals[measure] / limit for measure, limit in zip(of.budget.measures, of.budget.limits, strict=True)]
        curve, stages = found.curve, of.table.stages
        better = np.flatnonzero(curve < np.concatenate([[np.inf], curve[:-1]]))
        first = float(curve[min(len(curve), int(GLOBAL * epochs)) - 1])
        return {"first": first if np.isfinite(first) else float(value), "last": float(value), "minutes": minutes,
                "taken": max(taken, default=0.0), **totals,
                "history": [[int(at) + 1, float(curve[at])] for at in better] or None,
                "layers": [[s, stages.elements[p], stages.filters[k]] for s, p, k in of.places(cells)]}

    return Cell({"of": list(asked), "method": method, "epochs": epochs, "seed": seed}, compute, epochs)


def optimum_cell(asked: Query) -> Cell:
    """Return the cell of the proven optimum, the best pair for all layers, and the bound on so many elements.

    Where even the smallest choices are over the budget, as with the DRAM some power budgets are, ``optimum`` is None.
    """
    def compute() -> dict[str, Any]:
        try:
            of = problem(asked)
        except InputError as error:
            return {"optimum": None, "uniform": None, "why": str(error)}
        found, stages = solve(of), of.table.stages
        figures, costs = of.figures.sum(axis=1), of.costs.sum(axis=1)
        fits = (costs <= of.limits[:, None]).all(axis=0)
        limits = dict(zip(of.budget.measures, of.budget.limits, strict=True))
        elements = limits.get("elements", sum((max(stages.elements),) * len(stages)))
        return {"optimum": found.value, **of.taken(found.cells),
                "uniform": float(np.where(fits, figures[0], np.inf).min()) if fits.any() else None,
                "bound": float(np.sqrt(stages.macs).sum() ** 2 / elements),
                "layers": [[s, stages.elements[p], stages.filters[k]] for s, p, k in of.places(found.cells)]}

    return Cell({"of": list(asked), "what": "optimum"}, compute)


def confirmed_note(runner: Runner, network: str, style: str, traffic: Iterable[bool]) -> str:
    """Have the oracle count cells of the table with each ``traffic``, free or not.

    They are those of three layers, in each style, with a small, a middle, a large pair.
    """
    cells = []
    for free in traffic:
        stages = table(network, style, 12, free).stages
        for layer in (1, len(stages) // 2, len(stages) - 1):
            for s, name in enumerate(stages.styles):
                for place in ((0, 0), (5, 5), (11, 11)):
                    mapping, machine = stages.built(layer, (s, *place))
                    key = {"table": network, "layer": stages.names[layer], "style": name, "pair": list(place)}
                    cells.append(oracle_cell(key | ({} if free else {"free": False}), stages.operators[layer], machine,
                                             mapping))
    told = runner.run(cells)
    return f"The oracle confirms {sum(each['agrees'] for each in told)} of {len(told)} cells of the table of {network}."


def shown(value: float) -> str:
    """Return a figure as the tables print it; without one, that nothing was found."""
    return "none" if np.isnan(value) else f"{value:.1E}".upper()
