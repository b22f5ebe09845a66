"""What is to be allocated, and what an allocation costs: sums of the table's cells against a budget."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, unknown_name
from tilewright.codesign.allocation.budgets import MEASURES, UNLIMITED, AllocationBudget, read_budget
from tilewright.codesign.allocation.table import PE_LEVELS, AllocationTable, PipelineStages, allocation_table
from tilewright.codesign.limits import Limit
from tilewright.hardware import Accelerator, DesignSpace
from tilewright.mapping import classes_of
from tilewright.workload import Graph, Operator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Objective = Literal["latency", "energy", "pace", "edp"]
OBJECTIVES = ("latency", "energy", "pace", "edp")
DEPLOYMENTS = ("pipelined", "sequential")
MOST_LEVELS = 16
"""Numbers of elements among which methods choose; the second stage and proofs know all of a longer list."""
ROOM = 1 + 1e-12
"""Times its limit, what a sum may reach: sums of the same cells differ in their last digits by the order of adding."""


@dataclass(frozen=True)
class AllocationProblem:
    """Choose one cell for each layer, within a budget.

    Raises an `InputError` if a name is unknown, or a limit is below the least that any choice takes; the least is told.
    """

    table: AllocationTable
    budget: AllocationBudget = UNLIMITED
    objective: Objective = "latency"
    """What is to be least: the sum of the layers' ``latency`` or ``energy``, as published; the ``pace``, which the
    slowest layer of a pipeline sets; or ``edp``, the product of both sums, in picojoule-cycles."""
    deployment: str = "pipelined"
    """``pipelined``: every layer has its own elements, and the budget is for all. ``sequential``: one pair of elements
    and buffer serves all layers in turn, each in its best style, and the budget is for the largest layer."""
    blind: bool = False
    """Whether all that is over the budget is equally bad to a method, as published; else less over is better."""

    @classmethod
    def of(cls, graph: Graph, machine: Accelerator | DesignSpace, within: str | Iterable[str | Limit] = "unlimited", *,  # noqa: PLR0913
           objective: Objective = "latency", deployment: str = "pipelined", convolutions: bool = False,
           blind: bool = False, **choices: Sequence[int | str]) -> "AllocationProblem":
        """Return the problem of a network, with its table; ``choices`` and errors are as of `PipelineStages.of`."""
        if deployment not in DEPLOYMENTS:
            raise unknown_name("deployment", deployment, list(DEPLOYMENTS))
        table = allocation_table(PipelineStages.of(graph, machine, convolutions=convolutions,
                                                   together=deployment == "sequential", **choices))
        return cls(table, read_budget(within, table, deployment), objective, deployment, blind)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, list(OBJECTIVES))
        if self.deployment not in DEPLOYMENTS:
            raise unknown_name("deployment", self.deployment, list(DEPLOYMENTS))
        least = self.costs.min(axis=2).sum(axis=1) if self.deployment == "pipelined" else np.array(
            [pairs.max(axis=0).min() for pairs in self.budget.costs(self.table).min(axis=2)])
        for measure, limit, needed in zip(self.budget.measures, self.budget.limits, least, strict=True):
            if needed > limit * ROOM:
                enough = Limit(measure, float(needed)).rounded.shown()
                raise InputError(f"within.{measure}", "must leave room for the smallest choice of every layer",
                                 Limit(measure, limit).shown(), f"The least that works is {enough}")

    @cached_property
    def costs(self) -> Floats:
        """What every cell takes: ``(m, l, c)``, cells ``c`` in the order of (style, elements, buffer)."""
        costs = self.budget.costs(self.table)
        return np.ascontiguousarray(costs.reshape(len(costs), len(self.table.stages), math.prod(costs.shape[2:])))

    @cached_property
    def limits(self) -> Floats:
        """Limits ``(m)``, with room for rounding."""
        return np.array(self.budget.limits) * ROOM

    @cached_property
    def figures(self) -> Floats:
        """What is summed up, or of which the largest counts: ``(f, l, c)``; two for ``edp``."""
        latency, energy = (rows.reshape(len(rows), -1) for rows in (self.table.latency_cycles, self.table.energy_pj))
        return np.stack({"energy": [energy], "edp": [latency, energy]}.get(self.objective, [latency]))

    @cached_property
    def axes(self) -> tuple[int, int, int]:
        """Choices that a method has for each layer: styles, levels of elements (`coarse`), buffers."""
        return self.table.stages.shape[1], len(self.coarse), self.table.stages.shape[3]

    @cached_property
    def coarse(self) -> Ints:
        """Places of the numbers of elements that methods choose among: all, or of very many those of table 8.1."""
        elements = self.table.stages.elements
        found = [elements.index(level) for level in PE_LEVELS if level in elements and len(elements) > MOST_LEVELS]
        return np.array(found or range(len(elements)))

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Which of the choices ``(l, 3)`` of layers there are: of layers in turn the first has the pair of all."""
        found = np.tile(np.array(self.axes) > 1, (len(self.table.stages), 1))
        if self.deployment == "sequential":
            found[1:, 1:] = False
        return found

    def cells(self, actions: Ints) -> Ints:
        """Return the cells ``(b, l)`` of actions ``(b, l, 3)``: style, level of elements, buffer."""
        return self.cells_at(np.stack([actions[..., 0], self.coarse[actions[..., 1]], actions[..., 2]], axis=-1))

    def cells_at(self, places: Ints) -> Ints:
        """Return the cells ``(b, l)`` of the places ``(b, l, 3)`` of style, elements and buffer.

        Layers that run in turn have the pair of the first.
        """
        style, *pair = np.moveaxis(places, -1, 0)
        if self.deployment == "sequential":
            pair = [np.broadcast_to(one[..., :1], style.shape) for one in pair]
        found: Ints = np.ravel_multi_index((style, *pair), self.table.stages.shape[1:])
        return found

    def of_layers(self, cells: Ints) -> tuple[Floats, Floats]:
        """Return figures ``(f, b, l)`` and costs ``(m, b, l)`` of the cells ``(b, l)``."""
        layers = np.arange(cells.shape[1])
        return self.figures[:, layers, cells], self.costs[:, layers, cells]

    def score(self, cells: Ints) -> tuple[Floats, Floats]:
        """Return the objective ``(b)`` of the cells ``(b, l)``, and by what shares they are over the budget, summed."""
        figures, costs = self.of_layers(cells)
        sums = figures.max(axis=2) if self.objective == "pace" else figures.sum(axis=2)
        taken = costs.sum(axis=2) if self.deployment == "pipelined" else costs.max(axis=2)
        over = np.maximum(taken / self.limits[:, None] - 1.0, 0.0).sum(axis=0)
        if self.deployment == "sequential":
            pairs = cells % int(np.prod(self.table.stages.shape[2:]))
            over = over + (pairs != pairs[:, :1]).sum(axis=1)  # one pair for all
        return sums.prod(axis=0), over

    def taken(self, cells: Ints) -> dict[str, float]:
        """Return what one allocation ``(l)`` takes of every measure, limited or not."""
        costs = AllocationBudget(tuple(MEASURES), (1.0,) * len(MEASURES)).costs(self.table)
        chosen = costs.reshape(len(costs), len(cells), -1)[:, np.arange(len(cells)), cells]
        totals = chosen.sum(axis=1) if self.deployment == "pipelined" else chosen.max(axis=1)
        return dict(zip(MEASURES, totals.tolist(), strict=True))

    def violations(self, cells: Ints) -> tuple[str, ...]:
        """Return what an allocation ``(l)`` is over, each with the smallest cure.

        That is the change of one layer which meets this limit and costs least; if none does, the limit that would do.
        """
        found = []
        taken = self.taken(cells)
        layers = np.arange(len(cells))
        for m, measure in enumerate(self.budget.measures):
            if taken[measure] <= self.limits[m]:
                continue
            allowed, needed = Limit(measure, self.budget.limits[m]), Limit(measure, taken[measure]).rounded.shown()
            costs = self.costs[m]
            rest = taken[measure] - costs[layers, cells]
            loss = self.figures[0] - self.figures[0][layers, cells][:, None]
            dear = np.where(rest[:, None] + costs <= self.limits[m], loss, np.inf) \
                if self.deployment == "pipelined" else np.full(costs.shape, np.inf)
            layer, cell = (int(place) for place in np.unravel_index(np.argmin(dear), dear.shape))
            change = f"{self.describe(cell)}, not {self.describe(int(cells[layer]))}"
            cure = (f"give {self.table.stages.names[layer]} {change}" if np.isfinite(dear[layer, cell])
                    else f"allow {needed}")
            found.append(f"{measure}: {needed} where {allowed.shown()} is allowed; {cure}")
        return tuple(found)

    def describe(self, cell: int) -> str:
        """Return what a cell is, in words."""
        style, p, k = self.places([cell])[0]
        stages = self.table.stages
        return f"{stages.elements[p]} elements of {stages.buffers[k]} B ({stages.styles[style]})"

    def places(self, cells: Sequence[int] | Ints) -> list[tuple[int, int, int]]:
        """Return style, elements and buffer of cells, by their places in the table."""
        return list(zip(*(axis.tolist() for axis in np.unravel_index(
            np.asarray(cells), self.table.stages.shape[1:])), strict=True))


def observations(problem: AllocationProblem) -> NDArray[np.float32]:
    """Return what each layer is known by ``(l, 8)``: K C Y X R S, its kind, its place; from -1 to 1 (equation 8.1).

    Sizes are taken by their logarithms, as they span orders of magnitude. K, C, Y of a matrix product are N, K and M.
    """
    rows = np.array([_sizes(operator) for operator in problem.table.stages.operators], dtype=np.float64)
    rows[:, :6] = np.log2(rows[:, :6])
    rows = np.concatenate([rows, np.arange(len(rows))[:, None]], axis=1)
    low, high = rows.min(axis=0), rows.max(axis=0)
    scaled: NDArray[np.float32] = np.where(high > low, 2 * (rows - low) / np.maximum(high - low, 1e-9) - 1, 0.0).astype(
        np.float32)
    return scaled


def _sizes(operator: Operator) -> list[int]:
    classes, sizes = classes_of(operator), operator.sizes

    def size(kind: str) -> int:
        return int(np.prod([sizes[name] for name in classes[kind]]))

    window = [sizes[name] for name in classes["window"]][-2:]
    return [size("filters") * size("groups"), size("channels") * size("groups"), size("rows"), size("columns"),
            *[1] * (2 - len(window)), *window, int(size("groups") > 1)]
